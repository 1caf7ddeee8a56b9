// A FakeEnv is a process in a world in memory, for tests and simulation: the world's clock moves
// only when its first process waits, its files are strings, the programs that it starts are
// scripts, and any call can be made to fail. Further FakeEnvs are further processes of the same
// world, on the same machine or on others with files of their own; those are event-driven: their
// loops are turned while the first one waits, in an order that the seed decides. One with a program
// of its own, which may wait, is a FakeProcess (fake_process.h).
//
// Ownership: the first FakeEnv of a world outlives all others, and each outlives everything made
// from it. Threads: one. Failure: as Env says, plus whatever `fault` returns for a call.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "berth/base/rng.h"
#include "berth/os/spawn.h"

namespace berth::os {

/// What a fake process does.
struct FakeProgram {
  Duration duration = std::chrono::milliseconds(1);
  std::string out{}, err{};  // printed when it ends
  int exit_code = 0;
  int signal = 0;  // that kills it at its end
  bool ignores_term = false;
  std::function<void()> at_end{};   // called when it ends by itself
  std::function<void()> at_kill{};  // called when a signal ends it
};

class FakeEnv : public Env {
 public:
  explicit FakeEnv(std::uint64_t seed = 1);
  enum class On : std::uint8_t { the_same_machine, another_machine };
  /// A further process of the world of `first`. It must not wait, but for no time at all.
  FakeEnv(FakeEnv& first, On machine, ProcessIdentity identity);
  /// The same, on the machine of `beside`.
  FakeEnv(FakeEnv& first, FakeEnv& beside, ProcessIdentity identity);
  ~FakeEnv() override;

  // The process's knobs.
  std::function<FakeProgram(const SpawnSpec&)> program = [](const SpawnSpec&) {
    return FakeProgram{};
  };
  /// Given the other end of a process that talks; without it, that end is closed.
  std::function<void(const SpawnSpec&, Fd)> talk;
  /// Asked before every fallible call, by its name ("spawn", "write_all", …).
  std::function<std::optional<Error>(std::string_view call)> fault;
  std::vector<int> cores{0, 1};
  std::map<std::string, std::string> variables;
  std::set<pid_t> dead;  // pids of other processes that have died
  ProcessIdentity identity{1000, 5000};
  std::set<std::string> read_only;                // paths that may_write() denies
  std::map<std::string, std::string> attributes;  // "PATH NAME" and its value
  /// Systemd: what enter_scope() does. Without it there is none.
  std::function<Status(const std::string& name, const std::string& part_of)> scope;
  uid_t uid = 0;
  int stops = 0;             // what stop_signals() says
  bool interrupted = false;  // what was_interrupted() says
  std::optional<Mono> stop_at;
  bool frozen = false;  // a further process: neither it nor what it started goes on
  std::string host = "fake";
  std::function<void()> on_event;  // of the first process: after each event of the world
  Duration wall_skew{};
  Duration suspended{};               // how long the machine was
  Duration background_takes{};        // for each piece of work
  std::size_t socket_room = 1 << 16;  // bytes that one end of a socket takes before the other reads

  /// Whoever uses this world is stopped for so long, and the world goes on.
  void freeze(Duration time) { world_.now += time; }
  /// Every file of its machine may lose what was written since it was synced, and it boots anew;
  /// its processes must have been killed.
  void lose_power();
  void put(const std::string& path, std::string text);
  const std::string* find(const std::string& path) const;
  std::size_t processes_alive() const;
  std::size_t most_alive() const { return world_.most_alive; }
  std::size_t spawned() const { return world_.spawned; }
  /// The descriptor is this process's from now on.
  Fd adopt(Fd fd) {
    world_.open.at(fd.number()).owner = this;
    return std::move(fd).in(*this);
  }
  bool is_open(int fd) const { return world_.open.contains(fd); }
  std::size_t descriptors() const { return world_.open.size(); }

  Mono now() override { return world_.now; }
  Mono boot_clock() override { return world_.now + suspended; }
  Wall wall() override;
  std::uint64_t random() override { return world_.rng.next(); }

