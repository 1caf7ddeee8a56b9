#!/usr/bin/python3
"""Other users and worlds that change: planted links, clocks that are set, containers that share the ledger, files
that change without a new time, and texts that try to control a terminal or a spreadsheet."""

import csv
import io
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

from berth_case import BERTH, Case, FlowCase, until

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import berth  # noqa: E402

OTHER_USER = 54321
CORES = len(os.sched_getaffinity(0))
MEBIBYTE = 1 << 20


def can_unshare():
    """Whether this user may make a PID namespace with its own /proc."""
    command = ["unshare", "-p", "-f", "--mount-proc", "true"]
    return shutil.which("unshare") and subprocess.run(command, capture_output=True).returncode == 0


class PlantedLinks(Case):
    """Another user made a symbolic link, before this user writes there, to a file of this user."""

    def setUp(self):
        super().setUp()
        self.victim = self.write("victim", "keep\n")
        self.berth("run", "--name", "a", "--", "true")

    def plant(self, name):
        link = self.dir / name
        link.symlink_to(self.victim)
        os.lchown(link, OTHER_USER, OTHER_USER)
        return link

    @unittest.skipUnless(os.geteuid() == 0, "only root can make links of another user")
    def test_written_files_that_are_links_of_another_user_are_refused(self):
        self.plant("out")
        for command in (("report", "a-1", "-o"), ("metrics", "-o")):
            refused = self.berth(*command, "out", code=3)
            self.assertIn(f"uid {OTHER_USER}", self.one_line(refused))
            self.assertEqual(self.victim.read_text(), "keep\n", command)

    def test_a_link_of_this_user_is_followed(self):
        (self.dir / "mine.md").symlink_to(self.victim)
        self.berth("report", "a-1", "-o", "mine.md")
        self.assertTrue((self.dir / "mine.md").is_symlink())
        self.assertIn("a-1", self.victim.read_text())

    def test_a_link_in_the_place_of_a_dead_task_s_ledger_keeps_its_target(self):
        mine = self.dir / "mine"
        mine.mkdir()
        (mine / "precious").write_text("keep")
        (self.dir / "ledger" / "within.999999.1.1").symlink_to(mine)
        self.berth("run", "--", "true")
        self.assertEqual((mine / "precious").read_text(), "keep")

    def test_a_dead_task_s_ledger_is_removed(self):
        dead = self.dir / "ledger" / "within.999999.1.1"
        dead.mkdir()
        (dead / "0").write_text("x")
        self.berth("run", "--", "true")
        self.assertFalse(dead.exists())

    def test_no_temporary_file_stays_beside_a_report(self):
        self.berth("report", "a-1", "-o", "out.html")
        self.berth("report", "a-1", "-o", "out.html")
        self.assertEqual([name for name in os.listdir(self.dir) if "out" in name], ["out.html"])


@unittest.skipIf(os.environ.get("BERTH_SANITIZE"), "a sanitizer does not run with libfaketime")
@unittest.skipUnless(os.path.exists("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"), "needs libfaketime")
class SetClocks(Case):
    """A study while the machine's wall clock is set."""

    def setUp(self):
        super().setUp()
        self.clock = self.dir / "clock"
        self.set("+0")
        wrapper = self.script("berth", f"""#!/bin/sh
export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1 FAKETIME_TIMESTAMP_FILE={self.clock}
export FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1
exec {BERTH} "$@"
""")
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        os.environ.update(self.house.environment, BERTH_BIN=str(wrapper))

    def set(self, offset):
        self.clock.write_text(offset + "\n")

    def test_study_clock_step(self):
        study = berth.Study({"x": {"min": 0, "max": 1}}, goal="f", samples=1, lease=60)
        self.addCleanup(study.close)
        trial = study.ask()
        self.set("+1d")
        other = berth.load_study(study.name)
        self.addCleanup(other.close)
        self.assertIsNone(other.ask(wait=False), "the holder lives")
        study.tell(trial, 1)
        self.assertEqual([each.state for each in other.trials()], ["done"])

    def test_a_clock_that_is_set_back_returns_the_trial_of_a_dead_holder_after_one_lease(self):
        study = berth.Study({"x": {"min": 0, "max": 1}}, goal="f", samples=1, lease=1)
        trial = study.ask()
        study._pipe._process.kill()
        self.set("-1d")
        other = berth.load_study(study.name)
        self.addCleanup(other.close)
        again = until(lambda: other.ask(wait=False), "the trial comes back", patience_s=20)
        self.assertEqual(again.number, trial.number)


