#include "berth/experiment/program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>

namespace berth::experiment {
namespace {

using namespace std::chrono_literals;

Program program_of(std::string_view text, const std::string& file = "sweep.yaml") {
  auto program = read_program(text, file);
  EXPECT_TRUE(program) << text << '\n' << program.error().message;
  return *std::move(program);
}

TEST(Program, ReadsTheFileOfTheDesign) {
  const Program program = program_of(R"(name: digits
run: ./train.py --lr {lr} --width {width}
resources: {cpu: 1, mem: 1G}              # gpu: 1, gpu_mem: 10G, gpu_slots: 8, disk: 5G, your own
params:
  lr: {min: 1e-4, max: 1e-1, scale: log}
  width: [16, 32, 64]
  seed: {min: 1, max: 5, type: int}
search: {method: random, samples: 40, seed: 7}   # grid: all choices; ranges need n: points
priority: 0
env: {OMP_PROC_BIND: close}
goal: {metric: accuracy, direction: max}         # none: just run them all
parallel: 4                                      # default: as many as fit
timeout: 10m
retries: 2
on_failure: continue
)");
  EXPECT_EQ(program.name, "digits");
  EXPECT_EQ(program.kind, "experiment");
  EXPECT_EQ(program.run,
            (exec::Command{"./train.py --lr {lr} --width {width}", {}, exec::words_of_shell({})}));
  EXPECT_EQ(program.run_line, 2);
  EXPECT_EQ(to_string(program.resources), "cpu 1, mem 953.7 MiB");
  EXPECT_EQ(program.search.method, Search::Method::random);
  EXPECT_EQ(program.search.samples, 40);
  EXPECT_EQ(program.search.seed, 7U);
  EXPECT_EQ(program.environment, (Values{{"OMP_PROC_BIND", "close"}}));
  EXPECT_EQ(program.goal->metric, "accuracy");
  EXPECT_TRUE(program.goal->maximize);
  EXPECT_EQ(program.parallel, 4);
  EXPECT_EQ(program.timeout, 10min);
  EXPECT_EQ(program.retries, 2);
  EXPECT_FALSE(program.stop_on_failure);
  ASSERT_EQ(program.params.size(), 3U);
  EXPECT_EQ(program.params[0].scale, Parameter::Scale::log);
  EXPECT_EQ(program.params[1].choices, (std::vector<std::string>{"16", "32", "64"}));
  EXPECT_TRUE(program.params[2].integer);
  EXPECT_EQ(propose(program)->size(), 40U);
}

TEST(Program, WhatIsNotGivenIsPlain) {
  const Program program = program_of("run: ./a", "dir/my-sweep.v2.yaml");
  EXPECT_EQ(program.name, "my-sweep");
  EXPECT_EQ(to_string(program.resources), "cpu 1");
  EXPECT_EQ(program.search.method, Search::Method::grid);
  EXPECT_FALSE(program.goal);
  EXPECT_EQ(program.parallel, 0);
  EXPECT_EQ(program.timeout, 0s);
  EXPECT_EQ(program.grace, 5s);
  EXPECT_EQ(program.retries, 0);
  EXPECT_EQ(program.priority, 0);
  EXPECT_FALSE(program.stop_on_failure);
  EXPECT_EQ(*propose(program), std::vector<Values>(1)) << "no parameters: one trial";
  EXPECT_EQ(program_of("run: a", "/x/.yaml").name, "run") << "a file without a name of its own";
}

TEST(Program, ANearMissNoCoreAndNoTime) {
  const auto wrong = [](std::string_view text) { return read_program(text, "f").error().message; };
  EXPECT_NE(wrong("run: x {treshold}\nparams: {threshold: 1}").find("did you mean {threshold}?"),
            std::string::npos);
  EXPECT_TRUE(read_program("run: x {thresh}\nparams: {threshold: 1}", "f"));
  EXPECT_TRUE(program_of("run: x\nresources: {cpu: 0}").resources.empty());
  EXPECT_NE(wrong("run: x\ntimeout: 0s").find("timeout: expected more than 0"), std::string::npos);
}

TEST(Program, ReadsTheRarerKeys) {
  const Program program = program_of(R"({"run": ["printf", "{x}", "a | b"], "params": {"x": "only"},
    "goal": {"metric": "loss", "direction": "min"}, "priority": -7, "grace": "250ms",
    "on_failure": "stop", "resources": {"gpu": 1, "gpu_mem": "10G", "licence": 0.5}})");
  EXPECT_EQ(program.run.words, (std::vector<std::string>{"printf", "{x}", "a | b"}));
  EXPECT_EQ(program.params[0].choices, std::vector<std::string>{"only"});
  EXPECT_FALSE(program.goal->maximize);
  EXPECT_EQ(program.priority, -7);
  EXPECT_EQ(program.grace, 250ms);
  EXPECT_TRUE(program.stop_on_failure);
  EXPECT_EQ(to_string(program.resources), "gpu 1, gpu_mem 9.3 GiB, licence 0.5");
}

TEST(Program, ReadsWhichGpusAreAccepted) {
  const Program program = program_of(R"({"run": "x", "resources": {"gpu_mem_min": "30G",
    "gpu_slot_sizes": [31, 99], "gpu_policy": "best-effort", "gpu_objective": "min",
    "gpu_require": ["0-1", "GPU-a"], "gpu": 4}})");
  const machine::DeviceSelection wanted{.slot_sizes = {31, 99},
                                        .memory_min = 30'000'000'000,
                                        .policy = placement::PolicyKind::best_effort,
                                        .objective = placement::Objective::min,
                                        .required = {"0", "1", "GPU-a"}};
  EXPECT_EQ(program.selection, wanted);
  EXPECT_EQ(from_json_text(to_json_text(program))->selection, wanted) << "a resume finds it";
  const auto gpus = [](std::string_view resources) {
    return program_of(fmt::format("run: x\nresources: {}", resources)).resources.get(Known::gpu);
  };
  EXPECT_EQ(gpus("{gpu_mem_min: 30G}"), 1) << "a whole one";
  EXPECT_EQ(gpus("{gpu_mem_min: 30G, gpu_mem: 1G}"), 0) << "a part";
  EXPECT_EQ(gpus("{gpu_require: 2-4}"), 3);
  const auto old = from_json_text(
      R"({"name":"a","kind":"command","run":"","words":["x"],"resources":{"gpu":1},"parallel":0,
          "timeout_ms":0,"grace_ms":0,"retries":0,"stop_on_failure":true,"priority":0,"seed":0,
          "env":{},"slot_sizes":[13]})");
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->selection.slot_sizes, std::vector<int>{13}) << "as it was stored before";
  EXPECT_EQ(old->allow_failures, 0) << "a command";
}

