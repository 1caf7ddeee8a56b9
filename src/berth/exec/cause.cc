#include "berth/exec/cause.h"

#include <fmt/core.h>

#include <cstring>

namespace berth::exec {

std::string describe(std::optional<Cause> cause, std::optional<int> exit_code, int signal) {
  if (!cause) return {};
  switch (*cause) {
    case Cause::ok: return "ok";
    case Cause::exit_code: return fmt::format("exit {}", exit_code.value_or(-1));
    case Cause::signal: return fmt::format("signal {} ({})", signal, ::strsignal(signal));
    case Cause::out_of_memory: return "out of memory";
    case Cause::time_limit: return "time limit";
    case Cause::stopped: return "stopped";
    case Cause::cannot_start: return "cannot start";
    case Cause::short_of_means: return "cannot start now";
    case Cause::worker_lost: return "worker lost";
    case Cause::gpu_memory: return "over its share of GPU memory";
    case Cause::given_back: return "given back";
    case Cause::not_as_declared: return "not as declared";
    case Cause::stopped_early: return "stopped early";
    case Cause::superseded: return "superseded";
    case Cause::runner_lost: return "runner lost";
  }
  return {};
}

}  // namespace berth::exec
