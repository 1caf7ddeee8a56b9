#!/usr/bin/python3
"""berth rm and berth prune: which runs they remove, and which they leave because something of them is alive."""

import json
import os
import signal
import sqlite3
import subprocess
import unittest
from contextlib import closing
from pathlib import Path

from berth_case import BERTH, Case, alive, until
from terminal import OnTerminal

ROOT = Path(__file__).resolve().parent.parent
LONG = "name: s\nrun: 'echo $$ >> pids; while [ ! -e go ]; do sleep 0.05; done'\nparams: {i: [1]}\n"
HOLDER = """
import sys, berth
study = berth.Study(space={"x": {"min": 0, "max": 1}}, goal="f", direction="min")
study.ask()
print(study.name, flush=True)
sys.stdin.readline()
study.close()
"""
MONTHS = 100 * 24 * 3600  # in seconds


class Removal(Case):
    def runs(self):
        return [run["id"] for run in self.house.json("runs")["runs"]]

    def interrupted(self):
        """A run of one task whose runner was killed. Returns the pid of the task."""
        self.write("s.yaml", LONG)
        (self.dir / "pids").unlink(missing_ok=True)
        run = self.berth("run", "--detach", "s.yaml").out.decode().strip()
        until(lambda: self.house.counts(run)["running"] == 1 and (self.dir / "pids").exists(), "it runs")
        runner = self.house.json("show", run)["run"]["runner"]
        os.kill(runner, signal.SIGKILL)
        until(lambda: not alive(runner), "the runner is dead")
        return int((self.dir / "pids").read_text())

    def end_agents(self):
        for pid in self.house.leftovers():
            if b"berth-agent" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        until(lambda: not self.house.leftovers(), "the agent and its task are dead")

    def make_old(self, *columns):
        """Moves times in the store into the past; the run was created a hundred days ago in any case."""
        with closing(sqlite3.connect(self.house.state / "berth.db")) as store:
            for table, column in (("run", "created_ns"), *columns):
                store.execute(f"UPDATE {table} SET {column} = {column} - {MONTHS} * 1000000000")
            store.commit()

    def make_files_old(self):
        for folder, _, files in os.walk(self.house.state / "runs"):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                old = os.stat(path).st_mtime - MONTHS
                os.utime(path, (old, old))


class PruneOfARunWhoseRunnerDied(Removal):
    def test_a_living_worker_keeps_the_run(self):
        """prune_takes_live_run"""
        task = self.interrupted()
        self.make_old(("attempt", "started_ns"), ("run", "started_ns"))
        self.make_files_old()
        done = self.berth("prune", "--older-than", "30d")
        self.assertIn(b"s-1 is left: 1 worker of the run on this machine is alive; to end that: berth stop s-1", done.err)
        self.assertTrue(alive(task))
        self.assertEqual(self.runs(), ["s-1"])
        dry = self.berth("prune", "--older-than", "30d", "--dry-run", "--json")
        self.assertEqual(json.loads(dry.out)["would_remove"], [])

    def test_the_age_counts_from_the_last_attempt(self):
        self.interrupted()
        self.end_agents()
        self.make_old()
        self.make_files_old()
        self.berth("prune", "--older-than", "30d")
        self.assertEqual(self.runs(), ["s-1"], "its task started a moment ago")

    def test_the_age_counts_from_the_last_output(self):
        self.interrupted()
        self.end_agents()
        self.make_old(("attempt", "started_ns"), ("run", "started_ns"))
        self.berth("prune", "--older-than", "30d")
        self.assertEqual(self.runs(), ["s-1"], "its files were written a moment ago")

    def test_a_run_without_any_activity_for_months_is_removed(self):
        self.interrupted()
        self.end_agents()
        self.make_old(("attempt", "started_ns"), ("run", "started_ns"))
        self.make_files_old()
        self.berth("prune", "--older-than", "30d")
        self.assertEqual(self.runs(), [])


