// What Berth promises of a run, checked after every event of a simulation: what each task's
// processes did is noted here as it happens, and compared with what the store says.
//
// Threads: one. Failure: the first promise that is broken is kept, as a sentence.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/run/drive/runner.h"
#include "berth/store/store.h"
#include "berth/testing/fake_env.h"

namespace berth::simulate {

/// One process of a task, as it was.
struct Execution {
  std::string run, label, machine;
  Token token;
  std::int64_t cpu_milli = 0;
  std::vector<std::string> devices;
  std::string output;
  std::optional<int> exit_code;  // it ended by itself
  bool alive = true;
  bool was_frozen = false;          // its machine was, while it lived
  Mono ended{};                     // when it did by itself
  const os::FakeEnv* by = nullptr;  // the agent at home that keeps what came of it
};

class Contract {
 public:
  Contract(os::FakeEnv& kernel, store::Store& durable) : kernel_(kernel), durable_(durable) {}

  struct Expected {    // of a task
    int failures = 0;  // so many executions fail
    Duration duration{};
    std::size_t output = 0;
  };
  /// What the tasks of a run do.
  std::function<Expected(const std::string& run, const std::string& label)> expected;
  int retries = 0;
  bool trace = false;
  std::int64_t cores_of_a_machine = 4;
  bool is_peaceful = false;          // nothing happens, but that runs are stopped
  bool results_may_be_lost = false;  // of flows: what is kept at home could not be read once
  std::set<std::string> keeps_work;  // runs to whose agents nothing happens: no end may be lost

  os::FakeProgram started(const os::SpawnSpec& spec, const std::string& machine,
                          const os::FakeEnv* by);
  /// A process is killed; what it wrote until then came to its files, or some did not.
  void died(const os::FakeEnv& process, bool writes);
  /// When something last started or ended.
  Mono last_activity() const { return last_activity_; }
  bool any_alive() const { return !alive_.empty(); }
  void froze(const std::string& machine);
  /// A runner has taken the run over.
  void taken_over(const std::string& run);
  /// What a run's observer is told.
  void shown(const std::string& run, const run::TaskEnd& end);
  /// After every event.
  void check();
  /// Of a run that has ended.
  void check_ended(const store::RunRecord& run, os::Env& home, const std::string& run_directory,
                   bool disturbed);
  /// Nothing may be left anywhere.
  void check_nothing_runs();

  bool broken() const { return broken_.has_value(); }
  const std::optional<std::string>& what() const { return broken_; }
  void breach(std::string what);
  std::size_t executions() const { return executions_.size(); }

 private:
  std::string recorded(const Execution& one);
  bool may_run_again(const store::RunRecord& run) const {
    return run.kind == "flow" && results_may_be_lost;
  }
  void check_that_it_was_not_done(const Execution& next);
  void check_attempts(const store::RunRecord& run, const store::TaskRecord& task, os::Env& home,
                      const std::string& run_directory, bool disturbed);

  os::FakeEnv& kernel_;
  store::Store& durable_;
  std::map<std::pair<std::string, std::int64_t>, Execution> executions_;  // by run and token
  std::set<std::pair<std::string, std::int64_t>> alive_, traced_;
  std::map<std::pair<std::string, std::string>, int> failures_;
  Mono last_activity_{};
  std::optional<std::string> broken_;
};

}  // namespace berth::simulate
