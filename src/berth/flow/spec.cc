// All of one task.
#include <algorithm>
#include <unordered_set>

#include "berth/base/text.h"
#include "berth/flow/graph.h"
#include "berth/flow/notation.h"

namespace berth::flow {

std::optional<std::string> value_of(const std::vector<std::pair<std::string, Words>>& values,
                                    std::string_view name) {
  for (const auto& [known, words] : values)
    if (known == name) return join(words, " ");
  return std::nullopt;
}

const Graph::Impl::Item& Graph::Impl::item(TaskIndex task, std::size_t variable) const {
  const StepState& state = states_[step_at(task)];
  std::int64_t place = task.value - state.first;
  for (std::size_t i = state.items.size() - 1; i > variable; --i)
    place /= static_cast<std::int64_t>(state.items[i].size());
  const auto& items = state.items[variable];
  return items[static_cast<std::size_t>(place) % items.size()];
}

/// Parameters, variables, index and env.NAME.
Graph::Impl::Lookup Graph::Impl::values_of(TaskIndex task) const {
  const Step& of = step(task);
  Lookup values = of.params;
  for (std::size_t i = 0; i < of.foreach.size(); ++i)
    values.push_back({of.foreach[i].name, {item(task, i).text}});
  if (!of.foreach.empty())
    values.push_back({"index", {fmt::format("{}", task.value - states_[step_at(task)].first)}});
  for (const auto& [name, value] : of.environment) values.push_back({"env." + name, {value}});
  return values;
}

std::string Graph::Impl::output_path(TaskIndex task, const Output& output) const {
  if (output.path.find('{') == std::string::npos) return output.path;
  const auto values = values_of(task);
  return expand(output.path, [&](std::string_view name) { return value_of(values, name); });
}

Result<fileset::Fileset> Graph::Impl::written(TaskIndex task, std::size_t output,
                                              const std::string& below) const {
  const auto found = written_.find(task.value);
  BERTH_ASSERT(found != written_.end());
  return fileset::part(found->second[output], below.empty() ? "." : below);
}

/// Adds what the source stands for; `input` has the name.
Status Graph::Impl::add_source(const Step& step, const Source& source, const Lookup& values,
                               TaskInput input, std::vector<TaskInput>& inputs) const {
  const bool pattern = fileset::is_pattern(source.pattern);
  const std::string path = expand(source.pattern, [&](std::string_view name) {
    auto value = value_of(values, name);
    return value && pattern ? fileset::literal_pattern(*value) : value;
  });
  const std::size_t before = inputs.size();
  if (source.step) {
    for (auto& found : written_items(source, path)) {
      if (tasks_[static_cast<std::size_t>(found.producer)].state != State::finished) continue;
      input.place = std::move(found.text);
      const auto content = written({found.producer}, source.output, found.below);
      if (!content) return wrong(step, source.line, content.error().message);
      input.content = *content;
      inputs.push_back(input);
    }
    if (inputs.size() == before && !path.empty())
      return wrong(
          step, source.line,
          fmt::format("in.{}: {} matches nothing that was written", input.name, source.text));
    return {};
  }
  Words found;
  BERTH_ASSIGN(found, world_files(step, source, "in." + input.name, path));
  for (auto& each : found) {
    input.place = place_of(each);
    input.world = std::move(each);
    inputs.push_back(input);
  }
  return {};
}

namespace {

/// Each place once, and none within another: what lies there is a part of it anyway.
void keep_outermost(std::vector<TaskInput>& inputs) {
  std::ranges::stable_sort(inputs, {}, &TaskInput::place);
  const auto same = std::ranges::unique(inputs, {}, &TaskInput::place);
  inputs.erase(same.begin(), same.end());
  std::unordered_set<std::string_view> places;
  for (const auto& input : inputs) places.insert(input.place);
  const auto within_another = [&](const TaskInput& input) {
    const std::string_view place = input.place;
    for (auto slash = place.rfind('/'); slash != std::string_view::npos && slash > 0;
         slash = place.rfind('/', slash - 1))
      if (places.contains(place.substr(0, slash))) return true;
    return false;
  };
  std::vector<TaskInput> kept;
  for (const auto& input : inputs)
    if (!within_another(input)) kept.push_back(input);
  inputs = std::move(kept);
}

}  // namespace

Result<TaskSpec> Graph::Impl::spec(TaskIndex task) const {
  BERTH_ASSERT(task.value >= 0 && task.value < known());
  BERTH_ASSERT(tasks_[at(task)].state != State::waiting);
  const Step& of = step(task);
  TaskSpec spec{.name = name(task), .environment = of.environment};
  Lookup values = values_of(task);
  for (const auto& input : of.in) {
    const std::size_t before = spec.inputs.size();
    for (const auto& source : input.sources)
      BERTH_TRY(add_source(of, source, values, {.name = input.name}, spec.inputs));
    Words places;
    for (std::size_t i = before; i < spec.inputs.size(); ++i)
      places.push_back(spec.inputs[i].place);
    values.emplace_back("in." + input.name, std::move(places));
  }
  for (std::size_t i = 0; i < of.foreach.size(); ++i) {
    const Item& each = item(task, i);
    spec.params.emplace_back(of.foreach[i].name, each.text);
    if (!of.foreach[i].files) continue;
    TaskInput input{.name = of.foreach[i].name, .place = each.text, .world = each.world};
    if (each.producer >= 0) {
      const auto content = written({each.producer}, of.foreach[i].files->output, each.below);
      if (!content) return wrong(of, of.foreach[i].line, content.error().message);
      input.content = *content;
    }
    spec.inputs.push_back(std::move(input));
  }
  keep_outermost(spec.inputs);
  for (const auto& [param, words] : of.params) spec.params.emplace_back(param, join(words, " "));
  for (const auto& output : of.out) {
    spec.outputs.push_back({output.name, output_path(task, output), output.directory});
    values.push_back({"out." + output.name, {spec.outputs.back().path}});
  }
  values.push_back({"params_file", {std::string(kParamsFile)}});
  const auto named = exec::placeholders(of.run);
  spec.params_file = std::ranges::find(named, "params_file") != named.end();
  spec.command = exec::command_line_of_lists(of.run, [&](std::string_view name) {
    const auto found = std::ranges::find(values, name, &Lookup::value_type::first);
    return found == values.end() || name.starts_with("env.") ? std::nullopt
                                                             : std::optional(found->second);
  });
  return spec;
}

}  // namespace berth::flow
