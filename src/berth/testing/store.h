// Tests of stores share these: a temporary directory, short names for changes, records as text.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "berth/store/store.h"

namespace berth::store {

/// In memory where the system has such a volume: these tests commit thousands of times.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::filesystem::path parent = "/dev/shm";
    if (access(parent.c_str(), W_OK | X_OK) != 0) parent = std::filesystem::temp_directory_path();
    std::string pattern = (parent / "berth-store-XXXXXX").string();
    BERTH_ASSERT(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline Wall at_s(std::int64_t seconds) {
  return wall_from_ms(seconds * 1000);
}

/// A run of `tasks` tasks labelled "1", "2", ….
inline NewRun new_run(const std::string& name, int tasks = 3) {
  NewRun run;
  run.name = name;
  run.kind = "experiment";
  run.spec_json = R"({"run":"./train"})";
  run.directory = "/home/ada";
  run.created = at_s(1);
  for (int i = 1; i <= tasks; ++i)
    run.tasks.push_back({std::to_string(i), {{"lr", fmt::format("0.{}", i)}, {"width", "16"}}});
  return run;
}

inline AttemptStarted started(std::int64_t task, std::int64_t token, Wall at = at_s(10)) {
  return {TaskNumber{task}, Token{token}, at, R"({"cpu":1000})", "ada-desk", R"(["GPU-a"])"};
}

/// Rows of attempts of task 1 of run 1, tokens 1, 2, …, with the causes that stores until schema 7
/// had: texts for people. What becomes of them is checked by expect_old_causes().
inline std::string sql_of_old_causes() {
  std::string sql;
  int token = 0;
  const auto add = [&](const char* cause, const char* exit_code, const char* detail) {
    sql += fmt::format(
        "INSERT INTO attempt (run_id, task, token, started_ns, ended_ns, resources, host, cause,"
        " exit_code, detail) VALUES (1, 1, {}, 1, 2, '', '', '{}', {}, '{}');",
        ++token, cause, exit_code, detail);
  };
  for (const char* cause :
       {"ok", "out of memory", "time limit", "stopped", "cannot start", "cannot start now",
        "worker lost", "over its share of GPU memory", "given back", "not as declared",
        "stopped early", "superseded", "runner lost", "signal 11 (Segmentation fault)"})
    add(cause, "NULL", "why");
  add("exit 3", "3", "");
  add("exit 7", "NULL", "");
  add("no output", "0", "");
  add("signal 5 of 7", "NULL", "");
  add("the moon", "2", "was full");
  add("", "NULL", "");
  return sql;
}
inline void expect_old_causes(Store& store) {
  const auto attempts = store.attempts({1}, {1}).value();
  ASSERT_EQ(attempts.size(), 20U);
  std::string causes;
  for (const auto& one : attempts) {
    causes += exec::describe(one.cause, one.exit_code, one.signal) + ";";
    EXPECT_EQ(one.detail == "why", one.token.value <= 14);
  }
  EXPECT_EQ(causes,
            "ok;out of memory;time limit;stopped;cannot start;cannot start now;worker lost;"
            "over its share of GPU memory;given back;not as declared;stopped early;superseded;"
            "runner lost;signal 11 (Segmentation fault);exit 3;exit 7;not as declared;;;;");
  EXPECT_EQ(attempts[13].signal, 11);
  EXPECT_EQ(attempts[14].exit_code, 3);
  EXPECT_EQ(attempts[15].exit_code, 7);
  EXPECT_EQ(attempts[17].detail, "signal 5 of 7");
  EXPECT_EQ(attempts[18].detail, "the moon: was full");
  EXPECT_EQ(attempts[18].exit_code, 2);
  EXPECT_EQ(attempts[19].detail, "");
}

inline AttemptEnded ended(std::int64_t task, std::int64_t token, TaskState next = TaskState::done,
                          Wall at = at_s(20)) {
  AttemptEnded change;
  change.task = TaskNumber{task};
  change.token = Token{token};
  change.at = at;
  change.next = next;
  change.exit_code = next == TaskState::done ? 0 : 1;
  change.cause = next == TaskState::done ? exec::Cause::ok : exec::Cause::exit_code;
  return change;
}

inline MetricSeen seen(std::int64_t task, std::int64_t token, const char* name, double value) {
  return {TaskNumber{task}, Token{token}, name, value, at_s(15)};
}

inline TaskMoved moved(std::int64_t task, TaskState to) {
  return {TaskNumber{task}, to};
}

inline std::string text(const std::optional<Wall>& time) {
  return time ? std::to_string(time->time_since_epoch().count()) : "-";
}
template <std::integral Number>
std::string text(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : "-";
}
template <class Record>
std::string text_of_cause(const Record& of) {
  return exec::describe(of.cause, of.exit_code, of.signal);
}
inline std::string text(const Counts& n) {
  return fmt::format("{}w {}r {}d {}c {}f {}s", n.waiting, n.running, n.done, n.cached, n.failed,
                     n.stopped);
}
inline std::string text(const RunRecord& run) {
  return fmt::format(
      "run {} {} {} {} {} {} {} created {} started {} ended {} '{}' {} {} {} '{}' {} '{}' {} {} "
      "[{}]",
      run.id.value, run.name, run.kind, run.spec_json, run.directory, run.priority, name(run.state),
      text(run.created), text(run.started), text(run.ended), run.error, run.epoch, run.runner_pid,
      run.runner_started_at, run.result, name(run.phase), run.alloc, run.tries, text(run.last_try),
      text(run.counts));
}
inline std::string text(const TaskRecord& task) {
  std::string line = fmt::format(
      "task {} '{}' {} attempts {} token {} forgiven {} exit {} '{}' started {} ended {} '{}' '{}' "
      "'{}' params",
      task.number.value, task.label, name(task.state), task.attempts, task.token.value,
      task.forgiven.value, text(task.exit_code), text_of_cause(task), text(task.started),
      text(task.ended), task.resources, task.host, task.devices);
  line += fmt::format(" digest '{}' '{}' lease {}", task.digest, task.depends, text(task.lease));
  for (const auto& [name, value] : task.params) line += fmt::format(" {}={}", name, value);
  line += " metrics";
  for (const auto& [name, value] : task.metrics) line += fmt::format(" {}={}", name, value);
  return line;
}
inline std::string text(const AttemptRecord& one) {
  return fmt::format("attempt {} token {} {}..{} exit {} '{}' '{}' '{}' '{}' '{}' {} {} {} {} {}",
                     one.number, one.token.value, text(one.started), text(one.ended),
                     text(one.exit_code), text_of_cause(one), one.detail, one.resources, one.host,
                     one.devices, one.cpu_ms, one.peak_mem, one.log_begin, one.log_end,
                     text(one.lease));
}
inline std::string text(const MetricRecord& one) {
  return fmt::format("metric {} token {} {}={} at {}", one.sequence, one.token.value, one.name,
                     one.value, text(one.at));
}
inline std::string text(const ResultRecord& one) {
  // Without its sequence number: stores may leave gaps.
  return fmt::format("result {} '{}' '{}' used {}", one.digest, one.outputs, one.origin,
                     text(std::optional(one.used)));
}
inline std::string text(const Usage& one) {
  return fmt::format("held {} for {}", one.resources, one.held.count());
}
inline std::string text(std::int64_t number) {
  return std::to_string(number);
}
template <class Record>
std::string text(const std::vector<Record>& records) {
  std::string lines;
  for (const Record& record : records) lines += text(record) + "\n";
  return lines;
}
/// Also of a failure, by its kind: two stores need not use the same words.
template <class Value>
std::string text(const Result<Value>& result) {
  if (!result) return fmt::format("error {}", name(result.error().kind));
  if constexpr (std::is_void_v<Value>)
    return "ok";
  else if constexpr (std::is_same_v<Value, Applied>)
    return fmt::format("applied, {} refused", result->refused);
  else
    return text(*result);
}

/// Everything that can be read back from a store.
inline std::string everything(Store& store) {
  const auto runs = store.runs();
  std::string all = text(runs) + text(store.results(0));
  if (!runs) return all;
  for (const RunRecord& run : *runs) {
    all += text(store.find_run(run.name)) + "\n";
    const auto tasks = store.tasks(run.id);
    all += text(tasks) + text(store.usage(run.id));
    if (!tasks) continue;
    for (const TaskRecord& task : *tasks)
      all += text(store.find_task(run.id, task.label)) + "\n" +
             text(store.attempts(run.id, task.number)) + text(store.metrics(run.id, task.number));
  }
  return all;
}

}  // namespace berth::store
