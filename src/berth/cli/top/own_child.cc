#include "berth/cli/top/own_child.h"

namespace berth::cli {

std::unique_ptr<os::ChildProcess> start_own_command(
    os::Env& env, const std::vector<std::string>& words,
    const std::function<void(std::string_view text)>& print, std::function<void()> end) {
  os::SpawnSpec spec{.argv = {"/proc/self/exe"},
                     .environment = env.environment(),
                     .directory = env.real_path(".").value_or("/")};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  return std::make_unique<os::ChildProcess>(
      env, env.loop(), spec, [print](auto, std::string_view text) { print(text); },
      [print, end = std::move(end)](const Result<os::ExitStatus>& status) {
        if (!status) print(status.error().message + "\n");
        end();
      },
      std::chrono::seconds(1));
}

}  // namespace berth::cli
