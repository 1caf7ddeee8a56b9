#include <gtest/gtest.h>

#include "berth/base/rng.h"
#include "berth/testing/flow.h"

namespace berth::flow {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(Graph, UnfoldsAsItsTasksFinish) {
  Graph graph = build(kCountFlow, {{"data/corpus.txt"}, {}});
  EXPECT_EQ(graph.known(), 2) << "split and sum";
  EXPECT_FALSE(graph.find("count/0"));
  EXPECT_EQ(names(graph, graph.take_ready()->run), Words{"split"});
  EXPECT_TRUE(graph.take_ready()->run.empty()) << "each once";
  const auto split = spec(graph, "split");
  EXPECT_EQ(split.command, (Words{"split", "-n", "l/8", "data/corpus.txt", "parts/"}));
  EXPECT_EQ(split.inputs[0].world, "data/corpus.txt");
  ASSERT_TRUE(finish(graph, "split", {"b", "a b", "sub/c", ".d"}));
  EXPECT_EQ(names(graph, graph.take_ready()->run), (Words{"count/a%20b", "count/b", "count/sub"}))
      << "in bytewise order; sub is a directory that matches";
  const auto count = spec(graph, "count/a%20b");
  EXPECT_EQ(count.command.back(), "wc -w < 'parts/a b' > 'counts/a b.txt'");
  EXPECT_EQ(count.params, (Pairs{{"part", "parts/a b"}, {"part.stem", "a b"}}));
  ASSERT_EQ(count.inputs.size(), 1U);
  EXPECT_EQ(count.inputs[0].place, "parts/a b");
  EXPECT_EQ(count.inputs[0].content.entries[0].digest, sha256("splita b"));
  EXPECT_EQ(spec(graph, "count/sub").inputs[0].content.entries[0].path, "c");
  for (const auto* i : {"sub", "a%20b", "b"}) {
    EXPECT_TRUE(graph.take_ready()->run.empty());
    EXPECT_FALSE(graph.done());
    ASSERT_TRUE(finish(graph, fmt::format("count/{}", i)));
  }
  EXPECT_EQ(names(graph, graph.take_ready()->run), Words{"sum"});
  EXPECT_EQ(spec(graph, "sum").command.back(),
            "cat 'counts/a b.txt' counts/b.txt counts/sub.txt | awk '{s += $1} END {print s}' > "
            "total.txt");
  ASSERT_TRUE(finish(graph, "sum"));
  EXPECT_TRUE(graph.done());
}

TEST(Graph, PairsRunAsSoonAsTheirPartnerIsDone) {
  Graph graph = build(R"(
steps:
  train: {run: 't {lr}', foreach: {lr: [1, 2, 3]}, out: {model: 'm/{lr}'}}
  test: {run: 'v {m}', foreach: {m: train.model}, out: {score: 's/{index}'}}
  best: {run: 'b {in.s}', in: {s: test.score}}
)");
  EXPECT_EQ(graph.known(), 7) << "all of it, before anything ran";
  EXPECT_EQ(names(graph, graph.take_ready()->run), (Words{"train/1", "train/2", "train/3"}));
  ASSERT_TRUE(finish(graph, "train/2"));
  EXPECT_EQ(names(graph, graph.take_ready()->run), Words{"test/2"});
  EXPECT_EQ(spec(graph, "test/2").command, (Words{"v", "m/2"}));
  for (const auto* task : {"test/2", "train/1", "train/3"}) ASSERT_TRUE(finish(graph, task));
  EXPECT_EQ(names(graph, graph.take_ready()->run), (Words{"test/1", "test/3"}));
  for (const auto* task : {"test/1", "test/3"}) ASSERT_TRUE(finish(graph, task));
  EXPECT_EQ(names(graph, graph.take_ready()->run), Words{"best"});
  EXPECT_EQ(spec(graph, "best").command, (Words{"b", "s/0", "s/1", "s/2"}));
}

TEST(Graph, CombinesVariablesTheLastFastest) {
  Graph graph = build(R"(
steps:
  a: {run: ['x', '{n}', '{f}', '{index}', '{list}'], params: {list: [p, q r]},
      foreach: {n: [1, 2], f: '*.txt'}}
)",
                      {{"b.txt", "a.txt", "B.txt"}, {}});
  const auto ready = graph.take_ready()->run;
  ASSERT_EQ(ready.size(), 6U);
  EXPECT_EQ(spec(graph, "a/1,B").command, (Words{"x", "1", "B.txt", "0", "p", "q r"}));
  EXPECT_EQ(spec(graph, "a/1,a").command[2], "a.txt");
  EXPECT_EQ(spec(graph, "a/2,b").command, (Words{"x", "2", "b.txt", "5", "p", "q r"}));
  EXPECT_EQ(spec(graph, "a/2,b").params, (Pairs{{"n", "2"}, {"f", "b.txt"}, {"list", "p q r"}}));
}

