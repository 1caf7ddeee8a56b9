// AMD's cards as the kernel's KFD driver lists them, without any of AMD's libraries: nodes/N/ has
// gpu_id (0: a CPU), properties ("key value" lines), mem_banks/ and io_links/ with properties of
// their own. The keys are those of linux/drivers/gpu/drm/amd/amdkfd/kfd_topology.c, types and heaps
// those of kfd_crat.h.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "berth/base/text.h"
#include "berth/machine/devices_pci.h"
#include "berth/machine/devices_reading.h"

namespace berth::machine {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;
constexpr std::uint64_t kXgmi = 11;                 // a link's type
constexpr std::uint64_t kOneHopWeight = 15;         // XGMI's weight of one hop
constexpr std::uint64_t kPublic = 1, kPrivate = 2;  // a bank's heap: memory of the card

using Properties = std::map<std::string, std::uint64_t, std::less<>>;

std::uint64_t value(const Properties& properties, std::string_view key) {
  const auto at = properties.find(key);
  return at == properties.end() ? 0 : at->second;
}

/// Lines that are no "key number" are of no use and are passed over.
Properties parse_properties(std::string_view text) {
  Properties properties;
  for (const auto line : split(text, '\n')) {
    const auto parts = words(line);
    if (parts.size() != 2) continue;
    std::uint64_t number = 0;
    const auto end = parts[1].data() + parts[1].size();
    const auto [stop, error] = std::from_chars(parts[1].data(), end, number);
    if (stop == end && error == std::errc()) properties.emplace(parts[0], number);
  }
  return properties;
}

/// The directory's entries that are numbers, in the order of those.
std::vector<std::uint64_t> numbered(os::Env& env, const std::string& directory) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : env.list(directory).value_or(std::vector<std::string>())) {
    std::uint64_t number = 0;
    const auto end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data(), end, number);
    if (stop == end && error == std::errc()) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

class KfdReader {
 public:
  KfdReader(os::Env& env, const std::string& root, Reading& reading)
      : env_(env), nodes_(root + "/sys/class/kfd/kfd/topology/nodes"), reading_(reading) {}

  void read() {
    for (const std::uint64_t node : numbered(env_, nodes_)) read_node(node);
    for (const auto& [node, place] : places_) read_links(node, place);
    if (!places_.empty()) reading_.sources.emplace_back("KFD");
  }

 private:
  std::string folder(std::uint64_t node) const { return fmt::format("{}/{}", nodes_, node); }

  /// nullopt with a note, unless the file is kept from us: then the device is another container's.
  std::optional<std::string> text(const std::string& path) {
    const auto text = env_.read_file(path, kMostBytes);
    if (text) return *text;
    if (text.error().kind != ErrorKind::denied)
      reading_.lack(fmt::format("KFD: {} cannot be read: {}", path, text.error().message));
    return std::nullopt;
  }

  void read_node(std::uint64_t node) {
    const auto id = text(folder(node) + "/gpu_id");
    if (!id || trim(*id) == "0") return;
    const auto lines = text(folder(node) + "/properties");
    if (!lines) return;
    const Properties properties = parse_properties(*lines);
    if (value(properties, "simd_count") == 0) return;
    places_.emplace(node, reading_.devices.size());
    SeenDevice& seen = reading_.devices.emplace_back();
    seen.fabric = topology::FabricKind::xgmi;
    topology::Device& device = seen.device;
    const std::size_t place = reading_.devices.size() - 1;
    device.index = place == 0 ? 0 : reading_.devices[place - 1].device.index + 1;
    device.uuid = uuid_of(properties, device.index);
    device.pci = address_of(properties);
    device.memory = memory_of(node);
    if (const auto name = env_.read_file(folder(node) + "/name", kMostBytes))
      device.model = trim(*name);
  }

  /// What ROCR_VISIBLE_DEVICES takes. Older kernels give the partitions of a card one id: only the
  /// first can then be told by it.
  std::string uuid_of(const Properties& properties, int index) {
    const std::uint64_t id = value(properties, "unique_id");
    if (id != 0 && ids_.insert(id).second) return fmt::format("GPU-{:016x}", id);
    reading_.lack(fmt::format("GPU{}: no UUID of its own", index));
    return fmt::format("gpu-{}", index);
  }

  /// location_id is bus << 8 | device << 3 | function.
  static std::string address_of(const Properties& properties) {
    const std::uint64_t at = value(properties, "location_id");
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", value(properties, "domain"), at >> 8 & 0xff,
                       at >> 3 & 0x1f, at & 7);
  }

  std::int64_t memory_of(std::uint64_t node) {
    std::uint64_t bytes = 0;
    const std::string banks = folder(node) + "/mem_banks";
    for (const std::uint64_t bank : numbered(env_, banks)) {
      const auto lines = text(fmt::format("{}/{}/properties", banks, bank));
      if (!lines) continue;
      const Properties properties = parse_properties(*lines);
      const std::uint64_t heap = value(properties, "heap_type");
      if (heap == kPublic || heap == kPrivate) bytes += value(properties, "size_in_bytes");
    }
    return static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, INT64_MAX));
  }

  void read_links(std::uint64_t node, std::size_t place) {
    // A peer that is reached over PCIe alone stands in p2p_links, XGMI in either by kernel.
    for (const std::string_view kind : {"io_links", "p2p_links"}) {
      const std::string links = fmt::format("{}/{}", folder(node), kind);
      for (const std::uint64_t link : numbered(env_, links))
        if (const auto lines = text(fmt::format("{}/{}/properties", links, link)))
          read_link(parse_properties(*lines), place);
    }
  }

  /// An XGMI link of more than one hop passes through other cards and joins nothing by itself. The
  /// kernel gives the bandwidth of all the links of a pair as the most, of one as the least.
  void read_link(const Properties& properties, std::size_t place) {
    const auto other = places_.find(value(properties, "node_to"));
    if (value(properties, "type") != kXgmi || other == places_.end() || other->second == place ||
        value(properties, "weight") > kOneHopWeight)
      return;
    const std::uint64_t one = value(properties, "min_bandwidth");
    const std::uint64_t all = value(properties, "max_bandwidth");
    const std::uint64_t links = one == 0 ? 1 : std::max<std::uint64_t>(all / one, 1);
    int& known = reading_.devices[place].direct[other->second];
    known =
        std::max(known, static_cast<int>(std::min<std::uint64_t>(links, topology::kMostFabric)));
  }

  os::Env& env_;
  const std::string nodes_;
  Reading& reading_;
  std::map<std::uint64_t, std::size_t> places_;  // in Reading::devices, by node
  std::set<std::uint64_t> ids_;
};

}  // namespace

void read_kfd(os::Env& env, const std::string& root, Reading& reading) {
  KfdReader(env, root, reading).read();
}

}  // namespace berth::machine
