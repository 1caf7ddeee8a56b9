#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/access_posix.h"
#include "berth/os/background_threads_posix.h"
#include "berth/os/env.h"
#include "berth/os/new_file_posix.h"
#include "berth/os/scope_posix.h"
#include "berth/os/socket_posix.h"
#include "berth/os/spawn_posix.h"
#include "berth/os/stop_signals_posix.h"
#include "berth/os/tree_posix.h"
#include "berth/os/wake.h"

extern char** environ;

namespace berth::os {
namespace {

Duration read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Wall wall_of(const timespec& time) {
  return Wall(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

/// Retries a system call that a signal cut short.
template <class Call>
auto uninterrupted(Call call) {
  for (;;) {
    if (const auto result = call(); result >= 0 || errno != EINTR) return result;
  }
}

// 0 once a directory is at `path`, whoever made it, else the error's number.
int make_one_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) return ::chmod(path.c_str(), mode) == 0 ? 0 : errno;
  const int number = errno;
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return 0;
  return number == EEXIST ? ENOTDIR : number;
}

class PosixEnv final : public Env {
 public:
  explicit PosixEnv(const std::atomic<bool>* give_up, StopSource* stop = nullptr)
      : give_up_(give_up), stop_(stop) {}

  Mono now() override { return Mono(read_clock(CLOCK_MONOTONIC)); }
  Mono boot_clock() override { return Mono(read_clock(CLOCK_BOOTTIME)); }
  Wall wall() override { return Wall(read_clock(CLOCK_REALTIME)); }
  std::uint64_t random() override {
    std::uint64_t value = 0;
    BERTH_ASSERT(getrandom(&value, sizeof value, 0) == sizeof value);
    return value;
  }

  Result<std::string> read_file(const std::string& path, std::size_t limit) override {
    BERTH_ASSIGN(const Fd fd, open_with(path, O_RDONLY, 0));
    std::string text;
    std::array<char, 16384> buffer;
    for (;;) {
      const auto got =
          uninterrupted([&] { return ::read(fd.number(), buffer.data(), buffer.size()); });
      if (got < 0) return errno_error(errno, path);
      if (got == 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(got));
      if (text.size() > limit)
        return fail(ErrorKind::invalid, "{}: larger than {}", path,
                    format_bytes(static_cast<std::int64_t>(limit)));
    }
  }

  Status replace_file(const std::string& path, std::string_view text, mode_t mode) override {
    return replace_file_posix(*this, path, text, mode);
  }

  Status write_into(const std::string& path, std::string_view text) override {
    BERTH_ASSIGN(const Fd fd, open_with(path, O_WRONLY, 0));
    const auto put = uninterrupted([&] { return ::write(fd.number(), text.data(), text.size()); });
    if (put < 0) return errno_error(errno, path);
    if (static_cast<std::size_t>(put) != text.size())
      return fail(ErrorKind::io, "{}: short write", path);
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    DIR* dir = opendir(directory.c_str());
    if (dir == nullptr) return errno_error(errno, directory);
    std::vector<std::string> names;
    while (const dirent* entry = readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    closedir(dir);
    std::ranges::sort(names);
    return names;
  }

  Result<FileStatus> status(const std::string& path) override {
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) return errno_error(errno, path);
    FileStatus result{.kind = kind_posix(st.st_mode), .size = st.st_size};
    result.links = static_cast<std::int64_t>(st.st_nlink);
    result.owner = st.st_uid;
    result.mode = st.st_mode & 07777U;
    const bool may = S_ISREG(st.st_mode) && (st.st_mode & 0111U) != 0;
    result.executable = may && access(path.c_str(), X_OK) == 0;
    result.modified = wall_of(st.st_mtim);
    result.device = st.st_dev;
    result.inode = st.st_ino;
    result.changed = wall_of(st.st_ctim);
    return result;
  }

  bool shows_changes(const std::string& path) override { return shows_changes_posix(path); }
  Result<std::string> real_path(const std::string& path) override {
    char* resolved = ::realpath(path.c_str(), nullptr);
    if (resolved == nullptr) return errno_error(errno, path);
    std::string result = resolved;
    std::free(resolved);
    return result;
  }

