#include "berth/flow/flow_options.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::flow {
namespace {

std::unexpected<Error> unknown(std::string_view option, std::string_view what,
                               std::string_view name, const Words& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const auto meant = nearest(name, views);
  return fail(ErrorKind::invalid, "{}: the flow has no {} '{}'; {}", option, what, clip(name),
              !meant.empty()  ? fmt::format("did you mean '{}'?", meant)
              : known.empty() ? "there are none"
                              : "it has " + join(known, ", "));
}

/// Sets the parameter whose name follows the prefix.
Status set_param(const std::string& name, std::string_view prefix, const Words& words,
                 Params& params) {
  const auto own = std::string_view(name).substr(prefix.size());
  const auto param = std::ranges::find(params, own, &Params::value_type::first);
  if (param == params.end()) {
    Words known;
    for (const auto& [each, value] : params) known.push_back(std::string(prefix) + each);
    return unknown("--set", "parameter", name, known);
  }
  param->second = words;
  return {};
}

/// The index of the step, by name.
Result<std::size_t> step_named(const Flow& flow, std::string_view option, std::string_view name) {
  const auto found = std::ranges::find(flow.steps, name, &Step::name);
  if (found != flow.steps.end()) return static_cast<std::size_t>(found - flow.steps.begin());
  Words known;
  for (const auto& step : flow.steps) known.push_back(step.name);
  return unknown(option, "step", name, known);
}

/// The indexes of that step, or of all steps of that sub-flow.
Result<std::vector<std::size_t>> steps_named(const Flow& flow, std::string_view option,
                                             std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < flow.steps.size(); ++i)
    if (flow.steps[i].name.starts_with(prefix)) all.push_back(i);
  if (!all.empty()) return all;
  BERTH_ASSIGN(const std::size_t step, step_named(flow, option, name));
  return std::vector<std::size_t>{step};
}

}  // namespace

Status set_params(const FlowOptions& options, std::string_view prefix, Params& params) {
  for (const auto& [name, words] : options.set)
    if (name.starts_with(prefix) && !name.substr(prefix.size()).contains('.'))  // not of a step
      BERTH_TRY(set_param(name, prefix, words, params));
  return {};
}

Status set_step_params(const FlowOptions& options, const std::string& step, Params& params) {
  for (const auto& [name, words] : options.set)
    if (name.starts_with(step + ".")) BERTH_TRY(set_param(name, step + ".", words, params));
  return {};
}

Status apply_options(const FlowOptions& options, Flow& flow) {
  for (const auto& [name, words] : options.set)
    if (const auto dot = name.rfind('.'); dot != std::string::npos)
      BERTH_TRY(steps_named(flow, "--set", std::string_view(name).substr(0, dot)));
  for (const auto& name : options.force) {
    BERTH_ASSIGN(const auto steps, steps_named(flow, "--force", name));
    for (const std::size_t step : steps) flow.steps[step].forced = true;
  }
  for (const auto& target : options.targets) {
    const auto slash = std::min(target.find('/'), target.size());
    if (slash == target.size()) {
      BERTH_ASSIGN(const auto steps, steps_named(flow, "the target " + target, target));
      for (const std::size_t step : steps) flow.targets.push_back(flow.steps[step].name);
      continue;
    }
    BERTH_ASSIGN(const std::size_t step, step_named(flow, "the target " + target,
                                                    std::string_view(target).substr(0, slash)));
    if (flow.steps[step].variables.empty())
      return fail(ErrorKind::invalid, "the target {}: the step {} is one task, and has no others",
                  target, flow.steps[step].name);
    flow.targets.push_back(target);
  }
  flow.only = options.only;
  return {};
}

}  // namespace berth::flow
