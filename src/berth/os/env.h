// An Env is the program's only access to the world: every clock, random number, file, process and
// descriptor goes through one. So a test can inject a fault anywhere, and whole runs can be played
// on FakeEnv's clock.
//
// Ownership: an Env outlives everything that was made from it. Threads: one thread at a time uses
// an Env. Failure: a call that fails returns an Error and has changed nothing, unless its comment
// says otherwise; no call returns EINTR.
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

class BackgroundThreads;
class Env;
class Loop;
struct SpawnSpec;

/// An Fd owns a descriptor and closes it; an empty Fd owns none.
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
  /// Its number, which nobody closes from now on.
  int give() {
    env_ = nullptr;
    return std::exchange(number_, -1);
  }
  /// The same descriptor, closed through another Env: for one that was opened on another thread.
  Fd in(Env& env) && {
    env_ = nullptr;
    return Fd(env, std::exchange(number_, -1));
  }

 private:
  Env* env_ = nullptr;
  int number_ = -1;
};

/// A ReadBuffer has room for the bytes that a pipe holds. It is on the heap, for a stack may be as
/// small as that.
class ReadBuffer {
 public:
  static constexpr std::size_t kSize = 64U << 10;
  operator std::span<char>() { return {bytes_.get(), kSize}; }
  const char* data() const { return bytes_.get(); }
  std::size_t size() const { return kSize; }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kSize);
};

/// A ProcessIdentity names one process for good: pids are used again, but a pid with its start time
/// is unique within one boot.
struct ProcessIdentity {
  pid_t pid = 0;
  std::int64_t started_at = 0;  ///< In clock ticks since boot: field 22 of /proc/PID/stat.
  bool operator==(const ProcessIdentity&) const = default;
};

struct VolumeSpace {
  std::int64_t total = 0;         ///< In bytes.
  std::int64_t available = 0;     ///< Bytes that an unprivileged process may still write.
  std::int64_t inodes_total = 0;  ///< 0: the volume does not count them.
  std::int64_t inodes_available = 0;
};

struct FileStatus {
  enum class Kind : std::uint8_t { file, directory, pipe, socket, device, other };
  Kind kind = Kind::other;
  std::int64_t size = 0;
  std::int64_t links = 1;  ///< A directory has 2 and one for each directory in it, where it counts.
  uid_t owner = 0;
  mode_t mode = 0;
  bool executable = false;  ///< By this process.
  Wall modified{};
  std::uint64_t device = 0, inode = 0;  ///< They identify a file while it lives; inode 0: unknown.
  Wall changed{};  ///< When its content or a name of it changed last; nobody can set this time.
};

/// One entry somewhere below a directory.
struct TreeEntry {
  enum class Kind : std::uint8_t { file, directory, link, other };
  std::string path;  ///< From that directory.
  Kind kind = Kind::other;
  std::int64_t size = 0;    ///< Of a file, in bytes.
  bool executable = false;  ///< A file that its owner may execute.
  mode_t mode = 0777;       ///< The permission bits of a file or a directory.
  std::string target;       ///< Of a symbolic link, as it is written.
};

/// The digest and the size of a whole file.
struct Content {
  Digest digest;
  std::int64_t size = 0;
};

/// The maximum size of one argument or variable of a process on this machine, in bytes, with the
/// NUL behind it: 128 KiB where pages have 4 KiB.
std::size_t most_of_one_argument();
/// The maximum size of all arguments and variables of a process together, with a pointer each.
std::size_t most_of_all_arguments();

struct Child {
  pid_t pid = 0;  ///< Also the id of its process group, which it leads.
  Fd exited;      ///< A pidfd: readable when the process has exited.
  Fd out, err;    ///< Non-blocking read ends; to a process that talks, `out` is written as well.
};

