#include "trust/signed_file.h"

#include "base/file.h"

namespace cubist::trust {
namespace {

constexpr std::uint64_t kMaxSignatureBytes = 16 << 10;

}  // namespace

Result<std::optional<std::string>> read_signature_of(const std::string& file) {
  auto text = read_text_file(file + ".minisig", kMaxSignatureBytes);
  if (text) return std::optional<std::string>(std::move(*text));
  if (text.error().code() == StatusCode::kNotFound) return std::optional<std::string>();
  return forward_error(text);
}

Result<SignedText> read_signed_file(const std::string& file, std::uint64_t max_bytes,
                                    std::span<const PublicKey> keys) {
  CUBIST_ASSIGN_OR_RETURN(std::string text, read_text_file(file, max_bytes));
  CUBIST_ASSIGN_OR_RETURN(const std::optional<std::string> signature, read_signature_of(file));
  if (!signature) {
    return fail(StatusCode::kUntrusted,
                "'{}' has no signature: there is no '{}.minisig'; get it from where the file came "
                "from",
                file, file);
  }
  CUBIST_ASSIGN_OR_RETURN(
      SignedBy by, check_signed({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()},
                                *signature, file, keys));
  return SignedText{std::move(text), std::move(by)};
}

}  // namespace cubist::trust
