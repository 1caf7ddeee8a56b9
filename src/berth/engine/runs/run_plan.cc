#include "berth/engine/runs/run_plan.h"

#include <algorithm>
#include <functional>

#include "berth/base/text.h"
#include "berth/machine/groups/group_plan.h"
#include "berth/machine/groups/groups.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::engine {
namespace {

constexpr std::int64_t kMostPlanned = 10'000;  // a task without resources fits any number of times

/// Reserves room for one task after the other, as the runner does, until no more fits.
std::vector<machine::Block> fill(machine::Machine& machine, const machine::Request& request,
                                 std::int64_t most, std::vector<machine::Reservation>& held,
                                 std::string& refusal) {
  std::vector<machine::Block> blocks;
  while (static_cast<std::int64_t>(blocks.size()) < most) {
    auto reserved = machine.reserve(request);
    if (!reserved) {
      refusal = reserved.error().message;
      break;
    }
    blocks.push_back(reserved->block());
    held.push_back(*std::move(reserved));
  }
  return blocks;
}

/// The number of tasks that fit the empty machine, at most `most`.
std::size_t count_fitting(const machine::Host& host, const machine::Request& request,
                          std::int64_t most) {
  machine::Machine empty(host.total, host.links);
  std::vector<machine::Reservation> held;
  std::string refusal;
  return fill(empty, request, most, held, refusal).size();
}

/// Returns who holds how much of a resource on the machine without the plan: "hold-1 7"; "" if no
/// one does.
std::string other_holders(const machine::Host& host,
                          const std::vector<machine::LedgerEntry>& entries,
                          std::string_view resource) {
  constexpr std::string_view kMark = "; used by ";
  machine::Machine machine(host.total, host.links);
  const auto held = machine::occupy_all(machine, host, entries);
  Resources all;
  all.set(resource, machine.total().resources.get(resource));
  const auto refused = machine.dry_run({all, "", {}});
  const auto at = refused ? std::string::npos : refused.error().message.find(kMark);
  return at == std::string::npos ? "" : refused.error().message.substr(at + kMark.size());
}

/// Says which resource of the machine limits the number of parallel tasks, and what uses it: "cpu:
/// 2 trials use all 2 cores". The machine holds the plan's tasks and `others`.
std::string limit_text(const machine::Machine& machine, const machine::Request& request,
                       std::size_t tasks, std::string_view noun,
                       const std::function<std::string(std::string_view)>& others,
                       const std::string& refusal) {
  const Resources each = machine::charged(request.resources);
  const Resources free = machine.free();
  const std::string resource(free.first_short(each));
  if (resource.empty()) return refusal;  // no amount is short: the GPUs of a group are, say
  const std::int64_t total = machine.total().resources.get(resource);
  const std::int64_t own = each.get(resource) * static_cast<std::int64_t>(tasks);
  const std::int64_t rest = total - free.get(resource) - own;
  const auto share = [&](std::int64_t amount) {
    return amount == total ? "all " + amount_text(resource, total)
                           : fmt::format("{} of {}", format_amount(resource, amount),
                                         amount_text(resource, total));
  };
  std::vector<std::string> parts;
  if (tasks > 0)
    parts.push_back(
        fmt::format("{} {}{} {}", tasks, noun, tasks == 1 ? " uses" : "s use", share(own)));
  if (rest > 0) {
    const auto names = others(resource);
    parts.push_back(fmt::format("other runs use {}{}",
                                tasks > 0 ? format_amount(resource, rest) : share(rest),
                                names.empty() ? "" : fmt::format(" ({})", names)));
  }
  std::string text = fmt::format("{}: {}", resource, join(parts, ", "));
  if (free.get(resource) > 0)
    text += fmt::format("; one more {} requires {}", noun,
                        requested_amount(resource, each.get(resource)));
  return text;
}

/// Reads whether limits would be enforced on this machine; nothing is changed.
void expect_limits(os::Env& env, TrialsPlan& plan) {
  using enum machine::GroupPlan::Method;
  const auto groups = machine::plan_groups(env, "", false);
  if (groups.method == v1)
    plan.enforced = machine::Groups(env).enforced();
  else if (groups.method != none)
    plan.enforced = "by cgroup v2";
  if (groups.method != v1) plan.because = groups.because;
}

Result<machine::Host> host_of(const Context& context) {
  BERTH_ASSIGN(const auto capacity, machine::discover(*context.env, context.capacity));
  return machine::host_of(capacity, context.devices ? &*context.devices : nullptr);
}

Result<TrialsPlan> plan_of_trials(Context& context, const experiment::Program& program) {
  TrialsPlan plan{
      .name = program.name, .resources = program.resources, .selection = program.selection};
  expect_limits(*context.env, plan);
  BERTH_ASSIGN(plan.tasks, experiment::count_trials(program));
  BERTH_ASSIGN(const auto host, host_of(context));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(*context.env, context.ledger_directory));
  BERTH_ASSIGN(const auto entries, ledger.entries());
  const machine::Request request{program.resources, program.name, program.selection};
  std::int64_t most = std::min(plan.tasks, kMostPlanned);
  if (program.parallel > 0) most = std::min(most, program.parallel);
  plan.empty = count_fitting(host, request, most);
  machine::Machine machine(host.total, host.links);
  auto held = machine::occupy_all(machine, host, entries);
  std::string refusal;
  plan.now = fill(machine, request, most, held, refusal);
  if (!refusal.empty())
    plan.why_no_more = limit_text(
        machine, request, plan.now.size(), program.kind == "experiment" ? "trial" : "task",
        [&](std::string_view resource) { return other_holders(host, entries, resource); }, refusal);
  if (plan.why_no_more.empty() && program.parallel > 0 && most == program.parallel)
    plan.why_no_more = fmt::format("parallel: {}", program.parallel);
  for (const auto& entry : entries)
    plan.waiting_before += entry.waiting && entry.priority >= program.priority ? 1 : 0;
  return plan;
}

