#include "berth/fleet/model/missing_limits.h"

#include "berth/testing/fleet.h"

namespace berth::fleet {
namespace {

using Assumed = MissingLimits::Assumed;
using Notes = std::vector<std::string>;

/// One loaded server of the model `m`, whose entries on the accelerators A and B have these keys.
System system_with(const std::string& on_a, const std::string& on_b = "", const char* server = "") {
  const auto entry = [](const char* accelerator, const std::string& keys) {
    return fmt::format(
        R"({{"name": "m", "acc": "{}", "perfParms": {{"alpha": 8, "beta": 0.05}}{}}})", accelerator,
        keys);
  };
  return testing::read(
      {{"f", fmt::format(R"({{"accelerators": [{{"name": "A"}}, {{"name": "B"}}],
        "count": [{{"type": "A", "count": 4}}, {{"type": "B", "count": 4}}],
        "models": [{}, {}],
        "serviceClasses": [{{"name": "c", "modelTargets": [{{"model": "m", "slo-itl": 50}}]}}],
        "servers": [{{"name": "s", "class": "c", "model": "m", {} "currentAlloc": {{"load":
          {{"arrivalRate": 60, "avgInTokens": 100, "avgOutTokens": 100}}}}}}]}})",
                         entry("A", on_a), entry("B", on_b.empty() ? on_a : on_b), server)}});
}

constexpr const char* kWhole = R"(, "maxBatchSize": 64, "atTokens": 512)";
constexpr const char* kBatchOnly = R"(, "maxBatchSize": 64)";

TEST(MissingLimits, CompleteEntriesHaveNoNotes) {
  EXPECT_EQ(notes_on_missing_limits(system_with(kWhole)), Notes{});
}

TEST(MissingLimits, OneLineForAllEntriesThatLackTheSame) {
  EXPECT_EQ(notes_on_missing_limits(system_with("")),
            (Notes{"m on A, m on B: maxBatchSize and atTokens are missing. A plan assumes that a "
                   "replica serves one request at a time, so it has far too many replicas. In "
                   "models, add maxBatchSize (such as --max-num-seqs of vLLM) and atTokens (tokens "
                   "of the key-value cache / maxBatchSize)"}));
  EXPECT_EQ(notes_on_missing_limits(system_with(kBatchOnly, kWhole)),
            (Notes{"m on A: atTokens is missing. A plan assumes that any number of tokens fits a "
                   "replica, so it may have too few replicas. In models, add atTokens (tokens of "
                   "the key-value cache / maxBatchSize)"}));
  EXPECT_EQ(notes_on_missing_limits(system_with("", kBatchOnly)).size(), 2U);
}

TEST(MissingLimits, NotesAreAboutWhatThePlanAssumes) {
  const auto batch_on_a = [](const System& system) {
    const Candidates made = candidates(system, system.options.model);
    return made.all.empty() ? 0 : made.all[0].batch;
  };
  const System lacking = system_with("");
  EXPECT_EQ(assumed_for_entry(lacking, "m", "A"), Assumed::one_request);
  EXPECT_EQ(batch_on_a(lacking), 1);
  const System batched = system_with("", "", R"("maxBatchSize": 16,)");
  EXPECT_EQ(assumed_for_entry(batched, "m", "A"), Assumed::any_length);
  EXPECT_GT(batch_on_a(batched), 1);
}

TEST(MissingLimits, ReferenceModelNeedsBothOrTheBatchOfTheServer) {
  System system = system_with(kBatchOnly);
  system.options.model = QueueModel::reference;
  ASSERT_EQ(notes_on_missing_limits(system).size(), 1U);
  EXPECT_NE(notes_on_missing_limits(system)[0].find("one request at a time"), std::string::npos);
  EXPECT_EQ(candidates(system, system.options.model).all[0].batch, 1);
  system.servers.at("s").max_batch = 8;
  EXPECT_EQ(notes_on_missing_limits(system), Notes{});
}

TEST(MissingLimits, EntriesThatNoServerCanUseHaveNoNotes) {
  System system = system_with("");
  system.accelerators.erase("B");
  EXPECT_EQ(notes_on_missing_limits(system)[0].find("m on B"), std::string::npos);
  system.servers.at("s").model = "other";
  EXPECT_EQ(notes_on_missing_limits(system), Notes{});
  EXPECT_EQ(assumed_for_entry(system, "m", "A"), Assumed::one_request);
}

TEST(MissingLimits, IdleServersNeedABatchOnly) {
  System system = system_with(kBatchOnly);
  system.servers.at("s").current.load = {};
  EXPECT_EQ(notes_on_missing_limits(system), Notes{});
  system = system_with("");
  system.servers.at("s").current.load = {};
  EXPECT_EQ(notes_on_missing_limits(system), Notes{}) << "it needs no replica";
  system.servers.at("s").min_replicas = 1;
  EXPECT_EQ(notes_on_missing_limits(system).size(), 1U);
}

TEST(MissingLimits, ManyEntriesAreNotAllNamed) {
  EXPECT_EQ(listed_entries({"a", "b", "c", "d"}), "a, b, c, d");
  EXPECT_EQ(listed_entries({"a", "b", "c", "d", "e", "f"}), "a, b, c, d and 2 more");
}

}  // namespace
}  // namespace berth::fleet
