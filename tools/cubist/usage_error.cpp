#include "usage_error.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "document/json_text.h"

namespace cubist::tools {
namespace {

// A word that needs more changes than this to be a command was meant for something else.
constexpr std::size_t kMostChanges = 2;

/// Letters that are to be put in, left out or replaced to make one word of the other.
std::size_t changes_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string nearest_command(const CLI::App& parent, std::string_view word) {
  std::string nearest;
  std::size_t least = kMostChanges + 1;
  for (const CLI::App* command : parent.get_subcommands([](const CLI::App*) { return true; })) {
    const std::size_t changes = changes_between(word, command->get_name());
    if (changes >= least) continue;
    least = changes;
    nearest = command->get_name();
  }
  return nearest;
}

/// "cubist bundle", of the innermost command that was found.
std::string path_of(const CLI::App& app, const CLI::App*& innermost) {
  std::string path = "cubist";
  innermost = &app;
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    path += " " + innermost->get_name();
  }
  return path;
}

/// The first word that was left over and is no flag; empty: none.
std::string stray_word(const CLI::App& app) {
  for (std::string& word : app.remaining(true)) {
    if (!word.starts_with('-')) return std::move(word);
  }
  return "";
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* innermost = nullptr;
  const std::string path = path_of(app, innermost);
  const bool wants_command =
      !innermost->get_subcommands([](const CLI::App*) { return true; }).empty();
  const std::string word = wants_command ? stray_word(app) : "";
  std::string text = error.what();
  if (!word.empty()) {
    text = fmt::format("{} is no command of '{}'", in_quotes(word), path);
    if (const std::string near = nearest_command(*innermost, word); !near.empty()) {
      text += fmt::format("; the nearest is '{} {}'", path, near);
    }
  }
  return fmt::format("{}\n  '{} --help' says more", text, path);
}

}  // namespace cubist::tools
