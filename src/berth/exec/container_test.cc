#include "berth/exec/container.h"

#include <gmock/gmock.h>

#include "berth/os/fake_env.h"

namespace berth::exec {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

ContainerSpec contained() {
  return {.engine = Engine::podman,
          .name = "berth-a-1",
          .label = "a-1/map",
          .container = {"debian@sha256:ab", false},
          .argv = {"sh", "-c", "echo hi"},
          .directory = "/state/runs/a-1/tasks/1-1",
          .host = {{"PATH", "/usr/bin"}, {"HOME", "/home/u"}},
          .variables = {},
          .block = {},
          .user = "",
          .init = false};
}

Words command_of(const ContainerSpec& spec) {
  const auto command = engine_command(spec);
  EXPECT_TRUE(command) << command.error().message;
  return command ? command->argv : Words{};
}

TEST(Container, TheWholeCommandLineOfPodmanForAnOrdinaryUser) {
  EXPECT_EQ(command_of(contained()),
            (Words{"podman", "run", "--rm", "--name=berth-a-1", "--label=berth.task=a-1/map",
                   "--mount=type=bind,source=/state/runs/a-1/tasks/1-1,"
                   "target=/state/runs/a-1/tasks/1-1",
                   "--workdir=/state/runs/a-1/tasks/1-1", "--entrypoint=", "--log-driver=none",
                   "--network=none", "--security-opt=label=disable", "--userns=keep-id",
                   "--cgroups=disabled", "debian@sha256:ab", "sh", "-c", "echo hi"}));
}

TEST(Container, NetworkInitAndUserAreSaid) {
  auto spec = contained();
  spec.container.network = true;
  spec.init = true;
  spec.user = "0:0";
  const auto argv = command_of(spec);
  EXPECT_THAT(argv, Contains("--network=host"));
  EXPECT_THAT(argv, Contains("--init"));
  EXPECT_THAT(argv, Contains("--user=0:0"));
  EXPECT_THAT(argv, Not(Contains("--userns=keep-id")));
}

TEST(Container, ValuesShowInNoListOfProcessesUnlessTheEngineWouldTakeThem) {
  auto spec = contained();
  spec.variables = {{"TOKEN", "secret"}, {"HOME", "/x y"}, {"LD_PRELOAD", "a.so"}};
  const auto command = engine_command(spec);
  ASSERT_TRUE(command);
  EXPECT_THAT(command->argv, Contains("--env=TOKEN"));
  EXPECT_THAT(command->argv, Contains("--env=HOME=/x y"));
  EXPECT_THAT(command->argv, Contains("--env=LD_PRELOAD=a.so"));
  EXPECT_EQ(command->environment,
            (Environment{{"PATH", "/usr/bin"}, {"HOME", "/home/u"}, {"TOKEN", "secret"}}));
}

TEST(Container, DockerIsToldTheLimitsThatItsDaemonKeeps) {
  auto spec = contained();
  spec.engine = Engine::docker;
  spec.user = "1000:1000";
  spec.block.resources.set(Known::cpu, 1500);
  spec.block.resources.set(Known::mem, 100'000'000);
  spec.block.cores = {{.core = 2, .node = 0, .milli = 1000}, {.core = 5, .node = 0, .milli = 500}};
  const auto argv = command_of(spec);
  for (const char* word : {"--cpuset-cpus=2,5", "--cpus=1.500", "--memory=100000000b",
                           "--memory-swap=100000000b", "--user=1000:1000"})
    EXPECT_THAT(argv, Contains(word));
  EXPECT_THAT(argv, Not(Contains("--cgroups=disabled")));
}

TEST(Container, ItGetsTheGpusOfItsTaskAndNoOther) {
  auto spec = contained();
  spec.block.devices = {{.uuid = "GPU-1"}, {.uuid = "GPU-2"}};
  auto argv = command_of(spec);
  EXPECT_THAT(argv, Contains("--device=nvidia.com/gpu=GPU-1"));
  EXPECT_THAT(argv, Contains("--device=nvidia.com/gpu=GPU-2"));
  spec.engine = Engine::docker;
  EXPECT_THAT(command_of(spec), Contains("--gpus=\"device=GPU-1,GPU-2\""));
  spec.block.devices[1].vendor = topology::Vendor::amd;
  EXPECT_EQ(engine_command(spec).error().kind, ErrorKind::impossible);
}

TEST(Container, ADirectoryThatTheEngineWouldTakeApartIsRefused) {
  auto spec = contained();
  spec.directory = "/state,ro";
  EXPECT_EQ(engine_command(spec).error().kind, ErrorKind::invalid);
}

TEST(Container, WhatNeverStartedIsToldFromWhatEndedSo) {
  const Words bash{"bash", "--norc", "-euo", "pipefail", "-c", "x"};
  constexpr std::string_view kCrun =
      "Error: crun: executable file `bash` not found in $PATH: No such file or directory: OCI\n";
  EXPECT_THAT(never_started(127, kCrun, bash, "i"), HasSubstr("no program bash; a command with"));
  EXPECT_THAT(
      never_started(1, "ERROR (catatonit:2): failed to exec pid1: No such file or directory\n",
                    {"x"}, "i"),
      HasSubstr("no program x"));
  EXPECT_THAT(
      never_started(127,
                    "docker: Error response from daemon: exec: \"bash\": executable file not "
                    "found in $PATH: unknown.\n\nRun 'docker run --help' for more\n",
                    bash, "i"),
      HasSubstr("no program bash"));
  EXPECT_EQ(
      never_started(126, "Error: setting up CDI devices: unresolvable CDI devices x\n", bash, "i"),
      "image i: Error: setting up CDI devices: unresolvable CDI devices x");
  EXPECT_EQ(never_started(127, "bash: line 1: foo: command not found\n", bash, "i"), "");
  EXPECT_EQ(never_started(3, kCrun, bash, "i"), "");
  EXPECT_EQ(never_started(125, "", bash, "i"), "");
}

TEST(Container, TheEngineIsLookedForInThePathThatTheTaskWouldHave) {
  os::FakeEnv env;
  const std::string place = "/opt/a/folder/with/a/name/that/no/string/keeps/within/itself";
  ASSERT_TRUE(env.make_directory(place, 0755));
  ASSERT_TRUE(env.replace_file(place + "/docker", "#!", 0755));
  const Environment environment{{"PATH", "/nowhere/else:" + place}};
  EXPECT_EQ(find_engine(env, environment), Engine::docker);
  ASSERT_TRUE(env.replace_file(place + "/podman", "#!", 0755));
  EXPECT_EQ(find_engine(env, environment), Engine::podman);
  const auto none = find_engine(env, {{"PATH", "/nowhere"}});
  EXPECT_EQ(none.error().kind, ErrorKind::impossible);
  EXPECT_THAT(none.error().message, HasSubstr("in PATH (/nowhere)"));
}

TEST(Container, NamesOfImages) {
  EXPECT_TRUE(valid_image("docker.io/library/debian:12"));
  for (const char* wrong : {"", "-v", "a b", "a\nb"}) EXPECT_FALSE(valid_image(wrong)) << wrong;
}

}  // namespace
}  // namespace berth::exec
