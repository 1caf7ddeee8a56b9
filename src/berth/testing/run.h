// Tests of whole runs use a fake world with a memory store and two cores, and an observer that
// keeps what it is shown.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "berth/run/drive/runner.h"
#include "berth/run/drive/source.h"
#include "berth/testing/fake_env.h"

namespace berth::run::testing {

class Quiet : public Observer {
 public:
  void on_progress(const Progress& progress, Mono) override { last = progress; }
  void on_task_end(const TaskEnd& end) override { ends.push_back(end); }
  void on_output(const exec::Output&) override {}
  void on_note(const std::string& note) override { notes.push_back(note); }
  Progress last;
  std::vector<TaskEnd> ends;
  std::vector<std::string> notes;
};

struct World {
  explicit World(std::uint64_t seed = 1) : env(seed) {
    env.put("/proc/meminfo", "MemTotal: 16000000 kB\n");
    env.put("/proc/self/cgroup", "");
    env.put("/proc/self/mountinfo", "");
    (void)env.make_directory("/state", 0700);
    context.env = &env;
    context.state_directory = "/state";
    context.store = store::memory_store();
    context.ledger_directory = "/ledger";
    context.capacity.disk_directory = "/state";
  }
  store::RunRecord submit_trials(int count, const std::string& more = "") {
    const auto program = experiment::read_program(
        fmt::format("name: t\nrun: ./x {{i}}\nparams: {{i: {{min: 1, max: {}, type: int}}}}\n{}",
                    count, more),
        "t.yaml");
    EXPECT_TRUE(program) << program.error().message;
    const auto run = submit(context, *program, "/work");
    EXPECT_TRUE(run) << run.error().message;
    return *run;
  }
  os::FakeEnv env;
  Context context;
  Quiet observer;
};

}  // namespace berth::run::testing
