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


class Auptimizer(Case):
    def document(self, **more):
        self.script("work/rosenbrock.py", SCRIPT)
        self.write("experiment.json", json.dumps({**EXPERIMENT, "workingdir": "./work", **more}))

    def test_an_experiment_runs_as_it_is(self):
        self.document(resource_args={"multi_res_labels": ["x"]}, runtime_args={"env": {"MODE": "fast"}}, extra=1)
        done = self.berth("run", "experiment.json")
        self.assertIn(b"experiment.json: multi_res_labels: x is score_2", done.err)
        self.assertIn(b"experiment.json: passed over, as nothing here corresponds to it: extra", done.err)
        tasks = self.house.tasks("exp-1")
        self.assertEqual(len(tasks), 5)
        for number, task in enumerate(tasks, 1):
            x, y = task["params"]["x"], task["params"]["y"]
            self.assertAlmostEqual(task["metrics"]["score"], (1 - x) ** 2 + 100 * (y - x ** 2) ** 2, places=4)
            self.assertEqual((task["metrics"]["score_2"], type(y)), (x, int))
            self.assertIn(f"{number}  fast".encode(), self.berth("logs", f"exp-1/{number}").out)
        best = min(tasks, key=lambda task: task["metrics"]["score"])
        self.assertEqual(self.house.json("best", "exp-1")["id"], best["id"])
        again = self.house.json("run", "experiment.json")["tasks"]
        self.assertEqual([task["params"] for task in again], [task["params"] for task in tasks])

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
config = BasicConfig(width=5).load(sys.argv[1])
assert config.x == config["x"] and config.width == 5 and not hasattr(config, "depth")
train(sys.argv[1])
""")
        self.berth("run", "experiment.json")
        self.assertEqual([task["metrics"] for task in self.house.tasks("exp-1")][:3],
                         [{"score": 10 * x, "score_2": 2 * x} for x in (1, 2, 3)])
        self.assertEqual((self.dir / "work/aup_models/models_exp-1/model.txt").read_text(), "3")
        self.script("work/train.py", "#!/usr/bin/python3\nimport sys\nfrom aup import aup_args\n@aup_args\n"
                    "def train(depth):\n    pass\ntrain(sys.argv[1])\n")
        self.berth("run", "experiment.json", code=1)
        self.assertIn(b"train() wants depth, which", self.berth("logs", "exp-2/1").err)

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
        for proposer, budget in (("hyperband", {"max_iter": 9}), ("bohb", {"max_budget": 9})):
            self.document(proposer=proposer, n_parallel=2, **budget)
            self.berth("run", "experiment.json")
        for run in ("exp-2", "exp-3"):
            given = {t["params"]["n_iterations"] for t in self.house.tasks(run)}
            self.assertEqual(given, {1, 3, 9}, run)

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
        self.document(script="nothing.py")
        self.assertIn("nothing.py: no such file", self.one_line(self.berth("run", "experiment.json", code=2)))
        self.document(workingdir="elsewhere")
        self.assertIn("elsewhere", self.one_line(self.berth("run", "experiment.json", code=2)))
        self.document(parameter_config=[{"name": "x", "range": [1], "type": "float"}])
        self.assertIn("wanted [min, max]", self.one_line(self.berth("run", "experiment.json", code=2)))
        self.assertEqual(self.house.json("runs")["runs"], [])


if __name__ == "__main__":
    unittest.main()
