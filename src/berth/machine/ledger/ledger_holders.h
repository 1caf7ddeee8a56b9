// Judges which holders of a ledger live, also those in other PID namespaces (containers), whose
// pids mean nothing here. While a process holds or waits for a part of the machine, it has a lock
// on a file in the ledger's directory:
//
//   holder.PID.STARTED.NAMESPACE.USER
//
// The lock is its lease: the kernel ends it with the process, in whatever namespace that is. A
// holder is dead when no such process exists here and no such file is locked.
//
// Ownership: the Env and the directory's name outlive the objects. Threads: one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/os/env.h"

namespace berth::machine {

/// Locks the file of this process, until the Fd is closed; an empty Fd where the namespace is not
/// known. A process may have several such locks. The caller holds the ledger's lock. Errors:
/// denied, io.
Result<os::Fd> lock_as_holder(os::Env& env, const std::string& directory);

class Holders {
 public:
  Holders(os::Env& env, const std::string& directory) : env_(&env), directory_(&directory) {}

  /// What is in the ledger's directory, where the caller has just listed it.
  void take_names(std::vector<std::string> names) { names_ = std::move(names); }
  bool alive(const os::ProcessIdentity& holder);
  /// Removes the file of one dead holder of this user, if it comes upon one. The caller holds the
  /// ledger's lock.
  void sweep_one();

 private:
  const std::vector<std::string>& names();

  os::Env* env_;
  const std::string* directory_;
  std::optional<std::vector<std::string>> names_;
};

}  // namespace berth::machine
