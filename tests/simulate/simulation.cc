#include "simulate/simulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/ledger/ledger.h"
#include "berth/remote/clusters.h"
#include "berth/run/state/clusters.h"
#include "berth/testing/failing_store.h"
#include "simulate/cloud.h"
#include "simulate/played_run.h"

namespace berth::simulate {
namespace {

using namespace std::chrono_literals;

constexpr auto kState = "/home/u/state";
constexpr auto kLedger = "/run/lock/berth";
constexpr Duration kLongest = 4h;         // that a run may take once nothing happens to it any more
constexpr std::size_t kMuch = 1'200'000;  // bytes: more than is read at once
constexpr std::size_t kEventsMost = 2'000'000;
constexpr Duration kSettles = 15s;      // after that what happened before makes no difference,
constexpr Duration kReconnects = 3min;  // and after that all connections stand again
constexpr Duration kFreesWithin = 15s;  // a run that has ended, what it held
constexpr Duration kStopsWithin = 30s;
constexpr Duration kIdleMost = 10min;  // of a run that is not over, in peace

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool trace)
      : rng_(seed), flows_(~seed), kernel_(seed), trace_(trace) {}
  Outcome play();

 private:
  bool chance(std::uint64_t one_in) { return rng_.below(one_in) == 0; }
  Duration up_to(Duration most) {
    return Duration(
        static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most.count()))));
  }
  run::Context context(os::FakeProcess& process);
  std::optional<Error> gate(os::FakeProcess& process, bool before);
  void repeat_later(RunId run, std::span<const store::Change> changes);
  void prepare();
  void submit(int number);
  int drive(os::FakeProcess& process, Run& run);
  void start_runners();
  /// What happens later. As long as something is to `heal`, it is not quiet.
  void later(Duration in, std::function<void()> then, bool heals = false);
  /// Nothing has been amiss since then.
  bool quiet_since(Mono since) const;
  void stop_one();
  void kill(Cloud::Kind kind);
  void hang(Cloud::Kind kind);
  void end_something();
  void disturb(SimulatedMachine& one);
  void on_end(Run& run);
  std::string waits() const;
  void check_progress();
  void mishap();
  bool all_over() const;
  void after_event();
  void check_end();
  void tell(const std::string& what) {
    if (trace_) fmt::print("{:>10} {}\n", format_duration(kernel_.now() - Mono{}), what);
  }

  Rng rng_, flows_;  // apart, so that what else a seed means stays as it is
  os::FakeEnv kernel_;
  bool trace_;
  std::unique_ptr<store::Store> durable_ = store::memory_store();
  Contract contract_{kernel_, *durable_};
  std::optional<Cloud> cloud_;
  std::vector<std::unique_ptr<Run>> runs_;
  struct Later {
    Mono at;
    std::function<void()> then;
    bool heals;
  };
  std::vector<Later> later_;
  std::uint64_t store_fails_once_in_ = 0, store_kills_once_in_ = 150;
  Duration restarts_within_ = 30s;
  bool only_runners_suffer_ = false, only_hosts_suffer_ = false;
  Mono disturbed_at_ = Mono::min();  // last
  bool is_calm_ = false;             // nothing happens any more
  Outcome outcome_;
};

/// Before or after a call of the store: it gives way to others, fails, or only its answer is lost.
std::optional<Error> Simulation::gate(os::FakeProcess& process, bool before) {
  if (!process.wait({}, process.now())) return Error{ErrorKind::io, "this process was killed"};
  if (!is_calm_ && !contract_.is_peaceful && chance(store_kills_once_in_)) {
    tell("kill a runner at the store");
    disturbed_at_ = kernel_.now();
    process.kill();
    return Error{ErrorKind::io, "this process was killed"};
  }
  if (store_fails_once_in_ == 0 || !chance(store_fails_once_in_)) return std::nullopt;
  return Error{ErrorKind::full, before ? "the disk is full" : "the answer is lost"};
}

run::Context Simulation::context(os::FakeProcess& process) {
  run::Context context;
  context.env = &process;
  context.state_directory = kState;
  auto fragile = std::make_unique<store::FailingStore>(*durable_);
  fragile->before_call = [this, &process] { return gate(process, true); };
  fragile->after_call = [this, &process] { return gate(process, false); };
  fragile->on_applied = [this](RunId run, std::span<const store::Change> changes) {
    if (chance(4)) repeat_later(run, changes);
  };
  context.store = std::move(fragile);
  context.ledger_directory = kLedger;
  context.capacity.disk_directory = kState;
  return context;
}

