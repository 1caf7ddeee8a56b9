// For tests: machines of NVIDIA cards in memory, and an Env of a fixture that has links in /sys.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/machine/devices/nvml.h"
#include "berth/testing/capacity_fixture.h"
#include "berth/topology/topology.h"

namespace berth::machine {

struct FakeInstance {
  std::string uuid, model;
  std::int64_t memory = 0;
  std::vector<DeviceProcess> processes{};
};

struct FakeCard {
  std::string uuid, model, pci;
  std::int64_t memory = 0;
  std::vector<int> cores{}, nodes{};
  std::vector<std::optional<NvmlLink>> links{};  // by number; nullopt: down
  std::vector<DeviceProcess> processes{};
  std::int64_t errors = 0;
  std::string fault{};
  bool mig = false;
  std::vector<FakeInstance> instances{};
};

class FakeNvml : public Nvml {
 public:
  std::vector<FakeCard> cards;
  std::map<std::pair<std::size_t, std::size_t>, topology::Pcie> levels;  // the lesser first
  /// Asked before every call, by its name and the card ("count": 0).
  std::function<std::optional<Error>(std::string_view call, std::size_t card)> trouble;

  Result<unsigned> count() override {
    BERTH_TRY(ask("count", 0));
    return static_cast<unsigned>(cards.size());
  }
  Result<Handle> card(unsigned index) override {
    BERTH_TRY(ask("card", index));
    return handle(index, 0);
  }
  Result<std::string> uuid(Handle device) override {
    BERTH_TRY(ask("uuid", at(device)));
    return instance_of(device) ? instance_of(device)->uuid : of(device).uuid;
  }
  Reported<std::string> model(Handle device) override {
    BERTH_TRY(ask("model", at(device)));
    return instance_of(device) ? instance_of(device)->model : of(device).model;
  }
  Reported<std::string> pci(Handle device) override {
    BERTH_TRY(ask("pci", at(device)));
    return of(device).pci;
  }
  Reported<std::int64_t> memory(Handle device) override {
    BERTH_TRY(ask("memory", at(device)));
    return instance_of(device) ? instance_of(device)->memory : of(device).memory;
  }
  Reported<std::vector<int>> cores(Handle device) override {
    BERTH_TRY(ask("cores", at(device)));
    return of(device).cores;
  }
  Reported<std::vector<int>> nodes(Handle device) override {
    BERTH_TRY(ask("nodes", at(device)));
    return of(device).nodes;
  }
  Reported<topology::Pcie> level(Handle one, Handle other) override {
    BERTH_TRY(ask("level", at(one)));
    const auto found = levels.find(std::minmax(at(one), at(other)));
    return found == levels.end() ? std::nullopt : std::optional(found->second);
  }
  Reported<NvmlLink> link(Handle card, unsigned number) override {
    BERTH_TRY(ask("link", at(card)));
    return number < of(card).links.size() ? of(card).links[number] : std::nullopt;
  }
  Reported<std::int64_t> uncorrected_errors(Handle card) override {
    BERTH_TRY(ask("uncorrected_errors", at(card)));
    return of(card).errors;
  }
  Reported<std::string> memory_fault(Handle card) override {
    BERTH_TRY(ask("memory_fault", at(card)));
    return of(card).fault;
  }
  Reported<bool> mig_enabled(Handle card) override {
    BERTH_TRY(ask("mig_enabled", at(card)));
    return of(card).mig;
  }
  Reported<unsigned> most_instances(Handle card) override {
    BERTH_TRY(ask("most_instances", at(card)));
    return 7;
  }
  Reported<Handle> instance(Handle card, unsigned index) override {
    BERTH_TRY(ask("instance", at(card)));
    if (index >= of(card).instances.size()) return std::nullopt;
    return handle(at(card), index + 1);
  }
  Reported<std::vector<DeviceProcess>> processes(Handle device) override {
    BERTH_TRY(ask("processes", at(device)));
    return instance_of(device) ? instance_of(device)->processes : of(device).processes;
  }

