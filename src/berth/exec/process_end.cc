// How the tasks of a ProcessWorker end: by themselves, at a limit, or when they are stopped; and
// how the processes end that they leave.
#include <algorithm>
#include <csignal>

#include "berth/base/units.h"
#include "berth/exec/worker_process.h"

namespace berth::exec {
namespace {

/// How long after a task's end a process that escaped its group may hold the task's output open.
constexpr Duration kLinger = std::chrono::milliseconds(200);
/// The longest pause between two looks.
constexpr Duration kLookMost = std::chrono::milliseconds(300);
/// The pause after the first look for leftovers.
constexpr Duration kLeftoversFirst = std::chrono::milliseconds(1);
/// Leftovers of a task that KILL has not ended after so long are no longer waited for.
constexpr Duration kLeftoversMost = std::chrono::seconds(60);
/// When a note says that a task waits for its leftovers.
constexpr Duration kLeftoversNoted = std::chrono::seconds(2);
/// What a shell exits with whose last command, or under pipefail any of a pipe, had a signal.
constexpr int kPipeClosed = 128 + SIGPIPE;
constexpr std::string_view kPipeClosedText =
    "a command wrote to a pipe whose reader had ended, as sort does in `sort | head`; where that "
    "is intended, write `(sort || [ $? = 141 ]) | head`";

}  // namespace

/// One that is stopped hears it only when it goes on.
void ProcessWorker::terminate(const Process& process) {
  (void)env_->signal_group(process.child.pid, SIGTERM);
  (void)env_->signal_group(process.child.pid, SIGCONT);
}

void ProcessWorker::end(Process& process, Cause verdict) {
  if (process.exit) return;
  if (!process.kill_at) {
    // What it reported before it is asked to end counts, and so does the end that it came to.
    drain(process, Stream::out);
    drain(process, Stream::err);
    if (env_->has_exited(process.child)) return on_exit(process);
  }
  if (process.verdict == Cause::ok) process.verdict = verdict;
  if (process.kill_at) return;
  terminate(process);
  process.kill_at = env_->now() + process.grace;
}

void ProcessWorker::check_deadlines(Process& process, Mono now) {
  if (process.limit && now >= *process.limit && env_->has_exited(process.child)) on_exit(process);
  if (process.limit && now >= *process.limit) {
    process.limit.reset();
    if (process.verdict == Cause::ok) process.verdict = Cause::time_limit;
    if (!process.kill_at) {
      terminate(process);
      process.kill_at = now + process.grace;
    }
  }
  if (process.leftovers_look_at && now >= *process.leftovers_look_at) return end_leftovers(process);
  const bool over = process.kill_at && now >= *process.kill_at;
  if (process.group_look_at && (over || now >= *process.group_look_at)) {
    process.group_look_at = now + process.look_pause;
    process.look_pause = std::min(2 * process.look_pause, kLookMost);
    if (over) (void)env_->signal_group(process.child.pid, SIGKILL);
    if (over || !env_->group_alive(process.child.pid)) end_group(process);
  } else if (over && !process.exit) {
    process.kill_at.reset();
    process.killed = true;
    (void)env_->signal_group(process.child.pid, SIGKILL);
  }
}

void ProcessWorker::on_exit(Process& process) {
  // Unless it was asked to end and has its grace, the rest of its group goes first, while the
  // unreaped leader still keeps the group's number taken.
  const bool graced = process.kill_at.has_value();
  if (!graced) (void)env_->signal_group(process.child.pid, SIGKILL);
  auto status = env_->reap(process.child);
  if (!status) {
    process.exit = os::ExitStatus{.code = 0, .signal = SIGKILL};
    process.failure = status.error().message;
  } else if (*status) {
    process.exit = **status;
  } else {
    return;
  }
  process.exits.stop();
  process.limit.reset();
  if (guard_) guard_->remove(process.token.value);
  if (graced)
    process.group_look_at = env_->now();
  else
    end_group(process);
}

void ProcessWorker::end_group(Process& process) {
  process.group_look_at.reset();
  process.kill_at.reset();
  const bool contained = process.group != nullptr;
  if (process.group) {
    process.usage = groups_->usage(*process.group);
    groups_->release(std::move(process.group));
  }
  if (process.container)
    process.container->end(process.verdict == Cause::ok && process.exit->signal == 0 &&
                           process.exit->code == 0);
  if (contained || !adopts_.value_or(false)) return close_output(process);
  process.leftovers_since = env_->now();
  process.look_pause = kLeftoversFirst;
  end_leftovers(process);
}

/// Without a control group the orphans of a task become children of this process.
void ProcessWorker::adopt_orphans(const Process& process) {
  if (process.group || adopts_) return;
  adopts_ = env_->adopt_orphans().has_value();
  if (*adopts_) reaps_at_ = env_->now();
}

/// The task has its cores until what it left is gone.
void ProcessWorker::end_leftovers(Process& process) {
  const Mono now = env_->now();
  std::vector<RunningTask> running;
  for (const auto& other : processes_)
    if (!other->leftovers_since && !other->close_at)
      running.push_back({other->token, other->child.pid});
  // What belongs to the container's engine ends with the container.
  const bool waits = process.container && process.container->ending();
  process.leftovers =
      waits ? std::vector<pid_t>() : end_adopted(*env_, {&process.token, 1}, running, unmarked_);
  process.leftovers_look_at.reset();
  if (!waits && (process.leftovers.empty() || now >= *process.leftovers_since + kLeftoversMost))
    return close_output(process);
  process.leftovers_look_at = now + process.look_pause;
  process.look_pause = std::min(2 * process.look_pause, kLookMost);
  if (waits || process.leftovers_noted || now < *process.leftovers_since + kLeftoversNoted) return;
  process.leftovers_noted = true;
  pending_.emplace_back(
      Notice{process.task, process.token,
             fmt::format("it has ended; waiting at most {} for processes that it left: {}",
                         format_duration(kLeftoversMost), fmt::join(process.leftovers, ", "))});
}

/// Before this process stops working for its tasks.
void ProcessWorker::end_all_leftovers() {
  std::vector<Token> tokens;
  for (const auto& process : processes_) tokens.push_back(process->token);
  for (const Mono until = env_->now() + kLeftoversNoted; env_->now() < until;) {
    const bool lives = std::ranges::any_of(processes_, [&](const auto& process) {
      const auto exit = process->exit ? Result<std::optional<os::ExitStatus>>(process->exit)
                                      : env_->reap(process->child);
      if (exit && *exit) process->exit = **exit;
      return exit && !*exit;
    });
    if (end_adopted(*env_, tokens, {}, unmarked_).empty() && !lives) return;
    if (!env_->wait({}, env_->now() + kLeftoversFirst)) return;
  }
}

void ProcessWorker::close_output(Process& process) {
  process.close_at = env_->now() + kLinger;
  drain(process, Stream::out);
  drain(process, Stream::err);
}

void ProcessWorker::conclude(Process& process) {
  const os::ExitStatus& exit = *process.exit;
  // What a killed process left of a line may be cut within a number.
  if (exit.signal == 0 && process.verdict == Cause::ok) {
    take(process, process.out_metrics.finish());
    take(process, process.err_metrics.finish());
  }
  Ended ended{.task = process.task, .token = process.token};
  ended.signal = exit.signal;
  ended.asked_to_end = process.verdict == Cause::stopped;
  if (exit.signal == 0) ended.exit_code = exit.code;
  ended.cpu = exit.cpu;
  ended.peak_mem = process.usage.peak_mem > 0 ? process.usage.peak_mem : exit.peak_rss;
  const bool failed = exit.signal != 0 || exit.code != 0;
  const std::string limit = format_bytes(process.reservation.block().resources.get(Known::mem));
  const bool ours = process.verdict == Cause::time_limit || process.verdict == Cause::gpu_memory;
  if (process.verdict != Cause::ok && (failed || ours)) {
    ended.cause = process.verdict;
    if (process.verdict == Cause::gpu_memory)
      ended.detail = "its processes had " + describe_share(process.over);
    if (process.verdict == Cause::time_limit)
      ended.detail = fmt::format("it ran longer than {}{}", format_duration(process.timeout),
                                 process.killed ? " and ignored TERM" : "");
  } else if (failed && process.usage.oom_kills > 0) {
    ended.cause = Cause::out_of_memory;
    ended.detail = fmt::format("the kernel killed it at its limit of {}", limit);
  } else if (exit.signal != 0) {
    ended.cause = Cause::signal;
  } else if (exit.code != 0) {
    ended.cause = Cause::exit_code;
    if (exit.code == kPipeClosed) ended.detail = kPipeClosedText;
  } else if (process.usage.oom_kills > 0) {
    ended.detail = fmt::format("one of its child processes was killed at the limit of {}", limit);
  }
  if (ended.detail.empty() && process.over.has > 0)
    ended.detail = "it had more GPU memory than its share: " + describe_share(process.over);
  if (ended.detail.empty()) ended.detail = process.failure;
  if (ended.detail.empty()) ended.detail = process.notes.text();
  if (process.container && ended.cause == Cause::exit_code)
    if (auto why = process.container->why_never_started(exit.code); !why.empty()) {
      ended.cause = Cause::cannot_start;
      ended.exit_code.reset();
      ended.detail = std::move(why);
    }
  if (!process.leftovers.empty())
    ended.detail +=
        fmt::format("{}processes that it left do not end: {}", ended.detail.empty() ? "" : "; ",
                    fmt::join(process.leftovers, ", "));
  pending_.emplace_back(std::move(ended));
  if (!process.command_file.empty()) (void)env_->remove_file(process.command_file);
  process.child = {};
}

}  // namespace berth::exec
