// All of one task.
#include <algorithm>
#include <unordered_set>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/flow/elsewhere.h"
#include "berth/flow/graph.h"
#include "berth/flow/notation.h"

namespace berth::flow {

std::span<const Graph::Impl::ElementIndex> Graph::Impl::chosen(TaskIndex task,
                                                               std::size_t variable) const {
  const StepState& state = states_[step_at(task)];
  const auto at = static_cast<std::size_t>(instance_of(task)) * state.elements.size() + variable;
  return std::span(state.chosen).subspan(state.begins[at], state.begins[at + 1] - state.begins[at]);
}

std::vector<const Graph::Impl::Element*> Graph::Impl::elements(TaskIndex task, std::size_t variable,
                                                               bool skipped) const {
  std::vector<const Element*> found;
  const auto& all = states_[step_at(task)].elements[variable];
  for (const ElementIndex i : chosen(task, variable))
    if (skipped || all[i].producer < 0 || state_of(all[i].producer) != State::skipped)
      found.push_back(&all[i]);
  return found;
}

std::optional<Words> Graph::Impl::value(TaskIndex task, std::string_view name) const {
  const Step& of = step(task);
  for (const auto& [param, words] : of.params)
    if (param == name) return words;
  if (!of.variables.empty()) {
    if (auto found = element_value(task, name)) return found;
    if (name == "index") return Words{fmt::format("{}", instance_of(task))};
    if (name == "key")
      return Words{states_[step_at(task)].keys[static_cast<std::size_t>(instance_of(task))]};
  }
  if (name.starts_with("env."))
    for (const auto& [variable, value] : of.environment)
      if (variable == name.substr(4)) return Words{value};
  return std::nullopt;
}

/// A variable's elements, or what `x.NAME` is of them: once, where they are grouped by it.
std::optional<Words> Graph::Impl::element_value(TaskIndex task, std::string_view name) const {
  const Step& of = step(task);
  const auto dot = std::min(name.find('.'), name.size());
  const auto variable = std::ranges::find(of.variables, name.substr(0, dot), &Variable::name);
  if (variable == of.variables.end()) return std::nullopt;
  const auto below = name.substr(std::min(dot + 1, name.size()));
  const auto index = static_cast<std::size_t>(variable - of.variables.begin());
  auto chosen = elements(task, index);
  // Where all were skipped, the task will be, and what it would have written keeps its path.
  if (chosen.empty() && !variable->optional) chosen = elements(task, index, true);
  Words words;
  for (const auto* element : chosen) {
    auto word = dot == name.size() ? element->text : name_of(*variable, *element, below);
    if (!word) continue;
    words.push_back(*std::move(word));
    if (std::ranges::find(of.by, below) != of.by.end()) return words;
  }
  if (words.empty() && variable->optional) words.emplace_back();
  return words;
}

/// The text with the names of a task replaced; in a pattern, values stand for themselves.
std::string Graph::Impl::expanded(TaskIndex task, std::string_view text, bool pattern) const {
  return expand(text, [&](std::string_view name) -> std::optional<std::string> {
    const auto words = value(task, name);
    if (!words) return std::nullopt;
    return pattern ? fileset::literal_pattern(join(*words, " ")) : join(*words, " ");
  });
}

std::string Graph::Impl::output_path(TaskIndex task, const Output& output) const {
  return expanded(task, output.path);
}

Words Graph::Impl::output_paths(TaskIndex task) const {
  Words paths;
  for (const auto& output : step(task).out) paths.push_back(output_path(task, output));
  return paths;
}

Result<fileset::Fileset> Graph::Impl::written(TaskIndex task, std::size_t output,
                                              const std::string& below) const {
  const auto found = written_.find(task.value);
  BERTH_ASSERT(found != written_.end());
  return fileset::part(found->second[output], below.empty() ? "." : below);
}

std::optional<Graph::Writer> Graph::Impl::file_writer(const std::string& path) const {
  std::string root = path;
  auto found = writers_.find(root);
  for (auto slash = path.rfind('/');
       found == writers_.end() && slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    root = path.substr(0, slash);
    found = writers_.find(root);
  }
  if (found == writers_.end()) return std::nullopt;
  Writer writer{.task = {found->second}, .digest = {}};
  const auto& outputs = step(writer.task).out;
  for (std::size_t i = 0; state_of(found->second) == State::finished && i < outputs.size(); ++i) {
    if (output_path(writer.task, outputs[i]) != root) continue;
    const auto file = written(writer.task, i, root == path ? "" : path.substr(root.size() + 1));
    const auto is_file = [](const fileset::Entry& entry) {
      return entry.path == "." && (entry.kind == fileset::Entry::Kind::file ||
                                   entry.kind == fileset::Entry::Kind::executable);
    };
    if (file && is_file(file->entries.at(0))) writer.digest = file->entries[0].digest;
  }
  return writer;
}

/// Adds what the source stands for; `input` has the name.
Status Graph::Impl::add_source(TaskIndex task, const Source& source, TaskInput input,
                               std::vector<TaskInput>& inputs) const {
  const Step& step = this->step(task);
  const bool pattern = !is_url(source.pattern) && fileset::is_pattern(source.pattern);
  const std::string path = expanded(task, source.pattern, pattern);
  const std::size_t before = inputs.size();
  if (source.step) {
    for (auto& found : written_elements(source, path)) {
      if (state_of(found.producer) != State::finished) continue;
      input.place = std::move(found.text);
      const auto content = written({found.producer}, source.output, found.below);
      if (!content) return wrong(step, source.line, content.error().message);
      input.content = *content;
      input.producer = {found.producer};
      inputs.push_back(input);
    }
    if (inputs.size() == before && !path.empty())
      return wrong(
          step, source.line,
          fmt::format("in.{}: {} matches nothing that was written", input.name, source.text));
    return {};
  }
  if (is_url(path)) {
    const auto url = parse_url(path);
    if (!url)
      return wrong(step, source.line,
                   fmt::format("in.{}: {}: {}", input.name, shown(path), url.error().message));
    input.place = place_of_url(*url);
    input.world = path;
    inputs.push_back(std::move(input));
    return {};
  }
  Words found;
  BERTH_ASSIGN(found, world_files(step, source, "in." + input.name, path, pattern));
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

namespace {

/// What a script is told of its task; `names` are its inputs and outputs.
void add_script(const Step& step, const std::vector<std::pair<std::string, Words>>& names,
                TaskSpec& spec) {
  spec.script = step.script;
  JsonWriter json;
  json.object().key("params").object();
  for (const auto& [name, value] : spec.params) json.add(name, value);
  json.end();
  for (const std::string_view kind : {"in", "out"}) {
    json.key(kind).object();
    for (const auto& [name, paths] : names) {
      if (!name.starts_with(fmt::format("{}.", kind))) continue;
      spec.environment.emplace_back("BERTH_" + variable_name(name), join(paths, "\n"));
      json.key(std::string_view(name).substr(kind.size() + 1));
      if (kind == "out")
        json.value(paths.front());
      else
        json.list(paths);
    }
    json.end();
  }
  json.end();
  spec.task_file = json.take() + "\n";
}

}  // namespace

/// Where the task leaves its depfile; `own`: its inputs and outputs. "": it has none.
Result<std::string> Graph::Impl::depfile_path(
    TaskIndex task, const std::vector<std::pair<std::string, Words>>& own) const {
  const Step& of = step(task);
  if (of.depfile.empty()) return std::string();
  const std::string path =
      expand(of.depfile, [&](std::string_view name) -> std::optional<std::string> {
        const auto found = std::ranges::find(own, name, &std::pair<std::string, Words>::first);
        const auto words = found == own.end() ? value(task, name) : std::optional(found->second);
        return words ? std::optional(join(*words, " ")) : std::nullopt;
      });
  const auto plain = plain_path(path);
  if (!plain || !stays_inside(*plain))
    return wrong(of, of.depfile_line,
                 fmt::format("depfile: '{}' is not a path in the task's directory", path));
  return *plain;
}

Result<TaskSpec> Graph::Impl::spec(TaskIndex task, std::optional<std::int64_t> attempt) const {
  BERTH_ASSERT(task.value >= 0 && task.value < known());
  BERTH_ASSERT(tasks_[at(task)].state != State::waiting);
  if (const auto undecided = undecided_.find(task.value); undecided != undecided_.end())
    return std::unexpected(undecided->second);
  const Step& of = step(task);
  TaskSpec spec{.name = name(task),
                .image = of.image_id.empty() ? of.container.image : of.image_id,
                .sandbox = of.container.sandbox && of.container.image.empty(),
                .shown = of.container.shown,
                .environment = of.environment};
  std::vector<std::pair<std::string, Words>> own;  // names that only the command has
  for (const auto& input : of.in) {
    const std::size_t before = spec.inputs.size();
    for (const auto& source : input.sources)
      BERTH_TRY(add_source(task, source, {.name = input.name}, spec.inputs));
    Words places;
    for (std::size_t i = before; i < spec.inputs.size(); ++i)
      places.push_back(spec.inputs[i].place);
    own.emplace_back("in." + input.name, std::move(places));
  }
  for (std::size_t i = 0; i < of.variables.size(); ++i) BERTH_TRY(add_elements(task, i, spec));
  keep_outermost(spec.inputs);
  for (const auto& [param, words] : of.params) spec.params.emplace_back(param, join(words, " "));
  for (const auto& output : of.out) {
    spec.outputs.push_back({output.name, output_path(task, output), output.directory, of.protect});
    spec.outputs.back().url = s3_url(output, spec.outputs.back().path);
    own.push_back({"out." + output.name, {spec.outputs.back().path}});
  }
  if (!of.script.empty()) add_script(of, own, spec);
  BERTH_ASSIGN(spec.depfile, depfile_path(task, own));
  own.push_back({"params_file", {std::string(kParamsFile)}});
  const auto named = exec::placeholders(of.run);
  spec.params_file = std::ranges::find(named, "params_file") != named.end();
  spec.command =
      exec::command_line_of_lists(of.run, [&](std::string_view name) -> std::optional<Words> {
        if (name.starts_with("env.")) return std::nullopt;
        const auto found = std::ranges::find(own, name, &std::pair<std::string, Words>::first);
        if (found != own.end()) return found->second;
        auto words = value(task, name);
        if (!words && attempt && name == "attempt") return Words{fmt::format("{}", *attempt)};
        return words;
      });
  return spec;
}

/// What a variable stands for in the task: a parameter, the names of it that the step uses, and
/// where it is files, inputs.
Status Graph::Impl::add_elements(TaskIndex task, std::size_t index, TaskSpec& spec) const {
  const Step& of = step(task);
  const Variable& variable = of.variables[index];
  spec.params.emplace_back(variable.name, join(*value(task, variable.name), " "));
  std::set<std::string> names;
  for (const auto& used : of.element_names)
    if (used.name.starts_with(variable.name + ".")) names.insert(used.name);
  const auto placed = exec::placeholders(of.run);
  if (std::ranges::find(placed, "params_file") != placed.end() || !of.script.empty())
    for (const auto& name : variable.own_names) names.insert(variable.name + "." + name);
  for (const auto& name : names) spec.params.emplace_back(name, join(*value(task, name), " "));
  if (!variable.files) return {};
  for (const auto* element : elements(task, index)) {
    TaskInput input{.name = variable.name, .place = element->text, .world = element->world};
    if (element->producer >= 0) {
      const auto content = written({element->producer}, variable.files->output, element->below);
      if (!content) return wrong(of, variable.line, content.error().message);
      input.content = *content;
      input.producer = {element->producer};
    }
    spec.inputs.push_back(std::move(input));
  }
  return {};
}

}  // namespace berth::flow
