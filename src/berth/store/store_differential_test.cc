// Thousands of random operations, stale tokens, repeated ends and unknown tasks among them. Every
// store answers as the oracle, which keeps the rows of transition.h in plain maps, and again and
// again all rows are the same. So they are in a store that gets the changes of each batch one by
// one. What must hold of the rows whatever happens is checked, too. BERTH_SEED= replays a failure.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>

#include "berth/base/rng.h"
#include "berth/testing/postgres.h"
#include "berth/testing/store.h"

namespace berth::store {
namespace {

constexpr std::uint64_t kSeeds = 20;
constexpr int kOperations = 600;

/// What holds of the rows of any run.
void check_rows(Store& store) {
  const auto runs = store.runs().value();
  for (const RunRecord& run : runs) {
    Counts counts;
    std::set<Token> tokens;
    const auto tasks = store.tasks(run.id).value();
    for (const TaskRecord& task : tasks) {
      ++counts.of(task.state);
      Token last;
      const auto attempts = store.attempts(run.id, task.number).value();
      for (const AttemptRecord& attempt : attempts) {
        EXPECT_GT(attempt.token, last);
        EXPECT_TRUE(tokens.insert(attempt.token).second) << "a token is given once";
        last = attempt.token;
        const bool latest = task.state == TaskState::running && attempt.token == task.token;
        EXPECT_EQ(latest, !attempt.ended) << "what runs is the latest attempt of a running task";
      }
      EXPECT_EQ(task.token, last);
      EXPECT_LE(task.forgiven, last);
    }
    EXPECT_EQ(text(run.counts), text(counts));
  }
}

class Player {
 public:
  Player(std::uint64_t seed, Store& oracle, Store& stepwise)
      : chance_(seed), oracle_(oracle), stepwise_(stepwise) {}

  /// One random operation on all, with its answers.
  void play(Store& store) {
    const RunId run{pick(1, last_run_ + 1)};
    const auto same = [&](const auto& call) {
      const auto wanted = call(oracle_);
      EXPECT_EQ(text(wanted), text(call(store)));
      EXPECT_EQ(text(wanted), text(call(stepwise_)));
      return wanted;
    };
    switch (pick(0, 19)) {
      case 0:
      case 1: {
        const NewRun submitted = new_one();
        const auto record = same([&](Store& one) { return one.submit(submitted); });
        if (record) last_run_ = record->id.value;
        return;
      }
      case 2: {
        const auto pid = pick(1, 9999);
        const Wall now = time();
        std::vector<Token> alive;
        for (const auto& task : oracle_.tasks(run).value_or(std::vector<TaskRecord>{}))
          if (pick(0, 1) == 0) alive.push_back(task.token);
        const auto taken = same([&](Store& one) { return one.take_over(run, pid, 7, now, alive); });
        if (taken) epoch_ = std::max(epoch_, taken->epoch);
        return;
      }
      case 4: {
        const auto digest = std::to_string(pick(0, 9));
        same([&](Store& one) { return one.result(digest); });
        return;
      }
      case 5: {
        const Wall since = time();
        same([&](Store& one) { return one.forget_results(since); });
        return;
      }
      case 3:
        if (pick(0, 3) == 0) {
          same([&](Store& one) { return one.remove(run); });
          return;
        }
        [[fallthrough]];
      default: return apply(store, run);
    }
  }

  /// How many batches were applied: a test that is refused all the time tests little.
  int accepted() const { return accepted_; }

 private:
  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(chance_.below(static_cast<std::uint64_t>(most - least + 1)));
  }
  Wall time() { return Wall(Duration(pick(0, 1'000'000'000'000))); }

  NewRun new_one() {
    NewRun run = new_run(pick(0, 1) == 0 ? "a" : "b", static_cast<int>(pick(0, 6)));
    if (pick(0, 9) == 0 && !run.tasks.empty()) run.tasks.push_back(run.tasks.front());
    return run;
  }

  void apply(Store& store, RunId run) {
    std::vector<Change> changes;
    for (auto left = pick(1, 6); left > 0; --left) changes.push_back(change(run));
    const auto applied = oracle_.apply(run, changes);
    EXPECT_EQ(text(applied), text(store.apply(run, changes)));
    if (!applied) return;
    ++accepted_;
    std::int64_t refused = 0;
    for (const Change& one : changes) refused += stepwise_.apply(run, std::span(&one, 1))->refused;
    EXPECT_EQ(applied->refused, refused);
  }

