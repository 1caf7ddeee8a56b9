// The one door to the world: every clock, random number, file, process and descriptor goes through
// an Env, so that a fault can be injected anywhere and whole runs can be played on FakeEnv's clock.
//
// Ownership: an Env outlives everything that was made from it. Threads: an Env is used by one
// thread at a time. Failure: calls return Error and change nothing they do not say; EINTR never
// shows.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/digest.h"
#include "berth/base/result.h"
#include "berth/base/time.h"

namespace berth::os {

class Aside;
class Env;
class Loop;

/// Closes what it holds when it goes; an empty one holds nothing.
class Fd {
 public:
  Fd() = default;
  Fd(Env& env, int number) : env_(&env), number_(number) {}
  Fd(Fd&& other) noexcept
      : env_(std::exchange(other.env_, nullptr)), number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(env_, other.env_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~Fd();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset() { Fd gone = std::move(*this); }
  /// The same, to be closed through another Env: for what was opened on another thread.
  Fd in(Env& env) && {
    env_ = nullptr;
    return Fd(env, std::exchange(number_, -1));
  }

 private:
  Env* env_ = nullptr;
  int number_ = -1;
};

/// Where bytes are read to, as many as a pipe holds; not on the stack, which may be as small.
class ReadBuffer {
 public:
  static constexpr std::size_t kSize = 64U << 10;
  operator std::span<char>() { return {bytes_.get(), kSize}; }
  const char* data() const { return bytes_.get(); }
  std::size_t size() const { return kSize; }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kSize);
};

/// Who a process is for good: pids come back, a pid with its start time does not within one boot.
struct ProcessIdentity {
  pid_t pid = 0;
  std::int64_t started_at = 0;  // clock ticks since boot, field 22 of /proc/PID/stat
  bool operator==(const ProcessIdentity&) const = default;
};

struct VolumeSpace {
  std::int64_t total = 0;      // bytes
  std::int64_t available = 0;  // bytes that an unprivileged process may still write
  std::int64_t inodes_total = 0, inodes_available = 0;  // total 0: the volume does not count them
};

struct FileStatus {
  enum class Kind : std::uint8_t { file, directory, pipe, socket, device, other };
  Kind kind = Kind::other;
  std::int64_t size = 0;
  std::int64_t links =
      1;  // of a directory: 2 and one for each directory in it, where it counts them
  uid_t owner = 0;
  mode_t mode = 0;
  bool executable = false;  // by this process
  Wall modified{};
  // What a file is told by, as long as it lives, and when its content or its names changed last,
  // which nobody can set; inode 0: not known.
  std::uint64_t device = 0, inode = 0;
  Wall changed{};
};

/// What stands somewhere below a directory.
struct TreeEntry {
  enum class Kind : std::uint8_t { file, directory, link, other };
  std::string path;  // from that directory
  Kind kind = Kind::other;
  std::int64_t size = 0;    // of a file
  bool executable = false;  // a file, by its owner
  std::string target;       // of a symbolic link, as it is written
};

/// Of a whole file.
struct Content {
  Digest digest;
  std::int64_t size = 0;
};

/// One process to start. Its stdin is /dev/null; stdout and stderr are pipes that come back. One
/// that `talks` has one end of a socket for both stdin and stdout, of which Child::out is the
/// other.
struct SpawnSpec {
  std::vector<std::string> argv;  // argv[0] is looked up in env's PATH
  std::vector<std::pair<std::string, std::string>> environment;  // the whole of it
  std::string directory;                                         // absolute
  std::vector<int> cores;                                        // affinity; empty: inherited
  std::span<const Fd> join_files;  // cgroup files into which the child writes "0"
  const Fd* group = nullptr;       // directory of a v2 control group in which the child begins
  bool talks = false;
};

struct Child {
  pid_t pid = 0;  // also its process group: it leads one of its own
  Fd exited;      // readable once it has exited (a pidfd)
  Fd out, err;    // non-blocking read ends; of one that talks `out` is written to as well
};

struct ExitStatus {
  int code = 0;               // exit code, when signal is 0
  int signal = 0;             // that killed it
  Duration cpu{};             // user + system, its own and of children it waited for
  std::int64_t peak_rss = 0;  // bytes
};

struct Watch {
  int fd = -1;
  bool readable = true;  // else: watched for being writable
  bool ready = false;    // set by wait()
};

class Env {
 public:
  Env();
  Env(const Env&);  // with a loop of its own
  Env& operator=(const Env&) = delete;
  virtual ~Env();

