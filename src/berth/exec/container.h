// A task whose launch names an image runs in a container, which podman or docker makes. These
// functions build the engine's command line and understand how the engine ended.
//
// Under podman the container stays in the control group of the task and below its process limits,
// because podman makes no group of its own (--cgroups=disabled). Under docker the container belongs
// to docker's daemon, outside the group, so the command line repeats the limits. Pure, except for
// find_engine().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/names.h"
#include "berth/base/result.h"
#include "berth/exec/messages.h"
#include "berth/os/env.h"

namespace berth::exec {

enum class Engine : std::uint8_t { podman, docker };
inline constexpr auto kEngineNames =
    names<Engine>({{Engine::podman, "podman"}, {Engine::docker, "docker"}});

inline constexpr std::string_view kImageName =
    "the name of an image is not empty, does not begin with '-', and has no blanks";
bool valid_image(std::string_view image);

/// The first engine in the PATH of `environment`. Errors: impossible, with the advice to install
/// one.
Result<Engine> find_engine(os::Env& env, const Environment& environment);

/// All that the command line of a container depends on.
struct ContainerSpec {
  Engine engine = Engine::podman;
  std::string name;   ///< Of the container.
  std::string label;  ///< What `berth.task` of the container says: "digits-3/map/A".
  Container container;
  std::vector<std::string> argv;  ///< Of the process in it.
  std::string directory;          ///< It is seen under the same path, and the process starts there.
  Environment host;               ///< The environment of the engine itself.
  Environment variables;          ///< What the process gets.
  machine::Block block;           ///< What the task was given.
  std::string user;               ///< "1000:1000"; "" where podman maps the user id itself.
  bool init = false;              ///< Whether the engine has an init program for the container.
};

struct EngineCommand {
  std::vector<std::string> argv;
  Environment environment;
};
/// Variables reach the process by their names alone, so that their values show in no list of
/// processes, except those that would change what the engine itself does. Errors: impossible, where
/// the task has a GPU that is not NVIDIA's; invalid, where the engine cannot be told the directory.
Result<EngineCommand> engine_command(const ContainerSpec& spec);

/// The command that removes the container, whatever its state.
std::vector<std::string> removal_command(Engine engine, const std::string& name);

/// Why the process in the container never started, by the exit code of the engine and the end of
/// what it wrote to its standard error; "" where that process itself ended so. `argv` is its own.
std::string never_started(int exit_code, std::string_view complaints,
                          const std::vector<std::string>& argv, const std::string& image);

}  // namespace berth::exec
