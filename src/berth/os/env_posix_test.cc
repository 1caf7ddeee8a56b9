#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <thread>

#include "berth/os/loop.h"
#include "berth/testing/posix.h"

namespace berth::os {
namespace {

using namespace std::chrono_literals;
using EnvPosix = PosixTest;

TEST_F(EnvPosix, ReadsAFileUpToItsLimit) {
  const auto file = put("a", std::string(100'000, 'x'));
  EXPECT_EQ(env_->read_file(file, 100'000)->size(), 100'000U);
  const auto larger = env_->read_file(file, 99'999);
  EXPECT_EQ(larger.error(), (Error{ErrorKind::invalid, file + ": larger than 97.7 KiB"}));
  EXPECT_EQ(env_->read_file("/dev/zero", 1 << 20).error().kind, ErrorKind::invalid)
      << "without end";
  EXPECT_EQ(*env_->read_file("/dev/null", 0), "");
  EXPECT_TRUE(env_->read_file("/proc/self/stat", 8192)->ends_with('\n'));
  EXPECT_EQ(env_->read_file(path("none"), 10).error(),
            (Error{ErrorKind::not_found, path("none") + ": No such file or directory"}));
  EXPECT_EQ(env_->read_file(directory_, 10).error().kind, ErrorKind::invalid);
  EXPECT_EQ(env_->read_file(file + "/b", 10).error().kind, ErrorKind::invalid);
}

TEST_F(EnvPosix, ReplacesAFileWholeForWhoeverReadsIt) {
  constexpr std::size_t kSize = 200'000;
  const auto file = put("a", std::string(kSize, 'a'));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    const auto env = posix_env();
    for (char c = 'b'; !stop; c = c == 'z' ? 'a' : static_cast<char>(c + 1))
      EXPECT_TRUE(env->replace_file(file, std::string(kSize, c), 0600));
  });
  for (int i = 0; i < 1000; ++i) {
    const auto text = env_->read_file(file, 2 * kSize);
    ASSERT_TRUE(text) << text.error().message;
    ASSERT_EQ(*text, std::string(kSize, text->front()));
  }
  stop = true;
  writer.join();
  EXPECT_EQ(*env_->list(directory_), std::vector<std::string>{"a"}) << "nothing is left beside it";
}

TEST_F(EnvPosix, AReplacedFileHasTheModeThatWasAsked) {
  const mode_t before = umask(077);
  for (const mode_t mode : {0644U, 0600U, 0755U, 0666U}) {
    const auto file = put("a", "x", mode);
    EXPECT_EQ(env_->status(file)->mode, mode);
  }
  umask(before);
}

TEST_F(EnvPosix, WhatIsMadeForTheUserHasTheModesOfMkdirAndCp) {
  const mode_t before = umask(027);
  const auto source = put("source", "x", 0644);
  EXPECT_TRUE(env_->make_user_directory(path("d/e"), 0777));
  EXPECT_TRUE(env_->make_user_directory(path("d/private/"), 0700));
  EXPECT_TRUE(env_->copy_file(source, path("copy"), 0666));
  EXPECT_TRUE(env_->copy_file(source, path("secret"), 0600));
  EXPECT_TRUE(env_->replace_user_file(path("new"), "text"));
  EXPECT_EQ(env_->mask(), 027U);
  umask(before);
  for (const auto& [name, mode] : std::vector<std::pair<std::string, mode_t>>{{"d", 0750},
                                                                              {"d/e", 0750},
                                                                              {"d/private", 0700},
                                                                              {"copy", 0640},
                                                                              {"secret", 0600},
                                                                              {"new", 0640}})
    EXPECT_EQ(env_->status(path(name))->mode, mode) << name;
  EXPECT_EQ(env_->make_user_directory(path("copy/x"), 0777).error().kind, ErrorKind::invalid);
  EXPECT_EQ(env_->make_user_directory("/proc/none/below", 0777).error().kind, ErrorKind::not_found);
}

TEST_F(EnvPosix, AReplacedUserFileKeepsItsModeAndItsLink) {
  const auto file = put("file", "old", 0640);
  ASSERT_TRUE(env_->symbolic_link("file", path("link")));
  ASSERT_TRUE(env_->symbolic_link("missing", path("broken")));
  ASSERT_TRUE(env_->symbolic_link("loop", path("loop")));
  EXPECT_TRUE(env_->replace_user_file(path("link"), "new"));
  EXPECT_EQ(*env_->read_file(file, 10), "new");
  EXPECT_EQ(env_->status(file)->mode, 0640U);
  EXPECT_EQ(*env_->link_target(path("link")), "file");
  EXPECT_TRUE(env_->replace_user_file(path("broken"), "made"));
  EXPECT_EQ(*env_->read_file(path("missing"), 10), "made");
  EXPECT_EQ(env_->replace_user_file(path("loop"), "x").error().kind, ErrorKind::invalid);
  EXPECT_TRUE(env_->replace_user_file("/dev/null", "x")) << "what is not a file is written into";
  EXPECT_EQ(env_->link_target(file).error().kind, ErrorKind::invalid);
}

TEST_F(EnvPosix, CopiedAccessNeverHasWhatIsDenied) {
  const auto from = put("from", "x", 0664), to = put("to", "y", 0755);
  EXPECT_TRUE(env_->copy_access(from, to, 0));
  EXPECT_EQ(env_->status(to)->mode, 0775U) << "an executable stays one";
  EXPECT_TRUE(env_->copy_access(from, to, 0066));
  EXPECT_EQ(env_->status(to)->mode, 0700U);
  ASSERT_TRUE(env_->make_directory(path("shared"), 02770));
  ASSERT_TRUE(env_->make_directory(path("fresh"), 0755));
  EXPECT_TRUE(env_->copy_access(path("shared"), path("fresh"), 0007));
  EXPECT_EQ(env_->status(path("fresh"))->mode, 02770U);
}

TEST_F(EnvPosix, CopiesKeepHoles) {
  const auto from = path("sparse");
  constexpr std::int64_t kSize = 16 << 20;
  {
    const auto file = env_->open_append(from, 0600);
    ASSERT_TRUE(env_->truncate(*file, kSize / 2));
    ASSERT_TRUE(env_->write_all(*file, "data"));
    ASSERT_TRUE(env_->truncate(*file, kSize));
  }
  const auto copied = env_->copy_file(from, path("copy"), 0600);
  ASSERT_TRUE(copied);
  const auto text = env_->read_file(path("copy"), kSize);
  ASSERT_TRUE(text && *text == *env_->read_file(from, kSize));
  if (*copied) {
    EXPECT_EQ((*copied)->size, kSize);
    EXPECT_EQ((*copied)->digest, sha256(*text));
  }
  struct stat st{};
  ASSERT_EQ(stat(path("copy").c_str(), &st), 0);
  EXPECT_LT(st.st_blocks * 512, 1 << 20);
}

TEST_F(EnvPosix, AFailedReplacementLeavesNothing) {
  EXPECT_TRUE(env_->make_directory(path("dir/full"), 0700));
  put("dir/full/x", "");
  EXPECT_EQ(env_->replace_file(path("none/a"), "x", 0600).error(),
            (Error{ErrorKind::not_found, path("none/a") + ": No such file or directory"}));
  EXPECT_FALSE(env_->replace_file(path("dir/full"), "x", 0600)) << "a directory is no file";
  EXPECT_EQ(*env_->list(path("dir")), std::vector<std::string>{"full"});
  EXPECT_EQ(env_->status(path("dir/full"))->kind, FileStatus::Kind::directory);
}

TEST_F(EnvPosix, ADirectoryThatSomebodyElseMakesMeanwhileIsThere) {
  constexpr int kRounds = 2000;
  const auto make = [&] {
    const auto env = posix_env();
    for (int i = 0; i < kRounds; ++i) {
      const auto made = env->make_directory(path(fmt::format("{}/a/b", i)), 0700);
      EXPECT_TRUE(made) << made.error().message;
    }
  };
  std::thread other(make);
  make();
  other.join();
}

TEST_F(EnvPosix, WritesIntoWhatExists) {
  const auto file = put("a", "longer");
  EXPECT_TRUE(env_->write_into(file, "new"));
  EXPECT_EQ(*env_->read_file(file, 100), "newger") << "as a cgroup's file would take it";
  EXPECT_EQ(env_->write_into(path("none"), "x").error().kind, ErrorKind::not_found);
  EXPECT_EQ(env_->write_into("/dev/full", "x").error().kind, ErrorKind::full);
}

TEST_F(EnvPosix, AppendsReadsAnywhereAndTruncates) {
  put("a", "one");
  const auto file = env_->open_append(path("a"), 0600);
  ASSERT_TRUE(file);
  EXPECT_TRUE(env_->write_all(*file, "two"));
  EXPECT_EQ(*env_->read_at(*file, 0, 100), "onetwo");
  EXPECT_EQ(*env_->read_at(*file, 2, 2), "et");
  EXPECT_EQ(*env_->read_at(*file, 6, 2), "");
  EXPECT_EQ(*env_->read_at(*file, 100, 2), "");
  EXPECT_TRUE(env_->truncate(*file, 4));
  EXPECT_TRUE(env_->write_all(*file, "!"));
  const auto reader = env_->open_read(path("a"));
  EXPECT_EQ(*env_->read_at(*reader, 0, 100), "onet!");
  EXPECT_FALSE(env_->write_all(*reader, "x"));
  EXPECT_TRUE(env_->write_all(*env_->open_write(path("a")), "O"));
  EXPECT_EQ(*env_->read_file(path("a"), 100), "Onet!");
  EXPECT_EQ(env_->open_read(path("b")).error().kind, ErrorKind::not_found);
  EXPECT_EQ(env_->open_write(path("b")).error().kind, ErrorKind::not_found);
  const auto full = env_->open_append("/dev/full", 0600);
  EXPECT_EQ(env_->write_all(*full, "x").error().kind, ErrorKind::full);
}

TEST_F(EnvPosix, MakesDirectoriesWithTheirParents) {
  const mode_t before = umask(077);
  struct Case {
    std::string made, seen;
    mode_t mode;
  };
  for (const auto& [made, seen, mode] :
       {Case{"a/b/c", "a/b/c", 0750}, Case{"a/b/d", "a/b/d", 01777}, Case{"e/f/", "e/f", 0700},
        Case{"g//h", "g/h", 0711}}) {
    EXPECT_TRUE(env_->make_directory(path(made), mode));
    EXPECT_EQ(env_->status(path(seen))->mode, mode) << made;
  }
  EXPECT_EQ(env_->status(path("a"))->mode, 0700U) << "a parent, as mkdir -p makes it";
  EXPECT_TRUE(env_->make_directory(path("a/b/c"), 0700));
  EXPECT_EQ(env_->status(path("a/b/c"))->mode, 0750U) << "left as it was";
  umask(before);
  put("file", "");
  EXPECT_EQ(env_->make_directory(path("file"), 0700).error().kind, ErrorKind::invalid);
  EXPECT_EQ(env_->make_directory(path("file/x"), 0700).error().kind, ErrorKind::invalid);
  EXPECT_EQ(env_->make_directory("", 0700).error().kind, ErrorKind::not_found);
  EXPECT_EQ(env_->make_directory("/proc/none/below", 0700).error().kind, ErrorKind::not_found)
      << "a file system that makes none, whoever asks";
}

TEST_F(EnvPosix, ListsLooksAtAndRemoves) {
  for (const auto* name : {"b", ".hidden", "a"}) put(name, "12");
  EXPECT_TRUE(env_->make_directory(path("dir"), 0700));
  EXPECT_EQ(*env_->list(directory_), (std::vector<std::string>{".hidden", "a", "b", "dir"}));
  EXPECT_EQ(env_->list(path("none")).error().kind, ErrorKind::not_found);
  EXPECT_EQ(env_->list(path("a")).error().kind, ErrorKind::invalid);
  const auto status = env_->status(put("run.sh", "123", 0755));
  EXPECT_EQ(status->kind, FileStatus::Kind::file);
  EXPECT_EQ(status->size, 3);
  EXPECT_EQ(status->owner, env_->user());
  EXPECT_TRUE(status->executable);
  EXPECT_FALSE(env_->status(path("a"))->executable);
  EXPECT_FALSE(env_->status(path("dir"))->executable) << "not as a program";
  EXPECT_EQ(env_->status("/dev/null")->kind, FileStatus::Kind::device);
  EXPECT_EQ(symlink("dir/../a", path("link").c_str()), 0);
  EXPECT_EQ(*env_->real_path(path("link")), *env_->real_path(path("a")));
  EXPECT_TRUE(env_->remove_file(path("link")));
  EXPECT_TRUE(env_->status(path("a"))) << "the link alone went";
  EXPECT_FALSE(env_->remove_file(path("dir")));
  EXPECT_FALSE(env_->remove_directory(directory_)) << "not empty";
  EXPECT_TRUE(env_->remove_directory(path("dir")));
  EXPECT_EQ(env_->remove_file(path("none")).error().kind, ErrorKind::not_found);
  const auto volume = env_->volume(directory_);
  EXPECT_TRUE(volume->available > 0 && volume->available <= volume->total);
}

TEST_F(EnvPosix, ALockIsHeldAgainstOtherProcessesUntilItsHolderEnds) {
  for (const auto& target : {path("lock"), directory_}) {
    auto holder = start(command({"flock", target, "sh", "-c", "echo held; exec sleep 100"}));
    EXPECT_TRUE(comes_true([&] {
      std::array<Watch, 1> watches{Watch{holder.out.number()}};
      return env_->wait(watches, env_->now()) && watches[0].ready;
    }));
    EXPECT_EQ(env_->lock(target, false).error(),
              (Error{ErrorKind::busy, target + ": locked by another process"}));
    EXPECT_TRUE(env_->signal_group(holder.pid, SIGKILL));
    finish(std::move(holder));
    auto ours = env_->lock(target, false);
    ASSERT_TRUE(ours) << ours.error().message;
    const auto other = command({"flock", "-n", target, "true"});
    EXPECT_EQ(run(other).status.code, 1);
    ours->reset();
    EXPECT_EQ(run(other).status.code, 0);
  }
  EXPECT_EQ(env_->lock(path("none/lock"), false).error().kind, ErrorKind::not_found);
}

TEST_F(EnvPosix, ALockIsWaitedFor) {
  auto holder =
      start(command({"flock", path("lock"), "sh", "-c", "echo; sleep 0.2; touch released"}));
  std::array<Watch, 1> watches{Watch{holder.out.number()}};
  EXPECT_TRUE(env_->wait(watches, env_->now() + 20s));
  const auto ours = env_->lock(path("lock"), true);
  ASSERT_TRUE(ours);
  EXPECT_TRUE(env_->status(path("released")));
  finish(std::move(holder));
}

TEST_F(EnvPosix, WaitsUntilTheDeadlineAndNoLonger) {
  const auto before = env_->now();
  EXPECT_TRUE(env_->wait({}, before + 30ms));
  const auto waited = env_->now() - before;
  EXPECT_GE(waited, 30ms);
  EXPECT_LT(waited, 10s);
  EXPECT_TRUE(env_->wait({}, before)) << "a deadline that has passed";
}

TEST_F(EnvPosix, WaitMarksWhatIsReadyAndNothingElse) {
  std::array<int, 2> quiet{}, full{};
  ASSERT_EQ(pipe2(quiet.data(), O_CLOEXEC) | pipe2(full.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const Fd ends[] = {Fd(*env_, quiet[0]), Fd(*env_, quiet[1]), Fd(*env_, full[0]),
                     Fd(*env_, full[1])};
  while (write(full[1], "x", 1) == 1) continue;
  std::array<Watch, 5> watches{Watch{.fd = quiet[0], .ready = true},
                               Watch{.fd = quiet[1], .readable = false}, Watch{.fd = full[0]},
                               Watch{.fd = full[1], .readable = false, .ready = true},
                               Watch{.fd = -1, .ready = true}};
  const auto ready = [&] {
    std::string marks;
    for (const auto& watch : watches) marks += watch.ready ? '1' : '0';
    return marks;
  };
  EXPECT_TRUE(env_->wait(watches, std::nullopt));
  EXPECT_EQ(ready(), "01100");
  std::array<char, 3> buffer;
  EXPECT_EQ(**env_->read_some(ends[2], buffer), 3U);
  EXPECT_EQ(write(quiet[1], "y", 1), 1);
  EXPECT_TRUE(env_->wait(watches, env_->now() + 20s));
  EXPECT_EQ(ready()[0], '1');
  EXPECT_EQ(**env_->read_some(ends[0], buffer), 1U);
  std::array<Watch, 1> idle{Watch{.fd = quiet[0], .ready = true}};
  EXPECT_TRUE(env_->wait(idle, env_->now() + 1ms));
  EXPECT_FALSE(idle[0].ready);
}

TEST_F(EnvPosix, WatchesOfNothingCountAgainstNoLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd to(*env_, ends[1]), from(*env_, ends[0]);
  ASSERT_TRUE(env_->write_all(to, "x"));
  int called = 0;
  {
    std::vector<std::unique_ptr<Poll>> idle;
    for (int i = 0; i < 100; ++i) idle.push_back(std::make_unique<Poll>(env_->loop(), [] {}));
    Poll last(env_->loop(), [&] { ++called; });
    last.watch(ends[0]);
    const auto turned = env_->loop().turn(env_->now());
    EXPECT_TRUE(turned) << turned.error().message;
  }
  EXPECT_EQ(called, 1);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

using EnvPosixDeathTest = PosixTest;  // each statement in a process of its own

TEST_F(EnvPosixDeathTest, StopSignalsCountAndWakeAndOthersAreIgnored) {
  const auto play = [&] {
    install_stop_signals();
    install_stop_signals();  // once is enough
    if (env_->stop_signals() != 0) _exit(1);
    raise(SIGHUP);
    raise(SIGPIPE);
    raise(SIGTERM);
    const auto until = env_->now() + 20s;
    if (!env_->wait({}, until) || env_->now() >= until || env_->stop_signals() != 1) _exit(2);
    if (!env_->wait({}, env_->now() + 20ms)) _exit(3);  // an old signal wakes no second time
    raise(SIGINT);
    if (env_->stop_signals() != 2) _exit(4);
    // What we ignore, a task must not inherit, nor a blocked signal.
    const auto text = run(shell("grep -E 'Sig(Ign|Blk)' /proc/self/status")).out;
    const auto masks = words(text);
    constexpr std::uint64_t kHangUpAndPipe = 1U << (SIGHUP - 1) | 1U << (SIGPIPE - 1);
    if (masks.size() != 4) _exit(5);
    for (const auto mask : {masks[1], masks[3]})
      if ((std::strtoull(std::string(mask).c_str(), nullptr, 16) & kHangUpAndPipe) != 0) _exit(6);
    _exit(0);
  };
  EXPECT_EXIT(play(), ::testing::ExitedWithCode(0), "");
}

TEST_F(EnvPosix, TellsClocksChanceAndNames) {
  const Mono before = env_->now();
  EXPECT_LE(before, env_->now());
  EXPECT_NEAR(static_cast<double>(to_ms(env_->wall())),
              static_cast<double>(std::time(nullptr)) * 1e3, 5000);
  EXPECT_NE(env_->random(), env_->random());
  EXPECT_EQ(env_->user(), getuid());
  EXPECT_FALSE(env_->host_name().empty());
  EXPECT_EQ(env_->boot_id() + "\n", *env_->read_file("/proc/sys/kernel/random/boot_id", 100));
  EXPECT_FALSE(env_->affinity().empty());
  ASSERT_EQ(setenv("BERTH_TEST_VARIABLE", "a=b\nc", 1), 0);
  EXPECT_EQ(env_->variable("BERTH_TEST_VARIABLE"), "a=b\nc");
  int found = 0;
  for (const auto& [name, value] : env_->environment())
    found += name == "BERTH_TEST_VARIABLE" && value == "a=b\nc" ? 1 : 0;
  EXPECT_EQ(found, 1);
  unsetenv("BERTH_TEST_VARIABLE");
  EXPECT_EQ(env_->variable("BERTH_TEST_VARIABLE"), std::nullopt);
}

TEST_F(EnvPosix, RemovesTreesOfAnyDepthAndMode) {
  const int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::filesystem::create_directories(path("tree/0/1/closed"));
  put("tree/0/1/closed/f", "text");
  std::filesystem::create_directory_symlink(directory_, path("tree/link"));
  ASSERT_EQ(chdir(path("tree").c_str()), 0);
  const std::string name(200, 'd');
  for (int depth = 0; depth < 100; ++depth) {
    ASSERT_EQ(mkdir(name.c_str(), 0700), 0);
    (void)mkdir("0", 0);  // a name that others come up to
    ASSERT_EQ(chdir(name.c_str()), 0);
  }
  ASSERT_EQ(fchdir(home), 0);
  close(home);
  for (const char* closed : {"tree/0/1/closed", "tree/0/1", "tree/0"})
    chmod(path(closed).c_str(), 0500);
  EXPECT_TRUE(env_->remove_tree(path("tree")));
  EXPECT_TRUE(env_->list(directory_)->empty());
  EXPECT_TRUE(env_->remove_tree(path("tree"))) << "nothing is no error";
  put("f", "text");
  EXPECT_TRUE(env_->remove_tree(path("f")));
}

}  // namespace
}  // namespace berth::os
