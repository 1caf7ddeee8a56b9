#include "berth/os/spawn_posix.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/spawn_limits_posix.h"

namespace berth::os {
namespace {

#if defined(__clang__)
#define BERTH_UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define BERTH_UNINSTRUMENTED __attribute__((no_sanitize_address, no_sanitize_thread))
#endif

constexpr std::size_t kStackSize = 64 * 1024;
constexpr const char* kShell = "/bin/sh";

/// All that the child needs, laid out before it exists: between clone and exec it shares our memory
/// and may only make system calls.
struct Launch {
  const char* path = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;
  const int* join_files = nullptr;   // ends with -1
  const cpu_set_t* cores = nullptr;  // nullptr: inherited
  sigset_t signals{};                // the mask to run with
  pid_t parent = 0;
  int in = -1, out = -1, err = -1;
  int group = -1;  // directory of a v2 control group to join before anything else
  bool is_detached = false;
  pid_t detached_pid = -1;  // of the process that is started, where it is detached
  int detached_exited = -1;
  const char* failed_step = nullptr;
  int failed_errno = 0;
};

BERTH_UNINSTRUMENTED int give_up(Launch& launch, const char* step) {
  launch.failed_step = step;
  launch.failed_errno = errno;
  _exit(127);
}

BERTH_UNINSTRUMENTED bool join_group(int directory) {
  const int processes = openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  if (processes < 0) return false;
  const bool joined = write(processes, "0", 1) == 1;
  const int saved = errno;
  close(processes);
  errno = saved;
  return joined;
}

BERTH_UNINSTRUMENTED int run_child(void* argument) {
  auto& launch = *static_cast<Launch*>(argument);
  if (launch.is_detached) {
    setsid();
  } else {
    setpgid(0, 0);
    // A task must not outlive its worker; if the worker is gone already, the signal would never
    // come.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launch.parent) return give_up(launch, "start");
  }
  if (launch.group >= 0 && !join_group(launch.group))
    return give_up(launch, "join its control group");
  for (const int* file = launch.join_files; *file >= 0; ++file)
    if (write(*file, "0", 1) != 1) return give_up(launch, "join its control group");
  if (launch.cores != nullptr) sched_setaffinity(0, sizeof(cpu_set_t), launch.cores);
  if (dup2(launch.in, 0) < 0 || dup2(launch.out, 1) < 0 || dup2(launch.err, 2) < 0)
    return give_up(launch, "redirect");
  if (chdir(launch.directory) != 0) return give_up(launch, launch.directory);
  // Handlers end with exec, but what we ignore stays ignored.
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
  sigprocmask(SIG_SETMASK, &launch.signals, nullptr);
  execve(launch.path, launch.argv, launch.environment);
  return give_up(launch, launch.path);
}

constexpr int kSharing = CLONE_VM | CLONE_VFORK;

/// Starts run_child() in a process whose parent, this one, exits immediately, so that it is adopted
/// by init. This process shares the descriptors of the caller, which so gets the pidfd.
BERTH_UNINSTRUMENTED int run_intermediate(void* argument) {
  auto& launch = *static_cast<Launch*>(argument);
  alignas(16) char stack[kStackSize / 4];
  launch.detached_pid = clone(run_child, stack + sizeof stack, kSharing | CLONE_PIDFD | SIGCHLD,
                              &launch, &launch.detached_exited);
  if (launch.detached_pid < 0) launch.failed_errno = errno;
  _exit(0);
}

/// The parent, field 4, of a process that may be a zombie.
pid_t parent_of(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  const auto fields = words(stat.substr(name_end + 1));
  return fields.size() < 2 ? 0 : static_cast<pid_t>(parse_integer(fields[1]).value_or(0));
}

/// Where execvp would find it, as seen from `directory`.
Result<std::string> find_program(const SpawnSpec& spec) {
  const std::string& program = spec.program.empty() ? spec.argv.front() : spec.program;
  const auto runnable = [](const std::string& path) {
    struct stat status{};
    return access(path.c_str(), X_OK) == 0 && stat(path.c_str(), &status) == 0 &&
           S_ISREG(status.st_mode);
  };
  if (program.find('/') != std::string::npos) {
    const std::string path = program.front() == '/' ? program : spec.directory + "/" + program;
    if (runnable(path)) return path;
    struct stat status{};
    if (stat(path.c_str(), &status) != 0)
      return fail(ErrorKind::not_found, "{}: no such file", program);
    if (S_ISDIR(status.st_mode)) return fail(ErrorKind::invalid, "{}: is a directory", program);
    return fail(ErrorKind::invalid, "{}: not executable (chmod +x {})", program, program);
  }
  std::string_view places = "/usr/local/bin:/usr/bin:/bin";
  for (const auto& [name, value] : spec.environment)
    if (name == "PATH") places = value;
  for (const auto place : split(places, ':')) {
    // As the child will see it, who goes to its directory first.
    std::string path = place.starts_with('/')
                           ? fmt::format("{}/{}", place, program)
                           : fmt::format("{}/{}/{}", spec.directory, place, program);
    if (runnable(path)) return path;
  }
  return fail(ErrorKind::not_found, "{}: no such program in PATH", program);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  Fd read, write;  // ours, the child's
};

Result<Pipe> make_pipe(Env& env) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error(errno, "pipe");
  Pipe pipe{Fd(env, ends[0]), Fd(env, ends[1])};
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pipe;
}

/// What the child reads and writes by the same descriptor, and so do we.
Result<Pipe> make_socket(Env& env) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return errno_error(errno, "socketpair");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{Fd(env, ends[0]), Fd(env, ends[1])};
}