void Simulation::repeat_later(RunId run, std::span<const store::Change> changes) {
  const bool otherwise = chance(2);
  const auto is_it = [&](const auto& each) { return durable_->find_run(each->name)->id == run; };
  // That a task of a flow is done is told with its outputs alone.
  auto again = told_again(changes, otherwise && !(*std::ranges::find_if(runs_, is_it))->flow);
  if (again.empty()) return;
  later(up_to(2min), [this, run, again = std::move(again)] { (void)durable_->apply(run, again); });
}

void Simulation::submit(int number) {
  auto run = std::make_unique<Run>();
  auto& process = cloud_->home().root;
  run::Context context;
  context.env = &process;
  context.state_directory = kState;
  context.store = store::memory_store();
  std::swap(context.store, durable_);
  std::string hosts;
  for (std::size_t i = 0; i < cloud_->hosts(); ++i)
    hosts += fmt::format("{}{}", i == 0 ? "" : ", ", cloud_->host(i).name);
  const auto size = static_cast<std::int64_t>(1 + rng_.below(10));
  const bool takes_gpu = chance(3), outlives_runner = !chance(3);
  Played played{fmt::format("t{}", number), size, contract_.retries, takes_gpu, outlives_runner};
  if (flows_.below(4) == 0) run->flow = {played, flows_.below(2) == 0};
  const auto record = run->flow ? submit_flow(context, *run->flow) : submit_trials(context, played);
  if (!record) throw std::logic_error(record.error().message);
  const bool on_hosts = !hosts.empty() && !chance(4);
  const auto lease_s = 5 + rng_.below(60);
  const bool outlives = chance(3);
  run->lease = std::chrono::seconds(lease_s) + (outlives ? 2min : 0s);
  if (on_hosts) send_to(context, *record, hosts, lease_s, outlives);
  std::swap(context.store, durable_);
  run->name = record->name;
  tell(fmt::format("{}: on {}, lease {} s{}", run->name, on_hosts ? hosts : "home", lease_s,
                   outlives ? ", outlives it" : ""));
  // Without that, what ended while nobody was there ends with the lease.
  if (only_runners_suffer_ && on_hosts && outlives) contract_.keeps_work.insert(run->name);
  run->start_at = Mono(up_to(10s));
  runs_.push_back(std::move(run));
}

int Simulation::drive(os::FakeProcess& process, Run& run) {
  auto here = context(process);
  here.sources = [&here](const store::RunRecord& record) { return run::sources_of(here, record); };
  Watcher watcher(contract_, process, run);
  auto end = run::drive(here, run.name, watcher);
  if (!process.killed()) run.end = std::move(end);
  return 0;
}

void Simulation::start_runners() {
  for (auto& run : runs_) {
    if (run->is_over) continue;
    if (run->runner == nullptr) {
      if (kernel_.now() < run->start_at) continue;
      tell(run->name + ": a runner starts");
      run->started_at = kernel_.now();
      run->end.reset();
      run->is_left_to_lease = false;
      run->runner = &cloud_->start(cloud_->home(), [this, &run = *run](os::FakeProcess& process) {
        return drive(process, run);
      });
    } else if (run->runner->over()) {
      run->runner = nullptr;
      run->start_at = kernel_.now() + up_to(restarts_within_);
      if (!run->end) {
        tell(run->name + ": its runner was killed");
        continue;
      }
      const auto& end = *run->end;
      tell(fmt::format("{}: its runner has ended: {}", run->name,
                       end ? std::string(store::name(end->state)) : end.error().message));
      run->is_over =
          end && (end->state == store::RunState::done || end->state == store::RunState::failed);
      on_end(*run);
    }
  }
}

/// Of a runner that has ended by itself.
void Simulation::on_end(Run& run) {
  const Mono now = kernel_.now();
  if (!*run.end && quiet_since(now - kReconnects))
    return contract_.breach(fmt::format("{} was given up, though nothing happened: {}", run.name,
                                        run.end->error().message));
  if (!*run.end || !quiet_since(now - kSettles)) return;
  const Duration within = kFreesWithin + (run.is_left_to_lease ? run.lease : 0s);
  run.start_at = std::max(run.start_at, now + 2 * within);
  later(within, [this, &run, now, within] {
    if (!quiet_since(now - kSettles)) return;
    if (const auto held = cloud_->held_by(run.name); !held.empty())
      contract_.breach(fmt::format("{} has ended for {}, and holds: {}", run.name,
                                   format_duration(within), held));
  });
}

