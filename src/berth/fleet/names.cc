#include "berth/fleet/names.h"

#include "berth/base/text.h"

namespace berth::fleet {
namespace {

template <class Choice, std::size_t kCount>
std::optional<Choice> choice(const std::array<std::string_view, kCount>& names,
                             std::string_view name) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (lower(names[i]) == lower(name)) return static_cast<Choice>(i);
  return std::nullopt;
}

}  // namespace

std::optional<QueueModel> queue_model(std::string_view name) {
  return choice<QueueModel>(kModels, name);
}

std::optional<Solver> solver(std::string_view name) {
  return choice<Solver>(kSolvers, name);
}

std::optional<Saturation> saturation(std::string_view name) {
  return choice<Saturation>(kSaturations, name);
}

std::string_view name(Refusal refusal) {
  switch (refusal) {
    case Refusal::none: return "candidate";
    case Refusal::idle: return "idle, needs none";
    case Refusal::no_class: return "unknown service class";
    case Refusal::no_model: return "unknown model";
    case Refusal::no_target: return "no target for the model";
    case Refusal::no_performance: return "no performance data";
    case Refusal::zero_performance: return "alpha, beta and gamma are all zero";
    case Refusal::kept: return "another accelerator is kept";
    case Refusal::itl: return "ITL not met even when idle";
    case Refusal::ttft: return "TTFT not met even when idle";
    case Refusal::loss: return "too many requests find no place";
    case Refusal::memory: return "not one request fits its memory";
    case Refusal::overloaded: return "more replicas than can be counted";
  }
  return "unknown";
}

std::string_view name(Binding binding) {
  switch (binding) {
    case Binding::none: return "nothing";
    case Binding::itl: return "ITL";
    case Binding::ttft: return "TTFT";
    case Binding::loss: return "loss";
    case Binding::throughput: return "throughput";
    case Binding::tps: return "TPS";
    case Binding::min_replicas: return "minNumReplicas";
  }
  return "unknown";
}

}  // namespace berth::fleet
