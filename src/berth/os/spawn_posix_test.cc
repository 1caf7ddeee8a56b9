#include "berth/os/spawn_posix.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "berth/testing/posix.h"

namespace berth::os {
namespace {

using SpawnPosix = PosixTest;

TEST_F(SpawnPosix, HandsOverArgumentsEnvironmentAndDirectory) {
  auto spec = shell("printf '%s|' \"$@\"; printf '%s|' \"$A\"; pwd -P >&2");
  spec.argv.insert(spec.argv.end(), {"sh", "", "two words", "'\"$x\n*"});
  spec.environment.emplace_back("A", "b=c d");
  const auto finished = run(spec);
  EXPECT_EQ(finished.out, "|two words|'\"$x\n*|b=c d|");
  EXPECT_EQ(finished.err, *env_->real_path(directory_) + "\n");
  spec = command({"env"});
  spec.environment = {{"PATH", "/usr/bin:/bin"}, {"B", ""}};
  EXPECT_EQ(run(spec).out, "PATH=/usr/bin:/bin\nB=\n") << "the whole of it";
}

TEST_F(SpawnPosix, GivesNoOtherDescriptorsAndNoInput) {
  const auto open = env_->open_append(path("secret"), 0600);
  EXPECT_EQ(run(shell("cat; readlink /proc/self/fd/0")).out, "/dev/null\n");
  EXPECT_EQ(run(shell("ls -l /proc/self/fd")).out.find("secret"), std::string::npos);
}

TEST_F(SpawnPosix, GivesAFileAsInputFromItsStart) {
  ASSERT_TRUE(env_->replace_file(path("data"), "one\ntwo\n", 0600));
  for (int i = 0; i < 2; ++i) {
    auto spec = shell("read -r line; echo $line; cat");
    spec.input = path("data");
    EXPECT_EQ(run(spec).out, "one\ntwo\n");
  }
  auto spec = shell("cat");
  spec.input = path("none");
  EXPECT_EQ(env_->spawn(spec).error().kind, ErrorKind::not_found);
}

TEST_F(SpawnPosix, RunsAScriptWithoutInterpreterLineByTheShell) {
  ASSERT_TRUE(
      env_->replace_file(path("tool"), "# no interpreter\necho $# \"$1\" ${0##*/}\n", 0700));
  EXPECT_EQ(run(command({path("tool"), "a b", ""})).out, "2 a b tool\n");
  const auto why = [&](std::string_view content) {
    EXPECT_TRUE(env_->replace_file(path("tool"), content, 0700));
    auto child = env_->spawn(command({path("tool")}));
    return child ? std::string("started") : child.error().message.substr(path("tool").size());
  };
  EXPECT_EQ(why(""), ": the file is empty");
  EXPECT_EQ(why(std::string_view("\x7f"
                                 "ELF\2\1\1\0\0\0",
                                 10)),
            ": the program was built for another kind of machine (processor or word size)");
  EXPECT_EQ(why(std::string_view("PK\3\4\0\0\n", 7)),
            ": it is neither a program of this machine nor a script");
}

TEST_F(SpawnPosix, SaysWhichArgumentIsTooLong) {
  auto spec = command({"/bin/true", std::string(most_of_one_argument(), 'x')});
  EXPECT_NE(
      env_->spawn(spec).error().message.find("argument 1 has 128 KiB, and Linux takes at most"),
      std::string::npos);
  spec = command({"/bin/true"});
  spec.environment.emplace_back("LONG", std::string(most_of_one_argument(), 'x'));
  EXPECT_NE(env_->spawn(spec).error().message.find("the variable LONG has"), std::string::npos);
  spec = command({"/bin/true"});
  spec.argv.insert(spec.argv.end(), most_of_all_arguments() / 1000, std::string(1000, 'x'));
  EXPECT_NE(env_->spawn(spec).error().message.find("more than a process can be started with"),
            std::string::npos);
  spec.argv.resize(most_of_all_arguments() / 1100);
  EXPECT_EQ(run(spec).status.code, 0);
}

TEST_F(SpawnPosix, TalksBothWays) {
  auto spec = shell("while read -r line; do echo \"heard $line\"; done; echo err >&2");
  spec.talks = true;
  auto child = start(spec);
  EXPECT_EQ(env_->write_some(child.out, "one\ntwo\n").value(), 8U);
  std::string heard;
  std::array<char, 100> buffer{};
  while (heard.size() < 20) {
    std::vector<Watch> watches{{.fd = child.out.number()}};
    ASSERT_TRUE(env_->wait(watches, env_->now() + std::chrono::seconds(10)));
    const auto got = env_->read_some(child.out, buffer);
    ASSERT_TRUE(got && *got && **got > 0);
    heard.append(buffer.data(), **got);
  }
  EXPECT_EQ(heard, "heard one\nheard two\n");
  child.out.reset();  // the end of its input
  EXPECT_EQ(finish(std::move(child)).err, "err\n");
}

TEST_F(SpawnPosix, BringsAllOutputApart) {
  const auto finished =
      run(shell("i=0; while [ $i -lt 20000 ]; do echo out $i; echo err >&2; "
                "i=$((i+1)); done"));
  EXPECT_EQ(finished.err.size(), 80'000U);
  EXPECT_TRUE(finished.out.starts_with("out 0\nout 1\n"));
  EXPECT_TRUE(finished.out.ends_with("out 19999\n"));
  EXPECT_GT(finished.status.cpu, Duration(0));
  EXPECT_GT(finished.status.peak_rss, 100'000);
}

TEST_F(SpawnPosix, TellsHowItEnded) {
  struct Case {
    std::string script;
    int code, signal;
  };
  for (const auto& [script, code, signal] :
       {Case{":", 0, 0}, Case{"exit 3", 3, 0}, Case{"exit 255", 255, 0},
        Case{"kill -TERM $$", 0, SIGTERM}, Case{"kill -KILL $$", 0, SIGKILL},
        Case{"ulimit -c 0; kill -SEGV $$", 0, SIGSEGV}, Case{"kill -PIPE $$", 0, SIGPIPE},
        Case{"kill -HUP $$", 0, SIGHUP}}) {
    const auto status = run(shell(script)).status;
    EXPECT_EQ(status.code, code) << script;
    EXPECT_EQ(status.signal, signal) << script;
  }
  const auto child = start(shell("sleep 100"));
  EXPECT_FALSE(env_->reap(child)->has_value()) << "it lives";
  EXPECT_TRUE(env_->signal_pid(child.pid, SIGKILL));
  std::array<Watch, 1> watches{Watch{child.exited.number()}};
  EXPECT_TRUE(env_->wait(watches, std::nullopt));
  EXPECT_EQ((*env_->reap(child))->signal, SIGKILL);
  EXPECT_FALSE(env_->reap(child)) << "once only";
}

TEST_F(SpawnPosix, RunsOnItsCores) {
  const auto cores = env_->affinity();
  for (const int core : {cores.front(), cores.back()}) {
    auto spec = command({"grep", "Cpus_allowed_list", "/proc/self/status"});
    spec.cores = {core};
    EXPECT_EQ(run(spec).out, fmt::format("Cpus_allowed_list:\t{}\n", core));
  }
  EXPECT_EQ(env_->affinity(), cores) << "ours stays";
}

TEST_F(SpawnPosix, FindsAProgramWhereTheChildWouldLook) {
  ASSERT_TRUE(env_->make_directory(path("bin"), 0700));
  put("bin/tool", "#!/bin/sh\necho bin\n", 0700);
  put("tool", "#!/bin/sh\necho here\n", 0700);
  put("bin/plain", "#!/bin/sh\n", 0600);
  struct Case {
    std::string program, path, out;
  };
  for (const auto& [program, places, out] :
       {Case{"tool", "/nowhere:" + path("bin"), "bin\n"}, Case{"tool", "bin", "bin\n"},
        Case{"tool", "", "here\n"}, Case{"tool", "/nowhere:", "here\n"},
        Case{"./tool", "bin", "here\n"}, Case{"bin/tool", "", "bin\n"},
        Case{path("tool"), "", "here\n"},
        Case{"plain", "bin:/bin:/usr/bin", "no such program in PATH"}}) {
    auto spec = command({program});
    spec.environment = {{"PATH", places}};
    if (auto child = env_->spawn(spec))
      EXPECT_EQ(finish(*std::move(child)).out, out) << program << ' ' << places;
    else
      EXPECT_EQ(child.error(), (Error{ErrorKind::not_found, "plain: " + out}));
  }
}

TEST_F(SpawnPosix, SaysWhyItCouldNotStart) {
  ASSERT_TRUE(env_->make_directory(path("dir"), 0700));
  put("plain", "#!/bin/sh\n", 0600);
  put("wanted", "#!/no/such/python\n", 0700);
  put("windows", "#!/bin/sh\r\necho\r\n", 0700);
  put("binary", std::string("\x7f garbage\0", 10), 0700);
  struct Case {
    std::string program;
    Error error;
  };
  const std::string interpreter = ": the interpreter that it names (#!) does not exist";
  for (const auto& [program, error] :
       {Case{"no-such-program", {ErrorKind::not_found, "no-such-program: no such program in PATH"}},
        Case{"", {ErrorKind::not_found, ": no such program in PATH"}},
        Case{"./none", {ErrorKind::not_found, "./none: no such file"}},
        Case{"./plain/none", {ErrorKind::not_found, "./plain/none: no such file"}},
        Case{"./dir", {ErrorKind::invalid, "./dir: is a directory"}},
        Case{"./plain", {ErrorKind::invalid, "./plain: not executable (chmod +x ./plain)"}},
        Case{"./wanted", {ErrorKind::not_found, "./wanted" + interpreter}},
        Case{"./windows", {ErrorKind::not_found, "./windows" + interpreter}},
        Case{"./binary",
             {ErrorKind::invalid,
              "./binary: it is neither a program of this machine nor a script"}}}) {
    const auto child = env_->spawn(command({program}));
    ASSERT_FALSE(child) << program;
    EXPECT_EQ(child.error().kind, error.kind) << program;
    EXPECT_EQ(child.error().message, error.message);
  }
  auto spec = command({"true"});
  spec.directory = path("gone");
  EXPECT_EQ(env_->spawn(spec).error(),
            (Error{ErrorKind::not_found, path("gone") + ": No such file or directory"}));
  EXPECT_EQ(env_->spawn(command({"true", std::string(4 << 20, 'x')})).error().kind,
            ErrorKind::invalid);
}

TEST_F(SpawnPosix, ADetachedProcessHasItsOwnSessionAndAppendsToItsLog) {
  ASSERT_TRUE(env_->replace_file(path("log"), "before\n", 0600));
  auto spec = shell("echo $A $0; pwd -P; umask; readlink /proc/self/fd/0; echo bad >&2");
  spec.argv.emplace_back("name");
  spec.environment.emplace_back("A", "b");
  spec.log = path("log");
  spec.is_detached = true;
  const auto child = env_->spawn(spec);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_FALSE(child->out);
  std::array watches{Watch{.fd = child->exited.number()}};
  ASSERT_TRUE(env_->wait(watches, env_->now() + std::chrono::seconds(20)));
  EXPECT_TRUE(watches[0].ready);
  EXPECT_FALSE(env_->reap(*child)) << "it is not a child";
  EXPECT_EQ(*env_->read_file(path("log"), 4096),
            fmt::format("before\nb name\n{}\n{:04o}\n/dev/null\nbad\n",
                        *env_->real_path(directory_), env_->mask()));
}

TEST_F(SpawnPosix, ADetachedProcessOutlivesTheProcessThatStartedIt) {
  auto spec = command({"sleep", "100"});
  spec.log = path("log");
  spec.is_detached = true;
  const pid_t starter = fork();
  if (starter == 0) {
    const auto child = env_->spawn(spec);
    (void)env_->replace_file(path("pid"), fmt::format("{}", child ? child->pid : 0), 0600);
    _exit(0);
  }
  int how = 0;
  ASSERT_EQ(waitpid(starter, &how, 0), starter);
  const auto pid = static_cast<pid_t>(*parse_integer(*env_->read_file(path("pid"), 64)));
  ASSERT_GT(pid, 1);
  EXPECT_EQ(stat_field(pid, 6), fmt::format("{}", pid)) << "the leader of its session";
  EXPECT_NE(stat_field(pid, 4), fmt::format("{}", getpid()));
  EXPECT_TRUE(env_->group_alive(pid));
  EXPECT_EQ(*env_->read_file(fmt::format("/proc/{}/comm", pid), 64), "sleep\n");
  EXPECT_TRUE(env_->signal_group(pid, SIGKILL));
}

TEST_F(SpawnPosix, ADetachedProcessCanBeStoppedBySignalsThatItsStarterBlocksOrIgnores) {
  auto spec = command({"sleep", "100"});
  spec.log = path("log");
  spec.is_detached = true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto hangup = ::signal(SIGHUP, SIG_IGN), pipe = ::signal(SIGPIPE, SIG_IGN);
  const auto child = env_->spawn(spec);
  ::signal(SIGHUP, hangup);
  ::signal(SIGPIPE, pipe);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(child) << child.error().message;
  const auto status = *env_->read_file(fmt::format("/proc/{}/status", child->pid), 8192);
  for (const char* field : {"SigBlk", "SigIgn"})
    EXPECT_TRUE(status.contains(fmt::format("{}:\t0000000000000000\n", field))) << status;
  EXPECT_TRUE(env_->signal_group(child->pid, SIGHUP));
  std::array watches{Watch{.fd = child->exited.number()}};
  ASSERT_TRUE(env_->wait(watches, env_->now() + std::chrono::seconds(20)));
  EXPECT_TRUE(watches[0].ready);
  (void)env_->signal_group(child->pid, SIGKILL);
}

TEST_F(SpawnPosix, ADetachedProcessThatCannotBeStartedSaysWhyAndLeavesNoZombie) {
  auto spec = command({"/none"});
  spec.is_detached = true;
  EXPECT_EQ(env_->spawn(spec).error().kind, ErrorKind::not_found);
  spec = command({"true"});
  spec.is_detached = true;
  spec.log = path("none/log");
  EXPECT_EQ(env_->spawn(spec).error().kind, ErrorKind::not_found);
  spec.log = "";
  spec.directory = path("none");
  EXPECT_FALSE(env_->spawn(spec));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no children";
}

TEST_F(SpawnPosix, TheProgramMayDifferFromTheFirstArgument) {
  auto spec = command({"name", "-c", "tr '\\0' ' ' < /proc/$$/cmdline"});
  spec.program = "/bin/sh";
  EXPECT_EQ(run(spec).out, "name -c tr '\\0' ' ' < /proc/$$/cmdline ");
}

TEST_F(SpawnPosix, TwoHundredSpawnsLeaveNoDescriptorAndNoZombie) {
  run(shell(":"));  // what is opened once for all
  const auto before = env_->list("/proc/self/fd")->size();
  put("wanted", "#!/no/such/python\n", 0700);
  for (int i = 0; i < 200; ++i) {
    run(shell("echo"));
    EXPECT_FALSE(env_->spawn(command({i % 2 == 0 ? "./wanted" : "./none"})));
  }
  EXPECT_EQ(env_->list("/proc/self/fd")->size(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(SpawnPosix, AGroupIsSignalledWhole) {
  auto child = start(shell("sleep 100 & echo $!; wait"));
  EXPECT_TRUE(comes_true([&] { return stat_field(child.pid, 5) == fmt::format("{}", child.pid); }));
  EXPECT_TRUE(env_->signal_group(child.pid, SIGKILL));
  const auto pid = child.pid;
  EXPECT_EQ(finish(std::move(child)).status.signal, SIGKILL) << "the pipe closed: both are gone";
  EXPECT_TRUE(comes_true([&] { return !env_->group_alive(pid); }));
}

TEST_F(SpawnPosix, AGroupOfZombiesIsNotAlive) {
  auto child = start(command({"sleep", "100"}));
  EXPECT_TRUE(env_->group_alive(child.pid));
  EXPECT_TRUE(env_->signal_group(child.pid, SIGKILL));
  EXPECT_TRUE(comes_true([&] { return stat_field(child.pid, 3) == "Z"; }));
  EXPECT_EQ(kill(-child.pid, 0), 0) << "the kernel counts it until it is asked for";
  EXPECT_FALSE(env_->group_alive(child.pid));
  const auto pid = child.pid;
  finish(std::move(child));
  EXPECT_FALSE(env_->group_alive(pid));
  EXPECT_EQ(env_->signal_group(pid, SIGKILL).error().kind, ErrorKind::not_found);
}

TEST_F(SpawnPosix, AProcessIsAliveUntilItIsAZombieAndIsNoOtherOfItsPid) {
  const auto self = env_->self();
  EXPECT_EQ(self, identity(getpid()));
  EXPECT_TRUE(env_->alive(self));
  EXPECT_FALSE(env_->alive({self.pid, self.started_at + 1})) << "its pid came back";
  EXPECT_FALSE(env_->alive({0, 0}));
  EXPECT_FALSE(env_->alive({-1, self.started_at}));
  // A name that looks like the fields behind it.
  const std::string odd = "x) Z 1 (y";
  ASSERT_EQ(symlink("/bin/sleep", path(odd).c_str()), 0);
  const auto child = start(command({path(odd), "100"}));
  const auto process = identity(child.pid);
  EXPECT_TRUE(env_->alive(process));
  EXPECT_EQ(env_->signal_process({child.pid, process.started_at + 1}, SIGKILL).error().kind,
            ErrorKind::not_found);
  EXPECT_TRUE(env_->signal_process(process, SIGKILL));
  std::array<Watch, 1> watches{Watch{child.exited.number()}};
  EXPECT_TRUE(env_->wait(watches, std::nullopt));
  EXPECT_FALSE(env_->alive(process)) << "a zombie";
  EXPECT_EQ(env_->signal_process(process, SIGKILL).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(env_->reap(child)->has_value());
  EXPECT_FALSE(env_->alive(process));
}

TEST_F(SpawnPosix, ATaskDoesNotOutliveItsWorker) {
  const pid_t worker = fork();
  if (worker == 0) {
    const auto child = start(command({"sleep", "1000"}));
    put("child", fmt::format("{} {}", child.pid, identity(child.pid).started_at));
    _exit(0);
  }
  ASSERT_EQ(waitpid(worker, nullptr, 0), worker);
  const std::string text = *env_->read_file(path("child"), 100);
  const auto fields = words(text);
  const ProcessIdentity child{static_cast<pid_t>(*parse_integer(fields[0])),
                              *parse_integer(fields[1])};
  EXPECT_TRUE(comes_true([&] { return !env_->alive(child); }));
  (void)env_->signal_process(child, SIGKILL);
}

using SpawnPosixDeathTest = PosixTest;  // its statement in a process of its own

TEST_F(SpawnPosixDeathTest, WithoutDescriptorsItSaysFullAndGoesOnLater) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
  GTEST_SKIP() << "the sanitizers' own checks open pipes";
#endif
  const auto play = [&] {
    run(shell(":"));
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t before = limit.rlim_cur;
    const auto open = env_->list("/proc/self/fd")->size();
    for (std::size_t spare = 0; spare < 4; ++spare) {  // it takes four and a pidfd
      limit.rlim_cur = open - 1 + spare;
      setrlimit(RLIMIT_NOFILE, &limit);
      const auto child = env_->spawn(shell(":"));
      if (child || child.error().kind != ErrorKind::full) _exit(1);
    }
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (env_->list("/proc/self/fd")->size() != open) _exit(2);
    _exit(run(shell("exit 7")).status.code);
  };
  EXPECT_EXIT(play(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace berth::os
