#include "berth/fleet/document/manifests.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "berth/base/digest.h"
#include "berth/base/names.h"
#include "berth/base/text.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kMostObjectName = 63;
constexpr std::int64_t kMostPerPlanned = 10;  // replicas of who has no limit of capacity

/// A double-quoted scalar of printable ASCII, which every YAML reads as this text: whatever could
/// be syntax, a line break or a number stands within the quotes, and all else is escaped.
std::string yaml(std::string_view text) {
  const std::string utf8 = valid_utf8(text);
  std::string quoted = "\"";
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t length = utf8_length(utf8, at);
    const auto lead = static_cast<unsigned char>(utf8[at]);
    char32_t letter = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i)
      letter = letter << 6U | (static_cast<unsigned char>(utf8[at + i]) & 0x3FU);
    at += length;
    if (letter == '"' || letter == '\\')
      quoted += {'\\', static_cast<char>(letter)};
    else if (letter >= ' ' && letter <= '~')
      quoted += static_cast<char>(letter);
    else
      quoted += letter <= 0xFFFF ? fmt::format("\\u{:04x}", static_cast<std::uint32_t>(letter))
                                 : fmt::format("\\U{:08x}", static_cast<std::uint32_t>(letter));
  }
  return quoted + "\"";
}

std::string indented(int indent) {
  return std::string(static_cast<std::size_t>(indent), ' ');
}

/// "key:" and a line for each value below it; nothing where there are none.
std::string list_text(int indent, std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return {};
  std::string text = fmt::format("{}{}:\n", indented(indent), key);
  for (const auto& value : values) text += fmt::format("{}- {}\n", indented(indent), yaml(value));
  return text;
}

template <class Map>
std::string map_text(int indent, std::string_view key, const Map& entries) {
  if (entries.empty()) return {};
  std::string text = fmt::format("{}{}:\n", indented(indent), key);
  for (const auto& [name, value] : entries)
    text += fmt::format("{}{}: {}\n", indented(indent + 2), yaml(name), yaml(value));
  return text;
}

/// What a server's or an accelerator's name becomes where it is no DNS label.
std::string as_label(std::string_view text, std::size_t most) {
  std::string label;
  for (const char c : lower(text)) label += is_dns_label(std::string(1, c)) ? c : '-';
  const auto first = label.find_first_not_of('-');
  if (first == std::string::npos) return "server";
  label = label.substr(first, most);
  return label.substr(0, label.find_last_not_of('-') + 1);
}

/// Which part it is; "": the only one.
std::string part_name(const ReplicaGroup& group) {
  if (group.role != Role::whole) return std::string(name(group.role));
  return group.is_part ? group.accelerator : "";
}

std::string plain_name(const ReplicaGroup& group) {
  return group.is_part ? group.server + "-" + part_name(group) : group.server;
}

/// The labels that choose one server's series of the gauge, in the order that people write them.
NamedTexts selector_of(const ReplicaGroup& group, const ManifestOptions& options) {
  NamedTexts labels{{"variant_name", group.server}, {"accelerator_type", group.accelerator}};
  // Prometheus renames a scraped `namespace`, since the scrape adds one of its own.
  if (!options.kubernetes_namespace.empty())
    labels.emplace_back("exported_namespace", options.kubernetes_namespace);
  return labels;
}

std::string query_of(const NamedTexts& labels) {
  std::vector<std::string> matchers;
  for (const auto& [name, value] : labels) matchers.push_back(name + "=" + json_quote(value));
  return fmt::format("wva_desired_replicas{{{}}}", join(matchers, ","));
}

std::string head_text(std::string_view api, std::string_view kind, const std::string& name,
                      const ManifestOptions& options) {
  std::string text =
      fmt::format("apiVersion: {}\nkind: {}\nmetadata:\n  name: {}\n", api, kind, yaml(name));
  if (!options.kubernetes_namespace.empty())
    text += fmt::format("  namespace: {}\n", yaml(options.kubernetes_namespace));
  return text;
}

