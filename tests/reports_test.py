"""What trials report: progress lines, values that are not finite, early stopping and a trial's own end."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from berth_case import Case, alive, until

PYTHON = Path(__file__).resolve().parent.parent / "python"
MEDIAN = "goal: {metric: acc}\nparallel: 1\nearly_stop: {policy: median, warmup: 1}\n"


class Reports(Case):
    def sweep(self, script, sweep, check=True):
        """Runs the Python script as ./x.py in a sweep named s; returns its tasks."""
        self.write("x.py", script)
        self.write("s.yaml", f"name: s\n{sweep}")
        (self.berth if check else self.house.run)("run", "s.yaml")
        return self.house.tasks("s-1")

    def why(self, task):
        return self.berth("why", task).out.decode()


class OwnEnd(Reports):
    """A trial that ended by itself counts with its exit code and its last report."""

    def burst(self, policy, ending="", third="0.01 * e if e < 10 else 0.99"):
        script = f"""
import sys
bad = sys.argv[1] == "3"
for e in range(1, 11):
    print(f"::berth acc={{({third}) if bad else 0.5 + 0.01 * e:.2f}} epoch={{e}}")
if bad:
    {ending or "pass"}
"""
        sweep = ("run: PYTHONUNBUFFERED= python3 x.py {k}\nparams: {k: [1, 2, 3]}\ngoal: {metric: acc}\nparallel: 1\n"
                 f"early_stop: {policy}\n")
        return self.sweep(script, sweep, check=False)[2]

    def test_the_best_last_report_of_a_buffered_trial_is_kept_under_every_policy(self):
        for policy in ("{policy: median, warmup: 1}", "{policy: bandit, warmup: 1, slack: 0.1}",
                       "{policy: truncation, warmup: 1, part: 0.5}", "{policy: curve, warmup: 4, steps: 10}"):
            with self.subTest(policy):
                self.setUp()
                third = self.burst(policy)
                self.assertEqual((third["state"], third["metrics"]), ("done", {"acc": 0.99, "epoch": 10}))
                self.assertEqual(third["cause"], "ok")

    def test_the_exit_code_of_a_buffered_trial_with_poor_reports_counts(self):
        third = self.burst("{policy: median, warmup: 1}", ending="sys.exit(3)", third="0.01 * e")
        self.assertEqual((third["state"], third["cause"]), ("failed", "exit 3"))

    def third_behind_a_frozen_runner(self, last, code, more=""):
        """The runner is frozen while the third trial makes all its reports and exits: it reads them together."""
        self.write("x.py", f"""
import os, sys, time
if sys.argv[1] == "3":
    open("pid", "w").write(str(os.getpid()))
    while not os.path.exists("go"):
        time.sleep(0.01)
for e in range(1, 6):
    print(f"::berth acc={{0.01 if sys.argv[1] == '3' else 0.5}} epoch={{e}}")
if sys.argv[1] == "3":
    print("::berth acc={last} epoch=6")
    sys.exit({code})
""")
        self.write("s.yaml", f"name: s\nrun: python3 x.py {{k}}\nparams: {{k: [1, 2, 3]}}\n{MEDIAN}{more}")
        runner = self.house.start("run", "s.yaml")
        until(lambda: (self.dir / "pid").exists() and (self.dir / "pid").read_text(), "the third trial")
        pid = int((self.dir / "pid").read_text())
        runner.send_signal(signal.SIGSTOP)
        self.write("go", "")
        until(lambda: not alive(pid), "its end")
        return runner

    def test_reports_and_end_in_one_read_count_with_the_last_report(self):
        runner = self.third_behind_a_frozen_runner(0.99, 0)
        runner.send_signal(signal.SIGCONT)
        runner.wait()
        third = self.house.tasks("s-1")[2]
        self.assertEqual((third["cause"], third["metrics"]), ("ok", {"acc": 0.99, "epoch": 6}))

    def test_reports_and_end_in_one_read_count_with_the_exit_code(self):
        runner = self.third_behind_a_frozen_runner(0.01, 3)
        runner.send_signal(signal.SIGCONT)
        runner.wait()
        third = self.house.tasks("s-1")[2]
        self.assertEqual((third["cause"], third["state"]), ("exit 3", "failed"))

    def test_an_end_while_the_runner_was_dead_counts_after_a_resume(self):
        for last, code, cause in ((0.99, 0, "ok"), (0.01, 3, "exit 3")):
            with self.subTest(cause):
                self.setUp()
                runner = self.third_behind_a_frozen_runner(last, code)
                runner.kill()
                runner.wait()
                self.house.run("resume", "s-1")
                third = self.house.tasks("s-1")[2]
                self.assertEqual((third["cause"], third["metrics"]), (cause, {"acc": last, "epoch": 6}))

    def test_a_report_that_triggers_a_stop_is_recorded_whole(self):
        tasks = self.sweep("""