  Status make_directory(const std::string& path, mode_t mode) override {
    if (path.size() > 1 && path.ends_with('/'))
      return make_directory(path.substr(0, path.size() - 1), mode);
    int number = make_one_directory(path, mode);
    if (const auto slash = path.find_last_of('/');
        number == ENOENT && slash != std::string::npos && slash != 0) {
      BERTH_TRY(make_user_directory_posix(path.substr(0, slash), 0777));
      number = make_one_directory(path, mode);
    }
    if (number != 0) return errno_error(number, path);
    return {};
  }

  Status make_user_directory(const std::string& path, mode_t mode) override {
    return make_user_directory_posix(path, mode);
  }
  Status replace_user_file(const std::string& path, std::string_view text) override {
    return replace_user_file_posix(*this, path, text);
  }
  Status copy_access(const std::string& from, const std::string& to, mode_t denied) override {
    return copy_access_posix(from, to, denied);
  }
  Result<std::string> link_target(const std::string& path) override {
    return link_target_posix(path);
  }

  Status remove_file(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return errno_error(errno, path);
    return {};
  }
  Status remove_directory(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0) return errno_error(errno, path);
    return {};
  }

  bool may_write(const std::string& path) override {
    return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
  }
  Result<std::string> attribute(const std::string& path, const std::string& name) override {
    std::array<char, 256> value{};
    const auto size = ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
    if (size < 0) return errno_error(errno == ENODATA || errno == ENOTSUP ? ENOENT : errno, path);
    return std::string(value.data(), static_cast<std::size_t>(size));
  }

  Result<VolumeSpace> volume(const std::string& path) override {
    struct statvfs vfs{};
    if (::statvfs(path.c_str(), &vfs) != 0) return errno_error(errno, path);
    const auto block = static_cast<std::int64_t>(vfs.f_frsize);
    return VolumeSpace{static_cast<std::int64_t>(vfs.f_blocks) * block,
                       static_cast<std::int64_t>(vfs.f_bavail) * block,
                       static_cast<std::int64_t>(vfs.f_files),
                       static_cast<std::int64_t>(vfs.f_favail)};
  }

  Result<Fd> open_append(const std::string& path, mode_t mode) override {
    BERTH_ASSIGN(const int number, open_or_make_posix(path, O_RDWR | O_APPEND, mode));
    return Fd(*this, number);
  }
  Result<Fd> open_read(const std::string& path) override { return open_with(path, O_RDONLY, 0); }
  Result<Fd> open_write(const std::string& path) override {
    auto fd = open_with(path, O_RDWR, 0);
    return fd ? std::move(fd) : open_with(path, O_WRONLY, 0);
  }

  Result<std::string> read_at(const Fd& fd, std::int64_t offset, std::size_t most) override {
    std::string text(most, '\0');
    std::size_t filled = 0;
    while (filled < most) {
      const auto got = uninterrupted([&] {
        return ::pread(fd.number(), text.data() + filled, most - filled,
                       offset + static_cast<off_t>(filled));
      });
      if (got < 0) return errno_error(errno, "read");
      const std::size_t wanted = most - filled;
      filled += static_cast<std::size_t>(got);
      if (static_cast<std::size_t>(got) < wanted) break;  // a file gives less only at its end
    }
    text.resize(filled);
    return text;
  }

  Status truncate(const Fd& fd, std::int64_t size) override {
    if (::ftruncate(fd.number(), size) != 0) return errno_error(errno, "truncate");
    return {};
  }

