#!/usr/bin/python3
"""What people see of an experiment: the sorted table, the chart, CSV, runs side by side."""

import contextlib
import csv
import io
import json
import os
import pty
import re
import select
import unittest

from berth_case import Case, until

SWEEP = """
name: {name}
run: 'echo "::berth score={{x}}.5 loss={scale}{{x}}"; test {{x}} != 3'
params: {{x: {values}, tag: ["a, b"]}}
goal: {{metric: {metric}, direction: {direction}}}
"""


class Views(Case):
    def sweep(self, name="sweep", values="[1, 2, 3, 4]", metric="score", direction="max", scale=""):
        self.write(f"{name}.yaml", SWEEP.format(name=name, values=values, metric=metric,
                                                direction=direction, scale=scale))
        self.berth("run", f"{name}.yaml", code=int("3" in values))

    def shown(self, *arguments):
        """The labels of the rows of the table."""
        lines = self.berth("show", *arguments).out.decode().splitlines()
        return [line.split()[0] for line in lines[1:5]]


class Show(Views):
    def test_a_sweep_without_a_goal_says_how_to_add_one(self):
        self.write("s.yaml", "run: 'echo ::berth epoch=1 val_loss={x}'\nparams: {x: [1, 2]}\n")
        note = self.berth("run", "s.yaml").err.decode().splitlines()[-1]
        self.assertEqual(note, "note: s-1 has no goal, so no best trial is known; add goal: {metric: val_loss, direction: min}"
                         " to the file; to sort the trials of this run: berth show s-1 --sort val_loss")
        self.assertEqual(self.shown("s-1", "--sort", "val_loss")[:2], ["1", "2"])
        self.assertEqual(self.one_line(self.berth("best", "s-1", code=2)).strip(), note.replace("note", "berth"))
        self.write("quiet.yaml", "run: 'true {x}'\nparams: {x: [1, 2]}\n")
        self.assertIn("no goal and no reported metric", self.berth("run", "quiet.yaml").err.decode().splitlines()[-1])
        self.assertNotIn(b"goal", self.berth("run", "--", "true").err)

    def test_sorts_by_the_goal_and_by_whatever_is_asked(self):
        self.sweep()
        self.assertEqual(self.shown("sweep-1"), ["4", "2", "1", "3"], "the failed one last")
        self.assertEqual(self.shown("sweep-1", "--sort", "score"), ["4", "2", "1", "3"])
        self.assertEqual(self.shown("sweep-1", "--sort", "x"), ["1", "2", "3", "4"])
        self.assertEqual(self.shown("sweep-1", "--sort", "metrics.loss"), ["1", "2", "3", "4"])
        self.assertEqual(self.shown("sweep-1", "--sort", "state"), ["1", "2", "4", "3"])
        self.assertEqual(sorted(self.shown("sweep-1", "--sort", "time")), ["1", "2", "3", "4"])
        ordered = self.house.json("show", "sweep-1", "--sort", "score")["tasks"]
        self.assertEqual([task["id"] for task in ordered], [f"sweep-1/{n}" for n in (4, 2, 1, 3)])

    def constrained(self, constraints, goal="{metric: score}", code=0):
        self.write("bound.yaml", f"""
run: 'echo "::berth score={{x}} latency=$(({{x}} * 10)) size=-{{x}}"'
params: {{x: [1, 2, 3, 4]}}
goal: {goal}
constraints: {constraints}
save_best: true
""")
        self.berth("run", "bound.yaml", code=code)

    def test_what_breaks_a_constraint_is_never_the_best(self):
        self.constrained("[latency < 30, score >= 1]")
        shown = self.berth("show", "bound-1").out.decode()
        rows = [line.split(maxsplit=4) for line in shown.splitlines()[1:6]]
        self.assertEqual([row[0] for row in rows[2:]], ["1", "3", "4"], "those that break most at the end")
        self.assertEqual({row[0] for row in rows[:2]}, {"2", "best"})
        self.assertIn("done, breaks latency < 30", shown)
        self.assertIn("best bound-1/2  score 2", shown)
        self.assertIn("best bound-1/2  score 2", self.berth("best", "bound-1").out.decode())
        document = self.house.json("show", "bound-1")
        self.assertEqual(document["constraints"], ["latency < 30", "score >= 1"])
        self.assertEqual({task["id"]: task["broken"] for task in document["tasks"] if task["broken"]},
                         {"bound-1/3": ["latency < 30"], "bound-1/4": ["latency < 30"]})
        self.assertEqual(document["tasks"][4]["params"]["x"], 2, "the best that was run once more")
        self.assertEqual(self.house.json("best", "bound-1")["broken"], [])

    def test_nor_on_the_front(self):
        self.constrained("[latency <= 30]", "[{metric: score}, {metric: size}]")
        self.assertEqual(sorted(self.house.json("show", "bound-1")["front"])[:3], [f"bound-1/{n}" for n in (1, 2, 3)])
        self.assertNotIn("bound-1/4", self.house.json("show", "bound-1")["front"])

    def test_where_all_break_one_there_is_no_best(self):
        self.constrained("[latency < 5]")
        text = self.one_line(self.berth("best", "bound-1", code=3))
        self.assertIn("bound-1: no finished trial meets all constraints yet", text)
        shown = self.berth("show", "bound-1").out.decode()
        self.assertNotIn("best bound-1", shown)
        self.assertIn("no best trial: none meets latency < 5\n", shown)

    def test_a_trial_that_does_not_report_what_is_constrained_has_failed(self):
        self.constrained("[memory < 5]", code=1)
        self.assertIn("never reported memory, which its goal and constraints require",
                      self.berth("why", "bound-1/1").out.decode())

    def test_an_unknown_column_is_told_with_those_there_are(self):
        self.sweep()
        text = self.one_line(self.berth("show", "sweep-1", "--sort", "acc", code=2))
        self.assertIn("no trial has 'acc'; the columns are task, time, state, score, loss, x, tag", text)

    def test_csv_is_read_by_other_programs(self):
        self.sweep()
        rows = list(csv.DictReader(io.StringIO(self.berth("show", "sweep-1", "--csv").out.decode())))
        self.assertEqual([row["id"] for row in rows], [f"sweep-1/{n}" for n in (1, 2, 3, 4)])
        self.assertEqual({row["params.tag"] for row in rows}, {"a, b"})
        self.assertEqual([float(row["metrics.score"]) for row in rows], [1.5, 2.5, 3.5, 4.5])
        self.assertEqual([row["state"] for row in rows], ["done", "done", "failed", "done"])
        self.assertEqual((rows[2]["cause"], rows[2]["exit_code"]), ("exit 1", "1"))
        self.assertTrue(all(float(row["seconds"]) >= 0 for row in rows))
        first = csv.DictReader(io.StringIO(self.berth("show", "sweep-1", "--csv", "--sort", "score").out.decode()))
        self.assertEqual(next(first)["id"], "sweep-1/4")
        self.berth("show", "sweep-1", "--csv", "--graph", code=2)

    def test_the_chart_shows_how_the_best_grew(self):
        self.sweep(values="[2, 1, 5, 4, 9]")
        text = self.berth("show", "sweep-1").out.decode()
        chart = text[text.index("score of 5 trials"):].splitlines()
        self.assertEqual(chart[0], "score of 5 trials; * marks the best so far")
        self.assertEqual(chart[1], "9.5 |    *", "trial 5 is the best, and in the top row")
        self.assertEqual(chart[8], "1.5 | o")
        drawn = "".join(line.partition("|")[2] for line in chart[1:9])
        self.assertEqual((drawn.count("*"), drawn.count("o")), (3, 2))
        self.assertEqual(chart[9], "    +-----")

    def test_a_chart_fits_a_terminal_and_is_plain(self):
        self.write("long.yaml", "name: long\nrun: echo ::berth loss=1e-{x}\n"
                   "params: {x: {min: 1, max: 100, type: int}}\ngoal: {metric: loss, direction: min}\n"
                   "resources: {cpu: 0.01}\n")
        self.berth("run", "long.yaml", timeout=240)
        text = self.berth("show", "long-1").out
        chart = text[text.index(b"loss (logarithmic) of 100 trials"):].decode("ascii").splitlines()[:11]
        self.assertTrue(all(len(line) <= 80 for line in chart), chart)
        self.assertEqual(chart[10].split(), ["1", "100"])

    def test_logs_follow_what_begins_meanwhile(self):
        """Attempts and proposed trials that began later were shown as those before, or not at all."""
        self.write("more.yaml", """
run: 'echo of {x}; while [ ! -e go ]; do sleep 0.02; done; echo ::berth acc=1; [ "$BERTH_ATTEMPT" = 2 ]'
params: {x: {min: 0, max: 9, type: int}}
search: {method: tpe, samples: 2}
goal: {metric: acc}
parallel: 1
retries: 1
""")
        run = self.house.start("run", "more.yaml")
        until(lambda: (self.dir / "state/runs/more-1/output.log").exists() and
              b"of " in self.berth("logs", "more-1").out, "the first line")
        whole, one = (self.house.start("logs", "-f", which) for which in ("more-1", "more-1/1"))
        self.write("go", "")
        run.wait()
        lines = whole.communicate()[0].decode().splitlines()
        self.assertEqual([line.partition("] ")[0] for line in lines if "] of " in line],
                         ["[1", "[1 attempt 2", "[2", "[2 attempt 2"])
        self.assertIn(b"(attempt 2)\n", one.communicate()[1])

    def test_no_chart_of_what_has_no_scores(self):
        self.sweep(values="[1, 2]")
        self.assertNotIn(b"best so far", self.berth("show", "sweep-1").out)
        self.berth("run", "--", "true")
        self.assertNotIn(b"best so far", self.berth("show", "true-1").out)


