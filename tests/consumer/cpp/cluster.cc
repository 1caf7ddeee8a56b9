// A run on a cluster of one's own, driven in this process: berth/run.h. Two "hosts" start the
// tasks' commands as processes; the program is killed in between and goes on.
#include <berth/run.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "expect.h"

extern char** environ;

/// Hosts whose tasks are children of this process. What an earlier process of the run has left on
/// this machine drive() ends by itself; hosts elsewhere would be told to in begin().
class Lab final : public berth::StaticCluster {
 public:
  Lab() : StaticCluster({{"left", one_core()}, {"right", one_core()}}) {}

  berth::Status start(const berth::Alloc& alloc, const berth::Attempt& attempt,
                      berth::Reporter reporter) override {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return failed("pipe");
    auto environment = words_of(attempt, alloc);
    auto variables = pointers(environment);
    auto words = attempt.argv;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, attempt.directory.c_str());
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawnattr_t own_group;
    posix_spawnattr_init(&own_group);
    posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, words[0].c_str(), &actions, &own_group,
                                   pointers(words).data(), variables.data());
    posix_spawnattr_destroy(&own_group);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) {
      close(ends[0]);
      return failed(words[0]);
    }
    {
      const std::scoped_lock lock(mutex_);
      running_[attempt.id] = pid;
      hosts_.push_back(alloc.machine);
    }
    threads_.emplace_back(
        [this, id = attempt.id, pid, end = ends[0], reporter] { follow(id, pid, end, reporter); });
    return {};
  }

  void stop(const berth::Alloc&, const berth::Attempt& attempt, bool at_once) override {
    const std::scoped_lock lock(mutex_);
    if (const auto running = running_.find(attempt.id); running != running_.end())
      kill(-running->second, at_once ? SIGKILL : SIGTERM);
  }

  /// Where attempts were started, in their order.
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  static berth::Resources one_core() {
    berth::Resources resources;
    resources.set("cpu", 1000);
    return resources;
  }
  static std::unexpected<berth::Error> failed(const std::string& what) {
    return std::unexpected(berth::Error{berth::ErrorKind::not_found, what + ": cannot be started"});
  }
  static std::vector<std::string> words_of(const berth::Attempt& attempt,
                                           const berth::Alloc& alloc) {
    std::map<std::string, std::string> all{{"HOST", alloc.machine}};
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      const auto equals = text.find('=');
      all.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    for (const auto& [name, value] : attempt.environment) all[name] = value;
    std::vector<std::string> words;
    for (const auto& [name, value] : all) words.push_back(name + "=" + value);
    return words;
  }
  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  /// In a thread of its own: what the process prints, and how it ends.
  void follow(std::int64_t id, pid_t pid, int end, const berth::Reporter& reporter) {
    char bytes[4096];
    for (ssize_t got = 0; (got = read(end, bytes, sizeof bytes)) > 0;)
      reporter.output({bytes, static_cast<std::size_t>(got)});
    close(end);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
    int status = 0;
    {
      const std::scoped_lock lock(mutex_);  // its number is nobody else's until it is forgotten
      running_.erase(id);
      waitpid(pid, &status, 0);
    }
    berth::AttemptEnd how;
    if (WIFSIGNALED(status)) how.signal = WTERMSIG(status);
    if (WIFEXITED(status)) how.exit_code = WEXITSTATUS(status);
    reporter.ended(how);
  }

  std::mutex mutex_;
  std::map<std::int64_t, pid_t> running_;  // process groups, by attempt
  std::vector<std::string> hosts_;
  std::vector<std::jthread> threads_;
};

/// As many as the words that the tasks have left there.
std::size_t count(const std::string& word) {
  std::ifstream witness("witness");
  std::size_t times = 0;
  for (std::string line; witness >> line;) times += line == word;
  return times;
}

/// Has another process of this program drive the run, and kills it when two tasks are done.
void drive_and_kill(berth::Runs& runs, char* program, std::string name) {
  std::string verb = "drive";
  char* words[] = {program, verb.data(), name.data(), nullptr};
  pid_t pid = 0;
  EXPECT(posix_spawn(&pid, program, nullptr, nullptr, words, environ) == 0);
  while (value(runs.find(name)).counts.done < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

/// Stops the run from within, as a signal handler or another thread would.
class Stopper final : public berth::RunObserver {
 public:
  explicit Stopper(berth::Stop& stop) : stop_(stop) {}
  void on_output(const std::string&, bool, std::string_view) override { stop_.request(); }

 private:
  berth::Stop& stop_;
};

int main(int arguments, char** words) {
  auto runs = value(berth::Runs::open());
  Lab lab;
  if (arguments == 3) return value(runs.drive(words[2], {.cluster = &lab})).state != "done";

  // Six samples on two hosts, killed when two are done: the others run again, and only they.
  std::ofstream("sweep.yaml") << "name: six\n"
                                 "run: echo {x} >> witness; sleep 0.3; echo on $HOST; "
                                 "echo \"::berth loss=$(({x} * {x}))\"\n"
                                 "params: {x: [3, 2, 1, 4, 5, 6]}\n"
                                 "goal: {metric: loss, direction: min}\n";
  const auto sweep = value(runs.record_file("sweep.yaml", {.elsewhere = true}));
  EXPECT(value(runs.find(sweep)).counts.waiting == 6);
  drive_and_kill(runs, words[0], sweep);
  EXPECT(value(runs.find(sweep)).state == "interrupted");
  const auto before = value(runs.tasks(sweep));
  const auto done = value(runs.drive(sweep, {.cluster = &lab}));
  EXPECT(done.state == "done" && done.counts.done == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto task = value(runs.tasks(sweep)).at(i);
    const std::string& x = task.params.at(0).second;
    EXPECT(task.metrics.at(0).second == std::stod(x) * std::stod(x));
    const bool again = before[i].state != "done";
    EXPECT(count(x) >= 1 && count(x) <= (again ? 2 : 1));
    EXPECT(value(runs.output(sweep, task.label)).starts_with("on "));
  }
  for (const char* host : {"left", "right"}) EXPECT(std::ranges::count(lab.hosts(), host) > 0);

  // A flow: its tasks are the same to a cluster.
  std::ofstream("flow.yaml") << "name: count\n"
                                "params: {more: two}\n"
                                "steps:\n"
                                "  words:\n"
                                "    run: echo one {more} > {out.w}\n"
                                "    out: {w: words.txt}\n"
                                "  sum:\n"
                                "    run: wc -w < {in.w} > {out.n}\n"
                                "    in: {w: words.w}\n"
                                "    out: {n: sum.txt}\n";
  const auto flow =
      value(runs.record_file("flow.yaml", {.set = {{"more", "2 3"}}, .elsewhere = true}));
  EXPECT(value(runs.drive(flow, {.cluster = &lab})).state == "done");
  std::string sum;
  std::ifstream("sum.txt") >> sum;
  EXPECT(sum == "3");

  // A command is stopped by a value, not by a signal of the process, and gone on with.
  const auto nap = value(runs.record({.argv = {"sh", "-c", "echo; sleep 60"}}, true));
  berth::Stop stop;
  Stopper stopper(stop);
  EXPECT(value(runs.drive(nap, {&lab, &stopper, &stop})).state == "stopped");
  EXPECT(value(runs.drive(nap, {&lab, nullptr, &stop})).state == "stopped");  // it stays asked
}
