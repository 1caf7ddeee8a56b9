// Why an attempt of a task ended. A worker reports the cause with the end of each attempt, and the
// runner decides by it whether the task is launched again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "berth/base/names.h"

namespace berth::exec {

enum class Cause : std::uint8_t {
  ok,              ///< It ended with exit code 0.
  exit_code,       ///< It ended with another exit code.
  signal,          ///< A signal that nobody here sent killed it.
  out_of_memory,   ///< The kernel killed it at its memory limit.
  time_limit,      ///< It ran for longer than it may.
  stopped,         ///< Cancel or Abandon ended it.
  cannot_start,    ///< Its program does not exist, is not executable, and so on.
  short_of_means,  ///< No descriptor, process or memory was left to start it; that may pass.
  worker_lost,     ///< The worker is gone, or has given back what the task ran on.
  gpu_memory,      ///< It had more of a GPU's memory than its share, and was to be ended then.
  given_back,      ///< It waited behind another attempt for too long, and never began.
  // Only the runner finds the causes below. No worker sends them.
  not_as_declared,  ///< It ended well, but did not write or report what it had declared.
  stopped_early,    ///< Its score did not warrant its end: a success with what it had by then.
  // Only the store finds these.
  superseded,   ///< A later attempt of its task began before its end was known.
  runner_lost,  ///< Its runner died and it with it, as the next runner found.
};

/// The cause as people read it: "ok", "exit 3", "signal 11 (Segmentation fault)", "time limit"; ""
/// where there is none.
std::string describe(std::optional<Cause> cause, std::optional<int> exit_code, int signal);

/// Whether a worker may report the cause.
constexpr bool is_workers(Cause cause) {
  return cause < Cause::not_as_declared;
}

/// The causes as messages and the store name them.
inline constexpr auto kCauseNames = names<Cause>({
    {Cause::ok, "ok"},
    {Cause::exit_code, "exit_code"},
    {Cause::signal, "signal"},
    {Cause::out_of_memory, "out_of_memory"},
    {Cause::time_limit, "time_limit"},
    {Cause::stopped, "stopped"},
    {Cause::cannot_start, "cannot_start"},
    {Cause::short_of_means, "short_of_means"},
    {Cause::worker_lost, "worker_lost"},
    {Cause::gpu_memory, "gpu_memory"},
    {Cause::given_back, "given_back"},
    {Cause::not_as_declared, "not_as_declared"},
    {Cause::stopped_early, "stopped_early"},
    {Cause::superseded, "superseded"},
    {Cause::runner_lost, "runner_lost"},
});

}  // namespace berth::exec
