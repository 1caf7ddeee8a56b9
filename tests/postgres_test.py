#!/usr/bin/python3
"""berth on a real PostgreSQL server: flows and sweeps, two runners that share it, a server that is
stopped at once again and again, passwords, and the way there from SQLite.

    postgres_test.py --stops N      # only the stops, N of them
"""

import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from berth_case import Case, House, alive, until
from postgres_server import Server

TRIAL = """#!/bin/sh
echo "$1 $BERTH_RUN:$BERTH_TOKEN" >> "$WITNESS"
sleep "$2"
echo "::berth value=$1"
"""

SWEEP = """run: ./trial {{i}} {pause}
params: {{i: {{min: 1, max: {tasks}, type: int}}}}
resources: {{cpu: 0.5}}
parallel: 2
"""

FLOW = """steps:
  one:
    foreach: {i: [1, 2, 3]}
    run: echo {i} > {out.x}
    out: {x: "out/{index}.txt"}
    resources: {cpu: 0.5}
  all:
    in: {x: one.x}
    run: cat {in.x} > {out.y}
    out: {y: all.txt}
"""


class Shared(Case):
    """A server, and a house whose runs are in its database."""

    settings, auth, password = (), "trust", None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(settings=cls.settings, auth=cls.auth, password=cls.password)
        cls.addClassCleanup(cls.server.close)
        cls.databases = 0

    def setUp(self):
        super().setUp()
        type(self).databases += 1
        self.database = f"d{self.databases}"
        self.server.sql(f"CREATE DATABASE {self.database}")
        self.share(self.house)
        self.script("trial", TRIAL)
        self.witness = self.dir / "witness"

    def share(self, house):
        house.environment |= {"BERTH_DB": self.server.url(self.database), "BERTH_STATE": str(house.state),
                              "WITNESS": str(self.dir / "witness")}

    def another_machine(self, name="elsewhere"):
        """A state directory and a ledger of its own, and the same database."""
        place = self.dir / name
        place.mkdir()
        house = House(place)
        self.share(house)
        self.addCleanup(house.close)
        return house

    def sweep(self, tasks, pause=0.02):
        return self.write("sweep.yaml", SWEEP.format(tasks=tasks, pause=pause))

    def executions(self):
        """How often each trial ran; no token twice."""
        lines = [line.split() for line in self.witness.read_text().splitlines()]
        tokens = [token for _, token in lines]
        self.assertEqual(len(set(tokens)), len(tokens))
        return collections.Counter(int(number) for number, _ in lines)

    def assert_done_once(self, house, run, tasks):
        shown = house.json("show", run)
        self.assertEqual(shown["run"]["state"], "done", shown["run"])
        self.assertEqual(shown["run"]["counts"]["done"], tasks)
        for task in shown["tasks"]:
            self.assertEqual(task["metrics"], {"value": task["params"]["i"]}, task)
        good = self.server.sql("SELECT task, count(*) FROM berth.attempt JOIN berth.run ON id = run_id"
                               f" WHERE name = '{run}' AND cause = 'ok' GROUP BY task", self.database)
        self.assertEqual(len(good), tasks)
        self.assertEqual({count for _, count in good}, {"1"})


