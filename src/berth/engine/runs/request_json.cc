#include "berth/engine/runs/request_json.h"

#include "berth/base/json.h"
#include "berth/exec/labels.h"
#include "berth/exec/notify.h"
#include "berth/experiment/document/reading.h"
#include "berth/resource/resources.h"

namespace berth::engine {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Result<std::vector<std::string>> texts(const Field& list) {
  std::vector<std::string> all;
  BERTH_ASSIGN(const auto items, list.items());
  for (const auto& item : items) {
    BERTH_ASSIGN(all.emplace_back(), item.text());
  }
  return all;
}

Result<Pairs> pairs(const Field& map) {
  Pairs all;
  BERTH_ASSIGN(const auto entries, map.entries());
  for (const auto& [name, field] : entries) {
    BERTH_ASSIGN(std::string text, field.text());
    all.emplace_back(name, std::move(text));
  }
  return all;
}

Result<std::vector<std::pair<std::string, flow::Words>>> parameters(const Field& map) {
  std::vector<std::pair<std::string, flow::Words>> all;
  BERTH_ASSIGN(const auto entries, map.entries());
  for (const auto& [name, field] : entries) {
    flow::Words values;
    if (field.is_list()) {
      BERTH_ASSIGN(values, texts(field));
    } else {
      BERTH_ASSIGN(values.emplace_back(), field.text());
    }
    all.emplace_back(name, std::move(values));
  }
  return all;
}

Result<bool> flag(const Field& field) {
  BERTH_ASSIGN(const std::string text, field.text());
  if (text != "true" && text != "false") return field.error("expected true or false");
  return text == "true";
}

Result<std::int64_t> amount_from_0(const Field& field) {
  BERTH_ASSIGN(const std::int64_t amount, field.integer());
  if (amount < 0) return field.error("expected at least 0");
  return amount;
}

Result<int> retries_of(const Field& field) {
  BERTH_ASSIGN(const std::int64_t retries, field.integer());
  if (retries < 0 || retries > 1000) return field.error("expected 0 to 1000");
  return static_cast<int>(retries);
}

Result<std::optional<Duration>> timeout_of(const Field& field) {
  BERTH_ASSIGN(const Duration timeout, field.duration());
  if (timeout < Duration(0)) return field.error("expected at least 0");
  return timeout > Duration(0) ? std::optional(timeout) : std::nullopt;
}

Result<std::vector<std::pair<std::string, std::int64_t>>> amounts(const Field& map) {
  std::vector<std::pair<std::string, std::int64_t>> all;
  BERTH_ASSIGN(const auto entries, map.entries());
  for (const auto& [name, field] : entries) {
    if (!valid_resource_name(name)) return field.error("this is not the name of a resource");
    BERTH_ASSIGN(const std::string text, field.text());
    const auto amount = parse_amount(name, text);
    if (!amount) return field.error(amount.error());
    all.emplace_back(name, *amount);
  }
  return all;
}

Result<exec::Labels> labels_of(const Field& map) {
  exec::Labels labels;
  BERTH_ASSIGN(const auto given, pairs(map));
  for (const auto& [name, value] : given)
    if (const auto set = exec::set_label(name, value, labels); !set) return map.error(set.error());
  return labels;
}

/// Reads the value of a key, if it is there.
template <class Value, class Read>
Status read(const Field& map, std::string_view key, Value& value, const Read& read_value) {
  const auto field = map.find(key);
  if (!field) return {};
  BERTH_ASSIGN(value, read_value(*field));
  return {};
}

Result<std::string> text_of(const Field& field) {
  return field.text();
}

Status read_file_options(const Field& body, RunRequest& request) {
  const auto options = body.find("options");
  if (!options) return {};
  BERTH_TRY(options->expect_keys({"name", "parallel", "set", "labels", "clusters", "retries",
                                  "timeout", "allow_failures", "targets", "force", "warm_start",
                                  "resources", "notify", "priority", "overwrite", "send_large"}));
  return read_options(*options, request);
}

Status read_path(const Field& body, RunRequest& request) {
  BERTH_TRY(body.expect_keys({"path", "options"}));
  BERTH_TRY(read(body, "path", request.file, text_of));
  if (request.file.empty()) return body.error("path: expected the path of a file");
  return read_file_options(body, request);
}

Status read_file(const Field& body, RunRequest& request) {
  BERTH_TRY(body.expect_keys({"file", "file_name", "directory", "options"}));
  BERTH_ASSIGN(const Field file, body.get("file"));
  BERTH_ASSIGN(request.text, file.is_map() ? experiment::json_text(file) : file.text());
  request.file = "file";
  BERTH_TRY(read(body, "file_name", request.file, text_of));
  if (request.file.empty()) return body.error("file_name: expected a name");
  return read_file_options(body, request);
}

Status read_command(const Field& body, RunRequest& request) {
  BERTH_TRY(
      body.expect_keys({"command", "directory", "name", "environment", "resources", "labels",
                        "clusters", "retries", "timeout", "notify", "priority", "send_large"}));
  BERTH_TRY(read(body, "command", request.command, texts));
  if (request.command.empty()) return body.error("command: expected words, got nothing");
  return read_options(body, request);
}

}  // namespace

Status read_options(const Field& map, RunRequest& request) {
  const auto integer = [](const Field& field) { return field.integer(); };
  BERTH_TRY(read(map, "name", request.name, text_of));
  BERTH_TRY(read(map, "parallel", request.parallel, amount_from_0));
  BERTH_TRY(read(map, "set", request.flow.set, parameters));
  BERTH_TRY(read(map, "elsewhere", request.runs_elsewhere, flag));
  BERTH_TRY(read(map, "labels", request.labels, labels_of));
  BERTH_TRY(read(map, "clusters", request.clusters, texts));
  BERTH_TRY(read(map, "retries", request.retries, retries_of));
  BERTH_TRY(read(map, "timeout", request.timeout, timeout_of));
  BERTH_TRY(read(map, "allow_failures", request.allow_failures, amount_from_0));
  BERTH_TRY(read(map, "targets", request.flow.targets, texts));
  BERTH_TRY(read(map, "force", request.flow.force, texts));
  BERTH_TRY(read(map, "warm_start", request.warm_start, texts));
  BERTH_TRY(read(map, "environment", request.environment, pairs));
  BERTH_TRY(read(map, "resources", request.resources, amounts));
  BERTH_TRY(read(map, "priority", request.priority, integer));
  BERTH_TRY(read(map, "overwrite", request.overwrite, flag));
  BERTH_TRY(read(map, "send_large", request.send_large, flag));
  BERTH_ASSIGN(request.notify, exec::read_notify(map));
  return {};
}

Result<RunRequest> read_request(std::string_view json) {
  BERTH_ASSIGN(const std::string text, compact_json(json));  // a Field reads no surrogate pairs
  BERTH_ASSIGN(const Field body, Field::parse(text, "request"));
  const bool has_path = body.find("path").has_value(), has_file = body.find("file").has_value();
  if (has_path + has_file + body.find("command").has_value() != 1)
    return body.error("expected a file, a path or a command");
  RunRequest request;
  BERTH_TRY(read(body, "directory", request.directory, text_of));
  BERTH_TRY(has_path   ? read_path(body, request)
            : has_file ? read_file(body, request)
                       : read_command(body, request));
  return request;
}

}  // namespace berth::engine
