#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "berth/os/spawn_posix.h"
#include "berth/os/standard_input.h"

namespace berth::os {

Result<Fd> open_standard_input(Env& env) {
  const int copy = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return errno_error(errno, "standard input");
  return Fd(env, copy);
}

bool standard_input_has_data() {
  struct stat status{};
  if (::fstat(STDIN_FILENO, &status) != 0) return false;
  if (S_ISREG(status.st_mode))
    return ::lseek(STDIN_FILENO, 0, SEEK_CUR) < static_cast<off_t>(status.st_size);
  if (!S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode)) return false;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  int waiting = 0;
  return ::poll(&input, 1, 0) > 0 && (input.revents & POLLIN) != 0 &&
         ::ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
}

}  // namespace berth::os
