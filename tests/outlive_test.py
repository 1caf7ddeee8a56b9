#!/usr/bin/python3
"""Runs in the background, whose tasks outlive their runner: killed, resumed, with their agents killed too."""

import contextlib
import os
import signal
import unittest
from pathlib import Path

from berth_case import Case, alive, until

SWEEP = """name: s
run: sh -c 'echo {i} $$ >> witness; while [ ! -e go ]; do sleep 0.02; done; echo ::berth v={i}'
params: {i: [1, 2, 3]}
resources: {cpu: 0.5}
"""
FLOW = """name: f
steps:
  w:
    foreach: {i: [0, 1]}
    run: 'echo {i} $$ >> $HERE/witness; while [ ! -e $HERE/go ]; do sleep 0.02; done; cat {in.t} > {out.x}'
    in: {t: text}
    out: {x: "x{index}.txt"}
    resources: {cpu: 0.5}
  all: {run: 'cat {in.x} > {out.y}', in: {x: w.x}, out: {y: y.txt}}
"""


class Outlive(Case):
    def begin(self, text, count):
        (self.dir / "run.yaml").write_text(text)
        (self.dir / "text").write_text("words\n")
        self.house.environment["HERE"] = str(self.dir)
        run = self.berth("run", "--detach", "run.yaml").out.decode().strip()
        # What began in the last 20 ms before a kill is not recorded yet, and begins again.
        until(lambda: len(self.witness()) == count and self.house.counts(run)["running"] == count, "they run")
        self.started = self.witness()
        return run

    def witness(self):
        """(number, pid) of every execution."""
        try:
            lines = (self.dir / "witness").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [tuple(map(int, line.split())) for line in lines]

    def kill_runner(self, run):
        pid = self.house.json("show", run)["run"]["runner"]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), "it is dead")

    def agents(self):
        found = []
        for pid in self.house.leftovers():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                if b"berth-agent" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def assert_tidy(self):
        until(lambda: not self.house.leftovers(), f"left: {self.house.leftovers()}")
        machine = self.house.json("machine")
        self.assertEqual(machine["holders"] + machine["waiting"], [])

    def test_a_killed_runner_loses_no_task(self):
        run = self.begin(SWEEP, 3)
        self.kill_runner(run)
        self.assertTrue(all(alive(pid) for _, pid in self.started), "they go on")
        self.assertEqual(self.house.json("show", run)["run"]["state"], "interrupted")
        again = self.house.start("resume", run)
        until(lambda: self.house.json("show", run)["run"]["runner"] == again.pid, "it is attached")
        (self.dir / "go").touch()
        self.assertEqual(again.wait(20), 0)
        self.assertEqual(self.witness(), self.started, "each was executed once")
        tasks = self.house.tasks(run)
        self.assertEqual([(task["state"], task["attempts"]) for task in tasks], [("done", 1)] * 3)
        self.assertEqual([task["metrics"] for task in tasks], [{"v": 1}, {"v": 2}, {"v": 3}])
        self.assert_tidy()

    def test_what_ends_while_there_is_no_runner_is_told_to_the_next(self):
        run = self.begin(SWEEP, 3)
        self.kill_runner(run)
        (self.dir / "go").touch()
        until(lambda: not any(alive(pid) for _, pid in self.started), "they have ended")
        self.berth("resume", run)
        self.assertEqual(self.witness(), self.started)
        self.assertEqual([task["metrics"] for task in self.house.tasks(run)], [{"v": 1}, {"v": 2}, {"v": 3}])
        self.assert_tidy()

    def test_a_flow_goes_on_and_is_cached_by_what_it_was(self):
        run = self.begin(FLOW, 2)
        self.kill_runner(run)
        (self.dir / "text").write_text("other words\n")  # they took the first in
        (self.dir / "go").touch()
        self.berth("resume", run)
        self.assertEqual((self.dir / "y.txt").read_text(), "words\nwords\n")
        self.assertEqual(self.witness(), self.started)
        self.berth("run", "run.yaml")
        self.assertEqual((self.dir / "y.txt").read_text(), "other words\nother words\n")
        (self.dir / "text").write_text("words\n")
        self.berth("run", "run.yaml")
        self.assertEqual(self.house.counts("f-3")["cached"], 3)
        self.assert_tidy()

    def test_a_flow_goes_on_when_all_that_ran_has_ended_and_its_agents_too(self):
        run = self.begin(FLOW, 2)
        self.kill_runner(run)
        (self.dir / "go").touch()
        until(lambda: not self.agents(), "their agents have gone")
        self.berth("resume", run)
        self.assertEqual((self.dir / "y.txt").read_text(), "words\nwords\n")
        self.assertEqual(self.house.counts(run)["done"], 3)
        self.assertEqual(self.witness(), self.started)
        self.assert_tidy()

    def test_an_end_that_is_heard_before_what_it_took_in_is_brought_back(self):
        (self.dir / "run.yaml").write_text(
            "name: f\nsteps:\n  u: {run: 'head -c 200M /dev/zero > {out.x}', out: {x: big}}\n"
            "  d: {in: {x: u.x}, out: {y: y.txt},"
            " run: 'touch $HERE/runs; while [ ! -e $HERE/go ]; do sleep 0.02; done; echo d > {out.y}'}\n"
            "  e: {in: {y: d.y}, run: 'cat {in.y} > {out.z}', out: {z: z.txt}}\n")
        self.house.environment["HERE"] = str(self.dir)
        run = self.berth("run", "--detach", "run.yaml").out.decode().strip()
        until((self.dir / "runs").exists, "d runs")
        until(lambda: self.house.counts(run)["running"] == 1, "and that is recorded")
        self.kill_runner(run)
        (self.dir / "go").touch()
        until(lambda: not self.agents(), "its agent has gone")
        self.berth("resume", run)
        self.assertEqual((self.dir / "z.txt").read_text(), "d\n")
        self.assertEqual([task["attempts"] for task in self.house.tasks(run)], [1, 1, 1])

    def test_those_that_still_run_are_taken_over_before_those_that_wait(self):
        """Twenty wait for another try when the runner dies; the one that runs stands behind them."""
        (self.dir / "run.yaml").write_text(
            "name: f\nsteps:\n  w:\n    foreach: {i: [" + ", ".join(map(str, range(21))) + "]}\n"
            "    retries: 9\n    resources: {cpu: 0.5}\n    out: {x: 'x{index}.txt'}\n"
            "    run: 'if [ {i} -lt 20 ]; then test -e $HERE/go || exit 1; else echo {i} $$ >> $HERE/witness;"
            " while [ ! -e $HERE/go ]; do sleep 0.02; done; fi; echo {i} > {out.x}'\n")
        self.house.environment["HERE"] = str(self.dir)
        run = self.berth("run", "--detach", "run.yaml").out.decode().strip()
        until(lambda: self.witness() and self.house.counts(run)["running"] >= 1, "the last one runs")
        until(lambda: self.house.tasks(run)[20]["state"] == "running", "and that is recorded")
        self.kill_runner(run)
        (self.dir / "go").touch()
        until(lambda: not alive(self.witness()[0][1]), "it has ended")
        self.berth("resume", run)
        self.assertEqual(self.house.counts(run)["done"], 21)
        self.assertEqual(len(self.witness()), 1)
        self.assert_tidy()

    def test_an_agent_that_dies_costs_its_tasks_another_attempt_and_no_retry(self):
        run = self.begin(SWEEP, 3)
        for pid in self.agents():
            os.kill(pid, signal.SIGKILL)
        until(lambda: not any(alive(pid) for _, pid in self.started), "its tasks die with it")
        until(lambda: len(self.witness()) == 6, "they run again")
        (self.dir / "go").touch()
        self.berth("wait", run)
        for task in self.house.tasks(run):
            causes = [attempt["cause"] for attempt in self.house.json("why", task["id"])["attempts_made"]]
            self.assertEqual(causes, ["worker lost", "ok"])
        self.assert_tidy()

    def test_both_die(self):
        run = self.begin(SWEEP, 3)
        victims = self.agents()
        self.kill_runner(run)
        os.kill(victims[0], signal.SIGKILL)
        (self.dir / "go").touch()
        self.berth("resume", run)
        self.assertEqual(self.house.counts(run)["done"], 3)
        self.assertEqual(len(self.witness()), 4, "one more, for the one whose agent died")
        self.assert_tidy()

    def test_what_a_dead_runners_tasks_held_is_free_when_they_end(self):
        run = self.begin(SWEEP, 3)
        self.kill_runner(run)
        self.assertTrue(self.house.json("machine")["holders"])
        (self.dir / "go").touch()
        until(lambda: not any(alive(pid) for _, pid in self.started), "they have ended")
        until(lambda: not self.house.json("machine")["holders"], "what they held is free long before a lease ends")
        until(lambda: not self.agents(), "their agents go too")
        self.berth("resume", run)
        self.assertEqual(self.witness(), self.started, "what came of them was read")
        self.assertEqual(self.house.counts(run)["done"], 3)

    def test_stop_ends_them_and_resume_begins_anew(self):
        run = self.begin(SWEEP, 3)
        self.berth("stop", run)
        self.assertFalse(any(alive(pid) for _, pid in self.started))
        self.assert_tidy()
        (self.dir / "go").touch()
        self.berth("resume", run)
        self.assertEqual(len(self.witness()), 6)
        self.assert_tidy()

    def test_rm_with_force_ends_what_an_interrupted_run_still_runs(self):
        run = self.begin(SWEEP, 3)
        self.kill_runner(run)
        self.berth("rm", "--force", run)
        until(lambda: not any(alive(pid) for _, pid in self.started), "they are ended")
        self.assert_tidy()
        self.assertFalse((self.dir / "state/runs" / run).exists())


