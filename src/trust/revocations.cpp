#include "trust/revocations.h"

#include <algorithm>
#include <unordered_set>

#include "base/date.h"
#include "document/document.h"
#include "document/json_text.h"
#include "trust/document_head.h"

// { "schema": "cubist.revocations", "schema_version": 1, "serial": 4, "name", "expires",
//   "entries": [ { "sha256", "reason", "replacement" } ] }

namespace cubist::trust {
namespace {

constexpr std::size_t kMaxNameBytes = 128;
constexpr std::size_t kMaxReasonBytes = 1024;

bool is_name(std::string_view text) {
  return text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '.' || c == '-';
         });
}

bool is_plain(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char character) {
    const auto byte = static_cast<unsigned char>(character);
    return byte < 0x20 || byte == 0x7f;
  });
}

std::optional<Sha256Digest> read_digest(const DocumentNode& node) {
  std::string hex;
  if (!node.read(hex)) return std::nullopt;
  const auto digest = Sha256Digest::parse(hex);
  if (!digest) {
    node.complain(fmt::format("{} is no sha256 of 64 hexadecimal digits", in_quotes(hex)));
  }
  return digest;
}

Revocation read_entry(const DocumentNode& node) {
  Revocation entry;
  if (!node.is_object()) node.complain("expected an object with sha256 and reason");
  node.allow_only({"sha256", "reason", "replacement"});
  entry.sha256 = read_digest(node.required("sha256")).value_or(Sha256Digest());
  const DocumentNode reason = node.required("reason");
  if (reason.read(entry.reason) &&
      (entry.reason.empty() || !is_plain(entry.reason) || entry.reason.size() > kMaxReasonBytes)) {
    reason.complain("must be one line of 1 to 1024 bytes; people are shown it");
  }
  entry.replacement = read_digest(node.member("replacement"));
  return entry;
}

}  // namespace

Result<RevocationList> parse_revocations(std::string_view text, std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  root.allow_only({"schema", "schema_version", "serial", "name", "expires", "entries"});
  RevocationList list;
  list.file = file_name;
  read_head(root, "cubist.revocations", list.serial);
  if (root.member("name").read(list.name) && !is_name(list.name)) {
    root.member("name").complain("has other characters than letters, digits and _.-");
  }
  if (root.member("expires").read(list.expires) && !parse_date(list.expires)) {
    root.member("expires").complain(
        fmt::format("{} is no date like 2027-01-31", in_quotes(list.expires)));
  }
  const DocumentNode entries = root.required("entries");
  std::unordered_set<Sha256Digest> revoked;
  for (const DocumentNode& item : entries.items()) {
    list.entries.push_back(read_entry(item));
    if (!revoked.insert(list.entries.back().sha256).second) {
      item.member("sha256").complain("another entry has this sha256");
    }
  }
  for (std::size_t i = 0; i < list.entries.size(); ++i) {
    const auto& replacement = list.entries[i].replacement;
    if (replacement && revoked.contains(*replacement)) {
      entries.complain(fmt::format("the replacement {} is revoked too", replacement->hex()));
    }
  }
  CUBIST_RETURN_IF_ERROR(document.status());
  return list;
}

void RevokedKernels::add(const RevocationList& list) {
  for (const Revocation& entry : list.entries) {
    std::string why =
        fmt::format("revoked by '{}' (serial {}): {}", list.file, list.serial, entry.reason);
    if (entry.replacement) why += fmt::format("; use {} instead", entry.replacement->hex());
    kernels_.emplace(entry.sha256, std::move(why));
  }
}

std::optional<std::string> RevokedKernels::why(const Sha256Digest& digest) const {
  const auto found = kernels_.find(digest);
  return found == kernels_.end() ? std::nullopt : std::optional(found->second);
}

Status RevokedKernels::check(const Sha256Digest& digest, std::string_view kernel_name) const {
  const auto found = kernels_.find(digest);
  if (found == kernels_.end()) return {};
  return fail(StatusCode::kUntrusted, "kernel '{}' ({}) is {}", kernel_name, digest.hex(),
              found->second);
}

}  // namespace cubist::trust
