#include "oci/push.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "archive/zip.h"
#include "bundle/bundle.h"
#include "oci/bytes.h"
#include "oci/transfer.h"
#include "oci/work.h"

namespace cubist::oci {
namespace {

/// A file that tells how much of it was read.
class WatchedAccess : public RandomAccess {
 public:
  WatchedAccess(std::shared_ptr<RandomAccess> file, Progress& progress)
      : file_(std::move(file)), progress_(progress) {}

  const std::string& name() const override { return file_->name(); }
  std::uint64_t size() const override { return file_->size(); }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override {
    CUBIST_RETURN_IF_ERROR(file_->read(offset, out));
    progress_.add(out.size());
    return {};
  }

 private:
  std::shared_ptr<RandomAccess> file_;
  Progress& progress_;
};

struct Blob {
  Descriptor blob;
  HttpBody body;
};

std::vector<Blob> blobs_of(const Cut& cut, const std::shared_ptr<RandomAccess>& file) {
  std::vector<Blob> blobs;
  for (const Cut::Piece& piece : cut.pieces) {
    blobs.push_back({piece.blob, {file, piece.offset, piece.blob.size_bytes}});
  }
  // Large ones first, so that no thread is left with one at the end.
  std::stable_sort(blobs.begin(), blobs.end(), [](const Blob& a, const Blob& b) {
    return a.blob.size_bytes > b.blob.size_bytes;
  });
  const auto add = [&](const Descriptor& blob, const std::string& text) {
    blobs.push_back(
        {blob, {memory_access(digest_text(blob.digest), bytes_of(text)), 0, text.size()}});
  };
  add(cut.image.index, cut.index_text);
  add(cut.image.config, cut.config_text);
  return blobs;
}

}  // namespace

Result<PushReport> push(const std::string& file, const Reference& reference,
                        const PushOptions& options) {
  if (reference.tag.empty() || reference.digest) {
    return fail(StatusCode::kInvalidArgument,
                "cannot push to '{}': a push needs a tag, and the digest follows from the file",
                reference.text());
  }
  const auto begun = std::chrono::steady_clock::now();
  CUBIST_ASSIGN_OR_RETURN(const std::shared_ptr<RandomAccess> bytes, open_file_access(file));
  CUBIST_ASSIGN_OR_RETURN(const bundle::Bundle bundle, bundle::Bundle::open(bytes));
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  CUBIST_ASSIGN_OR_RETURN(const Cut cut,
                          cut_bundle(bundle, *bytes, std::min(processors, options.connect.parallel),
                                     options.connect.cancel, options.layer_bytes));
  CUBIST_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session,
                          Session::open(reference, Access::kPush, options.connect));

  Progress progress(options.progress);
  progress.set_total(bundle.file_bytes());
  const std::vector<Blob> blobs = blobs_of(cut, std::make_shared<WatchedAccess>(bytes, progress));
  std::vector<Sent> sent(blobs.size(), Sent::kPresent);
  Clients clients(options.connect.parallel, options.connect.cancel);
  const auto send = [&](std::size_t i, unsigned thread) -> Status {
    CUBIST_ASSIGN_OR_RETURN(sent[i], send_blob(*session, clients[thread], blobs[i].blob,
                                               blobs[i].body, options.mount_from));
    return {};
  };
  CUBIST_RETURN_IF_ERROR(in_parallel(blobs.size(), options.connect.parallel, send));
  CUBIST_RETURN_IF_ERROR(put_manifest(*session, clients[0], cut.image_text, cut.digest));

  PushReport report;
  report.digest = cut.digest;
  report.identity = bundle.identity();
  report.blobs_total = blobs.size();
  report.file_bytes = bundle.file_bytes();
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    report.blobs_present += sent[i] == Sent::kPresent;
    report.blobs_mounted += sent[i] == Sent::kMounted;
    if (sent[i] == Sent::kUploaded) report.sent_bytes += blobs[i].blob.size_bytes;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

}  // namespace cubist::oci
