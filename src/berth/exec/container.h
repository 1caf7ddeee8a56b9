// A task whose launch names an image runs in a container, which podman, docker, apptainer or
// singularity makes; one in a sandbox runs in what bubblewrap makes of this machine. These
// functions build the engine's command line and understand how the engine ended.
//
// Under podman the container stays in the control group of the task and below its process limits,
// because podman makes no group of its own (--cgroups=disabled). Under docker the container belongs
// to docker's daemon, outside the group, so the command line repeats the limits. The others are
// plain processes of the task: they end with it, and nothing is left to remove. Pure, except for
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

enum class Engine : std::uint8_t { podman, docker, apptainer, singularity, bubblewrap };
inline constexpr auto kEngineNames = names<Engine>({{Engine::podman, "podman"},
                                                    {Engine::docker, "docker"},
                                                    {Engine::apptainer, "apptainer"},
                                                    {Engine::singularity, "singularity"},
                                                    {Engine::bubblewrap, "bwrap"}});
/// The engine runs images from files (.sif), into which it turns those of registries.
inline bool has_image_files(Engine engine) {
  return engine == Engine::apptainer || engine == Engine::singularity;
}
/// The image is a file, which only such an engine runs: "/opt/a.sif", "./a", "tools.sif".
bool is_image_file(std::string_view image);
/// What such an engine is told for an image: docker://debian:12 for "debian:12"; a file or a URL
/// stays as it is.
std::string image_url(const std::string& image);

inline constexpr std::string_view kImageName =
    "the name of an image is not empty, does not begin with '-', and has no blanks";
bool valid_image(std::string_view image);

/// The path with the HOME of `environment` for a "~" that it begins with.
std::string with_home(const std::string& path, const Environment& environment);
/// The path is `folder`, or something in it.
bool is_within(std::string_view path, std::string_view folder);
/// A sandbox shows the path to its task: as a part of the system, or of `shown`.
bool sandbox_shows(std::string_view path, const std::vector<std::string>& shown);
/// This is what messages call the system that every sandbox shows.
inline constexpr std::string_view kSystemShown = "/usr, /etc, /opt and the like";

struct EngineProgram {
  Engine engine = Engine::podman;
  std::string path;  ///< Of its program.
};
/// The first engine in the PATH of `environment` that can make the container, which is isolated.
/// Errors: impossible, with the advice to install one.
Result<EngineProgram> find_engine(os::Env& env, const Environment& environment,
                                  const Container& container);

/// All that the command line of a container depends on.
struct ContainerSpec {
  EngineProgram program;
  std::string name;   ///< Of the container.
  std::string label;  ///< What `berth.task` of the container says: "digits-3/map/A".
  Container container;
  std::vector<std::string> argv;  ///< Of the process in it.
  std::string directory;          ///< It is seen under the same path, and the process starts there.
  Environment host;               ///< The environment of the engine itself.
  Environment variables;          ///< What the process gets.
  machine::Block block;           ///< What the task was given.
  std::string user{};             ///< "1000:1000"; "" where podman maps the user id itself.
  bool init = false;              ///< Whether the engine has an init program for the container.
  /// A container that is no more than processes has its temporary files in a directory of this
  /// machine, and is shown the files of /dev that its GPUs need.
  std::string temporary = {};
  std::vector<std::string> device_files = {};
};

struct EngineCommand {
  std::vector<std::string> argv;
  Environment environment;
};
/// Variables reach the process by their names alone, so that their values show in no list of
/// processes, except those that would change what the engine itself does. Errors: impossible, where
/// the task has a GPU that the engine cannot give; invalid, where it cannot be told a directory.
Result<EngineCommand> engine_command(const ContainerSpec& spec);

/// The command that removes the container, whatever its state; empty: it goes with its processes.
std::vector<std::string> removal_command(Engine engine, const std::string& name);

/// Why the process in the container never started, by the exit code of the engine and the end of
/// what it wrote to its standard error; "" where that process itself ended so. `argv` is its own.
std::string never_started(Engine engine, int exit_code, std::string_view complaints,
                          const std::vector<std::string>& argv, const std::string& image);

}  // namespace berth::exec
