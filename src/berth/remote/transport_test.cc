#include "berth/remote/transport.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"
#include "berth/base/shell_testing.h"
#include "berth/base/text.h"

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
