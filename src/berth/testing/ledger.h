// A machine in memory for the ledger's tests: files with owners, a clock, processes that live or
// not. Each FakeProcess is the Env of one process on it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/testing/fake_env.h"

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

class FakeProcess final : public os::FakeEnv {
 public:
  FakeProcess(FakeMachine& machine, pid_t pid, uid_t user = 1000) : machine_(machine), user_(user) {
    identity = {pid, pid * 10};
  }

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
    if (machine_.directories.contains(path))
      return os::FileStatus{.kind = os::FileStatus::Kind::directory, .mode = 01777};  // of root
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

  bool alive(const os::ProcessIdentity& process) override {
    ++machine_.asked_alive;
    return !machine_.dead.contains(process.pid);
  }
  uid_t user() override { return user_; }
  std::string boot_id() override { return machine_.boot; }

 private:
  FakeMachine& machine_;
  uid_t user_;
};

}  // namespace berth::machine
