#include "berth/cli/server/fleets.h"

#include "berth/base/units.h"
#include "berth/engine/fleets/fleet.h"

namespace berth::cli {

std::vector<std::string> Fleets::names() const {
  std::vector<std::string> names = files;
  if (planner != nullptr && !planner->system().servers.empty()) names.push_back(planner_name);
  return names;
}

Result<fleet::System> Fleets::system(os::Env& env, std::string_view number) const {
  const std::size_t count = names().size();
  const auto at = parse_integer(number);
  if (!at || *at < 0 || *at >= static_cast<std::int64_t>(count))
    return fail(ErrorKind::usage, "expected the number of a fleet, less than {}", count);
  const auto place = static_cast<std::size_t>(*at);
  if (place >= files.size()) return planner->system();
  return engine::read_fleet(env, files[place], [](const std::vector<std::string>&) {});
}

}  // namespace berth::cli