@unittest.skipUnless(can_unshare(), "needs the right to make PID namespaces")
class PidNamespaces(Case):
    """A container, which is a PID namespace here, that shares the ledger, or the whole state directory."""

    def inside(self, *arguments, state="inside", **more):
        command = ["unshare", "-p", "-f", "--kill-child", "--mount-proc", BERTH, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.dir, env={**self.house.environment, "BERTH_DB": str(self.dir / state)},
                                   **more)
        self.house.started.append(process)
        return process

    def ended(self, process):
        out, err = process.communicate(timeout=60)
        return process.returncode, out.decode(), err.decode()

    def held(self):
        return sum(line.startswith("held") for line in (self.dir / "ledger" / str(os.getuid())).read_text().split("\n"))

    def begin_outside(self):
        """Starts a task that uses all cores until the file `go` exists, and waits until the store says that it runs."""
        self.house.start("run", "--name", "a", "--cpu", CORES, "--", "sh", "-c",
                         "touch began; while [ ! -e go ]; do sleep 0.05; done")
        until(lambda: self.house.json("runs")["runs"] and self.house.counts("a-1")["running"] == 1, "the task runs")

    def test_ledger_pid_namespace(self):
        self.begin_outside()
        held = self.held()
        waiting = self.inside("run", "--name", "b", "--cpu", CORES, "--", "touch", "ran")
        ledger = self.dir / "ledger" / str(os.getuid())
        until(lambda: "waiting" in ledger.read_text(), "the run inside waits")
        self.assertFalse((self.dir / "ran").exists())
        self.assertEqual(self.held(), held, "the holder outside has kept its entry")
        (self.dir / "go").touch()
        self.assertEqual(self.ended(waiting)[0], 0)
        self.assertTrue((self.dir / "ran").exists(), "it runs when the cores are free")

    def test_a_holder_inside_keeps_its_cores_from_runs_outside(self):
        first = self.inside("run", "--name", "b", "--cpu", CORES, "--", "sh", "-c",
                            "touch began; while [ ! -e go ]; do sleep 0.05; done")
        until(lambda: (self.dir / "began").exists(), "the task inside runs")
        second = self.house.start("run", "--name", "a", "--cpu", CORES, "--", "touch", "ran")
        until(lambda: self.house.json("machine")["waiting"], "the run outside waits")
        self.assertFalse((self.dir / "ran").exists())
        (self.dir / "go").touch()
        self.assertEqual(self.ended(first)[0], 0)
        self.assertEqual(second.wait(60), 0)

    def test_cores_of_a_killed_container_are_free_outside(self):
        first = self.inside("run", "--name", "b", "--cpu", CORES, "--", "sh", "-c", "touch began; sleep 100")
        until(lambda: (self.dir / "began").exists(), "the task inside runs")
        first.kill()  # --kill-child ends the namespace with it
        self.berth("run", "--cpu", CORES, "--", "true")

    def test_cores_of_a_killed_holder_outside_are_free_inside(self):
        self.house.start("run", "--name", "a", "--cpu", CORES, "--", "sh", "-c", "touch began; sleep 100")
        until(lambda: (self.dir / "began").exists(), "the task outside runs")
        self.house.kill_leftovers()
        code, out, err = self.ended(self.inside("run", "--cpu", CORES, "--", "true"))
        self.assertEqual(code, 0, out + err)

    def test_commands_on_a_shared_state_directory_say_what_to_do(self):
        self.begin_outside()
        code, out, err = self.ended(self.inside("stop", "a-1", state="state"))
        self.assertEqual(code, 3, out + err)
        self.assertIn("another PID namespace", err)
        self.assertIn("berth stop a-1", err)
        for command in (("runs",), ("show", "a-1"), ("why", "a-1")):
            code, out, err = self.ended(self.inside(*command, state="state"))
            self.assertEqual(code, 0, (command, out, err))
            self.assertIn("running", out)
        for command in (("resume", "a-1"), ("retry", "a-1"), ("rm", "a-1")):
            code, out, err = self.ended(self.inside(*command, state="state"))
            self.assertEqual(code, 3, (command, out, err))
            self.assertNotIn("invariant", err)
        self.assertEqual(self.house.json("runs")["runs"][0]["state"], "running")
        (self.dir / "go").touch()
        self.berth("wait", "a-1")

    def test_an_interrupted_run_is_stopped_and_resumed_by_the_first_process_of_a_container(self):
        runner = self.house.start("run", "--name", "a", "--", "sh", "-c",
                                  "touch began; while [ ! -e go ]; do sleep 0.05; done")
        until(lambda: (self.dir / "began").exists(), "the task outside runs")
        runner.kill()
        runner.wait()
        self.house.kill_leftovers()
        code, out, err = self.ended(self.inside("stop", "a-1", state="state"))
        self.assertEqual(code, 0, out + err)
        self.assertIn("stopped", err)
        (self.dir / "go").touch()
        code, out, err = self.ended(self.inside("resume", "a-1", state="state"))
        self.assertEqual(code, 0, out + err)


