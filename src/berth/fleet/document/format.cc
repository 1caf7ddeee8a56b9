#include "berth/fleet/document/format.h"

#include "berth/fleet/document/records.h"

namespace berth::fleet {
namespace {

namespace f = format;

constexpr ValueFormat kAccelerator = f::map_of(kAcceleratorFormat);
constexpr ValueFormat kCapacity = f::map_of(kCapacityFormat);
constexpr ValueFormat kModel = f::map_of(kModelFormat);
constexpr ValueFormat kClass = f::map_of(kClassFormat);
constexpr ValueFormat kServer = f::map_of(kServerFormat);
constexpr KeyFormat kAccelerators{"accelerators", f::list_of(kAccelerator),
                                  "the available accelerators"};
constexpr KeyFormat kCapacities{"count", f::list_of(kCapacity),
                                "how many of each type are available"};
constexpr KeyFormat kModels{"models", f::list_of(kModel), "models and their performance"};
constexpr KeyFormat kClasses{"serviceClasses", f::list_of(kClass),
                             "service classes and their targets"};
constexpr KeyFormat kServers{"servers", f::list_of(kServer), "the servers to be planned for"};
constexpr KeyFormat kOptimizer{"optimizer", f::map_of(kOptimizerFormat), "options of the planner"};
constexpr MapFormat open(std::string_view name, std::string_view meaning,
                         std::span<const KeyFormat> keys) {
  return {name, meaning, keys, nullptr, true};
}

/// The wrappers that other planners' documents have around the lists.
constexpr std::string_view kAround = "the same within a map";
constexpr MapFormat kAcceleratorData =
    open("acceleratorData", "A wrapper.", std::span(&kAccelerators, 1));
constexpr MapFormat kCapacityData = open("capacityData", "A wrapper.", std::span(&kCapacities, 1));
constexpr MapFormat kModelData = open("modelData", "A wrapper.", std::span(&kModels, 1));
constexpr MapFormat kClassData = open("serviceClassData", "A wrapper.", std::span(&kClasses, 1));
constexpr MapFormat kServerData = open("serverData", "A wrapper.", std::span(&kServers, 1));
constexpr MapFormat kOptimizerData = open("optimizerData", "A wrapper.", std::span(&kOptimizer, 1));

constexpr KeyFormat kSystem{"system", f::map_of(kSystemFormat), "the same one level deeper"};
constexpr KeyFormat kFleetKeys[] = {
    kSystem,
    kAccelerators,
    {"acceleratorData", f::map_of(kAcceleratorData), kAround},
    kCapacities,
    {"capacityData", f::map_of(kCapacityData), kAround},
    kModels,
    {"modelData", f::map_of(kModelData), kAround},
    kClasses,
    {"serviceClassData", f::map_of(kClassData), kAround},
    kServers,
    {"serverData", f::map_of(kServerData), kAround},
    kOptimizer,
    {"optimizerData", f::map_of(kOptimizerData), kAround},
};

}  // namespace

constinit const MapFormat kPowerFormat = open("power", "A power curve.", records::kPower.formats);
constinit const MapFormat kAcceleratorFormat =
    open("accelerator", "One or several GPUs that a replica takes as one.",
         records::kAccelerator.formats);
constinit const MapFormat kPurchaseFormat =
    open("purchase", "Capacity with the same price.", records::kPurchase.formats);
constinit const MapFormat kCapacityFormat =
    open("capacity", "How many of a type are available.", records::kCapacity.formats);
constinit const MapFormat kTransferFormat =
    open("transfer", "The time to transfer a prompt's cache between replicas.",
         records::kTransfer.formats);
constinit const MapFormat kPerformanceFormat =
    open("perfParms", "The duration of a replica's step.", records::kPerformance.formats);
constinit const MapFormat kModelFormat =
    open("model", "A model on an accelerator.", records::kModelEntry.formats);
constinit const MapFormat kTargetFormat =
    open("target", "The targets of a service class.", records::kTarget.formats);
constinit const MapFormat kClassFormat =
    open("class", "A service class.", records::kServiceClass.formats);
constinit const MapFormat kBinFormat =
    open("bin", "Requests of one length.", records::kBin.formats);
constinit const MapFormat kLoadFormat =
    open("load", "The load of a server.", records::kLoad.formats);
constinit const MapFormat kAllocationFormat =
    open("allocation", "Replicas on an accelerator.", records::kAllocation.formats);
constinit const MapFormat kStartFormat =
    open("start", "The start of a replica.", records::kStart.formats);
constinit const MapFormat kServerFormat =
    open("server", "A server of a model.", records::kServer.formats);
constinit const MapFormat kOptimizerFormat =
    open("optimizer", "Options of the planner.", records::kOptions.formats);
constinit const MapFormat kSystemFormat =
    open("system", "The parts of a fleet.", std::span(kFleetKeys).subspan(1));
constinit const MapFormat kFleetFormat = open(
    "fleet", "A fleet of inference servers: the available accelerators and the servers to plan.",
    kFleetKeys);

}  // namespace berth::fleet
