#include "base/environment.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/secrets.h"

namespace cubist {
namespace {

std::map<std::string, std::string>& origins() {
  static std::map<std::string, std::string> by_name;
  return by_name;
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> environment_list(const char* name, std::string_view separators) {
  const std::string value = environment(name);
  const std::string_view text = value;
  std::vector<std::string> list;
  for (std::size_t begin = text.find_first_not_of(separators); begin != std::string_view::npos;) {
    std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    // A URL among folders is none of them, but one mistake, and messages must know it as a URL.
    if (text.substr(end).starts_with("://") && begins_as_url(text.substr(begin))) {
      end = std::min(text.find(":/", end + 3), text.size());
    }
    list.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(separators, end);
  }
  return list;
}

std::string environment_origin(const std::string& name) {
  const auto told = origins().find(name);
  return told == origins().end() ? name : told->second;
}

void set_environment(const std::string& name, const std::string& value, const std::string& origin) {
  ::setenv(name.c_str(), value.c_str(), 1);
  origins()[name] = origin;
}

}  // namespace cubist
