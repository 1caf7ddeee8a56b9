// Options of berth plan --manifests.
#pragma once

#include <optional>
#include <string>

#include "berth/cli/options.h"
#include "berth/fleet/document/manifests.h"

namespace berth::cli {

struct ManifestChoices {
  std::optional<std::string> directory;
  std::string scaler, kubernetes_namespace, prometheus;  // as written

  void add_to(Options& options);
  bool wanted() const { return directory.has_value(); }
  /// usage: an option that cannot be, or none of it is wanted.
  Result<fleet::ManifestOptions> read() const;
};

}  // namespace berth::cli