class PruneOfARunThatEnded(Removal):
    def test_an_allocation_that_is_kept_for_a_retry_keeps_the_run(self):
        self.berth("run", "--name", "r", "--retain", "1m", "--", "false", code=1)
        self.berth("prune", "--older-than", "0s")
        self.assertEqual(self.runs(), ["r-1"])
        self.berth("stop", "r-1")
        self.berth("prune", "--older-than", "0s")
        self.assertEqual(self.runs(), [])

    def test_a_claimed_trial_keeps_a_stopped_study(self):
        holder = subprocess.Popen(["/usr/bin/python3", "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env={**self.house.environment, "BERTH_BIN": BERTH, "PYTHONPATH": str(ROOT / "python")})
        self.addCleanup(lambda: (holder.kill(), holder.wait(), holder.stdin.close(), holder.stdout.close()))
        study = holder.stdout.readline().decode().strip()
        self.berth("stop", study)
        done = self.berth("prune", "--older-than", "0s")
        self.assertIn(b"1 of its trials is claimed by a process", done.err)
        self.assertEqual(self.runs(), [study])
        holder.communicate(b"\n", 60)  # it releases the trial
        self.berth("prune", "--older-than", "0s")
        self.assertEqual(self.runs(), [])


class RemovalOfARunWhoseRunnerDied(Removal):
    def test_a_living_worker_is_left_and_the_way_to_end_it_is_named(self):
        task = self.interrupted()
        refused = self.one_line(self.berth("rm", "s-1", code=3))
        self.assertIn("berth stop s-1", refused)
        self.assertIn("berth rm --force s-1", refused)
        self.assertTrue(alive(task))
        self.assertEqual(self.runs(), ["s-1"])

    def test_force_ends_it_and_removes_the_run(self):
        task = self.interrupted()
        self.berth("rm", "--force", "s-1")
        until(lambda: not alive(task), "the task is ended")
        self.assertEqual(self.runs(), [])
        self.assert_tidy()

    def test_none_of_several_runs_is_removed_where_one_is_alive(self):
        self.interrupted()
        self.berth("run", "--", "true")
        self.berth("rm", "true-1", "s-1", code=3)
        self.assertEqual(self.runs(), ["s-1", "true-1"])

    def test_on_a_terminal_the_person_is_asked(self):
        task = self.interrupted()
        for answer, code, left in (("n", 3, ["s-1"]), ("y", 0, [])):
            screen = OnTerminal([BERTH, "rm", "s-1"], self.house.environment, columns=200, cwd=self.dir)
            self.addCleanup(screen.close)
            screen.shows("End that and remove the run? [y/N]")
            screen.type(answer + "\n")
            self.assertEqual((screen.wait(), self.runs()), (code, left))
        until(lambda: not alive(task), "the task is ended")

    def test_what_is_dead_needs_no_force(self):
        self.interrupted()
        self.end_agents()
        self.berth("rm", "s-1")
        self.assertEqual(self.runs(), [])


class TheStoreShrinks(Removal):
    """The file of the store, after the removal of a large run."""

    def setUp(self):
        super().setUp()
        self.database = self.house.state / "berth.db"

    def large(self, before="PRAGMA user_version"):
        """A run whose metrics take megabytes, next to a small one."""
        for _ in range(2):
            self.berth("run", "--", "true")
        with closing(sqlite3.connect(self.database, isolation_level=None)) as store:
            for statement in before.split(";"):
                store.execute(statement)
            store.execute("INSERT INTO metric (run_id, task, sequence, token, name, value, at_ns) WITH RECURSIVE n(i) AS"
                          " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
                          " SELECT 1, 1, i, 1, 'accuracy of the model', i, i FROM n")
        self.assertGreater(self.database.stat().st_size, 2_000_000)

    def check_is_small(self):
        self.assertLess(self.database.stat().st_size, 300_000)
        self.assertIn(b"true-2", self.berth("runs").out)
        with closing(sqlite3.connect(self.database)) as store:
            self.assertEqual(store.execute("PRAGMA auto_vacuum").fetchone(), (2,))
            self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def test_after_rm(self):
        self.large()
        self.berth("rm", "true-1")
        self.check_is_small()

    def test_after_prune(self):
        self.large()
        self.berth("prune", "--older-than", "0s", "--keep", "1")
        self.check_is_small()

    def test_the_file_of_an_earlier_berth_too(self):
        self.large("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM; PRAGMA journal_mode = WAL")
        self.berth("rm", "true-1")
        self.check_is_small()

    def test_while_another_run_is_driven(self):
        self.large()
        self.write("s.yaml", LONG)
        runner = self.house.start("run", "s.yaml")
        until((self.dir / "pids").exists, "it runs")
        self.berth("rm", "true-1")
        self.write("go", "")
        self.assertEqual(runner.wait(60), 0)
        self.check_is_small()


if __name__ == "__main__":
    unittest.main()
