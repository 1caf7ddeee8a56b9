#include <algorithm>

#include "berth/base/text.h"
#include "berth/topology/topology.h"

namespace berth::topology {
namespace {

struct Entry {
  std::string_view name, json;
};
/// catalogue/*.json by name, put together by the build.
constexpr Entry kMachines[] = {
#include "berth/topology/catalogue.inc"
};

}  // namespace

std::vector<std::string> catalogue() {
  std::vector<std::string> names;
  for (const Entry& machine : kMachines) names.emplace_back(machine.name);
  return names;
}

Result<Topology> known_machine(std::string_view name) {
  const auto found = std::ranges::find(kMachines, name, &Entry::name);
  if (found != std::end(kMachines)) return read_json(found->json, std::string(name));
  const std::vector<std::string> names = catalogue();
  const auto meant = nearest(name, std::vector<std::string_view>(names.begin(), names.end()));
  return fail(
      ErrorKind::not_found, "no machine '{}' in the catalogue; {}", clip(name),
      meant.empty() ? "known are: " + join(names, ", ") : fmt::format("did you mean '{}'?", meant));
}

}  // namespace berth::topology