TEST(Graph, ListsAndPlacesInCommands) {
  Graph graph = build(R"(
steps:
  a:
    run: 'cat {in.x} "all: {in.x}" --files={in.x} {params_file} > {out.o}'
    in: {x: [/etc/hosts, ../up, data], y: data/deep/file}
    out: {o: d/o}
)",
                      {{"/etc/hosts", "../up", "data/deep/file", "data/it's"}, {}});
  (void)graph.take_ready();
  const auto a = spec(graph, "a");
  const std::string list = "_root/etc/hosts _up/up data";
  EXPECT_EQ(a.command.back(),
            fmt::format("cat {0} \"all: {0}\" --files={0} .berth-params.json > d/o", list));
  EXPECT_TRUE(a.params_file);
  ASSERT_EQ(a.inputs.size(), 3U) << "data/deep/file lies within data";
  EXPECT_EQ(a.inputs[0].world, "/etc/hosts");
  EXPECT_EQ(a.inputs[2].place, "data");
}

TEST(Graph, WhenSkipsATaskAndWhoeverTakesItsOutput) {
  const std::string_view text = R"(
params: {mode: fast}
steps:
  slow: {run: x, when: mode == slow, out: {o: slow.txt}}
  after: {run: x, in: {i: slow.o}}
  alone: {run: x, needs: slow}
  each: {run: x, foreach: {v: [1, 2, 3]}, when: v != 2, out: {o: 'e/{v}'}}
  next: {run: x, foreach: {e: each.o}}
  all: {run: 'cat {in.e}', in: {e: each.o}}
  ci: {run: x, when: env.CI == yes and exists(here) and not exists(gone)}
  own: {run: x, env: {CI: no}, when: env.CI == yes}
)";
  Graph graph = build(text, {{"here"}, {{"CI", "yes"}}});
  auto ready = *graph.take_ready();
  EXPECT_EQ(names(graph, ready.run), (Words{"each/1", "each/3", "ci", "alone"}));
  EXPECT_EQ(names(graph, ready.skipped), (Words{"slow", "each/2", "own", "after", "next/2"}));
  for (const auto* task : {"each/1", "each/3", "ci", "alone"}) ASSERT_TRUE(finish(graph, task));
  ready = *graph.take_ready();
  EXPECT_EQ(names(graph, ready.run), (Words{"next/1", "next/3", "all"}));
  EXPECT_EQ(spec(graph, "all").command, (Words{"cat", "e/1", "e/3"}));
  for (const auto* task : {"next/1", "next/3", "all"}) ASSERT_TRUE(finish(graph, task));
  EXPECT_TRUE(graph.done());
}

TEST(Graph, WhetherAStepHasWrittenIsAskedWhenItIsDone) {
  const std::string_view text = R"(
params: {mode: fast}
steps:
  a: {run: x, out: {o: x.txt, d: d/}}
  no: {run: x, when: mode == slow, out: {o: y.txt}}
  b: {run: x, when: exists(a.o) and exists(a.d/p*)}
  c: {run: x, when: exists(a.d/q*)}
  d: {run: x, when: not exists(no.o)}
  e: {run: x, when: exists(no.o)}
)";
  Graph graph = build(text);
  auto ready = *graph.take_ready();
  EXPECT_EQ(names(graph, ready.run), (Words{"a", "d"}));
  EXPECT_EQ(names(graph, ready.skipped), (Words{"no", "e"}));
  ASSERT_TRUE(finish(graph, "a", {"p1"}));
  ready = *graph.take_ready();
  EXPECT_EQ(names(graph, ready.run), Words{"b"});
  EXPECT_EQ(names(graph, ready.skipped), Words{"c"});
  EXPECT_NE(complaint("steps: {a: {run: x, out: {o: x}}, b: {run: x, when: exists(a.p)}}")
                .find("step 'a' has no output 'p'"),
            std::string::npos);
}

