#include "berth/remote/slurm/slurm_text.h"

#include <algorithm>
#include <array>
#include <limits>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::remote {
namespace {

constexpr std::int64_t kMostSeconds = 100LL * 365 * 24 * 3600;
constexpr std::int64_t kMostDevices = 1 << 20;

/// A count as Slurm prints it: "4", "4+" where nodes differ.
Result<std::int64_t> read_count(std::string_view text, std::int64_t unit = 1) {
  if (text.ends_with('+')) text.remove_suffix(1);
  BERTH_ASSIGN(const auto count, parse_integer(text));
  if (count < 0 || count > std::numeric_limits<std::int64_t>::max() / unit)
    return fail(ErrorKind::invalid, "\"{}\": out of range", clip(text));
  return count * unit;
}

/// "2000M", "1.50G", "16T"; a bare number is MiB.
Result<std::int64_t> read_mem(std::string_view text) {
  std::int64_t unit = kMiB;
  const std::string_view units = "KMGTP";
  if (const auto at = text.empty() ? text.npos : units.find(text.back()); at != text.npos) {
    unit = 1024LL << (10 * at);
    text.remove_suffix(1);
  }
  BERTH_ASSIGN(const double number, parse_number(text));
  const double bytes = number * static_cast<double>(unit);
  if (bytes < 0 || bytes > 9e18) return fail(ErrorKind::invalid, "\"{}\": out of range", text);
  return static_cast<std::int64_t>(bytes);
}

void add(std::vector<SlurmGpus>& gpus, std::string_view type, std::int64_t count) {
  const auto known = std::ranges::find(gpus, type, &SlurmGpus::type);
  if (known != gpus.end())
    known->count = std::min(known->count + count, kMostDevices);
  else if (count > 0)
    gpus.push_back({std::string(type), count});
}

/// "gpu:a100:4(S:0-1),nic:2,gpu:1": commas within brackets separate nothing.
Result<std::vector<SlurmGpus>> read_gres(std::string_view text) {
  std::vector<SlurmGpus> gpus;
  if (text == "(null)" || text == "N/A") return gpus;
  std::vector<std::string> entries(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[') ++depth;
    if (depth == 0 && c == ',') entries.emplace_back();
    if (depth == 0 && c != ',') entries.back() += c;
    if (c == ')' || c == ']') --depth;
  }
  for (const std::string& entry : entries) {
    const auto parts = split(entry, ':');
    if (parts[0] != "gpu") continue;
    if (parts.size() > 3) return fail(ErrorKind::invalid, "\"{}\": no GRES", clip(text));
    std::int64_t count = 1;  // "gpu", "gpu:a100"
    std::string_view type;
    if (parts.size() == 3) type = parts[1];
    if (parts.size() > 1) {
      const auto number = read_count(parts.back());
      if (!number && parts.size() == 3) return std::unexpected(number.error());
      if (number)
        count = std::min(*number, kMostDevices);
      else
        type = parts[1];
    }
    add(gpus, type, count);
  }
  return gpus;
}

/// The lines of a table, each with so many fields between bars (and one that ends the line).
Result<std::vector<std::vector<std::string_view>>> read_table(std::string_view text,
                                                              std::size_t fields) {
  std::vector<std::vector<std::string_view>> table;
  for (const auto line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    auto row = split(line, '|');
    for (auto& field : row) field = trim(field);
    if (row.size() == fields + 1 && row.back().empty()) row.pop_back();
    if (row.size() != fields)
      return fail(ErrorKind::invalid, "\"{}\": expected {} fields, got {}", clip(line), fields,
                  row.size());
    table.push_back(std::move(row));
  }
  return table;
}

Result<SlurmNodes> read_nodes_row(const std::vector<std::string_view>& row) {
  SlurmNodes nodes;
  nodes.standard = row[0].ends_with('*');
  nodes.partition = row[0].substr(0, row[0].size() - (nodes.standard ? 1 : 0));
  if (nodes.partition.empty()) return fail(ErrorKind::invalid, "a partition without a name");
  nodes.open = row[1] == "up";
  BERTH_ASSIGN(nodes.longest, read_slurm_time(row[2]));
  BERTH_ASSIGN(nodes.count, read_count(row[3]));
  nodes.state = lower(row[4]);
  BERTH_ASSIGN(nodes.cpus, read_count(row[5]));
  BERTH_ASSIGN(nodes.mem, read_count(row[6], kMiB));
  BERTH_ASSIGN(nodes.disk, read_count(row[7], kMiB));
  BERTH_ASSIGN(nodes.gpus, read_gres(row[8]));
  return nodes;
}

std::int64_t count_of(std::span<const SlurmGpus> gpus) {
  std::int64_t count = 0;
  for (const auto& each : gpus) count += each.count;
  return count;
}

/// One node, into its partition.
Status add_node(const std::vector<std::string_view>& row, SlurmPartition& to) {
  const auto cpus = split(row[4], '/');  // allocated, idle, other, all
  if (cpus.size() != 4) return fail(ErrorKind::invalid, "\"{}\": expected A/I/O/T", clip(row[4]));
  BERTH_ASSIGN(const auto idle, read_count(cpus[1], 1000));
  BERTH_ASSIGN(const auto all, read_count(cpus[3], 1000));
  BERTH_ASSIGN(const auto mem, read_count(row[5], kMiB));
  BERTH_ASSIGN(const auto mem_used, read_count(row[6], kMiB));
  BERTH_ASSIGN(const auto gpus, read_gres(row[7]));
  BERTH_ASSIGN(const auto gpus_used, read_gres(row[8]));
  SlurmNodes node;
  node.count = 1;
  node.state = lower(row[3]);
  const bool takes = works(node);
  to.open = row[1] == "up";
  BERTH_ASSIGN(to.longest, read_slurm_time(row[2]));
  ++to.nodes;
  if (!takes) ++to.down;
  if (node.state == "idle") ++to.idle;
  const auto add_to = [](Resources& sum, Known what, std::int64_t amount) {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    sum.set(what, std::min(sum.get(what) + std::clamp<std::int64_t>(amount, 0, kMost), kMost));
  };
  add_to(to.total, Known::cpu, all);
  add_to(to.total, Known::mem, mem);
  add_to(to.total, Known::gpu, count_of(gpus));
  for (const auto& each : gpus) add(to.gpus, each.type, each.count);
  if (!takes) return {};
  add_to(to.free, Known::cpu, idle);
  add_to(to.free, Known::mem, mem - mem_used);
  add_to(to.free, Known::gpu, count_of(gpus) - count_of(gpus_used));
  return {};
}

Result<SlurmJob> read_job_row(const std::vector<std::string_view>& row) {
  SlurmJob job;
  BERTH_ASSIGN(job.id, parse_integer(row[0]));
  job.state = row[1];
  job.reason = row[2];
  BERTH_ASSIGN(job.left, read_slurm_time(row[3]));
  if (row[4] != "(null)" && row[4] != "n/a") job.node = row[4];
  job.partition = row[5];
  BERTH_TRY(read_slurm_amounts(row[6], job));
  return job;
}

/// What `read` makes of each row of a table that the program printed.
template <class Value>
Result<std::vector<Value>> read_rows(std::string_view text, std::size_t fields,
                                     std::string_view program,
                                     Result<Value> (*read)(const std::vector<std::string_view>&)) {
  std::vector<Value> all;
  BERTH_ASSIGN(const auto table, read_table(text, fields));
  for (const auto& row : table) {
    auto value = read(row);
    if (!value) return std::unexpected(within(program, value.error()));
    all.push_back(*std::move(value));
  }
  return all;
}

/// "Slurm has gpu, main", by name, because sinfo's own order varies; long lists are shortened.
std::string existing_text(std::span<const std::string> partitions) {
  constexpr std::size_t kListed = 20;
  if (partitions.empty()) return "Slurm has no partitions";
  std::vector<std::string> existing(partitions.begin(), partitions.end());
  std::ranges::sort(existing);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(existing.size(), kListed); ++i)
    names.push_back(clip(existing[i]));
  const std::size_t more = existing.size() - names.size();
  return "Slurm has " + join(names, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

bool one_of(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

}  // namespace

Result<std::vector<SlurmNodes>> read_slurm_nodes(std::string_view text) {
  return read_rows<SlurmNodes>(text, 9, "sinfo", read_nodes_row);
}

Result<std::vector<SlurmPartition>> read_slurm_partitions(std::string_view text) {
  std::vector<SlurmPartition> all;
  BERTH_ASSIGN(const auto table, read_table(text, 9));
  for (const auto& row : table) {
    const bool standard = row[0].ends_with('*');
    const auto name = row[0].substr(0, row[0].size() - (standard ? 1 : 0));
    if (name.empty()) return fail(ErrorKind::invalid, "sinfo: a partition without a name");
    auto at = std::ranges::find(all, name, &SlurmPartition::name);
    if (at == all.end())
      at = all.insert(all.end(), SlurmPartition{.name = std::string(name), .standard = standard});
    if (auto added = add_node(row, *at); !added)
      return std::unexpected(within("sinfo", added.error()));
  }
  return all;
}

std::string missing_partitions(std::span<const std::string> named,
                               std::span<const std::string> existing) {
  constexpr std::size_t kFewest = 4;  // letters of a name that has near ones
  std::vector<std::string> missing;
  for (const auto& name : named) {
    if (std::ranges::find(existing, name) != existing.end()) continue;
    auto near = near_miss(name, existing);
    if (near.empty() && name.size() >= kFewest) near = nearest_of(name, existing);
    missing.push_back(
        fmt::format("partition '{}' does not exist{}", clip(name),
                    near.empty() ? "" : fmt::format(" (did you mean '{}'?)", clip(near))));
  }
  return missing.empty() ? "" : join(missing, ", ") + "; " + existing_text(existing);
}

std::string no_default_partition(std::span<const std::string> existing) {
  if (existing.empty()) return existing_text(existing);
  return "Slurm has no default partition; add `partitions` to the cluster; " +
         existing_text(existing);
}

/// The comment stands last: others may have anything in it.
Result<std::vector<SlurmHolder>> read_slurm_holders(std::string_view text) {
  std::vector<SlurmHolder> holders;
  for (const auto line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const auto row = split(line, '|');
    if (row.size() < 5)
      return fail(ErrorKind::invalid, "squeue: \"{}\": expected 5 fields, got {}", clip(line),
                  row.size());
    const bool of_berth = row[3].starts_with("berth-");
    holders.push_back({.partition = std::string(row[0]),
                       .user = std::string(row[2]),
                       .run = of_berth ? std::string(trim(row[4].substr(0, row[4].find(',')))) : "",
                       .waits = row[1] == "PENDING"});
  }
  return holders;
}

bool works(const SlurmNodes& nodes) {
  if (!nodes.open || nodes.count == 0 || nodes.state.ends_with('*')) return false;
  static constexpr std::array<std::string_view, 9> kWorks{
      "idle", "mixed", "allocated", "completing", "idle~", "idle#", "mixed-", "idle-", "planned"};
  return one_of(nodes.state, kWorks);
}

Result<std::vector<SlurmJob>> read_slurm_jobs(std::string_view text) {
  return read_rows<SlurmJob>(text, 7, "squeue", read_job_row);
}

SlurmPhase phase_of(const SlurmJob& job) {
  static constexpr std::array<std::string_view, 7> kWaits{
      "PENDING",      "CONFIGURING",  "REQUEUED",     "REQUEUE_FED",
      "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
  static constexpr std::array<std::string_view, 5> kEnding{"COMPLETING", "STAGE_OUT", "SIGNALING",
                                                           "STOPPED", "SUSPENDED"};
  static constexpr std::array<std::string_view, 2> kRuns{"RUNNING", "RESIZING"};
  if (one_of(job.state, kWaits)) return SlurmPhase::waits;
  if (one_of(job.state, kRuns)) return SlurmPhase::runs;
  if (one_of(job.state, kEnding)) return SlurmPhase::ending;
  return SlurmPhase::over;
}

std::string_view ended_because(const SlurmJob& job) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kCauses{{
      {"BOOT_FAIL", "its node did not boot"},
      {"CANCELLED", "it was cancelled"},
      {"DEADLINE", "its deadline passed"},
      {"FAILED", "its script failed"},
      {"NODE_FAIL", "its node failed"},
      {"OUT_OF_MEMORY", "it was out of memory"},
      {"PREEMPTED", "another job was preferred"},
      {"REVOKED", "it was revoked"},
      {"TIMEOUT", "its time limit was reached"},
  }};
  for (const auto& [state, cause] : kCauses)
    if (job.state == state) return cause;
  return "";
}

Result<std::int64_t> read_slurm_job_id(std::string_view text) {
  const auto first = split(trim(text), ';').front();
  const auto id = parse_integer(first);
  if (!id || *id < 1)
    return fail(ErrorKind::invalid, "sbatch: expected the number of a job, got \"{}\"", clip(text));
  return *id;
}

Result<std::optional<Duration>> read_slurm_time(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kNone{
      "", "unlimited", "infinite", "n/a", "not_set", "invalid", "partition_limit"};
  if (one_of(lower(text), kNone)) return std::optional<Duration>{};
  std::int64_t days = 0;
  std::string_view clock = text;
  if (const auto dash = text.find('-'); dash != text.npos) {
    BERTH_ASSIGN(days, read_count(text.substr(0, dash)));
    clock = text.substr(dash + 1);
  }
  const auto parts = split(clock, ':');
  if (parts.size() < 2 || parts.size() > 3 || days > kMostSeconds / 86400)
    return fail(ErrorKind::invalid, "\"{}\": expected a time, as 1-02:03:04", clip(text));
  std::int64_t seconds = 0;
  for (const auto part : parts) {
    BERTH_ASSIGN(const auto number, read_count(part));
    if (number > kMostSeconds) return fail(ErrorKind::invalid, "\"{}\": too long", clip(text));
    seconds = seconds * 60 + number;
  }
  seconds = std::min(seconds + days * 86400, kMostSeconds);
  return std::optional<Duration>{std::chrono::seconds(seconds)};
}

std::string slurm_time(Duration duration) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(duration).count();
  return fmt::format("{}-{:02}:{:02}:{:02}", seconds / 86400, seconds / 3600 % 24,
                     seconds / 60 % 60, seconds % 60);
}

Status read_slurm_amounts(std::string_view text, SlurmJob& job) {
  if (text == "(null)" || text == "N/A") return {};
  std::vector<SlurmGpus> typed;
  for (const auto entry : split(text, ',')) {
    const auto equals = entry.find('=');
    if (equals == entry.npos) continue;
    const auto name = entry.substr(0, equals);
    const auto value = entry.substr(equals + 1);
    if (name == "cpu") {
      BERTH_ASSIGN(job.cpus, read_count(value));
    } else if (name == "mem") {
      BERTH_ASSIGN(job.mem, read_mem(value));
    }
    if (!name.starts_with("gres/gpu")) continue;
    BERTH_ASSIGN(const auto count, read_count(value));
    const auto type = name.substr(std::string_view("gres/gpu").size());
    if (type.empty())
      add(job.gpus, "", std::min(count, kMostDevices));
    else if (type.starts_with(':'))
      add(typed, type.substr(1), std::min(count, kMostDevices));
  }
  // The types are told beside their sum.
  if (!typed.empty()) job.gpus = std::move(typed);
  return {};
}

SlurmTrouble trouble_of(std::string_view complaint) {
  static constexpr std::array<std::pair<std::string_view, SlurmTrouble>, 32> kTroubleWords{{
      {"invalid job id", SlurmTrouble::no_such_job},
      {"job/step already completing or completed", SlurmTrouble::no_such_job},
      {"unable to contact slurm controller", SlurmTrouble::unreachable},
      {"unable to establish controller machine", SlurmTrouble::unreachable},
      {"socket timed out", SlurmTrouble::unreachable},
      {"zero bytes were transmitted", SlurmTrouble::unreachable},
      {"connection refused", SlurmTrouble::unreachable},
      {"communication connection failure", SlurmTrouble::unreachable},
      {"communications shutdown failure", SlurmTrouble::unreachable},
      {"message receive failure", SlurmTrouble::unreachable},
      {"message send failure", SlurmTrouble::unreachable},
      {"in standby mode", SlurmTrouble::unreachable},
      {"munge", SlurmTrouble::unreachable},
      {"temporarily unable to accept job", SlurmTrouble::not_now},
      {"resource temporarily unavailable", SlurmTrouble::not_now},
      {"job violates accounting/qos policy", SlurmTrouble::not_now},
      {"nodes are busy", SlurmTrouble::not_now},
      {"required node not available", SlurmTrouble::not_now},
      {"required partition not available", SlurmTrouble::not_now},
      {"configuration is not available", SlurmTrouble::refused},
      {"invalid partition name", SlurmTrouble::refused},
      {"invalid account", SlurmTrouble::refused},
      {"invalid qos", SlurmTrouble::refused},
      {"invalid generic resource", SlurmTrouble::refused},
      {"invalid feature specification", SlurmTrouble::refused},
      {"time limit is invalid", SlurmTrouble::refused},
      {"memory specification can not be satisfied", SlurmTrouble::refused},
      {"node count specification invalid", SlurmTrouble::refused},
      {"more processors requested than permitted", SlurmTrouble::refused},
      {"access/permission denied", SlurmTrouble::refused},
      {"user's group not permitted", SlurmTrouble::refused},
      {"unrecognized option", SlurmTrouble::refused},
  }};
  const std::string text = lower(complaint);
  for (const auto& [words, meaning] : kTroubleWords)
    if (text.find(words) != text.npos) return meaning;
  return SlurmTrouble::other;
}

std::string gist_of(std::string_view complaint) {
  for (auto line : split(complaint, '\n')) {
    line = trim(line);
    const auto error = line.find("error: ");
    if (error != line.npos) line = line.substr(error + 7);
    if (!line.empty()) return clip(line, 200);
  }
  return "no error message";
}

std::string slurm_comment(std::span<const std::pair<std::string, std::string>> labels) {
  std::string comment, further;
  for (const auto& [name, value] : labels) {
    if (name == "run")
      comment = slurm_name(value);
    else if (name != "program")
      further += fmt::format(",{}={}", slurm_name(name), slurm_name(value));
  }
  return comment + further;
}

std::string slurm_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 100)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || (c == '-' && !name.empty());
    name += plain ? c : '_';
  }
  return name;
}

bool plain_slurm_word(std::string_view text) {
  static constexpr std::string_view kAlso = "_.-+:,/@=&|*[]()!%";
  return !text.empty() && text.size() <= 200 && text.front() != '-' &&
         std::ranges::all_of(text, [](const char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  kAlso.find(c) != kAlso.npos;
         });
}

}  // namespace berth::remote
