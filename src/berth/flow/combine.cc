// From the elements of a step's variables to its instances.
#include <algorithm>
#include <map>

#include "berth/base/checked.h"
#include "berth/base/text.h"
#include "berth/flow/graph.h"
#include "berth/flow/notation.h"

namespace berth::flow {

/// Chooses the elements of each instance; a step without variables has one instance, and none.
Status Graph::Impl::combine(std::size_t index) {
  const Step& step = flow_.steps[index];
  StepState& state = states_[index];
  for (const auto& variable : step.variables) {
    BERTH_ASSIGN(auto elements, elements_of(step, variable));
    state.elements.push_back(std::move(elements));
  }
  if (step.combine == Combine::product) {
    std::int64_t count = 1;
    for (const auto& elements : state.elements)
      count =
          checked_mul(count, static_cast<std::int64_t>(elements.size())).value_or(kMostTasks + 1);
    if (count > kMostTasks - known())
      return wrong(step, step.line, fmt::format("the flow has more than {} tasks", kMostTasks));
    state.count = count;
    combine_product(step, state);
    return {};
  }
  BERTH_TRY(step.combine == Combine::zip ? combine_zip(step, state) : combine_by(step, state));
  state.count = static_cast<std::int64_t>((state.begins.size() - 1) / step.variables.size());
  if (state.count > kMostTasks - known())
    return wrong(step, step.line, fmt::format("the flow has more than {} tasks", kMostTasks));
  return {};
}

void Graph::Impl::combine_product(const Step& step, StepState& state) const {
  const auto count = static_cast<std::size_t>(state.count);
  state.chosen.reserve(count * step.variables.size());
  state.begins.reserve(count * step.variables.size() + 1);
  for (std::size_t instance = 0; instance < count; ++instance) {
    std::size_t rest = count, place = instance;
    for (const auto& elements : state.elements) {
      rest /= elements.size();
      state.chosen.push_back(static_cast<ElementIndex>(place / rest));
      place %= rest;
      state.begins.push_back(state.chosen.size());
    }
  }
}

Status Graph::Impl::combine_zip(const Step& step, StepState& state) const {
  for (std::size_t i = 1; i < state.elements.size(); ++i)
    if (state.elements[i].size() != state.elements[0].size())
      return wrong(
          step, step.variables[i].line,
          fmt::format("zip: {} has {} elements, and {} has {}", step.variables[0].name,
                      state.elements[0].size(), step.variables[i].name, state.elements[i].size()));
  for (ElementIndex i = 0; i < state.elements[0].size(); ++i)
    for (std::size_t variable = 0; variable < step.variables.size(); ++variable) {
      state.chosen.push_back(i);
      state.begins.push_back(state.chosen.size());
    }
  return {};
}

/// The values that an element is joined or grouped by.
Result<std::string> Graph::Impl::by_of(const Step& step, const Variable& variable,
                                       const Element& element) const {
  if (step.by.empty()) return element.key;
  Words values;
  for (const auto& name : step.by) {
    const auto found = name_of(variable, element, name);
    if (!found)
      return wrong(step, variable.line,
                   fmt::format("{}.by: the element {} of {} has no '{}'",
                               kCombineNames.name(step.combine), element.key, variable.name, name));
    values.push_back(key_text(*found));
  }
  return join(values, ",");
}

/// join: each combination of elements whose `by` is the same; group: all of them at once. In the
/// order in which a `by` comes first, variable by variable.
Status Graph::Impl::combine_by(const Step& step, StepState& state) const {
  const std::size_t count = step.variables.size();
  for (const auto& variable : step.variables)
    if (step.by.empty() && variable.files && variable.files->step)
      if (const auto maker = static_cast<std::size_t>(variable.files->step->value);
          !states_[maker].repeats.empty())
        return wrong(step, variable.line,
                     fmt::format("{}: several tasks of {} are called {}: name what distinguishes "
                                 "them (by: [NAME]), or give that step a key",
                                 kCombineNames.name(step.combine), flow_.steps[maker].name,
                                 states_[maker].repeats));
  std::map<std::string, std::vector<std::vector<ElementIndex>>> sets;
  std::vector<const std::string*> order;
  for (std::size_t variable = 0; variable < count; ++variable)
    for (ElementIndex i = 0; i < state.elements[variable].size(); ++i) {
      BERTH_ASSIGN(auto by, by_of(step, step.variables[variable], state.elements[variable][i]));
      const auto [set, is_new] = sets.try_emplace(std::move(by), count);
      if (is_new) order.push_back(&set->first);
      set->second[variable].push_back(i);
    }
  for (const auto* by : order) {
    const auto& set = sets.at(*by);
    if (step.combine == Combine::group) {
      for (const auto& indices : set) {
        std::ranges::copy(indices, std::back_inserter(state.chosen));
        state.begins.push_back(state.chosen.size());
      }
      continue;
    }
    std::size_t combinations = 1;
    for (std::size_t variable = 0; variable < count; ++variable) {
      combinations *= std::max<std::size_t>(set[variable].size(), 1);
      if (set[variable].empty() && !step.variables[variable].optional)
        return wrong(
            step, step.variables[variable].line,
            fmt::format("join: {} has nothing for {}; write optional: [{}] to continue without it",
                        step.variables[variable].name, *by, step.variables[variable].name));
    }
    if (state.begins.size() / count + combinations > static_cast<std::size_t>(kMostTasks))
      return wrong(step, step.line, fmt::format("the flow has more than {} tasks", kMostTasks));
    for (std::size_t instance = 0; instance < combinations; ++instance) {
      std::size_t rest = combinations, place = instance;
      for (const auto& indices : set) {
        rest /= std::max<std::size_t>(indices.size(), 1);
        if (!indices.empty()) state.chosen.push_back(indices[place / rest]);
        place %= rest;
        state.begins.push_back(state.chosen.size());
      }
    }
  }
  return {};
}

/// The keys of the instances as they would be called, the first way that tells them apart: by
/// `key`, or by what they are joined or grouped by, or by those of their elements (by one of them
/// where all are the same); else by their numbers.
Status Graph::Impl::assign_instance_keys(std::size_t index) {
  const Step& step = flow_.steps[index];
  StepState& state = states_[index];
  if (step.variables.empty()) return {};
  const auto assign = [&](const auto& key_of) -> Status {
    state.keys.clear();
    state.by_key.clear();
    for (std::int64_t i = 0; i < state.count; ++i) {
      BERTH_ASSIGN(state.keys.emplace_back(), key_of(i));
    }
    for (std::int64_t i = 0; i < state.count; ++i)
      if (const auto& key = state.keys[static_cast<std::size_t>(i)];
          !state.by_key.emplace(key, i).second) {
        state.repeats = key;
        return {};
      }
    state.repeats.clear();
    return {};
  };
  if (!step.key.empty()) {
    BERTH_TRY(assign([&](std::int64_t i) -> Result<std::string> {
      return key_text(expanded(TaskIndex{state.first + i}, step.key));
    }));
  } else {
    const bool by = step.combine == Combine::join || step.combine == Combine::group;
    if (by) BERTH_TRY(assign([&](std::int64_t i) { return by_of_instance(index, i); }));
    if (!by || !state.repeats.empty())
      BERTH_TRY(
          assign([&](std::int64_t i) -> Result<std::string> { return key_of_elements(index, i); }));
  }
  if (state.repeats.empty()) return {};
  if (step.names_key)
    return wrong(step, step.line,
                 fmt::format("{{key}}: several of its tasks are called {}; give a key that "
                             "distinguishes them, such as key: '{{{}.name}}'",
                             state.repeats, step.variables.front().name));
  if (flow_.keyed)
    notes_.push_back(
        fmt::format("{}:{}: several tasks of {} would be called {}, so they are numbered; to "
                    "distinguish them, give a key such as key: '{{{}.name}}'",
                    step.file, step.line, step.name, state.repeats, step.variables.front().name));
  const std::string repeats = state.repeats;
  BERTH_TRY(assign([](std::int64_t i) -> Result<std::string> { return fmt::format("{}", i); }));
  state.repeats = repeats;
  return {};
}

Result<std::string> Graph::Impl::by_of_instance(std::size_t index, std::int64_t instance) const {
  const Step& step = flow_.steps[index];
  const StepState& state = states_[index];
  std::size_t variable = 0, at = static_cast<std::size_t>(instance) * step.variables.size();
  while (state.begins[at] == state.begins[at + 1]) ++variable, ++at;
  return by_of(step, step.variables[variable],
               state.elements[variable][state.chosen[state.begins[at]]]);
}

std::string Graph::Impl::key_of_elements(std::size_t index, std::int64_t instance) const {
  const Step& step = flow_.steps[index];
  const StepState& state = states_[index];
  Words keys;
  for (std::size_t i = 0; i < step.variables.size(); ++i) {
    const auto at = static_cast<std::size_t>(instance) * step.variables.size() + i;
    for (auto each = state.begins[at]; each < state.begins[at + 1]; ++each)
      keys.push_back(state.elements[i][state.chosen[each]].key);
  }
  const bool same = step.combine != Combine::product &&
                    std::ranges::adjacent_find(keys, std::not_equal_to()) == keys.end();
  return same ? keys.front() : join(keys, ",");
}

}  // namespace berth::flow
