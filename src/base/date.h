#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace cubist {

/// A day of the calendar as "2027-01-31", of the years 1970 to 9999; nothing for any other text.
std::optional<std::chrono::sys_days> parse_date(std::string_view text);

/// Whether that day has ended (in UTC) at `now`.
inline bool is_over(std::chrono::sys_days day, std::chrono::system_clock::time_point now) {
  // In days: nanoseconds since 1970 end in 2262.
  return std::chrono::floor<std::chrono::days>(now) > day;
}

}  // namespace cubist
