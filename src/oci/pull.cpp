#include "oci/pull.h"

#include <sys/stat.h>

#include <atomic>
#include <cstdlib>

#include "archive/zip.h"
#include "base/log.h"
#include "oci/transfer.h"
#include "oci/work.h"

namespace cubist::oci {
namespace {

struct Piece {
  std::uint64_t offset = 0;
  const Descriptor* blob = nullptr;
};

std::vector<Piece> wanted_pieces(const Image& image, const std::vector<bool>& wanted) {
  std::vector<Piece> pieces{{0, &image.head}};
  std::uint64_t offset = image.head.size_bytes;
  for (std::size_t i = 0; i < image.shards.size(); ++i) {
    if (wanted[i]) pieces.push_back({offset, &image.shards[i]});
    offset += image.shards[i].size_bytes;
  }
  pieces.push_back({offset, &image.tail});
  return pieces;
}

Error wrong_blob(const RemoteBundle& remote, const Descriptor& blob, const Sha256Digest& found) {
  return Error(StatusCode::kIntegrity,
               fmt::format("{}: what the registry sent as {} ({} bytes) has digest {}; nothing of "
                           "it is used",
                           remote.session->reference().text(), digest_text(blob.digest),
                           blob.size_bytes, digest_text(found)));
}

/// One try, with the first `have` bytes taken for what they should be.
Status pull_piece(const RemoteBundle& remote, StagedBundle& file, const Piece& piece,
                  std::uint64_t have, HttpClient& client, Progress& progress) {
  auto sink = std::make_shared<PieceSink>(file, piece.offset, have, progress);
  CUBIST_RETURN_IF_ERROR(sink->begin());
  CUBIST_RETURN_IF_ERROR(fetch_blob(*remote.session, client, *piece.blob, have, sink));
  const Sha256Digest found = sink->digest();
  if (found == piece.blob->digest) return {};
  return tl::unexpected<Error>(wrong_blob(remote, *piece.blob, found));
}

/// True if the piece was there.
Result<bool> bring_piece(const RemoteBundle& remote, StagedBundle& file, const Piece& piece,
                         HttpClient& client, Progress& progress) {
  std::uint64_t have = file.filled(piece.offset, piece.blob->size_bytes);
  if (have == piece.blob->size_bytes) {
    Sha256 hasher;
    CUBIST_RETURN_IF_ERROR(file.hash(piece.offset, have, hasher));
    progress.add(have);
    if (hasher.finish() == piece.blob->digest) return true;
    have = 0;
  }
  Status done = pull_piece(remote, file, piece, have, client, progress);
  if (!done && have != 0 && done.error().code() != StatusCode::kInterrupted) {
    // What was there, or the way to go on from it, may be the cause.
    log(LogLevel::kInfo, "{}; begun anew", done.error().message());
    done = pull_piece(remote, file, piece, 0, client, progress);
  }
  if (!done) return forward_error(done);
  return false;
}

/// A staged file by the name of what it is a copy of: whoever reads a message about its bytes must
/// not look for the copy, which is gone by then.
class StagedAccess final : public RandomAccess {
 public:
  StagedAccess(std::string name, std::uint64_t size, std::shared_ptr<const StagedBundle> file)
      : name_(std::move(name)), size_(size), file_(std::move(file)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return file_->read(offset, out);
  }

