#include "berth/cli/run_plan.h"

#include <functional>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/experiment/program.h"
#include "berth/machine/ledger.h"
#include "berth/remote/folder.h"
#include "berth/render/machine.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

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

std::string block_text(const machine::Block& block) {
  std::vector<int> cores;
  for (const auto& share : block.cores) cores.push_back(share.core);
  std::string text = cores.empty() ? "" : "cores " + render::ranges_text(cores);
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
      fmt::format("in parallel: {} now, {} on the empty machine\n", plan.now.size(), plan.empty);
  for (std::size_t i = 0; i < plan.now.size() && i < kShown; ++i)
    text += fmt::format("  {}: {}\n", i + 1, block_text(plan.now[i]));
  if (has_limits(plan.resources)) text += render::to_text(plan.limits);
  if (plan.now.size() > kShown) text += fmt::format("  … and {} more\n", plan.now.size() - kShown);
  if (plan.waiting_before > 0)
    text += fmt::format("{} wait for the machine ahead of it\n", plan.waiting_before);
  if (!plan.why_no_more.empty()) text += fmt::format("limited by {}\n", plan.why_no_more);
  return text;
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

std::string count_text(std::int64_t files) {
  return fmt::format("{} file{}", files, files == 1 ? "" : "s");
}

bool is_utf8(std::string_view text) {
  return valid_utf8(text) == text;
}

/// Whether the text has a backslash, x and two digits, as name_text() writes bytes.
bool has_escape(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  for (std::size_t at = 0; (at = text.find("\\x", at)) != text.npos; ++at)
    if (at + 3 < text.size() && is_digit(text[at + 2]) && is_digit(text[at + 3])) return true;
  return false;
}

/// A file's name as UTF-8, different where the names are: other bytes as \xff, and in a name that
/// has any such, or looks like it, the backslash too.
std::string name_text(std::string_view name) {
  if (is_utf8(name) && !has_escape(name)) return std::string(name);
  constexpr std::size_t kLongest = 4;  // bytes of a character
  std::string text;
  while (!name.empty()) {
    std::size_t length = 1;
    while (length < kLongest && length < name.size() && !is_utf8(name.substr(0, length))) ++length;
    const bool plain = name.front() != '\\' && is_utf8(name.substr(0, length));
    if (!plain) length = 1;
    text += plain ? std::string(name.substr(0, length))
                  : fmt::format("\\x{:02x}", static_cast<unsigned char>(name.front()));
    name.remove_prefix(length);
  }
  return text;
}

/// What a person would be asked before the folder is sent.
std::vector<std::string> warnings_of(os::Env& env, const remote::Folder& folder) {
  std::vector<std::string> warnings;
  for (const auto& asked : {remote::check_unasked(env, folder.path), remote::check_unasked(folder)})
    if (!asked)
      warnings.push_back(asked.error().message + "; berth run --send-large sends it all the same");
  return warnings;
}

std::string sending_text(const remote::Folder& folder, const std::vector<std::string>& clusters,
                         const std::vector<std::string>& warnings) {
  const bool one = clusters.size() == 1;
  std::string text = fmt::format(
      "a plan does not contact {}; to see what {} room for: berth cluster probe {}\n"
      "the trials take the folder {} along: {}, {}; a host that sees the same folder uses it in "
      "place\n",
      join(clusters, " and "), one ? "it has" : "they have", join(clusters, " "), folder.path,
      count_text(folder.files), format_bytes(folder.bytes));
  if (!folder.left_out.empty()) {
    constexpr std::size_t kPathShown = 4096;  // all of it, its control characters made visible
    render::Table table({"left out", "files", "size", "because of"});
    for (const auto& left : folder.left_out) {
      const std::string_view more = left.more ? ">" : "";
      table.add({clip(name_text(left.path), kPathShown), fmt::format("{}{}", more, left.files),
                 fmt::format("{}{}", more, format_bytes(left.bytes)), left.why});
    }
    text += render::to_text(table);
  }
  for (const auto& warning : warnings) text += warning + "\n";
  return text;
}

std::string sending_json(const remote::Folder& folder, const std::vector<std::string>& clusters,
                         const std::vector<std::string>& warnings) {
  JsonWriter json;
  json.object().add("version", 1).add("cluster", clusters.front()).key("clusters").list(clusters);
  json.add("folder", name_text(folder.path));
  json.add("files", folder.files).add("bytes", folder.bytes).key("sent").array();
  for (const auto& entry : folder.entries)
    if (entry.kind != os::TreeEntry::Kind::directory) json.value(name_text(entry.path));
  json.end().key("left_out").array();
  for (const auto& left : folder.left_out)
    json.object()
        .add("path", name_text(left.path))
        .add("why", name_text(left.why))
        .add("files", left.files)
        .add("bytes", left.bytes)
        .add("counted", !left.more)
        .end();
  return json.end().key("warnings").list(warnings).end().take() + "\n";
}

}  // namespace

Result<int> show_sending(os::Env& env, const std::string& directory,
                         const std::vector<std::string>& clusters, bool json) {
  BERTH_ASSIGN(const auto state, run::state_directory(env));
  BERTH_ASSIGN(const auto folder, remote::read_folder(env, directory, state));
  const auto warnings = warnings_of(env, folder);
  print(json ? sending_json(folder, clusters, warnings) : sending_text(folder, clusters, warnings));
  return 0;
}

Result<int> show_plan(run::Context& context, const experiment::Program& program, bool json) {
  RunPlan plan;
  plan.name = program.name;
  plan.resources = program.resources;
  plan.selection = program.selection;
  plan.limits = engine::expect_limits(*context.env);
  BERTH_ASSIGN(plan.tasks, experiment::count_trials(program));
  BERTH_ASSIGN(const auto capacity, machine::discover(*context.env, context.capacity));
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(*context.env, context.ledger_directory));
  BERTH_ASSIGN(const auto entries, ledger.entries());
  const auto host = machine::host_of(capacity, context.devices ? &*context.devices : nullptr);
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
  print(json ? run_plan_json(plan) : plan_text(plan));
  return 0;
}

}  // namespace berth::cli
