#include "berth/api/calls/fleet_calls.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "berth/api/calls/work.h"
#include "berth/base/json.h"

namespace berth::api {
namespace {

constexpr std::string_view kOneServer = R"({
  "acceleratorData": {"accelerators": [{"name": "A", "type": "T", "multiplicity": 1, "cost": 10}]},
  "capacityData": {"count": [{"type": "T", "count": 8}]},
  "modelData": {"models": [{"name": "m", "acc": "A", "accCount": 1, "maxBatchSize": 16,
    "atTokens": 512, "perfParms": {"alpha": 10, "beta": 0.5}}]},
  "serviceClassData": {"serviceClasses": [{"name": "c", "priority": 1,
    "modelTargets": [{"model": "m", "slo-itl": 40, "slo-ttft": 500}]}]},
  "serverData": {"servers": [{"name": "s", "class": "c", "model": "m", "currentAlloc":
    {"load": {"arrivalRate": 60, "avgInTokens": 128, "avgOutTokens": 64}}}]}})";

Result<Reply> fleet_reply(std::string_view path, std::string_view options) {
  return call(fleet_routes(), "POST", path,
              fmt::format(R"({{"fleet": {}{}}})", kOneServer, options));
}

Json fleet_answer(std::string_view path, std::string_view options) {
  const auto reply = fleet_reply(path, options);
  EXPECT_TRUE(reply) << reply.error().message;
  return reply ? parsed_or_null(reply->body) : Json();
}

std::string fleet_refusal(std::string_view path, std::string_view options) {
  const auto reply = fleet_reply(path, options);
  return reply ? "accepted" : reply.error().message;
}

TEST(FleetCalls, PlanAnswersWithAPlanASweepOrADay) {
  const Json plan = fleet_answer("/v1/fleet-plan", R"(, "solver": "greedy")");
  EXPECT_GT(plan["allocations"]["s"]["numReplicas"], 0);
  EXPECT_TRUE(plan["notes"].is_array());
  const Json sweep = fleet_answer("/v1/fleet-plan", R"(, "sweep": "capacity.T=0..8..4")");
  EXPECT_EQ(sweep["sweep"].size(), 3U);
  EXPECT_EQ(fleet_refusal("/v1/fleet-plan", R"(, "profile": "/none/day.csv")"),
            "/none/day.csv: No such file or directory");
}

TEST(FleetCalls, SizesSimulatesAndReports) {
  const Json size = fleet_answer("/v1/fleet-size", R"(, "server": "s", "load": 120)");
  EXPECT_EQ(size["best"], "A");
  EXPECT_EQ(size["load"]["arrivalRate"], 120);
  const Json simulated =
      fleet_answer("/v1/fleet-simulation", R"(, "requests": 1000, "replicas": 2)");
  EXPECT_TRUE(simulated["servers"].contains("s"));
  const auto page = fleet_reply("/v1/fleet-report", R"(, "title": "my fleet")");
  ASSERT_TRUE(page);
  EXPECT_NE(page->body.find("my fleet"), std::string::npos);
}

TEST(FleetCalls, WrongBodiesNameTheKeyAndTheRightValues) {
  const auto refuses = [](std::string_view path, std::string_view options, std::string_view why) {
    const std::string message = fleet_refusal(path, options);
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  refuses("/v1/fleet-plan", R"(, "solver": "best")",
          "solver: expected one of optimal, greedy, unlimited; got 'best'");
  refuses("/v1/fleet-plan", R"(, "solvr": "greedy")", "did you mean 'solver'?");
  refuses("/v1/fleet-size", R"(, "server": "s", "percentiles": "guess")",
          "percentiles: expected one of simulated, closed-form; got 'guess'");
  refuses("/v1/fleet-size", "", "'server' is missing");
  refuses("/v1/fleet-plan", R"(, "profile": "a", "trace": "b")", "--profile: not with --trace");
  refuses("/v1/fleet-simulation", R"(, "trace": "a", "in_cv": 1)", "--in-cv: not with --trace");
  refuses("/v1/fleet-simulation", R"(, "trace": "a", "at_load": true, "tokens_only": true)",
          "--at-load: not with --tokens-only");
  EXPECT_EQ(fleet_refusal("/v1/fleet-simulation", R"(, "requests": 5)"),
            "--requests: expected 1000 to 20000000, got 5");
  const auto nothing = call(fleet_routes(), "POST", "/v1/fleet-plan", "{}");
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("expected a fleet or a path"), std::string::npos);
  EXPECT_FALSE(call(fleet_routes(), "POST", "/v1/fleet-fit", "{}"));
}

}  // namespace
}  // namespace berth::api
