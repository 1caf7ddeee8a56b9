#include "berth/cli/server/openapi.h"

#include <algorithm>
#include <map>
#include <vector>

#include "berth/api/calls/calls.h"
#include "berth/base/format.h"
#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/fleet/document/format.h"
#include "berth/render/schemas.h"

namespace berth::cli {
namespace {

// Answers and requests without a record.
constexpr const char* kSchemas =
#include "berth/cli/server/schemas.inc"
    ;

/// What a query may have. `values`: the only ones, with blanks between them; "": any.
struct QueryName {
  std::string_view name, description, values = "";
  bool repeats = false;
};
constexpr QueryName kQueryNames[] = {
    {"all", "choose from all GPUs of this machine, allocated ones included", "true false"},
    {"attempt", "the number of the attempt (default: the last one)"},
    {"available", "the GPUs to choose from, such as 0,2-5 (default: the free GPUs)"},
    {"changed-since", "only changes since this time, such as 2026-11-21T05:04:03Z"},
    {"count", "the number of GPUs"},
    {"direction", "the better scores: max or min", "min max"},
    {"metric", "the metric (default: that of the first goal)"},
    {"min-up", "the minimum time for which a replica is kept, such as 1h"},
    {"objective", "the score to maximize (default: sum)", "sum min ring"},
    {"percentiles", "the method that finds the maximum rate within targets for percentiles",
     "simulated closed-form"},
    {"policy", "the policy (default: packed)",
     "packed best-effort simple static-dgx1-pascal static-dgx1-volta static-dgx2"},
    {"require", "GPUs that the choice includes, such as 4"},
    {"role", "the role of the other viewer (default: that of the caller)", "read control"},
    {"run", "a run", "", true},
    {"secret", "the secret of the link"},
    {"set", "a changed value: capacity.H100=16, server.NAME.arrivalRate=1800", "", true},
    {"solver", "the solver", "optimal greedy unlimited"},
    {"sort", "the column by which tasks are sorted, such as a metric"},
    {"startup", "the time that a replica takes to start, such as 3m"},
    {"tail", "only this many bytes of its end, such as 200K"},
    {"topology",
     "a machine type such as dgx-h100, or, with the role control, a file (default: this machine)"},
};

constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"page", "The page that a browser shows."},
    {"viewers", "Sessions and roles."},
    {"runs", "Runs and their tasks."},
    {"machines", "This machine, and clusters."},
    {"plans", "Plans of the fleets named on the command line, and of the server's fleet."},
    {"fleet", "The server's fleet."},
    {"reference", "The same fleet, in the form of the reference planner's API."},
    {"metrics", "For Prometheus."},
};
/// Schemas of bodies that may be left out.
constexpr std::string_view kOptional[] = {"CacheCollection",     "CleanRequest", "NewFileRequest",
                                          "NotificationRequest", "Optimizer",    "ResumeRequest",
                                          "RetryRequest",        "SizeQuestion"};
constexpr std::string_view kNumbers[] = {"number", "priority"};  // among parts of paths

/// The schema of fleet documents, whose parts are called fleet.NAME elsewhere here.
std::string fleet_schema() {
  std::string text = json_schema("Berth fleet", fleet::kFleetFormat);
  text.erase(1, text.find("\"title\"") - 1);  // its $schema: it is a part now
  constexpr std::string_view kOld = "#/$defs/", kNew = "#/components/schemas/fleet/$defs/";
  for (auto at = text.find(kOld); at != std::string::npos; at = text.find(kOld, at + kNew.size()))
    text.replace(at, kOld.size(), kNew);
  return text;
}

void add_reference(JsonWriter& json, std::string_view schema) {
  std::string name(schema);
  if (name.starts_with("fleet.")) name.replace(name.find('.'), 1, "/$defs/");
  json.object().add("$ref", "#/components/schemas/" + name).end();
}

void add_content(JsonWriter& json, std::string_view answer) {
  const bool is_media = answer.find('/') != answer.npos;
  json.key("content").object();
  json.key(is_media ? answer.substr(0, answer.find(';')) : "application/json").object();
  json.key("schema");
  if (is_media)
    json.object().add("type", "string").end();
  else
    add_reference(json, answer);
  json.end().end();
}

void add_query_name(JsonWriter& json, std::string_view name) {
  const auto* known = std::ranges::find(kQueryNames, name, &QueryName::name);
  BERTH_ASSERT(known != std::end(kQueryNames));
  json.object().add("name", name).add("in", "query").add("description", known->description);
  json.key("schema").object();
  if (known->repeats) json.add("type", "array").key("items").object();
  json.add("type", "string");
  if (const auto values = words(known->values); !values.empty()) json.key("enum").list(values);
  if (known->repeats) json.end();
  json.end().end();
}

