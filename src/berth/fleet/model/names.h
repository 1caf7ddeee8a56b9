// How a fleet document and the command line spell the choices.
#pragma once

#include "berth/base/names.h"
#include "berth/base/text.h"
#include "berth/fleet/fleet.h"

namespace berth::fleet {

/// The value of that name in any case; nullopt: no value has it.
template <class Choice, std::size_t kCount>
std::optional<Choice> choice(const Names<Choice, kCount>& names, std::string_view name) {
  for (const std::string_view known : names.all())
    if (lower(known) == lower(name)) return names.value(known);
  return std::nullopt;
}

/// The keys of targets for percentiles, in the order of kPercentiles.
inline constexpr std::array<std::string_view, 4> kTtftKeys{"slo-ttft-p50", "slo-ttft-p90",
                                                           "slo-ttft-p95", "slo-ttft-p99"};
inline constexpr std::array<std::string_view, 4> kItlKeys{"slo-itl-p50", "slo-itl-p90",
                                                          "slo-itl-p95", "slo-itl-p99"};

/// What a load says of its lengths on one side, in and out.
struct LengthKeys {
  std::string_view mean, cv, histogram;
  double Load::* mean_at;
  double Load::* cv_at;
  LengthHistogram Load::* histogram_at;
};
inline constexpr std::array<LengthKeys, 2> kLengthKeys{
    {{"avgInTokens", "inTokensCv", "inTokensHistogram", &Load::in_tokens, &Load::in_cv,
      &Load::in_histogram},
     {"avgOutTokens", "outTokensCv", "outTokensHistogram", &Load::out_tokens, &Load::out_cv,
      &Load::out_histogram}}};

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
