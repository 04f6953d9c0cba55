#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cubin/cross_check.h"
#include "cubin/cubin_file.h"
#include "importer/file_tree.h"
#include "importer/import.h"

// How much longer it takes to hash, inspect and cross-check all attention cubins of a release than
// to hash them alone. Both run over the same bytes in memory, chunk by chunk and in turns, so that
// what else the machine does hits both alike.
//
//   bench_inspect WHEEL_OR_FOLDER [THREADS]

namespace cubist {
namespace {

constexpr std::size_t kChunk = 512;  // cubins in memory at once: about 60 MB
constexpr std::uint64_t kMaxCubinBytes = 16 << 20;

struct Item {
  const KernelRecord* record = nullptr;
  ParamLayout layout = ParamLayout::kTrtllmGenFmha1280;
  std::vector<std::uint8_t> bytes;
};

/// Runs `work` on every item, on `threads` threads; seconds.
double timed(const std::vector<Item>& items, unsigned threads,
             const std::function<void(const Item&)>& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < items.size(); i = next++) work(items[i]);
  };
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  for (std::thread& thread : others) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Totals {
  double hash_s = 0;
  double all_s = 0;
  std::uint64_t bytes = 0;
  std::size_t cubins = 0;
  std::atomic<std::size_t> wrong{0};
};

void hash(const Item& item, Totals& totals) {
  if (sha256(item.bytes) != item.record->sha256) ++totals.wrong;
}

void hash_and_inspect(const Item& item, Totals& totals) {
  hash(item, totals);
  const auto cubin = parse_cubin(item.bytes, item.record->file());
  if (!cubin || !cross_check(*cubin, *item.record, item.layout).empty()) ++totals.wrong;
}

void measure(const std::vector<Item>& items, unsigned threads, bool hash_first, Totals& totals) {
  const auto hash_alone = [&] {
    totals.hash_s += timed(items, threads, [&](const Item& item) { hash(item, totals); });
  };
  if (hash_first) hash_alone();
  totals.all_s += timed(items, threads, [&](const Item& item) { hash_and_inspect(item, totals); });
  if (!hash_first) hash_alone();
  totals.cubins += items.size();
  for (const Item& item : items) totals.bytes += item.bytes.size();
}

Status run(const std::string& path, unsigned threads) {
  CUBIST_ASSIGN_OR_RETURN(const auto tree, open_file_tree(path));
  CUBIST_ASSIGN_OR_RETURN(const Import release, import_flashinfer(*tree));
  Totals totals;
  std::vector<Item> items;
  bool hash_first = true;
  const auto flush = [&] {
    measure(items, threads, hash_first, totals);
    hash_first = !hash_first;
    items.clear();
  };
  for (const Pack& pack : release.manifest.packs) {
    for (const KernelRecord& record : pack.kernels) {
      CUBIST_ASSIGN_OR_RETURN(
          auto bytes, tree->read(pack.sources.front().prefix + record.file(), kMaxCubinBytes));
      items.push_back({&record, pack.param_layout, std::move(bytes)});
      if (items.size() == kChunk) flush();
    }
  }
  flush();
  const double megabytes = static_cast<double>(totals.bytes) / 1e6;
  std::printf("%zu cubins, %.0f MB, %u threads\n", totals.cubins, megabytes, threads);
  std::printf("hashed alone                        %.3f s, %.0f MB/s\n", totals.hash_s,
              megabytes / totals.hash_s);
  std::printf("hashed, inspected and cross-checked %.3f s\n", totals.all_s);
  std::printf("ratio %.3f; inspecting alone takes %.1f us a cubin and thread\n",
              totals.all_s / totals.hash_s,
              (totals.all_s - totals.hash_s) * 1e6 * threads / static_cast<double>(totals.cubins));
  if (totals.wrong != 0) {
    return fail(StatusCode::kIntegrity, "{} cubins are not what the release says",
                totals.wrong.load());
  }
  std::printf("all agree with the release's metadata\n");
  return {};
}

}  // namespace
}  // namespace cubist

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_inspect WHEEL_OR_FOLDER [THREADS]\n");
    return 2;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const cubist::Status done = cubist::run(argv[1], static_cast<unsigned>(std::max(threads, 1)));
  if (!done) std::fprintf(stderr, "bench_inspect: %s\n", done.error().message().c_str());
  return done ? 0 : 1;
}
