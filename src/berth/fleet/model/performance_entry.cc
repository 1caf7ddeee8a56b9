#include "berth/fleet/model/performance_entry.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/fleet/document/document_text.h"

namespace berth::fleet {
namespace {

std::string json_text(std::string_view text) {
  return json_quote(valid_utf8(text));
}

std::string member(std::string_view key, std::string_view value) {
  return fmt::format("{}: {}", json_text(key), value);
}

bool is_null(std::string_view text, const Span& value) {
  return value.in(text) == "null";
}

/// Six significant digits, more than a measurement has; a whole number has no fraction.
std::string number_text(double value) {
  constexpr double kMostExact = 9007199254740992;  // every whole number below it is a double
  std::string text = fmt::format("{:.6g}", value);
  const double rounded = *parse_number(text);
  if (rounded == std::floor(rounded) && std::abs(rounded) < kMostExact)
    return fmt::format("{}", static_cast<std::int64_t>(rounded));
  return text;
}

/// A key of perfParms and its value. nullopt: the measurements do not determine the term.
using Parameter = std::pair<std::string, std::optional<std::string>>;

std::vector<Parameter> parameters_of(const Fit& fit) {
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < kTerms; ++i) {
    const auto term = static_cast<Term>(i);
    const bool is_required = term == Term::alpha || term == Term::beta || term == Term::gamma;
    // A betaPrefill of 0 would mean beta.
    const double least = term == Term::beta_prefill ? 1e-9 : 0;
    std::optional<std::string> value;
    if (fit.determined[i] || is_required)
      value = number_text(std::max(least, fit.parameters.ms.at(i)));
    parameters.emplace_back(name(term), std::move(value));
  }
  parameters.emplace_back("form", json_text(name(fit.parameters.form)));
  return parameters;
}

std::string parameters_text(const Fit& fit) {
  std::vector<std::string> members;
  for (const auto& [key, value] : parameters_of(fit))
    if (value) members.push_back(member(key, *value));
  return "{" + join(members, ", ") + "}";
}

/// An entry of two lines, for a list whose items have this indentation.
std::string entry_text(const PerformanceEntry& entry, std::string_view indentation) {
  return fmt::format("{{{}, {}, {},\n{} {}}}", member("name", json_text(entry.model)),
                     member("acc", json_text(entry.accelerator)),
                     member("accCount", fmt::format("{}", std::max(1, entry.accelerators))),
                     indentation, member("perfParms", parameters_text(entry.fit)));
}

std::string new_document(const PerformanceEntry& entry) {
  constexpr std::string_view kIndentation = "      ";
  return fmt::format("{{\n  \"modelData\": {{\n    \"models\": [\n{}{}\n    ]\n  }}\n}}\n",
                     kIndentation, entry_text(entry, kIndentation));
}

/// Where a document may have models: at its top level and below `system`, each with and without
/// the wrapper.
struct Places {
  std::vector<Span> lists;
  std::optional<Span> empty_list;  // a null, where a list may be
  std::optional<Span> wrapper;     // an object modelData without a list
  Span top;                        // the innermost object for a new wrapper
};

Result<Places> places_of(std::string_view text) {
  Places places{.lists = {}, .empty_list = {}, .wrapper = {}, .top = root_of(text)};
  if (!is_object(text, places.top)) return fail(ErrorKind::invalid, "expected an object");
  std::vector<Span> tops{places.top};
  if (const auto system = member_of(text, places.top, "system");
      system && is_object(text, system->value))
    tops.push_back(places.top = system->value);
  for (const Span& top : tops) {
    const auto wrapper = member_of(text, top, "modelData");
    for (const Span& map : wrapper ? std::vector{wrapper->value, top} : std::vector{top}) {
      const auto models = member_of(text, map, "models");
      if (models && is_list(text, models->value))
        places.lists.push_back(models->value);
      else if (models && is_null(text, models->value))
        places.empty_list = models->value;
      else if (models)
        return fail(ErrorKind::invalid, "models: expected a list");
      else if (wrapper && is_object(text, map) && map.begin == wrapper->value.begin)
        places.wrapper = map;
    }
  }
  return places;
}

std::optional<Span> find_entry(std::string_view text, const Places& places,
                               const PerformanceEntry& entry) {
  for (const Span& list : places.lists)
    for (const Span& each : elements_of(text, list))
      if (has_text(text, each, "name", entry.model) &&
          has_text(text, each, "acc", entry.accelerator))
        return each;
  return std::nullopt;
}

/// accCount of an entry; 0: it has none.
int accelerators_of(std::string_view text, const Span& entry) {
  const auto count = member_of(text, entry, "accCount");
  if (!count) return 0;
  const auto json = parse_json(count->value.in(text));
  return json && json->is_number_integer() ? json->get<int>() : 0;
}

void change_parameters(TextChanges& changes, std::string_view text, const Span& old,
                       const Fit& fit) {
  std::vector<std::string> added;
  for (const auto& [key, value] : parameters_of(fit)) {
    const auto known = member_of(text, old, key);
    if (known)
      changes.replace(known->value, value.value_or("null"));
    else if (value)
      added.push_back(member(key, *value));
  }
  changes.append(old, added);
}

void change_entry(TextChanges& changes, std::string_view text, const Span& old,
                  const PerformanceEntry& entry) {
  std::vector<std::string> added;
  const auto put = [&](const std::string& key, const std::string& value) {
    if (const auto known = member_of(text, old, key))
      changes.replace(known->value, value);
    else
      added.push_back(member(key, value));
  };
  if (entry.accelerators > 0 && accelerators_of(text, old) == 0)
    put("accCount", fmt::format("{}", entry.accelerators));
  const auto parameters = member_of(text, old, "perfParms");
  if (parameters && is_object(text, parameters->value))
    change_parameters(changes, text, parameters->value, entry.fit);
  else
    put("perfParms", parameters_text(entry.fit));
  changes.append(old, added);
}

void add_entry(TextChanges& changes, std::string_view text, const Places& places,
               const PerformanceEntry& entry) {
  if (!places.lists.empty()) {
    const Span& list = places.lists.front();
    const auto elements = elements_of(text, list);
    const auto indentation =
        elements.empty() ? std::nullopt : indentation_at(text, elements.back().begin);
    return changes.append(list, {entry_text(entry, indentation.value_or(""))});
  }
  const std::string list = "[" + entry_text(entry, "") + "]";
  if (places.empty_list) return changes.replace(*places.empty_list, list);
  if (places.wrapper) return changes.append(*places.wrapper, {member("models", list)});
  changes.append(places.top, {member("modelData", "{" + member("models", list) + "}")});
}

}  // namespace

Result<WrittenPerformance> with_performance(std::string_view document,
                                            const PerformanceEntry& entry) {
  if (document.empty()) return WrittenPerformance{new_document(entry), true, 0};
  if (auto json = parse_json(document, JsonComments::skipped); !json)
    return std::unexpected(std::move(json).error());
  BERTH_ASSIGN(const Places places, places_of(document));
  TextChanges changes(document);
  const auto known = find_entry(document, places, entry);
  if (known)
    change_entry(changes, document, *known, entry);
  else
    add_entry(changes, document, places, entry);
  return WrittenPerformance{changes.apply(), !known, known ? accelerators_of(document, *known) : 0};
}

}  // namespace berth::fleet