class Away(Shared):
    """A server that stands still, or is down, while a run goes on."""

    def processes(self):
        """Of the server: the one that takes connections, and those that it has made."""
        first = int((self.server.data / "postmaster.pid").read_text().split()[0])
        stat = [Path(f"/proc/{pid}/stat") for pid in os.listdir("/proc") if pid.isdigit()]
        children = []
        for path in stat:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if int(path.read_text().rpartition(")")[2].split()[1]) == first:
                    children.append(int(path.parent.name))
        return [first, *children]

    def freeze(self):
        frozen = []

        def thaw():
            while frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(frozen.pop(), signal.SIGCONT)
        self.addCleanup(thaw)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):  # a connection that has just been closed
                os.kill(pid, signal.SIGSTOP)
                frozen.append(pid)
        return thaw

    def begin(self, more=""):
        """A run of two tasks that run until they are told; its messages go to a file."""
        self.write("s.yaml", "run: sh -c 'echo $$ >> $WITNESS; while [ ! -e $WITNESS.go ]; do sleep 0.02; done'\n"
                             f"params: {{i: [1, 2]}}\nresources: {{cpu: 0.5}}\n{more}")
        with open(self.dir / "err", "wb") as err:
            process = self.house.start("run", "s.yaml", err=err)
        until(lambda: self.witness.exists() and len(self.tasks()) == 2, "both run")
        until(lambda: self.house.counts("s-1")["running"] == 2, "that is recorded")
        return process

    def tasks(self):
        return [int(line) for line in self.witness.read_text().split()]

    def said(self):
        return (self.dir / "err").read_text()

    def test_frozen_it_is_named_and_a_stop_is_heard(self):
        process = self.begin()
        thaw = self.freeze()
        place = self.server.url(self.database)
        until(lambda: f"s-1 waits: the store {place}: it does not answer" in self.said(), "the reason is told")
        process.send_signal(signal.SIGTERM)
        until(lambda: not any(map(alive, self.tasks())), "its tasks end at once")
        self.assertEqual(process.wait(30), 130, self.said())
        self.assertIn("stopping, although the store does not answer", self.said())
        self.assertIn("resume it with: berth resume s-1", self.said())
        thaw()
        (self.dir / "witness.go").touch()
        self.berth("resume", "s-1")
        self.assertEqual(self.house.counts("s-1")["done"], 2)
        self.assert_tidy()

    def test_frozen_it_holds_up_no_time_limit_and_what_ends_meanwhile_is_recorded(self):
        process = self.begin("timeout: 4s\non_failure: continue\n")
        thaw = self.freeze()
        until(lambda: "waits: the store" in self.said(), "it is waited for")
        until(lambda: not any(map(alive, self.tasks())), "their time limit is kept")
        thaw()
        self.assertEqual(process.wait(30), 1, self.said())
        causes = {attempt["cause"] for task in self.house.tasks("s-1")
                  for attempt in self.house.json("why", task["id"])["attempts_made"]}
        self.assertEqual(causes, {"time limit"})
        self.assert_tidy()

    def test_down_it_is_named_and_the_run_goes_on_when_it_is_back(self):
        process = self.begin()
        self.server.stop()
        try:
            until(lambda: "s-1 waits: the store" in self.said(), "the reason is told")
            (self.dir / "witness.go").touch()
            until(lambda: not any(map(alive, self.tasks())), "its tasks end")
            self.assertIsNone(process.poll())
        finally:
            self.server.start()
        self.assertEqual(process.wait(60), 0, self.said())
        self.assertEqual(len(self.tasks()), 2, "each ran once")
        self.assert_tidy()

    def test_down_a_stop_is_heard(self):
        process = self.begin()
        self.server.stop()
        try:
            until(lambda: "s-1 waits: the store" in self.said(), "the reason is told")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(30), 130, self.said())
        finally:
            self.server.start()
        (self.dir / "witness.go").touch()
        self.berth("resume", "s-1")
        self.assert_tidy()


