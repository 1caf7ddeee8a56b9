// A flow's run as it is kept, and the world that it was submitted in.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "berth/base/document.h"
#include "berth/base/json.h"
#include "berth/base/json_error.h"
#include "berth/base/near_names.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/base/url.h"
#include "berth/exec/fields.h"
#include "berth/flow/attempt_request.h"
#include "berth/flow/read_files.h"
#include "berth/flow/read_life.h"
#include "berth/flow/table.h"
#include "berth/run/flows/flow_run.h"
#include "berth/run/state/run_labels.h"

namespace berth::run {
namespace {

/// Names and values are any bytes, JSON is UTF-8: what is no plain character becomes %XX.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%' || byte < 0x20 || byte >= 0x7f)
      result += fmt::format("%{:02X}", byte);
    else
      result += c;
  }
  return result;
}

std::string unescaped(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'A' + 10; };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size();
    result += escape ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return result;
}

/// As lists of pairs: an object would be searched for each of a million names.
Json to_json(const Answers& answers) {
  Json exists = Json::array(), globs = Json::array(), variables = Json::array();
  for (const auto& [path, there] : answers.exists)
    exists.push_back(Json::array({escaped(path), there}));
  for (const auto& [pattern, found] : answers.glob) {
    Json list = Json::array();
    for (const auto& path : found) list.push_back(escaped(path));
    globs.push_back(Json::array({escaped(pattern), std::move(list)}));
  }
  Json tables = Json::array();
  for (const auto& [path, text] : answers.table)
    tables.push_back(Json::array({escaped(path), escaped(text)}));
  for (const auto& [name, value] : answers.variable)
    variables.push_back(
        Json::array({escaped(name), value ? Json(escaped(*value)) : Json(nullptr)}));
  Json images = Json::array();
  for (const auto& [name, image] : answers.image)
    images.push_back(Json::array({escaped(name), escaped(image.id), escaped(image.there)}));
  Json json{{"exists", exists}, {"glob", globs}, {"variable", variables}, {"table", tables}};
  if (!images.empty()) json["image"] = std::move(images);
  return json;
}

/// Throws, as the library does, where it is none.
Answers answers_of(const Json& json) {
  Answers answers;
  const auto text = [](const Json& value) {
    return unescaped(value.get_ref<const std::string&>());
  };
  for (const auto& pair : json.at("exists"))
    answers.exists[text(pair.at(0))] = pair.at(1).get<bool>();
  for (const auto& pair : json.at("glob")) {
    auto& list = answers.glob[text(pair.at(0))];
    for (const auto& path : pair.at(1)) list.push_back(text(path));
  }
  for (const auto& pair : json.at("variable"))
    answers.variable[text(pair.at(0))] =
        pair.at(1).is_null() ? std::nullopt : std::optional(text(pair.at(1)));
  if (json.contains("table"))
    for (const auto& pair : json.at("table")) answers.table[text(pair.at(0))] = text(pair.at(1));
  if (json.contains("image"))
    for (const auto& each : json.at("image"))
      answers.image[text(each.at(0))] = {text(each.at(1)), text(each.at(2))};
  return answers;
}

/// Without the library's exceptions: what is not there, or is something else, is empty.
std::vector<std::string> list_in(const Json& json, const char* name) {
  std::vector<std::string> list;
  if (!json.is_object() || !json.contains(name) || !json[name].is_array()) return list;
  for (const auto& each : json[name])
    if (each.is_string()) list.push_back(each.get<std::string>());
  return list;
}

std::string text_in(const Json& json, const char* name) {
  const bool there = json.is_object() && json.contains(name) && json[name].is_string();
  return there ? json[name].get<std::string>() : "";
}

}  // namespace

