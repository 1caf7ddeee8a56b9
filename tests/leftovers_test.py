#!/usr/bin/python3
"""Where no control group contains a task, the processes that it leaves end with it; what a person started stays."""

import json
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from berth_case import Case, alive, until

USER = 12321  # a user without control groups
CLEARED = "env -i PATH=$PATH setsid"


class Leftovers(Case):
    def setUp(self):
        super().setUp()
        self.as_user = {}
        if os.getuid() == 0:
            self.as_user = {"user": USER, "group": USER, "extra_groups": []}
            os.chown(self.dir, USER, USER)
            self.house.environment["HOME"] = str(self.dir)
        for name in ("state", "ledger"):
            (self.dir / name).mkdir(mode=0o700)
            if self.as_user:
                os.chown(self.dir / name, USER, USER)
        if b"limits: enforced" in self.run_as_user("machine").out:
            self.skipTest("control groups contain the tasks of this user")
        # A number of seconds that no other process sleeps, by which the leftovers are found.
        self.seconds = str(40_000_000 + os.getpid() * 100 + int(time.monotonic() * 1000) % 100)
        self.addCleanup(self.end_sleepers)

    def run_as_user(self, *arguments, code=None, **more):
        done = self.house.run(*arguments, **self.as_user, **more)
        if code is not None:
            self.assertEqual(done.code, code, done)
        return done

    def start_as_user(self, *arguments, **more):
        return self.house.start(*arguments, **self.as_user, **more)

    def sleepers(self):
        found = []
        for entry in os.listdir("/proc"):
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0") if entry.isdigit() else []
            except OSError:
                continue
            if words[:2] == [b"sleep", self.seconds.encode()] and alive(int(entry)):
                found.append(int(entry))
        return found

    def end_sleepers(self):
        for pid in self.sleepers():
            os.kill(pid, signal.SIGKILL)

    def task(self, text):
        return self.write("task.sh", text.replace("SECONDS", self.seconds))

    def until_it_runs(self):
        return until(self.sleepers, "the leftover runs", 20)

    def check_nothing_is_left(self):
        self.assertEqual(self.sleepers(), [])

    def agents(self):
        return [pid for pid in self.house.leftovers()
                if b"start" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]

    def test_a_child_with_its_own_session_ends_at_the_time_limit(self):
        self.task("setsid sleep SECONDS & sleep 30")
        self.run_as_user("run", "--timeout", "500ms", "--", "bash", "task.sh")
        self.check_nothing_is_left()

    def test_a_child_with_its_own_session_ends_with_its_task(self):
        self.task("setsid sleep SECONDS & sleep 0.3")
        self.run_as_user("run", "--", "bash", "task.sh", code=0)
        self.check_nothing_is_left()

    def test_a_child_with_its_own_session_ends_when_the_run_is_stopped(self):
        self.task("setsid sleep SECONDS & sleep 30")
        self.run_as_user("run", "--detach", "--name", "st", "--", "bash", "task.sh", code=0)
        self.until_it_runs()
        self.run_as_user("stop", "st-1", code=0)
        self.check_nothing_is_left()

    def test_a_child_with_its_own_session_ends_after_the_death_of_the_runner(self):
        self.task("setsid sleep SECONDS & sleep 1")
        runner = self.start_as_user("run", "--name", "kr", "--", "bash", "task.sh")
        self.until_it_runs()
        runner.kill()
        self.run_as_user("resume", "kr-1", code=0)
        self.check_nothing_is_left()

    def test_a_child_with_another_environment_ends_with_its_task(self):
        self.task(f"{CLEARED} sleep SECONDS & sleep 0.3")
        self.run_as_user("run", "--", "bash", "task.sh", code=0)
        self.check_nothing_is_left()

    def test_a_daemon_that_forks_twice_ends_with_its_task(self):
        self.task("(setsid sh -c 'nohup sleep SECONDS >/dev/null 2>&1 & exit' &) ; sleep 0.3")
        self.run_as_user("run", "--", "bash", "task.sh", code=0)
        self.check_nothing_is_left()

    def test_a_tree_below_a_child_with_its_own_session_ends_with_its_task(self):
        self.task(f"setsid sh -c '{CLEARED} sh -c \"sleep SECONDS & sleep SECONDS\"; wait' & sleep 0.5")
        self.run_as_user("run", "--", "bash", "task.sh", code=0)
        self.check_nothing_is_left()

    def test_a_process_that_replaces_itself_without_end_ends_with_its_task(self):
        self.write("hop.py", "import os, sys, time\nos.setsid()\n"
                             "until = time.monotonic() + 20\nos.close(1); os.close(2)\n"
                             "while time.monotonic() < until:\n  if os.fork() > 0: os._exit(0)\n")
        before = set(os.listdir("/proc"))
        self.run_as_user("run", "--", "sh", "-c", "python3 hop.py & sleep 0.3", code=0)
        hops = []
        for entry in set(os.listdir("/proc")) - before:
            try:
                if entry.isdigit() and b"hop.py" in Path(f"/proc/{entry}/cmdline").read_bytes():
                    hops.append(entry)
            except OSError:
                continue
        self.assertEqual(hops, [])

    def test_what_brief_tasks_in_the_runner_leave_ends_with_them(self):
        self.task('[ "$BERTH_PARAM_N" -lt 15 ] || setsid sleep SECONDS >/dev/null 2>&1 & exit 0')
        self.write("sweep.yaml", f"run: sh {self.dir}/task.sh\nparallel: 1\n"
                                 f"params: {{n: {list(range(20))}}}\n")
        self.run_as_user("run", "sweep.yaml", code=0)
        self.check_nothing_is_left()

    def test_the_daemon_of_a_task_that_still_runs_stays(self):
        self.task('if [ "$BERTH_PARAM_N" = 1 ]; then setsid sleep SECONDS & sleep 2; kill -0 $! && touch kept; fi')
        self.write("sweep.yaml", f"run: bash {self.dir}/task.sh\nparams: {{n: [1, 2, 3, 4]}}\nresources: {{cpu: 1}}\n"
                                 "parallel: 2\n")
        self.run_as_user("run", "sweep.yaml", code=0)
        self.assertTrue((self.dir / "kept").exists())
        self.check_nothing_is_left()

    def test_what_a_killed_agent_leaves_ends_before_its_task_starts_again(self):
        self.task("[ -e second ] && exit 0; touch second; setsid sleep SECONDS & sleep 30")
        runner = self.start_as_user("run", "--name", "ag", "--", "bash", "task.sh")
        self.until_it_runs()
        agent, = self.agents()
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(runner.wait(timeout=30), 0)
        self.check_nothing_is_left()

    def interrupted(self):
        """A run whose runner and agent were killed, and which left a process."""
        self.task("setsid sleep SECONDS & sleep 30")
        runner = self.start_as_user("run", "--name", "both", "--", "bash", "task.sh")
        self.until_it_runs()
        runner.kill()
        runner.wait()
        agent, = self.agents()
        os.kill(agent, signal.SIGKILL)
        until(lambda: not alive(agent), "the agent has ended")
        self.assertEqual(len(self.sleepers()), 1)

    def test_what_a_killed_agent_and_runner_leave_ends_with_a_stop(self):
        self.interrupted()
        self.run_as_user("stop", "both-1", code=0)
        self.check_nothing_is_left()

    def holders(self):
        return [holder["label"] for holder in json.loads(self.run_as_user("machine", "--json", code=0).out)["holders"]]

    def test_what_a_killed_agent_and_runner_leave_keeps_its_cores_while_it_lives(self):
        self.interrupted()
        self.assertEqual(self.holders(), ["both-1"])
        machine = json.loads(self.run_as_user("machine", "--json").out)
        other = self.start_as_user("run", "--cpu", str(machine["total"]["cpu"]), "--", "true")
        until(lambda: json.loads(self.run_as_user("machine", "--json").out)["waiting"], "another run waits for the cores")
        self.end_sleepers()
        self.assertEqual(other.wait(timeout=60), 0)
        self.assertEqual(self.holders(), [])

    def test_the_cores_of_a_leftover_are_free_after_a_stop(self):
        self.interrupted()
        self.run_as_user("stop", "both-1", code=0)
        self.check_nothing_is_left()
        self.assertEqual(self.holders(), [])

    def test_a_resume_uses_the_cores_of_what_the_run_left(self):
        self.interrupted()
        self.task("exit 0")
        self.run_as_user("resume", "both-1", code=0)
        self.check_nothing_is_left()
        self.assertEqual(self.holders(), [])

    def test_what_a_killed_agent_and_runner_leave_ends_when_the_run_is_removed(self):
        self.interrupted()
        self.run_as_user("rm", "both-1", code=0)
        self.check_nothing_is_left()

    def failed_flow(self):
        self.write("flow.yaml", "name: f\nsteps:\n  a: {run: 'echo hi > {out.y}; exit 3', out: {y: y.txt}}\n")
        self.run_as_user("run", "flow.yaml", code=1)

    def test_a_shell_that_a_person_opened_in_a_task_survives_a_retry_from_elsewhere(self):
        self.failed_flow()
        shell = self.start_as_user("shell", "f-1/a", "--", "sleep", self.seconds)
        self.until_it_runs()
        self.run_as_user("retry", "f-1", code=1)
        self.assertIsNone(shell.poll())
        self.assertEqual(len(self.sleepers()), 1)

    def test_a_shell_that_a_person_opened_in_a_task_survives_a_retry_within_it(self):
        self.failed_flow()
        done = self.run_as_user("shell", "f-1/a", "--", "sh", "-c",
                                f"cd {self.dir}; {self.house.berth} retry f-1; echo the shell lives", code=0)
        self.assertIn(b"the shell lives", done.out)

    def test_such_a_shell_survives_a_stop_and_a_removal_of_the_run(self):
        self.failed_flow()
        for command in (("resume", "f-1"), ("stop", "f-1"), ("rm", "f-1")):
            if not self.sleepers():
                shell = self.start_as_user("shell", "f-1/a", "--", "sleep", self.seconds)
                self.until_it_runs()
            self.run_as_user(*command)
            self.assertIsNone(shell.poll(), command)

    def test_what_is_started_from_such_a_shell_with_another_environment_survives_a_retry(self):
        self.failed_flow()
        shell = self.start_as_user("shell", "f-1/a", "--", "sh", "-c",
                                   f"env -u BERTH_SHELL sleep {self.seconds}; echo ended")
        self.until_it_runs()
        self.run_as_user("retry", "f-1", code=1)
        self.assertIsNone(shell.poll())
        self.assertEqual(len(self.sleepers()), 1)

    def test_a_run_from_within_such_a_shell_leaves_nothing(self):
        self.failed_flow()
        self.task("setsid sleep SECONDS & sleep 0.3")
        self.run_as_user("shell", "f-1/a", "--", self.house.berth, "run", "--", "bash", f"{self.dir}/task.sh", code=0)
        self.check_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