FLOW = """\
steps:
  count:
    run: wc -c < {in.data} > {out.size} && head -c 1 {in.data} >> {out.size}
    in: {data: %s}
    out: {size: size.txt}
"""


class UnchangedTimes(FlowCase):
    """An input that changes, although its size and times stay the same."""

    def begin(self, data):
        data.write_bytes(b"a" * 2 * MEBIBYTE)
        self.write("flow.yaml", FLOW % data)
        file = open(data, "r+b")
        self.addCleanup(file.close)
        mapping = mmap.mmap(file.fileno(), 0)
        self.addCleanup(mapping.close)
        mapping[0:1] = b"b"  # from now on the page is dirty
        return mapping

    def age(self, data):
        """Waits until the file is so old that its times tell its changes."""
        until(lambda: time.time() - max(data.stat().st_mtime, data.stat().st_ctime) > 2.1, "the file is old")

    def check(self, data):
        mapping = self.begin(data)
        self.age(data)
        self.assertEqual(self.ran(self.run_flow()), ["count"])
        before = data.stat()
        mapping[0:1] = b"c"
        same_times = (before.st_mtime_ns, before.st_ctime_ns) == (data.stat().st_mtime_ns, data.stat().st_ctime_ns)
        self.assertEqual(self.ran(self.run_flow()), ["count"], f"the times are the same: {same_times}")
        self.assertTrue(self.read("size.txt").endswith("c"))
        mapping[0:1] = b"d"
        mapping.close()
        self.assertEqual(self.ran(self.run_flow()), ["count"])
        self.assertTrue(self.read("size.txt").endswith("d"))
        self.assertEqual(self.ran(self.run_flow()), [], "nothing to do")

    def test_a_mapped_file_is_read_again(self):
        self.check(self.dir / "data")

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "needs /dev/shm")
    def test_a_mapped_file_in_memory_is_read_again(self):
        data = Path("/dev/shm") / f"berth-test-{os.getpid()}"
        self.addCleanup(data.unlink)
        self.check(data)

    def test_a_file_that_a_writer_has_open_is_read_again_and_stays_cached(self):
        data = self.dir / "data"
        data.write_bytes(b"a" * 2 * MEBIBYTE)
        self.write("flow.yaml", FLOW % data)
        with open(data, "r+b"):
            self.assertEqual(self.ran(self.run_flow()), ["count"])
            self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.ran(self.run_flow()), [])


ESCAPE = "\x1b]0;owned\x07\x1b[31m"
HOSTILE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f]")


