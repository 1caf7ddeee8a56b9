// The tasks of a flow that are ready and that nobody has looked at yet. They are looked at by the
// priority of their steps, and within a step in the order in which they became ready; but only
// while there is room: a task that is prepared and not yet started holds its inputs.
//
// Pure: plain data.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "berth/flow/flow.h"

namespace berth::run {

class ReadyTasks {
 public:
  /// Tasks with room: of each step enough that the machine never waits for the next, few in all.
  static constexpr std::int64_t kMostRooms = 128;
  static constexpr std::int64_t kMostRoomsOfStep = 16;

  ReadyTasks() = default;
  explicit ReadyTasks(std::span<const flow::Step> steps);

  void add(std::size_t step, flow::TaskIndex task) { steps_[step].ready.push_back(task); }
  /// A task that an earlier runner has begun: it is looked at before all others, room or not.
  void add_begun(flow::TaskIndex task) { begun_.push_back(task); }
  /// The task that was taken last could not be dealt with: it is the next of its step.
  void put_back(std::size_t step, flow::TaskIndex task) { steps_[step].ready.push_front(task); }
  /// nullopt: there is nothing to look at, or no room for it.
  std::optional<flow::TaskIndex> take();
  bool has_next() const { return !begun_.empty() || next_step(); }

  void take_room(std::size_t step) { ++rooms_, ++steps_[step].rooms; }
  void free_room(std::size_t step) { --rooms_, --steps_[step].rooms; }

 private:
  struct Step {
    std::deque<flow::TaskIndex> ready;
    std::int64_t rooms = 0;  // that its tasks have
  };
  std::optional<std::size_t> next_step() const;

  std::deque<flow::TaskIndex> begun_;
  std::vector<Step> steps_;
  std::vector<std::size_t> by_priority_;  // steps
  std::int64_t rooms_ = 0;                // of all
};

}  // namespace berth::run
