#include "berth/os/access_posix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "berth/os/new_file_posix.h"
#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

constexpr const char* kAccessList = "system.posix_acl_access";
constexpr const char* kDefaultList = "system.posix_acl_default";
constexpr mode_t kModes = 07777;

/// Gives `to` the access control list of `from`, or removes the list that `to` inherited.
void copy_list(const std::string& from, const std::string& to, const char* list) {
  std::array<char, 4096> bytes{};
  const auto size = ::getxattr(from.c_str(), list, bytes.data(), bytes.size());
  if (size > 0)
    (void)::setxattr(to.c_str(), list, bytes.data(), static_cast<std::size_t>(size), 0);
  else if (size < 0 && errno == ENODATA)
    (void)::removexattr(to.c_str(), list);
}

/// Writes into what cannot be replaced: a terminal, a pipe, a file in a read-only directory.
Status write_through(Env& env, const LinkEnd& end, std::string_view text) {
  const int flags = O_WRONLY | O_TRUNC | O_CLOEXEC | (end.is_handle ? 0 : O_NOFOLLOW);
  const int number = ::open(end.path.c_str(), flags);
  if (number < 0) return errno_error(errno, end.path);
  return env.write_all(Fd(env, number), text);
}

}  // namespace

Status make_user_directory_posix(const std::string& path, mode_t mode) {
  if (path.size() > 1 && path.ends_with('/'))
    return make_user_directory_posix(path.substr(0, path.size() - 1), mode);
  int number = ::mkdir(path.c_str(), mode) == 0 ? 0 : errno;
  if (const auto slash = path.find_last_of('/');
      number == ENOENT && slash != std::string::npos && slash != 0) {
    BERTH_TRY(make_user_directory_posix(path.substr(0, slash), 0777));
    number = ::mkdir(path.c_str(), mode) == 0 ? 0 : errno;
  }
  if (number == 0) return {};
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
  return errno_error(number == EEXIST ? ENOTDIR : number, path);
}

Status replace_user_file_posix(Env& env, const std::string& path, std::string_view text) {
  constexpr mode_t kNewFile = 0666;
  BERTH_ASSIGN(const LinkEnd end, follow_own_links(path));
  struct stat st{};
  const bool exists = ::stat(end.path.c_str(), &st) == 0;
  if (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return write_through(env, end, text);
  if (end.is_handle) return write_through(env, end, text);
  // By its descriptor, for another file may be at its name by now.
  const auto copy_old_access = [&](int number) {
    const std::string handle = fmt::format("/proc/self/fd/{}", number);
    return exists ? copy_access_posix(end.path, handle, 0) : Status{};
  };
  const auto name = write_new_file(env, end.path, text, kNewFile, copy_old_access);
  if (!name && name.error().kind == ErrorKind::denied && exists)
    return write_through(env, end, text);
  if (!name) return std::unexpected(name.error());
  if (name->empty() || ::rename(name->c_str(), end.path.c_str()) == 0) return {};
  const int number = errno;
  ::unlink(name->c_str());
  return errno_error(number, path);
}

Status copy_access_posix(const std::string& from, const std::string& to, mode_t denied) {
  struct stat old{}, now{};
  if (::stat(from.c_str(), &old) != 0) return errno_error(errno, from);
  if (::stat(to.c_str(), &now) != 0) return errno_error(errno, to);
  mode_t mode = old.st_mode & kModes & ~denied;
  if (S_ISREG(now.st_mode)) {
    mode &= 0777U;
    mode &= ~0111U;
    if ((now.st_mode & 0100U) != 0) mode |= 0100U | ((mode & 0044U) >> 2U);
    mode |= now.st_mode & 0600U;
  } else {
    mode |= 0700U;
  }
  // Another group must not get what was meant for this one.
  if (old.st_gid != now.st_gid && ::chown(to.c_str(), static_cast<uid_t>(-1), old.st_gid) != 0)
    mode = (mode & ~0070U) | (mode & 0070U & ((mode & 0007U) << 3U));
  copy_list(from, to, kAccessList);
  if (S_ISDIR(now.st_mode)) copy_list(from, to, kDefaultList);
  if (::chmod(to.c_str(), mode) != 0) return errno_error(errno, to);
  return {};
}

Result<std::string> link_target_posix(const std::string& path) {
  std::array<char, PATH_MAX> target;
  const auto size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0 && errno == EINVAL) return fail(ErrorKind::invalid, "{}: not a symbolic link", path);
  if (size < 0) return errno_error(errno, path);
  return std::string(target.data(), static_cast<std::size_t>(size));
}

mode_t umask_posix() {
  constexpr std::string_view kKey = "\nUmask:\t";
  constexpr int kOctal = 8;
  std::array<char, 1024> text{};
  const int number = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  const auto size = number < 0 ? -1 : ::read(number, text.data(), text.size() - 1);
  if (number >= 0) ::close(number);
  if (size > 0)
    if (const auto at = std::string_view(text.data()).find(kKey); at != std::string_view::npos)
      return static_cast<mode_t>(std::strtol(text.data() + at + kKey.size(), nullptr, kOctal));
  // Other threads see another umask for an instant; this is for a machine without /proc.
  const mode_t mask = ::umask(0077);
  ::umask(mask);
  return mask;
}

}  // namespace berth::os
