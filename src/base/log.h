#pragma once

#include <functional>
#include <string_view>

#include <fmt/format.h>

namespace cubist {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3, kOff = 4 };

/// Where messages go. Called from any thread, one call at a time; must not log itself.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink (default: warnings and errors to standard error); an empty one restores it.
void set_log_sink(LogSink sink);
/// Messages below this level are not formatted at all. Default: kWarning, or CUBIST_LOG_LEVEL.
void set_log_level(LogLevel level);
LogLevel log_level();

void log_message(LogLevel level, std::string_view message);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> text, Args&&... args) {
  if (level < log_level()) return;
  log_message(level, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace cubist
