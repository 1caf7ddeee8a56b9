#include "berth/topology/reading.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "berth/base/text.h"

namespace berth::topology {
namespace {

constexpr std::size_t kMostSource = 500;

/// Length of the ANSI code at the front of `text`, 0 where there is none.
std::size_t ansi_length(std::string_view text) {
  constexpr std::size_t kCharset = 3;  // "ESC ( B", which tput sgr0 prints
  const bool escaped = text.starts_with('\x1b');
  if (escaped && text.size() >= kCharset && text[1] == '(') return kCharset;
  const std::size_t bracket = escaped ? 1 : 0;
  if (bracket >= text.size() || text[bracket] != '[') return bracket;
  const auto end = text.find_first_not_of("0123456789;?", bracket + 1);
  if (end == std::string_view::npos) return escaped ? text.size() : 0;
  return escaped || text[end] == 'm' ? end + 1 : 0;
}

/// Blanks of Unicode that copying from a page or a document puts in place of plain ones, and marks
/// of no width.
struct UnicodeBlank {
  std::string_view bytes, plain;
};
constexpr UnicodeBlank kUnicodeBlanks[] = {
    {"\xc2\xa0", " "},      // no-break space
    {"\xe2\x80\xaf", " "},  // narrow no-break space
    {"\xe2\x80\x87", " "},  // figure space
    {"\xe2\x80\x83", " "},  // em space
    {"\xe3\x80\x80", " "},  // ideographic space
    {"\xe2\x80\x8b", ""},   // zero-width space
    {"\xef\xbb\xbf", ""},   // byte order mark
};

std::string plain_text(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto* const blank = std::ranges::find_if(
        kUnicodeBlanks, [&](const UnicodeBlank& each) { return text.starts_with(each.bytes); });
    if (blank != std::end(kUnicodeBlanks)) {
      plain += blank->plain;
      text.remove_prefix(blank->bytes.size());
      continue;
    }
    const std::size_t length = ansi_length(text);
    if (length == 0) plain += text.front();
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return plain;
}

bool unknown(const Link& link) {
  return link.pcie == Pcie::unknown && link.fabric == 0;
}

}  // namespace

Result<Text> text_of(std::string_view raw, const std::string& name) {
  constexpr std::string_view kSource = "source:";
  if (raw.size() > kMostText)
    return refuse(name, 1, fmt::format("{} bytes, at most {}", raw.size(), kMostText));
  Text text;
  const std::string plain = plain_text(raw);
  const auto lines = split(plain, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with('#')) {
      text.lines.push_back({std::string(lines[i]), static_cast<int>(i) + 1, i + 1 == lines.size()});
      continue;
    }
    const auto comment = trim(lines[i].substr(1));
    if (text.source.empty() && comment.starts_with(kSource))
      text.source = clip(trim(comment.substr(kSource.size())), kMostSource);
  }
  return text;
}

std::unexpected<Error> refuse(const std::string& name, int line, std::string_view message) {
  return fail(ErrorKind::invalid, "{}:{}: {}", clip(name), line, message);
}

Topology bare(const std::string& name, const std::string& source, std::span<const int> indices) {
  Topology topology;
  topology.name = clip(name);
  topology.source = source;
  for (const int index : indices) {
    Device& device = topology.devices.emplace_back();
    device.index = index;
    device.uuid = fmt::format("gpu-{}", index);
  }
  topology.links.resize(indices.size() * indices.size());
  return topology;
}

Topology in_order(Topology listed) {
  std::vector<std::size_t> order(listed.devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t at) { return listed.devices[at].index; });
  if (std::ranges::is_sorted(order)) return listed;
  Topology sorted = listed;
  for (std::size_t a = 0; a < order.size(); ++a) {
    sorted.devices[a] = listed.devices[order[a]];
    for (std::size_t b = 0; b < order.size(); ++b)
      sorted.link(a, b) = listed.link(order[a], order[b]);
    for (std::size_t nic = 0; nic < listed.nics.size(); ++nic)
      sorted.nics[nic].devices[a] = listed.nics[nic].devices[order[a]];
  }
  return sorted;
}

Result<Topology> finished(Topology topology) {
  const std::size_t count = topology.devices.size();
  std::size_t pairs = 0, distances = 0;
  for (std::size_t a = 0; a < count; ++a) {
    topology.link(a, a) = {};
    for (std::size_t b = a + 1; b < count; ++b) {
      Link& one = topology.link(a, b);
      Link& other = topology.link(b, a);
      if (unknown(one)) one = other;
      if (unknown(other)) other = one;
      if (unknown(one)) ++pairs;
    }
  }
  for (const Nic& nic : topology.nics)
    for (const Pcie level : nic.devices)
      if (level == Pcie::unknown) ++distances;
  if (pairs > 0)
    topology.notes.push_back(fmt::format("{} pairs: their links are not reported", pairs));
  if (distances > 0)
    topology.notes.push_back(fmt::format("{} distances to NICs are not reported", distances));
  topology.partial = topology.partial || pairs > 0 || distances > 0;
  if (const auto checked = check(topology); !checked)
    return std::unexpected(within(topology.name, checked.error()));
  return in_order(std::move(topology));
}

}  // namespace berth::topology
