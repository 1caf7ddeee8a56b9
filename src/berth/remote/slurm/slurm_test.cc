// A Slurm cluster on a Slurm of paper: what is asked of it, and what comes of each of its answers.
#include "berth/remote/slurm/slurm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/remote/slurm/slurm_commands.h"
#include "berth/testing/fake_env.h"

namespace berth::remote {
namespace {

using namespace std::chrono_literals;

cluster::Wish labelled_wish(std::int64_t cores, std::int64_t width = 1, std::int64_t gpus = 0) {
  cluster::Wish wish{.requirements = {{}, width}, .labels = {{"run", "digits-3"}}};
  wish.requirements.min.set(Known::cpu, cores * 1000);
  if (gpus > 0) wish.requirements.min.set(Known::gpu, gpus);
  return wish;
}

/// Answers the commands as 22.05 does.
struct PaperSlurm {
  struct Job {
    std::int64_t number = 0;
    std::string name, partition, state = "PENDING", left = "UNLIMITED";
    std::vector<std::string> words;
  };
  std::string nodes =
      "main*|up|infinite|2|idle|4|2000|0|(null)\ngpu|up|1:00:00|1|idle|8|4000|0|gpu:a100:2\n";
  std::vector<Job> jobs;
  std::set<std::int64_t> cancelled;
  std::string refuses;           // a partition
  bool silent = false;           // the controller
  bool forgets_answers = false;  // of sbatch: it did what it was asked, and says nothing
  bool agent_comes = true;
  Duration takes = 1ms;  // each command
  std::int64_t next = 17;
  std::map<std::string, int> calls;

