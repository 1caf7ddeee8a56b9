#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "berth/testing/fleet.h"
#include "berth/testing/generated_fleet.h"
#include "paths.h"

namespace berth::fleet {

std::string testing::text_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

namespace {

std::string error_of(const std::string& text) {
  const auto reading = read_documents(std::array{Document{"fleet.json", text}});
  return reading ? "" : reading.error().message;
}

TEST(FleetDocument, IsWrittenAsItIsRead) {
  for (const char* name : {"f1", "f2", "f3", "f9"}) {
    const System system = testing::fleet(name);
    EXPECT_GT(system.servers.size(), 4U);
    EXPECT_EQ(testing::read({{"w", write_document(system)}}), system);
  }
}

TEST(FleetDocument, KeysInAnyCaseWithOrWithoutWrapper) {
  const System wrapped = testing::read(
      {{"a",
        R"({"acceleratorData": {"accelerators": [{"name": "A", "cost": 2.5, "memBW": 7}]}})"}});
  EXPECT_EQ(wrapped.accelerators.at("A").cost, 2.5);
  EXPECT_EQ(wrapped.accelerators.at("A").type, "A");
  for (
      const char* text :
      {R"({"ACCELERATORS": [{"NAME": "A", "Cost": 2.5, "membw": 7}]})",
       R"({"system": {"acceleratordata": {"Accelerators": [{"name": "A", "cost": 2.5, "memBW": 7.0}]}}})"})
    EXPECT_EQ(testing::read({{"a", text}}), wrapped) << text;
}

TEST(FleetDocument, CommentsArePassedOver) {
  const System plain = testing::read({{"a", R"({"count": [{"type": "T", "count": 2}]})"}});
  EXPECT_EQ(testing::read({{"a",
                            "// what there is\n{\"count\": [ /* one */\n"
                            "  {\"type\": \"T\", \"count\": 2}]}  // the end\n"}}),
            plain);
  EXPECT_TRUE(error_of("{} /*").starts_with("fleet.json: not JSON"));
}

TEST(FleetDocument, FaultsAreNamedByTheirPath) {
  EXPECT_EQ(
      error_of(
          R"({"serverData": {"servers": [{"name": "S"}, {"name": "T", "maxQueueSize": -1}]}})"),
      "fleet.json: serverData.servers[1].maxQueueSize: expected at least 0, got -1");
  EXPECT_EQ(error_of(R"({"models": [{"name": "M", "acc": "A", "perfParms": {"alpha": "x"}}]})"),
            "fleet.json: models[0].perfParms.alpha: expected a number, got \"x\"");
  EXPECT_EQ(error_of(R"({"models": [{"name": "M", "acc": "A", "perfParms": {"gamma": -0.5}}]})"),
            "fleet.json: models[0].perfParms.gamma: expected at least 0, got -0.5");
  EXPECT_EQ(error_of(R"({"count": [{"type": "T", "count": 1.5}]})"),
            "fleet.json: count[0].count: expected a whole number, got 1.5");
  EXPECT_EQ(error_of(R"({"serviceClasses": [{"name": "C", "priority": 0}]})"),
            "fleet.json: serviceClasses[0].priority: expected at least 1, got 0");
  EXPECT_EQ(error_of(R"({"servers": [{"name": "S"}, {"name": "S"}]})"),
            "fleet.json: servers[1]: 'S' is given twice");
  EXPECT_EQ(error_of(R"({"servers": [{"name": "S", "NAME": "T"}]})"),
            "fleet.json: servers[0].NAME: given twice");
  EXPECT_TRUE(error_of("{").starts_with("fleet.json: not JSON"));
  EXPECT_TRUE(error_of("[]").starts_with("fleet.json: expected an object"));
  EXPECT_TRUE(error_of(R"({"x": 1})").starts_with("fleet.json: not a fleet document"));
  EXPECT_TRUE(error_of(R"({"count": [{"type": "T", "count": 1e999}]})")
                  .starts_with("fleet.json: not JSON"));
}

TEST(FleetDocument, PartsOfAMixAddUp) {
  const auto error_in = [](const std::string& allocation) {
    return error_of(R"({"servers": [{"name": "S", "currentAlloc": )" + allocation + "}]}");
  };
  const std::string mix =
      R"({"accelerator": "A", "numReplicas": 3, "cost": 7, "parts": [
          {"accelerator": "A", "numReplicas": 2, "cost": 5},
          {"accelerator": "B", "numReplicas": 1, "cost": 2}]})";
  EXPECT_EQ(error_in(mix), "");
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string changed = mix;
    changed.replace(changed.find(from), from.size(), to);
    return error_in(changed);
  };
  const std::string at = "fleet.json: servers[0].currentAlloc";
  EXPECT_EQ(error_in(R"({"parts": 3})"), at + ".parts: expected a list, got 3");
  EXPECT_EQ(error_in(R"({"parts": [3]})"), at + ".parts[0]: expected an object, got 3");
  EXPECT_EQ(error_with(R"("cost": 2)", R"("cost": -2)"),
            at + ": parts[1].cost: expected at least 0, got -2");
  EXPECT_EQ(error_with("\"B\"", "\"A\""), at + ": parts[1]: 'A' is given twice");
  EXPECT_EQ(error_with("\"B\"", "\"\""), at + ": parts[1]: has no accelerator");
  EXPECT_EQ(error_with("\"A\"", "\"C\""), at + ": accelerator: 'C' is of none of the parts");
  EXPECT_EQ(error_with("3", "4"), at + ": numReplicas: 4, the parts have 3");
  EXPECT_EQ(error_with("7", "8"), at + ": cost: 8, the parts cost 7");
  EXPECT_EQ(error_with(R"("cost": 2)", R"("parts": [{"accelerator": "B"}])"),
            at + ": parts[1]: has parts itself");
}

