#include "berth/exec/sandbox.h"

#include <algorithm>
#include <array>

#include "berth/exec/environment.h"

namespace berth::exec {
namespace {

/// Where distributions have programs, libraries and their settings; /sys tells of the hardware.
constexpr std::array<std::string_view, 12> kSystem{"/usr",   "/bin",   "/sbin",   "/lib",
                                                   "/lib32", "/lib64", "/libx32", "/etc",
                                                   "/opt",   "/sys",   "/nix",    "/gnu"};
/// Where /etc/resolv.conf may point to.
constexpr std::array<std::string_view, 3> kResolvers{"/run/systemd/resolve", "/run/resolvconf",
                                                     "/run/NetworkManager"};
/// Not a shell, whose children could not have what it ignores handled again.
constexpr const char* kEnv = "/usr/bin/env";

}  // namespace

bool sandbox_shows(std::string_view path, const std::vector<std::string>& shown) {
  const auto holds = [&](std::string_view folder) { return is_within(path, folder); };
  return std::ranges::any_of(kSystem, holds) || std::ranges::any_of(shown, holds);
}

EngineCommand sandbox_command(const ContainerSpec& spec) {
  // bubblewrap ends at TERM, and all in the sandbox with it: a task would have no grace.
  std::vector<std::string> argv{kEnv,
                                "--ignore-signal=TERM",
                                spec.program.path,
                                "--unshare-pid",
                                "--unshare-ipc",
                                "--die-with-parent"};
  const auto add = [&](auto... words) { (argv.emplace_back(words), ...); };
  if (!spec.container.network) add("--unshare-net");
  for (const auto path : kSystem) add("--ro-bind-try", path, path);
  if (spec.container.network)
    for (const auto path : kResolvers) add("--ro-bind-try", path, path);
  add("--proc", "/proc", "--dev", "/dev");
  for (const auto& file : spec.device_files) add("--dev-bind-try", file, file);
  add("--bind", spec.temporary, "/tmp", "--symlink", "../tmp", "/var/tmp");
  EngineCommand command{.argv = {}, .environment = spec.host};
  std::erase_if(command.environment, [](const auto& variable) {
    return variable.first == "TMPDIR";  // which is not there
  });
  set(command.environment, spec.variables);
  for (const auto& [name, value] : command.environment)
    if (name == "HOME" && value.starts_with('/') && !sandbox_shows(value, {})) add("--dir", value);
  for (const auto& path : spec.container.shown) add("--ro-bind", path, path);
  add("--bind", spec.directory, spec.directory, "--chdir", spec.directory, "--", kEnv,
      "--default-signal=TERM");
  argv.insert(argv.end(), spec.argv.begin(), spec.argv.end());
  command.argv = std::move(argv);
  return command;
}

}  // namespace berth::exec
