#pragma once

#include <cstddef>

namespace cubist {

/// Gives fresh memory its pages in one call, where one fault each would cost more than filling
/// them. Only a hint: nothing happens where the system has no such call (Linux before 5.14).
void prefault(void* memory, std::size_t bytes);

}  // namespace cubist