struct Wrong {
  std::string_view text, message;
};

void expect_refused(std::span<const Wrong> cases) {
  for (const auto& [text, message] : cases) {
    const auto program = read_program(text, "f.yaml");
    ASSERT_FALSE(program) << text;
    EXPECT_EQ(program.error().kind, ErrorKind::invalid) << text;
    EXPECT_EQ(program.error().message, message) << text;
  }
}

TEST(Program, RefusesWhatIsWrongAndSaysWhere) {
  constexpr Wrong kCases[] = {
      {"", "f.yaml:1: the file is empty"},
      {"- a",
       "f.yaml:1: expected keys and values: run: COMMAND (an experiment), or steps: (a flow)"},
      {"name: a\n", "f.yaml:1: 'run' is missing"},
      {"run:\n", "f.yaml:1: 'run' is missing"},
      {"run: x\nparms: {}", "f.yaml:2: unknown key 'parms'; did you mean 'params'?"},
      {"run: ''", "f.yaml:1: run: the command is empty"},
      {"run: ' '", "f.yaml:1: run: the command is empty"},
      {"run: []", "f.yaml:1: run: the command is empty"},
      {"run: {a: b}", "f.yaml:1: run: expected text, got a map"},
      {"run: [a, [b]]", "f.yaml:1: run[1]: expected text, got a list"},
      {"run: \"a\\0b\"", "f.yaml:1: run: cannot contain a NUL byte"},
      {"run: [a, \"\\0\"]", "f.yaml:1: run[1]: cannot contain a NUL byte"},
      {"run: x\nname: -a",
       "f.yaml:2: name: a name is made of letters, digits, '_', '.' and '-', at most 64, and "
       "begins "
       "with a letter or digit"},
      {"run: x\nresources: {Cpu: 1}",
       "f.yaml:2: resources.Cpu: a resource's name is made of a-z, 0-9 and _, and begins with a "
       "letter"},
      {"run: x\nresources:\n  mem: lots",
       "f.yaml:3: resources.mem: expected a size such as 512MiB, 10G or 4096, got 'lots'"},
      {"run: x\nresources: 2", "f.yaml:2: resources: expected a map, got '2'"},
      {"run: x\nresources: {gpu: 1, gpu_policy: pakced}",
       "f.yaml:2: resources.gpu_policy: expected packed, best-effort, simple, static-dgx1-pascal, "
       "static-dgx1-volta or static-dgx2, got 'pakced'; did you mean 'packed'?"},
      {"run: x\nresources: {gpu: 1, gpu_mem_min: lots}",
       "f.yaml:2: resources.gpu_mem_min: expected a size such as 512MiB, 10G or 4096, got 'lots'"},
      {"run: x\nresources: {gpu: 1, gpu_require: 3-1}",
       "f.yaml:2: resources.gpu_require: expected a range such as 2-5, got '3-1'"},
      {"run: x\nresources: {gpu: 1, gpu_require: 0-1}",
       "f.yaml:2: resources: gpu_require: 2 devices are more than a gpu of 1"},
      {"run: x\nresources: {gpu_objective: min}",
       "f.yaml:2: resources: gpu_objective: no gpu is asked for"},
      {"run: x\ntimeout: soon",
       "f.yaml:2: timeout: expected a duration such as 90s, 10m or 1h30m, got 'soon'"},
      {"run: x\ngpu_mem_over: kil",
       "f.yaml:2: gpu_mem_over: expected warn or kill, got 'kil'; did you mean 'kill'?"},
      {"run: x\ntimeout: 36501d", "f.yaml:2: timeout: expected at most 36500d"},
      {"run: x\ngrace: 106751d", "f.yaml:2: grace: expected at most 36500d"},
      {"run: x\nretries: -1", "f.yaml:2: retries: expected 0 to 1000, got -1"},
      {"run: x\nretries: 1.5", "f.yaml:2: retries: expected a whole number, got '1.5'"},
      {"run: x\npriority: 1001", "f.yaml:2: priority: expected -1000 to 1000, got 1001"},
      {"run: x\nparallel: 0", "f.yaml:2: parallel: expected 1 to 1000000, got 0"},
      {"run: x\non_failure: retry",
       "f.yaml:2: on_failure: expected one of continue, stop; got 'retry'"},
      {"run: x\ngoal: {direction: min}", "f.yaml:2: goal: 'metric' is missing"},
      {"run: x\ngoal: {metric: a, direction: up}",
       "f.yaml:2: goal.direction: expected one of max, min, maximize, minimize; got 'up'"},
      {"run: x\ngoal: {metrik: a}", "f.yaml:2: goal: unknown key 'metrik'; did you mean 'metric'?"},
      {"run: x\nenv: {A=B: 1}", "f.yaml:2: env.A=B: not a name of an environment variable"},
      {"run: x\nenv:\n  A: \"\\0\"", "f.yaml:3: env.A: cannot contain a NUL byte"},
      {"run: x\nenv:\n  A:", "f.yaml:3: env.A: expected text, got nothing"}};
  expect_refused(kCases);
}

