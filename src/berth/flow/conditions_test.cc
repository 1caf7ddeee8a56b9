#include "berth/base/json_value.h"
#include "berth/testing/flow.h"

namespace berth::flow {
namespace {

std::string at(std::string_view text, const Words& keys) {
  const auto value = json_value_at(text, keys);
  return value ? value->text + (value->number ? " (number)" : "") : value.error().message;
}

TEST(JsonValue, IsFoundByItsKeys) {
  const std::string_view text = R"({"loss": 0.5, "m": {"a.b": [1, "x", null]}, "ok": true})";
  EXPECT_EQ(at(text, {"loss"}), "0.5 (number)");
  EXPECT_EQ(at(text, {"m", "a.b", "0"}), "1 (number)");
  EXPECT_EQ(at(text, {"m", "a.b", "1"}), "x");
  EXPECT_EQ(at(text, {"m", "a.b", "2"}), "null");
  EXPECT_EQ(at(text, {"ok"}), "true");
  EXPECT_EQ(at(text, {"los"}), "there is no 'los'; did you mean 'loss'?");
  EXPECT_EQ(at(text, {"zzz"}), "there is no 'zzz'; there are loss, m, ok");
  EXPECT_EQ(at(text, {"m", "x"}), "there is no 'x' in 'm'; there are a.b");
  EXPECT_EQ(at(text, {"m", "a.b", "3"}), "there is no '3' in 'm.a.b', which is a list of 3");
  EXPECT_EQ(at(text, {"m", "a.b", "-1"}), "there is no '-1' in 'm.a.b', which is a list of 3");
  EXPECT_EQ(at(text, {"loss", "x"}), "there is no 'x' in 'loss', which is 0.5");
  EXPECT_EQ(at(text, {"m"}), "'m' is a map; name a value in it");
  EXPECT_EQ(at("{}", {"x"}), "there is no 'x'");
  EXPECT_EQ(at("loss=1", {"x"}).substr(0, 8), "not JSON");
  EXPECT_EQ(at("", {"x"}).substr(0, 8), "not JSON");
  EXPECT_EQ(at(std::string(100, '[') + std::string(100, ']'), {"x"}).substr(0, 4), "JSON");
}

/// A graph whose tasks write files, each as one output called ".", with these contents.
struct Conditions : testing::Test {
  std::map<std::string, std::string> contents;  // by digest
  std::optional<Graph> graph;
  std::optional<Error> full;  // what the world answers instead

