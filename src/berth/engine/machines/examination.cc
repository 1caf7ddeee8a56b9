#include "berth/engine/machines/examination.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/error.h"
#include "berth/machine/groups/group_plan.h"
#include "berth/run/drive/prepare.h"
#include "berth/run/state/context.h"

namespace berth::engine {
namespace {

using State = Finding::State;

constexpr std::size_t kMostSmallFile = 4096;

Finding good(std::string topic, std::string found) {
  return {std::move(topic), State::good, std::move(found), ""};
}

Finding faulty(std::string topic, std::string found, std::string advice) {
  return {std::move(topic), State::faulty, std::move(found), std::move(advice)};
}

std::string line_of(os::Env& env, const std::string& path) {
  const auto text = env.read_file(path, kMostSmallFile);
  return text ? std::string(trim(std::string_view(*text).substr(0, text->find('\n')))) : "";
}

bool in_container(os::Env& env) {
  return env.status("/run/.containerenv") || env.status("/.dockerenv") || env.variable("container");
}

/// What gives Berth a control group that it may divide.
std::string advice_on_groups(os::Env& env, const LimitsReport& limits) {
  if (limits.because.find("no memory controller") != std::string::npos)
    return "boot the kernel with cgroup_enable=memory systemd.unified_cgroup_hierarchy=1";
  if (in_container(env))
    return "give the container separate control groups (podman run --cgroups=split, docker run "
           "--cgroupns=private with /sys/fs/cgroup writable), or run Berth outside of it";
  if (env.status("/run/systemd/system"))
    return env.user() == 0
               ? "start it with systemd-run --scope -p Delegate=yes"
               : fmt::format("log in through ssh or a console, or: loginctl enable-linger {}",
                             env.variable("USER").value_or("$USER"));
  return "have root hand a group over: mkdir /sys/fs/cgroup/berth, chown -R it to this user, and "
         "move this shell into it (echo $$ > /sys/fs/cgroup/berth/cgroup.procs)";
}

struct Vendor {
  topology::Vendor vendor;
  std::string_view name, id;  // as sysfs writes it
  std::string_view advice;
};
constexpr std::array<Vendor, 2> kVendors{{
    {topology::Vendor::nvidia, "NVIDIA", "0x10de",
     "install NVIDIA's driver with libnvidia-ml.so.1 (Debian: apt install nvidia-driver), and see "
     "what nvidia-smi says"},
    {topology::Vendor::amd, "AMD", "0x1002",
     "load amdgpu with KFD (modprobe amdgpu), and be in the groups render and video, which own "
     "/dev/kfd"},
}};

/// How many display controllers and accelerators of a vendor are on the PCI bus.
std::size_t cards_on_bus(os::Env& env, const std::string& root, std::string_view vendor) {
  const std::string bus = root + "/sys/bus/pci/devices";
  std::size_t cards = 0;
  for (const auto& device : env.list(bus).value_or(std::vector<std::string>())) {
    const std::string folder = bus + "/" + device;
    const std::string kind = line_of(env, folder + "/class");  // "0x030200": a 3D controller
    cards += line_of(env, folder + "/vendor") == vendor &&
             (kind.starts_with("0x03") || kind.starts_with("0x12"));
  }
  return cards;
}

std::string driver_text(os::Env& env, const std::string& root) {
  const std::string nvidia = line_of(env, root + "/proc/driver/nvidia/version");
  const std::string amd = line_of(env, root + "/sys/module/amdgpu/version");
  std::vector<std::string> drivers;
  if (!nvidia.empty()) drivers.push_back(nvidia);
  if (!amd.empty()) drivers.push_back("amdgpu " + amd);
  return join(drivers, "; ");
}

/// The time of one sync of a small file in this directory: the median of five.
Result<Duration> sync_time(os::Env& env, const std::string& directory) {
  const std::string file = fmt::format("{}/.doctor.{:016x}", directory, env.random());
  std::array<Duration, 5> times;
  for (auto& time : times) {
    BERTH_TRY(env.replace_file(file, std::string(kMostSmallFile, '.'), 0600));
    const Mono before = env.now();
    const auto synced = env.sync(file);
    time = env.now() - before;
    if (!synced) {
      (void)env.remove_file(file);
      return std::unexpected(synced.error());
    }
  }
  BERTH_TRY(env.remove_file(file));
  std::ranges::nth_element(times, times.begin() + times.size() / 2);
  return times[times.size() / 2];
}

/// The schema's number, which a SQLite file has in its header (https://sqlite.org/fileformat2.html,
/// "user version").
std::string schema_text(os::Env& env, const std::string& file) {
  const auto opened = env.open_read(file);
  if (!opened) return "";
  const auto bytes = env.read_at(*opened, 60, 4);
  if (!bytes || bytes->size() < 4) return "";
  std::uint32_t number = 0;
  for (const char byte : *bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number == 0 ? "" : fmt::format(", schema {}", number);
}

Finding examine_room(os::Env& env, const std::string& directory) {
  const auto space = env.volume(directory);
  if (!space) return faulty("state", space.error().message, "see what the volume has");
  constexpr std::int64_t kLittle = std::int64_t{1} << 30;
  const std::string found =
      fmt::format("{} of {} free on the volume of {}", format_bytes(space->available),
                  format_bytes(space->total), directory);
  if (space->available < kLittle || (space->inodes_total > 0 && space->inodes_available < 1000))
    return faulty("state", found,
                  "make room: berth cache --help, berth prune --older-than 30d; or name another "
                  "volume in BERTH_DB");
  return good("state", found);
}

Finding examine_sync(os::Env& env, const std::string& directory) {
  const auto time = sync_time(env, directory);
  if (!time)
    return faulty("state", "a file cannot be made durable: " + time.error().message,
                  "look after the volume's file system, or name another directory in BERTH_DB");
  const std::string found = fmt::format("a sync takes {:.3g} ms",
                                        std::chrono::duration<double, std::milli>(*time).count());
  constexpr Duration kSlow = std::chrono::milliseconds(100);  // the disks of laptops take 10 to 30
  if (*time > kSlow)
    return {"state", State::optional, found,
            "results are shown once they are durable: a directory on a local disk is quicker "
            "(BERTH_DB)"};
  return good("state", found);
}

struct Tool {
  std::string_view what;  // what it is for
  std::vector<std::string> programs;
  std::string_view advice;
};

}  // namespace

Finding examine_versions(os::Env& env, const Result<std::string>& agent, std::string_view libc) {
  const std::string found = fmt::format("berth {}, {}, Linux {}, glibc {}", version(),
                                        agent ? trim(*agent) : std::string_view("no berth-agent"),
                                        line_of(env, "/proc/sys/kernel/osrelease"), libc);
  if (!agent)
    return faulty("versions", found + ": " + agent.error().message,
                  "put berth-agent into the directory of berth: it runs the tasks");
  if (trim(*agent) != fmt::format("berth-agent {}", version()))
    return faulty("versions", found, "install berth and berth-agent of one version");
  return good("versions", found);
}

Finding examine_limits(os::Env& env, const LimitsReport& limits) {
  const std::string tried = limits.probed ? " (tried)" : "";
  if (limits.enforced.empty())
    return faulty(
        "limits",
        fmt::format("nothing is enforced, tasks are only asked: {}{}", limits.because, tried),
        advice_on_groups(env, limits));
  std::vector<std::string> missing;
  const auto held = split(limits.enforced, ' ');
  for (const auto controller : machine::kGroupControllers)
    if (std::ranges::none_of(held, [&](std::string_view word) {
          return word == controller || word == std::string(controller) + ",";
        }))
      missing.emplace_back(controller);
  // By reading alone it is not known which: "by cgroup v2".
  const bool named = missing.size() < machine::kGroupControllers.size();
  const std::string found = fmt::format("enforced: {}{}{}{}", limits.enforced,
                                        limits.because.empty() ? "" : ", ", limits.because, tried);
  if (named && !missing.empty())
    return faulty("limits", fmt::format("{}; not {}", found, join(missing, ", ")),
                  "delegate all controllers: systemctl edit user@.service, [Service] Delegate=cpu "
                  "cpuset io memory pids, and log in again");
  return good("limits", found);
}

std::vector<Finding> examine_devices(os::Env& env, const Result<machine::Devices>& devices,
                                     const std::string& root) {
  if (!devices)
    return {faulty("gpus", devices.error().message,
                   env.variable("BERTH_TOPOLOGY") ? "fix or unset BERTH_TOPOLOGY"
                                                  : "see what the driver's own tool says")};
  const auto& topology = devices->topology;
  std::vector<Finding> findings;
  std::vector<std::string> names;
  for (const auto& device : topology.devices)
    names.push_back(
        fmt::format("GPU{} {} {}", device.index, device.model, format_bytes(device.memory)));
  const std::string drivers = driver_text(env, root);
  if (!names.empty())
    findings.push_back(
        good("gpus", fmt::format("{} (by {}{}{})", join(names, ", "), topology.source,
                                 drivers.empty() ? "" : "; ", drivers)));
  for (const auto& [uuid, because] : devices->health.out_of_service)
    findings.push_back(faulty(
        "gpus", fmt::format("{} is out of service: {}", machine::name_of(*devices, uuid), because),
        "reset the card (nvidia-smi --gpu-reset -i N, rocm-smi --gpureset), or have it inspected"));
  for (const auto& note : topology.notes)
    findings.push_back(faulty("gpus", note, "check it with the driver's tool"));
  const bool replaced = !env.variable("BERTH_TOPOLOGY").value_or("").empty();
  for (const auto& vendor : kVendors) {
    const auto cards = replaced ? 0 : cards_on_bus(env, root, vendor.id);
    const bool answers = std::ranges::find(topology.devices, vendor.vendor,
                                           &topology::Device::vendor) != topology.devices.end();
    // An integrated card of AMD's computes nothing for Berth, and looks the same on the bus.
    if (cards > 0 && !answers)
      findings.push_back(
          {"gpus", vendor.vendor == topology::Vendor::nvidia ? State::faulty : State::optional,
           fmt::format("{} of {} on the PCI bus, but no driver reports any", cards, vendor.name),
           std::string(vendor.advice)});
  }
  if (findings.empty()) findings.push_back(good("gpus", "none in this machine"));
  return findings;
}

std::vector<Finding> examine_state(os::Env& env, const Result<std::size_t>& store) {
  const auto directory = run::state_directory(env);
  if (!directory)
    return {faulty("state", directory.error().message, "name a directory in BERTH_DB")};
  std::vector<Finding> findings;
  if (store)
    findings.push_back(
        good("state", fmt::format("{}: {} run{}{}", *directory, *store, *store == 1 ? "" : "s",
                                  schema_text(env, run::database_file(*directory)))));
  else
    findings.push_back(faulty("state", store.error().message,
                              "fix the problem, or name another directory in BERTH_DB"));
  if (!env.status(*directory)) return findings;
  if (!env.may_write(*directory)) {
    findings.push_back(faulty("state", *directory + ": this user may not write to it",
                              "name another directory in BERTH_DB"));
    return findings;
  }
  findings.push_back(examine_room(env, *directory));
  findings.push_back(examine_sync(env, *directory));
  return findings;
}

Finding examine_ledger(os::Env& env) {
  const std::string directory = machine::Ledger::default_directory(env);
  auto ledger = machine::Ledger::open(env, directory);
  const auto entries = ledger ? ledger->entries() : std::unexpected(ledger.error());
  if (!entries)
    return faulty("ledger", entries.error().message,
                  "name a directory that all users of this machine may write to in BERTH_LEDGER");
  const auto waiting = std::ranges::count_if(*entries, &machine::LedgerEntry::waiting);
  return good("ledger", fmt::format("{}: {} allocations, {} waiting", directory,
                                    std::ssize(*entries) - waiting, waiting));
}

std::vector<Finding> examine_clusters(const Result<std::vector<Reached>>& reached) {
  if (!reached) return {faulty("clusters", reached.error().message, "fix the file of clusters")};
  std::vector<Finding> findings;
  for (const auto& one : *reached) {
    const std::string name = one.cluster + (one.what.empty() ? "" : "/" + one.what);
    if (one.status)
      findings.push_back(good("clusters", name + " answers"));
    else
      findings.push_back(faulty("clusters", fmt::format("{}: {}", name, one.status.error().message),
                                fmt::format("berth cluster probe {}", one.cluster)));
  }
  if (findings.empty()) findings.push_back(good("clusters", "none; berth cluster add makes one"));
  return findings;
}

std::vector<Finding> examine_tools(os::Env& env) {
  const std::array<Tool, 3> kTools{{
      {"tasks with an image",
       {"podman", "docker", "apptainer", "singularity"},
       "apt install podman"},
      {"tasks in a sandbox", {"bwrap"}, "apt install bubblewrap"},
      {"machines by ssh", {"ssh"}, "apt install openssh-client"},
  }};
  std::vector<Finding> findings;
  for (const auto& tool : kTools) {
    std::vector<std::string> found;
    for (const auto& program : tool.programs)
      if (auto path = run::find_executable(env, program, "/")) found.push_back(*std::move(path));
    if (found.empty())
      findings.push_back({"tools", State::optional,
                          fmt::format("for {}: none of {}", tool.what, join(tool.programs, ", ")),
                          std::string(tool.advice)});
    else
      findings.push_back(good("tools", fmt::format("for {}: {}", tool.what, join(found, ", "))));
  }
  return findings;
}

std::size_t Examination::faults() const {
  return static_cast<std::size_t>(std::ranges::count(findings, State::faulty, &Finding::state));
}

}  // namespace berth::engine
