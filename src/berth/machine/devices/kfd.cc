// AMD's cards as the kernel's KFD driver lists them, without any of AMD's libraries: nodes/N/ has
// gpu_id (0: a CPU), properties ("key value" lines), mem_banks/ and io_links/ with properties of
// their own. The keys are those of linux/drivers/gpu/drm/amd/amdkfd/kfd_topology.c, types and heaps
// those of kfd_crat.h.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "berth/base/text.h"
#include "berth/machine/devices/devices_pci.h"
#include "berth/machine/devices/devices_reading.h"

namespace berth::machine {
namespace {

constexpr std::uint64_t kXgmi = 11;                 // a link's type
constexpr std::uint64_t kOneHopWeight = 15;         // XGMI's weight of one hop
constexpr std::uint64_t kPublic = 1, kPrivate = 2;  // a bank's heap: memory of the card

struct CardName {
  std::uint64_t device_id;
  std::string_view model;
};
/// For GPUs that do not report a product name; from pciids.sourceforge.net.
constexpr CardName kCardNames[] = {
    {0x738c, "AMD Instinct MI100"},  {0x7408, "AMD Instinct MI250X"},
    {0x740c, "AMD Instinct MI250X"}, {0x740f, "AMD Instinct MI210"},
    {0x74a0, "AMD Instinct MI300A"}, {0x74a1, "AMD Instinct MI300X"},
    {0x74a5, "AMD Instinct MI325X"}, {0x74b5, "AMD Instinct MI300X VF"},
};

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return stop == end && error == std::errc() ? std::optional(number) : std::nullopt;
}

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
    if (const auto number = number_of(parts[1])) properties.emplace(parts[0], *number);
  }
  return properties;
}

class KfdReader {
 public:
  KfdReader(os::Env& env, const std::string& root, Reading& reading)
      : env_(env),
        root_(root),
        nodes_(root + "/sys/class/kfd/kfd/topology/nodes"),
        reading_(reading) {}

  void read() {
    for (const std::uint64_t node : numbered(nodes_)) read_node(node);
    for (const auto& [node, place] : places_) read_links(node, place);
    read_processes();
    if (!places_.empty()) reading_.sources.emplace_back("KFD");
  }

 private:
  std::string folder(std::uint64_t node) const { return fmt::format("{}/{}", nodes_, node); }

  /// nullopt with a note, unless the file is kept from us: then the device is another container's.
  std::optional<std::string> text(const std::string& path) {
    const auto text = env_.read_file(path, kLargestSysfsFile);
    if (text) return *text;
    if (text.error().kind != ErrorKind::denied)
      reading_.add_gap(fmt::format("KFD: {} cannot be read: {}", path, text.error().message));
    return std::nullopt;
  }

  /// Noted likewise; a directory that is absent is empty.
  std::vector<std::string> names(const std::string& directory) {
    auto names = env_.list(directory);
    if (names) return *std::move(names);
    if (names.error().kind != ErrorKind::denied && names.error().kind != ErrorKind::not_found)
      reading_.add_gap(fmt::format("KFD: {} cannot be read: {}", directory, names.error().message));
    return {};
  }

  /// The directory's entries that are numbers, in the order of those.
  std::vector<std::uint64_t> numbered(const std::string& directory) {
    std::vector<std::uint64_t> numbers;
    for (const std::string& name : names(directory))
      if (const auto number = number_of(name)) numbers.push_back(*number);
    std::ranges::sort(numbers);
    return numbers;
  }

  void read_node(std::uint64_t node) {
    const auto id = text(folder(node) + "/gpu_id");
    if (!id || trim(*id) == "0") return;
    const auto lines = text(folder(node) + "/properties");
    if (!lines) return;
    const Properties properties = parse_properties(*lines);
    if (value(properties, "simd_count") == 0) return;
    places_.emplace(node, reading_.devices.size());
    DeviceReading& seen = reading_.devices.emplace_back();
    seen.fabric = topology::FabricKind::xgmi;
    topology::Device& device = seen.device;
    device.vendor = topology::Vendor::amd;
    const std::size_t place = reading_.devices.size() - 1;
    device.index = place == 0 ? 0 : reading_.devices[place - 1].device.index + 1;
    device.uuid = uuid_of(properties, device.index);
    device.pci = address_of(properties);
    device.memory = memory_of(node);
    device.model = model_of(node, properties, device.pci);
    read_errors(device);
    ids_of_cards_.emplace(trim(*id), place);
  }