  /// The event loop of what uses this Env: see loop.h.
  Loop& loop();

  // Clocks and chance.
  virtual Mono now() = 0;
  /// Like now(), but goes on while the machine is suspended: what a lease is measured by.
  virtual Mono boot_clock() = 0;
  virtual Wall wall() = 0;
  virtual std::uint64_t random() = 0;

  // Files. Paths are absolute or relative to the process's directory.
  /// full text; invalid when larger than `limit` bytes. Works on /proc and /sys.
  virtual Result<std::string> read_file(const std::string& path, std::size_t limit) = 0;
  /// Replaces the file through a temporary one beside it and a rename; not synced.
  virtual Status replace_file(const std::string& path, std::string_view text, mode_t mode) = 0;
  /// Writes into an existing file (a cgroup's, say) in one write call.
  virtual Status write_into(const std::string& path, std::string_view text) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;  // sorted
  virtual Result<FileStatus> status(const std::string& path) = 0;
  virtual Result<std::string> real_path(const std::string& path) = 0;
  /// With its parents; existing directories are left as they are. `mode` is for the last one and
  /// is not subject to the umask.
  virtual Status make_directory(const std::string& path, mode_t mode) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  virtual Status remove_directory(const std::string& path) = 0;  // an empty one
  /// A file, a symbolic link, or a directory with all below, however deep and whatever the modes of
  /// its directories; nothing there is no error. One that fails leaves any part of it.
  virtual Status remove_tree(const std::string& path) = 0;
  /// Whether this process could write there now, by permissions and by how it is mounted.
  virtual bool may_write(const std::string& path) = 0;
  /// An extended attribute of a file or directory; not_found where it has none of that name.
  virtual Result<std::string> attribute(const std::string& path, const std::string& name) = 0;
  virtual Result<VolumeSpace> volume(const std::string& path) = 0;
  /// For appending, created with `mode`; for reading.
  virtual Result<Fd> open_append(const std::string& path, mode_t mode) = 0;
  virtual Result<Fd> open_read(const std::string& path) = 0;
  virtual Result<Fd> open_write(const std::string& path) = 0;  // an existing file; also readable
  virtual Result<std::string> read_at(const Fd& fd, std::int64_t offset, std::size_t most) = 0;
  virtual Status truncate(const Fd& fd, std::int64_t size) = 0;
  /// What stands in a directory itself, sorted by name; symbolic links are not followed.
  virtual Result<std::vector<TreeEntry>> entries(const std::string& directory) = 0;
  /// All below a directory, each directory before what it holds; symbolic links are not followed.
  /// full: more than `most` entries.
  virtual Result<std::vector<TreeEntry>> tree(const std::string& directory, std::size_t most) = 0;
  /// A new file with the content of another. nullopt: it shares the blocks of that, as the volume
  /// can do; else what was read and written.
  virtual Result<std::optional<Content>> copy_file(const std::string& from, const std::string& to,
                                                   mode_t mode) = 0;
  virtual Status hard_link(const std::string& from, const std::string& to) = 0;
  virtual Status symbolic_link(const std::string& target, const std::string& path) = 0;
  /// Replaces a file by a file, or an empty directory by a directory.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Each stands where the other stood, at one instant.
  virtual Status exchange(const std::string& a, const std::string& b) = 0;
  /// Mode (as it is, no umask) and time of a file.
  virtual Status stamp(const std::string& path, mode_t mode, Wall modified) = 0;
  /// A file or directory, durably; many, each begun before the first is waited for; the whole
  /// volume that it is on, with whatever others write there.
  virtual Status sync(const std::string& path) = 0;
  virtual Status sync_all(std::span<const std::string> paths) = 0;
  virtual Status sync_volume(const std::string& path) = 0;
  /// Modes that the person takes from new files (make_private() changes only our own).
  virtual mode_t mask() = 0;
  /// An exclusive lock on a file (created) or directory, released with the Fd and with the process.
  /// busy when another holds it and `wait` is false.
  virtual Result<Fd> lock(const std::string& path, bool wait) = 0;
  /// The same, shared with others of its kind; waits.
  virtual Result<Fd> lock_shared(const std::string& path) = 0;
  /// Like lock() of what is there: makes nothing, and never waits.
  virtual Result<Fd> lock_there(const std::string& path) = 0;