TEST(FleetDocument, GeneratorsMakeTheSameFleet) {
  const std::string path = fmt::format("{}berth-fleet-{}.json", ::testing::TempDir(), getpid());
  for (const auto& [seed, accelerators] : {std::pair{1U, 21}, {2U, 7}, {3U, 40}}) {
    const std::string command = fmt::format(
        "/usr/bin/python3 {}/tools/generate_fleet.py --seed {} --servers 50 "
        "--accelerators {} > {}",
        tests::source_path(""), seed, accelerators, path);
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(testing::read({{"generated", testing::text_of(path)}}),
              testing::generated_fleet(seed, 50, accelerators))
        << seed;
  }
  std::remove(path.c_str());
}

TEST(FleetDocument, DocumentsMayRepeatWhatIsTheSame) {
  const std::string one =
      R"({"accelerators": [{"name": "A", "cost": 2}], "count": [{"type": "A", "count": 1}],
          "models": [{"name": "M", "acc": "A", "maxBatchSize": 4}],
          "serviceClasses": [{"name": "C", "priority": 2}], "servers": [{"name": "S"}]})";
  const std::string more = R"({"models": [{"name": "M", "acc": "A", "maxBatchSize": 4},
                                          {"name": "M", "acc": "B", "maxBatchSize": 5}]})";
  const System system = testing::read({{"a", one}, {"b", one}, {"c", more}});
  EXPECT_EQ(system.accelerators.size(), 1U);
  EXPECT_EQ(system.models.at("M").accelerators.size(), 2U);
  const auto other = read_documents(std::array{
      Document{"a", one}, Document{"b", R"({"accelerators": [{"name": "A", "cost": 3}]})"}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "b: accelerator 'A' is not the same as in an earlier document");
}

TEST(FleetDocument, NamesThatNothingBearsAreTold) {
  const System system = testing::read({{"a", R"({"accelerators": [{"name": "A", "type": "T"}],
                 "count": [{"type": "T", "count": 1}, {"type": "U", "count": 1}],
                 "models": [{"name": "M", "acc": "A"}, {"name": "M", "acc": "B"}],
                 "servers": [{"name": "S", "currentAlloc": {"accelerator": "C"}},
                             {"name": "R", "currentAlloc": {"accelerator": "A"}}]})"}});
  EXPECT_EQ(dangling_names(system),
            (std::vector<std::string>{
                "model 'M' has performance data on 'B', which is not an accelerator",
                "a capacity of 'U', which is not the type of any accelerator",
                "server 'S' has 'C' now, which is not an accelerator"}));
}

TEST(FleetDocument, WholeNumbersAreWrittenWithoutAFraction) {
  System system = testing::read({{"a", R"({"accelerators": [{"name": "A", "memSize": 80.0,
                                           "cost": 2.5, "power": {"idle": 7}}]})"}});
  const std::string text = write_document(system);
  EXPECT_NE(text.find(R"("memSize":80,)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("idle":7,)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("cost":2.5)"), std::string::npos) << text;
}

