// The ten most used functions of the reference planner, written with Berth.
// docs/how-to/moving/planner.md lists all of them.
// A comment that has only names marks what the code replaces.
#include <berth/fleet.h>

#include <array>

#include "../cpp/expect.h"

constexpr const char* kFleet = R"({
  "acceleratorData": {"accelerators": [
    {"name": "A100", "type": "A100", "multiplicity": 1, "memSize": 80, "cost": 185},
    {"name": "H100", "type": "H100", "multiplicity": 1, "memSize": 80, "cost": 310}]},
  "capacityData": {"count": [{"type": "A100", "count": 20}, {"type": "H100", "count": 20}]},
  "modelData": {"models": [
    {"name": "chat", "acc": "A100", "accCount": 1, "maxBatchSize": 256, "atTokens": 1024,
     "perfParms": {"alpha": 12.7, "beta": 0.114, "gamma": 0.0001046}},
    {"name": "chat", "acc": "H100", "accCount": 1, "maxBatchSize": 256, "atTokens": 1024,
     "perfParms": {"alpha": 8.3, "beta": 0.036, "gamma": 0.0000637}}]},
  "serviceClassData": {"serviceClasses": [{"name": "Interactive", "priority": 1, "modelTargets": [
    {"model": "chat", "slo-itl": 40, "slo-ttft": 800}]}]},
  "serverData": {"servers": [{"name": "assistant", "class": "Interactive", "model": "chat",
    "minNumReplicas": 1, "currentAlloc": {"accelerator": "A100", "numReplicas": 3, "maxBatch": 64,
    "cost": 555, "load": {"arrivalRate": 900, "avgInTokens": 700, "avgOutTokens": 250}}}]}})";

int main() {
  // System.SetFromSpec
  const std::array documents{berth::Fleet::Document{"fleet.json", kFleet}};
  auto fleet = value(berth::Fleet::read(documents));

  // System.GenerateSolution
  const auto plan = fleet.plan();
  const auto& planned = plan.servers.at("assistant").allocation;
  std::cout << planned.text << " at " << plan.cost << " cents an hour\n";

  // CreateAllocation
  const auto on_h100 = value(fleet.allocate("assistant", "H100"));
  EXPECT(on_h100.accelerator == "H100" && on_h100.replicas >= 1);

  // Allocation.Saturated
  const auto now = value(fleet.current("assistant"));
  EXPECT(value(fleet.saturated("assistant", now, 1e5)));

  // Allocation.Scale
  auto load = now.load;
  load.arrivals_per_min *= 3;
  const auto scaled = value(fleet.scale("assistant", now, load));
  EXPECT(scaled.replicas > now.replicas);

  // Allocation.MaxArrvRatePerReplica
  for (const auto& candidate : value(fleet.candidates("assistant")))
    EXPECT(candidate.replica_per_min > 0);

  // Allocation.ReAllocate
  EXPECT(!value(fleet.reallocate("assistant")).accelerator.empty());

  // CreateAllocationDiff
  const auto difference = berth::Fleet::difference(now, scaled);
  EXPECT(difference.replicas == scaled.replicas - now.replicas);

  // Server.SetLoad
  value(fleet.set("server.assistant.arrivalRate", 1800));

  // Server.ApplyDesiredAlloc
  value(fleet.apply("assistant", fleet.plan().servers.at("assistant").allocation));
  EXPECT(!value(fleet.saturated("assistant", value(fleet.current("assistant")), 1800)));
}
