// Questions that nobody should ask: whatever comes, the answer is well formed or a typed error. A
// million of them; BERTH_FULL=1: ten million.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "berth/base/text.h"
#include "berth/placement/subsets.h"
#include "berth/testing/placement.h"

namespace berth::placement {
namespace {

using testing::Machine;

/// A set with devices that the machine may lack.
DeviceSet any_set(Rng& rng, int devices) {
  switch (rng.below(4)) {
    case 0: return rng.next();
    case 1: return first(devices);
    case 2: return 0;
    default: return rng.next() & first(devices);
  }
}

Question any_question(Rng& rng, int devices) {
  Question question;
  question.available = any_set(rng, devices);
  question.required = rng.below(2) == 0 ? 0 : any_set(rng, devices) & any_set(rng, devices);
  question.count = static_cast<int>(rng.below(static_cast<std::uint64_t>(devices) + 4)) - 2;
  if (rng.below(50) == 0) question.count = rng.below(2) == 0 ? INT32_MAX : INT32_MIN;
  question.objective = static_cast<Objective>(rng.below(rng.below(20) == 0 ? 256 : kObjectives));
  return question;
}

bool has_an_answer(const Question& question, int devices) {
  return question.count >= 1 && question.count <= size(question.available) &&
         (question.available & ~first(devices)) == 0 &&
         (question.required & ~question.available) == 0 &&
         size(question.required) <= question.count &&
         static_cast<int>(question.objective) < kObjectives;
}

/// Empty when the answer is what was promised.
std::string complaint(const Result<Answer>& answer, PolicyKind policy, const Question& question,
                      int devices) {
  const bool fixed_groups = policy >= PolicyKind::static_dgx1_pascal;
  if (!answer) {
    const ErrorKind kind = answer.error().kind;
    const bool typed =
        kind == ErrorKind::invalid || kind == ErrorKind::busy || kind == ErrorKind::impossible;
    if (!typed || answer.error().message.empty()) return "an error without type or words";
    return has_an_answer(question, devices) && !fixed_groups ? "refused: " + answer.error().message
                                                             : "";
  }
  if (!has_an_answer(question, devices)) return "answered";
  if (size(answer->devices) != question.count) return "of another size";
  if ((answer->devices & ~question.available) != 0) return "not available";
  if ((question.required & ~answer->devices) != 0) return "without the required ones";
  if (answer->partition_score.has_value() != (policy == PolicyKind::best_effort))
    return "partition";
  return "";
}

/// Links at random, some of them not told; at times two that do not agree, a device twice, a link
/// too few, or more of them than there can be.
topology::Topology any_topology(Rng& rng, int devices) {
  topology::Topology topology;
  for (int i = 0; i < devices; ++i) {
    topology::Device& device = topology.devices.emplace_back();
    device.index = i;
    device.uuid = fmt::format("gpu-{}", i);
  }
  const auto count = topology.devices.size();
  topology.links.resize(count * count);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < a; ++b)
      topology.link(a, b) =
          topology.link(b, a) = {static_cast<topology::Pcie>(rng.below(8)),
                                 rng.below(2) == 0 ? 0 : static_cast<int>(rng.below(20))};
  const std::size_t at = rng.below(count), link = rng.below(count * count);
  switch (rng.below(16)) {
    case 0: topology.links[link].fabric = 99; break;
    case 1: topology.devices[at].index = 0; break;
    case 2: topology.devices[at].uuid = "gpu-1"; break;
    case 3: topology.links.pop_back(); break;
    case 4: topology.links[link].fabric = static_cast<int>(rng.next()); break;
    default: break;
  }
  return topology;
}

/// What the topology gives to ask; nullopt when it is refused, as it should be.
std::optional<Chooser> any_chooser(Rng& rng, int devices) {
  if (rng.below(2) == 0) return testing::random_machine(rng, devices).chooser();
  const topology::Topology topology = any_topology(rng, devices);
  if (const auto checked = topology::check(topology); !checked) {
    EXPECT_EQ(checked.error().kind, ErrorKind::invalid);
    EXPECT_NE(checked.error().message, "");
    return std::nullopt;
  }
  return testing::machine_of(topology).chooser();
}

/// A policy that answers anything.
class Anything final : public Policy {
 public:
  explicit Anything(Rng& rng) : rng_(rng) {}
  DeviceSet choose(std::span<const std::int32_t>, int devices, const Question&) override {
    return any_set(rng_, devices);
  }

