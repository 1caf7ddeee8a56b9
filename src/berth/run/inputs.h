// The files of the world that tasks take in, each read once: a run sees one state of them. They are
// read on other threads, however small: a file system that hangs holds nobody up there. The latest
// are held in the object store; what was collected since is read again.
//
// Ownership: refers to the Env and the object store. Threads: one, that of its owner; what runs on
// another keeps nothing of this. Failure: as each function says.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/run/flow_task.h"
#include "berth/run/other_threads.h"

namespace berth::run {

class Inputs {
 public:
  Inputs(os::Env& env, fileset::ObjectStore& cache, std::string folder);

  /// Fills the task's inputs, and holds them. false, where `later` allows it: some are read first,
  /// and turn() names the task when they are there.
  Result<bool> fill(PreparedTask& task, bool later);
  /// Holds a task's inputs by one Hold; those of the world that are not in the store any more are
  /// read again. stale: one is not what it was.
  Status hold(PreparedTask& task);
  /// Puts the inputs into the task's directory, which is made.
  Status publish(PreparedTask& task, const std::string& directory);

  /// Waits for what was not read yet; interrupted: a stop signal came meanwhile.
  Result<fileset::Fileset> get(const std::string& path);
  /// Into the store again. stale: it is not what it was.
  Status restore(const std::string& path);

  /// Tasks that can be looked at again, the one that shall come first last.
  std::vector<flow::TaskIndex> turn();
  /// Whether something has come for turn() since it was asked last.
  bool take_news() { return threads_.take_news(); }
  bool busy() const { return threads_.busy(); }
  std::optional<Underway> oldest() const { return threads_.oldest(); }

 private:
  /// An input as it was captured on another thread, and the store that has to make it durable.
  struct Reading {
    fileset::ObjectStore store;
    fileset::Captured captured;
  };
  using Reader = std::move_only_function<Result<Reading>(os::Env& there)>;
  Reader reader(const std::string& path) const;
  Status read_now(const std::string& path);
  Status read_later(const std::string& path);
  void take(const std::string& path, Result<Reading> read);

  os::Env& env_;
  fileset::ObjectStore& cache_;
  const std::string folder_;
  std::unordered_map<std::string, fileset::Fileset> known_;
  std::unordered_map<std::string, Error> failed_;                          // told once
  std::unordered_map<std::string, std::vector<flow::TaskIndex>> waiting_;  // by what is being read
  std::vector<flow::TaskIndex> ready_;                                     // for turn()
  std::list<fileset::Hold> latest_;                                        // the newest in front
  std::unique_ptr<os::BackgroundThreads> alone_;                           // for read_now()
  OtherThreads threads_;                                                   // these two go first
};

}  // namespace berth::run
