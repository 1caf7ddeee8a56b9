#include "berth/machine/devices/device_figures.h"

#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/base/json_error.h"
#include "berth/base/text.h"
#include "berth/machine/devices/device_program.h"

namespace berth::machine {
namespace {

void read_figures_of(Nvml& nvml, Nvml::Handle device, DeviceFigures& into) {
  const auto uuid = nvml.uuid(device);
  if (!uuid) return;  // lost: the health update says so
  const auto processes = nvml.processes(device);
  if (!processes || !*processes) {
    into.untold.emplace_back(
        *uuid, processes ? "the driver does not report its processes" : processes.error().message);
    return;
  }
  for (const DeviceProcess& process : **processes)
    into.figures.push_back({*uuid, process.pid, process.memory});
}

}  // namespace

Result<DeviceFigures> read_figures(Nvml& nvml) {
  DeviceFigures figures;
  BERTH_ASSIGN(const unsigned count, nvml.count());
  for (unsigned index = 0; index < count; ++index) {
    const auto card = nvml.card(index);
    if (!card) continue;
    const auto mig = nvml.mig_enabled(*card);
    if (!mig || !mig->value_or(false)) {
      read_figures_of(nvml, *card, figures);
      continue;
    }
    const auto most = nvml.most_instances(*card);
    for (unsigned i = 0; most && i < most->value_or(0); ++i)
      if (const auto instance = nvml.instance(*card, i); instance && *instance)
        read_figures_of(nvml, **instance, figures);
  }
  return figures;
}

std::string to_json(const DeviceFigures& figures) {
  Json list = Json::array();
  for (const auto& [uuid, pid, memory] : figures.figures)
    list.push_back(Json{{"uuid", uuid}, {"pid", pid}, {"memory", memory}});
  Json untold = Json::array();
  for (const auto& [uuid, because] : figures.untold)
    untold.push_back(Json{{"uuid", uuid}, {"because", valid_utf8(because)}});
  return dump(
      Json{{"figures", list}, {"untold", untold}, {"because", valid_utf8(figures.because)}});
}

Result<DeviceFigures> figures_of_json(std::string_view line) {
  BERTH_ASSIGN(const Json json, parse_json(line));
  try {
    DeviceFigures figures;
    for (const Json& one : json.at("figures"))
      figures.figures.push_back({one.at("uuid"), one.at("pid"), one.at("memory")});
    for (const Json& one : json.at("untold"))
      figures.untold.emplace_back(one.at("uuid"), one.at("because"));
    figures.because = json.at("because");
    return figures;
  } catch (const Json::exception& error) {
    return fail(ErrorKind::corrupt, "device metrics cannot be read: {}",
                without_library_tag(error.what()));
  }
}

Status watch_figures(os::Env& env, const std::string& nvml_library, Duration every,
                     const os::Fd& out) {
  std::unique_ptr<Nvml> nvml;
  while (env.stop_signals() == 0) {
    DeviceFigures figures;
    if (!nvml) {
      if (auto opened = open_nvml(nvml_library))
        nvml = *std::move(opened);
      else
        figures.because = opened.error().message;
    }
    if (nvml) {
      if (auto read = read_figures(*nvml)) {
        figures = *std::move(read);
      } else {
        figures.because = read.error().message;
        nvml.reset();  // a driver that was loaded anew has to be opened anew
      }
    }
    BERTH_TRY(env.write_all(out, to_json(figures) + "\n"));
    BERTH_TRY(env.wait({}, env.now() + jittered(env, every)));
  }
  return {};
}

}  // namespace berth::machine