TEST(Program, RefusesAWrongSearchAndSaysWhere) {
  constexpr Wrong kCases[] = {
      {"run: x\nparams: [a]", "f.yaml:2: params: expected a map, got a list"},
      {"run: x\nparams: {a b: 1}",
       "f.yaml:2: params.a b: a parameter's name consists of letters, digits and _, does not begin "
       "with a digit, and is neither params_file nor index"},
      {"run: x\nparams: {a: []}", "f.yaml:2: params.a: the list of choices is empty"},
      {"run: x\nparams: {a: [1, [\"\\0\"]]}",
       "f.yaml:2: params.a[1][0]: cannot contain a NUL byte"},
      {"run: x\nparams: {a: [\"\\0\"]}", "f.yaml:2: params.a[0]: cannot contain a NUL byte"},
      {"run: x\nparams:\n  a:\n",
       "f.yaml:3: params.a: expected a value or a list of choices; null is [null]"},
      {"run: x\nparams:\n  a: {min: 1}", "f.yaml:3: params.a: 'max' is missing"},
      {"run: x\nparams:\n  a:\n    min: 2\n    max: 1", "f.yaml:5: params.a.max: max is below min"},
      {"run: x\nparams: {a: {min: 0, max: 1, scale: log}}",
       "f.yaml:2: params.a.min: a log scale takes a min above 0"},
      {"run: x\nparams: {a: {min: 0, max: 1, unit: 1}}",
       "f.yaml:2: params.a: unknown key 'unit'; known are: min, max, scale, type, "
       "step, n, when"},
      {"run: x\nparams: {a: {min: 0, max: 1.5, type: int}}",
       "f.yaml:2: params.a.max: expected a whole number, since type is int"},
      {"run: x\nparams: {a: {min: 1e300, max: 1e300, type: int}}",
       "f.yaml:2: params.a.min: expected a whole number from -9007199254740992 to "
       "9007199254740992; got 1e300"},
      {"run: x\nparams: {a: {min: nan, max: 1}}",
       "f.yaml:2: params.a.min: expected a number, got 'nan'"},
      {"run: x\nparams: {a: {min: 0, max: 1, n: 0}}",
       "f.yaml:2: params.a.n: expected 1 to 1000000, got 0"},
      {"run: x\nparams:\n  a: {min: 0, max: 1}",
       "f.yaml:2: params: a range is searched at random, or in n points; give search: {method: "
       "random, samples: 20}, or the range an n"},
      {"run: x\nparams: {a: {min: 0, max: 1}}\nsearch: {method: grid}",
       "f.yaml:2: params: a: a grid needs the number of points of a range, n: 5"},
      {"run: x\nparams: {a: {min: 1, max: 1000, type: int}, b: {min: 0, max: 1000, type: int}}",
       "f.yaml:2: params: the grid has more than 1000000 trials"},
      {"run: x\nparams: {a: {min: -9e15, max: 9e15, type: int}, b: {min: 0, max: 9e15, type: int}}",
       "f.yaml:2: params: the grid has more than 1000000 trials"},
      {"run: x\nsearch: {method: random}",
       "f.yaml:2: search: 'samples' is missing: give the number of trials"},
      {"run: x\nsearch: {method: grid, samples: 3}",
       "f.yaml:2: search.samples: a grid takes every point; samples belong to method random"},
      {"run: x\nsearch: {method: random, samples: 1000001}",
       "f.yaml:2: search.samples: expected 1 to 1000000, got 1000001"},
      {"run: x\nsearch: {method: random, samples: 1, seed: -1}",
       "f.yaml:2: search.seed: expected 0 to 9223372036854775807, got -1"},
      {"run: x\nsearch: {method: bayes}",
       "f.yaml:2: search.method: expected one of grid, random, sequence, sobol, tpe, cma-es, gp, "
       "auto, halving, hyperband, external, nsga2, pbt; got 'bayes'"},
      {"run: x\ngoal: []", "f.yaml:2: goal: expected 1 to 8 goals"},
      {"run: x\ngoal: [{metric: a}, {metric: b, score: best}]",
       "f.yaml:2: goal: with several goals, the last values are used: leave out score"},
      {"run: x\nsave_best: true", "f.yaml:2: save_best: a goal is needed to find the best trial"},
      {"run: x\nsearch: {method: external, samples: 1}", "f.yaml:2: search: 'run' is missing"},
      {"run: |\n  echo `echo {lr}`\nparams: {lr: 1}",
       "f.yaml:1: run: {lr} is in `…`, where the shell could split or change its value; "
       "assign it to a variable first (v={lr}) and use \"$v\" here"}};
  expect_refused(kCases);
}

