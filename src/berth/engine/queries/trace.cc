#include "berth/engine/queries/trace.h"

#include <algorithm>
#include <map>
#include <vector>

#include "berth/base/json_writer.h"
#include "berth/cluster/tracing.h"
#include "berth/engine/queries/run_record.h"

namespace berth::engine {
namespace {

constexpr std::int64_t kFirstMachine = 1000;  // lower groups are those of calls to the cluster
constexpr std::size_t kLargestTrace = 1U << 30;

struct Bar {
  std::string label;
  store::AttemptRecord attempt;
};

/// Returns the calls to the cluster that the runner recorded, without the start of the array.
std::string cluster_calls(Context& context, const std::string& run) {
  const auto text =
      context.env->read_file(run::trace_file(run_directory(context, run)), kLargestTrace);
  if (!text) return {};
  const auto end = text->rfind('\n');  // the last line may be torn
  if (end == std::string::npos || !text->starts_with("[\n")) return {};
  return text->substr(2, end - 1);
}

/// Returns the attempts in rows without overlaps: each takes the first free row of its machine.
std::string attempt_rows(std::vector<Bar> bars, Wall now) {
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
    what.add("outcome", attempt.ended ? cause_text(attempt) : "running");
    what.key("resources").raw(attempt.resources.empty() ? "{}" : attempt.resources);
    what.add("cpu_ms", attempt.cpu_ms).add("peak_mem", attempt.peak_mem).end();
    text += cluster::trace_event(label, group, lane, attempt.started, end, what.take());
  }
  return text;
}

}  // namespace

Result<std::string> trace_of(Context& context, std::string_view run) {
  BERTH_ASSIGN(const auto record, find_run(context, run));
  BERTH_ASSIGN(const auto tasks, context.store->tasks(record.id));
  std::vector<Bar> bars;
  for (const auto& task : tasks) {
    if (task.attempts == 0) continue;
    BERTH_ASSIGN(const auto attempts, context.store->attempts(record.id, task.number));
    for (const auto& attempt : attempts) bars.push_back({task.label, attempt});
  }
  std::string text = "[\n" + cluster_calls(context, record.name);
  text += attempt_rows(std::move(bars), context.env->wall());
  if (text.ends_with(",\n")) text.erase(text.size() - 2);
  return text + "\n]\n";
}

}  // namespace berth::engine
