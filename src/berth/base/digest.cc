// The plain functions of OpenSSL, not its EVP interface: that fetches a provider at run time, which
// costs every program that links it statically 4 MB and a start, and hashes no faster.
#define OPENSSL_API_COMPAT 10101

#include "berth/base/digest.h"

#include <openssl/sha.h>

namespace berth {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHA256_Init(&state_->context);
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

Digest Sha256::finish() {
  Digest digest;
  SHA256_Final(digest.bytes.data(), &state_->context);
  return digest;
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

std::string to_hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.bytes.size());
  for (const std::uint8_t byte : digest.bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

Result<Digest> parse_digest(std::string_view hex) {
  Digest digest;
  if (hex.size() == 2 * digest.bytes.size()) {
    bool valid = true;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      const int high = hex_value(hex[i]), low = hex_value(hex[i + 1]);
      valid = valid && high >= 0 && low >= 0;
      digest.bytes[i / 2] = static_cast<std::uint8_t>((high << 4) | (low & 15));
    }
    if (valid) return digest;
  }
  return fail(ErrorKind::invalid, "expected a SHA-256 digest of 64 digits 0-9a-f");
}

}  // namespace berth
