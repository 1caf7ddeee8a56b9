#!/usr/bin/python3
"""Studies that begin with the trials of earlier studies, and searches of discrete spaces."""

import os
import sys
import unittest
from pathlib import Path

from berth_case import BERTH, Case

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import berth  # noqa: E402

RANGE = {"min": 0, "max": 1}


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.7) ** 2


class Searches(Case):
    def setUp(self):
        super().setUp()
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        os.environ.update(self.house.environment, BERTH_BIN=BERTH, PYTHONPATH=str(ROOT / "python"))

    def search(self, loss=bowl, seed=1, samples=12, warm_start=None, method="auto", **space):
        study = berth.Study(space or {"x": RANGE, "y": RANGE}, name="w", direction="min", samples=samples,
                            search={"method": method, "seed": seed}, warm_start=warm_start)
        self.addCleanup(study.close)
        study.optimize(lambda trial: loss(trial.params))
        return study


class WarmStart(Searches):
    def test_a_warm_start_from_the_same_study_reaches_its_best_value(self):
        base = self.search(samples=25)
        warm = [self.search(seed=seed, samples=12, warm_start=base).best_value for seed in (2, 3, 4)]
        self.assertLessEqual(max(warm), base.best_value)

    def test_a_warm_start_is_no_worse_than_a_cold_start_three_trials_before(self):
        others = {"the same": bowl, "scaled": lambda params: 1000 * bowl(params) - 5e4,
                  "shifted": lambda params: (params["x"] - 0.35) ** 2 + (params["y"] - 0.75) ** 2,
                  "opposite": lambda params: -bowl(params)}
        for method in ("auto", "cma-es", "tpe", "nsga2"):
            cold = [trial.params for trial in self.search(seed=2, samples=9, method=method).trials()]
            for name, loss in others.items():
                base = self.search(loss, samples=8, method="random")
                warm = self.search(seed=2, samples=12, warm_start=base, method=method).trials()
                self.assertEqual([trial.params for trial in warm[3:]], cold, (method, name))

    def test_the_best_earlier_point_is_measured_first(self):
        base = self.search(samples=12)
        for method in ("gp", "tpe", "cma-es", "nsga2"):
            points = [trial.params for trial in self.search(samples=3, warm_start=base, method=method).trials()]
            self.assertEqual(points[0], base.best_params, method)
            self.assertEqual(len({tuple(point.items()) for point in points}), 3)

    def test_a_study_with_an_added_parameter_begins_with_earlier_trials(self):
        base = self.search(samples=12)
        study = self.search(lambda params: bowl(params) + params["z"] ** 2, samples=3, warm_start=base,
                            x=RANGE, y=RANGE, z={"min": -1, "max": 1}, kind=["a", "b"])
        self.assertEqual(dict(study.trials()[0].params), {**base.best_params, "z": 0, "kind": "a"})

    def test_a_study_with_a_removed_parameter_begins_with_earlier_trials(self):
        base = self.search(lambda params: bowl(params) + params["z"] ** 2, samples=12, x=RANGE, y=RANGE, z=RANGE)
        study = self.search(samples=3, warm_start=base)
        self.assertEqual(study.trials()[0].params, {name: base.best_params[name] for name in "xy"})

    def test_earlier_trials_outside_a_narrower_range_are_left_out(self):
        base = self.search(samples=12)
        study = self.search(samples=3, warm_start=base, x={"min": 0.5, "max": 1}, y=RANGE)
        self.assertGreaterEqual(study.trials()[0].params.x, 0.5)
        with self.assertRaisesRegex(berth.Failed, "is within these params"):
            self.search(samples=3, warm_start=base, x={"min": 5, "max": 6}, y=RANGE)

    def test_values_have_the_type_of_the_new_space(self):
        base = self.search(samples=6, x={"min": 0, "max": 1, "step": 1}, y=RANGE)
        study = self.search(samples=2, warm_start=base, x={"min": 0, "max": 4, "type": "int"}, y=RANGE)
        self.assertEqual(study.trials()[0].params, base.best_params)
        self.assertIsInstance(study.trials()[0].params.x, int)

    def test_a_run_says_that_the_best_earlier_point_has_the_same_score(self):
        sweep = self.house.path / "sweep.yaml"
        sweep.write_text("name: w\nrun: echo ::berth loss={x}\ngoal: {metric: loss, direction: min}\n"
                         "search: {method: tpe, samples: 4, seed: 1}\nparams: {x: {min: 0, max: 1}}\n")
        self.assertEqual(self.house.run("run", sweep).code, 0)
        second = self.house.run("run", "--warm-start", "w-1", sweep)
        self.assertIn(b"warm start: the best trial of w-1 has the same loss here", second.out + second.err)


class DiscreteSpaces(Searches):
    def different(self, samples, **space):
        study = self.search(lambda params: sum((value - 5) ** 2 for value in params.values() if not isinstance(value, str)),
                            samples=samples, **space)
        return len({tuple(trial.params.items()) for trial in study.trials()})

    def test_auto_does_not_repeat_points_of_a_large_discrete_space(self):
        self.assertEqual(self.different(40, n={"min": 1, "max": 300, "type": "int"}, k={"min": 1, "max": 100, "type": "int"}), 40)

    def test_auto_does_not_repeat_points_of_integers_steps_and_choices(self):
        self.assertEqual(self.different(30, n={"min": 1, "max": 900, "type": "int"}, s={"min": 0, "max": 10, "step": 0.5},
                                        kind=["a", "b"]), 30)


if __name__ == "__main__":
    unittest.main()
