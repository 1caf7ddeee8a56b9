#include "berth/run/state/run_end.h"

#include <gtest/gtest.h>

#include "berth/testing/run.h"

namespace berth::run {
namespace {

store::RunRecord ended(store::RunState state, std::string result = "") {
  store::RunRecord run;
  run.kind = "experiment";
  run.state = state;
  run.result = std::move(result);
  return run;
}

TEST(RunEnd, KnowsWhatStoppedARun) {
  const auto stopped = store::RunState::stopped;
  EXPECT_EQ(stopped_by(ended(stopped, R"({"done":1,"stopped_by":"interrupt"})")),
            StoppedBy::interrupt);
  EXPECT_EQ(stopped_by(ended(stopped, R"({"done":1,"stopped_by":"request"})")), StoppedBy::request);
  for (const char* result :
       {"", "{}", "[]", "no JSON", R"({"stopped_by":"x"})", R"({"stopped_by":1})"})
    EXPECT_FALSE(stopped_by(ended(stopped, result))) << result;
  EXPECT_FALSE(stopped_by(ended(store::RunState::done, R"({"stopped_by":"interrupt"})")));
}

TEST(RunEnd, ExitCodesFollowTheState) {
  const auto store = store::memory_store();
  const auto code = [&](store::RunState state, std::string result = "") {
    return exit_code_of(*store, ended(state, std::move(result))).value();
  };
  EXPECT_EQ(code(store::RunState::done), 0);
  EXPECT_EQ(code(store::RunState::failed), 1);
  EXPECT_EQ(code(store::RunState::stopped), 3);
  EXPECT_EQ(code(store::RunState::stopped, R"({"stopped_by":"request"})"), 3);
  EXPECT_EQ(code(store::RunState::stopped, R"({"stopped_by":"interrupt"})"), 130);
  EXPECT_EQ(code(store::RunState::queued), 3);
}

TEST(RunEnd, ACommandReturnsItsOwnExitCode) {
  struct Row {
    exec::Cause cause;
    std::optional<int> exit_code;
    int signal, code;
  };
  for (const Row& row : {Row{exec::Cause::exit_code, 7, 0, 7},
                         {exec::Cause::exit_code, 130, 0, 130},
                         {exec::Cause::signal, {}, 11, 139},
                         {exec::Cause::time_limit, {}, 15, 124},
                         {exec::Cause::out_of_memory, {}, 9, 137},
                         {exec::Cause::cannot_start, {}, 0, 1}}) {
    const auto store = store::memory_store();
    auto run = store->submit({.name = "c",
                              .kind = "command",
                              .spec_json = "{}",
                              .directory = "/",
                              .created = {},
                              .tasks = {{"1", {}}}});
    ASSERT_TRUE(run);
    const Token token{1};
    const std::vector<store::Change> changes{
        store::AttemptStarted{{1}, token, {}, "{}", "box"},
        store::AttemptEnded{.task = {1},
                            .token = token,
                            .at = {},
                            .next = store::TaskState::failed,
                            .cause = row.cause,
                            .exit_code = row.exit_code,
                            .signal = row.signal,
                            .detail = {}},
        store::RunMoved{store::RunState::failed, {}, "1 of 1 failed"}};
    ASSERT_TRUE(store->apply(run->id, changes));
    run = store->find_run("c-1");
    EXPECT_EQ(exit_code_of(*store, *run).value(), row.code) << exec::kCauseNames.name(row.cause);
  }
}

}  // namespace
}  // namespace berth::run