std::string to_json_text(const FlowProgram& program) {
  Json json{{"flow", program.text},
            {"file", escaped(program.file)},
            {"name", program.name},
            {"cache", kCacheModeNames.name(program.cache)},
            {"parallel", program.parallel},
            {"outlive", program.outlive},
            {"priority", program.priority},
            {"shell", exec::words_of_shell(program.options.shell)},
            {"set", program.options.set},
            {"targets", program.options.targets},
            {"force", program.options.force},
            {"keyed", program.keyed},
            {"answers", to_json(program.answers)}};
  if (program.retain > Duration(0)) json["retain_ms"] = to_ms(program.retain);
  if (program.timeout) json["timeout_ms"] = to_ms(*program.timeout);
  if (program.retries) json["retries"] = *program.retries;
  if (program.allow_failures) json["allow_failures"] = *program.allow_failures;
  if (program.gpu_mem_over)
    json["gpu_mem_over"] = exec::kGpuMemOverNames.name(*program.gpu_mem_over);
  if (program.overwrite) json["overwrite"] = true;
  if (!program.image.empty()) json["image"] = escaped(program.image);
  for (const auto& [step, resource, amount, attempts] : program.options.advice)
    json["advice"].push_back(Json::array({step, resource, amount, attempts}));
  if (!program.labels.empty()) json["labels"] = program.labels;
  if (!program.notify.empty()) json["notify"] = exec::to_json(program.notify);
  if (program.options.only) json["only"] = true;
  for (const auto& [path, part] : program.parts)
    json["parts"].push_back(Json::array({escaped(path), escaped(part)}));
  return dump(json);
}

Result<FlowProgram> flow_program(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed)
    return fail(ErrorKind::corrupt, "the stored flow cannot be read: {}", parsed.error().message);
  FlowProgram program;
  try {
    const Json& json = *parsed;
    program.text = json.at("flow");
    program.file = unescaped(json.at("file").get_ref<const std::string&>());
    program.name = json.at("name");
    const auto mode = cache_mode(json.at("cache").get<std::string>());
    if (!mode) return fail(ErrorKind::corrupt, "the stored flow has an unknown cache mode");
    program.cache = *mode;
    program.options.set = json.value("set", program.options.set);
    program.options.targets = json.value("targets", flow::Words{});
    program.options.force = json.value("force", flow::Words{});
    program.options.shell = json.contains("shell")
                                ? json.at("shell").get<flow::Words>()
                                : flow::Words(exec::kPlainShell.begin(), exec::kPlainShell.end());
    program.parallel = json.at("parallel");
    program.outlive = json.value("outlive", false);
    program.priority = json.at("priority");
    program.retain = from_ms(json.value("retain_ms", std::int64_t{0}));
    if (json.contains("timeout_ms")) program.timeout = from_ms(json.at("timeout_ms"));
    if (json.contains("retries")) program.retries = json.at("retries");
    if (json.contains("allow_failures"))
      program.allow_failures = json.at("allow_failures").get<std::int64_t>();
    if (json.contains("gpu_mem_over")) {
      const auto over = exec::gpu_mem_over_named(json.at("gpu_mem_over").get<std::string>());
      if (!over) return std::unexpected(over.error());
      program.gpu_mem_over = *over;
    }
    program.keyed = json.value("keyed", false);
    program.overwrite = json.value("overwrite", false);
    program.labels = json.value("labels", exec::Labels());
    if (json.contains("notify")) {
      BERTH_ASSIGN(program.notify, exec::notify_from(json.at("notify").get<std::string>()));
    }
    program.options.only = json.value("only", false);
    program.image = unescaped(json.value("image", ""));
    if (json.contains("advice"))
      for (const auto& each : json.at("advice"))
        program.options.advice.push_back({each.at(0), each.at(1), each.at(2).get<std::int64_t>(),
                                          each.at(3).get<std::int64_t>()});
    if (json.contains("parts"))
      for (const auto& each : json.at("parts"))
        program.parts[unescaped(each.at(0).get_ref<const std::string&>())] =
            unescaped(each.at(1).get_ref<const std::string&>());
    program.answers = answers_of(json.at("answers"));
  } catch (const std::exception& error) {  // of the library
    return fail(ErrorKind::corrupt, "the stored flow cannot be read: {}",
                without_library_tag(error.what()));
  }
  return program;
}

flow::World world_of(os::Env& env, std::string directory, Answers& answers) {
  const auto place = [directory](const std::string& path) {
    return path.starts_with('/') ? path : directory + "/" + path;
  };
  return {[&env, &answers, place](const std::string& path) {
            const auto [known, is_new] = answers.exists.try_emplace(path);
            if (is_new) known->second = env.status(place(path)).has_value();
            return known->second;
          },
          [&env, &answers, directory](const std::string& pattern) -> Result<flow::Words> {
            if (const auto known = answers.glob.find(pattern); known != answers.glob.end())
              return known->second;
            BERTH_ASSIGN(auto found, fileset::glob(env, directory, pattern));
            answers.glob.emplace(pattern, found);
            return found;
          },
          [&env, &answers](const std::string& name) -> std::optional<std::string> {
            const auto [known, is_new] = answers.variable.try_emplace(name);
            if (is_new) known->second = env.variable(name);
            return known->second;
          },
          [&env, &answers, place](const std::string& path) -> Result<std::string> {
            if (const auto known = answers.table.find(path); known != answers.table.end())
              return known->second;
            BERTH_ASSIGN(auto text, env.read_file(place(path), flow::kMostTableBytes));
            answers.table.emplace(path, text);
            return text;
          }};
}

