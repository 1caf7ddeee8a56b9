// SHA-256: what names a content.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "berth/base/result.h"

namespace berth {

struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
};

/// 64 digits, lower case.
std::string to_hex(const Digest& digest);
/// invalid: not what to_hex() gives.
Result<Digest> parse_digest(std::string_view hex);

Digest sha256(std::string_view bytes);

/// The same, of bytes that come one part after another.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  ~Sha256();

  void add(std::string_view bytes);
  /// Once, at the end.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth

template <>
struct std::hash<berth::Digest> {
  std::size_t operator()(const berth::Digest& digest) const noexcept {
    std::size_t value = 0;  // any of its bytes are as good as a hash
    std::memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};