class PostgresTest(Shared):
    def test_sweeps_and_flows_run_on_it(self):
        self.berth("run", self.sweep(20, pause=0))
        self.assert_done_once(self.house, "sweep-1", 20)
        self.assertEqual(set(self.executions().values()), {1})
        flow = self.write("flow/flow.yaml", FLOW)
        self.berth("run", flow)
        self.assertEqual((self.dir / "flow/all.txt").read_text(), "1\n2\n3\n")
        self.berth("run", flow)
        self.assertEqual(self.house.counts("flow-2")["cached"], 4)
        self.assertIn(b"value=7", self.berth("logs", "sweep-1/7").out)
        for command in (["runs"], ["show", "flow-1"], ["why", "flow-2/all"], ["top", "--once"], ["machine"], ["cache"]):
            self.berth(*command)
        self.assertFalse((self.house.state / "berth.db").exists())
        self.berth("rm", "sweep-1")
        self.berth("show", "sweep-1", code=2)
        self.assert_tidy()

    def test_a_run_in_the_background_is_stopped_and_goes_on(self):
        run = self.berth("run", "--detach", self.sweep(40, pause=0.05)).out.decode().strip()
        until(lambda: self.house.counts(run)["done"] > 3, "it runs")
        self.berth("stop", run)
        self.berth("resume", run)
        self.assert_done_once(self.house, run, 40)
        self.assert_tidy()

    def test_the_cache_of_another_machine_is_a_miss(self):
        flow = self.write("flow/flow.yaml", FLOW)
        self.berth("run", flow)
        other = self.another_machine()
        self.assertEqual(other.run("run", flow).code, 0)
        self.assertEqual(other.counts("flow-2")["done"], 4)
        self.assertEqual(other.run("run", flow).code, 0)
        self.assertEqual(other.counts("flow-3")["cached"], 4)

    def test_two_runners_share_one_database(self):
        other = self.another_machine()
        sweep = self.sweep(60)
        first, second = self.house.start("run", sweep), other.start("run", sweep)
        for runner in (first, second):
            _, err = runner.communicate(timeout=60)
            self.assertEqual(runner.returncode, 0, err)
        self.assertEqual({run["id"] for run in other.json("runs")["runs"]}, {"sweep-1", "sweep-2"})
        for run in ("sweep-1", "sweep-2"):
            self.assert_done_once(other, run, 60)
        self.assertEqual(set(self.executions().values()), {2})

    def test_a_run_has_one_runner_on_all_machines(self):
        other = self.another_machine()
        runner = self.house.start("run", self.sweep(60, pause=0.2))
        until(lambda: self.witness.exists() and self.house.counts("sweep-1")["done"] > 3, "it runs")
        self.assertEqual(other.json("show", "sweep-1")["run"]["state"], "running")
        for command in ("resume", "rm"):
            refused = other.run(command, "sweep-1")
            self.assertEqual(refused.code, 3, refused)
            self.assertIn(b"is running", refused.err)
        runner.kill()
        runner.wait()
        until(lambda: other.json("show", "sweep-1")["run"]["state"] == "interrupted", "its end is seen")
        self.assertEqual(other.run("resume", "sweep-1").code, 0)
        self.assert_done_once(self.house, "sweep-1", 60)

    @unittest.skipUnless(subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode == 0,
                         "a name of its own is not for us to give")
    def test_from_another_machine_a_run_is_seen_and_not_stopped(self):
        runner = self.house.start("run", self.sweep(200, pause=0.05))
        until(lambda: self.witness.exists() and self.house.counts("sweep-1")["done"] > 3, "it runs")
        elsewhere = ["unshare", "--uts", "sh", "-c", 'hostname far-away && exec "$@"', "sh", self.house.berth]
        environment = {**os.environ, **self.house.environment}
        stop = subprocess.run([*elsewhere, "stop", "sweep-1"], env=environment, capture_output=True, timeout=60)
        self.assertEqual(stop.returncode, 3, stop)
        self.assertIn(b"stop it on that machine", stop.stderr)
        shown = subprocess.run([*elsewhere, "--json", "show", "sweep-1"], env=environment, capture_output=True, timeout=60)
        self.assertEqual(json.loads(shown.stdout)["run"]["state"], "running")
        self.berth("stop", "sweep-1")
        self.assertEqual(runner.wait(60), 3)

    @unittest.skipUnless(subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode == 0,
                         "a name of its own is not for us to give")
    def test_machines_share_a_study(self):
        def start(machine, script):
            words = ["unshare", "--uts", "sh", "-c", f'hostname {machine} && exec "$@"', "sh", "/usr/bin/python3", "-c"]
            process = subprocess.Popen([*words, "import berth\n" + script], stdout=subprocess.PIPE, text=True, env={
                **os.environ, **self.house.environment, "BERTH_BIN": self.house.berth, "BERTH_STATE": str(self.dir / machine),
                "PYTHONPATH": str(Path(__file__).resolve().parent.parent / "python")}, start_new_session=True)
            self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
            return process

        holder = start("lost", "s = berth.Study({'x': {'min': 0, 'max': 1}}, samples=24, lease=1)\n"
                       "print(s.ask().id, s._pipe._process.pid, flush=True)\nimport time; time.sleep(600)")
        held, pid = holder.stdout.readline().split()
        os.kill(int(pid), signal.SIGSTOP)  # as a machine that went away with all that it had
        loop = ("for t in berth.load_study('study-1'):\n  s = t.study\n  s.tell(t, t.params.x)\n  print(t.id)\nprint(s.name)")
        workers = [start(f"box{n}", loop) for n in range(3)]
        said = [line.strip() for worker in workers for line in worker.communicate(timeout=60)[0].splitlines()]
        os.kill(int(pid), signal.SIGKILL)
        self.assertEqual(sorted(said), sorted([f"study-1/{n}" for n in range(1, 25)] + ["study-1"] * 3))
        tasks = self.house.json("show", "study-1")["tasks"]
        self.assertEqual([(t["state"], t["attempts"]) for t in tasks],
                         [("done", 2 if t["id"] == held else 1) for t in tasks])
        self.assertLessEqual({t["host"] for t in tasks}, {"box0", "box1", "box2"})

    def test_a_runner_that_was_cut_off_and_overtaken_is_refused(self):
        other = self.another_machine()
        runner = self.house.start("run", self.sweep(60, pause=0.2))
        until(lambda: self.witness.exists() and self.house.counts("sweep-1")["done"] > 3, "it runs")
        runner.send_signal(signal.SIGSTOP)
        self.server.sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'berth'")
        self.assertEqual(other.run("resume", "sweep-1").code, 0)
        before = other.json("show", "sweep-1")
        runner.send_signal(signal.SIGCONT)
        _, err = runner.communicate(timeout=60)
        self.assertEqual(runner.returncode, 3, err)
        self.assertRegex(err, b"another (runner|process)")
        self.assertEqual(other.json("show", "sweep-1"), before)
        self.assert_done_once(other, "sweep-1", 60)
        self.assert_tidy()

    def test_a_server_that_is_away_is_told_of_and_nothing_else(self):
        self.berth("run", "--", "true")
        self.server.stop()
        try:
            self.house.environment["BERTH_DB"] += "?connect_timeout=2"
            began = time.monotonic()
            waiting = self.house.start("runs")
            time.sleep(1)
            self.assertIsNone(waiting.poll(), "it is waited for")
        finally:
            self.server.start()
        out, err = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0, err)
        self.assertIn(b"true-1", out)
        self.assertLess(time.monotonic() - began, 60)

    def test_one_state_directory_has_one_store(self):
        own = self.dir / "own"
        self.berth("run", "--", "true", env={"BERTH_DB": str(own)})
        refused = self.berth("runs", env={"BERTH_STATE": str(own)}, code=2)
        self.assertIn("berth migrate", self.one_line(refused))
        self.berth("runs")
        refused = self.berth("runs", env={"BERTH_DB": str(self.house.state)}, code=2)
        self.assertIn(f"/{self.database}", self.one_line(refused))
        refused = self.berth("runs", env={"BERTH_DB": self.server.url("postgres")}, code=2)
        self.assertIn("BERTH_STATE", self.one_line(refused))


