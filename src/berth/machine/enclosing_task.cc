#include "berth/machine/enclosing_task.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/ledger/ledger_file.h"
#include "berth/machine/ledger/ledger_holders.h"

namespace berth::machine {
namespace {

constexpr std::string_view kTaskLedger = "within.";

/// The worker of "1234.567890.42".
std::optional<os::ProcessIdentity> worker_of(std::string_view id) {
  const auto mark = read_task_mark(id);
  return mark ? std::optional(mark->worker) : std::nullopt;
}

}  // namespace

std::optional<TaskMark> read_task_mark(std::string_view value) {
  const auto parts = split(value.substr(0, value.find(' ')), '.');
  if (parts.size() != 3) return std::nullopt;
  const auto pid = parse_integer(parts[0]), started_at = parse_integer(parts[1]);
  const auto token = parse_integer(parts[2]);
  if (!pid || !started_at || !token || *pid < 1) return std::nullopt;
  return TaskMark{{static_cast<pid_t>(*pid), *started_at}, Token{*token}};
}

std::optional<EnclosingTask> enclosing_task(os::Env& env) {
  const auto text = env.variable("BERTH_ALLOC");
  if (!text) return std::nullopt;
  const auto blank = text->find(' ');
  if (blank == std::string::npos) return std::nullopt;
  auto block = read_block(std::string_view(*text).substr(blank + 1));
  const auto worker = worker_of(text->substr(0, blank));
  if (!block || !worker || !env.alive(*worker)) return std::nullopt;
  return EnclosingTask{text->substr(0, blank), *std::move(block)};
}

std::string write_enclosing_task(os::Env& env, Token token, const Block& block) {
  const auto self = env.self();
  return fmt::format("{}.{}.{} {}", self.pid, self.started_at, token.value, write_block(block));
}

std::string enclosing_task_text(os::Env& env) {
  if (!enclosing_task(env)) return "";
  return " (limited to the task that this runs in; env -u BERTH_ALLOC lifts that limit)";
}

std::string enclosing_task_note(os::Env& env) {
  const auto task = enclosing_task(env);
  if (!task) return "";
  std::string has;
  task->block.resources.each([&](std::string_view resource, std::int64_t amount) {
    has +=
        fmt::format("{}{} {}", has.empty() ? "" : ", ", resource, format_amount(resource, amount));
  });
  return fmt::format("it runs within {} and can use only its resources: {}",
                     env.variable("BERTH_TASK").value_or("a task"), has.empty() ? "all" : has);
}

void narrow(Capacity& capacity, const Block& block) {
  constexpr std::string_view kFrom = "the task that this runs in";
  const auto lends = [&](int core) {
    return block.cores.empty() ||
           std::ranges::find(block.cores, core, &CoreShare::core) != block.cores.end();
  };
  std::erase_if(capacity.cores, [&](int core) { return !lends(core); });
  for (auto& node : capacity.nodes)
    std::erase_if(node.cores, [&](int core) { return !lends(core); });
  std::erase_if(capacity.nodes, [](const NumaNode& node) { return node.cores.empty(); });
  const Resources before = capacity.total;
  before.each([&](std::string_view resource, std::int64_t amount) {
    const std::int64_t given = block.resources.get(resource);
    const bool of_all = resource == name(Known::cpu) || resource == name(Known::mem) ||
                        resource == name(Known::disk);
    if (given >= amount || (of_all && given == 0)) return;
    capacity.total.set(resource, given);
    if (resource == name(Known::cpu)) capacity.cpu_from = kFrom;
    if (resource == name(Known::mem)) capacity.mem_from = kFrom;
  });
}

void narrow(std::vector<DeviceShare>& devices, const Block& block) {
  std::erase_if(devices, [&](DeviceShare& share) {
    const auto given = std::ranges::find(block.devices, share.uuid, &DeviceShare::uuid);
    if (given == block.devices.end()) return true;
    share.memory = std::min(share.memory, given->memory);
    return false;
  });
}

std::vector<os::ProcessIdentity> find_workers_of_processes(os::Env& env) {
  constexpr std::size_t kMostEnvironment = 4U << 20;  // bytes
  constexpr std::string_view kAlloc = "BERTH_ALLOC=";
  std::vector<os::ProcessIdentity> workers;
  for (const auto& name : env.list("/proc").value_or(std::vector<std::string>{})) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto status = env.status("/proc/" + name);
    if (!status || status->owner != env.user()) continue;
    const auto environment = env.read_file("/proc/" + name + "/environ", kMostEnvironment);
    if (!environment) continue;
    for (const auto entry : split(*environment, '\0'))
      if (entry.starts_with(kAlloc))
        if (const auto mark = read_task_mark(entry.substr(kAlloc.size())))
          workers.push_back(mark->worker);
  }
  return workers;
}

std::string task_ledger(const std::string& directory, const std::string& id) {
  return fmt::format("{}/{}{}", directory, kTaskLedger, id);
}

void sweep_task_ledgers(os::Env& env, const std::string& directory) {
  const auto names = env.list(directory);
  if (!names) return;
  Holders holders(env, directory);
  holders.take_names(*names);
  for (const auto& name : *names) {
    if (!name.starts_with(kTaskLedger)) continue;
    const auto worker = worker_of(std::string_view(name).substr(kTaskLedger.size()));
    if (!worker || holders.alive(*worker)) continue;
    const std::string ledger = directory + "/" + name;
    // Another user may have put a link there: remove_tree() follows none.
    const auto files = env.entries(ledger);
    const auto is_ledger = [](const os::TreeEntry& entry) {
      return entry.kind == os::TreeEntry::Kind::directory;
    };
    if (files && std::ranges::none_of(*files, is_ledger)) (void)env.remove_tree(ledger);
  }
}

}  // namespace berth::machine
