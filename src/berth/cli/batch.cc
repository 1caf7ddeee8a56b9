#include "berth/cli/batch.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "berth/base/text.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/engine/detach.h"
#include "berth/engine/run_json.h"
#include "berth/engine/run_record.h"
#include "berth/engine/run_state.h"
#include "berth/engine/shown_run.h"
#include "berth/flow/notation.h"
#include "berth/render/table.h"
#include "berth/run/run_labels.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostSideBySide = 16;

std::string row_of(const store::RunRecord& record) {
  for (const auto& [name, value] : run::labels_of(record))
    if (name == kRowLabel) return value;
  return {};
}

/// The steps whose results depend on what a column sets: they name it, or wait for one that does.
std::set<std::size_t> steps_of_columns(const flow::Flow& flow,
                                       const std::vector<std::string>& columns) {
  std::set<std::size_t> found;
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < flow.steps.size(); ++i) {
      const flow::Step& step = flow.steps[i];
      const bool named = std::ranges::any_of(step.params, [&](const auto& param) {
        return std::ranges::any_of(columns, [&](const std::string& column) {
          const auto of_sub_flow = step.name.substr(0, step.name.rfind('.') + 1);
          return column == of_sub_flow + param.first || column == step.name + "." + param.first;
        });
      });
      const bool after = std::ranges::any_of(step.after, [&](flow::StepIndex before) {
        return found.contains(static_cast<std::size_t>(before.value));
      });
      if ((named || after) && found.insert(i).second) more = true;
    }
  }
  return found;
}

/// What an output of a step is called in this flow, and what its instances go over: where both are
/// the same in two rows, both write the same files.
std::string called(const flow::Step& step, const flow::Output& output) {
  const auto replaced = [&](std::string_view text) {
    return flow::expand(text, [&](std::string_view name) -> std::optional<std::string> {
      const auto param =
          std::ranges::find(step.params, name, &std::pair<std::string, flow::Words>::first);
      if (param == step.params.end()) return std::nullopt;
      return join(param->second, " ");
    });
  };
  std::string text = replaced(output.path);
  for (const auto& variable : step.variables) {
    text += "\n" + join(variable.values, "\n") + "\n" + variable.table;
    if (variable.files) text += "\n" + replaced(variable.files->text);
  }
  return text;
}

/// Stops what runs, as berth stop does.
void stop_all(os::Env& env, run::Context& context, const std::vector<store::RunRecord>& runs) {
  for (const auto& run : runs) {
    const auto now = context.store->find_run(run.name);
    if (!now || now->runner_pid == 0) continue;
    (void)env.signal_process({static_cast<pid_t>(now->runner_pid), now->runner_started_at},
                             SIGTERM);
  }
}

}  // namespace

Result<std::vector<RunOptions>> options_of_rows(os::Env& env, const RunOptions& options) {
  if (options.file.empty()) return fail(ErrorKind::usage, "--rows: expected a flow's file");
  BERTH_ASSIGN(const std::string text, env.read_file(options.rows, flow::kMostTableBytes));
  BERTH_ASSIGN(const auto table, flow::read_table(text, options.rows));
  if (table.rows.empty())
    return fail(ErrorKind::invalid, "{}: the table has no rows", options.rows);
  if (table.rows.size() > kMostRowsOfBatch)
    return fail(ErrorKind::invalid, "{}: more than {} rows", options.rows, kMostRowsOfBatch);
  for (const auto& set : options.flow.set)
    for (const auto& column : table.columns)
      if (set.starts_with(column + "="))
        return fail(ErrorKind::usage, "--set: {} is a column of {}", column, options.rows);
  std::vector<RunOptions> all;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    RunOptions& own = all.emplace_back(options);
    for (std::size_t column = 0; column < table.columns.size(); ++column)
      own.flow.set.push_back(table.columns[column] + "=" + table.rows[i][column]);
    exec::Labels given;
    const std::string& first = table.rows[i].front();
    const bool fits = !first.empty() && exec::set_label(kRowLabel, first, given).has_value();
    own.labels.push_back(fmt::format("{}={}", kRowLabel, fits ? first : fmt::format("{}", i + 1)));
  }
  return all;
}

