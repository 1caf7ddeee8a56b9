#include "berth/fleet/document/manifests.h"

#include <set>

#include "berth/base/rng.h"
#include "berth/testing/fleet.h"

namespace berth::fleet {
namespace {

constexpr const char* kDocument = R"({
  "accelerators": [
    {"name": "H100", "multiplicity": 1, "nodeSelector": {"gpu": "h100"}},
    {"name": "2xH100", "type": "H100", "multiplicity": 2, "nodeSelector": {"gpu": "h100"}},
    {"name": "MI300X", "nodeSelector": {}}],
  "count": [{"type": "H100", "count": 9}, {"type": "MI300X", "count": 4}],
  "models": [
    {"name": "m", "acc": "H100", "accCount": 2, "start": {"image": "cuda", "port": 80, "env": {"A": "1", "B": "2"}}},
    {"name": "m", "acc": "2xH100", "accCount": 2},
    {"name": "m", "acc": "MI300X", "start": {"image": "rocm", "args": ["{accelerator}"]}}],
  "servers": [
    {"name": "s", "model": "m", "minNumReplicas": 2,
     "start": {"command": ["serve", "{model}", "-n{accelerators}", "{", "${port}", "{x}"], "env": {"B": "3"},
               "cpu": 1.5, "memSize": 0.25}}]})";

Allocation on(const std::string& accelerator, int replicas) {
  return {.accelerator = accelerator, .replicas = replicas, .batch = 7, .load = {}, .parts = {}};
}

struct Planned {
  System system = testing::read({{"fleet.json", kDocument}});
  Plan plan{.servers = {}, .totals = {{.type = "H100", .limit = 9}}, .proof = {}};

  Planned(const Allocation& allocation, const std::string& server = "s") {
    if (server != "s") {
      system.servers[server] = system.servers.at("s");
      system.servers.erase("s");
    }
    plan.servers[server].allocation = allocation;
  }
  Manifest only(const ManifestOptions& options = {}) {
    const auto all = manifests(system, plan, options);
    EXPECT_TRUE(all) << all.error().message;
    return all && all->size() == 1 ? all->front() : Manifest{};
  }
  std::string refusal(const ManifestOptions& options = {}) {
    const auto all = manifests(system, plan, options);
    return all ? "" : all.error().message;
  }
};

ReplicaGroup server(const std::string& name) {
  return {.server = name, .model = {}, .accelerator = {}, .start = {}};
}

ReplicaGroup part(const std::string& name, const std::string& accelerator) {
  ReplicaGroup made = server(name);
  made.accelerator = accelerator;
  made.is_part = true;
  return made;
}

TEST(Start, IsReadAndWritten) {
  const System system = testing::read({{"fleet.json", kDocument}});
  EXPECT_EQ(system.servers.at("s").start.command.size(), 6U);
  EXPECT_EQ(system.servers.at("s").start.cpu, 1.5);
  EXPECT_EQ(system.models.at("m").starts.size(), 2U);
  EXPECT_TRUE(system.accelerators.at("MI300X").node_selector->empty());
  EXPECT_EQ(testing::read({{"written", write_document(system)}}), system);
  const System without = testing::read({{"a", R"({"accelerators": [{"name": "A"}]})"}});
  EXPECT_FALSE(without.accelerators.at("A").node_selector);
  EXPECT_EQ(testing::read({{"written", write_document(without)}}), without);
  const auto other = read_documents(std::array{
      Document{"a", R"({"models": [{"name": "m", "acc": "A", "start": {"image": "x"}}]})"},
      Document{"b", R"({"models": [{"name": "m", "acc": "A", "start": {"image": "y"}}]})"}});
  EXPECT_EQ(other.error().message,
            "b: the start of model 'm' on accelerator 'A' is not the same as in an earlier "
            "document");
}

