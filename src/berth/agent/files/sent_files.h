// SentFiles records which files a runner sent to a lease's directory and which ones it fetches from
// there. So the runner can say at the end how many other files its tasks wrote: these are deleted
// with the directory.
//
// The record is the file `sent` in the lease directory. It survives a broken connection, and it is
// deleted with the lease directory.
//
// Ownership: a SentFiles refers to its Env. Threads: one. Failure: that of the Env.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "berth/fileset/fileset.h"
#include "berth/os/env.h"

namespace berth::agent {

/// Files that tasks wrote and that no one fetches.
struct WrittenFiles {
  std::int64_t files = 0;
  std::int64_t bytes = 0;
  bool operator==(const WrittenFiles&) const = default;
};
/// "3 1024"
std::string to_text(const WrittenFiles& written);
/// Failure: invalid.
Result<WrittenFiles> parse_written(std::string_view text);

class SentFiles {
 public:
  /// `work` is the directory of all files of the lease.
  SentFiles(os::Env& env, std::string work);

  /// Records that the whole of `path`, relative to the work directory, is not a task's alone.
  Status add(std::string_view path);
  /// Records the files that were published at `path` with their times, so that a file that a task
  /// changes or adds there is recognized.
  Status add_files(std::string_view path, const fileset::Fileset& fileset);
  /// Counts the files below `path` ("": the work directory) that are not recorded or were changed.
  /// Compiled Python files in `__pycache__` do not count.
  Result<WrittenFiles> written(std::string_view path) const;

 private:
  std::string in_work(std::string_view path) const;
  Status append(std::string_view text) const;

  os::Env& env_;
  const std::string work_, record_;
  std::set<std::string, std::less<>> added_;  // whole paths that this object recorded
};

}  // namespace berth::agent
