#include "berth/exec/image_file.h"

#include <algorithm>

#include "berth/exec/environment.h"

namespace berth::exec {

EngineCommand image_file_command(const ContainerSpec& spec) {
  const std::string prefix = spec.program.engine == Engine::apptainer ? "APPTAINER" : "SINGULARITY";
  std::vector<std::string> argv{spec.program.path,
                                "exec",
                                "--containall",
                                "--workdir=" + spec.temporary,
                                "--bind=" + spec.directory,
                                "--pwd=" + spec.directory};
  for (const auto& path : spec.container.shown)
    argv.push_back(fmt::format("--bind={0}:{0}:ro", path));
  if (!spec.container.network) argv.insert(argv.end(), {"--net", "--network=none"});
  const auto has = [&](topology::Vendor vendor) {
    return std::ranges::find(spec.block.devices, vendor, &machine::DeviceShare::vendor) !=
           spec.block.devices.end();
  };
  if (has(topology::Vendor::nvidia)) argv.emplace_back("--nv");
  if (has(topology::Vendor::amd)) argv.emplace_back("--rocm");
  EngineCommand command{.argv = {}, .environment = spec.host};
  // Else the engine's shell would expand a value that holds $ or backquotes.
  set(command.environment, prefix + "_NO_EVAL", "1");
  for (const auto& [name, value] : spec.variables)
    set(command.environment, fmt::format("{}ENV_{}", prefix, name), value);
  argv.push_back(image_url(spec.container.image));
  argv.insert(argv.end(), spec.argv.begin(), spec.argv.end());
  command.argv = std::move(argv);
  return command;
}

}  // namespace berth::exec
