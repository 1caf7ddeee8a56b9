#include "berth/fleet/model/performance_entry.h"

#include <gtest/gtest.h>

#include <array>

#include "berth/fleet/fleet.h"

namespace berth::fleet {
namespace {

PerformanceEntry fitted_entry() {
  PerformanceEntry made{"m", "a", 2, {}};
  made.fit.parameters = {StepForm::max, {8, 0.0512345678, 0.03, 2e-5, 4}};
  made.fit.determined = {true, true, true, true, false};
  return made;
}

/// The document with the entry; its error if there is one.
std::string written(std::string_view document, const PerformanceEntry& entry = fitted_entry()) {
  const auto made = with_performance(document, entry);
  return made ? made->document : "error: " + made.error().message;
}

Performance performance_in(const std::string& document) {
  const auto reading = read_documents(std::array{Document{"f", document}});
  EXPECT_TRUE(reading) << reading.error().message << "\n" << document;
  return reading ? reading->system.models.at("m").accelerators.at("a") : Performance{};
}

TEST(PerformanceEntry, NewDocumentCanBeRead) {
  const auto made = with_performance("", fitted_entry());
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->is_new);
  const std::string& text = made->document;
  EXPECT_NE(text.find(R"("betaPrefill": 0.03)"), std::string::npos) << text;
  EXPECT_EQ(text.find("ttftOffset"), std::string::npos);
  EXPECT_NE(text.find(R"("alpha": 8,)"), std::string::npos) << "whole numbers are plain digits";
  const Performance performance = performance_in(text);
  EXPECT_EQ(performance.accelerators, 2);
  EXPECT_EQ(performance.beta_ms, 0.0512346);
}

TEST(PerformanceEntry, IsPutIntoEveryLayout) {
  for (const char* document :
       {R"({"models":[{"name":"m","acc":"a","accCount":4,"atTokens":9}]})",
        R"({"MODELDATA":{"Models":[{"NAME":"m","Acc":"a","accCount":4,"perfParms":{"ALPHA":1}}]}})",
        R"({"models":[{"name":"m","acc":"a","accCount":4,"perfParms":null}],"modelData":{}})",
        R"({"system":{"modelData":{"models":[{"name":"m","acc":"a","accCount":4}]}}})"}) {
    const auto made = with_performance(document, fitted_entry());
    ASSERT_TRUE(made) << document;
    EXPECT_FALSE(made->is_new);
    EXPECT_EQ(made->accelerators, 4);
    const Performance performance = performance_in(made->document);
    EXPECT_EQ(performance.accelerators, 4) << made->document;
    EXPECT_EQ(performance.alpha_ms, 8) << made->document;
  }
}

TEST(PerformanceEntry, NewEntryIsAddedToEveryLayout) {
  for (const char* document :
       {"{}", "{\n}\n", R"({"models":[]})", R"({"models":null})", R"({"modelData":{}})",
        R"({"models":[{"name":"m","acc":"b"}]})", "{\"models\": [\n  {\"name\": \"x\"}\n]}",
        R"({"system":{"servers":[]}})", "{\"models\": [ // none yet\n]}",
        "{\"models\": [\n  {\"name\": \"x\"} // only a name\n]}"}) {
    const auto made = with_performance(document, fitted_entry());
    ASSERT_TRUE(made) << document;
    EXPECT_TRUE(made->is_new) << document;
    const Performance performance = performance_in(made->document);
    EXPECT_EQ(performance.accelerators, 2) << made->document;
    EXPECT_EQ(performance.alpha_ms, 8) << made->document;
  }
}

TEST(PerformanceEntry, CommentsAndLayoutStay) {
  EXPECT_EQ(written(R"(// A fleet.
{
  "models": [  // "models": []
    {"name": "m", "acc": "a", /* two */ "accCount": 2,
     "perfParms": {"alpha": 1.50, "beta": 2e-1}},  // measured in May
    {"name": "m", "acc": "b", "perfParms": {"alpha": 1.50}}
  ],
  "servers": []  // none yet
}
)"),
            R"(// A fleet.
{
  "models": [  // "models": []
    {"name": "m", "acc": "a", /* two */ "accCount": 2,
     "perfParms": {"alpha": 8, "beta": 0.0512346, "betaPrefill": 0.03, "gamma": 2e-05, "form": "max"}},  // measured in May
    {"name": "m", "acc": "b", "perfParms": {"alpha": 1.50}}
  ],
  "servers": []  // none yet
}
)");
}

TEST(PerformanceEntry, AddedKeysFollowTheLayout) {
  auto entry = fitted_entry();
  entry.accelerators = 0;
  EXPECT_EQ(written("{\"models\": [{\n  \"name\": \"m\", \"acc\": \"a\",\n  \"perfParms\": {\n"
                    "    \"alpha\": 1,\n    \"betaPrefill\": 1,\n    \"beta\": 3,\n"
                    "    \"gamma\": 2 // per token\n  }\n}]}",
                    entry),
            "{\"models\": [{\n  \"name\": \"m\", \"acc\": \"a\",\n  \"perfParms\": {\n"
            "    \"alpha\": 8,\n    \"betaPrefill\": 0.03,\n    \"beta\": 0.0512346,\n"
            "    \"gamma\": 2e-05, // per token\n    \"form\": \"max\"\n  }\n}]}");
}

TEST(PerformanceEntry, KnownCountOfAcceleratorsIsAddedIfItIsMissing) {
  const auto made = with_performance(R"({"models": [{"name": "m", "acc": "a"}]})", fitted_entry());
  ASSERT_TRUE(made);
  EXPECT_EQ(made->accelerators, 0);
  EXPECT_EQ(performance_in(made->document).accelerators, 2) << made->document;
}

TEST(PerformanceEntry, WrittenTwiceIsTheSame) {
  for (const char* document : {"", R"({"serverData":{"servers":[]},"modelData":{}})", "{} // x"}) {
    const std::string once = written(document);
    EXPECT_EQ(written(once), once);
  }
}

TEST(PerformanceEntry, PromptsThatCostNothingDoNotCostWhatTokensDo) {
  auto entry = fitted_entry();
  entry.fit.parameters.ms[Term::beta_prefill] = 0;  // which a reader takes for beta
  EXPECT_NE(written("", entry).find(R"("betaPrefill": 1e-09)"), std::string::npos);
}

TEST(PerformanceEntry, RefusesWhatIsNoDocument) {
  EXPECT_EQ(written("[1]"), "error: expected an object");
  EXPECT_EQ(written(R"({"models":{}})"), "error: models: expected a list");
  EXPECT_TRUE(written("{").starts_with("error: not JSON"));
  EXPECT_TRUE(written("{} /*").starts_with("error: not JSON"));
}

}  // namespace
}  // namespace berth::fleet
