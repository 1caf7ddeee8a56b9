#include "berth/cli/commands/manifests.h"

#include "berth/base/text.h"

namespace berth::cli {
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

}  // namespace berth::cli
