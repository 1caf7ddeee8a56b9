// Which tasks are skipped: those whose `when` does not hold, and those that take in what was
// skipped. A condition on what other tasks left (their metrics, a JSON file) is on the tasks that
// the instance is made of, where its variables lead there, else on all of the step: it holds if
// it holds for each that was not skipped, and there is one.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/flow/graph.h"

namespace berth::flow {
namespace {

using Asked = Condition::Kind;
using Sign = Condition::Sign;

/// `order`: below, at or above 0, as left is to right.
bool sign_holds(Sign sign, std::partial_ordering order) {
  switch (sign) {
    case Sign::equal: return order == 0;
    case Sign::unequal: return order != 0;
    case Sign::less: return order < 0;
    case Sign::at_most: return order <= 0;
    case Sign::more: return order > 0;
    case Sign::at_least: return order >= 0;
  }
  return false;
}

std::optional<double> number_of(std::string_view text) {
  const auto number = parse_number(trim(text));
  return number ? std::optional(*number) : std::nullopt;
}

Result<bool> compare(const JsonValue& left, Sign sign, const std::string& right) {
  const auto number = left.number ? number_of(right) : std::nullopt;
  if (number) return sign_holds(sign, *left.number <=> *number);
  if (sign == Sign::equal || sign == Sign::unequal)
    return (left.text == right) == (sign == Sign::equal);
  if (!left.number)
    return fail(ErrorKind::invalid, "'{}' is not a number, and {} compares numbers",
                clip(left.text), kSignNames.name(sign));
  return fail(ErrorKind::invalid, "'{}', with which it is compared, is not a number", clip(right));
}

/// What a person reads: "loss is 0.7, not < 0.5".
std::string unmet(const Condition& term, std::string_view left, const std::string& right) {
  const std::string shown_left = clip(without_secrets(left));
  if (term.sign == Sign::unequal) return fmt::format("{} is '{}'", term.text, shown_left);
  const std::string_view sign = term.sign == Sign::equal ? "" : kSignNames.name(term.sign);
  return fmt::format("{} is '{}', not {}{}'{}'", term.text, shown_left, sign,
                     sign.empty() ? "" : " ", clip(without_secrets(right)));
}

}  // namespace

/// Whether a task of the source's step wrote anything.
bool Graph::Impl::has_any(const Source& source) const {
  const StepState& state = states_[static_cast<std::size_t>(source.step->value)];
  for (std::int64_t i = 0; i < state.count; ++i)
    if (tasks_[static_cast<std::size_t>(state.first + i)].state == State::finished) return true;
  return false;
}

/// Whether what the tasks of the source's step wrote has a file there; `below`: within that output.
bool Graph::Impl::any_written(const Source& source, const std::string& below) const {
  return std::ranges::any_of(written_elements(source, below), [&](const Element& element) {
    return state_of(element.producer) == State::finished;
  });
}

/// Which input of the task nobody wrote, since all tasks that would have were skipped; "": none.
std::string Graph::Impl::skipped_input(TaskIndex task) const {
  const Step& of = step(task);
  for (std::size_t i = 0; i < of.variables.size(); ++i)
    if (!of.variables[i].optional && !chosen(task, i).empty() && elements(task, i).empty())
      return fmt::format("{} was skipped, which makes its {}",
                         name({elements(task, i, true).front()->producer}), of.variables[i].name);
  for (const auto& input : of.in) {
    // A step without tasks has nothing to give, and that is an answer; one that was skipped is
    // none.
    const auto gone = [&](const Source& source) {
      return source.step && states_[static_cast<std::size_t>(source.step->value)].count > 0 &&
             !has_any(source);
    };
    if (std::ranges::all_of(input.sources, gone))
      return fmt::format(
          "{} was skipped, which makes its {}",
          flow_.steps[static_cast<std::size_t>(input.sources.front().step->value)].name,
          input.name);
  }
  return {};
}

/// "": it is not skipped. Errors: invalid, where its `when` cannot be decided.
Result<std::string> Graph::Impl::why_skipped(TaskIndex task) const {
  if (auto why = skipped_input(task); !why.empty()) return why;
  const Step& of = step(task);
  if (of.when.empty()) return std::string();
  if (world_.held)
    if (const auto earlier = world_.held(name(task)))
      return *earlier ? "" : "its `when` was false for an earlier runner";
  for (const auto& term : of.when) {
    BERTH_ASSIGN(auto why, why_not(task, term));
    if (!why.empty()) return why;
  }
  return std::string();
}

/// "": the term holds.
Result<std::string> Graph::Impl::why_not(TaskIndex task, const Condition& term) const {
  if (term.kind == Asked::exists) return why_no_file(task, term);
  if (term.kind == Asked::value) return why_no_value(task, term);
  const auto asked = asked_tasks(task, term);
  const std::string right = term.names_some ? expanded(task, term.right) : term.right;
  bool any = false;
  for (const TaskIndex each : asked) {
    if (state_of(each.value) != State::finished) continue;
    any = true;
    BERTH_ASSIGN(const JsonValue left, value_of(task, each, term));
    const auto met = compare(left, term.sign, right);
    if (!met)
      return wrong(step(task), step(task).when_line,
                   fmt::format("when: {}: {}: {}", term.text, name(each), met.error().message));
    if (*met) continue;
    const bool is_own = step(each).variables.empty();
    return unmet(term, left.text, right) + (is_own ? "" : fmt::format(", of {}", name(each)));
  }
  if (any) return std::string();
  const auto& other = flow_.steps[static_cast<std::size_t>(term.path.step->value)].name;
  return fmt::format("{}: {}", term.text,
                     asked.empty() ? "there is no task of " + other + " for it"
                                   : name(asked.front()) + " was skipped");
}

std::string Graph::Impl::why_no_file(TaskIndex task, const Condition& term) const {
  const std::string path = expanded(task, term.path.pattern);
  const bool there = term.path.step ? any_written(term.path, path) : world_.exists(path);
  if (there != term.negated) return {};
  return fmt::format("{}: {} {}", term.text,
                     term.path.step ? term.path.text : without_secrets(path),
                     there ? "exists" : "does not exist");
}

Result<std::string> Graph::Impl::why_no_value(TaskIndex task, const Condition& term) const {
  std::optional<std::string> left;
  if (const auto words = value(task, term.left)) left = join(*words, " ");
  if (!left) left = world_.variable(term.left.substr(std::string_view("env.").size()));
  const std::string right = term.names_some ? expanded(task, term.right) : term.right;
  JsonValue value{.text = left.value_or(""), .number = {}};
  if (term.sign != Sign::equal && term.sign != Sign::unequal) value.number = number_of(value.text);
  const auto met = compare(value, term.sign, right);
  if (!met)
    return wrong(step(task), step(task).when_line,
                 fmt::format("when: {}: {}", term.text, met.error().message));
  return *met ? std::string() : unmet(term, value.text, right);
}

/// Whether the tasks of the step that the term asks about are those that made the instance of
/// `step`: its variables lead there.
bool Graph::Impl::is_of_instance(const Step& step, const Condition& term) const {
  if (term.kind != Asked::metric && term.kind != Asked::json) return false;
  const auto goal = static_cast<std::size_t>(term.path.step->value);
  if (flow_.steps[goal].variables.empty()) return false;
  std::vector<bool> seen(flow_.steps.size());
  std::vector<const Step*> open{&step};
  while (!open.empty()) {
    const Step* each = open.back();
    open.pop_back();
    for (const auto& variable : each->variables) {
      if (!variable.files || !variable.files->step) continue;
      const auto before = static_cast<std::size_t>(variable.files->step->value);
      if (before == goal) return true;
      if (!seen[before]) open.push_back(&flow_.steps[before]);
      seen[before] = true;
    }
  }
  return false;
}

std::vector<TaskIndex> Graph::Impl::asked_tasks(TaskIndex task, const Condition& term) const {
  const auto goal = static_cast<std::size_t>(term.path.step->value);
  std::vector<TaskIndex> found;
  if (!is_of_instance(step(task), term)) {
    for (std::int64_t i = 0; i < states_[goal].count; ++i) found.push_back(task_of(goal, i));
    return found;
  }
  std::set<std::int64_t> seen;
  std::vector<TaskIndex> open{task};
  while (!open.empty()) {
    const TaskIndex each = open.back();
    open.pop_back();
    for (std::size_t i = 0; i < step(each).variables.size(); ++i)
      for (const auto* element : elements(each, i, true)) {
        const TaskIndex before{element->producer};
        if (before.value < 0 || !seen.insert(before.value).second) continue;
        (step_at(before) == goal ? found : open).push_back(before);
      }
  }
  std::ranges::sort(found);
  return found;
}

Result<JsonValue> Graph::Impl::value_of(TaskIndex asking, TaskIndex asked,
                                        const Condition& term) const {
  if (term.kind == Asked::json) return json_value(asking, asked, term);
  const auto told = metrics_.find(asked.value);
  const Metrics none;
  const Metrics& metrics = told == metrics_.end() ? none : told->second;
  const auto metric = std::ranges::find(metrics, term.keys.front(), &Metrics::value_type::first);
  if (metric != metrics.end())
    return JsonValue{.text = fmt::format("{}", metric->second), .number = metric->second};
  if (!this->asked(asked))
    return wrong(
        step(asking), step(asking).when_line,
        fmt::format("when: {}: {} does not run with --only, and its metrics are known only "
                    "where it does: give the targets without --only",
                    term.text, name(asked)));
  Words told_names;
  for (const auto& each : metrics) told_names.push_back(each.first);
  return wrong(step(asking), step(asking).when_line,
               fmt::format("when: {}: {} has not reported a metric '{}'{}", term.text, name(asked),
                           term.keys.front(),
                           told_names.empty() ? " (print ::berth NAME=VALUE)"
                                              : "; it reported " + join(told_names, ", ")));
}

Result<JsonValue> Graph::Impl::json_value(TaskIndex asking, TaskIndex asked,
                                          const Condition& term) const {
  const Output& output = step(asked).out[term.path.output];
  const std::string below = expanded(asking, term.path.pattern);
  const std::string path = output_path(asked, output) + (below.empty() ? "" : "/" + below);
  const auto error = [&](std::string_view what) {
    return wrong(step(asking), step(asking).when_line,
                 fmt::format("when: {}: {}: {}", term.text, path, what));
  };
  const auto part = written(asked, term.path.output, below);
  if (!part) return error(fmt::format("{} has not written it", name(asked)));
  const fileset::Entry* entry = part->entries.empty() ? nullptr : &part->entries.front();
  if (entry == nullptr || entry->path != "." ||
      (entry->kind != fileset::Entry::Kind::file &&
       entry->kind != fileset::Entry::Kind::executable))
    return error("it is not a file");
  if (static_cast<std::size_t>(entry->size) > kMostJsonBytes)
    return error(fmt::format("it has {} bytes, more than the {} that a condition reads",
                             entry->size, kMostJsonBytes));
  if (!world_.content) return error("its content is not known here");
  const auto text = world_.content(*entry);
  if (!text && is_short(text.error())) return std::unexpected(text.error());
  if (!text) return error(text.error().message);
  auto value = json_value_at(*text, term.keys);
  if (!value) return error(value.error().message);
  return *std::move(value);
}

}  // namespace berth::flow
