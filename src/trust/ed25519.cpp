#include "trust/ed25519.h"

#include <memory>

#include <openssl/err.h>
#include <openssl/evp.h>

namespace cubist::trust {

Result<std::array<std::uint8_t, 64>> blake2b_512(std::span<const std::uint8_t> bytes) {
  std::array<std::uint8_t, 64> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_blake2b512(), nullptr) !=
          1 ||
      size != digest.size()) {
    ERR_clear_error();
    return fail(StatusCode::kInternal,
                "OpenSSL gives no BLAKE2b-512, which signatures need; use a build that has it");
  }
  return digest;
}

Result<bool> ed25519_good(std::span<const std::uint8_t, 32> public_key,
                          std::span<const std::uint8_t> message,
                          std::span<const std::uint8_t, 64> signature) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, public_key.data(), public_key.size()),
      EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  if (key == nullptr || context == nullptr ||
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1) {
    ERR_clear_error();
    return fail(StatusCode::kInternal,
                "OpenSSL gives no Ed25519, which signatures need; use a build that has it");
  }
  const int answer = EVP_DigestVerify(context.get(), signature.data(), signature.size(),
                                      message.data(), message.size());
  ERR_clear_error();  // a bad signature may leave entries that are nobody else's business
  return answer == 1;
}

}  // namespace cubist::trust
