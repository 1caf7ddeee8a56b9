// The search against a plain look at all there is: every subset of what is available, every size
// and objective of every machine of up to ten devices, and random questions up to sixteen.
// BERTH_FULL=1 looks at all of what otherwise is sampled.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "berth/testing/placement.h"
#include "paths.h"

namespace berth::placement {
namespace {

using testing::Brute;
using testing::Machine;

bool full_sweep() {
  return std::getenv("BERTH_FULL") != nullptr;
}

/// The machines of tests/data/topologies.
std::vector<Machine> machine_files() {
  const std::filesystem::path folder = tests::source_path("tests/data/topologies");
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry);
  std::ranges::sort(paths);
  std::vector<Machine> machines;
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    machines.push_back(testing::machine_of(topology::read(text.str(), path.stem()).value()));
  }
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

int questions_asked = 0;  // of each policy

void expect_as_looked_at(const Machine& machine, Brute& brute, Chooser& chooser,
                         const Question& question, bool by_all_partitions) {
  ++questions_asked;
  expect_packed(machine, brute, chooser, question);
  const auto best =
      by_all_partitions ? brute.all_partitions(question) : brute.best_partition(question);
  expect_partition(machine, best, chooser, question);
  expect_alternative(machine, brute, chooser, question);
}

/// Nothing required, and a random requirement; BERTH_FULL=1: every one.
template <class Visit>
void each_requirement(Rng& rng, const Question& question, const Visit& visit) {
  visit(0);
  if (full_sweep())
    for (DeviceSet set = question.available; set != 0; set = (set - 1) & question.available) {
      if (std::popcount(set) <= question.count) visit(set);
    }
  else
    visit(testing::random_subset(
        rng, question.available,
        1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(question.count)))));
}

/// Every subset, size and objective.
void sweep(const Machine& machine, Rng& rng) {
  Brute brute(machine);
  Chooser chooser = machine.chooser();
  for (DeviceSet available = 1; available < DeviceSet{1} << machine.devices; ++available) {
    for (int count = 1; count <= std::popcount(available); ++count)
      for (int objective = 0; objective < kObjectives; ++objective) {
        Question question{available, 0, count, static_cast<Objective>(objective)};
        each_requirement(rng, question, [&](DeviceSet required) {
          question.required = required;
          expect_as_looked_at(machine, brute, chooser, question, true);
        });
        if (::testing::Test::HasFatalFailure()) return;
      }
  }
}

/// Under every rotation of its numbers.
void sweep_rotations(const Machine& machine, Rng& rng) {
  for (int turn = 0; turn < machine.devices; ++turn) sweep(testing::turned(machine, turn), rng);
}

TEST(PlacementBrute, EverySubsetOfEveryMachineFileOfUpToTenDevices) {
  const std::vector<Machine> machines = machine_files();
  EXPECT_EQ(machines.size(), 20U);
  Rng rng(1);
  questions_asked = 0;
  for (const Machine& machine : machines)
    if (machine.devices <= 10) sweep_rotations(machine, rng);
  std::printf("%d questions\n", questions_asked);
}

TEST(PlacementBrute, EverySubsetOfEveryKnownMachineOfUpToTenDevices) {
  Rng rng(6);
  questions_asked = 0;
  for (const std::string& name : topology::catalogue())
    if (const Machine machine = testing::known(name); machine.devices <= 10)
      sweep_rotations(machine, rng);
  std::printf("%d questions\n", questions_asked);
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

/// BERTH_FULL=1: 2,000 of each of twenty machines.
TEST_P(PlacementBruteOf, RandomQuestions) {
  const int devices = GetParam();
  const int sampled = devices <= 13 ? 2000 : devices == 14 ? 500 : 150;
  full_sweep() ? compare_random(devices, 20, 2000) : compare_random(devices, 2, sampled / 2);
}
INSTANTIATE_TEST_SUITE_P(Devices, PlacementBruteOf, ::testing::Values(11, 12, 13, 14, 15, 16));

/// The machines of more than ten devices, and some of equal devices, where all is a tie; turned
/// another way each time. BERTH_FULL=1: 2,000 of each.
TEST(PlacementBrute, RandomQuestionsOfLargeMachines) {
  std::vector<Machine> machines{testing::known("dgx2-v100"), testing::islands(16, 8),
                                testing::islands(12, 4), testing::islands(13, 13)};
  for (const Machine& machine : machine_files())
    if (machine.devices > 10 && machine.devices <= kExactDevices) machines.push_back(machine);
  Rng rng(3);
  for (const Machine& known : machines) {
    const int turns = full_sweep() ? known.devices : 1;
    for (int turn = 0; turn < turns; ++turn) {
      const Machine machine = testing::turned(known, turn);
      Brute brute(machine);
      Chooser chooser = machine.chooser();
      for (int i = 0; i < (full_sweep() ? 2000 / turns : 30); ++i) {
        expect_as_looked_at(machine, brute, chooser, testing::random_question(rng, machine.devices),
                            false);
        if (HasFatalFailure()) return;
      }
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
      const Machine other = testing::turned(machine, turn);
      Chooser other_chooser = other.chooser();
      Question same = question;
      same.available = testing::turned(question.available, turn, devices);
      same.required = testing::turned(question.required, turn, devices);
      for (const PolicyKind kind : {PolicyKind::packed, PolicyKind::best_effort}) {
        const auto one = chooser.choose(kind, question);
        const auto two = other_chooser.choose(kind, same);
        ASSERT_EQ(one->value, two->value) << words(machine, question) << " turned by " << turn;
        ASSERT_EQ(one->partition_score, two->partition_score) << words(machine, question);
      }
    }
  }
}

// What was found for one question serves the next ones of the same count and objective, whatever
// is available and required, and no others: the answers are those of a chooser that was asked
// nothing before.
TEST(PlacementBrute, QuestionsInARowAreAnsweredAsAlone) {
  Rng rng(12);
  for (int round = 0; round < 12; ++round) {
    const Machine machine = testing::machine("", 12, [&](int, int) -> std::int64_t {
      return static_cast<std::int64_t>(rng.below(round % 2 == 0 ? 1000 : 4));
    });
    Chooser asked_before = machine.chooser();
    auto objective = static_cast<Objective>(rng.below(kObjectives));
    int count = 1 + round % 5;
    for (int i = 0; i < 40; ++i) {
      if (i % 8 == 3) objective = static_cast<Objective>(rng.below(kObjectives));
      if (i % 8 == 7) count = 1 + static_cast<int>(rng.below(5));
      Question question = testing::random_question(rng, machine.devices);
      question.objective = objective;
      question.count =
          std::clamp(count, std::popcount(question.required), std::popcount(question.available));
      if (question.count == 0) continue;
      Chooser fresh = machine.chooser();
      const auto answer = asked_before.choose(PolicyKind::best_effort, question);
      const auto alone = fresh.choose(PolicyKind::best_effort, question);
      ASSERT_TRUE(answer && alone);
      ASSERT_EQ(answer->devices, alone->devices) << words(machine, question);
      ASSERT_EQ(answer->partition_score, alone->partition_score) << words(machine, question);
    }
  }
}

}  // namespace
}  // namespace berth::placement