TEST(Program, RefusesAWrongMethodAndSaysWhere) {
  constexpr Wrong kCases[] = {
      {"run: x\nsearch: {method: tpe, samples: 3}",
       "f.yaml:2: search: method tpe requires a goal; add goal: {metric: NAME, direction: max}"},
      {"run: x\nsearch: {samples: 3}",
       "f.yaml:2: search: a search without a method requires a goal: Berth selects a method that "
       "learns from it; add goal: {metric: NAME, direction: max}, or name a method that needs no "
       "goal, such as method: random"},
      {"run: x\nsearch: {method: cmaes, samples: 3}\ngoal: [{metric: a}, {metric: b}]",
       "f.yaml:2: search: cma-es takes one goal; tpe, gp and nsga2 take several"},
      {"run: x\nearly_stop: {policy: median}",
       "f.yaml:2: early_stop: a goal is needed to find the trials that do badly"},
      {"run: x\ngoal: {metric: a}\nearly_stop: {policy: median, slack: 1}",
       "f.yaml:3: early_stop: unknown key 'slack'; known are: policy, warmup, every"},
      {"run: x\ngoal: {metric: a}\nearly_stop: {policy: truncation, part: 1}",
       "f.yaml:3: early_stop.part: expected a part, above 0 and below 1"},
      {"run: x\nparams: {a: 1}\nsearch: {method: halving, samples: 3, budget: {param: A, min: 1, "
       "max: 2}}",
       "f.yaml:3: search.budget.param: the budget is a separate parameter: leave it out of params"},
      {"run: x\nsearch: {method: tpe, samples: 3, budget: {param: a, min: 1, max: 2}}",
       "f.yaml:2: search.budget: belongs to methods halving, hyperband and pbt"},
      {"run: x\nparams: {a: {choices: [1], min: 1}}",
       "f.yaml:2: params.a: unknown key 'min'; known are: choices, when"},
      {"run: x\nparams: {a: {choices: [1], when: {b: 1}}, b: [1]}",
       "f.yaml:2: params.a.when.b: expected a parameter with choices that is defined before 'a'"},
      {"run: x\nparams: {a: [1, 2], b: {choices: [1], when: {a: [2, 3]}}}",
       "f.yaml:2: params.b.when.a: '3' is not a choice of 'a': 1, 2"},
      {"run: x\nsearch: {method: sequence}",
       "f.yaml:2: search: a sequence requires either points: [{lr: 0.1}, …] or file: NAME"},
      {"run: x\nsearch: {method: sequence, points: []}",
       "f.yaml:2: search.points: the list of points is empty"},
      {"run: x\nsearch: {method: sequence, points: [{a: 1, A: 2}]}",
       "f.yaml:2: search.points[0].A: another one would share its BERTH_PARAM_ variable"},
      {"run: x\nsearch: {method: sequence, points: [{a b: 1}]}",
       "f.yaml:2: search.points[0].a b: not the name of a parameter"},
      {"run: x\nparams: {a: 1}\nsearch: {method: sequence, points: [{b: 1}]}",
       "f.yaml:2: params: the points of a sequence name their parameters themselves"},
      {"run: x\nsearch: {method: sequence, samples: 2, points: [{b: 1}]}",
       "f.yaml:2: search.samples: a sequence takes every point; samples belong to method random"},
      {"run: x\nsearch: {points: [{b: 1}]}",
       "f.yaml:2: search.points: belongs to method sequence"}};
  expect_refused(kCases);
}

