#!/usr/bin/python3
"""The Python module: within a trial, and from outside."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

from berth_case import BERTH, Case

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import berth  # noqa: E402

SCRIPT = """#!/usr/bin/python3
import berth
p = berth.params(lr=1.0, width=8, bias=False, kind="plain")
assert p.lr == p["lr"]
berth.report(score=p.lr * p.width + p.bias, width=p.width)
berth.report({"val/top-1": 1}, loss=2)
print(type(p.lr).__name__, type(p.width).__name__, p.bias, p.kind)
"""


class Python(Case):
    def setUp(self):
        super().setUp()
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        os.environ.update(self.house.environment, BERTH_BIN=BERTH, PYTHONPATH=str(ROOT / "python"))
        self.house.environment["PYTHONPATH"] = str(ROOT / "python")

    def study(self, **more):
        return berth.Study({"x": {"min": -2, "max": 2}, "kind": ["a", "b"]}, goal="f", direction="min",
                           search={"method": "random", "samples": 4, "seed": 3}, **more)

    def test_a_script_gets_its_parameters_and_reports(self):
        self.script("train.py", SCRIPT)
        self.write("s.yaml", "name: s\nrun: ./train.py\nparams: {lr: [0.5, 1e-2], bias: [true], width: [3]}\n"
                   "goal: {metric: score, direction: max}\n")
        self.berth("run", "s.yaml")
        first = self.house.tasks("s-1")[0]
        self.assertEqual(first["metrics"], {"score": 2.5, "width": 3, "val/top-1": 1, "loss": 2}, first)
        self.assertIn(b"float int True plain\n", self.berth("logs", "s-1/1").out)

    def test_a_script_runs_without_berth_too(self):
        self.script("train.py", SCRIPT)
        done = subprocess.run(["./train.py"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.stdout, "::berth score=8.0 width=8.0\n::berth val/top-1=1.0 loss=2.0\n"
                         "float int False plain\n", done.stderr)

    def test_a_loop_of_ones_own(self):
        study = self.study()
        seen = []
        for trial in study:
            seen.append(trial.id)
            study.tell(trial, trial.params.x ** 2)
        self.assertEqual(seen, [f"study-1/{n}" for n in (1, 2, 3, 4)])
        self.assertEqual(study.wait(), "done")
        best = min(study.trials(), key=lambda t: t.metrics.f)
        self.assertEqual((study.best().id, study.best().metrics), (best.id, best.metrics))
        self.assertEqual([t.id for t in study.trials(sort="f")][0], best.id)
        self.assertEqual(repr(study), "<Study study-1 done: 4 done>")
        self.assertIn("<td>study-1/", study._repr_html_())
        self.assertIsNone(study.ask())

    def test_ask_and_tell_side_by_side(self):
        study = self.study(parallel=3)
        trials = [study.ask() for _ in range(3)]
        self.assertEqual(len({trial.id for trial in trials}), 3)
        study.tell(trials[2], f=9, g=1)
        study.tell(trials[1].id, -1.5)
        study.fail(trials[0], "broken")
        last = study.ask()
        study.tell(last, float("nan"))
        self.assertEqual(study.wait(), "failed")
        self.assertEqual([t.state for t in study.trials()], ["failed", "done", "done", "failed"])
        self.assertEqual(study.best().metrics, {"f": -1.5})

    def test_a_study_goes_on_in_another_process(self):
        study = self.study()
        first = study.ask()
        study.stop()
        self.assertIsNone(study.ask())
        study.tell(first, 0.25)
        again = berth.Study.open(study.name)
        rest = [trial.id for trial in again if again.tell(trial, 1) is None]
        self.assertEqual(rest, [f"study-1/{n}" for n in (2, 3, 4)])
        self.assertEqual(again.wait(), "done")
        self.assertEqual(again.best().id, first.id)

    def test_files_and_runs(self):
        self.write("s.yaml", "name: s\nrun: echo ::berth f={x}\nparams: {x: [1, 2]}\ngoal: {metric: f, direction: max}\n")
        one, two = berth.run(self.dir / "s.yaml"), berth.run(self.dir / "s.yaml", "--parallel", "1")
        self.assertEqual([one.wait(), two.wait(timeout=60)], ["done", "done"])
        self.assertEqual(berth.runs(), ["s-1", "s-2"])
        self.assertEqual(one.best().params, {"x": 2})
        self.assertEqual([row["scores"] for row in berth.compare(one, two)["shared"]],
                         [{"s-1": 2, "s-2": 2}, {"s-1": 1, "s-2": 1}])

    def test_a_program_starts_one_process_for_all_calls(self):
        starts = self.write("starts", "")
        shim = self.write("berth-shim", f'#!/bin/sh\necho "$1" >> "{starts}"\nexec "{BERTH}" "$@"\n')
        shim.chmod(0o755)
        self.write("s.yaml", "name: s\nrun: echo ::berth f={x}\nparams: {x: [1, 2]}\ngoal: {metric: f, direction: max}\n")
        program = """
import berth
one = berth.run("s.yaml", parallel=1, labels={"team": "vision"})
two = berth.run("s.yaml", "--parallel=1", "--label", "team=vision")
command = berth.run(command=["sh", "-c", "echo hello; exit 3"], name="c", resources={"cpu": 0.5})
assert [one.wait(), two.wait(60), command.wait()] == ["done", "done", "failed"]
assert one.record()["labels"] == two.record()["labels"] == {"team": "vision"}
assert [trial.params.x for trial in one.trials("f")] == [2, 1], one.trials("f")
assert command.log() == "hello\\n" and "3" in str(command.why("1")), (command.log(), command.why("1"))
assert berth.call("GET", "/v1/runs/{}/trials.csv", one.name).startswith("id,")
assert berth.call("GET", "/v1/runs/{}/report.md", one.name).startswith(f"# {one.name}")
two.remove()
assert berth.runs() == ["s-1", "c-1"], berth.runs()
assert berth.Run("@last").name == "c-1"
try:
    berth.run("s.yaml", paralel=2)
except berth.Failed as failure:
    assert "parallel" in str(failure) and failure.code == 2, failure
else:
    raise AssertionError("a wrong option was accepted")
"""
        done = subprocess.run([sys.executable, "-c", program], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, "BERTH_BIN": str(shim)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([word for word in starts.read_text().split() if not word.startswith("_")], ["study"])

    def test_errors_are_berths_own_words(self):
        with self.assertRaisesRegex(berth.Failed, "nothing-1") as caught:
            berth.Run("nothing-1")
        self.assertEqual(caught.exception.code, 2)
        with self.assertRaises(berth.Failed):
            berth.Study({"x": {"min": 1}})
        study = self.study()
        self.assertIsNone(study.best())
        study.stop()

    def test_the_examples(self):
        examples = ROOT / "examples/python"
        self.berth("run", examples / "sweep.yaml")
        self.assertEqual(self.house.counts("circle-1")["done"], 12)
        done = subprocess.run(["/usr/bin/python3", examples / "loop.py"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"best branin-1/\d+ .* of 20")


if __name__ == "__main__":
    unittest.main()