import sys, time
x = int(sys.argv[1])
for e in range(1, 7 if x == 5 else 3000):  # the others report until they are stopped
    print(f"::berth acc={x * 10000 + e} epoch={e}", flush=True)
    time.sleep(0.02)
""", "run: python3 x.py {x}\nparams: {x: [5, 4, 3]}\n" + MEDIAN)
        self.assertEqual([task["cause"] for task in tasks], ["ok", "stopped early", "stopped early"])
        for task in tasks:
            self.assertEqual(task["metrics"]["acc"] % 10000, task["metrics"]["epoch"], task["id"])

    def test_why_names_the_policy_the_report_and_what_it_was_compared_with(self):
        self.sweep("""
import sys, time
for e in range(4):
    print(f"::berth acc={sys.argv[1]}", flush=True)
time.sleep(0 if sys.argv[1] == "5" else 60)  # until it is stopped
""", "run: python3 x.py {x}\nparams: {x: [5, 3]}\n" + MEDIAN)
        self.assertIn("early_stop: median ended it at report 2: its best acc in 2 reports is 3; the median of the "
                      "averages of 1 other trial by then is 5", self.why("s-1/2"))

    def test_tasks_are_unbuffered_unless_the_user_says_otherwise(self):
        self.house.environment.pop("PYTHONUNBUFFERED", None)
        self.berth("run", "--", "sh", "-c", "echo [${PYTHONUNBUFFERED-none}]")
        self.house.environment["PYTHONUNBUFFERED"] = ""
        self.berth("run", "--", "sh", "-c", "echo [${PYTHONUNBUFFERED-none}]")
        runs = [run["id"] for run in self.house.json("runs")["runs"]]
        self.assertEqual({self.berth("logs", run).out for run in runs}, {b"[1]\n", b"[]\n"})


class ProgressLines(Reports):
    def report_after(self, text):
        tasks = self.sweep(f"""
import sys; sys.path.insert(0, {str(PYTHON)!r})
import berth
for i in range(5):
    print({text!r}, end="", flush=True)
    berth.report(acc=i / 4)
