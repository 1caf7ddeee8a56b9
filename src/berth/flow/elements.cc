// The elements that a variable goes over: what they are called by, and the names that they have.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/url.h"
#include "berth/flow/graph.h"
#include "berth/flow/notation.h"
#include "berth/flow/pattern.h"

namespace berth::flow {
namespace {

bool is_derived(std::string_view name) {
  return std::ranges::find(kDerivedNames, name) != kDerivedNames.end();
}

/// One of kDerivedNames but the key, of a path or of a URL without its secrets.
std::string derived(std::string_view of, std::string_view name) {
  const std::string safe = is_url(of) ? without_secrets(of, "") : "";
  const std::string_view path = safe.empty() ? of : std::string_view(safe);
  const auto slash = path.rfind('/');
  if (name == "dir")
    return slash == std::string_view::npos ? "." : std::string(path.substr(0, slash));
  const auto file = path.substr(slash + 1);  // of npos, too
  if (name == "name") return std::string(file);
  const auto dot = file.rfind('.');
  const bool has_extension = dot != std::string_view::npos && dot > 0;
  if (name == "ext") return has_extension ? std::string(file.substr(dot + 1)) : "";
  return std::string(has_extension ? file.substr(0, dot) : file);
}

/// A value that stands for itself within a pattern, also one with parts.
std::string literal_text(std::string_view value) {
  std::string text;
  for (const char c : fileset::literal_pattern(value)) text += c == '{' ? "[{]" : std::string(1, c);
  return text;
}

}  // namespace

Status Graph::Impl::read_tables() {
  for (auto& step : flow_.steps)
    for (auto& variable : step.variables) {
      if (variable.table.empty()) continue;
      const auto error = [&](const Error& cause) {
        return wrong(step, variable.line,
                     fmt::format("{}.{}: {}", kCombineNames.name(step.combine), variable.name,
                                 cause.message));
      };
      if (!tables_.contains(variable.table)) {
        const auto text = world_.read(variable.table);
        if (!text && text.error().kind == ErrorKind::not_found)
          return error({ErrorKind::invalid,
                        "there is no table " + variable.table + nearest_file(variable.table, {})});
        if (!text) return error(text.error());
        auto table = read_table(*text, variable.table);
        if (!table) return error(table.error());
        if (table->rows.empty())
          return error({ErrorKind::invalid, variable.table + " has no rows below its columns"});
        tables_.emplace(variable.table, *std::move(table));
      }
      variable.own_names = tables_.at(variable.table).columns;
    }
  return {};
}

/// Whether elements of the variable have that name: of their own, or from the instance that makes
/// them.
bool Graph::Impl::has_name(const Variable& variable, std::string_view name, int depth) const {
  if (std::ranges::find(variable.own_names, name) != variable.own_names.end()) return true;
  if (is_derived(name)) return true;
  if (!variable.files || !variable.files->step || depth == kMostCarried) return false;
  const Step& maker = flow_.steps[static_cast<std::size_t>(variable.files->step->value)];
  return std::ranges::any_of(maker.variables, [&](const Variable& each) {
    if (maker.combine == Combine::group)
      return std::ranges::find(maker.by, name) != maker.by.end() && has_name(each, name, depth + 1);
    return each.name == name || (!is_derived(name) && has_name(each, name, depth + 1));
  });
}

void Graph::Impl::add_names(const Variable& variable, std::set<std::string>& names,
                            int depth) const {
  names.insert(variable.own_names.begin(), variable.own_names.end());
  if (!variable.files || !variable.files->step || depth == kMostCarried) return;
  const Step& maker = flow_.steps[static_cast<std::size_t>(variable.files->step->value)];
  if (maker.combine == Combine::group) {
    names.insert(maker.by.begin(), maker.by.end());
    return;
  }
  for (const auto& each : maker.variables) {
    names.insert(each.name);
    add_names(each, names, depth + 1);
  }
}

Status Graph::Impl::check_element_names() const {
  const auto complain = [&](const Step& step, const Variable& variable, std::string_view name,
                            std::string_view where, int line) {
    std::set<std::string> known(kDerivedNames.begin(), kDerivedNames.end());
    add_names(variable, known, 0);
    const Words names(known.begin(), known.end());
    const auto meant = nearest_of(name, names);
    return wrong(step, line,
                 fmt::format("{}: an element of {} has no '{}'; {}it has {}", where, variable.name,
                             name, meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant),
                             join(names, ", ")));
  };
  for (const auto& step : flow_.steps) {
    for (const auto& [text, where, line] : step.element_names) {
      const auto dot = text.find('.');
      const auto variable = std::ranges::find(step.variables, text.substr(0, dot), &Variable::name);
      const auto name = text.substr(dot + 1);
      if (!has_name(*variable, name, 0)) return complain(step, *variable, name, where, line);
    }
    for (const auto& name : step.by)
      for (const auto& variable : step.variables)
        if (!has_name(variable, name, 0))
          return complain(step, variable, name,
                          fmt::format("{}.by", kCombineNames.name(step.combine)), variable.line);
  }
  return {};
}

