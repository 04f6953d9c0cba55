// Sources that are trees of files: a folder on this machine, a folder behind http(s).

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/file.h"
#include "registry/bundle_shelf.h"
#include "registry/source_kinds.h"

namespace cubist {
namespace {

class HttpSource : public OpenSource {
 public:
  HttpSource(const Source& source, Url url, bool named_by_user, const SourceContext& context)
      : source_(source),
        url_(std::move(url)),
        named_by_user_(named_by_user),
        prefixes_(context.prefixes),
        profile_(context.profile),
        name_(url_.shown()) {}

  const std::string& name() const override { return name_; }

  Result<std::optional<Offer>> offer(const KernelRecord& record, std::size_t attempt) override {
    const auto paths = candidate_paths(record, source_, named_by_user_, prefixes_);
    if (attempt >= paths.size()) return std::optional<Offer>();
    Offer offer;
    HttpRequest request;
    CUBIST_ASSIGN_OR_RETURN(request.url, url_below(url_, paths[choice_.index(attempt)]));
    request.profile = profile_;
    request.max_bytes = record.size_bytes;
    offer.origin = request.url.shown();
    offer.request = std::move(request);
    offer.take = [](HttpResponse response) -> Result<Bytes> { return std::move(response.body); };
    return std::optional<Offer>(std::move(offer));
  }

  void worked(std::size_t attempt) override { choice_.worked(attempt); }

 private:
  Source source_;
  Url url_;
  bool named_by_user_;
  std::vector<std::string> prefixes_;
  std::shared_ptr<const HttpProfile> profile_;
  std::string name_;
  StickyChoice choice_;
};

class FolderSource : public OpenSource {
 public:
  FolderSource(const Source& source, std::string folder, bool named_by_user,
               const SourceContext& context)
      : source_(source),
        folder_(std::move(folder)),
        named_by_user_(named_by_user),
        prefixes_(context.prefixes) {}

  const std::string& name() const override { return folder_; }

  Result<std::optional<Offer>> offer(const KernelRecord& record, std::size_t attempt) override {
    const auto paths = candidate_paths(record, source_, named_by_user_, prefixes_);
    // A folder that the user names may be a store: its bundles are the last choice.
    if (attempt >= paths.size() + (named_by_user_ ? 1 : 0)) return std::optional<Offer>();
    const std::size_t choice = choice_.index(attempt);
    if (choice == paths.size()) return std::optional<Offer>(offer_of_bundles(record));
    Offer offer;
    offer.origin = folder_ + "/" + paths[choice];
    offer.take = [path = offer.origin, most = record.size_bytes](const HttpResponse&) {
      return read_artifact(path, most);
    };
    return std::optional<Offer>(std::move(offer));
  }

  void worked(std::size_t attempt) override { choice_.worked(attempt); }

 private:
  Offer offer_of_bundles(const KernelRecord& record) const {
    Offer offer;
    offer.origin = bundle_folder(folder_);
    offer.take = [shelf = bundles_, folder = folder_, sha256 = record.sha256,
                  size = record.size_bytes](const HttpResponse&) -> Result<Bytes> {
      CUBIST_ASSIGN_OR_RETURN(const auto layer, shelf->layer(folder));
      for (const auto& bundle : layer->bundles) {
        const StoredBundle::Kernel* kernel = bundle->find(sha256);
        if (kernel == nullptr) continue;
        CUBIST_ASSIGN_OR_RETURN(const VerifiedCubin cubin, bundle->open_verified(*kernel, size));
        return Bytes(cubin.bytes().begin(), cubin.bytes().end());
      }
      return fail(StatusCode::kNotFound, "no bundle in '{}' has it", bundle_folder(folder));
    };
    return offer;
  }

  static Result<Bytes> read_artifact(const std::string& path, std::uint64_t expected) {
    CUBIST_ASSIGN_OR_RETURN(const UniqueFd fd, open_regular_file(path));
    CUBIST_ASSIGN_OR_RETURN(const std::uint64_t size, file_size(fd, path));
    if (size > expected) {
      return fail(StatusCode::kIntegrity, "'{}' has {} bytes, the manifest says {}", path, size,
                  expected);
    }
    Bytes bytes(static_cast<std::size_t>(size));
    CUBIST_RETURN_IF_ERROR(read_exactly_at(fd, 0, bytes, path));
    return bytes;
  }

  Source source_;
  std::string folder_;
  bool named_by_user_;
  std::vector<std::string> prefixes_;
  StickyChoice choice_;
  std::shared_ptr<BundleShelf> bundles_ = std::make_shared<BundleShelf>();
};

}  // namespace

std::unique_ptr<OpenSource> make_http_source(const Source& source, Url url, bool named_by_user,
                                             const SourceContext& context) {
  return std::make_unique<HttpSource>(source, std::move(url), named_by_user, context);
}

Result<std::unique_ptr<OpenSource>> make_folder_source(const Source& source, bool named_by_user,
                                                       const SourceContext& context) {
  std::string folder = located(source.location, context.manifest_folder);
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    return fail(StatusCode::kIo, "cannot look into the folder '{}': {}", folder,
                std::generic_category().message(errno));
  }
  if (!S_ISDIR(info.st_mode)) return fail(StatusCode::kIo, "'{}' is not a folder", folder);
  return std::unique_ptr<OpenSource>(
      std::make_unique<FolderSource>(source, std::move(folder), named_by_user, context));
}

}  // namespace cubist
