// How a fleet document and the command line spell the choices.
#pragma once

#include "berth/fleet/fleet.h"

namespace berth::fleet {

inline constexpr auto kModelNames = names<QueueModel>(
    {{QueueModel::calibrated, "calibrated"}, {QueueModel::reference, "reference"}});
inline constexpr auto kFormNames =
    names<StepForm>({{StepForm::sum, "sum"}, {StepForm::max, "max"}});
inline constexpr auto kSolverNames = names<Solver>(
    {{Solver::optimal, "optimal"}, {Solver::greedy, "greedy"}, {Solver::unlimited, "unlimited"}});
inline constexpr auto kSaturationNames =
    names<Saturation>({{Saturation::none, "None"},
                       {Saturation::priority_exhaustive, "PriorityExhaustive"},
                       {Saturation::priority_round_robin, "PriorityRoundRobin"},
                       {Saturation::round_robin, "RoundRobin"}});

inline constexpr auto kWhyNames = names<Why>({{Why::served, "served"},
                                              {Why::partly, "partly"},
                                              {Why::no_candidate, "no_candidate"},
                                              {Why::capacity, "capacity"}});

}  // namespace berth::fleet
