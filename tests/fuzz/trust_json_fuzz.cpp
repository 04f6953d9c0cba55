#include <set>
#include <string_view>

#include "base/date.h"
#include "check.h"
#include "trust/key_statement.h"
#include "trust/revocations.h"
#include "trust/seen_state.h"

using namespace cubist;
using namespace cubist::trust;

namespace {

constexpr std::int64_t kMostSerial = (std::int64_t{1} << 53) - 1;

template <class T>
bool is_refused(const Result<T>& result) {
  if (result) return false;
  FUZZ_CHECK(result.error().code() == StatusCode::kInvalidArgument);
  FUZZ_CHECK(result.error().message().starts_with("fuzz.json: "));
  return true;
}

void check_list(std::string_view text) {
  const auto list = parse_revocations(text, "fuzz.json");
  if (is_refused(list)) return;
  FUZZ_CHECK(list->serial >= 1 && list->serial <= kMostSerial);
  FUZZ_CHECK(list->expires.empty() || parse_date(list->expires));
  std::set<Sha256Digest> seen;
  RevokedKernels revoked;
  revoked.add(*list);
  for (const Revocation& entry : list->entries) {
    FUZZ_CHECK(seen.insert(entry.sha256).second);
    FUZZ_CHECK(!entry.reason.empty() && entry.reason.find('\n') == std::string::npos);
    FUZZ_CHECK(!revoked.check(entry.sha256, "kernel"));
    FUZZ_CHECK(!entry.replacement || !revoked.contains(*entry.replacement));
  }
  FUZZ_CHECK(revoked.size() == list->entries.size());
}

void check_statement(std::string_view text) {
  const auto statement = parse_key_statement(text, "fuzz.json");
  if (is_refused(statement)) return;
  FUZZ_CHECK(statement->serial >= 1 && statement->serial <= kMostSerial);
  FUZZ_CHECK(!statement->add.empty() || !statement->retire.empty());
  for (const PublicKey& key : statement->add) {
    for (const PublicKey& retired : statement->retire) FUZZ_CHECK(key != retired);
  }
}

void check_seen(std::string_view text) {
  const auto seen = parse_seen(text, "fuzz.json");
  if (is_refused(seen)) return;
  for (const auto& [what, serial] : seen->serials) FUZZ_CHECK(serial >= 1);
  const auto again = parse_seen(write_seen(*seen), "fuzz.json");
  FUZZ_CHECK(again && again->serials == seen->serials && again->retired == seen->retired &&
             again->statements == seen->statements);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_list(text);
  check_statement(text);
  check_seen(text);
  return 0;
}
