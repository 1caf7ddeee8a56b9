// /proc/self/cgroup and /proc/self/mountinfo, parted by a NUL: what comes out is as promised.
#include "berth/machine/groups/cgroup_paths.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  const auto [cgroup, mountinfo] = halves(text);
  const auto paths = machine::parse_cgroup_paths(cgroup, mountinfo);
  for (const auto& hierarchy : paths.hierarchies) {
    BERTH_ASSERT(hierarchy.version == 1 || hierarchy.version == 2);
    BERTH_ASSERT(!hierarchy.groups.empty() && hierarchy.groups.size() <= 64);
    BERTH_ASSERT(hierarchy.version == 1 || hierarchy.controllers.empty());
    for (std::size_t i = 1; i < hierarchy.groups.size(); ++i)
      BERTH_ASSERT(hierarchy.groups[i - 1].directory.starts_with(hierarchy.groups[i].directory));
    for (const auto& controller : hierarchy.controllers)
      BERTH_ASSERT(paths.find(controller) != nullptr);
  }
}
