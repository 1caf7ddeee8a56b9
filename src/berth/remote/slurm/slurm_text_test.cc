// What Slurm's commands print, as 22.05 prints it, and as it should not.
#include "berth/remote/slurm/slurm_text.h"

#include <gtest/gtest.h>

namespace berth::remote {
namespace {

using namespace std::chrono_literals;

TEST(SlurmText, NodesOfAPartition) {
  const auto nodes = read_slurm_nodes(
      "main*|up|infinite|2|idle|4|2000|0|(null)\n"
      "gpu|up|1-00:00:00|1|mixed|64|512000|1000|gpu:a100:4(S:0-1),gpu:v100:2,nic:1\n"
      "old|inact|30:00|3|down*|8+|1000+|0|gpu:2\n");
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 3U);
  EXPECT_EQ((*nodes)[0], (SlurmNodes{.partition = "main",
                                     .standard = true,
                                     .open = true,
                                     .longest = {},
                                     .count = 2,
                                     .state = "idle",
                                     .cpus = 4,
                                     .mem = 2000 * kMiB,
                                     .disk = 0,
                                     .gpus = {}}));
  EXPECT_EQ((*nodes)[1].longest, 24h);
  EXPECT_EQ((*nodes)[1].gpus, (std::vector<SlurmGpus>{{"a100", 4}, {"v100", 2}}));
  EXPECT_EQ((*nodes)[2].cpus, 8);
  EXPECT_EQ((*nodes)[2].longest, 30min);
  EXPECT_EQ((*nodes)[2].gpus, (std::vector<SlurmGpus>{{"", 2}}));
  EXPECT_TRUE(works((*nodes)[0]) && works((*nodes)[1]));
  EXPECT_FALSE(works((*nodes)[2]));
}

TEST(SlurmText, JobsAndTheirPhases) {
  const auto jobs = read_slurm_jobs(
      "1|RUNNING|None|364-23:59:59|n1|main|cpu=2,mem=1.50G,node=1,billing=2,gres/gpu=2,gres/"
      "gpu:a100=2|\n"
      "2|PENDING|Resources|UNLIMITED|n/a|gpu|cpu=1,mem=100M,node=1,billing=1,gres/gpu=1|\n"
      "3|COMPLETING|None|0:00|n2|main|N/A|\n"
      "4|NODE_FAIL|NodeFail|0:10||main|cpu=1|\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 4U);
  const SlurmJob& first = jobs->front();
  EXPECT_EQ(first.left, 364 * 24h + 23h + 59min + 59s);
  EXPECT_EQ(first.node, "n1");
  EXPECT_EQ(first.mem, 1536 * kMiB);
  EXPECT_EQ(first.gpus, (std::vector<SlurmGpus>{{"a100", 2}}));
  EXPECT_EQ((*jobs)[1].node, "");
  EXPECT_EQ((*jobs)[1].left, std::nullopt);
  EXPECT_EQ((*jobs)[1].gpus, (std::vector<SlurmGpus>{{"", 1}}));
  const std::vector phases{SlurmPhase::runs, SlurmPhase::waits, SlurmPhase::ending,
                           SlurmPhase::over};
  for (std::size_t i = 0; i < phases.size(); ++i) EXPECT_EQ(phase_of((*jobs)[i]), phases[i]);
  EXPECT_EQ(ended_because((*jobs)[3]), "its node failed");
  EXPECT_EQ(ended_because(first), "");
}

TEST(SlurmText, NonsenseIsNamed) {
  for (const char* text :
       {"main*|up|infinite|2|idle|4|2000|0", "main|up|never|1|idle|4|1|0|(null)",
        "|up|1:00|1|idle|4|1|0|", "m|up|1:00|-1|idle|4|1|0|",
        "m|up|1:00|1|idle|99999999999999999999|1|0|", "m|up|1:00|1|idle|1|9223372036854775807|0|"})
    EXPECT_FALSE(read_slurm_nodes(text)) << text;
  for (const char* text :
       {"x|RUNNING|None|1:00|n1|main|cpu=1|", "1|RUNNING|None|1:00|n1|",
        "1|RUNNING|None|1:00|n1|main|cpu=no|", "1|RUNNING|None|1|n1|main|cpu=1|"})
    EXPECT_FALSE(read_slurm_jobs(text)) << text;
  for (const char* text : {"", "0", "-3", "seventeen", "17 18"})
    EXPECT_FALSE(read_slurm_job_id(text)) << text;
  EXPECT_EQ(read_slurm_job_id("17\n"), 17);
  EXPECT_EQ(read_slurm_job_id("17;bed\n"), 17);
}

TEST(SlurmText, PartitionsAreTheSumOfTheirNodes) {
  const auto partitions = read_slurm_partitions(
      "main*|up|2:00|mixed|3/1/0/4|2000|500|gpu:a100:2(S:0)|gpu:a100:1(IDX:0)|\n"
      "main*|up|2:00|idle|0/4/0/4|2000|0|gpu:a100:2(S:0)|gpu:a100:0(IDX:N/A)|\n"
      "main*|up|2:00|down*|0/0/4/4|2000|0|(null)|gpu:0|\n"
      "old|down|infinite|idle|0/8/0/8|100|0|(null)|gpu:0|\n");
  ASSERT_TRUE(partitions) << partitions.error().message;
  ASSERT_EQ(partitions->size(), 2U);
  const auto& first = partitions->front();
  EXPECT_EQ(first.name, "main");
  EXPECT_TRUE(first.standard && first.open);
  EXPECT_EQ(first.longest, std::optional<Duration>(2min));
  EXPECT_EQ(std::tuple(first.nodes, first.idle, first.down), std::tuple(3, 1, 1));
  EXPECT_EQ(first.total.get(Known::cpu), 12'000);
  EXPECT_EQ(first.free.get(Known::cpu), 5'000);
  EXPECT_EQ(first.free.get(Known::mem), 3500LL << 20);
  EXPECT_EQ(first.free.get(Known::gpu), 3);
  EXPECT_EQ(first.gpus, (std::vector<SlurmGpus>{{"a100", 4}}));
  EXPECT_FALSE(partitions->back().open);
  for (const char* text : {"m|up|1:00|idle|1/2/3|1|0||", "m|up|1:00|idle|1/x/1/4|1|0|||",
                           "|up|1:00|idle|0/1/0/1|1|0|||", "m|up|1:00|idle"})
    EXPECT_FALSE(read_slurm_partitions(text)) << text;
}

TEST(SlurmText, MissingPartitionsAreNamedWithNearAndExistingOnes) {
  const std::vector<std::string> existing{"main", "gpu", "long"};
  const auto text = [&](std::vector<std::string> named) {
    return missing_partitions(named, existing);
  };
  EXPECT_EQ(text({"main", "gpu"}), "");
  EXPECT_EQ(text({"gup", "main"}), "partition 'gup' does not exist; Slurm has gpu, long, main");
  EXPECT_EQ(text({"Long", "mains", "a\n"}),
            "partition 'Long' does not exist (did you mean 'long'?), partition 'mains' does not "
            "exist (did you mean 'main'?), partition 'a\\x0a' does not exist; Slurm has gpu, long, "
            "main");
  EXPECT_EQ(missing_partitions(existing, {}).substr(0, 60),
            "partition 'main' does not exist, partition 'gpu' does not ex");
  EXPECT_TRUE(missing_partitions(existing, {}).ends_with("; Slurm has no partitions"));
  EXPECT_TRUE(text({"x"}).ends_with("; Slurm has gpu, long, main"));
  EXPECT_TRUE(missing_partitions(existing, std::vector<std::string>(23, "other"))
                  .ends_with("other and 3 more"));
  EXPECT_EQ(no_default_partition(existing),
            "Slurm has no default partition; add `partitions` to the cluster; Slurm has gpu, long, "
            "main");
  EXPECT_EQ(no_default_partition({}), "Slurm has no partitions");
}

TEST(SlurmText, TimesComeBack) {
  for (const Duration each : {Duration(0s), Duration(59s), Duration(61s), Duration(49h + 3s)})
    EXPECT_EQ(*read_slurm_time(slurm_time(each)), each);
  EXPECT_EQ(slurm_time(1500ms), "0-00:00:02");
}

TEST(SlurmText, ComplaintsMeanSomething) {
  EXPECT_EQ(trouble_of("slurm_load_jobs error: Invalid job id specified"),
            SlurmTrouble::no_such_job);
  EXPECT_EQ(trouble_of("sbatch: error: Batch job submission failed: Unable to contact slurm "
                       "controller (connect failure)"),
            SlurmTrouble::unreachable);
  EXPECT_EQ(trouble_of("sbatch: error: invalid partition specified: nowhere\nsbatch: error: Batch "
                       "job submission failed: Invalid partition name specified"),
            SlurmTrouble::refused);
  EXPECT_EQ(trouble_of("sbatch: error: Batch job submission failed: Job violates accounting/QOS "
                       "policy (job submit limit, user's size and/or time limits)"),
            SlurmTrouble::not_now);
  EXPECT_EQ(trouble_of("Segmentation fault"), SlurmTrouble::other);
  EXPECT_EQ(gist_of("\nsbatch: error: Invalid account\nmore"), "Invalid account");
  EXPECT_EQ(gist_of(""), "no error message");
}

TEST(SlurmText, NamesCannotBeMoreThanNames) {
  const std::vector<std::pair<std::string, std::string>> labels{
      {"run", "digits-3"}, {"program", "flow"}, {"team", "a; b"}};
  EXPECT_EQ(slurm_comment(labels), "digits-3,team=a__b");
  EXPECT_EQ(slurm_name("digits-3"), "digits-3");
  EXPECT_EQ(slurm_name("-x; rm -rf $HOME\n'\"|"), "_x__rm_-rf__HOME____");
  EXPECT_EQ(slurm_name(std::string(1000, 'a')).size(), 100U);
  EXPECT_TRUE(plain_slurm_word("gpu:a100:2"));
  for (const char* word :
       {"", "--wrap=x", "a b", "a\nb", "$(id)", "`id`", "a;b", "a'b", "a\"b", "a\\b"})
    EXPECT_FALSE(plain_slurm_word(word)) << word;
}

TEST(SlurmHolders, AreBerthsRunsAndOthersByTheirUsers) {
  const auto holders = read_slurm_holders(
      "main|RUNNING|me|berth-hpc-0123456789abcdef|digits-3,team=a\n"
      "gpu,main|PENDING|alice|train|a|b\n\n");
  ASSERT_TRUE(holders) << holders.error().message;
  EXPECT_EQ(*holders, (std::vector<SlurmHolder>{
                          {.partition = "main", .user = "me", .run = "digits-3"},
                          {.partition = "gpu,main", .user = "alice", .run = "", .waits = true}}));
  EXPECT_FALSE(read_slurm_holders("main|RUNNING|me\n"));
}

}  // namespace
}  // namespace berth::remote
