#include "berth/cli/completion.h"

#include <gtest/gtest.h>

#include "berth/base/text.h"

namespace berth::cli {
namespace {

const std::vector<CommandHelp> kCommands{
    {"", "", "", {{"-h,--help", "", "print help"}}, ""},
    {"run",
     "start a run",
     "",
     {{"-h,--help", "", "print help"},
      {"FILE", "TEXT", "", {}, true},
      {"TARGET", "TEXT", "", {}, true, false, true},
      {"--cluster", "CLUSTER", ""},
      {"--cache", "TEXT", "", {"off", "on"}},
      {"--detach", "", ""}},
     ""},
    {"runs", "list the runs", "", {}, ""},
    {"logs",
     "what it printed",
     "",
     {{"RUN[/TASK]", "TEXT", "", {}, true, true},
      {"-f,--follow", "", ""},
      {"--topology", "TOPOLOGY", ""}},
     ""},
    {"compare", "", "", {{"RUN", "TEXT", "", {}, true, true, true}}, "", "", {"diff"}},
    {"cluster", "", "", {{"-h,--help", "", "print help"}}},
    {"cluster probe", "", "", {{"CLUSTER", "TEXT", "", {}, true, false, true}, {"--json", "", ""}}},
    {"cluster list", "", "", {}},
};

std::vector<Candidate> world(Subject subject, std::string_view so_far) {
  switch (subject) {
    case Subject::runs: return {{"digits-2"}, {"digits-1"}, {"other-1"}};
    case Subject::tasks:
      return so_far.find('/') == so_far.npos
                 ? std::vector<Candidate>{{"digits-2"}}
                 : std::vector<Candidate>{{"digits-2/1"}, {"digits-2/17"}};
    case Subject::clusters: return {{"lab"}, {"hpc"}};
    case Subject::topologies: return {{"dgx-h100"}};
    default: return {};
  }
}

/// The words of the candidates, and ":files" where the shell has to add its own.
std::string answer(std::vector<std::string> words) {
  const auto found = complete(kCommands, words, world);
  std::vector<std::string> all;
  for (const auto& each : found.all) all.push_back(each.word);
  if (found.by_shell == Subject::files) all.emplace_back(":files");
  if (found.by_shell == Subject::commands) all.emplace_back(":commands");
  return join(all, " ");
}

TEST(Completion, CommandsAndOptions) {
  EXPECT_EQ(answer({""}), "run runs logs compare cluster");
  EXPECT_EQ(answer({"ru"}), "run runs");
  EXPECT_EQ(answer({"-"}), "--help");
  EXPECT_EQ(answer({"run", "--c"}), "--cluster --cache");
  EXPECT_EQ(answer({"logs", "-"}), "--follow --topology");
  EXPECT_EQ(answer({"--json", "lo"}), "logs");
  EXPECT_EQ(answer({"none", ""}), "");
  EXPECT_EQ(answer({}), "");
}

TEST(Completion, ActionsAndAliases) {
  EXPECT_EQ(answer({"cluster", ""}), "probe list");
  EXPECT_EQ(answer({"cluster", "-"}), "--help");
  EXPECT_EQ(answer({"cluster", "probe", ""}), "lab hpc");
  EXPECT_EQ(answer({"cluster", "probe", "-"}), "--json");
  EXPECT_EQ(answer({"cluster", "none", ""}), "");
  EXPECT_EQ(answer({"diff", "d"}), "digits-2 digits-1");
}

TEST(Completion, HelpTakesCommands) {
  auto commands = kCommands;
  commands.push_back({"help", "", "", {}});
  const auto words_of = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all;
    for (const auto& each : complete(commands, words, world).all) all.push_back(each.word);
    return join(all, " ");
  };
  EXPECT_EQ(words_of({"help", "ru"}), "run runs");
  EXPECT_EQ(words_of({"help", "cluster", "l"}), "list");
}

TEST(Completion, ValuesOfOptions) {
  EXPECT_EQ(answer({"run", "--cluster", ""}), "lab hpc");
  EXPECT_EQ(answer({"run", "--cluster=l"}), "--cluster=lab");
  EXPECT_EQ(answer({"run", "--cache", "o"}), "off on");
  EXPECT_EQ(answer({"run", "--cache=of"}), "--cache=off");
  EXPECT_EQ(answer({"run", "--detach", ""}), ":files") << "a flag takes no value";
  EXPECT_EQ(answer({"logs", "--topology", "dg"}), "dgx-h100 :files");
  EXPECT_EQ(answer({"run", "--none", ""}), ":files");
  EXPECT_EQ(answer({"run", "--none="}), "");
}

TEST(Completion, Positionals) {
  EXPECT_EQ(answer({"run", "swe"}), ":files");
  EXPECT_EQ(answer({"run", "--cluster", "lab", "swe"}), ":files");
  EXPECT_EQ(answer({"run", "flow.yaml", ""}), "") << "a step is nothing that can be looked up";
  EXPECT_EQ(answer({"logs", "di"}), "digits-2");
  EXPECT_EQ(answer({"logs", "digits-2/1"}), "digits-2/1 digits-2/17");
  EXPECT_EQ(answer({"logs", "digits-2", ""}), "") << "there is one positional";
  EXPECT_EQ(answer({"compare", "digits-1", "digits-2", "d"}), "digits-2 digits-1");
}

TEST(Completion, ACommandBehindDashesIsTheShells) {
  EXPECT_EQ(answer({"run", "--cpu", "1", "--", "py"}), ":commands");
  EXPECT_EQ(answer({"run", "--", "python3", "tr"}), ":files");
  EXPECT_EQ(answer({"run", "--"}), "--help --cluster --cache --detach");
}

}  // namespace
}  // namespace berth::cli
