#pragma once

#include <functional>
#include <string>

namespace cubist::test {

/// A well-formed image with one lie in it, and what the refusal has to say of it.
template <class Image>
struct Liar {
  std::string what;
  std::function<void(Image&)> lie;
  std::string says;
};

}  // namespace cubist::test
