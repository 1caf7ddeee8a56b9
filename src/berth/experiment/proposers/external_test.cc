#include "berth/experiment/proposers/external.h"

#include <gtest/gtest.h>

namespace berth::experiment {
namespace {

Program program() {
  Program program;
  program.params = {
      {.name = "net", .choices = {"flat", "deep"}},
      {.name = "lr", .choices = {}, .min = 0, .max = 1},
      {.name = "drop", .choices = {"0.1"}, .when = {{.parameter = "net", .values = {"deep"}}}}};
  program.goal = Goal{"loss", false};
  return program;
}

TEST(External, SaysWhatIsSearchedAndWhatCameOfIt) {
  EXPECT_EQ(hello_line(program(), "x-1"),
            R"({"berth":1,"run":"x-1","seed":0,"samples":0,)"
            R"("goals":[{"metric":"loss","direction":"min"}],)"
            R"("params":[{"name":"net","choices":["flat","deep"]},)"
            R"({"name":"lr","min":0.0,"max":1.0,"log":false,"int":false},)"
            R"({"name":"drop","choices":["0.1"],"when":[{"parameter":"net","values":["deep"]}]}]})"
            "\n");
  EXPECT_EQ(tell_line("3", {{"net", "a\"b"}, {"lr", "0.5"}}, TrialReport::State::done,
                      {{"loss", 0.25}}, {}),
            R"({"tell":{"trial":"3","state":"done","params":{"net":"a\"b","lr":0.5},)"
            R"("metrics":{"loss":0.25}}})"
            "\n");
  EXPECT_EQ(ask_line("4"), "{\"ask\":\"4\"}\n");
}

TEST(External, ReadsAnswersAndRefusesWhatIsNone) {
  const auto answer = read_answer(program(), R"({"params": {"net": "flat", "lr": 5e-1}})");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->params, (Values{{"net", "flat"}, {"lr", "0.5"}})) << "as the space writes it";
  EXPECT_EQ(read_answer(program(), R"({"wait": true})")->kind, Answer::Kind::wait);
  EXPECT_EQ(read_answer(program(), R"({"done": true})")->kind, Answer::Kind::done);
  for (const std::string_view line :
       {"", "what?", "[]", "{}", "{\"params\": 1}", "{\"params\": {\"lr\": [1]}}",
        R"({"params": {"net": "flat"}})", R"({"params": {"net": "flat", "lr": 2}})",
        R"({"params": {"net": "flat", "lr": 0.5, "drop": "0.1"}})",
        R"({"params": {"net": "deep", "lr": 0.5}})", R"({"params": {"net": "odd", "lr": 0.5}})",
        R"({"params": {"net": "flat", "lr": 0.5, "more": 1}})",
        R"({"params": {"net": "flat", "lr")"}) {
    const auto refused = read_answer(program(), line);
    ASSERT_FALSE(refused) << line;
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid) << line;
  }
  Program free;
  EXPECT_TRUE(read_answer(free, R"({"params": {"any": "thing"}})")) << "without params, whatever";
}

TEST(External, ValuesBetweenTheStepsAreRefused) {
  Program whole;
  whole.params = {{.name = "n", .choices = {}, .min = 0, .max = 9, .integer = true, .step = 3}};
  EXPECT_EQ(read_answer(whole, R"({"params": {"n": 6.0}})")->params, (Values{{"n", "6"}}));
  EXPECT_EQ(read_answer(whole, R"({"params": {"n": 5}})").error().message,
            "the proposer's answer: n: '5' lies between the values of 0..9 in steps of 3, int");
}

}  // namespace
}  // namespace berth::experiment
