// The life of files in whole runs on a fake world: temporary, protected, and named by depfiles.
#include <gtest/gtest.h>

#include <algorithm>

#include "berth/run/drive/runner.h"
#include "berth/run/flows/dependencies.h"
#include "berth/run/flows/flow_plan.h"
#include "berth/run/flows/temporary.h"
#include "berth/testing/fake_env.h"
#include "berth/testing/run.h"

namespace berth::run {
namespace {

using testing::Quiet;

/// Each program is "make OUT [IN…]": OUT holds what the inputs hold, after its name. One that is
/// called "cc" writes OUT.d too, which names `reads`; one in `failing` fails.
class FlowLife : public ::testing::Test {
 protected:
  FlowLife() {
    env_.put("/proc/meminfo", "MemTotal: 16000000 kB\n");
    env_.put("/proc/self/cgroup", "");
    env_.put("/proc/self/mountinfo", "");
    for (const auto* path : {"/state", "/work", "/bin"}) (void)env_.make_directory(path, 0700);
    for (const auto* path : {"/bin/make", "/bin/cc"}) env_.put(path, "");
    env_.variables["PATH"] = "/bin";
    context_.env = &env_;
    context_.state_directory = "/state";
    context_.store = store::memory_store();
    context_.ledger_directory = "/ledger";
    context_.capacity.disk_directory = "/state";
    env_.program = [this](const os::SpawnSpec& spec) { return play(spec); };
  }
  os::FakeProgram play(const os::SpawnSpec& spec) {
    const std::string& out = spec.argv.at(1);
    ran_.push_back(out);
    std::string text = out;
    for (const auto& in : std::span(spec.argv).subspan(2)) {
      const auto* found = env_.find(spec.directory + "/" + in);
      text += "(" + (found == nullptr ? "?" : *found) + ")";
    }
    env_.put(spec.directory + "/" + out, text);
    if (spec.argv[0] == "cc") env_.put(spec.directory + "/" + out + ".d", out + ": " + reads_);
    return {.duration = std::chrono::seconds(1),
            .exit_code = static_cast<int>(std::ranges::count(failing_, out))};
  }
  FlowProgram program(const std::string& steps) {
    FlowProgram program;
    program.text = "name: f\nsteps:\n" + steps;
    program.file = "f.yaml";
    program.name = "f";
    return program;
  }
  /// A run of the flow: what its programs wrote.
  flow::Words drive_flow(const std::string& steps, store::RunState state = store::RunState::done) {
    ran_.clear();
    auto flow = program(steps);
    const auto checked = check_flow(context_, flow, "/work");
    EXPECT_TRUE(checked) << checked.error().message;
    const auto run = submit(context_, flow, "/work");
    EXPECT_TRUE(run) << run.error().message;
    const auto done = drive(context_, run->name, observer_);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->state, state);
    EXPECT_EQ(env_.descriptors(), 0U);
    last_ = *done;
    std::ranges::sort(ran_);
    return ran_;
  }
  std::string cause_of(const std::string& task) {
    const auto record = context_.store->find_task(last_.id, task).value();
    return context_.store->attempts(last_.id, record.number).value().back().detail;
  }

