#include "berth/machine/devices/device_guard.h"

#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::machine {
namespace {

/// Tasks follow each other: the driver's library takes longer to open than they are apart.
constexpr Duration kStaysIdle = std::chrono::seconds(10);
/// A driver that loads its firmware first has answered by then.
constexpr Duration kSilentMost = std::chrono::seconds(30);
/// The driver reports a process for a moment after its end.
constexpr int kHiddenForGood = 3;
constexpr std::size_t kProcessFileMost = 1 << 21;

/// Fields 4 to 6 of stat, behind the name in its parentheses: parent, group, session; 0: not known.
std::array<pid_t, 3> kin_of(os::Env& env, pid_t pid) {
  std::array<pid_t, 3> kin{};
  const auto text = env.read_file(fmt::format("/proc/{}/stat", pid), kProcessFileMost);
  if (!text) return kin;
  const auto fields = words(std::string_view(*text).substr(text->rfind(')') + 1));
  for (std::size_t i = 0; i < kin.size() && i + 1 < fields.size(); ++i)
    kin.at(i) = static_cast<pid_t>(parse_integer(fields[i + 1]).value_or(0));
  return kin;
}

bool has_variable(std::string_view environment, std::string_view mark) {
  for (std::size_t at = 0; at < environment.size();) {
    const auto end = std::min(environment.find('\0', at), environment.size());
    if (environment.substr(at, end - at) == mark) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::vector<DeviceShare> parts_of(const std::vector<DeviceShare>& devices) {
  std::vector<DeviceShare> parts;
  std::ranges::copy_if(devices, std::back_inserter(parts),
                       [](const auto& share) { return !share.whole && share.memory > 0; });
  return parts;
}

void DeviceGuard::add(GuardedTask task) {
  tasks_.push_back(std::move(task));
  idle_.set(std::nullopt);
  if (running_) return;
  running_.emplace(*env_, program_, [this](const auto& lines) { on_lines(lines); });
  silent_.set(env_->now() + kSilentMost);
}

void DeviceGuard::remove(std::int64_t id) {
  const bool any = std::erase_if(tasks_, [&](const auto& task) { return task.id == id; }) > 0;
  if (any && tasks_.empty()) idle_.set(env_->now() + kStaysIdle);
}

void DeviceGuard::on_lines(const std::vector<std::string>& lines) {
  std::optional<GuardReport> report;
  for (const auto& line : lines)
    if (const auto figures = figures_of_json(line)) report = compare(*figures);
  if (!report) return;
  silent_.set(std::nullopt);
  on_report_(*report);
}

void DeviceGuard::report_silence() {
  GuardReport report;
  for (const auto& task : tasks_) advise(task, "the driver does not answer", report);
  on_report_(report);
}

GuardReport DeviceGuard::compare(const DeviceFigures& figures) {
  GuardReport report;
  std::map<pid_t, const GuardedTask*> owners;
  std::map<pid_t, int> hidden;
  for (const auto& figure : figures.figures) {
    if (owners.contains(figure.pid) || hidden.contains(figure.pid)) continue;
    if (env_->status(fmt::format("/proc/{}", figure.pid)))
      owners[figure.pid] = owner(figure.pid);
    else
      hidden[figure.pid] = hidden_[figure.pid] + 1;
  }
  hidden_ = std::move(hidden);
  for (const auto& task : tasks_)
    for (const auto& share : task.shares) compare(task, share, figures, owners, report);
  return report;
}

void DeviceGuard::compare(const GuardedTask& task, const DeviceShare& share,
                          const DeviceFigures& figures,
                          const std::map<pid_t, const GuardedTask*>& owners, GuardReport& report) {
  if (share.vendor != topology::Vendor::nvidia)
    return advise(task, "only NVIDIA's driver is asked what a process has", report);
  if (!figures.because.empty()) return advise(task, figures.because, report);
  for (const auto& [uuid, because] : figures.untold)
    if (uuid == share.uuid) return advise(task, uuid + ": " + because, report);
  OverShare over{.task = task.id, .uuid = share.uuid, .share = share.memory};
  for (const auto& figure : figures.figures) {
    if (figure.uuid != share.uuid) continue;
    const auto of = owners.find(figure.pid);
    if (of == owners.end()) {
      over.certain = false;
      if (hidden_[figure.pid] >= kHiddenForGood)
        advise(task, share.uuid + ": its processes cannot be seen from this process", report);
    } else if (of->second == &task) {
      if (figure.memory == 0)
        advise(task, share.uuid + ": the driver does not report the memory of a process", report);
      over.has += figure.memory;
    }
  }
  if (over.has > share.memory) report.over.push_back(std::move(over));
}

const GuardedTask* DeviceGuard::owner(pid_t pid) const {
  constexpr int kMostAncestors = 64;
  const auto leads = [&](pid_t leader) {
    const auto found = std::ranges::find(tasks_, leader, &GuardedTask::leader);
    return found != tasks_.end() ? &*found : nullptr;
  };
  pid_t at = pid;
  for (int depth = 0; depth < kMostAncestors && at > 1; ++depth) {
    if (const auto* task = leads(at)) return task;
    const auto [parent, group, session] = kin_of(*env_, at);
    for (const pid_t leader : {group, session})
      if (const auto* task = leads(leader)) return task;
    at = parent;
  }
  const auto environment = env_->read_file(fmt::format("/proc/{}/environ", pid), kProcessFileMost);
  if (!environment) return nullptr;
  const auto marked = std::ranges::find_if(tasks_, [&](const auto& task) {
    return !task.mark.empty() && has_variable(*environment, task.mark);
  });
  return marked != tasks_.end() ? &*marked : nullptr;
}

void DeviceGuard::advise(const GuardedTask& task, const std::string& because, GuardReport& report) {
  if (advised_.insert(because).second) report.advisory.emplace_back(task.id, because);
}

}  // namespace berth::machine