/// The smallest unit of a CPU is a thousandth; of memory, whole megabytes are enough.
std::string thousandths(double value, std::string_view unit) {
  return fmt::format("{}{}", std::llround(std::ceil(value * 1000)), unit);
}

std::string resources_text(const ReplicaGroup& group, const Accelerator& accelerator) {
  NamedTexts requests, limits{{resource_of(accelerator), fmt::format("{}", group.accelerators)}};
  if (group.start.cpu > 0) requests.emplace_back("cpu", thousandths(group.start.cpu, "m"));
  if (group.start.memory_gb > 0) {
    requests.emplace_back("memory", thousandths(group.start.memory_gb, "M"));
    limits.push_back(requests.back());
  }
  return "          resources:\n" + map_text(12, "requests", requests) +
         map_text(12, "limits", limits);
}

std::string deployment_text(const ReplicaGroup& group, const Accelerator& accelerator,
                            const Start& start, const std::string& name,
                            const ManifestOptions& options) {
  const NamedTexts labels{{"app.kubernetes.io/name", name}};
  std::string text = head_text("apps/v1", "Deployment", name, options);
  text += map_text(2, "labels", labels);
  NamedTexts annotations{{"berth/server", group.server}, {"berth/accelerator", group.accelerator}};
  if (group.role != Role::whole) annotations.emplace_back("berth/role", fleet::name(group.role));
  text += map_text(2, "annotations", annotations);
  text += fmt::format("spec:\n  replicas: {}\n  selector:\n{}  template:\n    metadata:\n{}",
                      group.replicas, map_text(4, "matchLabels", labels),
                      map_text(6, "labels", labels));
  text += "    spec:\n" + map_text(6, "nodeSelector", *accelerator.node_selector);
  text += fmt::format("      containers:\n        - name: server\n          image: {}\n",
                      yaml(start.image));
  text += list_text(10, "command", start.command) + list_text(10, "args", start.args);
  if (start.port > 0)
    text += fmt::format("          ports:\n            - containerPort: {}\n", start.port);
  if (!start.environment.empty()) text += "          env:\n";
  for (const auto& [variable, value] : start.environment)
    text += fmt::format("            - name: {}\n              value: {}\n", yaml(variable),
                        yaml(value));
  return text + resources_text(group, accelerator);
}

struct ReplicaBounds {
  std::int64_t least = 0, most = 0;  // replicas
};

/// What scales it may go down to the server's minimum, and up to what there is of the type.
ReplicaBounds bounds_of(const System& system, const Plan& plan, const ReplicaGroup& group) {
  const std::string& type = system.accelerators.at(group.accelerator).type;
  const auto total = std::ranges::find(plan.totals, type, &TypeTotal::type);
  const bool is_limited = total != plan.totals.end() && total->limit;
  return {group.is_part ? 0 : system.servers.at(group.server).min_replicas,
          std::max<std::int64_t>(group.replicas, is_limited ? *total->limit / group.accelerators
                                                            : kMostPerPlanned * group.replicas)};
}

std::string target_text(const std::string& name) {
  return fmt::format(
      "spec:\n  scaleTargetRef:\n    apiVersion: apps/v1\n    kind: Deployment\n    name: {}\n",
      yaml(name));
}

std::string hpa_text(const ReplicaGroup& group, const ReplicaBounds& bounds,
                     const std::string& name, const ManifestOptions& options) {
  return "---\n" + head_text("autoscaling/v2", "HorizontalPodAutoscaler", name, options) +
         target_text(name) +
         // Only a cluster with the feature HPAScaleToZero takes 0.
         fmt::format("  minReplicas: {}\n  maxReplicas: {}\n",
                     std::max<std::int64_t>(1, bounds.least), bounds.most) +
         "  metrics:\n    - type: External\n      external:\n        metric:\n"
         "          name: wva_desired_replicas\n          selector:\n" +
         map_text(12, "matchLabels", selector_of(group, options)) +
         "        target:\n          type: AverageValue\n          averageValue: \"1\"\n";
}

