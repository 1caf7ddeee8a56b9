// berth run --plan: what would run, how many side by side and where, and what keeps the next one
// out; nothing is submitted, nothing taken.
#include "berth/cli/run_plan.h"

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/json_output.h"
#include "berth/cli/machine_report.h"
#include "berth/cli/table.h"
#include "berth/experiment/program.h"
#include "berth/machine/ledger.h"
#include "berth/remote/folder.h"

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

std::string count_text(std::int64_t files) {
  return fmt::format("{} file{}", files, files == 1 ? "" : "s");
}

std::string sending_text(os::Env& env, const remote::Folder& folder, const std::string& cluster) {
  std::string text = fmt::format(
      "what {0} has room for is known when it answers: berth cluster probe {0}\n"
      "with the trials goes {1}: {2}, {3}, unless a host sees the same folder\n",
      cluster, folder.path, count_text(folder.files), format_bytes(folder.bytes));
  if (!folder.left_out.empty()) {
    constexpr std::size_t kPathShown = 4096;  // all of it, its control characters made visible
    Table table({"left out", "files", "size", "because of"});
    for (const auto& left : folder.left_out) {
      const std::string_view more = left.more ? ">" : "";
      table.add({clip(left.path, kPathShown), fmt::format("{}{}", more, left.files),
                 fmt::format("{}{}", more, format_bytes(left.bytes)), left.why});
    }
    text += table.text();
  }
  for (const auto& asked : {remote::check_unasked(env, folder.path), remote::check_unasked(folder)})
    if (!asked) text += asked.error().message + "; berth run --send-large sends it all the same\n";
  return text;
}

std::string sending_json(const remote::Folder& folder, const std::string& cluster) {
  const auto quote = [](const std::string& path) { return json_quote(valid_utf8(path)); };
  std::string sent, left_out;
  for (const auto& entry : folder.entries)
    if (entry.kind != os::TreeEntry::Kind::directory)
      sent += (sent.empty() ? "" : ",") + quote(entry.path);
  for (const auto& left : folder.left_out)
    left_out += fmt::format(R"({}{{"path":{},"why":{},"files":{},"bytes":{},"counted":{}}})",
                            left_out.empty() ? "" : ",", quote(left.path), quote(left.why),
                            left.files, left.bytes, !left.more);
  return fmt::format(
      R"({{"version":1,"cluster":{},"folder":{},"files":{},"bytes":{},"sent":[{}],"left_out":[{}]}})"
      "\n",
      json_quote(cluster), quote(folder.path), folder.files, folder.bytes, sent, left_out);
}

}  // namespace

Result<int> show_sending(os::Env& env, const std::string& directory, const std::string& cluster,
                         bool json) {
  BERTH_ASSIGN(const auto folder, remote::read_folder(env, directory));
  print(json ? sending_json(folder, cluster) : sending_text(env, folder, cluster));
  return 0;
}

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
