#include "berth/fleet/performance_entry.h"

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

TEST(PerformanceEntry, StandsInANewDocumentThatIsRead) {
  const auto text = with_performance("", fitted_entry());
  ASSERT_TRUE(text);
  EXPECT_NE(text->find(R"("betaPrefill": 0.03)"), std::string::npos) << *text;
  EXPECT_EQ(text->find("ttftOffset"), std::string::npos);
  EXPECT_NE(text->find(R"("alpha": 8,)"), std::string::npos) << "whole numbers are plain digits";
  const auto reading = read_documents(std::array{Document{"f", *text}});
  ASSERT_TRUE(reading) << reading.error().message;
  const auto& performance = reading->system.models.at("m").accelerators.at("a");
  EXPECT_EQ(performance.accelerators, 2);
  EXPECT_EQ(performance.beta_ms, 0.0512346);
}

TEST(PerformanceEntry, IsPutIntoEveryLayout) {
  for (const char* document :
       {R"({"models":[{"name":"m","acc":"a","accCount":4,"atTokens":9}]})",
        R"({"MODELDATA":{"Models":[{"NAME":"m","Acc":"a","accCount":4,"perfParms":{"ALPHA":1}}]}})",
        R"({"system":{"modelData":{"models":[{"name":"m","acc":"a","accCount":4}]}}})"}) {
    const auto text = with_performance(document, fitted_entry());
    ASSERT_TRUE(text) << document;
    const auto reading = read_documents(std::array{Document{"f", *text}});
    ASSERT_TRUE(reading) << reading.error().message;
    const auto& models = reading->system.models;
    ASSERT_EQ(models.size(), 1U);
    EXPECT_EQ(models.at("m").accelerators.at("a").accelerators, 4) << *text;
    EXPECT_EQ(models.at("m").accelerators.at("a").alpha_ms, 8) << *text;
  }
}

TEST(PerformanceEntry, WrittenTwiceIsTheSame) {
  const auto once =
      with_performance(R"({"serverData":{"servers":[]},"modelData":{}})", fitted_entry());
  ASSERT_TRUE(once);
  EXPECT_EQ(*with_performance(*once, fitted_entry()), *once);
}

TEST(PerformanceEntry, PromptsThatCostNothingDoNotCostWhatTokensDo) {
  auto entry = fitted_entry();
  entry.fit.parameters.ms[Term::beta_prefill] = 0;  // which a reader takes for beta
  EXPECT_NE(with_performance("", entry)->find(R"("betaPrefill": 1e-09)"), std::string::npos);
}

TEST(PerformanceEntry, RefusesWhatIsNoDocument) {
  EXPECT_EQ(with_performance("[1]", fitted_entry()).error().message, "expected an object");
  EXPECT_EQ(with_performance(R"({"models":{}})", fitted_entry()).error().message,
            "models: expected a list");
  EXPECT_FALSE(with_performance("{", fitted_entry()));
}

}  // namespace
}  // namespace berth::fleet
