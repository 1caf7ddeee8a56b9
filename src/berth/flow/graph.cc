#include "berth/flow/graph.h"

#include <algorithm>

#include "berth/base/units.h"
#include "berth/flow/notation.h"

namespace berth::flow {

Graph::Graph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph::~Graph() = default;

Result<Graph> Graph::build(Flow flow, World world) {
  auto impl = std::make_unique<Impl>(std::move(flow), std::move(world));
  BERTH_TRY(impl->begin());
  return Graph(std::move(impl));
}

const Flow& Graph::flow() const {
  return impl_->flow();
}
std::int64_t Graph::known() const {
  return impl_->known();
}
std::optional<Graph::Range> Graph::tasks(StepIndex step) const {
  return impl_->tasks(static_cast<std::size_t>(step.value));
}
StepIndex Graph::step_of(TaskIndex task) const {
  return {static_cast<std::int64_t>(impl_->step_at(task))};
}
std::string Graph::name(TaskIndex task) const {
  return impl_->name(task);
}
Words Graph::output_paths(TaskIndex task) const {
  return impl_->output_paths(task);
}
std::optional<TaskIndex> Graph::find(std::string_view name) const {
  return impl_->find(name);
}
Result<Graph::Ready> Graph::take_ready() {
  return impl_->take_ready();
}
Result<TaskSpec> Graph::spec(TaskIndex task, std::optional<std::int64_t> attempt) const {
  return impl_->spec(task, attempt);
}
std::optional<Graph::Writer> Graph::writer_of(const std::string& path) const {
  return impl_->file_writer(path);
}

bool Graph::waits_for(StepIndex step, StepIndex other) const {
  const auto& steps = impl_->flow().steps;
  std::vector<bool> seen(steps.size());
  std::vector<StepIndex> open{step};
  while (!open.empty()) {
    const StepIndex each = open.back();
    open.pop_back();
    for (const StepIndex before : steps[static_cast<std::size_t>(each.value)].after) {
      if (before == other) return true;
      if (!seen[static_cast<std::size_t>(before.value)]) open.push_back(before);
      seen[static_cast<std::size_t>(before.value)] = true;
    }
  }
  return false;
}

bool Graph::wanted(TaskIndex task) const {
  return impl_->wanted(task);
}
bool Graph::is_read(TaskIndex task) const {
  return impl_->is_read(task);
}
const Words& Graph::notes() const {
  return impl_->notes();
}
Status Graph::finish(TaskIndex task, std::vector<fileset::Fileset> outputs, Metrics metrics) {
  return impl_->finish(task, std::move(outputs), std::move(metrics));
}
Status Graph::replace(TaskIndex task, std::vector<fileset::Fileset> outputs) {
  return impl_->replace(task, std::move(outputs));
}
std::vector<TaskIndex> Graph::take_released() {
  return impl_->take_released();
}
bool Graph::done() const {
  return impl_->done();
}

std::unexpected<Error> Graph::Impl::wrong(const Step& step, int line, std::string_view what) const {
  return fail(ErrorKind::invalid, "{}:{}: steps.{}: {}", step.file, line, step.name, what);
}

Status Graph::Impl::begin() {
  states_.resize(flow_.steps.size());
  has_temporary_ = std::ranges::any_of(flow_.steps, &Step::temp);
  open_steps_ = static_cast<std::int64_t>(flow_.steps.size());
  by_name_.reserve(flow_.steps.size());
  for (std::size_t i = 0; i < flow_.steps.size(); ++i) {
    by_name_.emplace(flow_.steps[i].name, i);
    for (const auto& output : flow_.steps[i].out)
      declared_.emplace(output.path, std::pair(i, &output));
  }
  wanted_steps_.resize(flow_.steps.size(), flow_.targets.empty());
  BERTH_TRY(read_tables());
  BERTH_TRY(check_element_names());
  connect();
  for (std::size_t i = flow_.steps.size(); i-- > 0;)
    if (states_[i].unfold_waits == 0) pending_.push_back(static_cast<std::uint32_t>(i));
  return unfold_pending();
}

std::optional<Graph::Range> Graph::Impl::tasks(std::size_t step) const {
  const StepState& state = states_[step];
  if (state.first < 0) return std::nullopt;
  return Range{{state.first}, state.count};
}

std::string Graph::Impl::name(TaskIndex task) const {
  const Step& of = step(task);
  if (of.variables.empty()) return of.name;
  const std::int64_t instance = instance_of(task);
  if (!flow_.keyed) return fmt::format("{}/{}", of.name, instance);
  return of.name + "/" + states_[step_at(task)].keys[static_cast<std::size_t>(instance)];
}

std::optional<TaskIndex> Graph::Impl::find(std::string_view name) const {
  const auto slash = name.find('/');
  const auto found = by_name_.find(name.substr(0, slash));
  if (found == by_name_.end()) return std::nullopt;
  const bool many = !flow_.steps[found->second].variables.empty();
  const StepState& state = states_[found->second];
  if (state.first < 0 || many != (slash != std::string_view::npos)) return std::nullopt;
  if (!many) return TaskIndex{state.first};
  const auto digits = name.substr(slash + 1);
  if (flow_.keyed) {
    const auto known = state.by_key.find(digits);
    return known == state.by_key.end() ? std::nullopt
                                       : std::optional(TaskIndex{state.first + known->second});
  }
  const auto instance = parse_integer(digits);
  if (!instance || *instance < 0 || *instance >= state.count ||
      fmt::format("{}", *instance) != digits)
    return std::nullopt;
  return TaskIndex{state.first + *instance};
}

Result<Graph::Ready> Graph::Impl::take_ready() {
  Ready ready;
  while (!newly_ready_.empty()) {
    const auto offered = std::exchange(newly_ready_, {});
    for (const TaskIndex task : offered) {
      if (tasks_[at(task)].state != State::ready) continue;  // finished before it was asked for
      auto why = why_skipped(task);
      // Another try may have what this one is short of.
      if (!why && is_short(why.error())) return std::unexpected(why.error());
      if (!why) undecided_.emplace(task.value, why.error());
      if (why && !why->empty()) {
        if (asked(task)) {
          ready.skipped.push_back(task);
          ready.because.push_back(*std::move(why));
        }
        settle(task, State::skipped);
      } else if (!asked(task)) {
        ready.taken.push_back(task);
      } else {
        ready.run.push_back(task);
      }
    }
    BERTH_TRY(unfold_pending());
  }
  return ready;
}

Status Graph::Impl::finish(TaskIndex task, std::vector<fileset::Fileset> outputs, Metrics metrics) {
  BERTH_ASSERT(task.value >= 0 && task.value < known());
  BERTH_ASSERT(tasks_[at(task)].state == State::ready);
  BERTH_ASSERT(outputs.size() == step(task).out.size());
  if (!outputs.empty()) written_.emplace(task.value, std::move(outputs));
  if (!metrics.empty() && !step(task).asked_metrics.empty())
    metrics_.emplace(task.value, std::move(metrics));
  settle(task, State::finished);
  return unfold_pending();
}

void Graph::Impl::settle(TaskIndex task, State state) {
  tasks_[at(task)].state = state;
  const std::size_t from = step_at(task);
  for (const Edge& edge : states_[from].edges) {
    if (edge.wait != Wait::elements || states_[edge.to].first < 0) continue;
    StepState& to = states_[edge.to];
    const auto readers = std::ranges::equal_range(to.readers, task.value, {},
                                                  &std::pair<std::int64_t, std::int64_t>::first);
    for (const auto& [producer, instance] : readers) {
      --to.producers_open[static_cast<std::size_t>(instance)];
      mark_ready(edge.to, instance);
    }
  }
  if (--states_[from].open == 0) close(from);
  release_after(task);
}

void Graph::Impl::close(std::size_t from) {
  --open_steps_;
  for (const Edge& edge : states_[from].edges) {
    StepState& to = states_[edge.to];
    if (edge.wait == Wait::start && --to.start_waits == 0 && to.first >= 0) mark_all_ready(edge.to);
    if (edge.wait == Wait::unfold && --to.unfold_waits == 0) pending_.push_back(edge.to);
  }
}

void Graph::Impl::mark_all_ready(std::size_t step) {
  for (std::int64_t i = 0; i < states_[step].count; ++i) mark_ready(step, i);
}

/// Once all that the task waits for is settled, and only then, is it ready.
void Graph::Impl::mark_ready(std::size_t step, std::int64_t instance) {
  const TaskIndex task = task_of(step, instance);
  if (states_[step].start_waits > 0 || tasks_[at(task)].state != State::waiting) return;
  if (states_[step].producers_open[static_cast<std::size_t>(instance)] > 0) return;
  tasks_[at(task)].state = State::ready;
  newly_ready_.push_back(task);
}

}  // namespace berth::flow
