#include "simulate/cloud.h"

#include <algorithm>
#include <csignal>

#include "berth/agent/client/start_command.h"
#include "berth/agent/startup.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/ledger/ledger_file.h"
#include "simulate/played_programs.h"

namespace berth::simulate {
namespace {

using namespace std::chrono_literals;

constexpr auto kAgentProgram = "/proc/self/berth-agent";
constexpr std::size_t kAgentBytes = 5000;
constexpr auto kLedger = "/run/lock/berth";

bool writes(std::string_view call) {
  constexpr std::string_view kWriting[] = {"write_all",      "replace_file", "write_into",
                                           "make_directory", "open_append",  "copy_file",
                                           "hard_link",      "sync",         "sync_all"};
  return std::ranges::find(kWriting, call) != std::end(kWriting);
}

bool reads(std::string_view call) {
  constexpr std::string_view kReading[] = {"read_file", "list", "read_at", "open_read", "entries"};
  return std::ranges::find(kReading, call) != std::end(kReading);
}

/// What no fault is put into: these fail on no machine.
bool never_fails(std::string_view call) {
  constexpr std::string_view kSafe[] = {"wait", "reap", "signal", "read_some", "write_some"};
  return std::ranges::find(kSafe, call) != std::end(kSafe);
}

}  // namespace

SimulatedMachine::SimulatedMachine(os::FakeEnv& kernel, std::string called)
    : name(std::move(called)), root(kernel, os::FakeEnv::On::another_machine, {1, 1}) {
  root.put("/proc/meminfo", "MemTotal: 16000000 kB\n");
  root.put("/proc/self/cgroup", "");
  root.put("/proc/self/mountinfo", "");
  root.put(kAgentProgram, std::string(kAgentBytes, 'a'));
  for (const auto* directory : {"/home/u", "/work", "/bin"})
    (void)root.make_directory(directory, 0700);
}

Cloud::Cloud(os::FakeEnv& kernel, Contract& contract, std::size_t hosts, Manners manners)
    : kernel_(kernel), contract_(contract), manners_(manners) {
  machines_.push_back(std::make_unique<SimulatedMachine>(kernel, "home"));
  for (std::size_t i = 1; i <= hosts; ++i)
    machines_.push_back(std::make_unique<SimulatedMachine>(kernel, fmt::format("host-{}", i)));
}

Cloud::~Cloud() {
  for (auto& each : running_) each.process->kill();
  on_its_way_.clear();
}

os::FakeProcess& Cloud::make(SimulatedMachine& on, Kind kind) {
  const pid_t pid = ++next_pid_;
  running_.push_back(
      {std::make_unique<os::FakeProcess>(kernel_, on.root, os::ProcessIdentity{pid, pid * 10LL}),
       &on, kind});
  os::FakeProcess& made = *running_.back().process;
  made.host = on.name;
  made.frozen = on.frozen;
  made.cores.clear();
  for (int core = 0; core < contract_.cores_of_a_machine; ++core) made.cores.push_back(core);
  made.variables = {{"HOME", "/home/u"},
                    {"PATH", "/bin"},
                    {"BERTH_LEDGER", kLedger},
                    {"BERTH_TOPOLOGY", on.root.variables["BERTH_TOPOLOGY"]}};
  if (on.root.variables["BERTH_TOPOLOGY"].empty()) made.variables.erase("BERTH_TOPOLOGY");
  made.gives_way = manners_.gives_way;
  made.ends_within = manners_.ends_within;
  made.program = [this, &made](const os::SpawnSpec& spec) { return program(made, spec); };
  made.talk = [this](const os::SpawnSpec&, os::Fd theirs) {
    if (speaks_next_ != nullptr) std::exchange(speaks_next_, nullptr)->talk_by(std::move(theirs));
  };
  made.fault = [this, &on](std::string_view call) -> std::optional<Error> {
    if (on.disk_full && writes(call)) return Error{ErrorKind::full, "no space left on device"};
    if (on.call_fails_once_in != 0 && !never_fails(call) && (!on.only_reads_fail || reads(call)) &&
        kernel_.random() % on.call_fails_once_in == 0)
      return Error{ErrorKind::io, fmt::format("{}: injected", call)};
    return std::nullopt;
  };
  return made;
}

os::FakeProcess& Cloud::start(SimulatedMachine& on, std::function<int(os::FakeProcess&)> main) {
  os::FakeProcess& made = make(on, Kind::runner);
  made.start([&made, main = std::move(main)] { return main(made); });
  return made;
}

SimulatedMachine& Cloud::machine_of(const os::FakeProcess& process) {
  return *std::ranges::find(running_, &process, [](const auto& each) {
            return each.process.get();
          })->on;
}

os::FakeProgram Cloud::program(os::FakeProcess& parent, const os::SpawnSpec& spec) {
  const std::string& name = spec.argv.at(0);
  if (name == "ssh") return ssh(parent, spec);
  const bool is_agent = name.ends_with("/berth-agent") || name.contains("/agent-");
  if (is_agent && spec.argv.at(1) == "start") return agent_start(parent, spec);
  if (is_agent || name == "/proc/self/exe") return {.duration = kForEver};
  const auto& by =
      *std::ranges::find(running_, &parent, [](auto& one) { return one.process.get(); });
  const bool keeps = by.on == &home() && by.kind == Kind::agent;
  os::FakeProgram program = contract_.started(spec, by.on->name, keeps ? &parent : nullptr);
  if (name == "x")
    if (const auto wrong = write_files(by.on->root, spec, program))
      contract_.breach(fmt::format("a task of {}: {}", spec.directory, *wrong));
  return program;
}

/// The launcher says what the agent says, and has ended then.
os::FakeProgram Cloud::agent_start(os::FakeProcess& parent, const os::SpawnSpec& spec) {
  os::FakeProcess& agent = make(machine_of(parent), Kind::agent);
  if (contract_.trace)
    fmt::print("{:>10} process {} on {} is {}\n", format_duration(kernel_.now() - Mono{}),
               agent.identity.pid, agent.host, join(spec.argv, " "));
  for (const auto& [key, value] : spec.environment) agent.variables[key] = value;
  const pid_t launcher = parent.last_pid();
  agent.start([&agent, &parent, launcher, words = spec.argv] {
    const std::vector<std::string_view> options(words.begin() + 2, words.end());
    auto command = agent::parse_start_command(options);
    Result<std::unique_ptr<agent::Agent>> opened = std::unexpected(Error{});
    if (!command)
      opened = std::unexpected(command.error());
    else if (auto made = agent.make_directory(command->directory, 0700); !made)
      opened = std::unexpected(made.error());
    else
      opened = agent::Agent::open(agent, *command);
    if (agent.killed()) return 1;
    parent.end_script(launcher, {.out = opened ? agent::ready_line(agent.self()) : "",
                                 .err = opened ? "" : opened.error().message});
    if (!opened) return 1;
    while (!(*opened)->over())
      if (!agent.loop().turn()) return 1;
    return 0;
  });
  return {.duration = kForEver};
}

void Cloud::cut(SimulatedMachine& machine, bool is_cut) {
  machine.is_cut = is_cut;
  for (auto& each : running_)
    if (each.kind == Kind::ssh) each.process->wake();
  deliver();
}

void Cloud::deliver() {
  for (std::size_t i = 0; i < on_its_way_.size();) {
    const auto& [to, end, bytes, due] = on_its_way_[i];
    if (to->is_cut || !to->is_up || due > kernel_.now()) {
      ++i;
      continue;
    }
    (void)kernel_.write_some(end, bytes);
    on_its_way_.erase(on_its_way_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Cloud::freeze(SimulatedMachine& machine, bool frozen) {
  machine.frozen = frozen;
  cut(machine, frozen);
  for (auto& each : running_)
    if (each.on == &machine) each.process->frozen = frozen;
  if (frozen) contract_.froze(machine.name);
}

void Cloud::lose_power(SimulatedMachine& machine) {
  machine.is_up = false;
  cut(machine, machine.is_cut);
  for (auto& each : running_)
    if (each.on == &machine) kill(each);
  machine.root.lose_power();
  std::erase_if(on_its_way_, [&](const auto& each) { return each.to == &machine; });
}

void Cloud::boot(SimulatedMachine& machine) {
  machine.is_up = true;
}

void Cloud::kill(Running& one) {
  if (one.process->over()) return;
  const bool writes = !one.on->disk_full && one.on->call_fails_once_in == 0 && !one.on->frozen;
  contract_.died(*one.process, writes);
  one.process->kill();
}

std::vector<Cloud::Running*> Cloud::living(Kind kind) {
  std::vector<Running*> live;
  for (auto& each : running_)
    if (each.kind == kind && !each.process->over()) live.push_back(&each);
  return live;
}

bool Cloud::kill_one(Kind kind, const std::function<std::size_t(std::size_t)>& choose) {
  const auto live = living(kind);
  if (live.empty()) return false;
  kill(*live[choose(live.size())]);
  return true;
}

os::FakeProcess* Cloud::hang_one(Kind kind, const std::function<std::size_t(std::size_t)>& choose) {
  const auto live = living(kind);
  if (live.empty()) return nullptr;
  os::FakeProcess* const process = live[choose(live.size())]->process.get();
  process->frozen = true;
  return process;
}

void Cloud::unhang(os::FakeProcess& process) {
  process.frozen = machine_of(process).frozen;
}

std::string Cloud::held_by(const std::string& run) {
  std::vector<std::string> where;
  for (auto& machine : machines_) {
    const std::string* text = machine->root.find(fmt::format("{}/{}", kLedger, machine->root.uid));
    const auto entries = machine::read_ledger_file(text == nullptr ? "" : *text,
                                                   machine->root.boot_id(), machine->root.uid);
    if (!entries) continue;
    for (const auto& entry : *entries)
      if (entry.label == run && machine->root.alive(entry.holder))
        where.push_back(fmt::format("process {} on {}", entry.holder.pid, machine->name));
  }
  return join(where, ", ");
}

std::string Cloud::living() const {
  constexpr std::string_view kNames[] = {"runner", "agent", "pool", "files", "stdio", "ssh"};
  std::vector<std::string> names;
  for (const auto& each : running_)
    if (!each.process->over())
      names.push_back(
          fmt::format("{} on {}", kNames[static_cast<std::size_t>(each.kind)], each.on->name));
  return join(names, ", ");
}

}  // namespace berth::simulate
