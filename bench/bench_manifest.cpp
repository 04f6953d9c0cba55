// Opening the shipped manifest beside nlohmann's bare parse of the same text; importing a wheel.
//   bench_manifest MANIFEST.json [WHEEL|DIR]
// Each figure is the fastest of several runs in one process, the two alternating.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "importer/file_tree.h"
#include "importer/import.h"
#include "manifest/parse.h"
#include "manifest/write.h"

namespace {

using Clock = std::chrono::steady_clock;

template <class Work>
double milliseconds(Work work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Largest resident set of this process so far. Unit: MB.
double peak_rss_mb() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

int bench_import(const std::string& source) {
  double best = 1e9;
  std::size_t kernels = 0;
  for (int i = 0; i < 5; ++i) {
    best = std::min(best, milliseconds([&] {
                      const auto tree = cubist::open_file_tree(source);
                      if (!tree) return;
                      const auto import = cubist::import_flashinfer(**tree);
                      if (import) kernels = import->report.num_kernels();
                    }));
  }
  if (kernels == 0) {
    std::fprintf(stderr, "cannot import '%s'\n", source.c_str());
    return 1;
  }
  std::printf("import: %zu kernels in %.0f ms, peak RSS of the process %.0f MB\n", kernels, best,
              peak_rss_mb());
  return 0;
}

int bench_open(const std::string& path) {
  const auto text = cubist::read_text_file(path, cubist::kMaxManifestBytes);
  if (!text) {
    std::fprintf(stderr, "%s\n", text.error().message().c_str());
    return 1;
  }
  double ours = 1e9;
  double bare = 1e9;
  double write = 1e9;
  std::size_t kernels = 0;
  for (int i = 0; i < 15; ++i) {
    bare = std::min(bare, milliseconds([&] {
                      const auto document = nlohmann::json::parse(*text);
                      if (document.empty()) std::abort();
                    }));
    ours = std::min(ours, milliseconds([&] {
                      const auto manifest = cubist::parse_manifest(*text, path);
                      if (!manifest) std::abort();
                      for (const auto& pack : manifest->packs) kernels = pack.kernels.size();
                    }));
  }
  const auto manifest = cubist::parse_manifest(*text, path);
  for (int i = 0; i < 5; ++i) {
    write = std::min(write, milliseconds([&] {
                       if (cubist::write_manifest(*manifest).empty()) std::abort();
                     }));
  }
  std::printf(
      "open: %.1f MB, last pack has %zu kernels: %.1f ms; nlohmann parse alone %.1f ms; "
      "ratio %.2f; write %.1f ms\n",
      static_cast<double>(text->size()) / 1e6, kernels, ours, bare, ours / bare, write);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_manifest MANIFEST.json [WHEEL|DIR]\n");
    return 2;
  }
  // First: the peak of the process is then the import's own.
  if (argc > 2 && bench_import(argv[2]) != 0) return 1;
  return bench_open(argv[1]);
}
