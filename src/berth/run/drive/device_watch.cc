#include "berth/run/drive/device_watch.h"

#include <algorithm>
#include <utility>

#include "berth/base/text.h"
#include "berth/os/log.h"
#include "berth/os/spawn.h"

namespace berth::run {
namespace {

bool has_device(const WorkerSlot& slot, const std::string& uuid) {
  return std::ranges::any_of(slot.lease.alloc.block.devices,
                             [&](const auto& share) { return share.uuid == uuid; });
}

bool is_named(const machine::DeviceHealthUpdate& update, const std::string& uuid) {
  return std::ranges::any_of(update.out_of_service,
                             [&](const auto& device) { return device.first == uuid; });
}

}  // namespace

void DeviceWatch::begin() {
  if (!context_.devices || context_.devices->shares.empty()) return;
  os::Env& env = run_.env;
  const std::string first = devices_file(run_.directory);
  const auto here = env.real_path(".");  // BERTH_TOPOLOGY may be relative to it
  if (!here || !env.replace_file(first, topology::write_json(context_.devices->topology), 0600))
    return run_.observer.on_note("the health of the GPUs is not watched: " + first +
                                 " cannot be written");
  os::SpawnSpec program;
  program.argv = {"/proc/self/exe", "watch-devices", first};
  program.environment = env.environment();
  program.environment.emplace_back("BERTH_RUN_DIR", run_.directory);  // a resume ends it by this
  program.directory = *here;
  health_.emplace(env, std::move(program),
                  [this](machine::DeviceHealthUpdate update) { on_update(std::move(update)); });
}

void DeviceWatch::on_update(machine::DeviceHealthUpdate update) {
  machine::Devices& devices = *context_.devices;
  if (update == devices.health) return;
  const machine::DeviceHealthUpdate before = std::exchange(devices.health, std::move(update));
  leases_.machine_changed();
  os::log_event(run_.env, "devices", {{"news", machine::to_json(devices.health)}});
  for (const auto& [uuid, because] : devices.health.out_of_service) {
    if (!is_named(before, uuid))
      run_.observer.on_note(fmt::format("{} is out of service: {}{}",
                                        machine::name_of(devices, uuid), because,
                                        holders_of(uuid)));
    for (const auto& slot : workers_)  // what runs there may end; nothing more starts
      if (has_device(*slot, uuid)) run_.scheduler->close(slot->id);
  }
  for (const auto& [uuid, _] : before.out_of_service)
    if (!is_named(devices.health, uuid))
      run_.observer.on_note(fmt::format("{} is healthy again", machine::name_of(devices, uuid)));
}

/// "; digits-3/17 runs on it"; empty where no task of this run does.
std::string DeviceWatch::holders_of(const std::string& uuid) {
  const auto tasks =
      attempts_.labels_on([&](const WorkerSlot& slot) { return has_device(slot, uuid); });
  if (tasks.empty()) return "";
  return fmt::format("; {} {} on it", join(tasks, ", "), tasks.size() == 1 ? "runs" : "run");
}

}  // namespace berth::run