Status take_parts(os::Env& env, const std::string& directory, FlowProgram& program) {
  // Most flows are one file, which need not be read once more to know it.
  if (!program.text.contains("include") && !program.text.contains("flow")) return {};
  const auto read = [&](const std::string& path) -> Result<std::string> {
    if (const auto known = program.parts.find(path); known != program.parts.end())
      return known->second;
    BERTH_ASSIGN(auto text, env.read_file(path.starts_with('/') ? path : directory + "/" + path,
                                          flow::kMostFlowBytes));
    return program.parts.emplace(path, std::move(text)).first->second;
  };
  const auto files = flow::read_files(program.text, program.file, program.options, read);
  return files ? Status() : std::unexpected(files.error());
}

bool mentions(const FlowProgram& program, std::string_view word) {
  return program.text.contains(word) || std::ranges::any_of(program.parts, [&](const auto& part) {
           return part.second.contains(word);
         });
}

namespace {

Result<flow::Flow> read_text(const FlowProgram& program) {
  const auto part = [&](const std::string& path) -> Result<std::string> {
    const auto known = program.parts.find(path);
    if (known != program.parts.end()) return known->second;
    return fail(ErrorKind::not_found, "{} is not kept with the run", path);
  };
  return flow::read_flow(program.text, program.file, program.options, part);
}

}  // namespace

Status keep_reading(FlowProgram& program) {
  BERTH_ASSIGN(auto flow, read_text(program));
  BERTH_TRY(flow::check_depfiles(flow));
  program.reading =
      std::make_shared<const FlowReading>(FlowReading{program.options, std::move(flow)});
  return {};
}

Result<flow::Flow> read_flow(const FlowProgram& program) {
  const bool known = program.reading && program.reading->options == program.options;
  BERTH_ASSIGN(flow::Flow flow,
               known ? Result<flow::Flow>(program.reading->flow) : read_text(program));
  flow.keyed = program.keyed;
  for (auto& step : flow.steps) {
    if (program.timeout) {
      step.timeout = *program.timeout;
      std::erase_if(step.scaled,
                    [](const auto& scaled) { return scaled.resource == flow::kTimeLimit; });
    }
    if (program.retries) {
      step.retries = *program.retries;
      BERTH_TRY(flow::check_attempts(step));
    }
    if (program.gpu_mem_over) step.gpu_mem_over = *program.gpu_mem_over;
    if (!program.image.empty()) step.container.image = program.image;
    if (const auto image = program.answers.image.find(step.container.image);
        image != program.answers.image.end()) {
      step.image_id = image->second.id;
      step.image_there = image->second.there;
    }
  }
  BERTH_TRY(flow::check_depfiles(flow));
  return flow;
}

bool is_flow(std::string_view text) {
  // A large flow is not read for it.
  if (text.starts_with("steps:") || text.contains("\nsteps:")) return true;
  const auto document = Field::parse(text, "");
  if (!document || !document->is_map()) return false;
  if (document->find("steps") || document->find("include")) return true;
  // One that nobody would take for an experiment: what its steps should be called, its reader says.
  constexpr std::array<std::string_view, 1> kSteps{"steps"};
  return !document->find("run") && !document->find("script") &&
         std::ranges::any_of(document->node().children, [&](const auto& entry) {
           return entry.kind != DocumentNode::Kind::scalar && !meant_key(entry.key, kSteps).empty();
         });
}

exec::Labels labels_of(const store::RunRecord& record) {
  exec::Labels labels;
  if (!record.spec_json.contains("\"labels\"")) return labels;  // a large flow is not read for it
  const auto json = parse_json(record.spec_json);
  if (!json || !json->is_object() || !json->contains("labels")) return labels;
  for (const auto& pair : (*json)["labels"])
    if (pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string())
      labels.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
  return labels;
}

