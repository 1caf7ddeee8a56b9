#include "berth/fleet/format.h"

#include "berth/fleet/bounds.h"
#include "berth/fleet/names.h"
#include "berth/fleet/queue.h"
#include "berth/fleet/system_view.h"

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
    {"midUtil", f::number(0, 1), "where the power curve bends, as a part of full use", "0"},
};
constexpr KeyFormat kAcceleratorKeys[] = {
    {"name", kText, "what servers and performance data call it", "", true},
    {"type", kText, "the type whose capacity it takes", "its name"},
    {"multiplicity", f::whole(1, kMostCount), "units of the type that it is made of", "1"},
    {"memSize", kFigure, "memory in GB", "0"},
    {"memBW", kFigure, "memory bandwidth in GB/s", "0"},
    {"power", f::map_of(kPowerFormat), "its power curve", "0 W"},
    {"cost", kMoney, "cents an hour", "0"},
    {"resource", kText, "its name as a resource of Kubernetes", "nvidia.com/gpu"},
    {"nodeSelector", kTexts, "labels of the nodes of Kubernetes that have it", "none"},
};
constexpr KeyFormat kPurchaseKeys[] = {
    {"kind", f::one_of(kPurchaseNames.all()), "how it is paid", "", true},
    {"count", kCount, "how many units", "0"},
    {"cost", kMoney, "cents an hour for a unit", "", true},
};
constexpr ValueFormat kPurchase = f::map_of(kPurchaseFormat);
constexpr KeyFormat kCapacityKeys[] = {
    {"type", kText, "the type of accelerators", "", true},
    {"count", kCount, "the number of available units", "those of its kinds of purchase"},
    {"purchase", f::list_of(kPurchase), "how these are paid, by kind", "by the accelerator's cost"},
};
constexpr KeyFormat kTransferKeys[] = {
    {"fixed", kTime, "ms a request", "0"},
    {"perToken", kTime, "ms a token of the prompt", "0"},
};
constexpr KeyFormat kPerformanceKeys[] = {
    {"alpha", kTime, "ms of a step", "0"},
    {"beta", kTime, "ms of a step for each request that decodes", "0"},
    {"gamma", kTime, "ms of a step for each token that is attended to", "0"},
    {"betaPrefill", kTime, "ms of a step for each token of a prompt", "beta"},
    {"ttftOffset", kTime, "ms that the first token takes outside of steps", "0"},
    {"form", f::one_of(kFormNames.all()), "how the terms of a step are combined", "sum"},
    {"transfer", f::map_of(kTransferFormat), "from a replica that prefills to one that decodes",
     "no such replicas"},
};
constexpr KeyFormat kModelKeys[] = {
    {"name", kText, "the model", "", true},
    {"acc", kText, "the accelerator of these measurements", ""},
    {"accCount", f::whole(0, 1000), "accelerators that one replica takes", "1"},
    {"maxBatchSize", kRequests, "concurrent requests, each of atTokens", "0"},
    {"atTokens", f::whole(0, kMostTokens), "tokens of a request at maxBatchSize", "0"},
    {"perfParms", f::map_of(kPerformanceFormat), "how long a step takes", "0 ms"},
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
    {"name", kText, "what servers call it", "", true},
    {"priority", f::whole(1, kLowestPriority), "1 is served first", "100"},
    {"modelTargets", f::list_of(kTarget), "what requests of this class are promised", "nothing"},
};
constexpr KeyFormat kBinKeys[] = {
    {"tokens", f::number_between(0), "the length of these requests", "", true},
    {"weight", f::number(0), "how many they are, in any unit", "", true},
};
constexpr ValueFormat kBin = f::map_of(kBinFormat);
constexpr ValueFormat kHistogram = f::list_of(kBin, 1);
constexpr std::string_view kByHistogram = "that of the histogram; otherwise 0";
constexpr KeyFormat kLoadKeys[] = {
    {"arrivalRate", kFigure, "requests a minute", "0"},
    {"throughput", f::number(), "what other planners write; not read", ""},
    {"arrivalCv", kVariation, "of the time between arrivals, deviation by mean", "1"},
    {kLengthKeys[0].mean, kTokens, "tokens of a prompt, on average", kByHistogram},
    {kLengthKeys[0].cv, kVariation, "of these, deviation by mean", kByHistogram},
    {kLengthKeys[0].histogram, kHistogram, "lengths of prompts", "by mean and deviation"},
    {kLengthKeys[1].mean, kTokens, "tokens of an answer, on average", kByHistogram},
    {kLengthKeys[1].cv, kVariation, "of these, deviation by mean", kByHistogram},
    {kLengthKeys[1].histogram, kHistogram, "lengths of answers", "by mean and deviation"},
};
constexpr ValueFormat kPart = f::map_of(kAllocationFormat);
constexpr KeyFormat kAllocationKeys[] = {
    {"accelerator", kText, "the accelerator", "none"},
    {"role", f::one_of(kRoleNames.all()), "of a part: what its replicas do", "whole"},
    {"numReplicas", kReplicas, "replicas", "0"},
    {"maxBatch", kRequests, "concurrent requests in a replica", "0"},
    {"cost", kFigure, "cents an hour in total", "0"},
    {"itlAverage", f::number(), "ms between two tokens, as planned", "0"},
    {"ttftAverage", f::number(), "ms to the first token, as planned", "0"},
    {"load", f::map_of(kLoadFormat), "what it serves", "idle"},
    {"watts", f::number(), "as plans write it; not read", ""},
    {"ttftPercentiles", f::any(), "as plans write it; not read", ""},
    {"itlPercentiles", f::any(), "as plans write it; not read", ""},
    {"method", f::any(), "as plans write it; not read", ""},
    {"spot", f::any(), "as plans write it; not read", ""},
    {"parts", f::list_of(kPart), "of a mix, or of prefill and decode apart: what it is made of",
     "it is one"},
};
constexpr KeyFormat kStartKeys[] = {
    {"image", kText, "the image of its container", "none"},
    {"command", kWords, "the program and its words", "the image's"},
    {"args", kWords, "the arguments", "none"},
    {"port", f::whole(0, kMostPort), "where it listens", "8000"},
    {"env", kTexts, "environment variables", "none"},
    {"cpu", f::number(0, kMostCores), "cores of a replica", "not limited"},
    {"memSize", f::number(0, kMostGigabytes), "GB of memory of a replica", "not limited"},
};
constexpr KeyFormat kServerKeys[] = {
    {"name", kText, "what the server is called", "", true},
    {"class", kText, "its service class", "Free"},
    {"model", kText, "the model that it serves", ""},
    {"keepAccelerator", f::flag(), "it stays on the accelerator that it has", "false"},
    {"minNumReplicas", kReplicas, "the minimum number of replicas", "0"},
    {"maxBatchSize", kRequests, "concurrent requests in a replica", "by the model"},
    {"maxQueueSize", kRequests, "requests that wait at a replica", "by the batch"},
    {"spot", f::flag(), "it may run on spot capacity", "false"},
    {"currentAlloc", f::map_of(kAllocationFormat), "what it has, and its load", "nothing"},
    {"desiredAlloc", f::map_of(kAllocationFormat), "what an earlier plan gave it", "nothing"},
    {"start", f::map_of(kStartFormat), "how a replica is started", "by the model"},
};
constexpr KeyFormat kOptimizerKeys[] = {
    {"unlimited", f::flag(), "capacity does not count", "false"},
    {"heterogeneous", f::flag(), "a server may have several accelerators", "false"},
    {"disaggregated", f::flag(), "replicas may prefill and decode apart", "false"},
    {"milpSolver", f::flag(), "of other planners; ignored", ""},
    {"useCplex", f::flag(), "of other planners; ignored", ""},
    {"delayedBestEffort", f::flag(), "best effort after all servers had their turn", "false"},
    {"saturationPolicy", f::one_of(kSaturationNames.all()), "who gets what is left over", "None"},
    {"powerBudget", kFigure, "watts that the plan may take", "any"},
    {"solver", f::one_of(kSolverNames.all()), "how servers are chosen for", "optimal"},
    {"model", f::one_of(kModelNames.all()), "the model of a replica's queue", "calibrated"},
};

