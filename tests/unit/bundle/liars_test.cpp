#include <algorithm>
#include <functional>

#include "archive/zip_writer.h"
#include "bundle/layout.h"
#include "made_bundle.h"
#include "support/byte_writer.h"
#include "support/catch.h"

// Bundles that lie: each is a good one with one thing changed, and opening or reading it must say
// which.

namespace cubist::bundle {
namespace {

using cubist::test::patch;
using test::Bytes;
using test::MadeBundle;

struct NamedBytes {
  std::string name;
  std::string bytes;
};

/// The members of a good bundle, to be written again after a change.
std::vector<NamedBytes> members_of(const MadeBundle& made) {
  const auto zip = ZipArchive::open(memory_access("good", made.file));
  REQUIRE(zip);
  std::vector<NamedBytes> members;
  for (const ZipMember& member : zip->members()) {
    const auto bytes = zip->read(member, 1 << 20);
    REQUIRE(bytes);
    members.push_back({member.name, {bytes->begin(), bytes->end()}});
  }
  return members;
}

Bytes zip_of(const std::vector<NamedBytes>& members) {
  Bytes file;
  ZipWriter writer([&](std::span<const std::uint8_t> bytes) -> Status {
    file.insert(file.end(), bytes.begin(), bytes.end());
    return {};
  });
  for (const NamedBytes& member : members) {
    const std::span<const std::uint8_t> bytes(
        reinterpret_cast<const std::uint8_t*>(member.bytes.data()), member.bytes.size());
    REQUIRE(writer.add(member.name, pack_member(bytes, false)));
  }
  REQUIRE(writer.finish());
  return file;
}

std::string refusal(const Bytes& file) {
  const auto opened = test::open(file);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(opened.error().message(), Catch::Contains("b.zip"));
  return opened.error().message();
}

std::string refusal_after(const std::function<void(std::vector<NamedBytes>&)>& change) {
  std::vector<NamedBytes> members = members_of(test::make_bundle());
  change(members);
  return refusal(zip_of(members));
}

/// Where the directory entry of the index-th member begins.
std::size_t entry_offset(const Bytes& file, std::size_t index) {
  const auto zip = ZipArchive::open(memory_access("good", file));
  REQUIRE(zip);
  std::size_t at = static_cast<std::size_t>(zip->members().back().limit_offset);
  for (std::size_t i = 0; i < index; ++i) at += 46 + zip->members()[i].name.size();
  return at;
}

TEST_CASE("a good bundle written again member by member is the same file") {
  const MadeBundle made = test::make_bundle();
  CHECK(zip_of(members_of(made)) == made.file);
}

TEST_CASE("members that are added, missing, renamed or moved are named") {
  CHECK_THAT(refusal_after([](auto& m) {
               m.push_back({"extra", "x"});
             }),
             Catch::Contains("'extra' is not one that bundle.json names"));
  CHECK_THAT(refusal_after([](auto& m) {
               m.insert(m.begin() + 4, {"run.sh", "x"});
             }),
             Catch::Contains("'run.sh' is where 'LICENSE' belongs"));
  CHECK_THAT(refusal_after([](auto& m) { m.pop_back(); }), Catch::Contains("is missing"));
  CHECK_THAT(refusal_after([](auto& m) { m[4].name = "license"; }),
             Catch::Contains("'license' is where 'LICENSE' belongs"));
  CHECK_THAT(refusal_after([](auto& m) { std::swap(m[6], m[7]); }), Catch::Contains("belongs"));
  CHECK_THAT(refusal_after([](auto& m) { m.erase(m.begin()); }), Catch::Contains("no bundle"));
  CHECK_THAT(refusal_after([](auto& m) { m.clear(); }), Catch::Contains("no bundle"));
}

TEST_CASE("names that lead elsewhere are refused") {
  for (const std::string name : {"../x", "/etc/x", "a/../../x", "C:\\x", "sha256/../x", "a//b",
                                 "nul\nx", "manifests/../../x.json"}) {
    CAPTURE(name);
    CHECK_THAT(refusal_after([&](auto& m) { m[4].name = name; }), Catch::Contains("name of zip"));
  }
}

TEST_CASE("duplicate and case-clashing names are refused") {
  CHECK_THAT(refusal_after([](auto& m) { m.push_back(m.back()); }),
             Catch::Contains("occurs twice"));
  CHECK_THAT(refusal_after([](auto& m) {
               m.push_back(m.back());
               std::transform(m.back().name.begin(), m.back().name.end(), m.back().name.begin(),
                              [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
             }),
             Catch::Contains("is not one that bundle.json names"));
}

TEST_CASE("links, devices, folders and odd modes are refused by name") {
  const MadeBundle made = test::make_bundle();
  const auto with_mode = [&](std::uint32_t mode) {
    Bytes file = made.file;
    patch<std::uint32_t>(file, entry_offset(file, 4) + 38, mode << 16);
    return refusal(file);
  };
  CHECK_THAT(with_mode(0120777), Catch::Contains("'LICENSE' is a symbolic link"));
  CHECK_THAT(with_mode(0020666), Catch::Contains("'LICENSE' is a device"));
  CHECK_THAT(with_mode(0060666), Catch::Contains("'LICENSE' is a device"));
  CHECK_THAT(with_mode(0010666), Catch::Contains("'LICENSE' is a FIFO"));
  CHECK_THAT(with_mode(0140666), Catch::Contains("'LICENSE' is a socket"));
  CHECK_THAT(with_mode(0040755), Catch::Contains("'LICENSE' is a folder"));
  CHECK_THAT(with_mode(0104755), Catch::Contains("'LICENSE' has a time stamp, mode"));
  CHECK_THAT(refusal_after([](auto& m) {
               m.push_back({"folder/", ""});
             }),
             Catch::Contains("folder"));
  CHECK_THAT(refusal_after([](auto& m) {
               m.insert(m.begin() + 2, {"folder/", ""});
             }),
             Catch::Contains("folder"));
}

TEST_CASE("bytes that belong to no member are refused wherever they are") {
  const Bytes good = test::make_bundle().file;
  Bytes behind = good;
  behind.push_back('x');
  refusal(behind);
  Bytes before = good;
  before.insert(before.begin(), 'x');
  refusal(before);
  Bytes comment = good;
  patch<std::uint16_t>(comment, comment.size() - 2, 1);
  comment.push_back('x');
  CHECK_THAT(refusal(comment), Catch::Contains("follow the zip directory"));
  // A gap in front of the first member, between two, and in front of the directory.
  const auto zip = ZipArchive::open(memory_access("good", good));
  REQUIRE(zip);
  const std::size_t count = zip->members().size();
  for (const std::size_t gap : {std::size_t{0}, std::size_t{3}, count}) {
    CAPTURE(gap);
    const std::size_t at = gap == count
                               ? static_cast<std::size_t>(zip->members().back().limit_offset)
                               : static_cast<std::size_t>(zip->members()[gap].header_offset);
    Bytes file = good;
    file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), 'x');
    std::size_t entry = entry_offset(good, 0) + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const auto offset = static_cast<std::uint32_t>(zip->members()[i].header_offset);
      patch<std::uint32_t>(file, entry + 42, offset + (i >= gap ? 1 : 0));
      entry += 46 + zip->members()[i].name.size();
    }
    patch<std::uint32_t>(file, file.size() - 6,
                         static_cast<std::uint32_t>(entry_offset(good, 0) + 1));
    CHECK_THAT(refusal(file), Catch::Contains("belong to no member"));
  }
}

TEST_CASE("members that overlap are refused") {
  Bytes file = test::make_bundle().file;
  patch<std::uint32_t>(file, entry_offset(file, 4) + 42, 10);
  CHECK_THAT(refusal(file), Catch::Contains("reaches into"));
}

TEST_CASE("sizes that lie are refused before anything is unpacked") {
  const Bytes good = test::make_bundle().file;
  for (const std::size_t member : {std::size_t{1}, std::size_t{4}, std::size_t{7}}) {
    CAPTURE(member);
    Bytes file = good;
    const std::size_t at = entry_offset(file, member) + 24;
    patch<std::uint32_t>(file, at, 0x3fffffff);
    refusal(file);  // more than deflate can pack, or not what bundle.json says
  }
}

TEST_CASE("a bomb is unpacked no further than what it claims") {
  // The directory and bundle.json agree on 40 bytes; the stream makes 4,000.
  const MadeBundle made = test::make_bundle();
  std::vector<NamedBytes> members = members_of(made);
  const Kernel small{sha256(test::text_kernel()), test::text_kernel().size()};
  Bytes file;
  ZipWriter writer([&](std::span<const std::uint8_t> bytes) -> Status {
    file.insert(file.end(), bytes.begin(), bytes.end());
    return {};
  });
  for (const NamedBytes& member : members) {
    const std::span<const std::uint8_t> bytes(
        reinterpret_cast<const std::uint8_t*>(member.bytes.data()), member.bytes.size());
    PackedMember packed = pack_member(bytes, false);
    if (member.name == kernel_member_name(small.sha256)) {
      packed = pack_member(Bytes(4000, 0), false);
      packed.size = small.size_bytes;
    }
    REQUIRE(writer.add(member.name, packed));
  }
  REQUIRE(writer.finish());
  const auto opened = test::open(file);
  if (!opened) FAIL(opened.error().message());
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto cubin = opened->read_kernel(i);
    if (cubin) continue;
    ++refused;
    CHECK_THAT(cubin.error().message(), Catch::Contains("inflates to more bytes"));
  }
  CHECK(refused == 1);
}

