#include "berth/exec/leftovers.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/enclosing_task.h"

namespace berth::exec {
namespace {

constexpr std::size_t kMostEnvironment = 4U << 20;  // bytes
constexpr std::size_t kMostStat = 8192;             // bytes
constexpr std::string_view kAlloc = "BERTH_ALLOC=";
constexpr std::string_view kToken = "BERTH_TOKEN=";
constexpr std::string_view kRunDirectory = "BERTH_RUN_DIR=";
/// A process that forks as fast as it is killed must not keep its worker from everything else.
constexpr int kRounds = 64;
/// How long end_marked() looks for what is still on its way out, or new.
constexpr Duration kEndsWithin = std::chrono::seconds(5);
constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr Duration kLongestPause = std::chrono::milliseconds(50);

/// What follows the name in /proc/PID/stat.
struct ProcessStat {
  bool zombie = false;
  bool has_memory = false;
  bool has_environment = false;  // or will have: execve() is under way
  pid_t parent = 0, group = 0, session = 0;
  std::int64_t started_at = 0;
};

std::optional<ProcessStat> read_stat(os::Env& env, pid_t pid) {
  constexpr std::size_t kParent = 1, kGroup = 2, kSession = 3, kStarted = 19, kMemory = 20,
                        kEnvironment = 47, kEnvironmentEnd = 48;  // after the name
  const auto text = env.read_file(fmt::format("/proc/{}/stat", pid), kMostStat);
  if (!text) return std::nullopt;
  const auto fields = words(std::string_view(*text).substr(text->rfind(')') + 1));
  if (fields.size() <= kEnvironmentEnd) return std::nullopt;
  const auto number = [&](std::size_t field) { return parse_integer(fields[field]).value_or(0); };
  return ProcessStat{.zombie = fields[0] == "Z" || fields[0] == "X",
                     .has_memory = number(kMemory) > 0,
                     .has_environment = number(kEnvironment) == 0 ||
                                        number(kEnvironment) < number(kEnvironmentEnd),
                     .parent = static_cast<pid_t>(number(kParent)),
                     .group = static_cast<pid_t>(number(kGroup)),
                     .session = static_cast<pid_t>(number(kSession)),
                     .started_at = number(kStarted)};
}

/// What the environment of a process says of where it belongs.
struct Marks {
  bool readable = false, shell = false;
  std::string run_directory;  // "BERTH_RUN_DIR=/x"; "" where it has none
  std::optional<Token> token;
  std::optional<machine::TaskMark> task;
};

/// The environment of a process. While execve() replaces the program it reads as empty, and for a
/// moment the process even looks as if it had none.
Result<std::string> read_environment(os::Env& env, pid_t pid) {
  constexpr int kLooks = 3;
  const std::string file = fmt::format("/proc/{}/environ", pid);
  for (int round = 0, without = 0;; ++round) {
    auto text = env.read_file(file, kMostEnvironment);
    if (!text || !text->empty() || round == kRounds) return text;
    const auto stat = read_stat(env, pid);
    if (!stat || !stat->has_memory) return text;
    if (!stat->has_environment && ++without == kLooks) return text;
    BERTH_TRY(env.wait({}, env.now() + kFirstPause));
  }
}

Marks read_marks(os::Env& env, pid_t pid) {
  Marks marks;
  const auto text = read_environment(env, pid);
  if (!text) return marks;  // it has gone, or belongs to another user
  marks.readable = true;
  for (const auto entry : split(*text, '\0')) {
    if (entry.starts_with(kShellVariable) && entry.substr(kShellVariable.size()).starts_with("="))
      marks.shell = true;
    else if (entry.starts_with(kRunDirectory))
      marks.run_directory = entry;
    else if (entry.starts_with(kAlloc))
      marks.task = machine::read_task_mark(entry.substr(kAlloc.size()));
    else if (entry.starts_with(kToken))
      if (const auto value = parse_integer(entry.substr(kToken.size())))
        marks.token = Token{*value};
  }
  return marks;
}

/// All processes that can be listed, but this one and init.
Result<std::vector<pid_t>> all_processes(os::Env& env) {
  std::vector<pid_t> pids;
  const pid_t self = env.self().pid;
  BERTH_ASSIGN(const auto names, env.list("/proc"));
  for (const auto& name : names) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(parse_integer(name).value_or(0));
    if (pid > 1 && pid != self) pids.push_back(pid);
  }
  return pids;
}

bool is_leftover(os::Env& env, pid_t orphan, std::span<const Token> ended,
                 std::span<const RunningTask> running, Unmarked unmarked) {
  const auto runs = [&](auto value, auto field) {
    return std::ranges::find(running, value, field) != running.end();
  };
  const Marks marks = read_marks(env, orphan);
  const auto stat = read_stat(env, orphan);
  if (!stat || stat->zombie || marks.shell) return false;
  if (!stat->has_memory) return true;  // it is ending, and may still have files open
  const bool all = unmarked == Unmarked::ended;
  if (marks.task && marks.task->worker == env.self())
    return all ? !runs(marks.task->token, &RunningTask::token)
               : std::ranges::find(ended, marks.task->token) != ended.end();
  if (!all) return false;
  if (runs(stat->group, &RunningTask::leader) || runs(stat->session, &RunningTask::leader))
    return false;
  return std::ranges::none_of(running, [&](const RunningTask& task) {
    const auto leader = read_stat(env, task.leader);
    return !leader || leader->started_at <= stat->started_at;
  });
}

/// Returns true if an ancestor of the process is a shell that a person opened: what was started
/// from it is the person's, whatever its environment is now.
bool is_below_shell(const std::map<pid_t, ProcessStat>& stats, const std::set<pid_t>& shells,
                    pid_t pid) {
  std::set<pid_t> seen;  // pids that are used again could make a circle
  for (auto at = stats.find(pid); at != stats.end() && seen.insert(at->first).second;
       at = stats.find(at->second.parent))
    if (shells.contains(at->second.parent)) return true;
  return false;
}

/// One look of end_marked(): the identities of the processes to be ended. There are usually none,
/// which takes one file a process to see.
Result<std::vector<os::ProcessIdentity>> find_marked(
    os::Env& env, const std::string& mark,
    const std::function<bool(std::optional<Token>)>& chosen) {
  std::vector<pid_t> found;
  std::set<pid_t> shells;
  BERTH_ASSIGN(const auto pids, all_processes(env));
  for (const pid_t pid : pids) {
    const Marks marks = read_marks(env, pid);
    if (marks.shell) shells.insert(pid);
    if (marks.run_directory == mark && !marks.shell && chosen(marks.token)) found.push_back(pid);
  }
  if (found.empty()) return std::vector<os::ProcessIdentity>{};
  std::map<pid_t, ProcessStat> stats;
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : pids) {
    const auto stat = read_stat(env, pid);
    if (!stat || stat->zombie) continue;
    stats.emplace(pid, *stat);
    children.emplace(stat->parent, pid);
  }
  // A pid may have been used again between the two looks.
  std::erase_if(found, [&](pid_t pid) {
    return !stats.contains(pid) || read_marks(env, pid).run_directory != mark;
  });
  std::erase_if(found, [&](pid_t pid) { return is_below_shell(stats, shells, pid); });
  std::set<pid_t> all(found.begin(), found.end());
  while (!found.empty()) {
    const auto [begin, end] = children.equal_range(found.back());
    found.pop_back();
    for (auto child = begin; child != end; ++child) {
      if (all.contains(child->second)) continue;
      const Marks marks = read_marks(env, child->second);
      // Another run's process is that run's to end, and a person's shell no one's.
      if (!marks.readable || marks.shell || !marks.run_directory.empty()) continue;
      all.insert(child->second);
      found.push_back(child->second);
    }
  }
  std::vector<os::ProcessIdentity> identities;
  for (const pid_t pid : all) identities.push_back({pid, stats.at(pid).started_at});
  return identities;
}

}  // namespace

