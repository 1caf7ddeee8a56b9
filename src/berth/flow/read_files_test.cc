#include <gtest/gtest.h>

#include <map>

#include "berth/flow/flow.h"

namespace berth::flow {
namespace {

/// A flow of several files, the first of which is flows/main.yaml.
Result<Flow> read_several(const std::string& text, const std::map<std::string, std::string>& others,
                          const FlowOptions& options = {}) {
  return read_flow(text, "flows/main.yaml", options,
                   [&](const std::string& path) -> Result<std::string> {
                     const auto found = others.find(path);
                     if (found != others.end()) return found->second;
                     return fail(ErrorKind::not_found, "{}", path);
                   });
}

Words names_of_steps(const Flow& flow) {
  Words names;
  for (const auto& step : flow.steps) names.push_back(step.name + " " + step.file);
  return names;
}

TEST(ReadFiles, PathsBeginWhereTheFileLiesThatNamesThem) {
  const auto flow = read_several("include: parts/a.yaml\nsteps: {z: {run: z}}",
                                 {{"parts/a.yaml", "include: [../b.yaml]\nsteps: {a: {run: a}}"},
                                  {"b.yaml", "steps: {b: {run: b}}"}});
  ASSERT_TRUE(flow) << flow.error().message;
  EXPECT_EQ(names_of_steps(*flow),
            (Words{"b flows/b.yaml", "a flows/parts/a.yaml", "z flows/main.yaml"}));
}

TEST(ReadFiles, WhatIsNearerToAStepHolds) {
  const auto flow = read_several(
      "include: a.yaml\nenv: {A: main, B: main, C: main}\ndefaults: {retries: 3, priority: 4}\n"
      "params: {x: main}\nsteps: {z: {run: 'z {x}'}}",
      {{"a.yaml",
        "env: {B: part}\ndefaults: {retries: 2}\nparams: {x: part, y: part}\n"
        "steps: {a: {run: 'a {x} {y}', env: {C: own}}}"}});
  ASSERT_TRUE(flow) << flow.error().message;
  const Step& step = flow->steps.front();
  const std::map<std::string, std::string> environment(step.environment.begin(),
                                                       step.environment.end());
  EXPECT_EQ(environment,
            (std::map<std::string, std::string>{{"A", "main"}, {"B", "part"}, {"C", "own"}}));
  EXPECT_EQ(step.retries, 2);
  EXPECT_EQ(step.priority, 4);
  EXPECT_EQ(step.params, (decltype(step.params){{"x", {"main"}}, {"y", {"part"}}}));
}

TEST(ReadFiles, WhatTwoFilesIncludeIsThereOnce) {
  const auto flow = read_several("include: [a.yaml, b.yaml]",
                                 {{"a.yaml", "include: c.yaml\nsteps: {a: {run: 'a {n}'}}"},
                                  {"b.yaml", "include: c.yaml\nsteps: {b: {run: 'b {n}'}}"},
                                  {"c.yaml", "params: {n: 1}\nsteps: {c: {run: c}}"}});
  ASSERT_TRUE(flow) << flow.error().message;
  EXPECT_EQ(flow->steps.size(), 3U);
}

TEST(ReadFiles, ASubFlowHasNamesOfItsOwn) {
  const std::map<std::string, std::string> others{
      {"a.yaml",
       "params: {n: 1, l: [x]}\nin: {r: r.txt}\nout: {o: two.o}\n"
       "steps: {one: {in: {r: in.r}, run: 'echo {n}', out: {o: '{n}.txt'}},"
       " two: {foreach: {v: '{l}'}, in: {o: one.o}, run: 'echo {v}', out: {o: 'o/{v}'}}}"}};
  const std::string text =
      "params: {n: 5, all: [p, q]}\nsteps:\n"
      "  one: {run: echo, out: {o: one.txt}}\n"
      "  s: {flow: a.yaml, in: {r: one.o}, params: {n: '{n}0', l: '{all}'}, dir: d}\n"
      "  end: {in: {o: s.o, i: s.one.o}, needs: s, run: end}\n";
  const auto flow = read_several(text, others);
  ASSERT_TRUE(flow) << flow.error().message;
  ASSERT_EQ(names_of_steps(*flow), (Words{"one flows/main.yaml", "s.one flows/a.yaml",
                                          "s.two flows/a.yaml", "end flows/main.yaml"}));
  EXPECT_EQ(flow->steps[1].out.front().path, "d/{n}.txt");
  EXPECT_EQ(flow->steps[1].params, (decltype(Step::params){{"n", {"50"}}}));
  EXPECT_EQ(flow->steps[1].in.front().sources.front().step, StepIndex{0});
  EXPECT_EQ(flow->steps[2].variables.front().values, (Words{"p", "q"}));
  EXPECT_EQ(flow->steps[2].in.front().sources.front().step, StepIndex{1});
  EXPECT_EQ(flow->steps[3].in[0].sources.front().step, StepIndex{2});
  EXPECT_EQ(flow->steps[3].in[1].sources.front().step, StepIndex{1});
  EXPECT_EQ(flow->steps[3].needs, (std::vector{StepIndex{1}, StepIndex{2}}));
  const auto chosen =
      read_several(text, others, {.set = {{"s.n", {"7"}}}, .targets = {"s"}, .force = {"s.two"}});
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->targets, (Words{"s.one", "s.two"}));
  EXPECT_EQ(chosen->steps[1].params, (decltype(Step::params){{"n", {"7"}}}));
  EXPECT_TRUE(chosen->steps[2].forced);
}

TEST(ReadFiles, ManyFilesHaveAnEnd) {
  const std::string twice = "steps: {a: {flow: NEXT, dir: a}, b: {flow: NEXT, dir: b}}";
  std::map<std::string, std::string> others;
  for (int i = 0; i < 30; ++i) {
    auto text = twice;
    for (auto at = text.find("NEXT"); at != std::string::npos; at = text.find("NEXT"))
      text.replace(at, 4, std::to_string(i + 1) + ".yaml");
    others[std::to_string(i) + ".yaml"] = text;
  }
  others["30.yaml"] = "steps: {x: {run: x}}";
  const auto flow = read_several("steps: {a: {flow: 0.yaml}}", others);
  ASSERT_FALSE(flow);
  EXPECT_TRUE(flow.error().message.contains("at most 1000 files")) << flow.error().message;
}

}  // namespace
}  // namespace berth::flow
