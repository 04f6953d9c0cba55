#include "base/count.h"

#include <charconv>
#include <limits>

namespace cubist {

std::optional<std::int64_t> parse_count(std::string_view text) {
  constexpr std::int64_t kThousand = 1024;
  const bool thousands = text.ends_with('k') || text.ends_with('K');
  if (thousands) text.remove_suffix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!thousands) return number;
  if (number > std::numeric_limits<std::int64_t>::max() / kThousand ||
      number < std::numeric_limits<std::int64_t>::min() / kThousand) {
    return std::nullopt;
  }
  return number * kThousand;
}

}  // namespace cubist
