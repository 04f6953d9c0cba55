#include "trust/seen_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "document/document.h"
#include "document/json_text.h"
#include "document/schema_head.h"
#include "trust/document_head.h"

// { "schema": "cubist.seen", "schema_version": 1,
//   "serials": { "manifest NAME": 7, "revocations NAME": 4, "keys": 2 },
//   "sha256": { "manifest NAME": "SHA-256" }, "lists": { "SHA-256 of a path": "NAME" },
//   "retired_keys": [ "RW..." ], "statements": [ "SHA-256" ] }

namespace cubist::trust {
namespace {

constexpr std::uint64_t kMaxStateBytes = 4 << 20;
constexpr int kNoLinks = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr int kLockTries = 100;
constexpr std::chrono::milliseconds kLockWait{20};
constexpr std::string_view kForget =
    "remove it to begin anew, after which older manifests and lists are taken for new ones";

tl::unexpected<Error> io_error(std::string_view what, const std::string& path) {
  return tl::unexpected<Error>(Error(StatusCode::kIo, errno_error(what, path, errno).message()));
}

/// The folder, without following a link in its place; an invalid descriptor with errno.
UniqueFd open_folder(const std::string& folder) {
  return UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | kNoLinks));
}

Result<UniqueFd> make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  // Sticky: in a folder that a group may write, each member's file is its own.
  if (::mkdir(folder.c_str(), 01777) != 0 && errno != EEXIST) {
    return io_error("cannot create the folder", folder);
  }
  UniqueFd opened = open_folder(folder);
  if (!opened.valid()) return io_error("cannot open the folder", folder);
  return opened;
}

Result<UniqueFd> take_lock(int folder, const std::string& name, const std::string& path) {
  UniqueFd lock(::openat(folder, name.c_str(), O_RDWR | O_CREAT | kNoLinks, 0600));
  if (!lock.valid()) return io_error("cannot open", path);
  for (int i = 0; i < kLockTries; ++i) {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno != EWOULDBLOCK && errno != EINTR) return lock;  // no locks there: rename is atomic
    std::this_thread::sleep_for(kLockWait);
  }
  return fail(StatusCode::kIo, "'{}' stays locked by another process", path);
}

Status write_file_at(int folder, const std::string& name, std::string_view text,
                     const std::string& path) {
  const std::string temporary = fmt::format("{}.{}", name, ::getpid());
  ::unlinkat(folder, temporary.c_str(), 0);  // of a process of that number that was killed
  const UniqueFd fd(
      ::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | kNoLinks, 0600));
  if (!fd.valid()) return io_error("cannot write", path);
  Status written =
      write_all(fd, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, path);
  if (written && ::fsync(fd.get()) != 0) written = io_error("cannot sync", path);
  if (written && ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
    written = io_error("cannot replace", path);
  }
  if (!written) {
    ::unlinkat(folder, temporary.c_str(), 0);
    return written;
  }
  ::fsync(folder);  // a failure costs at most what this run saw
  return {};
}

}  // namespace

std::int64_t Seen::serial_of(const std::string& what) const {
  const auto found = serials.find(what);
  return found == serials.end() ? 0 : found->second;
}

std::optional<Sha256Digest> Seen::hash_of(const std::string& what) const {
  const auto found = hashes.find(what);
  return found == hashes.end() ? std::nullopt : std::optional(found->second);
}

bool Seen::merge(const Seen& other) {
  bool changed = false;
  for (const auto& [what, serial] : other.serials) {
    if (serial < serial_of(what)) continue;
    const auto hash = other.hash_of(what);
    if (serial == serial_of(what) && (!hash || hash_of(what))) continue;
    serials[what] = serial;
    hashes.erase(what);
    if (hash) hashes[what] = *hash;
    changed = true;
  }
  for (const auto& [path, name] : other.lists) {
    const auto [at, is_new] = lists.insert({path, name});
    if (!is_new && at->second == name) continue;
    at->second = name;
    changed = true;
  }
  for (const PublicKey& key : other.retired) changed = retired.insert(key).second || changed;
  for (const Sha256Digest& one : other.statements) {
    changed = statements.insert(one).second || changed;
  }
  return changed;
}

Result<Seen> parse_seen(std::string_view text, std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  root.allow_only(
      {"schema", "schema_version", "serials", "sha256", "lists", "retired_keys", "statements"});
  read_schema(root, "cubist.seen");
  Seen seen;
  const DocumentNode serials = root.required("serials");
  if (!serials.is_object()) serials.complain("expected an object");
  for (const std::string& what : serials.keys()) {
    serials.member(what).read_integer(seen.serials[what], 1, kMaxSerial);
  }
  const auto read_digest = [](const DocumentNode& node, std::string_view hex) {
    const auto digest = Sha256Digest::parse(hex);
    if (!digest) node.complain(fmt::format("{} is no sha256", in_quotes(hex)));
    return digest;
  };
  const DocumentNode hashes = root.member("sha256");  // states may lack both
  for (const std::string& what : hashes.keys()) {
    std::string hex;
    if (!hashes.member(what).read(hex)) continue;
    if (const auto digest = read_digest(hashes, hex)) seen.hashes[what] = *digest;
  }
  const DocumentNode lists = root.member("lists");
  for (const std::string& path : lists.keys()) {
    std::string name;
    if (!lists.member(path).read(name)) continue;
    if (const auto digest = read_digest(lists, path)) seen.lists[*digest] = name;
  }
  std::vector<std::string> lines;
  root.required("retired_keys").read_strings(lines);
  for (const std::string& line : lines) {
    if (const auto key = parse_public_key(line, "key")) {
      seen.retired.insert(*key);
    } else {
      root.member("retired_keys").complain(key.error().message());
    }
  }
  lines.clear();
  root.required("statements").read_strings(lines);
  for (const std::string& line : lines) {
    if (const auto digest = read_digest(root.member("statements"), line)) {
      seen.statements.insert(*digest);
    }
  }
  CUBIST_RETURN_IF_ERROR(document.status());
  return seen;
}