class MigrateTest(Shared):
    """From a state directory's own file to the database; self.sqlite is the way things were before."""

    def setUp(self):
        super().setUp()
        self.sqlite = {"BERTH_DB": str(self.house.state)}
        self.url = self.server.url(self.database)

    def old(self, *arguments, code=0):
        return self.berth(*arguments, code=code, env=self.sqlite)

    def fill(self):
        self.old("run", self.sweep(10, pause=0))
        self.old("run", self.write("flow/flow.yaml", FLOW))
        self.old("run", "--", "false", code=1)

    def runs_there(self):
        return self.server.sql("SELECT name FROM berth.run ORDER BY id", self.database)

    def test_all_runs_are_taken_along(self):
        self.fill()
        self.old("run", "--name", "gone", "--", "true")
        self.old("rm", "gone-1")
        asked = [["--json", "runs"], ["--json", "show", "sweep-1"], ["--json", "show", "flow-1"],
                 ["--json", "why", "false-1/1"], ["logs", "sweep-1"], ["--json", "cache"]]
        before = [self.old(*command).out for command in asked]
        moved = self.old("--json", "migrate", "--to", self.url)
        self.assertEqual(json.loads(moved.out)["rows"]["attempt"], 15)
        self.assertIn(b"attempt: 15", moved.err)
        self.assertEqual([self.berth(*command).out for command in asked], before)
        self.berth("run", self.dir / "flow/flow.yaml")
        self.assertEqual(self.house.counts("flow-2")["cached"], 4)
        self.berth("run", "--name", "gone", "--", "true")
        self.assertEqual([run["id"] for run in self.house.json("runs")["runs"]][-2:], ["flow-2", "gone-2"])
        self.assertIn("BERTH_DB", self.one_line(self.old("runs", code=2)))
        again = self.old("migrate", "--to", self.url)
        self.assertIn(b"was already in", again.out)
        self.server.sql("CREATE DATABASE second")
        elsewhere = self.old("migrate", "--to", self.server.url("second"), code=2)
        self.assertIn("permanently", self.one_line(elsewhere))

    def test_a_run_that_is_driven_stays(self):
        runner = self.house.start("run", self.sweep(40, pause=0.05), env=self.sqlite)
        until(lambda: len(self.witness.read_text().split()) > 4 if self.witness.exists() else False, "it runs")
        refused = self.old("migrate", "--to", self.url, code=3)
        self.assertIn("sweep-1 is running", self.one_line(refused))
        self.assertEqual(self.runs_there(), [])
        self.assertEqual(runner.wait(60), 0)
        self.old("migrate", "--to", self.url)
        self.assert_done_once(self.house, "sweep-1", 40)

    def test_a_migration_that_is_killed_has_moved_nothing(self):
        self.fill()
        self.berth("runs", env={"BERTH_STATE": str(self.dir / "other")})  # makes the tables
        release = self.server.hold("LOCK TABLE berth.metric", self.database)
        self.addCleanup(release)
        migration = self.house.start("migrate", "--to", self.url, env=self.sqlite)
        until(lambda: self.server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
              != [["0"]], "it is in the middle")
        migration.kill()
        migration.wait()
        release()
        self.assertEqual(self.runs_there(), [])
        self.old("run", "--", "true")
        self.old("migrate", "--to", self.url)
        self.assertEqual(self.runs_there(), [["sweep-1"], ["flow-1"], ["false-1"], ["true-1"]])

    def test_a_database_with_other_runs_is_refused(self):
        self.fill()
        self.berth("run", "--", "true", env={"BERTH_STATE": str(self.dir / "other")})
        refused = self.old("migrate", "--to", self.url, code=2)
        self.assertIn("it has runs already", self.one_line(refused))
        self.assertEqual(self.runs_there(), [["true-1"]])
        self.old("runs")

    def test_a_password_among_the_arguments_is_refused(self):
        self.fill()
        refused = self.old("migrate", "--to", self.server.url(self.database, "ada:s3cret"), code=2)
        self.assertNotIn("s3cret", self.one_line(refused))


