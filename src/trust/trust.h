#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trust/key_statement.h"
#include "trust/revocations.h"
#include "trust/seen_state.h"
#include "trust/settings.h"
#include "trust/signature.h"

namespace cubist::trust {

/// What a manifest says of itself that trust depends on.
struct ManifestFacts {
  std::string name;
  std::int64_t serial = 0;  ///< 0: not said
  std::string expires;      ///< "2027-01-31"; empty: not said
  Sha256Digest sha256{};    ///< of its text
};

/// The keys, lists and memory that the settings name, read and checked. To be opened once and asked
/// from one thread; revoked() may be read from any.
///
/// Without a trusted key nothing is checked: signatures cannot be, and a serial in an unsigned
/// manifest is anybody's claim.
class Trust {
 public:
  /// Takes the trusted keys, less those that were retired; applies the key statements in the order
  /// of their serials; reads the revocation lists; notes new serials.
  ///
  /// errors  kInvalidArgument: a key or a document that is none, statements or lists without a
  ///         trusted key; kNotFound, kIo, kIntegrity: a file cannot be read;
  ///         kUntrusted: badly signed, or older than what was seen. Each begins with what set it
  ///         (Settings::origins)
  static Result<Trust> open(Settings settings);

  const Settings& settings() const { return settings_; }
  /// Whether any key was pinned, be it retired since.
  bool checks_signatures() const { return !settings_.trusted_keys.empty(); }
  /// What happens to manifests without a signature.
  Policy manifest_signatures() const;
  /// Those trusted now.
  const std::vector<PublicKey>& keys() const { return keys_; }
  const RevokedKernels& revoked() const { return revoked_; }
  const std::vector<RevocationList>& revocation_lists() const { return lists_; }
  const Seen& seen() const { return seen_; }

  /// Who signed a manifest, looked at before anything in it is believed; nothing if nobody did or
  /// nobody could tell, and the policy lets that pass.
  ///
  /// bytes    of the file
  /// file     its path; the signature is looked for in `file`.minisig
  /// shipped  it is a file of this program's own package: as trusted as the program, so that it
  ///          needs no signature; one that is there is checked all the same
  /// errors   kUntrusted; kIo, kIntegrity: the signature cannot be read
  Result<std::optional<SignedBy>> check_manifest(std::span<const std::uint8_t> bytes,
                                                 const std::string& file, bool shipped) const;

  /// The same where the signature is not a file beside the manifest.
  /// signature  text of the .minisig; nothing if there is none
  Result<std::optional<SignedBy>> check_manifest(std::span<const std::uint8_t> bytes,
                                                 const std::string& file,
                                                 const std::optional<std::string>& signature,
                                                 bool shipped) const;

  /// Refuses a signed manifest that is older than one of its name seen before, or another of the
  /// same serial, notes a newer one, and warns of one that has expired, signed or not.
  /// errors  kUntrusted: older, or another
  Status check_facts(const ManifestFacts& facts, const std::string& file, bool is_signed);
  /// The same, but notes nothing: for one that is not in use yet.
  /// returns  what to note() once it is
  Result<Seen> compare_facts(const ManifestFacts& facts, const std::string& file,
                             bool is_signed) const;
  void note(const Seen& fresh);

  /// Keys that are pinned and were retired, and where that is remembered, for people; empty if
  /// there are none.
  std::string retired_text() const;

 private:
  explicit Trust(Settings settings) : settings_(std::move(settings)) {}
  /// errors  kUntrusted, kIntegrity: as SeenState::load()
  Status read_states();
  Status read_keys();
  Status check_statement(const KeyStatement& statement) const;
  Status apply_statements();
  Status read_lists();
  /// sha256  of the document, which a second one of the same serial must have
  Status check_serial(const std::string& what, std::int64_t serial, const Sha256Digest& sha256,
                      const std::string& file, Seen& fresh) const;
  void check_list_name(const RevocationList& list, Seen& fresh) const;
  /// A refusal, with what retired keys have to do with it.
  tl::unexpected<Error> with_retired(const Error& error) const;

  Settings settings_;
  std::vector<PublicKey> keys_;
  std::vector<PublicKey> retired_;  ///< of those that were pinned
  std::vector<RevocationList> lists_;
  RevokedKernels revoked_;
  Seen seen_;
};

}  // namespace cubist::trust
