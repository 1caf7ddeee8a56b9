#!/usr/bin/python3
"""Whether a long queue stays as fast as a short one: a sweep of many tasks of /bin/true, of which the first tenth and the
last are compared (time a task, memory of the runner); and how soon a run of a million tasks, of which all but a few are
recorded as done, goes on, and in how much memory.

    bench/depth.py                          100,000 tasks, and 1,000,000 recorded: half an hour
    bench/depth.py --tasks 3000 --recorded 100000
"""
import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare_spawn

HERE = Path(__file__).resolve().parent
LEFT = 200  # tasks that a recorded run has still to do
RECORD = """
UPDATE task SET state = 'done', token = (SELECT last_token FROM run) + number WHERE state != 'done' AND number <= :done;
INSERT INTO attempt (run_id, task, token, started_ns, ended_ns, exit_code, cause, resources, host, cpu_ms, peak_mem)
  SELECT run_id, number, token, 1700000000000000000 + number, 1700000000001000000 + number, 0, 'ok', '{"cpu":1}', 'host', 1,
         1048576 FROM task AS t WHERE number <= :done AND NOT EXISTS (SELECT 1 FROM attempt AS a WHERE a.task = t.number);
UPDATE task SET state = 'waiting' WHERE number > :done AND state != 'done';
UPDATE run SET last_token = last_token + :done, running = 0, cached = 0, skipped = 0, failed = 0, stopped = 0,
  done = (SELECT COUNT(*) FROM task WHERE state = 'done'), waiting = (SELECT COUNT(*) FROM task WHERE state = 'waiting');
"""


def resident_mb(pid):
    """Now, and at most so far."""
    try:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
        return [int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")]
    except (OSError, KeyError):  # it has ended
        return [0, 0]


class Run:
    """A sweep in a folder of its own."""

    def __init__(self, berth, folder, tasks):
        self.berth, self.folder = berth, Path(folder)
        self.environment = {**os.environ, "BERTH_DB": f"{folder}/state", "BERTH_LEDGER": f"{folder}/ledger"}
        (self.folder / "noop.yaml").write_text(
            compare_spawn.EXPERIMENT.format(tasks=tasks, parallel=2, resources=compare_spawn.FREE))

    def start(self, *words):
        return subprocess.Popen([self.berth, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def database(self):
        return sqlite3.connect(self.folder / "state/berth.db", timeout=60)

    def done(self):
        """How many tasks are recorded as done; 0 where there is no run yet."""
        try:
            with self.database() as database:
                return (database.execute("SELECT done FROM run").fetchone() or [0])[0]
        except sqlite3.OperationalError:
            return 0


def whole(berth, tasks):
    """All of a sweep: µs a task of the first and the last tenth, and the memory early and late."""
    with tempfile.TemporaryDirectory(prefix="berth-depth-") as folder:
        run = Run(berth, folder, tasks)
        process, early, late = run.start("run", "noop.yaml"), 0, 0
        while process.poll() is None:
            time.sleep(0.2)
            late = resident_mb(process.pid)[0] or late
            early = early or (late if run.done() > 0 else 0)
        if process.returncode != 0:
            sys.exit(f"berth run failed: {process.returncode}")
        with run.database() as database:
            ends = [end for end, in database.execute("SELECT ended_ns FROM attempt ORDER BY ended_ns")]
        tenth = tasks // 10
        return {"first_us": (ends[tenth] - ends[0]) / tenth / 1e3, "last_us": (ends[-1] - ends[-1 - tenth]) / tenth / 1e3,
                "early_mb": early, "late_mb": late}


def stop_when(run, process, condition):
    """Waits, then lets the run stop as Ctrl-C does. Seconds until the condition held, and the most memory until then."""
    began, most = time.perf_counter(), 0
    while not condition():
        if process.poll() is not None:
            sys.exit(f"berth ended too soon: {process.returncode}")
        time.sleep(0.05)
    took, most = time.perf_counter() - began, resident_mb(process.pid)[1]
    process.send_signal(signal.SIGINT)
    process.wait()
    return took, most


def recorded(berth, tasks):
    """Of a run that has but a few tasks to do: how long until its start, and its resume, has done one, and in what memory."""
    with tempfile.TemporaryDirectory(prefix="berth-depth-") as folder:
        run = Run(berth, folder, tasks)
        submit_s, submit_mb = stop_when(run, run.start("run", "noop.yaml"), lambda: run.done() > 0)
        with run.database() as database:
            for statement in RECORD.strip().split(";\n"):
                database.execute(statement.rstrip(";"), {"done": tasks - LEFT} if ":done" in statement else {})
        before = run.done()
        resume_s, resume_mb = stop_when(run, run.start("resume", "noop-1"), lambda: run.done() > before)
        return {"submit_s": submit_s, "submit_mb": submit_mb, "resume_s": resume_s, "resume_mb": resume_mb}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100_000, help="that are run")
    parser.add_argument("--recorded", type=int, default=1_000_000, help="of a run that is resumed")
    parser.add_argument("--berth", default=HERE.parent / "build/release/bin/berth", metavar="PATH")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    berth = str(Path(options.berth).resolve())
    found = {}
    if options.recorded:
        found |= recorded(berth, options.recorded)
    if options.tasks:
        found |= whole(berth, options.tasks)
    if options.json:
        print(json.dumps(found))
        return
    if options.recorded:
        print(f"{options.recorded} tasks: the first is done {found['submit_s']:.1f} s after the start "
              f"({found['submit_mb']:.0f} MiB), and with all but {LEFT} recorded {found['resume_s']:.1f} s after a resume "
              f"({found['resume_mb']:.0f} MiB)")
    if options.tasks:
        print(f"{options.tasks} tasks: first tenth {found['first_us']:.0f} µs a task, last {found['last_us']:.0f} "
              f"(ratio {found['last_us'] / found['first_us']:.2f}); memory {found['early_mb']:.0f} MiB early, "
              f"{found['late_mb']:.0f} late")


if __name__ == "__main__":
    main()
