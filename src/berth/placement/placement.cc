#include "berth/placement/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/guarded.h"
#include "berth/base/text.h"
#include "berth/placement/anytime.h"
#include "berth/placement/exact.h"
#include "berth/placement/groups.h"
#include "berth/topology.h"

namespace berth::placement {
namespace {

template <class Kind, std::size_t kCount>
Result<Kind> kind_named(std::string_view text, const Names<Kind, kCount>& names) {
  if (const auto kind = names.value(text)) return *kind;
  const auto meant = nearest(text, names.all());
  return fail(ErrorKind::invalid, "expected {}, got '{}'{}", listed(names), clip(text),
              meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

Status check(const Question& question, DeviceSet all) {
  const auto& [available, required, count, objective] = question;
  const int devices = size(all);
  if (count < 1) return fail(ErrorKind::invalid, "expected at least 1 device, got {}", count);
  if (static_cast<std::size_t>(objective) >= kObjectives)
    return fail(ErrorKind::invalid, "no such objective: {}", static_cast<int>(objective));
  if ((available & ~all) != 0)
    return fail(ErrorKind::invalid, "available {}: the machine has {} devices, from 0",
                text(available & ~all), devices);
  if ((required & ~all) != 0)
    return fail(ErrorKind::invalid, "required {}: the machine has {} devices, from 0",
                text(required & ~all), devices);
  if ((required & ~available) != 0)
    return fail(ErrorKind::invalid, "required {} not among the available {}",
                text(required & ~available), text(available));
  if (size(required) > count)
    return fail(ErrorKind::invalid, "{} devices requested, {} required", count, text(required));
  if (count > devices)
    return fail(ErrorKind::impossible, "{} devices requested, the machine has {}", count, devices);
  if (count > size(available))
    return fail(ErrorKind::busy, "{} devices requested, {} available: {}", count, size(available),
                text(available));
  return {};
}

DeviceSet lowest_indices(const Question& question) {
  DeviceSet set = question.required;
  for (DeviceSet pool = question.available & ~set; size(set) < question.count; pool &= pool - 1)
    set |= lowest(pool);
  return set;
}

Result<DeviceSet> whole_group(PolicyKind policy, const Question& question, DeviceSet all) {
  const std::span<const DeviceSet> known = groups(policy, question.count);
  if (known.empty())
    return fail(ErrorKind::invalid, "{} gives {} devices, not {}", name(policy),
                fmt::join(group_sizes(policy), ", "), question.count);
  bool could_be = false;
  for (const DeviceSet group : known) {
    if ((group & ~all) != 0 || (question.required & ~group) != 0) continue;
    if ((group & ~question.available) == 0) return group;
    could_be = true;
  }
  return could_be ? fail(ErrorKind::busy, "{} has no group of {} that is wholly available in {}",
                         name(policy), question.count, text(question.available))
                  : fail(ErrorKind::impossible, "{} has no group of {} with {} on this machine",
                         name(policy), question.count, text(question.required));
}

Status check_choice(DeviceSet set, const Question& question) {
  const auto wrong = [&](const std::string& what) {
    return fail(ErrorKind::invalid, "the policy chose {}: {}", text(set), what);
  };
  if ((set & ~question.available) != 0)
    return wrong(fmt::format("{} not available", text(set & ~question.available)));
  if (size(set) != question.count)
    return wrong(fmt::format("{} devices, {} requested", size(set), question.count));
  if ((question.required & ~set) != 0)
    return wrong(fmt::format("without the required {}", text(question.required & ~set)));
  return {};
}

}  // namespace

std::string_view name(Objective objective) {
  return kObjectiveNames.name(objective);
}

std::string_view name(PolicyKind policy) {
  return kPolicyNames.name(policy);
}

Result<Objective> objective_named(std::string_view name) {
  return kind_named(name, kObjectiveNames);
}

Result<PolicyKind> policy_named(std::string_view name) {
  return kind_named(name, kPolicyNames);
}

struct Chooser::State {
  Scores scores;
  std::int64_t iterations;
  std::optional<Exact> exact;  // of all devices, or of the few that were last asked about

  /// Tables that hold the question's devices; nullptr when these are too many.
  Exact* tables_for(DeviceSet available) {
    if (size(available) > kExactDevices) return nullptr;
    if (!exact || (available & ~exact->members()) != 0) exact.emplace(scores, available);
    return &*exact;
  }

  Value value(DeviceSet set, Objective objective) const {
    if (exact && (set & ~exact->members()) == 0) return exact->value(set, objective);
    return value_of(scores, set, objective);
  }

  Answer answer(DeviceSet set, Objective objective) const {
    Answer made;
    made.devices = set;
    made.value = value(set, objective);
    made.bound = made.value.first;
    return made;
  }

  std::optional<Answer> best(const Question& question, DeviceSet excluded = 0) {
    if (const Exact* tables = tables_for(question.available)) {
      const DeviceSet set = tables->best(question, excluded);
      if (set == 0) return std::nullopt;
      return answer(set, question.objective);
    }
    const Found found = find_set(scores, question, iterations, excluded);
    if (found.devices == 0) return std::nullopt;
    Answer made = answer(found.devices, question.objective);
    made.exact = found.bound <= made.value;
    made.bound = std::max(made.value, found.bound).first;
    return made;
  }

  Answer best_effort(const Question& question) {
    if (Exact* tables = tables_for(question.available)) {
      const BestEffort::Choice choice = tables->best_effort(question);
      Answer made = answer(choice.devices, question.objective);
      made.partition_score = made.partition_bound = placement::value(choice.partition).first;
      return made;
    }
    const FoundPartition found = find_partition(scores, question, iterations);
    Answer made = answer(found.devices, question.objective);
    made.partition_score = found.score;
    made.partition_bound = found.bound;
    made.exact = found.bound == found.score;
    const Limits limits(scores, question.available, question.count, question.objective);
    made.bound = limits.of(question.required, question.available & ~question.required).first;
    return made;
  }
};

Chooser::Chooser(std::unique_ptr<State> state) : state_(std::move(state)) {}
Chooser::Chooser(Chooser&&) noexcept = default;
Chooser& Chooser::operator=(Chooser&&) noexcept = default;
Chooser::~Chooser() = default;

Result<Chooser> Chooser::make(std::span<const std::int32_t> row_major, int devices,
                              std::int64_t iterations, std::span<const int> nodes) {
  BERTH_ASSIGN(Scores scores, Scores::make(row_major, devices));
  if (!nodes.empty() && std::ssize(nodes) != devices)
    return fail(ErrorKind::invalid, "{} NUMA nodes for {} devices", nodes.size(), devices);
  if (!nodes.empty()) scores.set_nodes(nodes);
  if (iterations < 1)
    return fail(ErrorKind::invalid, "{} iterations, at least 1 is needed", iterations);
  Chooser made(std::make_unique<State>(std::move(scores), iterations, std::nullopt));
  if (devices <= kExactDevices) made.state_->tables_for(first(devices));
  return made;
}

Result<Chooser> Chooser::make(const topology::Topology& topology) {
  BERTH_TRY(topology::check(topology));
  const std::size_t count = topology.devices.size();
  std::vector<std::int32_t> scores(count * count);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b)
      if (a != b) scores[a * count + b] = topology::score(topology.link(a, b));
  std::vector<int> nodes;
  for (const auto& device : topology.devices) nodes.push_back(device.numa);
  return make(scores, static_cast<int>(count), kIterations, nodes);
}

int Chooser::devices() const {
  return state_->scores.devices();
}

Result<Answer> Chooser::choose(PolicyKind policy, const Question& question) {
  BERTH_TRY(check(question, state_->scores.all()));
  switch (policy) {
    case PolicyKind::packed: return *state_->best(question);
    case PolicyKind::best_effort: return state_->best_effort(question);
    case PolicyKind::simple: return state_->answer(lowest_indices(question), question.objective);
    case PolicyKind::static_dgx1_pascal:
    case PolicyKind::static_dgx1_volta:
    case PolicyKind::static_dgx2: break;
  }
  BERTH_ASSIGN(const DeviceSet group, whole_group(policy, question, state_->scores.all()));
  return state_->answer(group, question.objective);
}

Result<Answer> Chooser::choose(Policy& policy, const Question& question) {
  BERTH_TRY(check(question, state_->scores.all()));
  const Scores& scores = state_->scores;
  BERTH_ASSIGN(const DeviceSet set, guarded("the policy", [&] {
                 return policy.choose(scores.row_major(), scores.devices(), question);
               }));
  BERTH_TRY(check_choice(set, question));
  return state_->answer(set, question.objective);
}

Value Chooser::value(DeviceSet devices, Objective objective) const {
  return state_->value(devices & state_->scores.all(), objective);
}

std::optional<Answer> Chooser::best(DeviceSet available, int count, Objective objective) {
  const Question question{available & state_->scores.all(), 0, count, objective};
  if (!check(question, state_->scores.all())) return std::nullopt;
  return state_->best(question);
}

std::optional<Answer> Chooser::best_alternative(const Question& question, const Answer& answer) {
  if (!check(question, state_->scores.all())) return std::nullopt;
  return state_->best(question, answer.devices);
}

}  // namespace berth::placement