Result<std::vector<Graph::Impl::Element>> Graph::Impl::elements_of(const Step& step,
                                                                   const Variable& variable) const {
  std::vector<Element> elements;
  for (const auto& value : variable.values) elements.push_back({.text = value});
  if (!variable.table.empty()) add_table(variable, elements);
  if (variable.files) {
    const Source& source = *variable.files;
    const bool pattern = fileset::is_pattern(glob_of(source.pattern));
    const std::string path =
        expand(source.pattern, [&](std::string_view name) -> std::optional<std::string> {
          const auto known =
              std::ranges::find(step.params, name, &std::pair<std::string, Words>::first);
          if (known == step.params.end()) return std::nullopt;
          const std::string value = join(known->second, " ");
          return pattern ? literal_text(value) : value;
        });
    if (source.step) {
      elements = written_elements(source, glob_of(path));
    } else {
      Words found;
      BERTH_ASSIGN(
          found, world_files(step, source,
                             fmt::format("{}.{}", kCombineNames.name(step.combine), variable.name),
                             glob_of(path), pattern));
      for (const auto& each : found) elements.push_back({.text = place_of(each), .world = each});
    }
    if (!variable.own_names.empty())
      std::erase_if(elements, [&](Element& element) {
        const auto parts = parts_of(path, source.step ? element.below : element.world);
        if (!parts) return true;  // a name that comes twice in the pattern has two values there
        for (const auto& part : *parts) element.own.push_back(part.second);
        return false;
      });
  }
  assign_keys(variable, elements);
  return elements;
}

void Graph::Impl::add_table(const Variable& variable, std::vector<Element>& elements) const {
  for (const auto& row : tables_.at(variable.table).rows)
    elements.push_back({.text = row.front(), .own = row});
}

void Graph::Impl::assign_keys(const Variable& variable, std::vector<Element>& elements) const {
  for (auto& element : elements) {
    Words keys;
    if (element.producer >= 0 && !step(TaskIndex{element.producer}).variables.empty())
      keys.push_back(states_[step_at(TaskIndex{element.producer})]
                         .keys[static_cast<std::size_t>(instance_of({element.producer}))]);
    const bool whole = element.producer >= 0 && element.below.empty();
    if (!variable.table.empty() || !variable.files)
      keys.push_back(key_text(element.text));
    else if (!element.own.empty())
      for (const auto& part : element.own) keys.push_back(key_text(part));
    else if (!whole || keys.empty())
      keys.push_back(key_text(derived(element.text, "stem")));
    element.key = join(keys, ",");
  }
}

std::optional<std::string> Graph::Impl::name_of(const Variable& variable, const Element& element,
                                                std::string_view name, int depth) const {
  const auto own = std::ranges::find(variable.own_names, name);
  if (own != variable.own_names.end())
    return element.own[static_cast<std::size_t>(own - variable.own_names.begin())];
  if (name == "key") return element.key;
  if (is_derived(name)) return derived(element.text, name);
  if (element.producer < 0 || depth == kMostCarried) return std::nullopt;
  const TaskIndex maker{element.producer};
  const Step& of = step(maker);
  const bool group = of.combine == Combine::group;
  if (group && std::ranges::find(of.by, name) == of.by.end()) return std::nullopt;
  for (std::size_t i = 0; i < of.variables.size(); ++i) {
    const auto indices = chosen(maker, i);
    if (indices.empty()) continue;
    const Element& each = states_[step_at(maker)].elements[i][indices.front()];
    if (!group && of.variables[i].name == name) return each.text;
    if (auto found = name_of(of.variables[i], each, name, depth + 1)) return found;
  }
  return std::nullopt;
}

}  // namespace berth::flow