  /// What ROCR_VISIBLE_DEVICES takes. Consumer cards have none.
  std::string uuid_of(const Properties& properties, int index) {
    const std::uint64_t id = value(properties, "unique_id");
    if (id != 0) return fmt::format("GPU-{:016x}", id);
    reading_.add_gap(fmt::format("GPU{}: has no UUID", index));
    return fmt::format("gpu-{}", index);
  }

  /// location_id is bus << 8 | device << 3 | function.
  static std::string address_of(const Properties& properties) {
    const std::uint64_t at = value(properties, "location_id");
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", value(properties, "domain"), at >> 8 & 0xff,
                       at >> 3 & 0x1f, at & 7);
  }

  std::string model_of(std::uint64_t node, const Properties& properties, const std::string& pci) {
    const auto product = env_.read_file(pci_folder(pci) + "/product_name", kLargestSysfsFile);
    if (product && !trim(*product).empty()) return std::string(trim(*product));
    const auto known =
        std::ranges::find(kCardNames, value(properties, "device_id"), &CardName::device_id);
    if (known != std::end(kCardNames)) return std::string(known->model);
    const auto name = env_.read_file(folder(node) + "/name", kLargestSysfsFile);
    return name ? std::string(trim(*name)) : "";
  }

  /// ras/umc_err_count and its like, one for each block of the card, with a line "ue: 0" for its
  /// uncorrected errors.
  void read_errors(topology::Device& device) {
    const std::string folder = pci_folder(device.pci) + "/ras";
    std::uint64_t errors = 0;
    for (const std::string& name : names(folder)) {
      if (!name.ends_with("_err_count")) continue;
      const std::string counts = text(folder + "/" + name).value_or("");
      for (const auto line : split(counts, '\n'))
        if (const auto parts = words(line); parts.size() == 2 && parts[0] == "ue:")
          errors += number_of(parts[1]).value_or(0);
    }
    if (errors == 0) return;
    device.health = topology::Health::unhealthy;
    device.unhealthy_reason = fmt::format("{} uncorrected ECC errors", errors);
  }

  /// proc/PID/vram_ID: bytes that the process has of the card of this gpu_id.
  void read_processes() {
    const std::string processes = root_ + "/sys/class/kfd/kfd/proc";
    for (const std::uint64_t pid : numbered(processes))
      for (const auto& [id, place] : ids_of_cards_) {
        const auto bytes =
            env_.read_file(fmt::format("{}/{}/vram_{}", processes, pid, id), kLargestSysfsFile);
        const auto memory = bytes ? number_of(trim(*bytes)) : std::nullopt;
        if (memory.value_or(0) > 0)
          reading_.devices[place].processes.push_back({static_cast<pid_t>(pid), bounded(*memory)});
      }
  }

  static std::int64_t bounded(std::uint64_t bytes) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, INT64_MAX));
  }

  std::string pci_folder(const std::string& pci) const {
    return root_ + "/sys/bus/pci/devices/" + pci;
  }

  std::int64_t memory_of(std::uint64_t node) {
    std::uint64_t bytes = 0;
    const std::string banks = folder(node) + "/mem_banks";
    for (const std::uint64_t bank : numbered(banks)) {
      const auto lines = text(fmt::format("{}/{}/properties", banks, bank));
      if (!lines) continue;
      const Properties properties = parse_properties(*lines);
      const std::uint64_t heap = value(properties, "heap_type");
      if (heap == kPublic || heap == kPrivate) bytes += value(properties, "size_in_bytes");
    }
    return bounded(bytes);
  }

  void read_links(std::uint64_t node, std::size_t place) {
    // A peer that is reached over PCIe alone stands in p2p_links, XGMI in either by kernel.
    for (const std::string_view kind : {"io_links", "p2p_links"}) {
      const std::string links = fmt::format("{}/{}", folder(node), kind);
      for (const std::uint64_t link : numbered(links))
        if (const auto lines = text(fmt::format("{}/{}/properties", links, link)))
          read_link(parse_properties(*lines), place);
        else
          reading_.devices[place].links_told = false;
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
  const std::string& root_;
  const std::string nodes_;
  Reading& reading_;
  std::map<std::uint64_t, std::size_t> places_;      // in Reading::devices, by node
  std::map<std::string, std::size_t> ids_of_cards_;  // in Reading::devices, by gpu_id
};

}  // namespace

void read_kfd(os::Env& env, const std::string& root, Reading& reading) {
  KfdReader(env, root, reading).read();
}

}  // namespace berth::machine
