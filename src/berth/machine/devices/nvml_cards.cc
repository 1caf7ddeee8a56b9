#include <algorithm>
#include <optional>
#include <utility>

#include "berth/machine/devices/devices_reading.h"

namespace berth::machine {
namespace {

using topology::Health;

/// One pass over NVIDIA's devices. An error that says a device is lost makes it gone; any other is
/// a note.
class NvmlReader {
 public:
  NvmlReader(Nvml& nvml, Reading& reading)
      : nvml_(nvml), reading_(reading), first_(reading.devices.size()) {}

  void read() {
    const auto count = nvml_.count();
    if (!count) return reading_.add_gap("NVML: " + count.error().message);
    const unsigned most = std::min(*count, static_cast<unsigned>(topology::kMostDevices));
    for (unsigned index = 0; index < most; ++index) read_card(index);
    if (*count > most)
      reading_.add_gap(fmt::format("NVML: {} cards, the first {} are taken", *count, most));
    for (std::size_t i = 0; i < handles_.size(); ++i) read_links(i);
  }

 private:
  DeviceReading& seen(std::size_t i) { return reading_.devices[first_ + i]; }

  void read_card(unsigned index) {
    const auto handle = nvml_.card(index);
    if (!handle)
      return reading_.add_gap(fmt::format("NVML: card {}: {}", index, handle.error().message));
    const auto mig = nvml_.mig_enabled(*handle);
    if (!mig) reading_.add_gap(fmt::format("NVML: card {}: {}", index, mig.error().message));
    if (mig && mig->value_or(false)) return read_instances(*handle, index);
    add(*handle, static_cast<int>(index), *handle, "");
  }

  /// A card in MIG mode computes through its instances alone.
  void read_instances(Nvml::Handle card, unsigned index) {
    const auto most = nvml_.most_instances(card);
    const auto parent = nvml_.uuid(card);
    if (!most || !parent)
      return reading_.add_gap(
          fmt::format("NVML: card {}: {}", index, (most ? parent.error() : most.error()).message));
    const auto before = handles_.size();
    for (unsigned i = 0; i < most->value_or(0); ++i) {
      const auto instance = nvml_.instance(card, i);
      if (!instance)
        reading_.add_gap(
            fmt::format("NVML: card {}, MIG {}: {}", index, i, instance.error().message));
      else if (*instance)
        add(**instance, static_cast<int>(index), card, *parent);
    }
    if (handles_.size() == before)
      reading_.notes.push_back(fmt::format("card {} is in MIG mode and has no instances", index));
  }

  void add(Nvml::Handle handle, int index, Nvml::Handle card, const std::string& parent) {
    const auto uuid = nvml_.uuid(handle);
    DeviceReading& seen = reading_.devices.emplace_back();
    handles_.push_back({handle, card});
    topology::Device& device = seen.device;
    // Instances take numbers of their own, which those behind them have to make room for.
    const std::size_t place = reading_.devices.size() - 1;
    device.index =
        place == 0 ? index : std::max(index, reading_.devices[place - 1].device.index + 1);
    device.mig_parent = parent;
    device.uuid = uuid ? *uuid : fmt::format("gpu-{}", device.index);
    if (!uuid) suffer(seen, Health::lost, "UUID: " + uuid.error().message);
    take(seen, nvml_.model(handle), device.model);
    take(seen, nvml_.memory(handle), device.memory);
    take(seen, nvml_.processes(handle), seen.processes);
    take(seen, nvml_.pci(card), device.pci);
    take(seen, nvml_.cores(card), device.cores);
    std::vector<int> nodes;
    take(seen, nvml_.nodes(card), nodes);
    if (!nodes.empty()) device.numa = nodes.front();
    read_health(seen, card);
  }

  void read_health(DeviceReading& seen, Nvml::Handle card) {
    std::int64_t errors = 0;
    take(seen, nvml_.uncorrected_errors(card), errors);
    if (errors > 0)
      suffer(seen, Health::unhealthy, fmt::format("{} uncorrected ECC errors", errors));
    std::string fault;
    take(seen, nvml_.memory_fault(card), fault);
    if (!fault.empty()) suffer(seen, Health::unhealthy, fault);
  }

  void read_links(std::size_t i) {
    DeviceReading& from = seen(i);
    for (std::size_t other = i + 1; other < handles_.size(); ++other) read_level(i, other);
    // An instance has no links: NVLink and peer access are off in MIG mode.
    if (!from.device.mig_parent.empty()) return;
    int unknown = 0;
    for (unsigned number = 0; number < kMostNvlinks; ++number) {
      const auto told = nvml_.link(handles_[i].card, number);
      from.links_told = told.has_value();
      if (!told) return note(from, told.error());
      const std::optional<NvmlLink>& link = *told;
      if (!link) continue;
      from.generation = std::max(from.generation, link->generation);
      if (const auto other = place_of(link->pci))
        ++from.direct[*other];
      else if (link->end == NvmlLink::End::nvswitch)
        ++from.switched;
      else if (link->end != NvmlLink::End::npu)
        ++unknown;
    }
    if (unknown > 0)
      reading_.add_gap(fmt::format("GPU{}: {} NVLinks end on no known device and do not count",
                                   from.device.index, unknown));
  }

  void read_level(std::size_t i, std::size_t other) {
    DeviceReading& from = seen(i);
    if (handles_[i].card == handles_[other].card) {
      from.levels[first_ + other] = topology::Pcie::board;
      return;
    }
    topology::Pcie level = topology::Pcie::unknown;
    take(from, nvml_.level(handles_[i].card, handles_[other].card), level);
    from.levels[first_ + other] = level;
  }

  std::optional<std::size_t> place_of(const std::string& pci) const {
    if (pci.empty()) return std::nullopt;
    for (std::size_t at = first_; at < reading_.devices.size(); ++at)
      if (reading_.devices[at].device.pci == pci) return at;
    return std::nullopt;
  }

  template <class T>
  void take(DeviceReading& seen, Nvml::Reported<T> told, T& into) {
    if (!told) note(seen, told.error());
    if (told && *told) into = *std::move(*told);
  }

  void note(DeviceReading& seen, const Error& error) {
    if (error.kind == ErrorKind::not_found) return suffer(seen, Health::lost, error.message);
    reading_.add_gap(fmt::format("GPU{}: {}", seen.device.index, error.message));
  }

  static void suffer(DeviceReading& seen, Health health, const std::string& because) {
    if (seen.device.health >= health) return;
    seen.device.health = health;
    seen.device.unhealthy_reason = because;
  }

  struct Handles {
    Nvml::Handle device, card;  // the same one, but for a MIG instance
  };
  Nvml& nvml_;
  Reading& reading_;
  const std::size_t first_;  // place of the first of NVIDIA's
  std::vector<Handles> handles_;
};

}  // namespace

void read_nvml(Nvml& nvml, Reading& reading) {
  NvmlReader(nvml, reading).read();
  reading.sources.emplace_back("NVML");
}

}  // namespace berth::machine
