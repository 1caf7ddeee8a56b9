// What the steps of a flow, or the trials of an experiment, are to ask for, judged by what their
// successful attempts of earlier runs used. Failure: the store's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/run/flows/flow_run.h"

namespace berth::run {

/// A proposal is the most that an attempt used and this much more: of memory a twentieth and
/// kMemHeadroom at least, of cores a tenth; and twice the longest time, in whole minutes. Of what
/// an attempt was held to and managed with, never more than it had.
inline constexpr std::int64_t kMemHeadroom = 16'000'000;

/// One successful attempt: what it asked for (0: nothing, it was not held to any), and what it
/// used.
struct AttemptUse {
  std::int64_t mem_asked = 0, mem_peak = 0;  // bytes
  std::int64_t cpu_asked = 0;                // thousandths of a core
  std::int64_t cpu_ms = 0;
  Duration time{};
};

/// What comes of several: for each resource the most asked and used, and what is proposed; 0 where
/// that is not known.
struct StepAdvice {
  std::string step;
  std::int64_t attempts = 0, runs = 0;
  std::int64_t mem_asked = 0, mem_peak = 0, mem = 0;
  std::int64_t cpu_asked = 0, cpu_used = 0,
               cpu = 0;  // thousandths; of attempts of a second or more
  Duration longest{}, timeout{};
};

StepAdvice advise(std::string step, std::span<const AttemptUse> uses);

/// What the latest runs of that name tell, by step in the order of `steps`; of a run that is no
/// flow, all tasks are of the one step.
Result<std::vector<StepAdvice>> advise(Context& context, std::string_view name,
                                       std::span<const std::string> steps, bool is_flow);

/// Gives the program what its amounts that say auto stand for, from now on.
Status take_advice(Context& context, FlowProgram& program);

}  // namespace berth::run
