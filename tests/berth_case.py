"""What the end-to-end tests share: a berth of one's own, in a directory of one's own.

BERTH_BIN names the binary. Every process that a test causes carries BERTH_TEST=<its directory> in its
environment, by which what is left of it is found; processes are ended by recorded pid, never by name.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BUILT = Path(__file__).resolve().parent.parent / "build/release/bin/berth"
BERTH = os.path.abspath(os.environ.get("BERTH_BIN", BUILT))
PATIENCE_S = 60  # far more than anything here takes


class Finished:
    """A berth command that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out[-2000:]!r}\nstderr: {self.err[-2000:]!r}"


def alive(pid):
    """Whether a process runs: a zombie, which its parent has yet to ask for, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_with(mark):
    """The pids whose environment holds `mark`, such as BERTH_TEST=/tmp/x."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in environment and int(entry) != os.getpid() and alive(int(entry)):
            found.append(int(entry))
    return found


class House:
    """One state directory and one ledger, and the commands that use them."""

    def __init__(self, path, berth=BERTH, ledger=None):
        self.path = Path(path)
        self.berth = berth
        self.state = self.path / "state"
        self.environment = {**os.environ, "BERTH_DB": str(self.state), "LC_ALL": "C.UTF-8",
                            "BERTH_TEST": str(self.path), "BERTH_LEDGER": str(ledger or self.path / "ledger")}
        for name in ("BERTH_TASK", "BERTH_RUN", "BERTH_RUN_DIR", "BERTH_TOKEN", "BERTH_MACHINE", "BERTH_TOPOLOGY",
                     "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
            self.environment.pop(name, None)  # of a berth that runs these tests
        self.started = []

    def start(self, *arguments, out=subprocess.PIPE, err=subprocess.PIPE, env=None, cwd=None, **more):
        process = subprocess.Popen([self.berth, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, cwd=cwd or self.path,
                                   env={**self.environment, **(env or {})}, **more)
        self.started.append(process)
        return process

    def run(self, *arguments, timeout=3 * PATIENCE_S, **more):
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=timeout)
        return Finished(process.returncode, out or b"", err or b"")

    def json(self, *arguments):
        finished = self.run("--json", *arguments)
        if finished.code != 0:
            raise AssertionError(f"{arguments}: {finished}")
        return json.loads(finished.out)

    def tasks(self, run):
        return self.json("show", run)["tasks"]

    def counts(self, run):
        return self.json("show", run)["run"]["counts"]

    def leftovers(self):
        return processes_with(f"BERTH_TEST={self.path}")

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        self.kill_leftovers()

    def kill_leftovers(self):
        for pid in self.leftovers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def until(condition, what, patience_s=PATIENCE_S):
    """The first true value of condition(); fails when it does not come."""
    deadline = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience_s} s in vain: {what}")
        time.sleep(0.01)


def numbers(path):
    """The whole numbers that tasks have appended to a witness file, line by line."""
    try:
        return [int(line) for line in Path(path).read_text().split("\n")[:-1]]
    except FileNotFoundError:
        return []


class Case(unittest.TestCase):
    """A test with a House, whose processes and files go with it."""

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="berth-test-"))
        self.house = House(self.dir)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(self.house.close)

    def berth(self, *arguments, code=0, **more):
        finished = self.house.run(*arguments, **more)
        self.assertEqual(finished.code, code, f"berth {arguments}: {finished}")
        return finished

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text)
        return path

    def script(self, name, text):
        path = self.write(name, text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def one_line(self, finished):
        """Its standard error, which is exactly one line of berth's."""
        text = finished.err.decode()
        self.assertRegex(text, r"\Aberth: [^\n]+\n\Z", finished)
        self.assertFalse(re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text), finished)
        return text

    def assert_tidy(self):
        """No process of ours lives, and nothing is held of the machine."""
        # An agent whose runner died before it came to it waits for its lease of 30 s.
        until(lambda: not self.house.leftovers(), "no process is left", patience_s=40)
        machine = self.house.json("machine")
        self.assertEqual(machine["holders"] + machine["waiting"], [])

    def limits_held(self, controller):
        """Whether the host lets berth hold tasks to this limit."""
        return controller in self.house.json("machine")["enforced"]


class FlowCase(Case):
    """Flows in the test's own directory, and what their runs did."""

    def read(self, name):
        return (self.dir / name).read_text()

    def run_flow(self, *options, name="flow.yaml", code=0, **more):
        finished = self.berth("--json", "run", name, *options, code=code, **more)
        return json.loads(finished.out)

    def states(self, shown):
        return {task["id"].partition("/")[2]: task["state"] for task in shown["tasks"]}

    def ran(self, shown):
        return sorted(name for name, state in self.states(shown).items() if state == "done")

    def because(self, task):
        return self.house.json("why", task)["because"]

    def assert_tidy(self):
        super().assert_tidy()
        self.assertEqual(list((self.dir / "state/cache/work").iterdir()), [])
