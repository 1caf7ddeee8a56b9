// For tests: a machine out of one text file below testdata/, seen through an Env that has nothing
// else. Lines "key value" say what is given (affinity) and what discover() should say; each
// "== path" begins a file of that machine, up to the next one.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/text.h"
#include "berth/os/background_threads.h"
#include "berth/os/env.h"

namespace berth::machine {

/// An Env in which every call fails.
class NoEnv : public os::Env {
 public:
  Mono now() override { return {}; }
  Mono boot_clock() override { return {}; }
  Wall wall() override { return {}; }
  std::uint64_t random() override { return 0; }
  Result<std::string> read_file(const std::string&, std::size_t) override { return no(); }
  Status replace_file(const std::string&, std::string_view, mode_t) override { return no(); }
  Status write_into(const std::string&, std::string_view) override { return no(); }
  Result<std::vector<std::string>> list(const std::string&) override { return no(); }
  Result<os::FileStatus> status(const std::string&) override { return no(); }
  Result<std::string> real_path(const std::string&) override { return no(); }
  Status make_directory(const std::string&, mode_t) override { return no(); }
  Status make_user_directory(const std::string&, mode_t) override { return no(); }
  Status replace_user_file(const std::string&, std::string_view) override { return no(); }
  Status copy_access(const std::string&, const std::string&, mode_t) override { return no(); }
  Result<std::string> link_target(const std::string&) override { return no(); }
  Status remove_file(const std::string&) override { return no(); }
  Status remove_directory(const std::string&) override { return no(); }
  bool may_write(const std::string&) override { return false; }
  Result<std::string> attribute(const std::string&, const std::string&) override { return no(); }
  Result<os::VolumeSpace> volume(const std::string&) override { return no(); }
  Result<os::Fd> open_append(const std::string&, mode_t) override { return no(); }
  Result<os::Fd> open_read(const std::string&) override { return no(); }
  Result<os::Fd> open_write(const std::string&) override { return no(); }
  Result<std::string> read_at(const os::Fd&, std::int64_t, std::size_t) override { return no(); }
  Status truncate(const os::Fd&, std::int64_t) override { return no(); }
  Status remove_tree(const std::string&) override { return no(); }
  Result<std::vector<os::TreeEntry>> entries(const std::string&) override { return no(); }
  Result<std::vector<os::TreeEntry>> tree(const std::string&, std::size_t) override { return no(); }
  Result<std::optional<os::Content>> copy_file(const std::string&, const std::string&,
                                               mode_t) override {
    return no();
  }
  Status hard_link(const std::string&, const std::string&) override { return no(); }
  Status symbolic_link(const std::string&, const std::string&) override { return no(); }
  Status rename(const std::string&, const std::string&) override { return no(); }
  Status exchange(const std::string&, const std::string&) override { return no(); }
  Status stamp(const std::string&, mode_t, Wall) override { return no(); }
  Status sync(const std::string&) override { return no(); }
  Status sync_all(std::span<const std::string>) override { return no(); }
  Status sync_volume(const std::string&) override { return no(); }
  mode_t mask() override { return 0; }
  Result<os::Fd> lock(const std::string&, bool) override { return no(); }
  Result<os::Fd> lock_shared(const std::string&) override { return no(); }
  Result<os::Fd> lock_existing(const std::string&) override { return no(); }
  Status write_all(const os::Fd&, std::string_view) override { return no(); }
  Result<std::optional<std::size_t>> read_some(const os::Fd&, std::span<char>) override {
    return no();
  }
  Result<std::optional<std::size_t>> write_some(const os::Fd&, std::string_view) override {
    return no();
  }
  Result<os::Fd> listen_local(const std::string&) override { return no(); }
  Result<std::optional<os::Fd>> accept_local(const os::Fd&) override { return no(); }
  Result<os::Fd> connect_local(const std::string&) override { return no(); }
  void close(int) noexcept override {}
  Status wait(std::span<os::Watch>, std::optional<Mono>) override { return no(); }
  int stop_signals() override { return 0; }
  void request_stop() override {}
  std::unique_ptr<os::BackgroundThreads> background_threads(std::size_t) override {
    return nullptr;
  }
  Result<os::Child> spawn(const os::SpawnSpec&) override { return no(); }
  Result<std::optional<os::ExitStatus>> reap(const os::Child&) override { return no(); }
  bool has_exited(const os::Child&) override { return false; }
  Status signal_group(pid_t, int) override { return no(); }
  Status signal_pid(pid_t, int) override { return no(); }
  Status signal_process(const os::ProcessIdentity&, int) override { return no(); }
  os::ProcessIdentity self() override { return {}; }
  bool alive(const os::ProcessIdentity&) override { return false; }
  bool group_alive(pid_t) override { return false; }
  Status enter_scope(const std::string&, const std::string&) override { return no(); }
  uid_t user() override { return 0; }
  std::string host_name() override { return {}; }
  std::string boot_id() override { return {}; }
  std::vector<int> affinity() override { return {}; }
  std::optional<std::string> variable(const std::string&) override { return std::nullopt; }
  std::vector<std::pair<std::string, std::string>> environment() override { return {}; }

 private:
  static std::unexpected<Error> no() { return fail(ErrorKind::io, "not in this test"); }
};

/// Files, volumes and an affinity in memory.
class FixtureEnv : public NoEnv {
 public:
  std::map<std::string, std::string> files;  // by absolute path
  std::map<std::string, Error> broken;       // reading or asking about these fails so
  std::map<std::string, os::VolumeSpace> volumes;
  std::vector<int> cores;

  Result<std::string> read_file(const std::string& path, std::size_t limit) override {
    if (const auto at = broken.find(path); at != broken.end()) return std::unexpected(at->second);
    const auto at = files.find(path);
    if (at == files.end()) return fail(ErrorKind::not_found, "{}: no such file", path);
    if (at->second.size() > limit) return fail(ErrorKind::invalid, "{}: too large", path);
    return at->second;
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    std::vector<std::string> names;
    for (const auto& [path, _] : files)
      if (path.starts_with(directory + "/"))
        names.push_back(path.substr(directory.size() + 1,
                                    path.find('/', directory.size() + 1) - directory.size() - 1));
    names.erase(std::ranges::unique(names).begin(), names.end());
    if (names.empty()) return fail(ErrorKind::not_found, "{}: no such directory", directory);
    return names;
  }
  Result<os::VolumeSpace> volume(const std::string& path) override {
    if (const auto at = broken.find(path); at != broken.end()) return std::unexpected(at->second);
    const auto at = volumes.find(path);
    if (at == volumes.end()) return fail(ErrorKind::not_found, "{}: no such directory", path);
    return at->second;
  }
  std::vector<int> affinity() override { return cores; }
};

struct Fixture {
  std::vector<std::pair<std::string, std::string>> lines;  // key, value
  std::map<std::string, std::string> files;                // by path without a leading '/'
};

inline Fixture parse_fixture(std::string_view text) {
  constexpr std::string_view kFile = "== ";
  Fixture fixture;
  std::string* file = nullptr;
  for (const auto line : split(text, '\n')) {
    if (line.starts_with(kFile)) {
      file = &fixture.files[std::string(line.substr(kFile.size()))];
    } else if (file) {
      // A blank line only parts two files: none that the kernel shows has one.
      if (!line.empty()) *file += std::string(line) + "\n";
    } else if (!line.empty() && line.front() != '#') {
      const auto blank = line.find(' ');
      fixture.lines.emplace_back(line.substr(0, blank), line.substr(blank + 1));
    }
  }
  return fixture;
}

}  // namespace berth::machine
