#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

constexpr std::size_t kMostStatText = 8192;

/// A numbered field of /proc/PID/stat, unless the process is a zombie.
std::optional<std::int64_t> number_of_living(std::string_view stat, std::size_t field) {
  const auto name_end = stat.rfind(')');  // the name itself may hold blanks and brackets
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = words(stat.substr(name_end + 1));
  constexpr std::size_t kFirst = 3;  // the state
  if (fields.size() <= field - kFirst || fields[0] == "Z" || fields[0] == "X") return std::nullopt;
  const auto number = parse_integer(fields[field - kFirst]);
  if (!number) return std::nullopt;
  return *number;
}

}  // namespace

std::unexpected<Error> errno_error(int number, std::string_view what) {
  ErrorKind kind = ErrorKind::io;
  switch (number) {
    case ENOENT:
    case ESRCH: kind = ErrorKind::not_found; break;
    case EACCES:
    case EPERM:
    case EROFS: kind = ErrorKind::denied; break;
    case ENOSPC:
    case EFBIG:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM: kind = ErrorKind::full; break;
    case EEXIST: kind = ErrorKind::exists; break;
    case ENOEXEC:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case E2BIG: kind = ErrorKind::invalid; break;
    default: break;
  }
  // Of this process's own; the machine's (ENFILE) is no one user's to raise.
  const char* advice = number == EMFILE ? "; raise the limit of this process: ulimit -n 256" : "";
  return fail(kind, "{}: {}{}", what, std::strerror(number), advice);
}

Status signal_process_posix(Env& env, const ProcessIdentity& process, int signal) {
  // A pidfd names one process, though its pid may be used again at any moment.
  const Fd fd(env, static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  const bool gone = !fd && errno == ESRCH;
  if (gone || !env.alive(process))
    return fail(ErrorKind::not_found, "process {} is gone", process.pid);
  const long sent = fd ? syscall(SYS_pidfd_send_signal, fd.number(), signal, nullptr, 0)
                       : kill(process.pid, signal);
  if (sent != 0) return errno_error(errno, "signal a process");
  return {};
}

std::optional<std::int64_t> start_time_posix(std::string_view stat) {
  return number_of_living(stat, 22);
}

bool group_alive_posix(Env& env, pid_t group) {
  if (::kill(-group, 0) != 0) return false;
  const auto names = env.list("/proc");
  if (!names) return true;  // unknown
  return std::ranges::any_of(*names, [&](const std::string& name) {
    if (name.find_first_not_of("0123456789") != std::string::npos) return false;
    const auto stat = env.read_file("/proc/" + name + "/stat", kMostStatText);
    return stat && number_of_living(*stat, 5) == group;
  });
}

}  // namespace berth::os
