// Sources that are one zip or wheel: a file on this machine, one behind HTTP ranges, one that pip
// knows.

#include <algorithm>

#include "archive/zip.h"
#include "registry/directory_cache.h"
#include "registry/http_range_access.h"
#include "registry/pip_index.h"
#include "registry/source_kinds.h"

namespace cubist {
namespace {

std::string_view file_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Which member may hold a record.
class MemberFinder {
 public:
  MemberFinder(const Source& source, bool named_by_user, std::vector<std::string> prefixes)
      : source_(source), named_by_user_(named_by_user), prefixes_(std::move(prefixes)) {}

  std::vector<const ZipMember*> find(const ZipArchive& zip, const KernelRecord& record) const {
    std::vector<const ZipMember*> found;
    const auto add = [&](const ZipMember* member) {
      if (member == nullptr || member->size != record.size_bytes) return;
      if (std::find(found.begin(), found.end(), member) == found.end()) found.push_back(member);
    };
    for (const std::string& path : candidate_paths(record, source_, named_by_user_, prefixes_)) {
      add(zip.find(path));
    }
    if (!found.empty() || !named_by_user_) return found;
    const std::string file = record.file();
    for (const ZipMember& member : zip.members()) {
      if (file_part(member.name) == file_part(file)) add(&member);
    }
    return found;
  }

 private:
  Source source_;
  bool named_by_user_;
  std::vector<std::string> prefixes_;
};

Error no_member(const std::string& zip, const KernelRecord& record) {
  return Error(StatusCode::kIntegrity,
               fmt::format("'{}' has no member for '{}' with {} bytes: another release than the "
                           "manifest's?",
                           zip, record.file(), record.size_bytes));
}

class LocalZipSource : public OpenSource {
 public:
  LocalZipSource(std::shared_ptr<const ZipArchive> zip, MemberFinder finder)
      : zip_(std::move(zip)), finder_(std::move(finder)) {}

  const std::string& name() const override { return zip_->name(); }

  Result<std::optional<Offer>> offer(const KernelRecord& record, std::size_t attempt) override {
    const auto members = finder_.find(*zip_, record);
    if (members.empty()) return tl::unexpected<Error>(no_member(name(), record));
    if (attempt >= members.size()) return std::optional<Offer>();
    Offer offer;
    offer.origin = fmt::format("{}:{}", name(), members[attempt]->name);
    offer.take = [zip = zip_, member = members[attempt], most = record.size_bytes](
                     const HttpResponse&) { return zip->read(*member, most); };
    return std::optional<Offer>(std::move(offer));
  }

 private:
  std::shared_ptr<const ZipArchive> zip_;
  MemberFinder finder_;
};

/// The wheel's directory comes from the store's cache if it is there; what is read with a
/// remembered directory and turns out wrong is asked for again with a fresh one.
class RemoteZipSource : public OpenSource {
 public:
  RemoteZipSource(const SourceContext& context, RemoteWheel wheel, MemberFinder finder)
      : http_(context.http),
        wheel_(std::move(wheel)),
        cache_(context.store,
               wheel_.sha256.empty() ? "url " + wheel_.url.text : "sha256 " + wheel_.sha256),
        finder_(std::move(finder)),
        name_(wheel_.url.shown()) {}

  Status open() {
    auto known = cache_.load();
    remembered_ = known.has_value();
    const Status opened = open_with(std::move(known));
    if (opened || !remembered_) return opened;
    cache_.remove();
    remembered_ = false;
    return open_with(std::nullopt);
  }

  const std::string& name() const override { return name_; }

  Result<std::optional<Offer>> offer(const KernelRecord& record, std::size_t attempt) override {
    const auto members = finder_.find(*zip_, record);
    if (members.empty()) return tl::unexpected<Error>(no_member(name_, record));
    if (attempt >= members.size()) return std::optional<Offer>();
    const ZipMember* member = members[attempt];
    const ZipArchive::Extent extent = zip_->extent(*member);
    Offer offer;
    offer.origin = fmt::format("{}:{}", name_, member->name);
    offer.request = access_->request_for(extent.offset, extent.length);
    offer.take = [zip = zip_, member, most = record.size_bytes,
                  name = name_](const HttpResponse& response) -> Result<Bytes> {
      if (response.changed) {
        return fail(StatusCode::kIntegrity, "'{}' is another file than when its directory was read",
                    name);
      }
      return zip->unpack(*member, response.body, most);
    };
    return std::optional<Offer>(std::move(offer));
  }

  std::uint64_t generation() const override { return generation_; }

  bool refresh(std::uint64_t offer_generation) override {
    if (offer_generation != generation_) return true;
    if (!remembered_ && !access_->forget_redirect()) return false;
    cache_.remove();
    remembered_ = false;
    ++generation_;
    return open_with(std::nullopt).has_value();
  }

 private:
  Status open_with(std::optional<HttpRangeAccess::Known> known) {
    const bool fresh = !known.has_value();
    CUBIST_ASSIGN_OR_RETURN(
        auto access, HttpRangeAccess::open(http_, wheel_.url, wheel_.profile, std::move(known)));
    CUBIST_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::open(access));
    if (fresh) {
      std::uint64_t end = 0;  // of the last member: the directory begins there
      for (const ZipMember& member : zip.members()) end = std::max(end, member.limit_offset);
      cache_.save(*access, end);
    }
    access_ = std::move(access);
    zip_ = std::make_shared<const ZipArchive>(std::move(zip));
    return {};
  }

  HttpClient& http_;
  RemoteWheel wheel_;
  DirectoryCache cache_;
  MemberFinder finder_;
  std::string name_;
  bool remembered_ = false;
  std::uint64_t generation_ = 0;
  std::shared_ptr<HttpRangeAccess> access_;
  std::shared_ptr<const ZipArchive> zip_;
};

Result<std::unique_ptr<OpenSource>> open_local(const std::string& path, MemberFinder finder) {
  CUBIST_ASSIGN_OR_RETURN(std::shared_ptr<RandomAccess> file, open_file_access(path));
  CUBIST_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::open(std::move(file)));
  return std::unique_ptr<OpenSource>(std::make_unique<LocalZipSource>(
      std::make_shared<const ZipArchive>(std::move(zip)), std::move(finder)));
}

Result<std::unique_ptr<OpenSource>> open_remote(const SourceContext& context, RemoteWheel wheel,
                                                MemberFinder finder) {
  auto source = std::make_unique<RemoteZipSource>(context, std::move(wheel), std::move(finder));
  CUBIST_RETURN_IF_ERROR(source->open());
  return std::unique_ptr<OpenSource>(std::move(source));
}

}  // namespace

Result<std::unique_ptr<OpenSource>> make_zip_source(const Source& source, bool named_by_user,
                                                    const SourceContext& context) {
  MemberFinder finder(source, named_by_user, context.prefixes);
  if (source.kind == Source::Kind::kPip) {
    CUBIST_ASSIGN_OR_RETURN(PipWheel wheel,
                            find_pip_wheel(context.http, source.location, *context.profile));
    if (const auto* local = std::get_if<LocalWheel>(&wheel)) {
      return open_local(local->path, std::move(finder));
    }
    return open_remote(context, std::get<RemoteWheel>(std::move(wheel)), std::move(finder));
  }
  if (!looks_like_url(source.location)) {
    return open_local(located(source.location, context.manifest_folder), std::move(finder));
  }
  CUBIST_ASSIGN_OR_RETURN(Url url, parse_url(source.location));
  return open_remote(context, {std::move(url), {}, context.profile}, std::move(finder));
}

}  // namespace cubist
