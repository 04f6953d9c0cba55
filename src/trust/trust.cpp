#include "trust/trust.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <mutex>
#include <set>
#include <utility>

#include "base/date.h"
#include "base/file.h"
#include "base/log.h"
#include "document/json_text.h"
#include "trust/key_statement.h"
#include "trust/signed_file.h"

namespace cubist::trust {
namespace {

constexpr std::uint64_t kMaxKeyFileBytes = 4 << 10;
constexpr std::uint64_t kMaxStatementBytes = 1 << 20;
constexpr std::uint64_t kMaxListBytes = 16 << 20;
constexpr const char* kKeys = "keys";

Result<PublicKey> read_key(const std::string& text, const std::string& origin) {
  // Keys begin with RW, secret ones too: those must not end up in a message as a file's name.
  const bool is_file =
      text.ends_with(".pub") || (text.find('/') != std::string::npos && !text.starts_with("RW"));
  if (!is_file) return parse_public_key(text, origin);
  auto file = read_text_file(text, kMaxKeyFileBytes);
  if (!file) return forward_error(file, origin);
  return parse_public_key(*file, fmt::format("{}: {}", origin, text));
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

bool contains(const std::vector<PublicKey>& keys, const PublicKey& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Once a process and file, however many parts of a command open it.
void warn_if_expired(const std::string& file, const std::string& expires) {
  const auto day = parse_date(expires);
  if (!day || !is_over(*day, std::chrono::system_clock::now())) return;
  static std::mutex mutex;
  static std::set<std::pair<std::string, std::string>> warned;
  const std::lock_guard lock(mutex);
  if (!warned.emplace(file, expires).second) return;
  log(LogLevel::kWarning, "'{}' expired on {}; look for a newer one", file, expires);
}

}  // namespace

Result<Trust> Trust::open(Settings settings) {
  Trust trust(std::move(settings));
  const Settings& wanted = trust.settings_;
  if (!trust.checks_signatures()) {
    for (const auto& [files, origin] :
         {std::pair(&wanted.key_statements, &wanted.origins.key_statements),
          std::pair(&wanted.revocations, &wanted.origins.revocations)}) {
      if (files->empty()) continue;
      return fail(StatusCode::kInvalidArgument,
                  "{}: '{}' must be signed by a trusted key, and none is set: set trusted_keys "
                  "(CUBIST_TRUSTED_KEYS, --trusted-key) to its publisher's",
                  *origin, files->front());
    }
    return trust;
  }
  CUBIST_RETURN_IF_ERROR(trust.read_states());
  CUBIST_RETURN_IF_ERROR(trust.read_keys());
  Status statements = trust.apply_statements();
  if (!statements) return forward_error(statements, wanted.origins.key_statements);
  Status lists = trust.read_lists();
  if (!lists) return forward_error(lists, wanted.origins.revocations);
  return trust;
}

Policy Trust::manifest_signatures() const {
  return settings_.manifest_signatures.value_or(checks_signatures() ? Policy::kWarn
                                                                    : Policy::kAllow);
}

/// This user's, and of the stores below also root's, who fills them for everybody.
Status Trust::read_states() {
  const auto read = [&](const SeenState& state, LogLevel level) -> Status {
    auto seen = state.load();
    if (seen) {
      seen_.merge(*seen);
    } else if (seen.error().code() == StatusCode::kIo) {
      log(level, "{}; older manifests and lists cannot be told from new ones",
          seen.error().message());
    } else {
      return forward_error(seen);
    }
    return {};
  };
  CUBIST_RETURN_IF_ERROR(read(SeenState(settings_.state_folder), LogLevel::kWarning));
  for (const std::string& folder : settings_.lower_state_folders) {
    CUBIST_RETURN_IF_ERROR(read(SeenState(folder), LogLevel::kWarning));
    // Mode 0600 as it is written: whoever makes a layer for others says so by its mode.
    if (::geteuid() != 0) CUBIST_RETURN_IF_ERROR(read(SeenState(folder, 0), LogLevel::kInfo));
  }
  return {};
}

Status Trust::read_keys() {
  for (const std::string& text : settings_.trusted_keys) {
    CUBIST_ASSIGN_OR_RETURN(const PublicKey key, read_key(text, settings_.origins.trusted_keys));
    if (seen_.retired.contains(key)) {
      log(LogLevel::kInfo, "key {} was retired by its publisher and is not trusted any more",
          key.id.text());
      retired_.push_back(key);
    } else if (!contains(keys_, key)) {
      keys_.push_back(key);
    }
  }
  return {};
}

/// Signed by a key that is trusted at this point; or applied before, by a key that may be retired
/// since.
Status Trust::check_statement(const KeyStatement& statement) const {
  if (seen_.statements.contains(statement.sha256)) return {};
  const auto signed_text = read_signed_file(statement.file, kMaxStatementBytes, keys_);
  if (!signed_text) return with_retired(signed_text.error());
  if (sha256(bytes_of(signed_text->text)) == statement.sha256) return {};
  return fail(StatusCode::kIntegrity, "'{}' changed while it was read; try again", statement.file);
}

Status Trust::apply_statements() {
  std::vector<KeyStatement> statements;
  for (const std::string& file : settings_.key_statements) {
    CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(file, kMaxStatementBytes));
    CUBIST_ASSIGN_OR_RETURN(KeyStatement statement, parse_key_statement(text, file));
    statement.sha256 = sha256(bytes_of(text));
    statements.push_back(std::move(statement));
  }
  std::sort(statements.begin(), statements.end(),
            [](const auto& a, const auto& b) { return a.serial < b.serial; });
  const auto same =
      std::adjacent_find(statements.begin(), statements.end(),
                         [](const auto& a, const auto& b) { return a.serial == b.serial; });
  if (same != statements.end()) {
    return fail(StatusCode::kInvalidArgument, "'{}' and '{}' both have serial {}; leave one out",
                same->file, (same + 1)->file, same->serial);
  }
  Seen fresh;
  for (const KeyStatement& told : statements) {
    CUBIST_RETURN_IF_ERROR(check_statement(told));
    fresh.statements.insert(told.sha256);
    std::copy_if(keys_.begin(), keys_.end(), std::back_inserter(retired_),
                 [&](const PublicKey& key) { return contains(told.retire, key); });
    std::erase_if(keys_, [&](const PublicKey& key) { return contains(told.retire, key); });
    fresh.retired.insert(told.retire.begin(), told.retire.end());
    for (const PublicKey& key : told.add) {
      if (!contains(keys_, key) && !seen_.retired.contains(key) && !fresh.retired.contains(key)) {
        keys_.push_back(key);
      }
    }
  }
  if (!statements.empty()) {
    // Asked at the end alone: what an earlier statement adds may be known to be retired since.
    if (keys_.empty()) {
      return fail(StatusCode::kUntrusted,
                  "'{}' leaves no key that is trusted; get a later statement, or pin a new key",
                  statements.back().file);
    }
    const KeyStatement& last = statements.back();
    CUBIST_RETURN_IF_ERROR(check_serial(kKeys, last.serial, last.sha256, last.file, fresh));
  }
  note(fresh);
  return {};
}

Status Trust::read_lists() {
  Seen fresh;
  for (const std::string& file : settings_.revocations) {
    const auto signed_text = read_signed_file(file, kMaxListBytes, keys_);
    if (!signed_text) return with_retired(signed_text.error());
    CUBIST_ASSIGN_OR_RETURN(RevocationList list, parse_revocations(signed_text->text, file));
    CUBIST_RETURN_IF_ERROR(check_serial(fmt::format("revocations {}", list.name), list.serial,
                                        sha256(bytes_of(signed_text->text)), file, fresh));
    check_list_name(list, fresh);
    warn_if_expired(file, list.expires);
    revoked_.add(list);
    lists_.push_back(std::move(list));
  }
  note(fresh);
  return {};
}

/// Lists of other names are counted apart, so that one in another's place lifts its bars.
void Trust::check_list_name(const RevocationList& list, Seen& fresh) const {
  std::error_code error;
  const std::string path = std::filesystem::absolute(list.file, error).lexically_normal().string();
  if (error) return;
  const Sha256Digest place = sha256(bytes_of(path));
  const auto before = seen_.lists.find(place);
  if (before != seen_.lists.end() && before->second != list.name) {
    log(LogLevel::kWarning,
        "the revocation list '{}' is called '{}'; the one that was there before, '{}', is not "
        "configured by this path any more, and what it alone revoked is not revoked now. Put that "
        "one back, or accept this one with --accept-older-serial",
        list.file, list.name, before->second);
    if (!settings_.accept_older_serial) return;
  }
  fresh.lists[place] = list.name;
}

std::string Trust::retired_text() const {
  if (retired_.empty()) return "";
  std::string ids;
  for (const PublicKey& key : retired_) ids += (ids.empty() ? "" : ", ") + key.id.text();
  return fmt::format("pinned here and retired by a key statement: {} (remembered in {})", ids,
                     settings_.state_folder.empty()
                         ? "this process"
                         : in_quotes(SeenState(settings_.state_folder).file()));
}

tl::unexpected<Error> Trust::with_retired(const Error& error) const {
  if (error.code() != StatusCode::kUntrusted || retired_.empty()) {
    return tl::unexpected<Error>(error);
  }
  return fail(error.code(), "{}. {}", error.message(), retired_text());
}

Status Trust::check_serial(const std::string& what, std::int64_t serial, const Sha256Digest& sha256,
                           const std::string& file, Seen& fresh) const {
  const std::int64_t before = seen_.serial_of(what);
  for (const Seen* seen : std::initializer_list<const Seen*>{&seen_, &fresh}) {
    const auto hash = seen->hash_of(what);
    if (serial == 0 || serial != seen->serial_of(what) || !hash || *hash == sha256) continue;
    const std::string problem = fmt::format(
        "'{}' has serial {}, as another one that was seen before, but not its text "
        "(sha256 {}, before {})",
        file, serial, sha256.hex(), hash->hex());
    if (!settings_.accept_older_serial) {
      return fail(StatusCode::kUntrusted,
                  "{}: a publisher gives each version a higher serial. Get the newest, or accept "
                  "this one for once with --accept-older-serial",
                  problem);
    }
    log(LogLevel::kWarning, "{}; accepted", problem);
    return {};
  }
  if (serial >= before) {
    if (serial > fresh.serial_of(what)) {
      fresh.serials[what] = serial;
      fresh.hashes[what] = sha256;
    }
    return {};
  }
  if (settings_.accept_older_serial) {
    log(LogLevel::kWarning, "'{}' has serial {}, older than {}, which was seen before; accepted",
        file, serial, before);
    return {};
  }
  return fail(StatusCode::kUntrusted,
              "'{}' has serial {}, but {} was seen before: it is an older one, put back by mistake "
              "or on purpose. Get the newest, or accept this one for once with "
              "--accept-older-serial",
              file, serial, before);
}

void Trust::note(const Seen& fresh) {
  if (!seen_.merge(fresh) || !settings_.notes_serials) return;
  if (const Status noted = SeenState(settings_.state_folder).note(fresh); !noted) {
    log(LogLevel::kWarning,
        "the serials seen cannot be noted ({}); an older manifest or list will not be noticed here",
        noted.error().message());
  }
}

Result<std::optional<SignedBy>> Trust::check_manifest(std::span<const std::uint8_t> bytes,
                                                      const std::string& file, bool shipped) const {
  std::optional<std::string> signature;
  if (checks_signatures()) {
    CUBIST_ASSIGN_OR_RETURN(signature, read_signature_of(file));
  }
  return check_manifest(bytes, file, signature, shipped);
}

Result<std::optional<SignedBy>> Trust::check_manifest(std::span<const std::uint8_t> bytes,
                                                      const std::string& file,
                                                      const std::optional<std::string>& signature,
                                                      bool shipped) const {
  if (checks_signatures() && signature) {
    auto by = check_signed(bytes, *signature, file, keys_);
    if (!by) return with_retired(by.error());
    return std::optional<SignedBy>(std::move(*by));
  }
  const Policy policy = manifest_signatures();
  if (shipped || policy == Policy::kAllow) return std::optional<SignedBy>();
  const std::string problem =
      checks_signatures() ? fmt::format("'{}' is not signed: there is no '{}.minisig'", file, file)
                          : fmt::format(
                                "who made '{}' is not known: no key is trusted; set trusted_keys "
                                "(CUBIST_TRUSTED_KEYS, --trusted-key)",
                                file);
  if (policy == Policy::kRefuse) {
    return fail(StatusCode::kUntrusted,
                "{}; get one that a trusted key signed (manifest_signatures is \"refuse\", by {})",
                problem, settings_.origins.manifest_signatures);
  }
  log(LogLevel::kWarning, "{}", problem);
  return std::optional<SignedBy>();
}

Status Trust::check_facts(const ManifestFacts& facts, const std::string& file, bool is_signed) {
  CUBIST_ASSIGN_OR_RETURN(const Seen fresh, compare_facts(facts, file, is_signed));
  note(fresh);
  return {};
}

Result<Seen> Trust::compare_facts(const ManifestFacts& facts, const std::string& file,
                                  bool is_signed) const {
  warn_if_expired(file, facts.expires);
  Seen fresh;
  if (is_signed) {
    CUBIST_RETURN_IF_ERROR(
        check_serial("manifest " + facts.name, facts.serial, facts.sha256, file, fresh));
  }
  return fresh;
}

}  // namespace cubist::trust
