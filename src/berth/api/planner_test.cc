#include "berth/api/planner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "berth/base/json.h"

namespace berth::api {
namespace {

constexpr auto kFleet = R"({
  "acceleratorData": {"accelerators": [
    {"name": "H100", "type": "H100", "multiplicity": 1, "cost": 100},
    {"name": "2xA100", "type": "A100", "multiplicity": 2, "cost": 120}]},
  "capacityData": {"count": [{"type": "H100", "count": 8}, {"type": "A100", "count": 8}]},
  "modelData": {"models": [
    {"name": "llama", "acc": "H100", "maxBatchSize": 64, "atTokens": 512,
     "perfParms": {"alpha": 10, "beta": 0.05, "gamma": 0.0005}},
    {"name": "llama", "acc": "2xA100", "maxBatchSize": 64, "atTokens": 512,
     "perfParms": {"alpha": 20, "beta": 0.08, "gamma": 0.0008}}]},
  "serviceClassData": {"serviceClasses": [
    {"name": "gold", "priority": 1,
     "modelTargets": [{"model": "llama", "slo-itl": 60, "slo-ttft": 900}]}]},
  "serverData": {"servers": [
    {"name": "chat/eu", "class": "gold", "model": "llama", "maxQueueSize": 64, "minNumReplicas": 1,
     "currentAlloc": {"load": {"arrivalRate": 60, "avgInTokens": 200, "avgOutTokens": 100}}}]},
  "optimizerData": {"optimizer": {"unlimited": false}}})";

class PlannerTest : public ::testing::Test {
 protected:
  PlannerTest() : planner_(system()) {}
  static fleet::System system() {
    const fleet::Document document{"fleet.json", kFleet};
    auto reading = fleet::read_documents(std::span(&document, 1));
    EXPECT_TRUE(reading) << reading.error().message;
    return std::move(reading->system);
  }
  Json get(const std::string& path, int status = 200) { return ask("GET", path, "", status); }
  Json post(const std::string& path, const std::string& body, int status = 200) {
    return ask("POST", path, body, status);
  }
  Json ask(const std::string& method, const std::string& path, const std::string& body,
           int status) {
    const Reply reply = answer(routes_, {method, path, body});
    EXPECT_EQ(reply.status, status) << method << " " << path << ": " << reply.body;
    const auto json = parse_json(reply.body);
    EXPECT_TRUE(json) << reply.body;
    return json.value_or(Json());
  }
  Planner planner_;
  const std::vector<Route> routes_ = planner_.routes();
};

TEST_F(PlannerTest, EntriesAreAddedReplacedReadAndRemoved) {
  post("/addAccelerator", R"({"name": "L40S", "type": "L40S", "cost": 40})");
  EXPECT_EQ(get("/getAccelerator/L40S")["cost"], 40);
  EXPECT_EQ(get("/getAccelerators").size(), 3);
  EXPECT_EQ(post("/addAccelerator", R"({"name": "L40S", "type": "L40S", "cost": 41})")["cost"], 41);
  EXPECT_EQ(get("/getAccelerator/L40S")["cost"], 41);
  EXPECT_EQ(get("/removeAccelerator/L40S")["cost"], 41);
  get("/getAccelerator/L40S", 404);
  get("/removeAccelerator/L40S", 404);
  post("/setCapacity", R"({"type": "H100", "count": 3})");
  EXPECT_EQ(get("/getCapacity/H100")["count"], 3);
  post("/setCapacities",
       R"({"count": [{"type": "H100", "count": 5}, {"type": "L4", "count": 1}]})");
  EXPECT_EQ(
      dump(get("/getCapacities")),
      R"({"count":[{"type":"A100","count":8},{"type":"H100","count":5},{"type":"L4","count":1}]})")
      << "what is not named stays";
  get("/removeCapacity/H100");
  EXPECT_EQ(get("/getCapacities")["count"].size(), 2);
}

