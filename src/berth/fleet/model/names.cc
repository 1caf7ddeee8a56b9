#include "berth/fleet/model/names.h"

namespace berth::fleet {
namespace {

constexpr auto kRefusalNames = names<Refusal>({
    {Refusal::none, "candidate"},
    {Refusal::idle, "idle, needs none"},
    {Refusal::no_class, "unknown service class"},
    {Refusal::no_model, "unknown model"},
    {Refusal::no_target, "no target for the model"},
    {Refusal::no_performance, "no performance data"},
    {Refusal::zero_performance, "alpha, beta and gamma are all zero"},
    {Refusal::kept, "another accelerator is kept"},
    {Refusal::itl, "ITL not met even when idle"},
    {Refusal::ttft, "TTFT not met even when idle"},
    {Refusal::loss, "too many requests are rejected"},
    {Refusal::memory, "its memory is too small for one request"},
    {Refusal::overloaded, "more replicas than can be counted"},
    {Refusal::ttft_p50, "p50 TTFT not met even when idle"},
    {Refusal::ttft_p90, "p90 TTFT not met even when idle"},
    {Refusal::ttft_p95, "p95 TTFT not met even when idle"},
    {Refusal::ttft_p99, "p99 TTFT not met even when idle"},
    {Refusal::itl_p50, "p50 ITL not met even when idle"},
    {Refusal::itl_p90, "p90 ITL not met even when idle"},
    {Refusal::itl_p95, "p95 ITL not met even when idle"},
    {Refusal::itl_p99, "p99 ITL not met even when idle"},
});

constexpr auto kBindingNames = names<Binding>({
    {Binding::none, "nothing"},
    {Binding::itl, "ITL"},
    {Binding::ttft, "TTFT"},
    {Binding::loss, "loss"},
    {Binding::throughput, "throughput"},
    {Binding::tps, "TPS"},
    {Binding::min_replicas, "minNumReplicas"},
    {Binding::ttft_p50, "p50 TTFT"},
    {Binding::ttft_p90, "p90 TTFT"},
    {Binding::ttft_p95, "p95 TTFT"},
    {Binding::ttft_p99, "p99 TTFT"},
    {Binding::itl_p50, "p50 ITL"},
    {Binding::itl_p90, "p90 ITL"},
    {Binding::itl_p95, "p95 ITL"},
    {Binding::itl_p99, "p99 ITL"},
});

}  // namespace

std::string_view name(PurchaseKind kind) {
  return kPurchaseNames.name(kind);
}

std::string_view name(Role role) {
  return kRoleNames.name(role);
}

std::string_view name(StepForm form) {
  return kFormNames.name(form);
}

std::string_view name(Refusal refusal) {
  return kRefusalNames.name(refusal);
}

std::string_view name(Binding binding) {
  return kBindingNames.name(binding);
}

}  // namespace berth::fleet
