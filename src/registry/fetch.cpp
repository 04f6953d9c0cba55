#include "registry/fetch.h"

#include <algorithm>

#include "base/log.h"
#include "registry/fetch_run.h"

namespace cubist {

std::size_t FetchReport::count(FetchedFile::State state) const {
  return static_cast<std::size_t>(std::count_if(
      files.begin(), files.end(), [&](const FetchedFile& file) { return file.state == state; }));
}

Status FetchReport::status() const {
  const auto first = std::find_if(files.begin(), files.end(), [](const FetchedFile& file) {
    return file.state == FetchedFile::State::kFailed;
  });
  if (first == files.end()) return {};
  const std::size_t others = count(FetchedFile::State::kFailed) - 1;
  const std::string text = first->error ? first->error->message() : "failed";
  const StatusCode code = first->error ? first->error->code() : StatusCode::kInternal;
  if (others == 0) return fail(code, "{}", text);
  return fail(code, "{}\nand {} more of {} files failed", text, others, files.size());
}

Result<FetchReport> fetch(const Store& store, std::span<const FetchItem> items,
                          const FetchOptions& options) {
  return FetchRun(store, items, options).run();
}

Result<VerifiedCubin> open_or_fetch(const Store& store, const FetchItem& item,
                                    const FetchOptions& options) {
  auto opened = store.open_verified(*item.record);
  if (opened && *opened) return **std::move(opened);
  if (!opened) {
    if (opened.error().code() != StatusCode::kIntegrity && !options.memory_if_unwritable) {
      return forward_error(opened);
    }
    log(LogLevel::kWarning, "{}", opened.error().message());
  }
  FetchOptions kept = options;
  kept.keep_bytes = true;
  kept.rehash_present = true;
  CUBIST_ASSIGN_OR_RETURN(FetchReport report, fetch(store, {&item, 1}, kept));
  CUBIST_RETURN_IF_ERROR(report.status());
  if (report.files.front().cubin) return *std::move(report.files.front().cubin);
  return fail(StatusCode::kInternal, "'{}' was fetched, but its bytes were not kept",
              item.record->name);
}

}  // namespace cubist
