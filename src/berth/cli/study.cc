// berth study: a search whose trials a program carries out, in any language: requests come as lines
// of JSON on standard input, and each is answered by one line on standard output
// (docs/reference/python.md).
#include <unistd.h>

#include <array>
#include <cmath>
#include <limits>

#include "berth/base/document.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/cli/json_output.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/engine/run_json.h"
#include "berth/engine/run_state.h"
#include "berth/engine/shown_run.h"
#include "berth/exec/fields.h"
#include "berth/experiment/reading.h"
#include "berth/run/search_input.h"
#include "berth/run/study.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLongestRequest = 16U << 20;  // bytes of a line
constexpr auto kLongestLease = std::chrono::hours(24 * 365);

struct StudyOptions {
  void add_to(Options& options) {
    options.always_json();
    options.footer(
        "Each line of standard input is a request, each line of standard output its answer\n"
        "(see docs/reference/python.md).\n"
        "\n"
        "Example:\n"
        "  echo '{\"open\":\"digits-3\"}' | berth study");
  }
};

class StudySession {
 public:
  StudySession(os::Env& env, run::Context& context) : env_(env), context_(context) {}

  /// The answer to a request, a line.
  std::string answer(std::string_view line) {
    auto said = answered(line);
    if (said) return *std::move(said) + "\n";
    const Error& error = said.error();
    JsonWriter json;
    json.object().key("error").object().add("kind", name(error.kind));
    json.add("message", error.message).add("code", exit_code(error.kind));
    return json.end().end().take() + "\n";
  }
  std::optional<Mono> renew_at() const { return study_ ? study_->renew_at() : std::nullopt; }
  Status renew() { return study_->renew(); }
  Status end() { return study_ ? study_->give_back() : Status(); }

 private:
  using Answer = Result<std::string>;
  Answer answered(std::string_view line);
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
  std::string trial_json(const store::TaskRecord& trial) const {
    return std::string(trim(engine::task_json(study_->record(), trial, study_->program())));
  }

  os::Env& env_;
  run::Context& context_;
  std::optional<run::Study> study_;
};

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

StudySession::Answer StudySession::answered(std::string_view line) {
  struct Request {
    std::string_view key;
    Answer (StudySession::*answer)(const Field& request, const Field& value);
    bool opens = false;
  };
  static constexpr std::array kRequests = {
      Request{"create", &StudySession::create, true},
      Request{"open", &StudySession::open, true},
      Request{"ask", &StudySession::ask},
      Request{"tell", &StudySession::tell},
      Request{"release", &StudySession::release},
      Request{"report", &StudySession::report},
      Request{"suggest", &StudySession::suggest},
      Request{"enqueue", &StudySession::enqueue},
      Request{"samples", &StudySession::samples},
      Request{"best", &StudySession::best},
      Request{"show", &StudySession::show},
  };
  BERTH_ASSIGN(const Field request, Field::parse(line, "request"));
  for (const auto& each : kRequests) {
    const auto value = request.find(each.key);
    if (!value) continue;
    if (each.opens == study_.has_value())
      return fail(ErrorKind::usage, "{}: {}", each.key,
                  study_ ? "this process has its study already" : "expected create or open first");
    return (this->*each.answer)(request, *value);
  }
  return fail(
      ErrorKind::usage,
      "request: expected one of create, open, ask, tell, release, report, suggest, enqueue, "
      "samples, best and show; got '{}'",
      clip(line, 200));
}

StudySession::Answer StudySession::opened(const std::string& name) {
  BERTH_ASSIGN(auto study, run::Study::open(*context_.store, env_, name,
                                            run::runs_directory(context_.state_directory)));
  study_.emplace(std::move(study));
  JsonWriter json;
  json.object().add("study", study_->record().name).key("goals").array();
  const auto add = [&](const experiment::Goal& goal) {
    json.object().add("metric", goal.metric).add("direction", goal.maximize ? "max" : "min").end();
  };
  if (study_->program().goal) add(*study_->program().goal);
  for (const auto& goal : study_->program().further_goals) add(goal);
  return json.end().end().take();
}

