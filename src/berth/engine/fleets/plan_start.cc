#include "berth/engine/fleets/plan_start.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "berth/base/text.h"
#include "berth/engine/runs/detach.h"
#include "berth/fleet/document/manifests.h"
#include "berth/run/drive/prepare.h"
#include "berth/run/drive/runner.h"
#include "berth/run/state/clusters.h"

namespace berth::engine {
namespace {

constexpr int kMostRestarts = 1000;  // of one replica, with growing pauses between them
constexpr int kLastPort = 65535;

/// The ports of each group's replicas: from the document's port on, without those of other groups.
Result<std::vector<std::vector<int>>> ports_of(const std::vector<fleet::ReplicaGroup>& groups) {
  std::vector<std::vector<int>> ports(groups.size());
  std::set<int> taken;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].start.port == 0) continue;
    for (int port = groups[i].start.port; std::ssize(ports[i]) < groups[i].replicas; ++port) {
      if (port > kLastPort)
        return fail(ErrorKind::invalid,
                    "server '{}': start.port: {} and what follows it are too "
                    "few for {} replicas",
                    clip(groups[i].server), groups[i].start.port, groups[i].replicas);
      if (taken.insert(port).second) ports[i].push_back(port);
    }
  }
  return ports;
}

/// The command of a replica and its environment. {replica}, and {port} if there is one, stay in it,
/// because each task has another value. A variable that contains one of them is set by env(1).
Result<experiment::Program> command_of(const fleet::ReplicaGroup& group) {
  if (group.start.command.empty())
    return fail(ErrorKind::invalid,
                "start.command: no command that starts a replica is given; give the server, or "
                "model '{}' on {}, \"start\": {{\"command\": […]}}",
                clip(group.model), clip(group.accelerator));
  fleet::NamedTexts names = fleet::names_of(group);
  std::erase_if(names, [](const auto& each) { return each.first == "port"; });
  std::vector<std::string> missing;
  if (group.start.port == 0) missing.emplace_back("port");
  BERTH_ASSIGN(const auto start, fleet::fill(group.start, names, missing));
  experiment::Program program;
  const fleet::NamedTexts of_task{{"port", ""}, {"replica", ""}};
  for (const auto& [name, value] : start.environment)
    if (fleet::fill(value, of_task) == value)
      program.environment.emplace_back(name, value);
    else
      program.run.words.push_back(name + "=" + value);
  if (!program.run.words.empty()) program.run.words.insert(program.run.words.begin(), "env");
  for (const auto* words : {&start.command, &start.args})
    program.run.words.insert(program.run.words.end(), words->begin(), words->end());
  return program;
}

Result<experiment::Program> program_of_group(const fleet::ReplicaGroup& group,
                                             const std::string& name,
                                             const std::vector<int>& ports) {
  BERTH_ASSIGN(auto program, command_of(group));
  program.kind = "server";
  program.name = name;
  BERTH_TRY(exec::set_label("server", group.server, program.labels));
  BERTH_TRY(exec::set_label("accelerator", group.accelerator, program.labels));
  if (group.role != fleet::Role::whole)
    BERTH_TRY(exec::set_label("role", std::string(fleet::name(group.role)), program.labels));
  constexpr double kBytesPerGigabyte = 1e9, kMilliCores = 1000;
  const double cores = group.start.cpu > 0 ? group.start.cpu : 1;
  program.resources.set(Known::cpu, std::llround(std::ceil(cores * kMilliCores)));
  program.resources.set(Known::gpu, group.accelerators);
  if (group.start.memory_gb > 0)
    program.resources.set(Known::mem, std::llround(group.start.memory_gb * kBytesPerGigabyte));
  program.search.method = experiment::Search::Method::sequence;
  for (int i = 0; i < group.replicas; ++i) {
    auto& values = program.search.points.emplace_back();
    values.emplace_back("replica", fmt::format("{}", i + 1));
    if (!ports.empty())
      values.emplace_back("port", fmt::format("{}", ports[static_cast<std::size_t>(i)]));
  }
  program.retries = kMostRestarts;
  program.outlive = true;
  return program;
}

/// Checks that this machine has room for all of these in parallel, in addition to `held`. Errors:
/// `kind`.
Status check_room(const machine::Host& host, const std::vector<machine::LedgerEntry>& held,
                  ErrorKind kind, const std::vector<fleet::ReplicaGroup>& groups,
                  const std::vector<experiment::Program>& programs) {
  machine::Machine machine(host.total, host.links);
  auto reserved = machine::occupy_all(machine, host, held);
  for (std::size_t i = 0; i < programs.size(); ++i)
    for (int replica = 1; replica <= groups[i].replicas; ++replica) {
      auto room = machine.reserve({programs[i].resources, programs[i].name, programs[i].selection});
      if (!room)
        return fail(kind, "server '{}', replica {} of {}: {}", clip(groups[i].server), replica,
                    groups[i].replicas, room.error().message);
      reserved.push_back(*std::move(room));
    }
  return {};
}

