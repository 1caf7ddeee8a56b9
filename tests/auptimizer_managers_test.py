#!/usr/bin/python3
"""Auptimizer's resource managers as classes, which drive runs of Berth."""

import json
import os
import sys
import threading
import unittest
from pathlib import Path

from berth_case import BERTH, Case

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import berth  # noqa: E402
import berth_auptimizer  # noqa: E402
from berth_auptimizer import AbstractResourceManager, CPUResourceManager, Experiment  # noqa: E402

DOCUMENT = {"name": "./folder/exp.json", "script": "train.py", "proposer": "random", "n_samples": 5, "random_seed": 1,
            "parameter_config": [{"name": "x", "range": [-5, 5], "type": "float"}],
            "resource": "cpu", "n_parallel": 2, "target": "min", "workingdir": "./"}
SCRIPT = """#!/usr/bin/python3
import os, sys
from aup import BasicConfig, print_result
config = BasicConfig().load(sys.argv[1])
print_result(100)
print_result([config.x ** 2, config.x, float(os.environ.get("CARD", 0))])
"""


class Typed(AbstractResourceManager):
    """As the passive one: it has one place, and whoever carries out the job gives the value."""

    def __init__(self, connector, *args, **kwargs):
        super().__init__(connector, *args, **kwargs)
        self.running = False
        self.seen = []

    def get_available(self, username, rtype):
        return None if self.running else super().get_available(username, rtype)

    def run(self, job, rid, exp_config, call_back_func, **kwargs):
        job.verify_local()
        self.running = True
        job.config.save(os.path.join(job.path, "jobs", f"{job.jid}.json"))
        self.seen.append((job.jid, rid, exp_config["resource"], kwargs))
        self.running = False
        call_back_func(job.config.x ** 2, job.jid)


