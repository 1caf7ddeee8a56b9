#include "berth/render/machines/cluster_use.h"

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/render/machines/machine.h"

namespace berth::render {
namespace {

std::string used_of(const Resources& free, const Resources& total) {
  std::vector<std::string> parts;
  total.each([&](std::string_view name, std::int64_t amount) {
    if (name == "disk") return;
    parts.push_back(fmt::format("{} {} of {}", name, format_amount(name, amount - free.get(name)),
                                format_amount(name, amount)));
  });
  return join(parts, ", ");
}

void write(JsonWriter& json, const engine::HostUse& one) {
  json.object().add("host", one.host);
  if (one.error.empty()) {
    json.key("free").raw(to_json(one.free)).key("total").raw(to_json(one.total));
    json.add("holders", one.holders).add("state", one.state);
  } else {
    json.add("error", one.error);
  }
  json.end();
}

}  // namespace

std::string to_text(const std::vector<engine::ClusterUse>& clusters, const View& view) {
  Table table({"cluster", "host", "used", "by"});
  for (const auto& cluster : clusters) {
    if (!cluster.error.empty()) table.add({cluster.name, "", cluster.error, ""});
    if (cluster.error.empty() && cluster.hosts.empty())
      table.add({cluster.name, "", "nothing runs", ""});
    for (const auto& one : cluster.hosts) {
      std::vector<std::string> used;
      for (const auto& part : {one.error, used_of(one.free, one.total), one.state})
        if (!part.empty()) used.push_back(part);
      table.add({cluster.name, one.host, join(used, ", "), one.holders});
    }
  }
  return table.empty() ? "" : "\n" + to_text(table, view);
}

std::string to_text(const engine::CurrentUse& use, const View& view) {
  return usage_text(use.machine, view) + to_text(use.clusters, view);
}

std::string to_json(const engine::CurrentUse& use) {
  std::string text = to_json(use.machine);
  if (use.clusters.empty()) return text;
  JsonWriter json;
  json.array();
  for (const auto& cluster : use.clusters) {
    json.object().add("name", cluster.name).add("kind", cluster.kind).key("hosts").array();
    for (const auto& one : cluster.hosts) write(json, one);
    json.end();
    if (!cluster.error.empty()) json.add("error", cluster.error);
    json.end();
  }
  return text.insert(text.rfind('}'), ",\"clusters\":" + json.end().take());
}

}  // namespace berth::render
