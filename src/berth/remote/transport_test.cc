#include "berth/remote/transport.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "berth/base/rng.h"
#include "berth/base/text.h"
#include "berth/testing/shell.h"

namespace berth::remote {
namespace {

using Words = std::vector<std::string>;

TEST(Transport, WithoutWordsLeadsToThisMachine) {
  EXPECT_EQ(through({}, Words{"echo", "a b"}), (Words{"echo", "a b"}));
}

TEST(Transport, LeavesWordsAloneUnlessAShellReadsThem) {
  const Transport job{.name = "node3", .words = {"srun", "--jobid=17"}};
  EXPECT_EQ(through(job, Words{"echo", "$HOME; x"}),
            (Words{"srun", "--jobid=17", "echo", "$HOME; x"}));
}

// What ssh does with its words: joins them by blanks and gives them to a shell.
TEST(Transport, NoWordEscapesTheShellBehindIt) {
  const Transport ssh{.name = "box", .words = {"ssh", "box", "--"}, .shell = true};
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    const Words hostile{hostile_value(rng), hostile_value(rng), ""};
    Words command{"printf", "%s\\0"};
    command.insert(command.end(), hostile.begin(), hostile.end());
    const Words started = through(ssh, command);
    EXPECT_EQ(shell_words(join(std::span(started).subspan(3), " ")), hostile);
  }
}

/// Other shells that a user may have on the other machine, as far as they are installed here.
std::vector<std::string> installed_login_shells() {
  std::vector<std::string> shells;
  for (const char* shell : {"/bin/bash", "/bin/dash", "/usr/bin/zsh", "/usr/bin/fish",
                            "/usr/bin/tcsh", "/bin/bsd-csh", "/bin/rbash"})
    if (access(shell, X_OK) == 0) shells.emplace_back(shell);
  return shells;
}

TEST(Transport, EveryLoginShellReadsTheSameWords) {
  const Transport ssh{.name = "box", .words = {"ssh", "box", "--"}, .shell = true};
  Rng rng(11);
  for (const auto& shell : installed_login_shells())
    for (int i = 0; i < 20; ++i) {
      std::string value;
      for (const char c : hostile_value(rng))
        if (c >= ' ' && c <= '~') value += c;
      const Words hostile{value, "it's", "a!b", R"(c\d\\e)", ""};
      Words command{"printf", "%s@@"};
      command.insert(command.end(), hostile.begin(), hostile.end());
      const Words started = through(ssh, command);
      EXPECT_EQ(shell_output(join(std::span(started).subspan(3), " "), shell),
                join(hostile, "@@") + "@@")
          << shell;
    }
}

TEST(Transport, EveryLoginShellStartsTheAgentThatIsThere) {
  const std::string cache = std::string(::testing::TempDir()) + "login-shells";
  const std::string agent = "echo \"agent: $*\"\n";
  const AgentFile file{.path = "", .digest = sha256(agent), .size = std::ssize(agent)};
  const std::string path = cache + "/berth/agent-" + to_hex(file.digest);
  ASSERT_EQ(std::system(("mkdir -p " + cache + "/berth").c_str()), 0);
  std::ofstream(path) << agent;
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  ASSERT_EQ(setenv("XDG_CACHE_HOME", cache.c_str(), 1), 0);
  const Transport ssh{.name = "box", .words = {}, .shell = true};
  for (const auto& shell : installed_login_shells())
    for (const auto& command : {agent_command(file, Words{"files", "/a b!"}),
                                known_agent_command(file, Words{"files", "/a b!"})})
      EXPECT_EQ(shell_output(join(through(ssh, command), " "), shell), "agent: files /a b!\n")
          << shell;
  unsetenv("XDG_CACHE_HOME");
}

TEST(Transport, NoWordOfTheScriptsIsTooLongForCsh) {
  constexpr std::size_t kCshWord = 1024;
  for (const auto& command : {agent_command({}, {}), known_agent_command({}, {})})
    for (const auto& word : command) {
      EXPECT_LT(word.size(), kCshWord);
      EXPECT_EQ(word.find_first_of("'!\\\n"), std::string::npos) << word;
    }
}

TEST(LeaseDirectory, IsReadAsItWasWritten) {
  const LeaseDirectory lease_directory{{.name = "gpu \"box\"",
                                        .words = {"ssh", "-p", "22", "h", "--"},
                                        .shell = true,
                                        .direct = true,
                                        .address = "me@h:22"},
                                       "/home/a/.local/state/berth/places/17"};
  const auto again = parse_lease_directory(to_json(lease_directory));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, lease_directory);
}

TEST(LeaseDirectory, OfARunnerThatKnewOfNoDirectWayHasNone) {
  const auto old =
      parse_lease_directory(R"({"machine":"a","door":["ssh"],"shell":true,"directory":"/x"})");
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_FALSE(old->transport.direct);
}

TEST(LeaseDirectory, SaysWhatIsWrong) {
  EXPECT_FALSE(parse_lease_directory("{}"));
  EXPECT_FALSE(parse_lease_directory("[1]"));
  EXPECT_FALSE(parse_lease_directory(R"({"machine":"a","door":[],"shell":false,"directory":"x"})"));
}

}  // namespace
}  // namespace berth::remote
