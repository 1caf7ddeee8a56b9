#include "berth/machine/ledger_file.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>

#include "berth/base/text.h"

namespace berth::machine {
namespace {

constexpr std::string_view kTitle = "berth-ledger 2 ";
constexpr std::size_t kFields = 11;
constexpr std::int64_t kLatestMs = 9'000'000'000'000;  // the year 2255; in ns it still fits
constexpr std::int64_t kCoreMost = 1 << 20;
constexpr std::int64_t kSlotsMost = 1 << 20;

bool needs_escape(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '%' || c == ',' || c == '\x7f';
}

void append(std::string& text, std::int64_t number, char after) {
  const fmt::format_int digits(number);
  text.append(digits.data(), digits.size());
  text += after;
}

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

/// The whole of `text` as a number in [least, most].
template <class Number>
bool read_number(std::string_view text, std::int64_t least, std::int64_t most, Number& number) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (value < least || value > most) return false;
  number = static_cast<Number>(value);
  return true;
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

/// Three fields: resources, cores, devices.
bool read_parts(std::span<const std::string_view> fields, Block& block) {
  return read_resources(fields[0], block.resources) && read_cores(fields[1], block.cores) &&
         read_devices(fields[2], block.devices);
}

std::optional<LedgerEntry> read_entry(std::string_view line, uid_t user) {
  const auto fields = split(line, ' ');
  if (fields.size() != kFields || (fields[0] != "held" && fields[0] != "waiting"))
    return std::nullopt;
  LedgerEntry entry;
  entry.user = user;
  entry.waiting = fields[0] == "waiting";
  std::int64_t since_ms = 0;
  auto label = unescaped(fields[7]);
  const bool good =
      label && read_number(fields[1], 1, INT64_MAX, entry.id.value) &&
      read_number(fields[2], 1, std::numeric_limits<pid_t>::max(), entry.holder.pid) &&
      read_number(fields[3], 0, INT64_MAX, entry.holder.started_at) &&
      read_number(fields[4], 0, kLatestMs, since_ms) &&
      read_number(fields[5], INT64_MIN, INT64_MAX, entry.priority) &&
      read_number(fields[6], 0, kLatestMs, entry.sequence) &&
      read_parts(std::span(fields).subspan(8), entry.block);
  if (!good) return std::nullopt;
  entry.label = *std::move(label);
  entry.since = wall_from_ms(since_ms);
  return entry;
}

void append_block(std::string& text, const Block& block) {
  std::size_t list = text.size();
  block.resources.each([&](std::string_view resource, std::int64_t amount) {
    text += resource;
    text += '=';
    append(text, amount, ',');
  });
  if (text.size() > list) text.pop_back();
  text += ' ';
  list = text.size();
  for (const auto& share : block.cores) {
    append(text, share.core, ':');
    append(text, share.node, ':');
    append(text, share.milli, ',');
  }
  if (text.size() > list) text.pop_back();
  text += ' ';
  list = text.size();
  for (const auto& share : block.devices) {
    for (const std::int64_t number :
         {std::int64_t{share.index}, std::int64_t{share.node}, share.memory,
          std::int64_t{share.slots}, std::int64_t{share.size}, std::int64_t{share.whole},
          static_cast<std::int64_t>(share.vendor)})
      append(text, number, ':');
    append_escaped(text, share.uuid);
    text += ',';
  }
  if (text.size() > list) text.pop_back();
}

void append_entry(std::string& text, const LedgerEntry& entry) {
  text += entry.waiting ? "waiting " : "held ";
  for (const std::int64_t number :
       {entry.id.value, std::int64_t{entry.holder.pid}, entry.holder.started_at, to_ms(entry.since),
        entry.priority, entry.sequence})
    append(text, number, ' ');
  append_escaped(text, entry.label);
  text += ' ';
  append_block(text, entry.block);
  text += '\n';
}

}  // namespace

std::string write_block(const Block& block) {
  std::string text;
  append_block(text, block);
  return text;
}

Result<Block> read_block(std::string_view text) {
  Block block;
  const auto fields = split(text, ' ');
  if (fields.size() != 3 || !read_parts(fields, block))
    return fail(ErrorKind::invalid, "'{}' is no part of a machine", clip(text));
  return block;
}

std::string write_ledger_file(std::string_view boot, std::span<const LedgerEntry> entries) {
  std::string text = fmt::format("{}{}\n", kTitle, boot);
  for (const auto& entry : entries) append_entry(text, entry);
  return text;
}

Result<std::vector<LedgerEntry>> read_ledger_file(std::string_view text, std::string_view boot,
                                                  uid_t user) {
  const auto malformed = [](std::size_t line) {
    return fail(ErrorKind::corrupt, "line {} is no part of a ledger", line);
  };
  if (text.size() > kLedgerFileMost || !text.starts_with(kTitle) || !text.ends_with('\n'))
    return malformed(1);
  text.remove_suffix(1);
  const auto lines = split(text, '\n');
  if (lines[0].substr(kTitle.size()) != boot) return std::vector<LedgerEntry>{};
  if (lines.size() > kLedgerEntriesMost + 1) return malformed(kLedgerEntriesMost + 2);
  std::vector<LedgerEntry> entries;
  entries.reserve(lines.size() - 1);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto entry = read_entry(lines[i], user);
    if (!entry) return malformed(i + 1);
    entries.push_back(*std::move(entry));
  }
  return entries;
}

}  // namespace berth::machine
