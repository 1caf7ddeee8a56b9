// One server of a fleet, sized on each accelerator.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/fleets/fleet.h"
#include "berth/fleet/solver/server_size.h"

namespace berth::engine {

/// The question as options of `berth size` and values of a request have it.
struct SizeChoices {
  std::string server;
  fleet::SizeQuestion question = {};
  std::string load = {}, model = {};  // "": those of the document
  std::string percentiles = "simulated";
  std::vector<std::string> sets = {};
};

/// Errors: as fleet::size_server(); usage, with the option.
Result<fleet::ServerSize> size_server(fleet::System system, const SizeChoices& choices,
                                      const FleetNotes& notes);

}  // namespace berth::engine
