// What instances are called by, and how the elements of several sources come together.
#include <gtest/gtest.h>

#include "berth/base/rng.h"
#include "berth/flow/notation.h"
#include "berth/testing/flow.h"

namespace berth::flow {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Words ready(Graph& graph) {
  return names(graph, graph.take_ready()->run);
}

TEST(Keys, AreSafeTexts) {
  EXPECT_EQ(key_text("A-1_b.2=+@:~"), "A-1_b.2=+@:~");
  EXPECT_EQ(key_text("a/b c,d%"), "a%2Fb%20c%2Cd%25");
  EXPECT_EQ(key_text("Größe"), "Größe");
  EXPECT_EQ(key_text("\xff"), "%FF");
  EXPECT_EQ(key_text(""), "%");
  EXPECT_EQ(key_text(".."), "%2E%2E");
  const std::string lengthy(150, 'a');
  EXPECT_EQ(key_text(lengthy).size(), 93U);
  EXPECT_NE(key_text(lengthy), key_text(lengthy + "b"));
  EXPECT_EQ(key_text("x" + std::string(49, 'a') + std::string("ä") + lengthy).find("\xc3~"),
            std::string::npos);
}

TEST(Keys, OfUrlsHaveNoSecrets) {
  const std::string key = key_text("https://host/a.gz?sig=S");
  EXPECT_TRUE(key.starts_with("https:%2F%2Fhost%2Fa.gz~")) << key;
  EXPECT_EQ(key_text("https://host/a.gz"), "https:%2F%2Fhost%2Fa.gz");
  EXPECT_NE(key_text("https://host/a.gz?sig=T"), key) << "what is behind '?' tells them apart";
  EXPECT_FALSE(key_text("https://u:SECRET@host/" + std::string(150, 'a') + "?S").contains('@'));
  Graph graph = build(R"(
steps:
  a: {run: 'x {u.name} {u.stem} {u.ext} {u.dir}', foreach: {u: ['https://h/b/c.gz?S', 'https://h/d?S']}}
)");
  const auto tasks = ready(graph);
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_FALSE(join(tasks, " ").contains('?')) << join(tasks, " ");
  EXPECT_EQ(spec(graph, tasks.front()).command, (Words{"x", "c.gz", "c", "gz", "https://h/b"}));
}

TEST(Keys, OfAListOfAParameterAndOfFiles) {
  Graph graph = build(R"(
params: {samples: [A, B]}
steps:
  map: {run: 'x {s} {key}', foreach: {s: '{samples}'}, out: {bam: 'm/{key}.bam'}}
  sort: {run: 'y {b} {b.s} {b.stem}', foreach: {b: map.bam}, out: {bam: 's/{b.s}.bam'}}
  call: {run: 'z {s.s}', foreach: {s: sort.bam}, out: {vcf: '{key}.vcf'}}
  raw: {run: 'r {f.name} {f.ext} {f.dir}', foreach: {f: 'data/*.fq.gz'}}
)",
                      {{"data/x.fq.gz", "data/y.fq.gz"}, {}});
  EXPECT_EQ(ready(graph), (Words{"map/A", "map/B", "raw/x.fq", "raw/y.fq"}));
  EXPECT_EQ(spec(graph, "map/A").command, (Words{"x", "A", "A"}));
  EXPECT_EQ(spec(graph, "map/A").params, (Pairs{{"s", "A"}}))
      << "the list is no parameter of one: another sample runs none of the others again";
  EXPECT_EQ(spec(graph, "raw/x.fq").command, (Words{"r", "x.fq.gz", "gz", "data"}));
  ASSERT_TRUE(finish(graph, "map/B"));
  EXPECT_EQ(ready(graph), Words{"sort/B"}) << "as soon as its own input is there";
  EXPECT_EQ(spec(graph, "sort/B").command, (Words{"y", "m/B.bam", "B", "B"}));
  ASSERT_TRUE(finish(graph, "sort/B"));
  EXPECT_EQ(ready(graph), Words{"call/B"});
  EXPECT_EQ(spec(graph, "call/B").command, (Words{"z", "B"})) << "handed on from step to step";
  EXPECT_EQ(spec(graph, "call/B").outputs[0].path, "B.vcf");
}

TEST(Keys, DoNotChangeWhenOthersComeOrGo) {
  const auto of = [](const std::string& list) {
    Graph graph = build(fmt::format("steps: {{a: {{run: 'x {{s}}', foreach: {{s: {}}}}}}}", list));
    std::map<std::string, std::string> records;
    for (const auto& name : ready(graph)) records[name] = record(spec(graph, name), {});
    return records;
  };
  auto before = of("[A, B]");
  auto after = of("[0, A, AB, B]");
  for (const auto& [name, text] : before) EXPECT_EQ(after.at(name), text);
  EXPECT_EQ(after.size(), 4U);
}