class TerminalEscapes(Case):
    """Escape sequences in what comes from others: file names, parameters, labels, reasons."""

    def check(self, *arguments, code=0):
        finished = self.berth(*arguments, code=code)
        for text in (finished.out.decode(), finished.err.decode()):
            found = HOSTILE.search(text)
            self.assertIsNone(found, (arguments, text[max(0, found.start() - 80):found.end() + 80] if found else ""))
        return finished

    def commands(self, run, task="1"):
        self.check("runs")
        self.check("show", run)
        self.check("show", run, "--csv")
        self.check("show", f"{run}/{task}")
        self.check("why", run)
        self.check("trace", run)
        self.check("report", run, "--format", "md")
        self.check("report", run)
        for command in (("runs",), ("show", run), ("why", run)):
            json.loads(self.check("--json", *command).out)

    def test_in_parameters_and_their_values(self):
        value = f"{ESCAPE}\u202egnp\x9b31m\r"
        self.write("sweep.yaml", json.dumps({
            "run": "test {x} = 1 || exit 3; echo ::berth f=1", "goal": {"metric": "f", "direction": "min"}, "params": {"x": [value, "1"]},
            "allow_failures": True}))
        self.check("run", "--plan", "sweep.yaml")
        self.check("run", "sweep.yaml")
        self.commands("sweep-1")
        shown = self.house.json("show", "sweep-1")["tasks"]
        self.assertIn(value, [task["params"]["x"] for task in shown], "JSON has the value as it is")

    def test_in_file_names_of_flows(self):
        name = f"in{ESCAPE}.txt"
        self.write(name, "x")
        self.write("flow.yaml", json.dumps({"steps": {"copy": {
            "run": "cat {in.a} > {out.b}; false", "in": {"a": name}, "out": {"b": f"out{ESCAPE}.txt"}}}}))
        self.check("run", "--plan", "flow.yaml")
        self.check("run", "flow.yaml", code=1)
        self.commands("flow-1", "copy")
        self.check("show", "flow-1", "--graph")
        self.check("show", "flow-1", "--graph", "dot")

    def test_in_arguments_of_commands_and_in_what_is_missing(self):
        self.check("run", "--name", "a", "--", "sh", "-c", f"false '{ESCAPE}'", code=1)
        self.check("show", f"none{ESCAPE}", code=2)
        self.check("run", f"none{ESCAPE}.yaml", code=2)
        self.check("show", "a-1")
        self.check("report", "a-1", "--format", "md")

    def test_in_labels(self):
        self.check("run", "--label", f"team=a\u202e{ESCAPE}", "--name", "a", "--", "true", code=2)


class Spreadsheets(Case):
    """Cells of `show --csv` that a spreadsheet would take for formulas."""

    def setUp(self):
        super().setUp()
        self.values = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "-3.5e2", "+7", "plain", "\t=1"]
        self.write("sweep.yaml", json.dumps({"run": "true {x}", "params": {"x": self.values}}))
        self.berth("run", "sweep.yaml")

    def cells(self, *options):
        text = self.berth("show", "sweep-1", "--csv", *options).out.decode()
        return [row["params.x"] for row in csv.DictReader(io.StringIO(text))]

    def test_formulas_are_quoted_and_numbers_stay_numbers(self):
        self.assertEqual(self.cells(), ["'=1+1", "'+cmd|' /C calc'!A0", "'-2+3", "'@SUM(A1)", "-3.5e2", "+7", "plain",
                                        "'\t=1"])

    def test_raw_cells_are_as_they_are(self):
        self.assertEqual(self.cells("--raw"), self.values)

    def test_metrics_below_zero_stay_numbers(self):
        self.write("low.yaml", json.dumps({"run": "echo ::berth f=-{x}", "goal": {"metric": "f", "direction": "min"}, "params": {"x": [2]}}))
        self.berth("run", "low.yaml")
        text = self.berth("show", "low-1", "--csv").out.decode()
        self.assertEqual([row["metrics.f"] for row in csv.DictReader(io.StringIO(text))], ["-2"])


class LongReports(Case):
    """A report line that is far too long."""

    def test_a_report_of_megabytes_is_named(self):
        self.berth("run", "--name", "a", "--", "python3", "-c",
                   "print('::berth f=1 ' + 'x' * 5_000_000); print('::berth g=2')")
        why = self.berth("why", "a-1/1").out.decode()
        self.assertIn("at most 64 KiB", why)
        self.assertEqual(self.house.tasks("a-1")[0]["metrics"], {"g": 2})


if __name__ == "__main__":
    unittest.main()
