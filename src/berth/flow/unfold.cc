// From steps to tasks: who waits for whom, the values of a foreach, and who writes what.
#include <algorithm>

#include "berth/base/checked.h"
#include "berth/flow/graph.h"
#include "berth/flow/notation.h"

namespace berth::flow {

/// A foreach over just what another step's tasks write: known as soon as those tasks are, and task
/// i needs only their task i.
bool Graph::Impl::is_pairwise(const Step& step) {
  return step.foreach.size() == 1 && step.foreach[0].files && step.foreach[0].files->step &&
         step.foreach[0].files->pattern.empty();
}

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
      if (term.path.step) waits.emplace_back(term.path.step->value, Wait::start);
    const Wait unfolds = is_pairwise(step) ? Wait::pairwise : Wait::unfold;
    for (const auto& variable : step.foreach)
      if (variable.files && variable.files->step)
        waits.emplace_back(variable.files->step->value, unfolds);
    std::ranges::sort(waits);
    waits.erase(std::ranges::unique(waits).begin(), waits.end());
    for (const auto& [from, wait] : waits) {
      states_[static_cast<std::size_t>(from)].edges.push_back({to, wait});
      ++(wait == Wait::start ? states_[i].start_waits : states_[i].unfold_waits);
    }
  }
}

Status Graph::Impl::unfold_pending() {
  std::vector<std::size_t> unfolded;
  while (!pending_.empty()) {
    const std::size_t step = pending_.back();
    pending_.pop_back();
    BERTH_TRY(unfold(step));
    unfolded.push_back(step);
  }
  // Only now is every output known that will be.
  for (const std::size_t step : unfolded) BERTH_TRY(check_world(step));
  return {};
}

Status Graph::Impl::unfold(std::size_t index) {
  const Step& step = flow_.steps[index];
  StepState& state = states_[index];
  std::int64_t count = 1;
  for (const auto& variable : step.foreach) {
    BERTH_ASSIGN(auto items, items_of(step, variable));
    count = checked_mul(count, static_cast<std::int64_t>(items.size())).value_or(kMostTasks + 1);
    state.items.push_back(std::move(items));
  }
  if (count > kMostTasks - known())
    return wrong(step, step.line, fmt::format("the flow has more than {} tasks", kMostTasks));
  state.first = known();
  state.count = state.open = count;
  tasks_.resize(tasks_.size() + static_cast<std::size_t>(count),
                {static_cast<std::uint32_t>(index), State::waiting});
  BERTH_TRY(register_outputs(index));
  for (const Edge& edge : state.edges)
    if (edge.wait == Wait::pairwise && --states_[edge.to].unfold_waits == 0)
      pending_.push_back(edge.to);
  if (count == 0)
    close(index);
  else
    mark_all_ready(index);
  return {};
}

Result<std::vector<Graph::Impl::Item>> Graph::Impl::items_of(const Step& step,
                                                             const Variable& variable) const {
  std::vector<Item> items;
  for (const auto& value : variable.values) items.push_back({value, {}, -1, {}});
  if (!variable.files) return items;
  const Source& source = *variable.files;
  const bool pattern = fileset::is_pattern(source.pattern);
  const auto lookup = [&](std::string_view name) {
    auto value = value_of(step.params, name);
    return value && pattern ? fileset::literal_pattern(*value) : value;
  };
  const std::string path = expand(source.pattern, lookup);
  if (source.step) return written_items(source, path);
  Words found;
  BERTH_ASSIGN(found, world_files(step, source, "foreach." + variable.name, path));
  for (const auto& each : found) items.push_back({place_of(each), each, -1, {}});
  return items;
}

/// The plain paths of what `path`, which the source came to, names in the world. `key` is for the
/// message when there is none.
Result<Words> Graph::Impl::world_files(const Step& step, const Source& source,
                                       const std::string& key, const std::string& path) const {
  Words found;
  if (fileset::is_pattern(source.pattern)) {
    BERTH_ASSIGN(found, world_.glob(path));
  } else if (world_.exists(path)) {
    found.push_back(path);
  }
  if (found.empty()) {
    BERTH_TRY(check_path(step, path, source.line));
    return wrong(step, source.line, fmt::format("{}: there is no file {}", key, path));
  }
  for (auto& each : found) {
    auto plain = plain_path(each);
    if (!plain) return wrong(step, source.line, plain.error().message);
    each = *std::move(plain);
  }
  return found;
}

