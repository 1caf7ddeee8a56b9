#include "berth/exec/environment.h"

#include <algorithm>
#include <array>

#include "berth/exec/leftovers.h"
#include "berth/machine/enclosing_task.h"

namespace berth::exec {
namespace {

/// What the drivers take for the devices that a process may see.
constexpr std::array<std::string_view, 5> kVisibility{
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL"};

}  // namespace

Environment inherited_environment(os::Env& env) {
  auto environment = env.environment();
  std::erase_if(environment, [](const auto& variable) {
    return variable.first == kShellVariable ||
           std::ranges::find(kVisibility, variable.first) != kVisibility.end();
  });
  // The threads that the task around this process was given are not those of its own tasks.
  if (const auto task = machine::enclosing_task(env)) {
    const auto threads = (task->block.resources.get(Known::cpu) + 999) / 1000;
    std::erase(environment,
               std::pair<std::string, std::string>("OMP_NUM_THREADS", fmt::format("{}", threads)));
  }
  return environment;
}

void set(Environment& environment, std::string name, std::string value) {
  const auto present =
      std::ranges::find(environment, name, &std::pair<std::string, std::string>::first);
  if (present != environment.end())
    present->second = std::move(value);
  else
    environment.emplace_back(std::move(name), std::move(value));
}

void decide(Environment& environment, std::string name, std::string value, bool decided) {
  const auto present =
      std::ranges::find(environment, name, &std::pair<std::string, std::string>::first);
  if (present == environment.end())
    environment.emplace_back(std::move(name), std::move(value));
  else if (decided)
    present->second = std::move(value);
}

void set(Environment& environment, const Environment& over) {
  for (const auto& [name, value] : over) set(environment, name, value);
}

}  // namespace berth::exec