/// What each run that is not over waits for.
std::string Simulation::waits() const {
  std::string text;
  for (const auto& run : runs_)
    if (!run->is_over) text += fmt::format("{} waits ({}); ", run->name, run->waits);
  return text;
}

/// Where all is well something of what is open runs.
void Simulation::check_progress() {
  const Mono since = kernel_.now() - kIdleMost;
  const bool one_lives = std::ranges::any_of(
      runs_, [&](const auto& run) { return run->runner != nullptr && run->started_at < since; });
  if (!one_lives || contract_.any_alive() || contract_.last_activity() > since ||
      !quiet_since(since))
    return;
  contract_.breach(fmt::format("nothing has run for {}: {}", format_duration(kIdleMost), waits()));
}

void Simulation::later(Duration in, std::function<void()> then, bool heals) {
  later_.push_back({kernel_.now() + in, std::move(then), heals});
}

bool Simulation::quiet_since(Mono since) const {
  return disturbed_at_ <= since && std::ranges::none_of(later_, &Later::heals);
}

void Simulation::stop_one() {
  const auto& run = runs_[rng_.below(runs_.size())];
  if (run->runner == nullptr || run->runner->over()) return;
  tell("stop " + run->name);
  ++run->runner->stops;
  const Mono now = kernel_.now();
  const bool twice = chance(3);
  const Duration in = up_to(3s);
  if (twice)
    later(in, [&run = *run, process = run->runner] {
      if (run.runner == process) ++process->stops;
    });
  later(kStopsWithin, [this, &run = *run, process = run->runner, now] {
    if (run.runner == process && !process->over() && quiet_since(now - kReconnects))
      contract_.breach(
          fmt::format("{} was to stop {} ago", run.name, format_duration(kStopsWithin)));
  });
}

void Simulation::kill(Cloud::Kind kind) {
  const auto choose = [this](std::size_t count) { return rng_.below(count); };
  if (cloud_->kill_one(kind, choose))
    tell(fmt::format("kill one of kind {}", static_cast<int>(kind)));
  disturbed_at_ = kernel_.now();
}

void Simulation::hang(Cloud::Kind kind) {
  const auto choose = [this](std::size_t count) { return rng_.below(count); };
  os::FakeProcess* const process = cloud_->hang_one(kind, choose);
  const Duration while_ = chance(2) ? up_to(2s) : up_to(1min);
  if (process == nullptr) return;
  tell(fmt::format("one of kind {} hangs for {}", static_cast<int>(kind), format_duration(while_)));
  later(while_, [this, process] { cloud_->unhang(*process); }, true);
}

/// A process is killed, or hangs; where a runner is, others may be soon after.
void Simulation::end_something() {
  using enum Cloud::Kind;
  constexpr std::array kKilled{runner, runner, ssh, agent, agent, pool, files, stdio};
  constexpr std::size_t kOfRunners = 3, kRunners = 2;  // of these
  const auto least = only_hosts_suffer_ ? kRunners : 0;
  const auto most = only_runners_suffer_ ? kOfRunners : kKilled.size();
  const auto kind = kKilled.at(least + rng_.below(most - least));
  const bool hangs = (kind == ssh || kind == stdio) && chance(2);
  if (hangs) return hang(kind);
  kill(kind);
  if (kind != runner || !chance(2)) return;
  const bool of_agents = !only_runners_suffer_ && chance(2);
  const Duration in = up_to(10s);
  const auto count = of_agents ? 1 + rng_.below(4) : 1;
  later(
      in,
      [this, of_agents, count] {
        for (std::uint64_t i = 0; i < count; ++i) kill(of_agents ? agent : runner);
      },
      true);
}