 private:
  static constexpr std::size_t kStride = 16;  // handles of one card: its own, its instances'

  static Handle handle(std::size_t card, std::size_t part) {
    return reinterpret_cast<Handle>((card + 1) * kStride + part);
  }
  static std::size_t at(Handle handle) {
    return reinterpret_cast<std::size_t>(handle) / kStride - 1;
  }
  const FakeCard& of(Handle handle) const { return cards.at(at(handle)); }
  const FakeInstance* instance_of(Handle handle) const {
    const std::size_t part = reinterpret_cast<std::size_t>(handle) % kStride;
    return part == 0 ? nullptr : &of(handle).instances.at(part - 1);
  }
  Status ask(std::string_view call, std::size_t card) const {
    if (const auto error = trouble ? trouble(call, card) : std::nullopt)
      return std::unexpected(*error);
    return {};
  }
};

/// The cards of a machine; its NVLinks go to switches, or from card to card.
inline FakeNvml nvml_of(const topology::Topology& machine, bool switched) {
  FakeNvml nvml;
  const auto address = [](std::size_t i) { return fmt::format("0000:{:02x}:00.0", i + 16); };
  for (std::size_t a = 0; a < machine.devices.size(); ++a) {
    const topology::Device& device = machine.devices[a];
    FakeCard& card = nvml.cards.emplace_back();
    card.uuid = fmt::format("GPU-{}", a);
    card.model = device.model;
    card.pci = address(a);
    card.memory = device.memory;
    card.cores = device.cores;
    if (device.numa >= 0) card.nodes = {device.numa};
    for (std::size_t b = 0; b < machine.devices.size(); ++b) {
      if (a == b || (switched && !card.links.empty())) continue;
      const topology::Link& link = machine.link(a, b);
      const auto end = switched ? NvmlLink::End::nvswitch : NvmlLink::End::gpu;
      for (int i = 0; i < link.fabric; ++i)
        card.links.emplace_back(
            NvmlLink{end, switched ? fmt::format("0000:{:02x}:00.0", 200 + i) : address(b),
                     link.generation});
    }
    for (std::size_t b = a + 1; b < machine.devices.size(); ++b)
      nvml.levels[{a, b}] = machine.link(a, b).pcie;
  }
  return nvml;
}

/// Files in memory with "link FROM TO" lines for what the kernel shows as symbolic links: a path
/// through FROM is one through TO.
class DeviceEnv : public FixtureEnv {
 public:
  std::map<std::string, std::string> links, variables;

  DeviceEnv() = default;
  explicit DeviceEnv(const Fixture& fixture) {
    for (const auto& [path, text] : fixture.files) files["/" + path] = text;
    for (const auto& [key, value] : fixture.lines) {
      if (key == "denied") broken["/" + value] = {ErrorKind::denied, value};
      const auto parts = words(value);
      if (key == "link") links["/" + std::string(parts.at(0))] = "/" + std::string(parts.at(1));
    }
  }

  Result<std::string> real_path(const std::string& path) override {
    const std::string real = through_links(path);
    if (real == path && !files.contains(path))
      return fail(ErrorKind::not_found, "{}: no such file", path);
    return real;
  }
  Result<std::string> read_file(const std::string& path, std::size_t limit) override {
    return FixtureEnv::read_file(through_links(path), limit);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (const auto at = broken.find(directory); at != broken.end())
      return std::unexpected(at->second);
    return FixtureEnv::list(through_links(directory));
  }
  Result<os::FileStatus> status(const std::string& path) override {
    if (!list(path) && !files.contains(path))
      return fail(ErrorKind::not_found, "{}: no such file", path);
    return os::FileStatus{};
  }
  std::optional<std::string> variable(const std::string& name) override {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  }
  std::string host_name() override { return "box"; }

 private:
  std::string through_links(const std::string& path) const {
    for (const auto& [from, to] : links)
      if (path == from || path.starts_with(from + "/")) return to + path.substr(from.size());
    return path;
  }
};

}  // namespace berth::machine