std::vector<exec::Notify> notify_of(const store::RunRecord& record) {
  if (!record.spec_json.contains("\"notify\"")) return {};
  const auto json = parse_json(record.spec_json);
  if (!json || !json->is_object() || !json->contains("notify") || !(*json)["notify"].is_string())
    return {};
  return exec::notify_from((*json)["notify"].get<std::string>())
      .value_or(std::vector<exec::Notify>());
}

namespace {

Invocation invocation_as_given(const store::RunRecord& record) {
  Invocation asked;
  const auto json = parse_json(record.spec_json);
  if (!json) return asked;
  asked.program = text_in(*json, record.kind == "flow" ? "file" : "run");
  const auto words = list_in(*json, "words");
  if (asked.program.empty() && !words.empty()) {
    asked.program = words.front();
    asked.arguments.assign(words.begin() + 1, words.end());
  }
  const bool only = json->is_object() && json->contains("only") && (*json)["only"] == true;
  for (const auto& target : list_in(*json, "targets"))
    asked.arguments.push_back((only ? "--only=" : "") + target);
  for (const auto& step : list_in(*json, "force")) asked.arguments.push_back("--force=" + step);
  if (record.kind != "flow" || !json->contains("set")) return asked;
  for (const auto& pair : (*json)["set"]) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) continue;
    std::vector<std::string> values;
    for (const auto& value : pair[1])
      if (value.is_string()) values.push_back(value.get<std::string>());
    asked.parameters.emplace_back(pair[0].get<std::string>(), values);
    asked.arguments.push_back(
        fmt::format("--set={}={}", asked.parameters.back().first,
                    values.size() == 1 ? values.front() : fmt::format("[{}]", join(values, ","))));
  }
  return asked;
}

}  // namespace

Invocation invocation_of(const store::RunRecord& record) {
  Invocation asked = invocation_as_given(record);
  asked.program = without_secrets(asked.program);
  for (auto& argument : asked.arguments) argument = without_secrets(argument);
  for (auto& [_, values] : asked.parameters)
    for (auto& value : values) value = without_secrets(value);
  return asked;
}

namespace {

constexpr std::string_view kMetrics = "metrics\n";  // then a line each, behind all outputs

}  // namespace

std::string to_text(const std::vector<fileset::Fileset>& outputs, const flow::Metrics& metrics) {
  std::string text;  // each with its length: names of files are any bytes
  for (const auto& output : outputs) {
    const std::string one = fileset::to_text(output);
    text += fmt::format("{}\n{}", one.size(), one);
  }
  if (!metrics.empty()) text += kMetrics;
  for (const auto& [name, value] : metrics) text += fmt::format("{} {}\n", value, name);
  return text;
}

namespace {

/// The text of each output; `text` is what is behind them.
Result<std::vector<std::string_view>> split_outputs(std::string_view& text) {
  std::vector<std::string_view> outputs;
  while (!text.empty() && !text.starts_with(kMetrics)) {
    const auto end = text.find('\n');
    const auto size = parse_integer(text.substr(0, end));
    if (!size || *size < 0 || end == std::string_view::npos ||
        static_cast<std::size_t>(*size) > text.size() - end - 1)
      return fail(ErrorKind::corrupt, "the stored result of a task cannot be read");
    outputs.push_back(text.substr(end + 1, static_cast<std::size_t>(*size)));
    text.remove_prefix(end + 1 + static_cast<std::size_t>(*size));
  }
  return outputs;
}

}  // namespace

Result<std::vector<fileset::Fileset>> parse_outputs(std::string_view text) {
  BERTH_ASSIGN(const auto texts, split_outputs(text));
  std::vector<fileset::Fileset> outputs;
  for (const auto each : texts) {
    BERTH_ASSIGN(outputs.emplace_back(), fileset::parse_fileset(each));
  }
  return outputs;
}

flow::Metrics parse_metrics(std::string_view text) {
  flow::Metrics metrics;
  if (!split_outputs(text) || text.empty()) return metrics;
  for (const auto line : split(text.substr(kMetrics.size()), '\n')) {
    const auto blank = line.find(' ');
    const auto value = parse_number(line.substr(0, blank));
    if (value && blank != std::string_view::npos)
      metrics.emplace_back(line.substr(blank + 1), *value);
  }
  return metrics;
}

bool has_metrics(const flow::Metrics& metrics, const flow::Words& names) {
  return std::ranges::all_of(names, [&](const std::string& name) {
    return std::ranges::find(metrics, name, &flow::Metrics::value_type::first) != metrics.end();
  });
}

}  // namespace berth::run
