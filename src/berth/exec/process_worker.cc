#include <algorithm>
#include <csignal>

#include "berth/exec/command.h"
#include "berth/exec/environment.h"
#include "berth/exec/long_command.h"
#include "berth/exec/worker_process.h"
#include "berth/machine/enclosing_task.h"
#include "berth/os/spawn.h"

namespace berth::exec {
namespace {

constexpr Duration kReapsEvery = std::chrono::seconds(10);
/// Read at most this much of one task before the others get their turn.
constexpr std::size_t kReadsATurn = 16;

}  // namespace

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
    if (!process->command_file.empty()) (void)env_->remove_file(process->command_file);
  }
  if (adopts_.value_or(false)) end_all_leftovers();
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
      if (process->verdict == Cause::ok && !process->exit) process->verdict = Cause::stopped;
      if (!process->close_at && !process->leftovers_since) process->kill_at = env_->now();
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
  pending_.emplace_back(ended_as(cause, launch.task, launch.token));
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
    const Cause cause = retryable(error.kind) ? Cause::short_of_means : Cause::cannot_start;
    pending_.emplace_back(ended_as(cause, launch.task, launch.token, error.message));
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
  spec.input = launch.input;
  for (const auto& share : block.cores) spec.cores.push_back(share.core);
  set(spec.environment, "BERTH_ALLOC", machine::write_enclosing_task(*env_, launch.token, block));
  const std::int64_t cpu = block.resources.get(Known::cpu);
  decide(spec.environment, "PYTHONUNBUFFERED", "1");  // a report is read when it is printed
  if (cpu > 0) decide(spec.environment, "OMP_NUM_THREADS", fmt::format("{}", (cpu + 999) / 1000));
  for (auto& [name, value] : machine::visibility(block.devices))
    decide(spec.environment, std::move(name), std::move(value), !block.devices.empty());
  auto fitted = fit_limits(*env_, files_, launch, spec);
  if (!fitted) return refuse(fitted.error());
  process->command_file = std::move(fitted->file);
  if (launch.container.isolated()) {
    auto container = TaskContainer::make(*env_, launch, block, host, spec,
                                         [this] { due_.no_later_than(env_->now()); });
    if (!container) return refuse(container.error());
    process->container = *std::move(container);
  }
  process->group = groups_->acquire(block);
  adopt_orphans(*process);
  auto child = start(spec, *process, launch.enforce);
  if (!child) {
    if (!process->command_file.empty()) (void)env_->remove_file(process->command_file);
    if (process->group) groups_->release(std::move(process->group));
    Error error = child.error();
    if (error.kind == ErrorKind::not_found && is_given_to(kStrictShell, launch.argv))
      error.message += fmt::format("; {}", kNoStrictShell);
    return refuse(error);
  }
  adopt_orphans(*process);
  process->child = *std::move(child);
  process->exits.watch(process->child.exited.number());
  if (launch.timeout > Duration(0)) process->limit = env_->now() + launch.timeout;
  std::string advisory = groups_->advisory(block.resources);
  if (const auto unwatched = guard(launch, *process); !unwatched.empty())
    advisory += (advisory.empty() ? "" : "; ") + unwatched;
  pending_.emplace_back(Started{launch.task, launch.token, block, std::move(advisory)});
  if (auto text = describe(*fitted); !text.empty() && noted_.insert(text).second)
    pending_.emplace_back(Notice{launch.task, launch.token, std::move(text)});
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
                "enforce: required, but this machine cannot enforce its limits ({})",
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
  // Orphans that a task leaves while it runs become zombies of this process.
  if (reaps_at_ && now >= *reaps_at_) {
    (void)env_->adopted();
    reaps_at_ = now + kReapsEvery;
  }
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
    for (const auto& at :
         {process->limit, process->kill_at, process->group_look_at, process->leftovers_look_at})
      consider(at);
    if (process->container && process->container->ending()) continue;
    consider(process->close_at);
    if (process->close_at && !child.out && !child.err) consider(Mono{});
  }
  if (!processes_.empty()) consider(reaps_at_);
  for (const auto& waiting : waiting_) {
    consider(waiting.until);
    if (!waits(waiting.launch)) consider(Mono{});
  }
  due_.no_later_than(first);
  if (!pending_.empty() && wake_) wake_();
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
    pending_.emplace_back(Metric{process.task, process.token, std::move(name), value,
                                 process.verdict == Cause::stopped});
  process.notes.take(reading);
}

}  // namespace berth::exec
