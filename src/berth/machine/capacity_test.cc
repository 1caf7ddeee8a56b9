#include "berth/machine/capacity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "berth/base/rng.h"
#include "berth/base/units.h"
#include "berth/machine/groups/cgroup_paths.h"
#include "berth/testing/capacity_fixture.h"
#include "paths.h"

namespace berth::machine {
namespace {

constexpr std::string_view kRoot = "/fixture";
constexpr std::int64_t kG = 1 << 30;

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(tests::source_path("src/berth/machine/testdata")))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

Fixture load(const std::string& name) {
  std::ifstream in(tests::source_path("src/berth/machine/testdata/" + name + ".txt"));
  EXPECT_TRUE(in) << name;
  return parse_fixture(std::string(std::istreambuf_iterator<char>(in), {}));
}

/// "0-3,8" and back; "none" is the empty list.
std::string ranges(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t i = 0, last = 0; i < cores.size(); i = last + 1) {
    for (last = i; last + 1 < cores.size() && cores[last + 1] == cores[last] + 1;) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[i]);
    if (last > i) text += fmt::format("-{}", cores[last]);
  }
  return text.empty() ? "none" : text;
}

std::vector<int> cores_of(std::string_view text) {
  std::vector<int> cores;
  if (text == "none") return cores;
  for (const auto range : split(text, ',')) {
    const auto ends = split(range, '-');
    for (auto core = *parse_integer(ends.front()); core <= *parse_integer(ends.back()); ++core)
      cores.push_back(static_cast<int>(core));
  }
  return cores;
}

FixtureEnv env_of(const Fixture& fixture) {
  FixtureEnv env;
  for (const auto& [path, text] : fixture.files)
    env.files[fmt::format("{}/{}", kRoot, path)] = text;
  for (const auto& [key, value] : fixture.lines)
    if (key == "affinity") env.cores = cores_of(value);
  env.volumes["."] = {.total = 100 * kG, .available = 40 * kG};
  return env;
}

CapacityOptions options(std::string machine_file = {}) {
  return {
      .disk_directory = {}, .root = std::string(kRoot), .machine_file = std::move(machine_file)};
}

/// What discover() found in the words of the fixtures.
std::map<std::string, std::string> figures(const Capacity& capacity) {
  std::string nodes;
  for (const auto& [node, cores] : capacity.nodes)
    nodes += fmt::format("{}{}:{}", nodes.empty() ? "" : " ", node, ranges(cores));
  return {{"cores", ranges(capacity.cores)},
          {"online", fmt::format("{}", capacity.cores_online)},
          {"cpu", format_milli(capacity.total.get(Known::cpu))},
          {"cpu_from", capacity.cpu_from},
          {"mem", fmt::format("{}", capacity.total.get(Known::mem))},
          {"mem_from", capacity.mem_from},
          {"nodes", nodes}};
}

class Fixtures : public testing::TestWithParam<std::string> {};

TEST_P(Fixtures, SayWhatTheFileExpects) {
  const Fixture fixture = load(GetParam());
  FixtureEnv env = env_of(fixture);
  const auto capacity = discover(env, options());
  ASSERT_TRUE(capacity) << capacity.error().message;
  std::map<std::string, std::string> expected;
  std::vector<std::string> missing_notes;
  std::size_t notes = 0;
  for (const auto& [key, value] : fixture.lines) {
    const auto has = [&](const std::string& note) { return note.find(value) != note.npos; };
    if (key == "note") {
      ++notes;
      EXPECT_TRUE(std::ranges::any_of(capacity->notes, has)) << "no note says: " << value;
    } else if (key != "affinity") {
      expected[key] = value;
    }
  }
  EXPECT_EQ(figures(*capacity), expected);
  EXPECT_EQ(capacity->notes.size(), notes) << testing::PrintToString(capacity->notes);
}

