#include "berth/engine/runs/on_end.h"

#include "berth/base/text.h"
#include "berth/engine/queries/failures.h"
#include "berth/engine/queries/flow_steps.h"
#include "berth/engine/queries/run_json.h"
#include "berth/os/spawn.h"
#include "berth/run/drive/workload.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostFailures = 20;
constexpr std::size_t kMostRead = 64;

/// Contains the epoch of the last end for which the command has run.
std::string done_file(const std::string& run_directory) {
  return run_directory + "/on_end.done";
}

}  // namespace

Status write_run_json(run::Context& context, const store::RunRecord& record,
                      const std::string& file) {
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  BERTH_ASSIGN(auto used, context.store->usage(record.id));
  BERTH_ASSIGN(auto failures, failures_of(context, record, tasks, kMostFailures));
  const std::string text = show_json(
      {record, std::string(store::name(record.state)), std::move(used), std::move(failures)},
      tasks);
  return context.env->replace_file(file, text, 0600);
}

Status run_on_end(run::Context& context, const store::RunRecord& record, const Print& print) {
  if (record.kind != "flow" || store::is_open(record.state)) return {};
  BERTH_ASSIGN(const auto flow, flow_of(record));
  if (flow.on_end.text.empty() && flow.on_end.words.empty()) return {};
  os::Env& env = *context.env;
  const std::string directory = run::run_directory(context, record.name);
  const std::string epoch = fmt::format("{}\n", record.epoch);
  if (const auto done = env.read_file(done_file(directory), kMostRead); done && *done == epoch)
    return {};
  const std::string file = directory + "/on_end.json";
  BERTH_TRY(write_run_json(context, record, file));
  os::SpawnSpec spec;
  spec.argv = exec::command_line(flow.on_end, [](auto) { return std::nullopt; });
  spec.environment = run::inherited_environment(env);
  spec.directory = record.directory;
  run::set(spec.environment, "BERTH_RUN", record.name);
  run::set(spec.environment, "BERTH_RUN_DIR", directory);
  run::set(spec.environment, "BERTH_RUN_STATE", std::string(store::name(record.state)));
  run::set(spec.environment, "BERTH_RUN_JSON", file);
  const auto ended = run_process(env, spec, print);
  if (!ended) return std::unexpected(ended.error());
  BERTH_TRY(env.replace_file(done_file(directory), epoch, 0600));
  if (!ended->empty()) return fail(ErrorKind::io, "{}", *ended);
  return {};
}

}  // namespace berth::engine