TEST(Keys, OfNamedPartsAndTables) {
  FakeWorld world{{"reads/a_L1.fq", "reads/a_L2.fq", "reads/b_L1.fq", "one.fq"}, {}};
  world.tables["samples.csv"] = "id,fastq,depth\nP/1,one.fq,30\nP 2,one.fq,\n";
  Graph graph = build(R"(
params: {reads: reads}
steps:
  map:
    foreach: {r: '{reads}/{sample}_{lane}.fq'}
    run: x {r} {r.sample} {r.lane}
    out: {bam: 'm/{r.sample}/{r.lane}'}
  row:
    foreach: {row: {table: samples.csv}}
    in: {fq: '{row.fastq}'}
    run: y {in.fq} {row} {row.depth}
  merge:
    group: {vars: {bam: map.bam}, by: [sample]}
    run: merge {bam.sample} {bam} {bam.lane}
    out: {bam: 'merged/{key}'}
  after: {foreach: {m: merge.bam}, run: 'z {m.sample}'}
)",
                      world);
  EXPECT_EQ(ready(graph), (Words{"map/a,L1", "map/a,L2", "map/b,L1", "row/P%2F1", "row/P%202"}));
  EXPECT_EQ(spec(graph, "map/a,L2").command, (Words{"x", "reads/a_L2.fq", "a", "L2"}));
  EXPECT_EQ(spec(graph, "row/P%2F1").command, (Words{"y", "one.fq", "P/1", "30"}));
  EXPECT_EQ(spec(graph, "row/P%2F1").params,
            (Pairs{{"row", "P/1"}, {"row.depth", "30"}, {"row.fastq", "one.fq"}}));
  ASSERT_TRUE(finish(graph, "map/b,L1"));
  EXPECT_EQ(ready(graph), Words{"merge/b"}) << "its group is there, though the step is not done";
  ASSERT_TRUE(finish(graph, "map/a,L2"));
  EXPECT_EQ(ready(graph), Words{});
  ASSERT_TRUE(finish(graph, "map/a,L1"));
  EXPECT_EQ(ready(graph), Words{"merge/a"});
  EXPECT_EQ(spec(graph, "merge/a").command, (Words{"merge", "a", "m/a/L1", "m/a/L2", "L1", "L2"}));
  ASSERT_EQ(spec(graph, "merge/a").inputs.size(), 2U);
  ASSERT_TRUE(finish(graph, "merge/a"));
  EXPECT_EQ(ready(graph), Words{"after/a"});
  EXPECT_EQ(spec(graph, "after/a").command, (Words{"z", "a"}));
}

TEST(Keys, JoinPairsWhatHasTheSameKey) {
  const std::string steps = R"(
steps:
  t: {run: x, foreach: {s: [B, A]}, out: {bam: 't/{s}'}}
  n: {run: x, foreach: {s: [A, B, C]}, out: {bam: 'n/{s}'}, when: s != C}
  call:
    join: {vars: {n: n.bam, t: t.bam}, by: [s], optional: [t]}
    run: call {n} {t} {n.s}
    out: {o: 'c/{key}'}
)";
  Graph graph = build(steps);
  EXPECT_EQ(ready(graph), (Words{"t/B", "t/A", "n/A", "n/B"}));
  ASSERT_TRUE(finish(graph, "n/B"));
  ASSERT_TRUE(finish(graph, "t/A"));
  EXPECT_EQ(ready(graph), Words{});
  ASSERT_TRUE(finish(graph, "t/B"));
  EXPECT_EQ(ready(graph), Words{"call/B"}) << "while its steps' other instances run";
  EXPECT_EQ(spec(graph, "call/B").command, (Words{"call", "n/B", "t/B", "B"}));
  ASSERT_TRUE(finish(graph, "n/A"));
  EXPECT_EQ(ready(graph), Words{"call/A"});
  EXPECT_FALSE(graph.find("call/D"));
  EXPECT_TRUE(graph.find("call/C")) << "though it is skipped: C was, of n";
  std::string must = steps;
  must.replace(must.find(", optional: [t]"), 15, "");
  EXPECT_EQ(complaint(must),
            "f.yaml:6: steps.call: join: t has nothing for C; write optional: [t] to continue "
            "without it");
}

