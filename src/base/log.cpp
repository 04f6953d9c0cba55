#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "base/secrets.h"

namespace cubist {
namespace {

LogLevel level_from_environment() {
  const char* text = std::getenv("CUBIST_LOG_LEVEL");
  const std::string_view name = text == nullptr ? "" : text;
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return LogLevel::kWarning;
}

std::atomic<LogLevel>& current_level() {
  static std::atomic<LogLevel> level{level_from_environment()};
  return level;
}

struct Sink {
  std::mutex mutex;
  LogSink custom;
  spdlog::logger standard_error{"cubist", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

Sink& sink() {
  static Sink* instance = [] {  // never destroyed: threads may log while the process ends
    auto* made = new Sink;
    made->standard_error.set_level(spdlog::level::trace);
    made->standard_error.set_pattern("cubist: %l: %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void set_log_sink(LogSink new_sink) {
  const std::lock_guard lock(sink().mutex);
  sink().custom = std::move(new_sink);
}

void set_log_level(LogLevel level) { current_level() = level; }

LogLevel log_level() { return current_level(); }

void log_message(LogLevel level, std::string_view text) {
  if (level < log_level()) return;
  const std::string message = without_credentials(text);
  const std::lock_guard lock(sink().mutex);
  if (sink().custom) {
    sink().custom(level, message);
  } else {
    sink().standard_error.log(to_spdlog(level), "{}", message);
  }
}

}  // namespace cubist
