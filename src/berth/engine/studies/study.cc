#include "berth/engine/studies/study.h"

#include <array>
#include <cmath>
#include <limits>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/engine/queries/run_state.h"
#include "berth/exec/fields.h"
#include "berth/experiment/document/reading.h"
#include "berth/run/studies/study.h"
#include "berth/run/trials/search_input.h"

namespace berth::engine {
namespace {

constexpr auto kLongestLease = std::chrono::hours(24 * 365);

/// The trial's label: "17" of "digits-3/17".
Result<std::string> label_of(const Field& trial) {
  BERTH_ASSIGN(std::string text, trial.text());
  return text.substr(text.find('/') + 1);
}

Result<std::optional<Token>> token_in(const Field& request) {
  const auto field = request.find("token");
  if (!field) return std::nullopt;
  BERTH_ASSIGN(const std::int64_t token, field->integer());
  return Token{token};
}

Result<store::Numbers> metrics_in(const Field& request) {
  store::Numbers metrics;
  const auto field = request.find("metrics");
  if (!field) return metrics;
  BERTH_ASSIGN(const auto entries, field->entries());
  for (const auto& [name, value] : entries) {
    // JSON has no number that is not finite: "nan", "inf" and "-inf" are sent as text.
    const auto text = value.text();
    if (text && *text == "nan") {
      metrics.emplace_back(name, std::numeric_limits<double>::quiet_NaN());
    } else if (text && (*text == "inf" || *text == "-inf")) {
      metrics.emplace_back(name, text->starts_with('-') ? -HUGE_VAL : HUGE_VAL);
    } else {
      BERTH_ASSIGN(const double number, value.number());
      metrics.emplace_back(name, number);
    }
  }
  return metrics;
}

}  // namespace

struct StudySession::State {
  using Answer = Result<StudyAnswer>;

  Context& context;
  std::optional<run::Study> study = {};

  Answer answer(std::string_view line);
  Answer create(const Field& request, const Field& document);
  Answer open(const Field& request, const Field& name);
  Answer ask(const Field& request, const Field& value);
  Answer tell(const Field& request, const Field& trial);
  Answer release(const Field& request, const Field& trial);
  Answer report(const Field& request, const Field& trial);
  Answer suggest(const Field& request, const Field& trial);
  Answer enqueue(const Field& request, const Field& values);
  Answer samples(const Field& request, const Field& number);
  Answer best(const Field& request, const Field& value);
  Answer show(const Field& request, const Field& value);

