#!/usr/bin/python3
"""Trials that somebody else carries out: asked at the terminal, answered with berth tell, and kept
whatever happens to the runner."""

import json
import os
import signal
import subprocess
import unittest

from berth_case import Case, until

SWEEP = """
name: p
passive: true
run: ./train.py --lr {lr} 'two words'
params: {lr: [0.1, 0.2, 0.3]}
goal: {metric: accuracy, direction: max}
"""


class Passive(Case):
    def begin(self, text=SWEEP, *options):
        self.write("p.yaml", text)
        run = self.berth("run", "--detach", *options, "p.yaml").out.decode().strip()
        self.asked(run)
        return run

    def asked(self, run):
        return [task["id"] for task in self.house.json("ask", run, "--wait")["tasks"]]

    def answer_all(self, run, value="0.5"):
        while asked := self.asked(run):
            self.berth("tell", asked[0], value)

    def test_what_is_typed_is_the_score(self):
        self.write("p.yaml", SWEEP)
        process = subprocess.Popen([self.house.berth, "run", "p.yaml"], cwd=self.dir, env=self.house.environment,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.house.started.append(process)
        out, err = process.communicate("0.5\nwhat?\n\n accuracy=0.75 loss=2 \nfailed out of patience\n", timeout=30)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("p-1/1: ./train.py --lr 0.1 'two words'\n", err)
        self.assertIn("type its accuracy, or: berth tell p-1/2 VALUE", err)
        self.assertIn("got 'what?'", err)
        tasks = self.house.tasks("p-1")
        self.assertEqual([task["metrics"] for task in tasks], [{"accuracy": 0.5}, {"accuracy": 0.75, "loss": 2}, {}])
        self.assertEqual([task["state"] for task in tasks], ["done", "done", "failed"])
        self.assertIn(b"out of patience", self.berth("why", "p-1/3").out)
        self.assertEqual(self.berth("logs", "p-1/2").out, b"::berth accuracy=0.75 loss=2\n")
        self.assertIn("best p-1/2", out)
        self.assert_tidy()

    def test_tell_answers_from_anywhere(self):
        run = self.begin()
        self.assertEqual(self.asked(run), ["p-1/1"], "one at a time")
        self.assertIn(b"berth tell p-1/1 VALUE", self.berth("why", "p-1/1").out)
        self.assertIn(b"p-1/1 VALUE", self.berth("ask", run).err)
        self.assertEqual(json.loads(self.berth("tell", "p-1/1", "0.1", "--json").out)["told"], ["p-1/1"])
        until(lambda: self.asked(run) == ["p-1/2"], "the next one is asked for")
        self.berth("tell", "p-1/2", "--", "-0.5")
        until(lambda: self.asked(run) == ["p-1/3"], "the next one is asked for")
        self.berth("tell", "p-1/3", "#Auptimizer:0.3")
        self.berth("wait", run)
        self.assertEqual([task["metrics"]["accuracy"] for task in self.house.tasks(run)], [0.1, -0.5, 0.3])
        self.assertEqual(self.house.json("best", run)["id"], "p-1/3")
        self.assertEqual(self.asked(run), [])
        self.assertEqual(os.listdir(self.house.state / "runs/p-1/answers"), [])
        self.assert_tidy()

    def test_what_makes_no_sense_is_refused(self):
        run = self.begin()
        for words in (["high"], ["0.1", "0.2"], ["loss=2"], [""], []):
            text = self.one_line(self.berth("tell", "p-1/1", *words, code=2))
            self.assertIn("expected accuracy, NAME=VALUE …, or failed", text)
        self.berth("tell", "p-1", "0.1", code=2)
        self.berth("tell", "p-1/9", "0.1", code=2)
        self.berth("tell", "p-1/1", "0.1")
        until(lambda: self.asked(run) == ["p-1/2"], "the next one is asked for")
        self.assertIn("has ended already: done", self.one_line(self.berth("tell", "p-1/1", "0.2", code=2)))
        self.berth("run", "--", "true")
        self.assertIn("is not passive", self.one_line(self.berth("tell", "true-1/1", "1", code=2)))
        self.assertIn("is not passive", self.one_line(self.berth("ask", "true-1", code=2)))
        self.berth("stop", run)

    def test_an_answer_outlives_the_runner(self):
        run = self.begin()
        runner = self.house.json("show", run)["run"]["runner"]
        os.kill(runner, signal.SIGKILL)
        until(lambda: self.house.json("show", run)["run"]["state"] == "interrupted", "it is gone")
        self.assertIn(b"resume the run with: berth resume p-1", self.berth("tell", "p-1/1", "0.9").err)
        self.berth("tell", "p-1/3", "0.7")  # before it was asked for
        self.berth("resume", "--detach", run)
        until(lambda: self.asked(run) == ["p-1/2"], "only what nobody has told is asked for")
        self.berth("tell", "p-1/2", "0.8")
        self.berth("wait", run)
        self.assertEqual([task["metrics"]["accuracy"] for task in self.house.tasks(run)], [0.9, 0.8, 0.7])
        self.assert_tidy()

    def test_a_kill_at_any_failpoint_loses_no_answer(self):
        for number, point in enumerate(("after launch:1", "before commit:3", "after commit:3", "after acknowledge:2"), 1):
            self.write("p.yaml", SWEEP)
            fuse = self.write(f"fuse-{number}", "")
            process = self.house.start("run", "p.yaml", env={"BERTH_FAILPOINT": f"{point}:{fuse}"})
            run = f"p-{number}"
            told = {}
            while process.poll() is None:
                shown = self.house.run("ask", run, "--json")
                for task in json.loads(shown.out)["tasks"] if shown.code == 0 else []:
                    label = task["id"].partition("/")[2]
                    if label not in told and self.house.run("tell", task["id"], f"0.{label}").code == 0:
                        told[label] = float(f"0.{label}")
            self.assertEqual(process.returncode, -signal.SIGKILL, point)
            self.berth("resume", "--detach", run)
            for trial in iter(lambda: next(iter(self.asked(run)), None), None):
                label = trial.partition("/")[2]
                self.assertNotIn(label, told, f"{point}: asked again")
                self.berth("tell", trial, f"0.{label}")
                told[label] = float(f"0.{label}")
                until(lambda: trial not in self.asked(run), "it is taken")
            self.berth("wait", run)
            self.assertEqual([task["metrics"]["accuracy"] for task in self.house.tasks(run)], [0.1, 0.2, 0.3], point)

    def test_points_of_a_person_come_next(self):
        learns = ("name: p\npassive: true\nparams: {x: {min: 0, max: 9}, net: [a, b]}\ngoal: {metric: f}\n"
                  "search: {method: tpe, samples: 5}\n")
        run = self.begin(learns)
        for words, text in ((["x=10"], "lies outside 0..9"), (["y=1"], "no such parameter"), (["x"], "expected NAME=VALUE")):
            self.assertIn(text, self.one_line(self.berth("ask", run, "--enqueue", *words, code=2)))
        told = json.loads(self.berth("ask", run, "--enqueue", "x=3 net=b", "--enqueue", "{x: 4}", "--json").out)
        self.assertEqual(told["enqueued"], [{"x": 3.0, "net": "b"}, {"x": 4.0}])
        self.berth("tell", "p-1/1", "1")
        until(lambda: self.asked(run) == ["p-1/2"], "the next one is asked for")
        self.assertEqual(self.house.tasks(run)[1]["params"], {"x": 3.0, "net": "b"})
        os.kill(self.house.json("show", run)["run"]["runner"], signal.SIGKILL)
        until(lambda: self.house.json("show", run)["run"]["state"] == "interrupted", "it is gone")
        self.assertIn(b"berth resume p-1", self.berth("ask", run, "--enqueue", "x=5").err)
        self.berth("resume", "--detach", run)
        self.answer_all(run)
        self.berth("wait", run)
        xs = [task["params"]["x"] for task in self.house.tasks(run)]
        self.assertEqual((len(xs), xs[1:4]), (5, [3, 4, 5]))
        self.assertIn("has ended", self.one_line(self.berth("ask", run, "--enqueue", "x=5", code=2)))
        grid = self.begin()
        self.assertIn("its trials are fixed", self.one_line(self.berth("ask", grid, "--enqueue", "lr=0.1", code=2)))
        self.berth("stop", grid)
        self.berth("run", "--", "true")
        self.assertIn("searches nothing", self.one_line(self.berth("ask", "true-1", "--enqueue", "x=1", code=2)))

    def test_a_kill_at_any_failpoint_neither_loses_nor_doubles_a_point(self):
        text = ("run: sleep 0.01; echo ::berth f={x}\nname: s\nparams: {x: {min: 0, max: 9}}\ngoal: {metric: f}\n"
                "search: {method: tpe, samples: 8}\nparallel: 1\n")
        for number, point in enumerate(("before commit:2", "after commit:2", "after commit:3", "before commit:4"), 1):
            self.write("s.yaml", text)
            run = f"s-{number}"
            def killed(words, point):
                fuse = self.write("fuse", "")
                self.assertEqual(self.house.run(*words, env={"BERTH_FAILPOINT": f"{point}:{fuse}"}).code, -signal.SIGKILL)

            killed(["run", "s.yaml"], "before commit:1")
            self.berth("ask", run, "--enqueue", "x=3.25", "--enqueue", "x=4.5")
            killed(["resume", run], point)
            self.berth("resume", run)
            xs = [task["params"]["x"] for task in self.house.tasks(run)]
            self.assertEqual((len(xs), xs.count(3.25), xs.count(4.5)), (8, 1, 1), (point, xs))

    def test_a_failed_one_is_asked_again_where_there_are_retries(self):
        run = self.begin(SWEEP + "retries: 1\n")
        self.berth("tell", "p-1/1", "failed", "no power")
        attempt = until(lambda: [t for t in self.house.json("ask", run)["tasks"] if t["attempts"] == 2 or
                                 self.house.run("tell", t["id"], "0.4").code], "it is asked again")
        self.assertEqual(attempt[0]["id"], "p-1/1")
        self.answer_all(run)
        self.berth("wait", run)
        self.assertEqual([a["cause"] for a in self.house.json("why", "p-1/1")["attempts_made"]], ["exit 1", "ok"])

    def test_without_a_command_and_several_at_once(self):
        run = self.begin("name: p\npassive: true\nparallel: 2\nparams: {x: [1, 2, 3], y: [a b]}\n"
                         "goal: {metric: f, direction: min}\ntimeout: 1h\n")
        until(lambda: self.asked(run) == ["p-1/1", "p-1/2"], "two side by side")
        self.assertEqual(self.house.json("machine")["free"]["cpu"], self.house.json("machine")["total"]["cpu"],
                         "it takes nothing of this machine")
        self.answer_all(run, "2")
        self.berth("wait", run)
        self.assertEqual(self.house.counts(run)["done"], 3)

    def test_a_time_limit_and_a_stop(self):
        run = self.begin(SWEEP.replace("[0.1, 0.2, 0.3]", "[0.1]") + "timeout: 50ms\n")
        self.berth("wait", run, code=1)
        self.assertIn(b"its score was not reported in time", self.berth("why", "p-1/1").out)
        run = self.begin()
        self.berth("stop", run)
        self.assertEqual(self.house.counts(run)["stopped"], 3)

    def test_it_says_what_is_missing(self):
        self.write("p.yaml", "passive: true\nparams: {x: [1]}\n")
        self.assertIn("which metric does each trial report?", self.one_line(self.berth("run", "p.yaml", code=2)))
        self.write("p.yaml", "params: {x: [1]}\n")
        self.assertIn("run", self.one_line(self.berth("run", "p.yaml", code=2)))


if __name__ == "__main__":
    unittest.main()
