// A store for tests that fails when it is told to, and otherwise passes calls on to another.
#pragma once

#include <functional>

#include "berth/store/store.h"

namespace berth::store {

struct StoreFault {
  std::int64_t call = 1;   ///< The first call that fails, counted from arm() on.
  std::int64_t times = 1;  ///< How many calls in a row fail.
  Error error{ErrorKind::full, "injected"};
  bool took_effect = false;  ///< Whether the call does its work, as when only the answer is lost.
};

/// `inner` must outlive it. Threads: as for Store.
class FailingStore final : public Store {
 public:
  explicit FailingStore(Store& inner) : inner_(inner) {}

  void arm(StoreFault fault) {
    fault_ = std::move(fault);
    calls_ = 0;
  }
  void disarm() { fault_.reset(); }
  /// Asked before each call, and after one that went well: an error is what the caller gets.
  std::function<std::optional<Error>()> before_call, after_call;
  /// Told of each batch that was applied, whether its answer was lost or not.
  std::function<void(RunId, std::span<const Change>)> on_applied;

  /// How many calls there were since arm(), or since the start.
  std::int64_t calls() const { return calls_; }

  Result<RunRecord> submit(const NewRun& run) override;
  Result<RunRecord> take_over(RunId run, std::int64_t runner_pid, std::int64_t runner_started_at,
                              Wall now, std::span<const Token> alive) override;
  Result<Applied> apply(RunId run, std::span<const Change> changes) override;
  Result<std::vector<RunRecord>> runs() override;
  Result<RunRecord> find_run(std::string_view name) override;
  Result<std::vector<TaskRecord>> tasks(RunId run) override;
  Result<TaskRecord> find_task(RunId run, std::string_view label) override;
  Result<std::vector<AttemptRecord>> attempts(RunId run, TaskNumber task) override;
  Result<News> news(RunId run, std::span<const TaskNumber> open, TaskNumber last) override;
  Result<std::vector<MetricRecord>> metrics(RunId run, TaskNumber task,
                                            std::int64_t after) override;
  Result<std::vector<Usage>> usage(RunId run) override;
  Status remove(RunId run) override;
  Result<ResultRecord> result(const std::string& digest) override;
  Result<std::vector<ResultRecord>> results(std::int64_t after) override;
  Result<std::int64_t> forget_results(Wall unused_since) override;

 private:
  template <class Call>
  auto pass(Call call) -> decltype(call());

  Store& inner_;
  std::optional<StoreFault> fault_;
  std::int64_t calls_ = 0;
};

}  // namespace berth::store
