// Which k of the available devices a job gets. Pure: numbers in, numbers out; the same question has
// the same answer whatever the order in which devices are listed, on any number of threads.
//
// Every answer has exactly k distinct available devices with all required ones, or is a typed error:
// invalid (k below 1, an unknown or unavailable required device, asymmetric scores: names the pair),
// busy (fewer available than k). No call allocates for up to 16 devices once a Chooser is made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"

namespace berth::placement {

/// A set of devices, bit i for the i-th; at most 64.
using DeviceSet = std::uint64_t;
inline constexpr int kMostDevices = 64;
/// Up to so many every policy is exact; above, an anytime search tells its bound.
inline constexpr int kExactDevices = 16;

enum class Objective : std::uint8_t {
  sum,   // of the scores of all pairs
  min,   // the weakest pair; the sum breaks ties
  ring,  // the weakest link of the best ring through the set; the sum breaks ties
};

enum class PolicyKind : std::uint8_t {
  packed,       // the best set; among equals the one that leaves the best 8-, then 4-, then 2-set
  best_effort,  // of the best partition of all available ones into sets of k, its best set
  simple,       // the lowest indices
  static_dgx1_pascal,
  static_dgx1_volta,
  static_dgx2,
};

std::string_view name(Objective objective);
std::string_view name(PolicyKind policy);
std::optional<Objective> objective(std::string_view name);
std::optional<PolicyKind> policy(std::string_view name);

struct Question {
  DeviceSet available = 0;
  DeviceSet required = 0;
  int count = 1;  // k
  Objective objective = Objective::sum;
};

/// Value of a set under an objective: compared first by `first`, then by `second`.
struct Value {
  std::int64_t first = 0;   // sum: the sum; min, ring: the weakest link (0 for fewer than two devices)
  std::int64_t second = 0;  // the sum of all pairs
  auto operator<=>(const Value&) const = default;
};

struct Answer {
  DeviceSet devices = 0;
  Value value;                                  // of the devices under the objective
  std::optional<std::int64_t> partition_score;  // best_effort: sum over the sets of its partition
  bool exact = true;
  std::int64_t bound = 0;  // no answer has a greater value.first; equal to it when exact
};

/// A policy of the caller's own: returns the devices it chooses; they are checked.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual DeviceSet choose(std::span<const std::int32_t> scores, int devices,
                           const Question& question) = 0;
};

/// Made once for a machine, then asked often. Threads: one at a time (it keeps scratch space).
class Chooser {
 public:
  /// `scores`: row-major devices × devices, each at least 0 and at most 10^6, symmetric; the diagonal is
  /// not read. `iterations` bounds the search above kExactDevices.
  static Result<Chooser> make(std::span<const std::int32_t> scores, int devices,
                              std::int64_t iterations = 200'000);
  Chooser(Chooser&&) noexcept;
  Chooser& operator=(Chooser&&) noexcept;
  ~Chooser();

  Result<Answer> choose(PolicyKind policy, const Question& question);
  /// What the policy returned, checked and valued; invalid: says what is wrong with it.
  Result<Answer> choose(Policy& policy, const Question& question);

  Value value(DeviceSet devices, Objective objective) const;
  /// The best set of `count` out of `available`; nullopt when there are fewer.
  std::optional<Answer> best(DeviceSet available, int count, Objective objective);
  /// The best answer that shares not all devices with `answer`; nullopt when there is none.
  std::optional<Answer> best_alternative(const Question& question, const Answer& answer);

 private:
  struct State;
  explicit Chooser(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Keeps which devices of a machine are free: allocate any k, allocate these, free. Errors as above;
/// stale: freeing what is not held.
class Allocator {
 public:
  Allocator(Chooser chooser, int devices);
  Result<Answer> allocate(PolicyKind policy, int count, DeviceSet required = 0,
                          Objective objective = Objective::sum);
  Status allocate_these(DeviceSet devices);
  Status free(DeviceSet devices);
  DeviceSet available() const { return available_; }

 private:
  Chooser chooser_;
  DeviceSet all_ = 0, available_ = 0;
};

}  // namespace berth::placement
