// berth run --detach: a runner in the background, in a session of its own, so that neither Ctrl-C
// nor a logout reaches it.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "berth/base/text.h"
#include "berth/cli/detach.h"

namespace berth::cli {
namespace {

/// Turns the child process into `berth` with these words, the last of which is null.
[[noreturn]] void become_berth(char* const* words, const char* log) {
  constexpr int kCannot = 127;
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int out = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (null < 0 || out < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0)
    ::_exit(kCannot);
  ::execv("/proc/self/exe", words);
  ::_exit(kCannot);
}

/// For execv(): they refer to the words.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// What the runner has written to its log behind the lines of earlier ones.
std::string log_since(os::Env& env, const std::string& log, std::int64_t before) {
  constexpr std::size_t kMostText = 4096;
  const auto file = env.open_read(log);
  const auto text = file ? env.read_at(*file, before, kMostText) : Result<std::string>("");
  return text && !text->empty() ? std::string(trim(*text)) : "see " + log;
}

}  // namespace

Status start_detached(os::Env& env, run::Context& context, const store::RunRecord& record) {
  constexpr Duration kStartTimeout = std::chrono::seconds(10);
  const std::string directory = run::run_directory(context, record.name);
  BERTH_TRY(env.make_directory(directory, 0700));
  const std::string log = run::runner_log(directory);
  const auto before = env.status(log);
  const std::int64_t size_before = before ? before->size : 0;
  std::vector<std::string> words{"berth", "resume", record.name};
  if (context.task_environment) words.emplace_back("--env-of-submission");
  const auto pointers = pointers_to(words);
  const pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorKind::full, "cannot start a runner: {}", std::strerror(errno));
  if (pid == 0) become_berth(pointers.data(), log.c_str());
  for (const Mono until = env.now() + kStartTimeout;;) {
    BERTH_ASSIGN(const auto now, context.store->find_run(record.name));
    const bool taken_over = now.epoch > record.epoch;
    // Before the store says that it runs, a berth wait would take how it ended the last time.
    if (taken_over && (store::is_open(now.state) || now.ended != record.ended)) return {};
    if (::waitpid(pid, nullptr, WNOHANG) == pid || (!taken_over && env.now() >= until))
      return fail(ErrorKind::io, "the runner of {} did not start: {}", record.name,
                  log_since(env, log, size_before));
    BERTH_TRY(env.wait({}, env.now() + std::chrono::milliseconds(5)));
  }
}

Status start_apart(const std::vector<std::string>& words, const std::string& log) {
  std::vector<std::string> all{"berth"};
  all.insert(all.end(), words.begin(), words.end());
  const auto pointers = pointers_to(all);
  const pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorKind::full, "cannot start a process: {}", std::strerror(errno));
  if (pid == 0) {
    const pid_t apart = ::fork();  // nobody's child
    if (apart == 0) become_berth(pointers.data(), log.c_str());
    ::_exit(apart < 0 ? 1 : 0);
  }
  int how = 0;
  while (::waitpid(pid, &how, 0) < 0 && errno == EINTR) {
  }
  if (how != 0) return fail(ErrorKind::full, "cannot start a process");
  return {};
}

void reap_runners() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace berth::cli
