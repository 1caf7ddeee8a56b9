// From a task to the process that runs it: its command, its environment, its files.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/os/log.h"
#include "berth/run/drive.h"

namespace berth::run {
namespace {

constexpr std::string_view kParameterFile = "params_file";

void set(exec::Environment& environment, std::string name, std::string value) {
  const auto present =
      std::ranges::find(environment, name, &std::pair<std::string, std::string>::first);
  if (present != environment.end())
    present->second = std::move(value);
  else
    environment.emplace_back(std::move(name), std::move(value));
}

/// ["GPU-…"]; "" where there are none.
std::string uuids_json(std::span<const machine::DeviceShare> devices) {
  std::vector<std::string> uuids;
  for (const auto& device : devices) uuids.push_back(json_quote(device.uuid));
  return uuids.empty() ? "" : "[" + join(uuids, ",") + "]";
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

}  // namespace

std::optional<std::string> Drive::value_of(const store::TaskRecord& task, std::string_view name) {
  if (name == kParameterFile) return parameter_file(task);
  for (const auto& [param, value] : task.params)
    if (param == name) return value;
  return std::nullopt;
}

std::string Drive::parameter_file(const store::TaskRecord& task) {
  return fmt::format("{}/params/{}.json", directory_, task.number.value);
}

exec::Environment Drive::environment_of(const store::TaskRecord& task, Token token) {
  exec::Environment environment = inherited_;
  for (const auto& [name, value] : program_.environment) set(environment, name, value);
  for (const auto& [name, value] : task.params)
    set(environment, "BERTH_PARAM_" + upper(name), value);
  set(environment, "BERTH_TASK", record_.name + "/" + task.label);
  set(environment, "BERTH_RUN", record_.name);
  set(environment, "BERTH_RUN_DIR", directory_);
  set(environment, "BERTH_TOKEN", fmt::format("{}", token.value));
  return environment;
}

void Drive::launch(const schedule::StartAttempt& start) {
  store::TaskRecord& of = task(start.task);
  of.metrics.clear();
  exec::Launch launch{
      .task = start.task,
      .token = start.token,
      .request = {program_.resources, record_.name + "/" + of.label, program_.slot_sizes},
      .argv = exec::command_line(program_.run,
                                 [&](std::string_view name) { return value_of(of, name); }),
      .environment = environment_of(of, start.token),
      .directory = record_.directory,
      .timeout = program_.timeout,
      .grace = program_.grace};
  const auto named = exec::placeholders(program_.run);
  if (std::ranges::find(named, kParameterFile) != named.end()) {
    (void)env_.make_directory(directory_ + "/params", 0700);
    (void)env_.replace_file(parameter_file(of), experiment::values_json(of.params) + "\n", 0600);
  }
  os::log_event(env_, "launch",
                {{"token", fmt::format("{}", start.token.value)},
                 {"request", machine::to_json(launch.request)}});
  live_.emplace(start.token.value, Live{start.worker, start.task, log_.end()});
  const auto on = std::ranges::find(berthed_, start.worker, [](const auto& b) { return b->id; });
  BERTH_ASSERT(on != berthed_.end());
  const auto placed = (*on)->machine->dry_run(launch.request);
  batch_.emplace_back(store::AttemptStarted{start.task, start.token, env_.wall(),
                                            to_json(program_.resources), host_name_,
                                            placed ? uuids_json(placed->devices) : ""});
  count(start.task, store::TaskState::running);
  (*on)->worker->tell(launch);
}

}  // namespace berth::run
