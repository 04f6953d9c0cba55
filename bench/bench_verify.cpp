#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "registry/store_check.h"

// Hashing a store again beside a bare loop that opens, reads and hashes the same files with
// OpenSSL: on one thread and on all processors, in turns, medians of the rounds.
//
//   bench_verify [STORE | FILES [BYTES_PER_FILE [ROUNDS]]]
//
// Without STORE one is made of random files in the temporary folder and removed afterwards.

namespace cubist {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(const std::function<void()>& work) {
  const auto begun = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The bare loop's work on one file: one buffer, one hash context, no check of anything but the
/// hash.
bool hash_bare(const EntryToCheck& entry, std::vector<unsigned char>& buffer, EVP_MD_CTX* context) {
  const int fd = ::open(entry.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
  for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    EVP_DigestUpdate(context, buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  Sha256Digest digest;
  EVP_DigestFinal_ex(context, digest.bytes.data(), nullptr);
  return digest == entry.sha256;
}

void bare(const std::vector<EntryToCheck>& entries, unsigned threads) {
  constexpr std::size_t kBufferBytes = 256 * 1024;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> wrong{0};
  const auto work = [&] {
    std::vector<unsigned char> buffer(kBufferBytes);
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    for (std::size_t i = next++; i < entries.size(); i = next++) {
      if (!hash_bare(entries[i], buffer, context)) ++wrong;
    }
    EVP_MD_CTX_free(context);
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (wrong != 0) std::printf("bare loop: %zu files are wrong\n", wrong.load());
}

void ours(const std::vector<EntryToCheck>& entries, unsigned threads) {
  CheckOptions options;
  options.threads = threads;
  const auto report = check_entries(entries, options);
  if (!report || !report->findings.empty()) std::printf("cubist: some files are wrong\n");
}

Store make_store(const std::string& root, std::size_t files, std::size_t bytes_per_file) {
  const Store store({root, {}});
  std::mt19937_64 random(1);
  std::vector<Store::Staged> group;
  for (std::size_t i = 0; i < files; ++i) {
    std::vector<std::uint8_t> bytes(bytes_per_file);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const Sha256Digest digest = sha256(bytes);
    const auto cubin = VerifiedCubin::verify(std::move(bytes), digest, bytes_per_file, "random");
    auto staged = store.stage(*cubin);
    if (staged) group.push_back(std::move(*staged));
    constexpr std::size_t kGroup = 200;
    if (group.size() == kGroup || i + 1 == files) {
      if (!store.publish(group)) std::printf("the store could not be written\n");
      group.clear();
    }
  }
  return store;
}

void compare(const std::vector<EntryToCheck>& entries, std::uint64_t bytes, unsigned threads,
             int rounds) {
  std::vector<double> bare_s;
  std::vector<double> ours_s;
  bare(entries, threads);  // everything in the page cache
  for (int i = 0; i < rounds; ++i) {
    bare_s.push_back(seconds([&] { bare(entries, threads); }));
    ours_s.push_back(seconds([&] { ours(entries, threads); }));
  }
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  std::printf("%u threads: bare %.3f GB/s, cubist %.3f GB/s, ratio %.3f\n", threads,
              gigabytes / median(bare_s), gigabytes / median(ours_s),
              median(bare_s) / median(ours_s));
}

int run(int argc, char** argv) {
  const bool given = argc > 1 && std::filesystem::is_directory(argv[1]);
  const std::size_t files = !given && argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2'000;
  const std::size_t bytes_per_file = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 122'000;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  std::string root = given ? argv[1] : "";
  if (!given) {
    root = (std::filesystem::temp_directory_path() / "cubist-bench-XXXXXX").string();
    if (::mkdtemp(root.data()) == nullptr) return 1;
  }
  const Store store = given ? Store({root, {}}) : make_store(root, files, bytes_per_file);
  std::vector<std::string> strangers;
  const auto entries = list_entries(store, strangers);
  if (!entries || entries->empty()) {
    std::fprintf(stderr, "no entries in '%s'\n", root.c_str());
    return 1;
  }
  CheckOptions once;
  const auto report = check_entries(*entries, once);
  const std::uint64_t bytes = report ? report->bytes : 0;
  std::printf("%zu files, %.1f MB\n", entries->size(), static_cast<double>(bytes) / 1e6);
  compare(*entries, bytes, 1, rounds);
  compare(*entries, bytes, std::max(1U, std::thread::hardware_concurrency()), rounds);
  if (!given) std::filesystem::remove_all(root);
  return 0;
}

}  // namespace
}  // namespace cubist

int main(int argc, char** argv) { return cubist::run(argc, argv); }
