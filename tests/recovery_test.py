#!/usr/bin/python3
"""kill -9 of berth: what a following `berth resume` finds, ends and goes on with."""

import os
import shutil
import signal
import sqlite3
import unittest

from berth_case import Case, alive, numbers, until

ESCAPES = ("sh -c", "setsid sh -c", "nohup setsid sh -c", "env -i setsid sh -c")


class Killed(Case):
    def start_and_kill(self, text, task=1, agents=True):
        """Starts k.yaml and kills berth, and its agents, once a task is ready and known to run: the
        start of a task is made durable together with others, up to 20 ms late."""
        self.write("k.yaml", text)
        process = self.house.start("run", "k.yaml")
        until(lambda: (self.dir / "ready").exists(), "a task that is ready")
        until(lambda: self.house.tasks("k-1")[task - 1]["state"] == "running", "a task known to run")
        holders = [holder["pid"] for holder in self.house.json("machine")["holders"]]
        process.kill()
        process.wait()
        for pid in holders if agents else []:
            if pid != process.pid:
                os.kill(pid, signal.SIGKILL)
        until(lambda: not agents or not self.house.json("machine")["holders"], "nothing is allocated")

    def test_the_death_of_the_runner_alone_costs_nothing(self):
        self.start_and_kill("run: touch ready; until test -e go; do sleep 0.02; done\n", agents=False)
        self.assertEqual(len(self.house.json("machine")["holders"]), 1)
        self.write("go", "")
        self.berth("resume", "k-1")
        self.assertEqual([a["cause"] for a in self.house.json("why", "k-1/1")["attempts_made"]], ["ok"])
        self.assert_tidy()

    def test_stop_ends_what_a_dead_runner_left(self):
        self.start_and_kill("run: touch ready; test -e go || exec sleep 60\n", agents=False)
        self.berth("stop", "k-1")
        self.assertEqual(self.house.json("runs")["runs"][0]["state"], "stopped")
        self.assert_tidy()
        self.write("go", "")
        self.berth("resume", "k-1")
        causes = [a["cause"] for a in self.house.json("why", "k-1/1")["attempts_made"]]
        self.assertEqual(causes, ["stopped", "ok"])

    def test_interrupted_is_told(self):
        self.start_and_kill("run: touch ready; test -e go || exec sleep 60\n")
        self.assertEqual(self.house.json("runs")["runs"][0]["state"], "interrupted")
        self.assertIn(b"berth resume k-1", self.berth("show", "k-1").out)
        self.assertIn(b"berth resume k-1", self.berth("why", "k-1/1").out)
        self.assertEqual(self.house.json("machine")["holders"], [])
        self.write("go", "")
        self.berth("resume", "k-1")
        why = self.house.json("why", "k-1/1")
        self.assertEqual([a["cause"] for a in why["attempts_made"]], ["runner lost", "ok"])

    def test_no_process_of_the_old_runner_survives_resume(self):
        spawn = "\n".join(f"  {escape} 'echo $$ > pid{i}; exec sleep 300' >/dev/null 2>&1 &"
                          for i, escape in enumerate(ESCAPES))
        self.start_and_kill("run: |\n  test -e go && exit\n" + spawn +
                            f"\n  until [ \"$(cat pid* | wc -l)\" = {len(ESCAPES)} ]; do sleep 0.01; done\n"
                            "  touch ready; wait\n")
        pids = [numbers(self.dir / f"pid{i}")[0] for i in range(len(ESCAPES))]
        self.addCleanup(lambda: [os.kill(pid, 9) for pid in pids if alive(pid)])
        self.write("go", "")
        self.berth("resume", "k-1")
        grouped = self.limits_held("pids")
        for pid, escape in zip(pids, ESCAPES):
            if "env -i" not in escape or grouped:
                self.assertFalse(alive(pid), f"{escape} survived")
        self.assert_tidy()

    def test_lost_attempts_take_no_retry(self):
        self.start_and_kill("run: touch ready; test -e go || exec sleep 60; false\nretries: 1\n")
        self.write("go", "")
        self.berth("resume", "k-1", code=1)
        causes = [a["cause"] for a in self.house.json("why", "k-1/1")["attempts_made"]]
        self.assertEqual(causes, ["runner lost", "exit 1", "exit 1"])

    def test_done_stays_done(self):
        self.start_and_kill("run: echo {i} >> done; test {i} = 1 && exit; touch ready; test -e go ||"
                            " exec sleep 60\nparams: {i: [1, 2, 3]}\nparallel: 1\n", task=2)
        self.assertEqual(self.house.counts("k-1")["done"], 1, "the first, recorded with the second's start")
        self.write("go", "")
        self.berth("resume", "k-1")
        self.assertEqual(sorted(numbers(self.dir / "done")), [1, 2, 2, 3])
        self.assertEqual([t["attempts"] for t in self.house.tasks("k-1")], [1, 2, 1])

    def test_a_state_that_is_gone_ends_the_run(self):
        def remove():
            while self.house.state.exists():  # the agent may write into it meanwhile
                shutil.rmtree(self.house.state, ignore_errors=True)

        gone = {"removed": remove,
                "replaced": lambda: (self.house.state.rename(self.dir / "old"), self.berth("runs"))}
        for how, spoil in gone.items():
            with self.subTest(how):
                self.write("k.yaml", f"run: 'touch {how}{{i}}; until test -e {how}; do sleep 0.02; done'\n"
                           "params: {i: [1, 2, 3]}\nresources: {cpu: 0.1}\nparallel: 2\n")
                process = self.house.start("run", "k.yaml")
                until((self.dir / f"{how}1").exists, "it runs")
                spoil()
                self.write(how, "")
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 3, err)
                self.assertNotIn(b"done", out, "what no store holds")
                self.assertRegex(err.decode(), r"berth: [^\n]*removed or replaced[^\n]*\n\Z")
                self.assert_tidy()

    def test_output_before_the_death_is_kept(self):
        self.start_and_kill("run: echo early; sleep 0.1; touch ready; test -e go || exec sleep 60\n")
        self.write("go", "")
        self.berth("resume", "k-1")
        self.assertEqual(self.berth("logs", "k-1/1").out, b"early\n" * 2)


