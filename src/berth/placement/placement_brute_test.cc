// The search against a plain look at all there is: every subset of what is available, every size
// and objective of every machine of up to ten devices, and random questions up to sixteen.
// BERTH_FULL=1 looks at all of what otherwise is sampled.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "berth/placement/placement_testing.h"

namespace berth::placement {
namespace {

using testing::Brute;
using testing::Machine;

bool full_sweep() {
  return std::getenv("BERTH_FULL") != nullptr;
}

std::int32_t score_of(const std::string& cell) {
  static const std::map<std::string, int> kLevels{{"SYS", 10},  {"SOC", 10},  {"NODE", 20},
                                                  {"PHB", 30},  {"PXB", 40},  {"PIX", 50},
                                                  {"PCIE", 10}, {"XGMI", 100}};
  if (cell.starts_with("NV")) return 100 * std::atoi(cell.c_str() + 2);
  const auto level = kLevels.find(cell);
  return level == kLevels.end() ? 0 : level->second;
}

/// A matrix as the vendors' tools print it, one entry a pair; of several, the last.
Machine read_machine(const std::filesystem::path& path) {
  std::map<int, std::vector<std::string>> rows;
  int devices = 8;  // where the header is cut off
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    for (const std::string ansi : {"\x1b[4m", "\x1b[0m"})
      if (const auto at = line.find(ansi); at != std::string::npos) line.erase(at, ansi.size());
    std::istringstream words(line);
    std::vector<std::string> cells;
    for (std::string word; words >> word;) cells.push_back(word);
    const auto is_device = [](const std::string& cell) {
      return cell.size() > 3 && cell.starts_with("GPU") && std::isdigit(cell[3]) != 0;
    };
    if (cells.size() < 2 || !is_device(cells[0])) continue;
    if (is_device(cells[1]) || cells[1] == "CPU")
      devices = static_cast<int>(std::ranges::count_if(cells, is_device));
    else
      rows[std::atoi(cells[0].c_str() + 3)].assign(cells.begin() + 1, cells.end());
  }
  Machine made(path.stem().string(), devices);
  for (const auto& [a, cells] : rows)
    for (int b = 0; b < devices; ++b)
      if (a != b) made.join(a, b, score_of(cells[static_cast<std::size_t>(b)]));
  return made;
}

/// The machines of shared/data/topologies; none where it is not there.
std::vector<Machine> machine_files() {
  const std::filesystem::path folder =
      std::filesystem::path(BERTH_SOURCE_DIR) / "../shared/data/topologies";
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    paths.push_back(entry);
  std::ranges::sort(paths);
  std::vector<Machine> machines;
  for (const auto& path : paths) machines.push_back(read_machine(path));
  return machines;
}

std::string words(const Machine& machine, const Question& question) {
  return fmt::format("{}: {} of {:#b}, required {:#b}, {}", machine.name, question.count,
                     question.available, question.required, name(question.objective));
}

void expect_packed(const Machine& machine, Brute& brute, Chooser& chooser,
                   const Question& question) {
  const auto answer = chooser.choose(PolicyKind::packed, question);
  ASSERT_TRUE(answer) << answer.error().message;
  const DeviceSet best = brute.packed(question);
  ASSERT_EQ(answer->devices, best) << words(machine, question);
  ASSERT_EQ(answer->value, brute.value(best, question.objective)) << words(machine, question);
  ASSERT_EQ(answer->bound, answer->value.first);
  ASSERT_TRUE(answer->exact);
}

void expect_partition(const Machine& machine, const Brute::Partition& best, Chooser& chooser,
                      const Question& question) {
  const auto answer = chooser.choose(PolicyKind::best_effort, question);
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->partition_score, best.total.first) << words(machine, question);
  ASSERT_EQ(answer->devices, best.devices) << words(machine, question);
  ASSERT_EQ(answer->value, best.own) << words(machine, question);
  ASSERT_EQ(answer->partition_bound, answer->partition_score);
}

void expect_alternative(const Machine& machine, Brute& brute, Chooser& chooser,
                        const Question& question) {
  Answer excluded;
  excluded.devices = brute.packed(question);
  const auto other = chooser.best_alternative(question, excluded);
  const DeviceSet best = brute.packed(question, excluded.devices);
  ASSERT_EQ(other ? other->devices : 0, best) << words(machine, question);
}

void expect_as_looked_at(const Machine& machine, Brute& brute, Chooser& chooser,
                         const Question& question, bool by_all_partitions) {
  expect_packed(machine, brute, chooser, question);
  const auto best =
      by_all_partitions ? brute.all_partitions(question) : brute.best_partition(question);
  expect_partition(machine, best, chooser, question);
  expect_alternative(machine, brute, chooser, question);
}

/// Every subset, size and objective, nothing required and each with a random requirement.
void sweep(const Machine& machine, Rng& rng) {
  Brute brute(machine);
  Chooser chooser = machine.chooser();
  for (DeviceSet available = 1; available < DeviceSet{1} << machine.devices; ++available) {
    for (int count = 1; count <= std::popcount(available); ++count)
      for (int objective = 0; objective < kObjectives; ++objective) {
        Question question{available, 0, count, static_cast<Objective>(objective)};
        expect_as_looked_at(machine, brute, chooser, question, true);
        question.required = testing::random_subset(
            rng, available, 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(count))));
        expect_as_looked_at(machine, brute, chooser, question, true);
        if (::testing::Test::HasFatalFailure()) return;
      }
  }
}