class Managers(Case):
    def setUp(self):
        super().setUp()
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        os.environ.update(self.house.environment, BERTH_BIN=BERTH)
        self.script("train.py", SCRIPT)

    def document(self, **more):
        self.write("experiment.json", json.dumps({**DOCUMENT, **more}))
        return str(self.dir / "experiment.json")

    def test_a_manager_of_ones_own_drives_a_run(self):
        experiment = Experiment(self.document(runtime_args={"env": {"A": "1"}}), Typed)
        self.assertIs(experiment.start(), experiment)
        best, score = experiment.finish()
        tasks = self.house.tasks("exp-1")
        self.assertEqual([task["metrics"]["score"] for task in tasks], [task["params"]["x"] ** 2 for task in tasks])
        self.assertEqual(score, min(task["metrics"]["score"] for task in tasks))
        self.assertEqual(self.house.json("best", "exp-1")["id"], f"exp-1/{best}")
        self.assertEqual([(jid, resource, kwargs) for jid, _, resource, kwargs in experiment.resource_manager.seen],
                         [(jid, "cpu", {"env": {"A": "1"}}) for jid in range(1, 6)])
        self.assertEqual(json.loads((self.dir / "jobs/5.json").read_text()), tasks[4]["params"])

    def test_it_learns_of_failures_and_tries_elsewhere(self):
        places = []

        class Fails(AbstractResourceManager):
            def run(self, job, rid, exp_config, call_back_func, **kwargs):
                places.append((job.jid, rid))
                fails = job.jid == 1 and job.curr_retries == 0 or job.jid == 2
                call_back_func("ERROR" if fails else 7, job.jid)

        experiment = Experiment(self.document(n_samples=3, job_failure={"job_retries": 1, "ignore_fail": True}), Fails)
        self.assertEqual(experiment.finish()[1], 7)
        self.assertEqual([task["state"] for task in self.house.tasks("exp-1")], ["done", "failed", "done"])
        self.assertEqual([task["attempts"] for task in self.house.tasks("exp-1")], [2, 2, 1])
        for job in (1, 2):
            first, again = [rid for jid, rid in places if jid == job]
            self.assertNotEqual(first, again)

    def test_what_learns_goes_on_when_jobs_end_in_other_threads(self):
        together = threading.Barrier(2)

        class Later(AbstractResourceManager):
            def run(self, job, rid, exp_config, call_back_func, **kwargs):
                def end():
                    if job.jid <= 2:
                        together.wait(30)
                    call_back_func(job.config.x ** 2 + job.config.tid * 0, job.jid)
                threading.Thread(target=end).start()

        experiment = Experiment(self.document(proposer="hyperband", max_iter=3), Later)
        self.assertIsNotNone(experiment.finish()[0])
        budgets = [task["params"]["n_iterations"] for task in self.house.tasks("exp-1")]
        self.assertEqual(sorted(set(budgets)), [1, 3])

    def test_a_subclass_of_the_one_for_cores(self):
        class Cards(CPUResourceManager):  # which gives each job the card of its resource
            mapping = {1: "4", 2: "7"}

            def run(self, job, rid, exp_config, call_back_func, **kwargs):
                super().run(job, rid, exp_config, call_back_func, env={"CARD": self.mapping[rid]})

        document = self.document(resource="gpu", resource_args={"multi_res_labels": ["x", "card"], "save_model": True})
        best, score = Experiment(document, Cards).finish()
        tasks = self.house.tasks("exp-1")
        self.assertEqual(len(tasks), 6, "and the best again")
        for task in tasks:
            x = task["params"]["x"]
            self.assertEqual((task["metrics"]["score"], task["metrics"]["x"]), (x ** 2, x))
            self.assertIn(task["metrics"]["card"], (4, 7))
        saved = json.loads((self.dir / "jobs/6.json").read_text())
        self.assertEqual((saved["save_model"], saved["folder_name"]), (True, "models_exp-1"))

    def test_a_job_that_is_to_end_is_told(self):
        self.script("train.py", "#!/usr/bin/python3\nimport time\nprint('#Auptimizer:5', flush=True)\ntime.sleep(3600)\n")

        class Stops(CPUResourceManager):
            def append_interm_res(self, jid, interm_res):
                super().append_interm_res(jid, interm_res)
                if jid == 1:
                    self.stop_job(jid)
                else:
                    berth.Run("exp-1").stop()  # as a person does

        experiment = Experiment(self.document(n_samples=3, n_parallel=1), Stops)
        experiment.finish()
        self.assertEqual(self.house.tasks("exp-1")[0]["metrics"], {"score": 5})
        self.assertEqual(self.house.json("show", "exp-1")["run"]["state"], "stopped")

    def test_what_goes_wrong_in_it_stops_the_run(self):
        class Broken(AbstractResourceManager):
            def run(self, job, rid, exp_config, call_back_func, **kwargs):
                raise EnvironmentError("no such machine")

        with self.assertRaisesRegex(EnvironmentError, "no such machine"):
            Experiment(self.document(), Broken).finish()
        self.assertRaises(TypeError, Experiment, self.document(), AbstractResourceManager)
        self.assertNotIn("running", [run["state"] for run in self.house.json("runs")["runs"]])

    def test_what_cannot_be_is_refused_before_there_is_a_run(self):
        for wrong, message in (({"resource_args": {"early_stop": {"aup_policy": "median", "aup_policy_steps": 1}}},
                                "early_stop"), ({"proposer": "eas"}, "eas trains networks")):
            with self.assertRaisesRegex((ValueError, berth.Failed), message):
                Experiment({**DOCUMENT, **wrong}, Typed)
        self.assertRaises(KeyError, Experiment, {"script": "a"}, Typed)
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_lines_of_results(self):
        self.assertEqual(berth_auptimizer.parse_one_line("#Auptimizer:1.5, 2\n"), [1.5, 2])
        self.assertIsNone(berth_auptimizer.parse_one_line("a #Auptimizer:1\n"))
        self.assertRaises(ValueError, berth_auptimizer.parse_one_line, "#Auptimizer:one\n")


if __name__ == "__main__":
    unittest.main()
