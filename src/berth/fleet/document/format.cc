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

template <class... Ats>
constexpr MapFormat open(const Record<Ats...>& record) {
  return open(record.name, record.meaning, record.formats);
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

constinit const MapFormat kPowerFormat = open(records::kPower);
constinit const MapFormat kAcceleratorFormat = open(records::kAccelerator);
constinit const MapFormat kPurchaseFormat = open(records::kPurchase);
constinit const MapFormat kCapacityFormat = open(records::kCapacity);
constinit const MapFormat kTransferFormat = open(records::kTransfer);
constinit const MapFormat kPerformanceFormat = open(records::kPerformance);
constinit const MapFormat kModelFormat = open(records::kModelEntry);
constinit const MapFormat kTargetFormat = open(records::kTarget);
constinit const MapFormat kClassFormat = open(records::kServiceClass);
constinit const MapFormat kBinFormat = open(records::kBin);
constinit const MapFormat kLoadFormat = open(records::kLoad);
constinit const MapFormat kAllocationFormat = open(records::kAllocation);
constinit const MapFormat kStartFormat = open(records::kStart);
constinit const MapFormat kServerFormat = open(records::kServer);
constinit const MapFormat kOptimizerFormat = open(records::kOptions);
constinit const MapFormat kSystemFormat =
    open("system", "The parts of a fleet.", std::span(kFleetKeys).subspan(1));
constinit const MapFormat kFleetFormat = open(
    "fleet", "A fleet of inference servers: the available accelerators and the servers to plan.",
    kFleetKeys);

}  // namespace berth::fleet
