// A search whose trials the program carries out itself: berth/experiment.h.
#include <berth/experiment.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "expect.h"

constexpr const char* kStudy = R"(
name: parabola
passive: true
params: {x: {min: -5, max: 5}, kind: [flat, steep]}
search: {method: tpe, samples: 30, seed: 7}
goal: {metric: loss, direction: min}
)";

constexpr const char* kCurves = R"(
name: curves
passive: true
params: {x: [1, 2, 3, 900]}
search: {method: grid}
goal: {metric: loss, direction: min}
early_stop: {policy: median, warmup: 2, every: 1}
)";

double loss(const berth::Trial& trial) {
  const double x = trial.number("x");
  return trial.text("kind") == "flat" ? x * x : 10 * x * x + 1;
}

/// Two machines of one's own, on which trials run in threads.
class Threads : public berth::ResourceManager {
 public:
  std::optional<std::string> acquire() override {
    if (free_.empty()) return std::nullopt;
    most_ = std::max(most_, 3 - free_.size());
    auto name = free_.back();
    free_.pop_back();
    return name;
  }
  berth::Status run(const berth::Trial& trial, const std::string& /*resource*/,
                    berth::TrialReporter reporter) override {
    if (trial.label == "3") return std::unexpected(berth::Error{berth::ErrorKind::io, "no room"});
    if (trial.label == "5") throw std::runtime_error("no thread");
    if (trial.label == "7") return {};  // and forgets it
    threads_.emplace_back([trial, reporter] {
      reporter.finished({.metrics = {{"loss", loss(trial)}}, .failure = {}});
    });
    return {};
  }
  void release(const std::string& resource) override { free_.push_back(resource); }

  std::size_t most() const { return most_; }

 protected:
  std::vector<std::jthread> threads_;

 private:
  std::vector<std::string> free_{"left", "right"};
  std::size_t most_ = 0;
};

/// Trials that report after each epoch, and end when they should.
class Epochs final : public Threads {
 public:
  berth::Status run(const berth::Trial& trial, const std::string& /*resource*/,
                    berth::TrialReporter reporter) override {
    threads_.emplace_back([trial, reporter] {
      for (int epoch = 1; epoch <= 200 && !reporter.should_stop(); ++epoch) {
        reporter.report({{"loss", trial.number("x") / epoch}});
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      reporter.finished({.metrics = {{"loss", trial.number("x") / 200}}, .failure = {}});
    });
    return {};
  }
  void stop(const berth::Trial& trial, const std::string& why) override {
    stopped.push_back(trial.label);
    std::cout << trial.label << " should end: " << why << '\n';
  }

  std::vector<std::string> stopped;
};

/// One whose resources cannot be had.
class Broken final : public Threads {
 public:
  std::optional<std::string> acquire() override { throw std::runtime_error("the rack is on fire"); }
};

int main() {
  const berth::StudyOptions memory{.state_directory = {}, .in_memory = true};

  // Ask and tell, one by one.
  auto study = value(berth::Study::create(kStudy, memory));
  EXPECT(study.name() == "parabola-1");
  value(study.enqueue({{"x", "4"}, {"kind", "flat"}}));  // a proposal of one's own comes first
  int trials = 0;
  for (auto asked = value(study.ask()); asked.trial; asked = value(study.ask()), ++trials) {
    if (trials == 0) EXPECT(asked.trial->number("x") == 4);
    EXPECT(!value(study.report(*asked.trial, {{"loss", 100}})));
    value(study.tell(*asked.trial, {{"loss", loss(*asked.trial)}}));
    EXPECT(study.tell(*asked.trial, {{"loss", 0}}).error().kind == berth::ErrorKind::stale);
  }
  EXPECT(trials >= 30 && value(study.ask()).over);
  const auto best = value(study.best());
  EXPECT(best && best->state == "done" && std::abs(best->number("x")) < 2);
  std::cout << best->label << ": x " << best->text("x") << '\n';

  // Where trials run is somebody else's business: a resource manager. One of them fails.
  auto other = value(berth::Study::create(kStudy, memory));
  Threads threads;
  const auto found = value(berth::carry_out(other, threads));
  EXPECT(found && found->text("kind") == "flat" && threads.most() == 2);
  int failed = 0;
  for (const auto& trial : value(other.trials())) failed += trial.state == "failed";
  EXPECT(failed == 3 && value(other.trials()).size() == 30);

  // A trial that should end early is told so, and is done with what it had reported.
  auto epochs = value(berth::Study::create(kCurves, memory));
  Epochs manager;
  const auto least = value(berth::carry_out(epochs, manager));
  EXPECT(least && least->number("x") == 1);
  EXPECT(std::ranges::find(manager.stopped, "4") != manager.stopped.end());
  for (const auto& trial : value(epochs.trials())) EXPECT(trial.state == "done");

  // What a manager throws is an error.
  Broken broken;
  value(other.set_samples(31));
  const auto burnt = berth::carry_out(other, broken);
  EXPECT(!burnt && burnt.error().kind == berth::ErrorKind::invalid);
  EXPECT(burnt.error().message.find("the rack is on fire") != std::string::npos);

  // A study that is kept is opened again by its name; the trial that nobody told is given out
  // again.
  {
    auto kept = value(berth::Study::create(kStudy));
    EXPECT(value(kept.ask()).trial->label == "1" && kept.renew_within());
  }
  auto again = value(berth::Study::open("parabola-1"));
  EXPECT(value(again.ask()).trial->label == "1");
  EXPECT(berth::Study::open("parabola-2").error().kind == berth::ErrorKind::not_found);

  const auto wrong =
      berth::Study::create("name: x\npassive: true\nsearch: {method: tpee}\n", memory);
  EXPECT(!wrong && wrong.error().kind == berth::ErrorKind::invalid);
  EXPECT(berth::search_methods().size() >= 10);
}
