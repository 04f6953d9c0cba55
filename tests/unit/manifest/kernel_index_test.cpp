#include "manifest/kernel_index.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>

#include "manifest/trait_fields.h"
#include "manifest/validate.h"
#include "support/catch.h"
#include "support/large_manifest.h"
#include "support/processes.h"

namespace cubist {
namespace {

using Bytes = std::vector<std::uint8_t>;

KernelIndexHead some_head() {
  KernelIndexHead head;
  head.manifest_sha256.bytes[3] = 9;
  head.file = {1234, 5, 6'000'000'007, -8};
  return head;
}

Bytes some_index(std::size_t kernels = 40) {
  return write_kernel_index(test::large_manifest(kernels), some_head()).value();
}

/// Reads from a copy of its own that goes with the manifest, so that a sanitizer sees a text that
/// outlives it.
Result<Manifest> read(const Bytes& bytes) {
  const auto kept = std::make_shared<const Bytes>(bytes);
  return read_kernel_index(*kept, {kept});
}

template <class Number>
Bytes with_number(Bytes bytes, std::size_t at, Number value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  seal_kernel_index(bytes);
  return bytes;
}

TEST_CASE("an index gives back the manifest it was made of, and the head") {
  Manifest manifest = test::large_manifest(3000);
  manifest.packs[0].min_driver = 12080;
  manifest.packs[1].min_driver = 25090;
  REQUIRE(validate_manifest(manifest));
  const Bytes bytes = write_kernel_index(manifest, some_head()).value();
  CHECK(read_kernel_index_head(bytes).value() == some_head());
  const Result<Manifest> back = read(bytes);
  REQUIRE(back);
  CHECK(*back == manifest);
  CHECK(back->packs[1].kernels.back().name.c_str() == manifest.packs[1].kernels.back().name);
}

TEST_CASE("an index of a manifest without packs, sources or kernels is one too") {
  Manifest manifest;
  manifest.name = "empty";
  CHECK(*read(write_kernel_index(manifest, {}).value()) == manifest);
  manifest.packs.resize(1);
  CHECK(*read(write_kernel_index(manifest, {}).value()) == manifest);
}

TEST_CASE("every trait goes into an index and comes back") {
  Manifest manifest = test::large_manifest(1);
  const KernelTraits plain = manifest.packs[0].kernels[0].traits;
  const auto comes_back = [&] {
    return *read(write_kernel_index(manifest, {}).value()) == manifest;
  };
  for (const TraitField& field : trait_fields()) {
    KernelTraits traits = plain;
    std::visit(
        [&](auto member) {
          if constexpr (!std::is_same_v<decltype(member), BothKv>) {
            using Value = std::remove_cvref_t<decltype(traits.*member)>;
            traits.*member = static_cast<Value>(traits.*member == Value{} ? 1 : 0);
            CHECK(traits != plain);
          }
        },
        field.member);
    manifest.packs[0].kernels[0].traits = traits;
    INFO(field.key);
    CHECK(comes_back());
  }
}

TEST_CASE("what is copied or moved out of an indexed manifest outlives it") {
  KernelRecord copied;
  KernelRecord moved;
  {
    Manifest manifest = *read(some_index());
    copied = manifest.packs[0].kernels[0];
    moved = std::move(manifest.packs[0].kernels[1]);
  }
  CHECK(copied == test::large_manifest(40).packs[0].kernels[0]);
  CHECK(moved == test::large_manifest(40).packs[0].kernels[1]);
  Pack pack = std::move(read(some_index())->packs[1]);
  CHECK(pack == test::large_manifest(40).packs[1]);
}

TEST_CASE("an index that is cut off anywhere is refused") {
  const Bytes bytes = some_index(3);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(read(cut));
    if (size >= 176) {  // with size and checksum as if it had always been so
      seal_kernel_index(cut);
      const Result<Manifest> manifest = read(cut);
      CHECK_FALSE(manifest);
    }
  }
  Bytes longer = bytes;
  longer.push_back(0);
  CHECK_FALSE(read(longer));
}

TEST_CASE("an index with any one bit turned over is refused, or is another version's or file's") {
  const Bytes bytes = some_index(2);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes wrong = bytes;
    wrong[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    CHECK_FALSE(read(wrong));
  }
}

TEST_CASE("an index whose numbers lie is refused though its checksum is right") {
  const Bytes good = some_index(4);
  const std::size_t pack = 176;
  const std::size_t source = pack + 2 * 48;
  const std::size_t kernel = source + 2 * 24;
  const std::size_t traits = kernel + 56;
  struct Lie {
    const char* what;
    Bytes bytes;
  };
  constexpr std::uint32_t kHuge = 0xffffffffU;
  const Lie lies[] = {
      {"another magic", with_number<std::uint8_t>(good, 0, 'X')},
      {"another format", with_number<std::uint32_t>(good, 8, 1)},
      {"another layout", with_number<std::uint32_t>(good, 12, 0)},
      {"another version", with_number<std::uint8_t>(good, 96, '9')},
      {"a name that starts past the end", with_number(good, 128, kHuge)},
      {"a name that ends past the end", with_number(good, 132, kHuge)},
      {"a last text without an end", with_number<std::uint8_t>(good, good.size() - 1, 'x')},
      {"more packs than fit", with_number(good, 160, kHuge)},
      {"one pack too many", with_number<std::uint32_t>(good, 160, 3)},
      {"one pack too few", with_number<std::uint32_t>(good, 160, 1)},
      {"more sources than fit", with_number(good, 164, kHuge)},
      {"one source too many", with_number<std::uint32_t>(good, 164, 3)},
      {"more kernels than fit", with_number(good, 168, kHuge)},
      {"one kernel too few", with_number<std::uint32_t>(good, 168, 3)},
      {"an unknown family", with_number<std::uint8_t>(good, pack + 24, 3)},
      {"an unknown revision", with_number<std::uint8_t>(good, pack + 25, 4)},
      {"an unknown layout of parameters", with_number<std::uint8_t>(good, pack + 26, 8)},
      {"a pack with more sources than there are", with_number<std::uint32_t>(good, pack + 28, 3)},
      {"a pack with more kernels than there are", with_number(good, pack + 32, kHuge)},
      {"an unknown kind of source", with_number<std::uint8_t>(good, source + 16, 4)},
      {"a location past the end", with_number(good, source, kHuge)},
      {"a kernel's name past the end", with_number(good, kernel + 40, kHuge)},
      {"a kernel's path past the end", with_number(good, kernel + 52, kHuge)},
      {"an unknown kind of architecture",
       with_number<std::uint8_t>(good, traits + offsetof(KernelTraits, arch.kind), 3)},
      {"an unknown element type",
       with_number<std::uint8_t>(good, traits + offsetof(KernelTraits, dtype_o), 9)},
      {"a flag of 2",
       with_number<std::uint8_t>(good, traits + offsetof(KernelTraits, skip_softmax), 2)},
  };
  for (const Lie& lie : lies) {
    INFO(lie.what);
    CHECK(lie.bytes != good);
    const Result<Manifest> manifest = read(lie.bytes);
    CHECK_FALSE(manifest);
    if (!manifest) CHECK(manifest.error().code() == StatusCode::kIntegrity);
  }
}

// A sanitizer's own memory is more than any limit that would keep records out.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Leaves this process some `mib` MiB of memory and address space.
void leave_room(std::size_t mib) {
  constexpr std::size_t kPageBytes = 4096;
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  ::mallopt(M_MMAP_THRESHOLD, kMiB / 2);  // blocks given back are the system's again
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * kPageBytes + 64 * kMiB;
  const rlimit most{limit, limit};
  REQUIRE(::setrlimit(RLIMIT_AS, &most) == 0);
  std::vector<void*> blocks(1000);
  std::size_t taken = 0;
  while (taken < blocks.size() && (blocks[taken] = std::malloc(kMiB)) != nullptr) ++taken;
  REQUIRE(taken > mib);
  for (std::size_t i = 0; i < mib; ++i) std::free(blocks[--taken]);
}

TEST_CASE("where memory runs out while an index is read, that is what comes of it") {
  const Bytes bytes = some_index(40'000);
  int out_of_memory = 0;
  for (std::size_t room = 0; room < 48; room += 2) {
    const int code = test::finish_process(test::start_process([&] {
      ::alarm(60);
      leave_room(room);
      try {
        return read_kernel_index(bytes, {}) ? 0 : 2;
      } catch (const std::bad_alloc&) {
        return 1;
      }
    }));
    INFO(room << " MiB");
    CHECK((code == 0 || code == 1));
    out_of_memory += code;
  }
  CHECK(out_of_memory > 0);
  CHECK(out_of_memory < 24);
}
#endif

}  // namespace
}  // namespace cubist
