#include "berth/run/flows/earlier_task.h"

#include "berth/flow/flow.h"
#include "berth/run/state/skips.h"

namespace berth::run {

std::optional<EarlierTask> earlier_task(Context& context, std::span<const store::RunRecord> runs,
                                        std::string_view flow_name, RunId before,
                                        const std::string& label) {
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (before.value != 0 && run->id >= before) continue;
    if (run->kind != "flow" || run->name.substr(0, run->name.rfind('-')) != flow_name) continue;
    auto task = context.store->find_task(run->id, label);
    if (task && !depended_on(*task).empty()) return EarlierTask{run->name, *std::move(task)};
  }
  return std::nullopt;
}

Result<std::vector<std::string>> changes_since(const EarlierTask& earlier,
                                               const std::string& depends) {
  std::vector<std::string> lines;
  BERTH_ASSIGN(const auto changes, flow::changes(earlier.task.depends, depends));
  for (const auto& change : changes)
    lines.push_back(fmt::format("since {}: {}", earlier.run, flow::to_string(change)));
  return lines;
}

}  // namespace berth::run
