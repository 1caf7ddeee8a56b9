#include <fmt/core.h>

#include <array>

#include "berth/base/document.h"
#include "berth/base/json.h"
#include "berth/base/json_writer.h"
#include "berth/base/ranges.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/topology/notation.h"
#include "berth/topology/reading.h"

namespace berth::topology {
namespace {

Status take_text(const Field& map, std::string_view key, std::string& to) {
  const auto field = map.find(key);
  if (!field) return {};
  BERTH_ASSIGN(to, field->text());
  return {};
}

Status take_number(const Field& map, std::string_view key, std::int64_t least, int& to) {
  constexpr std::int64_t kMost = 65535;
  const auto field = map.find(key);
  if (!field) return {};
  BERTH_ASSIGN(const std::int64_t number, field->integer());
  if (number < least || number > kMost)
    return field->error(fmt::format("expected {} to {}, got {}", least, kMost, number));
  to = static_cast<int>(number);
  return {};
}

Status take_flag(const Field& map, std::string_view key, bool& to) {
  constexpr std::array<std::string_view, 2> kFlags{"false", "true"};
  const auto field = map.find(key);
  if (!field) return {};
  BERTH_ASSIGN(const std::size_t flag, field->choice(kFlags));
  to = flag == 1;
  return {};
}

Status take_memory(const Field& map, std::int64_t& to) {
  const auto field = map.find("memory");
  if (!field) return {};
  BERTH_ASSIGN(const std::string text, field->text());
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes < 0) return field->error("expected bytes, such as 80GB");
  to = *bytes;
  return {};
}

Result<Device> device_of(const Field& map) {
  Device device;
  BERTH_TRY(map.expect_keys({"index", "uuid", "pci", "model", "vendor", "memory", "numa", "cores",
                             "mig_parent", "health", "unwell_because"}));
  BERTH_TRY(map.get("index"));
  BERTH_TRY(take_number(map, "index", 0, device.index));
  device.uuid = fmt::format("gpu-{}", device.index);
  BERTH_TRY(take_text(map, "uuid", device.uuid));
  BERTH_TRY(take_text(map, "pci", device.pci));
  BERTH_TRY(take_text(map, "model", device.model));
  if (const auto field = map.find("vendor")) {
    BERTH_ASSIGN(device.vendor, field->choice(kVendorNames));
  }
  BERTH_TRY(take_memory(map, device.memory));
  BERTH_TRY(take_number(map, "numa", -1, device.numa));
  BERTH_TRY(take_text(map, "mig_parent", device.mig_parent));
  BERTH_TRY(take_text(map, "unwell_because", device.unhealthy_reason));
  if (const auto field = map.find("cores")) {
    BERTH_ASSIGN(const std::string text, field->text());
    auto cores = cores_of(text);
    if (!cores) return field->error("expected cores such as 0-31,64-95");
    device.cores = *std::move(cores);
  }
  if (const auto field = map.find("health")) {
    BERTH_ASSIGN(device.health, field->choice(kHealthNames));
  }
  return device;
}

Result<std::vector<Field>> items_of(const Field& list, std::size_t count) {
  BERTH_ASSIGN(auto items, list.items());
  if (items.size() != count)
    return list.error(fmt::format("expected {}, one a device, got {}", count, items.size()));
  return items;
}

Status take_links(const Field& field, Topology& topology) {
  const std::size_t count = topology.devices.size();
  BERTH_ASSIGN(const auto rows, items_of(field, count));
  for (std::size_t a = 0; a < count; ++a) {
    BERTH_ASSIGN(const auto row, items_of(rows[a], count));
    for (std::size_t b = 0; b < count; ++b) {
      BERTH_ASSIGN(const std::string text, row[b].text());
      const auto link = link_of(text);
      if ((text == "X") != (a == b) || (a != b && !link))
        return row[b].error(fmt::format("expected {}, got '{}'",
                                        a == b ? "X" : "a link such as PIX+NV2", clip(text)));
      if (a != b) topology.link(a, b) = *link;
    }
  }
  return {};
}

Result<Nic> nic_of(const Field& map, std::size_t count) {
  Nic nic;
  BERTH_TRY(map.expect_keys({"name", "devices"}));
  BERTH_TRY(take_text(map, "name", nic.name));
  BERTH_ASSIGN(const Field devices, map.get("devices"));
  BERTH_ASSIGN(const auto levels, items_of(devices, count));
  for (const Field& field : levels) {
    BERTH_ASSIGN(const std::string text, field.text());
    const auto level = pcie_of(text);
    if (!level) return field.error("expected SYS, NODE, PHB, PXB, PIX, BOARD or ?");
    nic.devices.push_back(*level);
  }
  return nic;
}

bool all_told(const Topology& topology) {
  for (std::size_t a = 0; a < topology.devices.size(); ++a)
    for (std::size_t b = 0; b < topology.devices.size(); ++b)
      if (a != b && topology.link(a, b) == Link{}) return false;
  return true;
}

void write_device(JsonWriter& json, const Device& device) {
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) json.add(key, value);
  };
  json.object().add("index", device.index).add("uuid", device.uuid);
  add("pci", device.pci);
  add("model", device.model);
  if (device.vendor != Vendor::nvidia) add("vendor", kVendorNames.name(device.vendor));
  if (device.memory > 0) json.add("memory", device.memory);
  if (device.numa >= 0) json.add("numa", device.numa);
  add("cores", ranges_text(device.cores));
  add("mig_parent", device.mig_parent);
  if (device.health != Health::healthy) add("health", kHealthNames.name(device.health));
  add("unwell_because", device.unhealthy_reason);
  json.end();
}

