#include "simulate/contract.h"

#include <algorithm>
#include <span>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/run/state/log_file.h"
#include "berth/schedule/schedule.h"

namespace berth::simulate {
namespace {

std::string variable(const os::SpawnSpec& spec, std::string_view name) {
  for (const auto& [key, value] : spec.environment)
    if (key == name) return value;
  return "";
}

std::string list_of(const std::vector<store::AttemptRecord>& attempts) {
  std::vector<std::string> lines;
  for (const auto& one : attempts)
    lines.push_back(fmt::format("token {} on {}: {} {}", one.token.value, one.host,
                                exec::describe(one.cause, one.exit_code, one.signal), one.detail));
  return join(lines, "; ");
}

/// An agent has written in its journal what came of a task.
constexpr Duration kJournalWithin = std::chrono::seconds(1);

/// What came just before a runner died, or was to be recorded again, may stand there twice.
bool is_all_there(std::string_view logged, std::string_view printed) {
  constexpr std::size_t kEnds = 1000;
  return logged.size() >= printed.size() && logged.starts_with(printed.substr(0, kEnds)) &&
         logged.ends_with(printed.substr(printed.size() - std::min(kEnds, printed.size())));
}

/// It was lost so often in a row that it is not tried any more.
bool was_lost_for_good(std::span<const store::AttemptRecord> attempts) {
  const auto most = static_cast<std::size_t>(schedule::Options{}.infrastructure_failures);
  return attempts.size() >= most &&
         std::ranges::all_of(attempts.last(most), [](const store::AttemptRecord& attempt) {
           return attempt.cause == exec::Cause::worker_lost ||
                  attempt.cause == exec::Cause::short_of_means;
         });
}

}  // namespace

void Contract::breach(std::string what) {
  if (!broken_)
    broken_ = fmt::format("at {}: {}", format_duration(kernel_.now() - Mono{}), std::move(what));
}

os::FakeProgram Contract::started(const os::SpawnSpec& spec, const std::string& machine,
                                  const os::FakeEnv* by) {
  const auto name = variable(spec, "BERTH_TASK");
  const auto slash = name.find('/');
  if (slash == std::string::npos) {
    breach(fmt::format("{} runs on {}, and is no task", join(spec.argv, " "), machine));
    return {};
  }
  Execution execution{.run = name.substr(0, slash),
                      .label = name.substr(slash + 1),
                      .machine = machine,
                      .token = {parse_integer(variable(spec, "BERTH_TOKEN")).value_or(0)},
                      .cpu_milli = 1000,
                      .devices = {},
                      .output = {},
                      .exit_code = {},
                      .by = by};
  for (const auto device : split(variable(spec, "CUDA_VISIBLE_DEVICES"), ','))
    if (!device.empty()) execution.devices.emplace_back(device);
  check_that_it_was_not_done(execution);
  const auto wanted = expected(execution.run, execution.label);
  const std::pair key(execution.run, execution.token.value);
  const std::pair task(execution.run, execution.label);
  const int exit_code = failures_[task] < wanted.failures ? 7 : 0;
  execution.output = fmt::format("::berth score={}\n", execution.token.value) +
                     std::string(wanted.output, 'o') + "\n";
  const auto [at, is_new] = executions_.emplace(key, execution);
  if (!is_new) breach(fmt::format("{} was started twice as token {}", name, key.second));
  alive_.insert(key);
  last_activity_ = kernel_.now();
  return {.duration = wanted.duration,
          .out = execution.output,
          .exit_code = exit_code,
          .ignores_term = execution.token.value % 5 == 0,
          .at_end =
              [this, key, task, exit_code] {
                Execution& one = executions_.at(key);
                one.exit_code = exit_code;
                one.alive = false;
                one.ended = last_activity_ = kernel_.now();
                if (exit_code != 0) ++failures_[task];
                alive_.erase(key);
              },
          .at_kill =
              [this, key] {
                executions_.at(key).alive = false;
                last_activity_ = kernel_.now();
                alive_.erase(key);
              }};
}

void Contract::died(const os::FakeEnv& process, bool writes) {
  for (auto& [_, one] : executions_) {
    const bool lately = kernel_.now() - one.ended < kJournalWithin;
    if (one.by == &process && (lately || !writes)) one.by = nullptr;
  }
}

void Contract::taken_over(const std::string& run) {
  const auto record = durable_.find_run(run);
  if (record->counts.stopped > 0)
    breach(fmt::format("{} runs, and {} tasks of it are stopped", run, record->counts.stopped));
}

/// Of an attempt whose start was recorded.
void Contract::check_that_it_was_not_done(const Execution& next) {
  const auto run = durable_.find_run(next.run);
  if (may_run_again(*run)) return;
  const auto attempts = durable_.attempts(run->id, durable_.find_task(run->id, next.label)->number);
  for (const auto& attempt : *attempts) {
    const auto found = executions_.find({next.run, attempt.token.value});
    if (found == executions_.end() || found->second.exit_code != 0) continue;
    if (keeps_work.contains(next.run) || found->second.by != nullptr)
      breach(fmt::format("{}/{} was done as token {}, and runs again: {}", next.run, next.label,
                         attempt.token.value, list_of(*attempts)));
  }
}

void Contract::froze(const std::string& machine) {
  for (const auto& key : alive_)
    if (Execution& one = executions_.at(key); one.machine == machine) one.was_frozen = true;
}

void Contract::shown(const std::string& run, const run::TaskEnd& end) {
  const auto record = durable_.find_run(run);
  const auto task = durable_.find_task(record->id, end.label);
  if (end.again || task->state == end.state) return;
  breach(fmt::format("{}/{} was shown as {}, and is {} in the store", run, end.label,
                     store::name(end.state), store::name(task->state)));
}

std::string Contract::recorded(const Execution& one) {
  const auto run = durable_.find_run(one.run);
  return list_of(*durable_.attempts(run->id, durable_.find_task(run->id, one.label)->number));
}

void Contract::check() {
  if (trace)
    for (const auto& key : alive_)
      if (traced_.insert(key).second)
        fmt::print("{:>10} {}/{} runs on {} as token {}\n", format_duration(kernel_.now() - Mono{}),
                   key.first, executions_.at(key).label, executions_.at(key).machine, key.second);
  std::map<std::pair<std::string, std::string>, const Execution*> by_task;
  std::map<std::string, std::int64_t> cpu;
  std::map<std::pair<std::string, std::string>, const Execution*> by_device;
  for (const auto& key : alive_) {
    const Execution& one = executions_.at(key);
    if (const auto [other, is_new] = by_task.emplace(std::pair(one.run, one.label), &one);
        !is_new && !one.was_frozen && !other->second->was_frozen)
      breach(fmt::format("{}/{} runs twice: on {} as token {}, on {} as token {} ({})", one.run,
                         one.label, one.machine, one.token.value, other->second->machine,
                         other->second->token.value, recorded(one)));
    for (const auto& device : one.devices)
      if (!by_device.emplace(std::pair(one.machine, device), &one).second)
        breach(fmt::format("{} of {} is given to two tasks", device, one.machine));
    if ((cpu[one.machine] += one.cpu_milli) > cores_of_a_machine * 1000)
      breach(fmt::format("{} has {} cores, and more tasks run there", one.machine,
                         cores_of_a_machine));
  }
}

void Contract::check_ended(const store::RunRecord& run, os::Env& home,
                           const std::string& run_directory, bool disturbed) {
  store::Counts counts;
  const auto tasks = durable_.tasks(run.id);
  for (const auto& task : *tasks) {
    ++counts.of(task.state);
    const bool waits_for_failed = run.kind == "flow" && run.state == store::RunState::failed;
    if (!store::final(task.state) && waits_for_failed) continue;
    if (!store::final(task.state))
      breach(
          fmt::format("{} has ended, and {} is {}", run.name, task.label, store::name(task.state)));
    check_attempts(run, task, home, run_directory, disturbed);
  }
  if (counts != run.counts) breach(run.name + ": its counts are not those of its tasks");
}

void Contract::check_attempts(const store::RunRecord& run, const store::TaskRecord& task,
                              os::Env& home, const std::string& run_directory, bool disturbed) {
  const std::string name = run.name + "/" + task.label;
  int done = 0, failed = 0;
  const auto attempts = durable_.attempts(run.id, task.number);
  for (const auto& attempt : *attempts) {
    const auto found = executions_.find({run.name, attempt.token.value});
    const Execution* const one = found == executions_.end() ? nullptr : &found->second;
    const bool ended_itself =
        attempt.cause == exec::Cause::ok || attempt.cause == exec::Cause::exit_code;
    if (!attempt.ended) breach(fmt::format("{}: token {} has no end", name, attempt.token.value));
    if (attempt.cause == exec::Cause::superseded)
      breach(fmt::format("{}: token {} is superseded: {}", name, attempt.token.value,
                         list_of(*attempts)));
    if (!ended_itself && is_peaceful && attempt.cause != exec::Cause::stopped)
      breach(fmt::format("{}: nothing happened, and {}", name, list_of(*attempts)));
    if (!ended_itself) continue;
    ++(attempt.cause == exec::Cause::ok ? done : failed);
    if (one == nullptr || !one->exit_code || one->exit_code != attempt.exit_code) {
      breach(fmt::format("{}: token {} is recorded as ended by itself, and did not", name,
                         attempt.token.value));
      continue;
    }
    if (attempt.host != one->machine)
      breach(fmt::format("{}: token {} ran on {}, recorded is {}", name, attempt.token.value,
                         one->machine, attempt.host));
    std::string output;
    if (auto log = run::LogReader::open(home, run_directory)) {
      log->seek(attempt.log_begin);
      (void)log->read(attempt.token, [&](const run::LogFrame& frame) { output += frame.bytes; });
    }
    if (disturbed ? !is_all_there(output, one->output) : output != one->output)
      breach(fmt::format("{}: token {} printed {} bytes, {} are in the log", name,
                         attempt.token.value, one->output.size(), output.size()));
  }
  const int own = expected(run.name, task.label).failures;
  const int wanted = task.state == store::TaskState::done ? 1 : 0;
  if (done != wanted && !(done > wanted && may_run_again(run)))
    breach(fmt::format("{} is {} with {} completions: {}", name, store::name(task.state), done,
                       list_of(*attempts)));
  if (task.state == store::TaskState::done && failed > own)
    breach(fmt::format("{} failed {} times by itself, recorded are {}", name, own, failed));
  if (failed > retries + (task.state == store::TaskState::failed ? 1 : 0))
    breach(fmt::format("{} failed {} times by itself, and has {} retries: {}", name, failed,
                       retries, list_of(*attempts)));
  if (task.state == store::TaskState::failed && failed != retries + 1 &&
      !was_lost_for_good(*attempts) && !may_run_again(run))
    breach(fmt::format("{} is failed for good after {} failures of its own and {} retries: {}",
                       name, failed, retries, list_of(*attempts)));
  // What a runner had kept before it was killed, the next one finds.
  const bool found = run.kind == "flow" && task.state == store::TaskState::cached;
  if (!found && task.state != store::TaskState::failed && task.state != store::TaskState::done)
    breach(fmt::format("{} is {}", name, store::name(task.state)));
  if (task.state == store::TaskState::done &&
      task.metrics != store::Numbers{{"score", static_cast<double>(attempts->back().token.value)}})
    breach(name + " has not the score that it printed");
}

void Contract::check_nothing_runs() {
  for (const auto& key : alive_) {
    const Execution& one = executions_.at(key);
    breach(fmt::format("{}/{} still runs on {} as token {}", one.run, one.label, one.machine,
                       one.token.value));
  }
}

}  // namespace berth::simulate