TEST(FleetDocument, KeysThatOtherPlannersLackAreReadAndWrittenBack) {
  const std::string text =
      R"({"models": [{"name": "M", "acc": "A", "perfParms": {"alpha": 1, "betaPrefill": 0.5,
                      "ttftOffset": 7, "form": "MAX"}}],
          "serviceClasses": [{"name": "C", "modelTargets": [{"model": "M", "slo-ttft": 900,
                              "slo-ttft-p95": 800, "slo-itl-p99": 70, "slo-itl-p50": 0}]}],
          "servers": [{"name": "S", "currentAlloc": {"load": {"avgInTokens": 512,
                       "inTokensCv": 1.25, "outTokensCv": 0.5, "arrivalCv": 0}}}]})";
  const System system = testing::read({{"a", text}});
  const Performance& p = system.models.at("M").accelerators.at("A");
  EXPECT_EQ(p.beta_prefill_ms, 0.5);
  EXPECT_EQ(p.ttft_offset_ms, 7);
  EXPECT_EQ(p.form, StepForm::max);
  const Target& target = system.classes.at("C").targets.at("M");
  EXPECT_EQ(target.percentiles, (Percentiles{{0, 0, 800, 0}, {0, 0, 0, 70}}));
  const Load& load = system.servers.at("S").current.load;
  EXPECT_EQ(load.in_cv, 1.25);
  EXPECT_EQ(load.out_cv, 0.5);
  EXPECT_EQ(load.arrival_cv, 0);
  const std::string written = write_document(system);
  EXPECT_EQ(testing::read({{"w", written}}), system);
  EXPECT_NE(written.find(R"("avgInTokens":512,)"), std::string::npos) << written;
  const std::string plain = write_document(testing::read({{"a", R"({"servers": [{"name": "S"}],
            "models": [{"name": "M", "acc": "A"}], "serviceClasses": [{"name": "C",
            "modelTargets": [{"model": "M", "slo-ttft": 900}]}]})"}}));
  for (const char* key : {"Cv", "-p", "betaPrefill", "ttftOffset", "form"})
    EXPECT_EQ(plain.find(key), std::string::npos) << key;

  EXPECT_EQ(error_of(R"({"models": [{"name": "M", "acc": "A", "perfParms": {"form": "both"}}]})"),
            "fleet.json: models[0].perfParms.form: expected one of sum, max, got \"both\"");
  EXPECT_EQ(
      error_of(R"({"servers": [{"name": "S", "currentAlloc": {"load": {"arrivalCv": 21}}}]})"),
      "fleet.json: servers[0].currentAlloc: arrivalCv: expected at most 20, got 21");
}

std::string with_load(const std::string& load) {
  return R"({"servers": [{"name": "S", "currentAlloc": {"load": )" + load + "}}]}";
}
const Load& load_in(const System& system) {
  return system.servers.at("S").current.load;
}
const std::string kBimodal =
    R"("outTokensHistogram": [{"weight": 3, "tokens": 100}, {"tokens": 500, "weight": 1}])";

TEST(FleetDocument, HistogramsAreReadAndWrittenBack) {
  const System system = testing::read(
      {{"a", with_load(R"({"avgInTokens": 512, "inTokensCv": 1,)" + kBimodal + "}")}});
  const Load& load = load_in(system);
  EXPECT_EQ(load.out_tokens, 200);
  EXPECT_EQ(load.out_histogram, *LengthHistogram::of({{100, 3}, {500, 1}}));
  EXPECT_EQ(load.out_cv, load.out_histogram.cv());
  EXPECT_FALSE(load.in_histogram);
  const std::string written = write_document(system);
  EXPECT_EQ(testing::read({{"w", written}}), system);
  EXPECT_NE(written.find(R"("outTokensHistogram":[{"tokens":100,"weight":3},)"), std::string::npos)
      << written;
  EXPECT_NE(written.find(R"("avgOutTokens":200,)"), std::string::npos) << written;

  const System rounded = testing::read(
      {{"a", with_load(R"({"avgInTokens": 2, "inTokensCv": 0.19, "INTOKENSHISTOGRAM": [
                          {"tokens": 2, "weight": 0.3}, {"tokens": 3, "weight": 0.1},
                          {"tokens": 9, "weight": 0}]})")}});
  EXPECT_NEAR(load_in(rounded).in_tokens, 2.25, 1e-12) << "the histogram knows better";
  EXPECT_EQ(load_in(rounded).in_histogram.bins().size(), 2U);
  EXPECT_EQ(testing::read({{"w", write_document(rounded)}}), rounded);
}

TEST(FleetDocument, HistogramsThatAreNoneAreRefused) {
  const std::string at = "fleet.json: servers[0].currentAlloc.load";
  const auto error_with = [](const std::string& keys) { return error_of(with_load(keys)); };
  EXPECT_EQ(error_with(R"({"avgOutTokens": 300, )" + kBimodal + "}"),
            at + ": avgOutTokens: 300, the mean of outTokensHistogram is 200");
  EXPECT_EQ(error_with(R"({"outTokensCv": 1, )" + kBimodal + "}"),
            at + ": outTokensCv: 1, that of outTokensHistogram is 0.8660254037844386");
  EXPECT_EQ(error_with(R"({"inTokensHistogram": {}})"),
            at + ".inTokensHistogram: expected a list, got {}");
  EXPECT_EQ(error_with(R"({"inTokensHistogram": []})"),
            at + ".inTokensHistogram: no bin has a weight");
  EXPECT_EQ(error_with(R"({"inTokensHistogram": [7]})"),
            at + ".inTokensHistogram[0]: expected an object, got 7");
  EXPECT_EQ(error_with(R"({"inTokensHistogram": [{"tokens": 7}]})"),
            at + ".inTokensHistogram[0]: expected tokens and a weight");
  EXPECT_EQ(error_with(R"({"inTokensHistogram": [{"tokens": 7, "weight": "x"}]})"),
            at + ".inTokensHistogram[0].weight: expected a number, got \"x\"");
  EXPECT_EQ(error_with(R"({"inTokensHistogram": [{"tokens": 7, "weight": -2}]})"),
            at + ".inTokensHistogram[0].weight: expected 0 to 1000000000000, got -2");
  EXPECT_EQ(
      error_with(R"({"inTokensHistogram": [{"tokens": 7, "weight": 1},
                           {"tokens": 2e7, "weight": 1}]})"),
      at + ".inTokensHistogram[1].tokens: expected more than 0 and at most 10000000, got 20000000");
  EXPECT_EQ(error_with(R"({"inTokensHistogram": [{"tokens": 7, "weight": 1},
                           {"tokens": 7, "weight": 1}]})"),
            at + ".inTokensHistogram: 7 tokens are given twice");
  EXPECT_EQ(error_with(R"({"inTokensHistogram": [{"tokens": 1, "weight": 1e6},
                           {"tokens": 1e7, "weight": 1}]})"),
            "fleet.json: servers[0].currentAlloc: inTokensCv: expected at most 20, got "
            "909.0908181818181");
}

