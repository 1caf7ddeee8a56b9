// A run goes from phase to phase: Init, until it has its first alloc; Eval, until its tasks are
// done; Done. What a later try can mend leads through Retry back to Init, and there begins what a
// resume begins: nothing is kept in memory from one try to the next.
#include "berth/run/drive/runner.h"

#include <algorithm>

#include "berth/base/backoff.h"
#include "berth/base/units.h"
#include "berth/os/loop.h"
#include "berth/run/drive/drive.h"
#include "berth/run/state/clusters.h"
#include "berth/run/state/exclusive.h"
#include "berth/run/state/recorded_environment.h"
#include "berth/run/studies/study.h"

namespace berth::run {
namespace {

using store::Phase;

Result<std::unique_ptr<Workload>> workload_of(Context& context, const store::RunRecord& record) {
  if (record.kind == "flow") return flow_tasks(context, record);
  BERTH_ASSIGN(auto program, experiment::from_json_text(record.spec_json));
  return trials(context, record, std::move(program));
}

constexpr std::int64_t kTriesMost = 5;
constexpr Backoff kTryAgain{std::chrono::milliseconds(500), std::chrono::seconds(8)};

class Runner {
 public:
  Runner(Context& context, store::RunRecord record, Observer& observer,
         std::vector<TaskNumber> only)
      : context_(context), record_(std::move(record)), observer_(observer), only_(std::move(only)) {
    store::wait_with(*context_.store, [this](const auto& wait) { return wait_for_store(wait); });
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() { store::wait_with(*context_.store, nullptr); }

  /// From the phase that it is in to the next.
  Status step() {
    switch (phase_) {
      case Phase::init: return mend(init());
      case Phase::eval: return mend(eval());
      case Phase::retry: return retry();
      case Phase::done: break;
    }
    return {};
  }
  Phase phase() const { return phase_; }
  const store::RunRecord& record() const { return record_; }

 private:
  bool wait_for_store(const store::StoreWait& wait) {
    if (loop_) return loop_->wait_for_store(wait);
    os::Env& env = *context_.env;
    if (env.stop_signals() > 0) return false;
    if (std::exchange(waits_for_, wait.why) != wait.why)
      observer_.on_note("waits for the store " + wait.why);
    return turn_for_store(env, wait, env.now() + wait.most).has_value();
  }

  /// Records the environment for later resumes; a run that a full disk does not stop goes without.
  Status keep_environment() {
    const auto kept = record_environment(context_, record_.name);
    if (kept || kept.error().kind != ErrorKind::full) return kept;
    observer_.on_note("its environment is not recorded, so a resume cannot compare it: " +
                      kept.error().message);
    return {};
  }

  Status init() {
    os::Env& env = *context_.env;
    BERTH_ASSIGN(record_, context_.store->find_run(record_.name));
    if (last_try_) record_.last_try = last_try_;
    const std::string directory = run_directory(context_, record_.name);
    if (record_.epoch == 0) BERTH_TRY(keep_environment());
    BERTH_ASSIGN(auto recovered, find_agents(context_, record_, Duration::max(),
                                             [&](const auto& note) { observer_.on_note(note); }));
    const auto orphaned = [&](std::optional<Token> token) {
      return !token || std::ranges::find(recovered.tokens, *token) == recovered.tokens.end();
    };
    BERTH_ASSIGN(const int orphans, end_orphans(env, directory, orphaned));
    if (orphans > 0)
      observer_.on_note(fmt::format("ended {} process{} of an earlier runner", orphans,
                                    orphans == 1 ? "" : "es"));
    BERTH_ASSIGN(auto workload, workload_of(context_, record_));
    Sources sources;
    BERTH_ASSIGN(sources,
                 context_.sources ? context_.sources(record_) : sources_of(context_, record_));
    BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, context_.ledger_directory));
    // The try before this one may have found no room to write that it gave its allocs back.
    if (tries_ > 0) BERTH_TRY(ledger.release_all(record_.name));
    BERTH_ASSIGN(auto log, LogWriter::open(env, directory));
    loop_.emplace(context_, record_, std::move(workload), observer_, std::move(sources),
                  std::move(ledger), std::move(log), std::move(recovered));
    BERTH_TRY(loop_->begin(tries_, only_));
    while (!loop_->leased() && !loop_->over()) BERTH_TRY(loop_->turn());
    phase_ = Phase::eval;
    return {};
  }

  Status eval() {
    while (!loop_->over()) BERTH_TRY(loop_->turn());
    BERTH_ASSIGN(record_, loop_->settle());
    phase_ = Phase::done;
    return {};
  }

  /// What runs here is ended with the loop; what runs in agents goes on.
  Status mend(Status status) {
    if (status) return status;
    // Overtaken, or without the store that would know of them.
    if (status.error().kind == ErrorKind::stale && loop_) loop_->abandon();
    if (!retryable(status.error().kind)) return status;
    if (loop_ && loop_->has_progressed()) tries_ = 0;
    loop_.reset();
    if (++tries_ > kTriesMost || context_.env->stop_signals() > 0) return status;
    because_ = status.error();
    phase_ = Phase::retry;
    return {};
  }

  Status retry() {
    os::Env& env = *context_.env;
    const Duration pause = kTryAgain.pause(tries_, env.random());
    observer_.on_note(fmt::format("{}; trying again in {} ({} of {})", because_->message,
                                  format_duration(pause), tries_, kTriesMost));
    last_try_ = env.wall();
    // The store may be what fails.
    (void)context_.store->apply(
        record_.id,
        {{store::RunStepped{.to = Phase::retry, .tries = tries_, .last_try = last_try_}}});
    for (const Mono until = env.now() + pause; env.now() < until;) {
      if (env.stop_signals() > 0) return std::unexpected(*because_);
      BERTH_TRY(env.loop().turn(until));
    }
    phase_ = Phase::init;
    return {};
  }

  Context& context_;
  store::RunRecord record_;
  Observer& observer_;
  const std::vector<TaskNumber> only_;
  std::optional<Drive> loop_;
  Phase phase_ = Phase::init;
  std::int64_t tries_ = 0;
  std::optional<Wall> last_try_;
  std::optional<Error> because_;
  std::string waits_for_;  // of the store, as it was told last
};

}  // namespace

Result<store::RunRecord> drive(Context& context, const std::string& run_name, Observer& observer,
                               const std::vector<TaskNumber>& only) {
  BERTH_ASSIGN(const auto record, context.store->find_run(run_name));
  if (record.kind == kStudy)
    return fail(ErrorKind::usage,
                "{} is a study: continue it with a program that asks for its trials, such as "
                "berth.load_study(\"{}\") in Python",
                record.name, record.name);
  BERTH_ASSIGN(Exclusive run, take_run(context, run_name));
  Runner runner(context, std::move(run.record), observer, only);
  while (runner.phase() != Phase::done) {
    const auto status = runner.step();
    if (status) continue;
    // Overtaken on another machine: what our agents still run is run there again.
    if (status.error().kind == ErrorKind::stale)
      if (const auto now = context.store->find_run(run_name)) (void)end_agents(context, *now);
    return std::unexpected(status.error());
  }
  return runner.record();
}

}  // namespace berth::run
