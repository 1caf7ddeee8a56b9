// The ten most used classes and methods of the Python resource managers, written with Berth.
// docs/how-to/moving/resource-managers.md lists all of them.
// A comment that has only names marks what the code replaces.
#include <berth/experiment.h>
#include <berth/run.h>

#include <fstream>
#include <thread>

#include "../cpp/expect.h"

constexpr const char* kExperiment = R"(
name: rosenbrock
passive: true
params: {x: {min: -5, max: 10}, y: {min: -5, max: 10}}
search: {method: random, samples: 12, seed: 7}
goal: {metric: score, direction: min}
)";

double score(const berth::Trial& job) {
  const double x = job.number("x"), y = job.number("y");
  return (1 - x) * (1 - x) + 100 * (y - x * x) * (y - x * x);
}

// AbstractResourceManager
class Rack final : public berth::ResourceManager {
 public:
  // AbstractResourceManager.get_available
  std::optional<std::string> acquire() override {
    if (free_.empty()) return std::nullopt;
    const auto slot = free_.back();
    free_.pop_back();
    return slot;
  }
  // AbstractResourceManager.run
  berth::Status run(const berth::Trial& job, const std::string& /*slot*/,
                    berth::TrialReporter reporter) override {
    threads_.emplace_back([job, reporter] {
      // AbstractResourceManager.is_job_stopped
      if (reporter.should_stop()) return reporter.finished({.failure = "stopped"});
      // AbstractResourceManager.finish_job
      reporter.finished({.metrics = {{"score", score(job)}}});
    });
    return {};
  }
  void release(const std::string& slot) override { free_.push_back(slot); }

 private:
  std::vector<std::string> free_{"left", "right"};
  std::vector<std::jthread> threads_;
};

int main() {
  const berth::StudyOptions memory{.in_memory = true};
  auto experiment = value(berth::Study::create(kExperiment, memory));
  Rack rack;
  // AbstractResourceManager.run_job, AbstractResourceManager.finish
  const auto best = value(berth::carry_out(experiment, rack));
  EXPECT(best && best->metrics.at(0).second == score(*best));

  // PassiveResourceManager.get_available
  auto passive = value(berth::Study::create(kExperiment, memory));
  const auto asked = value(passive.ask());
  // PassiveResourceManager.run
  value(passive.tell(*asked.trial, {{"score", score(*asked.trial)}}));

  // CPUResourceManager.run
  std::ofstream("square.yaml") << "name: square\n"
                                  "run: echo \"#Auptimizer:$(({x} * {x}))\"\n"
                                  "params: {x: [3, -1, 2]}\n"
                                  "resources: {cpu: 0.5}\n"
                                  "goal: {metric: score, direction: min}\n";
  auto runs = value(berth::Runs::open());
  const auto square = value(runs.record_file("square.yaml", {.parallel = 2}));
  EXPECT(value(runs.drive(square)).counts.done == 3);
}
