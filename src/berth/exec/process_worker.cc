#include "berth/exec/process_worker.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "berth/base/units.h"
#include "berth/exec/command.h"
#include "berth/exec/environment.h"
#include "berth/exec/task_container.h"
#include "berth/machine/enclosing_task.h"

namespace berth::exec {
namespace {

/// How long after a task's end a process that escaped its group may hold the task's output open.
constexpr Duration kLinger = std::chrono::milliseconds(200);
/// A group whose leader went at TERM is looked at until it is empty or its grace is over: at first
/// after so long, then twice as long each time, for a look reads all of /proc.
constexpr Duration kLookFirst = std::chrono::milliseconds(10);
constexpr Duration kLookMost = std::chrono::milliseconds(300);
/// Read at most this much of one task before the others get their turn.
constexpr std::size_t kReadsATurn = 16;
/// What a shell exits with whose last command, or under pipefail any of a pipe, had a signal.
constexpr int kPipeClosed = 128 + SIGPIPE;
constexpr std::string_view kPipeClosedText =
    "a command wrote to a pipe whose reader had ended, as sort does in `sort | head`; where that "
    "is "
    "well, say `(sort || [ $? = 141 ]) | head`";

/// "12.3 GiB of 10.0 GiB on GPU-…".
std::string describe_share(const machine::OverShare& over) {
  return fmt::format("{} of {} on {}", format_bytes(over.has), format_bytes(over.share), over.uuid);
}

}  // namespace

struct ProcessWorker::Process {
  explicit Process(ProcessWorker& worker)
      : exits(worker.env_->loop(),
              [this, &worker] {
                if (!exit) worker.on_exit(*this);
                worker.arm();
              }),
        prints(worker.env_->loop(),
               [this, &worker] {
                 worker.drain(*this, Stream::out);
                 worker.arm();
               }),
        complains(worker.env_->loop(), [this, &worker] {
          worker.drain(*this, Stream::err);
          worker.arm();
        }) {}

  TaskNumber task;
  Token token;
  Duration timeout{}, grace{};
  machine::Reservation reservation;
  std::unique_ptr<machine::Group> group;
  std::unique_ptr<TaskContainer> container;  // where the launch is isolated
  os::Child child;
  MetricReader out_metrics, err_metrics{Stream::err};
  std::string unreadable;        // a metric line, and why it is none
  std::optional<Mono> limit;     // when its time is up
  std::optional<Mono> kill_at;   // TERM was sent: when KILL follows
  std::optional<Mono> close_at;  // it has exited: when its output is closed on whoever holds it
  std::optional<os::ExitStatus> exit;
  std::optional<Mono> group_look_at;  // the leader is gone, its children still have their grace
  Duration look_pause = kLookFirst;   // until the look behind the next
  machine::GroupUsage usage;
  bool killed = false;
  Cause verdict = Cause::ok;  // ours: time_limit, stopped or gpu_memory
  GpuMemOver gpu_mem_over = GpuMemOver::unwatched;
  machine::OverShare over;  // of its devices the most that it had beyond a share
  os::Poll exits, prints, complains;
};

ProcessWorker::ProcessWorker(os::Env& env, machine::Machine& machine, machine::Groups& groups,
                             Environment environment, const std::vector<std::string>& ask_drivers)
    : env_(&env), machine_(&machine), groups_(&groups), environment_(std::move(environment)) {
  // What stands in for the hardware has no driver.
  if (ask_drivers.empty() || env.variable("BERTH_TOPOLOGY")) return;
  os::SpawnSpec program;
  program.argv = ask_drivers;
  program.environment = env.environment();
  program.directory = "/";
  guard_.emplace(env, std::move(program), [this](const machine::GuardReport& report) {
    heed(report);
    arm();
  });
}

ProcessWorker::~ProcessWorker() {
  for (auto& process : processes_) {
    if (!process->exit) (void)env_->signal_group(process->child.pid, SIGKILL);
    if (process->group) groups_->release(std::move(process->group));
  }
}

void ProcessWorker::send(const ToWorker& message) {
  if (const auto* wanted = std::get_if<Launch>(&message)) {
    Waiting waiting{*wanted, env_->now() + wanted->waits_most};
    waiting.launch.behind = unbegun_.resolve(wanted->behind);
    if (waits(waiting.launch))
      waiting_.push_back(std::move(waiting));
    else
      launch(*wanted);
  } else if (const auto* token = std::get_if<Cancel>(&message)) {
    if (Process* process = find(token->token)) end(*process, Cause::stopped);
    const auto waiting = std::ranges::find(waiting_, token->token,
                                           [](const Waiting& one) { return one.launch.token; });
    if (waiting != waiting_.end()) give_back(waiting, Cause::stopped);
  } else {
    while (!waiting_.empty()) give_back(waiting_.begin(), Cause::stopped);
    for (auto& process : processes_) {
      if (process->verdict == Cause::ok) process->verdict = Cause::stopped;
      if (!process->close_at) process->kill_at = env_->now();
    }
  }
  arm();
  if (!pending_.empty() && !wake_) due_.no_later_than(env_->now());
}

/// Whether what it stands behind runs, or waits itself.
bool ProcessWorker::waits(const Launch& launch) const {
  const auto has = [&](const auto& all, auto token_of) {
    return std::ranges::find(all, launch.behind, token_of) != all.end();
  };
  return has(processes_, [](const auto& process) { return process->token; }) ||
         has(waiting_, [](const Waiting& one) { return one.launch.token; });
}

/// Whoever stood behind it stands where it stood.
std::vector<ProcessWorker::Waiting>::iterator ProcessWorker::give_back(
    std::vector<Waiting>::iterator at, Cause cause) {
  const Launch& launch = at->launch;
  for (auto& other : waiting_)
    if (other.launch.behind == launch.token) other.launch.behind = launch.behind;
  unbegun_.add(launch.token, launch.behind);
  pending_.emplace_back(Ended{
      .task = launch.task, .token = launch.token, .cause = cause, .exit_code = {}, .detail = ""});
  return waiting_.erase(at);
}

void ProcessWorker::start_waiting(Mono now) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (!waits(at->launch)) {
      const Launch next = std::move(at->launch);
      at = waiting_.erase(at);
      launch(next);
    } else if (now >= at->until) {
      at = give_back(at, Cause::given_back);
    } else {
      ++at;
    }
  }
}

