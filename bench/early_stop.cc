// Early stopping on simulated learning curves: the epochs that each policy spends, and the loss
// that it ends with above that of the full run.
//
//   berth-stop-bench [CURVES EPOCHS PARALLEL SEEDS]      100 50 4 20, unless given
//
// Curves fall towards a floor by a power of the epoch or exponentially, at rates that make them
// cross, with noise of 0.005 (a validation loss over some thousand examples).
#include <cmath>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <map>

#include "berth/base/rng.h"
#include "berth/experiment/proposers/halving.h"
#include "berth/experiment/stopping/early_stop.h"

namespace berth::bench {
namespace {

using experiment::EarlyStop;

struct Setting {
  std::int64_t curves = 100, epochs = 50, parallel = 4, seeds = 20;
};

using Losses = std::vector<double>;  // by epoch

double within(Rng& rng, double least, double most) {
  return least + (most - least) * rng.uniform();
}

Losses losses_of(Rng& rng, std::int64_t epochs) {
  constexpr double kNoise = 0.005;
  const bool power = rng.uniform() < 0.5;
  const double floor = 0.1 + 0.6 * std::pow(rng.uniform(), 0.7), height = within(rng, 0.5, 2);
  const double rate = power ? within(rng, 0.4, 1.5) : std::exp(within(rng, -3.5, -0.5));
  Losses losses;
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const auto at = static_cast<double>(epoch);
    const double falls = power ? std::pow(at, -rate) : std::exp(-rate * at);
    // Twelve uniform numbers less six are normal enough.
    double noise = -6;
    for (int i = 0; i < 12; ++i) noise += rng.uniform();
    losses.push_back(floor + height * falls + kNoise * noise);
  }
  return losses;
}

struct Outcome {
  std::int64_t epochs = 0;
  double loss = HUGE_VAL;  // the last of the best trial
};

/// So many trials side by side, which report in turn; the next begins where one has ended.
Outcome follow(const std::vector<Losses>& curves, std::int64_t parallel,
               const std::optional<EarlyStop>& policy) {
  experiment::EarlyStopper stopper(policy.value_or(EarlyStop{}),
                                   {.metric = "loss", .maximize = false});
  struct Running {
    std::size_t trial, epoch = 0;
  };
  std::deque<Running> running;
  std::size_t next = 0;
  Outcome outcome;
  for (;;) {
    while (std::ssize(running) < parallel && next < curves.size()) {
      stopper.begin(static_cast<std::int64_t>(next));
      running.push_back({next++});
    }
    if (running.empty()) return outcome;
    Running at = running.front();
    running.pop_front();
    const auto trial = static_cast<std::int64_t>(at.trial);
    const double loss = curves[at.trial][at.epoch++];
    ++outcome.epochs;
    const bool stopped = policy && stopper.report(trial, loss);
    const bool over = at.epoch == curves[at.trial].size();
    if (!stopped && !over) {
      running.push_back(at);
      continue;
    }
    outcome.loss = std::min(outcome.loss, loss);
    using End = experiment::EarlyStopper::End;
    stopper.end(trial, over ? End::completed : End::stopped_early);
  }
}

/// Successive halving over the same trials: one goes on from its checkpoint at each rung.
Outcome halve(const std::vector<Losses>& curves, std::int64_t parallel, std::int64_t reduction) {
  const auto epochs = std::ssize(curves.front());
  experiment::Program program;
  program.goal = experiment::Goal{.metric = "loss", .maximize = false};
  experiment::Parameter any;  // a trial's number alone tells its curve
  any.name = "any";
  any.max = 1;
  program.params = {any};
  program.parallel = parallel;
  program.search.method = experiment::Search::Method::halving;
  program.search.samples = std::ssize(curves);
  program.search.budget = experiment::Budget{
      .parameter = "epochs", .min = 1, .max = static_cast<double>(epochs), .reduction = reduction};
  experiment::Halving proposer(program);
  std::deque<experiment::TrialReport> running;
  std::map<std::string, std::size_t> trials;  // by the label before '@'
  std::map<std::size_t, std::int64_t> reached;
  std::int64_t number = 0;
  Outcome outcome;
  for (;;) {
    while (std::ssize(running) < parallel) {
      const auto proposal = proposer.ask();
      if (!proposal) break;
      running.push_back({.number = ++number, .trial = *proposal});
      proposer.tell(running.back());
    }
    if (running.empty()) return outcome;
    auto report = running.front();
    running.pop_front();
    const std::string label = report.trial.label.substr(0, report.trial.label.find('@'));
    const std::size_t trial = trials.try_emplace(label, trials.size()).first->second;
    const std::int64_t until = std::stoll(report.trial.label.substr(label.size() + 1));
    outcome.epochs += until - std::exchange(reached[trial], until);
    const double loss = curves.at(trial).at(static_cast<std::size_t>(until - 1));
    outcome.loss = std::min(outcome.loss, loss);
    report.state = experiment::TrialReport::State::done;
    report.scores = {-loss};
    proposer.tell(report);
  }
}

void compare(const Setting& setting) {
  struct Policy {
    std::string_view name;
    std::function<Outcome(const std::vector<Losses>&)> follow;
  };
  const auto stops = [&](EarlyStop stop) {
    return [stop, &setting](const auto& curves) { return follow(curves, setting.parallel, stop); };
  };
  using enum EarlyStop::Policy;
  const std::vector<Policy> policies = {
      {"none", [&](const auto& curves) { return follow(curves, setting.parallel, {}); }},
      {"median", stops({.policy = median})},
      {"bandit", stops({.policy = bandit})},
      {"truncation", stops({.policy = truncation})},
      {"truncation, part 0.5", stops({.policy = truncation, .part = 0.5})},
      {"truncation, part 0.8, warmup 1", stops({.policy = truncation, .warmup = 1, .part = 0.8})},
      {"curve", stops({.policy = curve})},
      {"curve, steps given", stops({.policy = curve, .steps = setting.epochs})},
      {"halving, 3", [&](const auto& curves) { return halve(curves, setting.parallel, 3); }},
      {"halving, 4", [&](const auto& curves) { return halve(curves, setting.parallel, 4); }},
  };
  std::cout << fmt::format("{} curves of {} epochs, {} side by side, {} seeds\n", setting.curves,
                           setting.epochs, setting.parallel, setting.seeds);
  std::cout << fmt::format("{:<32} {:>8} {:>12} {:>12} {:>14}\n", "policy", "epochs", "loss above",
                           "worst seed", "within 0.001");
  std::vector<std::vector<Losses>> all;
  for (std::int64_t seed = 1; seed <= setting.seeds; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed));
    auto& curves = all.emplace_back();
    for (std::int64_t i = 0; i < setting.curves; ++i)
      curves.push_back(losses_of(rng, setting.epochs));
  }
  for (const auto& policy : policies) {
    double epochs = 0, above = 0, worst = 0;
    int near = 0;
    for (const auto& curves : all) {
      const Outcome outcome = policy.follow(curves);
      double full = HUGE_VAL;
      for (const auto& losses : curves) full = std::min(full, losses.back());
      const double more = outcome.loss - full;
      epochs += static_cast<double>(outcome.epochs) / static_cast<double>(all.size());
      above += more / static_cast<double>(all.size());
      worst = std::max(worst, more);
      near += more <= 0.001 ? 1 : 0;
    }
    std::cout << fmt::format("{:<32} {:>8.0f} {:>12.4f} {:>12.4f} {:>10} of {}\n", policy.name,
                             epochs, above, worst, near, all.size());
  }
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::Setting setting;
  std::int64_t* const fields[] = {&setting.curves, &setting.epochs, &setting.parallel,
                                  &setting.seeds};
  for (int i = 1; i < argc && i <= 4; ++i) *fields[i - 1] = std::max(1LL, std::atoll(argv[i]));
  berth::bench::compare(setting);
}
