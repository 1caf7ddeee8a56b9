#include "berth/engine/runs/detach.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "berth/base/text.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/runs/drive.h"
#include "berth/os/spawn_posix.h"
#include "berth/run/drive/prepare.h"
#include "berth/run/state/find_run.h"

namespace berth::engine {
namespace {

/// Everything that the new process needs. It is made before the fork, after which a process with
/// threads must not allocate memory.
struct Launch {
  std::string program, log;
  std::vector<std::string> arguments, environment;
  std::vector<char*> argument_pointers, environment_pointers;
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void become_berth(const Launch& launch) {
  constexpr int kCannot = 127;
  ::setsid();
  // A thread of a server has all signals blocked, and exec keeps what is blocked or ignored.
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int ignored : {SIGPIPE, SIGHUP}) ::signal(ignored, SIG_DFL);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int out =
      ::open(launch.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (null < 0 || out < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0)
    ::_exit(kCannot);
  ::execve(launch.program.c_str(), launch.argument_pointers.data(),
           launch.environment_pointers.data());
  ::_exit(kCannot);
}

/// The environment of this process, and the state directory if the environment names another one.
std::vector<std::string> environment_for(const run::Context& context) {
  const auto usual = run::state_directory(*context.env);
  const bool is_usual = usual && *usual == context.state_directory;
  std::vector<std::string> environment;
  for (const auto& [name, value] : context.env->environment())
    if (is_usual || name != "BERTH_DB") environment.push_back(fmt::format("{}={}", name, value));
  if (!is_usual) environment.push_back("BERTH_DB=" + context.state_directory);
  return environment;
}

/// Starts the process as a grandchild, which is adopted by init. Returns its pid.
Result<pid_t> start_grandchild(os::Env& env, const Launch& launch) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return os::errno_error(errno, "pipe");
  const os::Fd read_end(env, ends[0]);
  os::Fd write_end(env, ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return os::errno_error(errno, "fork");
  if (child == 0) {
    const pid_t pid = ::fork();
    if (pid == 0) become_berth(launch);
    const bool sent = pid > 0 && ::write(ends[1], &pid, sizeof pid) == sizeof pid;
    ::_exit(sent ? 0 : 1);
  }
  write_end.reset();
  int how = 0;
  while (::waitpid(child, &how, 0) < 0 && errno == EINTR) {
  }
  pid_t pid = 0;
  if (how != 0 || ::read(ends[0], &pid, sizeof pid) != sizeof pid)
    return fail(ErrorKind::full, "cannot start a process");
  return pid;
}

/// The text that the runner has appended to its log after that size.
std::string log_since(os::Env& env, const std::string& log, std::int64_t size) {
  constexpr std::size_t kMostText = 4096;
  const auto file = env.open_read(log);
  const auto text = file ? env.read_at(*file, size, kMostText) : Result<std::string>("");
  return text && !text->empty() ? std::string(trim(*text)) : "see " + log;
}

}  // namespace

Result<os::Fd> start_berth(const run::Context& context, const std::vector<std::string>& arguments,
                           const std::string& log) {
  Launch launch;
  BERTH_ASSIGN(launch.program, run::find_executable(*context.env, context.program, "/"));
  launch.log = log;
  launch.arguments = {"berth"};
  launch.arguments.insert(launch.arguments.end(), arguments.begin(), arguments.end());
  launch.environment = environment_for(context);
  launch.argument_pointers = pointers_to(launch.arguments);
  launch.environment_pointers = pointers_to(launch.environment);
  BERTH_ASSIGN(const pid_t pid, start_grandchild(*context.env, launch));
  const auto exited = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (exited < 0 && errno != ESRCH) return os::errno_error(errno, "pidfd_open");
  return exited < 0 ? os::Fd() : os::Fd(*context.env, exited);
}

Result<store::RunRecord> start(run::Context& context, const RunRequest& request, const Note& note) {
  BERTH_TRY(run::check_executable(*context.env, context.program, "/"));
  BERTH_ASSIGN(auto submission, read_submission(*context.env, request));
  BERTH_TRY(check(context, submission, note));
  BERTH_ASSIGN(auto record, submit(context, submission, note));
  BERTH_TRY(start_detached(context, record));
  return record;
}

Result<bool> resume_detached(run::Context& context, const std::string& name,
                             const ResumeRequest& request, const Note& note) {
  BERTH_ASSIGN(const auto record, run::find_run(context, name));
  BERTH_ASSIGN(const bool is_open, prepare_resume(context, record, request, note));
  if (is_open) BERTH_TRY(start_detached(context, record));
  if (is_open) return true;
  conclude(context, record, [&](std::string_view text) { note(std::string(trim(text))); });
  note(fmt::format("{} is finished already: {}, {}", record.name, store::name(record.state),
                   counts_text(record.counts)));
  return false;
}

Result<bool> retry_detached(run::Context& context, const std::string& name, RetryScope scope,
                            const ResumeRequest& request, const Note& note) {
  BERTH_ASSIGN(const auto reopened, reopen(context, name, scope));
  if (reopened.empty() && scope == RetryScope::failed)
    note(fmt::format("nothing of {} has failed", name));
  return resume_detached(context, name, request, note);
}

Status start_detached(run::Context& context, const store::RunRecord& record) {
  constexpr Duration kStartTimeout = std::chrono::seconds(10);
  os::Env& env = *context.env;
  const std::string directory = run::run_directory(context, record.name);
  BERTH_TRY(env.make_directory(directory, 0700));
  const std::string log = run::runner_log(directory);
  const auto before = env.status(log);
  const std::int64_t size_before = before ? before->size : 0;
  std::vector<std::string> arguments{"resume", record.name};
  if (context.task_environment) arguments.emplace_back("--env-of-submission");
  BERTH_ASSIGN(const os::Fd exited, start_berth(context, arguments, log));
  for (const Mono until = env.now() + kStartTimeout;;) {
    std::array watches{os::Watch{.fd = exited.number()}};
    BERTH_TRY(env.wait(watches, env.now()));
    const bool has_ended = !exited || watches[0].ready;
    BERTH_ASSIGN(const auto now, context.store->find_run(record.name));
    const bool taken_over = now.epoch > record.epoch;
    // Before the store says that it runs, a berth wait would take how it ended the last time.
    if (taken_over && (store::is_open(now.state) || now.ended != record.ended)) return {};
    if (has_ended || (!taken_over && env.now() >= until))
      return fail(ErrorKind::io, "the runner of {} did not start: {}", record.name,
                  log_since(env, log, size_before));
    BERTH_TRY(env.wait({}, env.now() + std::chrono::milliseconds(5)));
  }
}

}  // namespace berth::engine
