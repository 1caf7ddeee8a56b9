// How a fleet document and the command line spell the choices.
#pragma once

#include "berth/fleet/fleet.h"

namespace berth::fleet {

/// The keys of targets for percentiles, in the order of kPercentiles.
inline constexpr std::array<std::string_view, 4> kTtftKeys{"slo-ttft-p50", "slo-ttft-p90",
                                                           "slo-ttft-p95", "slo-ttft-p99"};
inline constexpr std::array<std::string_view, 4> kItlKeys{"slo-itl-p50", "slo-itl-p90",
                                                          "slo-itl-p95", "slo-itl-p99"};

inline constexpr auto kModelNames = names<QueueModel>(
    {{QueueModel::calibrated, "calibrated"}, {QueueModel::reference, "reference"}});
inline constexpr auto kFormNames =
    names<StepForm>({{StepForm::sum, "sum"}, {StepForm::max, "max"}});
inline constexpr auto kRoleNames =
    names<Role>({{Role::whole, "whole"}, {Role::prefill, "prefill"}, {Role::decode, "decode"}});
inline constexpr auto kSolverNames = names<Solver>(
    {{Solver::optimal, "optimal"}, {Solver::greedy, "greedy"}, {Solver::unlimited, "unlimited"}});
inline constexpr auto kSaturationNames =
    names<Saturation>({{Saturation::none, "None"},
                       {Saturation::priority_exhaustive, "PriorityExhaustive"},
                       {Saturation::priority_round_robin, "PriorityRoundRobin"},
                       {Saturation::round_robin, "RoundRobin"}});

inline constexpr auto kPurchaseNames = names<PurchaseKind>({{PurchaseKind::reserved, "reserved"},
                                                            {PurchaseKind::on_demand, "on-demand"},
                                                            {PurchaseKind::spot, "spot"}});

inline constexpr auto kWhyNames = names<Why>({{Why::served, "served"},
                                              {Why::partly, "partly"},
                                              {Why::no_candidate, "no_candidate"},
                                              {Why::capacity, "capacity"},
                                              {Why::power, "power"}});

}  // namespace berth::fleet
