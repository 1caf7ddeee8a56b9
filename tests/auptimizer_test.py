#!/usr/bin/python3
"""Auptimizer's documents, environment file and scripts, as they are."""

import json
import subprocess
import unittest

from berth_case import Case, until

# What a script of theirs does: reads the file named by its only argument, reports on standard error.
SCRIPT = """#!/usr/bin/python3
import json, os, sys
assert len(sys.argv) == 2, sys.argv
config = json.load(open(sys.argv[1]))
print("\\n#Auptimizer:0.0", file=sys.stderr, flush=True)
value = (1 - config["x"]) ** 2 + 100 * (config["y"] - config["x"] ** 2) ** 2
print("\\n#Auptimizer:%s" % ",".join(map(str, [value, config["x"]])), file=sys.stderr, flush=True)
print(config["job_id"], os.environ.get("CUDA_VISIBLE_DEVICES", ""), os.environ.get("MODE", ""))
"""

EXPERIMENT = {
    "name": "./2dfunc/exp.json", "script": "rosenbrock.py", "proposer": "random", "n_samples": 5, "random_seed": 1,
    "parameter_config": [{"name": "x", "range": [-5, 5], "type": "float"},
                         {"name": "y", "range": [-5, 5], "type": "int"}],
    "resource": "cpu", "n_parallel": 2, "target": "min"}

# Every key and kind of value that the package's examples of experiments use: docs/how-to/auptimizer.md has the table.
POINT = [{"name": "x", "range": [-5, 5], "type": "float"}, {"name": "y", "range": [-5, 5], "type": "float"}]
SIZED = [{**parameter, "size": 1} for parameter in POINT]
LAYERS = [{"name": "layer1", "range": [2, 4], "type": "int"}, {"name": "layer2", "range": [2, 4], "type": "int"}]
NET = [{"name": "dropout", "range": [0.0, 0.5], "type": "float"},
       {"name": "learning_rate", "range": [0.01, 0.05, 0.001], "type": "choice"},
       {"name": "conv1", "range": [20, 50], "type": "int"}]
GRID = [{"name": "dropout", "range": [0.0, 0.5], "type": "float", "n": 3},
        {"name": "conv1", "range": [20, 50], "type": "int", "n": 3}]
BOHB = {"proposer": "bohb", "n_iterations": 3, "min_points_in_model": "", "top_n_percent": 15, "num_samples": 64,
        "random_fraction": 0.3333333333333333, "bandwidth_factor": 3, "min_bandwidth": 0.001, "eta": 3,
        "min_budget": 1, "max_budget": 5}
SPEARMINT = {"proposer": "spearmint", "engine": "GPEIChooser", "n_samples": 4}
POLICIES = ({"aup_policy": "bandit", "bandit_factor": 0.5}, {"aup_policy": "median"},
            {"aup_policy": "truncation", "truncation_percentage": 0.7},
            {"aup_policy": "curve_fitting", "curve_fitting_max_iters": 235, "curve_fitting_threshold": 0.95,
             "curve_fitting_timeout": 60})
