#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "archive/random_access.h"
#include "base/result.h"
#include "manifest/manifest.h"
#include "registry/http_client.h"
#include "registry/store.h"

namespace cubist {

using Bytes = std::vector<std::uint8_t>;

/// "pip:NAME==VERSION", "oci://HOST/REPOSITORY:TAG", a URL (of a wheel or zip if it ends so, else
/// of a folder), a folder or a wheel on this machine. errors  kInvalidArgument: none of these.
/// kNotFound: no such file or folder
Result<Source> parse_source(std::string_view text);

/// The form parse_source() reads; what messages call a source. Without credentials.
std::string to_string(const Source& source);

/// How to get one artifact from a source: a request, if the network is needed, and then the bytes.
struct Offer {
  std::string origin;  ///< file or URL, for messages
  std::optional<HttpRequest> request;
  /// With a request: the artifact out of the answer. Without: the artifact from this machine.
  /// Safe from any thread.
  std::function<Result<Bytes>(HttpResponse)> take;
};

/// A source made ready: its wheel found, its directory read. Used from one thread.
class OpenSource {
 public:
  virtual ~OpenSource() = default;

  virtual const std::string& name() const = 0;
  /// The attempt-th way (from 0) to get a record here; nullopt when there are no more. The first is
  /// the one that worked for the record before.
  virtual Result<std::optional<Offer>> offer(const KernelRecord& record, std::size_t attempt) = 0;
  virtual void worked(std::size_t /*attempt*/) {}
  /// Counts up when what is remembered about the source (a directory, a redirect) was dropped.
  virtual std::uint64_t generation() const { return 0; }
  /// After an offer of `offer_generation` brought wrong bytes or an error: true if asking again is
  /// worth it, since something remembered was dropped that may have been the cause.
  virtual bool refresh(std::uint64_t /*offer_generation*/) { return false; }
};

struct SourceContext;
/// Opens the sources of kind kOci, which the rooms above know how to.
using SourceOpener =
    std::function<Result<std::unique_ptr<OpenSource>>(const Source&, const SourceContext&)>;

/// What sources need from around them.
struct SourceContext {
  HttpClient& http;
  const Store& store;
  std::shared_ptr<const HttpProfile> profile;
  std::string manifest_folder;  ///< where relative locations start; empty: the current folder
  std::vector<std::string>
      prefixes;             ///< of the pack's own sources; tried in a source the user names
  SourceOpener open_oci{};  ///< null: there are none of that kind
};

/// named_by_user  look under the pack's prefixes, by path, by digest (a store's own layout) and, in
/// a
///                zip, by file name; else at location + prefix + path only
/// errors         kIo, kNetwork, kIntegrity, kNotFound (no python, no such release)
Result<std::unique_ptr<OpenSource>> open_source(const Source& source, bool named_by_user,
                                                const SourceContext& context);

/// Whether using it may need the network.
bool needs_network(const Source& source);

/// A file or wheel anywhere: a path, an http(s) URL read by ranges, or pip:NAME==VERSION. The
/// client must outlive the result.
Result<std::shared_ptr<RandomAccess>> open_location(std::string_view location, HttpClient& client);

}  // namespace cubist
