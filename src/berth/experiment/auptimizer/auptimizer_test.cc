#include "berth/experiment/auptimizer/auptimizer.h"

#include <gtest/gtest.h>

#include "berth/experiment/proposers/halving.h"
#include "berth/remote/clusters.h"
#include "berth/remote/ec2/ec2_settings.h"
#include "berth/remote/slurm/slurm_entry.h"
#include "berth/testing/fake_env.h"

namespace berth::experiment {
namespace {

Result<AuptimizerExperiment> read_experiment(const std::string& text) {
  return read_auptimizer(text, "experiment.json");
}

/// With `more` keys after those that every document has.
std::string document(const std::string& more) {
  return R"({"script": "train.py", "resource": "cpu", "parameter_config": [
    {"name": "x", "range": [-5, 5], "type": "float"}])" +
         (more.empty() ? "" : ", " + more) + "}";
}

std::string error_of(const std::string& text) {
  const auto read_one = read_experiment(text);
  return read_one ? "" : read_one.error().message;
}

TEST(Auptimizer, IsToldFromFilesOfBerthsOwn) {
  EXPECT_TRUE(is_auptimizer(document("")));
  EXPECT_FALSE(is_auptimizer("run: ./train.py\nparams: {script: [a]}"));
  EXPECT_FALSE(is_auptimizer(R"({"run": "x", "script": "y"})"));
  EXPECT_TRUE(is_auptimizer(R"({"parameter_config": [], "resource": "cpu"})"));
  EXPECT_TRUE(error_of(R"({"parameter_config": [], "resource": "cpu"})").contains("'script'"));
  EXPECT_FALSE(is_auptimizer("{broken"));
  EXPECT_FALSE(is_auptimizer(""));
}

TEST(Auptimizer, AWholeDocument) {
  const auto whole = read_experiment(R"({
    "name": "./2dfunc/exp one.json", "script": "sub/train.py", "proposer": "random",
    "n_samples": 7, "n_parallel": 3, "target": "min", "resource": "cpu", "workingdir": "./work",
    "random_seed": 12, "dropped": 1,
    "parameter_config": [
      {"name": "lr", "range": [0.001, 0.1], "type": "float"},
      {"name": "units", "range": [16, 64], "type": "int"},
      {"name": "act", "range": ["relu", "tanh", 3, true], "type": "choice"}],
    "resource_args": {"save_model": true, "multi_res_labels": ["flops", "size"],
      "early_stop": {"aup_policy": "bandit", "aup_policy_steps": 10, "bandit_factor": 0.7,
                     "warmup": 2}},
    "runtime_args": {"env": {"MODE": "fast"}},
    "job_failure": {"ignore_fail": true, "job_retries": 3}})");
  ASSERT_TRUE(whole) << whole.error().message;
  const Program& program = whole->program;
  EXPECT_EQ(program.name, "exp_one");
  EXPECT_EQ(program.run.text, "sub/train.py {params_file}");
  EXPECT_EQ(program.search.method, Search::Method::random);
  EXPECT_EQ(program.search.samples, 7);
  EXPECT_EQ(program.search.seed, 12U);
  EXPECT_EQ(program.parallel, 3);
  EXPECT_EQ(program.goal->metric, "score");
  EXPECT_FALSE(program.goal->maximize);
  EXPECT_EQ(program.retries, 3);
  EXPECT_FALSE(program.stop_on_failure);
  EXPECT_TRUE(program.save_best);
  EXPECT_EQ(program.early_stop->policy, EarlyStop::Policy::bandit);
  EXPECT_EQ(program.early_stop->every, 10);
  EXPECT_EQ(program.early_stop->warmup, 2);
  EXPECT_NEAR(program.early_stop->slack, 0.3, 1e-12);
  EXPECT_EQ(program.resources.get(Known::cpu), 1000);
  EXPECT_EQ(program.environment.front(), (std::pair<std::string, std::string>{"MODE", "fast"}));
  ASSERT_EQ(program.params.size(), 3U);
  EXPECT_TRUE(program.params[1].integer);
  EXPECT_EQ(program.params[2].choices, (std::vector<std::string>{"relu", "tanh", "3", "true"}));
  EXPECT_EQ(whole->directory, "./work");
  EXPECT_EQ(whole->notes, std::vector<std::string>{
                              "ignored, because Berth has nothing that corresponds: dropped"});
  EXPECT_EQ(program.score_labels, (std::vector<std::string>{"flops", "size"}));
}