struct ExitStatus {
  int code = 0;               ///< The exit code, where `signal` is 0.
  int signal = 0;             ///< That killed the process; 0: none did.
  Duration cpu{};             ///< User and system time of it and of the children it waited for.
  std::int64_t peak_rss = 0;  ///< In bytes.
};

/// A descriptor that wait() waits for.
struct Watch {
  int fd = -1;
  bool readable = true;  ///< False: wait() waits until it is writable.
  bool ready = false;    ///< wait() sets it.
};

class Env {
 public:
  Env();
  Env(const Env&);  ///< The copy has a loop of its own.
  Env& operator=(const Env&) = delete;
  virtual ~Env();

  /// The event loop of everything that uses this Env; see loop.h.
  Loop& loop();

  // Clocks and chance.
  virtual Mono now() = 0;
  /// A clock like now() that goes on while the machine is suspended; leases are measured by it.
  virtual Mono boot_clock() = 0;
  virtual Wall wall() = 0;
  virtual std::uint64_t random() = 0;

  // Files. Paths are absolute or relative to the process's directory.
  /// The whole text of a file, also below /proc and /sys. Failure: invalid, where it is larger than
  /// `limit` bytes.
  virtual Result<std::string> read_file(const std::string& path, std::size_t limit) = 0;
  /// Replaces the file by a rename of a temporary one, which has a random name or none, without a
  /// sync.
  virtual Status replace_file(const std::string& path, std::string_view text, mode_t mode) = 0;
  /// Writes into an existing file (one of a control group, say) in one write call.
  virtual Status write_into(const std::string& path, std::string_view text) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;  // sorted
  virtual Result<FileStatus> status(const std::string& path) = 0;
  /// Returns true if every further change of the file's content gives it another time, as long as
  /// its written pages were synced: not on volumes in memory or behind a network, and not while a
  /// process has it open or mapped for writing. Whether it has is known to the file's owner only.
  virtual bool shows_changes(const std::string& path) { return !path.empty(); }
  virtual Result<std::string> real_path(const std::string& path) = 0;
  /// Makes the directory and those above it; existing ones stay as they are. The last one has
  /// exactly `mode`, the others what mkdir -p would give them.
  virtual Status make_directory(const std::string& path, mode_t mode) = 0;
  /// Makes the directory and those above it as mkdir -p does: the umask, or the default access
  /// control list of the directory above, limits `mode`; its setgid bit is inherited.
  virtual Status make_user_directory(const std::string& path, mode_t mode) = 0;
  /// Replaces a file that the user named, as cp would: symbolic links at `path` that belong to this
  /// user or to root are followed, an existing file keeps its access (copy_access()), the umask
  /// limits that of a new one. What is not a file (a pipe) is written into. denied: a symbolic link
  /// of another user.
  virtual Status replace_user_file(const std::string& path, std::string_view text) = 0;
  /// Gives `to` the group, the mode and the access control lists of `from`, both files or both
  /// directories, but none of the mode bits in `denied`. A file keeps its own executable bit.
  virtual Status copy_access(const std::string& from, const std::string& to, mode_t denied) = 0;
  /// The target of a symbolic link as it is written. Errors: invalid, where it is not a link.
  virtual Result<std::string> link_target(const std::string& path) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  /// Removes an empty directory.
  virtual Status remove_directory(const std::string& path) = 0;
  /// Removes a file, a symbolic link, or a directory with all below it, however deep and whatever
  /// the modes of its directories; it is no error if nothing is there. A call that fails may leave
  /// any part.
  virtual Status remove_tree(const std::string& path) = 0;
  /// Whether this process could write there now, by permissions and by how the volume is mounted.
  virtual bool may_write(const std::string& path) = 0;
  /// The extended attribute of that name. Failure: not_found, where there is none.
  virtual Result<std::string> attribute(const std::string& path, const std::string& name) = 0;
  virtual Result<VolumeSpace> volume(const std::string& path) = 0;
  /// Opens a file for appending; a missing one is made with `mode`. denied: a symbolic link of
  /// another user, as for lock().
  virtual Result<Fd> open_append(const std::string& path, mode_t mode) = 0;
  virtual Result<Fd> open_read(const std::string& path) = 0;
  /// Opens an existing file for writing and reading.
  virtual Result<Fd> open_write(const std::string& path) = 0;
  virtual Result<std::string> read_at(const Fd& fd, std::int64_t offset, std::size_t most) = 0;
  virtual Status truncate(const Fd& fd, std::int64_t size) = 0;
  /// The entries of the directory itself, sorted by name; symbolic links are not followed.
  virtual Result<std::vector<TreeEntry>> entries(const std::string& directory) = 0;
  /// All entries below the directory, each directory before what it holds; symbolic links are not
  /// followed. Failure: full, where there are more than `most` entries.
  virtual Result<std::vector<TreeEntry>> tree(const std::string& directory, std::size_t most) = 0;
  /// Makes a new file with the content of another. Where the volume can, the two share their
  /// blocks, and the result is nullopt; else it says what was read and written. Holes stay holes.
  /// The umask, or the default access control list of the directory, limits `mode`.
  virtual Result<std::optional<Content>> copy_file(const std::string& from, const std::string& to,
                                                   mode_t mode) = 0;
  virtual Status hard_link(const std::string& from, const std::string& to) = 0;
  virtual Status symbolic_link(const std::string& target, const std::string& path) = 0;
  /// Moves `from` to `to`. A file replaces a file there, a directory replaces an empty directory.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Puts each of the two where the other stood, at one instant.
  virtual Status exchange(const std::string& a, const std::string& b) = 0;
  /// Sets the mode of a file (the umask does not count) and its time.
  virtual Status stamp(const std::string& path, mode_t mode, Wall modified) = 0;
  /// Makes a file or directory durable.
  virtual Status sync(const std::string& path) = 0;
  /// Makes all of them durable; each is begun before the first is waited for.
  virtual Status sync_all(std::span<const std::string> paths) = 0;
  /// Makes the whole volume durable that `path` is on, with whatever others write there.
  virtual Status sync_volume(const std::string& path) = 0;
  /// The umask of this process, which Berth never changes and which its tasks get.
  virtual mode_t mask() = 0;
  /// An exclusive lock on a directory, or on a file, which is made where it is missing. The Fd or
  /// the end of the process releases it. Failure: busy, where another holds it and `wait` is false.
  virtual Result<Fd> lock(const std::string& path, bool wait) = 0;
  /// A lock that all who call this function may hold at once; the call waits for it.
  virtual Result<Fd> lock_shared(const std::string& path) = 0;
  /// A lock as lock() gives it on what exists: the call makes nothing, and never waits.
  virtual Result<Fd> lock_existing(const std::string& path) = 0;