Result<FlowPlan> plan_of_flow(Context& context, const Submission& submission) {
  auto program = *submission.flow();
  BERTH_ASSIGN(auto steps, run::plan(context, program, submission.directory));
  BERTH_ASSIGN(const auto host, host_of(context));
  FlowPlan plan{program.name, {}, submission.missing_images};
  for (auto& step : steps) {
    const machine::Request request{step.resources, step.name, step.selection};
    const auto in_parallel = count_fitting(host, request, kMostPlanned);
    plan.steps.push_back({std::move(step), in_parallel});
  }
  return plan;
}

Result<SendingPlan> plan_of_sending(os::Env& env, const Submission& submission) {
  BERTH_ASSIGN(const auto state, run::state_directory(env));
  SendingPlan plan{.clusters = submission.clusters.names};
  BERTH_ASSIGN(plan.folder, remote::read_folder(env, submission.directory, state));
  for (const auto& allowed :
       {remote::check_unasked(env, plan.folder.path), remote::check_unasked(plan.folder)})
    if (!allowed)
      plan.warnings.push_back(allowed.error().message +
                              "; berth run --send-large sends it all the same");
  return plan;
}

}  // namespace

Result<CheckedFile> check_file(os::Env& env, const RunRequest& request, const Note& note) {
  BERTH_ASSIGN(auto submission, read_submission(env, request));
  BERTH_ASSIGN(Context context, open_context(env));
  BERTH_TRY(check(context, submission, note));
  return CheckedFile{submission.file, submission.flow() != nullptr};
}

Result<RunPlan> plan_of(Context& context, const Submission& submission) {
  const auto* program = submission.trials();
  const auto& clusters = submission.clusters.names;
  if (clusters.empty() && program != nullptr) return plan_of_trials(context, *program);
  if (clusters.empty()) return plan_of_flow(context, submission);
  if (program != nullptr && program->kind != "command" && program->remote_directory.empty())
    return plan_of_sending(*context.env, submission);
  return fail(
      ErrorKind::usage,
      "--plan: the resources of other machines are not known yet: run berth cluster probe {}",
      join(clusters, " "));
}

}  // namespace berth::engine
