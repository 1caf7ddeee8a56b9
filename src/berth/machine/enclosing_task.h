// The enclosing task: the task that this process runs in, if a worker of Berth started it. Within a
// task the machine is what the task was given: a run within a run neither waits for its own parent
// nor takes what others hold, and its allocs are in a ledger of the task.
//
// The types are plain values; the functions read through the Env. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/ids.h"
#include "berth/machine/capacity.h"
#include "berth/machine/machine.h"

namespace berth::machine {

struct EnclosingTask {
  std::string id;  // "1234.567890.42": of the worker's process, and of the attempt
  Block block;     // what the worker gave it
};

/// What the first word of BERTH_ALLOC names.
struct TaskMark {
  os::ProcessIdentity worker;
  Token token;  // of the attempt
};
/// nullopt: no worker wrote the value.
std::optional<TaskMark> read_task_mark(std::string_view value);

/// Returns the workers, living or dead, of which this user has processes on this machine: their
/// tasks and what tasks left. It reads the environments of all processes of the user.
std::vector<os::ProcessIdentity> find_workers_of_processes(os::Env& env);

/// Reads BERTH_ALLOC. nullopt: it is absent, no worker wrote it, or its worker does not live on
/// this machine, as for a process that outlived its task or was moved to another machine.
std::optional<EnclosingTask> enclosing_task(os::Env& env);
/// The value of BERTH_ALLOC for a task of this process.
std::string write_enclosing_task(os::Env& env, Token token, const Block& block);

/// An addition to refusals, for people: " (the machine is …)"; "" outside tasks.
std::string enclosing_task_text(os::Env& env);

/// What a run says that begins within a task: "it runs within nest-1/1, and has of the machine what
/// that has: cpu 2, mem 4 GiB"; "" outside tasks.
std::string enclosing_task_note(os::Env& env);

/// Narrows the capacity to the block: its cores and devices, at most its cpu, mem and disk (all if
/// it has none of these), and its amounts of other names.
void narrow(Capacity& capacity, const Block& block);
void narrow(std::vector<DeviceShare>& devices, const Block& block);

std::string task_ledger(const std::string& directory, const std::string& id);
/// Removes ledgers of tasks whose workers are gone.
void sweep_task_ledgers(os::Env& env, const std::string& directory);

}  // namespace berth::machine
