#include "berth/os/tree_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <functional>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "berth/os/spawn_posix.h"

namespace berth::os {
namespace {

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

Result<TreeEntry> entry_at(int directory, const char* name, std::string path) {
  struct stat st{};
  if (::fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno_error(errno, path);
  TreeEntry entry{.path = std::move(path), .target = {}};
  if (S_ISREG(st.st_mode)) {
    entry.kind = TreeEntry::Kind::file;
    entry.size = st.st_size;
    entry.executable = (st.st_mode & S_IXUSR) != 0;
    entry.mode = st.st_mode & 0777U;
  } else if (S_ISDIR(st.st_mode)) {
    entry.kind = TreeEntry::Kind::directory;
    entry.mode = st.st_mode & 0777U;
  } else if (S_ISLNK(st.st_mode)) {
    entry.kind = TreeEntry::Kind::link;
    std::array<char, PATH_MAX> target;
    const auto size = ::readlinkat(directory, name, target.data(), target.size());
    if (size < 0) return errno_error(errno, entry.path);
    entry.target.assign(target.data(), static_cast<std::size_t>(size));
  }
  return entry;
}

/// What stands in `root`/`below`, with paths from `root`.
Status add_entries(const std::string& root, const std::string& below, std::size_t most,
                   std::vector<TreeEntry>& entries) {
  const std::string path = below.empty() ? root : root + "/" + below;
  const Directory dir(opendir(path.c_str()), closedir);
  if (!dir && errno == ENOENT && !below.empty()) return {};  // gone since it was listed
  if (!dir) return errno_error(errno, path);
  errno = 0;
  while (const dirent* found = readdir(dir.get())) {
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    if (entries.size() == most)
      return fail(ErrorKind::full, "{}: contains more than {} files", root, most);
    auto entry = entry_at(dirfd(dir.get()), found->d_name,
                          below.empty() ? std::string(name) : fmt::format("{}/{}", below, name));
    if (entry)
      entries.push_back(*std::move(entry));
    else if (entry.error().kind != ErrorKind::not_found)
      return std::unexpected(std::move(entry).error());
    errno = 0;
  }
  if (errno != 0) return errno_error(errno, path);
  return {};
}

constexpr std::size_t kCopyBlock = 256U << 10;

/// Copies an open file into another, empty one. Where the volume can, the two share their blocks;
/// otherwise its bytes are copied, and its holes stay holes.
class FileCopy {
 public:
  FileCopy(Env& env, int from, int to) : env_(env), from_(from), to_(to) {}

  Result<std::optional<Content>> run() {
    if (::ioctl(to_, FICLONE, from_) == 0) return std::nullopt;
    struct stat st{};
    constexpr std::int64_t kSector = 512;
    const bool has_holes = ::fstat(from_, &st) == 0 && st.st_blocks * kSector < st.st_size;
    for (bool more = true; more;) {
      if (env_.stop_signals() > 1) return fail(ErrorKind::interrupted, "not copied to its end");
      if (has_holes) BERTH_TRY(skip_hole(st.st_size));
      BERTH_ASSIGN(more, copy_block());
    }
    if (ends_in_hole_ && ::ftruncate(to_, content_.size) != 0) return errno_error(errno, "write");
    content_.digest = hash_.finish();
    return content_;
  }

 private:
  /// Moves both files behind a hole at this place; the digest counts its zeros.
  Status skip_hole(std::int64_t size) {
    if (content_.size < data_end_ || content_.size >= size) return {};
    auto data = ::lseek(from_, content_.size, SEEK_DATA);
    if (data < 0) data = errno == ENXIO ? size : content_.size;  // no more data, or no holes known
    const auto end = ::lseek(from_, data, SEEK_HOLE);
    data_end_ = end > data ? end : size;
    const std::vector<char> zeros(data > content_.size ? kCopyBlock : 0);
    for (auto left = static_cast<std::size_t>(data - content_.size); left > 0;) {
      if (env_.stop_signals() > 1) return fail(ErrorKind::interrupted, "not copied to its end");
      const std::size_t part = std::min(left, zeros.size());
      hash_.add({zeros.data(), part});
      left -= part;
    }
    ends_in_hole_ = data > content_.size;
    content_.size = data;
    if (::lseek(from_, data, SEEK_SET) < 0 || ::lseek(to_, data, SEEK_SET) < 0)
      return errno_error(errno, "seek");
    return {};
  }

  /// Returns false at the end of the file.
  Result<bool> copy_block() {
    const auto until_hole =
        static_cast<std::size_t>(std::max<std::int64_t>(data_end_ - content_.size, 0));
    const std::size_t most = until_hole > 0 ? std::min(until_hole, kCopyBlock) : kCopyBlock;
    const auto got = ::read(from_, buffer_.get(), most);
    if (got < 0 && errno == EINTR) return true;
    if (got < 0) return errno_error(errno, "read");
    if (got == 0) return false;
    std::string_view left(buffer_.get(), static_cast<std::size_t>(got));
    hash_.add(left);
    content_.size += got;
    ends_in_hole_ = false;
    while (!left.empty()) {
      const auto put = ::write(to_, left.data(), left.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return errno_error(errno, "write");
      left.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }

  Env& env_;
  const int from_, to_;
  const std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(kCopyBlock);
  Content content_;  // copied so far
  Sha256 hash_;
  std::int64_t data_end_ = 0;  // where the next hole may begin
  bool ends_in_hole_ = false;
};

/// Opened so that what it holds can be removed.
Result<Fd> open_emptied(Env& env, int parent, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int number = ::openat(parent, name.c_str(), kFlags);
  if (number < 0 && errno == EACCES && ::fchmodat(parent, name.c_str(), 0700, 0) == 0)
    number = ::openat(parent, name.c_str(), kFlags);
  if (number < 0) return errno_error(errno, name);
  struct stat st{};
  if (::fstat(number, &st) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU) ::fchmod(number, 0700);
  return Fd(env, number);
}

Result<std::vector<std::string>> names_in(const Fd& directory, const std::string& path) {
  const int copy = ::fcntl(directory.number(), F_DUPFD_CLOEXEC, 0);
  const Directory dir(copy < 0 ? nullptr : ::fdopendir(copy), closedir);
  if (!dir) return errno_error(errno, path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* found = readdir(dir.get())) {
    const std::string_view name = found->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return errno_error(errno, path);
  return names;
}

/// Removes directories within one of them, the topmost. Those within others come up to it first, so
/// that no path and no number of descriptors grows with the depth.
class TreeRemoval {
 public:
  TreeRemoval(Env& env, const std::string& path, Fd top)
      : env_(env), path_(path), top_(std::move(top)) {}

  Status run() {
    BERTH_TRY(empty(top_));
    while (!waiting_.empty()) {
      const std::string name = std::move(waiting_.back());
      waiting_.pop_back();
      if (::unlinkat(top_.number(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) continue;
      BERTH_ASSIGN(const Fd directory, open_emptied(env_, top_.number(), name));
      BERTH_TRY(empty(directory));
      if (::unlinkat(top_.number(), name.c_str(), AT_REMOVEDIR) != 0)
        return errno_error(errno, path_);
    }
    return {};
  }

 private:
  Status empty(const Fd& directory) {
    const int number = directory.number();
    BERTH_ASSIGN(auto names, names_in(directory, path_));
    for (auto& name : names) {
      if (::unlinkat(number, name.c_str(), 0) == 0 || errno == ENOENT) continue;
      if (errno != EISDIR) return errno_error(errno, path_ + "/" + name);
      if (number != top_.number()) BERTH_TRY(bring_up(number, name));
      waiting_.push_back(std::move(name));
    }
    return {};
  }

  /// `name` becomes its new one.
  Status bring_up(int from, std::string& name) {
    for (bool may_write = false;;) {
      const std::string to = fmt::format("{:x}", next_);
      if (::renameat(from, name.c_str(), top_.number(), to.c_str()) == 0) {
        name = to;
        return {};
      }
      if (errno == EACCES && !std::exchange(may_write, true)) {
        if (::fchmodat(from, name.c_str(), 0700, 0) != 0) return errno_error(errno, path_);
      } else if (errno == ENOTEMPTY || errno == EEXIST) {
        ++next_;
      } else {
        return errno_error(errno, path_);
      }
    }
  }

  Env& env_;
  const std::string& path_;
  const Fd top_;
  std::vector<std::string> waiting_;  // directories in the topmost
  std::uint64_t next_ = 0;            // a name there that may be free
};

}  // namespace

Status remove_tree_posix(Env& env, const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return errno_error(errno, path);
  if (::rmdir(path.c_str()) == 0) return {};
  BERTH_ASSIGN(Fd top, open_emptied(env, AT_FDCWD, path));
  BERTH_TRY(TreeRemoval(env, path, std::move(top)).run());
  if (::rmdir(path.c_str()) != 0) return errno_error(errno, path);
  return {};
}

bool shows_changes_posix(const std::string& path) {
  // Volumes in memory give no time to what is written through a mapping, and others may write to a
  // volume behind a network: tmpfs, ramfs, NFS, SMB, CIFS, SMB2, Lustre, GPFS, Ceph, AFS, 9P,
  // BeeGFS, FUSE, OCFS2, GFS2.
  constexpr std::array<std::uint32_t, 15> kSilent = {0x01021994, 0x858458f6, 0x6969,     0x517b,
                                                     0xff534d42, 0xfe534d42, 0x0bd00bd0, 0x47504653,
                                                     0x00c36400, 0x5346414f, 0x01021997, 0x19830326,
                                                     0x65735546, 0x7461636f, 0x01161970};
  const int number = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (number < 0) return false;
  struct statfs volume{};
  const bool is_silent =
      ::fstatfs(number, &volume) != 0 ||
      std::ranges::find(kSilent, static_cast<std::uint32_t>(volume.f_type)) != kSilent.end();
  // The signal of a writer that comes meanwhile is one that does nothing, instead of SIGIO.
  bool is_written = false;
  if (!is_silent && ::fcntl(number, F_SETSIG, SIGURG) == 0) {
    is_written = ::fcntl(number, F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
    if (!is_written) ::fcntl(number, F_SETLEASE, F_UNLCK);
  }
  ::close(number);
  return !is_silent && !is_written;
}

FileStatus::Kind kind_posix(mode_t mode) {
  using Kind = FileStatus::Kind;
  switch (mode & S_IFMT) {
    case S_IFREG: return Kind::file;
    case S_IFDIR: return Kind::directory;
    case S_IFIFO: return Kind::pipe;
    case S_IFSOCK: return Kind::socket;
    case S_IFCHR:
    case S_IFBLK: return Kind::device;
    default: return Kind::other;
  }
}

Result<std::vector<TreeEntry>> entries_posix(const std::string& directory) {
  std::vector<TreeEntry> entries;
  BERTH_TRY(add_entries(directory, "", std::numeric_limits<std::size_t>::max(), entries));
  std::ranges::sort(entries, {}, &TreeEntry::path);
  return entries;
}

Result<std::vector<TreeEntry>> tree_posix(const std::string& directory, std::size_t most) {
  std::vector<TreeEntry> entries;
  std::vector<std::string> open{""};  // directories yet to be read
  while (!open.empty()) {
    const std::string below = std::move(open.back());
    open.pop_back();
    const std::size_t before = entries.size();
    BERTH_TRY(add_entries(directory, below, most, entries));
    for (std::size_t i = before; i < entries.size(); ++i)
      if (entries[i].kind == TreeEntry::Kind::directory) open.push_back(entries[i].path);
  }
  return entries;
}

Status stamp_posix(const std::string& path, mode_t mode, Wall modified) {
  const auto time = modified.time_since_epoch().count();
  const timespec at{time / 1'000'000'000, time % 1'000'000'000};
  const std::array<timespec, 2> times{at, at};
  if (::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) != 0 || ::chmod(path.c_str(), mode) != 0)
    return errno_error(errno, path);
  return {};
}

/// Opens the path for the call, which says 0 where all is well.
template <typename Call>
Status with_open(const std::string& path, Call call) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool well = fd >= 0 && call(fd) == 0;
  const int number = errno;
  if (fd >= 0) ::close(fd);
  if (!well) return errno_error(number, path);
  return {};
}

// Each fsync waits for the disk to empty its cache, some milliseconds; those of several threads
// wait together (ext4: 3.5 ms a file alone, 0.13 to 0.19 with eight).
Status sync_all_posix(std::span<const std::string> paths) {
  constexpr std::size_t kThreads = 8, kEnoughForOne = 2;
  // No descriptor is kept from the one to the other: there may be few, and many paths. Of a
  // directory it says EINVAL or so: nothing to begin.
  for (const auto& path : paths)
    if (paths.size() > 1)
      BERTH_TRY(with_open(path, [](int fd) {
        ::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        return 0;
      }));
  std::atomic<std::size_t> next = 0;
  std::vector<Status> ends(std::clamp(paths.size() / kEnoughForOne, std::size_t{1}, kThreads));
  const auto work = [&](Status& end) {
    while (end)
      if (const std::size_t at = next++; at < paths.size())
        end = with_open(paths[at], [](int fd) { return ::fsync(fd); });
      else
        return;
  };
  sigset_t all, before;  // stop signals are for the thread that waits for them
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < ends.size(); ++i) threads.emplace_back(work, std::ref(ends[i]));
    } catch (const std::system_error&) {
      // There are no more threads to be had: those that there are do it.
    }
    work(ends[0]);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (auto& end : ends) BERTH_TRY(std::move(end));
  return {};
}

Result<std::optional<Content>> copy_posix(Env& env, const std::string& from, const std::string& to,
                                          mode_t mode) {
  BERTH_ASSIGN(const Fd source, env.open_read(from));
  const int number = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (number < 0) return errno_error(errno, to);
  const Fd target(env, number);
  auto copied = FileCopy(env, source.number(), number).run();
  if (copied) return copied;
  ::unlink(to.c_str());
  return std::unexpected(within(to, std::move(copied).error()));
}

}  // namespace berth::os
