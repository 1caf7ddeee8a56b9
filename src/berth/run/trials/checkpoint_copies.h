// Checkpoints that are copied, and those that are removed, beside the loop: they may be gigabytes.
// A copy has its name once it is whole and on the disk, so that a killed runner leaves none that is
// half; the next one begins anew. Where the volume can, it shares its blocks with the original.
//
// Ownership: refers to the Env, which outlives it. Threads: one.
#pragma once

#include <set>
#include <string>

#include "berth/run/drive/other_threads.h"

namespace berth::run {

class CheckpointCopies {
 public:
  explicit CheckpointCopies(os::Env& env) : env_(env), threads_(env, 1) {}

  /// Whether the directory `to` is there. Where it is not, a copy of `from` is begun, and
  /// take_news() tells when to ask again. An error is that of the last copy, which is begun anew
  /// when it is asked for once more.
  Result<bool> there(const std::string& from, const std::string& to);
  /// Removes a directory, sooner or later; what is left when the process ends is left.
  void remove(const std::string& path);

  bool take_news() { return threads_.take_news(); }
  bool busy() const { return !copying_.empty(); }
  std::optional<Underway> oldest() const { return threads_.oldest(); }
  void turn() { threads_.turn(); }

 private:
  os::Env& env_;
  std::set<std::string> copying_;
  Status failed_{};
  OtherThreads threads_;  // goes first
};

/// Copies what there is of files, directories and symbolic links; the rest (sockets) is left out.
Status copy_directory(os::Env& env, const std::string& from, const std::string& to);

}  // namespace berth::run
