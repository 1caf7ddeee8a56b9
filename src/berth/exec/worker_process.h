// One task of a ProcessWorker, from its start until its end is reported. Only the files of that
// class include this header.
//
// Ownership: the worker owns it; it refers to the worker. Threads: one.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/base/units.h"
#include "berth/exec/process_worker.h"
#include "berth/exec/task_container.h"

namespace berth::exec {

/// A group whose leader went at TERM is looked at until it is empty or its grace is over: at first
/// after this pause, then after twice the last one, because a look reads all of /proc.
inline constexpr Duration kLookFirst = std::chrono::milliseconds(10);

/// "12.3 GiB of 10.0 GiB on GPU-…".
inline std::string describe_share(const machine::OverShare& over) {
  return fmt::format("{} of {} on {}", format_bytes(over.has), format_bytes(over.share), over.uuid);
}

struct ProcessWorker::Process {
  explicit Process(ProcessWorker& worker)
      : exits(worker.env_->loop(),
              [this, &worker] {
                if (!exit) worker.on_exit(*this);
                worker.arm();
              }),
        prints(worker.env_->loop(),
               [this, &worker] {
                 worker.drain(*this, Stream::out);
                 worker.arm();
               }),
        complains(worker.env_->loop(), [this, &worker] {
          worker.drain(*this, Stream::err);
          worker.arm();
        }) {}

  TaskNumber task;
  Token token;
  Duration timeout{}, grace{};
  machine::Reservation reservation;
  std::unique_ptr<machine::Group> group;
  std::unique_ptr<TaskContainer> container;  // where the launch is isolated
  std::string command_file;                  // of its script; empty: none
  os::Child child;
  MetricReader out_metrics, err_metrics{Stream::err};
  MetricNotes notes;
  std::string failure;           // why its exit status is unknown
  std::optional<Mono> limit;     // when its time is up
  std::optional<Mono> kill_at;   // TERM was sent: when KILL follows
  std::optional<Mono> close_at;  // it has exited: when its output is closed on whoever holds it
  std::optional<os::ExitStatus> exit;
  std::optional<Mono> group_look_at;      // the leader is gone, its children still have their grace
  Duration look_pause = kLookFirst;       // until the look behind the next
  std::optional<Mono> leftovers_since;    // its group has ended, and what it left is being ended
  std::optional<Mono> leftovers_look_at;  // when the next look for them is due
  std::vector<pid_t> leftovers;           // those that were there at the last look
  bool leftovers_noted = false;
  machine::GroupUsage usage;
  bool killed = false;
  Cause verdict = Cause::ok;  // ours: time_limit, stopped or gpu_memory
  GpuMemOver gpu_mem_over = GpuMemOver::unwatched;
  machine::OverShare over;  // of its devices the most that it had beyond a share
  os::Poll exits, prints, complains;
};

}  // namespace berth::exec