  os::FakeProgram operator()(const os::SpawnSpec& spec) {
    auto answers = answer(spec.argv);
    answers.duration = takes;
    return answers;
  }
  os::FakeProgram answer(const std::vector<std::string>& words) {
    ++calls[words[0]];
    if (silent && words[0].starts_with('s'))
      return {.err = words[0] + ": error: Unable to contact slurm controller (connect failure)\n",
              .exit_code = 1};
    if (words[0] == "sinfo") return {.out = nodes};
    if (words[0] == "sbatch") return submit(words);
    if (words[0] == "squeue") return list();
    if (words[0] == "scancel") return cancel(words);
    if (words[0] == "srun") return {.exit_code = agent_comes ? 0 : 66};
    return {};
  }
  static std::string value(const std::vector<std::string>& words, std::string_view name) {
    for (const auto& word : words)
      if (word.starts_with(name)) return word.substr(name.size());
    return "";
  }
  os::FakeProgram submit(const std::vector<std::string>& words) {
    const auto partition = value(words, "--partition=");
    if (partition == refuses)
      return {.err =
                  "sbatch: error: Batch job submission failed: Invalid account or "
                  "account/partition combination specified\n",
              .exit_code = 1};
    jobs.push_back({.number = next++,
                    .name = value(words, "--job-name="),
                    .partition = partition,
                    .words = words});
    if (forgets_answers)
      return {.err =
                  "sbatch: error: Batch job submission failed: Socket timed out on send/recv "
                  "operation\n",
              .exit_code = 1};
    return {.out = fmt::format("{}\n", jobs.back().number)};
  }
  os::FakeProgram list() const {
    std::string out;
    for (const auto& job : jobs)
      out += fmt::format("{}|{}|None|{}|{}|{}|cpu=1,mem=100M,node=1|\n", job.number, job.state,
                         job.left, job.state == "RUNNING" ? "n1" : "n/a", job.partition);
    return {.out = out};
  }
  os::FakeProgram cancel(const std::vector<std::string>& words) {
    for (const auto& word : words)
      if (const auto number = parse_integer(word)) cancelled.insert(*number);
    std::erase_if(jobs, [&](const Job& job) { return cancelled.contains(job.number); });
    return {};
  }
  void run_all() {
    for (auto& job : jobs)
      if (job.state == "PENDING") job.state = "RUNNING";
  }
};

class SlurmTest : public testing::Test {
 protected:
  SlurmTest() {
    env_.program = [this](const os::SpawnSpec& spec) { return paper_(spec); };
  }
  std::unique_ptr<Slurm> cluster(SlurmOptions options = {}) {
    options.name = "lab";
    options.directory = "/home/a/places";
    options.program = "/opt/berth agent";
    return std::make_unique<Slurm>(env_, std::move(options));
  }
  /// Asks until something comes that is not busy.
  Result<cluster::Alloc> ask(Slurm& slurm, const cluster::Wish& wanted, Duration timeout = 30s) {
    const Mono until = env_.now() + timeout;
    for (;;) {
      auto alloc = slurm.allocate(wanted);
      if (alloc || alloc.error().kind != ErrorKind::busy || env_.now() >= until) return alloc;
      wait(slurm, std::min(until, slurm.retry_at()));
    }
  }
  void pass(Slurm& slurm, Duration time) {
    for (const Mono until = env_.now() + time; env_.now() < until;) wait(slurm, until);
  }
  void wait(Slurm& slurm, Mono until) {
    (void)env_.loop().turn(std::min(until, slurm.tend().value_or(until)));
  }
  os::FakeEnv env_{1};
  PaperSlurm paper_;
};

TEST_F(SlurmTest, AJobThatRunsIsAnAlloc) {
  const auto slurm = cluster({.account = "physics", .time_limit = 30min, .flags = {"--qos=long"}});
  EXPECT_EQ(ask(*slurm, labelled_wish(2), 2s).error().kind, ErrorKind::busy);
  ASSERT_EQ(paper_.jobs.size(), 1U);
  const auto words = paper_.jobs[0].words;
  for (const char* word : {"--partition=main", "--cpus-per-task=2", "--account=physics",
                           "--time=0-00:30:00", "--qos=long", "--no-requeue", "--comment=digits-3"})
    EXPECT_NE(std::ranges::find(words, word), words.end()) << word;
  paper_.run_all();
  paper_.jobs[0].left = "30:00";
  const auto alloc = ask(*slurm, labelled_wish(2));
  ASSERT_TRUE(alloc) << alloc.error().message;
  EXPECT_EQ(alloc->machine, "n1");
  EXPECT_EQ(alloc->block.resources.get(Known::cpu), 2000);
  ASSERT_TRUE(alloc->closes);
  EXPECT_LT(*alloc->closes, env_.now() + 29min + 1s);
  const auto lease_directory = slurm->lease_directory(alloc->id);
  ASSERT_TRUE(lease_directory);
  EXPECT_EQ(lease_directory->transport.words[4], "17");
  EXPECT_TRUE(lease_directory->path.starts_with("/home/a/places/"));
  ASSERT_TRUE(slurm->keepalive(alloc->id));
  ASSERT_TRUE(slurm->free(alloc->id));
  pass(*slurm, 1s);
  EXPECT_TRUE(paper_.cancelled.contains(17));
  EXPECT_EQ(slurm->keepalive(alloc->id).error().kind, ErrorKind::stale);
  EXPECT_EQ(paper_.calls["/opt/berth agent"], 1) << "the guard";
}

TEST_F(SlurmTest, WhatNoPartitionHasIsImpossibleBeforeAnythingIsAsked) {
  const auto slurm = cluster({.partitions = {"main", "gpu", "old"}});
  const auto error = ask(*slurm, labelled_wish(9)).error();
  EXPECT_EQ(error.kind, ErrorKind::impossible);
  for (const char* part : {"partition main", "partition gpu", "9 cores requested; a node has",
                           "partition 'old' does not exist; Slurm has gpu, main"})
    EXPECT_NE(error.message.find(part), std::string::npos) << part << " in " << error.message;
  EXPECT_EQ(ask(*slurm, labelled_wish(1, 1, 3)).error().kind, ErrorKind::impossible);
  EXPECT_EQ(paper_.calls["sbatch"], 0);
  const auto longer = cluster({.partitions = {"gpu"}, .time_limit = 24h});
  EXPECT_NE(ask(*longer, labelled_wish(1)).error().message.find("time limit"), std::string::npos);
}

TEST_F(SlurmTest, NodesThatComeUpAreSoonSeen) {
  paper_.nodes = "main*|up|infinite|2|down*|4|2000|0|(null)\n";
  const auto slurm = cluster();
  EXPECT_EQ(ask(*slurm, labelled_wish(1), 3s).error().kind, ErrorKind::busy);
  EXPECT_EQ(paper_.calls["sinfo"], 1);
  paper_.nodes = "main*|up|infinite|2|idle|4|2000|0|(null)\n";
  (void)ask(*slurm, labelled_wish(1), 6s);
  EXPECT_EQ(paper_.jobs.size(), 1U);
}

TEST_F(SlurmTest, GpusComeFromThePartitionThatHasThem) {
  const auto slurm = cluster({.partitions = {"main", "gpu"}});
  (void)ask(*slurm, labelled_wish(1, 1, 2), 2s);
  ASSERT_EQ(paper_.jobs.size(), 1U);
  EXPECT_EQ(PaperSlurm::value(paper_.jobs[0].words, "--gres="), "gpu:a100:2");
  EXPECT_EQ(paper_.jobs[0].partition, "gpu");
}

TEST_F(SlurmTest, AWideNeedIsSeveralJobsAsLargeAsANode) {
  const auto slurm = cluster({.most = 3});
  (void)ask(*slurm, labelled_wish(1, 20), 3s);
  ASSERT_EQ(paper_.jobs.size(), 3U);
  for (const auto& job : paper_.jobs)
    EXPECT_EQ(PaperSlurm::value(job.words, "--cpus-per-task="), "4");
}

TEST_F(SlurmTest, WhatEveryPartitionRefusesIsDenied) {
  paper_.refuses = "main";
  const auto slurm = cluster();
  const auto refused = ask(*slurm, labelled_wish(1), 20s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::denied);
  EXPECT_EQ(refused.error().message,
            "partition main: sbatch: Batch job submission failed: Invalid account or "
            "account/partition combination specified");
}

TEST(SlurmError, NamesTheProgramOnceAndSaysWhatToDo) {
  const auto message = [](CommandEnd outcome) { return slurm_error("sbatch", outcome).message; };
  EXPECT_EQ(message({.error = Error{ErrorKind::busy, "sbatch: no answer within 30s"}}),
            "Slurm does not answer (sbatch: no answer within 30s); check it: scontrol ping");
  EXPECT_EQ(
      message({.error = Error{ErrorKind::not_found, "sbatch: no such program"}}),
      "sbatch was not found; install Slurm's commands on this machine, or add their directory "
      "to PATH");
  EXPECT_EQ(
      message({.exit_code = 1, .err = "sbatch: error: Unable to contact slurm controller\n"}),
      "Slurm does not answer (sbatch: Unable to contact slurm controller); check it: scontrol "
      "ping");
  EXPECT_EQ(message({.exit_code = 1,
                     .err = "sbatch: error: invalid partition specified: gup\nsbatch: error: Batch "
                            "job submission failed: Invalid partition name specified\n"}),
            "sbatch: invalid partition specified: gup");
  EXPECT_EQ(message({.exit_code = 66}), "sbatch: exit code 66");
}

TEST_F(SlurmTest, CardsAreChosenBySizeAndNotByName) {
  const auto slurm = cluster({.partitions = {"gpu"}});
  auto wanted = labelled_wish(1, 1, 1);
  wanted.selection.memory_min = std::int64_t{30} << 30;
  const auto untold = ask(*slurm, wanted, 2s);
  EXPECT_EQ(untold.error().kind, ErrorKind::impossible);
  EXPECT_NE(
      untold.error().message.find(
          "a gpu_mem_min of 30 GiB requested; a node has none (the devices do not report it)"),
      std::string::npos)
      << untold.error().message;
  wanted.selection = {.required = {"0"}};
  const auto by_name = slurm->allocate(wanted);
  EXPECT_EQ(by_name.error().kind, ErrorKind::impossible);
  EXPECT_EQ(
      by_name.error().message,
      "gpu_require, gpu_policy and gpu_objective: not supported, because Slurm chooses the cards");
}

TEST_F(SlurmTest, APartitionThatRefusesIsLeftAloneForAGrowingWhile) {
  paper_.refuses = "main";
  const auto slurm = cluster({.partitions = {"main", "gpu"}});
  (void)ask(*slurm, labelled_wish(1), 5s);
  ASSERT_EQ(paper_.jobs.size(), 1U);
  EXPECT_EQ(paper_.jobs[0].partition, "gpu");
  slurm->stop_waiting();
  const auto only = cluster({.partitions = {"main"}});
  const int before = paper_.calls["sbatch"];
  for (const Mono until = env_.now() + 10min; env_.now() < until;) {
    const auto alloc = only->allocate(labelled_wish(1));
    ASSERT_FALSE(alloc);
    wait(*only, only->retry_at());
  }
  EXPECT_LE(paper_.calls["sbatch"] - before, 8) << "5 s, 10 s, 20 s, … between them";
  EXPECT_GE(paper_.calls["sbatch"] - before, 6);
}

TEST_F(SlurmTest, AJobWhoseAgentDoesNotComeUpIsGivenBack) {
  paper_.agent_comes = false;
  const auto slurm = cluster();
  (void)ask(*slurm, labelled_wish(1), 1s);
  paper_.run_all();
  const auto error = ask(*slurm, labelled_wish(1), 3s).error();
  EXPECT_NE(error.message.find("does not start on n1"), std::string::npos) << error.message;
  EXPECT_TRUE(paper_.cancelled.contains(17));
}

TEST_F(SlurmTest, OnlyTheEndOfACommandWakesWhoWaitsForIt) {
  paper_.takes = 7s;
  const auto slurm = cluster();
  int changes = 0;
  slurm->on_change([&] { ++changes; });
  const Mono begin = env_.now();
  EXPECT_EQ(slurm->allocate(labelled_wish(1)).error().kind, ErrorKind::busy);
  EXPECT_FALSE(slurm->tend());
  EXPECT_GE(slurm->retry_at(), begin + 1min);
  ASSERT_TRUE(env_.loop().turn());
  EXPECT_EQ(env_.now(), begin + 7s);
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(slurm->allocate(labelled_wish(1)).error().message, "Slurm job in main");
}

TEST_F(SlurmTest, WhateverEndsAJobEndsItsAlloc) {
  for (const char* state : {"CANCELLED", "NODE_FAIL", "TIMEOUT", "PREEMPTED", "PENDING", ""}) {
    paper_.jobs.clear();
    const auto slurm = cluster();
    (void)ask(*slurm, labelled_wish(1), 1s);
    paper_.run_all();
    const auto alloc = ask(*slurm, labelled_wish(1));
    ASSERT_TRUE(alloc) << state;
    if (*state != 0)
      paper_.jobs[0].state = state;
    else
      paper_.jobs.clear();  // forgotten
    pass(*slurm, 12s);
    const auto kept = slurm->keepalive(alloc->id);
    ASSERT_FALSE(kept) << state;
    EXPECT_EQ(kept.error().kind, ErrorKind::stale);
    ASSERT_TRUE(slurm->free(alloc->id));
  }
}

TEST_F(SlurmTest, AControllerThatIsSilentLosesNothing) {
  const auto slurm = cluster();
  (void)ask(*slurm, labelled_wish(1), 1s);
  paper_.run_all();
  const auto alloc = ask(*slurm, labelled_wish(1));
  ASSERT_TRUE(alloc);
  paper_.silent = true;
  const int before = paper_.calls["squeue"];
  pass(*slurm, 2min);
  EXPECT_TRUE(slurm->keepalive(alloc->id));
  EXPECT_LE(paper_.calls["squeue"] - before, 12) << "in growing pauses";
  paper_.silent = false;
  pass(*slurm, 1min);
  EXPECT_TRUE(slurm->keepalive(alloc->id));
}

TEST_F(SlurmTest, AJobThatNobodyWasToldOfIsFoundAndCancelled) {
  paper_.forgets_answers = true;
  const auto slurm = cluster();
  (void)ask(*slurm, labelled_wish(1), 500ms);
  ASSERT_EQ(paper_.jobs.size(), 1U);
  paper_.forgets_answers = false;
  (void)ask(*slurm, labelled_wish(1), 5s);
  EXPECT_TRUE(paper_.cancelled.contains(17));
  EXPECT_EQ(paper_.jobs.size(), 1U) << "the one that was asked for again";
}

TEST_F(SlurmTest, NothingIsLeftInTheQueue) {
  auto slurm = cluster({.most = 4});
  (void)ask(*slurm, labelled_wish(1, 20), 3s);
  EXPECT_EQ(paper_.jobs.size(), 4U);
  paper_.jobs[0].state = "RUNNING";
  ASSERT_TRUE(ask(*slurm, labelled_wish(1)));
  slurm->stop_waiting();
  pass(*slurm, 1s);
  EXPECT_EQ(paper_.jobs.size(), 1U);
  slurm.reset();
  EXPECT_TRUE(paper_.jobs.empty());
}

TEST_F(SlurmTest, WhatOthersNamedIsNoMoreThanAName) {
  auto wanted = labelled_wish(1);
  wanted.labels = {{"run", "x'; touch /tmp/owned; $(reboot) --uid=0\n"}};
  auto slurm = cluster();
  (void)ask(*slurm, wanted, 1s);
  ASSERT_EQ(paper_.jobs.size(), 1U);
  EXPECT_EQ(PaperSlurm::value(paper_.jobs[0].words, "--comment="),
            "x___touch__tmp_owned____reboot__--uid_0_");
  for (const auto& word : paper_.jobs[0].words) {
    EXPECT_EQ(word.find("x'"), std::string::npos) << word;
    EXPECT_NE(word, "--uid=0");
  }
  EXPECT_NE(PaperSlurm::value(paper_.jobs[0].words, "--wrap=").find("'/opt/berth agent'"),
            std::string::npos);
}

TEST_F(SlurmTest, FaultsAnywhereNeitherCrashNorLeaveAnything) {
  for (int nth = 0; nth < 60; ++nth) {
    paper_.jobs.clear();
    int calls = 0;
    env_.fault = [&](std::string_view) -> std::optional<Error> {
      if (calls++ != nth) return std::nullopt;
      return Error{ErrorKind::io, "injected"};
    };
    {
      const auto slurm = cluster();
      (void)ask(*slurm, labelled_wish(1), 1s);
      paper_.run_all();
      (void)ask(*slurm, labelled_wish(1), 5s);
    }
    env_.fault = nullptr;
    // What could not be cancelled is the guard's.
    EXPECT_LE(paper_.jobs.size(), 1U) << nth;
    EXPECT_EQ(env_.processes_alive(), 0U) << nth;
  }
}

}  // namespace
}  // namespace berth::remote
