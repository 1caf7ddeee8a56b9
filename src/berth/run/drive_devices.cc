// The devices while a run lasts: their health is watched, and whoever holds one that falls ill is
// told.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/os/log.h"
#include "berth/run/drive.h"

namespace berth::run {
namespace {

bool has_device(const Berthed& berthed, const std::string& uuid) {
  return std::ranges::any_of(berthed.machine->total().devices,
                             [&](const auto& share) { return share.uuid == uuid; });
}

}  // namespace

void Drive::watch_devices() {
  if (!site_.devices || site_.devices->shares.empty()) return;
  const std::string first = directory_ + "/devices.json";
  const auto here = env_.real_path(".");  // BERTH_TOPOLOGY may be relative to it
  if (!here || !env_.replace_file(first, topology::write_json(site_.devices->topology), 0600))
    return observer_.on_note("the health of the GPUs is not watched: " + first +
                             " cannot be written");
  os::SpawnSpec program;
  program.argv = {"/proc/self/exe", "watch-devices", first};
  program.environment = env_.environment();
  program.environment.emplace_back("BERTH_RUN_DIR", directory_);  // a resume ends it by this
  program.directory = *here;
  health_.emplace(env_, std::move(program));
}

void Drive::hear_of_devices(machine::DeviceNews news) {
  machine::Devices& devices = *site_.devices;
  if (news == devices.news) return;
  std::swap(news, devices.news);
  host_read_ = {};
  leasings_.front().seek_at.reset();
  os::log_event(env_, "devices", {{"news", machine::to_json(devices.news)}});
  const auto named = [](const machine::DeviceNews& list, const std::string& uuid) {
    return std::ranges::any_of(list.out_of_service,
                               [&](const auto& device) { return device.first == uuid; });
  };
  for (const auto& [uuid, because] : devices.news.out_of_service) {
    if (!named(news, uuid))
      observer_.on_note(fmt::format("{} is out of service: {}{}", machine::name_of(devices, uuid),
                                    because, holders_of(uuid)));
    for (const auto& berthed : berthed_)  // what runs there may end; nothing more starts
      if (has_device(*berthed, uuid)) scheduler_->close(berthed->id);
  }
  for (const auto& [uuid, _] : news.out_of_service)
    if (!named(devices.news, uuid))
      observer_.on_note(fmt::format("{} is well again", machine::name_of(devices, uuid)));
}

/// "; digits-3/17 runs on it"; empty where no task of this run does.
std::string Drive::holders_of(const std::string& uuid) {
  std::vector<std::string> labels;
  for (const auto& [_, live] : live_)
    for (const auto& berthed : berthed_)
      if (berthed->id == live.worker && has_device(*berthed, uuid))
        labels.push_back(record_.name + "/" + task(live.task).label);
  std::ranges::sort(labels);
  if (labels.empty()) return "";
  return fmt::format("; {} {} on it", join(labels, ", "), labels.size() == 1 ? "runs" : "run");
}

}  // namespace berth::run
