// A flow's run as it is kept, and the world that it was submitted in.
#include <nlohmann/json.hpp>

#include "berth/base/document.h"
#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/run/flow_run.h"

namespace berth::run {
namespace {

constexpr std::array<std::string_view, 4> kModes{"off", "read", "write", "on"};

}  // namespace

std::optional<CacheMode> cache_mode(std::string_view name) {
  const auto found = std::ranges::find(kModes, name);
  if (found == kModes.end()) return std::nullopt;
  return static_cast<CacheMode>(found - kModes.begin());
}

std::string to_json_text(const FlowProgram& program) {
  const Answers& answers = program.answers;
  Json variables = Json::object();
  for (const auto& [name, value] : answers.variable)
    variables[name] = value ? Json(valid_utf8(*value)) : Json(nullptr);
  Json json{
      {"flow", program.text},         {"file", valid_utf8(program.file)},
      {"name", program.name},         {"cache", kModes.at(static_cast<std::size_t>(program.cache))},
      {"parallel", program.parallel}, {"priority", program.priority},
      {"exists", answers.exists},     {"glob", answers.glob},
      {"variable", variables}};
  if (program.timeout) json["timeout_ms"] = to_ms(*program.timeout);
  if (program.retries) json["retries"] = *program.retries;
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
    program.file = json.at("file");
    program.name = json.at("name");
    const auto mode = cache_mode(json.at("cache").get<std::string>());
    if (!mode) return fail(ErrorKind::corrupt, "the stored flow has a cache mode that is none");
    program.cache = *mode;
    program.parallel = json.at("parallel");
    program.priority = json.at("priority");
    if (json.contains("timeout_ms")) program.timeout = from_ms(json.at("timeout_ms"));
    if (json.contains("retries")) program.retries = json.at("retries");
    json.at("exists").get_to(program.answers.exists);
    json.at("glob").get_to(program.answers.glob);
    for (const auto& [name, value] : json.at("variable").get_ref<const Json::object_t&>())
      program.answers.variable[name] =
          value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
  } catch (const std::exception& error) {  // of the library
    return fail(ErrorKind::corrupt, "the stored flow cannot be read: {}", error.what());
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
          }};
}

Result<flow::Flow> read_flow(const FlowProgram& program) {
  BERTH_ASSIGN(auto flow, flow::read_flow(program.text, program.file));
  for (auto& step : flow.steps) {
    if (program.timeout) step.timeout = *program.timeout;
    if (program.retries) step.retries = *program.retries;
  }
  return flow;
}

bool is_flow(std::string_view text) {
  const auto document = Field::parse(text, "");
  return document && document->find("steps");
}

std::string to_text(const std::vector<fileset::Fileset>& outputs) {
  std::string text;  // each with its length: names of files are any bytes
  for (const auto& output : outputs) {
    const std::string one = fileset::to_text(output);
    text += fmt::format("{}\n{}", one.size(), one);
  }
  return text;
}

Result<std::vector<fileset::Fileset>> parse_outputs(std::string_view text) {
  std::vector<fileset::Fileset> outputs;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto size = parse_integer(text.substr(0, end));
    if (!size || *size < 0 || end == std::string_view::npos ||
        static_cast<std::size_t>(*size) > text.size() - end - 1)
      return fail(ErrorKind::corrupt, "the stored result of a task cannot be read");
    BERTH_ASSIGN(outputs.emplace_back(),
                 fileset::parse_fileset(text.substr(end + 1, static_cast<std::size_t>(*size))));
    text.remove_prefix(end + 1 + static_cast<std::size_t>(*size));
  }
  return outputs;
}

}  // namespace berth::run
