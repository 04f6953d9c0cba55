// Opening a manifest of tens of thousands of kernels until kernels can be selected, in a process of
// its own each time, by its index and by parsing, the two alternating.
//   bench_open MANIFEST.json [KERNELS [ROUNDS]]      default 35000, 21
// The kernels of MANIFEST are repeated under new names and digests, four packs, until there are so
// many. What is timed: from load() on to a built selector::KernelTable: stat, open, map, checksum,
// decode, index of the selector. Not timed: starting the process, reading what is not in the page
// cache.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"
#include "manifest/parse.h"
#include "manifest/validate.h"
#include "manifest/write.h"
#include "registry/manifest_index.h"
#include "selector/kernel_table.h"

namespace {

using namespace cubist;
using Clock = std::chrono::steady_clock;

struct Opened {
  double load_ms = 0;
  double table_ms = 0;
  std::size_t kernels = 0;
  double total_ms() const { return load_ms + table_ms; }
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Manifest repeated(const Manifest& original, std::size_t kernels) {
  std::vector<KernelRecord> all;
  for (const Pack& pack : original.packs) {
    all.insert(all.end(), pack.kernels.begin(), pack.kernels.end());
  }
  Manifest manifest;
  manifest.name = "repeated";
  const std::size_t packs = (kernels + all.size() - 1) / all.size();
  for (std::size_t i = 0; i < kernels; ++i) {
    if (i % all.size() == 0) {
      manifest.packs.push_back(original.packs.front());
      manifest.packs.back().name +=
          "-" + std::to_string(i / all.size() + 1) + "-of-" + std::to_string(packs);
      manifest.packs.back().kernels.clear();
    }
    KernelRecord record = all[i % all.size()];
    if (i >= all.size()) {
      record.name += "_" + std::to_string(i / all.size());
      record.sha256.bytes[31] = static_cast<std::uint8_t>(record.sha256.bytes[31] + i / all.size());
    }
    manifest.packs.back().kernels.push_back(std::move(record));
  }
  return manifest;
}

/// The child: opens once and prints what it took.
int open_once(bool by_index, const std::string& path, const std::string& root) {
  const Store store({root, {}});
  const auto start = Clock::now();
  const auto manifest = by_index ? ManifestIndex(store, path).load() : load_manifest(path);
  const double load_ms = milliseconds_since(start);
  if (!manifest) {
    std::fprintf(stderr, "%s\n", manifest.error().message().c_str());
    return 1;
  }
  const auto built = Clock::now();
  std::vector<selector::PackView> views;
  for (const Pack& pack : manifest->packs) {
    views.push_back({pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels});
  }
  const auto table = selector::KernelTable::build(views);
  if (!table) return 1;
  std::size_t kernels = 0;
  for (const Pack& pack : manifest->packs) kernels += pack.kernels.size();
  std::printf("%.4f %.4f %zu\n", load_ms, milliseconds_since(built), kernels);
  std::fflush(stdout);
  ::_exit(0);  // what freeing takes is not asked
}

Opened run_child(const char* how, const std::string& path, const std::string& root) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execl("/proc/self/exe", "bench_open", how, path.c_str(), root.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  char text[128] = {};
  if (::read(ends[0], text, sizeof(text) - 1) < 0) std::abort();
  ::close(ends[0]);
  int state = 0;
  ::waitpid(child, &state, 0);
  Opened opened;
  if (std::sscanf(text, "%lf %lf %zu", &opened.load_ms, &opened.table_ms, &opened.kernels) != 3) {
    std::fprintf(stderr, "the process that opens gave no answer\n");
    std::exit(1);
  }
  return opened;
}

template <class Of>
double median(std::vector<Opened> runs, Of of) {
  std::sort(runs.begin(), runs.end(), [&](const auto& a, const auto& b) { return of(a) < of(b); });
  return of(runs[runs.size() / 2]);
}

void report(const char* how, const std::vector<Opened>& runs) {
  const auto total = [](const Opened& o) { return o.total_ms(); };
  double least = total(runs.front());
  for (const Opened& run : runs) least = std::min(least, total(run));
  std::printf("%s: median %.2f ms (minimum %.2f): load %.2f, selector's table %.2f\n", how,
              median(runs, total), least, median(runs, [](const Opened& o) { return o.load_ms; }),
              median(runs, [](const Opened& o) { return o.table_ms; }));
}

int compare(const std::string& source, std::size_t kernels, std::size_t rounds) {
  const auto original = load_manifest(source);
  if (!original) {
    std::fprintf(stderr, "%s\n", original.error().message().c_str());
    return 1;
  }
  const Manifest manifest = repeated(*original, kernels);
  if (const Status valid = validate_manifest(manifest); !valid) {
    std::fprintf(stderr, "%s\n", valid.error().message().c_str());
    return 1;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "bench-open-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const std::string path = folder + "/repeated.json";
  const std::string root = folder + "/store";
  const std::string text = write_manifest(manifest);
  if (!write_file_atomically(path, text)) return 1;
  // The index is written once the manifest's time stamps are settled.
  std::this_thread::sleep_for(std::chrono::nanoseconds(ManifestIndex::kSettledNs + 200'000'000));
  run_child("--by-index", path, root);
  const Store store({root, {}});
  const std::string index = ManifestIndex(store, path).file();
  if (!ManifestIndex(store, path).current()) {
    std::fprintf(stderr, "no index was written\n");
    return 1;
  }
  std::vector<Opened> by_index;
  std::vector<Opened> parsed;
  for (std::size_t i = 0; i < rounds; ++i) {
    by_index.push_back(run_child("--by-index", path, root));
    if (i % 4 == 0) parsed.push_back(run_child("--by-parsing", path, root));
  }
  std::printf("%zu kernels in %zu packs: manifest %.1f MB, index %.1f MB\n",
              by_index.front().kernels, manifest.packs.size(),
              static_cast<double>(text.size()) / 1e6,
              static_cast<double>(std::filesystem::file_size(index)) / 1e6);
  report("by index", by_index);
  report("by parsing", parsed);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (argc == 4 && (first == "--by-index" || first == "--by-parsing")) {
    return open_once(first == "--by-index", argv[2], argv[3]);
  }
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: bench_open MANIFEST.json [KERNELS [ROUNDS]]\n");
    return 2;
  }
  return compare(argv[1], argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 35000,
                 argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 21);
}
