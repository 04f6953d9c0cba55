#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "registry/source.h"

namespace cubist {

/// The sources of every pack of a run, opened when first needed, and what is known of their health:
/// one that fails again and again is not asked any more.
class SourceSet {
 public:
  /// named_by_user  sources in place of the packs' own; may be empty
  SourceSet(SourceContext context, std::vector<Source> named_by_user, bool offline)
      : context_(std::move(context)), named_(std::move(named_by_user)), offline_(offline) {}

  /// How many sources a pack has.
  std::size_t count(const Pack& pack) const;
  std::string name(const Pack& pack, std::size_t index) const;
  bool is_remote(const Pack& pack, std::size_t index) const;
  /// Opened, or why not.
  /// errors  kOffline: it needs the network; else as open_source, or that it was given up
  Result<OpenSource*> open(const Pack& pack, std::size_t index);

  void succeeded(const Pack& pack, std::size_t index);
  /// A failure that says more about the source than about the file.
  void failed(const Pack& pack, std::size_t index, const Error& error);

 private:
  struct Entry {
    std::unique_ptr<OpenSource> source;
    std::optional<Error> error;  ///< it could not be opened, or was given up
    int failures_in_a_row = 0;
  };

  const std::vector<Source>& sources(const Pack& pack) const;
  Entry& entry(const Pack& pack, std::size_t index);

  SourceContext context_;
  std::vector<Source> named_;
  bool offline_;
  std::map<std::pair<const Pack*, std::size_t>, Entry> entries_;
};

}  // namespace cubist
