#include "berth/cli/server/fleets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "berth/base/units.h"
#include "berth/fleet/fleet.h"

namespace berth::cli {
namespace {

/// A file without a name, which other processes of this user open through /proc.
Result<FleetDocument> in_memory(std::string_view text) {
  struct File {
    std::unique_ptr<os::Env> env = os::posix_env();
    os::Fd fd{*env, ::memfd_create("fleet.json", MFD_CLOEXEC)};
  };
  const auto file = std::make_shared<File>();
  while (file->fd && !text.empty()) {
    const ssize_t written = ::write(file->fd.number(), text.data(), text.size());
    if (written < 0 && errno != EINTR) break;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (!file->fd || !text.empty())
    return fail(ErrorKind::full, "a file in memory: {}", std::strerror(errno));
  return FleetDocument{fmt::format("/proc/{}/fd/{}", ::getpid(), file->fd.number()), file};
}

}  // namespace

std::vector<std::string> Fleets::names() const {
  std::vector<std::string> names = files;
  if (planner != nullptr && !planner->system().servers.empty()) names.push_back(planner_name);
  return names;
}

Result<FleetDocument> Fleets::document(std::string_view number) const {
  const std::size_t count = names().size();
  const auto at = parse_integer(number);
  if (!at || *at < 0 || *at >= static_cast<std::int64_t>(count))
    return fail(ErrorKind::usage, "expected the number of a fleet, less than {}", count);
  const auto place = static_cast<std::size_t>(*at);
  if (place < files.size()) return FleetDocument{files[place], {}};
  return in_memory(fleet::write_document(planner->system()));
}

}  // namespace berth::cli
