#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "manifest/manifest.h"
#include "registry/source.h"

namespace cubist {

/// The relative paths at which a source may have a record, in the order they are tried: below its
/// own prefix only, or, for a source the user names, below every prefix of the pack, plain, and in
/// the layout of a store.
std::vector<std::string> candidate_paths(const KernelRecord& record, const Source& source,
                                         bool named_by_user,
                                         const std::vector<std::string>& prefixes);

/// "attempt" counted from the one that worked last: 0 is it, then the others in order.
class StickyChoice {
 public:
  std::size_t index(std::size_t attempt) const {
    if (attempt == 0) return preferred_;
    return attempt <= preferred_ ? attempt - 1 : attempt;
  }
  void worked(std::size_t attempt) { preferred_ = index(attempt); }

 private:
  std::size_t preferred_ = 0;
};

/// A location of a manifest as a path: relative ones start at the manifest's folder.
std::string located(const std::string& location, const std::string& manifest_folder);

std::unique_ptr<OpenSource> make_http_source(const Source& source, Url url, bool named_by_user,
                                             const SourceContext& context);
Result<std::unique_ptr<OpenSource>> make_folder_source(const Source& source, bool named_by_user,
                                                       const SourceContext& context);
Result<std::unique_ptr<OpenSource>> make_zip_source(const Source& source, bool named_by_user,
                                                    const SourceContext& context);

}  // namespace cubist