/// What sets a mean stretches the histogram; what sets a variation takes its place.
TEST(FleetDocument, SetValuesKeepTheShapeOfAHistogram) {
  System system = testing::read({{"a", with_load("{" + kBimodal + "}")}});
  ASSERT_TRUE(set_value(system, "server.S.avgOutTokens", 400));
  const System written = testing::read({{"w", write_document(system)}});
  EXPECT_EQ(load_in(written).out_tokens, 400);
  EXPECT_EQ(load_in(written).out_histogram, *LengthHistogram::of({{200, 3}, {1000, 1}}));
  EXPECT_EQ(set_value(system, "server.S.avgOutTokens", 5e6).error().message,
            "server.S.avgOutTokens: S: currentAlloc: avgOutTokens: 5000000 stretches "
            "outTokensHistogram to 12500000 tokens, at most 10000000 are possible");
  ASSERT_TRUE(set_value(system, "server.S.avgOutTokens", 0));
  EXPECT_FALSE(load_in(testing::read({{"w", write_document(system)}})).out_histogram);
  ASSERT_TRUE(set_value(system, "server.S.avgOutTokens", 200));
  ASSERT_TRUE(set_value(system, "server.S.inTokensCv", 2));
  EXPECT_TRUE(load_in(system).out_histogram);
  ASSERT_TRUE(set_value(system, "server.S.outTokensCv", 1));
  EXPECT_FALSE(load_in(system).out_histogram);
  EXPECT_EQ(load_in(system).out_cv, 1);
}