TEST_CASE("wrong digests are refused by member") {
  std::vector<NamedBytes> members = members_of(test::make_bundle());
  members[2].bytes[0] = '[';  // manifests/made.json, of the same size
  members[6].bytes[1] ^= 1;   // the first kernel
  const Bytes file = zip_of(members);
  const auto opened = test::open(file);
  if (!opened) FAIL(opened.error().message());
  const auto text = opened->read_part(opened->description().manifests[1].text);
  REQUIRE_FALSE(text);
  CHECK_THAT(text.error().message(), Catch::Contains("'manifests/made.json' has sha256"));
  const auto cubin = opened->read_kernel(0);
  REQUIRE_FALSE(cubin);
  CHECK(cubin.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(cubin.error().message(), Catch::Contains(members[6].name));
  CHECK(opened->read_kernel(1));
}

/// Whether a byte of the file is packed data of a member, where deflate has more than one way to
/// say the same.
bool is_packed(const Bundle& bundle, std::size_t at) {
  for (const ZipMember& member : bundle.members()) {
    const std::size_t data = 30 + member.name.size() + member.header_offset;
    if (member.method == 8 && at >= data && at < member.limit_offset) return true;
  }
  return false;
}

TEST_CASE("no changed byte goes unnoticed unless what is unpacked is the same") {
  const MadeBundle made = test::make_bundle();
  const auto untouched = test::open(made.file);
  REQUIRE(untouched);
  std::size_t noticed = 0;
  for (std::size_t i = 0; i < made.file.size(); ++i) {
    Bytes file = made.file;
    file[i] ^= 0x01;
    const auto opened = test::open(file);
    bool good = opened.has_value() && opened->identity() == made.written.identity;
    if (good) {
      for (const ManifestPart& part : opened->description().manifests) {
        good = good && opened->read_part(part.text);
        if (part.signature) good = good && opened->read_part(*part.signature);
      }
      good = good && opened->read_part(*opened->description().license);
      good = good && opened->read_part(*opened->description().notice);
      for (std::size_t k = 0; k < 3; ++k) good = good && opened->read_kernel(k);
    }
    CAPTURE(i);
    CHECK((!good || is_packed(*untouched, i)));
    noticed += good ? 0 : 1;
  }
  CHECK(noticed >= made.file.size() - 5);
}

TEST_CASE("a bundle cut off anywhere is refused") {
  const Bytes good = test::make_bundle().file;
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes file(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    CAPTURE(size);
    CHECK_FALSE(test::open(file));
  }
}

}  // namespace
}  // namespace cubist::bundle
