#include "berth/machine/block.h"

#include <span>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/machine/block_words.h"

namespace berth::machine {
namespace {

constexpr std::int64_t kCoreMost = 1 << 20;
constexpr std::int64_t kSlotsMost = 1 << 20;

bool needs_escape(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '%' || c == ',' || c == '\x7f';
}

bool read_resources(std::string_view text, Resources& resources) {
  if (text.empty()) return true;
  for (const auto part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto resource = part.substr(0, equals);
    std::int64_t amount = 0;
    if (equals == std::string_view::npos || !valid_resource_name(resource)) return false;
    if (!read_number(part.substr(equals + 1), 1, INT64_MAX, amount)) return false;
    resources.set(resource, amount);
  }
  return true;
}

bool read_cores(std::string_view text, std::vector<CoreShare>& cores) {
  if (text.empty()) return true;
  for (const auto part : split(text, ',')) {
    const auto fields = split(part, ':');
    CoreShare share;
    const int least = cores.empty() ? 0 : cores.back().core + 1;
    if (fields.size() != 3 || !read_number(fields[0], least, kCoreMost, share.core) ||
        !read_number(fields[1], 0, kCoreMost, share.node) ||
        !read_number(fields[2], 1, 1000, share.milli))
      return false;
    cores.push_back(share);
  }
  return true;
}

std::optional<DeviceShare> read_device(std::string_view text) {
  constexpr std::size_t kParts = 7;
  DeviceShare share;
  const auto fields = split(text, ':');
  if (fields.size() < kParts + 1) return std::nullopt;
  std::size_t before_uuid = kParts;
  for (std::size_t i = 0; i < kParts; ++i) before_uuid += fields[i].size();
  auto uuid = unescaped(text.substr(before_uuid));
  const bool good = uuid && read_number(fields[0], 0, kCoreMost, share.index) &&
                    read_number(fields[1], -1, kCoreMost, share.node) &&
                    read_number(fields[2], 0, INT64_MAX, share.memory) &&
                    read_number(fields[3], 0, kSlotsMost, share.slots) &&
                    read_number(fields[4], 0, kSlotsMost, share.size) &&
                    read_number(fields[5], 0, 1, share.whole) &&
                    read_number(fields[6], 0, 1, share.vendor);
  if (!good) return std::nullopt;
  share.uuid = *std::move(uuid);
  return share;
}

bool read_devices(std::string_view text, std::vector<DeviceShare>& devices) {
  if (text.empty()) return true;
  for (const auto part : split(text, ',')) {
    auto share = read_device(part);
    if (!share || devices.size() == topology::kMostDevices) return false;
    devices.push_back(*std::move(share));
  }
  return true;
}

void write_devices(JsonWriter& json, std::span<const DeviceShare> devices) {
  json.array();
  for (const DeviceShare& device : devices) {
    json.object().add("uuid", device.uuid).add("index", device.index);
    json.add("memory", device.memory).add("slots", device.slots);
    json.add("whole", device.whole).end();
  }
  json.end();
}

}  // namespace

void append_escaped(std::string& text, std::string_view label) {
  for (const char c : label) {
    if (needs_escape(c))
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      text += c;
  }
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string label;
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text.front() != '%') {
      label += text.front();
      continue;
    }
    unsigned byte = 0;
    if (text.size() < 3) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + 3, byte, 16);
    if (error != std::errc() || end != text.data() + 3) return std::nullopt;
    label += static_cast<char>(byte);
    text.remove_prefix(2);
  }
  if (label.size() > kLabelMost) return std::nullopt;
  return label;
}

void append_block(std::string& text, const Block& block) {
  std::size_t list = text.size();
  block.resources.each([&](std::string_view resource, std::int64_t amount) {
    text += resource;
    text += '=';
    append_number(text, amount, ',');
  });
  if (text.size() > list) text.pop_back();
  text += ' ';
  list = text.size();
  for (const auto& share : block.cores) {
    append_number(text, share.core, ':');
    append_number(text, share.node, ':');
    append_number(text, share.milli, ',');
  }
  if (text.size() > list) text.pop_back();
  text += ' ';
  list = text.size();
  for (const auto& share : block.devices) {
    for (const std::int64_t number :
         {std::int64_t{share.index}, std::int64_t{share.node}, share.memory,
          std::int64_t{share.slots}, std::int64_t{share.size}, std::int64_t{share.whole},
          static_cast<std::int64_t>(share.vendor)})
      append_number(text, number, ':');
    append_escaped(text, share.uuid);
    text += ',';
  }
  if (text.size() > list) text.pop_back();
}

std::string write_block(const Block& block) {
  std::string text;
  append_block(text, block);
  return text;
}

Result<Block> read_block(std::string_view text) {
  Block block;
  const auto fields = split(text, ' ');
  if (fields.size() != 3 || !read_resources(fields[0], block.resources) ||
      !read_cores(fields[1], block.cores) || !read_devices(fields[2], block.devices))
    return fail(ErrorKind::invalid, "'{}' is not a part of a machine", clip(text));
  return block;
}

std::string to_json(const Block& block) {
  JsonWriter json;
  json.object().key("resources").raw(to_json(block.resources));
  json.key("cores").array();
  for (const auto& share : block.cores)
    json.object().add("core", share.core).add("node", share.node).add("milli", share.milli).end();
  json.end();
  if (!block.devices.empty()) write_devices(json.key("devices"), block.devices);
  return json.end().take();
}

}  // namespace berth::machine