TEST_F(PlannerTest, AnswersHaveTheShapesOfTheReference) {
  EXPECT_TRUE(get("/getAccelerators").is_array());
  EXPECT_EQ(dump(get("/getModels")), R"(["llama"])");
  EXPECT_EQ(get("/getModel/llama")["models"].size(), 2);
  EXPECT_EQ(get("/v1/accelerators")["accelerators"], get("/getAccelerators"));
  EXPECT_EQ(get("/v1/models")["models"].size(), 2);
  EXPECT_EQ(dump(get("/addModel/tiny")), R"("tiny")");
  EXPECT_EQ(dump(get("/removeModel/tiny")), R"("tiny")");
  EXPECT_EQ(post("/setServiceClasses",
                 R"({"serviceClasses": [{"name": "new"}]})")["serviceClasses"][0]["priority"],
            100);
  EXPECT_EQ(get("/getServiceClasses")["serviceClasses"].size(), 2);
  EXPECT_EQ(get("/removeServiceClass/new")["name"], "new");
  post("/setModels", R"({"models": [{"name": "llama", "acc": "L4"}]})");
  EXPECT_EQ(get("/getModel/llama")["models"].size(), 3);
  EXPECT_EQ(get("/removeModelAcceleratorPerf/llama/L4")["acc"], "L4");
  EXPECT_EQ(get("/removeServer/chat%2Feu")["name"], "chat/eu");
  EXPECT_EQ(get("/applyAllocation"), "Done");
  EXPECT_EQ(get("/getModel/none", 404)["message"], "no 'none' is known");
}

TEST_F(PlannerTest, IntegersAreWrittenAsIntegers) {
  Json server = get("/getServer/chat%2Feu");
  EXPECT_EQ(dump(server["currentAlloc"]["load"]["avgInTokens"]), "200");
  EXPECT_EQ(dump(get("/getAccelerator/H100")["power"]["idle"]), "0");
  server["currentAlloc"]["load"]["avgInTokens"] = 200.6;
  EXPECT_EQ(dump(post("/addServer", dump(server))["currentAlloc"]["load"]["avgInTokens"]), "201")
      << "its clients refuse a fraction";
  EXPECT_EQ(get("/v1/system")["serverData"]["servers"][0]["currentAlloc"]["load"]["avgInTokens"],
            200.6);
}

TEST_F(PlannerTest, ANameMayHoldASlash) {
  EXPECT_EQ(get("/getServer/chat%2Feu")["model"], "llama");
  get("/getServer/chat/eu", 404);
  get("/removeServer/chat%2feu");
  EXPECT_EQ(get("/getServers")["servers"].size(), 0);
}

TEST_F(PlannerTest, WhatLiesWithinAnEntry) {
  get("/addModel/tiny");
  post("/addModelAcceleratorPerf",
       R"({"name": "tiny", "acc": "H100", "maxBatchSize": 8, "atTokens": 64,
           "perfParms": {"alpha": 1, "beta": 0.01, "gamma": 0.001}})");
  EXPECT_EQ(get("/getModelAcceleratorPerf/tiny/H100")["perfParms"]["alpha"], 1);
  EXPECT_EQ(get("/getModel/tiny")["models"].size(), 1);
  get("/removeModelAcceleratorPerf/tiny/H100");
  get("/getModelAcceleratorPerf/tiny/H100", 404);
  get("/addServiceClass/silver/5");
  EXPECT_EQ(get("/getServiceClass/silver")["priority"], 5);
  get("/addServiceClass/bronze/five", 400);
  get("/addServiceClass/bronze/500", 400);
  post("/addServiceClassModelTargets",
       R"({"name": "silver", "modelTargets": [{"model": "tiny", "slo-itl": 20}]})");
  EXPECT_EQ(get("/getServiceClass/silver")["priority"], 5) << "targets are added, the rest stays";
  EXPECT_EQ(get("/getServiceClassModelTarget/silver/tiny")["slo-itl"], 20);
  get("/removeServiceClassModelTarget/silver/tiny");
  get("/getServiceClassModelTarget/silver/tiny", 404);
}