void ProcessWorker::launch(const Launch& launch) {
  const auto refuse = [&](const Error& error) {
    pending_.emplace_back(
        Ended{.task = launch.task,
              .token = launch.token,
              .cause = retryable(error.kind) ? Cause::short_of_means : Cause::cannot_start,
              .exit_code = {},
              .detail = error.message});
  };
  auto process = std::make_unique<Process>(*this);
  process->task = launch.task;
  process->token = launch.token;
  process->timeout = launch.timeout;
  process->grace = launch.grace;
  auto reservation = machine_->reserve(launch.request);
  if (!reservation) return refuse(reservation.error());
  process->reservation = *std::move(reservation);
  const machine::Block& block = process->reservation.block();

  os::SpawnSpec spec;
  spec.argv = launch.argv;
  Environment host = environment_;
  set(host, launch.surroundings);
  spec.environment = host;
  set(spec.environment, launch.environment);
  spec.directory = launch.directory;
  for (const auto& share : block.cores) spec.cores.push_back(share.core);
  set(spec.environment, "BERTH_ALLOC", machine::write_enclosing_task(*env_, launch.token, block));
  const std::int64_t cpu = block.resources.get(Known::cpu);
  if (cpu > 0) decide(spec.environment, "OMP_NUM_THREADS", fmt::format("{}", (cpu + 999) / 1000));
  for (auto& [name, value] : machine::visibility(block.devices))
    decide(spec.environment, std::move(name), std::move(value), !block.devices.empty());
  if (launch.container.isolated()) {
    auto container = TaskContainer::make(*env_, launch, block, host, spec,
                                         [this] { due_.no_later_than(env_->now()); });
    if (!container) return refuse(container.error());
    process->container = *std::move(container);
  }
  process->group = groups_->acquire(block);
  auto child = start(spec, *process, launch.enforce);
  if (!child) {
    if (process->group) groups_->release(std::move(process->group));
    Error error = child.error();
    if (error.kind == ErrorKind::not_found && is_given_to(kStrictShell, launch.argv))
      error.message += fmt::format("; {}", kNoStrictShell);
    return refuse(error);
  }
  process->child = *std::move(child);
  process->exits.watch(process->child.exited.number());
  if (launch.timeout > Duration(0)) process->limit = env_->now() + launch.timeout;
  std::string advisory = groups_->advisory(block.resources);
  if (const auto unwatched = guard(launch, *process); !unwatched.empty())
    advisory += (advisory.empty() ? "" : "; ") + unwatched;
  pending_.emplace_back(Started{launch.task, launch.token, block, std::move(advisory)});
  processes_.push_back(std::move(process));
}