StudySession::Answer StudySession::create(const Field& request, const Field& document) {
  BERTH_TRY(request.expect_keys({"create", "lease", "warm_start"}));
  BERTH_ASSIGN(const std::string text, document.text());
  BERTH_ASSIGN(auto program, experiment::read_program(text, "study"));
  BERTH_ASSIGN(const Field root, Field::parse(text, "study"));
  if (!root.find("parallel")) program.parallel = 0;  // of however many ask
  if (const auto lease = request.find("lease")) {
    BERTH_ASSIGN(program.lease, exec::duration_of(*lease));
    if (program.lease < std::chrono::milliseconds(1) || program.lease > kLongestLease)
      return lease->error("expected 1ms to a year");
  }
  BERTH_ASSIGN(const std::string directory, env_.real_path("."));
  BERTH_TRY(run::read_sequence(env_, directory, program));
  if (const auto earlier = request.find("warm_start")) {
    BERTH_ASSIGN(const auto runs, exec::read_names(*earlier));
    BERTH_TRY(run::begin_with(context_, runs, program));
  }
  BERTH_ASSIGN(const auto run,
               run::Study::submit(*context_.store, env_, std::move(program), directory));
  return opened(run.name);
}

StudySession::Answer StudySession::open(const Field& request, const Field& name) {
  BERTH_TRY(request.expect_keys({"open"}));
  BERTH_ASSIGN(const std::string text, name.text());
  return opened(text);
}

StudySession::Answer StudySession::ask(const Field& request, const Field&) {
  BERTH_TRY(request.expect_keys({"ask"}));
  BERTH_ASSIGN(const auto asked, study_->ask());
  JsonWriter json;
  json.object();
  if (const auto* number = std::get_if<TaskNumber>(&asked))
    json.key("trial")
        .raw(trial_json(study_->trial(*number)))
        .add("token", study_->trial(*number).token.value);
  else if (const auto* later = std::get_if<run::Study::Later>(&asked)) {
    json.add("later", later->why);
    if (!later->own.empty()) {
      json.key("own").array();
      for (const auto& label : later->own) json.value(label);
      json.end();
    }
  } else
    json.add("over", std::get<run::Study::Over>(asked).why);
  return json.end().take();
}

StudySession::Answer StudySession::tell(const Field& request, const Field& trial) {
  BERTH_TRY(request.expect_keys({"tell", "token", "state", "metrics", "reason"}));
  BERTH_ASSIGN(const std::string label, label_of(trial));
  BERTH_ASSIGN(const auto token, token_in(request));
  run::TrialEnd end;
  BERTH_TRY(experiment::read_choice(request, "state", run::TrialEnd::kKindNames, end.kind));
  BERTH_ASSIGN(end.metrics, metrics_in(request));
  if (const auto reason = request.find("reason")) {
    BERTH_ASSIGN(end.reason, reason->text());
  }
  BERTH_TRY(study_->tell(label, token, end));
  return std::string("{}");
}

StudySession::Answer StudySession::release(const Field& request, const Field& trial) {
  BERTH_TRY(request.expect_keys({"release", "token"}));
  BERTH_ASSIGN(const std::string label, label_of(trial));
  BERTH_ASSIGN(const auto token, token_in(request));
  BERTH_TRY(study_->release(label, token));
  return std::string("{}");
}

StudySession::Answer StudySession::report(const Field& request, const Field& trial) {
  BERTH_TRY(request.expect_keys({"report", "token", "metrics"}));
  BERTH_ASSIGN(const std::string label, label_of(trial));
  BERTH_ASSIGN(const auto token, token_in(request));
  BERTH_ASSIGN(const auto metrics, metrics_in(request));
  BERTH_ASSIGN(const auto because, study_->report(label, token, metrics));
  JsonWriter json;
  json.object().key("prune");
  if (because)
    json.value(*because);
  else
    json.raw("null");
  return json.end().take();
}