class StopsTest(Shared):
    """The server is stopped without a word, in the middle of whatever it does, and started again."""

    stops = 4
    asks_for_s = 8  # a command asks for so long, then says that the server is away
    away_s = 0  # the longest that it was

    def was_acknowledged(self, submitting, seed):
        """Whether a command said that it is done: all do, unless the server was away for longer than they ask."""
        _, err = submitting.communicate(timeout=120)
        if submitting.returncode == 3 and b"refused" in err and b"(tried for" in err and self.away_s >= self.asks_for_s:
            return False
        self.assertEqual(submitting.returncode, 0, (seed, err))
        return True

    def test_stops_under_load_lose_nothing_and_repeat_nothing(self):
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        tasks = 150 * self.stops
        began = time.monotonic()
        runner = self.house.start("run", self.sweep(tasks))
        other = self.another_machine()
        until(lambda: self.witness.exists(), "it runs")
        acknowledged, submitting = 0, None
        for _ in range(self.stops):
            deadline = time.monotonic() + rng.uniform(0.05, 0.8)
            while time.monotonic() < deadline:  # single commands come and go all the time
                submitting = submitting or other.start("run", "--name", "single", "--", "true")
                if submitting.poll() is not None:
                    acknowledged, submitting = acknowledged + self.was_acknowledged(submitting, seed), None
                time.sleep(0.005)
            stopped = time.monotonic()
            self.server.restart("immediate")
            self.away_s = max(self.away_s, time.monotonic() - stopped)
            self.assertIsNone(runner.poll(), (seed, "it ended during the stops"))
        if submitting:
            acknowledged += self.was_acknowledged(submitting, seed)
        _, err = runner.communicate(timeout=600)
        self.assertEqual(runner.returncode, 0, (seed, err))
        self.assert_done_once(self.house, "sweep-1", tasks)
        self.assertEqual(self.executions(), {i: 1 for i in range(1, tasks + 1)}, seed)
        singles = [run for run in other.json("runs")["runs"] if run["name"] == "single"]
        self.assertEqual(len(singles), acknowledged, seed)
        self.assertEqual({run["state"] for run in singles}, {"done"} if singles else set())
        self.assert_tidy()
        print(f"{self.stops} immediate stops: {tasks} tasks done once each, {acknowledged} commands acknowledged and "
              f"there, {time.monotonic() - began:.1f} s", file=sys.stderr)


