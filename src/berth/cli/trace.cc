// berth trace: a run as a timeline for Perfetto or Chrome's tracing page. Each attempt is a bar in
// a row of its machine; above them are the calls to the cluster.
#include "berth/cluster/tracing.h"

#include <algorithm>
#include <map>

#include "berth/base/json_writer.h"
#include "berth/cli/print.h"
#include "berth/cli/shared_options.h"
#include "berth/engine/run_record.h"
#include "berth/run/find_run.h"

namespace berth::cli {
namespace {

constexpr std::int64_t kFirstMachine = 1000;  // groups before it are those of the cluster's calls
constexpr std::size_t kLargestTrace = 1U << 30;

struct TraceOptions {
  std::string run;

  void add_to(Options& options) {
    options.always_json();
    add_run(options, run);
    options.example("berth trace digits-3 > digits-3.json");
  }
};

struct Bar {
  std::string label;
  store::AttemptRecord attempt;
};

/// The calls to the cluster, which the runner wrote while it ran, without the array's beginning.
std::string of_the_cluster(os::Env& env, run::Context& context, const std::string& run) {
  const auto text = env.read_file(run::trace_file(run_directory(context, run)), kLargestTrace);
  if (!text) return {};
  const auto end = text->rfind('\n');  // the last line may be torn
  if (end == std::string::npos || !text->starts_with("[\n")) return {};
  return text->substr(2, end - 1);
}

/// The attempts in rows in which no two overlap: each takes the first free row of its machine.
std::string of_the_attempts(std::vector<Bar> bars, Wall now) {
  std::ranges::sort(bars, {}, [](const Bar& bar) { return bar.attempt.started; });
  std::map<std::string, std::pair<std::int64_t, std::vector<Wall>>> machines;  // group, rows' ends
  std::string text;
  for (const auto& [label, attempt] : bars) {
    const auto [found, is_new] = machines.try_emplace(attempt.host);
    auto& [group, ends] = found->second;
    if (is_new) {
      group = kFirstMachine + static_cast<std::int64_t>(machines.size()) - 1;
      text += cluster::trace_name("tasks on " + attempt.host, group, {});
    }
    const auto free = std::ranges::find_if(ends, [&](Wall end) { return end <= attempt.started; });
    const auto lane = free - ends.begin();
    const Wall end = attempt.ended.value_or(now);
    if (free == ends.end())
      ends.push_back(end);
    else
      *free = end;
    JsonWriter what;
    what.object().add("attempt", attempt.number);
    what.add("outcome", attempt.ended ? engine::cause_text(attempt) : "running");
    what.key("resources").raw(attempt.resources.empty() ? "{}" : attempt.resources);
    what.add("cpu_ms", attempt.cpu_ms).add("peak_mem", attempt.peak_mem).end();
    text += cluster::trace_event(label, group, lane, attempt.started, end, what.take());
  }
  return text;
}

Result<int> trace(os::Env& env, const TraceOptions& options) {
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  std::vector<Bar> bars;
  for (const auto& task : tasks) {
    if (task.attempts == 0) continue;
    BERTH_ASSIGN(const auto attempts, context.store->attempts(record.id, task.number));
    for (const auto& attempt : attempts) bars.push_back({task.label, attempt});
  }
  std::string text = "[\n" + of_the_cluster(env, context, record.name);
  text += of_the_attempts(std::move(bars), env.wall());
  if (text.ends_with(",\n")) text.erase(text.size() - 2);
  print(text + "\n]\n");
  return 0;
}

}  // namespace

Command trace_command() {
  return command("trace", "Export the timeline of a run for ui.perfetto.dev", trace);
}

}  // namespace berth::cli
