// The environment of tasks.
#include <algorithm>
#include <array>

#include "berth/run/workload.h"
#include "berth/store/database.h"

namespace berth::run {
namespace {

/// What the drivers take for the devices that a process may see.
constexpr std::array<std::string_view, 5> kVisibility{
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL"};

}  // namespace

void set(exec::Environment& environment, std::string name, std::string value) {
  const auto present =
      std::ranges::find(environment, name, &std::pair<std::string, std::string>::first);
  if (present != environment.end())
    present->second = std::move(value);
  else
    environment.emplace_back(std::move(name), std::move(value));
}

exec::Environment inherited_environment(os::Env& env) {
  auto environment = env.environment();
  std::erase_if(environment, [](const auto& variable) {
    const auto& [name, value] = variable;
    return std::ranges::find(kVisibility, name) != kVisibility.end() ||
           (name == "BERTH_DB" && store::holds_password(value));
  });
  return environment;
}

void name_task(exec::Environment& environment, const std::string& run_directory,
               const store::RunRecord& run, const store::TaskRecord& task, Token token) {
  set(environment, "BERTH_TASK", run.name + "/" + task.label);
  set(environment, "BERTH_RUN", run.name);
  set(environment, "BERTH_RUN_DIR", run_directory);
  set(environment, "BERTH_TOKEN", fmt::format("{}", token.value));
}

std::string parameter_variable(std::string_view name) {
  std::string variable = "BERTH_PARAM_";
  for (const char c : name)
    variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c == '-' ? '_' : c;
  return variable;
}

}  // namespace berth::run
