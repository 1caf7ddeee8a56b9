#include "berth/os/detach_posix.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

[[noreturn]] void pass_on(Env& env, const Fd& from, std::string_view good) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto got = env.read_some(from, buffer);
    if (!got || !*got || **got == 0) break;
    text.append(buffer.data(), **got);
  }
  const bool well = text.starts_with(good);
  (void)env.write_all(Fd(env, well ? STDOUT_FILENO : STDERR_FILENO), text);
  ::_exit(well ? 0 : 1);
}

}  // namespace

Result<Fd> detach(Env& env, const std::string& log, std::string_view good) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error(errno, "pipe");
  Fd read(env, ends[0]);
  Fd write(env, ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "fork");
  if (pid > 0) {
    write.reset();
    pass_on(env, read, good);
  }
  read.reset();
  constexpr int kKept = 3;  // the last descriptor that stays
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int errors =
      ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (::setsid() < 0 || ::chdir("/") != 0 || null < 0 || errors < 0 || ::dup2(null, 0) < 0 ||
      ::dup2(null, 1) < 0 || ::dup2(errors, 2) < 0)
    return errno_error(errno, log);
  if (ends[1] != kKept) {
    if (::dup3(ends[1], kKept, O_CLOEXEC) < 0) return errno_error(errno, "dup");
    write = Fd(env, kKept);
  }
  ::close_range(kKept + 1, ~0U, 0);
  return write;
}

}  // namespace berth::os
