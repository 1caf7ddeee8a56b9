#include "berth/exec/container.h"

#include <gmock/gmock.h>

#include "berth/base/text.h"
#include "berth/testing/fake_env.h"

namespace berth::exec {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

ContainerSpec contained() {
  return {.program = {Engine::podman, "/usr/bin/podman"},
          .name = "berth-a-1",
          .label = "a-1/map",
          .container = {.image = "debian@sha256:ab"},
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
  spec.program = {Engine::docker, "/usr/bin/docker"};
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
  spec.program = {Engine::docker, "/usr/bin/docker"};
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
  EXPECT_THAT(never_started(Engine::podman, 127, kCrun, bash, "i"),
              HasSubstr("no program bash; a command with"));
  EXPECT_THAT(never_started(Engine::podman, 1,
                            "ERROR (catatonit:2): failed to exec pid1: No such file or directory\n",
                            {"x"}, "i"),
              HasSubstr("no program x"));
  EXPECT_THAT(
      never_started(Engine::docker, 127,
                    "docker: Error response from daemon: exec: \"bash\": executable file not "
                    "found in $PATH: unknown.\n\nRun 'docker run --help' for more\n",
                    bash, "i"),
      HasSubstr("no program bash"));
  EXPECT_EQ(never_started(Engine::podman, 126,
                          "Error: setting up CDI devices: unresolvable CDI devices x\n", bash, "i"),
            "image i: Error: setting up CDI devices: unresolvable CDI devices x");
  EXPECT_EQ(never_started(Engine::podman, 127, "bash: line 1: foo: command not found\n", bash, "i"),
            "");
  EXPECT_EQ(
      never_started(Engine::podman, 126,
                    "Error: crun: exec container process `/w/./tool`: Exec format error: OCI "
                    "runtime error\n",
                    {"./tool"}, "i"),
      "image i: ./tool: it was built for another kind of machine, or it is a script without a "
      "first line such as #!/bin/sh");
  EXPECT_EQ(never_started(Engine::podman, 3, kCrun, bash, "i"), "");
  EXPECT_EQ(never_started(Engine::podman, 125, "", bash, "i"), "");
}

TEST(Container, WhatBubblewrapAndApptainerCouldNotStart) {
  const Words bash{"bash", "--norc", "-euo", "pipefail", "-c", "x"};
  const auto boxed = [&](int code, std::string_view said) {
    return never_started(Engine::bubblewrap, code, said, {"tool"}, "");
  };
  EXPECT_EQ(boxed(1, "bwrap: No permissions to create a new namespace\n"),
            "sandbox: bwrap: No permissions to create a new namespace");
  EXPECT_THAT(boxed(127, "/usr/bin/env: 'tool': No such file or directory\n"),
              HasSubstr("sandbox: it has no program tool; it shows /usr, "));
  EXPECT_EQ(boxed(2, "bwrap: x\n"), "");
  EXPECT_EQ(boxed(1, "Error: x\n"), "") << "its own";
  EXPECT_THAT(never_started(Engine::apptainer, 255,
                            "FATAL:   \"bash\": executable file not found in $PATH\n", bash, "i"),
              HasSubstr("image i: it has no program bash; a command with"));
  EXPECT_EQ(never_started(Engine::apptainer, 3, "FATAL:   x\n", bash, "i"), "");
}

TEST(Container, ASandboxIsThisMachinesSystemAndTheTasksDirectory) {
  auto spec = contained();
  spec.program = {Engine::bubblewrap, "/usr/bin/bwrap"};
  spec.container = {.sandbox = true, .shown = {"/data"}};
  spec.host.emplace_back("TMPDIR", "/scratch");
  spec.variables = {{"TOKEN", "secret"}};
  spec.temporary = spec.directory + "/.berth-tmp";
  spec.device_files = {"/dev/nvidia0"};
  const auto command = engine_command(spec);
  ASSERT_TRUE(command);
  const std::string line = join(command->argv, " ");
  EXPECT_THAT(line, testing::StartsWith("/usr/bin/env --ignore-signal=TERM /usr/bin/bwrap "));
  for (const char* part : {" --unshare-net ", " --ro-bind-try /usr /usr ",
                           " --dev-bind-try /dev/nvidia0 /dev/nvidia0 ",
                           " --bind /state/runs/a-1/tasks/1-1/.berth-tmp /tmp ",
                           " --dir /home/u --ro-bind /data /data "})
    EXPECT_THAT(line, HasSubstr(part));
  EXPECT_THAT(line, testing::EndsWith("--bind /state/runs/a-1/tasks/1-1 /state/runs/a-1/tasks/1-1 "
                                      "--chdir /state/runs/a-1/tasks/1-1 -- /usr/bin/env "
                                      "--default-signal=TERM sh -c echo hi"));
  EXPECT_EQ(command->environment,
            (Environment{{"PATH", "/usr/bin"}, {"HOME", "/home/u"}, {"TOKEN", "secret"}}));
  spec.container.network = true;
  EXPECT_THAT(engine_command(spec)->argv, Not(Contains("--unshare-net")));
  EXPECT_TRUE(removal_command(Engine::bubblewrap, "x").empty());
}

TEST(Container, ASandboxShowsTheSystemAndWhatIsNamed) {
  EXPECT_TRUE(sandbox_shows("/usr/bin/sort", {}));
  EXPECT_FALSE(sandbox_shows("/usrx", {}));
  EXPECT_FALSE(sandbox_shows("/home/u/venv/bin/python", {"/home/u/ven"}));
  EXPECT_TRUE(sandbox_shows("/home/u/venv/bin/python", {"/home/u/venv/"}));
  EXPECT_EQ(with_home("~/venv", {{"HOME", "/home/u"}}), "/home/u/venv");
  EXPECT_EQ(with_home("/~/venv", {{"HOME", "/home/u"}}), "/~/venv");
}

TEST(Container, AnImageFileRunsAsAProcessOfItsUser) {
  auto spec = contained();
  spec.program = {Engine::apptainer, "/usr/bin/apptainer"};
  spec.container = {.image = "debian:12", .shown = {"/data"}};
  spec.variables = {{"TOKEN", "$(secret)"}};
  spec.temporary = spec.directory + "/.berth-tmp";
  spec.block.devices = {{.uuid = "GPU-1"}};
  auto command = engine_command(spec);
  ASSERT_TRUE(command);
  EXPECT_EQ(
      command->argv,
      (Words{"/usr/bin/apptainer", "exec", "--containall",
             "--workdir=/state/runs/a-1/tasks/1-1/.berth-tmp", "--bind=/state/runs/a-1/tasks/1-1",
             "--pwd=/state/runs/a-1/tasks/1-1", "--bind=/data:/data:ro", "--net", "--network=none",
             "--nv", "docker://debian:12", "sh", "-c", "echo hi"}));
  EXPECT_EQ(command->environment, (Environment{{"PATH", "/usr/bin"},
                                               {"HOME", "/home/u"},
                                               {"APPTAINER_NO_EVAL", "1"},
                                               {"APPTAINERENV_TOKEN", "$(secret)"}}));
  spec.container.image = "/images/debian.sif";
  EXPECT_THAT(engine_command(spec)->argv, Contains("/images/debian.sif"));
  spec.directory = "/a:b";
  EXPECT_EQ(engine_command(spec).error().kind, ErrorKind::invalid);
}

TEST(Container, TheEngineIsLookedForInThePathThatTheTaskWouldHave) {
  os::FakeEnv env;
  const std::string place = "/opt/a/folder/with/a/name/that/no/string/keeps/within/itself";
  ASSERT_TRUE(env.make_directory(place, 0755));
  const Environment environment{{"PATH", "/nowhere/else:" + place}};
  const auto found = [&](const Container& container) {
    const auto program = find_engine(env, environment, container);
    return program ? program->path.substr(place.size() + 1) : program.error().message;
  };
  const auto install = [&](const char* program) {
    EXPECT_TRUE(env.replace_file(fmt::format("{}/{}", place, program), "#!", 0755));
  };
  EXPECT_THAT(found({.image = "a"}), HasSubstr("in PATH (/nowhere/else:/opt"));
  EXPECT_THAT(found({.image = "a.sif"}), HasSubstr("neither apptainer nor singularity"));
  EXPECT_THAT(found({.sandbox = true}), HasSubstr("apt install bubblewrap"));
  EXPECT_EQ(find_engine(env, environment, {.image = "a"}).error().kind, ErrorKind::impossible);
  for (const char* program : {"bwrap", "singularity", "apptainer", "docker", "podman"}) {
    install(program);
    EXPECT_EQ(found({.sandbox = true}), "bwrap");
    if (program != std::string_view("bwrap")) {
      EXPECT_EQ(found({.image = "a"}), program);
    }
  }
  EXPECT_EQ(found({.image = "./a"}), "apptainer");
}

TEST(Container, NamesOfImages) {
  EXPECT_TRUE(valid_image("docker.io/library/debian:12"));
  for (const char* wrong : {"", "-v", "a b", "a\nb"}) EXPECT_FALSE(valid_image(wrong)) << wrong;
}

}  // namespace
}  // namespace berth::exec
