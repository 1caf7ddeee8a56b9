#include "berth/machine/capacity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "berth/base/checked.h"
#include "berth/base/document.h"
#include "berth/base/text.h"
#include "berth/machine/enclosing_task.h"
#include "berth/machine/groups/cgroup_paths.h"

namespace berth::machine {
namespace {

constexpr std::size_t kLargestCapacityFile = 1 << 20;
constexpr int kMostCores = 1 << 16;
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMilliPerCore = 1000;
constexpr std::int64_t kDefaultFloorPart = 10;  // of the volume is kept free: a tenth
constexpr std::int64_t kInodesPart = 100;       // of the inodes must be left: a hundredth

struct Limit {
  std::int64_t amount = kUnlimited;
  std::string from;

  void lower_to(std::int64_t other, std::string_view what, std::string_view group) {
    if (other < amount) *this = {other, fmt::format("{} {}", what, group)};
  }
};

/// Reads what the kernel shows below a root and notes what it cannot make sense of.
struct Reader {
  os::Env& env;
  const std::string& root;
  std::vector<std::string>& notes;

  /// What `parse` makes of the file's text; nullopt where it is absent, unreadable or malformed.
  template <class Parse>
  auto read(const std::string& path, Parse parse) const -> decltype(parse(std::string_view())) {
    const auto text = env.read_file(path, kLargestCapacityFile);
    if (!text && text.error().kind != ErrorKind::not_found)
      notes.push_back(fmt::format("{} cannot be read: {}", path, text.error().message));
    if (!text) return std::nullopt;
    auto value = parse(trim(*text));
    if (!value) notes.push_back(fmt::format("{} is not understood: '{}'", path, clip(trim(*text))));
    return value;
  }
};

/// A whole number of at least 0; one that does not fit 64 bits is as good as unlimited.
std::optional<std::int64_t> parse_limit(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.starts_with('-')) return std::nullopt;
  if (error == std::errc::result_out_of_range) return kUnlimited;
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> parse_limit_or_max(std::string_view text) {
  return text == "max" ? kUnlimited : parse_limit(text);
}

/// The number after `key` in a file of "key number" lines.
std::optional<std::int64_t> parse_keyed(std::string_view text, std::string_view key) {
  for (const auto line : split(text, '\n'))
    if (const auto parts = words(line); parts.size() >= 2 && parts[0] == key)
      return parse_limit(parts[1]);
  return std::nullopt;
}

/// "0-3,8,10-11", ascending; empty for an empty list. Cores are below 2^16.
std::optional<std::vector<int>> parse_cores(std::string_view text) {
  std::vector<int> cores;
  if (text.empty()) return cores;
  for (const auto range : split(text, ',')) {
    const auto dash = range.find('-');
    const auto first = parse_limit(range.substr(0, dash));
    const auto last = dash == range.npos ? first : parse_limit(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMostCores) return std::nullopt;
    if (static_cast<std::int64_t>(cores.size()) + *last - *first >= kMostCores) return std::nullopt;
    for (auto core = *first; core <= *last; ++core) cores.push_back(static_cast<int>(core));
  }
  std::ranges::sort(cores);
  cores.erase(std::ranges::unique(cores).begin(), cores.end());
  return cores;
}

std::vector<int> common(std::span<const int> a, std::span<const int> b) {
  std::vector<int> result;
  std::ranges::set_intersection(a, b, std::back_inserter(result));
  return result;
}

/// Thousandths of a core, rounded down, at least one; nullopt where a figure makes no sense.
std::optional<std::int64_t> quota_milli(std::int64_t quota_us, std::int64_t period_us) {
  if (period_us <= 0) return std::nullopt;
  const auto milli = checked_mul(quota_us, kMilliPerCore);
  return milli ? std::max<std::int64_t>(*milli / period_us, 1) : kUnlimited;
}

/// cpu.max of v2: "max 100000", "150000 100000".
std::optional<std::int64_t> parse_cpu_max(std::string_view text) {
  const auto parts = words(text);
  if (parts.size() != 2) return std::nullopt;
  const auto quota_us = parse_limit_or_max(parts[0]);
  const auto period_us = parse_limit(parts[1]);
  return quota_us && period_us ? quota_milli(*quota_us, *period_us) : std::nullopt;
}

std::optional<std::int64_t> read_quota_v1(const Reader& reader, const std::string& directory) {
  const auto quota_us = reader.read(directory + "/cpu.cfs_quota_us", [](std::string_view text) {
    return text == "-1" ? kUnlimited : parse_limit(text);
  });
  if (!quota_us || *quota_us == kUnlimited) return quota_us;
  return reader.read(directory + "/cpu.cfs_period_us", [&](std::string_view text) {
    const auto period_us = parse_limit(text);
    return period_us ? quota_milli(*quota_us, *period_us) : std::nullopt;
  });
}

void lower_cpu(const Reader& reader, const CgroupHierarchy& hierarchy, Limit& cpu) {
  for (const auto& [group, directory] : hierarchy.groups) {
    const auto quota = hierarchy.version == 1 ? read_quota_v1(reader, directory)
                                              : reader.read(directory + "/cpu.max", parse_cpu_max);
    cpu.lower_to(quota.value_or(kUnlimited), "cgroup quota of", group);
  }
}

struct MemoryFile {
  int version;
  std::string_view file, what;
};
constexpr std::array<MemoryFile, 3> kMemoryFiles{{{1, "memory.limit_in_bytes", "cgroup limit of"},
                                                  {2, "memory.max", "cgroup limit of"},
                                                  {2, "memory.high", "cgroup memory.high of"}}};

void lower_memory(const Reader& reader, const CgroupHierarchy& hierarchy, Limit& memory) {
  for (const auto& [group, directory] : hierarchy.groups)
    for (const auto& [version, file, what] : kMemoryFiles) {
      if (version != hierarchy.version) continue;
      const auto bytes = reader.read(fmt::format("{}/{}", directory, file), parse_limit_or_max);
      memory.lower_to(bytes.value_or(kUnlimited), what, group);
    }
  if (hierarchy.version != 1) return;
  // v1 sums up for us what ancestors allow that lie above the mount, where we cannot look.
  const auto& [group, directory] = hierarchy.groups.front();
  const auto bytes = reader.read(directory + "/memory.stat", [](std::string_view text) {
    return parse_keyed(text, "hierarchical_memory_limit");
  });
  memory.lower_to(bytes.value_or(kUnlimited), "cgroup limit at or above", group);
}

struct CpuSet {
  std::vector<int> cores;  // none: not known
  std::string from;
};

/// Of the nearest group that says: an empty file is one that takes over its parent's.
CpuSet read_cpuset(const Reader& reader, const CgroupHierarchy& hierarchy) {
  constexpr std::array<std::pair<int, std::string_view>, 3> kFiles{
      {{1, "cpuset.effective_cpus"}, {1, "cpuset.cpus"}, {2, "cpuset.cpus.effective"}}};
  for (const auto& [group, directory] : hierarchy.groups)
    for (const auto& [version, file] : kFiles) {
      if (version != hierarchy.version) continue;
      auto cores = reader.read(fmt::format("{}/{}", directory, file), parse_cores);
      if (cores && !cores->empty()) return {*std::move(cores), fmt::format("cpuset of {}", group)};
    }
  return {};
}

/// What both have; all of `cores` where that is nothing, for we do run somewhere.
std::vector<int> narrowed(const std::vector<int>& cores, const std::vector<int>& to,
                          std::string_view what, std::vector<std::string>& notes) {
  std::vector<int> both = common(cores, to);
  if (!both.empty() || to.empty()) return both.empty() ? cores : both;
  notes.push_back(fmt::format("{} has none of the cores that this process runs on: ignored", what));
  return cores;
}

/// Fills cores, cores_online, and cpu_from as far as whole cores decide.
Status find_cores(const Reader& reader, const CgroupPaths& paths, Capacity& capacity) {
  const auto* hierarchy = paths.find("cpuset");
  const CpuSet set = hierarchy ? read_cpuset(reader, *hierarchy) : CpuSet{};
  std::vector<int> affinity = reader.env.affinity();
  std::vector<int> online =
      reader.read(reader.root + "/sys/devices/system/cpu/online", parse_cores).value_or(affinity);
  if (online.empty()) online = affinity.empty() ? set.cores : affinity;
  if (affinity.empty()) affinity = online;
  if (affinity.empty())
    return fail(ErrorKind::io, "the kernel does not say which cores this process may run on");
  capacity.cores = narrowed(affinity, online, "the list of online cores", capacity.notes);
  capacity.cores = narrowed(capacity.cores, set.cores, set.from, capacity.notes);
  capacity.cores_online = static_cast<int>(online.size());
  capacity.cpu_from = capacity.cores == online                      ? "online cores"
                      : capacity.cores == common(online, set.cores) ? set.from
                                                                    : "affinity";
  return {};
}

/// Our cores by node; those that no node has, or all where there is no NUMA, are on node 0.
std::vector<NumaNode> find_nodes(const Reader& reader, std::vector<int> cores) {
  constexpr std::string_view kPrefix = "node";
  const std::string directory = reader.root + "/sys/devices/system/node";
  std::map<int, std::vector<int>> nodes;
  const auto place = [&](std::int64_t node, const std::vector<int>& ours) {
    auto& on_it = nodes[static_cast<int>(node)];
    on_it.insert(on_it.end(), ours.begin(), ours.end());
  };
  for (const auto& entry : reader.env.list(directory).value_or(std::vector<std::string>())) {
    if (!entry.starts_with(kPrefix)) continue;
    const auto number = parse_limit(std::string_view(entry).substr(kPrefix.size()));
    if (!number || *number >= kMostCores) continue;
    const auto listed = reader.read(fmt::format("{}/{}/cpulist", directory, entry), parse_cores);
    const auto ours = common(cores, listed.value_or(std::vector<int>()));
    std::erase_if(cores, [&](int core) { return std::ranges::binary_search(ours, core); });
    place(*number, ours);
  }
  place(0, cores);
  std::vector<NumaNode> result;
  for (auto& [node, on_it] : nodes) {
    std::ranges::sort(on_it);
    if (!on_it.empty()) result.push_back({node, std::move(on_it)});
  }
  return result;
}

void find_cpu(const Reader& reader, const CgroupPaths& paths, Capacity& capacity) {
  Limit cpu{static_cast<std::int64_t>(capacity.cores.size()) * kMilliPerCore, capacity.cpu_from};
  if (const auto* hierarchy = paths.find("cpu")) lower_cpu(reader, *hierarchy, cpu);
  capacity.total.set(Known::cpu, cpu.amount);
  capacity.cpu_from = std::move(cpu.from);
}

void find_memory(const Reader& reader, const CgroupPaths& paths, Capacity& capacity) {
  constexpr std::int64_t kKi = 1024;
  const auto total_ki = reader.read(reader.root + "/proc/meminfo", [](std::string_view text) {
    return parse_keyed(text, "MemTotal:");
  });
  const auto physical = total_ki ? checked_mul(*total_ki, kKi) : std::nullopt;
  if (!physical) capacity.notes.push_back("the size of the physical memory is not known");
  Limit memory{physical.value_or(kUnlimited), "physical"};
  if (const auto* hierarchy = paths.find("memory")) lower_memory(reader, *hierarchy, memory);
  capacity.mem_physical = physical.value_or(0);
  capacity.total.set(Known::mem, memory.amount == kUnlimited ? 0 : memory.amount);
  capacity.mem_from = std::move(memory.from);
}

struct MachineFile {
  struct Amount {
    std::string resource;
    std::int64_t amount;
    Field field;
  };
  std::vector<Amount> amounts;
  std::optional<std::int64_t> disk_floor;
  std::vector<std::pair<std::string, int>> gpu_slots;
};

Result<std::vector<std::pair<std::string, int>>> read_slots(const Field& field) {
  constexpr std::int64_t kMost = 10'000;
  if (!field.is_map())
    return field.error("expected slots by model, such as {RTX 4090: 33}: the devices say how many");
  std::vector<std::pair<std::string, int>> slots;
  BERTH_ASSIGN(const auto entries, field.entries());
  for (const auto& [model, rating] : entries) {
    BERTH_ASSIGN(const std::int64_t number, rating.integer());
    if (number < 1 || number > kMost)
      return rating.error(fmt::format("expected 1 to {} slots, got {}", kMost, number));
    slots.emplace_back(model, static_cast<int>(number));
  }
  return slots;
}

Result<MachineFile> read_machine_file(os::Env& env, const std::string& path) {
  MachineFile file;
  if (path.empty()) return file;
  const auto text = env.read_file(path, kLargestCapacityFile);
  if (!text) return std::unexpected(within("machine file " + path, text.error()));
  BERTH_ASSIGN(const Field document, Field::parse(*text, path));
  if (document.is_null()) return file;
  BERTH_ASSIGN(const auto entries, document.entries());
  for (const auto& [key, field] : entries) {
    if (!valid_resource_name(key))
      return field.error("expected a name of a-z, 0-9 and _ that begins with a letter");
    if (key == name(Known::gpu_slots)) {
      BERTH_ASSIGN(file.gpu_slots, read_slots(field));
      continue;
    }
    if (key == name(Known::gpu) || key == name(Known::gpu_mem))
      return field.error("comes from the devices and cannot be set here");
    BERTH_ASSIGN(const auto written, field.text());
    const bool floor = key == "disk_floor";
    const auto amount = parse_amount(floor ? name(Known::disk) : key, written);
    if (!amount) return field.error(amount.error());
    if (floor)
      file.disk_floor = *amount;
    else
      file.amounts.push_back({key, *amount, field});
  }
  return file;
}

std::string parent(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return std::string(path.substr(0, std::max<std::size_t>(slash, 1)));
}

/// Fills disk and what belongs to it. Returns what the volume could give if nothing lay on it.
std::int64_t find_disk(os::Env& env, std::string path, std::optional<std::int64_t> floor,
                       Capacity& capacity) {
  if (path.empty()) path = ".";
  auto volume = env.volume(path);
  while (!volume && volume.error().kind == ErrorKind::not_found && path != parent(path)) {
    path = parent(path);
    volume = env.volume(path);
  }
  const auto space = volume.value_or(os::VolumeSpace{});
  if (!volume)
    capacity.notes.push_back(
        fmt::format("the volume of {} cannot be asked: {}", clip(path), volume.error().message));
  capacity.disk_path = std::move(path);
  capacity.disk_floor = floor.value_or(space.total / kDefaultFloorPart);
  const auto inodes_least =
      space.inodes_total / kInodesPart + (space.inodes_total % kInodesPart != 0);
  capacity.inodes_short = space.inodes_available < inodes_least;
  const auto above_floor = [&](std::int64_t bytes) {
    return std::max<std::int64_t>(bytes - capacity.disk_floor, 0);
  };
  capacity.total.set(Known::disk, capacity.inodes_short ? 0 : above_floor(space.available));
  return above_floor(space.total);
}

/// A machine file's amount of cpu, mem or disk against the figure that it may only lower.
Status lower_to_soft(const MachineFile::Amount& soft, const Limit& hard, Capacity& capacity) {
  if (soft.amount > hard.amount) {
    const bool bytes = measure(soft.resource) == Measure::bytes;
    return soft.field.error(fmt::format(
        "expected at most {}{} ({}), got '{}'", format_amount(soft.resource, hard.amount),
        bytes ? fmt::format(" = {}", hard.amount) : "", hard.from, clip(soft.field.node().text)));
  }
  capacity.total.set(soft.resource, std::min(soft.amount, capacity.total.get(soft.resource)));
  return {};
}

Status apply_machine_file(const MachineFile& file, std::int64_t disk_hard, Capacity& capacity) {
  constexpr std::string_view kFrom = "machine file";
  for (const auto& soft : file.amounts) {
    const std::int64_t before = capacity.total.get(soft.resource);
    if (soft.resource == name(Known::cpu)) {
      BERTH_TRY(lower_to_soft(soft, {before, capacity.cpu_from}, capacity));
      if (soft.amount < before) capacity.cpu_from = kFrom;
    } else if (soft.resource == name(Known::mem)) {
      BERTH_TRY(lower_to_soft(soft, {before, capacity.mem_from}, capacity));
      if (soft.amount < before) capacity.mem_from = kFrom;
    } else if (soft.resource == name(Known::disk)) {
      BERTH_TRY(lower_to_soft(soft, {disk_hard, "the volume less disk_floor"}, capacity));
    } else {
      capacity.total.set(soft.resource, soft.amount);
    }
  }
  return {};
}

}  // namespace

Result<Capacity> discover(os::Env& env, const CapacityOptions& options) {
  BERTH_ASSIGN(const auto file, read_machine_file(env, options.machine_file));
  BERTH_ASSIGN(auto paths, find_cgroup_paths(env, options.root));
  Capacity capacity;
  capacity.notes = std::move(paths.notes);
  const Reader reader{env, options.root, capacity.notes};
  BERTH_TRY(find_cores(reader, paths, capacity));
  find_cpu(reader, paths, capacity);
  find_memory(reader, paths, capacity);
  capacity.nodes = find_nodes(reader, capacity.cores);
  capacity.gpu_slots = file.gpu_slots;
  const auto disk_hard = find_disk(env, options.disk_directory, file.disk_floor, capacity);
  BERTH_TRY(apply_machine_file(file, disk_hard, capacity));
  if (const auto task = enclosing_task(env)) narrow(capacity, task->block);
  return capacity;
}

}  // namespace berth::machine
