// Strong ids: a RunId is never taken for a token. An id is never issued twice.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace berth {

template <class Tag>
struct Id {
  std::int64_t value = 0;
  auto operator<=>(const Id&) const = default;
};

/// A run, as the store numbers it.
using RunId = Id<struct RunTag>;
/// A task within its run, counted from 1.
using TaskNumber = Id<struct TaskNumberTag>;
/// Fences one attempt: greater than every token given before in the same run.
using Token = Id<struct TokenTag>;

}  // namespace berth

template <class Tag>
struct std::hash<berth::Id<Tag>> {
  std::size_t operator()(berth::Id<Tag> id) const noexcept {
    return std::hash<std::int64_t>{}(id.value);
  }
};