std::string write_seen(const Seen& seen) {
  std::string out = "{\n  \"schema\": \"cubist.seen\",\n  \"schema_version\": 1,\n  \"serials\": {";
  const char* separator = "\n";
  for (const auto& [what, serial] : seen.serials) {
    out += fmt::format("{}    {}: {}", separator, json_string(what), serial);
    separator = ",\n";
  }
  out += seen.serials.empty() ? "},\n" : "\n  },\n";
  out += "  \"sha256\": {";
  separator = "\n";
  for (const auto& [what, digest] : seen.hashes) {
    out += fmt::format("{}    {}: \"{}\"", separator, json_string(what), digest.hex());
    separator = ",\n";
  }
  out += seen.hashes.empty() ? "},\n" : "\n  },\n";
  out += "  \"lists\": {";
  separator = "\n";
  for (const auto& [path, name] : seen.lists) {
    out += fmt::format("{}    \"{}\": {}", separator, path.hex(), json_string(name));
    separator = ",\n";
  }
  out += seen.lists.empty() ? "},\n" : "\n  },\n";
  out += "  \"retired_keys\": [";
  separator = "";
  for (const PublicKey& key : seen.retired) {
    out += fmt::format("{}\"{}\"", separator, key.text());
    separator = ", ";
  }
  out += "],\n  \"statements\": [";
  separator = "";
  for (const Sha256Digest& digest : seen.statements) {
    out += fmt::format("{}\"{}\"", separator, digest.hex());
    separator = ", ";
  }
  return out + "]\n}\n";
}

SeenState::SeenState(std::string folder) : SeenState(std::move(folder), ::geteuid()) {}

SeenState::SeenState(std::string folder, uid_t user)
    : folder_(std::move(folder)), file_name_(fmt::format("seen-{}.json", user)) {}

Result<Seen> SeenState::load() const {
  if (folder_.empty()) return Seen();
  const UniqueFd folder = open_folder(folder_);
  if (folder.valid()) return load_from(folder.get());
  if (errno == ENOENT) return Seen();
  struct stat info {};
  if (errno == ELOOP || errno == ENOTDIR) {
    if (::lstat(folder_.c_str(), &info) != 0) return Seen();  // a file in place of the store
    return fail(StatusCode::kUntrusted,
                "'{}', where the serials seen are kept, is no folder or a link, which is not "
                "followed; remove it",
                folder_);
  }
  return io_error("cannot open the folder of the serials seen,", folder_);
}

Result<Seen> SeenState::load_from(int folder) const {
  const std::string path = folder_ + "/" + file_name_;
  const UniqueFd fd(::openat(folder, file_name_.c_str(), O_RDONLY | kNoLinks));
  if (!fd.valid() && errno == ENOENT) return Seen();
  struct stat info {};
  const bool link = !fd.valid() && (errno == ELOOP || errno == ENXIO);
  if (!fd.valid() && !link) return io_error("cannot open the serials seen,", path);
  if (!link && ::fstat(fd.get(), &info) != 0) return io_error("cannot look at", path);
  if (link || !S_ISREG(info.st_mode) || (info.st_uid != ::geteuid() && info.st_uid != 0) ||
      (info.st_mode & 0022) != 0) {
    return fail(StatusCode::kUntrusted,
                "'{}', the serials seen, is a link, no file, another user's or one that others can "
                "write; {}",
                path, kForget);
  }
  if (static_cast<std::uint64_t>(info.st_size) > kMaxStateBytes) {
    return fail(StatusCode::kIntegrity, "'{}' has {} bytes, at most {} are expected; {}", path,
                info.st_size, kMaxStateBytes, kForget);
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  CUBIST_RETURN_IF_ERROR(
      read_exactly_at(fd, 0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}, path));
  auto seen = parse_seen(text, path);
  if (seen) return seen;
  return fail(StatusCode::kIntegrity, "the serials seen cannot be read: {}; {}",
              seen.error().message(), kForget);
}

Status SeenState::note(const Seen& seen) const {
  if (folder_.empty()) return {};
  const std::string path = folder_ + "/" + file_name_;
  CUBIST_ASSIGN_OR_RETURN(const UniqueFd folder, make_folder(folder_));
  CUBIST_ASSIGN_OR_RETURN(const UniqueFd lock,
                          take_lock(folder.get(), file_name_ + ".lock", path + ".lock"));
  CUBIST_ASSIGN_OR_RETURN(Seen noted, load_from(folder.get()));
  if (!noted.merge(seen)) return {};
  return write_file_at(folder.get(), file_name_, write_seen(noted), path);
}

}  // namespace cubist::trust
