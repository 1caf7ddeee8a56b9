#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/experiment/program.h"

namespace berth::experiment {
namespace {

// Only what a resume needs: the trials themselves, with their parameters, are in the store.

Json pairs_json(const Values& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = valid_utf8(value);
  return object;
}

Values pairs_of(const Json& object) {
  Values values;
  for (const auto& [name, value] : object.items()) values.emplace_back(name, value);
  return values;
}

}  // namespace

std::string to_json_text(const Program& program) {
  Json resources = Json::object();
  program.resources.each(
      [&](std::string_view name, std::int64_t amount) { resources[std::string(name)] = amount; });
  Json json{{"name", program.name},
            {"kind", program.kind},
            {"run", program.run.text},
            {"words", program.run.words},
            {"resources", resources},
            {"parallel", program.parallel},
            {"timeout_ms", to_ms(program.timeout)},
            {"grace_ms", to_ms(program.grace)},
            {"retries", program.retries},
            {"stop_on_failure", program.stop_on_failure},
            {"priority", program.priority},
            {"seed", program.search.seed},
            {"env", pairs_json(program.environment)}};
  if (program.goal)
    json["goal"] = Json{{"metric", program.goal->metric}, {"maximize", program.goal->maximize}};
  return dump(json);
}

Result<Program> from_json_text(std::string_view text) {
  BERTH_ASSIGN(const Json json, parse_json(text));
  Program program;
  try {
    program.name = json.at("name");
    program.kind = json.at("kind");
    program.run.text = json.at("run");
    program.run.words = json.at("words").get<std::vector<std::string>>();
    for (const auto& [name, amount] : json.at("resources").items())
      program.resources.set(name, amount.get<std::int64_t>());
    program.parallel = json.at("parallel");
    program.timeout = from_ms(json.at("timeout_ms"));
    program.grace = from_ms(json.at("grace_ms"));
    program.retries = json.at("retries");
    program.stop_on_failure = json.at("stop_on_failure");
    program.priority = json.at("priority");
    program.search.seed = json.at("seed");
    program.environment = pairs_of(json.at("env"));
    if (const auto goal = json.find("goal"); goal != json.end())
      program.goal = Goal{goal->at("metric"), goal->at("maximize")};
  } catch (const Json::exception& error) {
    return fail(ErrorKind::corrupt, "the stored program cannot be read: {}", error.what());
  }
  return program;
}

std::string resources_json(const Resources& resources) {
  Json object = Json::object();
  resources.each([&](std::string_view name, std::int64_t amount) {
    if (measure(name) == Measure::milli && amount % 1000 != 0)
      object[std::string(name)] = static_cast<double>(amount) / 1000;
    else
      object[std::string(name)] = measure(name) == Measure::milli ? amount / 1000 : amount;
  });
  return dump(object);
}

std::string values_json(const Values& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) {
    if (const auto integer = parse_integer(value))
      object[name] = *integer;
    else if (const auto number = parse_number(value))
      object[name] = *number;
    else
      object[name] = value;
  }
  return dump(object);
}

}  // namespace berth::experiment