  void build(std::string_view text, bool only = false) {
    auto world = FakeWorld{}.world();
    world.content = [this](const fileset::Entry& file) -> Result<std::string> {
      if (full) return std::unexpected(*full);
      return contents.at(to_hex(file.digest));
    };
    auto flow = read(text);
    if (only) flow.targets = {"a"};
    flow.only = only;
    auto built = Graph::build(std::move(flow), std::move(world));
    ASSERT_TRUE(built) << built.error().message;
    graph.emplace(*std::move(built));
    take();
  }
  void finish(const std::string& task, const std::string& content, Metrics metrics = {}) {
    const Digest digest = sha256(content);
    contents[to_hex(digest)] = content;
    const auto size = static_cast<std::int64_t>(content.size());
    const auto index = *graph->find(task);
    std::vector<fileset::Fileset> outputs(
        graph->flow().steps[static_cast<std::size_t>(graph->step_of(index).value)].out.size(),
        {{{".", fileset::Entry::Kind::file, digest, size, {}}}});
    ASSERT_TRUE(graph->finish(index, std::move(outputs), std::move(metrics)));
    take();
  }
  void take() {
    const auto ready = *graph->take_ready();
    for (const auto task : ready.run) run.insert(graph->name(task));
    for (std::size_t i = 0; i < ready.skipped.size(); ++i)
      skipped[graph->name(ready.skipped[i])] = ready.because[i];
  }
  std::string error(const std::string& task) {
    const auto spec = graph->spec(*graph->find(task));
    return spec ? "none" : spec.error().message;
  }
  std::set<std::string> run;
  std::map<std::string, std::string> skipped;
};

TEST_F(Conditions, OnAJsonFileAreOfTheInstanceThatIsAsked) {
  build(R"(
params: {most: 0.5}
steps:
  train: {foreach: {s: [A, B]}, run: x, out: {r: 'r/{s}.json', m: 'm/{s}'}}
  keep: {foreach: {m: train.m}, run: x, out: {o: 'k/{key}'}, when: 'json(train.r, metrics.loss) < {most}'}
  next: {foreach: {k: keep.o}, run: x, when: 'json(train.r, name) != B'}
  all: {run: x, when: 'json(train.r, metrics.loss)<1'}
  none: {run: x, when: 'json(train.r, metrics.loss) >= 0.6'}
)");
  finish("train/B", R"({"metrics": {"loss": 0.7}, "name": "B"})");
  EXPECT_EQ(skipped["keep/B"], "json(train.r, metrics.loss) is '0.7', not < '0.5', of train/B");
  EXPECT_EQ(skipped["next/B"], "keep/B was skipped, which makes its k");
  EXPECT_FALSE(run.contains("keep/A")) << "its own has not told yet";
  finish("train/A", R"({"metrics": {"loss": 1e-1}, "name": "A"})");
  EXPECT_TRUE(run.contains("keep/A"));
  EXPECT_TRUE(run.contains("all"));
  EXPECT_EQ(skipped["none"], "json(train.r, metrics.loss) is '0.1', not >= '0.6', of train/A");
  finish("keep/A", "x");
  EXPECT_TRUE(run.contains("next/A")) << "two steps below";
}

TEST_F(Conditions, WhatIsShortWhileAFileIsReadIsNoAnswer) {
  full = Error{ErrorKind::full, "no descriptors"};
  build(R"(
steps:
  a: {run: x, out: {o: a.json}}
  b: {run: x, when: "json(a.o, n) == 1"}
)");
  const auto index = *graph->find("a");
  ASSERT_TRUE(graph->finish(index, {{{{".", fileset::Entry::Kind::file, sha256("{}"), 2, {}}}}}));
  EXPECT_EQ(graph->take_ready().error().kind, ErrorKind::full);
}

TEST_F(Conditions, OnAMetricOfAStepThatDoesNotRunSaySo) {
  build("steps:\n  t: {run: x}\n  a: {run: x, when: 'metric(t, loss) < 1'}\n", true);
  finish("t", "");
  EXPECT_EQ(error("a"),
            "f.yaml:3: steps.a: when: metric(t, loss): t does not run with --only, and its metrics "
            "are known only where it does: give the targets without --only");
}

TEST_F(Conditions, OnMetricsCompareNumbersAndTextsAsSuch) {
  build(R"(
steps:
  t: {run: x}
  a: {run: x, when: "metric(t, loss) < 10 and metric(t, loss) == 9.0 and metric(t, loss) != 10"}
  b: {run: x, when: "metric(t, acc) > 0"}
  c: {run: x, when: "metric(t, loss) <= 8.5"}
)");
  finish("t", "", {{"loss", 9}, {"other", 1}});
  EXPECT_TRUE(run.contains("a")) << "9 is below 10 although its text is not";
  EXPECT_EQ(skipped["c"], "metric(t, loss) is '9', not <= '8.5'");
  EXPECT_TRUE(run.contains("b")) << "it is to fail";
  EXPECT_EQ(error("b"),
            "f.yaml:5: steps.b: when: metric(t, acc): t has not reported a metric 'acc'; it "
            "reported loss, other");
}

TEST_F(Conditions, ThatCannotBeDecidedFailTheirTaskAlone) {
  build(R"(
steps:
  t: {run: x, out: {r: r.json}}
  key: {run: x, when: "json(t.r, los) < 1"}
  text: {run: x, when: "json(t.r, name) < 1"}
  good: {run: x, when: "json(t.r, name) == t and json(t.r, 'a.b') == true"}
)");
  finish("t", R"({"loss": 1, "name": "t", "a.b": true})");
  EXPECT_EQ(error("key"),
            "f.yaml:4: steps.key: when: json(t.r, los): r.json: there is no 'los'; did you mean "
            "'loss'?");
  EXPECT_EQ(error("text"),
            "f.yaml:5: steps.text: when: json(t.r, name): t: 't' is not a number, and < compares "
            "numbers");
  EXPECT_EQ(error("good"), "none");
  EXPECT_TRUE(skipped.empty());
}

TEST_F(Conditions, OnFilesThatAreTooLargeOrNotJson) {
  build("steps:\n  t: {run: x, out: {r: r.json}}\n  n: {run: x, when: 'json(t.r, a) == 1'}");
  finish("t", std::string(kMostJsonBytes + 1, ' '));
  EXPECT_EQ(error("n"),
            "f.yaml:3: steps.n: when: json(t.r, a): r.json: it has 1048577 bytes, more than the "
            "1048576 that a condition reads");
  graph.reset();
  build("steps:\n  t: {run: x, out: {r: r.json}}\n  n: {run: x, when: 'json(t.r, a) == 1'}");
  finish("t", "\xff\x00{");
  EXPECT_TRUE(error("n").starts_with("f.yaml:3: steps.n: when: json(t.r, a): r.json: not JSON"));
}

TEST_F(Conditions, OnTasksThatWereSkippedOrAreNoneDoNotHold) {
  build(R"(
params: {mode: fast}
steps:
  no: {run: x, out: {r: r.json}, when: mode == slow}
  a: {run: x, when: "json(no.r, x) == 1"}
  l: {run: x, out: {d: d/}}
  each: {foreach: {f: l.d/*}, run: x, out: {o: 'o/{index}'}}
  b: {run: x, when: "json(each.o, x) == 1"}
)");
  EXPECT_EQ(skipped["a"], "json(no.r, x): no was skipped");
  ASSERT_TRUE(graph->finish(*graph->find("l"), {files({})}));
  take();
  EXPECT_EQ(skipped["b"], "json(each.o, x): there is no task of each for it");
}

}  // namespace
}  // namespace berth::flow
