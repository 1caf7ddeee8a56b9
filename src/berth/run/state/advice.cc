#include "berth/run/state/advice.h"

#include <algorithm>
#include <unordered_map>

#include "berth/run/drive/attempt_history.h"

namespace berth::run {
namespace {

constexpr std::size_t kMostRuns = 20;                      // looked at, latest first
constexpr std::size_t kMostUses = 1000;                    // of a step
constexpr std::int64_t kCoreTenth = 100;                   // thousandths
constexpr Duration kLongEnough = std::chrono::seconds(1);  // to tell how many cores it used

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t mem_unit(std::int64_t mem) {
  return mem < 1'000'000'000 ? 1'000'000 : mem < 10'000'000'000 ? 10'000'000 : 100'000'000;
}

Duration time_unit(Duration time) {
  using namespace std::chrono_literals;
  return time < 1h ? Duration(1min) : Duration(10min);
}

/// Whoever was held to `asked` and managed needs no more, even where files that it read filled it.
std::int64_t bounded(std::int64_t wanted, std::int64_t used, std::int64_t asked) {
  return asked > 0 && used <= asked ? std::min(wanted, asked) : wanted;
}

/// The attempt that ended well; nullopt: there is none.
std::optional<AttemptUse> use_of(const std::vector<store::AttemptRecord>& attempts) {
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    if (attempt->cause != exec::Cause::ok || !attempt->ended) continue;
    const Resources asked = recorded_resources(attempt->resources);
    return AttemptUse{.mem_asked = asked.get(Known::mem),
                      .mem_peak = attempt->peak_mem,
                      .cpu_asked = asked.get(Known::cpu),
                      .cpu_ms = attempt->cpu_ms,
                      .time = *attempt->ended - attempt->started};
  }
  return std::nullopt;
}

struct Uses {
  std::vector<AttemptUse> all;
  std::int64_t runs = 0;
};

/// Adds what the run's tasks used to their steps.
Status add_run(Context& context, const store::RunRecord& run, bool is_flow,
               std::unordered_map<std::string, Uses>& steps) {
  BERTH_ASSIGN(const auto tasks, context.store->tasks(run.id));
  std::unordered_map<std::string, std::size_t> before;
  for (const auto& [step, uses] : steps) before[step] = uses.all.size();
  for (const auto& task : tasks) {
    if (task.state != store::TaskState::done || task.attempts == 0) continue;
    const auto step =
        is_flow ? steps.find(task.label.substr(0, task.label.find('/'))) : steps.begin();
    if (step == steps.end() || step->second.all.size() >= kMostUses) continue;
    BERTH_ASSIGN(const auto attempts, context.store->attempts(run.id, task.number));
    if (const auto use = use_of(attempts)) step->second.all.push_back(*use);
  }
  for (auto& [step, uses] : steps) uses.runs += uses.all.size() > before[step] ? 1 : 0;
  return {};
}

}  // namespace

StepAdvice advise(std::string step, std::span<const AttemptUse> uses) {
  StepAdvice advice{.step = std::move(step), .attempts = std::ssize(uses)};
  for (const auto& use : uses) {
    advice.mem_asked = std::max(advice.mem_asked, use.mem_asked);
    advice.mem_peak = std::max(advice.mem_peak, use.mem_peak);
    if (use.mem_peak > 0) {
      const std::int64_t wanted = use.mem_peak + std::max(use.mem_peak / 20, kMemHeadroom);
      advice.mem = std::max(
          advice.mem, bounded(rounded_up(wanted, mem_unit(wanted)), use.mem_peak, use.mem_asked));
    }
    advice.cpu_asked = std::max(advice.cpu_asked, use.cpu_asked);
    if (use.time >= kLongEnough) {
      const std::int64_t used = use.cpu_ms * 1000 / to_ms(use.time);
      advice.cpu_used = std::max(advice.cpu_used, used);
      const std::int64_t wanted = rounded_up(used + used / 10, kCoreTenth);
      advice.cpu = std::max({advice.cpu, kCoreTenth, bounded(wanted, used, use.cpu_asked)});
    }
    advice.longest = std::max(advice.longest, use.time);
  }
  const Duration unit = time_unit(2 * advice.longest);
  if (!uses.empty())
    advice.timeout = std::max(unit, unit * ((2 * advice.longest + unit - Duration(1)) / unit));
  return advice;
}

Result<std::vector<StepAdvice>> advise(Context& context, std::string_view name,
                                       std::span<const std::string> steps, bool is_flow) {
  std::unordered_map<std::string, Uses> uses;
  for (const auto& step : steps) uses[step];
  BERTH_ASSIGN(const auto runs, context.store->runs());
  std::size_t looked_at = 0;
  for (auto run = runs.rbegin(); run != runs.rend() && looked_at < kMostRuns; ++run) {
    if ((run->kind == "flow") != is_flow || run->name.substr(0, run->name.rfind('-')) != name)
      continue;
    ++looked_at;
    BERTH_TRY(add_run(context, *run, is_flow, uses));
  }
  std::vector<StepAdvice> all;
  for (const auto& step : steps) {
    all.push_back(advise(step, uses.at(step).all));
    all.back().runs = uses.at(step).runs;
  }
  return all;
}

Status take_advice(Context& context, FlowProgram& program) {
  program.options.advice.clear();
  // A large flow is not read for it.
  if (program.options.set.empty() && !mentions(program, "auto")) return {};
  BERTH_ASSIGN(const auto flow, read_flow(program));
  if (std::ranges::all_of(flow.steps, [](const auto& step) { return step.automatic.empty(); }))
    return {};
  std::vector<std::string> steps;
  for (const auto& step : flow.steps) steps.push_back(step.name);
  BERTH_ASSIGN(const auto all, advise(context, program.name, steps, true));
  const auto add = [&](const StepAdvice& of, std::string_view resource, std::int64_t amount) {
    if (amount > 0)
      program.options.advice.push_back({of.step, std::string(resource), amount, of.attempts});
  };
  for (const auto& of : all) {
    add(of, berth::name(Known::mem), of.mem);
    add(of, berth::name(Known::cpu), of.cpu);
    add(of, flow::kTimeLimit, to_ms(of.timeout));
  }
  return {};
}

}  // namespace berth::run
