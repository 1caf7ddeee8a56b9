// A plan as Kubernetes takes it: for each server, and each part of a mix or a split, a Deployment
// and what scales it by the gauge wva_desired_replicas. The parts of a split have no series of the
// gauge, and nothing that scales them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/names.h"
#include "berth/fleet/model/replica_group.h"

namespace berth::fleet {

/// A HorizontalPodAutoscaler of autoscaling/v2 with an External metric, or a ScaledObject of
/// keda.sh/v1alpha1 that asks Prometheus.
enum class Scaler : std::uint8_t { none, hpa, keda };
inline constexpr auto kScalerNames =
    names<Scaler>({{Scaler::none, "none"}, {Scaler::hpa, "hpa"}, {Scaler::keda, "keda"}});

struct ManifestOptions {
  Scaler scaler = Scaler::hpa;
  std::string kubernetes_namespace;  // of the objects, and of the gauge; "": none
  std::string prometheus;            // where it answers: its URL; keda needs it
};

struct Manifest {
  std::string server, accelerator;
  std::string name;  // of the objects: a DNS label, and no other manifest's
  int replicas = 0;
  std::string text;    // YAML, beginning with kManifestMark
  std::string file{};  // where it was written, told by who did
};
inline constexpr std::string_view kManifestMark = "# Written by berth plan, which replaces it.\n";

/// The names of the objects, one for each of these: the server's, and of a part of a mix the
/// accelerator's behind it, of a split the role. What is no DNS label, or another one's name, is
/// made one, with letters of its digest behind it, so that a server's name does not depend on which
/// others there are unless two are alike.
std::vector<std::string> object_names(const std::vector<ReplicaGroup>& groups);

/// One for each group of replicas of the plan, in the same order. Errors: invalid: names the server
/// or the accelerator, and what the document has to say of it.
Result<std::vector<Manifest>> manifests(const System& system, const Plan& plan,
                                        const ManifestOptions& options);

}  // namespace berth::fleet
