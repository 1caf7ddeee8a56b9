#include "berth/run/flows/ready_tasks.h"

#include <algorithm>
#include <functional>

namespace berth::run {

ReadyTasks::ReadyTasks(std::span<const flow::Step> steps) : steps_(steps.size()) {
  for (std::size_t i = 0; i < steps.size(); ++i) by_priority_.push_back(i);
  std::ranges::stable_sort(by_priority_, std::greater{},
                           [&](std::size_t step) { return steps[step].priority; });
}

std::optional<std::size_t> ReadyTasks::next_step() const {
  if (rooms_ >= kMostRooms) return std::nullopt;
  const auto found = std::ranges::find_if(by_priority_, [&](std::size_t step) {
    return !steps_[step].ready.empty() && steps_[step].rooms < kMostRoomsOfStep;
  });
  return found == by_priority_.end() ? std::nullopt : std::optional(*found);
}

std::optional<flow::TaskIndex> ReadyTasks::take() {
  const auto step = next_step();
  if (begun_.empty() && !step) return std::nullopt;
  auto& from = begun_.empty() ? steps_[*step].ready : begun_;
  const flow::TaskIndex task = from.front();
  from.pop_front();
  return task;
}

}  // namespace berth::run