class PasswordTest(Shared):
    auth, password = "scram-sha-256", "s3cret"

    @classmethod
    def setUpClass(cls):
        os.environ["PGPASSWORD"] = cls.password  # of psql, which makes the databases
        cls.addClassCleanup(os.environ.pop, "PGPASSWORD")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.house.environment.pop("PGPASSWORD", None)

    def test_a_password_comes_from_a_file(self):
        refused = self.berth("runs", code=3)
        self.assertIn("password", self.one_line(refused))
        file = self.write("pgpass", f"*:*:*:ada:{self.password}\n")
        file.chmod(0o600)
        self.berth("run", "--", "true", env={"PGPASSFILE": str(file)})
        file.write_text("*:*:*:ada:wrong\n")
        refused = self.berth("runs", env={"PGPASSFILE": str(file)}, code=3)
        self.assertIn("password authentication failed", self.one_line(refused))

    def test_a_password_in_the_url_is_shown_nowhere(self):
        url = self.server.url(self.database, "ada:" + self.password)
        log = self.dir / "log.json"
        env = {"BERTH_DB": url, "BERTH_LOG": str(log)}
        ran = self.berth("run", "--", "sh", "-c", "env", env=env)
        shown = [ran.out + ran.err, log.read_bytes()]
        for command in (["runs"], ["show", "sh-1"], ["--json", "show", "sh-1"], ["why", "sh-1/1"], ["logs", "sh-1"]):
            done = self.berth(*command, env=env)
            shown.append(done.out + done.err)
        wrong = self.berth("runs", env={"BERTH_DB": url.replace("s3cret", "t0psecret")}, code=3)
        shown.append(wrong.err)
        for path in self.house.state.rglob("*"):
            if path.is_file():
                shown.append(path.read_bytes())
        for text in shown:
            self.assertNotRegex(text, b"s3cret|t0psecret")
        stored = self.server.sql("SELECT string_agg(t::text, '') FROM berth.run_spec t", self.database)
        self.assertNotIn("s3cret", str(stored))


if __name__ == "__main__":
    if "--stops" in sys.argv:
        at = sys.argv.index("--stops")
        StopsTest.stops = int(sys.argv[at + 1])
        sys.argv[at:at + 2] = ["StopsTest"]
    unittest.main()
