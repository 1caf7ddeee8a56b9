// The machines of a simulation and what runs on them: one at home, where runners are, and hosts
// that are reached by ssh. Berth's own programs are processes of the fake world that run Berth's
// own code; ssh and the tasks are played. Everything that a machine or a connection can do to them
// is a call here.
//
// Ownership: it owns the processes, and refers to the Contract. Threads: one.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/testing/fake_process.h"
#include "simulate/contract.h"

namespace berth::simulate {

struct SimulatedMachine {
  explicit SimulatedMachine(os::FakeEnv& kernel, std::string called);
  std::string name;
  os::FakeEnv root;                      // its files are seen through it; it does nothing
  bool is_up = true;                     // it has power
  bool is_cut = false;                   // nothing goes to it or comes from it
  bool disk_full = false;                // whoever writes there is told so
  bool frozen = false;                   // nothing on it goes on
  std::uint64_t call_fails_once_in = 0;  // any fallible call there; 0: none does
  bool only_reads_fail = false;          // of these
  std::uint64_t breaks_once_in = 0;      // a connection to it, behind what it has just delivered
  std::uint64_t slow_once_in = 0;        // what is sent to it or from it takes seconds
};

/// How the processes and connections of a Cloud behave.
struct Manners {
  std::uint64_t gives_way = 40;  // a process, at one call in so many
  Duration ends_within{};        // what a task takes at most to end after SIGTERM
  Duration latency{};            // what bytes are on their way at most
};

class Cloud {
 public:
  Cloud(os::FakeEnv& kernel, Contract& contract, std::size_t hosts, Manners manners);
  ~Cloud();

  SimulatedMachine& home() { return *machines_.front(); }
  /// All but home.
  SimulatedMachine& host(std::size_t index) { return *machines_.at(index + 1); }
  std::size_t hosts() const { return machines_.size() - 1; }

  /// A process of a Berth program on that machine.
  os::FakeProcess& start(SimulatedMachine& on, std::function<int(os::FakeProcess&)> main);

  /// What is on its way from those that are gone arrives, if it is due and its machine is reached.
  void deliver();

  // What may happen.
  void cut(SimulatedMachine& machine, bool is_cut);
  void freeze(SimulatedMachine& machine, bool frozen);
  /// With all that runs on it, and what was not synced.
  void lose_power(SimulatedMachine& machine);
  void boot(SimulatedMachine& machine);
  enum class Kind : std::uint8_t { runner, agent, pool, files, stdio, ssh };
  /// One of those that live, whichever `choose` says of so many; false: there is none.
  bool kill_one(Kind kind, const std::function<std::size_t(std::size_t)>& choose);
  /// One of those stands still, or goes on; it may be gone meanwhile.
  os::FakeProcess* hang_one(Kind kind, const std::function<std::size_t(std::size_t)>& choose);
  void unhang(os::FakeProcess& process);
  /// Where a ledger has a part of the machine, or a place in the queue, for those that live of this
  /// run; "" is nowhere.
  std::string held_by(const std::string& run);
  /// What lives on, for people: "agent on host-1".
  std::string living() const;

 private:
  struct Running {
    std::unique_ptr<os::FakeProcess> process;
    SimulatedMachine* on;
    Kind kind;
  };
  struct Carrier;
  static constexpr Duration kForEver = std::chrono::hours(100'000);
  os::FakeProcess& make(SimulatedMachine& on, Kind kind);
  void kill(Running& one);
  std::vector<Running*> living(Kind kind);
  SimulatedMachine& machine_of(const os::FakeProcess& process);
  os::FakeProgram program(os::FakeProcess& parent, const os::SpawnSpec& spec);
  os::FakeProgram agent_start(os::FakeProcess& parent, const os::SpawnSpec& spec);
  os::FakeProgram ssh(os::FakeProcess& parent, const os::SpawnSpec& spec);
  int remote_command(os::FakeProcess& far, const std::vector<std::string>& words,
                     std::string& complaint);

  os::FakeEnv& kernel_;
  Contract& contract_;
  const Manners manners_;
  std::vector<std::unique_ptr<SimulatedMachine>> machines_;
  std::deque<Running> running_;
  os::FakeProcess* speaks_next_ = nullptr;  // to it belongs the connection that is about to be made
  struct OnItsWay {
    SimulatedMachine* to;
    os::Fd end;  // is closed behind the bytes
    std::string bytes;
    Mono due;
  };
  std::vector<OnItsWay> on_its_way_;  // of connections that nobody here holds any more
  pid_t next_pid_ = 50'000;
};

}  // namespace berth::simulate
