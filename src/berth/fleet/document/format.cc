#include "berth/fleet/document/format.h"

#include "berth/fleet/model/bounds.h"
#include "berth/fleet/model/names.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/queue.h"

namespace berth::fleet {
namespace {

namespace f = format;

constexpr ValueFormat kText = f::string();
constexpr ValueFormat kFigure = f::number(0, kMostAmount);
constexpr ValueFormat kMoney = f::number(0, kMostMoney);
constexpr ValueFormat kTime = f::number(0, kMostTimeMs);
constexpr ValueFormat kVariation = f::number(0, kMostVariation);
constexpr ValueFormat kTokens = f::number(0, kMostTokens);
constexpr ValueFormat kReplicas = f::whole(0, kMostReplicas);
constexpr ValueFormat kRequests = f::whole(0, kMostBatch);
constexpr ValueFormat kCount = f::whole(0, kMostUnits);
constexpr ValueFormat kWords = f::list_of(kText);
constexpr ValueFormat kTexts = f::entries_of(kText);

constexpr KeyFormat kPowerKeys[] = {
    {"idle", kFigure, "watts without load", "0"},
    {"full", kFigure, "watts at full use", "0"},
    {"midPower", kFigure, "watts at midUtil", "0"},
    {"midUtil", f::number(0, 1), "the bend of the power curve, as a fraction of full use", "0"},
};
constexpr KeyFormat kAcceleratorKeys[] = {
    {"name", kText, "its name in servers and performance data", "", true},
    {"type", kText, "the type whose capacity it takes", "its name"},
    {"multiplicity", f::whole(1, kMostCount), "the number of units of its type", "1"},
    {"memSize", kFigure, "memory in GB", "0"},
    {"memBW", kFigure, "memory bandwidth in GB/s", "0"},
    {"power", f::map_of(kPowerFormat), "its power curve", "0 W"},
    {"cost", kMoney, "cents an hour", "0"},
    {"resource", kText, "its name as a resource of Kubernetes",
     "nvidia.com/gpu; amd.com/gpu for types such as MI300X"},
    {"nodeSelector", kTexts, "labels of the nodes of Kubernetes that have it", "none"},
};
constexpr KeyFormat kPurchaseKeys[] = {
    {"kind", f::one_of(kPurchaseNames.all()), "the kind of purchase", "", true},
    {"count", kCount, "the number of units", "0"},
    {"cost", kMoney, "cents an hour for a unit", "", true},
};
constexpr ValueFormat kPurchase = f::map_of(kPurchaseFormat);
constexpr KeyFormat kCapacityKeys[] = {
    {"type", kText, "the type of accelerators", "", true},
    {"count", kCount, "the number of available units", "the sum of its kinds of purchase"},
    {"purchase", f::list_of(kPurchase), "the units of each kind of purchase",
     "priced by the accelerator's cost"},
};
constexpr KeyFormat kTransferKeys[] = {
    {"fixed", kTime, "ms a request", "0"},
    {"perToken", kTime, "ms a token of the prompt", "0"},
};
constexpr KeyFormat kPerformanceKeys[] = {
    {"alpha", kTime, "ms of a step", "0"},
    {"beta", kTime, "ms of a step for each request that decodes", "0"},
    {"gamma", kTime, "ms of a step for each token of context", "0"},
    {"betaPrefill", kTime, "ms of a step for each token of a prompt", "beta"},
    {"ttftOffset", kTime, "ms of the first token outside of steps", "0"},
    {"form", f::one_of(kFormNames.all()), "how the terms of a step are combined", "sum"},
    {"transfer", f::map_of(kTransferFormat), "from a replica that prefills to one that decodes",
     "none"},
};
constexpr KeyFormat kModelKeys[] = {
    {"name", kText, "the model", "", true},
    {"acc", kText, "the accelerator of these measurements", ""},
    {"accCount", f::whole(0, 1000), "the number of accelerators of one replica", "1"},
    {"maxBatchSize", kRequests, "concurrent requests, each of atTokens", "0"},
    {"atTokens", f::whole(0, kMostTokens), "tokens of a request at maxBatchSize", "0"},
    {"perfParms", f::map_of(kPerformanceFormat), "the duration of a step", "0 ms"},
    {"start", f::map_of(kStartFormat), "how a replica is started on this accelerator", ""},
};
constexpr KeyFormat kTargetKeys[] = {
    {"model", kText, "the model", "", true},
    {"slo-itl", kFigure, "ms between two tokens, on average", "no target"},
    {"slo-ttft", kFigure, "ms to the first token, on average", "no target"},
    {"slo-tps", kFigure, "tokens a second that all replicas make", "no target"},
    {kTtftKeys[0], kFigure, "ms to the first token, median", "no target"},
    {kItlKeys[0], kFigure, "ms between two tokens, median", "no target"},
    {kTtftKeys[1], kFigure, "ms to the first token, of 90 %", "no target"},
    {kItlKeys[1], kFigure, "ms between two tokens, of 90 %", "no target"},
    {kTtftKeys[2], kFigure, "ms to the first token, of 95 %", "no target"},
    {kItlKeys[2], kFigure, "ms between two tokens, of 95 %", "no target"},
    {kTtftKeys[3], kFigure, "ms to the first token, of 99 %", "no target"},
    {kItlKeys[3], kFigure, "ms between two tokens, of 99 %", "no target"},
};
constexpr ValueFormat kTarget = f::map_of(kTargetFormat);
constexpr KeyFormat kClassKeys[] = {
    {"name", kText, "its name in servers", "", true},
    {"priority", f::whole(1, kLowestPriority), "1 is served first", "100"},
    {"modelTargets", f::list_of(kTarget), "the targets of this class", "none"},
};
constexpr KeyFormat kBinKeys[] = {
    {"tokens", f::number_between(0), "the length of these requests", "", true},
    {"weight", f::number(0), "the number of requests, in any unit", "", true},
};
constexpr ValueFormat kBin = f::map_of(kBinFormat);
constexpr ValueFormat kHistogram = f::list_of(kBin, 1);
constexpr std::string_view kByHistogram = "from the histogram; otherwise 0";
constexpr KeyFormat kLoadKeys[] = {
    {"arrivalRate", kFigure, "requests a minute", "0"},
    {"throughput", f::number(), "written by other planners; not read", ""},
    {"arrivalCv", kVariation, "the coefficient of variation of the time between arrivals", "1"},
    {kLengthKeys[0].mean, kTokens, "tokens of a prompt, on average", kByHistogram},
    {kLengthKeys[0].cv, kVariation, "the coefficient of variation of these tokens", kByHistogram},
    {kLengthKeys[0].histogram, kHistogram, "the distribution of prompt lengths",
     "from the mean and the variation"},
    {kLengthKeys[1].mean, kTokens, "tokens of an answer, on average", kByHistogram},
    {kLengthKeys[1].cv, kVariation, "the coefficient of variation of these tokens", kByHistogram},
    {kLengthKeys[1].histogram, kHistogram, "the distribution of output lengths",
     "from the mean and the variation"},
};
constexpr ValueFormat kPart = f::map_of(kAllocationFormat);
constexpr KeyFormat kAllocationKeys[] = {
    {"accelerator", kText, "the accelerator", "none"},
    {"role", f::one_of(kRoleNames.all()), "the role of a part's replicas", "whole"},
    {"numReplicas", kReplicas, "replicas", "0"},
    {"maxBatch", kRequests, "concurrent requests in a replica", "0"},
    {"cost", kFigure, "cents an hour in total", "0"},
    {"itlAverage", f::number(), "ms between two tokens, as planned", "0"},
    {"ttftAverage", f::number(), "ms to the first token, as planned", "0"},
    {"load", f::map_of(kLoadFormat), "the load of the server", "idle"},
    {"watts", f::number(), "as plans write it; not read", ""},
    {"ttftPercentiles", f::any(), "as plans write it; not read", ""},
    {"itlPercentiles", f::any(), "as plans write it; not read", ""},
    {"method", f::any(), "as plans write it; not read", ""},
    {"spot", f::any(), "as plans write it; not read", ""},
    {"parts", f::list_of(kPart), "the parts of a mix, or of separate prefill and decode", "none"},
};
constexpr KeyFormat kStartKeys[] = {
    {"image", kText, "the image of its container", "none"},
    {"command", kWords, "the program and its words", "the image's"},
    {"args", kWords, "the arguments", "none"},
    {"port", f::whole(0, kMostPort), "the port on which it listens", "none"},
    {"env", kTexts, "environment variables", "none"},
    {"cpu", f::number(0, kMostCores), "cores of a replica", "no limit; 1 with --start"},
    {"memSize", f::number(0, kMostGigabytes), "GB of memory of a replica", "no limit"},
};
constexpr KeyFormat kServerKeys[] = {
    {"name", kText, "the name of the server", "", true},
    {"class", kText, "its service class", "Free"},
    {"model", kText, "the model that it serves", ""},
    {"keepAccelerator", f::flag(), "whether it keeps its current accelerator", "false"},
    {"minNumReplicas", kReplicas, "the minimum number of replicas", "0"},
    {"maxBatchSize", kRequests, "concurrent requests in a replica", "chosen by the planner"},
    {"maxQueueSize", kRequests, "requests that may wait at a replica; further ones are rejected",
     "0"},
    {"spot", f::flag(), "it may run on spot capacity", "false"},
    {"currentAlloc", f::map_of(kAllocationFormat), "its current allocation and load", "none"},
    {"desiredAlloc", f::map_of(kAllocationFormat), "the allocation of an earlier plan", "none"},
    {"start", f::map_of(kStartFormat), "how a replica is started", "the model's"},
};
constexpr KeyFormat kOptimizerKeys[] = {
    {"unlimited", f::flag(), "whether to ignore capacity", "false"},
    {"heterogeneous", f::flag(), "whether a server may have several accelerators", "false"},
    {"disaggregated", f::flag(), "whether replicas may be split into prefill and decode", "false"},
    {"milpSolver", f::flag(), "of other planners; ignored", ""},
    {"useCplex", f::flag(), "of other planners; ignored", ""},
    {"delayedBestEffort", f::flag(), "whether best effort comes after all servers were planned",
     "false"},
    {"saturationPolicy", f::one_of(kSaturationNames.all()),
     "how the remaining capacity is distributed", "None"},
    {"powerBudget", kFigure, "the power budget of the plan in watts", "no limit"},
    {"solver", f::one_of(kSolverNames.all()), "how accelerators are chosen for servers", "optimal"},
    {"model", f::one_of(kModelNames.all()), "the model of a replica's queue", "calibrated"},
};

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

constinit const MapFormat kPowerFormat = open("power", "A power curve.", kPowerKeys);
constinit const MapFormat kAcceleratorFormat =
    open("accelerator", "One or several GPUs that a replica takes as one.", kAcceleratorKeys);
constinit const MapFormat kPurchaseFormat =
    open("purchase", "Capacity with the same price.", kPurchaseKeys);
constinit const MapFormat kCapacityFormat =
    open("capacity", "How many of a type are available.", kCapacityKeys);
constinit const MapFormat kTransferFormat =
    open("transfer", "The time to transfer a prompt's cache between replicas.", kTransferKeys);
constinit const MapFormat kPerformanceFormat =
    open("perfParms", "The duration of a replica's step.", kPerformanceKeys);
constinit const MapFormat kModelFormat = open("model", "A model on an accelerator.", kModelKeys);
constinit const MapFormat kTargetFormat =
    open("target", "The targets of a service class.", kTargetKeys);
constinit const MapFormat kClassFormat = open("class", "A service class.", kClassKeys);
constinit const MapFormat kBinFormat = open("bin", "Requests of one length.", kBinKeys);
constinit const MapFormat kLoadFormat = open("load", "The load of a server.", kLoadKeys);
constinit const MapFormat kAllocationFormat =
    open("allocation", "Replicas on an accelerator.", kAllocationKeys);
constinit const MapFormat kStartFormat = open("start", "The start of a replica.", kStartKeys);
constinit const MapFormat kServerFormat = open("server", "A server of a model.", kServerKeys);
constinit const MapFormat kOptimizerFormat =
    open("optimizer", "Options of the planner.", kOptimizerKeys);
constinit const MapFormat kSystemFormat =
    open("system", "The parts of a fleet.", std::span(kFleetKeys).subspan(1));
constinit const MapFormat kFleetFormat = open(
    "fleet", "A fleet of inference servers: the available accelerators and the servers to plan.",
    kFleetKeys);

}  // namespace berth::fleet
