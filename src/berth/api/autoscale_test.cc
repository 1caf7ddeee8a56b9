#include <gtest/gtest.h>

#include <cmath>

#include "berth/api/autoscale_metrics.h"
#include "berth/api/control_loop.h"
#include "berth/api/prometheus.h"
#include "berth/api/vllm_metrics.h"

namespace berth::api {
namespace {

using fleet::Decision;

TEST(Prometheus, ReadsAnAnswer) {
  const auto samples = read_samples(
      R"({"status":"success","data":{"resultType":"vector","result":[
          {"metric":{"figure":"ttft","x":"é"},"value":[1.5,"0.25"]},
          {"metric":{},"value":[1,"NaN"]},{"metric":{},"value":[1,"+Inf"]}]}})");
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->size(), 3U);
  EXPECT_EQ((*samples)[0].figure, "ttft");
  EXPECT_EQ((*samples)[0].value, 0.25);
  EXPECT_TRUE(std::isnan((*samples)[1].value));
  EXPECT_TRUE(std::isinf((*samples)[2].value));
}

TEST(Prometheus, RefusesWhatIsNoAnswer) {
  for (const auto& [body, why] :
       {std::pair(R"({"status":"error","errorType":"bad_data","error":"parse error at 3"})",
                  "parse error at 3"),
        {"<html>404</html>", "JSON"},
        {"[]", "not an answer of Prometheus"},
        {R"({"status":"success","data":{"resultType":"matrix","result":[]}})", "a vector"},
        {R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{}}]}})",
         "value"},
        {R"({"status":"success","data":{"resultType":"vector","result":[
             {"metric":{},"value":[1,"many"]}]}})",
         "expected a number, got 'many'"}}) {
    const auto samples = read_samples(body);
    ASSERT_FALSE(samples) << body;
    EXPECT_NE(samples.error().message.find(why), std::string::npos) << samples.error().message;
  }
}

TEST(VllmMetrics, ASelectorIsText) {
  EXPECT_EQ(selector_of("llama"), R"(model_name="llama")");
  EXPECT_EQ(selector_of("a\"} or up{x=\"\\\n"), R"(model_name="a\"} or up{x=\"\\\n")");
  // Words in it that the query's templates have are left alone.
  const auto query = live_query(R"(model_name="{0}{1}{2}")", 90);
  EXPECT_NE(query.find(R"(vllm:num_requests_waiting{model_name="{0}{1}{2}"})"), query.npos);
  EXPECT_NE(query.find(R"([90000ms])"), query.npos);
}

TEST(VllmMetrics, FiguresAreThoseOfTheLoop) {
  const auto sample = [](const char* figure, double value) { return Sample{figure, value}; };
  const std::vector<Sample> samples{sample("served", 2),      sample("arrivals", 3),
                                    sample("in_tokens", 700), sample("ttft", 0.25),
                                    sample("itl", NAN),       sample("running", 12),
                                    sample("waiting", 1),     sample("replicas", 2),
                                    sample("unheard of", 5),  Sample{"", 7}};
  const auto live = live_of(samples);
  EXPECT_EQ(live.served_per_min, 120);
  EXPECT_EQ(live.arrivals_per_min, 180);
  EXPECT_EQ(live.in_tokens, 700);
  EXPECT_EQ(live.ttft_ms, 250);
  EXPECT_EQ(live.itl_ms, std::nullopt);  // nothing to divide by
  EXPECT_EQ(live.out_tokens, std::nullopt);
  EXPECT_EQ(live.replicas, 2);
  EXPECT_EQ(live_of(std::vector{sample("arrivals", -1)}).arrivals_per_min, 0);
}

Decision decision() {
  Decision d;
  d.server = "a\"b\\c\nd";
  d.accelerator = "H100";
  d.is_known = true;
  d.current = 2;
  d.desired = 3;
  d.reporting = 1;
  d.needed = 3;
  return d;
}

TEST(AutoscaleMetrics, AdviceHasNoDesiredReplicas) {
  const std::vector<Decision> decisions{decision()};
  Published published;
  published.name_space = "ns";
  const auto advice = autoscale_metrics(decisions, {}, {}, published);
  EXPECT_EQ(advice.find("wva_"), advice.npos);
  EXPECT_NE(advice.find("berth_autoscale_proposed_replicas{variant_name=\"a\\\"b\\\\c\\nd\","
                        "namespace=\"ns\",accelerator_type=\"H100\"} 3\n"),
            advice.npos)
      << advice;
  published.applies = true;
  const auto applied = autoscale_metrics(decisions, {}, {}, published);
  EXPECT_NE(applied.find("# TYPE wva_desired_replicas gauge\nwva_desired_replicas{"), applied.npos);
  EXPECT_NE(applied.find("accelerator_type=\"H100\"} 3\n"), applied.npos);  // the ratio
  EXPECT_EQ(applied.find("inferno_"), applied.npos);
  published.old_names = true;
  Scalings scalings;
  scalings.add(decisions[0]);
  scalings.add(decisions[0]);
  Decision short_of = decision();
  short_of.desired = 1;
  short_of.is_short = true;
  scalings.add(short_of);
  short_of.is_known = false;
  scalings.add(short_of);  // which nobody carries out
  const auto both = autoscale_metrics(decisions, {}, scalings, published);
  EXPECT_NE(both.find("\ninferno_replica_scaling_total{"), both.npos);
  EXPECT_NE(both.find("direction=\"up\",reason=\"load\"} 2\n"), both.npos);
  EXPECT_NE(both.find("direction=\"down\",reason=\"capacity\"} 1\n"), both.npos);
}

TEST(AutoscaleMetrics, WhatIsNotKnownIsNotPublished) {
  Published published;
  published.applies = true;
  Decision unknown = decision();
  unknown.is_known = false;
  unknown.action = fleet::Action::hold;
  const auto text = autoscale_metrics(std::vector{unknown}, {}, {}, published);
  EXPECT_EQ(text.find("wva_desired_replicas{"), text.npos);
  EXPECT_NE(text.find("berth_autoscale_held{"), text.npos);
}

TEST(ControlLoop, ServersAreToldApart) {
  fleet::System system;
  system.servers["a"].model = "m";
  system.servers["b"].model = "m";
  LoopOptions options;
  const auto same = check(options, system);
  ASSERT_FALSE(same);
  EXPECT_NE(same.error().message.find("--select b="), std::string::npos) << same.error().message;
  options.selectors = {{"b", R"( model_name = "m" )"}};
  EXPECT_FALSE(check(options, system));  // the same with other blanks
  options.selectors = {{"b", R"(model_name="m",namespace="b")"}};
  EXPECT_TRUE(check(options, system));
  options.selectors["c"] = R"(x="y")";
  EXPECT_FALSE(check(options, system));
  options.selectors.erase("c");
  system.servers["a"].current.parts.resize(2);
  EXPECT_FALSE(check(options, system));  // a mix
}

TEST(ControlLoop, ADecisionIsOneLineOfJson) {
  fleet::Live live;
  live.arrivals_per_min = 90;
  const auto line = decision_json(decision(), live, Wall{}, true);
  EXPECT_EQ(line.find('\n'), line.npos);
  EXPECT_NE(line.find(R"("server":"a\"b\\c\u000ad")"), line.npos) << line;
  EXPECT_NE(line.find(R"("measured":{"arrivalRate":90})"), line.npos) << line;
}

}  // namespace
}  // namespace berth::api