Status check_rows(const std::vector<run::FlowProgram>& programs, const flow::Table& table) {
  std::map<std::string, std::size_t> rows;  // by what is written
  for (std::size_t row = 0; row < programs.size(); ++row) {
    BERTH_ASSIGN(const auto flow, run::read_flow(programs[row]));
    for (const std::size_t i : steps_of_columns(flow, table.columns))
      for (const auto& output : flow.steps[i].out) {
        const auto [other, is_new] =
            rows.emplace(flow.steps[i].name + "\n" + called(flow.steps[i], output), row);
        if (is_new || other->second == row) continue;
        return fail(ErrorKind::invalid,
                    "{}:{}: steps.{}.out.{}: the rows {} and {} would both write {}: add a name "
                    "that distinguishes them, such as {{{}}}",
                    flow.steps[i].file, output.line, flow.steps[i].name, output.name,
                    clip(table.rows[other->second].front()), clip(table.rows[row].front()),
                    output.path, table.columns.front());
      }
  }
  return {};
}

Result<int> drive_batch(os::Env& env, run::Context& context,
                        const std::vector<store::RunRecord>& runs, bool json) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(100);
  os::install_stop_signals();
  BERTH_ASSIGN(const auto capacity, machine::discover(env, context.capacity));
  const auto cores = machine::host_of(capacity, nullptr).total.resources.get(Known::cpu) / 1000;
  const std::size_t side_by_side =
      std::clamp<std::size_t>(static_cast<std::size_t>(cores), 1, kMostSideBySide);
  std::vector<std::size_t> open;  // indices of those that were started and are not over
  std::vector<engine::ShownRun> ended(runs.size());
  std::size_t next = 0;
  bool stopping = false;
  while (next < runs.size() || !open.empty()) {
    if (!stopping && env.stop_signals() > 0) {
      stopping = true;
      print_error("stopping\n");
      stop_all(env, context, runs);
    }
    if (stopping) next = runs.size();
    while (next < runs.size() && open.size() < side_by_side) {
      if (const auto started = engine::start_detached(context, runs[next]); !started)
        print_error(fmt::format("berth: {}\n", started.error().message));
      open.push_back(next++);
    }
    std::erase_if(open, [&](std::size_t i) {
      auto record = context.store->find_run(runs[i].name);
      if (!record) return false;  // a store that is busy: the next look
      std::string state = engine::state_now(env, *record);
      if (engine::is_under_way(state)) return false;
      print_error(fmt::format("{} ({} {}): {}, {}\n", record->name, kRowLabel, row_of(*record),
                              state, engine::counts_text(record->counts)));
      ended[i] = {*std::move(record), std::move(state)};
      return true;
    });
    if (!open.empty()) BERTH_TRY(env.wait({}, env.now() + kLookEvery));
  }
  bool failed = false, stopped = false;
  render::Table table({"row", "run", "state", "tasks"});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (ended[i].state.empty()) {  // not begun
      BERTH_ASSIGN(auto record, context.store->find_run(runs[i].name));
      ended[i] = {std::move(record), std::string(store::name(store::RunState::queued))};
    }
    const auto& [record, state] = std::tie(ended[i].record, ended[i].state);
    failed = failed || state == "failed";
    stopped = stopped || (state != "failed" && state != "done");
    table.add({row_of(record), record.name, state, engine::counts_text(record.counts)});
    if (!engine::is_under_way(state) && state != "done" && state != "failed")
      print_error(fmt::format("resume it with: berth resume {}\n", record.name));
    if (state == "failed") print_error(fmt::format("see: berth show {}\n", record.name));
  }
  print(json ? engine::runs_json(ended) : render::to_text(table));
  if (stopping) return exit_code(ErrorKind::interrupted);
  return failed ? 1 : stopped ? exit_code(ErrorKind::busy) : 0;
}

}  // namespace berth::cli
