#!/usr/bin/python3
"""Conditions of a flow on what earlier steps told: metrics and small JSON files."""

import os
import signal
import unittest

from berth_case import FlowCase, until


class Conditions(FlowCase):
    FLOW = """name: gate
params: {most: 0.5}
steps:
  train:
    foreach: {s: [A, B, C]}
    in: {i: 'in/{s}'}
    run: 'echo "::berth loss=$(cat {in.i})"; echo "{\\"m\\": {\\"loss\\": $(cat {in.i})}}" > {out.report}; echo {s} > {out.model}'
    out: {report: 'report/{s}.json', model: 'model/{s}'}
  refine:
    foreach: {m: train.model}
    when: json(train.report, m.loss) < {most}
    run: cat {m} > {out.o}; echo refined {m.s} >> {out.o}
    out: {o: 'refined/{m.s}'}
  check:
    foreach: {m: train.model}
    when: metric(train, loss) >= 0.5
    run: echo bad {m.s} > {out.o}
    out: {o: 'bad/{m.s}'}
  sum: {in: {r: refine.o}, run: 'cat {in.r} > {out.all}', out: {all: all.txt}}
"""

    def setUp(self):
        super().setUp()
        self.write("flow.yaml", self.FLOW)
        for name, loss in (("A", "0.3"), ("B", "0.7"), ("C", "0.1")):
            self.write(f"in/{name}", loss + "\n")

    def test_each_instance_is_decided_by_what_it_comes_from(self):
        shown = self.run_flow()
        states = self.states(shown)
        self.assertEqual({name for name, state in states.items() if state == "skipped"},
                         {"refine/B", "check/A", "check/C"})
        self.assertEqual(shown["run"]["counts"]["skipped"], 3)
        self.assertEqual(shown["run"]["state"], "done")
        self.assertEqual(self.read("all.txt"), "A\nrefined A\nC\nrefined C\n")
        self.assertEqual(self.because("gate-1/refine/B"),
                         ["nothing to do: json(train.report, m.loss) is '0.7', not < '0.5', of train/B"])
        self.assertEqual(self.because("gate-1/check/A"),
                         ["nothing to do: metric(train, loss) is '0.3', not >= '0.5', of train/A"])
        self.assertIn("is '0.3', not >=", self.berth("why", "gate-1/check/A").out.decode())
        self.assertIn("3 skipped", self.berth("show", "gate-1").out.decode())
        self.assert_tidy()

    def test_what_the_cache_brings_decides_as_before(self):
        self.run_flow()
        shown = self.run_flow()
        states = self.states(shown)
        self.assertEqual(self.ran(shown), [])
        self.assertEqual(sorted(name for name, state in states.items() if state == "skipped"),
                         ["check/A", "check/C", "refine/B"])
        plan = {step["step"]: step for step in self.house.json("run", "--plan", "flow.yaml")["steps"]}
        self.assertEqual((plan["refine"]["skipped"], plan["refine"]["cached"], plan["check"]["skipped"]), (1, 2, 2))
        self.assertEqual(self.ran(self.run_flow("--set", "most=0.2")), ["refine/C", "sum"], "most is a parameter of it")
        self.assertEqual(self.read("all.txt"), "C\nrefined C\n")
        self.write("in/B", "0.05\n")
        self.assertEqual(self.ran(self.run_flow("--set", "most=0.2")), ["refine/B", "sum", "train/B"])
        self.assertEqual(self.states(self.house.json("show", "gate-4"))["refine/A"], "skipped")

    def test_what_cannot_be_decided_fails_its_task_and_says_why(self):
        for report, said in (("loss: 1", "r.json: not JSON"), ('{"los": 1}', "r.json: there is no 'loss'; did you mean 'los'?"),
                             ('{"loss": "high"}', "'high' is not a number"), ('{"loss": {}}', "'loss' is a map")):
            self.write("flow.yaml", """name: wrong
steps:
  a: {in: {i: given}, run: 'cp {in.i} {out.r}', out: {r: r.json}}
  b: {run: 'touch {out.o}', out: {o: o}, retries: 3,
      when: 'json(a.r, loss) < 1'}
  c: {run: 'true', in: {i: b.o}}
  d: {run: 'true', needs: a}
""")
            self.write("given", report)
            shown = self.run_flow(code=1)
            states = self.states(shown)
            self.assertEqual((states["a"] in ("done", "cached"), states["b"], states["d"]), (True, "failed", "done"), report)
            attempts = self.house.json("why", shown["run"]["id"] + "/b")["attempts_made"]
            self.assertEqual(len(attempts), 1, "to try again would change nothing")
            self.assertIn(said, attempts[0]["detail"])
            self.assertIn("flow.yaml:5: steps.b: when: json(a.r, loss)", attempts[0]["detail"])
        self.write("flow.yaml", """name: large
steps:
  a: {run: 'head -c 1100000 /dev/zero > {out.r}', out: {r: r.json}}
  b: {run: 'true', when: 'json(a.r, loss) < 1'}
  m: {run: 'true', when: 'metric(a, loss) < 1'}
""")
        self.run_flow(code=1)
        why = {task: self.house.json("why", f"large-1/{task}")["attempts_made"][0]["detail"] for task in "bm"}
        self.assertIn("r.json: it has 1100000 bytes, more than the 1048576", why["b"])
        self.assertIn("a has not reported a metric 'loss' (print ::berth NAME=VALUE)", why["m"])

    def test_a_decision_stands_when_the_runner_was_killed(self):
        self.write("flow.yaml", self.FLOW + "  last: {needs: [refine, check], run: 'until test -e go; do sleep 0.05; done'}\n"
                   .replace("test -e go", f"test -e {self.dir}/go"))
        runner = self.house.start("run", "flow.yaml")
        until(lambda: self.house.run("why", "gate-1/last").out.startswith(b"gate-1/last: running"), "last runs")
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait()
        before = self.because("gate-1/refine/B")
        self.write("report/B.json", '{"m": {"loss": 0}}')  # what was decided by is what the task wrote
        self.write("go", "")
        self.berth("resume", "gate-1")
        shown = self.house.json("show", "gate-1")
        self.assertEqual(shown["run"]["state"], "done")
        self.assertEqual(sorted(name for name, state in self.states(shown).items() if state == "skipped"),
                         ["check/A", "check/C", "refine/B"])
        self.assertEqual(self.because("gate-1/refine/B"), before)
        self.assert_tidy()

    def test_killed_between_the_tasks_it_decides_the_same(self):
        for kill in range(1, 10):
            for each in "ABC":
                self.write(f"in/{each}", self.read(f"in/{each}") + " ")  # all of it runs again
            finished = self.house.run("run", "flow.yaml", env={"BERTH_FAILPOINT": f"after commit:{kill}"})
            if finished.code != 0:
                self.berth("resume", f"gate-{kill}")
            shown = self.house.json("show", f"gate-{kill}")
            self.assertEqual(shown["run"]["state"], "done")
            self.assertEqual(sorted(name for name, state in self.states(shown).items() if state == "skipped"),
                             ["check/A", "check/C", "refine/B"], finished)
            self.assertIn("is '0.7', not < '0.5'", self.because(f"gate-{kill}/refine/B")[0])


if __name__ == "__main__":
    unittest.main()
