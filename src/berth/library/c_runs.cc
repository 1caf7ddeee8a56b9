// berth/berth.h over the C++ face of the library: studies and runs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "berth/base/json_writer.h"
#include "berth/experiment.h"
#include "berth/library/c_call.h"
#include "berth/library/file_options.h"
#include "berth/run.h"

using berth::ErrorKind;
using berth::fail;
using berth::JsonWriter;
using berth::Result;
using berth::Status;
using berth::c::check_given;
using berth::c::give_text;
using berth::c::guarded_call;
using berth::c::put_text;

struct berth_study {
  berth::Study study;
};
struct berth_trial {
  berth::Trial trial;
};
struct berth_runs {
  berth::Runs runs;
};

namespace {

berth::StudyOptions study_options(const char* state_directory) {
  berth::StudyOptions options;
  if (state_directory != nullptr) options.state_directory = state_directory;
  options.in_memory = state_directory != nullptr && *state_directory == '\0';
  return options;
}

Status give_study(Result<berth::Study> study, berth_study** to) {
  if (!study) return std::unexpected(std::move(study).error());
  *to = new berth_study{*std::move(study)};
  return {};
}

Result<berth::Metrics> metrics_of(const berth_metric* metrics, std::size_t count) {
  if (count > 0) BERTH_TRY(check_given(metrics));
  berth::Metrics all;
  for (std::size_t i = 0; i < count; ++i) {
    BERTH_TRY(check_given(metrics[i].name));
    all.emplace_back(metrics[i].name, metrics[i].value);
  }
  return all;
}

std::vector<std::string> words_of(const char* const* words) {
  std::vector<std::string> all;
  for (; words != nullptr && *words != nullptr; ++words) all.emplace_back(*words);
  return all;
}

Status give_run(const Result<berth::Run>& run, berth_run* to) {
  BERTH_TRY(run);
  berth_run made{};
  put_text(made.kind, run->kind);
  put_text(made.state, run->state);
  put_text(made.error, run->error);
  const berth::TaskCounts& counts = run->counts;
  made.waiting = counts.waiting;
  made.running = counts.running;
  made.done = counts.done;
  made.cached = counts.cached;
  made.skipped = counts.skipped;
  made.failed = counts.failed;
  made.stopped = counts.stopped;
  made.created_ms = run->created.count();
  made.ended_ms = run->ended ? run->ended->count() : 0;
  *to = made;
  return {};
}

std::string tasks_json(const std::vector<berth::Task>& tasks) {
  JsonWriter json;
  json.array();
  for (const auto& task : tasks) {
    json.object().add("label", task.label).add("state", task.state).add("attempts", task.attempts);
    if (task.exit_code) json.add("exit_code", *task.exit_code);
    json.key("params").object();
    for (const auto& [name, value] : task.params) json.add(name, value);
    json.end().key("metrics").object();
    for (const auto& [name, value] : task.metrics) json.add(name, value);
    json.end().end();
  }
  return json.end().take();
}

/// A call that has nothing but the run's name.
template <class Call>
int call_of_run(berth_runs* runs, const char* name, char* message, std::size_t message_size,
                const Call& call) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs, name));
    return call(runs->runs);
  });
}

}  // namespace

int berth_study_create(const char* document, std::size_t size, const char* state_directory,
                       berth_study** study, char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(document, study));
    return give_study(berth::Study::create({document, size}, study_options(state_directory)),
                      study);
  });
}

int berth_study_open(const char* name, const char* state_directory, berth_study** study,
                     char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(name, study));
    return give_study(berth::Study::open(name, study_options(state_directory)), study);
  });
}

void berth_study_destroy(berth_study* study) {
  delete study;
}

const char* berth_study_name(const berth_study* study) {
  return study == nullptr ? nullptr : study->study.name().c_str();
}

int berth_study_ask(berth_study* study, berth_trial** trial, std::int32_t* over, char* message,
                    std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(study, trial, over));
    BERTH_ASSIGN(auto asked, study->study.ask());
    *trial = asked.trial ? new berth_trial{*std::move(asked.trial)} : nullptr;
    *over = asked.over ? 1 : 0;
    return {};
  });
}

int berth_study_tell(berth_study* study, const berth_trial* trial, const berth_metric* metrics,
                     std::size_t count, char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(study, trial));
    BERTH_ASSIGN(const auto told, metrics_of(metrics, count));
    return study->study.tell(trial->trial, told);
  });
}

int berth_study_fail(berth_study* study, const berth_trial* trial, const char* reason,
                     char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(study, trial, reason));
    return study->study.fail(trial->trial, reason);
  });
}

int berth_study_prune(berth_study* study, const berth_trial* trial, const char* reason,
                      char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(study, trial, reason));
    return study->study.prune(trial->trial, reason);
  });
}

int berth_study_report(berth_study* study, const berth_trial* trial, const berth_metric* metrics,
                       std::size_t count, std::int32_t* should_stop, char* message,
                       std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(study, trial, should_stop));
    BERTH_ASSIGN(const auto told, metrics_of(metrics, count));
    BERTH_ASSIGN(const auto why, study->study.report(trial->trial, told));
    *should_stop = why ? 1 : 0;
    return {};
  });
}

