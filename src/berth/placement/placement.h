// Which k of the available devices a job gets. Pure: numbers in, numbers out; the same question has
// the same answer whatever the order in which devices are listed, on any number of threads.
//
// Every answer has exactly k distinct available devices with all required ones, or is a typed
// error. Its kind says what can mend it:
//
// - invalid: k below 1, a device that the machine lacks, a required one that is not available, more
//   required than k, asymmetric scores (names the pair), a size that a static policy lacks.
// - busy: fewer available than k, or no group of a static policy is wholly available.
// - impossible: more than the machine has, even when all of it is free.
//
// No call that answers allocates, once a Chooser is made, on machines of up to kExactDevices.
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
/// With up to so many available every policy is exact; above, an anytime search tells its bound.
inline constexpr int kExactDevices = 16;

enum class Objective : std::uint8_t {
  sum,   // of the scores of all pairs
  min,   // the weakest pair; the sum breaks ties
  ring,  // the weakest link of the best ring through the set; the sum breaks ties
};
inline constexpr auto kObjectiveNames =
    names<Objective>({{Objective::sum, "sum"}, {Objective::min, "min"}, {Objective::ring, "ring"}});
inline constexpr int kObjectives = 3;

/// Ties are broken by the lowest indices: of two sets the one whose ascending list is the smaller.
enum class PolicyKind : std::uint8_t {
  packed,       // the best set; among equals the one that leaves the best 8-, then 4-, then 2-set
  best_effort,  // of the best partition of all available ones into sets of k, its best set
  simple,       // the lowest indices
  static_dgx1_pascal,  // the first whole group of the size, in the order that the policy lists them
  static_dgx1_volta,
  static_dgx2,
};
inline constexpr auto kPolicyNames = names<PolicyKind>({
    {PolicyKind::packed, "packed"},
    {PolicyKind::best_effort, "best-effort"},
    {PolicyKind::simple, "simple"},
    {PolicyKind::static_dgx1_pascal, "static-dgx1-pascal"},
    {PolicyKind::static_dgx1_volta, "static-dgx1-volta"},
    {PolicyKind::static_dgx2, "static-dgx2"},
});
inline constexpr int kPolicies = 6;

/// As the command line and files spell them.
constexpr std::string_view name(Objective objective) {
  return kObjectiveNames.name(objective);
}
constexpr std::string_view name(PolicyKind policy) {
  return kPolicyNames.name(policy);
}

struct Question {
  DeviceSet available = 0;
  DeviceSet required = 0;
  int count = 1;  // k
  Objective objective = Objective::sum;
};

/// Value of a set under an objective: compared first by `first`, then by `second`. A partition's is
/// the sum over its sets, so under min and ring it maximises the sum of the sets' weakest links,
/// and the sum of all pairs breaks ties. Blanks that pad a partition add nothing and weaken
/// nothing.
struct Value {
  /// sum: the sum; min, ring: the weakest link, 0 for fewer than two devices.
  std::int64_t first = 0;
  /// The sum of all pairs.
  std::int64_t second = 0;
  auto operator<=>(const Value&) const = default;
};

struct Answer {
  DeviceSet devices = 0;
  /// Of the devices under the objective.
  Value value;
  /// best_effort: the sum of `first` over the partition.
  std::optional<std::int64_t> partition_score;
  /// What the policy maximises is proven to be the greatest there is.
  bool exact = true;
  /// No set that the policy can answer has a greater value.first.
  std::int64_t bound = 0;
  /// best_effort: the same for partition_score.
  std::optional<std::int64_t> partition_bound;
};

/// A policy of the caller's own: returns the devices it chooses; they are checked.
class Policy {
 public:
  virtual ~Policy() = default;
  /// `scores`: row-major devices × devices, the diagonal 0.
  virtual DeviceSet choose(std::span<const std::int32_t> scores, int devices,
                           const Question& question) = 0;
};

/// Made once for a machine (16 devices: about 20 ms and 15 MiB; 8: 0.1 ms), then asked often.
/// Threads: one at a time (it keeps scratch space).
///
/// Above kExactDevices available: `packed` and `best_effort` search; ties of `packed` go to what
/// leaves the greatest sum of pairs, as far as the search went; a ring of more than kExactDevices
/// is the best that was found, so that its link may be weaker than the best ring's, never stronger.
class Chooser {
 public:
  /// `scores`: row-major devices × devices, each at least 0 and at most 10^6, symmetric; the
  /// diagonal is not read. `iterations` bounds the search above kExactDevices, in sets valued.
  static Result<Chooser> make(std::span<const std::int32_t> scores, int devices,
                              std::int64_t iterations = 200'000);
  Chooser(Chooser&&) noexcept;
  Chooser& operator=(Chooser&&) noexcept;
  ~Chooser();

  int devices() const;
  Result<Answer> choose(PolicyKind policy, const Question& question);
  /// What the policy returned, checked and valued; invalid: says what is wrong with it.
  Result<Answer> choose(Policy& policy, const Question& question);

  /// Of any devices of the machine; others are left out.
  Value value(DeviceSet devices, Objective objective) const;
  /// The best set of `count` out of `available`; nullopt when there are fewer.
  std::optional<Answer> best(DeviceSet available, int count, Objective objective);
  /// The best answer to the question by its objective, whatever the policy, that is not the very
  /// set of `answer`; nullopt when there is none.
  std::optional<Answer> best_alternative(const Question& question, const Answer& answer);

 private:
  struct State;
  explicit Chooser(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Keeps which devices of a machine are free: allocate any k, allocate these, free. Errors as
/// above, except that a required device which is held is busy; stale: freeing what is not held. An
/// error changes nothing.
class Allocator {
 public:
  explicit Allocator(Chooser chooser);
  Result<Answer> allocate(PolicyKind policy, int count, DeviceSet required = 0,
                          Objective objective = Objective::sum);
  Result<Answer> allocate(Policy& policy, int count, DeviceSet required = 0,
                          Objective objective = Objective::sum);
  Status allocate_these(DeviceSet devices);
  Status free(DeviceSet devices);
  DeviceSet available() const { return available_; }

 private:
  Result<Question> ask(int count, DeviceSet required, Objective objective) const;
  Result<Answer> hold(Result<Answer> answer);

  Chooser chooser_;
  DeviceSet all_ = 0, available_ = 0;
};

}  // namespace berth::placement
