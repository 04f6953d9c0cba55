#include "importer/deep_check.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "base/sha256.h"
#include "base/threads.h"
#include "cubin/cross_check.h"
#include "cubin/cubin_file.h"
#include "cubin/min_driver.h"
#include "model/cuda_version.h"

namespace cubist {
namespace {

// Published cubins have up to 625,000 bytes; a record's own size has been compared with the tree's.
constexpr std::uint64_t kMaxCubinBytes = 1ULL << 30;

class DeepCheck {
 public:
  DeepCheck(const FileTree& tree, const std::string& prefix, const Pack& pack,
            const std::function<void(std::uint64_t)>& progress, const std::atomic<bool>* cancel)
      : tree_(tree), prefix_(prefix), pack_(pack), progress_(progress), cancel_(cancel) {
    order_.resize(pack.kernels.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    // Rows that share a file follow each other, so that it is read once.
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return pack.kernels[a].file() < pack.kernels[b].file();
    });
  }

  Result<std::vector<Finding>> run(unsigned threads) {
    on_threads(threads, [this](unsigned) { work(); });
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Finding> findings;
    for (auto& [kernel, finding] : findings_) findings.push_back(std::move(finding));
    return findings;
  }

 private:
  using Found = std::vector<std::pair<std::size_t, Finding>>;  ///< by the row's place in the pack

  /// The next rows of one file: a range of order_.
  std::pair<std::size_t, std::size_t> claim() {
    const std::lock_guard lock(mutex_);
    const std::size_t first = next_;
    while (next_ < order_.size() &&
           pack_.kernels[order_[next_]].file() == pack_.kernels[order_[first]].file()) {
      ++next_;
    }
    return {first, next_};
  }

  void work() {
    while (!stop_) {
      if (cancel_ != nullptr && *cancel_) {
        give_up(Error(StatusCode::kInterrupted, "the import was interrupted; nothing was written"));
        return;
      }
      const auto [first, end] = claim();
      if (first == end) return;
      check_file(first, end);
    }
  }

  void give_up(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stop_ = true;
  }

  void check_file(std::size_t first, std::size_t end) {
    const KernelRecord& record = pack_.kernels[order_[first]];
    const Result<std::vector<std::uint8_t>> bytes =
        tree_.read(prefix_ + record.file(), kMaxCubinBytes);
    Found found;
    if (bytes) {
      check_bytes(*bytes, first, end, found);
    } else if (bytes.error().code() == StatusCode::kIntegrity) {
      found.emplace_back(order_[first], Finding{FindingKind::kCubinUnreadable, record.name,
                                                bytes.error().message()});
    } else {
      give_up(bytes.error());
      return;
    }
    const std::lock_guard lock(mutex_);
    std::move(found.begin(), found.end(), std::back_inserter(findings_));
    if (progress_) progress_(++done_);
  }

  void check_bytes(const std::vector<std::uint8_t>& bytes, std::size_t first, std::size_t end,
                   Found& found) const {
    const KernelRecord& record = pack_.kernels[order_[first]];
    const Sha256Digest digest = sha256(bytes);
    if (digest != record.sha256) {
      found.emplace_back(order_[first],
                         Finding{FindingKind::kCubinDigest, record.name,
                                 fmt::format("the row says {}, the file's bytes have {}",
                                             record.sha256.hex(), digest.hex())});
    }
    const Result<CubinFile> cubin = parse_cubin(bytes, record.file());
    if (!cubin) {
      found.emplace_back(order_[first], Finding{FindingKind::kCubinUnreadable, record.name,
                                                cubin.error().message()});
      return;
    }
    if (pack_.min_driver != 0 && min_driver_of(*cubin).value_or(0) > pack_.min_driver) {
      const Disagreement difference = {"min_driver", cuda_version_text(pack_.min_driver),
                                       cuda_version_text(*min_driver_of(*cubin))};
      found.emplace_back(order_[first],
                         Finding{FindingKind::kCubinMismatch, record.name, to_string(difference)});
    }
    for (std::size_t i = first; i < end; ++i) {
      const KernelRecord& row = pack_.kernels[order_[i]];
      for (const Disagreement& difference : cross_check(*cubin, row, pack_.param_layout)) {
        found.emplace_back(order_[i],
                           Finding{FindingKind::kCubinMismatch, row.name, to_string(difference)});
      }
    }
  }

  const FileTree& tree_;
  const std::string& prefix_;
  const Pack& pack_;
  const std::function<void(std::uint64_t)>& progress_;
  const std::atomic<bool>* cancel_;
  std::vector<std::size_t> order_;

  std::mutex mutex_;
  std::size_t next_ = 0;
  std::uint64_t done_ = 0;
  std::atomic<bool> stop_ = false;
  std::optional<Error> error_;
  Found findings_;
};

}  // namespace

Result<std::vector<Finding>> deep_check(const FileTree& tree, const std::string& prefix,
                                        const Pack& pack, unsigned threads,
                                        const std::function<void(std::uint64_t)>& progress,
                                        const std::atomic<bool>* cancel) {
  return DeepCheck(tree, prefix, pack, progress, cancel).run(threads);
}

}  // namespace cubist