  // Descriptors.
  /// Writes all bytes. A call that fails has written an unknown part of them.
  virtual Status write_all(const Fd& fd, std::string_view bytes) = 0;
  /// Reads what there is, at most buffer.size() bytes, and returns how many; 0 at the end, nullopt
  /// where nothing is there yet.
  virtual Result<std::optional<std::size_t>> read_some(const Fd& fd, std::span<char> buffer) = 0;
  /// Writes some of the bytes into a non-blocking socket or pipe, and returns how many, maybe 0;
  /// nullopt where there is no room now.
  virtual Result<std::optional<std::size_t>> write_some(const Fd& fd, std::string_view bytes) = 0;
  /// Makes a Unix socket at a path of any length, in place of one that an earlier process left;
  /// only its owner may connect. The Fd is readable when somebody waits for accept_local().
  virtual Result<Fd> listen_local(const std::string& path) = 0;
  /// The next connection; nullopt where nobody waits (any more).
  virtual Result<std::optional<Fd>> accept_local(const Fd& listener) = 0;
  /// Failure: not_found, where nobody listens there; full, where too many wait already.
  virtual Result<Fd> connect_local(const std::string& path) = 0;
  virtual void close(int fd) noexcept = 0;
  /// Sleeps until a watch is ready, `until` has come, or a stop signal (SIGINT, SIGTERM) has come.
  virtual Status wait(std::span<Watch> watches, std::optional<Mono> until) = 0;
  /// How many stop signals have come since the start.
  virtual int stop_signals() = 0;
  /// Does what one more stop signal would do.
  virtual void request_stop() = 0;
  /// Returns true if one of them was SIGINT, which Ctrl-C sends.
  virtual bool was_interrupted() { return false; }
  /// Threads for work that takes long, `most_threads` of them at most; see background_threads.h.
  virtual std::unique_ptr<BackgroundThreads> background_threads(std::size_t most_threads = 1) = 0;

