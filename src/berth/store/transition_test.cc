// Which rows a batch asks for and which it writes. What the changes mean is the contract of the
// stores: store_test.cc, store_move_test.cc, and store_differential_test.cc for random batches.
#include "berth/store/transition.h"

#include <gtest/gtest.h>

#include "berth/testing/store.h"

namespace berth::store {
namespace {

using enum TaskState;

/// A run of three tasks, of which the second runs under token 5.
CurrentRows rows_of_three() {
  CurrentRows rows;
  rows.run.record.id = RunId{1};
  rows.run.record.counts = {.waiting = 2, .running = 1};
  rows.run.record.epoch = 2;
  rows.run.last_token = Token{5};
  rows.tasks = {{TaskNumber{1}, {}},
                {TaskNumber{2}, {.state = running, .token = Token{5}, .forgiven = {}}},
                {TaskNumber{3}, {}}};
  return rows;
}

TEST(Transition, ABatchAsksOnceForEachRowThatItDependsOn) {
  const std::vector<Change> changes = {started(3, 6),         started(1, 7),
                                       ended(3, 6),           RunSpecified{"{}"},
                                       seen(9, 1, "loss", 1), TasksAdded{{{"a", {}}}}};
  const RowsWanted wanted = rows_wanted(changes);
  EXPECT_EQ(wanted.tasks, (std::vector<TaskNumber>{{1}, {3}, {9}}));
  EXPECT_EQ(wanted.labels, std::vector<std::string>{"a"});
}

TEST(Transition, AnAttemptOfOneBatchIsOneRow) {
  const std::vector<Change> changes = {started(1, 6), AttemptPlaced{{1}, {6}, "[]", at_s(12)},
                                       seen(1, 6, "loss", 2), seen(1, 6, "loss", 1), ended(1, 6)};
  const auto writes = transition(rows_of_three(), changes).value();
  ASSERT_EQ(writes.added_attempts.size(), 1U);
  EXPECT_EQ(writes.added_attempts[0].record.started, at_s(12));
  EXPECT_EQ(writes.added_attempts[0].record.ended, at_s(20));
  EXPECT_TRUE(writes.placed.empty() && writes.ended.empty());
  ASSERT_EQ(writes.tasks.size(), 1U);
  EXPECT_EQ(writes.tasks[0].row.state, done);
  EXPECT_EQ(writes.added_metrics.size(), 2U);
  ASSERT_EQ(writes.last_metrics.size(), 1U);
  EXPECT_EQ(writes.last_metrics[0].value, 1);
  EXPECT_EQ(writes.run.record.counts, (Counts{.waiting = 1, .running = 1, .done = 1}));
}

TEST(Transition, ATaskThatIsKeyedAndChangedIsOneRow) {
  const std::vector<Change> changes = {TaskKeyed{{1}, "d", "text"}, moved(1, cached),
                                       TaskKeyed{{3}, "e", ""}};
  const auto writes = transition(rows_of_three(), changes).value();
  ASSERT_EQ(writes.tasks.size(), 1U);
  ASSERT_NE(writes.tasks[0].key, nullptr);
  EXPECT_EQ(writes.tasks[0].key->digest, "d");
  ASSERT_EQ(writes.keys.size(), 1U);
  EXPECT_EQ(writes.keys[0]->task, TaskNumber{3});
}

TEST(Transition, AnAttemptOfAnEarlierBatchIsUpdated) {
  const std::vector<Change> changes = {started(2, 6, at_s(30)), ended(2, 5), ended(2, 6, failed)};
  const auto writes = transition(rows_of_three(), changes).value();
  ASSERT_EQ(writes.ended.size(), 1U);
  EXPECT_EQ(writes.ended[0].token, Token{5});
  EXPECT_EQ(writes.ended[0].at, at_s(30)) << "superseded";
  EXPECT_EQ(writes.added_attempts.size(), 1U);
  EXPECT_EQ(writes.applied.refused, 1);
  EXPECT_EQ(writes.run.last_token, Token{6});
}

TEST(Transition, WhatChangesNothingWritesNoTask) {
  const std::vector<Change> changes = {ended(1, 4), moved(2, stopped), seen(3, 5, "loss", 1),
                                       TaskReopened{{3}}};
  const auto writes = transition(rows_of_three(), changes).value();
  EXPECT_TRUE(writes.tasks.empty() && writes.ended.empty() && writes.added_metrics.empty());
}

TEST(Transition, ATaskThatTheBatchAddsMayStartInIt) {
  const std::vector<Change> changes = {TasksAdded{{{"x", {}}, {"y", {}}}}, started(5, 6)};
  const auto writes = transition(rows_of_three(), changes).value();
  ASSERT_EQ(writes.added_tasks.size(), 2U);
  EXPECT_EQ(writes.added_tasks[1].number, TaskNumber{5});
  ASSERT_EQ(writes.tasks.size(), 1U);
  EXPECT_EQ(writes.tasks[0].number, TaskNumber{5});
  const std::vector<Change> beyond = {TasksAdded{{{"x", {}}}}, started(5, 6)};
  EXPECT_EQ(transition(rows_of_three(), beyond).error().kind, ErrorKind::not_found);
}

TEST(Transition, ARunnerThatWasOvertakenIsRefused) {
  const std::vector<Change> changes = {ended(2, 5)};
  EXPECT_EQ(transition(rows_of_three(), changes, 1).error().kind, ErrorKind::stale);
  EXPECT_TRUE(transition(rows_of_three(), changes, 2));
}

TEST(Transition, ARunnerTakesOverWhatDoesNotGoOn) {
  const std::vector<Token> alive = {{5}};
  EXPECT_TRUE(
      take_over(rows_of_three(), {.pid = 1, .started_at = 1, .host = "b", .alive = alive}, at_s(50))
          .tasks.empty());
  const auto writes =
      take_over(rows_of_three(), {.pid = 1, .started_at = 1, .host = "b", .alive = {}}, at_s(50));
  ASSERT_EQ(writes.ended.size(), 1U);
  EXPECT_EQ(writes.ended[0].at, at_s(50));
  ASSERT_EQ(writes.tasks.size(), 1U);
  EXPECT_EQ(writes.tasks[0].row.state, waiting);
  EXPECT_EQ(writes.run.record.epoch, 3);
  EXPECT_EQ(writes.run.last_token, Token{std::int64_t{3} << 32});
}

}  // namespace
}  // namespace berth::store