TEST(Start, FaultsAreNamedByTheirPath) {
  const auto error_of = [](const std::string& start) {
    const auto reading = read_documents(
        std::array{Document{"f", R"({"servers": [{"name": "s", "start": )" + start + "}]}"}});
    return reading ? "" : reading.error().message.substr(3);
  };
  const std::string at = "servers[0].start.";
  EXPECT_EQ(error_of(R"({"port": 65536})"), at + "port: 65536, expected 0 to 65535");
  EXPECT_EQ(error_of(R"({"cpu": -1})"), at + "cpu: -1, expected 0 to 10000");
  EXPECT_EQ(error_of(R"({"memSize": 1e7})"), at + "memSize: 10000000, expected 0 to 1000000");
  EXPECT_EQ(error_of(R"({"image": "a b"})"), at + "image: 'a b' is not the name of an image");
  EXPECT_EQ(error_of(R"({"command": "vllm"})"), at + "command: expected a list, got \"vllm\"");
  EXPECT_EQ(error_of(R"({"command": [""]})"), at + "command[0]: the name of the program is empty");
  EXPECT_EQ(error_of(R"({"args": [1]})"), at + "args[0]: expected text, got 1");
  EXPECT_EQ(error_of(R"({"args": ["a\u0000"]})"), at + "args[0]: has a byte 0");
  EXPECT_EQ(error_of(R"({"env": {"1A": ""}})"), at + "env: '1A' is not the name of a variable");
  EXPECT_EQ(error_of(R"({"env": {"": ""}})"), at + "env: '' is not the name of a variable");
  EXPECT_EQ(error_of(R"({"env": []})"), at + "env: expected an object, got []");
  System system;
  EXPECT_EQ(put(system.accelerators, "A", {.type = "A", .power = {}, .resource = "gpu one"})
                .error()
                .message,
            "A: resource: 'gpu one', expected a name such as nvidia.com/gpu");
  EXPECT_EQ(put(system.accelerators, "A",
                {.type = "A", .power = {}, .node_selector = {{{"gpu", "two words"}}}})
                .error()
                .message,
            "A: nodeSelector: 'gpu: two words' is not a label of a node");
}

TEST(Start, NamesOfKubernetes) {
  const std::string longest(63, 'a');
  for (const std::string& label : {std::string("a"), std::string("a-0"), longest})
    EXPECT_TRUE(is_dns_label(label)) << label;
  for (const std::string& text : {std::string(), std::string("A"), std::string("-a"),
                                  std::string("a-"), std::string("a.b"), longest + "a"})
    EXPECT_FALSE(is_dns_label(text)) << text;
  for (const char* name : {"gpu", "nvidia.com/gpu.product", "a.b-c/D_e"})
    EXPECT_TRUE(is_qualified_name(name)) << name;
  for (const char* text : {"", "a/", "/a", "A.b/c", "a//b", "a b", "a/-b", "a..b/c"})
    EXPECT_FALSE(is_qualified_name(text)) << text;
  EXPECT_TRUE(is_label_value(""));
  EXPECT_FALSE(is_label_value("_a"));
}

TEST(ReplicaGroups, TakeWhatAReplicaTakesAndHowItStarts) {
  Allocation mix = on("H100", 5);
  mix.parts = {on("MI300X", 3), on("H100", 2)};
  Planned planned(mix);
  const auto all = replica_groups(planned.system, planned.plan);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].accelerator, "H100");
  EXPECT_EQ(all[0].accelerators, 2);
  EXPECT_EQ(all[0].start.image, "cuda");
  EXPECT_EQ(all[0].start.port, 80);
  const std::map<std::string, std::string> environment{{"A", "1"}, {"B", "3"}};
  EXPECT_EQ(all[0].start.environment, environment) << "the server's own goes before";
  EXPECT_EQ(all[1].accelerators, 1);
  EXPECT_EQ(all[1].replicas, 3);
  EXPECT_EQ(all[1].start.image, "rocm");
  Planned twice(on("2xH100", 1));
  EXPECT_EQ(replica_groups(twice.system, twice.plan)[0].accelerators, 4);
  Planned none(on("", 0));
  EXPECT_TRUE(replica_groups(none.system, none.plan).empty());
}

