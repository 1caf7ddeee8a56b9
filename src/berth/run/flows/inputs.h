// The files of the world that tasks take in, each read once: a run sees one state of them. They are
// read, or fetched from where they are, on other threads, however small: a file system or a server
// that hangs holds nobody up there. The latest are held in the object store; what was collected
// since is read again.
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

#include "berth/run/drive/other_threads.h"
#include "berth/run/flows/flow_task.h"

namespace berth::remote {
struct Cloud;
}

namespace berth::run {

class Inputs {
 public:
  /// `cloud` stands in for the plugin.
  Inputs(os::Env& env, fileset::ObjectStore& cache, std::string folder,
         const remote::Cloud* cloud = nullptr);

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
  bool take_news() {
    const bool fetched = fetches_.take_news();
    return threads_.take_news() || fetched;
  }
  bool busy() const { return threads_.busy() || fetches_.busy(); }
  std::optional<Underway> oldest() const;

 private:
  /// An input as it was captured on another thread, and the store that has to make it durable.
  struct Reading {
    fileset::ObjectStore store;
    fileset::Captured captured;
  };
  using Reader = std::move_only_function<Result<Reading>(os::Env& there)>;
  /// How it is read, and how that is called.
  struct Job {
    Reader read;
    std::string what;
    OtherThreads::More more{};
  };
  Result<Job> job(const std::string& path);
  Result<Job> fetch_job(const std::string& url);
  Status read_now(const std::string& path);
  Status read_later(const std::string& path);
  void take(const std::string& path, Result<Reading> read);

  os::Env& env_;
  fileset::ObjectStore& cache_;
  const std::string folder_;
  const remote::Cloud* cloud_;
  std::unordered_map<std::string, fileset::Fileset> known_;
  std::unordered_map<std::string, Error> failed_;                          // told once
  std::unordered_map<std::string, std::vector<flow::TaskIndex>> waiting_;  // by what is being read
  std::vector<flow::TaskIndex> ready_;                                     // for turn()
  std::list<fileset::Hold> latest_;                                        // the newest in front
  std::unique_ptr<os::BackgroundThreads> alone_;                           // for read_now()
  OtherThreads threads_, fetches_;                                         // these three go first
};

}  // namespace berth::run
