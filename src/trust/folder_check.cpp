#include "trust/folder_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <set>

#include "base/log.h"
#include "document/json_text.h"

namespace cubist::trust {
namespace {

namespace fs = std::filesystem;

enum class Place : std::uint8_t { kOnTheWay, kItself };

/// Adds what is wrong with one folder; false if there is none.
bool look_at(const fs::path& folder, Place place, std::vector<std::string>& problems) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return false;
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    problems.push_back(
        fmt::format("{} belongs to user {}", in_quotes(folder.string()), info.st_uid));
  }
  const bool kept_apart = place == Place::kOnTheWay && (info.st_mode & S_ISVTX) != 0;
  if (S_ISDIR(info.st_mode) && (info.st_mode & S_IWOTH) != 0 && !kept_apart) {
    problems.push_back(fmt::format("{} can be written by everybody (mode {:04o})",
                                   in_quotes(folder.string()), info.st_mode & 07777));
  }
  return true;
}

}  // namespace

std::vector<std::string> folder_problems(const std::string& folder,
                                         const std::vector<std::string>& inside) {
  std::vector<std::string> problems;
  std::error_code error;
  // Where links lead: they themselves lie in folders on the way of the path as it was given, whose
  // owners could turn them elsewhere, so both ways count.
  const fs::path real = fs::weakly_canonical(folder, error);
  for (const fs::path& way : {fs::path(folder), error ? fs::path() : real}) {
    fs::path at;
    for (const fs::path& step : way) {
      at /= step;
      if (at == way) break;
      if (!look_at(at, Place::kOnTheWay, problems)) break;
    }
    if (real == folder) break;
  }
  const fs::path itself = error ? fs::path(folder) : real;
  if (!look_at(itself, Place::kItself, problems)) return problems;
  for (const std::string& name : inside) look_at(itself / name, Place::kItself, problems);
  std::vector<std::string> once;
  std::set<std::string> told;
  for (std::string& problem : problems) {
    if (told.insert(problem).second) once.push_back(std::move(problem));
  }
  return once;
}

Status check_folder(const std::string& folder, const std::vector<std::string>& inside,
                    Policy policy, const std::string& origin) {
  if (policy == Policy::kAllow) return {};
  const std::vector<std::string> problems = folder_problems(folder, inside);
  if (problems.empty()) return {};
  constexpr std::string_view kNext =
      "set CUBIST_STORE (or --store) to a folder of your own, change owner and mode, or accept it "
      "with foreign_store \"allow\" (CUBIST_FOREIGN_STORE)";
  if (policy == Policy::kRefuse) {
    return fail(
        StatusCode::kUntrusted,
        "the store '{}' is one that others can write, which foreign_store \"refuse\" (by {}) "
        "bars: {}; {}",
        folder, origin, joined(problems), kNext);
  }
  static std::mutex mutex;
  static std::set<std::string> warned;
  const std::lock_guard lock(mutex);
  if (warned.insert(folder).second) {
    log(LogLevel::kWarning, "the store '{}' is one that others can write: {}; {}", folder,
        joined(problems), kNext);
  }
  return {};
}

}  // namespace cubist::trust
