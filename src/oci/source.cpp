#include "oci/source.h"

#include <deque>

#include "base/log.h"
#include "bundle/entry.h"
#include "oci/remote_bundle.h"
#include "oci/transfer.h"

namespace cubist::oci {
namespace {

// Whole shards kept, where there are no ranges: some 130 MB.
constexpr std::size_t kKeptShards = 4;
constexpr std::uint64_t kMaxShardInMemory = 1ULL << 30;

using SharedBytes = std::shared_ptr<const std::vector<std::uint8_t>>;

class MemorySink : public HttpSink {
 public:
  Status write(std::span<const std::uint8_t> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
  Status restart() override {
    bytes.clear();
    return {};
  }
  std::vector<std::uint8_t> bytes;
};

Result<Bytes> kernel_bytes(std::span<const std::uint8_t> entry, const bundle::Kernel& kernel,
                           const std::string& origin) {
  CUBIST_ASSIGN_OR_RETURN(const VerifiedCubin cubin, bundle::unpack_entry(entry, kernel, origin));
  return Bytes(cubin.bytes().begin(), cubin.bytes().end());
}

class OciSource : public OpenSource {
 public:
  OciSource(RemoteBundle remote, std::shared_ptr<const HttpProfile> profile,
            std::unique_ptr<HttpClient> client)
      : remote_(std::move(remote)),
        profile_(std::move(profile)),
        client_(std::move(client)),
        name_(remote_.session->reference().text()),
        wants_authorization_(!remote_.session->authorization().empty()) {}

  /// One request of one byte.
  Status probe_ranges() {
    HttpRequest request = entry_request(remote_.index.kernels.front());
    request.range->length = 1;
    auto answered = remote_.session->send(*client_, request);
    ranges_ = answered && answered->status == 206;
    if (!ranges_) log(LogLevel::kInfo, "{}: no ranges; whole shards are read", name_);
    if (!answered && answered.error().code() == StatusCode::kInterrupted) {
      return forward_error(answered);
    }
    return {};
  }

  const std::string& name() const override { return name_; }

  Result<std::optional<Offer>> offer(const KernelRecord& record, std::size_t attempt) override {
    const Place* place = attempt == 0 ? remote_.index.find(record.sha256) : nullptr;
    if (place == nullptr) return std::optional<Offer>();
    Offer offer;
    const Descriptor& shard = remote_.image.shards[place->shard];
    offer.origin = fmt::format("{} (bytes {} to {} of {})", name_, place->offset,
                               place->offset + place->packed_bytes - 1, digest_text(shard.digest));
    const bundle::Kernel kernel{record.sha256, record.size_bytes};
    if (!ranges_) {
      CUBIST_ASSIGN_OR_RETURN(const SharedBytes bytes, whole_shard(place->shard));
      offer.take = [bytes, place = *place, kernel, origin = offer.origin](const HttpResponse&) {
        return kernel_bytes(std::span(*bytes).subspan(static_cast<std::size_t>(place.offset),
                                                      static_cast<std::size_t>(place.packed_bytes)),
                            kernel, origin);
      };
      return std::optional<Offer>(std::move(offer));
    }
    CUBIST_RETURN_IF_ERROR(renew_authorization());
    offer.request = entry_request(*place);
    offer.request->authorization = remote_.session->authorization();
    offer.take = [kernel, origin = offer.origin](const HttpResponse& response) {
      return kernel_bytes(response.body, kernel, origin);
    };
    return std::optional<Offer>(std::move(offer));
  }

  std::uint64_t generation() const override { return generation_; }

  /// A token may be over before its time.
  bool refresh(std::uint64_t offer_generation) override {
    if (!wants_authorization_) return false;
    if (offer_generation != generation_) return true;  // done already
    remote_.session->forget_authorization();
    ++generation_;
    return true;
  }

 private:
  HttpRequest entry_request(const Place& place) const {
    const Descriptor& shard = remote_.image.shards[place.shard];
    HttpRequest request;
    request.url = remote_.session->url("blobs/" + digest_text(shard.digest));
    request.profile = profile_;
    request.range = HttpRequest::Range{place.offset, place.packed_bytes};
    request.total_size = shard.size_bytes;
    request.max_bytes = place.packed_bytes;
    return request;
  }

  Status renew_authorization() {
    if (!wants_authorization_ || !remote_.session->authorization().empty()) return {};
    HttpRequest request;
    request.method = HttpMethod::kHead;
    request.url = remote_.session->url("manifests/" + digest_text(remote_.digest));
    request.accept = std::string(kManifestType);
    CUBIST_RETURN_IF_ERROR(remote_.session->send(*client_, request));
    return {};
  }

  Result<SharedBytes> whole_shard(std::uint32_t shard) {
    for (const auto& [number, bytes] : kept_) {
      if (number == shard) return bytes;
    }
    const Descriptor& blob = remote_.image.shards[shard];
    if (blob.size_bytes > kMaxShardInMemory) {
      return fail(
          StatusCode::kNetwork,
          "{}: the registry does not answer ranges, and the shard has {} bytes; use 'cubist "
          "pull'",
          name_, blob.size_bytes);
    }
    auto sink = std::make_shared<MemorySink>();
    CUBIST_RETURN_IF_ERROR(fetch_blob(*remote_.session, *client_, blob, 0, sink));
    if (sha256(sink->bytes) != blob.digest) {
      return fail(StatusCode::kIntegrity, "{}: the registry sent other bytes as {}", name_,
                  digest_text(blob.digest));
    }
    const auto bytes = std::make_shared<const std::vector<std::uint8_t>>(std::move(sink->bytes));
    kept_.emplace_front(shard, bytes);
    if (kept_.size() > kKeptShards) kept_.pop_back();
    return SharedBytes(bytes);
  }

  RemoteBundle remote_;
  std::shared_ptr<const HttpProfile> profile_;
  std::unique_ptr<HttpClient> client_;
  std::string name_;
  bool wants_authorization_;
  bool ranges_ = false;
  std::uint64_t generation_ = 0;
  std::deque<std::pair<std::uint32_t, SharedBytes>> kept_;  ///< the newest first
};

}  // namespace

SourceOpener source_opener(const ConnectOptions& options) {
  return [options](const Source& source,
                   const SourceContext& context) -> Result<std::unique_ptr<OpenSource>> {
    CUBIST_ASSIGN_OR_RETURN(const Reference reference, parse_reference(source.location));
    ConnectOptions connect = options;
    connect.profile = context.profile;
    auto client = std::make_unique<HttpClient>(1, options.cancel);
    CUBIST_ASSIGN_OR_RETURN(RemoteBundle remote, open_remote(reference, connect, *client));
    if (remote.index.kernels.empty()) {
      return fail(StatusCode::kIntegrity, "{}: the index has no kernels", reference.text());
    }
    auto opened =
        std::make_unique<OciSource>(std::move(remote), connect.profile, std::move(client));
    CUBIST_RETURN_IF_ERROR(opened->probe_ranges());
    return std::unique_ptr<OpenSource>(std::move(opened));
  };
}

}  // namespace cubist::oci