TEST_F(PlannerTest, BadBodiesAre400WithThePathOfTheFaultAndChangeNothing) {
  const auto before = planner_.system();
  const auto error = [&](const std::string& path, const std::string& body) {
    return post(path, body, 400)["error"].get<std::string>();
  };
  EXPECT_NE(error("/setServers", R"({"servers": [{"name": "a", "minNumReplicas": "x"}]})")
                .find("servers[0].minNumReplicas"),
            std::string::npos);
  EXPECT_NE(error("/addServer", R"({"class": "gold"})").find("servers[0]"), std::string::npos);
  EXPECT_NE(error("/optimize", "{").find("JSON"), std::string::npos);
  error("/addServer", "[]");
  error("/addServer", "7");
  error("/setModels", "");
  error("/v1/plan", "{}");
  EXPECT_EQ(planner_.system(), before);
  get("/nothing", 404);
  get("/", 404);
  get("", 404);
  get("/getServer", 404);
  ask("POST", "/getServers", "", 405);
  ask("PUT", "/v1/plan", "", 405);
}

TEST_F(PlannerTest, PlansAndAppliesWhatItPlanned) {
  const Json plan = post("/optimize", "");
  EXPECT_EQ(plan["allocations"]["chat/eu"]["accelerator"], "H100");
  EXPECT_EQ(get("/getServer/chat%2Feu")["desiredAlloc"]["accelerator"], "H100");
  EXPECT_EQ(get("/getServer/chat%2Feu")["currentAlloc"]["accelerator"], "");
  get("/applyAllocation");
  const Json server = get("/getServer/chat%2Feu");
  EXPECT_EQ(server["currentAlloc"]["accelerator"], "H100");
  EXPECT_EQ(server["currentAlloc"]["load"]["arrivalRate"], 60) << "the load is not planned";
  post("/optimize", R"({"unlimited": true})");
  EXPECT_EQ(get("/v1/system")["optimizerData"]["optimizer"]["unlimited"], true);
}

TEST_F(PlannerTest, AMixIsPlannedAppliedAndStays) {
  Json server = get("/getServer/chat%2Feu");
  post("/setCapacities",
       R"({"count": [{"type": "H100", "count": 1}, {"type": "A100", "count": 2}]})");
  get("/removeServer/chat%2Feu");
  double both_per_s = 0;
  for (const auto& c : fleet::candidates(system(), {}).all) both_per_s += c.rate_per_s;
  server["currentAlloc"]["load"]["arrivalRate"] = 0.99 * 60 * both_per_s;
  post("/addServer", dump(server));
  EXPECT_EQ(post("/v1/optimize", R"({"heterogeneous": false})")["allocations"].size(), 0);
  const Json mix = post("/optimize", R"({"heterogeneous": true})")["allocations"]["chat/eu"];
  EXPECT_EQ(mix["parts"].size(), 2);
  EXPECT_EQ(mix["numReplicas"], 2);
  EXPECT_EQ(mix["cost"], 220);
  EXPECT_EQ(get("/getServer/chat%2Feu")["desiredAlloc"]["parts"], mix["parts"]);
  get("/applyAllocation");
  EXPECT_EQ(get("/getServer/chat%2Feu")["currentAlloc"]["parts"], mix["parts"]);
  const Json again = post("/optimize", "");
  EXPECT_EQ(again["allocations"]["chat/eu"], mix);
  EXPECT_EQ(again["proof"]["value"], 0);
}

TEST_F(PlannerTest, WhereAServerGoesWithoutTheFamiliarCallsAnswer404AndTheOthersTheReasons) {
  post("/optimize", "");
  post("/setCapacities",
       R"({"count": [{"type": "H100", "count": 0}, {"type": "A100", "count": 0}]})");
  const Json plan = post("/v1/optimize", R"({"optimizer": {"unlimited": false}})");
  EXPECT_EQ(plan["proof"]["unserved_by_priority"]["1"], 1);
  EXPECT_FALSE(plan["reasons"]["chat/eu"]["text"].get<std::string>().empty());
  EXPECT_NE(post("/optimize", "", 404)["message"].get<std::string>().find(
                "no feasible allocation for servers: [chat/eu]"),
            std::string::npos);
  EXPECT_EQ(get("/getServer/chat%2Feu")["desiredAlloc"]["accelerator"], "");
  post("/optimizeOne", dump(Json{{"system", get("/v1/system")}}), 404);
}

TEST_F(PlannerTest, OneDocumentIsPlannedWithoutTouchingTheFleet) {
  const auto before = planner_.system();
  EXPECT_EQ(post("/v1/plan", kFleet)["allocations"].size(), 1);
  EXPECT_EQ(planner_.system(), before);
}

