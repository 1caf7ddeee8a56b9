// The algebra of resources: named quantities in exact integers, all non-negative.
//
//   berth::Resources wanted;
//   wanted.set(berth::Known::cpu, 1500);                             // thousandths of a core
//   wanted.set("mem", *berth::parse_amount("mem", "10G"));           // bytes
//   if (!total.covers(wanted)) std::cerr << total.first_short(wanted) << " is short";
//
// Units: cpu and names of a person's own in thousandths; mem, disk and gpu_mem in bytes; gpu and
// gpu_slots are counts. The six known names have a fixed place, so that the common vector costs no
// allocation; names that a person adds stand beside them in order. Every operation is checked: an
// amount that would overflow or fall below zero is an error, never a wrapped number. Values belong
// to the caller; any thread may have its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/error.h"

namespace berth {

/// In the order in which they are refused and shown: scarcest first.
enum class Known : std::uint8_t { gpu, gpu_slots, gpu_mem, cpu, mem, disk };
inline constexpr std::size_t kKnownCount = 6;

/// How an amount is counted and written.
enum class Measure : std::uint8_t {
  milli,  // thousandths: cpu (cores) and names of a person's own
  bytes,  // mem, disk, gpu_mem
  count,  // gpu, gpu_slots
};

/// "cpu", "gpu_mem".
BERTH_EXPORT std::string_view name(Known known);
BERTH_EXPORT Measure measure(std::string_view resource);

class BERTH_EXPORT Resources {
 public:
  Resources() = default;

  std::int64_t get(Known known) const { return known_[static_cast<std::size_t>(known)]; }
  std::int64_t get(std::string_view resource) const;
  /// An amount below 0 counts as 0: there is nothing of it.
  void set(Known known, std::int64_t amount);
  void set(std::string_view resource, std::int64_t amount);

  bool empty() const;
  bool operator==(const Resources&) const = default;

  /// Whether every amount of `part` is at most ours.
  bool covers(const Resources& part) const;
  /// The first name, scarcest first, of which `part` has more than we; empty when covered.
  std::string_view first_short(const Resources& part) const;

  /// impossible: when a sum does not fit 64 bits. Unchanged on error.
  Status add(const Resources& other);
  /// impossible: when `other` is not covered. Unchanged on error.
  Status subtract(const Resources& other);
  /// Every amount `times` over, times >= 0.
  Result<Resources> times(std::int64_t times) const;
  /// How many `unit`s fit side by side, at most `most`; `most` when the unit is empty.
  std::int64_t fits(const Resources& unit, std::int64_t most) const;

  /// Calls visit(name, amount) for every amount that is not 0, known names first.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < kKnownCount; ++i)
      if (known_[i] != 0) visit(name(static_cast<Known>(i)), known_[i]);
    for (const auto& [custom, amount] : custom_) visit(std::string_view(custom), amount);
  }

 private:
  std::array<std::int64_t, kKnownCount> known_{};
  std::vector<std::pair<std::string, std::int64_t>> custom_;  // by name, no zero amounts
};

/// The least a holder can use, and how many such minimums it could use side by side.
struct Requirements {
  Resources min;
  std::int64_t width = 1;
};

/// Whether there is anything that a process can be held to: an amount of memory, or a part of a
/// core (whole ones are lent by number).
BERTH_EXPORT bool has_limits(const Resources& resources);

/// [a-z][a-z0-9_]*, at most 64 characters: what a name of a person's own may be.
BERTH_EXPORT bool valid_resource_name(std::string_view resource);

/// One amount as written: "1.5" of cpu, "10G" of mem, "2" of gpu. invalid: says what was wanted.
BERTH_EXPORT Result<std::int64_t> parse_amount(std::string_view resource, std::string_view text);
/// "1.5", "9.3 GiB", "2".
BERTH_EXPORT std::string format_amount(std::string_view resource, std::int64_t amount);
/// {"cpu":1.5,"mem":1073741824}: cores as a number, bytes exact.
BERTH_EXPORT std::string to_json(const Resources& resources);
/// "cpu 1.5, mem 9.3 GiB"; "nothing" when empty. The same text in logs, refusals and tables.
BERTH_EXPORT std::string to_string(const Resources& resources);

}  // namespace berth