/// A machine is cut off, frozen, without power, full, or fails at what it is asked, for a while.
void Simulation::disturb(SimulatedMachine& one) {
  const Duration while_ = chance(3) ? up_to(10min) : up_to(20s);
  const bool is_home = &one == &cloud_->home();
  const auto for_a_while = [&](const char* what, std::function<void()> ends) {
    tell(fmt::format("{} {} for {}", one.name, what, format_duration(while_)));
    const bool runner_too = chance(2) && !only_hosts_suffer_;
    const Duration in = up_to(3s);
    if (runner_too) later(in, [this] { kill(Cloud::Kind::runner); }, true);
    later(
        while_,
        [this, &one, what, ends = std::move(ends)] {
          tell(fmt::format("{}: no longer {}", one.name, what));
          ends();
        },
        true);
  };
  switch (rng_.below(7)) {
    case 0:
      if (is_home || one.is_cut) return;
      cloud_->cut(one, true);
      return for_a_while("cut off", [this, &one] {
        if (!one.frozen) cloud_->cut(one, false);
      });
    case 1:
      if (one.frozen || one.is_cut) return;
      cloud_->freeze(one, true);
      return for_a_while("frozen", [this, &one] { cloud_->freeze(one, false); });
    case 2:
      if (is_home || one.is_cut || !one.is_up) return;
      cloud_->lose_power(one);
      return for_a_while("without power", [this, &one] { cloud_->boot(one); });
    case 3: one.disk_full = true; return for_a_while("full", [&one] { one.disk_full = false; });
    case 4:
      if (is_home) return;
      one.breaks_once_in = 2 + rng_.below(10);
      return for_a_while("badly connected", [&one] { one.breaks_once_in = 0; });
    case 5:
      if (is_home) return;
      one.slow_once_in = 2 + rng_.below(20);
      return for_a_while("slow", [&one] { one.slow_once_in = 0; });
    default:
      one.only_reads_fail = chance(2);
      if (is_home) contract_.results_may_be_lost = true;
      one.call_fails_once_in = one.only_reads_fail ? 2 + rng_.below(10) : 5 + rng_.below(200);
      return for_a_while("failing", [&one] { one.call_fails_once_in = 0; });
  }
}

void Simulation::mishap() {
  ++outcome_.mishaps;
  const bool stops = contract_.is_peaceful || chance(8);
  if (stops) return stop_one();
  disturbed_at_ = kernel_.now();
  const bool to_hosts = only_hosts_suffer_ && cloud_->hosts() > 0;
  if (to_hosts && !chance(3)) return disturb(cloud_->host(rng_.below(cloud_->hosts())));
  if (only_hosts_suffer_ || chance(2)) return end_something();
  if (!only_runners_suffer_ && !chance(6)) {
    const bool at_home = cloud_->hosts() == 0 || chance(4);
    return disturb(at_home ? cloud_->home() : cloud_->host(rng_.below(cloud_->hosts())));
  }
  const Duration while_ = up_to(1min);
  tell(fmt::format("the store fails for {}", format_duration(while_)));
  store_fails_once_in_ = 3 + rng_.below(20);
  later(while_, [this] { store_fails_once_in_ = 0; }, true);
}

bool Simulation::all_over() const {
  return std::ranges::all_of(runs_, [](const auto& run) { return run->is_over; });
}

void Simulation::after_event() {
  ++outcome_.events;
  contract_.check();
}

/// Everything has healed and every run has ended: once the longest lease is over nothing is left.
void Simulation::check_end() {
  const bool disturbed = outcome_.mishaps > 0 || disturbed_at_ > Mono::min();
  for (const auto& run : runs_) {
    const auto record = durable_->find_run(run->name);
    contract_.check_ended(*record, cloud_->home().root, std::string(kState) + "/runs/" + run->name,
                          disturbed);
    if (!run->flow || record->state != store::RunState::done) continue;
    if (const auto wrong = check_files(cloud_->home().root, *run->flow, !disturbed))
      contract_.breach(fmt::format("{} is done, and {}", run->name, *wrong));
  }
  const Mono until = kernel_.now() + 26h;
  while (kernel_.now() < until && !contract_.broken())
    BERTH_ASSERT(kernel_.wait({}, until).has_value());
  contract_.check_nothing_runs();
  if (const auto living = cloud_->living(); !living.empty())
    contract_.breach("a day after the end there is still: " + living);
  for (std::size_t i = 0; i <= cloud_->hosts(); ++i) {
    auto& machine = i == 0 ? cloud_->home() : cloud_->host(i - 1);
    auto ledger = machine::Ledger::open(machine.root, kLedger);
    const auto entries = ledger->entries();
    if (!entries->empty())
      contract_.breach(
          fmt::format("{}: {} is still in the ledger", machine.name, entries->front().label));
  }
}

