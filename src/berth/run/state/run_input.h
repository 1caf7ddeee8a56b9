// The standard input of a run's tasks: a copy in the run's directory, which each attempt is given
// anew. It is taken before the run is submitted and moved to the run afterwards.
#pragma once

#include <string>

#include "berth/os/env.h"
#include "berth/run/state/context.h"

namespace berth::run {

std::string input_file(const std::string& run_directory);

/// Checks that the file can be a standard input. `input`: an absolute path, or "-" for the standard
/// input of this process. Failure: not_found, denied; invalid, where it is a directory.
Status check_input(os::Env& env, const std::string& input);

/// A copy that belongs to no run yet; the destructor removes it.
class TakenInput {
 public:
  /// Copies the input until its end. Failure: as check_input(); full, where the disk has no room
  /// for it; interrupted, where a stop signal came first.
  static Result<TakenInput> take(Context& context, const std::string& input);
  TakenInput(TakenInput&& other) noexcept;
  TakenInput& operator=(TakenInput&&) = delete;
  ~TakenInput();

  /// Moves it to the run.
  Status keep(Context& context, const std::string& run_name);

 private:
  TakenInput(os::Env& env, std::string path, os::Fd lock)
      : env_(&env), path_(std::move(path)), lock_(std::move(lock)) {}

  os::Env* env_;
  std::string path_;
  os::Fd lock_;  // shows to other processes that the copy is in use
};

}  // namespace berth::run