KINDS = {  # and the number of trials; None: it depends on how they go
    "random": ({"proposer": "random", "n_samples": 4, "parameter_config": POINT}, 4),
    "random without a name, a seed, or samples": ({"name": None, "random_seed": None, "n_samples": None,
                                                   "proposer": "random", "parameter_config": POINT}, 10),
    "no proposer": ({"proposer": None, "n_samples": 3, "parameter_config": NET}, 3),
    "labels": ({"n_samples": 2, "parameter_config": POINT, "resource_args": {"multi_res_labels": ["x", "y"]}}, 2),
    "a parameter that the function does not take": ({"n_samples": 2, "parameter_config": [
        *POINT, {"name": "c", "range": [0, 1], "type": "float"}]}, 2),
    "a model that is saved": ({"n_samples": 2, "parameter_config": NET, "resource_args": {"save_model": True}}, 3),
    "sequence by its default interval": ({"proposer": "sequence", "parameter_config": [
        {"name": "x", "range": [-1, 1], "type": "float"}]}, 3),
    "sequence of points": ({"proposer": "sequence", "parameter_config": GRID}, 9),
    "sequence of integers": ({"proposer": "sequence", "parameter_config": LAYERS}, 9),
    "hyperopt": ({"proposer": "hyperopt", "engine": "tpe", "n_samples": 4, "parameter_config": POINT}, 4),
    "spearmint": ({**SPEARMINT, "parameter_config": SIZED}, 4),
    "hyperband": ({"proposer": "hyperband", "max_iter": 3, "engine": "random", "parameter_config": POINT}, None),
    "bohb": ({**BOHB, "parameter_config": POINT}, None),
    **{f"gpu, {proposer['proposer']}": ({**proposer, "resource": "gpu", "parameter_config": LAYERS}, count)
       for proposer, count in (({"proposer": "random", "n_samples": 3}, 3), ({"proposer": "sequence"}, 9),
                               ({"proposer": "hyperopt", "engine": "tpe", "n_samples": 3}, 3), (SPEARMINT, 4))},
    **{f"{proposer['proposer']}, stopped by {policy['aup_policy']}": (
        {**proposer, "parameter_config": NET, "target": "max", "n_parallel": 4,
         "resource_args": {"early_stop": {**policy, "aup_policy_steps": 10}}}, count)
       for policy in POLICIES for proposer, count in (({"proposer": "random", "n_samples": 3}, 3), (SPEARMINT, 4), (BOHB, None))}}


