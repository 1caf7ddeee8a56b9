// Placement: which k of the available devices a job gets. The same question has the same answer
// whatever the order in which devices are listed, on any number of threads. With topology.h:
//
//   auto chooser = berth::placement::Chooser::make(*berth::topology::known_machine("dgx1-v100"));
//   berth::placement::Allocator allocator(*std::move(chooser));
//   auto answer = allocator.allocate(berth::placement::PolicyKind::packed, 2);
//   // answer->devices has bits 2 and 3; answer->value.first is 250
//   allocator.free(answer->devices);
//
// Every answer has exactly k distinct available devices that include all required ones, or is an
// error whose kind says what can help:
//
// - invalid: k is below 1, the machine lacks a device, a required device is not available, more
//   than k are required, scores are asymmetric (names the pair), or a static policy lacks the size.
// - busy: fewer than k are available, or no group of a static policy is wholly available.
// - impossible: k exceeds the machine, even when all of it is free.
//
// Scores have no unit; berth/topology.h says what each link counts. Once a Chooser is made for a
// machine of up to kExactDevices, no call that answers allocates memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/error.h"

namespace berth::topology {
struct Topology;
}

namespace berth::placement {

/// A set of devices: bit i is the i-th device; at most 64.
using DeviceSet = std::uint64_t;
inline constexpr int kMostDevices = 64;
/// With up to this many available devices every policy is exact; above, an anytime search reports
/// its bound.
inline constexpr int kExactDevices = 16;
inline constexpr std::int64_t kIterations = 200'000;  // of a search, in sets valued

enum class Objective : std::uint8_t {
  sum,   // the sum of the scores of all pairs
  min,   // the weakest pair; the sum breaks ties
  ring,  // the weakest link of the best ring through the set; the sum breaks ties
};
inline constexpr int kObjectives = 3;

/// Ties go to the lowest indices: of two sets to the one whose ascending list is the smaller.
enum class PolicyKind : std::uint8_t {
  packed,  // the best set; of equals the one with the most pairs of devices on one NUMA node, then
           // the one that leaves the best 8-, then 4-, then 2-set
  best_effort,         // the best set of the best partition of all available devices into sets of k
  simple,              // the lowest indices
  static_dgx1_pascal,  // the first available group of the size in the policy's list
  static_dgx1_volta,
  static_dgx2,
};
inline constexpr int kPolicies = 6;

/// The names as the command line and files spell them: "sum", "best-effort".
BERTH_EXPORT std::string_view name(Objective objective);
BERTH_EXPORT std::string_view name(PolicyKind policy);
/// The policy or objective of that name. Errors: invalid, with the names there are and the nearest.
BERTH_EXPORT Result<Objective> objective_named(std::string_view name);
BERTH_EXPORT Result<PolicyKind> policy_named(std::string_view name);

struct Question {
  DeviceSet available = 0;
  DeviceSet required = 0;
  int count = 1;  // k
  Objective objective = Objective::sum;
};

/// The value of a set under an objective, compared first by `first`, then by `second`. The value of
/// a partition is the sum over its sets, so under min and ring it maximises the sum of the sets'
/// weakest links, and the sum of all pairs breaks ties. A smaller last set counts with the pairs it
/// has.
struct Value {
  /// sum: the sum; min, ring: the weakest link, 0 for fewer than two devices.
  std::int64_t first = 0;
  /// The sum of all pairs.
  std::int64_t second = 0;
  auto operator<=>(const Value&) const = default;
};

struct Answer {
  DeviceSet devices = 0;
  /// The value of the devices under the objective.
  Value value;
  /// For best_effort the sum of `first` over the partition.
  std::optional<std::int64_t> partition_score;
  /// The answer is proven to maximise what the policy maximises.
  bool exact = true;
  /// An upper bound of value.first over all sets that the policy could answer.
  std::int64_t bound = 0;
  /// For best_effort the same for partition_score.
  std::optional<std::int64_t> partition_bound;
};

/// A policy of the caller. The Chooser checks the devices that it returns; to throw is invalid.
class BERTH_EXPORT Policy {
 public:
  virtual ~Policy() = default;
  /// `scores`: row-major devices × devices, the diagonal 0.
  virtual DeviceSet choose(std::span<const std::int32_t> scores, int devices,
                           const Question& question) = 0;
};

/// A Chooser is made once for a machine (16 devices: about 20 ms and 15 MiB; 8: 0.1 ms) and asked
/// often. Threads: one at a time, as it has scratch space.
///
/// With more than kExactDevices available, `packed` and `best_effort` search; ties of `packed` go
/// to the set with the most pairs on one NUMA node, then to the one that leaves the highest sum of
/// pairs, as far as the search went; a ring of more than
/// kExactDevices is the best one found, so its weakest link may be weaker than the best ring's,
/// never stronger.
class BERTH_EXPORT Chooser {
 public:
  /// `scores`: row-major devices × devices, each at least 0 and at most 10^6, symmetric; the
  /// diagonal is not read. `iterations` bounds the search above kExactDevices, in sets valued.
  /// `nodes`: the NUMA node of each device, negative if it is unknown, or nothing.
  static Result<Chooser> make(std::span<const std::int32_t> scores, int devices,
                              std::int64_t iterations = kIterations,
                              std::span<const int> nodes = {});
  /// The scores of a topology's links, and its NUMA nodes; device i is the i-th of its devices.
  static Result<Chooser> make(const topology::Topology& topology);
  Chooser(Chooser&&) noexcept;
  Chooser& operator=(Chooser&&) noexcept;
  ~Chooser();

  int devices() const;
  Result<Answer> choose(PolicyKind policy, const Question& question);
  /// Asks the caller's policy, and checks and values its answer. Errors: invalid, with what is
  /// wrong.
  Result<Answer> choose(Policy& policy, const Question& question);

  /// The value of devices; those that the machine lacks are left out.
  Value value(DeviceSet devices, Objective objective) const;
  /// The best set of `count` out of `available`; nullopt when there are fewer.
  std::optional<Answer> best(DeviceSet available, int count, Objective objective);
  /// The best answer to the question by its objective, whatever the policy, other than the set of
  /// `answer`; nullopt if there is none.
  std::optional<Answer> best_alternative(const Question& question, const Answer& answer);

 private:
  struct State;
  explicit Chooser(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Keeps which devices of a machine are free: allocate any k, allocate these, free. Errors as
/// above, except that a required device which is held is busy; stale: freeing what is not held. An
/// error changes nothing.
class BERTH_EXPORT Allocator {
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
