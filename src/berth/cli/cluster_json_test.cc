// The shapes of what berth cluster prints for programs, to the byte.
#include <gtest/gtest.h>

#include "berth/cli/cluster_ec2.h"
#include "berth/cli/cluster_slurm.h"

namespace berth::cli {
namespace {

Resources some_cores(std::int64_t thousandths) {
  Resources resources;
  resources.set(Known::cpu, thousandths);
  return resources;
}

TEST(ClusterJson, SlurmPartitions) {
  SlurmProbed probed{.cluster = "h\"pc", .partitions = std::vector<remote::SlurmPartition>{}};
  EXPECT_EQ(to_json(probed), R"({"cluster":"h\"pc","partitions":[]})");
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
  EXPECT_EQ(to_json(probed),
            R"({"cluster":"h\"pc","partitions":[{"name":"gpu","standard":true,"open":true,)"
            R"("time_limit_s":7200,"nodes":3,"idle":1,"down":1,"free":{"cpu":1.5},)"
            R"("total":{"cpu":4},"gpus":[{"type":"a100","count":4},{"type":"","count":2}]},)"
            R"({"name":"slow","standard":false,"open":false,"time_limit_s":null,"nodes":0,)"
            R"("idle":0,"down":0,"free":{},"total":{},"gpus":[]}]})");
  probed.partitions = fail(ErrorKind::io, "no \"sinfo\"");
  EXPECT_EQ(to_json(probed), R"({"cluster":"h\"pc","error":"no \"sinfo\""})");
}

TEST(ClusterJson, InstancesOfEc2) {
  Ec2Probed probed{.cluster = "cloud"};
  EXPECT_EQ(to_json(probed), R"({"cluster":"cloud","permissions":[],"instances":[]})");
  probed.permissions = {{"RunInstances", {}}, {"Terminate", fail(ErrorKind::denied, "not \\ you")}};
  probed.instances = {{"i-1", "digits-3", "g5.xlarge", "running", "10.0.0.7"}, {}};
  EXPECT_EQ(
      to_json(probed),
      R"({"cluster":"cloud","permissions":[{"action":"RunInstances","allowed":true,"why":""},)"
      R"({"action":"Terminate","allowed":false,"why":"not \\ you"}],"instances":[)"
      R"({"id":"i-1","run":"digits-3","type":"g5.xlarge","state":"running",)"
      R"("address":"10.0.0.7"},{"id":"","run":"","type":"","state":"","address":""}]})");
}

}  // namespace
}  // namespace berth::cli