int berth_study_renew(berth_study* study, char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(study));
    return study->study.renew();
  });
}

int berth_study_best(berth_study* study, berth_trial** trial, char* message,
                     std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(study, trial));
    BERTH_ASSIGN(auto best, study->study.best());
    *trial = best ? new berth_trial{*std::move(best)} : nullptr;
    return {};
  });
}

void berth_trial_destroy(berth_trial* trial) {
  delete trial;
}

const char* berth_trial_label(const berth_trial* trial) {
  return trial == nullptr ? nullptr : trial->trial.label.c_str();
}

const char* berth_trial_state(const berth_trial* trial) {
  return trial == nullptr ? nullptr : trial->trial.state.c_str();
}

const char* berth_trial_text(const berth_trial* trial, const char* param) {
  if (trial == nullptr || param == nullptr) return nullptr;
  const auto& params = trial->trial.params;
  const auto found = std::ranges::find(params, param, &berth::Params::value_type::first);
  return found == params.end() ? nullptr : found->second.c_str();
}

double berth_trial_number(const berth_trial* trial, const char* param) {
  if (trial == nullptr || param == nullptr) return std::numeric_limits<double>::quiet_NaN();
  return trial->trial.number(param);
}

double berth_trial_metric(const berth_trial* trial, const char* metric) {
  if (trial != nullptr && metric != nullptr)
    for (const auto& [name, value] : trial->trial.metrics)
      if (name == metric) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

int berth_runs_open(const char* state_directory, const char* program, berth_runs** runs,
                    char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs));
    berth::RunsOptions options;
    if (state_directory != nullptr) options.state_directory = state_directory;
    if (program != nullptr) options.program = program;
    BERTH_ASSIGN(auto opened, berth::Runs::open(options));
    *runs = new berth_runs{std::move(opened)};
    return {};
  });
}

void berth_runs_destroy(berth_runs* runs) {
  delete runs;
}

int berth_runs_submit(berth_runs* runs, const char* const* argv, char** name, char* message,
                      std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs, argv, name));
    BERTH_ASSIGN(const auto started, runs->runs.submit({.argv = words_of(argv)}));
    return give_text(started, name);
  });
}

int berth_runs_submit_file(berth_runs* runs, const char* file, const char* options, char** name,
                           char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs, file, name));
    BERTH_ASSIGN(const auto read,
                 berth::library::file_options(options != nullptr ? options : "{}"));
    BERTH_ASSIGN(const auto started, runs->runs.submit_file(file, read));
    return give_text(started, name);
  });
}

int berth_runs_find(berth_runs* runs, const char* name, berth_run* run, char* message,
                    std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs, name, run));
    return give_run(runs->runs.find(name), run);
  });
}

int berth_runs_wait(berth_runs* runs, const char* name, std::int64_t most_ms, berth_run* run,
                    char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs, name, run));
    if (most_ms < 0)
      return fail(ErrorKind::invalid, "most_ms: expected at least 0, got {}", most_ms);
    return give_run(runs->runs.wait(name, std::chrono::milliseconds(most_ms)), run);
  });
}

int berth_runs_tasks_json(berth_runs* runs, const char* name, char** json, char* message,
                          std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs, name, json));
    BERTH_ASSIGN(const auto tasks, runs->runs.tasks(name));
    return give_text(tasks_json(tasks), json);
  });
}

int berth_runs_output(berth_runs* runs, const char* name, const char* task, std::int32_t is_error,
                      char** text, std::size_t* size, char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs, name, task, text, size));
    BERTH_ASSIGN(const auto printed, runs->runs.output(name, task, is_error != 0));
    BERTH_TRY(give_text(printed, text));
    *size = printed.size();
    return {};
  });
}

int berth_runs_stop(berth_runs* runs, const char* name, char* message, std::size_t message_size) {
  return call_of_run(runs, name, message, message_size,
                     [&](berth::Runs& of) { return of.stop(name); });
}

int berth_runs_resume(berth_runs* runs, const char* name, char* message, std::size_t message_size) {
  return call_of_run(runs, name, message, message_size,
                     [&](berth::Runs& of) { return of.resume(name); });
}

int berth_runs_retry(berth_runs* runs, const char* name, std::int32_t all, char* message,
                     std::size_t message_size) {
  return call_of_run(runs, name, message, message_size, [&](berth::Runs& of) {
    return of.retry(name, all != 0 ? berth::Again::all : berth::Again::failed);
  });
}

int berth_runs_remove(berth_runs* runs, const char* name, char* message, std::size_t message_size) {
  return call_of_run(runs, name, message, message_size,
                     [&](berth::Runs& of) { return of.remove(name); });
}

int berth_runs_call(berth_runs* runs, const char* method, const char* path, const char* body,
                    char** answer, char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(runs, method, path, answer));
    BERTH_ASSIGN(const auto text, runs->runs.call(method, path, body != nullptr ? body : ""));
    return give_text(text, answer);
  });
}