constexpr ValueFormat kAccelerator = f::map_of(kAcceleratorFormat);
constexpr ValueFormat kCapacity = f::map_of(kCapacityFormat);
constexpr ValueFormat kModel = f::map_of(kModelFormat);
constexpr ValueFormat kClass = f::map_of(kClassFormat);
constexpr ValueFormat kServer = f::map_of(kServerFormat);
constexpr KeyFormat kAccelerators{"accelerators", f::list_of(kAccelerator), "what can be had"};
constexpr KeyFormat kCapacities{"count", f::list_of(kCapacity),
                                "how many of each type are available"};
constexpr KeyFormat kModels{"models", f::list_of(kModel), "models and their performance"};
constexpr KeyFormat kClasses{"serviceClasses", f::list_of(kClass), "classes and their targets"};
constexpr KeyFormat kServers{"servers", f::list_of(kServer), "the servers to be planned for"};
constexpr KeyFormat kOptimizer{"optimizer", f::map_of(kOptimizerFormat), "how to plan"};
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
    open("purchase", "Capacity that is paid alike.", kPurchaseKeys);
constinit const MapFormat kCapacityFormat =
    open("capacity", "How many of a type are available.", kCapacityKeys);
constinit const MapFormat kTransferFormat =
    open("transfer", "How long a prompt's cache takes from replica to replica.", kTransferKeys);
constinit const MapFormat kPerformanceFormat =
    open("perfParms", "How long a step of a replica takes.", kPerformanceKeys);
constinit const MapFormat kModelFormat = open("model", "A model on an accelerator.", kModelKeys);
constinit const MapFormat kTargetFormat = open("target", "What is promised.", kTargetKeys);
constinit const MapFormat kClassFormat = open("class", "A service class.", kClassKeys);
constinit const MapFormat kBinFormat = open("bin", "Requests of one length.", kBinKeys);
constinit const MapFormat kLoadFormat = open("load", "The load of a server.", kLoadKeys);
constinit const MapFormat kAllocationFormat =
    open("allocation", "Replicas on an accelerator.", kAllocationKeys);
constinit const MapFormat kStartFormat = open("start", "How a replica starts.", kStartKeys);
constinit const MapFormat kServerFormat = open("server", "A server of a model.", kServerKeys);
constinit const MapFormat kOptimizerFormat = open("optimizer", "How to plan.", kOptimizerKeys);
constinit const MapFormat kSystemFormat =
    open("system", "What a fleet is made of.", std::span(kFleetKeys).subspan(1));
constinit const MapFormat kFleetFormat =
    open("fleet", "A fleet of inference servers: what can be had, and what is to be served.",
         kFleetKeys);

}  // namespace berth::fleet