TEST(Keys, AnOptionalPartnerThatIsNotThereIsTheEmptyText) {
  Graph graph = build(R"(
steps:
  call:
    join: {vars: {t: 't/{s}.bam', n: 'n/{s}.bam'}, by: [s], optional: [n]}
    run: [call, '{t}', '--normal={n}']
)",
                      {{"t/A.bam", "t/B.bam", "n/A.bam"}, {}});
  EXPECT_EQ(ready(graph), (Words{"call/A", "call/B"}));
  EXPECT_EQ(spec(graph, "call/A").command, (Words{"call", "t/A.bam", "--normal=n/A.bam"}));
  EXPECT_EQ(spec(graph, "call/B").command, (Words{"call", "t/B.bam", "--normal="}));
  EXPECT_EQ(spec(graph, "call/B").inputs.size(), 1U);
}

TEST(Keys, ZipGoesByPosition) {
  Graph graph = build(R"(
steps:
  pair: {zip: {a: 'r/{s}_1.fq', b: 'r/{s}_2.fq'}, run: 'x {a} {b} {a.s}'}
  more: {zip: {a: [p, q], b: [u, v]}, run: 'x {a}{b}'}
)",
                      {{"r/A_1.fq", "r/A_2.fq", "r/B_1.fq", "r/B_2.fq"}, {}});
  EXPECT_EQ(ready(graph), (Words{"pair/A", "pair/B", "more/p,u", "more/q,v"}));
  EXPECT_EQ(spec(graph, "pair/B").command, (Words{"x", "r/B_1.fq", "r/B_2.fq", "B"}));
  EXPECT_EQ(complaint("steps: {a: {zip: {a: [1], b: [1, 2]}, run: x}}"),
            "f.yaml:1: steps.a: zip: a has 1 elements, and b has 2");
}

