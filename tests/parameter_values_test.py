#!/usr/bin/python3
"""The value that a trial gets is the value that is recorded and that best_params returns, with its type."""

import csv
import enum
import io
import json
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

from berth_case import BERTH, Case

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import berth  # noqa: E402


class Scalar:
    """Like a tensor without dimensions: iterable by its class, not by its shape."""

    def __iter__(self):
        raise TypeError("iteration over a 0-d tensor")

    def __float__(self):
        return 0.5


class Colour(enum.Enum):
    red = 1


def typed(value):
    """A value that equals another one only if the types are the same too."""
    return json.dumps(value), repr(value)


class ParameterValues(Case):
    def setUp(self):
        super().setUp()
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        os.environ.update(self.house.environment, BERTH_BIN=BERTH, PYTHONPATH=str(ROOT / "python"))
        self.house.environment["PYTHONPATH"] = str(ROOT / "python")

    def study(self, space=None, **more):
        study = berth.Study(**{"space": space, "direction": "min", **more})
        self.addCleanup(study.close)
        return study

    def params(self, given, **defaults):
        with mock.patch.dict(os.environ, BERTH_PARAMS=json.dumps(given)):
            return dict(berth.params(**defaults))

    # Scripts.

    def test_an_int_default_does_not_cut_a_float(self):
        self.assertEqual(self.params({"dropout": 0.35, "lr": 0.02}, dropout=0, lr=1), {"dropout": 0.35, "lr": 0.02})

    def test_a_default_gives_its_type_only_where_nothing_is_lost(self):
        for default, value, expected in (
                (1, 3.0, 3.0), (1, True, True), (1, "12", 12), (1, "007", "007"), (1, "auto", "auto"), (0.5, 2, 2.0),
                (0.5, 2 ** 53 + 1, 2 ** 53 + 1), (0.5, "0.25", 0.25), (False, "yes", True), (True, 0, False),
                ("a", True, "true"), ("a", 3, "3"), ("a", None, "null"), (None, [1, 2], [1, 2]), (1, None, None)):
            self.assertEqual(typed(self.params({"x": value}, x=default)["x"]), typed(expected), (default, value))
        with self.assertRaisesRegex(ValueError, "x: expected true or false"):
            self.params({"x": 0.35}, x=False)

    def test_a_text_default_gets_the_text_of_the_file(self):
        self.script("t.py", '#!/usr/bin/python3\nimport berth\nprint(repr(berth.params(v="a", w=1.0)))\nberth.report(a=1)\n')
        self.write("f.yaml", "name: f\nrun: ./t.py\nparams: {v: [1e-3], w: {min: 3, max: 3, n: 1}}\ngoal: {metric: a}\n")
        self.berth("run", "f.yaml")
        self.assertIn(b"{'v': '1e-3', 'w': 3.0}", self.berth("logs", "f-1/1").out)

    # Choices.

    def test_best_params_are_what_the_objective_had(self):
        for number, choices in enumerate((
                [None, "l2"], [np.bool_(False), np.bool_(True)], [np.int64(3), np.int64(5)], [False, 0, 0.0, "no"],
                [[64, 64], [128]], [(0.9, 0.999), (0.8, (1, "1", None))], [{"a": [1.0, None]}, {}], ["None", "1", "1e5", ""],
                [1.0, 1, True], [np.float32(0.1), 1e-300, 1e300], [2 ** 53 + 1, -2 ** 63], ["é\n\"'", "{x}"])):
            seen = []
            for space in (None, {"c": choices}):
                study = self.study(space, search={"method": "random", "samples": 6, "seed": number})

                def objective(trial):
                    value = trial.suggest_categorical("c", choices)
                    seen.append(value)
                    self.assertIn(value, choices)
                    self.assertEqual(typed(trial.params["c"]), typed(value))
                    return trial.number

                study.optimize(objective)
                recorded = [trial.params["c"] for trial in berth.load_study(study.name).trials()]
                self.assertEqual(list(map(typed, recorded)), list(map(typed, seen[-6:])))
                self.assertEqual(typed(study.best_params["c"]), typed(seen[-6]))
                self.assertIn(type(study.best_params["c"]),
                              (type(None), bool, int, float, str, list, tuple, dict))
        shown = self.house.tasks("study-1")
        self.assertIn(None, [task["params"]["c"] for task in shown])

    def test_what_cannot_be_recorded_is_refused_when_it_is_declared(self):
        for wrong in (Colour.red, object(), {1, 2}, float("nan"), float("-inf"), 2 ** 63, {1: 2}, b"x", 1j, print,
                      np.array([1, 2])):
            for declare in (lambda: self.study({"c": [wrong, 1]}), lambda: self.study().ask().suggest_categorical("c", [wrong]),
                            lambda: self.study().enqueue({"c": wrong})):
                with self.assertRaisesRegex((TypeError, ValueError), "c: ", msg=wrong):
                    declare()
        for alike in ([1, "1"], [None, "null"], [True, "true"], [[1], "[1]"], [1.5, 1.5]):
            with self.assertRaisesRegex(ValueError, "same text"):
                self.study({"c": alike})
        with self.assertRaises(TypeError):
            self.study({"c": {"a", "b"}})
        trial = self.study().ask()
        trial.suggest_categorical("c", [1, 2])
        with self.assertRaisesRegex(berth.Failed, "has it as"):
            trial.suggest_categorical("c", ["1", "2"])

    def test_a_file_may_have_nulls_lists_and_maps_as_choices(self):
        self.script("t.py", "#!/usr/bin/python3\nimport berth, json, sys\nberth.report(a=1)\n"
                    "print(json.dumps([json.load(open(sys.argv[1]))['c'], berth.params()['c'], sys.argv[2]]))\n")
        self.write("f.yaml", "name: f\nrun: ./t.py {params_file} {c}\nparams: {c: [null, [1, 0.5, '1'], {a: [true]}, 'null ']}\n")
        self.berth("run", "f.yaml")
        values = [None, [1, 0.5, "1"], {"a": [True]}, "null "]
        texts = ["null", '[1,0.5,"1"]', '{"a":[true]}', "null "]
        self.assertEqual([task["params"]["c"] for task in self.house.tasks("f-1")], values)
        for number, (value, text) in enumerate(zip(values, texts), 1):
            printed = json.loads(self.berth("logs", f"f-1/{number}").out.decode().splitlines()[-1])
            self.assertEqual(printed, [value, value, text])
        rows = csv.DictReader(io.StringIO(self.berth("show", "f-1", "--csv").out.decode()))
        self.assertEqual([row["params.c"] for row in rows], texts)

    # Ranges.

    def test_steps_are_decimal_and_end_on_the_users_max(self):
        for low, high, step, last in ((0.0, 0.9, 0.3, "0.9"), (0.0, 2.1, 0.7, "2.1"), (0.018, 0.021, 0.003, "0.021"),
                                      (0.8, 0.9, 0.1, "0.9"), (0.9, 1.4, 0.5, "1.4"), (1e-8, 3e-8, 1e-8, "3e-08"),
                                      (-0.3, 0.0, 0.1, "0.0"), (100.1, 100.3, 0.1, "100.3")):
            study = self.study({"x": {"min": low, "max": high, "step": step}}, search={"method": "tpe"}, samples=30)
            study.enqueue({"x": high})
            for trial in study:
                study.tell(trial, 1)
            self.assertEqual(repr(max(trial.params.x for trial in study.trials())), last)
        grid = self.study({"x": {"min": -1.8, "max": 3.0, "step": 0.6}}, search={"method": "grid"})
        grid.optimize(lambda trial: trial.params.x)
        self.assertEqual([trial.params.x for trial in grid.trials()], [-1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8, 2.4, 3.0])

    def test_every_method_proposes_points_of_the_same_grid(self):
        points = {round(n * 0.3, 10) for n in range(8)}
        for method in ("random", "tpe", "gp", "cma-es", "nsga2", "sobol"):
            study = self.study({"x": {"min": 0, "max": 2.1, "step": 0.3}}, search={"method": method, "samples": 16, "seed": 1})
            study.optimize(lambda trial: (trial.params.x - 1.2) ** 2)
            self.assertLessEqual({trial.params.x for trial in study.trials()}, points, method)

    def test_a_narrow_range_has_many_values(self):
        for low, high in ((1e6, 1e6 + 1), (1.7e9, 1.7e9 + 3600), (1550.0, 1550.01), (100.0, 100.001), (-1e6 - 1, -1e6)):
            for method in ("random", "auto") if low == 1e6 else ("random",):
                study = self.study({"x": {"min": low, "max": high}}, search={"method": method, "seed": 1}, samples=20)
                seen = []
                study.optimize(lambda trial: seen.append(trial.params.x) or trial.number * 7 % 5)
                self.assertGreaterEqual(len(set(seen)), 10, (low, high, method))
                self.assertEqual([trial.params.x for trial in study.trials()], seen)

    def test_a_value_that_an_int_or_step_range_does_not_have_is_refused(self):
        study = self.study({"n": {"min": 1, "max": 10, "type": "int"}, "s": {"min": 0, "max": 10, "step": 2, "type": "int"},
                            "f": {"min": 0, "max": 1, "step": 0.25}}, search={"method": "tpe"}, samples=20)
        for wrong in ({"n": 2.5}, {"n": 11}, {"n": True}, {"n": None}, {"s": 3}, {"f": 0.3}, {"f": 1.25}):
            with self.assertRaisesRegex(berth.Failed, "between the values|lies outside", msg=wrong):
                study.enqueue(wrong)
        self.assertEqual(typed(dict(study.enqueue({"n": 2.0, "s": np.int64(4), "f": 1}).params)),
                         typed({"n": 2, "s": 4, "f": 1.0}))
        trial = study.ask()
        self.assertEqual((typed(trial.suggest_int("n", 1, 10)), typed(trial.params["n"])), (typed(2), typed(2)))
        with self.assertRaisesRegex(ValueError, "not an integer"):
            trial.suggest_int("f")

    def test_a_command_refuses_such_a_value_before_it_adds_any(self):
        self.write("f.yaml", "name: c\nrun: echo {n}\nparams: {n: {min: 1, max: 10, type: int}}\n"
                   "search: {method: tpe, samples: 3}\ngoal: {metric: a, direction: max}\npassive: true\n")
        self.berth("run", "--detach", "f.yaml")
        self.addCleanup(lambda: self.berth("stop", "c-1"))
        for name in ("c-1", self.study({"n": {"min": 1, "max": 10, "type": "int"}}, samples=3).name):
            refused = self.berth("ask", name, "--enqueue", "n=2", "--enqueue", "n=2.5", code=2)
            self.assertIn(b"n: '2.5' lies between the values of 1..10, int", refused.err)
            self.assertNotIn(b'"n":2,', self.berth("--json", "show", name).out)
            taken = json.loads(self.berth("--json", "ask", name, "--enqueue", "n=2.0").out)["enqueued"]
            self.assertEqual(typed(taken[0]), typed({"n": 2}))

    def test_an_enqueued_value_of_a_space_that_grows_keeps_its_type(self):
        study = self.study(samples=9)
        study.enqueue({"c": None, "n": 3.0, "x": 2, "s": "7"})
        trial = study.ask()
        self.assertEqual(typed(dict(trial.params)), typed({"c": None, "n": 3.0, "x": 2, "s": "7"}))
        got = [trial.suggest_categorical("c", [None, 1]), trial.suggest_int("n", 1, 9), trial.suggest_float("x", 0, 9),
               trial.suggest_categorical("s", ["7", "8"])]
        study.tell(trial, 1)
        self.assertEqual(typed(got), typed([None, 3, 2.0, "7"]))
        self.assertEqual(typed(list(study.best_params.values())), typed(got))

    def test_scalars_of_numpy_are_numbers(self):
        self.study({"k": list(np.arange(3))})
        self.study({"k": np.arange(3)})
        self.study({"k": {"min": np.int64(1), "max": 5}})
        self.study({"k": {"min": 0, "max": np.float32(5)}})
        self.study({"k": {"min": 0, "max": np.array(5.0), "step": np.float64(0.5)}}, samples=np.int64(9), parallel=np.int32(2))
        trial = self.study().ask()
        self.assertIs(type(trial.suggest_int("a", 1, np.int64(5))), int)
        self.assertIs(type(trial.suggest_float("b", 0, np.float32(5))), float)
        study = self.study({"x": {"min": 0, "max": 10}})
        for value in (np.float32(0.1), np.int64(3), np.array(2), np.float64(1)):
            self.assertEqual(typed(study.enqueue({"x": value}).params.x), typed(float(value)))
        with self.assertRaisesRegex(TypeError, "expected a number as a bound"):
            trial.suggest_float("d", 0)

    def test_an_objective_returns_anything_that_is_one_number(self):
        study = self.study({"x": {"min": 0, "max": 1}})
        for score in (Scalar(), np.float32(0.5), np.array(0.5), np.array([0.5]), [0.5], {"score": Scalar()}):
            study.optimize(lambda trial: score, n_trials=1)
        self.assertEqual([(t.state, t.metrics["score"]) for t in study.trials()], [("done", 0.5)] * 6)
        for wrong in ("0.5", None, np.array([1, 2])):
            with self.assertRaises((TypeError, ValueError)):
                study.optimize(lambda trial: wrong, n_trials=1)
        self.assertEqual([t.state for t in study.trials()[6:]], ["failed"] * 3)
        two = self.study({"x": {"min": 0, "max": 1}}, goal=["a", "b"])
        two.optimize(lambda trial: np.array([1.0, 2.0]), n_trials=1)
        two.optimize(lambda trial: (np.float32(1), Scalar()), n_trials=1)
        self.assertEqual([dict(t.metrics) for t in two.trials()], [{"a": 1, "b": 2}, {"a": 1, "b": 0.5}])

    def test_a_study_of_int_ranges_is_searched(self):
        study = self.study({"trees": {"min": 10, "max": 1000, "type": "int"}, "depth": {"min": 2, "max": 32, "type": "int"}})
        study.optimize(lambda trial: (trial.params.trees - 500) ** 2, n_trials=12)
        self.assertGreater(len({trial.params.trees for trial in study.trials()}), 5)
        points = self.study({"n": {"min": 1, "max": 9, "type": "int", "n": 3}, "c": ["a", "b"]})
        points.optimize(lambda trial: trial.params.n)
        self.assertEqual([trial.params.n for trial in points.trials()], [1, 1, 5, 5, 9, 9])


if __name__ == "__main__":
    unittest.main()
