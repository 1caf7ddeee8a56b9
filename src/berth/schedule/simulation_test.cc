// Ten thousand simulated runs of a runner, its store and its workers, with all that can go wrong.
// The suite has a short form; BERTH_FULL=1 runs all of it, and BERTH_SEED=N repeats one run.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <future>

#include "berth/testing/schedule.h"
#include "berth/testing/simulation_world.h"

namespace berth::schedule {
namespace testing {

Simulation::Simulation(std::uint64_t seed, Plant plant) : rng_(seed), plant_(plant) {
  options_.seed = seed;
  options_.backfill_limit = static_cast<int>(rng_.below(6));
  options_.parallel = chance(25) ? static_cast<std::int64_t>(1 + rng_.below(6)) : 0;
  options_.stop_on_failure = chance(5);
  widths_ = 1 + rng_.below(4);
  for (std::uint64_t i = rng_.below(40); i > 0; --i) new_row();
}

void Simulation::broke(const std::string& what) {
  if (broken_.empty()) broken_ = what;
}

void Simulation::new_row() {
  const auto cores = chance(15) ? 8 : static_cast<std::int64_t>(1 + rng_.below(widths_));
  rows_.push_back({.task = {.number = {static_cast<std::int64_t>(rows_.size()) + 1},
                            .resources = cpu(cores * 500, chance(15) ? 1 : 0),
                            .priority = static_cast<std::int64_t>(rng_.below(3)),
                            .retries = static_cast<int>(rng_.below(3)),
                            .gated = chance(20)}});
}

std::string Simulation::run(int events, Figures& figures) {
  for (int event = 0; event < events && broken_.empty(); ++event) {
    ++figures_.events;
    step();
    check();
  }
  if (broken_.empty()) drain();
  figures = figures_;
  return broken_;
}

void Simulation::step() {
  if (!scheduler_) {
    if (!chance(30))
      now_ += from_ms(static_cast<std::int64_t>(rng_.below(2000)));
    else
      recover();
  }
  const bool runs = scheduler_.has_value();
  const bool held = runs && scheduler_->backfill_hold();
  if (processes_.empty() || (processes_.size() < 6 && chance(3)))
    rent(cpu(static_cast<std::int64_t>(1 + rng_.below(6)) * 1000,
             static_cast<std::int64_t>(rng_.below(3))),
         chance(50) ? Kind::stealer : Kind::primary);
  Process& process = *processes_[rng_.below(processes_.size())];
  switch (rng_.below(18)) {
    case 0: process.frozen = !process.frozen && chance(30); break;
    case 1: process.dead = process.dead || chance(10); break;
    case 2:
      if (runs && chance(10)) crash();
      break;
    case 3:
      now_ += from_ms(static_cast<std::int64_t>(rng_.below(3000)));
      if (runs) scheduler_->tick(now_, effects_);
      break;
    case 4:
      if (!runs || rows_.size() > 70) break;
      new_row();
      add_tasks(rows_.size() - 1);
      break;
    case 5:
      if (runs && chance(1) && chance(20)) {
        stopping_ = true;
        scheduler_->stop(effects_);
      }
      break;
    case 6:
      if (runs) answer(false);
      break;
    case 7:
      if (runs) commit(true);
      break;
    case 8:
      if (runs) keepalive(process);
      break;
    case 9:
    case 10: deliver(process); break;
    case 11:
    case 12: work(process, false); break;
    case 13:
      if (!runs || !process.known_as || !chance(5)) break;
      scheduler_->close(*process.known_as);
      process.closed = true;
      if (!scheduler_->idle(*process.known_as)) break;
      scheduler_->left(*std::exchange(process.known_as, std::nullopt));
      process.dead = true;
      break;
    case 14:
      if (runs) send_ahead();
      break;
    case 15: give_back(process); break;
    default:
      if (runs) report(process);
  }
  if (!scheduler_) return;
  absorb();
  lose_expired();
  figures_.holds += scheduler_->backfill_hold() && !held ? 1 : 0;
  std::erase_if(processes_, [](const auto& one) { return one->dead && !one->known_as; });
}

void Simulation::rent(const Resources& total, Kind kind) {
  processes_.push_back(std::make_unique<Process>());
  processes_.back()->total = total;
  processes_.back()->kind = kind;
  if (scheduler_) attach(*processes_.back());
}

/// One message of the runner arrives.
void Simulation::deliver(Process& process) {
  if (process.frozen || process.dead) return;
  if (!process.cancels.empty()) {
    const Token token = process.cancels.front();
    process.cancels.pop_front();
    if (const auto found = process.running.find(token); found != process.running.end())
      finish(process, found->second, token, Verdict::stopped);
    for (const auto& launch : std::vector(process.waiting))
      if (launch.token == token) finish(process, launch.task, token, Verdict::stopped);
  } else if (!process.inbox.empty()) {
    const Launch launch = process.inbox.front();
    process.inbox.pop_front();
    if (!process.seen.insert(launch.token).second) return;
    process.waiting.push_back(launch);
    start_waiting(process);
  }
}

void Simulation::start(Process& process, const Launch& launch) {
  Resources used = row(launch.task).task.resources;
  for (const auto& [_, task] : process.running) (void)used.add(row(task).task.resources);
  process.running.emplace(launch.token, launch.task);
  if (!process.total.covers(used))  // what was cancelled has not gone yet
    finish(process, launch.task, launch.token, Verdict::infrastructure_failure);
}

/// Those that wait for nothing that runs or waits here.
void Simulation::start_waiting(Process& process) {
  for (bool found = true; found;) {
    found = false;
    for (const auto& launch : process.waiting) {
      const bool waits = process.running.contains(launch.behind) ||
                         std::ranges::find(process.waiting, launch.behind, &Launch::token) !=
                             process.waiting.end();
      if (waits) continue;
      const Launch next = launch;
      std::erase_if(process.waiting, [&](const Launch& one) { return one.token == next.token; });
      start(process, next);
      found = true;
      break;
    }
  }
}

/// What has waited here for too long.
void Simulation::give_back(Process& process) {
  if (process.frozen || process.dead || process.waiting.empty()) return;
  const Launch launch = process.waiting[rng_.below(process.waiting.size())];
  ++figures_.given_back;
  finish(process, launch.task, launch.token, Verdict::given_back);
}

void Simulation::finish(Process& process, TaskNumber task, Token token, Verdict verdict) {
  process.running.erase(token);
  const auto waiting = std::ranges::find(process.waiting, token, &Launch::token);
  if (waiting != process.waiting.end()) {
    for (auto& launch : process.waiting)
      if (launch.behind == token) launch.behind = waiting->behind;
    process.waiting.erase(waiting);
  }
  process.unacknowledged[token] = {task, verdict};
  witness_[token] = verdict;
  start_waiting(process);
}

/// One of its attempts comes to its end.
void Simulation::work(Process& process, bool well) {
  if (process.frozen || process.dead || process.running.empty()) return;
  const auto at = std::next(process.running.begin(),
                            static_cast<std::ptrdiff_t>(rng_.below(process.running.size())));
  const auto luck = well ? 0 : rng_.below(20);
  const Verdict verdict = luck < 12   ? Verdict::done
                          : luck < 15 ? Verdict::failed
                          : luck < 16 ? Verdict::permanent
                          : luck < 17 ? Verdict::stopped
                                      : Verdict::infrastructure_failure;
  finish(process, at->second, at->first, verdict);
}

/// One of its messages arrives, for the first time or again, though it may have frozen since.
void Simulation::report(Process& process) {
  if (process.dead || process.unacknowledged.empty()) return;
  const auto at = std::next(process.unacknowledged.begin(),
                            static_cast<std::ptrdiff_t>(rng_.below(process.unacknowledged.size())));
  const auto [token, what] = *at;
  end(what.first, token, what.second);
}

/// All goes well from here: everything must come to its end.
void Simulation::drain() {
  for (auto& process : processes_) process->frozen = false;
  for (int round = 0; round < 1000 && broken_.empty(); ++round) {
    if (!scheduler_) recover();
    absorb();
    if (scheduler_->over()) break;
    if (round % 50 == 0) rent(cpu(8000, 4), Kind::primary);
    now_ += std::chrono::seconds(120);
    for (std::size_t i = 0; i < processes_.size(); ++i) keepalive(*processes_[i]);
    lose_expired();
    std::erase_if(processes_, [](const auto& one) { return one->dead && !one->known_as; });
    while (!gated_.empty()) {
      answer(true);
      absorb();
    }
    scheduler_->tick(now_, effects_);
    absorb();
    for (auto& process : processes_) {
      if (process->dead) continue;
      while (!process->inbox.empty() || !process->cancels.empty()) deliver(*process);
      while (!process->running.empty()) work(*process, true);
      for (const auto& [token, what] : process->unacknowledged) end(what.first, token, what.second);
    }
    commit(false);
    check();
  }
  if (broken_.empty()) check_end();
}

/// After every event.
void Simulation::check() {
  if (!scheduler_ || !broken_.empty()) return;
  scheduler_->check();
  if (static_cast<std::int64_t>(scheduler_->running()) != side_by_side())
    broke("attempts that run are miscounted");
  for (const auto& process : processes_) {
    if (!process->known_as) continue;
    Resources sum = scheduler_->free(*process->known_as);
    if (!sum.add(used_[*process->known_as]) || sum != process->total)
      broke("what is free and what is used is not what the worker has");
  }
}

/// Whatever backfilled on a held worker leaves room for the task of the hold once the rest has
/// ended.
void Simulation::check_hold() {
  const auto& hold = scheduler_->backfill_hold();
  const bool same = hold && hold_ && hold->task == hold_->task && hold->worker == hold_->worker;
  if (!same) backfilled_.clear();
  hold_ = hold;
  if (!hold) return;
  Resources sum = row(hold->task).task.resources;
  for (const auto token : backfilled_)
    if (live_.contains(token)) (void)sum.add(row(live_.at(token).task).task.resources);
  for (const auto& process : processes_)
    if (process->known_as == hold->worker && !process->total.covers(sum))
      broke("what was started delays the task that its worker is held for");
}

void Simulation::check_end() {
  commit(false);
  figures_.stale += scheduler_->stale();
  if (!scheduler_->over()) return broke("it never ends");
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].state != view_[i])
      broke(fmt::format("task {} is not recorded as the scheduler settled it", i + 1));
    if (rows_[i].state == State::open && !stopping_ && !options_.stop_on_failure)
      broke(fmt::format("task {} was forgotten", i + 1));
  }
}

}  // namespace testing

