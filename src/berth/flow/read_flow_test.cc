#include <gtest/gtest.h>

#include <span>

#include "berth/base/text.h"
#include "berth/flow/notation.h"
#include "berth/testing/flow.h"

namespace berth::flow {
namespace {

using namespace std::chrono_literals;

TEST(ReadFlow, TheFileOfTheDesign) {
  const Flow flow = read(kCountFlow, "dir/x.yaml");
  EXPECT_EQ(flow.name, "count");
  ASSERT_EQ(flow.steps.size(), 3U);
  const Step &split = flow.steps[0], &count = flow.steps[1], &sum = flow.steps[2];
  EXPECT_EQ(split.out[0].path, "parts");
  EXPECT_TRUE(split.out[0].directory);
  EXPECT_FALSE(split.in[0].sources[0].step);
  EXPECT_EQ(count.variables[0].files->step, StepIndex{0});
  EXPECT_EQ(count.variables[0].files->pattern, "*");
  EXPECT_EQ(to_string(count.resources), "cpu 1, mem 95.4 MiB");
  EXPECT_EQ(to_string(sum.resources), "cpu 1");
  EXPECT_EQ(sum.in[0].sources[0].step, StepIndex{1});
  EXPECT_EQ(sum.after, std::vector{StepIndex{1}});
  EXPECT_EQ(sum.line, 12);
  EXPECT_EQ(sum.run_line, 14);
}

TEST(ReadFlow, TheShellIsTheStrictOneUnlessTheFileOrTheStepSaysOtherwise) {
  constexpr std::string_view kSteps =
      "steps: {a: {run: x | y}, b: {run: x | y, shell: bash}, c: {run: x | y, shell: [zsh, -fc]}}";
  const auto shells = [](const Flow& flow) {
    std::vector<Words> found;
    for (const auto& step : flow.steps) found.push_back(step.run.shell);
    return found;
  };
  const Words strict = exec::words_of_shell({});
  const Words plain(exec::kPlainShell.begin(), exec::kPlainShell.end());
  EXPECT_EQ(shells(read(kSteps)), (std::vector{strict, strict, Words{"zsh", "-fc"}}));
  EXPECT_EQ(shells(read(fmt::format("shell: sh\n{}", kSteps))),
            (std::vector{plain, strict, Words{"zsh", "-fc"}}));
  EXPECT_EQ(shells(*read_flow(kSteps, "f.yaml", {.shell = plain})),
            (std::vector{plain, strict, Words{"zsh", "-fc"}}))
      << "as an older run was submitted";
  EXPECT_EQ(spec(build("steps: {a: {run: x | y}}"), "a").command,
            (Words{"bash", "--norc", "-euo", "pipefail", "-c", "x | y"}));
  EXPECT_NE(complaint("steps: {a: {run: x, shell: bahs}}").find("expected bash, sh or a list"),
            std::string::npos);
}

TEST(ReadFlow, StepsTakeTheDefaultsThatTheyLack) {
  const Flow flow = read(
      "defaults: {resources: {cpu: 2, mem: 1G}, retries: 3, env: {A: x, B: y}}\n"
      "steps:\n"
      "  plain: {run: x}\n"
      "  own: {run: x, resources: {mem: 2G}, retries: ~, env: {B: z}}\n");
  const Step &plain = flow.steps[0], &own = flow.steps[1];
  EXPECT_EQ(plain.retries, 3);
  EXPECT_EQ(own.retries, 0);
  EXPECT_EQ(plain.resources.get(Known::mem), 1'000'000'000);
  EXPECT_EQ(own.resources.get(Known::mem), 2'000'000'000);
  EXPECT_EQ(own.resources.get(Known::cpu), 2000);
  const std::vector<std::pair<std::string, std::string>> both{{"B", "z"}, {"A", "x"}};
  EXPECT_EQ(own.environment, both);
  EXPECT_NE(complaint("defaults: {run: x}\nsteps: {a: {run: x}}").find("unknown key 'run'"),
            std::string::npos);
}

TEST(ReadFlow, ANearMissOfADeclaredNameIsAnErrorAndOtherBracesStay) {
  EXPECT_NE(complaint("params: {threshold: 1}\nsteps: {a: {run: 'x {treshold}'}}")
                .find("did you mean {threshold}?"),
            std::string::npos);
  for (const std::string run : {"x {thresh}", "awk {print}", "x {threshold}", "x ${treshold}"})
    EXPECT_EQ(complaint(fmt::format(
                  "params: {{threshold: 1, width: 2}}\nsteps: {{a: {{run: '{}'}}}}", run)),
              "nothing");
}

TEST(ReadFlow, ContainersAreOfTheFileOrOfTheStep) {
  const Flow flow = read(
      "image: a:1\nnetwork: true\n"
      "steps: {a: {run: x}, b: {run: x, image: 'b:2', network: false}}");
  EXPECT_EQ(flow.steps[0].container.image, "a:1");
  EXPECT_TRUE(flow.steps[0].container.network);
  EXPECT_EQ(flow.steps[1].container.image, "b:2");
  EXPECT_FALSE(flow.steps[1].container.network);
  EXPECT_EQ(read("steps: {a: {run: x}}").steps[0].container.image, "");
  EXPECT_NE(
      complaint("steps: {a: {run: x, image: '-v'}}").find("steps.a.image: the name of an image"),
      std::string::npos);
  EXPECT_NE(
      complaint("steps: {a: {run: x, network: false}}")
          .find("steps.a.network: without an image or a sandbox, tasks have the machine's network"),
      std::string::npos);
  EXPECT_NE(complaint("steps: {a: {run: x, network: often}}").find("steps.a.network"),
            std::string::npos);
  EXPECT_NE(complaint("steps: {a: {run: x, imgae: y}}").find("image"), std::string::npos);
}

TEST(ReadFlow, SandboxesAreOfTheFileOrOfTheStepAndMayShowMore) {
  const Flow flow = read(
      "sandbox: true\nsteps: {a: {run: x}, b: {run: x, sandbox: [/data, ~/venv], network: true}, "
      "c: {run: x, sandbox: false}, d: {run: x, image: i}}");
  EXPECT_TRUE(flow.steps[0].container.sandbox);
  EXPECT_FALSE(flow.steps[0].container.network);
  EXPECT_EQ(flow.steps[1].container.shown, (Words{"/data", "~/venv"}));
  EXPECT_TRUE(flow.steps[1].container.network);
  EXPECT_FALSE(flow.steps[2].container.isolated());
  EXPECT_TRUE(flow.steps[3].container.isolated());
  for (const auto& [wrong, said] : {std::pair("sandbox: maybe", "steps.a.sandbox"),
                                    std::pair("sandbox: [data]", "expected a path from"),
                                    std::pair("sandbox: {a: b}", "steps.a.sandbox")})
    EXPECT_NE(complaint(fmt::format("steps: {{a: {{run: x, {}}}}}", wrong)).find(said),
              std::string::npos)
        << wrong;
}

TEST(ReadFlow, NoCoreIsNoneAndNoTimeAnError) {
  EXPECT_TRUE(read("steps: {a: {run: x, resources: {cpu: 0}}}").steps[0].resources.empty());
  EXPECT_EQ(to_string(read("steps: {a: {run: x, resources: {}}}").steps[0].resources), "cpu 1");
  EXPECT_NE(complaint("steps: {a: {run: x, timeout: 0s}}").find("timeout: expected more than 0"),
            std::string::npos);
}

TEST(ReadFlow, TheRarerKeys) {
  const Flow flow = read(R"(
params: {lr: 0.1, unused: 1, names: [a, b c]}
env: {A: flow, B: flow}
gpu_mem_over: kill
steps:
  one: {run: 'true', needs: two, params: {own: 7, lr: 0.2}, env: {A: step}, timeout: 90s,
        retries: 3, priority: -5, when: lr == 0.2 and not exists(done.txt), gpu_mem_over: warn}
  two: {run: [echo, "{names}"]}
)");
  EXPECT_EQ(flow.name, "f");
  const Step& one = flow.steps[0];
  EXPECT_EQ(one.needs, std::vector{StepIndex{1}});
  EXPECT_EQ(one.params,
            (std::vector<std::pair<std::string, Words>>{{"own", {"7"}}, {"lr", {"0.2"}}}))
      << "of the flow's parameters those that it names";
  EXPECT_EQ(one.environment,
            (std::vector<std::pair<std::string, std::string>>{{"B", "flow"}, {"A", "step"}}));
  EXPECT_EQ(one.timeout, 90s);
  EXPECT_EQ(one.retries, 3);
  EXPECT_EQ(one.gpu_mem_over, exec::GpuMemOver::warn);
  EXPECT_EQ(flow.steps[1].gpu_mem_over, exec::GpuMemOver::kill);
  EXPECT_EQ(one.priority, -5);
  ASSERT_EQ(one.when.size(), 2U);
  EXPECT_EQ(one.when[0].left, "lr");
  EXPECT_TRUE(one.when[1].negated);
  EXPECT_EQ(one.when[1].path.pattern, "done.txt");
  EXPECT_EQ(flow.steps[1].params[0].second, (Words{"a", "b c"}));
}

struct Wrong {
  std::string_view text, message;
};

void expect_complaints(std::span<const Wrong> cases, const FakeWorld& world = {}) {
  for (const auto& [text, message] : cases) EXPECT_EQ(complaint(text, world), message) << text;
}

TEST(ReadFlow, WrongKeysAndNames) {
  constexpr Wrong kCases[] = {
      {"", "f.yaml:1: the file is empty"},
      {"name: a", "f.yaml:1: 'steps' is missing"},
      {"steps: {}", "f.yaml:1: steps: there is no step"},
      {"step: {a: {run: x}}", "f.yaml:1: unknown key 'step'; did you mean 'steps'?"},
      {"steps:\n  a:\n    run: x\n    forech: {}",
       "f.yaml:4: steps.a: unknown key 'forech'; did you mean 'foreach'?"},
      {"steps:\n  a: {}", "f.yaml:2: steps.a: 'run' is missing"},
      {"steps:\n  a: {run: ' '}", "f.yaml:2: steps.a.run: the command is empty"},
      {"steps:\n  1a: {run: x}",
       "f.yaml:2: steps.1a: a name is made of letters, digits, '_' and '-', at most 64, and begins "
       "with a letter or '_'"},
      {"steps:\n  a: {run: x, params: {index: 1}}",
       "f.yaml:2: steps.a.params.index: a name consists of at most 64 letters, digits and '_', "
       "does not begin with a digit, and is neither params_file nor index"},
      {"steps:\n  a: {run: x, params: {p: 1}, foreach: {p: [1]}}",
       "f.yaml:2: steps.a.foreach.p: 'p' is a parameter too"},
      {"steps:\n  a: {run: x, foreach: {}}", "f.yaml:2: steps.a.foreach: names no variable"},
      {"steps:\n  a: {run: x, foreach: {p: []}}", "f.yaml:2: steps.a.foreach.p: the list is empty"},
      {"steps:\n  split: {run: x}\n  b: {run: x, needs: [splt]}",
       "f.yaml:3: steps.b.needs[0]: no step is called 'splt'; did you mean 'split'?"},
      {"steps:\n  a: {run: x, retries: -1}",
       "f.yaml:2: steps.a.retries: expected 0 to 1000, got -1"},
      {"steps:\n  a: {run: x, out: {o: /tmp/x}}",
       "f.yaml:2: steps.a.out.o: an output stays in the folder of the flow's file"},
      {"steps:\n  a: {run: x, out: {o: ../x}}",
       "f.yaml:2: steps.a.out.o: an output stays in the folder of the flow's file"},
      {"steps:\n  a: {run: x, out: {o: a/../x}}",
       "f.yaml:2: steps.a.out.o: '..' may only be at the beginning of a path"},
      {"steps:\n  a: {run: x, out: {o: ./}}", "f.yaml:2: steps.a.out.o: the path names no file"}};
  expect_complaints(kCases);
}

TEST(ReadFlow, WrongReferencesAndPlaceholders) {
  constexpr Wrong kCases[] = {
      {"steps:\n  a: {run: x, out: {parts: p/}}\n  b: {run: x, in: {i: a.part/*}}",
       "f.yaml:3: steps.b.in.i: step 'a' has no output 'part'; did you mean a.parts? (a file of "
       "that name: ./a.part)"},
      {"steps:\n  a: {run: x, out: {o: p}}\n  b: {run: x, in: {i: a.o/*}}",
       "f.yaml:3: steps.b.in.i: a.o is a file: nothing lies in it (a directory's path ends in "
       "'/')"},
      {"steps:\n  a: {run: x, out: {o: p/}}\n  b: {run: x, in: {i: a.o/../x}}",
       "f.yaml:3: steps.b.in.i: leads outside of the output"},
      {"steps:\n  a:\n    run: cat {in.txt}\n    in: {text: x}",
       "f.yaml:3: steps.a.run: unknown name {in.txt}; did you mean {in.text}?"},
      {"steps:\n  a: {run: 'cat {out.o}'}",
       "f.yaml:2: steps.a.run: unknown name {out.o}; known names: params_file, attempt"},
      {"steps:\n  a: {run: x, in: {i: 'd/{nam}'}, params: {name: 1}}",
       "f.yaml:2: steps.a.in.i: unknown name {nam}; did you mean {name}?"},
      {"steps:\n  a: {run: x, out: {o: 'd/{index}'}}",
       "f.yaml:2: steps.a.out.o: unknown name {index}"},
      {"steps:\n  a: {run: x, foreach: {v: [1]}, out: {o: same}}",
       "f.yaml:2: steps.a.out.o: all tasks of the foreach would write 'same'; put {key} into it"},
      {"steps:\n  a: {run: 'echo `cat {in.i}`', in: {i: x}}",
       "f.yaml:2: steps.a.run: {in.i} is in `…`, where the shell could split or change its "
       "value; assign it to a variable first (v={in.i}) and use \"$v\" here"}};
  expect_complaints(kCases);
  EXPECT_EQ(complaint("steps:\n  a: {run: \"awk '{print}'\", params: {width: 1}}"), "nothing")
      << "braces may be the command's own";
}

TEST(ReadFlow, CyclesAreNamed) {
  constexpr Wrong kCases[] = {
      {"steps:\n  a: {run: x, needs: a}", "f.yaml:2: steps.a: waits for itself: a -> a"},
      {"steps:\n  a: {run: x, needs: b}\n  b: {run: x, in: {i: c.o}}\n"
       "  c: {run: x, foreach: {v: d.o}, out: {o: '{index}'}}\n"
       "  d: {run: x, needs: [b], out: {o: o}}",
       "f.yaml:3: steps.b: waits for itself: b -> c -> d -> b"}};
  expect_complaints(kCases);
}

TEST(ReadFlow, WhatTheWorldLacksAndTwoWriters) {
  const FakeWorld world{{"data/a.txt", "data/b.txt", "x.txt"}, {}};
  constexpr Wrong kCases[] = {
      {"steps:\n  a:\n    run: x\n    in:\n      i: data/c.txt",
       "f.yaml:5: steps.a: in.i: there is no file data/c.txt; did you mean data/a.txt?"},
      {"steps:\n  a: {run: x, in: {i: data/*.csv}}",
       "f.yaml:2: steps.a: in.i: there is no file data/*.csv (nothing matches it)"},
      {"steps:\n  a:\n    foreach: {v: '*.csv'}\n    run: x",
       "f.yaml:3: steps.a: foreach.v: there is no file *.csv (nothing matches it)"},
      {"steps:\n  a: {run: x, foreach: {v: [a, z]}, in: {i: 'data/{v}.txt'}}",
       "f.yaml:2: steps.a: in.i: there is no file data/z.txt; did you mean data/a.txt?"},
      {"steps:\n  a: {run: x, out: {o: new.txt}}\n  b: {run: x, in: {i: new.txt}}",
       "f.yaml:3: steps.b: in.i: new.txt is made by step a (out.o): write a.o"},
      {"steps:\n  b: {run: x, in: {i: new.txt}}\n  a: {run: x, out: {o: new.txt}}",
       "f.yaml:2: steps.b: in.i: new.txt is made by step a (out.o): write a.o"},
      {"steps:\n  a: {run: x, out: {o: p}}\n  b:\n    run: x\n    out: {o: ./p}",
       "f.yaml:5: steps.b: out.o: b writes p, where a writes too (line 2)"},
      {"steps:\n  a: {run: x, out: {o: p/}}\n  b: {run: x, out: {o: p/q/r}}",
       "f.yaml:3: steps.b: out.o: b writes p/q/r, where a writes too (line 2)"},
      {"steps:\n  a: {run: x, out: {o: p/q/r}}\n  b: {run: x, out: {o: p/}}",
       "f.yaml:3: steps.b: out.o: b writes p, where a writes too (line 2)"},
      {"steps:\n  a: {run: x, out: {o: p, q: p}}",
       "f.yaml:2: steps.a: out.q: a writes p, where a writes too; two outputs cannot be one"},
      {"steps:\n  a: {run: x, foreach: {v: [1, 2, 1]}, out: {o: 'p{v}'}}",
       "f.yaml:2: steps.a: out.o: a/2 writes p1, where a/0 writes too; every task needs a separate "
       "path: put {index} or a value that distinguishes them into it"},
      {"steps:\n  a: {run: x, foreach: {v: [/etc]}, out: {o: '{v}'}}",
       "f.yaml:2: steps.a: out.o: '/etc' of a/%2Fetc is not a path in the folder of the flow's "
       "file"},
      {"steps:\n  a: {run: x, out: {o: x.txt}}\n  b: {run: x, in: {i: '*.txt'}}",
       "f.yaml:3: steps.b: x.txt is made by step a (out.o): write a.o"},
      {"steps:\n  a: {run: x, out: {o: data/c, p: q}}\n  b: {run: x, in: {i: data}}",
       "f.yaml:3: steps.b: data is made by step a (out.o): write a.o"},
      {"steps:\n  a: {run: x, out: {o: x.txt}}\n  b:\n    run: x\n    when: exists(x.txt)",
       "f.yaml:5: steps.b: x.txt is made by step a (out.o): write a.o"}};
  expect_complaints(kCases, world);
}

TEST(ReadFlow, WrongConditions) {
  const auto with = [](std::string_view when) {
    return complaint(
        fmt::format("steps:\n  a: {{run: x, params: {{mode: fast}}, when: {}}}\n  s: {{run: x, "
                    "out: {{o: y.txt, "
                    "d: d/}}}}",
                    json_quote(when)));
  };
  for (const std::string_view good :
       {"mode == fast", "mode != 'a b'", "env.CI == \"\"", "exists( a/b )",
        "not exists(x) and mode==x", "exists({mode}/x)", "mode == 'and'", "mode < 3", "mode>=3.5",
        "mode == {mode}", "metric(s, loss) < 1", "metric(s,loss)<{mode}",
        "json(s.o, a.b, 'c.d') != x and mode == x", "json(s.d/{mode}.json, x) == ''"})
    EXPECT_EQ(with(good), "nothing") << good;
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"mode", "expected ==, !=, <, <=, > or >=, got 'the end'"},
      {"", "expected the name of a value, got 'the end'"},
      {"mod == 1", "no value is called 'mod'; did you mean 'mode'?"},
      {"1 == 1",
       "no value is called '1'; a term names a parameter or a variable of the step, or env.NAME"},
      {"mode == 1 or mode == 2", "terms can only be joined by 'and'; got 'or'"},
      {"mode == 1 and", "expected the name of a value, got 'the end'"},
      {"not mode == 1", "'not' is only allowed before exists(…); otherwise use !="},
      {"mode == ", "expected what to compare with, got 'the end'"},
      {"mode = 1", "'=' is not allowed here; to compare say =="},
      {"mode == 'x", "a quote is not closed"},
      {"exists(x", "expected ')', got 'the end'"},
      {"exists(a/../b)", "'..' may only be at the beginning of a path"},
      {"exists({x})", "unknown name {x}; known names: mode"},
      {"mode < fast", "< compares numbers; 'fast' is not a number"},
      {"mode == {mod}", "unknown name {mod}; did you mean {mode}?"},
      {"metric(s) < 1", "expected metric(STEP, NAME), got 1 of the two"},
      {"metric(s loss) < 1", "expected metric(STEP, NAME), got 'loss'"},
      {"metric(zzz, loss) < 1", "no step is called 'zzz'; there are a, s"},
      {"metric(s, loss", "expected metric(STEP, NAME), got 'the end'"},
      {"metric(s, loss,) > 1", "expected metric(STEP, NAME), got ')'"},
      {"metric(s, loss)", "expected ==, !=, <, <=, > or >=, got 'the end'"},
      {"json(s.o) == 1",
       "expected json(STEP.OUTPUT, KEY): a file that a step writes, and a key in it"},
      {"json(x.json, a) == 1",
       "'x.json' is not an output of a step; expected json(STEP.OUTPUT, KEY)"},
      {"json(s.o, a..b) == 1", "'a..b' is not a path to a value: join keys with single dots"},
      {"json(s.d/*, a) == 1", "'s.d/*' is a pattern; expected one file"},
      {"json(s.d, a) == 1",
       "json(s.d, a): the output is a directory; name a file in it: s.d/FILE"}};
  for (const auto& [when, message] : kCases) {
    const auto found = with(when);
    EXPECT_EQ(found, fmt::format("f.yaml:2: steps.a.when: {}", message));
  }
}

TEST(Notation, Paths) {
  EXPECT_EQ(*plain_path("./a//b/"), "a/b");
  EXPECT_EQ(*plain_path("../../a"), "../../a");
  EXPECT_EQ(*plain_path("/usr//share/./x"), "/usr/share/x");
  for (const std::string_view wrong : {"", ".", "/", "..", "../..", "a/..", "/..", "/../a"})
    EXPECT_FALSE(plain_path(wrong)) << wrong;
  EXPECT_EQ(place_of("a/b"), "a/b");
  EXPECT_EQ(place_of("/usr/x"), "_root/usr/x");
  EXPECT_EQ(place_of("../../x"), "_up/_up/x");
}

}  // namespace
}  // namespace berth::flow
