#!/usr/bin/python3
"""Runs within a test machine, wherever limits are to be looked at: in a login, a service, a container.

`limits.py DIR` makes a few runs in DIR and writes what came of them to DIR/found.json; the test that started
it judges. The other words are what the tasks of these runs do."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

BERTH = "/usr/local/bin/berth"
RUN_S = 120  # a run of 25 s on a slow day of an emulated machine
GROUPS = Path("/sys/fs/cgroup")


class House:
    """Runs of one's own in one directory; their processes carry its name."""

    def __init__(self, path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.environment = {**os.environ, "BERTH_DB": str(path / "state"), "BERTH_LEDGER": str(path / "ledger"),
                            "BERTH_TEST": str(path), "LC_ALL": "C.UTF-8"}

    def berth(self, *arguments):
        """(exit code, stdout, stderr); a command that hangs is killed and its code is None."""
        with open(self.path / "out", "wb") as out, open(self.path / "err", "wb") as err:
            process = subprocess.Popen([BERTH, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       cwd=self.path, env=self.environment)
            try:
                code = process.wait(RUN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = None
                self.end_all()
        return code, (self.path / "out").read_text(), (self.path / "err").read_text()

    def run(self, name, more=(), **program):
        (self.path / f"{name}.yaml").write_text(json.dumps(program))
        code, _, err = self.berth("run", *more, f"{name}.yaml")
        return {"code": code, "said": err[-3000:], "advisory": "advisory" in err, "tasks": self.tasks(f"{name}-1")}

    def tasks(self, run):
        """What is recorded of each task, by its parameter or number, with its last attempt."""
        shown = json.loads(self.berth("--json", "show", run)[1] or '{"tasks": []}')["tasks"]
        found = {}
        for task in shown[:4]:  # of a run of hundreds the first few are enough
            why = json.loads(self.berth("--json", "why", task["id"])[1] or "{}")
            last = (why.get("attempts_made") or [{}])[-1]
            found["".join(map(str, task["params"].values())) or task["id"]] = {
                "state": task["state"], "cause": task["cause"], **last}
        found["states"] = sorted({task["state"] for task in shown})
        return found

    def end_all(self):
        mark = f"BERTH_TEST={self.path}".encode()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0") and int(entry) != os.getpid():
                    os.kill(int(entry), signal.SIGKILL)


def own_group():
    line = next((line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), "0::/")
    return line[3:]


def group_type():
    try:
        return (GROUPS / own_group().lstrip("/") / "cgroup.type").read_text().strip()
    except OSError:
        return None


def groups_left():
    """Berth's groups that are still there, each with whether a process is in it."""
    left = []
    for folder, names, _ in os.walk(GROUPS):
        for name in names:
            if name.startswith("berth."):
                with contextlib.suppress(OSError):
                    events = Path(folder, name, "cgroup.events").read_text()
                    left.append([os.path.join(folder, name), "populated 1" in events])
    return left


def probe(house):
    """What `berth machine --probe` says; None of a berth that does not know it."""
    code, out, _ = house.berth("--json", "machine", "--probe")
    return json.loads(out) if code == 0 else None


def look(path):
    house = House(path)
    before = groups_left()  # of a run that this is a task of
    me = [sys.executable, os.path.abspath(__file__)]
    found = {"group": own_group(), "type_before": group_type(), "uid": os.getuid(), "probe": probe(house)}
    found["memory"] = house.run("memory", run=[*me, "{what}"], params={"what": ["hog", "child", "neighbour"]},
                                resources={"cpu": 0.6, "mem": "50M"}, timeout="90s")
    found["cpu"] = house.run("cpu", run=[*me, "spin"], resources={"cpu": 0.5}, timeout="90s")
    found["short"] = house.run("short", run=["/bin/true", "{x}"], params={"x": list(range(200))},
                               resources={"cpu": 0.2, "mem": "20M"}, timeout="90s")
    found["logs"] = house.berth("logs", "memory-1")[1][-2000:]
    deadline = time.monotonic() + 20  # an agent ends a moment after its run
    while (left := [one for one in groups_left() if one not in before]) and time.monotonic() < deadline:
        time.sleep(0.5)
    found["left"], found["type_after"] = left, group_type()
    house.end_all()
    part = path / "found.part"
    part.write_text(json.dumps(found))
    part.rename(path / "found.json")


# What the tasks do.

def hog():
    """Takes 200 MB once the neighbour is there, a megabyte at a time."""
    deadline = time.monotonic() + 60
    while not os.path.exists("neighbour.lives") and time.monotonic() < deadline:
        time.sleep(0.1)
    taken = [b"x" * (1 << 20) for _ in range(200)]
    print(f"took {len(taken)} MiB")


def child():
    """The one that is too large is its child; it would wait for long after that."""
    subprocess.run([sys.executable, os.path.abspath(__file__), "hog"], check=False)
    print("the child has ended")
    time.sleep(20)


def neighbour():
    Path("neighbour.lives").touch()
    time.sleep(8)


def spin():
    end = time.monotonic() + 4
    while time.monotonic() < end:
        pass


if __name__ == "__main__":
    tasks = {"hog": hog, "child": child, "neighbour": neighbour, "spin": spin}
    tasks.get(sys.argv[1], lambda: look(Path(sys.argv[1])))()