/// Returns true if "V100" is a separate word in "Tesla V100-SXM2-32GB", in any case.
bool is_called(const std::string& model, const std::string& type) {
  const std::string text = lower(model), word = lower(type);
  const auto is_bounded = [&](std::size_t at) {
    const auto is_letter = [&](std::size_t i) {
      return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
    };
    return (at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size());
  };
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at)
    if (is_bounded(at)) return true;
  return false;
}

/// Restricts the program to GPUs of the size of those whose model has the accelerator's type in its
/// name, so that on a machine with several kinds each server gets its kind. Returns a note if there
/// are none: then it takes any.
std::string choose_cards(const run::Context& context, const std::string& type,
                         experiment::Program& program) {
  std::set<std::string> models;
  std::set<int> sizes;
  for (const auto& device : context.devices->topology.devices) {
    models.insert(device.model);
    for (const auto& share : context.devices->shares)
      if (share.index == device.index && is_called(device.model, type)) sizes.insert(share.size);
  }
  program.selection.slot_sizes.assign(sizes.begin(), sizes.end());
  if (!sizes.empty() || models.empty()) return {};
  return fmt::format("planned for {}; this machine's GPUs are called {}", clip(type),
                     clip(join(std::vector(models.begin(), models.end()), ", ")));
}

/// Checks that this machine has what the replicas request, and chooses which of its GPUs they may
/// use.
Status check_here(run::Context& context, const std::string& directory, const fleet::System& system,
                  const std::vector<fleet::ReplicaGroup>& groups,
                  std::vector<experiment::Program>& programs, const Note& note) {
  for (const auto& group : groups)
    if (auto there = run::check_executable(*context.env, group.start.command.front(), directory);
        !there)
      return std::unexpected(within(fmt::format("server '{}': start.command", clip(group.server)),
                                    std::move(there).error()));
  BERTH_ASSIGN(const auto capacity, machine::discover(*context.env, context.capacity));
  std::set<std::string> notes;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    BERTH_TRY(run::find_devices(context, programs[i].resources));
    const std::string& type = system.accelerators.at(groups[i].accelerator).type;
    notes.insert(choose_cards(context, type, programs[i]));
  }
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(*context.env, context.ledger_directory));
  BERTH_ASSIGN(const auto held, ledger.entries());
  const auto host = machine::host_of(capacity, context.devices ? &*context.devices : nullptr);
  BERTH_TRY(check_room(host, {}, ErrorKind::impossible, groups, programs));
  BERTH_TRY(check_room(host, held, ErrorKind::busy, groups, programs));
  notes.erase("");
  for (const auto& each : notes) note(each);
  return {};
}

}  // namespace

Result<std::vector<StartedRun>> start_plan(run::Context& context, const fleet::System& system,
                                           const fleet::Plan& plan,
                                           const std::vector<std::string>& clusters,
                                           const Note& note) {
  const auto groups = fleet::replica_groups(system, plan);
  const auto names = fleet::object_names(groups);
  BERTH_ASSIGN(const auto ports, ports_of(groups));
  std::vector<experiment::Program> programs;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto program = program_of_group(groups[i], names[i], ports[i]);
    if (!program)
      return std::unexpected(
          within(fmt::format("server '{}'", clip(groups[i].server)), std::move(program).error()));
    programs.push_back(*std::move(program));
  }
  const run::ClusterChoice where{.names = clusters, .own = {}};
  BERTH_TRY(run::check_clusters(*context.env, where));
  BERTH_ASSIGN(const std::string directory, context.env->real_path("."));
  if (clusters.empty()) BERTH_TRY(check_here(context, directory, system, groups, programs, note));
  std::vector<store::RunRecord> records;
  for (auto& program : programs) {
    Submission submission{
        .program = std::move(program), .directory = directory, .file = {}, .clusters = where};
    BERTH_ASSIGN(records.emplace_back(), submit(context, submission, note));
  }
  std::vector<StartedRun> started;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (auto status = start_detached(context, records[i]); !status) {
      for (const auto& before : started)
        status.error().message += fmt::format("; {} runs: berth stop {}", before.run, before.run);
      return std::unexpected(std::move(status).error());
    }
    started.push_back({groups[i], records[i].name, ports[i]});
  }
  return started;
}

}  // namespace berth::engine