TEST(FleetDocument, UnknownKeysAreNoted) {
  const auto reading = read_documents(
      std::array{Document{"a.json", R"({"servers": [{"name": "S", "colour": 1}], "extra": 2})"},
                 Document{"b.json", R"({"something": "else"})"}});
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->notes, (std::vector<std::string>{"a.json: servers[0].colour: unknown key",
                                                      "a.json: extra: unknown key",
                                                      "b.json: nothing of a fleet, left out"}));
}

TEST(System, EditsAreCheckedAndTyped) {
  System system;
  EXPECT_TRUE(put(system.accelerators, "A", {.type = "T", .power = {}, .cost = 3}));
  EXPECT_EQ(put(system.accelerators, "B", {.type = "T", .power = {}, .cost = -1}).error().message,
            "B: cost: expected at least 0, got -1");
  EXPECT_EQ(put(system.models["M"].accelerators, "A", {.alpha_ms = NAN}).error().message,
            "A: perfParms.alpha: not a number");
  EXPECT_EQ(get(system.accelerators, "B").error().kind, ErrorKind::not_found);
  EXPECT_EQ(get(system.accelerators, "A")->cost, 3);
  EXPECT_TRUE(set_value(system, "accelerator.A.cost", 4));
  EXPECT_EQ(get(system.accelerators, "A")->cost, 4);
  EXPECT_EQ(set_value(system, "accelerator.A.cost", -4).error().kind, ErrorKind::invalid);
  EXPECT_EQ(set_value(system, "accelerator.A.colour", 4).error().kind, ErrorKind::not_found);
  EXPECT_EQ(set_value(system, "server.S.arrivalRate", 4).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(set_value(system, "capacity.T", 8));
  EXPECT_EQ(system.capacities.at("T").count, 8);
  EXPECT_TRUE(remove(system.accelerators, "A"));
  EXPECT_EQ(remove(system.accelerators, "A").error().kind, ErrorKind::not_found);
}

TEST(System, PowerIsLinearInTwoPieces) {
  const Accelerator a{
      .type = "T", .power = {.idle_w = 100, .full_w = 700, .mid_w = 400, .mid_utilisation = 0.6}};
  for (const auto& [utilisation, watts] : {std::pair{0.0, 100.0},
                                           {0.3, 250.0},
                                           {0.6, 400.0},
                                           {0.8, 550.0},
                                           {1.0, 700.0},
                                           {2.0, 700.0}})
    EXPECT_NEAR(power_w(a, utilisation), watts, 1e-9);
}

TEST(Allocations, OneAtATime) {
  const System system = [] {
    System f1 = testing::fleet("f1");
    f1.options.model = QueueModel::reference;
    return f1;
  }();
  const auto on_a0 = create(system, "S0", "A0");
  ASSERT_TRUE(on_a0);
  EXPECT_EQ(on_a0->replicas, 1);
  EXPECT_NEAR(on_a0->ttft_ms, 109.916, 0.2);
  EXPECT_EQ(create(system, "S0", "nowhere").error().kind, ErrorKind::not_found);
  EXPECT_EQ(create(system, "S1", "A0").error().kind, ErrorKind::not_found);  // no performance data
  const auto best = reallocate(system, "S0");
  ASSERT_TRUE(best);
  EXPECT_EQ(best->accelerator, "A2");
  Load ten_times = on_a0->load;
  ten_times.arrivals_per_min *= 100;
  const auto scaled = scale(system, "S0", *on_a0, ten_times);
  ASSERT_TRUE(scaled);
  EXPECT_GT(scaled->replicas, 1);
  EXPECT_FALSE(*saturated(system, "S0", *on_a0, on_a0->load.arrivals_per_min));
  EXPECT_TRUE(*saturated(system, "S0", *on_a0, ten_times.arrivals_per_min));
  const Allocation none;
  EXPECT_NEAR(transition_value(none, *on_a0, QueueModel::reference), 1.1 * on_a0->cost, 1e-9);
  EXPECT_EQ(transition_value(*on_a0, *on_a0, QueueModel::reference), 0);
  const Difference difference = fleet::difference(*on_a0, *scaled);
  EXPECT_EQ(difference.replicas, scaled->replicas - 1);
}

}  // namespace
}  // namespace berth::fleet