/// One stack for all: the parent is suspended while a child uses it, and an Env has one thread.
void* child_stack_top() {
  alignas(16) thread_local std::array<char, kStackSize> stack;
  return stack.data() + stack.size();
}

/// Starts run_child() within a v2 control group: clone3(2) with CLONE_INTO_CGROUP, which costs 5 %
/// more than no group, where writing into cgroup.procs costs twice as much again. The C library has
/// no wrapper for it, and one that returned twice on one stack would not do: the child must not
/// return from here. errno ENOSYS: this kernel, or a container's filter, has no such call.
BERTH_UNINSTRUMENTED pid_t start_in_group(Launch& launch, int directory, int& pidfd) {
  clone_args arguments{};
  arguments.flags = static_cast<std::uint64_t>(kSharing) | CLONE_PIDFD | CLONE_INTO_CGROUP;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  arguments.stack_size = kStackSize;
  arguments.stack = reinterpret_cast<std::uint64_t>(child_stack_top()) - kStackSize;
  arguments.cgroup = static_cast<std::uint64_t>(directory);
#if defined(__x86_64__)
  long result = SYS_clone3;
  register int (*child)(void*) __asm__("r8") = run_child;
  register void* argument __asm__("r9") = &launch;
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %%r9, %%rdi\n\t"
      "call *%%r8\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "r"(child), "r"(argument)
      : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long result __asm__("x0") = reinterpret_cast<long>(&arguments);
  register long size __asm__("x1") = sizeof arguments;
  register long number __asm__("x8") = SYS_clone3;
  register int (*child)(void*) __asm__("x9") = run_child;
  register void* argument __asm__("x10") = &launch;
  __asm__ volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, #0\n\t"
      "mov x0, x10\n\t"
      "blr x9\n\t"
      "brk #0\n"
      "1:"
      : "+r"(result)
      : "r"(size), "r"(number), "r"(child), "r"(argument)
      : "memory");
#else
  long result = -ENOSYS;
#endif
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace

namespace {

/// The children that spawn_posix() started, on any thread, and that are not reaped yet.
class SpawnedChildren {
 public:
  /// While it is locked a child may exist that is not in the set yet.
  std::mutex mutex;
  std::set<pid_t> pids;