/// What must hold of any machine, however damaged what it shows of itself.
void expect_sound(const Capacity& capacity) {
  EXPECT_FALSE(capacity.cores.empty());
  EXPECT_TRUE(std::ranges::is_sorted(capacity.cores));
  EXPECT_GE(capacity.total.get(Known::cpu), 1);
  EXPECT_LE(capacity.total.get(Known::cpu),
            static_cast<std::int64_t>(capacity.cores.size()) * 1000);
  std::vector<int> on_nodes;
  for (const auto& node : capacity.nodes) {
    EXPECT_FALSE(node.cores.empty());
    on_nodes.insert(on_nodes.end(), node.cores.begin(), node.cores.end());
  }
  std::ranges::sort(on_nodes);
  EXPECT_EQ(on_nodes, capacity.cores);
  EXPECT_FALSE(capacity.cpu_from.empty());
  EXPECT_FALSE(capacity.mem_from.empty());
  EXPECT_LT(capacity.notes.size(), 64U);
}

TEST_P(Fixtures, AreSoundWithDamagedBytes) {
  constexpr int kRounds = 200;
  const Fixture fixture = load(GetParam());
  Rng rng(7);
  for (int round = 0; round < kRounds; ++round) {
    FixtureEnv env = env_of(fixture);
    auto damaged = env.files.begin();
    std::advance(damaged, rng.below(env.files.size()));
    std::string& text = damaged->second;
    for (std::uint64_t bytes = rng.below(8); bytes > 0 && !text.empty(); --bytes)
      text[rng.below(text.size())] = static_cast<char>(rng.below(256));
    if (rng.below(2) == 0) text.resize(rng.below(text.size() + 1));
    const auto capacity = discover(env, options());
    ASSERT_TRUE(capacity) << capacity.error().message;
    expect_sound(*capacity);
    ASSERT_FALSE(HasFailure()) << "round " << round << ", " << damaged->first;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fixtures, testing::ValuesIn(fixture_names()),
                         [](const auto& instance) { return instance.param; });

TEST(Capacity, IsTriedOnManyFixtures) {
  EXPECT_GE(fixture_names().size(), 24U);
}

TEST(Capacity, SeesALimitShrinkBetweenTwoCalls) {
  FixtureEnv env = env_of(load("docker_v2_private_namespace"));
  const auto before = discover(env, options());
  env.files["/fixture/sys/fs/cgroup/memory.max"] = "4096\n";
  env.files["/fixture/sys/fs/cgroup/cpu.max"] = "50000 100000\n";
  env.cores = {2};
  const auto after = discover(env, options());
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->total.get(Known::mem), kG);
  EXPECT_EQ(after->total.get(Known::mem), 4096);
  EXPECT_EQ(after->total.get(Known::cpu), 500);
  EXPECT_EQ(after->cores, std::vector<int>{2});
}

TEST(Capacity, NeedsProcSelfAndSomeCores) {
  FixtureEnv env = env_of(load("v2_bare_host"));
  env.broken["/fixture/proc/self/cgroup"] = {ErrorKind::denied, "no permission"};
  EXPECT_EQ(discover(env, options()).error().kind, ErrorKind::denied);
  env.broken = {{"/fixture/proc/self/mountinfo", {ErrorKind::io, "input/output error"}}};
  EXPECT_EQ(discover(env, options()).error().kind, ErrorKind::io);
  env.broken.clear();
  env.cores.clear();
  env.files.erase("/fixture/sys/devices/system/cpu/online");
  EXPECT_EQ(ranges(discover(env, options())->cores), "0-7") << "from the cpuset";
  env.files.erase("/fixture/sys/fs/cgroup/cpuset.cpus.effective");
  EXPECT_EQ(discover(env, options()).error().kind, ErrorKind::io);
}

TEST(Capacity, TellsUnreadableAndOversizedFilesAndGoesOn) {
  FixtureEnv env = env_of(load("docker_v2_private_namespace"));
  env.broken["/fixture/sys/fs/cgroup/memory.max"] = {ErrorKind::denied, "no permission"};
  env.files["/fixture/sys/fs/cgroup/cpu.max"].assign((1 << 20) + 1, '1');
  const auto capacity = discover(env, options());
  ASSERT_TRUE(capacity);
  EXPECT_EQ(capacity->mem_from, "physical");
  ASSERT_EQ(capacity->notes.size(), 2U);
  EXPECT_NE(capacity->notes[0].find("cpu.max cannot be read"), std::string::npos);
  EXPECT_NE(capacity->notes[1].find("memory.max cannot be read: no permission"), std::string::npos);
}

