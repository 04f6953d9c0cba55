#include "registry/store_check.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <mutex>
#include <unordered_set>

#include "base/threads.h"
#include "registry/entry_file.h"
#include "registry/store_file.h"

namespace cubist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kProgressEvery{100};

Result<VerifiedCubin> read_bundled(const EntryToCheck& entry) {
  const StoredBundle::Kernel* kernel = entry.bundle->find(entry.sha256);
  if (kernel == nullptr) {
    return fail(StatusCode::kNotFound, "'{}' has no kernel {}", entry.path, entry.sha256.hex());
  }
  return entry.bundle->open_verified(*kernel, entry.size_bytes.value_or(kernel->size_bytes));
}

Result<VerifiedCubin> read_entry(const EntryToCheck& entry) {
  CUBIST_ASSIGN_OR_RETURN(const std::optional<EntryFile> file, open_entry(entry.path));
  if (!file) return fail(StatusCode::kNotFound, "there is no store entry '{}'", entry.path);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file->size_bytes));
  CUBIST_RETURN_IF_ERROR(read_entry_at(*file, entry.path, 0, bytes));
  return VerifiedCubin::verify(std::move(bytes), entry.sha256,
                               entry.size_bytes.value_or(file->size_bytes), entry.path);
}

/// Runs the looks on several threads and gathers what they find.
class Checker {
 public:
  Checker(std::span<const EntryToCheck> entries, const CheckOptions& options)
      : entries_(entries), options_(options) {}

  Result<CheckReport> run() {
    const auto begun = Clock::now();
    on_threads(std::min<std::size_t>(options_.threads, entries_.size()),
               [this](unsigned number) { work(number == 0); });
    if (options_.progress) tell();
    if (interrupted()) return fail(StatusCode::kInterrupted, "interrupted; nothing was changed");
    std::sort(report_.findings.begin(), report_.findings.end(),
              [](const EntryFinding& a, const EntryFinding& b) { return a.entry < b.entry; });
    report_.checked = entries_.size();
    report_.bytes = bytes_;
    report_.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    return std::move(report_);
  }

 private:
  bool interrupted() const { return options_.cancel != nullptr && options_.cancel->load(); }

  /// tells  whether this thread, the caller's, says how far all are
  void work(bool tells) {
    Clock::time_point told = Clock::now();
    std::vector<std::uint8_t> buffer;
    for (;;) {
      const std::size_t index = next_.fetch_add(1);
      if (index >= entries_.size() || interrupted()) return;
      bool bytes_are_right = false;
      if (Status status = look(index, buffer, bytes_are_right); !status) {
        const std::lock_guard lock(mutex_);
        report_.findings.push_back({index, std::move(status.error()), bytes_are_right});
      }
      done_.fetch_add(1);
      if (!tells || !options_.progress || Clock::now() - told < kProgressEvery) continue;
      tell();
      told = Clock::now();
    }
  }

  Status look(std::size_t index, std::vector<std::uint8_t>& buffer, bool& bytes_are_right) {
    const EntryToCheck& entry = entries_[index];
    if (entry.broken_bundle) return tl::unexpected<Error>(*entry.broken_bundle);
    if (options_.deep) return look_deep(index, bytes_are_right);
    if (entry.bundle != nullptr) {
      CUBIST_ASSIGN_OR_RETURN(const VerifiedCubin cubin, read_bundled(entry));
      bytes_.fetch_add(cubin.bytes().size());
      return {};
    }
    CUBIST_ASSIGN_OR_RETURN(const std::uint64_t size,
                            check_entry(entry.path, entry.sha256, entry.size_bytes, buffer));
    bytes_.fetch_add(size);
    return {};
  }

  Status look_deep(std::size_t index, bool& bytes_are_right) {
    const EntryToCheck& entry = entries_[index];
    CUBIST_ASSIGN_OR_RETURN(const VerifiedCubin cubin,
                            entry.bundle != nullptr ? read_bundled(entry) : read_entry(entry));
    bytes_.fetch_add(cubin.bytes().size());
    bytes_are_right = true;
    return options_.deep(index, cubin.bytes());
  }

  void tell() { options_.progress({done_.load(), entries_.size(), bytes_.load()}); }