TEST(Auptimizer, WhatIsNotToldIsAsThere) {
  const auto least = read_experiment(document(""));
  ASSERT_TRUE(least) << least.error().message;
  EXPECT_EQ(least->program.name, "experiment");
  EXPECT_EQ(least->program.run.text, "./train.py {params_file}");
  EXPECT_EQ(least->program.search.samples, 10);
  EXPECT_EQ(least->program.parallel, 1);
  EXPECT_TRUE(least->program.goal->maximize);
  EXPECT_TRUE(least->program.stop_on_failure);
  const auto bare =
      read_experiment(R"({"script": "t", "resource": "cpu", "parameter_config": [{"name": "x"}]})");
  ASSERT_TRUE(bare) << bare.error().message;
  EXPECT_TRUE(bare->program.params[0].integer);
  EXPECT_EQ(bare->program.params[0].max, 1);
  EXPECT_TRUE(least->notes.empty());
}

/// The values of the one parameter of a sequence that says this.
std::vector<std::string> steps_of(const std::string& parameter) {
  const auto sequence = read_experiment(R"({"script": "t.py", "resource": "cpu",
    "proposer": "sequence", "parameter_config": [{"name": "x", )" +
                                        parameter + "}]}");
  return sequence ? sequence->program.params[0].choices
                  : std::vector<std::string>{sequence.error().message};
}

TEST(Auptimizer, ASequenceTakesPointsOrIntervals) {
  using Choices = std::vector<std::string>;
  EXPECT_EQ(steps_of(R"("range": [0, 1], "type": "float", "n": 3)"), (Choices{"0", "0.5", "1"}));
  EXPECT_EQ(steps_of(R"("range": [0, 1], "type": "float", "interval": 0.4)"),
            (Choices{"0", "0.4", "0.8"}));
  EXPECT_EQ(steps_of(R"("range": [0, 1], "type": "float", "interval": 0.5, "n": 9)"),
            (Choices{"0", "0.5", "1"}));
  EXPECT_EQ(steps_of(R"("range": [-1, 1.5], "type": "float")"), (Choices{"-1", "0", "1"}));
  EXPECT_EQ(steps_of(R"("range": [1, 3], "type": "int")"), (Choices{"1", "2", "3"}));
  EXPECT_EQ(steps_of(R"("range": [1, 10], "type": "int", "n": 3)"), (Choices{"1", "5", "9"}));
  EXPECT_EQ(steps_of(R"("range": [2, 6], "type": "int", "n": 100)").size(), 5U);
  EXPECT_EQ(steps_of(R"("range": [2, 2], "type": "float", "n": 5)"), (Choices{"2"}));
  for (const auto* wrong :
       {R"("range": [0, 9], "type": "int", "interval": 0.5)",
        R"("range": [0, 9], "type": "float", "interval": 0)",
        R"("range": [0, 9], "type": "float", "interval": -1)",
        R"("range": [0, 9], "type": "float", "n": 1)", R"("range": [0, 1e12], "type": "float")",
        R"("range": [0, 9], "type": "float", "size": 2)"})
    EXPECT_TRUE(steps_of(wrong).front().contains("experiment.json")) << wrong;
  EXPECT_EQ(*count_trials(read_experiment(R"({"script": "t.py", "resource": "cpu",
    "proposer": "Sequence", "parameter_config": [{"name": "x", "range": [0, 1], "type": "float"},
      {"name": "z", "range": [1, 3], "type": "int"}]})")
                              ->program),
            2 * 3);
}

TEST(Auptimizer, ProposersAreTheNearestOfOurs) {
  const auto hyperopt = read_experiment(document(R"("proposer": "hyperopt", "engine": "tpe")"));
  ASSERT_TRUE(hyperopt) << hyperopt.error().message;
  EXPECT_EQ(hyperopt->program.search.method, Search::Method::tpe);
  EXPECT_EQ(hyperopt->notes.front(), "proposer hyperopt: searched by method tpe");
  const auto bohb = read_experiment(document(
      R"("proposer": "bohb", "eta": 4, "min_budget": 2, "max_budget": 32, "top_n_percent": 15)"));
  ASSERT_TRUE(bohb) << bohb.error().message;
  EXPECT_EQ(bohb->program.search.method, Search::Method::hyperband);
  EXPECT_TRUE(bohb->program.search.model);
  EXPECT_EQ(bohb->program.search.budget->parameter, "n_iterations");
  EXPECT_EQ(bohb->program.search.budget->min, 2);
  EXPECT_EQ(bohb->program.search.budget->max, 32);
  EXPECT_EQ(bohb->program.search.budget->reduction, 4);
  EXPECT_EQ(bohb->notes.back(),
            "ignored, because Berth has nothing that corresponds: top_n_percent");
  EXPECT_FALSE(bohb->program.search.budget->whole);
  const auto hyperband = read_experiment(document(R"("proposer": "HyperBand", "max_iter": 9)"));
  ASSERT_TRUE(hyperband) << hyperband.error().message;
  EXPECT_EQ(hyperband->program.search.budget->max, 9);
  EXPECT_FALSE(hyperband->program.search.model);
  EXPECT_TRUE(error_of(document(R"("proposer": "eas")")).contains("not supported by Berth"));
  EXPECT_TRUE(error_of(document(R"("proposer": "best")")).contains("got 'best'"));
}

