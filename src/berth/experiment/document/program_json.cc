#include <climits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "berth/base/json.h"
#include "berth/base/json_error.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/fields.h"
#include "berth/exec/formats.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/document/reading.h"
#include "berth/experiment/proposers/space_json.h"

namespace berth::experiment {
namespace {

// Only what a resume needs: the trials themselves, with their parameters, are in the store.

Json pairs_json(const Values& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = valid_utf8(value);
  return object;
}

/// An integer within the bounds; throws, as the library does, where it is none.
std::int64_t integer_of(const Json& value, std::int64_t least, std::int64_t most) {
  if (value.is_number_integer() && value >= least && value <= most) return value;
  throw std::out_of_range("a number out of range");
}

Values pairs_of(const Json& object) {
  Values values;
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>())
    values.emplace_back(name, value);
  return values;
}

/// What a text is by itself. A number only where nothing of it is lost: 007 and thirty digits stay
/// text.
Json read_alone(const std::string& value) {
  const bool digits = value.find_first_not_of("-0123456789") == std::string::npos;
  const auto integer = parse_integer(value);
  if (integer && fmt::format("{}", *integer) == value) return *integer;
  if (const auto number = parse_number(value); number && !digits) return *number;
  if (value == "true" || value == "false") return value == "true";
  return value;
}

Result<Json> json_of(const Field& field) {
  if (field.is_null()) return Json();
  if (field.is_list()) {
    Json list = Json::array();
    BERTH_ASSIGN(const auto items, field.items());
    for (const auto& item : items) {
      BERTH_ASSIGN(Json value, json_of(item));
      list.push_back(std::move(value));
    }
    return list;
  }
  if (field.is_map()) {
    Json map = Json::object();
    BERTH_ASSIGN(const auto entries, field.entries());
    for (const auto& [name, item] : entries) {
      BERTH_ASSIGN(map[name], json_of(item));
    }
    return map;
  }
  BERTH_ASSIGN(std::string text, exec::process_text(field));
  return field.node().quoted ? Json(std::move(text)) : read_alone(text);
}

EarlierTrial earlier_of(const Json& json) {
  EarlierTrial earlier{.params = pairs_of(json.at("params")), .metrics = {}};
  for (const auto& [name, value] : json.at("metrics").get_ref<const Json::object_t&>())
    earlier.metrics.emplace_back(name, value);
  earlier.run = json.value("run", "");
  return earlier;
}

Json goal_json(const Goal& goal) {
  Json json{{"metric", goal.metric}, {"maximize", goal.maximize}};
  if (goal.score == Goal::Score::best) json["score"] = "best";
  return json;
}

Goal goal_of(const Json& json) {
  const bool best = json.value("score", "last") == "best";
  return {json.at("metric"), json.at("maximize"), best ? Goal::Score::best : Goal::Score::last};
}

Json early_stop_json(const EarlyStop& stop) {
  return Json{{"policy", static_cast<int>(stop.policy)},
              {"warmup", stop.warmup},
              {"every", stop.every},
              {"slack", stop.slack},
              {"part", stop.part},
              {"probability", stop.probability},
              {"steps", stop.steps}};
}

EarlyStop early_stop_of(const Json& json) {
  return {static_cast<EarlyStop::Policy>(integer_of(json.at("policy"), 0, 3)),
          integer_of(json.at("warmup"), 0, INT64_MAX),
          integer_of(json.at("every"), 1, INT64_MAX),
          json.at("slack"),
          json.at("part"),
          json.at("probability"),
          integer_of(json.at("steps"), 0, INT64_MAX)};
}

/// What is searched for, and what is known of it beforehand.
Status read_search_for(const Json& json, Program& program) {
  if (const auto goal = json.find("goal"); goal != json.end()) program.goal = goal_of(*goal);
  if (const auto goals = json.find("further_goals"); goals != json.end())
    for (const auto& goal : *goals) program.further_goals.push_back(goal_of(goal));
  if (const auto list = json.find("constraints"); list != json.end())
    for (const auto& each : *list) {
      BERTH_ASSIGN(Constraint constraint, read_constraint(each.get_ref<const std::string&>()));
      program.constraints.push_back(std::move(constraint));
    }
  if (const auto stop = json.find("early_stop"); stop != json.end())
    program.early_stop = early_stop_of(*stop);
  if (const auto optional = json.find("optional"); optional != json.end())
    program.optional = optional->get<std::vector<std::string>>();
  program.types.floats = json.value("floats", decltype(program.types.floats)());
  program.types.texts = json.value("texts", decltype(program.types.texts)());
  program.types.json = json.value("json", decltype(program.types.json)());
  if (const auto list = json.find("earlier"); list != json.end())
    for (const auto& each : *list) program.earlier.push_back(earlier_of(each));
  return {};
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
  if (program.goal) json["goal"] = goal_json(*program.goal);
  for (const auto& goal : program.further_goals) json["further_goals"].push_back(goal_json(goal));
  for (const auto& each : program.constraints) json["constraints"].push_back(constraint_text(each));
  if (adaptive(program.search) || program.kind == "study") {
    json["params"] = params_json(program.params);
    json["search"] = search_json(program.search);
  }
  for (const auto& earlier : program.earlier) {
    Json metrics = Json::object();
    for (const auto& [name, value] : earlier.metrics) metrics[name] = value;
    json["earlier"].push_back({{"params", pairs_json(earlier.params)}, {"metrics", metrics}});
    if (!earlier.run.empty()) json["earlier"].back()["run"] = earlier.run;
  }
  if (program.early_stop) json["early_stop"] = early_stop_json(*program.early_stop);
  if (!program.types.floats.empty()) json["floats"] = program.types.floats;
  if (!program.types.texts.empty()) json["texts"] = program.types.texts;
  if (!program.types.json.empty()) json["json"] = program.types.json;
  if (!program.optional.empty()) json["optional"] = program.optional;
  if (program.save_best) json["save_best"] = true;
  if (!program.labels.empty()) json["labels"] = program.labels;
  if (!program.notify.empty()) json["notify"] = exec::to_json(program.notify);
  if (program.checkpoints) json["checkpoints"] = true;
  if (program.outlive) json["outlive"] = true;
  if (program.enforce) json["enforce"] = true;
  if (program.passive) json["passive"] = true;
  if (program.kind == "study") json["lease_ms"] = to_ms(program.lease);
  if (program.retain > Duration(0)) json["retain_ms"] = to_ms(program.retain);
  if (program.auptimizer) json["auptimizer"] = true;
  if (!program.score_labels.empty()) json["score_labels"] = program.score_labels;
  if (!program.remote_directory.empty()) json["there"] = program.remote_directory;
  if (!program.script.empty()) json["script"] = program.script;
  if (!program.input.empty()) json["stdin"] = program.input;
  if (!program.gpus.empty()) json["gpus"] = program.gpus;
  if (program.gpu_mem_over == exec::GpuMemOver::kill) json["gpu_mem_over"] = "kill";
  json["shell"] = exec::words_of_shell(program.run.shell);
  json["allow_failures"] = program.allow_failures;
  if (program.selection != machine::DeviceSelection())
    json["selection"] = machine::to_json(program.selection);
  return dump(json);
}

Result<Program> from_json_text(std::string_view text) {
  constexpr std::int64_t kMostMs = INT64_MAX / 1'000'000;
  const auto parsed = parse_json(text);
  if (!parsed)
    return fail(ErrorKind::corrupt, "the stored program cannot be read: {}",
                parsed.error().message);
  const Json& json = *parsed;
  Program program;
  try {
    program.name = json.at("name");
    program.kind = json.at("kind");
    program.run.text = json.at("run");
    program.run.words = json.at("words").get<std::vector<std::string>>();
    program.run.shell = json.contains("shell") ? json.at("shell").get<std::vector<std::string>>()
                                               : std::vector<std::string>(exec::kPlainShell.begin(),
                                                                          exec::kPlainShell.end());
    for (const auto& [name, amount] : json.at("resources").get_ref<const Json::object_t&>())
      program.resources.set(name, integer_of(amount, 0, INT64_MAX));
    if (const auto sizes = json.find("slot_sizes"); sizes != json.end())
      program.selection.slot_sizes = sizes->get<std::vector<int>>();
    if (const auto selection = json.find("selection"); selection != json.end()) {
      BERTH_ASSIGN(program.selection, machine::selection_of_json(selection->get<std::string>()));
    }
    if (json.value("gpu_mem_over", "warn") == "kill") program.gpu_mem_over = exec::GpuMemOver::kill;
    program.outlive = json.value("outlive", false);
    program.enforce = json.value("enforce", false);
    program.passive = json.value("passive", false);
    if (const auto lease = json.find("lease_ms"); lease != json.end())
      program.lease = from_ms(integer_of(*lease, 1, kMostMs));
    program.retain = from_ms(json.value("retain_ms", std::int64_t{0}));
    program.auptimizer = json.value("auptimizer", false);
    program.score_labels = json.value("score_labels", std::vector<std::string>());
    program.remote_directory = json.value("there", "");
    program.script = json.value("script", "");
    program.input = json.value("stdin", "");
    program.gpus = json.value("gpus", std::string());
    program.labels = json.value("labels", exec::Labels());
    if (json.contains("notify")) {
      BERTH_ASSIGN(program.notify, exec::notify_from(json.at("notify").get<std::string>()));
    }
    program.parallel = integer_of(json.at("parallel"), 0, INT64_MAX);
    program.timeout = from_ms(integer_of(json.at("timeout_ms"), 0, kMostMs));
    program.grace = from_ms(integer_of(json.at("grace_ms"), 0, kMostMs));
    program.retries = static_cast<int>(integer_of(json.at("retries"), 0, INT_MAX));
    program.stop_on_failure = json.at("stop_on_failure");
    // An earlier Berth did not write it. There the failures of a sweep did not count.
    const bool counted = program.kind == "command" || program.stop_on_failure;
    program.allow_failures = json.value("allow_failures", counted ? 0 : exec::kAnyFailures);
    program.priority = integer_of(json.at("priority"), INT64_MIN, INT64_MAX);
    if (const auto search = json.find("search"); search != json.end()) {
      program.search = search_of(*search);
      program.search.proposer.shell = program.run.shell;
      program.params = params_of(json.at("params"));
    }
    program.search.seed = static_cast<std::uint64_t>(integer_of(json.at("seed"), 0, INT64_MAX));
    program.environment = pairs_of(json.at("env"));
    BERTH_TRY(read_search_for(json, program));
    program.save_best = json.value("save_best", false);
    program.checkpoints = json.value("checkpoints", false);
  } catch (const std::exception& error) {  // of the library, or ours
    return fail(ErrorKind::corrupt, "the stored program cannot be read: {}",
                without_library_tag(error.what()));
  }
  return program;
}

Result<std::string> json_text(const Field& field) {
  BERTH_ASSIGN(const Json json, json_of(field));
  return dump(json);
}

std::string values_json(const Values& values, const ValueTypes& types) {
  Json object = Json::object();
  for (const auto& [name, value] : values) {
    const auto number = parse_number(value);
    if (types.texts.contains({name, value}))
      object[name] = value;
    else if (types.json.contains({name, value}))
      object[name] = parsed_or_null(value);
    else if (number && types.floats.contains(name))
      object[name] = *number;
    else
      object[name] = read_alone(value);
  }
  return dump(object);
}

bool reads_as_text(const std::string& value) {
  return read_alone(value).is_string();
}

}  // namespace berth::experiment
