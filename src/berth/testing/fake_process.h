// A FakeProcess is a further process of a fake world with a program of its own, which may wait: it
// runs on a stack of its own, and the world turns it like the others when what it waits for has
// come. It may be made to give way at any call, be frozen, sent SIGTERM, and killed: then its
// descriptors are closed and what it started is killed at that moment, every call of it fails from
// then on and changes nothing, and so it unwinds to its end, which nobody sees.
//
// Ownership: as FakeEnv. Threads: one. Failure: as FakeEnv.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "berth/testing/fake_env.h"
#include "berth/testing/fiber.h"

namespace berth::os {

class FakeProcess final : public FakeEnv {
 public:
  /// On the machine of `beside`.
  FakeProcess(FakeEnv& first, FakeEnv& beside, ProcessIdentity identity);
  ~FakeProcess() override;

  /// What it does from its first turn on; what is returned is its exit code.
  void start(std::function<int()> main);
  /// It has ended, by itself or because it was killed.
  bool over() const { return over_; }
  bool killed() const { return killed_; }
  int exit_code() const { return exit_code_; }
  void kill();
  /// It goes on though what it waits for has not come.
  void wake() { until_ = now(); }
  /// Descriptors 0 and 1 are this one from now on, which may have been another process's.
  void talk_by(Fd fd);
  /// Ends of a connection to another process: ours, and theirs.
  std::pair<Fd, Fd> connect_to(FakeProcess& other);
  /// The script that this process has started under this id ends now, as that one does.
  void end_script(pid_t pid, FakeProgram as);
  /// Within `program`: the id of the script that is being started.
  pid_t last_pid() const { return world_.next_pid - 1; }

  /// How often it gives way: once in so many calls; 0: only where it waits.
  std::uint64_t gives_way = 0;
  /// A script of it that SIGTERM ends takes so long at most to end.
  Duration ends_within{};

  /// For one that was killed, time flies: whoever waits for a moment comes to its end.
  Mono now() override { return world_.now + std::chrono::seconds(calls_when_dead_); }
  Result<Fd> lock(const std::string& path, bool wait) override;
  Result<Fd> lock_shared(const std::string& path) override;
  void close(int fd) noexcept override;
  /// Of what cannot be written to a file, a part is.
  Status write_all(const Fd& fd, std::string_view bytes) override;
  Status wait(std::span<Watch> watches, std::optional<Mono> until) override;
  Status signal_pid(pid_t pid, int signal) override;
  Status signal_process(const ProcessIdentity& process, int signal) override;

 private:
  Status ask(std::string_view call) override;
  bool has_turn() override;
  void take_turn() override;
  std::optional<Mono> next_turn() override { return until_; }
  int opened(int fd) const override {
    return fd >= 0 && fd < 2 ? standard_.at(static_cast<std::size_t>(fd)) : fd;
  }
  void give_way(std::optional<Mono> until, std::function<bool()> may_go_on);
  void end();

  std::optional<Fiber> fiber_;
  std::function<bool()> may_go_on_;
  std::optional<Mono> until_;
  std::array<int, 2> standard_{-1, -1};
  bool over_ = true, killed_ = false, inside_ = false;
  int exit_code_ = 0;
  int calls_when_dead_ = 0;
};

}  // namespace berth::os