  // Descriptors.
  /// All of it, or an error after which an unknown part is written.
  virtual Status write_all(const Fd& fd, std::string_view bytes) = 0;
  /// What there is, at most buffer.size(); 0 at the end; nullopt when nothing is there yet.
  virtual Result<std::optional<std::size_t>> read_some(const Fd& fd, std::span<char> buffer) = 0;
  /// Some of it, maybe 0; nullopt when there is no room now. Of a socket or a pipe, non-blocking.
  virtual Result<std::optional<std::size_t>> write_some(const Fd& fd, std::string_view bytes) = 0;
  /// A Unix socket at a path of any length that only its owner may connect to, in place of one that
  /// an earlier process left. Readable when somebody waits for accept_local().
  virtual Result<Fd> listen_local(const std::string& path) = 0;
  /// nullopt when nobody waits (any more).
  virtual Result<std::optional<Fd>> accept_local(const Fd& listener) = 0;
  /// not_found: nobody listens there; full: too many wait already.
  virtual Result<Fd> connect_local(const std::string& path) = 0;
  virtual void close(int fd) noexcept = 0;
  /// Sleeps until a watch is ready, `until` has come, or a stop signal arrived (SIGINT, SIGTERM).
  virtual Status wait(std::span<Watch> watches, std::optional<Mono> until) = 0;
  /// How many stop signals came since the start.
  virtual int stop_signals() = 0;
  /// For what takes long, on that many other threads at most: see aside.h.
  virtual std::unique_ptr<Aside> aside(std::size_t most_threads = 1) = 0;

  // Processes.
  virtual Result<Child> spawn(const SpawnSpec& spec) = 0;
  /// nullopt while it lives. Once it is returned, the child is reaped.
  virtual Result<std::optional<ExitStatus>> reap(const Child& child) = 0;
  /// To a whole process group, or to one process; not_found when there is none.
  virtual Status signal_group(pid_t group, int signal) = 0;
  virtual Status signal_pid(pid_t pid, int signal) = 0;  // only of one known to be there: see below
  virtual Status signal_process(const ProcessIdentity& process, int signal) = 0;
  virtual ProcessIdentity self() = 0;
  virtual bool alive(const ProcessIdentity& process) = 0;
  /// Whether a process of the group runs. Zombies do not: in a container there may be nobody to ask
  /// for them.
  virtual bool group_alive(pid_t group) = 0;
  /// Has systemd (the user's own, for root the system's) move this process into a new scope
  /// `name` whose control group this process may divide as it likes. It ends with the unit
  /// `part_of`, unless that is "". not_found: no systemd, or none for this user; denied: it
  /// refuses; busy: it does not answer. May take some seconds.
  virtual Status enter_scope(const std::string& name, const std::string& part_of) = 0;
  virtual uid_t user() = 0;
  virtual std::string host_name() = 0;
  virtual std::string boot_id() = 0;
  virtual std::vector<int> affinity() = 0;  // cores this process may run on, ascending
  virtual std::optional<std::string> variable(const std::string& name) = 0;
  virtual std::vector<std::pair<std::string, std::string>> environment() = 0;

 private:
  std::unique_ptr<Loop> loop_;
};

/// The real one. Installs handlers for SIGINT and SIGTERM at the first call of
/// install_stop_signals. Once `*give_up`, it breaks off what takes long as if it were asked to stop
/// at once.
std::unique_ptr<Env> posix_env(const std::atomic<bool>* give_up = nullptr);

/// Everything that this process makes from now on is the user's alone, and a file limit is an error
/// instead of a signal; the tasks it starts get the umask and signals that it was started with.
void make_private();

/// From now on SIGINT and SIGTERM only count (Env::stop_signals) and wake wait(); SIGHUP and
/// SIGPIPE are ignored. Without it they end the process.
void install_stop_signals();

}  // namespace berth::os