TEST(PlacementBrute, EverySubsetOfEveryMachineFileOfUpToTenDevices) {
  const std::vector<Machine> machines = machine_files();
  if (machines.empty()) GTEST_SKIP() << "shared/data/topologies is not there";
  EXPECT_EQ(machines.size(), 20U);
  const auto file = [&](std::string_view name) {
    return *std::ranges::find(machines, name, &Machine::name);
  };
  EXPECT_EQ(file("dgx1-v100").at(0, 3), 200);
  EXPECT_EQ(file("dgx1-v100").at(0, 7), 10);
  EXPECT_EQ(file("amd-2hives-4x").at(4, 7), 100);
  EXPECT_EQ(file("amd-2hives-4x").at(3, 4), 10);
  EXPECT_EQ(file("3xa6000-ansi-header").at(0, 1), 400);
  EXPECT_EQ(file("hgx-b200-degraded.partial").at(1, 7), 1800);
  Rng rng(1);
  for (const Machine& machine : machines)
    if (machine.devices <= 10) sweep(machine, rng);
}

TEST(PlacementBrute, EverySubsetOfMadeUpMachines) {
  Rng rng(2);
  sweep(testing::dgx1_volta(), rng);
  sweep(testing::islands(8, 4), rng);
  sweep(testing::islands(9, 3), rng);
  for (const int devices : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    sweep(testing::random_machine(rng, devices), rng);
}

void compare_random(int devices, int machines, int questions) {
  Rng rng(static_cast<std::uint64_t>(devices));
  for (int i = 0; i < machines; ++i) {
    const Machine machine = testing::random_machine(rng, devices);
    Brute brute(machine);
    Chooser chooser = machine.chooser();
    for (int j = 0; j < questions; ++j) {
      const Question question = testing::random_question(rng, devices);
      expect_as_looked_at(machine, brute, chooser, question, false);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

class PlacementBruteOf : public ::testing::TestWithParam<int> {};

TEST_P(PlacementBruteOf, TwoThousandRandomQuestions) {
  const int machines = full_sweep() ? 20 : GetParam() > 14 ? 2 : 5;
  compare_random(GetParam(), machines, (full_sweep() ? 40'000 : 2'000) / machines);
}
INSTANTIATE_TEST_SUITE_P(Devices, PlacementBruteOf, ::testing::Values(11, 12, 13, 14, 15, 16));

/// The machine files of more than ten devices, and machines of equal devices, where all is a tie.
TEST(PlacementBrute, RandomQuestionsOfLargeKnownMachines) {
  std::vector<Machine> machines{testing::islands(16, 8), testing::islands(12, 4),
                                testing::islands(13, 13)};
  for (const Machine& machine : machine_files())
    if (machine.devices > 10 && machine.devices <= kExactDevices) machines.push_back(machine);
  Rng rng(3);
  for (const Machine& machine : machines) {
    Brute brute(machine);
    Chooser chooser = machine.chooser();
    for (int i = 0; i < 200; ++i) {
      expect_as_looked_at(machine, brute, chooser, testing::random_question(rng, machine.devices),
                          false);
      if (HasFatalFailure()) return;
    }
  }
}

/// The second opinion's own second opinion.
TEST(PlacementBrute, AllPartitionsAndTheProgrammeOverSubsetsAgree) {
  Rng rng(4);
  for (int i = 0; i < 60; ++i) {
    const int devices = 5 + static_cast<int>(rng.below(5));
    const Machine machine = testing::random_machine(rng, devices);
    Brute brute(machine);
    for (int j = 0; j < 20; ++j) {
      const Question question = testing::random_question(rng, devices);
      const auto all = brute.all_partitions(question), programme = brute.best_partition(question);
      ASSERT_EQ(all.total, programme.total) << words(machine, question);
      ASSERT_EQ(all.devices, programme.devices) << words(machine, question);
    }
  }
}

/// Devices under other names: the sets differ where there are ties, what they are worth does not.
TEST(PlacementBrute, RotatedMachinesAnswerWithEqualValue) {
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    const int devices = 2 + static_cast<int>(rng.below(9));
    const Machine machine = testing::random_machine(rng, devices);
    Chooser chooser = machine.chooser();
    const Question question = testing::random_question(rng, devices);
    for (int turn = 1; turn < devices; ++turn) {
      const auto turned = [&](int device) { return (device + turn) % devices; };
      const auto turned_set = [&](DeviceSet set) {
        DeviceSet moved = 0;
        for (const int device : testing::list_of(set)) moved |= DeviceSet{1} << turned(device);
        return moved;
      };
      Machine other("turned", devices);
      for (int a = 0; a < devices; ++a)
        for (int b = 0; b < devices; ++b)
          if (a != b) other.join(turned(a), turned(b), machine.at(a, b));
      Chooser other_chooser = other.chooser();
      Question same = question;
      same.available = turned_set(question.available);
      same.required = turned_set(question.required);
      for (const PolicyKind kind : {PolicyKind::packed, PolicyKind::best_effort}) {
        const auto one = chooser.choose(kind, question);
        const auto two = other_chooser.choose(kind, same);
        ASSERT_EQ(one->value, two->value) << words(machine, question) << " turned by " << turn;
        ASSERT_EQ(one->partition_score, two->partition_score) << words(machine, question);
      }
    }
  }
}

}  // namespace
}  // namespace berth::placement