  os::FakeEnv env_;
  Context context_;
  Quiet observer_;
  flow::Words ran_, failing_;
  std::string reads_;
  store::RunRecord last_;
};

constexpr const char* kChain =
    "  a: {run: 'make {out.o} {in.i}', in: {i: in}, out: {o: a}, temp: true}\n"
    "  b: {run: 'make {out.o} {in.i}', in: {i: a.o}, out: {o: b}, temp: true}\n"
    "  c: {run: 'make {out.o} {in.i}', in: {i: b.o}, out: {o: c}}\n";

TEST_F(FlowLife, TemporaryOutputsGoAndNothingIsToBeDone) {
  env_.put("/work/in", "1");
  EXPECT_EQ(drive_flow(kChain), (flow::Words{"a", "b", "c"}));
  EXPECT_EQ(*env_.find("/work/c"), "c(b(a(1)))");
  EXPECT_EQ(env_.find("/work/a"), nullptr);
  EXPECT_EQ(env_.find("/work/b"), nullptr);
  auto cache = open_cache(context_).value();
  EXPECT_EQ(cache.usage()->objects, 2) << "in and c";
  EXPECT_EQ(drive_flow(kChain), flow::Words{});
  EXPECT_EQ(last_.counts, (store::Counts{.cached = 3}));
}

TEST_F(FlowLife, AChainComesBackWhereItsEndIsNeeded) {
  env_.put("/work/in", "1");
  (void)drive_flow(kChain);
  const std::string more =
      std::string(kChain) + "  d: {run: 'make {out.o} {in.i}', in: {i: b.o}, out: {o: d}}\n";
  auto planned = program(more);
  const auto steps = plan(context_, planned, "/work").value();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(steps[i].runs, i == 2 ? 0 : 1) << i;
  EXPECT_EQ(steps[1].tasks.at(0).because.at(0), "its output was temporary, and d needs it");
  EXPECT_EQ(drive_flow(more), (flow::Words{"a", "b", "d"}));
  EXPECT_EQ(*env_.find("/work/d"), "d(b(a(1)))");
  EXPECT_EQ(env_.find("/work/b"), nullptr);
  EXPECT_EQ(drive_flow(more), flow::Words{});
}

TEST_F(FlowLife, WhileAReaderHasFailedItStays) {
  env_.put("/work/in", "1");
  failing_ = {"c"};
  EXPECT_EQ(drive_flow(kChain, store::RunState::failed), (flow::Words{"a", "b", "c"}));
  EXPECT_EQ(env_.find("/work/a"), nullptr);
  EXPECT_NE(env_.find("/work/b"), nullptr);
  failing_.clear();
  EXPECT_EQ(drive_flow(kChain), (flow::Words{"c"}));
  EXPECT_EQ(env_.find("/work/b"), nullptr);
}

/// At each removal that fails the runner might have been killed as well: the next run removes it.
TEST_F(FlowLife, WhatCouldNotBeRemovedGoesWithTheNextRun) {
  env_.put("/work/in", "1");
  env_.fault = [this](std::string_view call) -> std::optional<Error> {
    if (call == "remove_file" && ran_.size() == 3) return Error{ErrorKind::io, "no"};
    return std::nullopt;
  };
  (void)drive_flow(kChain);
  env_.fault = nullptr;
  EXPECT_NE(env_.find("/work/b"), nullptr);
  EXPECT_EQ(drive_flow(kChain), flow::Words{});
  EXPECT_EQ(env_.find("/work/b"), nullptr);
  EXPECT_EQ(open_cache(context_).value().usage()->objects, 2);
}

constexpr const char* kCompile =
    "  cc: {run: 'cc {out.o} {in.c}', in: {c: src/a.c}, out: {o: a.o}, depfile: '{out.o}.d'}\n";

TEST_F(FlowLife, WhatADepfileNamesCounts) {
  env_.put("/work/src/a.c", "a");
  env_.put("/work/src/a.h", "h");
  reads_ = "src/a.c src/a.h";
  EXPECT_EQ(drive_flow(kCompile), flow::Words{"a.o"});
  EXPECT_EQ(drive_flow(kCompile), flow::Words{});
  env_.put("/work/src/a.h", "other");
  EXPECT_EQ(drive_flow(kCompile), flow::Words{"a.o"});
  env_.put("/work/src/a.h", "h");
  EXPECT_EQ(drive_flow(kCompile), flow::Words{});
  (void)env_.remove_file("/work/src/a.h");
  reads_ = "src/a.c";
  EXPECT_EQ(drive_flow(kCompile), flow::Words{"a.o"}) << "it is gone";
}

TEST_F(FlowLife, WhatIsNamedButNotThereFailsTheTask) {
  env_.put("/work/src/a.c", "a");
  reads_ = "src/b.h";
  (void)drive_flow(kCompile, store::RunState::failed);
  EXPECT_NE(cause_of("cc").find("depfile a.o.d: "), std::string::npos);
}

TEST_F(FlowLife, OnFailureStopsTheRun) {
  std::string steps = "  bad: {run: make bad, out: {o: bad}, on_failure: stop, priority: 1}\n";
  for (int i = 0; i < 9; ++i) steps += fmt::format("  s{0}: {{run: make s{0}}}\n", i);
  failing_ = {"bad"};
  EXPECT_LT(drive_flow(steps, store::RunState::failed).size(), 5U);
  failing_ = {"s0"};
  EXPECT_EQ(drive_flow(steps, store::RunState::failed).size(), 10U) << "that one may fail";
}

TEST(GoneText, IsNoneOfAResultThatIsThere) {
  const std::vector<fileset::Fileset> outputs{
      fileset::Fileset{{{".", fileset::Entry::Kind::file, sha256("x"), 1, {}}}}};
  EXPECT_FALSE(parse_gone(to_text(outputs)));
  EXPECT_FALSE(parse_outputs(gone_text(outputs))) << "an older Berth runs the task again";
  EXPECT_EQ(parse_gone(gone_text(outputs)), outputs);
}

}  // namespace
}  // namespace berth::run
