// The environment of tasks.
#include "berth/base/text.h"
#include "berth/run/drive/workload.h"
#include "berth/store/database.h"

namespace berth::run {

exec::Environment inherited_environment(os::Env& env) {
  auto environment = exec::inherited_environment(env);
  std::erase_if(environment, [](const auto& variable) {
    return variable.first == "BERTH_DB" && store::holds_password(variable.second);
  });
  return environment;
}

void name_task(exec::Environment& environment, const std::string& run_directory,
               const store::RunRecord& run, const store::TaskRecord& task, Token token,
               std::int64_t attempt) {
  set(environment, "BERTH_TASK", run.name + "/" + task.label);
  set(environment, "BERTH_RUN", run.name);
  set(environment, "BERTH_RUN_DIR", run_directory);
  set(environment, "BERTH_TOKEN", fmt::format("{}", token.value));
  set(environment, "BERTH_ATTEMPT", fmt::format("{}", attempt));
}

std::string parameter_variable(std::string_view name) {
  return "BERTH_PARAM_" + variable_name(name);
}

}  // namespace berth::run
