// All that a runner and a worker ever say to each other. Plain values that will be carried by a
// stream later: nothing here is a pointer into the other side.
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

struct Launch {
  TaskNumber task;
  Token token;
  machine::Request request;
  std::vector<std::string> argv;  // argv[0] with a slash is relative to `directory`
  Environment environment;        // beyond what all tasks of its worker have: it wins
  std::string directory;
  Duration timeout{};  // 0: none
  Duration grace{};    // between TERM and KILL
  bool enforce =
      false;  // limits that the worker cannot hold it to are no advice: it does not start
  GpuMemOver gpu_mem_over = GpuMemOver::unwatched;
  // For a worker on another machine, paths here: what is there before it starts (of the first, what
  // an earlier launch took stays as it was), and what comes back when it has ended, if it is there.
  std::vector<std::string> takes_once = {}, takes = {}, brings = {};
  bool there = false;  // the directory is one of that machine's own
  /// An attempt of the same worker, launched before: it starts when that one has ended, and takes
  /// its room. Where that takes longer than `waits_most` it ends as given_back. 0: it starts now.
  Token behind{};
  Duration waits_most{};
};
/// TERM, grace, KILL to the whole process group; ended with cause `stopped`. Unknown token:
/// nothing.
struct Cancel {
  Token token;
};
/// KILL at once whatever runs.
struct Abandon {};
using ToWorker = std::variant<Launch, Cancel, Abandon>;

// Worker to runner, for each launch in this order: Started, any Output, Metric and Notice, Ended;
// or Ended alone, when it could not be started.

enum class Stream : std::uint8_t { out = 1, err = 2 };
inline constexpr auto kStreamNames = names<Stream>({{Stream::out, "out"}, {Stream::err, "err"}});

struct Started {
  TaskNumber task;
  Token token;
  machine::Block block;
  std::string advisory;  // why limits are only advised; empty: all are enforced
};
struct Output {
  TaskNumber task;
  Token token;
  Stream stream = Stream::out;
  std::string bytes;
};
struct Metric {
  TaskNumber task;
  Token token;
  std::string name;
  double value = 0;
};
/// For people, at once.
struct Notice {
  TaskNumber task;
  Token token;
  std::string text;
};
struct Ended {
  TaskNumber task;
  Token token;
  Cause cause = Cause::ok;
  std::optional<int> exit_code;  // absent when killed or never started
  int signal = 0;
  std::string detail;  // a sentence for `berth why`; may be empty
  Duration cpu{};
  std::int64_t peak_mem = 0;  // bytes
};
using FromWorker = std::variant<Started, Output, Metric, Notice, Ended>;

inline std::string describe(const Ended& ended) {
  return describe(ended.cause, ended.exit_code, ended.signal);
}

}  // namespace berth::exec
