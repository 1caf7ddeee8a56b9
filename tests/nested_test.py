#!/usr/bin/python3
"""A run within a task of a run: it has what the task has, waits for nobody else, and ends with the task."""

import contextlib
import os
import signal
import unittest
from pathlib import Path

from berth_case import Case, FlowCase, alive, numbers, until

INNER = """\
name: inner
steps:
  part: {foreach: {n: [1, 2, 3, 4]}, run: 'nproc > {out.n}; BODY', out: {n: 'n/{n}'}}
  all: {in: {n: part.n}, run: 'cat {in.n} > {out.all}', out: {all: inner.txt}}
"""


class Nested(FlowCase):
    def setUp(self):
        super().setUp()
        self.cores = os.cpu_count()

    def flow(self, body="true", parallel=1):
        self.write("inner.yaml", INNER.replace("BODY", body))
        run = f"{self.house.berth} run {self.dir}/inner.yaml 2> {{out.said}}"
        self.write("flow.yaml", f"steps:\n  outer: {{run: '{run}', out: {{said: said.txt}}, "
                   f"resources: {{cpu: {self.cores}}}}}\n")

    def held(self):
        return self.house.json("machine")["holders"]

    def test_a_flow_in_a_task_that_has_the_whole_machine_does_not_wait_for_it(self):
        self.flow()
        self.assertEqual(self.ran(self.run_flow()), ["outer"])
        self.assertEqual(self.read("inner.txt"), "1\n" * 4)
        self.assertRegex(self.read("said.txt"), f"note: inner-1: it runs within flow-1/outer and .*: cpu {self.cores}")
        self.assertEqual(self.house.counts("inner-1")["done"], 5)
        self.assert_tidy()

    def test_it_has_no_more_than_its_task(self):
        self.write("inner.yaml", INNER.replace("BODY", "true").replace("{foreach", "{resources: {cpu: 2}, foreach"))
        run = f"{self.house.berth} run {self.dir}/inner.yaml"
        refused = self.berth("run", "--cpu", "1", "--", *run.split(), code=3)
        self.assertIn(b"the task that this runs in", refused.err)
        Case.assert_tidy(self)

    def runs_deep(self):
        self.flow(f"echo $$ >> {self.dir}/pids; exec sleep 60")
        runner = self.house.start("run", "flow.yaml")
        until(lambda: numbers(self.dir / "pids"), "the inner tasks run")
        return runner

    def assert_nothing_is_left(self):
        for pid in numbers(self.dir / "pids"):
            self.addCleanup(lambda pid=pid: alive(pid) and os.kill(pid, signal.SIGKILL))
        until(lambda: not any(alive(pid) for pid in numbers(self.dir / "pids")), "the inner tasks end", 10)
        self.assert_tidy()

    def test_its_runner_is_killed(self):
        runner = self.runs_deep()
        pids = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != runner.pid]
        inner = []
        for pid in pids:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if str(self.dir / "inner.yaml").encode() in words and b"run" in words[:2]:
                    inner.append(pid)
        self.assertEqual(len(inner), 1)
        os.kill(inner[0], signal.SIGKILL)
        self.assertEqual(runner.wait(timeout=20), 1)
        self.assert_nothing_is_left()

    def test_the_task_around_it_is_stopped(self):
        runner = self.runs_deep()
        self.berth("stop", "flow-1")
        runner.wait(timeout=20)
        self.assert_nothing_is_left()

    def test_all_around_it_is_killed(self):
        runner = self.runs_deep()
        runner.kill()
        runner.wait()
        self.assertEqual(len(self.held()), 1, "the task goes on")
        self.berth("stop", "flow-1")
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
