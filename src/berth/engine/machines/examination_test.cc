#include "berth/engine/machines/examination.h"

#include <gtest/gtest.h>

#include "berth/error.h"
#include "berth/run/state/layout.h"
#include "berth/testing/fake_env.h"

namespace berth::engine {
namespace {

using State = Finding::State;

std::string agent_version() {
  return "berth-agent " + std::string(version()) + "\n";
}

machine::Devices one_card() {
  machine::Devices devices;
  devices.topology.source = "nvml";
  topology::Device& card = devices.topology.devices.emplace_back();
  card.uuid = "GPU-a";
  card.model = "H100";
  card.memory = std::int64_t{80} << 30;
  return devices;
}

void put_card(os::FakeEnv& env, const char* vendor, const char* kind) {
  env.put("/sys/bus/pci/devices/0000:01:00.0/vendor", std::string(vendor) + "\n");
  env.put("/sys/bus/pci/devices/0000:01:00.0/class", std::string(kind) + "\n");
}

TEST(Examination, VersionsOfBerthAndItsAgentAreTheSame) {
  os::FakeEnv env;
  env.put("/proc/sys/kernel/osrelease", "6.1.0-9\n");
  const auto finding = examine_versions(env, agent_version(), "2.36");
  EXPECT_EQ(finding.state, State::good);
  EXPECT_NE(finding.found.find("Linux 6.1.0-9, glibc 2.36"), std::string::npos);
  EXPECT_EQ(examine_versions(env, std::string("berth-agent 0.0.1\n"), "2.36").state, State::faulty);
  EXPECT_EQ(examine_versions(env, fail(ErrorKind::not_found, "no agent"), "2.36").state,
            State::faulty);
}

TEST(Examination, LimitsThatAreAdviceHaveAWayOut) {
  os::FakeEnv env;
  env.uid = 1000;
  EXPECT_EQ(examine_limits(env, {"cpuset, memory, pids, cpu by cgroup v2", "below our group", true})
                .state,
            State::good);
  EXPECT_EQ(examine_limits(env, {"by cgroup v2", "in a scope", false}).state, State::good);
  const auto part = examine_limits(env, {"memory, pids by cgroup v2", "", true});
  EXPECT_EQ(part.state, State::faulty);
  EXPECT_TRUE(part.found.ends_with("; not cpuset, cpu")) << part.found;
  EXPECT_NE(part.advice.find("Delegate="), std::string::npos);

  const LimitsReport none{"", "not delegated", true};
  EXPECT_NE(examine_limits(env, none).advice.find("/sys/fs/cgroup/berth"), std::string::npos);
  ASSERT_TRUE(env.make_directory("/run/systemd/system", 0755));
  EXPECT_NE(examine_limits(env, none).advice.find("enable-linger"), std::string::npos);
  env.put("/run/.containerenv", "");
  EXPECT_NE(examine_limits(env, none).advice.find("podman run --cgroups=split"), std::string::npos);
  EXPECT_NE(examine_limits(env, {"", "the cgroup v2 tree here has no memory controller", false})
                .advice.find("cgroup_enable=memory"),
            std::string::npos);
}

TEST(Examination, CardsWithoutADriverAreFound) {
  os::FakeEnv env;
  const machine::Devices none;
  EXPECT_EQ(examine_devices(env, none).front().found, "none in this machine");
  put_card(env, "0x10de", "0x030200");
  auto findings = examine_devices(env, none);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].state, State::faulty);
  EXPECT_EQ(findings[0].found, "1 of NVIDIA on the PCI bus, but no driver reports any");
  EXPECT_EQ(examine_devices(env, one_card()).size(), 1U) << "the driver tells of it";
  put_card(env, "0x10de", "0x020000");
  EXPECT_EQ(examine_devices(env, none).front().state, State::good) << "a network card";
  put_card(env, "0x1002", "0x030000");
  EXPECT_EQ(examine_devices(env, none).front().state, State::optional) << "maybe integrated";
  env.variables["BERTH_TOPOLOGY"] = "dgx-h100";
  EXPECT_EQ(examine_devices(env, none).front().state, State::good);
}

TEST(Examination, CardsThatAreOutOfServiceAreFaults) {
  os::FakeEnv env;
  env.put("/proc/driver/nvidia/version", "NVRM version: 550.1\nGCC\n");
  auto devices = one_card();
  devices.health.out_of_service = {{"GPU-a", "3 uncorrected ECC errors"}};
  devices.topology.notes = {"GPU0: its links are not told"};
  const auto findings = examine_devices(env, devices);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].found, "GPU0 H100 80 GiB (by nvml; NVRM version: 550.1)");
  EXPECT_EQ(findings[1].found, "GPU0 is out of service: 3 uncorrected ECC errors");
  EXPECT_EQ(Examination{findings}.faults(), 2U);
  EXPECT_EQ(examine_devices(env, fail(ErrorKind::invalid, "bad")).front().state, State::faulty);
}

TEST(Examination, TheStateDirectoryIsTriedOut) {
  os::FakeEnv env;
  env.variables["BERTH_DB"] = "/state";
  ASSERT_TRUE(env.make_directory("/state", 0700));
  std::string header(100, '\0');
  header[63] = 9;
  env.put(run::database_file("/state"), header);
  const auto good = examine_state(env, std::size_t{2});
  ASSERT_EQ(good.size(), 3U);
  EXPECT_EQ(good[0].found, "/state: 2 runs, schema 9");
  EXPECT_EQ(Examination{good}.faults(), 0U);
  EXPECT_EQ(good[2].found, "a sync takes 0 ms");
  EXPECT_EQ(env.list("/state")->size(), 1U) << "nothing is left";

  env.fault = [](std::string_view call) -> std::optional<Error> {
    if (call == "sync") return Error{ErrorKind::io, "sync: Input/output error"};
    return std::nullopt;
  };
  EXPECT_EQ(Examination{examine_state(env, std::size_t{2})}.faults(), 1U);
  EXPECT_EQ(env.list("/state")->size(), 1U) << "not even then";
  env.fault = nullptr;
  env.read_only = {"/state"};
  EXPECT_EQ(Examination{examine_state(env, std::size_t{2})}.faults(), 1U);
  EXPECT_EQ(Examination{examine_state(env, fail(ErrorKind::corrupt, "damaged"))}.faults(), 2U);
}

TEST(Examination, ClustersThatDoNotAnswerAreFaults) {
  EXPECT_EQ(examine_clusters(std::vector<Reached>()).front().state, State::good);
  EXPECT_EQ(examine_clusters(fail(ErrorKind::invalid, "clusters.yaml:3")).front().state,
            State::faulty);
  const auto findings = examine_clusters(std::vector<Reached>{
      {"lab", "a", {}}, {"lab", "b", fail(ErrorKind::io, "no route")}, {"hpc", "", {}}});
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].found, "lab/a answers");
  EXPECT_EQ(findings[1].found, "lab/b: no route");
  EXPECT_EQ(findings[1].advice, "berth cluster probe lab");
  EXPECT_EQ(findings[2].found, "hpc answers");
}

TEST(Examination, ToolsAreOptional) {
  os::FakeEnv env;
  env.variables["PATH"] = "/bin";
  auto findings = examine_tools(env);
  EXPECT_EQ(Examination{findings}.faults(), 0U);
  EXPECT_EQ(findings[1].state, State::optional);
  env.put("/bin/bwrap", "");
  findings = examine_tools(env);
  EXPECT_EQ(findings[1].found, "for tasks in a sandbox: /bin/bwrap");
}

}  // namespace
}  // namespace berth::engine