 private:
  Rng& rng_;
};

TEST(PlacementMalformed, QuestionsGetWellFormedAnswersOrTypedErrors) {
  Rng rng(31);
  const int machines = std::getenv("BERTH_FULL") == nullptr ? 1000 : 10'000;
  int answered = 0, refused = 0, topologies_refused = 0;
  for (int i = 0; i < machines;) {
    // Mostly small ones, where a question takes less than a microsecond.
    const int devices = static_cast<int>(i % 100 == 0 ? 9 + rng.below(8) : 1 + rng.below(8));
    std::optional<Chooser> made = any_chooser(rng, devices);
    if (!made) {
      ++topologies_refused;
      continue;
    }
    ++i;
    Chooser& chooser = *made;
    Anything anything(rng);
    for (int j = 0; j < 1000; ++j) {
      const Question question = any_question(rng, devices);
      const bool own = rng.below(8) == 0;
      const auto policy = static_cast<PolicyKind>(rng.below(kPolicies));
      const auto answer =
          own ? chooser.choose(anything, question) : chooser.choose(policy, question);
      const auto wrong =
          complaint(answer, own ? PolicyKind::static_dgx2 : policy, question, devices);
      ASSERT_EQ(wrong, "") << name(policy) << " " << question.count << " of "
                           << text(question.available) << ", required " << text(question.required);
      answer ? ++answered : ++refused;
    }
  }
  EXPECT_GT(answered, refused / 10);
  EXPECT_GT(topologies_refused, machines / 20);
  std::printf("%d answered, %d refused, and %d topologies\n", answered, refused,
              topologies_refused);
}

/// A line twice, one lost, two exchanged, a word in the place of another.
std::string damaged(const std::string& text, Rng& rng) {
  std::vector<std::string> lines;
  for (const auto line : split(text, '\n')) lines.emplace_back(line);
  const auto any_line = [&]() -> std::string& { return lines[rng.below(lines.size())]; };
  switch (rng.below(4)) {
    case 0: lines.push_back(any_line()); break;
    case 1: any_line().clear(); break;
    case 2: std::swap(any_line(), any_line()); break;
    default: {
      constexpr std::array<std::string_view, 8> kWords{"X",   "SYS",  "NV4", "NV999",
                                                       "N/A", "GPU1", "?",   ""};
      std::string& line = any_line();
      const std::size_t from = line.find_first_not_of(" \t", rng.below(line.size() + 1));
      if (from == line.npos) break;
      const std::size_t to = std::min(line.find_first_of(" \t", from), line.size());
      line.replace(from, to - from, kWords[rng.below(kWords.size())]);
    }
  }
  return join(lines, "\n");
}

TEST(PlacementMalformed, DamagedFilesGetWellFormedAnswersOrTypedErrors) {
  Rng rng(34);
  std::vector<std::string> texts;
  for (const auto& name : topology::catalogue())
    texts.push_back(matrix_text(topology::known_machine(name).value()));
  int read = 0, refused = 0;
  for (int i = 0; i < (std::getenv("BERTH_FULL") == nullptr ? 2000 : 200'000); ++i) {
    std::string text = texts[rng.below(texts.size())];
    for (std::uint64_t left = 1 + rng.below(3); left > 0; --left) text = damaged(text, rng);
    const auto topology = topology::read(text, "damaged");
    ++(topology ? read : refused);
    if (!topology) {
      ASSERT_EQ(topology.error().kind, ErrorKind::invalid) << text;
      continue;
    }
    const Machine machine = testing::machine_of(*topology);
    if (machine.devices > 8) continue;  // the tables of more take too long to make
    Chooser chooser = machine.chooser();
    for (int j = 0; j < 10; ++j) {
      const Question question = any_question(rng, machine.devices);
      const auto policy = static_cast<PolicyKind>(rng.below(kPolicies));
      const auto answer = chooser.choose(policy, question);
      ASSERT_EQ(complaint(answer, policy, question, machine.devices), "") << text;
    }
  }
  EXPECT_GT(read, refused / 10);
  EXPECT_GT(refused, read / 10);
}

TEST(PlacementMalformed, MatricesAreMadeOrRefused) {
  Rng rng(32);
  int made = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const int devices = static_cast<int>(rng.below(9)) - 1;
    const auto side = static_cast<std::size_t>(std::max(devices, 0));
    std::vector<std::int32_t> scores(side * side);
    for (auto& score : scores) score = static_cast<std::int32_t>(rng.below(4));
    for (std::size_t a = 0; a < side; ++a)  // made whole, then perhaps spoiled
      for (std::size_t b = 0; b < a; ++b) scores[a * side + b] = scores[b * side + a];
    if (rng.below(2) == 0 && !scores.empty())
      scores[rng.below(scores.size())] = static_cast<std::int32_t>(rng.next());
    if (rng.below(8) == 0) scores.resize(scores.size() + rng.below(3));
    bool whole = devices >= 0 && scores.size() == side * side;
    for (std::size_t a = 0; whole && a < side; ++a)
      for (std::size_t b = 0; b < a; ++b)
        whole = whole && scores[a * side + b] == scores[b * side + a];
    const auto chooser = Chooser::make(scores, devices);
    ASSERT_EQ(chooser.has_value(), whole);
    if (!chooser) {
      ASSERT_EQ(chooser.error().kind, ErrorKind::invalid);
    }
    chooser ? ++made : ++refused;
  }
  EXPECT_GT(made, 2000);
  EXPECT_GT(refused, 2000);
}

TEST(PlacementMalformed, TheAllocatorKeepsItsBooks) {
  Rng rng(33);
  for (int i = 0; i < 200; ++i) {
    const int devices = 1 + static_cast<int>(rng.below(10));
    Allocator allocator(testing::random_machine(rng, devices).chooser());
    for (int j = 0; j < 200; ++j) {
      const DeviceSet before = allocator.available(), wanted = any_set(rng, devices);
      switch (rng.below(3)) {
        case 0:
          if (allocator.free(wanted)) {
            ASSERT_EQ(wanted & before, 0U);
            ASSERT_EQ(allocator.available(), before | wanted);
            continue;
          }
          break;
        case 1:
          if (allocator.allocate_these(wanted)) {
            ASSERT_EQ(wanted & ~before, 0U);
            ASSERT_EQ(allocator.available(), before ^ wanted);
            continue;
          }
          break;
        default: {
          const Question question = any_question(rng, devices);
          if (const auto answer = allocator.allocate(static_cast<PolicyKind>(rng.below(kPolicies)),
                                                     question.count, wanted, question.objective)) {
            ASSERT_EQ(size(answer->devices), question.count);
            ASSERT_EQ(wanted & ~answer->devices, 0U);
            ASSERT_EQ(allocator.available(), before ^ answer->devices);
            continue;
          }
        }
      }
      ASSERT_EQ(allocator.available(), before) << "an error changes nothing";
    }
  }
}

}  // namespace
}  // namespace berth::placement
