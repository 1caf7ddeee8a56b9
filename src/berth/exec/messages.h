// These are all the messages between a runner and a worker. They are plain values, so that they
// can cross from one process to another (agent/protocol/protocol.h): none points into the other
// side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "berth/base/ids.h"
#include "berth/base/names.h"
#include "berth/base/time.h"
#include "berth/exec/cause.h"
#include "berth/machine/machine.h"

namespace berth::exec {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Runner to worker.

/// What is done with a task that has more of a device than the part that it asked for.
enum class GpuMemOver : std::uint8_t { unwatched, warn, kill };
inline constexpr auto kGpuMemOverNames = names<GpuMemOver>(
    {{GpuMemOver::unwatched, "unwatched"}, {GpuMemOver::warn, "warn"}, {GpuMemOver::kill, "kill"}});
/// Without a part of a device there is nothing to watch.
inline GpuMemOver watched(const Resources& resources, GpuMemOver over) {
  return resources.get(Known::gpu_mem) > 0 ? over : GpuMemOver::unwatched;
}

/// What a process sees beside its own directory: an image, a sandbox (this machine's system, read
/// only), or, with neither, all of the machine.
struct Container {
  std::string image =
      {};                ///< As the engine knows it: a name, a name with its digest, an id, a path.
  bool network = false;  ///< Whether it has the machine's network; else, isolated, it has none.
  bool sandbox = false;  ///< An image goes before it.
  std::vector<std::string> shown =
      {};  ///< More paths, read only: absolute, or "~/…" of the worker.

  bool isolated() const { return !image.empty() || sandbox; }
};

/// Starts one attempt of a task.
struct Launch {
  TaskNumber task;
  Token token;  ///< Of the attempt: it is in every message about it, and never issued again.
  machine::Request request;
  std::vector<std::string> argv;  ///< argv[0] with a slash in it is relative to `directory`.
  Environment environment;        ///< It wins over what all tasks of the worker have.
  std::string directory;          ///< Where the process starts; absolute.
  Duration timeout{};             ///< For which the process may run; 0: for ever.
  Duration grace{};               ///< Between TERM and KILL.
  bool enforce = false;  ///< The task does not start where the worker cannot enforce its limits.
  GpuMemOver gpu_mem_over = GpuMemOver::unwatched;
  Container container = {};
  /// What the processes of the runner have, where the worker does not know it; `environment` wins.
  /// An agent fills it in from what its runner told it once.
  Environment surroundings = {};
  /// Files and directories for a task on another machine, by their paths on this one. The worker
  /// copies those of `stage_in` there before each start, and those of `stage_in_once` only where no
  /// earlier launch did; it copies those of `stage_out` back after the end, where they exist; of an
  /// attempt that was stopped only where `stage_in` has one of them, too: the next goes on from it.
  std::vector<std::string> stage_in_once = {}, stage_in = {}, stage_out = {};
  std::string input = {};  ///< The file that becomes its standard input; empty: there is none.
  bool there = false;      ///< `directory` is a path on that machine, not one of this machine's.
  /// An attempt that was launched on the same worker before. This one starts when that one has
  /// ended, and takes its room; where that takes longer than `waits_most`, it ends as given_back.
  /// 0: it starts now.
  Token behind{};
  Duration waits_most{};
};
/// Ends an attempt: TERM, then KILL after its grace, to the whole process group. It ends with cause
/// `stopped`. A worker passes over a token that it does not know.
struct Cancel {
  Token token;
};
/// Kills everything that runs, at once.
struct Abandon {};
using ToWorker = std::variant<Launch, Cancel, Abandon>;

// Worker to runner, for each launch in this order: Started, any Output, Metric and Notice, Ended;
// or Ended alone, when it could not be started.

enum class Stream : std::uint8_t { out = 1, err = 2 };
inline constexpr auto kStreamNames = names<Stream>({{Stream::out, "out"}, {Stream::err, "err"}});

struct Started {
  TaskNumber task;
  Token token;
  machine::Block block;  ///< What the worker has reserved for the attempt.
  std::string advisory;  ///< Why some limits are not enforced; "": all are.
};
struct Output {
  TaskNumber task;
  Token token;
  Stream stream = Stream::out;
  std::string bytes;
  /// That of its message; what is told again has the same. 0: it cannot be told again.
  std::int64_t number = 0;
};
struct Metric {
  TaskNumber task;
  Token token;
  std::string name;
  double value = 0;           ///< Not finite: the metric is missing from now on.
  bool asked_to_end = false;  ///< It was read after the worker had passed on a Cancel.
};
/// A sentence for people, who are shown it at once.
struct Notice {
  TaskNumber task;
  Token token;
  std::string text;
};
struct Ended {
  TaskNumber task;
  Token token;
  Cause cause = Cause::ok;
  std::optional<int> exit_code{};  ///< Absent when the process was killed or never started.
  int signal = 0;                  ///< That killed the process; 0: none did.
  std::string detail{};            ///< A sentence for `berth why`; may be "".
  Duration cpu{};                  ///< User and system time.
  std::int64_t peak_mem = 0;       ///< In bytes.
  /// Its files found no room on the machine. Only a worker in the runner's process sets it.
  bool no_space = false;
  /// A Cancel or Abandon reached the attempt before its process had exited by itself.
  bool asked_to_end = false;
};
using FromWorker = std::variant<Started, Output, Metric, Notice, Ended>;

/// The end of an attempt that has no exit code.
inline Ended ended_as(Cause cause, TaskNumber task, Token token, std::string detail = "") {
  return {.task = task, .token = token, .cause = cause, .detail = std::move(detail)};
}

inline std::string describe(const Ended& ended) {
  return describe(ended.cause, ended.exit_code, ended.signal);
}

}  // namespace berth::exec
