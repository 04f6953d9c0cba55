#include "base/sha256.h"

#include <openssl/evp.h>

#include <new>

#include "base/hex.h"

namespace cubist {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  // The only failures of these calls are memory and a broken OpenSSL installation.
  if (state_->context == nullptr ||
      EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) {
    throw std::bad_alloc();
  }
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::uint8_t> bytes) {
  if (EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1) throw std::bad_alloc();
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  if (EVP_DigestFinal_ex(state_->context, digest.bytes.data(), nullptr) != 1)
    throw std::bad_alloc();
  return digest;
}

std::string Sha256Digest::hex() const { return to_hex(bytes); }

std::optional<Sha256Digest> Sha256Digest::parse(std::string_view text) {
  Sha256Digest digest;
  if (!parse_hex(text, digest.bytes)) return std::nullopt;
  return digest;
}

Sha256Digest sha256(std::span<const std::uint8_t> bytes) {
  Sha256 hasher;
  hasher.update(bytes);
  return hasher.finish();
}

}  // namespace cubist