class Retained(Case):
    def test_a_failed_run_keeps_its_alloc_for_a_retry(self):
        failed = self.house.run("run", "--name", "r", "--retain", "1m", "--", "sh", "-c", "test -e go")
        self.assertEqual(failed.code, 1)
        self.assertIn(b"its allocation is kept for 1m", failed.err)
        kept = self.house.json("machine")["holders"]
        self.assertEqual([holder["label"] for holder in kept], ["r-1"])
        self.assertEqual(self.house.json("show", "r-1")["run"]["alloc"]["block"]["resources"], {"cpu": 1})
        self.write("go", "")
        again = self.berth("retry", "r-1")
        self.assertIn(b"attached to 1 worker of an earlier runner", again.err)
        self.assertEqual(self.house.json("machine")["holders"], [])
        self.assert_tidy()

    def test_a_runner_that_dies_as_its_run_is_done_leaves_no_agent(self):
        """Killed at each commit in turn, the last of which records the end. How many there are depends on how busy
        the machine is."""
        nth, states = 2, []
        while "done" not in states and len(states) < 20:
            fuse = self.write("fuse", "")
            self.house.run("run", "--name", "r", "--retain", "1m", "--", "true",
                           env={"BERTH_FAILPOINT": f"after commit:{nth}:{fuse}"})
            if fuse.exists():
                nth = 2
                continue
            nth += 1
            states.append(self.house.json("runs")["runs"][-1]["state"])
            self.assert_tidy()
        self.assertIn("done", states)

    def test_stop_frees_it(self):
        self.house.run("run", "--name", "r", "--retain", "1m", "--", "false")
        self.assertEqual(len(self.house.json("machine")["holders"]), 1)
        self.berth("stop", "r-1")
        self.assertEqual(self.house.json("machine")["holders"], [])
        self.assertEqual(self.house.json("runs")["runs"][0]["state"], "failed")
        self.assert_tidy()

    def test_retry_of_what_failed_alone_and_of_everything(self):
        self.write("s.yaml", "run: test {i} != 2 -o -e go\nparams: {i: [1, 2, 3]}\nparallel: 1\n"
                             "on_failure: stop\n")
        self.house.run("run", "s.yaml")
        self.assertEqual([task["state"] for task in self.house.tasks("s-1")], ["done", "failed", "waiting"])
        self.write("go", "")
        self.house.run("retry", "--failed", "s-1")
        self.assertEqual([task["state"] for task in self.house.tasks("s-1")], ["done", "done", "stopped"])
        self.berth("resume", "s-1")
        self.berth("retry", "--all", "s-1")
        self.assertEqual([task["attempts"] for task in self.house.tasks("s-1")], [2, 3, 2])


if __name__ == "__main__":
    unittest.main()