""", "run: python3 x.py\nparams: {s: [1]}\ngoal: {metric: acc}\n")
        self.assertEqual(tasks[0]["metrics"], {"acc": 1}, text)

    def test_reports_follow_unfinished_lines(self):
        for text in ("\rstep 3/5", "100%|####| 5/5 [00:01]\r", "\x1b[32m", "Epoch 3 ... "):
            with self.subTest(text):
                self.setUp()
                self.report_after(text)

    def test_why_quotes_the_line_that_looked_like_a_report(self):
        self.sweep("print('result is ::berth acc=0.9, fine')",
                   "run: python3 x.py\nparams: {s: [1]}\ngoal: {metric: acc}\n", check=False)
        why = self.why("s-1/1")
        self.assertIn("it reported no metrics", why)
        self.assertIn("this line looks like a report: 'result is ::berth acc=0.9, fine'", why)

    def test_a_name_with_a_blank_is_refused_and_not_cut(self):
        found = subprocess.run([sys.executable, "-c", "import berth; berth.report({'val acc': 0.9})"],
                               env={**os.environ, "PYTHONPATH": str(PYTHON)}, capture_output=True, text=True)
        self.assertIn("metric name 'val acc': expected", found.stderr)
        self.assertEqual(found.stdout, "")


class NotFinite(Reports):
    def one(self, *lines, goal="{metric: acc}"):
        script = "".join(f"print('::berth {line}')\n" for line in lines)
        return self.sweep(script, f"run: python3 x.py\nparams: {{s: [1]}}\ngoal: {goal}\n", check=False)[0]

    def test_another_metric_is_recorded_as_missing_with_a_note(self):
        task = self.one("acc=0.8 auc=0.5", "acc=0.9 auc=nan")
        self.assertEqual((task["state"], task["metrics"]), ("done", {"acc": 0.9}))
        self.assertIn("auc: nan is not a finite number, and was recorded as missing", self.why("s-1/1"))

    def test_the_trial_fails_if_the_last_value_of_its_goal_is_not_finite(self):
        self.assertEqual(self.one("acc=0.8", "acc=inf")["state"], "failed")
        self.assertIn("the last acc that it reported was not a finite number", self.why("s-1/1"))

    def test_an_earlier_value_of_the_goal_does_not_matter(self):
        task = self.one("acc=nan", "acc=0.8 loss=1e999")
        self.assertEqual((task["state"], task["metrics"]), ("done", {"acc": 0.8}))

    def test_a_passive_trial_has_the_same_rule(self):
        self.write("s.yaml", "name: s\nparams: {x: [1, 2]}\ngoal: {metric: acc}\npassive: true\n")
        runner = self.house.start("run", "s.yaml")
        until(lambda: len(self.house.json("runs")["runs"]) == 1, "the run")
        for number, words in ((1, ["acc=0.9", "auc=nan"]), (2, ["nan"])):
            until(lambda: [task["state"] for task in self.house.tasks("s-1")][number - 1:number] == ["running"], "its turn")
            self.berth("tell", f"s-1/{number}", *words)
        runner.wait()
        tasks = self.house.tasks("s-1")
        self.assertEqual([(task["state"], task["metrics"]) for task in tasks], [("done", {"acc": 0.9}), ("failed", {})])
        self.assertIn("auc: nan is not a finite number", self.why("s-1/1"))

    def test_the_best_report_counts_where_the_goal_says_so(self):
        task = self.one("acc=0.8", "acc=nan", goal="{metric: acc, score: best}")
        self.assertEqual((task["state"], task["metrics"]), ("done", {"acc.best": 0.8}))

    def test_python_has_the_same_rule_in_report_tell_and_optimize(self):
        self.write("study.py", f"""
import sys; sys.path.insert(0, {str(PYTHON)!r})
import berth
nan = float("nan")
s = berth.Study({{"x": {{"min": 0, "max": 1}}}}, goal="acc", name="n", samples=9, early_stop={{"policy": "median"}})
s.optimize(lambda t: {{"acc": 0.9, "auc": nan}}, n_trials=1)
t = s.ask(); t.report(acc=0.8, auc=-float("inf")); s.prune(t)
t = s.ask(); t.report(acc=0.8); s.tell(t, acc=nan, auc=1)
t = s.ask(); t.report(acc=nan); s.tell(t, 0.7)
print([(t.state, dict(t.metrics)) for t in s.trials()])
""")
        found = subprocess.run([sys.executable, "study.py"], cwd=self.dir, env=self.house.environment,
                               capture_output=True, text=True)
        self.assertEqual(found.stdout.strip(), str([("done", {"acc": 0.9}), ("done", {"acc": 0.8}),
                                                    ("failed", {"auc": 1.0}), ("done", {"acc": 0.7})]), found.stderr)
        self.assertIn("auc: nan is not a finite number, and was recorded as missing", self.why("n-1/1"))
        self.assertIn("auc: -inf is not", self.why("n-1/2"))
        self.assertIn("the last acc that it reported was not a finite number", self.why("n-1/3"))


if __name__ == "__main__":
    unittest.main()