TEST(Keys, ThatRepeatAreNumbersWithANote) {
  const FakeWorld world{{"l/LGPL-2", "l/LGPL-2.1"}, {}};
  Graph graph = build("steps: {a: {run: x, foreach: {f: l/*}}}", world);
  EXPECT_EQ(ready(graph), (Words{"a/0", "a/1"}));
  ASSERT_EQ(graph.notes().size(), 1U);
  EXPECT_EQ(graph.notes()[0],
            "f.yaml:1: several tasks of a would be called LGPL-2, so they are numbered; to "
            "distinguish them, give a key such as key: '{f.name}'");
  EXPECT_EQ(complaint("steps: {a: {run: 'x {key}', foreach: {f: l/*}}}", world),
            "f.yaml:1: steps.a: {key}: several of its tasks are called LGPL-2; give a key that "
            "distinguishes them, such as key: '{f.name}'");
  Graph named = build("steps: {a: {run: 'x {key}', foreach: {f: l/*}, key: '{f.name}'}}", world);
  EXPECT_EQ(ready(named), (Words{"a/LGPL-2", "a/LGPL-2.1"}));
  EXPECT_TRUE(named.notes().empty());
  const std::string join = R"(
steps:
  a: {run: x, foreach: {f: l/*}, out: {o: 'o/{f.name}'}}
  b: {run: x, join: {vars: {a: a.o}}}
)";
  EXPECT_EQ(complaint(join, world),
            "f.yaml:4: steps.b: join: several tasks of a are called LGPL-2: name what "
            "distinguishes them (by: [NAME]), or give that step a key");
}

TEST(Keys, ARunOfAnOlderBerthKeepsItsNumbers) {
  Flow flow = read("steps: {a: {run: x, foreach: {s: [A, B]}}}");
  flow.keyed = false;
  auto graph = Graph::build(std::move(flow), FakeWorld{}.world());
  EXPECT_EQ(ready(*graph), (Words{"a/0", "a/1"}));
  EXPECT_EQ(graph->find("a/1"), TaskIndex{1});
  EXPECT_FALSE(graph->find("a/B"));
}

TEST(Keys, AParameterOfThatNameWins) {
  Graph graph = build("params: {key: k}\nsteps: {a: {run: 'x {key}', foreach: {s: [A]}}}");
  EXPECT_EQ(ready(graph), Words{"a/A"});
  EXPECT_EQ(spec(graph, "a/A").command, (Words{"x", "k"}));
}

TEST(Keys, WrongNamesAreToldWhereTheyStand) {
  const auto of = [](const std::string& step, const FakeWorld& world = {}) {
    return complaint(
        "params: {threshold: 1}\nsteps:\n  m: {run: x, foreach: {s: [A]}, out: {o: "
        "'{s}'}}\n  a: {" +
            step + "}",
        world);
  };
  EXPECT_EQ(
      of("run: 'x {v.sample}', foreach: {v: m.o}"),
      "f.yaml:4: steps.a: run: an element of v has no 'sample'; it has dir, ext, key, name, s, "
      "stem");
  EXPECT_EQ(
      of("run: x, foreach: {v: m.o}, out: {o: '{v.stme}'}"),
      "f.yaml:4: steps.a: out.o: an element of v has no 'stme'; it has dir, ext, key, name, s, "
      "stem");
  EXPECT_EQ(of("run: x, foreach: {v: 'r/{treshold}'}"),
            "f.yaml:4: steps.a.foreach.v: unknown name {treshold}; did you mean {threshold}?");
  EXPECT_EQ(of("run: x, foreach: {v: [1], w: 'r/{v}'}"),
            "f.yaml:4: steps.a.foreach.w: {v} is a variable of this step; a source can only use "
            "parameters and its own parts");
  EXPECT_EQ(of("run: x, foreach: {v: [1]}, zip: {w: [1]}"),
            "f.yaml:4: steps.a.zip: a step has one of foreach, zip, join and group");
  EXPECT_EQ(of("run: x, key: '{s}'"),
            "f.yaml:4: steps.a.key: a step without foreach is one task, and needs none");
  EXPECT_EQ(
      of("run: x, group: {vars: {v: m.o}, by: [lane]}"),
      "f.yaml:4: steps.a: group.by: an element of v has no 'lane'; it has dir, ext, key, name, "
      "s, stem");
  EXPECT_EQ(of("run: x, group: {vars: {v: m.o}, by: [s]}, out: {o: '{v}'}"),
            "f.yaml:4: steps.a.out.o: an output cannot be named by a list; put {key} into it");
  EXPECT_EQ(
      of("run: x, foreach: {v: {table: t.xls}}"),
      "f.yaml:4: steps.a.foreach.v.table: a table is a .csv or a .tsv file, and 't.xls' is not");
  FakeWorld world;
  world.tables["t.csv"] = "id,read\nA,x\n";
  EXPECT_EQ(of("run: 'x {v.reads}', foreach: {v: {table: t.csv}}", world),
            "f.yaml:4: steps.a: run: an element of v has no 'reads'; did you mean 'read'? it has "
            "dir, ext, id, key, name, "
            "read, stem");
  EXPECT_EQ(of("run: x, foreach: {v: {table: gone.csv}}", world),
            "f.yaml:4: steps.a: foreach.v: there is no table gone.csv");
  EXPECT_EQ(of("run: x, foreach: {v: [1]}, out: {o: x}"),
            "f.yaml:4: steps.a.out.o: all tasks of the foreach would write 'x'; put {key} into it");
}

/// By brute force: of a join, exactly the pairs whose key is the same; of a group, each element
/// once.
TEST(Keys, JoinAndGroupAreWhatBruteForceFinds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    FakeWorld world;
    std::vector<std::pair<std::string, std::string>> left, right;
    for (int i = 0; i < 6; ++i) {
      const std::string by(1, static_cast<char>('a' + rng.below(3)));
      const std::string lane = fmt::format("{}", rng.below(3));
      const bool is_left = rng.below(2) == 0;
      if (world.files.insert(fmt::format("{}/{}_{}", is_left ? "l" : "r", by, lane)).second)
        (is_left ? left : right).emplace_back(by, lane);
    }
    if (left.empty() || right.empty()) continue;
    auto graph = Graph::build(read(R"(
steps:
  j: {run: 'x {l} {r}', join: {vars: {l: 'l/{s}_{n}', r: 'r/{s}_{n}'}, by: [s], optional: [r]}}
  g: {run: 'x {l}', group: {vars: {l: 'l/{s}_{n}'}, by: [s]}}
)"),
                              world.world());
    std::multiset<std::string> expected, found;
    std::map<std::string, int> groups;
    bool alone = false;  // one of the right has no partner
    for (const auto& [s, n] : left) {
      bool any = false;
      for (const auto& [t, m] : right)
        if (s == t) any = true, expected.insert(fmt::format("l/{}_{} r/{}_{}", s, n, t, m));
      if (!any) expected.insert(fmt::format("l/{}_{} ", s, n));
      ++groups[s];
    }
    for (const auto& each : right) alone = alone || !groups.contains(each.first);
    ASSERT_EQ(graph.has_value(), !alone) << seed;
    if (alone) continue;
    std::size_t grouped = 0;
    const auto tasks = *graph->take_ready();
    for (const auto task : tasks.run) {
      const auto spec = *graph->spec(task);
      if (spec.name.starts_with("g/")) {
        EXPECT_EQ(spec.inputs.size(), static_cast<std::size_t>(groups.at(spec.name.substr(2))));
        grouped += spec.inputs.size();
        continue;
      }
      found.insert(spec.params[0].second + " " + spec.params[1].second);
    }
    EXPECT_EQ(found, expected) << seed;
    EXPECT_EQ(grouped, left.size());
  }
}

}  // namespace
}  // namespace berth::flow