struct DiskCase {
  std::string_view what;
  os::VolumeSpace space;
  std::string_view machine_file;
  std::int64_t disk, floor;
  bool inodes_short;
};

TEST(Capacity, KeepsDiskAndInodesFree) {
  const DiskCase cases[] = {
      {"a tenth is kept", {100 * kG, 40 * kG, 1000, 500}, "", 30 * kG, 10 * kG, false},
      {"what is left is below the floor", {100 * kG, 9 * kG, 0, 0}, "", 0, 10 * kG, false},
      {"a floor of one's own", {100 * kG, 40 * kG, 0, 0}, "disk_floor: 1Gi", 39 * kG, kG, false},
      {"no floor", {100 * kG, 40 * kG, 0, 0}, "disk_floor: 0", 40 * kG, 0, false},
      {"a soft limit", {100 * kG, 40 * kG, 0, 0}, "disk: 5Gi", 5 * kG, 10 * kG, false},
      {"a soft limit above what is left",
       {100 * kG, 40 * kG, 0, 0},
       "disk: 80Gi",
       30 * kG,
       10 * kG,
       false},
      {"1 % of the inodes", {100 * kG, 40 * kG, 200, 2}, "", 30 * kG, 10 * kG, false},
      {"less than that", {100 * kG, 40 * kG, 201, 2}, "", 0, 10 * kG, true},
      {"inodes not counted", {100 * kG, 40 * kG, 0, 0}, "", 30 * kG, 10 * kG, false},
  };
  for (const auto& [what, space, text, disk, floor, inodes_short] : cases) {
    FixtureEnv env = env_of(load("v2_bare_host"));
    env.volumes = {{"/data", space}};
    env.files["/m.yaml"] = text;
    auto asked = options("/m.yaml");
    asked.disk_directory = "/data/not/yet";
    const auto capacity = discover(env, asked);
    ASSERT_TRUE(capacity) << what << ": " << capacity.error().message;
    EXPECT_EQ(capacity->total.get(Known::disk), disk) << what;
    EXPECT_EQ(capacity->disk_floor, floor) << what;
    EXPECT_EQ(capacity->inodes_short, inodes_short) << what;
    EXPECT_EQ(capacity->disk_path, "/data") << what;
    EXPECT_TRUE(capacity->notes.empty()) << what;
  }
}

TEST(Capacity, AsksTheNearestAncestorAndTellsWhenNoneAnswers) {
  FixtureEnv env = env_of(load("v2_bare_host"));
  auto asked = options();
  asked.disk_directory = "relative/directory/";
  EXPECT_EQ(discover(env, asked)->disk_path, ".");
  env.volumes = {{"/", {.total = 10, .available = 10}}};
  EXPECT_EQ(discover(env, asked)->notes.size(), 1U) << "there is no '.' either";
  asked.disk_directory = "/a/b/c";
  EXPECT_EQ(discover(env, asked)->disk_path, "/");
  env.broken["/a"] = {ErrorKind::denied, "no permission"};
  const auto capacity = discover(env, asked);
  EXPECT_EQ(capacity->total.get(Known::disk), 0);
  ASSERT_EQ(capacity->notes.size(), 1U);
  EXPECT_EQ(capacity->notes[0], "the volume of /a cannot be asked: no permission");
}

