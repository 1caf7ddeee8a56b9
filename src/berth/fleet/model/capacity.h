// How many accelerators of a type there are for a fleet, and how they are bought.
//
// Pure values; any thread. Money in cents an hour.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "berth/base/result.h"

namespace berth::fleet {

/// How capacity is bought; the first is used up before the next.
enum class PurchaseKind : std::uint8_t {
  reserved,   // paid for whether it is used or not
  on_demand,  // paid for where it is used
  spot        // the same, and may be taken away: for servers that allow it
};

struct Purchase {
  std::int64_t count = 0;
  double cost = 0;  // of a unit of the type
  bool operator==(const Purchase&) const = default;
};

struct Capacity {
  std::int64_t count = 0;  // of one type
  /// Which add up to it; none: a unit costs what its accelerator does. Only optimal without mixes
  /// and without a power budget has them.
  std::map<PurchaseKind, Purchase> purchases{};
  bool operator==(const Capacity&) const = default;
};

std::string_view name(PurchaseKind kind);

/// Errors: invalid, with the field and what was found.
Status check(const Capacity& capacity);

}  // namespace berth::fleet
