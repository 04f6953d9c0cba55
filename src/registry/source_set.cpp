#include "registry/source_set.h"

#include "base/log.h"

namespace cubist {
namespace {

// Each of these failures already stands for all tries of one request.
constexpr int kMaxFailuresInARow = 8;

}  // namespace

const std::vector<Source>& SourceSet::sources(const Pack& pack) const {
  return named_.empty() ? pack.sources : named_;
}

std::size_t SourceSet::count(const Pack& pack) const { return sources(pack).size(); }

std::string SourceSet::name(const Pack& pack, std::size_t index) const {
  return to_string(sources(pack)[index]);
}

bool SourceSet::is_remote(const Pack& pack, std::size_t index) const {
  return needs_network(sources(pack)[index]);
}

SourceSet::Entry& SourceSet::entry(const Pack& pack, std::size_t index) {
  return entries_[{&pack, index}];
}

Result<OpenSource*> SourceSet::open(const Pack& pack, std::size_t index) {
  Entry& one = entry(pack, index);
  if (!one.source && !one.error) {
    const Source& source = sources(pack)[index];
    if (offline_ && needs_network(source)) {
      one.error = Error(StatusCode::kOffline, "not asked: offline");
    } else {
      SourceContext context = context_;
      for (const Source& own : pack.sources) context.prefixes.push_back(own.prefix);
      auto opened = open_source(source, !named_.empty(), context);
      if (opened) {
        one.source = std::move(*opened);
      } else {
        one.error = std::move(opened.error());
      }
    }
  }
  if (one.error) return tl::unexpected<Error>(*one.error);
  return one.source.get();
}

void SourceSet::succeeded(const Pack& pack, std::size_t index) {
  entry(pack, index).failures_in_a_row = 0;
}

void SourceSet::failed(const Pack& pack, std::size_t index, const Error& error) {
  Entry& one = entry(pack, index);
  if (one.error || ++one.failures_in_a_row < kMaxFailuresInARow) return;
  log(LogLevel::kWarning, "{} failed {} times in a row and is not asked any more",
      name(pack, index), kMaxFailuresInARow);
  one.error = Error(error.code(), fmt::format("given up after {} failures in a row, the last: {}",
                                              kMaxFailuresInARow, error.message()));
}

}  // namespace cubist
