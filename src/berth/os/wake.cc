#include "berth/os/wake.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace berth::os {

Wake::Wake() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Wake::~Wake() {
  if (fd_ >= 0) ::close(fd_);
}

void Wake::set() const noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(fd_, &one, sizeof one);
  errno = saved;
}

void Wake::clear() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto ignored = ::read(fd_, &count, sizeof count);
}

}  // namespace berth::os