TEST(Program, TheValuesOfAllTrialsAreBounded) {
  std::string params;
  for (int i = 0; i < 11; ++i) params += fmt::format("  p{}: [1]\n", i);
  const auto program = read_program(
      "run: x\nsearch: {method: random, samples: 1000000}\nparams:\n" + params, "f.yaml");
  EXPECT_EQ(program.error().message,
            "f.yaml:3: params: 1000000 trials of 11 parameters are more than 10000000 values");
}

TEST(Program, NamesAreFitForPathsAndLabels) {
  for (const std::string_view name : {"a", "9", "A-b_c.d", "digits-3"})
    EXPECT_TRUE(valid_name(name)) << name;
  EXPECT_TRUE(valid_name(std::string(64, 'a')));
  for (const std::string_view name : {"", ".", "..", ".a", "-a", "_a", "a/b", "a b", "é", "a\n"})
    EXPECT_FALSE(valid_name(name)) << name;
  EXPECT_FALSE(valid_name(std::string(65, 'a')));
}

TEST(Program, IsKeptAsJsonForAResume) {
  const Program program =
      program_of(R"({"run": "echo \"{x}\" é", "params": {"x": [1, 2]}, "name": "a",
    "resources": {"cpu": 1.5, "mem": "10G", "tokens": 3}, "parallel": 2, "timeout": "90s",
    "grace": "100us", "retries": 3, "on_failure": "stop", "priority": -3,
    "search": {"seed": 9223372036854775807}, "env": {"B": "two words", "A": ""},
    "goal": {"metric": "loss", "direction": "min"}})");
  const std::string text = to_json_text(program);
  EXPECT_EQ(text,
            R"({"name":"a","kind":"experiment","run":"echo \"{x}\" é","words":[],)"
            R"("resources":{"cpu":1500,"mem":10000000000,"tokens":3000},"parallel":2,)"
            R"("timeout_ms":90000,"grace_ms":1,"retries":3,"stop_on_failure":true,"priority":-3,)"
            R"("seed":9223372036854775807,"env":{"B":"two words","A":""},)"
            R"("goal":{"metric":"loss","maximize":false},)"
            R"("shell":["bash","--norc","-euo","pipefail","-c"],"allow_failures":0})")
      << "runs of older versions hold this: never change it, only add";
  const auto back = from_json_text(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json_text(*back), text);
  EXPECT_EQ(back->run, program.run);
  EXPECT_EQ(back->resources, program.resources);
  EXPECT_EQ(back->environment, program.environment);
  EXPECT_EQ(back->timeout, 90s);
  EXPECT_FALSE(back->goal->maximize);
  const Program words = program_of("run: [a, b]");
  EXPECT_EQ(from_json_text(to_json_text(words))->run, words.run);
  EXPECT_FALSE(from_json_text(to_json_text(words))->goal);
}