TEST(MachineFile, LowersAndAdds) {
  FixtureEnv env = env_of(load("v2_bare_host"));
  env.files["/m.yaml"] =
      "cpu: 2.5\nmem: 4Gi\ndisk: 1Gi\nlicence: 2\nscratch_ports: 0.5\n"
      "gpu_slots: {RTX 4090: 33, my card: 7}\n";
  const auto capacity = discover(env, options("/m.yaml"));
  ASSERT_TRUE(capacity) << capacity.error().message;
  EXPECT_EQ(capacity->total.get(Known::cpu), 2500);
  EXPECT_EQ(capacity->cpu_from, "machine file");
  EXPECT_EQ(ranges(capacity->cores), "0-7");
  EXPECT_EQ(capacity->total.get(Known::mem), 4 * kG);
  EXPECT_EQ(capacity->mem_from, "machine file");
  EXPECT_EQ(capacity->total.get("licence"), 2000);
  EXPECT_EQ(capacity->total.get("scratch_ports"), 500);
  EXPECT_EQ(capacity->gpu_slots,
            (std::vector<std::pair<std::string, int>>{{"RTX 4090", 33}, {"my card", 7}}));
}

TEST(MachineFile, MaySayNothingOrWhatIsSoAnyway) {
  FixtureEnv env = env_of(load("v2_bare_host"));
  for (const auto* text : {"", "# nothing yet\n", "cpu: 8\n"}) {
    env.files["/m.yaml"] = text;
    const auto capacity = discover(env, options("/m.yaml"));
    ASSERT_TRUE(capacity) << capacity.error().message;
    EXPECT_EQ(capacity->total.get(Known::cpu), 8000);
    EXPECT_EQ(capacity->cpu_from, "online cores");
  }
}

TEST(MachineFile, IsRefusedWithFileLineKeyWantedAndFound) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"licence: 1\ncpu: 9", "/m.yaml:2: cpu: expected at most 8 (online cores), got '9'"},
      {"mem: 16Gi",
       "/m.yaml:1: mem: expected at most 15.6 GiB = 16699478016 (physical), got '16Gi'"},
      {"disk: 91Gi",
       "/m.yaml:1: disk: expected at most 90 GiB = 96636764160 (the volume less disk_floor), got "
       "'91Gi'"},
      {"gpu: 1", "/m.yaml:1: gpu: comes from the devices and cannot be set here"},
      {"gpu_slots: 1",
       "/m.yaml:1: gpu_slots: expected slots by model, such as {RTX 4090: 33}: the devices say "
       "how"},
      {"gpu_slots: {A100: 0}", "/m.yaml:1: gpu_slots.A100: expected 1 to 10000 slots, got 0"},
      {"gpu_mem: 1G", "/m.yaml:1: gpu_mem: comes from the devices and cannot be set here"},
      {"cpu: lots", "/m.yaml:1: cpu: expected"},
      {"cpu: -1", "/m.yaml:1: cpu: expected an amount of at least 0, got '-1'"},
      {"disk_floor: much", "/m.yaml:1: disk_floor: expected a size"},
      {"mem:", "/m.yaml:1: mem: expected text, got nothing"},
      {"mem: [1G]", "/m.yaml:1: mem: expected text, got a list"},
      {"memory: 4G", "/m.yaml:1: memory: expected"},
      {"\nMem: 4G", "/m.yaml:2: Mem: expected a name of a-z"},
      {"- cpu", "/m.yaml:1: expected a map"},
      {"cpu: 1\ncpu: 2", "/m.yaml:2: 'cpu' is given twice"},
      {"cpu: [", "/m.yaml:1: the '[' that begins here is not closed"},
  };
  for (const auto& [text, message] : kCases) {
    FixtureEnv env = env_of(load("v2_bare_host"));
    env.files["/m.yaml"] = text;
    const auto capacity = discover(env, options("/m.yaml"));
    ASSERT_FALSE(capacity) << text;
    EXPECT_EQ(capacity.error().kind, ErrorKind::invalid) << text;
    EXPECT_TRUE(capacity.error().message.starts_with(message)) << capacity.error().message;
  }
}

TEST(MachineFile, ThatIsNamedMustExist) {
  FixtureEnv env = env_of(load("v2_bare_host"));
  const auto capacity = discover(env, options("/absent.yaml"));
  ASSERT_FALSE(capacity);
  EXPECT_EQ(capacity.error().kind, ErrorKind::not_found);
  EXPECT_NE(capacity.error().message.find("/absent.yaml"), std::string::npos);
}