std::string scaled_object_text(const ReplicaGroup& group, const ReplicaBounds& bounds,
                               const std::string& name, const ManifestOptions& options) {
  return "---\n" + head_text("keda.sh/v1alpha1", "ScaledObject", name, options) +
         target_text(name) +
         fmt::format("  minReplicaCount: {}\n  maxReplicaCount: {}\n", bounds.least, bounds.most) +
         "  triggers:\n    - type: prometheus\n      metricType: AverageValue\n" +
         map_text(6, "metadata",
                  NamedTexts{{"serverAddress", options.prometheus},
                             {"query", query_of(selector_of(group, options))},
                             {"threshold", "1"},
                             {"activationThreshold", "0"},
                             // No series is no wish for none: the loop may be starting anew.
                             {"ignoreNullValues", "false"}});
}

/// What the document has to say for a manifest, and does not.
Status check_told(const System& system, const ReplicaGroup& group, const ManifestOptions& options) {
  if (group.start.image.empty())
    return fail(ErrorKind::invalid,
                "server '{}': start.image: no container image is given; give the server, or model "
                "'{}' on {}, \"start\": {{\"image\": …}}",
                clip(group.server), clip(group.model), clip(group.accelerator));
  if (!system.accelerators.at(group.accelerator).node_selector)
    return fail(ErrorKind::invalid,
                "accelerator '{}': nodeSelector: no labels of its nodes are given, such as "
                "{{\"nvidia.com/gpu.product\": …}} ({{}}: any node)",
                clip(group.accelerator));
  if (options.scaler != Scaler::hpa) return {};
  for (const auto& [label, value] : selector_of(group, options))
    if (!is_label_value(value))
      return fail(ErrorKind::invalid,
                  "server '{}': {}: '{}' can be no label in the selector of a "
                  "HorizontalPodAutoscaler; --scaler keda takes any name",
                  clip(group.server), label, clip(value));
  return {};
}

}  // namespace

std::vector<std::string> object_names(const std::vector<ReplicaGroup>& all) {
  std::vector<std::string> names_of_all(all.size());
  std::set<std::string> taken;
  const auto take = [&](std::size_t i, std::string name) {
    if (!is_dns_label(name) || !taken.insert(name).second) return false;
    names_of_all[i] = std::move(name);
    return true;
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].is_part) take(i, all[i].server);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!names_of_all[i].empty() || (all[i].is_part && take(i, plain_name(all[i])))) continue;
    const std::string digest = to_hex(sha256(all[i].server + '\0' + part_name(all[i])));
    for (std::size_t digits = 8; names_of_all[i].empty(); ++digits)
      take(i, as_label(plain_name(all[i]), kMostObjectName - 1 - digits) + "-" +
                  digest.substr(0, digits));
  }
  return names_of_all;
}

Result<std::vector<Manifest>> manifests(const System& system, const Plan& plan,
                                        const ManifestOptions& options) {
  const std::vector<ReplicaGroup> all = replica_groups(system, plan);
  const std::vector<std::string> all_names = object_names(all);
  std::vector<Manifest> made;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ReplicaGroup& group = all[i];
    BERTH_TRY(check_told(system, group, options));
    std::vector<std::string> missing{"replica"};  // the replicas of a Deployment are all alike
    if (group.start.port == 0) missing.emplace_back("port");
    const auto start = fill(group.start, names_of(group), missing);
    if (!start)
      return fail(ErrorKind::invalid, "server '{}': {}", clip(group.server), start.error().message);
    const ReplicaBounds bounds = bounds_of(system, plan, group);
    std::string text(kManifestMark);
    text += deployment_text(group, system.accelerators.at(group.accelerator), *start, all_names[i],
                            options);
    const Scaler scaler = group.role == Role::whole ? options.scaler : Scaler::none;
    if (scaler == Scaler::hpa) text += hpa_text(group, bounds, all_names[i], options);
    if (scaler == Scaler::keda) text += scaled_object_text(group, bounds, all_names[i], options);
    made.push_back(
        {group.server, group.accelerator, all_names[i], group.replicas, std::move(text), {}});
  }
  return made;
}

}  // namespace berth::fleet