TEST(ReplicaGroups, NamesInBracesAreReplaced) {
  const NamedTexts names{{"a", "{b}$"}, {"b", "2"}};
  EXPECT_EQ(fill("{a}{b}-{c}{", names), "{b}$2-{c}{");
  EXPECT_EQ(fill("${a} $ {a} {{b}}", names), "${a} $ {b}$ {2}");
}

constexpr const char* kDeploymentText = R"(# Written by berth plan, which replaces it.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: "s"
  labels:
    "app.kubernetes.io/name": "s"
  annotations:
    "berth/server": "s"
    "berth/accelerator": "H100"
spec:
  replicas: 3
  selector:
    matchLabels:
      "app.kubernetes.io/name": "s"
  template:
    metadata:
      labels:
        "app.kubernetes.io/name": "s"
    spec:
      nodeSelector:
        "gpu": "h100"
      containers:
        - name: server
          image: "cuda"
          command:
          - "serve"
          - "m"
          - "-n2"
          - "{"
          - "${port}"
          - "{x}"
          ports:
            - containerPort: 80
          env:
            - name: "A"
              value: "1"
            - name: "B"
              value: "3"
          resources:
            requests:
              "cpu": "1500m"
              "memory": "250M"
            limits:
              "nvidia.com/gpu": "2"
              "memory": "250M"
)";
constexpr const char* kHpaText = R"(---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: "s"
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: "s"
  minReplicas: 2
  maxReplicas: 4
  metrics:
    - type: External
      external:
        metric:
          name: wva_desired_replicas
          selector:
            matchLabels:
              "variant_name": "s"
              "accelerator_type": "H100"
        target:
          type: AverageValue
          averageValue: "1"
)";
constexpr const char* kScaledObjectText = R"(---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: "s"
  namespace: "llm"
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: "s"
  minReplicaCount: 2
  maxReplicaCount: 4
  triggers:
    - type: prometheus
      metricType: AverageValue
      metadata:
        "serverAddress": "http://p:9090"
        "query": "wva_desired_replicas{variant_name=\"s\",accelerator_type=\"H100\",exported_namespace=\"llm\"}"
        "threshold": "1"
        "activationThreshold": "0"
        "ignoreNullValues": "false"
)";

TEST(Manifests, OneOfEachKind) {
  Planned planned(on("H100", 3));
  const Manifest made = planned.only();
  EXPECT_EQ(made.name, "s");
  EXPECT_EQ(made.text, std::string(kDeploymentText) + kHpaText);
  const Manifest keda = planned.only({Scaler::keda, "llm", "http://p:9090"});
  EXPECT_EQ(keda.text.substr(keda.text.find("---")), kScaledObjectText);
  EXPECT_EQ(planned.only({Scaler::none, "", ""}).text, kDeploymentText);
}

TEST(Manifests, ScaleBetweenTheMinimumAndWhatThereIs) {
  const auto has = [](Planned planned, std::string_view text) {
    planned.system.servers.at("s").start.image = "image";
    return planned.only({Scaler::keda, "", "http://p"}).text.contains(text);
  };
  EXPECT_TRUE(has({on("2xH100", 1)}, "minReplicaCount: 2\n  maxReplicaCount: 2\n")) << "9 / 4";
  EXPECT_TRUE(has({on("H100", 7)}, "maxReplicaCount: 7\n")) << "what is planned can be";
  EXPECT_TRUE(has({on("MI300X", 3)}, "maxReplicaCount: 30\n")) << "no limit of capacity";
  EXPECT_TRUE(has({on("MI300X", 3)}, "\"amd.com/gpu\": \"1\""));
  Planned idle(on("H100", 1));
  idle.system.servers.at("s").min_replicas = 0;
  EXPECT_TRUE(has(idle, "minReplicaCount: 0\n"));
  EXPECT_TRUE(idle.only().text.contains("minReplicas: 1\n")) << "an HPA takes no 0";
}

