// For tests on the real system: a directory that goes, and processes followed to their end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <string>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/spawn.h"

namespace berth::os {

class PosixTest : public ::testing::Test {
 protected:
  PosixTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-os-XXXXXX").string();
    BERTH_ASSERT(mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
  }
  ~PosixTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::string path(std::string_view name) const { return fmt::format("{}/{}", directory_, name); }

  std::string put(std::string_view name, std::string_view text, mode_t mode = 0600) {
    EXPECT_TRUE(env_->replace_file(path(name), text, mode));
    return path(name);
  }

  struct Finished {
    std::string out, err;
    ExitStatus status;
  };

  SpawnSpec command(std::vector<std::string> argv) const {
    return {.argv = std::move(argv),
            .environment = {{"PATH", "/usr/bin:/bin"}},
            .directory = directory_,
            .cores = {},
            .join_files = {}};
  }
  SpawnSpec shell(std::string script) const {
    return command({"/bin/sh", "-c", std::move(script)});
  }

  Child start(const SpawnSpec& spec) {
    auto child = env_->spawn(spec);
    EXPECT_TRUE(child) << child.error().message;
    return *std::move(child);
  }

  /// Reads all it prints and reaps it; fails after a while.
  Finished finish(Child child) {
    Finished finished;
    const Mono until = env_->now() + std::chrono::seconds(20);
    std::array<Watch, 3> watches{Watch{child.exited.number()}, Watch{child.out.number()},
                                 Watch{child.err.number()}};
    for (;;) {
      EXPECT_TRUE(env_->wait(watches, until));
      if (watches[1].ready && drain(child.out, finished.out)) watches[1].fd = -1;
      if (watches[2].ready && drain(child.err, finished.err)) watches[2].fd = -1;
      if (watches[0].ready) {
        finished.status = **env_->reap(child);
        watches[0].fd = -1;
      }
      if (watches[0].fd < 0 && watches[1].fd < 0 && watches[2].fd < 0) return finished;
      if (env_->now() >= until) {
        ADD_FAILURE() << "it never ended";
        return finished;
      }
    }
  }
  Finished run(const SpawnSpec& spec) { return finish(start(spec)); }

  /// Field `number` of /proc/PID/stat, counted from 1; "" where there is no such process.
  std::string stat_field(pid_t pid, std::size_t number) {
    const auto text = env_->read_file(fmt::format("/proc/{}/stat", pid), 8192);
    if (!text) return "";
    return std::string(words(text->substr(text->rfind(')') + 1)).at(number - 3));
  }
  ProcessIdentity identity(pid_t pid) {
    return {pid, parse_integer(stat_field(pid, 22)).value_or(-1)};
  }

  bool comes_true(const std::function<bool()>& condition) {
    const Mono until = env_->now() + std::chrono::seconds(20);
    while (!condition()) {
      if (env_->now() > until) return false;
      (void)env_->wait({}, env_->now() + std::chrono::milliseconds(1));
    }
    return true;
  }

  std::unique_ptr<Env> env_ = posix_env();
  std::string directory_;

 private:
  /// Whether the end was reached.
  bool drain(const Fd& from, std::string& to) {
    std::array<char, 4096> buffer;
    for (;;) {
      const auto got = env_->read_some(from, buffer);
      if (!got || *got == 0U) return true;
      if (!*got) return false;
      to.append(buffer.data(), **got);
    }
  }
};

}  // namespace berth::os