  Result<std::string> read_file(const std::string& path, std::size_t limit) override;
  Status replace_file(const std::string& path, std::string_view text, mode_t mode) override;
  Status write_into(const std::string& path, std::string_view text) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<FileStatus> status(const std::string& path) override;
  Result<std::string> real_path(const std::string& path) override { return path; }
  Status make_directory(const std::string& path, mode_t mode) override;
  Status make_user_directory(const std::string& path, mode_t mode) override {
    return make_directory(path, mode);
  }
  Status replace_user_file(const std::string& path, std::string_view text) override {
    return replace_file(path, text, 0666);
  }
  Status copy_access(const std::string& from, const std::string& to, mode_t denied) override;
  Result<std::string> link_target(const std::string& path) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  bool may_write(const std::string& path) override;
  Result<std::string> attribute(const std::string& path, const std::string& name) override;
  Result<VolumeSpace> volume(const std::string& path) override;
  Result<Fd> open_append(const std::string& path, mode_t mode) override;
  Result<Fd> open_read(const std::string& path) override;
  Result<Fd> open_write(const std::string& path) override;
  Result<std::string> read_at(const Fd& fd, std::int64_t offset, std::size_t most) override;
  Status truncate(const Fd& fd, std::int64_t size) override;
  Status remove_tree(const std::string& path) override;
  Result<std::vector<TreeEntry>> entries(const std::string& directory) override;
  Result<std::vector<TreeEntry>> tree(const std::string& directory, std::size_t most) override;
  Result<std::optional<Content>> copy_file(const std::string& from, const std::string& to,
                                           mode_t mode) override;
  Status hard_link(const std::string& from, const std::string& to) override;
  Status symbolic_link(const std::string& target, const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status exchange(const std::string& a, const std::string& b) override;
  Status stamp(const std::string& path, mode_t mode, Wall modified) override;
  Status sync(const std::string& path) override;
  Status sync_all(std::span<const std::string> paths) override;
  Status sync_volume(const std::string& path) override;
  mode_t mask() override { return 0022; }
  Result<Fd> lock(const std::string& path, bool wait) override;
  Result<Fd> lock_shared(const std::string& path) override;
  Result<Fd> lock_existing(const std::string& path) override;
  Status write_all(const Fd& fd, std::string_view bytes) override;
  Result<std::optional<std::size_t>> read_some(const Fd& fd, std::span<char> buffer) override;
  Result<std::optional<std::size_t>> write_some(const Fd& fd, std::string_view bytes) override;
  Result<Fd> listen_local(const std::string& path) override;
  Result<std::optional<Fd>> accept_local(const Fd& listener) override;
  Result<Fd> connect_local(const std::string& path) override;
  void close(int fd) noexcept override;
  Status wait(std::span<Watch> watches, std::optional<Mono> until) override;
  int stop_signals() override { return stops; }
  void request_stop() override { ++stops; }
  bool was_interrupted() override { return interrupted; }
  std::unique_ptr<BackgroundThreads> background_threads(std::size_t most_threads) override;
  Result<Child> spawn(const SpawnSpec& spec) override;
  Result<std::optional<ExitStatus>> reap(const Child& child) override;
  bool has_exited(const Child& child) override { return world_.processes.at(child.pid).over; }
  Status signal_group(pid_t group, int signal) override;
  Status signal_pid(pid_t pid, int signal) override;
  Status signal_process(const ProcessIdentity& process, int signal) override;
  ProcessIdentity self() override { return identity; }
  bool alive(const ProcessIdentity& process) override;
  bool group_alive(pid_t group) override;
  Status enter_scope(const std::string& name, const std::string& part_of) override;
  uid_t user() override { return uid; }
  std::string host_name() override { return host; }
  std::string boot_id() override;
  std::vector<int> affinity() override { return cores; }
  std::optional<std::string> variable(const std::string& name) override;
  std::vector<std::pair<std::string, std::string>> environment() override;

 protected:
  friend class FakeBackgroundThreads;
  struct Machine;
  struct Process {
    FakeProgram program;
    FakeEnv* parent = nullptr;
    Mono ends;
    std::string log{};  // "": its output goes to pipes
    bool is_detached = false;
    bool over = false;
    std::size_t out_read = 0, err_read = 0;
  };
  struct Open {
    enum class Kind : std::uint8_t { file, lock, exited, out, err, listener, socket, background };
    Kind kind = Kind::file;
    FakeEnv* owner = nullptr;
    Machine* machine = nullptr;  // of a listener
    std::string path = {};
    pid_t pid = 0;                // of a script
    int peer = -1;                // of a socket, while that is open
    std::string unread = {};      // of a socket
    std::vector<int> waits = {};  // of a listener: ends that nobody has accepted
    std::vector<Mono> due = {};   // of work aside
  };
  /// How a file is stamped; what nobody stamped may be executed, and changed at the beginning.
  struct Stamp {
    mode_t mode = 0755;
    Wall modified{};
  };
  virtual Status ask(std::string_view call);
  /// Of a further process: whether it has something to do now; does it; when it may have, at last.
  virtual bool has_turn();
  virtual void take_turn();
  virtual std::optional<Mono> next_turn();
  /// What a descriptor of this process refers to; 0 to 2 are those that a FakeProcess was given.
  virtual int opened(int fd) const { return fd; }
  Open& at(int fd) { return world_.open.at(opened(fd)); }
  const Open& at(int fd) const { return world_.open.at(opened(fd)); }
  Status free_place(const std::string& path);
  void move(const std::string& from, const std::string& to);
  Fd add(Open open);
  void end(Process& process, int signal);
  bool ready(const Open& open, bool readable) const;
  /// Both ends of a connection: ours, and that of another process.
  std::pair<int, int> join(FakeEnv& other);
  static std::optional<std::size_t> read_socket(Open& open, std::span<char> buffer);

  struct Machine {
    std::map<std::string, std::string> files;
    std::map<std::string, Stamp> stamps;       // of files
    std::map<std::string, std::string> links;  // symbolic ones
    std::set<std::string> directories;
    std::map<std::string, int> locked;  // how many share each lock; below 0: one has it alone
    std::map<std::string, std::string> synced;  // the content of files when they were synced last
    int boots = 0;
  };
  struct World {
    explicit World(std::uint64_t seed) : rng(seed) {}
    Rng rng;
    Mono now{};
    std::map<int, Open> open;
    std::map<pid_t, Process> processes;  // scripts
    std::vector<FakeEnv*> further;       // processes that are turned while the first waits
    std::set<pid_t> ended;               // of those
    int next_fd = 100;
    pid_t next_pid = 2000;
    std::size_t most_alive = 0, spawned = 0;
  };
  bool mark_ready(std::span<Watch> watches) const;
  void end_scripts_of(const FakeEnv& parent);
  bool turn_further();
  void pass_time(std::optional<Mono> until);

  std::shared_ptr<World> owned_world_;
  std::shared_ptr<Machine> owned_machine_;  // or shared with the others on it
  World& world_;
  Machine& machine_;
};

}  // namespace berth::os