/// What the tasks of the source's step wrote, or where they will write it; of a pattern (or path)
/// within it, what matches.
std::vector<Graph::Impl::Item> Graph::Impl::written_items(const Source& source,
                                                          const std::string& pattern) const {
  std::vector<Item> items;
  const auto producer = static_cast<std::size_t>(source.step->value);
  const Output& output = flow_.steps[producer].out[source.output];
  for (std::int64_t i = 0; i < states_[producer].count; ++i) {
    const TaskIndex task = task_of(producer, i);
    const std::string root = output_path(task, output);
    if (pattern.empty()) {
      items.push_back({root, {}, task.value, {}});
    } else if (const auto found = written_.find(task.value); found != written_.end()) {
      for (auto& path : fileset::paths(found->second[source.output]))
        if (fileset::matches(pattern, path))
          items.push_back({fmt::format("{}/{}", root, path), {}, task.value, std::move(path)});
    }
  }
  return items;
}

std::optional<TaskIndex> Graph::Impl::writer_of(const std::string& path) const {
  if (const auto found = writers_.find(path); found != writers_.end())
    return TaskIndex{found->second};
  if (const auto found = folders_.find(path); found != folders_.end())
    return TaskIndex{found->second};
  for (auto slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1))
    if (const auto found = writers_.find(path.substr(0, slash)); found != writers_.end())
      return TaskIndex{found->second};
  return std::nullopt;
}

Status Graph::Impl::register_outputs(std::size_t index) {
  const Step& step = flow_.steps[index];
  for (std::int64_t i = 0; i < states_[index].count; ++i) {
    const TaskIndex task = task_of(index, i);
    for (const auto& output : step.out) {
      const std::string path = output_path(task, output);
      const auto plain = plain_path(path);
      if (!plain || *plain != path || !stays_inside(path))
        return wrong(step, output.line,
                     fmt::format("out.{}: '{}' of {} is no path in the folder of the flow's file",
                                 output.name, path, name(task)));
      if (const auto other = writer_of(path))
        return wrong(step, output.line,
                     fmt::format("out.{}: {} writes {}, where {} writes too", output.name,
                                 name(task), path, name(*other)));
      writers_.emplace(path, task.value);
      for (auto slash = path.rfind('/'); slash != std::string::npos;
           slash = path.rfind('/', slash - 1))
        if (!folders_.emplace(path.substr(0, slash), task.value).second) break;
    }
  }
  return {};
}

/// A file that a step writes is named by that step: else nothing would make its reader wait.
Status Graph::Impl::check_path(const Step& step, const std::string& path, int line) const {
  const Step* by = nullptr;
  if (const auto writer = writer_of(path)) by = &this->step(*writer);
  for (std::size_t i = 0; i < flow_.steps.size(); ++i)  // those whose tasks are not known yet
    if (states_[i].first < 0 &&
        std::ranges::find(flow_.steps[i].out, path, &Output::path) != flow_.steps[i].out.end())
      by = &flow_.steps[i];
  if (by == nullptr) return {};
  std::string names;
  for (const auto& output : by->out)
    names += fmt::format("{}{}.{}", names.empty() ? "" : " or ", by->name, output.name);
  return wrong(step, line, fmt::format("{} is what {} writes; say {}", path, by->name, names));
}

Status Graph::Impl::check_world(std::size_t index) const {
  const Step& step = flow_.steps[index];
  const StepState& state = states_[index];
  for (std::size_t i = 0; i < step.foreach.size(); ++i)
    for (const auto& item : state.items[i])
      if (!item.world.empty()) BERTH_TRY(check_path(step, item.world, step.foreach[i].line));
  for (std::int64_t i = 0; i < state.count; ++i) {
    const auto asks = [](const Condition& term) {
      return term.kind == Condition::Kind::exists && !term.path.step;
    };
    const bool inputs = std::ranges::any_of(step.in, [](const Input& input) {
      return std::ranges::any_of(input.sources, [](const Source& source) { return !source.step; });
    });
    if (!inputs && !std::ranges::any_of(step.when, asks)) return {};
    const auto values = values_of(task_of(index, i));
    for (const auto& input : step.in)
      for (const auto& source : input.sources) {
        if (source.step) continue;
        std::vector<TaskInput> found;
        BERTH_TRY(add_source(step, source, values, {.name = input.name}, found));
        for (const auto& each : found) BERTH_TRY(check_path(step, each.world, source.line));
      }
    for (const auto& term : step.when)
      if (asks(term))
        BERTH_TRY(check_path(
            step, expand(term.path.pattern, [&](auto name) { return value_of(values, name); }),
            step.when_line));
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
