// berth::StaticCluster over the machines' own code: the same choice of a machine and of its devices
// as for the clusters of the `berth` program.
#include <algorithm>
#include <map>
#include <utility>

#include "berth/cluster/cluster.h"
#include "berth/library/convert.h"
#include "berth/machine/machine.h"
#include "berth/run.h"

namespace berth {
namespace {

/// Devices of which nothing is known but their number and what they have together.
Result<std::vector<machine::DeviceShare>> numbered(const Resources& resources) {
  const std::int64_t count = resources.get(Known::gpu);
  if (count > static_cast<std::int64_t>(topology::kMostDevices))
    return fail(ErrorKind::invalid, "expected at most {} gpu, got {}", topology::kMostDevices,
                count);
  std::vector<machine::DeviceShare> shares;
  for (int i = 0; i < count; ++i) {
    const std::int64_t memory = resources.get(Known::gpu_mem) / count;
    const int slots = static_cast<int>(resources.get(Known::gpu_slots) / count);
    shares.push_back({.uuid = fmt::format("{}", i),
                      .index = i,
                      .memory = memory,
                      .slots = slots,
                      .size = slots,
                      .full_memory = memory});
  }
  return shares;
}

}  // namespace

struct __attribute__((visibility("hidden"))) StaticCluster::State {
  struct Machine {
    std::string name;
    std::shared_ptr<const topology::Topology> topology;
    std::shared_ptr<machine::DeviceLinks> links;  // nullptr: it has no topology
    machine::Machine room;
  };
  static Result<std::unique_ptr<Machine>> machine_of(const ClusterMachine& given);

  std::vector<std::unique_ptr<Machine>> machines;
  Status sound;  // whether what was given is
  struct Held {
    Machine* machine;
    machine::Reservation part;
  };
  std::map<std::string, Held> held;  // by the alloc's id; goes before the machines
  std::int64_t given = 0;
};

Result<std::unique_ptr<StaticCluster::State::Machine>> StaticCluster::State::machine_of(
    const ClusterMachine& given) {
  machine::Block total{given.resources, {}, {}};
  std::shared_ptr<machine::DeviceLinks> links;
  if (given.topology) {
    BERTH_ASSIGN(links, machine::DeviceLinks::make(*given.topology));
    total.devices = machine::shares_of(*given.topology);
  } else {
    BERTH_ASSIGN(total.devices, numbered(given.resources));
  }
  return std::unique_ptr<Machine>(
      new Machine{given.name, given.topology, links, machine::Machine(total, links)});
}

StaticCluster::StaticCluster(const std::vector<ClusterMachine>& machines)
    : state_(std::make_unique<State>()) {
  for (const ClusterMachine& given : machines) {
    auto made = State::machine_of(given);
    if (made)
      state_->machines.push_back(*std::move(made));
    else
      state_->sound = fail(ErrorKind::invalid, "{}: {}", given.name, made.error().message);
  }
}

StaticCluster::~StaticCluster() = default;

std::vector<Offer> StaticCluster::offers() const {
  std::vector<Offer> offers;
  for (const auto& machine : state_->machines)
    offers.push_back({machine->name, machine->room.total().resources, machine->room.free()});
  return offers;
}

Result<Alloc> StaticCluster::allocate(const Wish& wish) {
  BERTH_TRY(state_->sound);
  BERTH_ASSIGN(auto selection, library::selection_of(wish.selection));
  std::vector<cluster::Offer> offers;
  std::vector<State::Machine*> of;
  for (const auto& machine : state_->machines) {
    if (std::ranges::find(wish.avoid, machine->name) != wish.avoid.end()) continue;
    offers.push_back(
        {machine->name, machine->room.free_block(), machine->room.total(), machine->links});
    of.push_back(machine.get());
  }
  if (offers.empty())
    return fail(ErrorKind::impossible, "all machines of the cluster are excluded");
  BERTH_ASSIGN(auto choice, cluster::closest(offers, {.requirements = wish.requirements,
                                                      .selection = std::move(selection),
                                                      .labels = wish.labels}));
  State::Machine& machine = *of[choice.offer];
  // Beside a gpu these would mean a part of one; who takes everything takes whole devices.
  Resources all = machine.room.free();
  for (const Known known : {Known::gpu_mem, Known::gpu_slots})
    if (all.get(Known::gpu) > 0) all.set(known, 0);
  const machine::Request part = choice.part.value_or(machine::Request{all, ""});
  BERTH_ASSIGN(auto taken, machine.room.reserve(part));
  Alloc alloc{.id = fmt::format("{}", ++state_->given),
              .machine = machine.name,
              .resources = taken.block().resources,
              .devices = library::parts_of(taken.block().devices),
              .topology = machine.topology};
  state_->held.emplace(alloc.id, State::Held{&machine, std::move(taken)});
  return alloc;
}

void StaticCluster::free(const Alloc& alloc) {
  state_->held.erase(alloc.id);
}

}  // namespace berth