TEST(Program, WhatComesOfTooMuchGpuMemoryIsKept) {
  EXPECT_EQ(program_of("run: x").gpu_mem_over, exec::GpuMemOver::warn);
  const Program kill = program_of("run: x\ngpu_mem_over: kill");
  EXPECT_EQ(from_json_text(to_json_text(kill))->gpu_mem_over, exec::GpuMemOver::kill);
}

TEST(Program, TheRarerKeysAreKeptToo) {
  Program program = program_of(R"({"run": "x {a} {b} {checkpoint}", "checkpoints": true,
    "params": {"a": [1, 2], "b": {"min": 1, "max": 2, "type": "int", "when": {"a": 2}}}})");
  EXPECT_EQ(program.optional, std::vector<std::string>{"b"});
  program.goal = Goal{"m", true, Goal::Score::best};
  program.further_goals = {{"n", false}};
  program.constraints = {{"a", Constraint::Relation::below, 0.1},
                         {"b", Constraint::Relation::at_least, -1e300}};
  program.early_stop = EarlyStop{.policy = EarlyStop::Policy::curve, .steps = 30};
  program.save_best = true;
  const std::string text = to_json_text(program);
  const auto back = from_json_text(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json_text(*back), text);
  EXPECT_EQ(back->optional, program.optional);
  EXPECT_EQ(back->goal->score, Goal::Score::best);
  EXPECT_EQ(back->further_goals.at(0).metric, "n");
  EXPECT_EQ(back->constraints.at(0).metric, "a");
  EXPECT_EQ(back->constraints.at(1).bound, -1e300);
  EXPECT_EQ(back->early_stop->policy, EarlyStop::Policy::curve);
  EXPECT_EQ(back->early_stop->steps, 30);
  EXPECT_TRUE(back->save_best && back->checkpoints);
}

