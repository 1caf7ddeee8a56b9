// A run goes from phase to phase: Init, until it has its first alloc; Eval, until its tasks are
// done; Done. What a later try can mend leads through Retry back to Init, and there begins what a
// resume begins: nothing is kept in memory from one try to the next.
#include "berth/run/runner.h"

#include <algorithm>
#include <array>

#include "berth/base/units.h"
#include "berth/os/loop.h"
#include "berth/run/drive.h"
#include "berth/run/elsewhere.h"
#include "berth/store/database.h"

namespace berth::run {
namespace {

using store::Phase;

Result<std::unique_ptr<Workload>> workload_of(Site& site, const store::RunRecord& record) {
  if (record.kind == "flow") return flow_tasks(site, record);
  BERTH_ASSIGN(auto program, experiment::from_json_text(record.spec_json));
  return trials(site, record, std::move(program));
}

constexpr std::int64_t kTriesMost = 5;
constexpr Duration kGoesWithin = std::chrono::seconds(2);
constexpr Duration kFirstPause = std::chrono::milliseconds(500);  // doubles with each try

class Runner {
 public:
  /// `lock` keeps other runners out.
  Runner(Site& site, store::RunRecord record, os::Fd lock, Observer& observer,
         std::vector<TaskNumber> only)
      : site_(site),
        record_(std::move(record)),
        lock_(std::move(lock)),
        observer_(observer),
        only_(std::move(only)) {
    store::wait_with(*site_.store, [this](const auto& wait) { return wait_for_store(wait); });
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() { store::wait_with(*site_.store, nullptr); }

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
    os::Env& env = *site_.env;
    if (env.stop_signals() > 0) return false;
    if (std::exchange(waits_for_, wait.why) != wait.why)
      observer_.on_note("waits for the store " + wait.why);
    std::array<os::Watch, 2> watches{
        os::Watch{.fd = wait.fd}, os::Watch{.fd = wait.writable ? wait.fd : -1, .readable = false}};
    return env.loop().turn(env.now() + wait.most, watches).has_value();
  }

  Status init() {
    os::Env& env = *site_.env;
    BERTH_ASSIGN(record_, site_.store->find_run(record_.name));
    if (last_try_) record_.last_try = last_try_;
    const std::string directory = run_directory(site_, record_.name);
    BERTH_ASSIGN(auto recovered, find_agents(site_, record_, Duration::max(),
                                             [&](const auto& note) { observer_.on_note(note); }));
    const auto orphaned = [&](std::optional<Token> token) {
      return !token || std::ranges::find(recovered.tokens, *token) == recovered.tokens.end();
    };
    BERTH_ASSIGN(const int orphans, end_orphans(env, directory, orphaned));
    if (orphans > 0)
      observer_.on_note(fmt::format("ended {} process{} of an earlier runner", orphans,
                                    orphans == 1 ? "" : "es"));
    BERTH_ASSIGN(auto workload, workload_of(site_, record_));
    Sources sources;
    BERTH_ASSIGN(sources, site_.sources ? site_.sources(record_) : sources_of(site_, record_));
    BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, site_.ledger_directory));
    BERTH_ASSIGN(auto log, LogWriter::open(env, directory));
    loop_.emplace(site_, record_, std::move(workload), observer_, std::move(sources),
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
    if (++tries_ > kTriesMost || site_.env->stop_signals() > 0) return status;
    because_ = status.error();
    phase_ = Phase::retry;
    return {};
  }

  Status retry() {
    os::Env& env = *site_.env;
    const auto jitter = static_cast<std::int64_t>(env.random() % 512);  // 75 % to 125 %
    const Duration pause = kFirstPause * (1 << (tries_ - 1)) * (768 + jitter) / 1024;
    observer_.on_note(fmt::format("{}; trying again in {} ({} of {})", because_->message,
                                  format_duration(pause), tries_, kTriesMost));
    last_try_ = env.wall();
    // The store may be what fails.
    (void)site_.store->apply(
        record_.id,
        {{store::RunStepped{.to = Phase::retry, .tries = tries_, .last_try = last_try_}}});
    for (const Mono until = env.now() + pause; env.now() < until;) {
      if (env.stop_signals() > 0) return std::unexpected(*because_);
      BERTH_TRY(env.loop().turn(until));
    }
    phase_ = Phase::init;
    return {};
  }

  Site& site_;
  store::RunRecord record_;
  os::Fd lock_;
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

Result<store::RunRecord> drive(Site& site, const std::string& run_name, Observer& observer,
                               const std::vector<TaskNumber>& only) {
  BERTH_ASSIGN(store::RunRecord record, site.store->find_run(run_name));
  const std::string directory = run_directory(site, record.name);
  BERTH_TRY(site.env->make_directory(directory, 0700));
  auto lock = site.env->lock(lock_file(directory), false);
  // A runner that was killed while one of its threads waited for a disk is a moment in going.
  const os::ProcessIdentity earlier{static_cast<pid_t>(record.runner_pid),
                                    record.runner_started_at};
  for (const Mono until = site.env->now() + kGoesWithin;
       !lock && lock.error().kind == ErrorKind::busy && record.runner_pid > 0 &&
       !site.env->alive(earlier) && site.env->now() < until;) {
    BERTH_TRY(site.env->loop().turn(site.env->now() + std::chrono::milliseconds(5)));
    lock = site.env->lock(lock_file(directory), false);
  }
  if (!lock) {
    if (lock.error().kind == ErrorKind::busy)
      return fail(ErrorKind::busy, "{} is running already, under process {}", record.name,
                  record.runner_pid);
    return std::unexpected(lock.error());
  }
  const auto claim = store::claim(*site.store, record.id);
  if (!claim) {
    if (claim.error().kind == ErrorKind::busy)
      return fail(ErrorKind::busy, "{} is running already, on another machine", record.name);
    return std::unexpected(claim.error());
  }
  Runner runner(site, std::move(record), *std::move(lock), observer, only);
  while (runner.phase() != Phase::done) {
    const auto status = runner.step();
    if (status) continue;
    // Overtaken on another machine: what our agents still run is run there again.
    if (status.error().kind == ErrorKind::stale)
      if (const auto now = site.store->find_run(run_name)) (void)end_agents(site, *now);
    return std::unexpected(status.error());
  }
  return runner.record();
}

}  // namespace berth::run
