// Reservations of a machine, all or nothing: berth/machine.h. The machine's GPUs are those of a
// DGX H100 of the catalogue, and its ledger is the directory in BERTH_LEDGER.
#include <berth/machine.h>

#include "expect.h"

int main() {
  setenv("BERTH_TOPOLOGY", "dgx-h100", 1);
  auto machine = value(berth::Machine::open());
  const auto empty = value(machine.capacity());
  EXPECT(empty.total.devices.size() == 8 && empty.free.devices.size() == 8);
  EXPECT(empty.total.resources.get("cpu") >= 1000 && !empty.cpu_from.empty());

  berth::Request pair{.resources = {}, .label = "train"};
  pair.resources.set("gpu", 2);
  pair.resources.set("cpu", 500);
  auto held = value(machine.reserve(pair));
  EXPECT(held.part().devices.size() == 2 && held.part().cores.size() == 1);
  EXPECT(held.environment().at(0).first == "CUDA_VISIBLE_DEVICES");

  // A part of one card, beside the pair: a dry run takes nothing.
  berth::Request part{.resources = {}, .label = "notebook"};
  part.resources.set("gpu_mem", value(berth::parse_amount("gpu_mem", "10G")));
  const auto planned = value(machine.dry_run(part));
  EXPECT(planned.devices.size() == 1 && !planned.devices[0].whole);
  EXPECT(value(machine.holders()).size() == 1);
  EXPECT(value(machine.holders())[0].label == "train");

  // Seven GPUs are not free, and nine there will never be.
  berth::Request seven{.resources = {}, .label = "big"};
  seven.resources.set("gpu", 7);
  const auto busy = machine.reserve(seven);
  EXPECT(!busy && busy.error().kind == berth::ErrorKind::busy);
  EXPECT(busy.error().message.find("train") != std::string::npos);
  EXPECT(machine.reserve(seven, std::chrono::milliseconds(20)).error().kind ==
         berth::ErrorKind::busy);
  EXPECT(value(machine.holders()).size() == 1);  // who no longer waits has no place in the queue
  seven.resources.set("gpu", 9);
  EXPECT(machine.reserve(seven).error().kind == berth::ErrorKind::impossible);

  // Another program, here another Machine, sees who holds what.
  auto other = value(berth::Machine::open());
  EXPECT(value(other.capacity()).free.resources.get("gpu") == 6);

  value(held.release());
  EXPECT(held.release().error().kind == berth::ErrorKind::stale);
  seven.resources.set("gpu", 8);
  const auto all = value(other.reserve(seven, std::chrono::seconds(10)));
  EXPECT(all.part().devices.size() == 8);
}