  void remove(pid_t pid) {
    const std::lock_guard guard(mutex);
    pids.erase(pid);
  }
};

SpawnedChildren& spawned_children() {
  static auto* children = new SpawnedChildren;  // threads may outlive static objects
  return *children;
}

constexpr std::size_t kStatSize = 8192;

/// Its children by the kernel's own list, which old kernels and some containers lack.
std::vector<pid_t> children_of_this_process(Env& env) {
  constexpr std::size_t kMostText = 8 << 20;
  std::vector<pid_t> children;
  const pid_t self = getpid();
  if (const auto list =
          env.read_file(fmt::format("/proc/self/task/{}/children", self), kMostText)) {
    for (const auto word : words(*list))
      children.push_back(static_cast<pid_t>(parse_integer(word).value_or(0)));
    return children;
  }
  for (const auto& name : env.list("/proc").value_or(std::vector<std::string>{})) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = env.read_file("/proc/" + name + "/stat", kStatSize);
    if (stat && parent_of(*stat) == self)
      children.push_back(static_cast<pid_t>(parse_integer(name).value_or(0)));
  }
  return children;
}

}  // namespace

Status adopt_orphans_posix() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return errno_error(errno, "adopt orphans");
  return {};
}

std::vector<pid_t> adopted_posix(Env& env) {
  siginfo_t any{};
  if (::waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) != 0) return {};  // it has no child
  auto& spawned = spawned_children();
  std::vector<pid_t> adopted;
  for (const pid_t pid : children_of_this_process(env)) {
    const std::lock_guard guard(spawned.mutex);
    if (pid <= 1 || spawned.pids.contains(pid)) continue;
    if (::waitpid(pid, nullptr, WNOHANG) == 0) adopted.push_back(pid);
  }
  return adopted;
}

namespace {

void wait_for(pid_t child) {
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
}

/// Starts run_child(). Returns its pid, or -1 and errno.
pid_t start(Launch& launch, const SpawnSpec& spec, int& pidfd) {
  const int group = spec.group != nullptr ? spec.group->number() : -1;
  auto& spawned = spawned_children();
  const std::lock_guard guard(spawned.mutex);
  if (spec.is_detached) {
    launch.group = group;
    const pid_t parent =
        clone(run_intermediate, child_stack_top(), kSharing | CLONE_FILES | SIGCHLD, &launch);
    if (parent < 0) return -1;
    wait_for(parent);
    pidfd = launch.detached_exited;
    errno = launch.failed_errno;
    return launch.detached_pid;
  }
  pid_t pid = group < 0 ? -1 : start_in_group(launch, group, pidfd);
  if (pid < 0 && (group < 0 || errno == ENOSYS)) {
    launch.group = group;
    pid = clone(run_child, child_stack_top(), kSharing | CLONE_PIDFD | SIGCHLD, &launch, &pidfd);
  }
  if (pid > 0) spawned.pids.insert(pid);
  return pid;
}

/// Returns nullopt where the kernel does not know the format of the file.
Result<std::optional<Child>> spawn_program(Env& env, const SpawnSpec& spec,
                                           const std::string& path) {
  BERTH_ASSIGN(const Fd log, spec.log.empty() ? Fd() : env.open_append(spec.log, 0600));
  BERTH_ASSIGN(Pipe out, log ? Pipe() : spec.talks ? make_socket(env) : make_pipe(env));
  BERTH_ASSIGN(Pipe err, log ? Pipe() : make_pipe(env));
  static const int null_input = open("/dev/null", O_RDONLY | O_CLOEXEC);

  std::vector<std::string> argv = spec.argv;
  std::vector<std::string> environment;
  for (const auto& [name, value] : spec.environment) environment.push_back(name + "=" + value);
  const auto argv_pointers = pointers(argv);
  const auto environment_pointers = pointers(environment);
  std::vector<int> join_files;
  for (const auto& file : spec.join_files) join_files.push_back(file.number());
  join_files.push_back(-1);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : spec.cores)
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(core), &cores);

  Launch launch;
  launch.path = path.c_str();
  launch.argv = argv_pointers.data();
  launch.environment = environment_pointers.data();
  launch.directory = spec.directory.c_str();
  launch.join_files = join_files.data();
  launch.cores = spec.cores.empty() ? nullptr : &cores;
  launch.parent = getpid();
  BERTH_ASSIGN(const Fd input, spec.input.empty() ? Fd() : env.open_read(spec.input));
  launch.in = spec.talks ? out.write.number() : input ? input.number() : null_input;
  launch.out = log ? log.number() : out.write.number();
  launch.err = log ? log.number() : err.write.number();
  launch.is_detached = spec.is_detached;

  // No handler of ours may run in the child while it shares our memory.
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  sigemptyset(&launch.signals);
  int pidfd = -1;
  const pid_t pid = start(launch, spec, pidfd);
  const int clone_errno = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0)
    return errno_error(clone_errno,
                       spec.group ? "start a process in its control group" : "start a process");

  Child child{pid, Fd(env, pidfd), std::move(out.read), std::move(err.read)};
  if (launch.failed_step != nullptr) {
    if (!spec.is_detached) wait_for(pid);
    spawned_children().remove(pid);
    if (launch.failed_step == launch.path && launch.failed_errno == ENOENT)
      return fail(ErrorKind::not_found, "{}: the interpreter that it names (#!) does not exist",
                  spec.argv.front());
    if (launch.failed_errno == E2BIG) return std::unexpected(too_long(spec));
    if (launch.failed_errno == ENOEXEC && launch.failed_step == launch.path) return std::nullopt;
    return errno_error(launch.failed_errno, launch.failed_step);
  }
  return child;
}

}  // namespace

