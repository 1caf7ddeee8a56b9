// berth plan --manifests: the planned servers as files for Kubernetes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/cli/options.h"
#include "berth/fleet/manifests.h"
#include "berth/os/env.h"

namespace berth::cli {

struct ManifestChoices {
  std::optional<std::string> directory;
  std::string scaler, kubernetes_namespace, prometheus;  // as written

  void add_to(Options& options);
  bool wanted() const { return directory.has_value(); }
  /// usage: an option that cannot be, or none of it is wanted.
  Result<fleet::ManifestOptions> read() const;
};

/// Writes a file for each manifest into the directory, which is made where there is none, and
/// returns them. Files that berth plan wrote before are replaced; nothing is written where another
/// one has such a name. Servers without replicas, and files of servers that are not in the plan any
/// more, are told of as notes. Errors: as of files; invalid: as fleet::manifests(), or a file that
/// berth plan did not write.
Result<std::vector<fleet::Manifest>> write_manifests(os::Env& env, const fleet::System& system,
                                                     const fleet::Plan& plan,
                                                     const ManifestChoices& given);
/// A line for each file.
std::string manifests_text(const std::vector<fleet::Manifest>& written,
                           const ManifestChoices& given);

}  // namespace berth::cli
