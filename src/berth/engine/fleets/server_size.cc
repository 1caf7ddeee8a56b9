#include "berth/engine/fleets/server_size.h"

#include "berth/engine/fleets/settings.h"
#include "berth/fleet/model/missing_limits.h"

namespace berth::engine {
namespace {

/// The notes on missing limits of the server's replicas.
std::vector<std::string> notes_on_server(const fleet::System& system, const std::string& name) {
  const auto server = system.servers.find(name);
  if (server == system.servers.end()) return {};
  fleet::System alone{system.accelerators, {},        system.models,
                      system.classes,      {*server}, system.options};
  return fleet::notes_on_missing_limits(alone);
}

}  // namespace

Result<fleet::ServerSize> size_server(fleet::System system, const SizeChoices& given,
                                      const FleetNotes& notes) {
  BERTH_TRY(choose("--model", given.model, fleet::kModelNames, system.options.model));
  BERTH_TRY(set_fleet_values(system, given.sets));
  if (!given.load.empty() && system.servers.contains(given.server)) {
    BERTH_ASSIGN(const double rate, parse_value("--load", given.load));
    BERTH_TRY(set_fleet_value("--load", system, "server." + given.server + ".arrivalRate", rate));
  }
  BERTH_ASSIGN(const auto execution, parse_execution(given.percentiles));
  note_averages(system, notes);
  notes(notes_on_server(system, given.server));
  return fleet::size_server(system, given.server, given.question, execution);
}

}  // namespace berth::engine
