#include "berth/cli/manifests.h"

#include <set>

#include "berth/base/text.h"
#include "berth/cli/fleet_input.h"
#include "berth/render/table.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostManifestBytes = 16U << 20;
constexpr std::string_view kManifestSuffix = ".yaml";

/// Whether berth plan wrote the file.
Result<bool> is_ours(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const auto status, env.status(path));
  if (status.kind != os::FileStatus::Kind::file) return false;
  BERTH_ASSIGN(const auto text, env.read_file(path, kMostManifestBytes));
  return text.starts_with(fleet::kManifestMark);
}

/// Notes on files in the directory that an earlier plan has left, and this one does not replace.
Result<std::vector<std::string>> notes_on_left(os::Env& env, const std::string& directory,
                                               const std::vector<fleet::Manifest>& now) {
  std::set<std::string> written;
  for (const auto& manifest : now) written.insert(manifest.name + std::string(kManifestSuffix));
  std::vector<std::string> notes;
  BERTH_ASSIGN(const auto names, env.list(directory));
  for (const auto& name : names) {
    if (!name.ends_with(kManifestSuffix) || written.contains(name)) continue;
    const auto path = library::path_in(directory, name);
    if (is_ours(env, path).value_or(false))
      notes.push_back(fmt::format("{}: from an earlier plan; this plan has no such server", path));
  }
  return notes;
}

std::vector<std::string> notes_on_servers(const fleet::Plan& plan) {
  std::vector<std::string> notes;
  for (const auto& [name, assignment] : plan.servers)
    if (assignment.allocation.replicas == 0)
      notes.push_back(fmt::format("server '{}' has no replicas, so no manifest: {}", clip(name),
                                  assignment.reason));
  return notes;
}

}  // namespace

void ManifestChoices::add_to(Options& options) {
  options
      .value("--manifests", directory,
             "Write the planned servers as Kubernetes YAML into this directory, one file each")
      .named("DIR");
  options
      .value("--scaler", scaler,
             "With --manifests: scale by wva_desired_replicas with hpa (default), keda or none")
      .named("SCALER")
      .one_of({"hpa", "keda", "none"});
  options.value("--namespace", kubernetes_namespace, "With --manifests: Kubernetes namespace")
      .named("NAME");
  options.value("--prometheus", prometheus, "With --scaler keda: Prometheus server to query")
      .named("URL");
}

Result<fleet::ManifestOptions> ManifestChoices::read() const {
  if (!wanted())
    for (const auto& [option, value] : {std::pair("--scaler", &scaler),
                                        {"--namespace", &kubernetes_namespace},
                                        {"--prometheus", &prometheus}})
      if (!value->empty()) return fail(ErrorKind::usage, "{}: needs --manifests", option);
  if (directory && directory->empty())
    return fail(ErrorKind::usage, "--manifests: expected a directory");
  fleet::ManifestOptions options;
  if (!scaler.empty()) options.scaler = *fleet::scaler(scaler);
  options.kubernetes_namespace = kubernetes_namespace;
  options.prometheus = prometheus;
  if (!kubernetes_namespace.empty() && !fleet::is_dns_label(kubernetes_namespace))
    return fail(ErrorKind::usage, "--namespace: expected at most 63 of a-z, 0-9 and '-', got '{}'",
                clip(kubernetes_namespace));
  if (options.scaler == fleet::Scaler::keda && prometheus.empty())
    return fail(
        ErrorKind::usage,
        "--scaler keda: requires --prometheus URL, such as http://prometheus.monitoring:9090");
  if (options.scaler != fleet::Scaler::keda && !prometheus.empty())
    return fail(ErrorKind::usage, "--prometheus: needs --scaler keda");
  return options;
}

Result<std::vector<fleet::Manifest>> write_manifests(os::Env& env, const fleet::System& system,
                                                     const fleet::Plan& plan,
                                                     const ManifestChoices& given) {
  BERTH_ASSIGN(const auto options, given.read());
  BERTH_ASSIGN(auto manifests, fleet::manifests(system, plan, options));
  BERTH_TRY(env.make_user_directory(*given.directory, 0777));
  for (auto& manifest : manifests) {
    manifest.file =
        library::path_in(*given.directory, manifest.name + std::string(kManifestSuffix));
    if (!env.status(manifest.file)) continue;
    BERTH_ASSIGN(const bool ours, is_ours(env, manifest.file));
    if (!ours)
      return fail(ErrorKind::invalid,
                  "{}: exists and was not written by berth plan (its first line would say so); "
                  "nothing was written",
                  manifest.file);
  }
  for (const auto& manifest : manifests)
    BERTH_TRY(env.replace_user_file(manifest.file, manifest.text));
  print_notes(notes_on_servers(plan));
  BERTH_ASSIGN(const auto left, notes_on_left(env, *given.directory, manifests));
  print_notes(left);
  return manifests;
}

std::string manifests_text(const std::vector<fleet::Manifest>& written,
                           const ManifestChoices& given) {
  if (written.empty()) return {};
  render::Table table({"server", "accelerator", "replicas", "manifest"});
  for (const auto& manifest : written)
    table.add({manifest.server, manifest.accelerator, fmt::format("{}", manifest.replicas),
               manifest.file});
  return fmt::format("\n{}\nkubectl apply -f {}\n", render::to_text(table),
                     shell_quote(*given.directory));
}

}  // namespace berth::cli
