#include "berth/engine/runs/batch.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/engine/queries/run_record.h"
#include "berth/engine/queries/run_state.h"
#include "berth/engine/runs/detach.h"
#include "berth/engine/runs/flow_parameters.h"
#include "berth/flow/notation.h"
#include "berth/flow/table.h"
#include "berth/run/state/run_labels.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostRunsOfBatch = 10'000;
constexpr std::size_t kMostInParallel = 16;
constexpr std::string_view kRowLabel = "row";  // of a run: the first field of its row

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

/// Checks that no two rows write one file in different ways.
Status check_rows(const std::vector<BatchRow>& batch, const flow::Table& table) {
  std::map<std::string, std::size_t> rows;  // by what is written
  for (std::size_t row = 0; row < batch.size(); ++row) {
    BERTH_ASSIGN(const auto flow, run::read_flow(*batch[row].submission.flow()));
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

Result<flow::Table> read_rows(os::Env& env, const BatchRequest& request) {
  if (request.run.file.empty()) return fail(ErrorKind::usage, "--rows: expected a flow's file");
  BERTH_ASSIGN(const std::string text, env.read_file(request.rows, flow::kMostTableBytes));
  BERTH_ASSIGN(auto table, flow::read_table(text, request.rows));
  if (table.rows.empty())
    return fail(ErrorKind::invalid, "{}: the table has no rows", request.rows);
  if (table.rows.size() > kMostRunsOfBatch)
    return fail(ErrorKind::invalid, "{}: more than {} rows", request.rows, kMostRunsOfBatch);
  for (const auto& set : request.parameters)
    for (const auto& column : table.columns)
      if (set.starts_with(column + "="))
        return fail(ErrorKind::usage, "--set: {} is a column of {}", column, request.rows);
  BERTH_ASSIGN(const std::string file, env.read_file(request.run.file, flow::kMostFlowBytes));
  // A file that cannot be read is reported as it is without rows.
  if (Field::parse(file, request.run.file) && !run::is_flow(file))
    return fail(
        ErrorKind::usage,
        "--rows: {} is not a flow; for an experiment use search: {{method: sequence, file: …}}",
        request.run.file);
  return table;
}

/// The request with the columns of a row as parameters, and the row as a label.
Result<RunRequest> request_of_row(const BatchRequest& batch, const flow::Table& table,
                                  std::size_t row) {
  RunRequest request = batch.run;
  const auto& values = table.rows[row];
  for (std::size_t column = 0; column < table.columns.size(); ++column)
    BERTH_TRY(set_parameter(table.columns[column] + "=" + values[column], request.flow));
  exec::Labels given;
  const bool fits =
      !values.front().empty() && exec::set_label(kRowLabel, values.front(), given).has_value();
  BERTH_TRY(exec::add_label(
      fmt::format("{}={}", kRowLabel, fits ? values.front() : fmt::format("{}", row + 1)),
      request.labels));
  return request;
}

/// Stops the runs that have a runner, as berth stop does.
void stop_all(const Context& context, const std::vector<store::RunRecord>& runs) {
  for (const auto& run : runs) {
    const auto now = context.store->find_run(run.name);
    if (!now || now->runner_pid == 0) continue;
    (void)context.env->signal_process({static_cast<pid_t>(now->runner_pid), now->runner_started_at},
                                      SIGTERM);
  }
}

Result<std::vector<store::RunRecord>> submit_all(Context& context, std::vector<BatchRow>& rows,
                                                 const Note& note) {
  std::vector<store::RunRecord> runs;
  for (auto& row : rows) {
    const Note first_note = runs.empty() ? note : [](const std::string&) {};
    BERTH_ASSIGN(runs.emplace_back(), submit(context, row.submission, first_note));
  }
  return runs;
}

Result<std::size_t> most_in_parallel(const Context& context) {
  BERTH_ASSIGN(const auto capacity, machine::discover(*context.env, context.capacity));
  const auto cores = machine::host_of(capacity, nullptr).total.resources.get(Known::cpu) / 1000;
  return std::clamp<std::size_t>(static_cast<std::size_t>(cores), 1, kMostInParallel);
}

}  // namespace

Result<std::vector<BatchRow>> read_batch(Context& context, const BatchRequest& request,
                                         const Note& note) {
  BERTH_ASSIGN(const auto table, read_rows(*context.env, request));
  std::vector<BatchRow> batch;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    BERTH_ASSIGN(const auto own, request_of_row(request, table, i));
    auto submission = read_submission(*context.env, own);
    if (!submission && submission.error().kind == ErrorKind::usage)
      return std::unexpected(submission.error());
    const auto row = fmt::format("{}, row {}", request.rows, clip(table.rows[i].front()));
    if (!submission) return std::unexpected(within(row, std::move(submission).error()));
    // The rows have the same notes.
    const Note first_note = i == 0 ? note : [](const std::string&) {};
    if (auto checked = check(context, *submission, first_note); !checked)
      return std::unexpected(within(row, std::move(checked).error()));
    batch.push_back({table.rows[i].front(), *std::move(submission)});
  }
  BERTH_TRY(check_rows(batch, table));
  return batch;
}

Result<BatchResult> run_batch(Context& context, std::vector<BatchRow>& rows, const Note& note,
                              const Print& print) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(100);
  os::Env& env = *context.env;
  BERTH_ASSIGN(const auto runs, submit_all(context, rows, note));
  os::install_stop_signals();
  BERTH_ASSIGN(const auto in_parallel, most_in_parallel(context));
  std::vector<std::size_t> open;  // indices of those that were started and are not over
  std::vector<ShownRun> ended(runs.size());
  BatchResult result;
  for (std::size_t next = 0; next < runs.size() || !open.empty();) {
    if (!result.is_interrupted && env.stop_signals() > 0) {
      result.is_interrupted = true;
      print("stopping\n");
      stop_all(context, runs);
    }
    if (result.is_interrupted) next = runs.size();
    while (next < runs.size() && open.size() < in_parallel) {
      if (const auto started = start_detached(context, runs[next]); !started)
        print(fmt::format("berth: {}\n", started.error().message));
      open.push_back(next++);
    }
    std::erase_if(open, [&](std::size_t i) {
      auto record = context.store->find_run(runs[i].name);
      if (!record) return false;  // the store is busy: the next look
      std::string state = state_now(env, *record);
      if (is_under_way(state)) return false;
      print(fmt::format("{} ({} {}): {}, {}\n", record->name, kRowLabel, row_of(*record), state,
                        counts_text(record->counts)));
      ended[i] = {*std::move(record), std::move(state)};
      return true;
    });
    if (!open.empty()) BERTH_TRY(env.wait({}, env.now() + kLookEvery));
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (ended[i].state.empty()) {  // not started
      BERTH_ASSIGN(auto record, context.store->find_run(runs[i].name));
      ended[i] = {std::move(record), std::string(store::name(store::RunState::queued))};
    }
    std::string row = row_of(ended[i].record);
    result.runs.push_back({std::move(row), std::move(ended[i])});
  }
  return result;
}

}  // namespace berth::engine