/// The machines, and how they behave.
void Simulation::prepare() {
  contract_.retries = static_cast<int>(rng_.below(4));
  contract_.trace = trace_;
  contract_.is_peaceful = chance(5);
  only_runners_suffer_ = chance(4);
  only_hosts_suffer_ = !only_runners_suffer_ && chance(3);
  constexpr std::array<std::uint64_t, 4> kGivesWay{2, 3, 10, 40}, kStoreKills{10, 40, 150, 500};
  constexpr std::array<std::size_t, 5> kHosts{0, 1, 1, 2, 3};
  constexpr std::array<Duration, 4> kEndsWithin{0s, 0s, 200ms, 1900ms},
      kLatency{0s, 0s, 20ms, 100ms}, kRestarts{1s, 5s, 30s, 30s};
  Manners manners;
  manners.gives_way = kGivesWay.at(rng_.below(4));
  manners.ends_within = kEndsWithin.at(rng_.below(4));
  manners.latency = kLatency.at(rng_.below(4));
  store_kills_once_in_ = kStoreKills.at(rng_.below(4));
  if (only_hosts_suffer_) store_kills_once_in_ = 1'000'000;
  restarts_within_ = kRestarts.at(rng_.below(4));
  kernel_.on_event = [this] { after_event(); };
  cloud_.emplace(kernel_, contract_, kHosts.at(rng_.below(5)), manners);
  for (std::size_t i = 0; i <= cloud_->hosts(); ++i) {
    auto& machine = i == 0 ? cloud_->home() : cloud_->host(i - 1);
    if (const auto status = machine.root.make_directory(kState, 0700); !status) std::abort();
    for (const auto* program : {"/work/x", "/bin/x"}) machine.root.put(program, "");
    machine.root.variables["BERTH_TOPOLOGY"] = "dgx1-v100";
  }
  // It is read once a process: a simulation must not depend on those before it.
  (void)remote::agent_file(cloud_->home().root);
}

Outcome Simulation::play() {
  prepare();
  const std::uint64_t salt = rng_.next();
  contract_.expected = [salt](const std::string& run, const std::string& label) {
    Rng own(salt ^ std::hash<std::string>{}(run + "/" + label));
    Contract::Expected expected;
    expected.failures = own.below(3) == 0 ? static_cast<int>(own.below(5)) : 0;
    expected.duration = own.below(2) == 0 ? from_ms(static_cast<std::int64_t>(own.below(300)))
                                          : from_ms(static_cast<std::int64_t>(own.below(60'000)));
    expected.output = own.below(4) == 0 ? own.below(20'000) : own.below(100);
    if (own.below(40) == 0) expected.output = kMuch;
    return expected;
  };
  const int count = chance(2) ? 2 : 1;
  for (int i = 0; i < count; ++i) submit(i);
  const std::uint64_t mishaps_most = chance(2) ? 5 : 25;
  const std::uint64_t mishaps = chance(8) ? 0 : 1 + rng_.below(mishaps_most);
  Mono next_mishap = Mono(up_to(20s));
  std::optional<Mono> calm_since;
  while (!contract_.broken() && !(all_over() && later_.empty())) {
    start_runners();
    for (std::size_t i = 0; i < later_.size();) {
      if (later_[i].at > kernel_.now()) {
        ++i;
        continue;
      }
      const Later due = std::move(later_[i]);
      later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(i));
      due.then();
      if (due.heals) disturbed_at_ = kernel_.now();
    }
    check_progress();
    cloud_->deliver();
    if (outcome_.mishaps < mishaps && !all_over()) {
      if (kernel_.now() >= next_mishap) {
        mishap();
        next_mishap = kernel_.now() + (chance(3) ? up_to(1min) : up_to(3s));
      }
    } else if (later_.empty() && !calm_since) {
      calm_since = kernel_.now();
      is_calm_ = true;
    }
    if (calm_since && kernel_.now() > *calm_since + kLongest) {
      contract_.breach("no end: " + waits() + cloud_->living());
    }
    if (outcome_.events > kEventsMost) contract_.breach("too many events: " + cloud_->living());
    BERTH_ASSERT(kernel_.wait({}, kernel_.now() + (calm_since ? 30s : 200ms)).has_value());
  }
  if (!contract_.broken()) check_end();
  outcome_.breach = contract_.what();
  outcome_.executions = contract_.executions();
  cloud_.reset();
  return outcome_;
}

}  // namespace

Outcome simulate(std::uint64_t seed, bool trace) {
  return Simulation(seed, trace).play();
}

}  // namespace berth::simulate