Result<Child> spawn_posix(Env& env, const SpawnSpec& spec) {
  BERTH_ASSERT(!spec.argv.empty());
  BERTH_ASSIGN(const std::string path, find_program(spec));
  BERTH_ASSIGN(auto child, spawn_program(env, spec, path));
  if (child) return *std::move(child);
  if (const auto why = why_no_program(env, path); !why.empty())
    return fail(ErrorKind::invalid, "{}: {}", spec.argv.front(), why);
  // A script without #!, which execvp() gives to the shell as well.
  SpawnSpec script = spec;
  script.argv.front() = path;
  script.program.clear();
  script.argv.insert(script.argv.begin(), kShell);
  BERTH_ASSIGN(child, spawn_program(env, script, kShell));
  if (!child) return fail(ErrorKind::invalid, "{}: not a program of this machine", kShell);
  return *std::move(child);
}

bool has_exited_posix(const Child& child) {
  pollfd exited{child.exited.number(), POLLIN, 0};
  return ::poll(&exited, 1, 0) == 1;
}

Result<std::optional<ExitStatus>> reap_posix(const Child& child) {
  siginfo_t info{};
  rusage usage{};
  // The system call gives the usage of this one child; the wrapper does not.
  auto& spawned = spawned_children();
  const std::lock_guard guard(spawned.mutex);
  if (syscall(SYS_waitid, P_PIDFD, child.exited.number(), &info, WEXITED | WNOHANG, &usage) != 0)
    return errno_error(errno, "wait for a process");
  if (info.si_pid == 0) return std::nullopt;
  spawned.pids.erase(info.si_pid);
  ExitStatus status;
  if (info.si_code == CLD_EXITED)
    status.code = info.si_status;
  else
    status.signal = info.si_status;
  const auto seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
  const auto micros = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  status.cpu = std::chrono::seconds(seconds) + std::chrono::microseconds(micros);
  status.peak_rss = usage.ru_maxrss * 1024;
  return status;
}

}  // namespace berth::os