  /// Mostly one that fits the state of the task before the batch.
  Change change(RunId run) {
    const auto tasks = oracle_.tasks(run).value_or(std::vector<TaskRecord>{});
    const auto count = static_cast<std::int64_t>(tasks.size());
    const auto number = pick(1, count + (count == 0 || pick(0, 99) == 0 ? 1 : 0));
    TaskRecord task;
    if (number <= count) task = tasks[static_cast<std::size_t>(number - 1)];
    task.number = TaskNumber{number};
    const std::int64_t token = pick(0, 9) == 0 ? pick(0, last_token_) : task.token.value;
    constexpr TaskState kEnds[] = {TaskState::done, TaskState::failed, TaskState::waiting,
                                   TaskState::waiting, TaskState::stopped};
    constexpr TaskState kMoves[] = {TaskState::waiting, TaskState::waiting, TaskState::stopped,
                                    TaskState::stopped, TaskState::failed,  TaskState::cached,
                                    TaskState::skipped};
    constexpr const char* kMetrics[] = {"loss", "accuracy", "zeta"};
    switch (pick(0, 9)) {
      case 0:
        if (pick(0, 2) == 0) return TaskReopened{task.number};
        return TaskMoved{task.number, kMoves[pick(0, 6)]};
      case 1:
        if (pick(0, 3) == 0)
          return TasksAdded{{{std::to_string(pick(1, count + 2)), {{"lr", "1"}}},
                             {std::to_string(count + 3), {}}}};
        if (pick(0, 3) == 0)
          return ResultKept{std::to_string(pick(0, 9)), text(task.exit_code), "a-1/2", time()};
        if (pick(0, 3) == 0) return TaskKeyed{task.number, std::to_string(pick(0, 9)), "{}"};
        if (pick(0, 3) == 0)
          return RunStepped{static_cast<Phase>(pick(0, 3)), std::to_string(pick(0, 9)), pick(0, 9),
                            pick(0, 1) == 0 ? std::nullopt : std::optional(time())};
        return RunMoved{static_cast<RunState>(pick(0, 4)), time(), text(task.exit_code),
                        std::to_string(pick(0, 9))};
      case 2:
      case 3:
      case 4: {
        AttemptEnded end = ended(task.number.value, token, kEnds[pick(0, 4)], time());
        if (pick(0, 2) == 0) end.exit_code.reset();
        end.detail = std::to_string(pick(0, 5));
        end.cpu_ms = pick(0, 1000);
        end.log_end = pick(0, 1'000'000);
        return end;
      }
      case 5:
        if (pick(0, 2) == 0)
          return AttemptPlaced{task.number, Token{token}, std::to_string(pick(0, 9)),
                               pick(0, 1) == 0 ? std::nullopt : std::optional(time())};
        [[fallthrough]];
      case 6:
        if (pick(0, 3) == 0) return AttemptKept{task.number, Token{token}, pick(0, 1'000'000)};
        if (pick(0, 3) == 0)
          return ParamsSet{task.number, Token{token}, {{"x", text(task.exit_code)}}};
        return seen(task.number.value, token, kMetrics[pick(0, 2)], chance_.uniform());
      default:
        if (pick(0, 19) != 0) last_token_ = std::max(last_token_, epoch_ << 32) + 1;
        auto start = started(task.number.value, last_token_, time());
        if (pick(0, 1) == 0) start.lease = pick(0, 1'000'000);
        return start;
    }
  }

  Rng chance_;
  Store& oracle_;
  Store& stepwise_;
  std::int64_t last_run_ = 0;
  std::int64_t last_token_ = 0;  // of all runs
  std::int64_t epoch_ = 0;       // the highest of all runs
  int accepted_ = 0;
};

using Open = std::function<Result<std::unique_ptr<Store>>()>;

void play_seed(std::uint64_t seed, const Open& open) {
  SCOPED_TRACE(fmt::format("BERTH_SEED={}", seed));
  auto store = open().value();
  const auto oracle = memory_store();
  const auto stepwise = memory_store();
  Player player(seed, *oracle, *stepwise);
  for (int i = 0; i < kOperations; ++i) {
    player.play(*store);
    if (i % 50 == 49) {
      ASSERT_EQ(everything(*oracle), everything(*store)) << "operation " << i;
      ASSERT_EQ(everything(*oracle), everything(*stepwise)) << "operation " << i;
      check_rows(*oracle);
    }
    if (i % 200 == 199) {
      store.reset();
      store = open().value();
    }
    if (testing::Test::HasFailure()) FAIL() << "operation " << i;
  }
  EXPECT_GT(player.accepted(), kOperations / 4);
}

void play_sqlite(std::uint64_t seed) {
  const TemporaryDirectory directory;
  play_seed(seed, [&] { return sqlite_store(directory / "berth.db"); });
}

void play_postgres(std::uint64_t seed) {
  const TestDatabase database;
  play_seed(seed, [&] { return test_store(database.url()); });
}

void play_seeds(std::uint64_t most, void (*play)(std::uint64_t)) {
  if (const char* seed = std::getenv("BERTH_SEED")) return play(std::strtoull(seed, nullptr, 10));
  for (std::uint64_t seed = 1; seed <= most; ++seed) play(seed);
}

TEST(StoreDifferential, SqliteAnswersAsTheOracle) {
  play_seeds(kSeeds, play_sqlite);
}

TEST(StoreDifferential, PostgresAnswersAsTheOracle) {
  if (test_server().empty()) GTEST_SKIP() << "no server: tests/postgres_server.py starts one";
  play_seeds(kSeeds / 5, play_postgres);
}

}  // namespace
}  // namespace berth::store