TEST_F(PlannerTest, AFleetPlannedInOneCallIsShownByTheOthers) {
  const std::string before = dump(post("/v1/plan", kFleet)["allocations"]);
  get("/removeServer/chat%2Feu");
  post("/addAccelerator", R"({"name": "gone", "type": "L4"})");
  const std::string one = fmt::format("{{\"system\": {}}}", kFleet);
  EXPECT_EQ(dump(post("/optimizeOne", one)["allocations"]), before);
  EXPECT_EQ(get("/getServer/chat%2Feu")["desiredAlloc"]["accelerator"], "H100");
  get("/getAccelerator/gone", 404);
}

TEST_F(PlannerTest, OneServerIsSizedOnEachAccelerator) {
  const auto before = planner_.system();
  const Json size = get("/v1/servers/chat%2Feu/size");
  EXPECT_EQ(size["server"], "chat/eu");
  EXPECT_EQ(size["best"], "H100");
  EXPECT_EQ(size["candidates"].size(), 2);
  const Json& h100 = size["candidates"]["H100"];
  EXPECT_EQ(h100["numReplicas"], 1);
  EXPECT_GT(h100["maxRatePerReplica"], 60);
  EXPECT_EQ(dump(h100["difference"]), R"({"from":"","to":"H100","numReplicas":1,"cost":100})");
  EXPECT_EQ(size["current"]["saturated"], true) << "it has nothing";
  EXPECT_EQ(post("/v1/servers/chat%2Feu/size", ""), size);
  EXPECT_EQ(post("/v1/servers/chat%2Feu/size", "{}"), size);
  get("/v1/servers/chat/size", 404);
  get("/v1/servers/chat/eu/size", 404);
  EXPECT_EQ(planner_.system(), before) << "asking changes nothing";
}

TEST_F(PlannerTest, AQuestionSaysWhatIsToBeOtherwise) {
  const auto ask_for = [&](const std::string& body) {
    return post("/v1/servers/chat%2Feu/size", body);
  };
  const double most = ask_for("")["candidates"]["H100"]["maxRatePerReplica"];
  const Json scaled = ask_for(
      fmt::format(R"({{"accelerator": "2xA100", "load": {{"ARRIVALRATE": {}}}}})", 3 * most));
  EXPECT_EQ(scaled["load"]["arrivalRate"], 3 * most);
  EXPECT_EQ(scaled["load"]["avgInTokens"], 200) << "what is not said stays";
  EXPECT_EQ(scaled["candidates"].size(), 1);
  EXPECT_GT(scaled["candidates"]["2xA100"]["numReplicas"], 3);
  const Json two = ask_for(R"({"accelerator": "H100", "numReplicas": 2})");
  EXPECT_EQ(two["candidates"]["H100"]["numReplicas"], 2);
  EXPECT_EQ(two["candidates"]["H100"]["saturated"], false);
  const Json from = ask_for(R"({"currentAlloc": {"accelerator": "2xA100", "numReplicas": 4,
      "maxBatch": 8, "cost": 480, "load": {"arrivalRate": 1, "avgInTokens": 0}}})");
  EXPECT_EQ(from["load"]["arrivalRate"], 60) << "the load of the server";
  EXPECT_EQ(from["current"]["numReplicas"], 4);
  EXPECT_EQ(from["current"]["saturated"], false);
  EXPECT_EQ(dump(from["candidates"]["H100"]["difference"]),
            R"({"from":"2xA100","to":"H100","numReplicas":-3,"cost":-380})");
  EXPECT_EQ(from["candidates"]["H100"]["value"], -380 + 58);
  EXPECT_EQ(dump(ask_for(R"({"load": {"avgInTokens": 200.6}})")["current"]["load"]["avgInTokens"]),
            "201")
      << "its clients refuse a fraction";
}

