#!/usr/bin/python3
"""Studies: functions that are optimized, in threads and in processes that share a study, some of which
are killed between ask and tell."""

import json
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import unittest
import zipfile
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from berth_case import BERTH, Case, until

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import berth  # noqa: E402

SPACE = {"x": {"min": -2, "max": 2}, "kind": ["a", "b"]}

WORKER = """
import sys, berth
study = berth.load_study(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
for trial in study:
    print(trial.number, flush=True)
    study.tell(trial, trial.params.x ** 2)
"""

HOLDER = """
import sys, berth
study = berth.load_study(sys.argv[1])
print(study.ask().number, study._pipe._process.pid, flush=True)
sys.stdin.readline()
"""


KILLED = """
import random, sys, time, berth
study = berth.load_study(sys.argv[1])
for trial in study:
    time.sleep(random.random() / 50)
    study.tell(trial, trial.number)
    print(trial.number, study._pipe._process.pid, flush=True)
"""


class Study(Case):
    def setUp(self):
        super().setUp()
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        os.environ.update(self.house.environment, BERTH_BIN=BERTH, PYTHONPATH=str(ROOT / "python"))

    def study(self, samples=None, **more):
        study = berth.Study(**{"space": SPACE, "goal": "f", "direction": "min", "samples": samples, **more})
        self.addCleanup(study.close)
        return study

    def start(self, script, *words):
        process = subprocess.Popen(["/usr/bin/python3", "-c", script, *words], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdin.close(), process.stdout.close()))
        return process

    def test_processes_share_a_study_and_none_gets_what_another_has(self):
        study = self.study(24)
        workers = [self.start(WORKER, study.name) for _ in range(4)]
        for worker in workers:
            self.assertEqual(worker.stdout.readline(), "open\n")
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
        asked = [int(line) for worker in workers for line in worker.stdout]
        self.assertEqual(sorted(asked), list(range(1, 25)))
        self.assertEqual([worker.wait() for worker in workers], [0] * 4)
        self.assertEqual(study.wait(), "done")
        self.assertEqual([(t.state, t.record["attempts"]) for t in study.trials()], [("done", 1)] * 24)
        self.assertEqual(study.best_value, min(t.metrics.f for t in study.trials()))

    def test_the_trial_of_who_was_killed_comes_back_at_once(self):
        study = self.study(2)
        holder = self.start(HOLDER, study.name)
        self.assertEqual(holder.stdout.readline().split()[0], "1")
        self.assertEqual(study.ask(wait=False).number, 2)
        self.assertIsNone(study.ask(wait=False), "it is held")
        holder.kill()
        again = study.ask()
        self.assertEqual((again.number, again.record["attempts"]), (1, 2))
        self.assertEqual([a["cause"] for a in self.house.json("why", again.id)["attempts_made"]][0], "worker lost")

    def test_a_claim_that_nobody_renews_comes_back_when_its_lease_ends(self):
        study = self.study(1, lease=0.3)
        holder = self.start(HOLDER, study.name)
        number, pid = map(int, holder.stdout.readline().split())
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        again = study.ask()  # waits for it
        self.assertEqual((number, again.number, again.record["attempts"]), (1, 1, 2))
        study.tell(again, 1)

    def test_kills_lose_no_trial_and_none_that_was_told(self):
        study = self.study(60, lease=0.5)
        told, workers, chance = [], [], random.Random(7)
        for kill in range(12):
            workers = [worker for worker in workers if worker.poll() is None]
            while len(workers) < 3:
                workers.append(self.start(KILLED, study.name))
            worker = chance.choice(workers)
            for _ in range(2):
                line = worker.stdout.readline().split()
                told += line[:1]
            if line and kill % 3 == 0:  # berth itself; the script fails at its next call
                os.kill(int(line[1]), signal.SIGKILL)
            else:
                worker.kill()
            told += [rest.split()[0] for rest in worker.stdout if " " in rest]
        while (trial := study.ask()) is not None:
            study.tell(trial, trial.number)
            told.append(str(trial.number))
        told += [line.split()[0] for worker in workers if not worker.stdout.closed for line in worker.stdout]
        self.assertEqual(len(told), len(set(told)), "a tell that was acknowledged is the only one")
        self.assertEqual(study.wait(), "done")
        self.assertEqual([t.metrics for t in study.trials()], [{"f": n} for n in range(1, 61)])

    def test_who_comes_late_is_refused(self):
        study = self.study(1)
        other = berth.load_study(study.name)
        held = other.ask()
        other.close()  # gives it back
        mine = study.ask()
        other._evaluate(lambda trial: 5, held, ())
        self.assertEqual(held.state, "lost", "no reason to end a loop")
        with self.assertRaisesRegex(berth.Failed, "this claim is over"):
            other.tell(held, 5)
        study.tell(mine, 1)
        self.assertEqual(other.best().metrics, {"f": 1}, "who was refused hears of it")
        other.close()

    def test_a_claim_is_renewed_while_its_process_lives(self):
        study = self.study(1, lease=1)
        study.ask()

        def lease():
            with closing(sqlite3.connect(self.house.state / "berth.db")) as store:
                return store.execute("SELECT lease_ns FROM attempt").fetchall()

        first = lease()
        until(lambda: lease() > first, "it was renewed")
        self.assertEqual(len(lease()), 1)

    def test_optimize(self):
        study = self.study()
        seen = []
        study.optimize(lambda trial: trial.params.x ** 2, n_trials=12, callbacks=[lambda s, t: seen.append(t.number)])
        self.assertEqual(seen, list(range(1, 13)))
        study.optimize(lambda trial: {"f": trial.params.x ** 2, "more": 1}, n_trials=8, n_jobs=4)
        self.assertEqual(study.record()["counts"]["done"], 20)
        self.assertEqual(study.record()["state"], "running", "a program may ask for more")
        self.assertLess(study.best_value, 0.1)
        self.assertEqual(study.best_trial.params, study.best_params)
        study.optimize(lambda trial: 1, timeout=0)
        self.assertEqual(len(study.trials()), 20)

    @unittest.skipUnless(find_spec("pandas"), "python3-pandas is not there")
    def test_the_trials_as_a_data_frame(self):
        study = self.study(3)
        study.optimize(lambda trial: trial.number)
        frame = study.trials_dataframe()
        self.assertEqual(list(frame.columns), ["trial", "state", "params_x", "params_kind", "metrics_f", "started", "ended"])
        self.assertEqual(list(frame.metrics_f), [1, 2, 3])
        self.assertTrue((frame.ended >= frame.started).all())

    def test_what_an_objective_raises(self):
        study = self.study()
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            study.optimize(lambda trial: 1 / 0, n_trials=5)
        study.optimize(lambda trial: 1 / 0, n_trials=2, catch=ZeroDivisionError)

        def prune(trial):
            trial.report(3)
            raise berth.Pruned

        study.optimize(prune, n_trials=1)
        self.assertEqual([t.state for t in study.trials()], ["failed"] * 3 + ["done"])
        self.assertEqual(study.trials()[3].record["cause"], "stopped early")
        self.assertEqual(study.best().metrics, {"f": 3})
        self.assertIn(b"ZeroDivisionError: division by zero", self.berth("why", f"{study.name}/1").out)

    def test_a_space_that_becomes_known_as_trials_run(self):
        study = self.study(space=None)

        def objective(trial):
            x = trial.suggest_float("x", -2, 2)
            if trial.suggest_categorical("net", ["none", True, 3]) is True:
                return x ** 2 + trial.suggest_int("depth", 1, 8)
            self.assertGreater(trial.suggest_float("lr", 1e-4, 1, log=True), 0)
            return x ** 2

        study.optimize(objective, n_trials=30)
        for trial in study.trials():
            self.assertEqual("depth" in trial.params, trial.params.net is True, trial)
            self.assertNotEqual("lr" in trial.params, trial.params.net is True, trial)
        study.enqueue({"x": 0.5, "net": "none"})
        trial = study.ask()
        self.assertEqual((trial.suggest_float("x", -2, 2), trial.params.net), (0.5, "none"))
        with self.assertRaisesRegex(berth.Failed, "the space of .* has it as -2..2"):
            trial.suggest_float("x", -3, 2)
        self.assertIn("x", trial.params)

    def test_an_interrupted_call_leaves_no_answer_for_the_next(self):
        study = self.study(3)
        study.ask()
        answers = study._pipe._process.stdout
        with mock.patch.object(answers, "readline", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            study.best()
        until(lambda: study.trials()[0].state == "waiting", "what it held is given back")
        self.assertEqual(study.ask().number, 1)

    def test_suggest_beside_a_declared_space(self):
        study = self.study(3)
        trial = study.ask()
        self.assertEqual(trial.suggest_float("x", -2, 2), trial.params.x)
        self.assertEqual(trial.suggest_float("x"), trial.params.x)
        self.assertEqual(trial.suggest_categorical("kind", ["a", "b"]), trial.params.kind)

    def test_early_stop(self):
        study = self.study(early_stop={"policy": "median", "warmup": 1})

        def objective(trial):
            for step in range(5):
                trial.report(trial.number * (step + 1), step)
                if trial.should_prune():
                    raise berth.Pruned
            return trial.number

        study.optimize(objective, n_trials=4)
        self.assertEqual([t.record["cause"] for t in study.trials()], ["ok"] + 3 * ["stopped early"])

    def test_values_are_what_the_space_says(self):
        space = {"layers": [1, 2], "flag": [True, False], "net": ["1"], "x": {"min": 1, "max": 1},
                 "n": {"min": 3, "max": 3, "type": "int"}}
        study = self.study(2, space=space)
        for trial in study:
            for params in (trial.params, study.trials()[-1].params, self.house.tasks(study.name)[-1]["params"]):
                self.assertEqual([type(value) for value in params.values()], [int, bool, str, float, int], params)
            self.assertEqual(trial.suggest_categorical("net", ["1"]), "1")
            study.tell(trial, 1)
        grown = self.study(1, space=None)
        trial = grown.ask()
        self.assertEqual((trial.suggest_float("x", 1, 1), trial.suggest_categorical("k", ["7"]),
                          trial.suggest_categorical("none", [None])), (1.0, "7", None))
        self.assertEqual([type(value) for value in trial.params.values()], [float, str, type(None)])
        grown.tell(trial, 1)
        self.assertEqual(self.house.tasks(grown.name)[0]["params"], {"x": 1.0, "k": "7", "none": None})
        self.assertIs(type(grown.best_params.x), float)

    def test_enqueue_more_samples_and_warm_start(self):
        study = self.study(2, search={"method": "random", "seed": 1})
        self.assertEqual(study.enqueue({"x": 0.25, "kind": "b"}).params, {"x": 0.25, "kind": "b"})
        self.assertEqual(self.berth("ask", study.name, "--enqueue", "x=0.5").out, f"{study.name}/2\n".encode())
        self.assertEqual(study.trials()[1].params.x, 0.5)
        with self.assertRaisesRegex(berth.Failed, "lies outside"):
            study.enqueue({"x": 5})
        study.optimize(lambda trial: trial.params.x ** 2)
        self.assertEqual(study.wait(), "done")
        self.assertEqual(study.trials()[0].params.x, 0.25)
        study.set_samples(4)
        study.optimize(lambda trial: trial.params.x ** 2)
        self.assertEqual(study.record()["counts"]["done"], 4)
        after = self.study(1, warm_start=study)
        self.assertIsNotNone(after.ask())
        other = self.study(1, space={"z": {"min": 0, "max": 1}})
        other.optimize(lambda trial: 1e9)
        with self.assertRaisesRegex(berth.Failed, f"no trial of {other.name} is within"):
            self.study(1, warm_start=[study, other.name])
        self.assertIsNotNone(self.study(1, warm_start=[study, after.name, study.name][::2]).ask())

    def test_several_directions(self):
        study = self.study(goal=["f", "g"], direction=["min", "max"])
        study.optimize(lambda trial: (trial.params.x ** 2, trial.params.x), n_trials=15)
        front = {t.id for t in study.best_trials}
        for one in study.trials():
            beaten = any(o.metrics.f <= one.metrics.f and o.metrics.g >= one.metrics.g and
                         (o.metrics.f, o.metrics.g) != (one.metrics.f, one.metrics.g) for o in study.trials())
            self.assertEqual(one.id in front, not beaten)

    def test_constraints(self):
        study = self.study(40, constraints=["latency <= 1", "kind_b < 1"], search={"method": "tpe"})

        def objective(trial):
            kind_b = trial.params.kind == "b"
            return {"f": -trial.params.x, "latency": trial.params.x, "kind_b": int(kind_b)}

        study.optimize(objective)
        kept = [t for t in study.trials() if t.metrics.latency <= 1 and t.metrics.kind_b < 1]
        self.assertEqual(study.best_trial.id, min(kept, key=lambda t: t.metrics.f).id)
        self.assertGreater(study.best_trial.params.x, 0.8)
        self.assertGreater(len(kept), 15)
        with self.assertRaisesRegex(berth.Failed, "latency == 1"):
            self.study(constraints=["latency == 1"])
        missing = self.study(1, name="missing", constraints=["latency <= 1"])
        with self.assertRaisesRegex(berth.Failed, "the constrained metric 'latency' is missing"):
            missing.tell(missing.ask(), 3)

    def test_where_all_break_a_constraint_nothing_is_the_best(self):
        study = self.study(3, constraints=["f > 9"])
        study.optimize(lambda trial: trial.params.x)
        self.assertIsNone(study.best())
        self.assertEqual(self.house.json("show", study.name)["constraints"], ["f > 9"])

    def test_the_other_commands_know_a_study(self):
        study = self.study(3)
        trial = study.ask()
        self.assertEqual(self.house.json("show", study.name)["run"]["kind"], "study")
        self.assertIn("is a study", self.one_line(self.berth("resume", study.name, code=2)))
        self.assertIn("is a study", self.one_line(self.berth("tell", trial.id, "1", code=2)))
        self.assertIn("is a study", self.one_line(self.berth("ask", study.name, code=2)))
        self.assertIn(b"running; a program on ", self.berth("why", trial.id).out)
        waits = study.enqueue({"x": 1})
        self.assertIn(b"waiting: until a program asks for it", self.berth("why", waits.id).out)
        study.stop()
        self.assertEqual(study.record()["state"], "stopped")
        self.assertIsNone(study.ask())
        study.tell(trial, 1)
        self.berth("rm", study.name)
        with self.assertRaises(berth.Failed):
            study.ask()

    def test_a_fork_gets_a_pipe_of_its_own(self):
        study = self.study(4)
        mine = study.ask()
        child = os.fork()
        if child == 0:
            try:
                os._exit(study.ask().number)
            finally:
                os._exit(99)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 2)
        until(lambda: study.trials()[1].state == "waiting", "what it did not tell is given back")
        self.assertEqual((mine.number, study.ask().number), (1, 2))
        self.assertEqual(pickle.loads(pickle.dumps(study)).ask().number, 3)

    def test_the_examples(self):
        for name, wanted in (("quadratic", r"^quadratic-1/\d+: -(0.99|1.00)"), ("classifiers", r"accuracy 0.9"),
                             ("pruning", r"error 0.[012]\d+; \d+ of 20 ended early")):
            done = subprocess.run(["/usr/bin/python3", ROOT / f"examples/python/{name}.py"], capture_output=True, text=True)
            if "No module named 'sklearn'" not in done.stderr:
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, wanted)

    def test_the_wheel_is_the_package_and_always_the_same(self):
        paths = [subprocess.check_output([ROOT / "tools/wheel.py", self.dir / n], text=True).strip() for n in "ab"]
        self.assertEqual(*(Path(path).read_bytes() for path in paths))
        script = "import berth; print(berth.__file__); berth.Study(goal='f', name='w').optimize(lambda trial: 1, 2)"
        done = subprocess.run(["/usr/bin/python3", "-c", script], env={**os.environ, "PYTHONPATH": paths[0]}, cwd=self.dir,
                              capture_output=True, text=True)
        self.assertIn(".whl/berth/__init__.py", done.stdout, done.stderr)
        self.assertEqual(self.house.counts("w-1")["done"], 2)
        with zipfile.ZipFile(paths[0]) as wheel:
            names = wheel.namelist()
            record = next(name for name in names if name.endswith("RECORD"))
            self.assertEqual([line.split(",")[0] for line in wheel.read(record).decode().splitlines()][:-1],
                             sorted(set(names) - {record}))
            self.assertIn("berth/py.typed", names)

    def test_the_protocol(self):
        def said(*requests):
            text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in requests)
            done = subprocess.run([BERTH, "study"], input=text, cwd=self.dir, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return [json.loads(line) for line in done.stdout.splitlines()]

        file = "name: p\npassive: true\nparams: {x: [1, 2]}\ngoal: {metric: f, direction: max}\n"
        made, asked, told, best, late = said({"create": file}, {"ask": True}, {"tell": "p-1/1", "metrics": {"f": 2}},
                                             {"best": True}, {"tell": "1", "metrics": {"f": 3}})
        self.assertEqual(made, {"study": "p-1", "goals": [{"metric": "f", "direction": "max"}]})
        self.assertEqual((asked["trial"]["params"], asked["token"]), ({"x": 1}, 1))
        self.assertEqual((told, best["trial"]["id"]), ({}, "p-1/1"))
        self.assertEqual(late["error"]["code"], 2)
        for wrong in ("", "nonsense", "[]", '{"ask":true}', '{"open":"p-9"}', '{"open":["p-1"]}', '{"create":{}}',
                      '{"create":"params: {x: [1]}"}', '{"open":"p-1","more":1}'):
            for answer in said(wrong):
                self.assertIn("error", answer, wrong)
        for wrong in ('{"tell":"2"}', '{"tell":"2","metrics":{"f":"high"}}', '{"tell":"2","state":"good"}', '{"tell":"x"}',
                      '{"report":"1","metrics":{"f":1}}', '{"suggest":"1"}', '{"suggest":"1","params":{"y":[1]}}',
                      '{"enqueue":{"x":9}}', '{"samples":"many"}', '{"open":"p-1"}', '{"tell":"2","token":"x"}'):
            self.assertIn("error", said('{"open":"p-1"}', wrong)[1], wrong)


if __name__ == "__main__":
    unittest.main()
