#include "berth/exec/container.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/exec/command.h"

namespace berth::exec {
namespace {

const std::string* value_of(const Environment& environment, std::string_view name) {
  const auto found = std::ranges::find(environment, name, &Environment::value_type::first);
  return found == environment.end() ? nullptr : &found->second;
}

/// Variables that the dynamic linker or the engine would take for its own.
bool is_of_engine(const Environment& host, std::string_view name) {
  constexpr std::array<std::string_view, 6> kPrefixes{"LD_",     "DOCKER_",   "CONTAINER",
                                                      "PODMAN_", "REGISTRY_", "XDG_"};
  return value_of(host, name) != nullptr || name == "HOME" || name == "PATH" || name == "TMPDIR" ||
         std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Docker's daemon has to be told what under podman the task's control group enforces.
void add_docker_limits(const machine::Block& block, std::vector<std::string>& argv) {
  std::string cores;
  for (const auto& share : block.cores)
    cores += fmt::format("{}{}", cores.empty() ? "" : ",", share.core);
  if (!cores.empty()) argv.push_back("--cpuset-cpus=" + cores);
  if (const auto cpu = block.resources.get(Known::cpu); cpu > 0)
    argv.push_back(fmt::format("--cpus={}.{:03}", cpu / 1000, cpu % 1000));
  if (const auto mem = block.resources.get(Known::mem); mem > 0) {
    argv.push_back(fmt::format("--memory={}b", mem));
    argv.push_back(fmt::format("--memory-swap={}b", mem));
  }
}

Status add_devices(const ContainerSpec& spec, std::vector<std::string>& argv) {
  std::string all;
  for (const auto& device : spec.block.devices) {
    if (device.vendor != topology::Vendor::nvidia)
      return fail(ErrorKind::impossible,
                  "GPU {}: a container can be given only NVIDIA's GPUs so far", device.index);
    all += (all.empty() ? "" : ",") + device.uuid;
    if (spec.engine == Engine::podman) argv.push_back("--device=nvidia.com/gpu=" + device.uuid);
  }
  if (spec.engine == Engine::docker && !all.empty())
    argv.push_back(fmt::format("--gpus=\"device={}\"", all));
  return {};
}

}  // namespace

bool valid_image(std::string_view image) {
  return !image.empty() && image.front() != '-' &&
         std::ranges::none_of(image, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

Result<Engine> find_engine(os::Env& env, const Environment& environment) {
  const std::string* given = value_of(environment, "PATH");
  const std::string path = given ? *given : "/usr/local/bin:/usr/bin:/bin";
  for (const Engine engine : {Engine::podman, Engine::docker})
    for (const auto place : split(path, ':')) {
      const auto status = env.status(fmt::format("{}/{}", place, kEngineNames.name(engine)));
      if (place.starts_with('/') && status && status->executable &&
          status->kind == os::FileStatus::Kind::file)
        return engine;
    }
  return fail(ErrorKind::impossible,
              "neither podman nor docker is in PATH ({}), and a task with an image needs one "
              "(Debian: apt install podman)",
              clip(path));
}

Result<EngineCommand> engine_command(const ContainerSpec& spec) {
  if (spec.directory.find_first_of(",\"\n") != std::string::npos)
    return fail(ErrorKind::invalid,
                "{}: a directory with a comma, a quote or a line's end in its name cannot be "
                "shown to a container",
                spec.directory);
  std::vector<std::string> argv{
      std::string(kEngineNames.name(spec.engine)),
      "run",
      "--rm",
      "--name=" + spec.name,
      "--label=berth.task=" + spec.label,
      fmt::format("--mount=type=bind,source={0},target={0}", spec.directory),
      "--workdir=" + spec.directory,
      "--entrypoint=",
      "--log-driver=none",
      spec.container.network ? "--network=host" : "--network=none",
      "--security-opt=label=disable"};
  if (spec.init) argv.emplace_back("--init");
  argv.push_back(spec.user.empty() ? "--userns=keep-id" : "--user=" + spec.user);
  if (spec.engine == Engine::podman)
    argv.emplace_back("--cgroups=disabled");
  else
    add_docker_limits(spec.block, argv);
  BERTH_TRY(add_devices(spec, argv));
  EngineCommand command{.argv = {}, .environment = spec.host};
  for (const auto& [name, value] : spec.variables) {
    if (is_of_engine(spec.host, name)) {
      argv.push_back(fmt::format("--env={}={}", name, value));
      continue;
    }
    argv.push_back("--env=" + name);
    command.environment.emplace_back(name, value);
  }
  argv.push_back(spec.container.image);
  argv.insert(argv.end(), spec.argv.begin(), spec.argv.end());
  command.argv = std::move(argv);
  return command;
}

std::vector<std::string> removal_command(Engine engine, const std::string& name) {
  if (engine == Engine::podman) return {"podman", "rm", "--force", "--time=0", "--ignore", name};
  return {"docker", "rm", "--force", name};
}

std::string never_started(int exit_code, std::string_view complaints,
                          const std::vector<std::string>& argv, const std::string& image) {
  constexpr std::array<std::string_view, 4> kSpeakers{"Error: ", "docker: ", "ERROR (catatonit",
                                                      "[FATAL tini"};
  constexpr std::array<std::string_view, 4> kNoProgram{"failed to exec pid1", "executable file",
                                                       "[FATAL tini", "no such file"};
  std::string_view said;
  for (const auto line : split(complaints, '\n'))
    for (const auto speaker : kSpeakers)
      if (line.starts_with(speaker)) said = line;
  const bool of_init = said.starts_with("ERROR (") || said.starts_with("[FATAL");
  if (said.empty() || (!of_init && (exit_code < 125 || exit_code > 127))) return {};
  const bool no_program = exit_code != 125 && std::ranges::any_of(kNoProgram, [&](auto text) {
                            return said.find(text) != std::string_view::npos;
                          });
  if (!no_program) return fmt::format("image {}: {}", image, said);
  std::string message = fmt::format("image {}: it has no program {}", image, argv.front());
  if (is_given_to(kStrictShell, argv)) message += fmt::format("; {}", kNoStrictShell);
  return message;
}

}  // namespace berth::exec