TEST(Auptimizer, BudgetsAndBrackets) {
  const auto least = read_experiment(document(R"("proposer": "bohb")"));
  ASSERT_TRUE(least) << least.error().message;
  EXPECT_EQ(levels(*least->program.search.budget).size(), 5U) << "1/81, 1/27, 1/9, 1/3, 1";
  EXPECT_EQ(least->program.search.samples, 81 + 27 + 9 + 6) << "four brackets";
  const auto fifths = read_experiment(
      document(R"("proposer": "bohb", "n_iterations": 50, "min_budget": 1, "max_budget": 5)"));
  EXPECT_NEAR(levels(*fifths->program.search.budget)[0], 5.0 / 3, 1e-12);
  EXPECT_EQ(fifths->program.search.samples, 25 * (3 + 2));
  const auto ninths = read_experiment(
      document(R"("proposer": "bohb", "n_iterations": 3, "min_budget": 1, "max_budget": 9)"));
  EXPECT_EQ(ninths->program.search.samples, 9 + 3 + 3);
  const auto back = from_json_text(to_json_text(ninths->program));
  EXPECT_TRUE(back->search.budget->whole_groups) << "a resume has the same brackets";
  const auto skips = read_experiment(
      document(R"("proposer": "hyperband", "max_iter": 81, "skip_last": 1, "engine": "random")"));
  EXPECT_EQ(skips->program.search.budget->max, 27);
  EXPECT_EQ(skips->program.search.samples, 81 + 34 + 15 + 8);
  EXPECT_EQ(skips->notes.front(), "ignored, because Berth has nothing that corresponds: engine");
  const auto stops = read_experiment(document(
      R"("proposer": "bohb", "resource_args": {"early_stop": {"aup_policy": "curve_fitting",
         "aup_policy_steps": 10, "curve_fitting_max_iters": 235, "curve_fitting_timeout": 60}})"));
  ASSERT_TRUE(stops->program.early_stop);
  EXPECT_EQ(stops->program.early_stop->steps, 235);
  EXPECT_TRUE(stops->notes.back().ends_with(": early_stop.curve_fitting_timeout"));
  for (const auto* wrong : {R"("max_iter": 2, "skip_last": 1)", R"("skip_last": 2)",
                            R"("max_iter": 0.5)", R"("eta": 1)", R"("max_iter": "many")"})
    EXPECT_NE(error_of(document(R"("proposer": "hyperband", )" + std::string(wrong))), "") << wrong;
  for (const auto* name : {"tid", "n_iterations", "job_id"}) {
    std::string text = document(R"("proposer": "bohb")");
    text.replace(text.find("\"x\""), 3, fmt::format("\"{}\"", name));
    EXPECT_TRUE(error_of(text).contains("passed to the script by Berth itself")) << name;
  }
}

TEST(Auptimizer, LabelsAreNamesOfMetrics) {
  const auto labels = [](const char* list) {
    return read_experiment(
        document(fmt::format(R"("resource_args": {{"multi_res_labels": {}}})", list)));
  };
  EXPECT_EQ(labels(R"j(["x", "FLOPs (M)", "a/b"])j")->program.score_labels,
            (std::vector<std::string>{"x", "FLOPs__M_", "a/b"}));
  for (const auto* wrong : {R"(["a", "a"])", R"(["score"])", R"([""])", "3"})
    EXPECT_FALSE(labels(wrong)) << wrong;
}

TEST(Auptimizer, Resources) {
  auto text = document(R"("n_parallel": 4)");
  const auto with = [&](const std::string& resource) {
    std::string other = text;
    return other.replace(other.find("cpu"), 3, resource);
  };
  EXPECT_TRUE(read_experiment(with("passive"))->program.passive);
  EXPECT_EQ(read_experiment(with("passive"))->program.parallel, 1);
  EXPECT_EQ(read_experiment(with("gpu"))->program.resources.get(Known::gpu), 1);
  EXPECT_NE(error_of(with("tpu")).find("got 'tpu'"), std::string::npos);
}

