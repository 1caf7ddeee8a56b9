// The output of berth cluster: JSON to the byte, and the tables and errors of its text.
#include <gtest/gtest.h>

#include "berth/render/machines/clusters.h"

namespace berth::render {
namespace {

Resources some_cores(std::int64_t thousandths) {
  Resources resources;
  resources.set(Known::cpu, thousandths);
  return resources;
}

/// The JSON of the only cluster within that of all, under this key.
std::string json_within(const engine::ProbedClusters& probed, std::string_view key) {
  const std::string all = to_json(probed), begin = fmt::format("\"{}\":[{{", key);
  const auto at = all.find(begin);
  if (at == std::string::npos) return all;
  const auto from = at + begin.size() - 1;
  const auto rest = all.find(key == "ec2" ? "],\"slurm\"" : "],\"errors\"", from);
  return all.substr(from, rest - from);
}

std::string slurm_json(const engine::SlurmProbed& probed) {
  return json_within({.slurm = {probed}}, "slurm");
}

std::string ec2_json(const engine::Ec2Probed& probed) {
  return json_within({.ec2 = {probed}}, "ec2");
}

TEST(ClusterJson, SlurmPartitions) {
  engine::SlurmProbed probed{.cluster = "h\"pc",
                             .partitions = std::vector<remote::SlurmPartition>{}};
  EXPECT_EQ(slurm_json(probed), R"({"cluster":"h\"pc","partitions":[]})");
  probed.partitions->push_back({.name = "gpu",
                                .standard = true,
                                .longest = std::chrono::hours(2),
                                .nodes = 3,
                                .idle = 1,
                                .down = 1,
                                .free = some_cores(1500),
                                .total = some_cores(4000),
                                .gpus = {{"a100", 4}, {"", 2}}});
  probed.partitions->push_back({.name = "slow", .open = false});
  EXPECT_EQ(slurm_json(probed),
            R"({"cluster":"h\"pc","partitions":[{"name":"gpu","standard":true,"open":true,)"
            R"("time_limit_s":7200,"nodes":3,"idle":1,"down":1,"free":{"cpu":1.5},)"
            R"("total":{"cpu":4},"gpus":[{"type":"a100","count":4},{"type":"","count":2}]},)"
            R"({"name":"slow","standard":false,"open":false,"time_limit_s":null,"nodes":0,)"
            R"("idle":0,"down":0,"free":{},"total":{},"gpus":[]}]})");
  probed.partitions = fail(ErrorKind::io, "no \"sinfo\"");
  EXPECT_EQ(slurm_json(probed), R"({"cluster":"h\"pc","error":"no \"sinfo\""})");
}

TEST(ClusterText, AnUnknownPartitionIsNamedAfterTheTableOfTheOthers) {
  engine::SlurmProbed probed{.cluster = "hpc", .partitions = std::vector<remote::SlurmPartition>{}};
  probed.entry = fail(ErrorKind::invalid, "c.yaml:3: hpc.partitions: partition 'x' does not exist");
  const std::string error = "c.yaml:3: hpc.partitions: partition 'x' does not exist\n";
  EXPECT_EQ(to_text(probed), error) << "without a table that has headings only";
  EXPECT_EQ(slurm_json(probed),
            R"({"cluster":"hpc","error":"c.yaml:3: hpc.partitions: partition 'x' does not exist",)"
            R"("partitions":[]})");
  probed.partitions->push_back({.name = "gpu", .nodes = 1, .gpus = {{"a100", 4}, {"", 2}}});
  const std::string text = to_text(probed);
  EXPECT_TRUE(text.starts_with("cluster  partition")) << text;
  EXPECT_TRUE(text.contains("4 a100, 2 GPUs")) << text;
  EXPECT_TRUE(text.ends_with("none\n" + error)) << text;
}

TEST(ClusterText, HostsThatDoNotAnswerAreLinesAfterTheTable) {
  engine::HostProbed good{"lab", "a", agent::MachineOffer{}};
  good.offer->system = "Linux";
  good.offer->devices = {"H100", "", "H100", ""};
  const engine::HostProbed bad{"lab", "b:22", fail(ErrorKind::io, "Connection refused")};
  EXPECT_EQ(to_text(std::vector{bad}), "lab/b:22: Connection refused\n");
  EXPECT_EQ(to_text(std::vector{bad, good}),
            "cluster  host  free  GPUs            system  used by\n"
            "lab      a           2 H100, 2 GPUs  Linux\n"
            "lab/b:22: Connection refused\n");
  good.offer->devices = {""};
  EXPECT_TRUE(to_text(std::vector{good}).contains("1 GPU  ")) << to_text(std::vector{good});
}

TEST(ClusterJson, InstancesOfEc2) {
  engine::Ec2Probed probed{.cluster = "cloud"};
  EXPECT_EQ(ec2_json(probed), R"({"cluster":"cloud","permissions":[],"instances":[]})");
  probed.permissions = {{"RunInstances", {}}, {"Terminate", fail(ErrorKind::denied, "not \\ you")}};
  probed.instances = {{"i-1", "digits-3", "g5.xlarge", "running", "10.0.0.7"}, {}};
  EXPECT_EQ(
      ec2_json(probed),
      R"({"cluster":"cloud","permissions":[{"action":"RunInstances","allowed":true,"why":""},)"
      R"({"action":"Terminate","allowed":false,"why":"not \\ you"}],"instances":[)"
      R"({"id":"i-1","run":"digits-3","type":"g5.xlarge","state":"running",)"
      R"("address":"10.0.0.7"},{"id":"","run":"","type":"","state":"","address":""}]})");
}

}  // namespace
}  // namespace berth::render
