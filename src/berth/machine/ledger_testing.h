// A machine in memory for the ledger's tests: files with owners, a clock, processes that live or
// not. Each FakeProcess is the Env of one process on it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/os/env.h"

namespace berth::machine {

struct FakeMachine {
  struct File {
    std::string text;
    uid_t owner = 0;
    mode_t mode = 0;
  };
  std::map<std::string, File> files;  // by path
  std::set<std::string> directories;
  std::set<pid_t> dead;
  Wall wall = wall_from_ms(1'000'000);
  std::string boot = "boot-1";
  std::uint64_t chance = 1;
  std::optional<ErrorKind> writing_fails;
  bool locked = false;
  int asked_alive = 0, written = 0;
};

class FakeProcess final : public os::Env {
 public:
  FakeProcess(FakeMachine& machine, pid_t pid, uid_t user = 1000)
      : machine_(machine), self_{pid, pid * 10}, user_(user) {}

  Mono now() override { return Mono(machine_.wall.time_since_epoch()); }
  Wall wall() override { return machine_.wall; }
  std::uint64_t random() override { return machine_.chance += 2; }

  Result<std::string> read_file(const std::string& path, std::size_t limit) override {
    const auto found = machine_.files.find(path);
    if (found == machine_.files.end()) return fail(ErrorKind::not_found, "{}", path);
    if (found->second.text.size() > limit) return fail(ErrorKind::invalid, "{}: too large", path);
    return found->second.text;
  }
  Status replace_file(const std::string& path, std::string_view text, mode_t mode) override {
    if (machine_.writing_fails) return fail(*machine_.writing_fails, "{}: cannot write", path);
    BERTH_ASSERT(machine_.locked);
    machine_.files[path] = {std::string(text), user_, mode};
    ++machine_.written;
    return {};
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    std::vector<std::string> names;
    for (const auto& [path, file] : machine_.files)
      if (path.starts_with(directory + "/")) names.push_back(path.substr(directory.size() + 1));
    return names;
  }
  Result<os::FileStatus> status(const std::string& path) override {
    const auto found = machine_.files.find(path);
    if (found == machine_.files.end()) return fail(ErrorKind::not_found, "{}", path);
    os::FileStatus status;
    status.kind = os::FileStatus::Kind::file;
    status.owner = found->second.owner;
    return status;
  }
  Status make_directory(const std::string& path, mode_t) override {
    if (machine_.writing_fails) return fail(*machine_.writing_fails, "{}: cannot make", path);
    machine_.directories.insert(path);
    return {};
  }
  Status remove_file(const std::string& path) override {
    machine_.files.erase(path);
    return {};
  }
  Result<os::Fd> lock(const std::string& path, bool) override {
    if (!machine_.directories.contains(path.substr(0, path.rfind('/'))))
      return fail(ErrorKind::not_found, "{}", path);
    BERTH_ASSERT(!std::exchange(machine_.locked, true));
    return os::Fd(*this, 3);
  }
  void close(int) noexcept override { machine_.locked = false; }

  os::ProcessIdentity self() override { return self_; }
  bool alive(const os::ProcessIdentity& process) override {
    ++machine_.asked_alive;
    return !machine_.dead.contains(process.pid);
  }
  uid_t user() override { return user_; }
  std::string boot_id() override { return machine_.boot; }
  std::optional<std::string> variable(const std::string& name) override {
    return name == "BERTH_LEDGER" ? named : std::nullopt;
  }

  std::optional<std::string> named;  // $BERTH_LEDGER

  // What the ledger never calls.
  Status write_into(const std::string&, std::string_view) override { return unused(); }
  Result<std::string> real_path(const std::string&) override { return unused(); }
  Status remove_directory(const std::string&) override { return unused(); }
  Result<os::VolumeSpace> volume(const std::string&) override { return unused(); }
  Result<os::Fd> open_append(const std::string&, mode_t) override { return unused(); }
  Result<os::Fd> open_read(const std::string&) override { return unused(); }
  Result<os::Fd> open_write(const std::string&) override { return unused(); }
  Result<std::string> read_at(const os::Fd&, std::int64_t, std::size_t) override {
    return unused();
  }
  Status truncate(const os::Fd&, std::int64_t) override { return unused(); }
  Status write_all(const os::Fd&, std::string_view) override { return unused(); }
  Result<std::optional<std::size_t>> read_some(const os::Fd&, std::span<char>) override {
    return unused();
  }
  Status wait(std::span<os::Watch>, std::optional<Mono>) override { return unused(); }
  int stop_signals() override { return 0; }
  Result<os::Child> spawn(const os::SpawnSpec&) override { return unused(); }
  Result<std::optional<os::ExitStatus>> reap(const os::Child&) override { return unused(); }
  Status signal_group(pid_t, int) override { return unused(); }
  Status signal_pid(pid_t, int) override { return unused(); }
  Status signal_process(const os::ProcessIdentity&, int) override { return unused(); }
  std::string host_name() override { return "fake"; }
  std::vector<int> affinity() override { return {}; }
  std::vector<std::pair<std::string, std::string>> environment() override { return {}; }

 private:
  static std::unexpected<Error> unused() {
    return fail(ErrorKind::invalid, "the ledger never calls this");
  }

  FakeMachine& machine_;
  os::ProcessIdentity self_;
  uid_t user_;
};

}  // namespace berth::machine