namespace {

using testing::Figures;
using testing::Plant;

constexpr int kEvents = 500;
thread_local std::uint64_t current_seed = 0;

/// A broken assertion in the scheduler ends the process: the seed has to be told before.
extern "C" void tell_seed(int) {
  fmt::print(stderr, "replay with BERTH_SEED={}\n", current_seed);
}

void add(Figures& sum, const Figures& one) {
  sum.events += one.events;
  sum.starts += one.starts;
  sum.done += one.done;
  sum.stale += one.stale;
  sum.crashes += one.crashes;
  sum.losses += one.losses;
  sum.adopted += one.adopted;
  sum.holds += one.holds;
  sum.cached += one.cached;
  sum.freed += one.freed;
  sum.ahead += one.ahead;
  sum.given_back += one.given_back;
}

/// "" or what broke and the seed that shows it.
std::string simulate(std::uint64_t first, std::uint64_t last, Plant plant, Figures& sum) {
  for (current_seed = first; current_seed < last; ++current_seed) {
    Figures figures;
    const std::string broken = testing::Simulation(current_seed, plant).run(kEvents, figures);
    add(sum, figures);
    if (!broken.empty()) return fmt::format("{}; replay with BERTH_SEED={}", broken, current_seed);
  }
  return "";
}

TEST(Simulation, NothingBreaks) {
  const auto before = std::signal(SIGABRT, tell_seed);
  const char* one = std::getenv("BERTH_SEED");
  const bool full = std::getenv("BERTH_FULL") != nullptr;
  const std::uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const std::uint64_t count = one != nullptr ? 1 : full ? 10'000 : 1'000;
  std::array<Figures, 2> sums;
  auto half = std::async(std::launch::async,
                         [&] { return simulate(first, first + count / 2, Plant::none, sums[0]); });
  EXPECT_EQ(simulate(first + count / 2, first + count, Plant::none, sums[1]), "");
  EXPECT_EQ(half.get(), "");
  std::signal(SIGABRT, before);
  add(sums[0], sums[1]);
  const Figures& sum = sums[0];
  fmt::print(
      "{} events, {} starts, {} done, {} cached, {} adopted; {} crashes, {} lost "
      "workers, {} stale ends, {} holds, {} freed; {} sent ahead, {} given back\n",
      sum.events, sum.starts, sum.done, sum.cached, sum.adopted, sum.crashes, sum.losses, sum.stale,
      sum.holds, sum.freed, sum.ahead, sum.given_back);
  if (one != nullptr) return;
  for (const auto seen : {sum.done, sum.cached, sum.adopted, sum.crashes, sum.losses, sum.stale,
                          sum.holds, sum.freed, sum.ahead, sum.given_back})
    EXPECT_GT(seen, 0) << "something never happens here";
}

/// Each planted fault breaks an invariant within a few simulated runs.
TEST(Simulation, FindsEachPlantedFault) {
  for (const auto plant :
       {Plant::double_start, Plant::lost_completion, Plant::leaked_resources, Plant::stale_token}) {
    Figures sum;
    const std::string broken = simulate(0, 200, plant, sum);
    EXPECT_NE(broken, "") << "plant " << static_cast<int>(plant);
    fmt::print("plant {}: {}\n", static_cast<int>(plant), broken);
  }
}

}  // namespace
}  // namespace berth::schedule