TEST(Program, AStepEndsTheRangeAndIsKept) {
  const Program program = program_of(
      "run: x {a}\nsearch: {samples: 9}\ngoal: {metric: m}\n"
      "params: {a: {min: 0, max: 1, step: 0.3}}");
  EXPECT_NEAR(program.params[0].max, 0.9, 1e-12);
  EXPECT_EQ(from_json_text(to_json_text(program))->params.at(0).step, 0.3);
  constexpr Wrong kCases[] = {
      {"run: x\nparams: {a: {min: 0, max: 1, step: 2}}",
       "f.yaml:2: params.a.step: expected more than 0 and at most max - min, 1; got 2"},
      {"run: x\nparams: {a: {min: 1, max: 9, step: 1, scale: log}}",
       "f.yaml:2: params.a.step: a log scale has no even steps: leave out one of step and scale"},
      {"run: x\nparams: {a: {min: 1, max: 9, step: 1.5, type: int}}",
       "f.yaml:2: params.a.step: expected a whole number, since type is int"}};
  expect_refused(kCases);
}

TEST(Program, WhatIsChosenForAPersonIsTold) {
  const Program left_open = program_of(
      "run: x {a}\nsearch: {samples: 40}\ngoal: {metric: loss}\nparams: {a: {min: 0, max: 1}}");
  EXPECT_EQ(left_open.search.method, Search::Method::automatic);
  EXPECT_EQ(left_open.notes,
            (std::vector<std::string>{
                "goal: the highest loss is best; to minimize it: {metric: loss, direction: min}",
                "search: gp, since 40 trials of 1 parameters are few"}));
  const Program said = program_of("run: x\ngoal: {metric: loss, direction: minimize}");
  EXPECT_FALSE(said.goal->maximize);
  EXPECT_TRUE(said.notes.empty());
}

TEST(Program, ASearchThatLearnsIsKeptWithItsSpace) {
  for (const std::string search :
       {"{method: tpe, samples: 7}",
        "{method: hyperband, model: tpe, budget: {param: e, min: 1, max: 9}}",
        "{method: external, run: [./p, a b], samples: 3, patience: 5s}"}) {
    Program program =
        program_of("run: x {e}\nsearch: " + search +
                   "\ngoal: [{metric: m}, {metric: n, direction: min}]\nsave_best: true\n"
                   "params: {a: {min: 0.1, max: 10, scale: log}, b: [x, \"\\\"é\"], "
                   "c: {min: 1, max: 3, type: int, when: {b: x}}}");
    program.earlier.push_back({{{"a", "1"}}, {{"m", 0.5}, {"n", -1e-300}}});
    const std::string text = to_json_text(program);
    const auto back = from_json_text(text);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_json_text(*back), text);
    EXPECT_EQ(back->search.method, program.search.method);
    EXPECT_EQ(back->search.samples, program.search.samples);
    EXPECT_EQ(back->params.size(), 3);
    EXPECT_EQ(back->params[2].when.at(0).parameter, "b");
    EXPECT_EQ(back->earlier.at(0).metrics, program.earlier[0].metrics);
    for (std::size_t cut = 0; cut < text.size(); ++cut)
      ASSERT_EQ(from_json_text(text.substr(0, cut)).error().kind, ErrorKind::corrupt) << cut;
  }
}