TEST(CgroupPaths, AreOursThenEveryAncestor) {
  const Fixture fixture = load("lxc_v1");
  FixtureEnv env = env_of(fixture);
  const auto paths = find_cgroup_paths(env, std::string(kRoot));
  ASSERT_TRUE(paths);
  const auto* memory = paths->find("memory");
  ASSERT_TRUE(memory);
  EXPECT_TRUE(memory->ours);
  EXPECT_EQ(memory->version, 1);
  ASSERT_EQ(memory->groups.size(), 3U);
  EXPECT_EQ(memory->groups[0].group, "/lxc/web");
  EXPECT_EQ(memory->groups[0].directory, "/fixture/sys/fs/cgroup/memory/lxc/web");
  EXPECT_EQ(memory->groups[2].group, "/");
  EXPECT_EQ(memory->groups[2].directory, "/fixture/sys/fs/cgroup/memory");
  EXPECT_EQ(paths->find("cpu"), paths->find("cpuacct"));
  EXPECT_EQ(paths->find("pids"), nullptr);
}

TEST(CgroupPaths, FindV2WhereNoV1HierarchyHasTheController) {
  FixtureEnv env = env_of(load("hybrid"));
  const auto paths = find_cgroup_paths(env, std::string(kRoot));
  ASSERT_TRUE(paths);
  EXPECT_EQ(paths->find("memory")->version, 1);
  EXPECT_EQ(paths->find("io")->version, 2);
  EXPECT_EQ(paths->find("io")->groups.front().directory, "/fixture/sys/fs/cgroup/unified/jobs/17");
}

TEST(CgroupPaths, OfAForeignMountAreNotOurs) {
  for (const auto* name : {"namespace_sibling_unseen", "namespace_not_remounted"}) {
    FixtureEnv env = env_of(load(name));
    const auto paths = find_cgroup_paths(env, std::string(kRoot));
    ASSERT_TRUE(paths);
    EXPECT_FALSE(paths->find("memory")->ours) << name;
    EXPECT_EQ(paths->find("memory")->groups.size(), 1U) << name;
  }
}

TEST(CgroupPaths, AreBounded) {
  constexpr std::string_view kMount =
      "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
      "31 23 0:27 / /x rw - cgroup cgroup rw,name=a";
  std::string deep = "0::";
  for (int i = 0; i < 1000; ++i) deep += "/d";
  const auto nested = parse_cgroup_paths(deep, kMount);
  ASSERT_EQ(nested.hierarchies.size(), 1U);
  EXPECT_EQ(nested.hierarchies[0].groups.size(), 64U);
  EXPECT_EQ(nested.notes.size(), 1U);
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "5:name=a:/\n";
  const auto many = parse_cgroup_paths(wide, kMount);
  EXPECT_EQ(many.hierarchies.size(), 64U);
  EXPECT_EQ(many.notes.size(), 1U);
}

TEST(LiveMachine, AgreesWithWhatLibcSays) {
  const auto env = os::posix_env();
  const auto capacity = discover(*env, {.disk_directory = "/", .root = {}, .machine_file = {}});
  ASSERT_TRUE(capacity) << capacity.error().message;
  expect_sound(*capacity);
  cpu_set_t affinity;
  CPU_ZERO(&affinity);
  ASSERT_EQ(sched_getaffinity(0, sizeof affinity, &affinity), 0);
  EXPECT_EQ(static_cast<int>(capacity->cores.size()), CPU_COUNT(&affinity));
  for (const int core : capacity->cores)
    EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(core), &affinity));
  EXPECT_EQ(capacity->cores_online, sysconf(_SC_NPROCESSORS_ONLN));
  // At most, since lxcfs and its like shrink /proc/meminfo.
  EXPECT_LE(capacity->mem_physical, sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  EXPECT_LE(capacity->total.get(Known::mem), capacity->mem_physical);
  EXPECT_GT(capacity->total.get(Known::mem), 0);
  struct statvfs volume{};
  ASSERT_EQ(statvfs("/", &volume), 0);
  EXPECT_LE(capacity->total.get(Known::disk),
            static_cast<std::int64_t>(volume.f_blocks * volume.f_frsize) - capacity->disk_floor);
}

}  // namespace
}  // namespace berth::machine
