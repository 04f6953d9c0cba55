#include "bundle/bundle.h"

#include <algorithm>

#include "archive/member_name.h"
#include "base/file.h"
#include "base/prefault.h"
#include "bundle/entry.h"
#include "bundle/form_check.h"
#include "bundle/layout.h"

namespace cubist::bundle {
namespace {

// A release's manifest, but no kernel: below this, asking for pages costs more than it saves.
constexpr std::uint64_t kWorthPages = 1 << 20;

/// Bytes: a vector or string of them, with room behind for who parses it.
template <typename Bytes>
Result<Bytes> read_member(RandomAccess& file, const ZipMember& member) {
  std::vector<std::uint8_t> entry(static_cast<std::size_t>(entry_bytes(member)));
  CUBIST_RETURN_IF_ERROR(file.read(member.header_offset, entry));
  Bytes out;
  out.reserve(static_cast<std::size_t>(member.size) + kRoomBehindText);
  if (member.size >= kWorthPages) prefault(out.data(), out.capacity());
  out.resize(static_cast<std::size_t>(member.size));
  CUBIST_RETURN_IF_ERROR(unpack_member(
      entry, member, {reinterpret_cast<std::uint8_t*>(out.data()), out.size()}, file.name()));
  return out;
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// The members are those that bundle.json names, in its order.
Status check_members(const std::string& file, const std::vector<ZipMember>& members,
                     const Description& description) {
  const std::vector<ExpectedMember> expected = expected_members(description, members.front().size);
  for (std::size_t i = 0; i < std::max(members.size(), expected.size()); ++i) {
    if (i >= members.size()) {
      return fail(StatusCode::kIntegrity, "'{}': zip member '{}' is missing; bundle.json names it",
                  file, expected[i].name);
    }
    const std::string name = printable_member_name(members[i].name);
    if (i >= expected.size()) {
      return fail(StatusCode::kIntegrity, "'{}': zip member '{}' is not one that bundle.json names",
                  file, name);
    }
    if (members[i].name != expected[i].name) {
      return fail(
          StatusCode::kIntegrity,
          "'{}': zip member '{}' is where '{}' belongs by bundle.json; something was added, "
          "taken away, renamed or put in another order",
          file, name, expected[i].name);
    }
    if (members[i].size != expected[i].size_bytes) {
      return fail(StatusCode::kIntegrity,
                  "'{}': zip member '{}' claims {} bytes, bundle.json says {}", file, name,
                  members[i].size, expected[i].size_bytes);
    }
  }
  return {};
}

}  // namespace

Result<Bundle> Bundle::open(std::shared_ptr<RandomAccess> file) {
  CUBIST_ASSIGN_OR_RETURN(const ZipArchive zip, ZipArchive::open(file));
  const std::vector<ZipMember>& members = zip.members();
  if (members.empty() || members.front().name != kDescriptionName) {
    return fail(StatusCode::kIntegrity,
                "'{}' is a zip, but no bundle: its first member is not bundle.json", file->name());
  }
  CUBIST_RETURN_IF_ERROR(check_form(*file, members));
  if (members.front().size > kMaxDescriptionBytes) {
    return fail(StatusCode::kIntegrity, "'{}': bundle.json claims {} bytes; at most {} are read",
                file->name(), members.front().size, kMaxDescriptionBytes);
  }
  CUBIST_ASSIGN_OR_RETURN(const auto text, read_member<std::string>(*file, members.front()));
  CUBIST_ASSIGN_OR_RETURN(Description description, parse_description(text, file->name()));
  CUBIST_RETURN_IF_ERROR(check_members(file->name(), members, description));
  return Bundle(std::move(file), members, std::move(description), sha256(bytes_of(text)));
}

Result<std::vector<std::uint8_t>> Bundle::unpack_kernel(std::size_t kernel) const {
  return read_member<std::vector<std::uint8_t>>(*file_, kernel_member(kernel));
}

Result<VerifiedCubin> Bundle::read_kernel(std::size_t kernel) const {
  CUBIST_ASSIGN_OR_RETURN(auto bytes, unpack_kernel(kernel));
  const Kernel& expected = description_.kernels[kernel];
  return VerifiedCubin::verify(std::move(bytes), expected.sha256, expected.size_bytes,
                               fmt::format("{}:{}", file_name(), kernel_member(kernel).name));
}

Result<std::string> Bundle::unpack_part(const Part& part) const {
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const ZipMember& m) { return m.name == part.path; });
  if (member == members_.end()) {
    return fail(StatusCode::kNotFound, "'{}' has no member '{}'", file_name(), part.path);
  }
  return read_member<std::string>(*file_, *member);
}

Status Bundle::check_part(const Part& part, const std::string& text) const {
  if (const Sha256Digest found = sha256(bytes_of(text)); found != part.sha256) {
    return fail(StatusCode::kIntegrity, "'{}': zip member '{}' has sha256 {}, bundle.json says {}",
                file_name(), part.path, found.hex(), part.sha256.hex());
  }
  return {};
}

Result<std::string> Bundle::read_part(const Part& part) const {
  CUBIST_ASSIGN_OR_RETURN(std::string text, unpack_part(part));
  CUBIST_RETURN_IF_ERROR(check_part(part, text));
  return text;
}

}  // namespace cubist::bundle