TEST_F(PlannerTest, WrongQuestionsAre400WithThePathOfTheFault) {
  const auto before = planner_.system();
  const auto error = [&](const std::string& body, int status = 400) {
    return post("/v1/servers/chat%2Feu/size", body, status)["error"].get<std::string>();
  };
  EXPECT_EQ(
      error(R"({"acelerator": "H100"})"),
      "body: acelerator: unknown key; expected accelerator, numReplicas, load or currentAlloc");
  EXPECT_NE(error(R"({"load": {"arrivalRate": "x"}})").find("load.arrivalRate: expected a number"),
            std::string::npos);
  EXPECT_NE(error(R"({"load": {"arrivalRate": -1}})").find("at least 0"), std::string::npos);
  for (const char* body :
       {"7", "[]", "{", R"({"load": 7})", R"({"load": []})", R"({"currentAlloc": 7})",
        R"({"currentAlloc": {"numReplicas": 0.5}})", R"({"accelerator": 7})",
        R"({"numReplicas": "2"})", R"({"numReplicas": 0.5})", R"({"numReplicas": -1})",
        R"({"numReplicas": 1e9})", R"({"numReplicas": 1e300})"})
    error(body);
  EXPECT_EQ(error(R"({"accelerator": "H10"})", 404),
            "no accelerator 'H10' is known; did you mean 'H100'?");
  ask("PUT", "/v1/servers/chat%2Feu/size", "", 405);
  get("/v1/servers/chat%2Feu/reallocate", 405);
  EXPECT_EQ(planner_.system(), before);
}

TEST_F(PlannerTest, AServerIsReallocatedAlone) {
  const Json moved = post("/v1/servers/chat%2Feu/reallocate", "");
  EXPECT_EQ(moved, get("/v1/servers/chat%2Feu/size")["candidates"]["H100"]);
  EXPECT_EQ(get("/getServer/chat%2Feu")["desiredAlloc"]["accelerator"], "H100");
  EXPECT_EQ(get("/getServer/chat%2Feu")["currentAlloc"]["accelerator"], "");
  post("/v1/servers/chat%2Feu/reallocate", R"({"accelerator": "2xA100", "numReplicas": 2})");
  Json other = get("/getServer/chat%2Feu");
  other["name"] = "other";
  other["currentAlloc"]["accelerator"] = "H100";
  other.erase("desiredAlloc");
  post("/addServer", dump(other));
  const Json applied = post("/v1/servers/chat%2Feu/apply", "");
  EXPECT_EQ(applied, get("/getServer/chat%2Feu"));
  EXPECT_EQ(applied["currentAlloc"]["numReplicas"], 2);
  EXPECT_EQ(applied["currentAlloc"]["load"]["arrivalRate"], 60);
  EXPECT_EQ(get("/getServer/other")["currentAlloc"]["accelerator"], "H100") << "not applied";
  post("/v1/servers/nobody/apply", "", 404);
  post("/v1/servers/nobody/reallocate", "", 404);
  EXPECT_EQ(post("/v1/servers/chat%2Feu/reallocate",
                 R"({"accelerator": "H100", "numReplicas": 1, "load": {"arrivalRate": 1e5}})",
                 422)["error"],
            "chat/eu: H100: saturated");
  EXPECT_EQ(get("/getServer/chat%2Feu")["desiredAlloc"]["accelerator"], "2xA100");
}

TEST_F(PlannerTest, ReadersWritersAndPlannersTogether) {
  std::atomic<int> failed = 0;
  const auto times = [&](int count, auto make) {
    return std::jthread([&, count, make] {
      for (int i = 0; i < count; ++i) {
        const Reply reply = answer(routes_, make(i));
        if (reply.status != 200 || !parse_json(reply.body)) ++failed;
      }
    });
  };
  {
    std::vector<std::jthread> threads;
    threads.push_back(times(200, [](int) { return Request{"GET", "/getServers", ""}; }));
    threads.push_back(times(200, [](int) { return Request{"GET", "/v1/system", ""}; }));
    threads.push_back(times(20, [](int) { return Request{"POST", "/optimize", ""}; }));
    threads.push_back(
        times(50, [](int) { return Request{"POST", "/v1/servers/chat%2Feu/reallocate", ""}; }));
    threads.push_back(times(200, [](int i) {
      return Request{"POST", "/setCapacity",
                     fmt::format(R"({{"type": "H100", "count": {}}})", i % 9)};
    }));
    threads.push_back(times(100, [](int) { return Request{"GET", "/applyAllocation", ""}; }));
  }
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace berth::api
