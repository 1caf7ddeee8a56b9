#include "berth/run/flows/flow_task.h"

#include <algorithm>
#include <unordered_set>

#include "berth/run/drive/workload.h"

namespace berth::run {
namespace {

constexpr Duration kGrace = std::chrono::seconds(5);

}  // namespace

Status sweep_directories(FlowRun& run, std::span<const store::TaskRecord> tasks) {
  const std::string all = run.directory + "/tasks";
  const auto names = run.env.list(all);
  if (!names) return {};
  std::unordered_set<std::string> running;
  for (const auto& task : tasks)
    if (task.state == store::TaskState::running)
      running.insert(task_directory(run.directory, task.number, task.token));
  for (const auto& name : *names)
    if (!running.contains(all + "/" + name))
      BERTH_TRY(run.cache.remove_published(all + "/" + name));
  return {};
}

Status prepare_outputs(os::Env& env, const flow::TaskSpec& spec, const std::string& directory) {
  for (const auto& output : spec.outputs) {
    const std::string to = directory + "/" + output.path;
    BERTH_TRY(env.make_user_directory(output.directory ? to : parent_of(to), 0777));
  }
  if (!spec.script.empty()) {
    const auto file = [&](std::string_view name) { return fmt::format("{}/{}", directory, name); };
    BERTH_TRY(env.replace_file(file(flow::kScriptFile), spec.script, 0700));
    BERTH_TRY(env.replace_file(file(flow::kTaskFile), spec.task_file, 0600));
  }
  if (!spec.params_file) return {};
  return env.replace_file(directory + "/" + std::string(flow::kParamsFile),
                          experiment::values_json(spec.params) + "\n", 0600);
}

exec::Launch launch_of(const FlowRun& run, const flow::Step& step, const PreparedTask& task,
                       const store::TaskRecord& record, std::int64_t attempt) {
  const flow::TaskSpec& spec = task.spec;
  const std::string directory = task_directory(run.directory, record.number, task.token);
  exec::Environment environment;
  for (const auto& [name, value] : spec.params) set(environment, parameter_variable(name), value);
  for (const auto& [name, value] : spec.environment) set(environment, name, value);
  name_task(environment, run.directory, run.record, record, task.token, attempt);
  exec::Launch launch{
      .task = record.number,
      .token = task.token,
      .request = {step.resources, run.record.name + "/" + record.label, step.selection},
      .argv = spec.command,
      .environment = std::move(environment),
      .directory = directory,
      .timeout = step.timeout,
      .grace = kGrace,
      .enforce = step.enforce,
      .gpu_mem_over = exec::watched(step.resources, step.gpu_mem_over),
      .container = step.container,
      .stage_in = {directory}};
  if (!step.image_there.empty()) launch.container.image = step.image_there;
  if (!step.depfile.empty() && launch.container.isolated())
    launch.container.shown.push_back(run.record.directory);
  for (const auto& output : spec.outputs) launch.stage_out.push_back(directory + "/" + output.path);
  return launch;
}

std::string depends_of(const PreparedTask& task) {
  std::vector<Digest> digests;
  for (const auto& input : task.inputs) digests.push_back(fileset::digest(input));
  return flow::record(task.spec, digests);
}

std::string result_key(const FlowRun& run, const std::string& depends, bool shared) {
  return to_hex(sha256(shared ? depends : run.record.name + "\n" + depends));
}

store::TaskKeyed assign_key(const FlowRun& run, PreparedTask& task, TaskNumber number,
                            const std::string& depends) {
  if (!task.spec.outputs.empty()) task.key = result_key(run, depends, writes(run.program.cache));
  return {number, task.key, depends};
}

Result<std::optional<Delivery>> find_result(FlowRun& run, const std::string& key,
                                            const flow::Step& step, std::string* origin) {
  const auto result = run.context.store->result(key);
  if (!result && result.error().kind == ErrorKind::not_found) return std::nullopt;
  if (!result) return std::unexpected(result.error());
  auto found = parse_outputs(result->outputs);
  if (!found || found->size() != step.out.size()) return std::nullopt;
  auto metrics = parse_metrics(result->outputs);
  if (!has_metrics(metrics, step.asked_metrics)) return std::nullopt;
  auto hold = run.cache.hold(all_of(*found));
  if (!hold) {
    // Neither says that the result is not there.
    const bool unknown =
        is_resource_shortage(hold.error()) || hold.error().kind == ErrorKind::interrupted;
    if (unknown) return std::unexpected(hold.error());
    return std::nullopt;
  }
  if (origin != nullptr) *origin = result->origin;
  std::optional<Delivery> delivery;
  delivery.emplace(
      Delivery{.spec = {}, .folder = run.record.directory, .outputs = *std::move(found)});
  delivery->metrics = std::move(metrics);
  delivery->overwrite = run.program.overwrite;
  delivery->protected_file = protected_file(run.directory);
  delivery->holds.push_back(*std::move(hold));
  return delivery;
}

void keep_result(const FlowRun& run, PreparedTask& task, const std::string& label,
                 std::vector<fileset::Fileset> outputs, std::vector<store::Change>& changes) {
  task.outputs = std::move(outputs);
  std::ranges::move(std::exchange(task.learned, {}), std::back_inserter(changes));
  if (!task.key.empty())
    changes.emplace_back(store::ResultKept{task.key, to_text(task.outputs, task.metrics),
                                           run.record.name + "/" + label, run.env.wall()});
}

}  // namespace berth::run
