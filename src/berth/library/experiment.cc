// berth/experiment.h over the studies of run/.
#include "berth/experiment.h"

#include <algorithm>
#include <limits>

#include "berth/base/units.h"
#include "berth/run/state/context.h"
#include "berth/run/state/layout.h"
#include "berth/run/studies/study.h"
#include "berth/run/trials/search_input.h"

namespace berth {

struct Study::State {
  std::unique_ptr<os::Env> env = os::posix_env();
  std::unique_ptr<store::Store> store;
  std::optional<run::Study> study;
  std::string runs;  ///< The directory of the store's runs; "" for a store in memory.

  ~State() {
    if (study) (void)study->give_back();
  }

  Status open_store(const StudyOptions& options) {
    if (options.in_memory) {
      store = store::memory_store();
      return {};
    }
    BERTH_ASSIGN(auto context, options.state_directory.empty()
                                   ? run::open_context(*env)
                                   : run::open_context(*env, options.state_directory));
    store = std::move(context.store);
    runs = run::runs_directory(context.state_directory);
    return {};
  }
  Status begin(const std::string& name) {
    BERTH_ASSIGN(auto opened, run::Study::open(*store, *env, name, runs));
    study.emplace(std::move(opened));
    return {};
  }
  Status end(const Trial& trial, run::TrialEnd::Kind kind, const Metrics& metrics,
             const std::string& reason) {
    return study->tell(trial.label, Token{trial.token}, {kind, metrics, reason});
  }
};

namespace {

Trial trial_of(const store::TaskRecord& record) {
  return {record.label, record.params, std::string(store::name(record.state)), record.metrics,
          record.token.value};
}

}  // namespace

std::string_view Trial::text(std::string_view param) const {
  const auto found = std::ranges::find(
      params, param, [](const auto& each) { return std::string_view(each.first); });
  return found == params.end() ? std::string_view() : found->second;
}

double Trial::number(std::string_view param) const {
  const auto number = parse_number(text(param));
  return number ? *number : std::numeric_limits<double>::quiet_NaN();
}

Study::Study(std::unique_ptr<State> state) : state_(std::move(state)) {}
Study::Study(Study&&) noexcept = default;
Study& Study::operator=(Study&&) noexcept = default;
Study::~Study() = default;

Result<Study> Study::create(std::string_view document, const StudyOptions& options) {
  BERTH_ASSIGN(auto program, experiment::read_program(document, "study"));
  auto state = std::make_unique<State>();
  BERTH_TRY(state->open_store(options));
  BERTH_ASSIGN(const std::string directory, state->env->real_path("."));
  BERTH_TRY(run::read_sequence(*state->env, directory, program));
  BERTH_ASSIGN(const auto run,
               run::Study::submit(*state->store, *state->env, std::move(program), directory));
  BERTH_TRY(state->begin(run.name));
  return Study(std::move(state));
}

Result<Study> Study::open(const std::string& name, const StudyOptions& options) {
  auto state = std::make_unique<State>();
  BERTH_TRY(state->open_store(options));
  BERTH_TRY(state->begin(name));
  return Study(std::move(state));
}

const std::string& Study::name() const {
  return state_->study->record().name;
}

Result<Asked> Study::ask() {
  BERTH_ASSIGN(const auto asked, state_->study->ask());
  if (const auto* number = std::get_if<TaskNumber>(&asked))
    return Asked{.trial = trial_of(state_->study->trial(*number))};
  if (const auto* later = std::get_if<run::Study::Later>(&asked))
    return Asked{.trial = {}, .over = false, .why = later->why};
  return Asked{.trial = {}, .over = true, .why = std::get<run::Study::Over>(asked).why};
}

Status Study::tell(const Trial& trial, const Metrics& metrics) {
  return state_->end(trial, run::TrialEnd::Kind::done, metrics, "");
}

Status Study::fail(const Trial& trial, const std::string& reason) {
  return state_->end(trial, run::TrialEnd::Kind::failed, {}, reason);
}

Status Study::prune(const Trial& trial, const std::string& reason) {
  return state_->end(trial, run::TrialEnd::Kind::pruned, {}, reason);
}

Result<std::optional<std::string>> Study::report(const Trial& trial, const Metrics& metrics) {
  return state_->study->report(trial.label, Token{trial.token}, metrics);
}

Result<Trial> Study::enqueue(const Params& params) {
  BERTH_ASSIGN(const TaskNumber number, state_->study->enqueue(params));
  return trial_of(state_->study->trial(number));
}

Status Study::set_samples(std::int64_t samples) {
  return state_->study->set_samples(samples);
}

Result<std::vector<Trial>> Study::trials() {
  BERTH_TRY(state_->study->refresh());
  std::vector<Trial> trials;
  for (const auto& record : state_->study->trials()) trials.push_back(trial_of(record));
  return trials;
}

Result<std::optional<Trial>> Study::best() {
  BERTH_TRY(state_->study->refresh());
  const auto* best = state_->study->best();
  return best == nullptr ? std::nullopt : std::optional(trial_of(*best));
}

Status Study::renew() {
  return state_->study->renew();
}

std::optional<std::chrono::milliseconds> Study::renew_within() const {
  const auto at = state_->study->renew_at();
  if (!at) return std::nullopt;
  const Duration left = std::max(*at - state_->env->now(), Duration{});
  return std::chrono::duration_cast<std::chrono::milliseconds>(left);
}

std::vector<std::string_view> search_methods() {
  const auto& names = experiment::Search::kMethodNames.all();
  return {names.begin(), names.end()};
}

}  // namespace berth