class Auptimizer(Case):
    def document(self, **more):
        self.script("work/rosenbrock.py", SCRIPT)
        self.write("experiment.json", json.dumps({**EXPERIMENT, "workingdir": "./work", **more}))

    def test_an_experiment_runs_as_it_is(self):
        self.document(resource_args={"multi_res_labels": ["x"]}, runtime_args={"env": {"MODE": "fast"}}, extra=1)
        done = self.berth("run", "experiment.json")
        self.assertIn(b"experiment.json: ignored, because Berth has nothing that corresponds: extra", done.err)
        tasks = self.house.tasks("exp-1")
        self.assertEqual(len(tasks), 5)
        for number, task in enumerate(tasks, 1):
            x, y = task["params"]["x"], task["params"]["y"]
            self.assertAlmostEqual(task["metrics"]["score"], (1 - x) ** 2 + 100 * (y - x ** 2) ** 2, places=4)
            self.assertEqual((task["metrics"]["x"], type(y)), (x, int), "its label is the metric's name")
            self.assertIn(f"{number}  fast".encode(), self.berth("logs", f"exp-1/{number}").out)
        best = min(tasks, key=lambda task: task["metrics"]["score"])
        self.assertEqual(self.house.json("best", "exp-1")["id"], best["id"])
        again = self.house.json("run", "experiment.json")["tasks"]
        self.assertEqual([task["params"] for task in again], [task["params"] for task in tasks])

    def test_every_kind_of_their_examples(self):
        self.script("work/any.py", """#!/usr/bin/env python3
import sys
import aup
config = aup.BasicConfig().load(sys.argv[1])
for step in range(12):
    aup.print_result([sum(v for v in config.values() if type(v) in (int, float)) + step, step, 1])
""")
        self.house.environment["BERTH_TOPOLOGY"] = "dgx1-v100"
        for number, (kind, (more, count)) in enumerate(KINDS.items(), 1):
            with self.subTest(kind):
                document = {**EXPERIMENT, "script": "any.py", "workingdir": "./work", "name": f"k{number}", **more}
                self.write("kind.json", json.dumps({k: v for k, v in document.items() if v is not None}))
                self.berth("check", "kind.json")
                self.berth("run", "--plan", "kind.json")
                self.berth("run", "kind.json")
                run = f"k{number}-1" if document["name"] else "kind-1"
                tasks = self.house.tasks(run)
                self.assertEqual({task["state"] for task in tasks}, {"done"})
                if count is not None:
                    self.assertEqual(len(tasks), count)
                names = {p["name"] for p in more["parameter_config"]}
                for task in tasks:
                    self.assertEqual(set(task["params"]) - {"n_iterations"}, names)

    def test_a_sequence_with_choices_and_failures(self):
        self.script("work/sometimes.py", """#!/usr/bin/python3
import json, sys
config = json.load(open(sys.argv[1]))
assert config["flag"] is True or config["flag"] is False
print("#Auptimizer:%s" % config["x"])
sys.exit(config["flag"])
""")
        config = [{"name": "x", "range": [0, 1], "type": "float", "interval": 0.5},
                  {"name": "flag", "range": [False, True], "type": "choice"}]
        self.document(script="sometimes.py", proposer="sequence", parameter_config=config, target="max",
                      job_failure={"ignore_fail": True, "job_retries": 1}, n_parallel=1)
        self.berth("run", "experiment.json")
        tasks = self.house.tasks("exp-1")
        self.assertEqual([t["params"]["x"] for t in tasks], [0, 0, 0.5, 0.5, 1, 1])
        self.assertEqual([t["attempts"] for t in tasks], [1, 2] * 3)
        self.assertEqual(self.house.json("best", "exp-1")["params"], {"x": 1, "flag": False})
        self.document(script="sometimes.py", proposer="sequence", parameter_config=config, n_parallel=1)
        self.berth("run", "experiment.json", code=1)
        self.assertEqual(self.house.counts("exp-2")["failed"], 1, "the first failure ends it")

    def test_gpus_are_those_of_the_environment_file(self):
        self.document(resource="gpu", n_parallel=8, n_samples=6)
        self.write(".aup/env.ini", '[Auptimizer]\nAuptimizer_PATH = .aup\n'
                   'gpu_mapping = {"1": "2", "2": "5", "3": "5"}\n')
        self.house.environment["BERTH_TOPOLOGY"] = "dgx1-v100"
        plan = self.house.json("run", "--plan", "experiment.json")
        uuids = {d["index"]: d["uuid"] for d in self.house.json("machine")["devices"]}
        self.assertLessEqual({d["uuid"] for p in plan["places"] for d in p["devices"]}, {uuids[2], uuids[5]})
        self.berth("run", "experiment.json")
        seen = {self.berth("logs", f"exp-1/{n}").out.split()[1].decode() for n in range(1, 7)}
        self.assertLessEqual(seen, {uuids[2], uuids[5]})
        memory = next(d["total"]["gpu_mem"] for d in self.house.json("machine")["devices"] if d["index"] == 5)
        self.assertEqual(self.house.tasks("exp-1")[0]["resources"]["gpu_mem"], memory // 2)

    def test_passive(self):
        self.document(resource="passive", n_samples=2, n_parallel=4)
        process = subprocess.Popen([self.house.berth, "run", "experiment.json"], cwd=self.dir, text=True,
                                   env=self.house.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.house.started.append(process)
        task = until(lambda: self.house.run("ask", "exp-1", "--json").code == 0 and
                     self.house.json("ask", "exp-1")["tasks"], "it is asked for")[0]
        params = self.house.state / "runs/exp-1/params/1.json"
        self.assertEqual(json.loads(params.read_text()), {**task["params"], "job_id": 1})
        report = subprocess.run([self.dir / "work/rosenbrock.py", params], capture_output=True, text=True).stderr
        out, err = process.communicate(report.split("\n")[-2] + "\n#Auptimizer:3\n", timeout=30)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(f"exp-1/1: ./rosenbrock.py {params}\n", err)
        self.assertEqual(self.house.tasks("exp-1")[1]["metrics"], {"score": 3})

    def test_scripts_that_import_its_module(self):
        self.document(script="train.py", proposer="sequence", n_parallel=1, target="max",
                      resource_args={"save_model": True, "multi_res_labels": ["twice"]},
                      parameter_config=[{"name": "x", "range": [1, 3], "type": "int", "interval": 1}])
        self.script("work/train.py", """#!/usr/bin/python3
import sys
from aup import aup_args, aup_save_model, BasicConfig, print_result
def init_it(x, **more):
    global seen
    seen = x
def save(name, text):
    open(name, "w").write(text)
@aup_args
def train(x, width=10):
    assert seen == x
    print_result(-1)
    aup_save_model(save, "model.txt", text=str(x))
    return [x * width, 2 * x]
def strict(x, width, save_model=False, folder_name=None):
    assert (folder_name == "models_exp-1") is save_model
config = BasicConfig(width=5).load(sys.argv[1])
strict(**config)
assert config.job_id == config["job_id"] in (1, 2, 3, 4), config
assert config.x == config["x"] and config.width == 5 and not hasattr(config, "depth")
train(sys.argv[1])
""")
        self.berth("run", "experiment.json")
        self.assertEqual([task["metrics"] for task in self.house.tasks("exp-1")][:3],
                         [{"score": 10 * x, "twice": 2 * x} for x in (1, 2, 3)])
        self.assertEqual((self.dir / "work/aup_models/models_exp-1/model.txt").read_text(), "3")
        self.script("work/train.py", "#!/usr/bin/python3\nimport sys\nfrom aup import aup_args\n@aup_args\n"
                    "def train(depth):\n    pass\ntrain(sys.argv[1])\n")
        self.berth("run", "experiment.json", code=1)
        self.assertIn(b"train() requires depth, which", self.berth("logs", "exp-2/1").err)

    def test_flags_are_set_from_the_parameters(self):
        self.document(script="train.py", proposer="sequence", n_parallel=1,
                      parameter_config=[{"name": "x", "range": [1, 2], "type": "int", "interval": 1}])
        self.script("work/train.py", """#!/usr/bin/python3
import sys
from aup import aup_flags
class Flags:  # iterates over its names, as absl's do
    x = y = 7
    def __iter__(self):
        return iter(("x", "y"))
FLAGS = Flags()
@aup_flags(FLAGS)
def main():
    return FLAGS.x * FLAGS.y
main(sys.argv)
""")
        self.berth("run", "experiment.json")
        self.assertEqual([task["metrics"]["score"] for task in self.house.tasks("exp-1")], [7, 14])

    def test_its_installed_module_goes_before_ours(self):
        self.document(script="train.py", n_samples=1)
        self.write("installed/aup/__init__.py", "def theirs():\n    return 42\n")
        self.house.environment["PYTHONPATH"] = str(self.dir / "installed")
        self.script("work/train.py", "#!/usr/bin/python3\nimport aup\nprint('#Auptimizer:%s' % aup.theirs())\n")
        self.berth("run", "experiment.json")
        self.assertEqual(self.house.tasks("exp-1")[0]["metrics"], {"score": 42})

    def test_proposers_that_learn(self):
        self.document(proposer="hyperopt", n_samples=12, n_parallel=2, resource_args={"save_model": True})
        self.berth("run", "experiment.json")
        tasks = self.house.tasks("exp-1")
        self.assertEqual(len(tasks), 13, "and the best once more")
        saved = json.loads((self.house.state / "runs/exp-1/params/13.json").read_text())
        self.assertTrue(saved.pop("save_model"))
        self.assertEqual(saved.pop("folder_name"), "models_exp-1")
        best = min(tasks[:12], key=lambda t: t["metrics"]["score"])
        self.assertEqual(saved, {**best["params"], "job_id": saved["job_id"]})

    def test_proposers_that_give_budgets(self):
        def run(proposer, script=SCRIPT, **more):
            self.document(**{"proposer": proposer, "n_parallel": 2, **more})
            self.script("work/rosenbrock.py", script)
            self.berth("run", "experiment.json")
            name = f"exp-{len(self.house.json('runs')['runs'])}"
            files = (self.house.state / f"runs/{name}/params").iterdir()
            return [json.loads(file.read_text()) for file in files], self.house.tasks(name)

        given, tasks = run("HyperBand", max_iter=9, eta=3, engine="random", skip_last=0)
        self.assertEqual({values["n_iterations"] for values in given}, {1, 3, 9})
        whose = {(task["params"]["x"], task["params"]["y"]): set() for task in tasks}
        for values in given:
            whose[values["x"], values["y"]].add(values["tid"])
            self.assertIs(type(values["job_id"]), int)
        self.assertEqual(sorted(whose.values()), sorted({number} for number in range(1, len(whose) + 1)))
        given, _ = run("hyperband", max_iter=9, skip_last=1)
        self.assertEqual({values["n_iterations"] for values in given}, {1, 3})
        # Two brackets of 3 and of 2; a third of five is not two.
        given, tasks = run("bohb", n_iterations=3, min_budget=1, max_budget=5, min_points_in_model="", top_n_percent=15,
                           num_samples=64, random_fraction=0.3333333333333333, bandwidth_factor=3, min_bandwidth=0.001)
        self.assertEqual({values["n_iterations"] for values in given}, {5 / 3, 5})
        self.assertEqual({values["tid"] for values in given}, set(range(1, 9)))
        _, tasks = run("bohb", n_iterations=3, min_budget=1, max_budget=9)
        self.assertEqual(len(tasks), 20, "as many jobs as HpBandSter makes")
        # What stops a trial early goes together with it.
        given, tasks = run("bohb", script="""#!/usr/bin/python3
import sys, time
from aup import BasicConfig, print_result
config = BasicConfig().load(sys.argv[1])
print_result(2 - config.job_id % 2)
time.sleep(0 if config.job_id % 2 else 3600)  # until it is stopped
""", n_iterations=2, min_budget=1, max_budget=3, n_parallel=1,
                           resource_args={"early_stop": {"aup_policy": "bandit", "aup_policy_steps": 1, "bandit_factor": 0.5}})
        self.assertGreater(len(tasks), 4)
        for number, task in enumerate(tasks, 1):
            self.assertEqual(task["cause"] == "ok", number % 2 == 1, task)

    def test_other_machines_have_to_be_named(self):
        for resource in ("node", "aws"):
            self.document(resource=resource)
            text = self.one_line(self.berth("run", "experiment.json", code=2))
            self.assertIn(f"{resource}_mapping in .aup/env.ini", text)
        self.write(".aup/env.ini", '[Auptimizer]\nnode_mapping = {"1": "-oProxyCommand=touch owned"}\n')
        self.document(resource="node")
        self.assertIn("env.ini: node_mapping", self.one_line(self.berth("run", "experiment.json", code=2)))
        self.assertFalse((self.dir / "owned").exists())

    def test_what_is_wrong_is_told(self):
        def refused(without=(), **more):
            self.document(**more)
            whole = json.loads((self.dir / "experiment.json").read_text())
            self.write("experiment.json", json.dumps({k: v for k, v in whole.items() if k not in without}))
            return self.one_line(self.berth("run", "experiment.json", code=2))

        self.assertIn("nothing.py: no such file", refused(script="nothing.py"))
        self.assertIn("elsewhere", refused(workingdir="elsewhere"))
        self.assertIn("expected [min, max]", refused(parameter_config=[{"name": "x", "range": [1], "type": "float"}]))
        for key in ("script", "resource", "parameter_config"):
            self.assertRegex(refused(without=[key]), f"experiment.json:.*'{key}' is missing")
        self.assertIn("proposer: eas trains networks", refused(proposer="eas", parameter_config=[]))
        self.assertIn("compression", refused(compression={"compressors": []}))
        self.document(resource="gpu")
        self.assertIn("resources: 1 GPU requested; this machine has none", self.one_line(self.berth("run", "experiment.json", code=3)))
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_more_in_parallel_than_there_are_cores(self):
        self.write("machine.yaml", "cpu: 2\n")
        self.house.environment["BERTH_MACHINE"] = str(self.dir / "machine.yaml")
        for parallel, cores in ((1, 1), (2, 1), (8, 0.25)):
            self.document(n_parallel=parallel)
            plan = self.house.json("run", "--plan", "experiment.json")
            self.assertEqual(plan["resources"]["cpu"], cores)
        # Eight wait for each other, which takes that they run side by side.
        self.script("work/rosenbrock.py", """#!/usr/bin/python3
import json, os, sys, time
open("here-%s" % json.load(open(sys.argv[1]))["job_id"], "w")
end = time.monotonic() + 60
while len([name for name in os.listdir() if name.startswith("here-")]) < 8 and time.monotonic() < end:
    time.sleep(0.01)
if time.monotonic() < end:
    print("#Auptimizer:1")
""")
        self.write("experiment.json", json.dumps({**EXPERIMENT, "workingdir": "./work", "n_parallel": 8, "n_samples": 8}))
        self.berth("run", "experiment.json")
        self.assertEqual(self.house.counts("exp-1")["done"], 8)


if __name__ == "__main__":
    unittest.main()