class Damage(Case):
    """A store that is hurt is refused with its name, and nothing of it is touched."""

    def setUp(self):
        super().setUp()
        self.berth("run", "--", "true")
        self.database = self.house.state / "berth.db"

    def refused(self, *arguments):
        before = self.database.read_bytes()
        finished = self.house.run(*arguments)
        self.assertIn(finished.code, (2, 3), finished)
        self.assertIn("berth.db", self.one_line(finished))
        self.assertEqual(self.database.read_bytes(), before)

    def test_no_database(self):
        for content in (b"not a database at all, but some text\n" * 200, os.urandom(50_000), b"xy"):
            self.database.write_bytes(content)
            for command in (("runs",), ("run", "--", "true"), ("resume", "true-1")):
                self.refused(*command)

    def test_truncated(self):
        whole = self.database.read_bytes()
        for length in (100, 4096, len(whole) // 2 + 7):
            self.database.write_bytes(whole[:length])
            self.refused("runs")

    def test_a_page_of_noise(self):
        whole = self.database.read_bytes()
        for page in range(1, len(whole) // 4096):
            self.database.write_bytes(whole[:page * 4096] + os.urandom(4096) + whole[(page + 1) * 4096:])
            for command in (("runs",), ("show", "true-1"), ("run", "--", "true")):
                finished = self.house.run(*command)
                self.assertIn(finished.code, (0, 2, 3), finished)
                if finished.code:
                    self.one_line(finished)

    def test_another_programs(self):
        self.database.unlink()
        other = sqlite3.connect(self.database)
        other.execute("CREATE TABLE precious (x)")
        other.close()
        self.refused("run", "--", "true")

    def test_of_a_newer_berth(self):
        store = sqlite3.connect(self.database)
        store.execute("PRAGMA user_version = 999")
        store.close()
        self.refused("runs")


if __name__ == "__main__":
    unittest.main()