TEST(Manifests, PartsOfAMixReadSeriesOfTheirOwn) {
  Allocation mix = on("H100", 5);
  mix.parts = {on("H100", 2), on("MI300X", 3)};
  Planned planned(mix);
  const auto all = manifests(planned.system, planned.plan, {Scaler::keda, "", "http://p"});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 2U);
  EXPECT_TRUE((*all)[1].text.contains(
      R"("wva_desired_replicas{variant_name=\"s\",accelerator_type=\"MI300X\"}")"));
  EXPECT_TRUE((*all)[1].text.contains("minReplicaCount: 0\n")) << "the minimum is of both";
}

TEST(Manifests, WhatTheDocumentDoesNotSayIsRefused) {
  EXPECT_EQ(Planned(on("2xH100", 1)).refusal(),
            "server 's': start.image: no container image is given; give the server, or model 'm' "
            "on 2xH100, \"start\": {\"image\": …}");
  Planned anywhere(on("H100", 1));
  anywhere.system.accelerators.at("H100").node_selector.reset();
  EXPECT_TRUE(anywhere.refusal().starts_with("accelerator 'H100': nodeSelector: no labels"));
  Planned portless(on("MI300X", 1));
  portless.system.servers.at("s").start.environment["P"] = "{port}";
  EXPECT_EQ(portless.refusal(), "server 's': start.env: '{port}': {port} is not defined");
  Planned numbered(on("H100", 1));
  numbered.system.servers.at("s").start.args = {"--rank={replica}"};
  EXPECT_EQ(numbered.refusal(),
            "server 's': start.args: '--rank={replica}': {replica} is not defined");
  Planned spaced(on("H100", 1), "a server");
  EXPECT_TRUE(
      spaced.refusal().starts_with("server 'a server': variant_name: 'a server' can be no label"));
  EXPECT_EQ(spaced.refusal({Scaler::keda, "", "http://p"}), "");
  EXPECT_EQ(spaced.refusal({Scaler::none, "", ""}), "");
}

TEST(ObjectNames, KeepWhatCanBe) {
  EXPECT_EQ(object_names({server("chat"), part("mixed", "l4"), server("Chat")}),
            (std::vector<std::string>{"chat", "mixed-l4", "chat-b19dd338"}));
  const auto alike = object_names({part("a", "b"), server("a-b")});
  EXPECT_EQ(alike[1], "a-b") << "a whole server goes before";
  EXPECT_NE(alike[0], alike[1]);
  EXPECT_EQ(object_names({server("日本")})[0].substr(0, 7), "server-");
  EXPECT_EQ(object_names({server("Chat")})[0], "chat-b19dd338") << "whoever else there is";
  // Somebody is called as another's digest has it.
  const auto twice = object_names({server("Chat"), server("chat-b19dd338")});
  EXPECT_EQ(twice[1], "chat-b19dd338");
  EXPECT_NE(twice[0], twice[1]);
}

TEST(ObjectNames, AreLabelsAndAllDifferent) {
  Rng rng(7);
  const std::string letters = "ab-A._ \n\"/\xC3\xA9";
  for (int round = 0; round < 300; ++round) {
    std::set<std::pair<std::string, std::string>> keys;
    for (std::uint64_t n = rng.below(30); n-- > 0;) {
      std::string name, accelerator;
      for (std::uint64_t length = 1 + rng.below(rng.below(5) == 0 ? 90 : 3); length-- > 0;)
        name += letters[rng.below(letters.size())];
      if (rng.below(3) == 0) accelerator = rng.below(2) == 0 ? "a" : "B";
      keys.emplace(name, accelerator);
    }
    std::vector<ReplicaGroup> all;
    for (const auto& [name, accelerator] : keys)
      all.push_back(accelerator.empty() ? server(name) : part(name, accelerator));
    const auto made = object_names(all);
    EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), all.size()) << round;
    for (const auto& name : made) EXPECT_TRUE(is_dns_label(name)) << name;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!all[i].is_part && is_dns_label(all[i].server)) {
        EXPECT_EQ(made[i], all[i].server);
      }
  }
}

}  // namespace
}  // namespace berth::fleet