  Answer opened(const std::string& name);
  StudyTrial shown(const store::TaskRecord* trial) const {
    return {&study->record(), &study->program(), trial};
  }
};

StudySession::State::Answer StudySession::State::answer(std::string_view line) {
  struct Request {
    std::string_view key;
    Answer (State::*answer)(const Field& request, const Field& value);
    bool opens = false;
  };
  static constexpr std::array kRequests = {
      Request{"create", &State::create, true},
      Request{"open", &State::open, true},
      Request{"ask", &State::ask},
      Request{"tell", &State::tell},
      Request{"release", &State::release},
      Request{"report", &State::report},
      Request{"suggest", &State::suggest},
      Request{"enqueue", &State::enqueue},
      Request{"samples", &State::samples},
      Request{"best", &State::best},
      Request{"show", &State::show},
  };
  BERTH_ASSIGN(const Field request, Field::parse(line, "request"));
  for (const auto& each : kRequests) {
    const auto value = request.find(each.key);
    if (!value) continue;
    if (each.opens == study.has_value())
      return fail(ErrorKind::usage, "{}: {}", each.key,
                  study ? "this process has its study already" : "expected create or open first");
    return (this->*each.answer)(request, *value);
  }
  return fail(
      ErrorKind::usage,
      "request: expected one of create, open, ask, tell, release, report, suggest, enqueue, "
      "samples, best and show; got '{}'",
      clip(line, 200));
}

StudySession::State::Answer StudySession::State::opened(const std::string& name) {
  BERTH_ASSIGN(auto found, run::Study::open(*context.store, *context.env, name,
                                            run::runs_directory(context.state_directory)));
  study.emplace(std::move(found));
  const auto& program = study->program();
  OpenedStudy opened{study->record().name, program.further_goals};
  if (program.goal) opened.goals.insert(opened.goals.begin(), *program.goal);
  return opened;
}

StudySession::State::Answer StudySession::State::create(const Field& request,
                                                        const Field& document) {
  BERTH_TRY(request.expect_keys({"create", "lease", "warm_start"}));
  BERTH_ASSIGN(const std::string text, document.text());
  BERTH_ASSIGN(auto program, experiment::read_program(text, "study"));
  BERTH_ASSIGN(const Field root, Field::parse(text, "study"));
  if (!root.find("parallel")) program.parallel = 0;  // as many as callers ask for
  if (const auto lease = request.find("lease")) {
    BERTH_ASSIGN(program.lease, exec::duration_of(*lease));
    if (program.lease < std::chrono::milliseconds(1) || program.lease > kLongestLease)
      return lease->error("expected 1ms to a year");
  }
  BERTH_ASSIGN(const std::string directory, context.env->real_path("."));
  BERTH_TRY(run::read_sequence(*context.env, directory, program));
  if (const auto earlier = request.find("warm_start")) {
    BERTH_ASSIGN(const auto runs, exec::read_names(*earlier));
    BERTH_TRY(run::begin_with(context, runs, program));
  }
  BERTH_ASSIGN(const auto run,
               run::Study::submit(*context.store, *context.env, std::move(program), directory));
  return opened(run.name);
}

StudySession::State::Answer StudySession::State::open(const Field& request, const Field& name) {
  BERTH_TRY(request.expect_keys({"open"}));
  BERTH_ASSIGN(const std::string text, name.text());
  return opened(text);
}

StudySession::State::Answer StudySession::State::ask(const Field& request, const Field&) {
  BERTH_TRY(request.expect_keys({"ask"}));
  BERTH_ASSIGN(const auto asked, study->ask());
  if (const auto* number = std::get_if<TaskNumber>(&asked)) {
    const auto& trial = study->trial(*number);
    return ClaimedTrial{shown(&trial), trial.token};
  }
  if (const auto* later = std::get_if<run::Study::Later>(&asked))
    return NoTrial{later->why, false, later->own};
  return NoTrial{std::get<run::Study::Over>(asked).why, true};
}

StudySession::State::Answer StudySession::State::tell(const Field& request, const Field& trial) {
  BERTH_TRY(request.expect_keys({"tell", "token", "state", "metrics", "reason"}));
  BERTH_ASSIGN(const std::string label, label_of(trial));
  BERTH_ASSIGN(const auto token, token_in(request));
  run::TrialEnd end;
  BERTH_TRY(experiment::read_choice(request, "state", run::TrialEnd::kKindNames, end.kind));
  BERTH_ASSIGN(end.metrics, metrics_in(request));
  if (const auto reason = request.find("reason")) {
    BERTH_ASSIGN(end.reason, reason->text());
  }
  BERTH_TRY(study->tell(label, token, end));
  return {};
}

StudySession::State::Answer StudySession::State::release(const Field& request, const Field& trial) {
  BERTH_TRY(request.expect_keys({"release", "token"}));
  BERTH_ASSIGN(const std::string label, label_of(trial));
  BERTH_ASSIGN(const auto token, token_in(request));
  BERTH_TRY(study->release(label, token));
  return {};
}

StudySession::State::Answer StudySession::State::report(const Field& request, const Field& trial) {
  BERTH_TRY(request.expect_keys({"report", "token", "metrics"}));
  BERTH_ASSIGN(const std::string label, label_of(trial));
  BERTH_ASSIGN(const auto token, token_in(request));
  BERTH_ASSIGN(const auto metrics, metrics_in(request));
  BERTH_ASSIGN(auto because, study->report(label, token, metrics));
  return PruneAdvice{std::move(because)};
}

StudySession::State::Answer StudySession::State::suggest(const Field& request, const Field& trial) {
  BERTH_TRY(request.expect_keys({"suggest", "params"}));
  BERTH_ASSIGN(const std::string label, label_of(trial));
  BERTH_ASSIGN(const Field params, request.get("params"));
  experiment::Program asked;
  BERTH_TRY(experiment::read_params(params, asked));
  experiment::Values values;
  for (const auto& parameter : asked.params) {
    BERTH_ASSIGN(std::string value, study->suggest(label, parameter, asked.types));
    values.emplace_back(parameter.name, std::move(value));
  }
  return SuggestedValues{std::move(values), &study->program().types};
}

StudySession::State::Answer StudySession::State::enqueue(const Field& request,
                                                         const Field& values) {
  BERTH_TRY(request.expect_keys({"enqueue"}));
  experiment::ValueTypes types;
  BERTH_ASSIGN(auto point, experiment::read_point(values, types));
  BERTH_ASSIGN(const TaskNumber number, study->enqueue(std::move(point), types));
  return shown(&study->trial(number));
}

StudySession::State::Answer StudySession::State::samples(const Field& request,
                                                         const Field& number) {
  BERTH_TRY(request.expect_keys({"samples"}));
  BERTH_ASSIGN(const std::int64_t samples, number.integer());
  BERTH_TRY(study->set_samples(samples));
  return {};
}

StudySession::State::Answer StudySession::State::best(const Field& request, const Field&) {
  BERTH_TRY(request.expect_keys({"best"}));
  BERTH_TRY(study->refresh());
  return shown(study->best());
}

StudySession::State::Answer StudySession::State::show(const Field& request, const Field&) {
  BERTH_TRY(request.expect_keys({"show"}));
  BERTH_TRY(study->refresh());
  BERTH_ASSIGN(const auto record, context.store->find_run(study->record().name));
  return StudyReport{{record, state_now(*context.env, record)}, &study->trials()};
}

StudySession::StudySession(Context& context) : state_(std::make_unique<State>(context)) {}
StudySession::~StudySession() = default;

Result<StudyAnswer> StudySession::answer(std::string_view request) {
  return state_->answer(request);
}

std::optional<Mono> StudySession::renew_at() const {
  return state_->study ? state_->study->renew_at() : std::nullopt;
}

Status StudySession::renew() {
  return state_->study->renew();
}

Status StudySession::end() {
  return state_->study ? state_->study->give_back() : Status();
}

}  // namespace berth::engine
