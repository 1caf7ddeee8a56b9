// What a study tries next, and which of its trials should end early.
#include <algorithm>

#include "berth/base/rng.h"
#include "berth/base/text.h"
#include "berth/experiment/own_point.h"
#include "berth/experiment/proposers/space.h"
#include "berth/run/studies/study.h"

namespace berth::run {
namespace {

using experiment::Parameter;
using experiment::Search;
using experiment::TrialReport;
using experiment::ValueTypes;
using store::TaskState;

/// So many points are drawn ahead, at first; then twice as many.
constexpr std::int64_t kFirstPoints = 64;

/// Whether a point is found by its number, so that leaving one out does no harm.
bool drawn(const Search& search) {
  return search.method == Search::Method::random || search.method == Search::Method::sobol;
}

bool same_space(const Parameter& one, const Parameter& other) {
  return one.choices == other.choices && one.min == other.min && one.max == other.max &&
         one.scale == other.scale && one.integer == other.integer && one.step == other.step;
}

/// Whether the choices have the same types in both.
bool same_types(const Parameter& parameter, const ValueTypes& one, const ValueTypes& other) {
  return std::ranges::all_of(parameter.choices, [&](const std::string& choice) {
    const std::pair value(parameter.name, choice);
    return one.texts.contains(value) == other.texts.contains(value) &&
           one.json.contains(value) == other.json.contains(value);
  });
}

/// Replaces what is known of the parameter's values.
void set_types(ValueTypes& types, const std::string& parameter, const ValueTypes& by) {
  for (const auto kind : {&ValueTypes::texts, &ValueTypes::json}) {
    std::erase_if(types.*kind, [&](const auto& value) { return value.first == parameter; });
    for (const auto& value : by.*kind)
      if (value.first == parameter) (types.*kind).insert(value);
  }
  if (by.floats.contains(parameter)) types.floats.insert(parameter);
}

}  // namespace

void Study::begin_search() {
  proposer_ = adaptive(program_.search) ? make_proposer(program_) : nullptr;
  points_.clear();
  next_point_ = counted_ = 0;
  tried_.clear();
  proposal_.reset();
  stopper_.reset();
  fed_.clear();
  unfed_.clear();
  if (program_.early_stop) stopper_.emplace(*program_.early_stop, *program_.goal);
}

void Study::tell_proposer(const store::TaskRecord& trial) {
  proposal_.reset();
  const auto state = trial.state == TaskState::failed ? TrialReport::State::failed
                     : trial.state == TaskState::done ? TrialReport::State::done
                                                      : TrialReport::State::open;
  if (proposer_)
    proposer_->tell(experiment::report_of(program_, trial.number.value, {trial.label, trial.params},
                                          state, trial.metrics));
}

const std::optional<experiment::Proposal>& Study::proposal() {
  if (!proposal_) proposal_ = proposer_ ? proposer_->ask() : next_point();
  return *proposal_;
}

/// Of a search that knows its points beforehand. A random one draws them ahead; a grid leaves out
/// those that somebody has tried already.
std::optional<experiment::Proposal> Study::next_point() {
  const std::int64_t number = std::ssize(trials_) + 1;
  const bool by_number = drawn(program_.search);
  if (by_number && number > program_.search.samples) return std::nullopt;
  if (points_.empty() || (by_number && number > std::ssize(points_))) {
    experiment::Program some = program_;
    if (by_number)
      some.search.samples = std::min(program_.search.samples, std::max(kFirstPoints, 2 * number));
    auto points = experiment::propose(some);
    if (points) points_ = *std::move(points);  // who submitted it has counted them
  }
  if (by_number) {
    if (number > std::ssize(points_)) return std::nullopt;
    return experiment::Proposal{fmt::format("{}", number),
                                points_[static_cast<std::size_t>(number - 1)]};
  }
  for (; counted_ < trials_.size(); ++counted_) ++tried_[trials_[counted_].params];
  for (; next_point_ < points_.size(); ++next_point_) {
    const auto tried = tried_.find(points_[next_point_]);
    if (tried == tried_.end() || tried->second == 0)
      return experiment::Proposal{fmt::format("{}", number), points_[next_point_]};
    --tried->second;
  }
  return std::nullopt;
}

/// Whether it is another one now.
Result<bool> Study::reread_program() {
  BERTH_ASSIGN(const auto run, store_.find_run(run_.name));
  BERTH_ASSIGN(auto program, experiment::from_json_text(run.spec_json));
  if (experiment::to_json_text(program) == experiment::to_json_text(program_)) return false;
  program_ = std::move(program);
  BERTH_TRY(reload());
  return true;
}

Status Study::set_samples(std::int64_t samples) {
  BERTH_TRY(reread_program());
  const auto method = program_.search.method;
  if (method == Search::Method::grid || method == Search::Method::sequence)
    return fail(ErrorKind::usage, "samples: a {} takes every point",
                Search::kMethodNames.name(method));
  if (samples < 1 || samples > experiment::kMostTrials)
    return fail(ErrorKind::invalid, "samples: expected 1 to {}, got {}", experiment::kMostTrials,
                samples);
  program_.search.samples = samples;
  BERTH_TRY(store_.apply(run_.id, {{store::RunSpecified{experiment::to_json_text(program_)}}}));
  return reload();
}

/// Whether trials may ask for what the space lacks.
bool Study::may_grow() const {
  const auto method = program_.search.method;
  return method == Search::Method::automatic || method == Search::Method::tpe ||
         method == Search::Method::random;
}

/// By suggest(): so a trial need not have it.
bool Study::was_added(const Parameter& parameter) const {
  return parameter.when.empty() &&
         std::ranges::find(program_.optional, parameter.name) != program_.optional.end();
}

Result<store::Values> Study::check_point(store::Values given) const {
  const auto added = [&](const Parameter& parameter) { return was_added(parameter); };
  const bool grows =
      may_grow() && (program_.params.empty() || std::ranges::any_of(program_.params, added));
  return check_own_point(program_, std::move(given), grows);
}

Result<TaskNumber> Study::enqueue(store::Values given, const ValueTypes& types) {
  BERTH_ASSIGN(given, check_point(std::move(given)));
  BERTH_TRY(note_types(given, types));
  Rng rng(env_.random());
  const auto next = given.size() < program_.params.size() ? proposal() : std::nullopt;
  const auto values = completed(program_.params, given, next ? next->params : store::Values{}, rng);
  for (;;) {
    BERTH_TRY(refresh());
    const TaskNumber number{std::ssize(trials_) + 1};
    const auto applied =
        store_.apply(run_.id, {{store::TasksAdded{{{fmt::format("{}", number.value), values}}}}});
    if (!applied && applied.error().kind == ErrorKind::exists) continue;
    if (!applied) return std::unexpected(applied.error());
    BERTH_TRY(refresh());
    return number;
  }
}

/// Records the types of values whose parameters the space does not have yet.
Status Study::note_types(const store::Values& given, const ValueTypes& types) {
  bool is_new = false;
  for (const auto kind : {&ValueTypes::texts, &ValueTypes::json})
    for (const auto& value : types.*kind) {
      const bool known = std::ranges::find(program_.params, value.first, &Parameter::name) !=
                         program_.params.end();
      if (!known && std::ranges::find(given, value) != given.end())
        is_new = (program_.types.*kind).insert(value).second || is_new;
    }
  if (is_new)
    BERTH_TRY(store_.apply(run_.id, {{store::RunSpecified{experiment::to_json_text(program_)}}}));
  return {};
}

/// The parameter of the space, which it is added to where it is new.
Result<const Parameter*> Study::known(const Parameter& parameter,
                                      const experiment::ValueTypes& types) {
  const auto find = [&]() -> const Parameter* {
    const auto found = std::ranges::find(program_.params, parameter.name, &Parameter::name);
    return found == program_.params.end() ? nullptr : &*found;
  };
  if (find() == nullptr) BERTH_TRY(reread_program());
  if (const auto* own = find()) {
    if (same_space(*own, parameter) && same_types(*own, program_.types, types)) return own;
    return fail(ErrorKind::invalid, "{}: the space of {} has it as {}, got {}", parameter.name,
                run_.name, space_text(*own), space_text(parameter));
  }
  if (!may_grow())
    return fail(ErrorKind::invalid,
                "{}: the space of {} has no such parameter, and grows only with the methods "
                "auto, tpe and random",
                parameter.name, run_.name);
  program_.params.push_back(parameter);
  program_.optional.push_back(parameter.name);
  set_types(program_.types, parameter.name, types);
  BERTH_TRY(store_.apply(run_.id, {{store::RunSpecified{experiment::to_json_text(program_)}}}));
  const auto kept = trials_;  // with what was suggested and is not recorded yet
  BERTH_TRY(reload());
  for (const auto& [number, token] : claims_)
    trials_[static_cast<std::size_t>(number.value - 1)].params =
        kept[static_cast<std::size_t>(number.value - 1)].params;
  return find();
}

Result<std::string> Study::suggest(const std::string& label, const Parameter& parameter,
                                   const experiment::ValueTypes& types) {
  BERTH_ASSIGN(const TaskNumber number, find(label));
  if (!claims_.contains(number))
    return fail(ErrorKind::stale, "{}/{} is not claimed here", run_.name, clip(label));
  BERTH_ASSIGN(const Parameter* const own, known(parameter, types));
  suggested_[number].insert(parameter.name);
  auto& params = trials_[static_cast<std::size_t>(number.value - 1)].params;
  const auto given = std::ranges::find(params, parameter.name, &store::Values::value_type::first);
  if (given != params.end()) {
    auto value = experiment::value_of(*own, given->second, program_.types);
    if (!value)
      return std::unexpected(within("this trial", not_in_space(*own, given->second).error()));
    given->second = *std::move(value);
    return given->second;
  }
  Rng rng(mix(program_.search.seed) ^ mix(static_cast<std::uint64_t>(number.value)) ^
          std::hash<std::string>{}(parameter.name));
  params.emplace_back(parameter.name, experiment::draw(*own, rng));
  return params.back().second;
}

/// What the trial was proposed and did not ask for it has not tried.
void Study::forget_unsuggested(const store::TaskRecord& trial, Token token,
                               std::vector<store::Change>& changes) {
  const auto suggested = suggested_.find(trial.number);
  if (suggested == suggested_.end()) return;
  store::Values params = trial.params;
  std::erase_if(params, [&](const auto& value) {
    const auto parameter = std::ranges::find(program_.params, value.first, &Parameter::name);
    return parameter != program_.params.end() && was_added(*parameter) &&
           !suggested->second.contains(value.first);
  });
  changes.emplace_back(store::ParamsSet{trial.number, token, std::move(params)});
}

/// Tells the stopper of all reports that it has not heard, others' and our own.
Status Study::feed_stopper() {
  if (!stopper_) return {};
  for (const TaskNumber number : std::vector(unfed_.begin(), unfed_.end()))
    BERTH_TRY(feed_stopper(number));
  return {};
}

Status Study::feed_stopper(TaskNumber number) {
  using End = experiment::EarlyStopper::End;
  const store::TaskRecord& trial = this->trial(number);
  if (trial.state == TaskState::waiting || trial.state == TaskState::stopped) return {};
  auto [fed, is_new] = fed_.try_emplace(number);
  if (is_new || fed->second.token != trial.token) {
    fed->second = {trial.token, 0, std::nullopt};
    stopper_->begin(number.value);
  }
  BERTH_ASSIGN(const auto metrics, store_.metrics(run_.id, number, fed->second.sequence));
  for (const auto& metric : metrics) {
    fed->second.sequence = metric.sequence;
    if (metric.token != trial.token || metric.name != program_.goal->metric) continue;
    auto because = stopper_->report(number.value, metric.value);
    if (because && !fed->second.because) fed->second.because = std::move(because);
  }
  if (!store::final(trial.state)) return {};
  stopper_->end(number.value, trial.state != TaskState::done   ? End::failed
                              : trial.cause == exec::Cause::ok ? End::completed
                                                               : End::stopped_early);
  fed_.erase(fed);
  unfed_.erase(number);
  return {};
}

}  // namespace berth::run
