// A runner's phases: how the loop takes a run over, where it stands, and how it ends.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cluster/local.h"
#include "berth/cluster/tracing.h"
#include "berth/run/drive.h"

namespace berth::run {
namespace {

/// Causes of attempts that took none of the task's retries: it did not fail by itself.
constexpr std::array<std::optional<exec::Cause>, 5> kInfrastructure{
    exec::Cause::runner_lost, exec::Cause::worker_lost, exec::Cause::stopped,
    exec::Cause::short_of_means, exec::Cause::given_back};

/// For what failed on a machine another is sought for so long, while that one could have it again.
constexpr Duration kSeeksElsewhere = std::chrono::seconds(20);

Result<int> retries_used(store::Store& store, RunId run, const store::TaskRecord& task) {
  if (task.attempts == 0) return 0;
  BERTH_ASSIGN(const auto attempts, store.attempts(run, task.number));
  return static_cast<int>(std::ranges::count_if(attempts, [&](const auto& attempt) {
    return attempt.ended && attempt.token > task.forgiven &&
           std::ranges::find(kInfrastructure, attempt.cause) == kInfrastructure.end();
  }));
}

std::string to_json(const cluster::Alloc& alloc) {
  return fmt::format(R"({{"id":"{:x}","machine":{},"block":{}}})", alloc.id.value,
                     json_quote(alloc.machine), machine::to_json(alloc.block));
}

}  // namespace

Drive::Drive(Site& site, store::RunRecord record, std::unique_ptr<Workload> workload,
             Observer& observer, Sources sources, machine::Ledger ledger, LogWriter log, Left left)
    : site_(site),
      env_(*site.env),
      record_(std::move(record)),
      workload_(std::move(workload)),
      manner_(workload_->manner()),
      observer_(observer),
      labels_{{"run", record_.name}, {"program", record_.kind}},
      log_(std::move(log)),
      left_(std::move(left)),
      groups_(env_),
      directory_(run_directory(site_, record_.name)),
      host_name_(env_.host_name()) {
  const bool here = !sources.main;
  if (here)
    sources.main = Source{.name = "",
                          .cluster = std::make_unique<cluster::LocalCluster>(
                              env_, std::move(ledger), [this] { return read_host(); })};
  leasings_.push_back({.source = *std::move(sources.main)});
  for (auto& source : sources.auxiliary) leasings_.push_back({.source = std::move(source)});
  for (std::size_t i = 0; i < leasings_.size(); ++i) {
    Source& source = leasings_[i].source;
    source.cluster = cluster::tracing(env_, std::move(source.cluster), directory_ + "/trace.json",
                                      source.name, static_cast<std::int64_t>(i));
  }
}

Status Drive::take_over() {
  const auto self = env_.self();
  const auto last_try = record_.last_try;
  BERTH_ASSIGN(record_, site_.store->take_over(record_.id, self.pid, self.started_at, env_.wall(),
                                               left_.tokens));
  record_.last_try = last_try;
  BERTH_ASSIGN(tasks_, site_.store->tasks(record_.id));
  BERTH_TRY(workload_->take_over(tasks_));
  for (const auto& step : manner_.steps) progress_.steps.push_back({.name = step, .counts = {}});
  std::vector<schedule::Task> tasks;
  tasks.reserve(tasks_.size());
  for (const auto& task : tasks_) {
    BERTH_ASSIGN(const int used, store::final(task.state)
                                     ? Result<int>(0)
                                     : retries_used(*site_.store, record_.id, task));
    tasks.push_back(schedule_task(task, workload_->wants(task).retries - used));
    ++counter(progress_.counts, task.state);
    if (!progress_.steps.empty())
      ++counter(progress_.steps.at(workload_->step_of(task)).counts, task.state);
    if (task.state == store::TaskState::done) consider_best(task);
  }
  scheduler_.emplace(schedule::Options{.epoch = record_.epoch,
                                       .seed = manner_.seed,
                                       .parallel = manner_.parallel,
                                       .stop_on_failure = manner_.stop_on_failure,
                                       .seeks_elsewhere = kSeeksElsewhere});
  scheduler_->add(tasks, effects_);
  progress_.run = record_.name;
  progress_.total = static_cast<std::int64_t>(tasks_.size());
  progress_.finished_before = progress_.counts.done + progress_.counts.cached +
                              progress_.counts.skipped + progress_.counts.failed;
  progress_.began = env_.now();
  batch_.emplace_back(store::RunMoved{store::RunState::running, env_.wall(), {}});
  batch_.emplace_back(
      store::RunStepped{.to = phase_, .tries = tries_, .last_try = record_.last_try});
  return commit();
}

Status Drive::begin(std::int64_t tries, const std::vector<TaskNumber>& only) {
  tries_ = tries;
  only_.insert(only.begin(), only.end());
  BERTH_TRY(take_over());
  BERTH_TRY(find_devices(site_, manner_.most, manner_.gpus));
  watch_devices();
  do {
    BERTH_TRY(advance());
    if (workload_->wants_commit()) BERTH_TRY(commit());
  } while (more_ && !left_.tokens.empty() && !error_ && env_.stop_signals() == 0);
  join_agents();
  more_ = true;  // what they had told may have made something possible, and nothing runs: not over
  return commit();  // with what dead agents had told; then they are forgotten
}

/// The phase, with the first alloc that tasks were started on, where it is another than was
/// recorded.
void Drive::step() {
  const Berthed* first = primary();
  const auto now = first == nullptr ? std::nullopt : std::optional(first->alloc.id);
  if (now == primary_) return;
  primary_ = now;
  phase_ = store::Phase::eval;
  batch_.emplace_back(store::RunStepped{.to = phase_,
                                        .alloc = now ? to_json(first->alloc) : "",
                                        .tries = tries_,
                                        .last_try = record_.last_try});
}

Berthed* Drive::primary() const {
  const auto first = std::ranges::find_if(berthed_, [](const auto& berthed) {
    return berthed->source == 0 && berthed->silence.empty();
  });
  return first == berthed_.end() ? nullptr : first->get();
}

/// What failed may be mended soon: its place on the machine is kept, for the runner who comes next.
void Drive::retain() {
  Berthed* kept = primary();
  if (kept == nullptr || !kept->apart) return;
  kept->worker->acknowledge();
  kept->worker->retain(manner_.retain);
  scheduler_->left(kept->id);
  std::erase_if(berthed_, [&](const auto& berthed) { return berthed.get() == kept; });
  observer_.on_note(fmt::format("its alloc is kept for {}: berth retry {}, or berth stop {}",
                                format_duration(manner_.retain), record_.name, record_.name));
}

Result<store::RunRecord> Drive::settle() {
  settled_ = true;
  const store::Counts& counts = progress_.counts;
  const std::int64_t good = counts.done + counts.cached;
  const bool stopped = env_.stop_signals() > 0;
  // Under on_failure: continue one success is enough; a run of nothing but one command has to
  // succeed.
  const bool failed =
      error_ || (counts.failed > 0 && (good == 0 || !manner_.one_success_is_enough));
  store::RunState state = failed ? store::RunState::failed : store::RunState::done;
  const bool open =
      good + counts.skipped + counts.failed < progress_.total || !workload_->complete();
  // What is left open is never called done.
  const bool is_done = state == store::RunState::done;
  if ((stopped || !only_.empty() || is_done) && open && !error_) state = store::RunState::stopped;
  std::string error;
  if (state == store::RunState::failed)
    error =
        error_ ? error_->message : fmt::format("{} of {} failed", counts.failed, progress_.total);
  if (state == store::RunState::stopped)
    for (const auto& task : tasks_)
      if (task.state == store::TaskState::waiting)
        batch_.emplace_back(store::TaskMoved{task.number, store::TaskState::stopped});
  batch_.emplace_back(store::RunMoved{state, env_.wall(), std::move(error), result_json()});
  const bool keeps = state == store::RunState::failed && !stopped && manner_.retain > Duration(0);
  const Berthed* kept = keeps ? primary() : nullptr;
  batch_.emplace_back(store::RunStepped{.to = store::Phase::done,
                                        .alloc = kept == nullptr ? "" : to_json(kept->alloc),
                                        .last_try = record_.last_try});
  BERTH_TRY(commit());
  if (kept != nullptr) retain();
  BERTH_TRY(give_back());
  // An agent that still ends what nobody asks for any more goes when it has.
  for (auto& berthed : berthed_)
    if (!berthed->directory.empty()) berthed->worker->finish();
  show();
  return site_.store->find_run(record_.name);
}

std::string Drive::result_json() const {
  const store::Counts& n = progress_.counts;
  const std::string best = progress_.best ? fmt::format(R"(,"best":{{"task":{},"value":{}}})",
                                                        json_quote(progress_.best->label),
                                                        format_number(progress_.best->value))
                                          : "";
  return fmt::format(R"({{"done":{},"cached":{},"skipped":{},"failed":{}{}}})", n.done, n.cached,
                     n.skipped, n.failed, best);
}

}  // namespace berth::run
