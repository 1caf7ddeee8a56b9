// The task that this process runs in, where a worker of Berth started it. To what runs within a
// task the machine is what the task was given: a run within a run neither waits for its own parent
// nor takes what others hold, and its allocs are in a ledger of the task's own.
//
// Plain values; reads through the Env. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/base/ids.h"
#include "berth/machine/capacity.h"
#include "berth/machine/machine.h"

namespace berth::machine {

struct EnclosingTask {
  std::string id;  // "1234.567890.42": of the worker's process, and of the attempt
  Block block;     // what the worker gave it
};

/// What BERTH_ALLOC says; nullopt where that is absent, nothing that a worker wrote, or of a worker
/// that does not live here: what outlived its task, or was taken to another machine, is in none.
std::optional<EnclosingTask> enclosing_task(os::Env& env);
/// What BERTH_ALLOC is to say to a task of this process.
std::string write_enclosing_task(os::Env& env, Token token, const Block& block);

/// What a refusal adds, for a person: " (the machine is …)"; "" outside tasks.
std::string enclosing_task_text(os::Env& env);

/// Leaves what the block has: its cores and devices, of cpu, mem and disk no more than it says (as
/// much as there is where it says nothing), and of other names what it says.
void narrow(Capacity& capacity, const Block& block);
void narrow(std::vector<DeviceShare>& devices, const Block& block);

/// The ledger of a task, in a directory of ledgers.
std::string task_ledger(const std::string& directory, const std::string& id);
/// Removes ledgers of tasks whose workers are gone.
void sweep_task_ledgers(os::Env& env, const std::string& directory);

}  // namespace berth::machine
