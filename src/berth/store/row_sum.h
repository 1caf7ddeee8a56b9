// A RowSum is a checksum of some columns of a row, which SQLite's file keeps next to them. The
// store checks it when it reads the row: a disk, or another program, may have changed a character
// of a text, and the result would look right. PostgreSQL has checksums of its own pages.
//
// The sums are part of the file's format: the same values have the same sum in every version. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "berth/base/ids.h"
#include "berth/base/time.h"
#include "berth/store/records.h"

namespace berth::store {

struct RowSum {
  std::optional<std::int32_t> value;  ///< It is absent in rows of an earlier Berth.
};

/// A multiplicative hash of 8 bytes at a time: it costs about a nanosecond for each.
class RowHash {
 public:
  void add(std::string_view text) {
    add_word(text.size());
    while (!text.empty()) {
      std::uint64_t word = 0;
      const std::size_t taken = text.size() < sizeof word ? text.size() : sizeof word;
      std::memcpy(&word, text.data(), taken);
      add_word(word);
      text.remove_prefix(taken);
    }
  }
  void add(std::int64_t value) { add_word(static_cast<std::uint64_t>(value)); }
  void add(int value) { add(std::int64_t{value}); }
  /// SQLite has one zero, and neither of the stores tells one NaN from another.
  void add(double value) {
    if (value != value)
      add_word(kAbsent);
    else
      add_word(std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value));
  }
  void add(Wall value) { add(std::int64_t{value.time_since_epoch().count()}); }
  template <class Tag>
  void add(Id<Tag> value) {
    add(std::int64_t{value.value});
  }
  void add(const Values& values) {
    for (const auto& [name, value] : values) {
      add(std::string_view(name));
      add(std::string_view(value));
    }
  }
  template <class Value>
  void add(const std::optional<Value>& value) {
    value ? add(*value) : add_word(kAbsent);
  }

  RowSum sum() const {
    return {static_cast<std::int32_t>(static_cast<std::uint32_t>(state_ ^ (state_ >> 32)))};
  }

 private:
  static constexpr std::uint64_t kSeed = 0x6265727468'726f77;   // any number
  static constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio, odd
  static constexpr std::uint64_t kAbsent = 0x8000'0000'0000'0001;

  void add_word(std::uint64_t word) {
    state_ = (state_ ^ word) * kFactor;
    state_ ^= state_ >> 32;
  }

  std::uint64_t state_ = kSeed;
};

template <class... Parts>
RowSum sum_of(const Parts&... values) {
  RowHash hash;
  (hash.add(values), ...);
  return hash.sum();
}

}  // namespace berth::store
