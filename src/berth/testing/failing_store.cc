#include "berth/testing/failing_store.h"

namespace berth::store {

template <class Call>
auto FailingStore::pass(Call call) -> decltype(call()) {
  const std::int64_t nth = ++calls_;
  if (before_call)
    if (auto error = before_call()) return std::unexpected(*std::move(error));
  if (!fault_ || nth < fault_->call || nth - fault_->call >= fault_->times) {
    auto answer = call();
    if (answer && after_call)
      if (auto error = after_call()) return std::unexpected(*std::move(error));
    return answer;
  }
  if (fault_->took_effect) BERTH_TRY(call());
  return std::unexpected(fault_->error);
}

Result<RunRecord> FailingStore::submit(const NewRun& run) {
  return pass([&] { return inner_.submit(run); });
}
Result<RunRecord> FailingStore::take_over(RunId run, std::int64_t runner_pid,
                                          std::int64_t runner_started_at, Wall now,
                                          std::span<const Token> alive) {
  return pass([&] { return inner_.take_over(run, runner_pid, runner_started_at, now, alive); });
}
Result<Applied> FailingStore::apply(RunId run, std::span<const Change> changes) {
  return pass([&] {
    auto applied = inner_.apply(run, changes);
    if (applied && on_applied) on_applied(run, changes);
    return applied;
  });
}
Result<std::vector<RunRecord>> FailingStore::runs() {
  return pass([&] { return inner_.runs(); });
}
Result<RunRecord> FailingStore::find_run(std::string_view name) {
  return pass([&] { return inner_.find_run(name); });
}
Result<std::vector<TaskRecord>> FailingStore::tasks(RunId run) {
  return pass([&] { return inner_.tasks(run); });
}
Result<TaskRecord> FailingStore::find_task(RunId run, std::string_view label) {
  return pass([&] { return inner_.find_task(run, label); });
}
Result<std::vector<AttemptRecord>> FailingStore::attempts(RunId run, TaskNumber task) {
  return pass([&] { return inner_.attempts(run, task); });
}
Result<News> FailingStore::news(RunId run, std::span<const TaskNumber> open, TaskNumber last) {
  return pass([&] { return inner_.news(run, open, last); });
}
Result<std::vector<MetricRecord>> FailingStore::metrics(RunId run, TaskNumber task,
                                                        std::int64_t after) {
  return pass([&] { return inner_.metrics(run, task, after); });
}
Result<std::vector<Usage>> FailingStore::usage(RunId run) {
  return pass([&] { return inner_.usage(run); });
}

Status FailingStore::remove(RunId run) {
  return pass([&] { return inner_.remove(run); });
}
Result<ResultRecord> FailingStore::result(const std::string& digest) {
  return pass([&] { return inner_.result(digest); });
}
Result<std::vector<ResultRecord>> FailingStore::results(std::int64_t after) {
  return pass([&] { return inner_.results(after); });
}
Result<std::int64_t> FailingStore::forget_results(Wall unused_since) {
  return pass([&] { return inner_.forget_results(unused_since); });
}

}  // namespace berth::store
