// How the loop takes a run over, where the run stands, and how it ends.
#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/run/drive/drive.h"
#include "berth/run/state/skips.h"

namespace berth::run {
namespace {

/// For so long another machine is sought for a task that failed on one, which could run it again.
constexpr Duration kSeeksElsewhere = std::chrono::seconds(20);
/// The maximum time for which the end of a run waits for the number of files on other machines.
constexpr Duration kCountsMost = std::chrono::seconds(6);

std::string to_json(const cluster::Alloc& alloc) {
  JsonWriter json;
  json.object().add("id", fmt::format("{:x}", alloc.id.value)).add("machine", alloc.machine);
  return json.key("block").raw(machine::to_json(alloc.block)).end().take();
}

}  // namespace

Drive::Drive(Context& context, store::RunRecord record, std::unique_ptr<Workload> workload,
             Observer& observer, Sources sources, machine::Ledger ledger, LogWriter log,
             RecoveredAgents recovered)
    : context_(context),
      run_{.env = *context.env,
           .observer = observer,
           .record = std::move(record),
           .workload = std::move(workload),
           .directory = run_directory(context, run_.record.name)},
      recorder_(run_, *context.store, std::move(log), [this] { on_durable(); }),
      leases_(run_, context, std::move(sources), std::move(ledger)),
      workers_(run_, context),
      attempts_(
          run_, recorder_, workers_,
          [this](WorkerSlot* slot, const exec::Ended& ended) { on_attempt_end(slot, ended); }),
      recovery_(run_, workers_, leases_, attempts_, std::move(recovered)),
      devices_(run_, context, workers_, leases_, attempts_) {}

Status Drive::take_over() {
  const auto self = run_.env.self();
  const auto last_try = run_.record.last_try;
  BERTH_ASSIGN(run_.record, context_.store->take_over(run_.record.id, self.pid, self.started_at,
                                                      run_.env.wall(), recovery_.tokens()));
  run_.record.last_try = last_try;
  BERTH_ASSIGN(run_.tasks, context_.store->tasks(run_.record.id));
  BERTH_TRY(run_.workload->take_over(run_.tasks));
  taken_over_ = run_.env.wall();
  const bool had_alloc =
      run_.record.state == store::RunState::running ||
      std::ranges::any_of(run_.tasks, [](const auto& task) { return task.attempts > 0; });
  state_ = had_alloc ? store::RunState::running : store::RunState::queued;
  recorder_.begin();
  std::vector<schedule::Task> tasks;
  tasks.reserve(run_.tasks.size());
  for (const auto& task : run_.tasks) {
    BERTH_ASSIGN(const auto history, history_of(*context_.store, run_.record.id, task));
    if (history != AttemptHistory()) run_.histories.emplace(task.number.value, history);
    tasks.push_back(run_.scheduled(task));
  }
  const std::int64_t failed = recorder_.progress().counts.failed;
  run_.scheduler.emplace(schedule::Options{
      .epoch = run_.record.epoch,
      .seed = run_.options().seed,
      .parallel = run_.options().parallel,
      .stop_on_failure = run_.options().stop_on_failure,
      .allowed_failures = std::max<std::int64_t>(0, run_.options().allow_failures - failed),
      .seeks_elsewhere = kSeeksElsewhere});
  run_.scheduler->add(tasks, run_.effects);
  recorder_.add(store::RunMoved{state_, taken_over_, {}});
  recorder_.add(store::RunStepped{.to = phase_, .tries = tries_, .last_try = last_try});
  return recorder_.commit();
}

Status Drive::begin(std::int64_t tries, const std::vector<TaskNumber>& only) {
  tries_ = tries;
  run_.only.insert(only.begin(), only.end());
  BERTH_TRY(take_over());
  BERTH_TRY(find_devices(context_, run_.options().most, run_.options().gpus));
  BERTH_ASSIGN(run_.machine, leases_.largest());
  for (const auto& [number, _] : run_.histories)
    run_.scheduler->resize({number}, run_.scheduled(run_.task({number})).resources);
  devices_.begin();
  do {
    BERTH_TRY(advance());
    if (run_.workload->wants_commit()) BERTH_TRY(recorder_.commit());
  } while (more_ && !recovery_.tokens().empty() && !run_.error && run_.env.stop_signals() == 0);
  recovery_.join();
  more_ = true;  // what was recovered may have made something possible, and nothing runs: not over
  return recorder_.commit();  // with what dead agents had reported; then they are forgotten
}

/// Records the phase with the primary allocation, if that has changed.
void Drive::step() {
  const WorkerSlot* first = workers_.primary();
  const auto now = first == nullptr ? std::nullopt : std::optional(first->lease.alloc.id);
  if (now == primary_) return;
  primary_ = now;
  phase_ = store::Phase::eval;
  if (state_ == store::RunState::queued) {
    state_ = store::RunState::running;
    recorder_.add(store::RunMoved{state_, run_.env.wall(), {}});
  }
  recorder_.add(store::RunStepped{.to = phase_,
                                  .alloc = now ? to_json(first->lease.alloc) : "",
                                  .tries = tries_,
                                  .last_try = run_.record.last_try});
}

/// Keeps the primary alloc of a run that failed, for the next runner: the reason may be mended
/// soon.
void Drive::retain() {
  WorkerSlot* kept = workers_.primary();
  if (kept == nullptr || !kept->apart) return;
  kept->worker->acknowledge();
  kept->worker->retain(run_.options().retain);
  run_.scheduler->left(kept->id);
  workers_.take([&](const WorkerSlot& slot) { return &slot == kept; });
  run_.observer.on_note(
      fmt::format("its allocation is kept for {}: berth retry {}, or berth stop {}",
                  format_duration(run_.options().retain), run_.record.name, run_.record.name));
}

/// The state in which the run ends, by what its tasks have come to.
store::RunState Drive::outcome() const {
  const store::Counts& counts = recorder_.progress().counts;
  const bool stopped = run_.env.stop_signals() > 0 || !run_.only.empty();
  const bool failed = run_.error || counts.failed > run_.options().allow_failures;
  // Tasks that wait for one whose failure is allowed are not left open: they never start.
  const bool all_ended = counts.running + counts.waiting + counts.stopped == 0;
  const bool open = !all_ended || !run_.workload->complete();
  const bool blocked = !failed && counts.failed > 0 && run_.options().in_turn;
  if (open && !run_.error && (stopped || (!failed && !blocked))) return store::RunState::stopped;
  return failed ? store::RunState::failed : store::RunState::done;
}

/// Moves the tasks that wait to the state in which the run leaves them.
void Drive::settle_waiting(store::RunState state) {
  for (const auto& task : run_.tasks) {
    if (task.state != store::TaskState::waiting) continue;
    if (state == store::RunState::stopped)
      recorder_.add(store::TaskMoved{task.number, store::TaskState::stopped});
    if (state != store::RunState::done) continue;
    recorder_.add(store::TaskKeyed{task.number, {}, skip_record_after_failure()});
    recorder_.add(store::TaskMoved{task.number, store::TaskState::skipped});
    recorder_.count(task.number, store::TaskState::skipped);
  }
}

/// Waits until the workers that have nothing to run know how many files they delete. They limit the
/// time themselves.
Status Drive::await_counts() {
  const auto is_counting = [&](const auto& slot) {
    return !slot->lost && run_.scheduler->idle(slot->id) && !slot->worker->deleted_files();
  };
  const Mono until = run_.env.now() + kCountsMost;
  while (run_.env.now() < until && std::ranges::any_of(workers_, is_counting)) {
    BERTH_TRY(run_.env.loop().turn(until));
    workers_.collect();
  }
  return {};
}

/// Says how many files that trials wrote on other machines were deleted with them, and records it.
void Drive::report_deleted_files() {
  std::string text;
  for (const auto& [host, deleted] : deleted_files_) {
    if (deleted.files == 0) continue;
    const bool one = deleted.files == 1;
    const auto line = fmt::format(
        "{} file{} ({}) that {} wrote on {} {} not copied back; {} to keep such files",
        deleted.files, one ? "" : "s", format_bytes(deleted.bytes),
        run_.record.kind == "experiment" ? "trials" : "tasks", host, one ? "was" : "were",
        run_.record.kind == "flow" ? "declare outputs" : "write to {checkpoint}");
    run_.observer.on_note(line);
    text += line + "\n";
  }
  if (!text.empty()) (void)run_.env.replace_file(deleted_files_file(run_.directory), text, 0600);
}

Result<store::RunRecord> Drive::settle() {
  settled_ = true;
  const store::RunState state = outcome();
  const bool stopped = run_.env.stop_signals() > 0;
  std::string error;
  if (state == store::RunState::failed)
    error = run_.error ? run_.error->message
                       : fmt::format("{} of {} failed", recorder_.progress().counts.failed,
                                     run_.tasks.size());
  settle_waiting(state);
  // All of it was in the cache, say.
  if (state_ == store::RunState::queued && state != store::RunState::stopped)
    recorder_.add(store::RunMoved{store::RunState::running, taken_over_, {}});
  std::optional<StoppedBy> by;
  if (state == store::RunState::stopped && stopped)
    by = run_.env.was_interrupted() ? StoppedBy::interrupt : StoppedBy::request;
  recorder_.add(
      store::RunMoved{state, run_.env.wall(), std::move(error), recorder_.result_json(by)});
  const bool keeps =
      state == store::RunState::failed && !stopped && run_.options().retain > Duration(0);
  const WorkerSlot* kept = keeps ? workers_.primary() : nullptr;
  recorder_.add(store::RunStepped{.to = store::Phase::done,
                                  .alloc = kept == nullptr ? "" : to_json(kept->lease.alloc),
                                  .last_try = run_.record.last_try});
  BERTH_TRY(recorder_.commit());
  BERTH_TRY(await_counts());
  if (kept != nullptr) retain();
  BERTH_TRY(give_back());
  report_deleted_files();
  // An agent that still ends what nobody asks for any more goes when it has.
  for (auto& slot : workers_)
    if (!slot->agent_directory.empty()) slot->worker->finish();
  show();
  return context_.store->find_run(run_.record.name);
}

}  // namespace berth::run