TEST(Program, ReadsTheFileOfASequence) {
  constexpr std::string_view kTexts[] = {
      "{\"lr\": 0.1, \"w\": 8}\n\n{\"lr\": 1e-3}\n",
      R"([{"lr": 0.1, "w": 8}, {"lr": 1e-3}])",
      "- {lr: 0.1, w: 8}\n- lr: 1e-3\n",
  };
  for (const auto text : kTexts) {
    Program program = program_of("run: x {lr} {w}\nsearch: {method: sequence, file: points}");
    const auto status = read_points(text, "points", program);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(*propose(program),
              (std::vector<Values>{{{"lr", "0.1"}, {"w", "8"}}, {{"lr", "1e-3"}}}));
    EXPECT_EQ(program.optional, std::vector<std::string>{"w"});
  }
  for (const std::string_view text : {"", "\n", "[]", "7", "{\"a\": [1]}", "{\"a\": 1} {", "{"}) {
    Program program;
    EXPECT_EQ(read_points(text, "points", program).error().kind, ErrorKind::invalid) << text;
  }
}

TEST(Program, OneOfBeforeTheStrictShellGoesOnWithItsOwn) {
  const auto shell_of = [](std::string_view json) {
    return from_json_text(json).value().run.shell;
  };
  std::string json = to_json_text(program_of("run: x | y"));
  EXPECT_EQ(shell_of(json), exec::words_of_shell({}));
  EXPECT_EQ(shell_of(to_json_text(program_of("run: x | y\nshell: [zsh, -fc]"))),
            (std::vector<std::string>{"zsh", "-fc"}));
  const std::string stored = R"(,"shell":["bash","--norc","-euo","pipefail","-c"])";
  ASSERT_NE(json.find(stored), std::string::npos) << json;
  json.erase(json.find(stored), stored.size());
  EXPECT_EQ(shell_of(json), (std::vector<std::string>{"/bin/sh", "-c"}));
}

TEST(Program, StoredJsonThatIsDamagedIsCorrupt) {
  const std::string good = to_json_text(program_of("run: x\ngoal: {metric: m}\nenv: {A: b}"));
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    ASSERT_EQ(from_json_text(good.substr(0, cut)).error().kind, ErrorKind::corrupt) << cut;
  constexpr std::string_view kChanges[][2] = {
      {R"("cpu":1000)", R"("cpu":-1)"},
      {R"("cpu":1000)", R"("cpu":1.5)"},
      {R"("cpu":1000)", R"("cpu":"1")"},
      {R"("timeout_ms":0)", R"("timeout_ms":9300000000000)"},
      {R"("grace_ms":5000)", R"("grace_ms":-1)"},
      {R"("retries":0)", R"("retries":2147483648)"},
      {R"("parallel":0)", R"("parallel":-1)"},
      {R"("seed":0)", R"("seed":-1)"},
      {R"("seed":0)", R"("seed":1e30)"},
      {R"("priority":0)", R"("priority":0.5)"},
      {R"("words":[])", R"("words":[1])"},
      {R"("words":[])", R"("words":{})"},
      {R"({"A":"b"})", R"({"A":1})"},
      {R"({"A":"b"})", R"(["A"])"},
      {R"("maximize":true)", R"("maximize":1)"}};
  for (const auto& [from, to] : kChanges) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    const auto read = from_json_text(text);
    ASSERT_FALSE(read) << to;
    EXPECT_EQ(read.error().kind, ErrorKind::corrupt);
  }
}

TEST(Program, ShowsValuesAsJson) {
  EXPECT_EQ(
      values_json({{"lr", "1e-3"}, {"n", "32"}, {"s", "a\"b"}, {"z", "nan"}, {"bad", "\xff"}}),
      "{\"lr\":0.001,\"n\":32,\"s\":\"a\\\"b\",\"z\":\"nan\",\"bad\":\"\xef\xbf\xbd\"}");
  EXPECT_EQ(values_json({}), "{}");
}

}  // namespace
}  // namespace berth::experiment
