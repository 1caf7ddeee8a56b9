// What tasks were found to read, by the depfiles that they wrote: files that nobody declares, such
// as the headers of a source. They count for the cache as inputs do.
//
// Of a task with a depfile two things are kept in the store of results. Under the digest of what it
// declares: which files it was found to read, the latest lists first. Under the digest of that and
// of what these files hold: its outputs, as of any task. So a task is looked up in two steps: the
// lists, then for each of them the result with the files as they are now. A task that reads other
// files than before was changed in something that is declared or on a list, so no list is missed.
//
// Ownership: refers to the Env and the store. Threads: one. Failure: as each function says.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/flow/flow.h"
#include "berth/os/env.h"
#include "berth/store/store.h"

namespace berth::run {

class Dependencies {
 public:
  /// `folder`: of the flow, whose graph answers `writer`.
  using WriterOf = std::function<std::optional<flow::Graph::Writer>(const std::string& path)>;
  Dependencies(os::Env& env, store::Store& store, std::string folder, WriterOf writer);

  /// What a task may depend on that declares this: a record for each list that is kept under `key`
  /// and whose files are all there, the latest first.
  Result<std::vector<std::string>> records(const std::string& key, const std::string& declared);

  /// The files of the world that the depfile in the task's directory names, as they are now.
  /// Errors: invalid, not_found: there is no depfile, or it cannot be read, or names what is not
  /// there, or what `waits_for` says the task did not wait for; stale: one has changed since the
  /// task was started.
  struct Task {
    const flow::TaskSpec& spec;
    std::string directory;
    Wall started;
    std::function<bool(flow::TaskIndex)> waits_for;
  };
  Result<std::vector<flow::Found>> found(const Task& task);

  /// The lists under `key` again, since they were used.
  Result<store::ResultKept> again(const std::string& key);
  /// The lists under `key` with this one in front, to be kept.
  Result<store::ResultKept> with(const std::string& key, const std::vector<flow::Found>& found,
                                 std::string origin);

 private:
  struct Known {
    os::FileStatus status;
    Digest digest;
    Wall since;  // when it was first read as that, and as nothing else after
  };
  Result<std::vector<flow::Words>> lists(const std::string& key);
  Result<Digest> digest_of(const std::string& path, std::optional<Wall> started);

  os::Env& env_;
  store::Store& store_;
  const std::string folder_;
  const WriterOf writer_;
  std::unordered_map<std::string, Known> known_;  // by path
};

/// The text of which the digest is the key of the lists of a task that declares this.
std::string lists_of(std::string_view declared);

/// Shows a task that has a depfile the flow's folder in its own directory: all that is not among
/// its inputs and outputs, by links.
Status show_folder(os::Env& env, const flow::TaskSpec& spec, const std::string& folder,
                   const std::string& directory);

}  // namespace berth::run
