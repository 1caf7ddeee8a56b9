#include "berth/experiment/proposers/space_json.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "berth/base/text.h"
#include "berth/base/time.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/proposers/external.h"

namespace berth::experiment {
namespace {

Json texts_json(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const auto& text : texts) list.push_back(valid_utf8(text));
  return list;
}

Json range_json(const Parameter& parameter) {
  Json json{{"name", parameter.name},
            {"min", parameter.min},
            {"max", parameter.max},
            {"log", parameter.scale == Parameter::Scale::log},
            {"int", parameter.integer}};
  if (parameter.points > 0) json["n"] = parameter.points;
  if (parameter.step > 0) json["step"] = parameter.step;
  return json;
}

Parameter parameter_of(const Json& json) {
  Parameter parameter{.name = json.at("name"), .choices = {}};
  if (const auto choices = json.find("choices"); choices != json.end()) {
    parameter.choices = choices->get<std::vector<std::string>>();
    if (parameter.choices.empty()) throw std::out_of_range("a parameter without choices");
  } else {
    parameter.min = json.at("min");
    parameter.max = json.at("max");
    parameter.step = json.value("step", 0.0);
    if (json.at("log").get<bool>()) parameter.scale = Parameter::Scale::log;
    parameter.integer = json.at("int");
    parameter.points = json.value("n", std::int64_t{0});
  }
  if (const auto when = json.find("when"); when != json.end())
    for (const auto& each : *when)
      parameter.when.push_back(
          {each.at("parameter"), each.at("values").get<std::vector<std::string>>()});
  return parameter;
}

}  // namespace

Json params_json(const std::vector<Parameter>& params) {
  Json list = Json::array();
  for (const auto& parameter : params) {
    Json json = parameter.choices.empty()
                    ? range_json(parameter)
                    : Json{{"name", parameter.name}, {"choices", texts_json(parameter.choices)}};
    for (const auto& condition : parameter.when)
      json["when"].push_back(
          {{"parameter", condition.parameter}, {"values", texts_json(condition.values)}});
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<Parameter> params_of(const Json& json) {
  std::vector<Parameter> params;
  for (const auto& each : json) params.push_back(parameter_of(each));
  return params;
}

Json search_json(const Search& search) {
  Json json{{"method", static_cast<int>(search.method)}, {"samples", search.samples}};
  if (search.model) json["model"] = true;
  for (const auto& point : search.points) {
    json["points"].push_back(Json::object());
    for (const auto& [name, value] : point) json["points"].back()[name] = valid_utf8(value);
  }
  if (search.method == Search::Method::external) {
    json["run"] = search.proposer.text;
    json["words"] = texts_json(search.proposer.words);
    json["patience_ms"] = to_ms(search.answer_timeout);
  }
  if (const auto& budget = search.budget)
    json["budget"] = Json{{"param", budget->parameter},
                          {"min", budget->min},
                          {"max", budget->max},
                          {"reduction", budget->reduction},
                          {"whole", budget->whole}};
  if (search.budget && search.budget->every > 0) json["budget"]["every"] = search.budget->every;
  if (search.budget && search.budget->whole_groups) json["budget"]["whole_groups"] = true;
  if (!search.explore.empty()) json["explore"] = texts_json(search.explore);
  return json;
}

std::string hello_line(const Program& program, const std::string& run) {
  Json goals = Json::array();
  const auto add = [&](const Goal& goal) {
    goals.push_back({{"metric", score_name(goal)}, {"direction", goal.maximize ? "max" : "min"}});
  };
  if (program.goal) add(*program.goal);
  for (const auto& goal : program.further_goals) add(goal);
  Json hello{{"berth", 1},
             {"run", run},
             {"seed", program.search.seed},
             {"samples", program.search.samples},
             {"goals", goals},
             {"params", params_json(program.params)}};
  for (const auto& each : program.constraints)
    hello["constraints"].push_back(constraint_text(each));
  return dump(hello) + "\n";
}

Search search_of(const Json& json) {
  Search search;
  const std::int64_t method = json.at("method");
  search.method = static_cast<Search::Method>(method);
  search.samples = json.at("samples");
  search.model = json.value("model", false);
  if (const auto points = json.find("points"); points != json.end())
    for (const auto& point : *points)
      for (auto& values = search.points.emplace_back();
           const auto& [name, value] : point.get_ref<const Json::object_t&>())
        values.emplace_back(name, value);
  if (const auto budget = json.find("budget"); budget != json.end())
    search.budget = Budget{budget->at("param"),
                           budget->at("min"),
                           budget->at("max"),
                           budget->at("reduction"),
                           budget->value("whole", true),
                           budget->value("every", 0.0),
                           budget->value("whole_groups", false)};
  search.explore = json.value("explore", std::vector<std::string>());
  if (search.method == Search::Method::external) {
    search.proposer.text = json.at("run");
    search.proposer.words = json.at("words").get<std::vector<std::string>>();
    search.answer_timeout = from_ms(json.at("patience_ms"));
  }
  const bool budgeted = has_budget(search.method);
  const bool sound = !search.budget || (search.budget->min > 0 && search.budget->reduction > 1);
  if (Search::kMethodNames.name(search.method).empty() || budgeted != search.budget.has_value() ||
      !sound)
    throw std::out_of_range("no search");
  return search;
}

}  // namespace berth::experiment
