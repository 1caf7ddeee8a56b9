#include "berth/exec/long_command.h"

#include <gtest/gtest.h>

namespace berth::exec {
namespace {

using Texts = std::vector<std::string>;

TEST(LongCommand, TheScriptOfAShellIsReadFromAFileAndKeepsTheRest) {
  const std::string text(100, 'x');
  const auto from_file = [&](Texts line) {
    const auto index = long_script(line, 100);
    if (!index) return Texts{};
    read_script_from(line, *index, "/a b/c");
    return line;
  };
  EXPECT_EQ(from_file({"bash", "--norc", "-euo", "pipefail", "-c", text}),
            (Texts{"bash", "--norc", "-euo", "pipefail", "-c", ". '/a b/c'"}));
  EXPECT_EQ(from_file({"/bin/sh", "-ec", text, "name", "one"}),
            (Texts{"/bin/sh", "-ec", ". '/a b/c'", "name", "one"}));
  EXPECT_EQ(from_file({"/bin/sh", "-c", "wrapper", "sh", "zsh", "-fc", text}),
            (Texts{"/bin/sh", "-c", "wrapper", "sh", "zsh", "-fc", ". '/a b/c'"}));
  EXPECT_EQ(from_file({"fish", "-c", text}), (Texts{"fish", "-c", "source '/a b/c'"}));
  EXPECT_EQ(from_file({"python3", "-c", text, "one"}), (Texts{"python3", "/a b/c", "one"}));
  EXPECT_EQ(from_file({"Rscript", "--vanilla", "-e", text}),
            (Texts{"Rscript", "--vanilla", "/a b/c"}));
  EXPECT_EQ(from_file({"perl", "-ne", text}), (Texts{"perl", "-n", "/a b/c"}));
  for (const Texts& line : {Texts{"echo", "-e", text},
                            {"grep", "-c", text},
                            {"bash", text},
                            {"python3", "tool.py", "-c", text},
                            {"bash", "tool", "-c", text},
                            {"python3", "-e", text},
                            {"bash", "-e", text}})
    EXPECT_EQ(from_file(line), Texts{}) << line.front() << line[1];
  EXPECT_EQ(from_file({"bash", "-c", text.substr(1)}), Texts{});
}

TEST(LongCommand, VariablesThatAFileHasAreLeftOutAndNoOthers) {
  const std::string text(100, 'x');
  Environment environment{{"BERTH_IN_X", text}, {"MINE", text}, {"BERTH_PARAM_A", "1"}};
  EXPECT_EQ(leave_out_long({"a"}, environment, 100, 1000), Texts{"BERTH_IN_X"});
  EXPECT_EQ(environment, (Environment{{"MINE", text}, {"BERTH_PARAM_A", "1"}}));
  environment = {{"BERTH_IN_X", text}, {"BERTH_IN_Y", text + "y"}, {"BERTH_TASK", text}};
  EXPECT_EQ(leave_out_long({text}, environment, 1000, 400), Texts{"BERTH_IN_Y"});
  EXPECT_EQ(leave_out_long({text}, environment, 1000, 400), Texts{});
}

}  // namespace
}  // namespace berth::exec
