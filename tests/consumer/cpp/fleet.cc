// A plan for a fleet of inference servers, and one allocation by itself: berth/fleet.h.
#include <berth/fleet.h>

#include <array>

#include "expect.h"

using berth::Fleet;

constexpr const char* kFleet = R"({
  "acceleratorData": {"accelerators": [
    {"name": "A100", "type": "A100", "multiplicity": 1, "memSize": 80, "cost": 185,
     "power": {"idle": 60, "midPower": 280, "midUtil": 0.6, "full": 400}},
    {"name": "H100", "type": "H100", "multiplicity": 1, "memSize": 80, "cost": 310}]},
  "capacityData": {"count": [{"type": "A100", "count": 6}, {"type": "H100", "count": 8}]},
  "modelData": {"models": [
    {"name": "chat", "acc": "A100", "accCount": 1, "maxBatchSize": 256, "atTokens": 1024,
     "perfParms": {"alpha": 12.7, "beta": 0.114, "gamma": 0.0001046}},
    {"name": "chat", "acc": "H100", "accCount": 1, "maxBatchSize": 256, "atTokens": 1024,
     "perfParms": {"alpha": 8.3, "beta": 0.036, "gamma": 0.0000637}}]},
  "serviceClassData": {"serviceClasses": [{"name": "Interactive", "priority": 1, "modelTargets": [
    {"model": "chat", "slo-itl": 40, "slo-ttft": 800}]}]},
  "serverData": {"servers": [{"name": "assistant", "class": "Interactive", "model": "chat",
    "minNumReplicas": 1, "maxQueueSize": 64, "currentAlloc": {"accelerator": "A100",
    "numReplicas": 3, "maxBatch": 64, "cost": 555,
    "load": {"arrivalRate": 900, "avgInTokens": 700, "avgOutTokens": 250}}}]}})";

int main() {
  const std::array documents{Fleet::Document{"fleet.json", kFleet}};
  auto fleet = value(Fleet::read(documents));
  EXPECT(fleet.servers() == std::vector<std::string>{"assistant"} && fleet.notes().empty());

  // The whole fleet, with a proof.
  const auto plan = fleet.plan();
  const auto& given = plan.servers.at("assistant");
  EXPECT(given.served && given.allocation.replicas >= 1 && plan.gap < 1e-9);
  EXPECT(given.allocation.itl_ms <= 40 && given.allocation.ttft_ms <= 800);
  std::cout << given.allocation.text << ": " << given.reason << '\n';

  // The server on each accelerator, and the rate that one replica takes.
  const auto candidates = value(fleet.candidates("assistant"));
  EXPECT(candidates.size() == 2 && candidates[0].accelerator == "A100");
  EXPECT(candidates[0].refusal.empty() && candidates[0].replica_per_min > 0);
  EXPECT(candidates[1].replica_per_min > candidates[0].replica_per_min);

  // One allocation: what it draws, when it is too small, and what a greater load needs.
  const auto now = value(fleet.current("assistant"));
  EXPECT(now.accelerator == "A100" && now.replicas == 3);
  EXPECT(value(fleet.power_w("assistant", now)) > 0);
  EXPECT(value(fleet.accelerator_power_w("A100", 1)) == 400);
  EXPECT(!value(fleet.saturated("assistant", now, 10)));
  EXPECT(value(fleet.saturated("assistant", now, 1e5)));
  auto load = now.load;
  load.arrivals_per_min *= 3;
  const auto scaled = value(fleet.scale("assistant", now, load));
  EXPECT(scaled.accelerator == "A100" && scaled.replicas > 3);
  const auto more = Fleet::difference(now, scaled);
  EXPECT(more.replicas == scaled.replicas - 3 && more.cost == scaled.cost - now.cost);
  EXPECT(fleet.transition_value(now, scaled) == more.cost);
  EXPECT(!value(fleet.reallocate("assistant")).accelerator.empty());
  value(fleet.apply("assistant", scaled));
  EXPECT(value(fleet.current("assistant")).replicas == scaled.replicas);

  // Edits are checked, and change nothing where they are wrong.
  value(fleet.set("server.assistant.arrivalRate", 1e6));
  EXPECT(!fleet.plan().servers.at("assistant").served);
  EXPECT(fleet.set("capacity.H100", -1).error().kind == berth::ErrorKind::invalid);
  EXPECT(fleet.candidates("asistant").error().kind == berth::ErrorKind::not_found);
  auto options = fleet.options();
  options.solver = Fleet::Solver::unlimited;
  value(fleet.set_options(options));
  EXPECT(fleet.plan().servers.at("assistant").served);
  value(fleet.put({"classes.json", R"({"serviceClassData": {"serviceClasses": [
    {"name": "Batch", "priority": 9, "modelTargets": [{"model": "chat", "slo-itl": 200}]}]}})"}));
  value(fleet.remove("accelerator.H100"));
  EXPECT(fleet.accelerators() == std::vector<std::string>{"A100"});
  const std::array written{Fleet::Document{"written.json", fleet.write()}};
  EXPECT(value(Fleet::read(written)).write() == fleet.write());
}