TEST(Auptimizer, OtherMachines) {
  const auto with = [](const std::string& resource, const std::string& arguments = "{}") {
    std::string text = document(R"("n_parallel": 4, "resource_args": )" + arguments);
    return *read_experiment(text.replace(text.find("cpu"), 3, resource));
  };
  const std::string ini =
      "[Auptimizer]\nnode_mapping = {\"1\": \"ann@a:2200 ~/k\", \"2\": \"b\", \"3\": \"b\"}\n"
      "aws_mapping = {'1': 'ec2-user@i-12 ~/k.pem', '2': 'ec2-user@i-34 ~/k.pem'}\n";
  auto node = with("node");
  EXPECT_EQ(node.program.resources.get(Known::cpu), 1000);
  ASSERT_TRUE(*read_machines(ini, "env.ini", node));
  EXPECT_EQ(node.clusters,
            "node:\n  kind: ssh\n  lease: 90s\n  hosts:\n"
            "    - \"ann@a:2200 ~/k\"\n    - \"b\"\n");
  auto aws = with("aws", R"({"async_run": true, "async_timeout": 600, "shutdown": true})");
  ASSERT_TRUE(*read_machines(ini, "env.ini", aws));
  EXPECT_EQ(aws.clusters,
            "aws:\n  kind: ec2\n  lease: 90s\n  outlive: 600s\n  at_end: stop\n"
            "  patience: 300s\n  instances: [\"i-12\", \"i-34\"]\n  user: \"ec2-user\"\n"
            "  key_file: \"~/k.pem\"\n");
  const auto slurm = with("slurm", R"({"partitions": "gpu", "flags": ["--qos=high"],
                                       "time_limit": "2h", "account": "ada"})");
  EXPECT_EQ(slurm.clusters,
            "slurm:\n  kind: slurm\n  lease: 90s\n  account: \"ada\"\n  time_limit: \"2h\"\n"
            "  partitions: [\"gpu\"]\n  flags: [\"--qos=high\"]\n");
  // Each is what the cluster of its kind understands.
  os::FakeEnv env;
  env.variables = {{"HOME", "/home/ada"},
                   {"AWS_REGION", "eu-west-1"},
                   {"AWS_ACCESS_KEY_ID", "k"},
                   {"AWS_SECRET_ACCESS_KEY", "s"}};
  const auto entry = [](const AuptimizerExperiment& experiment) {
    return remote::parse_clusters(experiment.clusters, "its own").value().at(0);
  };
  const auto ec2 = remote::read_ec2_settings(env, "aws", entry(aws).body);
  ASSERT_TRUE(ec2) << ec2.error().message;
  EXPECT_EQ(ec2->instances, (std::vector<std::string>{"i-12", "i-34"}));
  const auto jobs = remote::read_slurm(env, entry(slurm), {});
  ASSERT_TRUE(jobs) << jobs.error().message;
  auto other = with("node");
  EXPECT_FALSE(*read_machines("[Auptimizer]\nx = 1\n", "env.ini", other));
  for (const auto* wrong :
       {"node_mapping = {}", "node_mapping = {\"1\": \"-oProxy=x\"}",
        "node_mapping = {\"1\": \"a;b\"}", "node_mapping = {\"1\": [", "node_mapping = 7"})
    EXPECT_FALSE(read_machines(wrong, "env.ini", other)) << wrong;
}

TEST(Auptimizer, MachinesOfSeveralKinds) {
  const auto with = [](const std::string& resource, const std::string& arguments) {
    std::string text = document(R"("resource_args": )" + arguments);
    return *read_experiment(text.replace(text.find("cpu"), 3, resource));
  };
  auto aws = with("aws", R"({"retry": 2, "async_reconnect": 60})");
  ASSERT_TRUE(
      *read_machines("[Auptimizer]\naws_mapping = {\n  \"1\": \"a@i-1 k\",\n"
                     "# not this\n  \"2\": \"b@i-2\",\n"
                     "  \"3\": \"c@ec2-3-4.aws:2200 q\",\n  \"4\": \"a@i-5 k\"}\n"
                     "node_mapping = {\"1\": \"z\"}\n",
                     "env.ini", aws));
  EXPECT_EQ(aws.cluster_names, (std::vector<std::string>{"aws", "aws-2", "aws-3"}));
  const std::string same = "  lease: 90s\n  reconnect: 60s\n";
  const std::string instances = same + "  at_end: keep\n  patience: 60s\n";
  EXPECT_EQ(aws.clusters, "aws:\n  kind: ec2\n" + instances +
                              "  instances: [\"i-1\", \"i-5\"]\n  user: \"a\"\n  key_file: \"k\"\n"
                              "aws-2:\n  kind: ec2\n" +
                              instances +
                              "  instances: [\"i-2\"]\n  user: \"b\"\naws-3:\n  kind: ssh\n" +
                              same + "  hosts:\n    - \"c@ec2-3-4.aws:2200 q\"\n");
  const auto entries = remote::parse_clusters(aws.clusters, "its own");
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ((*entries)[2].reconnect, std::chrono::seconds(60));
  // Slurm knows its machines itself, whatever the file names.
  auto slurm = with("slurm", "{}");
  const std::string before = slurm.clusters;
  EXPECT_FALSE(*read_machines("node_mapping = {\"1\": \"z\"}\n", "env.ini", slurm));
  EXPECT_EQ(slurm.clusters, before);
}

