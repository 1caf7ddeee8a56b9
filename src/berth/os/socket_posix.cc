#include "berth/os/socket_posix.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

constexpr int kBacklog = 16;

/// An address takes 107 bytes: the directory is gone through by a descriptor, which has a short
/// name whatever its own is.
struct Place {
  Fd directory;
  sockaddr_un address{};
};

Result<Place> place_of(Env& env, const std::string& path) {
  const auto slash = path.rfind('/');
  BERTH_ASSERT(slash != std::string::npos);
  const std::string directory = slash == 0 ? "/" : path.substr(0, slash);
  Place place;
  place.directory = Fd(env, ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.directory) return errno_error(errno, directory);
  const std::string name =
      fmt::format("/proc/self/fd/{}{}", place.directory.number(), path.substr(slash));
  if (name.size() >= sizeof place.address.sun_path) return errno_error(ENAMETOOLONG, path);
  place.address.sun_family = AF_UNIX;
  name.copy(place.address.sun_path, name.size());
  return place;
}

Result<Fd> new_socket(Env& env) {
  Fd fd(env, ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error(errno, "socket");
  return fd;
}

}  // namespace

Result<Fd> listen_posix(Env& env, const std::string& path) {
  BERTH_ASSIGN(const Place place, place_of(env, path));
  BERTH_ASSIGN(Fd fd, new_socket(env));
  const auto* address = reinterpret_cast<const sockaddr*>(&place.address);
  // The mode of the socket file is that of the socket, less the umask, so that it is never open to
  // others.
  if (::fchmod(fd.number(), 0600) != 0) return errno_error(errno, path);
  ::unlink(place.address.sun_path);
  if (::bind(fd.number(), address, sizeof place.address) != 0 ||
      ::listen(fd.number(), kBacklog) != 0)
    return errno_error(errno, path);
  return fd;
}

Result<std::optional<Fd>> accept_posix(Env& env, const Fd& listener) {
  const int number = ::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (number >= 0) return Fd(env, number);
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return std::nullopt;
  return errno_error(errno, "accept");
}

Result<Fd> connect_posix(Env& env, const std::string& path) {
  BERTH_ASSIGN(const Place place, place_of(env, path));
  BERTH_ASSIGN(Fd fd, new_socket(env));
  const auto* address = reinterpret_cast<const sockaddr*>(&place.address);
  if (::connect(fd.number(), address, sizeof place.address) == 0) return fd;
  if (errno == ECONNREFUSED) return fail(ErrorKind::not_found, "{}: no process listens", path);
  return errno_error(errno, path);
}

Result<std::optional<std::size_t>> write_some_posix(const Fd& fd, std::string_view bytes) {
  // A peer that is gone is an error here, whatever SIGPIPE would do.
  ssize_t put = ::send(fd.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put < 0 && errno == ENOTSOCK) put = ::write(fd.number(), bytes.data(), bytes.size());
  if (put >= 0) return static_cast<std::size_t>(put);
  if (errno == EAGAIN || errno == EINTR) return std::nullopt;
  return errno_error(errno, "write");
}

}  // namespace berth::os