  Status remove_tree(const std::string& path) override { return remove_tree_posix(*this, path); }
  Result<std::vector<TreeEntry>> entries(const std::string& at) override {
    return entries_posix(at);
  }
  Result<std::vector<TreeEntry>> tree(const std::string& directory, std::size_t most) override {
    return tree_posix(directory, most);
  }
  Result<std::optional<Content>> copy_file(const std::string& from, const std::string& to,
                                           mode_t mode) override {
    return copy_posix(*this, from, to, mode);
  }
  Status hard_link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) != 0) return errno_error(errno, to);
    return {};
  }
  Status symbolic_link(const std::string& target, const std::string& path) override {
    if (::symlink(target.c_str(), path.c_str()) != 0) return errno_error(errno, path);
    return {};
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return errno_error(errno, to);
    return {};
  }
  Status exchange(const std::string& a, const std::string& b) override {
    if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0)
      return errno_error(errno, b);
    return {};
  }
  Status stamp(const std::string& path, mode_t mode, Wall modified) override {
    return stamp_posix(path, mode, modified);
  }
  Status sync(const std::string& path) override {
    BERTH_ASSIGN(const Fd fd, open_read(path));
    if (::fsync(fd.number()) != 0) return errno_error(errno, path);
    return {};
  }
  Status sync_all(std::span<const std::string> paths) override { return sync_all_posix(paths); }
  Status sync_volume(const std::string& path) override {
    BERTH_ASSIGN(const Fd fd, open_read(path));
    if (::syncfs(fd.number()) != 0) return errno_error(errno, path);
    return {};
  }
  mode_t mask() override { return umask_posix(); }

  Result<Fd> lock(const std::string& path, bool wait) override {
    return lock_with(path, LOCK_EX | (wait ? 0 : LOCK_NB));
  }
  Result<Fd> lock_shared(const std::string& path) override { return lock_with(path, LOCK_SH); }
  Result<Fd> lock_existing(const std::string& path) override {
    BERTH_ASSIGN(Fd fd, open_read(path));
    return flock_posix(std::move(fd), LOCK_EX | LOCK_NB, path);
  }

  Status write_all(const Fd& fd, std::string_view bytes) override {
    while (!bytes.empty()) {
      const auto put =
          uninterrupted([&] { return ::write(fd.number(), bytes.data(), bytes.size()); });
      if (put < 0) return errno_error(errno, "write");
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
  }

  Result<std::optional<std::size_t>> read_some(const Fd& fd, std::span<char> buffer) override {
    const auto got =
        uninterrupted([&] { return ::read(fd.number(), buffer.data(), buffer.size()); });
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN) return std::nullopt;
    return errno_error(errno, "read");
  }

  Result<std::optional<std::size_t>> write_some(const Fd& fd, std::string_view bytes) override {
    return write_some_posix(fd, bytes);
  }
  Result<Fd> listen_local(const std::string& path) override { return listen_posix(*this, path); }
  Result<std::optional<Fd>> accept_local(const Fd& listener) override {
    return accept_posix(*this, listener);
  }
  Result<Fd> connect_local(const std::string& path) override { return connect_posix(*this, path); }
  void close(int fd) noexcept override { ::close(fd); }

  Status wait(std::span<Watch> watches, std::optional<Mono> until) override {
    polls_.clear();
    for (const auto& watch : watches)  // what watches nothing would count against RLIMIT_NOFILE
      if (watch.fd >= 0)
        polls_.push_back({watch.fd, static_cast<short>(watch.readable ? POLLIN : POLLOUT), 0});
    // The loop's thread is woken by it; -1 is passed over by poll.
    polls_.push_back({stops_descriptor(), POLLIN, 0});
    timespec timeout{};
    if (until) {
      const Duration left = std::max(Duration(0), *until - now());
      timeout.tv_sec = left.count() / 1'000'000'000;
      timeout.tv_nsec = left.count() % 1'000'000'000;
    }
    const int ready = ::ppoll(polls_.data(), polls_.size(), until ? &timeout : nullptr, nullptr);
    auto polled = polls_.begin();
    for (auto& watch : watches) watch.ready = watch.fd >= 0 && (polled++)->revents != 0;
    if (ready < 0 && errno != EINTR) return errno_error(errno, "wait for events");
    if (ready > 0 && polls_.back().revents != 0)
      stop_ != nullptr ? stop_->wake().clear() : clear_stop_signals_descriptor();
    return {};
  }

  bool was_interrupted() override { return stop_ == nullptr && interrupted_posix(); }
  int stop_signals() override {
    if (stop_ != nullptr) return stop_->requests();
    const int came = stop_signals_posix();
    return give_up_ != nullptr && give_up_->load() ? std::max(came, 2) : came;
  }
  void request_stop() override { stop_ != nullptr ? stop_->request() : request_stop_posix(); }
  std::unique_ptr<BackgroundThreads> background_threads(std::size_t most_threads) override {
    return background_threads_posix(most_threads);
  }

  Result<Child> spawn(const SpawnSpec& spec) override { return spawn_posix(*this, spec); }
  Result<std::optional<ExitStatus>> reap(const Child& child) override { return reap_posix(child); }
  bool has_exited(const Child& child) override { return has_exited_posix(child); }
  Status signal_group(pid_t group, int signal) override {
    BERTH_ASSERT(group > 1);
    if (::kill(-group, signal) != 0) return errno_error(errno, "signal a process group");
    return {};
  }
  Status signal_pid(pid_t pid, int signal) override {
    BERTH_ASSERT(pid > 1);
    if (::kill(pid, signal) != 0) return errno_error(errno, "signal a process");
    return {};
  }
  Status signal_process(const ProcessIdentity& process, int signal) override {
    BERTH_ASSERT(process.pid > 0);  // in a container this process may have the pid 1
    return signal_process_posix(*this, process, signal);
  }
  Status adopt_orphans() override { return adopt_orphans_posix(); }
  std::vector<pid_t> adopted() override { return adopted_posix(*this); }
  ProcessIdentity self() override {
    if (self_.pid != getpid()) {
      const auto text = read_file("/proc/self/stat", kStatSize);
      self_ = {getpid(), text ? start_time_posix(*text).value_or(0) : 0};
    }
    return self_;
  }
  bool alive(const ProcessIdentity& process) override {
    // Whoever cannot be looked at (hidepid, no descriptor left) counts as alive: taking from the
    // dead can wait, taking from the living cannot be mended.
    if (process.pid <= 0 || (::kill(process.pid, 0) != 0 && errno == ESRCH)) return false;
    const auto text = read_file(fmt::format("/proc/{}/stat", process.pid), kStatSize);
    if (!text) return text.error().kind != ErrorKind::not_found || ::kill(process.pid, 0) == 0;
    const auto started = start_time_posix(*text);
    return started && *started == process.started_at;
  }

  bool group_alive(pid_t group) override { return group_alive_posix(*this, group); }
  Status enter_scope(const std::string& name, const std::string& part_of) override {
    return enter_scope_posix(*this, name, part_of);
  }
  uid_t user() override { return ::getuid(); }
  std::string host_name() override {
    std::array<char, HOST_NAME_MAX + 1> name{};
    return gethostname(name.data(), HOST_NAME_MAX) == 0 ? name.data() : "localhost";
  }
  std::string boot_id() override {
    if (boot_id_.empty()) {
      const auto text = read_file("/proc/sys/kernel/random/boot_id", 4096);
      boot_id_ = text ? std::string(trim(*text)) : "unknown";
    }
    return boot_id_;
  }
  std::vector<int> affinity() override {
    std::vector<int> cores;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
    return cores;
  }
  std::optional<std::string> variable(const std::string& name) override {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  }
  std::vector<std::pair<std::string, std::string>> environment() override {
    std::vector<std::pair<std::string, std::string>> result;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const auto equals = text.find('=');
      if (equals != std::string_view::npos)
        result.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return result;
  }

 private:
  Result<Fd> open_with(const std::string& path, int flags, mode_t mode) {
    const int number = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
    if (number < 0) return errno_error(errno, path);
    return Fd(*this, number);
  }

  Result<Fd> lock_with(const std::string& path, int how) {
    // Over NFS only what is open for writing can be locked; a directory never is.
    auto opened = open_or_make_posix(path, O_RDWR, 0600);
    if (opened) return flock_posix(Fd(*this, *opened), how, path);
    // What cannot be written is locked as it is, and so is a directory at the end of any link.
    const auto read_only = [&](int flags) {
      return uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); });
    };
    int number = read_only(O_NOFOLLOW);
    if (number < 0 && errno == ELOOP) number = read_only(O_DIRECTORY);
    if (number < 0) return std::unexpected(std::move(opened).error());
    return flock_posix(Fd(*this, number), how, path);
  }
  static Result<Fd> flock_posix(Fd fd, int how, const std::string& path) {
    if (uninterrupted([&] { return ::flock(fd.number(), how); }) == 0) return fd;
    if (errno == EWOULDBLOCK) return fail(ErrorKind::busy, "{}: locked by another process", path);
    return errno_error(errno, path);
  }

  int stops_descriptor() const {
    if (stop_ != nullptr) return stop_->wake().descriptor();
    return give_up_ == nullptr ? stop_signals_descriptor() : -1;
  }

  static constexpr std::size_t kStatSize = 8192;

  const std::atomic<bool>* give_up_;
  StopSource* stop_;
  std::vector<pollfd> polls_;
  ProcessIdentity self_;
  std::string boot_id_;
};

}  // namespace

Fd::~Fd() {
  if (number_ >= 0) env_->close(number_);
}

std::unique_ptr<Env> posix_env(const std::atomic<bool>* give_up) {
  return std::make_unique<PosixEnv>(give_up);
}

std::unique_ptr<Env> posix_env(StopSource& stop) {
  return std::make_unique<PosixEnv>(nullptr, &stop);
}

void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace berth::os