std::vector<pid_t> end_adopted(os::Env& env, std::span<const Token> ended,
                               std::span<const RunningTask> running, Unmarked unmarked) {
  std::vector<pid_t> left;
  std::set<pid_t> seen, killed;
  // The children of a process are adopted as soon as it is gone, so that a new one in the list,
  // dead or alive, may have left others. One that forks and exits without end is caught when a
  // round comes between two of its forks.
  constexpr int kMostRounds = 2048;
  bool is_changing = true;
  for (int round = 0; is_changing && round < kMostRounds; ++round) {
    left.clear();
    is_changing = false;
    for (const pid_t orphan : env.adopted()) {
      is_changing = seen.insert(orphan).second || is_changing;
      if (killed.contains(orphan)) {
        left.push_back(orphan);
        continue;
      }
      if (!is_leftover(env, orphan, ended, running, unmarked)) continue;
      is_changing = true;
      killed.insert(orphan);
      left.push_back(orphan);
      (void)env.signal_pid(orphan, SIGKILL);  // a child that is not reaped keeps its pid
    }
  }
  return left;
}

Result<int> end_marked(os::Env& env, const std::string& mark,
                       const std::function<bool(std::optional<Token>)>& chosen) {
  std::set<std::pair<pid_t, std::int64_t>> ended;
  Duration pause = kFirstPause;
  for (const Mono until = env.now() + kEndsWithin;;) {
    BERTH_ASSIGN(const auto found, find_marked(env, mark, chosen));
    for (const auto& process : found)
      if (env.signal_process(process, SIGKILL)) ended.emplace(process.pid, process.started_at);
    if (found.empty() || env.now() >= until) return static_cast<int>(ended.size());
    BERTH_TRY(env.wait({}, env.now() + pause));
    pause = std::min(2 * pause, kLongestPause);
  }
}

int end_abandoned(os::Env& env) {
  int ended = 0;
  for (const pid_t pid : all_processes(env).value_or(std::vector<pid_t>{})) {
    const std::string process = fmt::format("/proc/{}", pid);
    const auto status = env.status(process);
    if (!status || status->owner != env.user()) continue;
    const Marks marks = read_marks(env, pid);
    if (!marks.task || marks.shell || env.alive(marks.task->worker)) continue;
    const auto stat = read_stat(env, pid);
    // Within a container the pids of workers are others.
    const auto text = env.read_file(process + "/status", kMostStat);
    const auto at = text ? text->find("\nNSpid:") : std::string::npos;
    if (!stat || stat->zombie || at == std::string::npos) continue;
    const auto line = std::string_view(*text).substr(at + 1);
    constexpr std::size_t kNameAndPid = 2;
    if (words(line.substr(0, line.find('\n'))).size() != kNameAndPid) continue;
    if (env.signal_process({pid, stat->started_at}, SIGKILL)) ++ended;
  }
  return ended;
}

}  // namespace berth::exec
