// A search whose trials the program carries out itself: berth/experiment.h.
#include <berth/experiment.h>

#include <cmath>
#include <thread>

#include "expect.h"

constexpr const char* kStudy = R"(
name: parabola
passive: true
params: {x: {min: -5, max: 5}, kind: [flat, steep]}
search: {method: tpe, samples: 30, seed: 7}
goal: {metric: loss, direction: min}
)";

double loss(const berth::Trial& trial) {
  const double x = trial.number("x");
  return trial.text("kind") == "flat" ? x * x : 10 * x * x + 1;
}

/// Two machines of one's own, on which trials run in threads.
class Threads final : public berth::ResourceManager {
 public:
  std::optional<std::string> acquire() override {
    if (free_.empty()) return std::nullopt;
    most_ = std::max(most_, 3 - free_.size());
    auto name = free_.back();
    free_.pop_back();
    return name;
  }
  berth::Status run(const berth::Trial& trial, const std::string& /*resource*/,
                    std::function<void(berth::TrialOutcome)> finished) override {
    if (trial.label == "3") return std::unexpected(berth::Error{berth::ErrorKind::io, "no room"});
    threads_.emplace_back(
        [trial, finished] { finished({.metrics = {{"loss", loss(trial)}}, .failure = {}}); });
    return {};
  }
  void release(const std::string& resource) override { free_.push_back(resource); }

  std::size_t most() const { return most_; }

 private:
  std::vector<std::string> free_{"left", "right"};
  std::vector<std::jthread> threads_;
  std::size_t most_ = 0;
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
  EXPECT(failed == 1 && value(other.trials()).size() == 30);

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