 private:
  std::string name_;
  std::uint64_t size_;
  std::shared_ptr<const StagedBundle> file_;
};

/// Where a link leads, since what it points to is what is meant.
Result<std::string> real_target(const std::string& target) {
  struct stat info {};
  if (::stat(target.c_str(), &info) != 0) return target;
  if (!S_ISREG(info.st_mode)) {
    return fail(StatusCode::kInvalidArgument,
                "cannot write the bundle to '{}': it is no regular file", target);
  }
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(target.c_str(), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : target;
}

}  // namespace

Result<PullReport> pull_pieces(const RemoteBundle& remote, StagedBundle& file,
                               const std::vector<bool>& wanted, Clients& clients,
                               const PullOptions& options) {
  const std::vector<Piece> pieces = wanted_pieces(remote.image, wanted);
  Progress progress(options.progress);
  std::uint64_t total = 0;
  for (const Piece& piece : pieces) total += piece.blob->size_bytes;
  progress.set_total(total);
  std::atomic<std::size_t> present = 0;
  const auto bring = [&](std::size_t i, unsigned thread) -> Status {
    CUBIST_ASSIGN_OR_RETURN(const bool there,
                            bring_piece(remote, file, pieces[i], clients[thread], progress));
    present += there ? 1U : 0U;
    return {};
  };
  CUBIST_RETURN_IF_ERROR(in_parallel(pieces.size(), options.connect.parallel, bring));
  PullReport report;
  report.layers_total = remote.image.shards.size() + 2;
  report.layers_wanted = pieces.size();
  report.layers_present = present;
  report.file_bytes = remote.config.file_bytes;
  report.http = clients.counters();
  return report;
}

bool holds_all_pieces(const RemoteBundle& remote, const StagedBundle& file,
                      const PullOptions& options) {
  const std::vector<Piece> pieces =
      wanted_pieces(remote.image, std::vector<bool>(remote.image.shards.size(), true));
  const auto look = [&](std::size_t i, unsigned) -> Status {
    Sha256 hasher;
    CUBIST_RETURN_IF_ERROR(file.hash(pieces[i].offset, pieces[i].blob->size_bytes, hasher));
    if (hasher.finish() == pieces[i].blob->digest) return {};
    return fail(StatusCode::kIntegrity, "'{}' is damaged", file.path());
  };
  return in_parallel(pieces.size(), options.connect.parallel, look).has_value();
}

Result<bundle::Bundle> open_staged(const RemoteBundle& remote,
                                   std::shared_ptr<const StagedBundle> file) {
  auto access = std::make_shared<StagedAccess>(remote.session->reference().text(),
                                               remote.config.file_bytes, std::move(file));
  CUBIST_ASSIGN_OR_RETURN(bundle::Bundle opened, bundle::Bundle::open(std::move(access)));
  if (opened.identity() != remote.config.identity) {
    return fail(StatusCode::kIntegrity,
                "{}: the layers are those of bundle {}, the config describes {}",
                remote.session->reference().text(), digest_text(opened.identity()),
                digest_text(remote.config.identity));
  }
  return opened;
}

Result<PullReport> pull_file(const RemoteBundle& remote, const std::string& target,
                             Clients& clients, const PullOptions& options,
                             const std::function<Status(const bundle::Bundle&)>& accept) {
  constexpr std::size_t kShownDigits = 8;
  CUBIST_ASSIGN_OR_RETURN(const std::string path, real_target(target));
  const std::string staged_path =
      fmt::format("{}.{}.part", path, remote.digest.hex().substr(0, kShownDigits));
  CUBIST_ASSIGN_OR_RETURN(
      const std::shared_ptr<StagedBundle> file,
      StagedBundle::open(staged_path, remote.config.file_bytes, options.connect.cancel));
  auto report = pull_pieces(remote, *file, std::vector<bool>(remote.image.shards.size(), true),
                            clients, options);
  if (!report) {
    const bool worth_keeping = report.error().code() == StatusCode::kNetwork ||
                               report.error().code() == StatusCode::kInterrupted;
    if (worth_keeping && file->holds_anything()) {
      return fail(report.error().code(), "{}; what came is kept in '{}' for the next try",
                  report.error().message(), staged_path);
    }
    file->remove();
    return report;
  }
  auto opened = open_staged(remote, file);
  if (!opened) {
    file->remove();
    return forward_error(opened);
  }
  if (Status accepted = accept ? accept(*opened) : Status(); !accepted) {
    file->remove();
    return forward_error(accepted);
  }
  CUBIST_RETURN_IF_ERROR(file->publish(path));
  return report;
}

}  // namespace cubist::oci
