// Steps that wait for themselves.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/flow/flow_options.h"

namespace berth::flow {
namespace {

/// A way through steps, without its middle where that is long.
std::string shortened(std::vector<std::string> names) {
  constexpr std::size_t kShown = 10;  // at either end
  if (names.size() > 2 * kShown + 1) {
    const std::string left_out = fmt::format("({} more)", names.size() - 2 * kShown);
    names.erase(names.begin() + kShown, names.end() - kShown);
    names.insert(names.begin() + kShown, left_out);
  }
  return join(names, " -> ");
}

}  // namespace

Status check_cycles(const Flow& flow) {
  enum class Mark : std::uint8_t { fresh, open, done };
  std::vector<Mark> marks(flow.steps.size(), Mark::fresh);
  struct Frame {
    std::size_t step, next;
  };
  std::vector<Frame> path;  // not the call stack: a chain may be a million steps long
  for (std::size_t root = 0; root < flow.steps.size(); ++root) {
    if (marks[root] == Mark::fresh) path.push_back({root, 0});
    while (!path.empty()) {
      auto& [step, next] = path.back();
      marks[step] = Mark::open;
      const auto& after = flow.steps[step].after;
      if (next == after.size()) {
        marks[step] = Mark::done;
        path.pop_back();
        continue;
      }
      const auto other = static_cast<std::size_t>(after[next++].value);
      if (marks[other] == Mark::fresh) path.push_back({other, 0});
      if (marks[other] != Mark::open) continue;
      std::vector<std::string> names;
      for (auto at = std::ranges::find(path, other, &Frame::step); at != path.end(); ++at)
        names.push_back(flow.steps[at->step].name);
      return fail(ErrorKind::invalid, "{}:{}: steps.{}: waits for itself: {} -> {}",
                  flow.steps[other].file, flow.steps[other].line, flow.steps[other].name,
                  shortened(std::move(names)), flow.steps[other].name);
    }
  }
  return {};
}

}  // namespace berth::flow
