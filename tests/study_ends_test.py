#!/usr/bin/python3
"""Every trial of a study ends: after exceptions of any kind, Ctrl-C, and loops that are left."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

from berth_case import BERTH, Case, until

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import berth  # noqa: E402

SPACE = {"x": {"min": 0, "max": 1}}

# Sends itself a Ctrl-C once `berth study` has a request of the kind that is named.
INTERRUPTED = """
import os, signal, sys, threading, berth
from berth import _command
signal.signal(signal.SIGINT, signal.default_int_handler)
study = berth.Study({"x": {"min": 0, "max": 1}}, samples=2, parallel=1)
kind, exchange = sys.argv[1], _command.Pipe.exchange
def slow(pipe, request):
    if f'"{kind}"' in request.decode():
        _command.Pipe.exchange = exchange
        os.kill(os.getpid(), signal.SIGINT)
    return exchange(pipe, request)
def objective(trial):
    if kind == "suggest":
        trial.suggest_float("x", 0, 1)
    trial.report(1)
    return 1
_command.Pipe.exchange = slow
try:
    study.optimize(objective)
    print("no KeyboardInterrupt")
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
study.optimize(lambda trial: 2)
print([trial.state for trial in study.trials()])
"""


class StudyEnds(Case):
    def setUp(self):
        super().setUp()
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        os.environ.update(self.house.environment, BERTH_BIN=BERTH, PYTHONPATH=str(ROOT / "python"))

    def study(self, **more):
        study = berth.Study(**{"space": SPACE, "direction": "min", **more})
        self.addCleanup(study.close)
        return study

    def states(self, study):
        return [trial.state for trial in study.trials()]

    def returns(self, what):
        """Fails if it is still busy after half a minute."""
        thread = threading.Thread(target=what, daemon=True)
        thread.start()
        thread.join(30)
        self.assertFalse(thread.is_alive(), "it waits for its own trial")

    # Exceptions.

    def test_bounds_that_change_fail_the_trial_and_are_caught(self):
        study = self.study(space=None, samples=4)

        def objective(trial):
            top = trial.suggest_float("top", 0.0, 1.0)
            return top + trial.suggest_float("other", 0.0, 1.0 - top)

        study.optimize(objective, catch=(Exception,))
        self.assertEqual(self.states(study), ["done"] + ["failed"] * 3)
        self.assertIn("has it as", self.berth("why", f"{study.name}/2").out.decode())
        self.returns(lambda: study.optimize(objective))

    def test_a_dict_without_the_goal_fails_the_trial_and_is_caught(self):
        study = self.study(samples=3)
        study.optimize(lambda trial: {"loss": 1.0} if trial.number == 1 else {"score": 1.0}, catch=berth.Failed)
        self.assertEqual(self.states(study), ["failed", "done", "done"])

    def test_any_exception_ends_its_trial_and_comes_through(self):
        study = self.study(parallel=1)
        other = self.study(name="other")

        def stale(trial):
            claimed = other.ask()
            other.tell(claimed, 1)
            other.tell(claimed, 1)

        def exits(trial):
            raise SystemExit(3)

        for objective, error in ((lambda trial: other.enqueue({"x": 7}), berth.Failed), (stale, berth.Failed),
                                 (exits, SystemExit), (lambda trial: [1, 2], ValueError), (lambda trial: 1 / 0, ZeroDivisionError)):
            with self.assertRaises(error):
                study.optimize(objective, n_trials=1)
        self.assertEqual(self.states(study), ["failed"] * 5)

    def test_a_pruned_trial_whose_claim_is_over_is_left_alone(self):
        study = self.study(samples=2)

        def objective(trial):
            if trial.number == 1:
                study.fail(trial.id, "by another")
                raise berth.Pruned
            return 1

        study.optimize(objective)
        self.assertEqual(self.states(study), ["failed", "done"])

    # Loops, and trials that have not ended.

    def test_a_loop_that_is_left_releases_its_trial(self):
        study = self.study(samples=3, parallel=1)
        for _ in range(7):
            for trial in study:
                break
        with self.assertRaises(ZeroDivisionError):
            for trial in study:
                1 / 0
        self.assertEqual(self.states(study), ["waiting"])
        self.returns(lambda: [study.tell(trial, 1) for trial in study])
        self.assertEqual(self.states(study), ["done"] * 3)

    def test_a_loop_that_is_left_releases_its_trial_after_workers_were_forked_within_it(self):
        study = self.study(samples=1)
        for trial in study:
            worker = multiprocessing.get_context("fork").Process(target=int)
            worker.start()
            worker.join()
            break
        self.assertEqual(self.states(study), ["waiting"])

    def test_a_trial_that_a_loop_was_left_with_may_still_be_told(self):
        study = self.study(samples=2)
        for trial in study:
            trial.report(1)
            break
        trial.report(2)
        study.tell(trial, 0.5)
        for trial in study:
            study.tell(trial, 1)
            break
        self.assertEqual([dict(trial.metrics) for trial in study.trials()], [{"score": 0.5}, {"score": 1}])

    def test_a_trial_that_nothing_refers_to_is_given_out_again(self):
        study = self.study(samples=2, parallel=1)

        def forgets():
            try:
                trial = study.ask()
                raise ValueError(trial)
            except ValueError as error:
                self.error = error

        forgets()
        del self.error
        self.assertEqual(study.ask().number, 1)
        self.returns(lambda: study.optimize(lambda trial: 1))
        self.assertEqual(self.states(study), ["done"] * 2)

    def test_an_ask_that_only_the_caller_could_end_is_refused(self):
        study = self.study(samples=9, parallel=1)
        trial = study.ask()
        with self.assertRaisesRegex(berth.Failed, r"asked for and not ended \(1\)"):
            study.ask()
        self.assertIsNone(study.ask(wait=False))
        study.release(trial)
        trial = study.ask()
        self.assertEqual(trial.number, 1)
        with self.assertRaisesRegex(berth.Failed, "not ended"):
            study.optimize(lambda trial: 1)
        study.tell(trial, 1)
        self.assertEqual(study.ask().number, 2)

    def test_an_ask_waits_for_what_another_thread_or_process_may_tell(self):
        study = self.study(samples=5, parallel=1)
        with ThreadPoolExecutor(1) as pool:
            for trial in study:
                pool.submit(lambda trial: (time.sleep(0.05), study.tell(trial, 1)), trial)
                if trial.number == 3:
                    break
        trial = study.ask()
        child = multiprocessing.get_context("fork").Process(target=lambda: (time.sleep(0.1), study.tell(trial, 1)))
        child.start()
        self.assertEqual(study.ask().number, 5)
        child.join()

    def test_an_ask_that_waits_for_this_program_says_so(self):
        study = self.study(samples=9, parallel=1)
        trial = study.ask()
        timer = threading.Timer(0.5, lambda: study.tell(trial, 1))
        timer.start()
        with mock.patch.object(berth._study, "_WARN_AFTER", 0.1), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assertEqual(study.ask().number, 2)
        timer.join()
        self.assertEqual(len(said), 1)
        self.assertIn("not ended: 1", str(said[0].message))

    # Ctrl-C.

    def test_ctrl_c_with_threads_begins_no_further_trial(self):
        study, begun, interrupted = self.study(), [], threading.Event()

        def objective(trial):
            begun.append(trial.number)
            interrupted.wait(10)
            time.sleep(0.1)
            return 1

        def interrupt():
            until(lambda: len(begun) == 2, "two trials have begun")
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            interrupted.set()

        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, previous)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            study.optimize(objective, n_trials=30, n_jobs=2)
        thread.join()
        self.assertEqual((len(begun), self.states(study)), (2, ["done"] * 2))

    def test_ctrl_c_during_any_call_is_a_keyboard_interrupt_and_leaves_no_trial(self):
        # One that was asked for is released, one whose end was being recorded has ended, another one has failed.
        for kind, states in (("ask", ["done", "done"]), ("suggest", ["failed", "done"]), ("report", ["failed", "done"]),
                             ("tell", ["done", "done"])):
            done = subprocess.run(["/usr/bin/python3", "-c", INTERRUPTED, kind], cwd=self.dir, capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.stdout, f"KeyboardInterrupt\n{states}\n", (kind, done.stderr))

    def test_a_ctrl_c_while_an_objective_runs_fails_its_trial(self):
        study = self.study(samples=2, parallel=1)

        def objective(trial):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            study.optimize(objective, catch=(Exception,))
        self.returns(lambda: study.optimize(lambda trial: 1))
        self.assertEqual(self.states(study), ["failed", "done"])


if __name__ == "__main__":
    unittest.main()