TEST(Auptimizer, AValueGoesOnInLinesThatAreIndentedFurther) {
  EXPECT_EQ(environment_value("  A = 1\n  b : {\n    x\n\n  }\n", "b"), "{ x");
  EXPECT_EQ(environment_value("b = {\n\tx=1,\r\n\ty}\r\nc = 3\n", "b"), "{ x=1, y}");
  EXPECT_EQ(environment_value("bb = 3\n", "b"), "");
}

TEST(Auptimizer, TheEnvironmentFileNamesGpus) {
  const std::string ini =
      "[Auptimizer]\nSQL_ENGINE = sqlite\ngpu_mapping = {\"1\": \"0\", \"2\": \"2\", \"3\": "
      "\"2\"}\n";
  std::string text = document(R"("n_parallel": 8)");
  auto cpu = *read_experiment(text);
  ASSERT_TRUE(read_gpu_mapping(ini, "env.ini", cpu));
  EXPECT_EQ(cpu.program.gpus, "");
  text.replace(text.find("cpu"), 3, "gpu");
  auto gpu = *read_experiment(text);
  ASSERT_TRUE(read_gpu_mapping(ini, "env.ini", gpu));
  EXPECT_EQ(gpu.program.gpus, "0,2");
  EXPECT_EQ(gpu.program.trials_per_gpu, 2);
  EXPECT_EQ(gpu.program.parallel, 3);
  auto plain = *read_experiment(text);
  ASSERT_TRUE(read_gpu_mapping("[Auptimizer]\n", "env.ini", plain));
  EXPECT_EQ(plain.program.gpus, "");
  EXPECT_EQ(plain.program.trials_per_gpu, 1);
  EXPECT_FALSE(read_gpu_mapping("gpu_mapping = [0,\n", "env.ini", plain));
  EXPECT_FALSE(read_gpu_mapping("gpu_mapping = {\"1\": \"0,1\"}\n", "env.ini", plain));
}

TEST(Auptimizer, TellsWhatIsMissing) {
  EXPECT_NE(error_of(R"({"script": "t.py", "resource": "cpu"})").find("parameter_config"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"script": "t.py", "parameter_config": []})").find("resource"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"script": "", "resource": "cpu", "parameter_config": []})")
                .find("experiment.json:1: script: the script's name is empty"),
            std::string::npos);
  for (const auto* range : {"[1]", "[2, 1]", "[a, b]", "3"})
    EXPECT_NE(error_of(fmt::format(R"({{"script": "t", "resource": "cpu", "parameter_config":
                [{{"name": "x", "range": {}, "type": "float"}}]}})",
                                   range)),
              "")
        << range;
}

TEST(Auptimizer, WhatStandsBeforeAndAfterTheScriptRunsWithIt) {
  const auto around = read_experiment(
      document(R"("runtime_args": {"prescript": "source env.sh", "postscript": "rm -f tmp"})"));
  EXPECT_EQ(around->program.run.text,
            "source env.sh\n./train.py {params_file}\nberth_status=$?\nrm -f tmp\n"
            "exit $berth_status");
  EXPECT_EQ(around->program.run.shell.front(), "bash") << "which knows source";
  // On other machines the one before begins in the home directory; older documents put them so.
  std::string text = document(R"("resource_args": {"prescript": "source .profile"})");
  const auto remote = read_experiment(text.replace(text.find("cpu"), 3, "node"));
  EXPECT_EQ(remote->program.run.text,
            "berth_directory=$PWD\ncd\nsource .profile\ncd \"$berth_directory\"\n"
            "./train.py {params_file}");
  EXPECT_TRUE(remote->notes.empty());
}

}  // namespace
}  // namespace berth::experiment
