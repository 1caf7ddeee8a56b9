// The entries of a fleet document: which keys each has, and which member holds the value. Reading,
// writing and the JSON Schema follow from these records. Keys of documents may be in any case.
#pragma once

#include "berth/base/record.h"
#include "berth/fleet/document/format.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/model/bounds.h"
#include "berth/fleet/model/names.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/queue.h"
#include "berth/fleet/solver/server_size.h"

namespace berth::fleet::records {

namespace f = format;

/// Accesses one percentile of a target.
template <auto kSide, std::size_t kIndex>
inline constexpr auto percentile =
    [](auto& target) -> auto& { return (target.percentiles.*kSide)[kIndex]; };

inline constexpr ValueFormat kText = f::string();
inline constexpr ValueFormat kFigure = f::number(0, kMostAmount);
inline constexpr ValueFormat kMoney = f::number(0, kMostMoney);
inline constexpr ValueFormat kTime = f::number(0, kMostTimeMs);
inline constexpr ValueFormat kVariation = f::number(0, kMostVariation);
inline constexpr ValueFormat kTokens = f::number(0, kMostTokens);
inline constexpr ValueFormat kReplicas = f::whole(0, kMostReplicas);
inline constexpr ValueFormat kRequests = f::whole(0, kMostBatch);
inline constexpr ValueFormat kCount = f::whole(0, kMostUnits);
inline constexpr ValueFormat kWords = f::list_of(kText);
inline constexpr ValueFormat kTexts = f::entries_of(kText);

inline constexpr Record kPower{"power",
                               "A power curve.",
                               key("idle", &Power::idle_w, kFigure, "watts without load", "0"),
                               key("full", &Power::full_w, kFigure, "watts at full use", "0"),
                               key("midPower", &Power::mid_w, kFigure, "watts at midUtil", "0"),
                               key("midUtil", &Power::mid_utilisation, f::number(0, 1),
                                   "the bend of the power curve, as a fraction of full use", "0")};
inline constexpr Record kAccelerator{
    "accelerator",
    "One or several GPUs that a replica takes as one.",

    required_key("name", kText, "its name in servers and performance data"),
    key("type", &Accelerator::type, kText, "the type whose capacity it takes", "its name"),
    key("multiplicity", &Accelerator::multiplicity, f::whole(1, kMostCount),
        "the number of units of its type", "1"),
    key("memSize", &Accelerator::memory_gb, kFigure, "memory in GB", "0"),
    key("memBW", &Accelerator::bandwidth_gb_s, kFigure, "memory bandwidth in GB/s", "0"),
    key("power", &Accelerator::power, f::map_of(kPowerFormat), "its power curve", "0 W"),
    key("cost", &Accelerator::cost, kMoney, "cents an hour", "0"),
    optional_key("resource", &Accelerator::resource, kText, "its name as a resource of Kubernetes",
                 "nvidia.com/gpu; amd.com/gpu for types such as MI300X"),
    key("nodeSelector", &Accelerator::node_selector, kTexts,
        "labels of the nodes of Kubernetes that have it", "none")};
inline constexpr Record kPurchase{
    "purchase", "Capacity with the same price.",

    required_key("kind", f::one_of(kPurchaseNames.all()), "the kind of purchase"),
    key("count", &Purchase::count, kCount, "the number of units", "0"),
    required_key("cost", &Purchase::cost, kMoney, "cents an hour for a unit")};
inline constexpr ValueFormat kPurchaseValue = f::map_of(kPurchaseFormat);
inline constexpr Record kCapacity{
    "capacity", "How many of a type are available.",

    required_key("type", kText, "the type of accelerators"),
    key("count", &Capacity::count, kCount, "the number of available units",
        "the sum of its kinds of purchase"),
    other_key("purchase", f::list_of(kPurchaseValue), "the units of each kind of purchase",
              "priced by the accelerator's cost")};
inline constexpr Record kTransfer{
    "transfer", "The time to transfer a prompt's cache between replicas.",

    key("fixed", &Transfer::fixed_ms, kTime, "ms a request", "0"),
    key("perToken", &Transfer::per_token_ms, kTime, "ms a token of the prompt", "0")};
inline constexpr Record kPerformance{
    "perfParms",
    "The duration of a replica's step.",

    key("alpha", &Performance::alpha_ms, kTime, "ms of a step", "0"),
    key("beta", &Performance::beta_ms, kTime, "ms of a step for each request that decodes", "0"),
    key("gamma", &Performance::gamma_ms, kTime, "ms of a step for each token of context", "0"),
    optional_key("betaPrefill", &Performance::beta_prefill_ms, kTime,
                 "ms of a step for each token of a prompt", "beta"),
    optional_key("ttftOffset", &Performance::ttft_offset_ms, kTime,
                 "ms of the first token outside of steps", "0"),
    optional_key("form", &Performance::form, f::one_of(kFormNames.all()),
                 "how the terms of a step are combined", "sum"),
    key("transfer", &Performance::transfer, f::map_of(kTransferFormat),
        "from a replica that prefills to one that decodes", "none")};
inline constexpr Record kModelEntry{
    "model",
    "A model on an accelerator.",

    required_key("name", kText, "the model"),
    other_key("acc", kText, "the accelerator of these measurements"),
    key("accCount", &Performance::accelerators, f::whole(0, 1000),
        "the number of accelerators of one replica", "1"),
    key("maxBatchSize", &Performance::max_batch, kRequests, "concurrent requests, each of atTokens",
        "0"),
    key("atTokens", &Performance::at_tokens, f::whole(0, kMostTokens),
        "tokens of a request at maxBatchSize", "0"),
    other_key("perfParms", f::map_of(kPerformanceFormat), "the duration of a step", "0 ms"),
    other_key("start", f::map_of(kStartFormat), "how a replica is started on this accelerator")};
inline constexpr Record kTarget{
    "target",
    "The targets of a service class.",

    required_key("model", kText, "the model"),
    key("slo-itl", &Target::itl_ms, kFigure, "ms between two tokens, on average", "no target"),
    key("slo-ttft", &Target::ttft_ms, kFigure, "ms to the first token, on average", "no target"),
    key("slo-tps", &Target::tps, kFigure, "tokens a second that all replicas make", "no target"),
    optional_key(kTtftKeys[0], percentile<&Percentiles::ttft_ms, 0>, kFigure,
                 "ms to the first token, median", "no target"),
    optional_key(kItlKeys[0], percentile<&Percentiles::itl_ms, 0>, kFigure,
                 "ms between two tokens, median", "no target"),
    optional_key(kTtftKeys[1], percentile<&Percentiles::ttft_ms, 1>, kFigure,
                 "ms to the first token, of 90 %", "no target"),
    optional_key(kItlKeys[1], percentile<&Percentiles::itl_ms, 1>, kFigure,
                 "ms between two tokens, of 90 %", "no target"),
    optional_key(kTtftKeys[2], percentile<&Percentiles::ttft_ms, 2>, kFigure,
                 "ms to the first token, of 95 %", "no target"),
    optional_key(kItlKeys[2], percentile<&Percentiles::itl_ms, 2>, kFigure,
                 "ms between two tokens, of 95 %", "no target"),
    optional_key(kTtftKeys[3], percentile<&Percentiles::ttft_ms, 3>, kFigure,
                 "ms to the first token, of 99 %", "no target"),
    optional_key(kItlKeys[3], percentile<&Percentiles::itl_ms, 3>, kFigure,
                 "ms between two tokens, of 99 %", "no target")};
inline constexpr ValueFormat kTargetValue = f::map_of(kTargetFormat);
inline constexpr Record kServiceClass{
    "class", "A service class.",

    required_key("name", kText, "its name in servers"),
    key("priority", &ServiceClass::priority, f::whole(1, kLowestPriority), "1 is served first",
        "100"),
    other_key("modelTargets", f::list_of(kTargetValue), "the targets of this class", "none")};
inline constexpr Record kBin{"bin", "Requests of one length.",
                             required_key("tokens", &LengthHistogram::Bin::tokens,
                                          f::number_between(0), "the length of these requests"),
                             required_key("weight", &LengthHistogram::Bin::weight, f::number(0),
                                          "the number of requests, in any unit")};
inline constexpr ValueFormat kBinValue = f::map_of(kBinFormat);
inline constexpr ValueFormat kHistogramValue = f::list_of(kBinValue, 1);
inline constexpr std::string_view kByHistogram = "from the histogram; otherwise 0";
inline constexpr Record kLoad{
    "load",
    "The load of a server.",

    key("arrivalRate", &Load::arrivals_per_min, kFigure, "requests a minute", "0"),
    key("throughput", &Load::throughput, f::number(), "written by other planners; not read"),
    optional_key("arrivalCv", &Load::arrival_cv, kVariation,
                 "the coefficient of variation of the time between arrivals", "1"),
    key(kLengthKeys[0].mean, kLengthKeys[0].mean_at, kTokens, "tokens of a prompt, on average",
        kByHistogram),
    optional_key(kLengthKeys[0].cv, kLengthKeys[0].cv_at, kVariation,
                 "the coefficient of variation of these tokens", kByHistogram),
    other_key(kLengthKeys[0].histogram, kHistogramValue, "the distribution of prompt lengths",
              "from the mean and the variation"),
    key(kLengthKeys[1].mean, kLengthKeys[1].mean_at, kTokens, "tokens of an answer, on average",
        kByHistogram),
    optional_key(kLengthKeys[1].cv, kLengthKeys[1].cv_at, kVariation,
                 "the coefficient of variation of these tokens", kByHistogram),
    other_key(kLengthKeys[1].histogram, kHistogramValue, "the distribution of output lengths",
              "from the mean and the variation")};
inline constexpr ValueFormat kPartValue = f::map_of(kAllocationFormat);
inline constexpr Record kAllocation{
    "allocation",
    "Replicas on an accelerator.",

    key("accelerator", &Allocation::accelerator, kText, "the accelerator", "none"),
    optional_key("role", &Allocation::role, f::one_of(kRoleNames.all()),
                 "the role of a part's replicas", "whole"),
    key("numReplicas", &Allocation::replicas, kReplicas, "replicas", "0"),
    key("maxBatch", &Allocation::batch, kRequests, "concurrent requests in a replica", "0"),
    key("cost", &Allocation::cost, kFigure, "cents an hour in total", "0"),
    key("itlAverage", &Allocation::itl_ms, f::number(), "ms between two tokens, as planned", "0"),
    key("ttftAverage", &Allocation::ttft_ms, f::number(), "ms to the first token, as planned", "0"),
    key("load", &Allocation::load, f::map_of(kLoadFormat), "the load of the server", "idle"),
    other_key("watts", f::any(), "as plans write it; not read"),
    other_key("ttftPercentiles", f::any(), "as plans write it; not read"),
    other_key("itlPercentiles", f::any(), "as plans write it; not read"),
    other_key("method", f::any(), "as plans write it; not read"),
    other_key("spot", f::any(), "as plans write it; not read"),
    optional_key("parts", &Allocation::parts, f::list_of(kPartValue),
                 "the parts of a mix, or of separate prefill and decode", "none")};
inline constexpr Record kStart{
    "start",
    "The start of a replica.",

    optional_key("image", &Start::image, kText, "the image of its container", "none"),
    optional_key("command", &Start::command, kWords, "the program and its words", "the image's"),
    optional_key("args", &Start::args, kWords, "the arguments", "none"),
    optional_key("port", &Start::port, f::whole(0, kMostPort), "the port on which it listens",
                 "none"),
    optional_key("env", &Start::environment, kTexts, "environment variables", "none"),
    optional_key("cpu", &Start::cpu, f::number(0, kMostCores), "cores of a replica",
                 "no limit; 1 with --start"),
    optional_key("memSize", &Start::memory_gb, f::number(0, kMostGigabytes),
                 "GB of memory of a replica", "no limit")};
inline constexpr Record kServer{
    "server",
    "A server of a model.",

    required_key("name", kText, "the name of the server"),
    key("class", &Server::service_class, kText, "its service class", "Free"),
    key("model", &Server::model, kText, "the model that it serves"),
    key("keepAccelerator", &Server::keep_accelerator, f::flag(),
        "whether it keeps its current accelerator", "false"),
    key("minNumReplicas", &Server::min_replicas, kReplicas, "the minimum number of replicas", "0"),
    key("maxBatchSize", &Server::max_batch, kRequests, "concurrent requests in a replica",
        "chosen by the planner"),
    key("maxQueueSize", &Server::max_queue, kRequests,
        "requests that may wait at a replica; further ones are rejected", "0"),
    optional_key("spot", &Server::spot, f::flag(), "it may run on spot capacity", "false"),
    key("currentAlloc", &Server::current, f::map_of(kAllocationFormat),
        "its current allocation and load", "none"),
    optional_key("desiredAlloc", &Server::desired, f::map_of(kAllocationFormat),
                 "the allocation of an earlier plan", "none"),
    optional_key("start", &Server::start, f::map_of(kStartFormat), "how a replica is started",
                 "the model's")};
inline constexpr Record kOptions{
    "optimizer",
    "Options of the planner.",

    other_key("unlimited", f::flag(), "whether to ignore capacity", "false"),
    key("heterogeneous", &Options::heterogeneous, f::flag(),
        "whether a server may have several accelerators", "false"),
    optional_key("disaggregated", &Options::disaggregated, f::flag(),
                 "whether replicas may be split into prefill and decode", "false"),
    other_key("milpSolver", f::any(), "of other planners; ignored"),
    other_key("useCplex", f::any(), "of other planners; ignored"),
    key("delayedBestEffort", &Options::delayed_best_effort, f::flag(),
        "whether best effort comes after all servers were planned", "false"),
    key("saturationPolicy", &Options::saturation, f::one_of(kSaturationNames.all()),
        "how the remaining capacity is distributed", "None"),
    key("powerBudget", &Options::power_budget_w, kFigure, "the power budget of the plan in watts",
        "no limit"),
    key("solver", &Options::solver, f::one_of(kSolverNames.all()),
        "how accelerators are chosen for servers", "optimal"),
    key("model", &Options::model, f::one_of(kModelNames.all()), "the model of a replica's queue",
        "calibrated")};
inline constexpr Record kSizeQuestion{
    "SizeQuestion",
    "What to size.",

    key("accelerator", &SizeQuestion::accelerator, kText, "only this accelerator"),
    key("numReplicas", &SizeQuestion::replicas, kReplicas, "replicas"),
    other_key("load", f::map_of(kLoadFormat), "what differs from the server's load"),
    other_key("currentAlloc", f::map_of(kAllocationFormat), "in place of the current one")};

}  // namespace berth::fleet::records

namespace berth {

template <>
inline constexpr const auto& kRecordOf<fleet::Power> = fleet::records::kPower;
template <>
inline constexpr const auto& kRecordOf<fleet::Transfer> = fleet::records::kTransfer;
template <>
inline constexpr const auto& kRecordOf<fleet::Load> = fleet::records::kLoad;
template <>
inline constexpr const auto& kRecordOf<fleet::Allocation> = fleet::records::kAllocation;
template <>
inline constexpr const auto& kRecordOf<fleet::Start> = fleet::records::kStart;

template <>
inline constexpr const auto& kNamesOf<fleet::StepForm> = fleet::kFormNames;
template <>
inline constexpr const auto& kNamesOf<fleet::Role> = fleet::kRoleNames;
template <>
inline constexpr const auto& kNamesOf<fleet::Saturation> = fleet::kSaturationNames;
template <>
inline constexpr const auto& kNamesOf<fleet::Solver> = fleet::kSolverNames;
template <>
inline constexpr const auto& kNamesOf<fleet::QueueModel> = fleet::kModelNames;

}  // namespace berth
