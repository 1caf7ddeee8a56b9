#include "berth/os/new_file_posix.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

constexpr int kMostNames = 100;  // attempts to find a name that is not taken

int open_again(const char* path, int flags, mode_t mode) {
  for (;;)
    if (const int number = ::open(path, flags | O_CLOEXEC, mode); number >= 0 || errno != EINTR)
      return number;
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// A name next to `path` that no other user can guess.
std::string random_name(Env& env, const std::string& path) {
  constexpr std::size_t kMostKept = 240;  // a name has at most 255 bytes
  const auto begin = path.rfind('/') + 1;
  return fmt::format("{}{}.{:08x}.new", path.substr(0, begin), path.substr(begin, kMostKept),
                     static_cast<std::uint32_t>(env.random()));
}

/// Makes a file under a random name, which it writes to `name`.
Result<Fd> make_named(Env& env, const std::string& path, mode_t mode, std::string& name) {
  for (int nth = 0;; ++nth) {
    name = random_name(env, path);
    const int number = open_again(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (number >= 0) return Fd(env, number);
    if (errno != EEXIST || nth == kMostNames) return errno_error(errno, path);
  }
}

/// Gives a file without a name that of `path` where it is free, or else a random one. Returns the
/// random one, "" for that of `path`; nullopt where this system or volume cannot.
std::optional<std::string> give_name(Env& env, const Fd& fd, const std::string& path) {
  const std::string handle = fmt::format("/proc/self/fd/{}", fd.number());
  const auto link = [&](const std::string& name) {
    return ::linkat(AT_FDCWD, handle.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link(path)) return "";
  for (int nth = 0; errno == EEXIST && nth < kMostNames; ++nth)
    if (std::string name = random_name(env, path); link(name)) return name;
  return std::nullopt;
}

}  // namespace

Result<LinkEnd> follow_own_links(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::string at = path;
  for (int nth = 0; nth < kMostLinks; ++nth) {
    const int link = open_again(at.c_str(), O_PATH | O_NOFOLLOW, 0);
    if (link < 0) return LinkEnd{at};
    struct stat st{};
    struct statfs volume{};
    std::array<char, PATH_MAX> target;
    const bool is_link = ::fstat(link, &st) == 0 && S_ISLNK(st.st_mode);
    const bool of_proc =
        is_link && ::fstatfs(link, &volume) == 0 && volume.f_type == PROC_SUPER_MAGIC;
    const auto size = is_link ? ::readlinkat(link, "", target.data(), target.size()) : -1;
    ::close(link);
    if (size < 0) return LinkEnd{at};
    const std::string_view to(target.data(), static_cast<std::size_t>(size));
    if (st.st_uid != ::geteuid() && st.st_uid != 0)
      return fail(ErrorKind::denied,
                  "{}: a symbolic link of another user (uid {}) to {}, which Berth does not "
                  "follow; remove the link, or name another file",
                  at, st.st_uid, to);
    if (of_proc) return LinkEnd{at, true};
    at = to.starts_with('/') ? std::string(to) : fmt::format("{}/{}", directory_of(at), to);
  }
  return errno_error(ELOOP, path);
}

Result<int> open_or_make_posix(const std::string& path, int flags, mode_t mode) {
  int number = open_again(path.c_str(), flags | O_CREAT | O_NOFOLLOW, mode);
  if (number < 0 && errno == ELOOP) {
    BERTH_ASSIGN(const LinkEnd end, follow_own_links(path));
    number = open_again(end.path.c_str(), flags | (end.is_handle ? 0 : O_CREAT | O_NOFOLLOW), mode);
  }
  if (number < 0) return errno_error(errno, path);
  return number;
}

Result<std::string> write_new_file(Env& env, const std::string& path, std::string_view text,
                                   mode_t mode, const std::function<Status(int)>& finish) {
  // A file without a name goes with its writer, whatever ends it.
  Fd fd(env, open_again(directory_of(path).c_str(), O_WRONLY | O_TMPFILE, mode));
  for (bool has_name = !fd;; has_name = true) {
    std::string name;
    if (has_name) {
      BERTH_ASSIGN(fd, make_named(env, path, mode, name));
    }
    auto status = env.write_all(fd, text);
    if (status) status = finish(fd.number());
    if (!status) {
      if (has_name) ::unlink(name.c_str());
      return std::unexpected(within(path, std::move(status).error()));
    }
    if (has_name) return name;
    if (auto given = give_name(env, fd, path)) return *std::move(given);
  }
}

Status replace_file_posix(Env& env, const std::string& path, std::string_view text, mode_t mode) {
  const auto set_mode = [&](int number) {
    return ::fchmod(number, mode) == 0 ? Status{} : Status(errno_error(errno, "chmod"));
  };
  BERTH_ASSIGN(const std::string name, write_new_file(env, path, text, mode, set_mode));
  if (name.empty()) return {};
  // An exchange is spared the flush that ext4 makes of a plain rename over an existing file: a
  // fifth of the time, and nothing here is promised to survive a power cut.
  const auto exchange = [&] {
    return ::renameat2(AT_FDCWD, name.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0;
  };
  const bool exchanged = exchange();
  if (!exchanged && ::rename(name.c_str(), path.c_str()) == 0) return {};
  const int number = errno;
  if (::unlink(name.c_str()) == 0 && exchanged) return {};
  if (!exchanged) return errno_error(number, path);
  // A directory was at the path: back as it was.
  exchange();
  ::unlink(name.c_str());
  return errno_error(EISDIR, path);
}

}  // namespace berth::os
