#pragma once

#include <cstdint>

namespace cubist::launcher {

/// A device address as a parameter block holds it: never read here.
template <class T>
T* device_pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr): it is no host address
}

}  // namespace cubist::launcher