  // Processes.
  /// Starts a process; see spawn.h.
  virtual Result<Child> spawn(const SpawnSpec& spec) = 0;
  /// Reaps the child and returns how it ended; nullopt while it lives.
  virtual Result<std::optional<ExitStatus>> reap(const Child& child) = 0;
  /// Makes this process the parent of the orphans among its descendants, which adopted() lists.
  /// Failure: impossible, where the system cannot.
  virtual Status adopt_orphans() {
    return fail(ErrorKind::impossible, "this system adopts no orphans");
  }
  /// Returns the living children of this process that spawn() did not start, which are orphans of
  /// what it started, and reaps those that have ended. A pid stays theirs until the next call.
  virtual std::vector<pid_t> adopted() { return {}; }
  /// Returns true if the child has exited, and does not reap it.
  virtual bool has_exited(const Child& child) = 0;
  /// Signals a whole process group. Failure: not_found, where there is none.
  virtual Status signal_group(pid_t group, int signal) = 0;
  /// Signals a process that the caller knows to be there, for else the pid may be another's by now.
  virtual Status signal_pid(pid_t pid, int signal) = 0;
  /// Signals that very process. Failure: not_found, where it has gone.
  virtual Status signal_process(const ProcessIdentity& process, int signal) = 0;
  virtual ProcessIdentity self() = 0;
  virtual bool alive(const ProcessIdentity& process) = 0;
  /// Whether a process of the group runs. A zombie does not count, for in a container there may be
  /// nobody who reaps it.
  virtual bool group_alive(pid_t group) = 0;
  /// Has systemd (the user's own, for root the system's) move this process into a new scope `name`,
  /// whose control group this process may divide as it likes. The scope ends with the unit
  /// `part_of`, unless that is "". The call may take some seconds. Failure: not_found, where there
  /// is no systemd, or none for this user; denied, where it refuses; busy, where it does not
  /// answer.
  virtual Status enter_scope(const std::string& name, const std::string& part_of) = 0;
  virtual uid_t user() = 0;
  virtual std::string host_name() = 0;
  virtual std::string boot_id() = 0;
  /// The cores that this process may run on, ascending.
  virtual std::vector<int> affinity() = 0;
  virtual std::optional<std::string> variable(const std::string& name) = 0;
  virtual std::vector<std::pair<std::string, std::string>> environment() = 0;

 private:
  std::unique_ptr<Loop> loop_;
};

/// The Env of the real world. Once `*give_up` is true, it breaks off what takes long, as it does
/// when a second stop signal has come.
std::unique_ptr<Env> posix_env(const std::atomic<bool>* give_up = nullptr);

/// Lets a file that grows beyond the limit of this process fail with an error instead of a signal.
/// The tasks that it starts get the signals that the process itself was started with.
void ignore_file_size_signal();

/// Makes SIGINT and SIGTERM only count from now on (Env::stop_signals) and wake wait(), and has
/// SIGHUP and SIGPIPE ignored. A process that does not call it ends by these signals.
void install_stop_signals();

}  // namespace berth::os