/// Why its part of a device cannot be watched; empty: it can, or there is none to watch.
std::string ProcessWorker::guard(const Launch& launch, Process& process) {
  process.gpu_mem_over = launch.gpu_mem_over;
  auto parts = machine::parts_of(process.reservation.block().devices);
  if (launch.gpu_mem_over == GpuMemOver::unwatched || parts.empty()) return {};
  if (!guard_)
    return env_->variable("BERTH_TOPOLOGY") ? "" : "gpu_mem: no driver is asked by this process";
  const auto name =
      std::ranges::find(launch.environment, "BERTH_TASK", &Environment::value_type::first);
  guard_->add({.id = launch.token.value,
               .leader = process.child.pid,
               .mark = name != launch.environment.end() ? "BERTH_TASK=" + name->second : "",
               .shares = std::move(parts)});
  return {};
}

Result<os::Child> ProcessWorker::start(os::SpawnSpec& spec, Process& process, bool enforce) {
  const Resources& resources = process.reservation.block().resources;
  if (enforce && !groups_->not_held(resources).empty())
    return fail(ErrorKind::denied,
                "enforce: required, but this machine cannot hold it to its limits ({})",
                groups_->advisory(resources));
  if (process.group) {
    spec.join_files = process.group->join_files;
    if (process.group->directory) spec.group = &process.group->directory;
  }
  auto child = env_->spawn(spec);
  if (child || !process.group || child.error().kind == ErrorKind::full) return child;
  if (enforce) return fail(ErrorKind::denied, "enforce: required, but {}", child.error().message);
  // What starts without its group, but not in it, tells that the group is at fault.
  spec.join_files = {};
  spec.group = nullptr;
  auto alone = env_->spawn(spec);
  if (!alone) return child;
  groups_->release(std::move(process.group));
  groups_->give_up(child.error().message);
  return alone;
}

void ProcessWorker::heed(const machine::GuardReport& report) {
  for (const auto& [token, because] : report.advisory)
    if (const Process* process = find({token}))
      pending_.emplace_back(
          Notice{process->task, process->token, "gpu_mem is advisory only: " + because});
  for (const auto& over : report.over)
    if (Process* process = find({over.task})) heed(over, *process);
}

void ProcessWorker::heed(const machine::OverShare& over, Process& process) {
  const bool first = process.over.has == 0;
  if (over.has - over.share > process.over.has - process.over.share) process.over = over;
  // A process that cannot be told for certain is not killed for what it has.
  const bool kills = process.gpu_mem_over == GpuMemOver::kill && over.certain;
  if (first && !kills)
    pending_.emplace_back(Notice{process.task, process.token,
                                 "over its share of GPU memory: " + describe_share(over)});
  if (kills && !process.exit) end(process, Cause::gpu_memory);
}

ProcessWorker::Process* ProcessWorker::find(Token token) {
  const auto found =
      std::ranges::find(processes_, token, [](const auto& process) { return process->token; });
  return found != processes_.end() ? found->get() : nullptr;
}

/// One that is stopped hears it only when it goes on.
void ProcessWorker::terminate(const Process& process) {
  (void)env_->signal_group(process.child.pid, SIGTERM);
  (void)env_->signal_group(process.child.pid, SIGCONT);
}

void ProcessWorker::end(Process& process, Cause verdict) {
  if (process.verdict == Cause::ok) process.verdict = verdict;
  if (process.exit || process.kill_at) return;
  terminate(process);
  process.kill_at = env_->now() + process.grace;
}

void ProcessWorker::set_reading(bool reads_output) {
  reads_output_ = reads_output;
  arm();
}

void ProcessWorker::take_messages(std::vector<FromWorker>& messages) {
  std::ranges::move(pending_, std::back_inserter(messages));
  pending_.clear();
  arm();
}

/// What follows from what the processes did and from the time that has passed.
void ProcessWorker::step() {
  if (may_act_ && !may_act_()) return;
  const Mono now = env_->now();
  for (auto& process : processes_) {
    check_deadlines(*process, now);
    const bool drained = !process->child.out && !process->child.err;
    if (process->container && process->container->ending()) continue;
    if (process->close_at && (drained || now >= *process->close_at)) conclude(*process);
  }
  std::erase_if(processes_, [](const auto& process) { return process->child.pid == 0; });
  start_waiting(now);
  if (processes_.empty()) unbegun_.clear();
  arm();
}

