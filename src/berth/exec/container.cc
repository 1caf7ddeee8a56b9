#include "berth/exec/container.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/exec/image_file.h"
#include "berth/exec/sandbox.h"

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
    if (spec.program.engine == Engine::podman)
      argv.push_back("--device=nvidia.com/gpu=" + device.uuid);
  }
  if (spec.program.engine == Engine::docker && !all.empty())
    argv.push_back(fmt::format("--gpus=\"device={}\"", all));
  return {};
}

/// Of podman or docker.
Result<EngineCommand> oci_command(const ContainerSpec& spec) {
  const Engine engine = spec.program.engine;
  std::vector<std::string> argv{
      std::string(kEngineNames.name(engine)),
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
  for (const auto& path : spec.container.shown)
    argv.push_back(fmt::format("--mount=type=bind,source={0},target={0},readonly", path));
  if (engine == Engine::podman)
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

std::vector<const std::string*> places_of(const ContainerSpec& spec) {
  std::vector<const std::string*> places{&spec.directory};
  for (const auto& path : spec.container.shown) places.push_back(&path);
  return places;
}

/// Which engines can make a container, the best first, and what is said where there is none.
struct Need {
  std::vector<Engine> engines;
  std::string_view none, why;
};

Need need_of(const Container& container) {
  if (container.image.empty())
    return {{Engine::bubblewrap},
            "bwrap is not",
            "a task in a sandbox needs it (Debian: apt install bubblewrap)"};
  if (is_image_file(container.image))
    return {{Engine::apptainer, Engine::singularity},
            "neither apptainer nor singularity is",
            "an image in a file needs one"};
  return {{Engine::podman, Engine::docker, Engine::apptainer, Engine::singularity},
          "none of podman, docker, apptainer and singularity is",
          "a task with an image needs one (Debian: apt install podman)"};
}

}  // namespace

bool valid_image(std::string_view image) {
  return !image.empty() && image.front() != '-' &&
         std::ranges::none_of(image, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

bool is_image_file(std::string_view image) {
  return image.find("://") == std::string_view::npos &&
         (image.starts_with('/') || image.starts_with("./") || image.ends_with(".sif"));
}

std::string image_url(const std::string& image) {
  return is_image_file(image) || image.find("://") != std::string::npos ? image
                                                                        : "docker://" + image;
}

std::string with_home(const std::string& path, const Environment& environment) {
  if (!path.starts_with("~/")) return path;
  const std::string* home = value_of(environment, "HOME");
  return (home != nullptr ? *home : "") + path.substr(1);
}

bool is_within(std::string_view path, std::string_view folder) {
  while (folder.ends_with('/')) folder.remove_suffix(1);
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

Result<EngineProgram> find_engine(os::Env& env, const Environment& environment,
                                  const Container& container) {
  const Need need = need_of(container);
  const std::string* given = value_of(environment, "PATH");
  const std::string path = given ? *given : "/usr/local/bin:/usr/bin:/bin";
  for (const Engine engine : need.engines)
    for (const auto place : split(path, ':')) {
      std::string program = fmt::format("{}/{}", place, kEngineNames.name(engine));
      const auto status = env.status(program);
      if (place.starts_with('/') && status && status->executable &&
          status->kind == os::FileStatus::Kind::file)
        return EngineProgram{engine, std::move(program)};
    }
  return fail(ErrorKind::impossible, "{} in PATH ({}), and {}", need.none, clip(path), need.why);
}

Result<EngineCommand> engine_command(const ContainerSpec& spec) {
  const Engine engine = spec.program.engine;
  if (engine == Engine::bubblewrap) return sandbox_command(spec);
  const std::string_view special = has_image_files(engine) ? ",:\"\n" : ",\"\n";
  for (const auto* path : places_of(spec))
    if (path->find_first_of(special) != std::string::npos)
      return fail(ErrorKind::invalid,
                  "{}: a directory with a comma, {} or a line's end in its name cannot be shown to "
                  "a container of {}",
                  *path, has_image_files(engine) ? "a colon, a quote" : "a quote",
                  kEngineNames.name(engine));
  return has_image_files(engine) ? image_file_command(spec) : oci_command(spec);
}

std::vector<std::string> removal_command(Engine engine, const std::string& name) {
  if (engine == Engine::podman) return {"podman", "rm", "--force", "--time=0", "--ignore", name};
  if (engine == Engine::docker) return {"docker", "rm", "--force", name};
  return {};
}

}  // namespace berth::exec
