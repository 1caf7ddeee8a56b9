// The outputs of tasks on their way to their places beside the flow's file. What takes long is done
// on other threads: what a task wrote is gathered into the object store, where nothing of it can be
// lost any more, and placed from there. Of a task that was tried again only what its last attempt
// wrote is placed, once nothing of an earlier one is on its way.
//
// Ownership: refers to the run. Threads: one, that of its owner. Failure: a Status that goes with
// each delivery; exists: a place has a file that no run of this task wrote.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/run/drive/other_threads.h"
#include "berth/run/flows/flow_task.h"

namespace berth::run {

/// Places outputs now. `there` of a folder in the way is judged by what runs have recorded.
Status place_now(FlowRun& run, Delivery& delivery);

class Deliveries {
 public:
  /// `is_last` tells whether this is the last attempt of its task, and that was not given up.
  Deliveries(FlowRun& run, std::function<bool(TaskNumber, Token)> is_last);

  struct Attempt {
    TaskNumber task;
    Token token;
    std::string label;  // of the task
  };
  /// Gathers and places what the attempt wrote; turn() tells how that went.
  Status deliver(Attempt attempt, Delivery delivery);
  /// Whether something that an attempt of this task wrote waits for its place, or goes there.
  bool is_placing(TaskNumber task) const;
  /// Places outputs that are in the object store, and calls `then` in turn().
  using Then = std::move_only_function<void(Delivery, Status)>;
  Status place(Delivery delivery, Then then);

  /// Checks the places of outputs before their task starts, and calls `then` in turn().
  Status check(Delivery delivery, Then then);

  struct Delivered {
    Attempt attempt;
    Delivery delivery;
    Status status;
  };
  std::vector<Delivered> turn();
  /// What was gathered but not placed since then or longer is left where it is.
  struct Left {
    Attempt attempt;
    std::vector<fileset::Fileset> outputs;
    std::vector<fileset::Hold> holds{};
    std::string note{};  // for people
  };
  std::vector<Left> leave(Mono begun_before);

  /// Whether something has come for turn() since it was asked last.
  bool take_news() { return threads_.take_news(); }
  bool busy() const { return threads_.busy(); }
  std::optional<Underway> oldest() const { return threads_.oldest(); }

 private:
  struct Placing {
    Attempt attempt;
    std::vector<fileset::Fileset> outputs;
    std::string places;
    Mono since;
    std::optional<Delivery> waits{};  // for that of an earlier attempt, which might come last
  };
  void gathered(Attempt attempt, Delivery delivery, Status status);
  void place_waiting(TaskNumber task);
  bool is_last(const Attempt& attempt) const { return is_last_(attempt.task, attempt.token); }

  FlowRun& run_;
  const std::function<bool(TaskNumber, Token)> is_last_;
  std::unordered_map<std::int64_t, Placing> placing_;  // by token
  std::vector<Delivered> delivered_;                   // for turn()
  OtherThreads threads_;                               // goes first
};

}  // namespace berth::run