RATES = (250, 3, 2, 40, 1, 300, 20, 7, 9, 30, 4, 12)
LEARNING = f"""
name: learn
run: 'for e in 1 2 3; do echo "::berth loss={{lr}}$e.{{net}}"; done; [ $BERTH_TASK != learn-1/12 ] || while [ ! -e go ]; do sleep 0.02; done'
search: {{method: sequence, points: [{', '.join(f'{{lr: {lr}, net: {1 + at % 2}}}' for at, lr in enumerate(RATES))}]}}
goal: {{metric: loss, direction: min}}
parallel: 1
"""


class Learning(Views):
    """Trials with three reports each; the loss begins with the rate's digits, so the least rate is the best."""

    def begin(self):
        self.write("learn.yaml", LEARNING)
        return self.house.start("run", "learn.yaml")

    def learned(self):
        self.write("go", "")
        run = self.begin()
        self.assertEqual(run.wait(), 0)

    def test_charts_of_what_is_asked_for(self):
        self.learned()
        text = self.berth("show", "learn-1", "--chart").out.decode()
        for title in ("loss of 12 trials", "by report, leading trials:  1 /5  2 /3",
                      "loss by lr (logarithmic), 12 trials", "by net, 12 trials"):
            self.assertIn(title, text)
        curves = self.berth("show", "learn-1", "--chart", "curves").out.decode()
        self.assertTrue(curves.startswith("loss"), curves)
        self.assertNotIn("by lr", curves)
        by_lr = self.berth("show", "learn-1", "--chart", "lr").out.decode().splitlines()
        self.assertEqual(len([line for line in by_lr if line.partition("|")[2].startswith("*")]), 1, "the best is at the left")
        self.assertIn("the parameters are lr, net", self.one_line(self.berth("show", "learn-1", "--chart", "depth", code=2)))
        self.berth("show", "learn-1", "--chart", "--csv", code=2)
        document = self.house.json("show", "learn-1", "--chart", "curves")
        self.assertEqual((document["metric"], document["direction"], len(document["curves"])), ("loss", "min", 12))
        self.assertEqual(document["curves"][0], {"task": "5", "stopped_early": False, "values": [11.1, 12.1, 13.1]})

    def test_importance_says_what_decides(self):
        self.learned()
        text = self.berth("importance", "learn-1").out.decode().splitlines()
        self.assertEqual(text[1].split()[0], "lr")
        document = self.house.json("importance", "learn-1")
        self.assertEqual((document["metric"], document["trials"], document["parameters"][0]["name"]), ("loss", 12, "lr"))
        self.assertGreater(document["parameters"][0]["share"], document["parameters"][1]["share"])
        self.write("same.yaml", "name: same\nrun: 'echo \"::berth loss=1\"'\nparams: {x: {min: 0, max: 1}}\n"
                   "search: {method: random, samples: 12}\ngoal: {metric: loss, direction: min}\nresources: {cpu: 0.1}\n")
        self.berth("run", "same.yaml")
        self.one_line(self.berth("importance", "same-1", code=3))
        document = json.loads(self.berth("importance", "same-1", "--json", code=3).out)
        self.assertEqual((document["trials"], document["parameters"]), (12, []))
        self.assertIn("same score", document["because"])
        self.berth("run", "--", "true")
        self.assertIn("goal", self.one_line(self.berth("importance", "true-1", code=2)))

    def test_a_screen_shows_the_leaders(self):
        ours, theirs = pty.openpty()
        self.write("learn.yaml", LEARNING)
        run = self.house.start("run", "learn.yaml", out=theirs, err=theirs)
        os.close(theirs)
        seen = b""

        def led():
            nonlocal seen
            if select.select([ours], [], [], 0.02)[0]:
                seen += os.read(ours, 1 << 16)
            return re.search(rb"1\. /5  13\.1  lr 1  net 1\x1b\[K\s+2\. /3  23\.1", seen)
        until(led, "the two that lead stand below the progress")
        self.write("go", "")
        with contextlib.suppress(OSError):  # the end of a terminal
            while os.read(ours, 1 << 16):
                pass
        self.assertEqual(run.wait(), 0)
        os.close(ours)