void add_parameters(JsonWriter& json, const api::Call& call) {
  json.key("parameters").array();
  for (const auto part : split(call.path, '/')) {
    if (!part.starts_with('{')) continue;
    const auto name = part.substr(1, part.size() - 2);
    const bool is_number = std::ranges::find(kNumbers, name) != std::end(kNumbers);
    json.object().add("name", name).add("in", "path").add("required", true).key("schema");
    json.object().add("type", is_number ? "integer" : "string").end().end();
  }
  for (const auto name : words(call.query)) add_query_name(json, name);
  json.end();
}

/// "get_v1_runs_run_log"
std::string operation_id(const api::Call& call) {
  std::string id = lower(call.method);
  for (const auto part : split(call.path, '/')) {
    if (part.empty()) continue;
    id += '_';
    for (const char c : part)
      if (c != '{' && c != '}') id += c == '.' || c == '-' ? '_' : c;
  }
  return id;
}

void add_operation(JsonWriter& json, const api::Call& call) {
  json.key(lower(call.method)).object().add("operationId", operation_id(call));
  json.key("tags").array().value(call.group).end().add("summary", call.summary);
  json.add("x-role", api::kRoleNames.name(call.role));
  if (call.role == api::Role::none) json.key("security").array().end();
  add_parameters(json, call);
  if (!call.body.empty()) {
    const bool may_lack = std::ranges::find(kOptional, call.body) != std::end(kOptional);
    json.key("requestBody").object().add("required", !may_lack);
    add_content(json, call.body);
    json.end();
  }
  json.key("responses").object().key(fmt::format("{}", call.status)).object();
  json.add("description", call.summary);
  add_content(json, call.answer);
  json.end();
  for (const auto* others : {"4XX", "5XX"})
    json.key(others).object().add("$ref", "#/components/responses/Refused").end();
  json.end().end();
}

void add_components(JsonWriter& json) {
  json.key("components").object().key("securitySchemes").object();
  json.key("token").object().add("type", "http").add("scheme", "bearer");
  json.add("description", "That of --token-file or --read-token-file.").end();
  json.key("cookie").object().add("type", "apiKey").add("in", "cookie").add("name", "berth-ID");
  json.add("description", "Set by /open and POST /v1/session; ID differs by server.").end().end();
  json.key("responses").object().key("Refused").object();
  json.add("description", "What is wrong, in words.");
  add_content(json, "Error");
  json.end().end();
  const auto members = [](std::string_view object) {
    object = trim(object);
    return object.substr(1, object.size() - 2);
  };
  json.key("schemas").raw(fmt::format("{{{},{},{},\"fleet\":{}}}", members(kSchemas),
                                      members(render::schemas_json()),
                                      members(api::request_schemas_json()), trim(fleet_schema())));
  json.end();
}

constexpr api::Call kOwnCall{"GET",     "/v1/openapi.json", api::Role::none,
                             "viewers", "this document",    "OpenAPI"};

}  // namespace

std::string openapi_document(std::span<const api::Route> routes) {
  std::map<std::string_view, std::vector<api::Call>> paths;
  for (const auto& route : routes) paths[route.call.path].push_back(route.call);
  paths[kOwnCall.path].push_back(kOwnCall);
  JsonWriter json;
  json.object().add("openapi", "3.1.0").key("info").object().add("title", "Berth");
  json.add("version", "1").key("license").object().add("name", "Apache-2.0");
  json.add("identifier", "Apache-2.0").end();
  json.add("description",
           "What berth serve and berth dashboard answer. JSON is what the commands print with "
           "--json. x-role is what a request must be allowed: none, read or control. Under berth "
           "serve without a token file, the fleet's calls and /metrics need no role.");
  json.end().key("servers").array().object().add("url", "/").end().end();
  json.key("security").array();
  for (const auto* scheme : {"token", "cookie"}) json.object().key(scheme).array().end().end();
  json.end().key("tags").array();
  for (const auto& [name, description] : kGroups)
    json.object().add("name", name).add("description", description).end();
  json.end().key("paths").object();
  for (const auto& [path, calls] : paths) {
    json.key(path).object();
    for (const auto& call : calls) add_operation(json, call);
    json.end();
  }
  json.end();
  add_components(json);
  return json.end().take();
}

api::Route openapi_route(std::span<const api::Route> routes) {
  return {kOwnCall, [document = openapi_document(routes)](const api::Request&) {
            return api::Reply{200, document};
          }};
}

}  // namespace berth::cli