StudySession::Answer StudySession::suggest(const Field& request, const Field& trial) {
  BERTH_TRY(request.expect_keys({"suggest", "params"}));
  BERTH_ASSIGN(const std::string label, label_of(trial));
  BERTH_ASSIGN(const Field params, request.get("params"));
  experiment::Program asked;
  BERTH_TRY(experiment::read_params(params, asked));
  experiment::Values values;
  for (const auto& parameter : asked.params) {
    BERTH_ASSIGN(std::string value, study_->suggest(label, parameter, asked.types));
    values.emplace_back(parameter.name, std::move(value));
  }
  const std::string json = values_json(values, study_->program().types);
  return JsonWriter().object().key("values").raw(json).end().take();
}

StudySession::Answer StudySession::enqueue(const Field& request, const Field& values) {
  BERTH_TRY(request.expect_keys({"enqueue"}));
  experiment::ValueTypes types;
  BERTH_ASSIGN(auto point, experiment::read_point(values, types));
  BERTH_ASSIGN(const TaskNumber number, study_->enqueue(std::move(point), types));
  return JsonWriter().object().key("trial").raw(trial_json(study_->trial(number))).end().take();
}

StudySession::Answer StudySession::samples(const Field& request, const Field& number) {
  BERTH_TRY(request.expect_keys({"samples"}));
  BERTH_ASSIGN(const std::int64_t samples, number.integer());
  BERTH_TRY(study_->set_samples(samples));
  return std::string("{}");
}

StudySession::Answer StudySession::best(const Field& request, const Field&) {
  BERTH_TRY(request.expect_keys({"best"}));
  BERTH_TRY(study_->refresh());
  JsonWriter json;
  json.object().key("trial");
  const auto* best = study_->best();
  json.raw(best == nullptr ? "null" : trial_json(*best));
  return json.end().take();
}

StudySession::Answer StudySession::show(const Field& request, const Field&) {
  BERTH_TRY(request.expect_keys({"show"}));
  BERTH_TRY(study_->refresh());
  BERTH_ASSIGN(const auto record, context_.store->find_run(study_->record().name));
  const engine::ShownRun shown{record, engine::state_now(env_, record)};
  return std::string(trim(engine::show_json(shown, study_->trials())));
}

/// The lines of standard input, and what they are answered, until its end or a stop signal.
Result<int> study(os::Env& env, const StudyOptions&) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const os::Fd in, env.open_read("/dev/stdin"));
  os::install_stop_signals();
  StudySession session(env, context);
  // Its children may hold the pipe open when whoever started us has died.
  const pid_t parent = ::getppid();
  std::string typed;
  std::array<char, 1U << 16> buffer;
  for (bool ended = false; !ended && env.stop_signals() == 0 && ::getppid() == parent;) {
    std::array<os::Watch, 1> watches{os::Watch{.fd = in.number()}};
    BERTH_TRY(env.wait(watches, session.renew_at()));
    if (const auto due = session.renew_at(); due && env.now() >= *due && ::getppid() == parent)
      (void)
          session.renew();  // it is tried again; who lost a claim is told so with its next request
    if (!watches.front().ready) continue;
    BERTH_ASSIGN(const auto got, env.read_some(in, buffer));
    if (!got) continue;
    ended = *got == 0;
    typed.append(buffer.data(), *got);
    if (typed.size() > kLongestRequest)
      return fail(ErrorKind::invalid, "request: longer than {} bytes", kLongestRequest);
    std::size_t begin = 0;
    for (std::size_t end; (end = typed.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (const auto line = trim(std::string_view(typed).substr(begin, end - begin)); !line.empty())
        print(session.answer(line));
    typed.erase(0, begin);
  }
  BERTH_TRY(session.end());
  return env.stop_signals() > 0 ? exit_code(ErrorKind::interrupted) : 0;
}

}  // namespace

Command study_command() {
  return command("study", "Serve a search to a program that runs the trials itself", study);
}

}  // namespace berth::cli