class Compare(Views):
    def test_runs_side_by_side(self):
        self.sweep("a")
        self.sweep("b", values="[4, 2, 6]")
        document = self.house.json("compare", "a-1", "b-1")
        self.assertEqual((document["version"], document["metric"], document["direction"]), (1, "score", "max"))
        a, b = document["runs"]
        self.assertEqual((a["id"], a["scored"], a["best_score"], a["median_score"]), ("a-1", 3, 4.5, 2.5))
        self.assertEqual((b["best"]["id"], b["best"]["params"]["x"], b["median_score"]), ("b-1/3", 6, 4.5))
        self.assertGreater(b["median_trial_seconds"], 0)
        self.assertGreaterEqual(b["seconds"], b["median_trial_seconds"])
        self.assertEqual(document["shared"], [
            {"params": {"x": x, "tag": "a, b"}, "scores": {"a-1": x + 0.5, "b-1": x + 0.5}} for x in (4, 2)])
        text = self.berth("compare", "a-1", "b-1").out.decode()
        self.assertRegex(text, r"run +state +done +failed +best score +trial +median")
        self.assertRegex(text, r"best trial's +a-1 +b-1\n")
        self.assertIn("score of the parameters in common (2)", text)

    def test_by_another_metric(self):
        self.sweep("a")
        self.sweep("b", metric="loss", direction="min", scale="1")
        text = self.one_line(self.berth("compare", "a-1", "b-1", code=2))
        self.assertIn("b-1 has another goal (min loss) than the runs before it (max score)", text)
        document = self.house.json("compare", "a-1", "b-1", "--metric", "loss", "--direction", "min")
        self.assertEqual([run["best_score"] for run in document["runs"]], [1, 11])
        self.assertEqual([run["best"]["id"] for run in document["runs"]], ["a-1/1", "b-1/1"])

    def test_runs_without_scores_are_told(self):
        self.sweep("a")
        self.berth("run", "--", "true")
        document = self.house.json("compare", "a-1", "true-1")
        self.assertEqual((document["runs"][1]["best"], document["runs"][1]["best_score"]), (None, None))
        self.assertEqual(document["shared"], [])
        self.berth("run", "--", "true")
        self.assertIn("has a goal; choose", self.one_line(self.berth("compare", "true-1", "true-2", code=2)))
        self.berth("compare", "a-1", code=2)
        self.berth("compare", "a-1", "nothing-1", code=2)


if __name__ == "__main__":
    unittest.main()