void write_row(JsonWriter& json, const Topology& topology, std::size_t a) {
  json.array();
  for (std::size_t b = 0; b < topology.devices.size(); ++b)
    json.value(a == b ? "X" : link_text(topology.link(a, b), true));
  json.end();
}

void write_nic(JsonWriter& json, const Nic& nic) {
  json.object().add("name", nic.name).key("devices").array();
  for (const Pcie level : nic.devices) json.value(name(level));
  json.end().end();
}

/// A member whose `count` items stand on lines of their own.
template <class WriteItem>
void write_lines(JsonWriter& json, std::string_view key, std::size_t count, WriteItem write_item) {
  json.line(2).key(key).array();
  for (std::size_t i = 0; i < count; ++i) {
    json.line(4);
    write_item(i);
  }
  if (count > 0) json.line(2);
  json.end();
}

}  // namespace

Result<Topology> read_json(std::string_view text, const std::string& name) {
  if (text.size() > kMostText)
    return fail(ErrorKind::invalid, "{}:1: {} bytes, at most {}", clip(name), text.size(),
                kMostText);
  // YAML would take more than other readers of JSON do.
  if (const auto json = check_json(text); !json)
    return std::unexpected(within(clip(name), json.error()));
  Topology topology;
  BERTH_ASSIGN(const Field document, Field::parse(text, clip(name)));
  const auto inside = document.find("topology");
  if (inside) BERTH_TRY(document.expect_keys({"version", "topology", "islands"}));
  const Field root = inside.value_or(document);
  BERTH_TRY(root.expect_keys({"name", "source", "devices", "links", "nics", "partial", "notes"}));
  topology.name = clip(name);
  BERTH_TRY(take_text(root, "name", topology.name));
  BERTH_TRY(take_text(root, "source", topology.source));
  BERTH_ASSIGN(const Field devices, root.get("devices"));
  BERTH_ASSIGN(const auto maps, devices.items());
  if (maps.size() > kMostDevices)
    return devices.error(fmt::format("{} devices, at most {}", maps.size(), kMostDevices));
  for (const Field& map : maps) {
    BERTH_ASSIGN(Device device, device_of(map));
    topology.devices.push_back(std::move(device));
  }
  topology.links.resize(maps.size() * maps.size());
  if (const auto links = root.find("links")) BERTH_TRY(take_links(*links, topology));
  if (const auto nics = root.find("nics")) {
    BERTH_ASSIGN(const auto items, nics->items());
    for (const Field& item : items) {
      BERTH_ASSIGN(Nic nic, nic_of(item, maps.size()));
      topology.nics.push_back(std::move(nic));
    }
  }
  if (const auto notes = root.find("notes")) {
    BERTH_ASSIGN(const auto items, notes->items());
    for (const Field& item : items) {
      BERTH_ASSIGN(std::string note, item.text());
      topology.notes.push_back(std::move(note));
    }
  }
  BERTH_TRY(take_flag(root, "partial", topology.partial));
  topology.partial = topology.partial || !all_told(topology);
  if (const auto checked = check(topology); !checked) return root.error(checked.error());
  return in_order(std::move(topology));
}

std::string write_json(const Topology& topology) {
  JsonWriter json(JsonWriter::Style::spaced);
  const std::size_t devices = topology.devices.size();
  json.object().line(2).add("name", topology.name).line(2).add("source", topology.source);
  write_lines(json, "devices", devices,
              [&](std::size_t i) { write_device(json, topology.devices[i]); });
  write_lines(json, "links", devices, [&](std::size_t i) { write_row(json, topology, i); });
  write_lines(json, "nics", topology.nics.size(),
              [&](std::size_t i) { write_nic(json, topology.nics[i]); });
  json.line(2).add("partial", topology.partial);
  write_lines(json, "notes", topology.notes.size(),
              [&](std::size_t i) { json.value(topology.notes[i]); });
  return json.line(0).end().take() + "\n";
}

}  // namespace berth::topology