/// What the loop waits for, as it is now. A process that has closed what it is held open for is
/// over at once.
void ProcessWorker::arm() {
  std::optional<Mono> first;
  const auto consider = [&](std::optional<Mono> at) {
    if (at && (!first || *at < *first)) first = at;
  };
  for (const auto& process : processes_) {
    const os::Child& child = process->child;
    process->exits.watch(process->exit ? -1 : child.exited.number());
    process->prints.watch(reads_output_ ? child.out.number() : -1);
    process->complains.watch(reads_output_ ? child.err.number() : -1);
    for (const auto& at : {process->limit, process->kill_at, process->group_look_at}) consider(at);
    if (process->container && process->container->ending()) continue;
    consider(process->close_at);
    if (process->close_at && !child.out && !child.err) consider(Mono{});
  }
  for (const auto& waiting : waiting_) {
    consider(waiting.until);
    if (!waits(waiting.launch)) consider(Mono{});
  }
  due_.no_later_than(first);
  if (!pending_.empty() && wake_) wake_();
}

void ProcessWorker::check_deadlines(Process& process, Mono now) {
  if (process.limit && now >= *process.limit) {
    process.limit.reset();
    if (process.verdict == Cause::ok) process.verdict = Cause::time_limit;
    if (!process.kill_at) {
      terminate(process);
      process.kill_at = now + process.grace;
    }
  }
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

void ProcessWorker::drain(Process& process, Stream stream) {
  os::Fd& fd = stream == Stream::out ? process.child.out : process.child.err;
  os::ReadBuffer buffer;
  for (std::size_t reads = 0; fd && reads < kReadsATurn; ++reads) {
    const auto got = env_->read_some(fd, buffer);
    if (got && !*got) return;
    if (!got || **got == 0) {
      fd.reset();
      return;
    }
    Output output{process.task, process.token, stream, {}};
    output.bytes.assign(buffer.data(), **got);
    if (process.container && stream == Stream::err) process.container->take_complaint(output.bytes);
    MetricReader& metrics = stream == Stream::out ? process.out_metrics : process.err_metrics;
    take(process, metrics.feed(output.bytes));
    pending_.emplace_back(std::move(output));
    if (**got < buffer.size() && !process.exit) return;
  }
}

void ProcessWorker::take(Process& process, MetricReader::Reading reading) {
  for (auto& [name, value] : reading.metrics)
    pending_.emplace_back(Metric{process.task, process.token, std::move(name), value});
  if (process.unreadable.empty() && !reading.unreadable.empty())
    process.unreadable = reading.unreadable + ": " + reading.because;
}

void ProcessWorker::on_exit(Process& process) {
  // Unless it was asked to end and has its grace, the rest of its group goes first, while the
  // unreaped leader still keeps the group's number taken.
  const bool graced = process.kill_at.has_value();
  if (!graced) (void)env_->signal_group(process.child.pid, SIGKILL);
  auto status = env_->reap(process.child);
  if (!status) {
    process.exit = os::ExitStatus{.code = 0, .signal = SIGKILL};
    process.unreadable = status.error().message;
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
  if (process.group) {
    process.usage = groups_->usage(*process.group);
    groups_->release(std::move(process.group));
  }
  if (process.container)
    process.container->end(process.verdict == Cause::ok && process.exit->signal == 0 &&
                           process.exit->code == 0);
  process.close_at = env_->now() + kLinger;
  drain(process, Stream::out);
  drain(process, Stream::err);
}

void ProcessWorker::conclude(Process& process) {
  take(process, process.out_metrics.finish());
  take(process, process.err_metrics.finish());
  const os::ExitStatus& exit = *process.exit;
  Ended ended{.task = process.task, .token = process.token, .exit_code = {}, .detail = {}};
  ended.signal = exit.signal;
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
    ended.detail = fmt::format("a child of it was killed at the limit of {}", limit);
  }
  if (ended.detail.empty() && process.over.has > 0)
    ended.detail = "it had more GPU memory than its share: " + describe_share(process.over);
  if (ended.detail.empty() && !process.unreadable.empty())
    ended.detail = fmt::format("a metric line could not be read: {}", process.unreadable);
  if (process.container && ended.cause == Cause::exit_code)
    if (auto why = process.container->why_never_started(exit.code); !why.empty()) {
      ended.cause = Cause::cannot_start;
      ended.exit_code.reset();
      ended.detail = std::move(why);
    }
  pending_.emplace_back(std::move(ended));
  process.child = {};
}

}  // namespace berth::exec