  std::span<const EntryToCheck> entries_;
  const CheckOptions& options_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> done_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::mutex mutex_;
  CheckReport report_;
};

/// The first bundle that has a kernel, whatever its size there.
Result<std::optional<EntryToCheck>> find_in_bundles(const Store& store,
                                                    const Sha256Digest& digest) {
  for (const std::string& layer : store.layers()) {
    CUBIST_ASSIGN_OR_RETURN(const auto shelf, store.bundles(layer));
    for (const auto& bundle : shelf->bundles) {
      if (bundle->find(digest) == nullptr) continue;
      return std::optional<EntryToCheck>({bundle->path(), digest, std::nullopt, bundle});
    }
  }
  return std::optional<EntryToCheck>();
}

}  // namespace

Result<std::vector<EntryToCheck>> list_entries_of_layer(const std::string& root,
                                                        std::vector<std::string>& strangers) {
  std::vector<EntryToCheck> entries;
  const std::string top = root + "/sha256";
  CUBIST_ASSIGN_OR_RETURN(const std::vector<std::string> folders, names_in_store_folder(top, 1));
  for (const std::string& folder : folders) {
    const std::string below = top + "/" + folder;
    CUBIST_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in_store_folder(below, 2));
    for (const std::string& name : names) {
      const auto digest = parse_entry_name(name);
      std::string path = below + "/" + name;
      if (digest && path == entry_path(root, *digest)) {
        entries.push_back({std::move(path), *digest, std::nullopt});
      } else {
        strangers.push_back(std::move(path));
      }
    }
  }
  return entries;
}

Result<std::vector<EntryToCheck>> list_entries(const Store& store,
                                               std::vector<std::string>& strangers) {
  std::vector<EntryToCheck> entries;
  for (const std::string& layer : store.layers()) {
    CUBIST_ASSIGN_OR_RETURN(auto found, list_entries_of_layer(layer, strangers));
    entries.insert(entries.end(), std::make_move_iterator(found.begin()),
                   std::make_move_iterator(found.end()));
  }
  // Nobody reads a kernel out of a bundle that lies beside it.
  std::unordered_set<Sha256Digest> loose;
  for (const EntryToCheck& entry : entries) loose.insert(entry.sha256);
  for (const std::string& layer : store.layers()) {
    CUBIST_ASSIGN_OR_RETURN(const auto shelf, store.bundles(layer));
    for (const auto& bundle : shelf->bundles) {
      for (const StoredBundle::Kernel& kernel : bundle->kernels()) {
        if (loose.contains(kernel.sha256)) continue;
        entries.push_back({bundle->path(), kernel.sha256, std::nullopt, bundle});
      }
    }
    for (const auto& [path, error] : shelf->broken) {
      entries.push_back({path, {}, std::nullopt, nullptr, error});
    }
    strangers.insert(strangers.end(), shelf->strangers.begin(), shelf->strangers.end());
  }
  return entries;
}

Result<std::vector<EntryToCheck>> find_entries(const Store& store,
                                               std::span<const KernelRecord* const> records,
                                               std::vector<const KernelRecord*>& missing) {
  std::vector<EntryToCheck> entries;
  for (const KernelRecord* record : records) {
    const std::size_t before = entries.size();
    for (const std::string& layer : store.layers()) {
      std::string path = entry_path(layer, record->sha256);
      const auto entry = open_entry(path);
      // What is no regular file is there, and broken.
      if (!entry && entry.error().code() != StatusCode::kIntegrity) {
        return tl::unexpected<Error>(entry.error());
      }
      if (entry && !*entry) continue;
      entries.push_back({std::move(path), record->sha256, record->size_bytes});
    }
    if (entries.size() != before) continue;
    CUBIST_ASSIGN_OR_RETURN(auto place, find_in_bundles(store, record->sha256));
    if (place) {
      place->size_bytes = record->size_bytes;
      entries.push_back(std::move(*place));
    } else {
      missing.push_back(record);
    }
  }
  return entries;
}

Result<CheckReport> check_entries(std::span<const EntryToCheck> entries,
                                  const CheckOptions& options) {
  return Checker(entries, options).run();
}

}  // namespace cubist
