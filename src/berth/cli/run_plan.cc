// berth run --plan: what would run, how many side by side and where, and what keeps the next one
// out; nothing is submitted, nothing taken.
#include "berth/cli/run_plan.h"

#include "berth/cli/json_output.h"
#include "berth/cli/machine_report.h"
#include "berth/cli/table.h"
#include "berth/experiment/program.h"
#include "berth/machine/ledger.h"

namespace berth::cli {
namespace {

/// Takes one task's place after the other, as the runner does, until none is left.
std::vector<machine::Block> fill(machine::Machine& machine, const machine::Request& request,
                                 std::int64_t most, std::vector<machine::Reservation>& held,
                                 std::string& refusal) {
  std::vector<machine::Block> blocks;
  while (static_cast<std::int64_t>(blocks.size()) < most) {
    auto place = machine.reserve(request);
    if (!place) {
      refusal = place.error().message;
      break;
    }
    blocks.push_back(place->block());
    held.push_back(*std::move(place));
  }
  return blocks;
}

std::string place_text(const machine::Block& block) {
  std::vector<int> cores;
  for (const auto& share : block.cores) cores.push_back(share.core);
  std::string text = cores.empty() ? "" : "cores " + ranges_text(cores);
  for (const auto& device : block.devices)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", device.uuid,
                        device.whole ? "whole" : format_amount("gpu_mem", device.memory));
  return text.empty() ? "anywhere" : text;
}

std::string plan_text(const RunPlan& plan) {
  constexpr std::size_t kShown = 16;
  std::string text =
      fmt::format("{}: {} task{}, each {}{}\n", plan.name, plan.tasks, plan.tasks == 1 ? "" : "s",
                  to_string(plan.resources), machine::text_of(plan.selection));
  text +=
      fmt::format("side by side: {} now, {} on the empty machine\n", plan.now.size(), plan.empty);
  for (std::size_t i = 0; i < plan.now.size() && i < kShown; ++i)
    text += fmt::format("  {}: {}\n", i + 1, place_text(plan.now[i]));
  if (has_limits(plan.resources)) text += limits_text(plan.limits);
  if (plan.now.size() > kShown) text += fmt::format("  … and {} more\n", plan.now.size() - kShown);
  if (plan.waiting_before > 0)
    text += fmt::format("{} wait for the machine before it\n", plan.waiting_before);
  if (!plan.why_no_more.empty()) text += fmt::format("no more because: {}\n", plan.why_no_more);
  return text;
}

}  // namespace

Result<int> show_plan(run::Site& site, const experiment::Program& program, bool json) {
  RunPlan plan;
  plan.name = program.name;
  plan.resources = program.resources;
  plan.selection = program.selection;
  plan.limits = expect_limits(*site.env);
  BERTH_ASSIGN(plan.tasks, experiment::count_trials(program));
  BERTH_ASSIGN(const auto capacity, machine::discover(*site.env, site.capacity));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(*site.env, site.ledger_directory));
  BERTH_ASSIGN(const auto entries, ledger.entries());
  const auto host = machine::host_of(capacity, site.devices ? &*site.devices : nullptr);
  const machine::Request request{program.resources, program.name, program.selection};
  constexpr std::int64_t kMostShown = 10'000;  // a task of no resources fits without end
  std::int64_t most = std::min(plan.tasks, kMostShown);
  if (program.parallel > 0) most = std::min(most, program.parallel);
  {
    machine::Machine empty(host.total, host.links);
    std::vector<machine::Reservation> held;
    std::string ignored;
    plan.empty = fill(empty, request, most, held, ignored).size();
  }
  machine::Machine machine(host.total, host.links);
  auto held = machine::occupy_all(machine, host, entries);
  plan.now = fill(machine, request, most, held, plan.why_no_more);
  if (plan.why_no_more.empty() && program.parallel > 0 && most == program.parallel)
    plan.why_no_more = fmt::format("parallel: {}", program.parallel);
  for (const auto& entry : entries)
    plan.waiting_before += entry.waiting && entry.priority >= program.priority ? 1 : 0;
  print(json ? run_plan_json(plan) : plan_text(plan));
  return 0;
}

}  // namespace berth::cli
