// From steps to tasks: who waits for whom, the values of a foreach, and who writes what.
#include <algorithm>

#include "berth/flow/elsewhere.h"
#include "berth/flow/graph.h"
#include "berth/flow/notation.h"

namespace berth::flow {

void Graph::Impl::connect() {
  for (std::size_t i = 0; i < flow_.steps.size(); ++i) {
    const Step& step = flow_.steps[i];
    const auto to = static_cast<std::uint32_t>(i);
    std::vector<std::pair<std::int64_t, Wait>> waits;
    for (const StepIndex need : step.needs) waits.emplace_back(need.value, Wait::start);
    for (const auto& input : step.in)
      for (const auto& source : input.sources)
        if (source.step) waits.emplace_back(source.step->value, Wait::start);
    for (const auto& term : step.when)
      if (term.path.step && !is_of_instance(step, term))
        waits.emplace_back(term.path.step->value, Wait::start);
    // What tasks write as a whole is known as soon as they are; what lies in it, when it is there.
    for (const auto& variable : step.variables)
      if (variable.files && variable.files->step)
        waits.emplace_back(variable.files->step->value,
                           variable.files->pattern.empty() ? Wait::elements : Wait::unfold);
    std::ranges::sort(waits);
    waits.erase(std::ranges::unique(waits).begin(), waits.end());
    for (const auto& [from, wait] : waits) {
      states_[static_cast<std::size_t>(from)].edges.push_back({to, wait});
      ++(wait == Wait::start ? states_[i].start_waits : states_[i].unfold_waits);
    }
  }
}

Status Graph::Impl::unfold_pending() {
  while (!pending_.empty()) {
    std::vector<std::size_t> unfolded;
    while (!pending_.empty()) {
      const std::size_t step = pending_.back();
      pending_.pop_back();
      BERTH_TRY(unfold(step));
      unfolded.push_back(step);
    }
    // Only now is every output known that will be.
    for (const std::size_t step : unfolded) BERTH_TRY(check_world(step));
    BERTH_TRY(choose_targets(unfolded));
  }
  return {};
}

Status Graph::Impl::unfold(std::size_t index) {
  StepState& state = states_[index];
  BERTH_TRY(combine(index));
  state.first = known();
  state.open = state.count;
  tasks_.resize(tasks_.size() + static_cast<std::size_t>(state.count),
                {static_cast<std::uint32_t>(index), State::waiting, wanted_steps_[index]});
  BERTH_TRY(assign_instance_keys(index));
  BERTH_TRY(register_outputs(index));
  count_producers(index);
  count_readers(index);
  for (const Edge& edge : state.edges)
    if (edge.wait == Wait::elements && --states_[edge.to].unfold_waits == 0)
      pending_.push_back(edge.to);
  if (state.count == 0)
    close(index);
  else
    mark_all_ready(index);
  return {};
}

/// The plain paths of what `path`, which the source came to, names in the world. `key` is for the
/// message when there is none.
Result<Words> Graph::Impl::world_files(const Step& step, const Source& source,
                                       const std::string& key, const std::string& path,
                                       bool pattern) const {
  Words found;
  if (pattern) {
    BERTH_ASSIGN(found, world_.glob(path));
  } else if (world_.exists(path)) {
    found.push_back(path);
  }
  if (found.empty())
    return wrong(step, source.line, fmt::format("{}: {}", key, missing_file(source, path)));
  for (auto& each : found) {
    auto plain = plain_path(each);
    if (!plain) return wrong(step, source.line, plain.error().message);
    each = *std::move(plain);
  }
  return found;
}

/// What the tasks of the source's step wrote, or where they will write it; of a pattern (or path)
/// within it, what matches.
std::vector<Graph::Impl::Element> Graph::Impl::written_elements(const Source& source,
                                                                const std::string& pattern) const {
  std::vector<Element> elements;
  const auto producer = static_cast<std::size_t>(source.step->value);
  const Output& output = flow_.steps[producer].out[source.output];
  for (std::int64_t i = 0; i < states_[producer].count; ++i) {
    const TaskIndex task = task_of(producer, i);
    const std::string root = output_path(task, output);
    if (pattern.empty()) {
      elements.push_back({.text = root, .producer = task.value});
    } else if (const auto found = written_.find(task.value); found != written_.end()) {
      for (auto& path : fileset::paths(found->second[source.output]))
        if (fileset::matches(pattern, path))
          elements.push_back(
              {.text = fmt::format("{}/{}", root, path), .producer = task.value, .below = path});
    }
  }
  return elements;
}

/// Notes for each instance how many tasks that make its elements are not done, and for each of
/// these which instances read what it makes.
void Graph::Impl::count_producers(std::size_t index) {
  StepState& state = states_[index];
  const std::size_t variables = state.elements.size();
  state.producers_open.resize(static_cast<std::size_t>(state.count));
  for (std::size_t instance = 0; instance < state.producers_open.size(); ++instance)
    for (std::size_t i = 0; i < variables; ++i) {
      const std::size_t at = instance * variables + i;
      for (auto each = state.begins[at]; each < state.begins[at + 1]; ++each) {
        const std::int64_t producer = state.elements[i][state.chosen[each]].producer;
        if (producer < 0) continue;
        if (const State now = state_of(producer); now == State::finished || now == State::skipped)
          continue;
        state.readers.emplace_back(producer, static_cast<std::int64_t>(instance));
      }
    }
  std::ranges::sort(state.readers);
  const auto again = std::ranges::unique(state.readers);
  state.readers.erase(again.begin(), again.end());
  for (const auto& reader : state.readers)
    ++state.producers_open[static_cast<std::size_t>(reader.second)];
}

/// What to do about two tasks that write one file.
std::string Graph::Impl::two_writers(TaskIndex task, TaskIndex other) const {
  if (task == other) return "; two outputs cannot be one";
  if (step_at(task) == step_at(other))
    return "; every task needs a separate path: put {index} or a value that distinguishes them "
           "into it";
  const Step& mine = step(task);
  const Step& its = step(other);
  return fmt::format(" ({}line {}){}", mine.file == its.file ? "" : its.file + ", ", its.line,
                     mine.name.contains('.') || its.name.contains('.')
                         ? "; where a sub-flow is included, dir: puts its outputs into a folder"
                         : "");
}

Status Graph::Impl::register_outputs(std::size_t index) {
  const Step& step = flow_.steps[index];
  for (std::int64_t i = 0; i < states_[index].count; ++i) {
    const TaskIndex task = task_of(index, i);
    for (const auto& output : step.out) {
      const std::string path = output_path(task, output);
      const auto plain = plain_path(path);
      if (const auto url = s3_url(output, path); !url.empty() && !parse_url(url))
        return wrong(
            step, output.line,
            fmt::format("out.{}: {}: {}", output.name, url, parse_url(url).error().message));
      if (!plain || *plain != path || !stays_inside(path))
        return wrong(
            step, output.line,
            fmt::format("out.{}: '{}' of {} is not a path in the folder of the flow's file",
                        output.name, path, name(task)));
      if (const auto other = writer_of(path))
        return wrong(step, output.line,
                     fmt::format("out.{}: {} writes {}, where {} writes too{}", output.name,
                                 name(task), path, name(*other), two_writers(task, *other)));
      writers_.emplace(path, task.value);
      for (auto slash = path.rfind('/'); slash != std::string::npos;
           slash = path.rfind('/', slash - 1))
        if (!folders_.emplace(path.substr(0, slash), task.value).second) break;
    }
  }
  return {};
}

Status Graph::Impl::check_world(std::size_t index) const {
  const Step& step = flow_.steps[index];
  const StepState& state = states_[index];
  for (std::size_t i = 0; i < step.variables.size(); ++i)
    for (const auto& element : state.elements[i])
      if (!element.world.empty())
        BERTH_TRY(check_path(step, element.world, step.variables[i].line));
  for (std::int64_t i = 0; i < state.count; ++i) {
    const auto asks = [](const Condition& term) {
      return term.kind == Condition::Kind::exists && !term.path.step;
    };
    const bool inputs = std::ranges::any_of(step.in, [](const Input& input) {
      return std::ranges::any_of(input.sources, [](const Source& source) { return !source.step; });
    });
    if (!inputs && !std::ranges::any_of(step.when, asks)) return {};
    const TaskIndex task = task_of(index, i);
    for (const auto& input : step.in)
      for (const auto& source : input.sources) {
        if (source.step) continue;
        std::vector<TaskInput> found;
        BERTH_TRY(add_source(task, source, {.name = input.name}, found));
        for (const auto& each : found) {
          const auto s3 = s3_place_of(each.world);
          BERTH_TRY(check_path(step, s3.empty() ? each.world : s3, source.line));
        }
      }
    for (const auto& term : step.when)
      if (asks(term))
        BERTH_TRY(check_path(step, expanded(task, term.path.pattern), step.when_line));
    const auto varies = [&](const Input& input) {
      return std::ranges::any_of(input.sources,
                                 [](const Source& each) { return !names_in(each.text).empty(); });
    };
    // The same for every task: looked at once.
    if (!std::ranges::any_of(step.in, varies) && !std::ranges::any_of(step.when, asks)) return {};
  }
  return {};
}

}  // namespace berth::flow