TEST(Graph, AForeachOverNothingIsDoneAtOnce) {
  Graph graph = build(R"(
steps:
  a: {run: x, out: {d: d/}}
  b: {run: x, foreach: {f: a.d/*.err}, out: {o: 'b/{index}'}}
  c: {run: x, foreach: {f: b.o}, out: {o: 'c/{index}'}}
  d: {run: x, in: {i: c.o}}
  e: {run: x, needs: c}
)");
  (void)graph.take_ready();
  ASSERT_TRUE(finish(graph, "a", {"x.txt"}));
  const auto ready = *graph.take_ready();
  EXPECT_EQ(names(graph, ready.run), (Words{"d", "e"}))
      << "to bring nothing together is a task too";
  EXPECT_EQ(names(graph, ready.skipped), Words{});
  EXPECT_TRUE(spec(graph, "d").inputs.empty());
  ASSERT_TRUE(finish(graph, "d"));
  ASSERT_TRUE(finish(graph, "e"));
  EXPECT_TRUE(graph.done());
}

TEST(Graph, WhatOnlyShowsLate) {
  const std::string text = R"(
steps:
  a: {run: x, out: {d: d/}}
  b: {run: 'x', foreach: {f: a.d/*}, out: {o: '{f}.out'}}
  c: {run: x, in: {i: a.d/*.txt}}
)";
  Graph graph = build(text);
  (void)graph.take_ready();
  EXPECT_EQ(finish(graph, "a", {"x"}).error().message,
            "f.yaml:4: steps.b: out.o: b/x writes d/x.out, where a writes too (line 3)");
  Graph other = build("steps:\n  a: {run: x, out: {d: d/}}\n  c: {run: x, in: {i: a.d/*.txt}}");
  (void)other.take_ready();
  ASSERT_TRUE(finish(other, "a", {"x"}));
  (void)other.take_ready();
  EXPECT_EQ(other.spec(*other.find("c")).error().message,
            "f.yaml:3: steps.c: in.i: a.d/*.txt matches nothing that was written");
}

/// Each input of the world is looked for among all outputs: fifty thousand steps took 4 s.
TEST(Graph, StepsThatReadFilesAreBuiltInTimeThatGrowsWithThem) {
  constexpr int kSteps = 50'000;
  std::string text = "name: f\nsteps:\n";
  for (int i = 0; i < kSteps; ++i)
    text += fmt::format("  s{0}: {{run: x, in: {{i: data}}, out: {{o: out/{0}}}}}\n", i);
  const FakeWorld world{.files = {"data"}, .variables = {}};
  EXPECT_EQ(Graph::build(read_flow(text, "f.yaml").value(), world.world())->known(), kSteps);
  text += "  last: {run: x, in: {i: out/0}}\n";
  const auto wrong = Graph::build(read_flow(text, "f.yaml").value(), world.world());
  EXPECT_EQ(wrong.error().message,
            "f.yaml:50003: steps.last: in.i: out/0 is made by step s0 (out.o): write s0.o");
}

TEST(Graph, FindsNoTaskThatIsNone) {
  const Graph graph = build("steps:\n  a: {run: x, foreach: {v: [1]}}\n  b: {run: x}");
  EXPECT_TRUE(graph.find("a/1"));
  EXPECT_TRUE(graph.find("b"));
  for (const auto* name : {"a", "a/0", "a/-1", "a/01", "a/", "b/0", "", "/", "c"})
    EXPECT_FALSE(graph.find(name)) << name;
}

/// A flow at random: steps of every kind, each waiting for earlier ones.
std::string random_flow(Rng& rng) {
  std::string text = "steps:\n";
  const std::uint64_t steps = rng.below(8) + 1;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const auto earlier = [&] { return fmt::format("s{}", rng.below(i)); };
    text += fmt::format("  s{}:\n    run: 'x'\n", i);
    const auto kind = i == 0 ? 0 : rng.below(7);
    const bool each = kind != 0 || rng.below(2) == 0;
    if (kind == 0 && each) text += "    foreach: {v: [1, 2, 3]}\n";
    if (kind == 1) text += fmt::format("    foreach: {{v: {}.o}}\n", earlier());
    if (kind == 2 || kind == 3)
      text += fmt::format("    foreach: {{v: {}.o/*, w: [1, 2]}}\n", earlier());
    if (kind == 4) text += fmt::format("    foreach: {{v: {}.o, w: [1, 2]}}\n", earlier());
    if (kind == 5) text += fmt::format("    zip: {{v: {0}.o, w: {0}.o}}\n", earlier());
    if (kind == 6) text += fmt::format("    group: {{vars: {{v: {}.o}}, by: stem}}\n", earlier());
    if (i > 0 && rng.below(2) == 0) text += fmt::format("    in: {{i: {}.o}}\n", earlier());
    if (i > 0 && rng.below(3) == 0) text += fmt::format("    needs: [{}]\n", earlier());
    if (each && rng.below(4) == 0) text += "    when: index != 1\n";
    text += fmt::format("    out: {{o: 'o{}{}'}}\n", i, each ? "/{index}/" : "/");
  }
  return text;
}

TEST(Graph, EveryTaskRunsOnceAfterAllItWaitsFor) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const std::string text = random_flow(rng);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    Graph graph = build(text);
    std::vector<TaskIndex> running;
    std::set<std::int64_t> seen, settled;
    const auto step_settled = [&](StepIndex step) {
      const auto tasks = graph.tasks(step);
      if (!tasks) return false;
      for (std::int64_t i = 0; i < tasks->count; ++i)
        if (!settled.contains(tasks->first.value + i)) return false;
      return true;
    };
    for (;;) {
      const auto ready = *graph.take_ready();
      for (const auto task : ready.skipped) {
        ASSERT_TRUE(seen.insert(task.value).second);
        settled.insert(task.value);
      }
      for (const auto task : ready.run) {
        ASSERT_TRUE(seen.insert(task.value).second);
        const auto& step = graph.flow().steps[static_cast<std::size_t>(graph.step_of(task).value)];
        for (const auto need : step.needs) EXPECT_TRUE(step_settled(need));
        for (const auto& input : step.in) EXPECT_TRUE(step_settled(*input.sources[0].step));
        const auto whole = graph.spec(task);
        ASSERT_TRUE(whole) << whole.error().message;
        for (const auto& input : whole->inputs) EXPECT_FALSE(input.content.entries.empty());
        EXPECT_EQ(graph.find(whole->name), task);
        running.push_back(task);
      }
      if (running.empty()) break;
      std::swap(running[rng.below(running.size())], running.back());
      const auto done = running.back();
      running.pop_back();
      Words parts;
      for (std::uint64_t left = rng.below(3); left > 0; --left)
        parts.push_back(fmt::format("p{}", left));
      if (parts.empty()) parts.push_back(".hidden");
      settled.insert(done.value);
      ASSERT_TRUE(graph.finish(done, {files(parts)}));
    }
    EXPECT_TRUE(graph.done());
    EXPECT_EQ(static_cast<std::int64_t>(settled.size()), graph.known());
  }
}

TEST(Record, NamesWhatChanged) {
  TaskSpec before{.name = "a/0",
                  .command = {"x", "a b\n"},
                  .params = {{"lr", "1"}, {"gone", "="}},
                  .environment = {{"A", "x=y"}},
                  .inputs = {{.place = "data/a b.txt"}, {.place = "c\nd"}},
                  .outputs = {{"o", "d", true}}};
  const std::vector<Digest> digests{sha256("1"), sha256("2")};
  const std::string text = record(before, digests);
  EXPECT_EQ(text,
            "berth task 1\nrun x\nrun a b\\n\nenvironment A=x=y\nparameter gone==\nparameter "
            "lr=1\ninput " +
                to_hex(sha256("1")) + " data/a b.txt\ninput " + to_hex(sha256("2")) +
                " c\\nd\noutput o=d/\n");
  EXPECT_TRUE(changes(text, text)->empty());
  TaskSpec after = before;
  after.name = "renamed/7";
  std::swap(after.params[0], after.params[1]);
  EXPECT_EQ(record(after, digests), text) << "neither the name nor the order of parameters counts";
  after.command = {"x", "c"};
  after.params = {{"lr", "2"}, {"new", "3"}};
  after.outputs[0].directory = false;
  Words told;
  const auto differences = *changes(text, record(after, std::vector{sha256("1"), sha256("3")}));
  for (const auto& change : differences) told.push_back(to_string(change));
  EXPECT_EQ(told,
            (Words{"command: x 'a b\\x0a' -> x c", "input c\\x0ad changed", "output o: d/ -> d",
                   "parameter gone is gone", "parameter lr: 1 -> 2", "parameter new is new"}));
}

TEST(Record, AnImageIsPartOfItOnlyWhereThereIsOne) {
  TaskSpec spec{.name = "a", .command = {"x"}};
  EXPECT_EQ(record(spec, {}), "berth task 1\nrun x\n");
  spec.image = "sha256:ab";
  const std::string before = record(spec, {});
  EXPECT_EQ(before, "berth task 1\nrun x\nimage =sha256:ab\n");
  spec.image = "sha256:cd";
  EXPECT_EQ(to_string(changes(before, record(spec, {}))->at(0)), "image: sha256:ab -> sha256:cd");
}

TEST(Record, ASandboxAndWhatItShowsArePartOfIt) {
  TaskSpec spec{.name = "a", .command = {"x"}};
  const std::string before = record(spec, {});
  spec.sandbox = true;
  spec.shown = {"/data"};
  const auto differ = changes(before, record(spec, {})).value();
  ASSERT_EQ(differ.size(), 2U);
  EXPECT_EQ(to_string(differ[0]), "sandbox is new");
  EXPECT_EQ(to_string(differ[1]), "sandbox /data is new");
}

TEST(Record, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "berth task 2\n", "berth task 1\nrun", "berth task 1\nx\n", "berth task 1\ninput ab\n",
        "berth task 1\nparameter x\n", "berth task 1\n\n"})
    EXPECT_EQ(changes(text, "berth task 1\n").error().kind, ErrorKind::corrupt) << text;
}

}  // namespace
}  // namespace berth::flow
