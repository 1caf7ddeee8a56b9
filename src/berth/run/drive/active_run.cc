#include "berth/run/drive/active_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::run {
namespace {

std::string name_of_selection(std::size_t at) {
  return fmt::format("selection:{}", at);
}

/// Whether tasks of the selection may have any of the alloc's devices, and need no certain ones.
bool serves(const cluster::Alloc& alloc, const std::optional<machine::DeviceSelection>& asked_by,
            const machine::DeviceSelection& selection) {
  if (asked_by == selection) return true;
  const machine::DeviceSelection by_size{.slot_sizes = selection.slot_sizes,
                                         .memory_min = selection.memory_min};
  return selection == by_size && std::ranges::all_of(alloc.block.devices, [&](const auto& device) {
           return device.whole && machine::accepts(selection, device);
         });
}

}  // namespace

AttemptHistory ActiveRun::history(TaskNumber number) const {
  const auto found = histories.find(number.value);
  return found == histories.end() ? AttemptHistory{} : found->second;
}

ResourceRequest ActiveRun::request(TaskNumber number) const {
  const AttemptHistory before = history(number);
  ResourceRequest wanted = workload->request(task(number), before.attempt());
  if (before.attempt() == 1 && before.oom_mem == 0) return wanted;
  const Resources first = workload->request(task(number), 1).resources;
  wanted.resources = grown(std::move(wanted.resources), first, before,
                           before.bound.empty() ? machine : before.bound);
  return wanted;
}

bool ActiveRun::is_current(TaskNumber number, Token token) const {
  return number.value >= 1 && number.value <= std::ssize(tasks) &&
         task(number).state == store::TaskState::running && task(number).token == token;
}

bool ActiveRun::waits(TaskNumber number) const {
  if (number.value < 1 || number.value > std::ssize(tasks)) return false;
  const auto state = task(number).state;
  return state == store::TaskState::waiting || state == store::TaskState::stopped;
}

bool ActiveRun::is_open(TaskNumber number) const {
  if (number.value < 1 || number.value > std::ssize(tasks)) return false;
  return waits(number) || task(number).state == store::TaskState::running;
}

void ActiveRun::give_up(Error because) {
  if (error) return;
  observer.on_note(because.message);
  error = std::move(because);
  scheduler->halt();
}

Resources ActiveRun::offered(const cluster::Alloc& alloc,
                             const std::optional<machine::DeviceSelection>& asked_by,
                             Resources resources,
                             std::span<const schedule::Earlier> earlier) const {
  constexpr std::int64_t kPlenty = std::int64_t{1} << 32;
  const auto& selections = options().selections;
  for (std::size_t i = 0; i < selections.size(); ++i) {
    const auto& selection = selections[i];
    const std::int64_t running = std::ranges::count_if(
        earlier, [&](const auto& each) { return request(each.task).selection == selection; });
    const bool alone = !selection.required.empty() && !options().shares_devices;
    if (running > 0 || serves(alloc, asked_by, selection))
      resources.set(name_of_selection(i), alone ? std::max<std::int64_t>(1, running) : kPlenty);
  }
  return resources;
}

schedule::Task ActiveRun::scheduled(const store::TaskRecord& of) const {
  const ResourceRequest request = this->request(of.number);
  schedule::Task task{.number = of.number,
                      .resources = machine::charged(request.resources),
                      .priority = request.priority,
                      .retries = static_cast<int>(
                          std::max<std::int64_t>(0, request.retries - history(of.number).failures)),
                      .fence = {of.token.value + (of.state == store::TaskState::running ? 0 : 1)},
                      .gated = options().in_turn || !may_start(of.number),
                      .tolerated = request.tolerated};
  const auto& selections = options().selections;
  const auto selection = std::ranges::find(selections, request.selection);
  if (selection != selections.end())
    task.resources.set(name_of_selection(static_cast<std::size_t>(selection - selections.begin())),
                       1);
  // What is done is settled in its turn, where there is one.
  task.settled =
      of.state == store::TaskState::failed || (store::final(of.state) && !options().in_turn);
  return task;
}

}  // namespace berth::run
