#include "berth/flow/read_variables.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/exec/fields.h"
#include "berth/flow/advice.h"
#include "berth/flow/format.h"
#include "berth/flow/pattern.h"
#include "berth/flow/table.h"

namespace berth::flow {
namespace {

class VariablesReader {
 public:
  VariablesReader(const Field& field, const SourceOf& source, Step& step)
      : field_(field), source_(source), step_(step) {}

  Status read() {
    std::optional<Field> of;
    for (const auto name : kCombineNames.all()) {
      const auto found = field_.find(name);
      if (!found) continue;
      if (of) return found->error("a step has one of foreach, zip, join and group");
      of = found;
      step_.combine = *kCombineNames.value(name);
    }
    const auto key = field_.find("key");
    if (!of)
      return key ? key->error("a step without foreach is one task, and needs none") : Status();
    if (step_.combine == Combine::join || step_.combine == Combine::group) {
      if (of->is_map() && !of->find("vars"))
        return of->error(fmt::format("write its variables below vars: {}: {{vars: {{…}}}}",
                                     kCombineNames.name(step_.combine)));
      BERTH_TRY(of->expect_keys(kCombineFormat));
      BERTH_ASSIGN(const Field variables, of->get("vars"));
      BERTH_TRY(read_all(variables));
      BERTH_TRY(read_by(*of));
    } else {
      if (!of->is_map()) return of->error(advice_on_names(kCombineNames.name(step_.combine), *of));
      BERTH_TRY(read_all(*of));
    }
    return key ? read_key(*key) : Status();
  }

 private:
  Status read_all(const Field& field) {
    BERTH_ASSIGN(const auto entries, field.entries());
    if (entries.empty()) return field.error("names no variable");
    if (entries.size() > kMostVariables)
      return field.error(fmt::format("more than {} variables", kMostVariables));
    for (const auto& [name, value] : entries) {
      if (!valid_value_name(name)) return value.error(kValueName);
      if (std::ranges::find(step_.params, name, &std::pair<std::string, Words>::first) !=
          step_.params.end())
        return value.error(fmt::format("'{}' is a parameter too", name));
      step_.variables.push_back({.name = name, .line = value.node().line});
    }
    for (std::size_t i = 0; i < entries.size(); ++i)
      BERTH_TRY(read_one(entries[i].second, step_.variables[i]));
    return {};
  }

  Status read_one(const Field& field, Variable& variable) {
    if (field.is_list()) {
      BERTH_ASSIGN(const auto items, field.items());
      if (items.empty()) return field.error("the list is empty");
      for (const auto& item : items) {
        BERTH_ASSIGN(variable.values.emplace_back(), exec::process_text(item));
      }
      return {};
    }
    if (field.is_map()) return read_table_source(field, variable);
    BERTH_ASSIGN(const std::string text, exec::process_text(field));
    if (text.starts_with('{') && text.ends_with('}'))
      if (const auto* list = param(std::string_view(text).substr(1, text.size() - 2))) {
        variable.values = *list;
        return {};
      }
    BERTH_ASSIGN(variable.files, source_(text, field));
    return read_parts(field, variable);
  }

  Status read_table_source(const Field& field, Variable& variable) {
    BERTH_TRY(field.expect_keys(kTableFormat));
    BERTH_ASSIGN(const Field table, field.get("table"));
    BERTH_ASSIGN(const std::string text, exec::process_text(table));
    KnownNames known;
    for (const auto& each : step_.params) known.values.push_back(each.first);
    BERTH_TRY(check_names(text, known, table));
    auto plain = plain_path(expand(text, [&](std::string_view name) -> std::optional<std::string> {
      const auto* words = param(name);
      return words ? std::optional(join(*words, " ")) : std::nullopt;
    }));
    if (!plain) return table.error(plain.error());
    if (!plain->ends_with(".csv") && !plain->ends_with(".tsv"))
      return table.error(fmt::format("a table is a .csv or a .tsv file, and '{}' is not", *plain));
    variable.table = *std::move(plain);
    return {};
  }

  /// What stands in braces and is no parameter is a part that the pattern names.
  Status read_parts(const Field& field, Variable& variable) {
    std::vector<std::string> params;
    for (const auto& each : step_.params) params.push_back(each.first);
    for (const auto& name : names_in(variable.files->text)) {
      if (param(name) != nullptr) continue;
      if (const auto meant = near_miss(name, params); !meant.empty())
        return field.error(fmt::format("unknown name {{{}}}; did you mean {{{}}}?", name, meant));
      if (std::ranges::find(step_.variables, name, &Variable::name) != step_.variables.end())
        return field.error(fmt::format(
            "{{{}}} is a variable of this step; a source can only use parameters and its own parts",
            name));
      if (!valid_value_name(name)) return field.error(kValueName);
      variable.own_names.push_back(name);
    }
    if (variable.own_names.size() > kMostParts)
      return field.error(fmt::format("more than {} named parts", kMostParts));
    return {};
  }

  Status read_by(const Field& field) {
    if (const auto by = field.find("by")) {
      BERTH_ASSIGN(step_.by, exec::read_names(*by));
    }
    const auto optional = field.find("optional");
    if (!optional) return {};
    if (step_.combine == Combine::group) return optional->error("every element has its group");
    BERTH_ASSIGN(const auto names, exec::read_names(*optional));
    for (const auto& name : names) {
      const auto found = std::ranges::find(step_.variables, name, &Variable::name);
      if (found == step_.variables.end())
        return optional->error(fmt::format("no variable is called '{}'", clip(name)));
      found->optional = true;
    }
    if (std::ranges::all_of(step_.variables, &Variable::optional))
      return optional->error("expected at least one variable");
    return {};
  }

  Status read_key(const Field& field) {
    BERTH_ASSIGN(step_.key, exec::process_text(field));
    step_.key_line = field.node().line;
    KnownNames known;
    for (const auto& each : step_.params) known.values.push_back(each.first);
    for (const auto& each : step_.variables) {
      known.values.push_back(each.name);
      known.variables.push_back(each.name);
    }
    return check_names(step_.key, known, field);
  }

  const Words* param(std::string_view name) const {
    const auto found = std::ranges::find(step_.params, name, &std::pair<std::string, Words>::first);
    return found == step_.params.end() ? nullptr : &found->second;
  }

  const Field& field_;
  const SourceOf& source_;
  Step& step_;
};

}  // namespace

Status read_variables(const Field& field, const SourceOf& source, Step& step) {
  return VariablesReader(field, source, step).read();
}

}  // namespace berth::flow
