// Which tasks are asked for: the targets and what they need. What nobody asks for is settled at
// once, as if it were skipped, and nobody hears of it.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/flow/graph.h"

namespace berth::flow {

/// Called with the steps that were unfolded, first with all that are known before anything ran.
Status Graph::Impl::choose_targets(const std::vector<std::size_t>& unfolded) {
  if (flow_.targets.empty()) return {};
  for (const std::string_view target : flow_.targets) {
    const auto slash = std::min(target.find('/'), target.size());
    const std::size_t step = by_name_.at(target.substr(0, slash));
    if (slash == target.size())
      want_step(step);
    else if (std::ranges::find(unfolded, step) != unfolded.end())
      BERTH_TRY(want_named(step, target.substr(slash + 1)));
    else if (states_[step].first < 0)  // its tasks show later: until then, all that it needs
      for (const StepIndex before : flow_.steps[step].after)
        want_step(static_cast<std::size_t>(before.value));
  }
  want_needed();
  for (const std::size_t step : unfolded)
    for (std::int64_t i = 0; i < states_[step].count; ++i)
      if (const TaskIndex task = task_of(step, i); !tasks_[at(task)].wanted)
        settle(task, State::skipped);
  return {};
}

/// Whether it may run: where the targets run alone, it has to be one.
bool Graph::Impl::asked(TaskIndex task) const {
  if (!flow_.only) return true;
  return std::ranges::any_of(flow_.targets, [&](const std::string& target) {
    return target == step(task).name || target == name(task);
  });
}

/// Whether a target, or a step whose instances are the files of an output, reads what it wrote.
bool Graph::Impl::is_read(TaskIndex task) const {
  const auto by = StepIndex{static_cast<std::int64_t>(step_at(task))};
  return std::ranges::any_of(flow_.steps, [&](const Step& reader) {
    const bool target = std::ranges::any_of(flow_.targets, [&](const std::string& text) {
      return text.substr(0, text.find('/')) == reader.name;
    });
    const auto reads = [&](const Source& source) { return source.step == by; };
    return std::ranges::any_of(reader.variables,
                               [&](const Variable& variable) {
                                 return variable.files && reads(*variable.files) &&
                                        (target || !variable.files->pattern.empty());
                               }) ||
           (target && (std::ranges::any_of(reader.in,
                                           [&](const Input& input) {
                                             return std::ranges::any_of(input.sources, reads);
                                           }) ||
                       std::ranges::any_of(
                           reader.when, [&](const Condition& term) { return reads(term.path); })));
  });
}

Status Graph::Impl::want_named(std::size_t step, std::string_view key) {
  constexpr std::int64_t kMostNamed = 10;
  const std::string& name = flow_.steps[step].name;
  if (const auto task = find(fmt::format("{}/{}", name, key))) {
    want_task(*task);
    return {};
  }
  Words known;
  for (std::int64_t i = 0; i < std::min(states_[step].count, kMostNamed); ++i)
    known.push_back(this->name(task_of(step, i)));
  if (states_[step].count > kMostNamed)
    known.push_back(fmt::format("{} more", states_[step].count - kMostNamed));
  return fail(ErrorKind::invalid, "the target {}/{}: there is no such task; there are {}", name,
              clip(key), join(known, ", "));
}

void Graph::Impl::want_step(std::size_t index) {
  std::vector<std::size_t> open{index};
  while (!open.empty()) {
    const std::size_t step = open.back();
    open.pop_back();
    if (wanted_steps_[step]) continue;
    wanted_steps_[step] = true;
    for (std::int64_t i = 0; i < states_[step].count; ++i) want_task(task_of(step, i));
    if (states_[step].first < 0)
      for (const StepIndex before : flow_.steps[step].after)
        open.push_back(static_cast<std::size_t>(before.value));
  }
}

void Graph::Impl::want_task(TaskIndex task) {
  if (std::exchange(tasks_[at(task)].wanted, true)) return;
  just_wanted_.push_back(task);
}

/// Of what is read as a whole every task, of a variable's elements those that are its own.
void Graph::Impl::want_needed() {
  while (!just_wanted_.empty()) {
    const TaskIndex task = just_wanted_.back();
    just_wanted_.pop_back();
    const Step& of = step(task);
    for (const StepIndex need : of.needs) want_step(static_cast<std::size_t>(need.value));
    for (const auto& input : of.in)
      for (const auto& source : input.sources)
        if (source.step) want_step(static_cast<std::size_t>(source.step->value));
    for (const auto& term : of.when)
      if (term.path.step && !is_of_instance(of, term))
        want_step(static_cast<std::size_t>(term.path.step->value));
    for (std::size_t i = 0; i < of.variables.size(); ++i)
      for (const auto* element : elements(task, i, true))
        if (element->producer >= 0) want_task({element->producer});
  }
}

}  // namespace berth::flow
