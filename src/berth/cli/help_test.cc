#include <gtest/gtest.h>

#include "berth/base/text.h"
#include "berth/cli/command_help.h"
#include "berth/cli/options.h"

namespace berth::cli {
namespace {

struct RunOwn {
  std::string file, mode;
  int parallel = 0;
  bool json = false, plan = false, detach = false;

  void add_to(Options& options) {
    options.json(json);
    options.value("FILE", file, "Experiment").required();
    options.group("Scheduling");
    options
        .value("-j,--parallel", parallel, "Run at most N tasks in parallel, however many there are")
        .between(1, 100);
    options.value("--mode", mode, "Select the mode").named("MODE").one_of({"slow", "fast"});
    options.flag("--detach", detach, "Run in the background");
    options.flag("--plan", plan, "Show the plan").excludes("--detach");
  }
};

struct NoOwn {
  void add_to(Options&) {}
};

struct HiddenOwn {
  void add_to(Options& options) { options.hide(); }
};

template <typename Own>
Result<int> succeed(os::Env&, const Own&) {
  return 0;
}

std::vector<Command> some_commands() {
  Command cluster = command("cluster", "Use clusters", succeed<NoOwn>).in("Machines");
  const auto declare = cluster.declare;
  cluster.declare = [declare](Options& options) {
    options.actions();
    return declare(options);
  };
  return {command("", "", succeed<NoOwn>).alias("ps"),
          command("run", "Start a run", succeed<RunOwn>).in("Run"),
          command("stop", "Stop a run", succeed<NoOwn>).in("Run").alias("cancel"),
          command("cache", "Clean the cache", succeed<NoOwn>).in("Manage"),
          std::move(cluster),
          command("cluster add", "Add a cluster", succeed<NoOwn>),
          command("agent", "Work", succeed<HiddenOwn>).in("Setup")};
}

std::string said(std::vector<const char*> words, int width = kDefaultWidth) {
  words.insert(words.begin(), "berth");
  const auto all = some_commands();
  const auto read = read_command_line(all, static_cast<int>(words.size()), words.data(), width);
  if (!read) return read.error().message;
  const auto* printout = std::get_if<Printout>(&*read);
  return printout != nullptr ? printout->text : "runs";
}

TEST(Help, ListsCommandsByGroupWithoutHiddenOnes) {
  const auto text = said({"--help"});
  EXPECT_NE(text.find("\nRun:\n  run         Start a run\n  stop        Stop a run\n\nManage:\n"),
            text.npos)
      << text;
  EXPECT_EQ(text.find("agent"), text.npos);
  EXPECT_EQ(text.find("add"), text.npos);
  EXPECT_EQ(said({"help"}), text);
}

TEST(Help, GroupsAndWrapsOptions) {
  EXPECT_EQ(said({"run", "--help"}, 60),
            "Start a run\n"
            "\n"
            "Usage: berth run [OPTIONS] FILE\n"
            "\n"
            "Arguments:\n"
            "  FILE              Experiment\n"
            "\n"
            "Scheduling:\n"
            "  -j, --parallel N  Run at most N tasks in parallel, however\n"
            "                    many there are\n"
            "  --mode MODE       Select the mode (slow, fast)\n"
            "  --detach          Run in the background\n"
            "  --plan            Show the plan\n"
            "\n"
            "General options:\n"
            "  --json            Print JSON in a stable format\n"
            "  -h, --help        Show this help\n");
  EXPECT_EQ(said({"help", "run"}, 60), said({"run", "-h"}, 60));
}

TEST(Help, ShowsAliasesAndActions) {
  EXPECT_NE(said({"stop", "--help"}).find("\nAlias: cancel\n"), std::string::npos);
  const auto cluster = said({"cluster", "--help"});
  EXPECT_NE(cluster.find("\nUsage: berth cluster [OPTIONS] ACTION\n"), cluster.npos) << cluster;
  EXPECT_NE(cluster.find("\nActions:\n  add         Add a cluster\n"), cluster.npos) << cluster;
  EXPECT_EQ(said({"help", "cluster", "add"}), said({"cluster", "add", "--help"}));
}

TEST(CommandLine, KnowsAliases) {
  for (const char* alias : {"ps", "cancel", "stop"}) EXPECT_EQ(said({alias}), "runs") << alias;
}

TEST(CommandLine, SuggestsOnlyNearNames) {
  EXPECT_EQ(said({"rnu"}), "unknown command 'rnu'; see berth --help");
  EXPECT_EQ(said({"stopp"}), "unknown command 'stopp'; did you mean 'stop'?; see berth --help");
  EXPECT_EQ(said({"clus"}), "unknown command 'clus'; did you mean 'cluster'?; see berth --help");
  EXPECT_EQ(said({"help", "stopp"}),
            "unknown command 'stopp'; did you mean 'stop'?; see berth --help");
  EXPECT_EQ(said({"candle"}), "unknown command 'candle'; see berth --help");
  EXPECT_EQ(said({"cluster", "ad"}),
            "unknown action 'ad'; did you mean 'add'?; see berth cluster --help");
  EXPECT_EQ(said({"run", "f", "--paralel", "2"}),
            "unknown option '--paralel'; did you mean '--parallel'?; see berth run --help");
  EXPECT_EQ(said({"run", "f", "--zzz=1"}), "unknown option '--zzz'; see berth run --help");
  EXPECT_EQ(said({"stop", "x"}), "unexpected argument 'x'; see berth stop --help");
}

TEST(CommandLine, NamesExpectedAndGivenValues) {
  EXPECT_EQ(said({"run"}), "FILE is required; see berth run --help");
  EXPECT_EQ(said({"run", "f", "-j", "0"}),
            "--parallel: expected a whole number from 1 to 100, got '0'; see berth run --help");
  EXPECT_EQ(said({"run", "f", "-j", "many"}),
            "--parallel: expected a whole number from 1 to 100, got 'many'; see berth run --help");
  EXPECT_EQ(said({"run", "f", "--mode", "fats"}),
            "--mode: expected slow or fast, got 'fats'; see berth run --help");
  EXPECT_EQ(said({"run", "f", "--mode"}), "--mode needs a value: MODE; see berth run --help");
  EXPECT_EQ(said({"run", "f", "-j", "1", "-j", "2"}),
            "--parallel was given more than once; see berth run --help");
  EXPECT_EQ(said({"run", "f", "--plan", "--detach"}),
            "--detach and --plan cannot be combined; see berth run --help");
  EXPECT_EQ(said({"cluster"}), "cluster needs an action: add; see berth cluster --help");
}

TEST(CommandLine, RefusesJsonWhereThereIsNone) {
  EXPECT_EQ(said({"run", "f", "--json"}), "runs");
  EXPECT_EQ(said({"--json", "stop"}), "stop has no --json; see berth stop --help");
}

}  // namespace
}  // namespace berth::cli
