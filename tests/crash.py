#!/usr/bin/python3
"""Kills berth with SIGKILL at random moments of random runs, then checks what the runs left.

    crash.py --berth PATH --kills N [--seed S] [--tasks T]
    crash.py --berth PATH --failpoints N      # at each failpoint, the first to the Nth time
    crash.py --berth PATH --containers ...    # flows whose tasks run in podman's containers and in sandboxes

Runs are sweeps and flows at random; runners are killed, and the agents of runs in the background too. Every task
appends "run task token pid" to a witness. At the end, every task of every run was completed exactly once, by an
attempt that the witness knows; the outputs of flows are right, those that are temporary are gone and those that are
protected are read-only; no token was given twice; no process, allocation, control group, container or mount is
left; the database and the cache are sound.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from berth_case import BERTH, House, alive, until
from podman import IMAGE, Podman, Unusable, in_a_plain_hierarchy

# Where runners and agents may be killed: os/failpoint.h.
FAILPOINTS = ["before commit", "after commit", "after acknowledge", "after launch", "outputs captured",
              "outputs published", "alloc", "agents joined", "agent launched", "agent journal written"]

TRIAL = """#!/bin/sh
echo "$BERTH_RUN $1 $BERTH_TOKEN $$" >> witness/lines
sleep "$2"
echo "::berth value=$1"
"""


# Pairs of tasks are joined, and one task gathers all pairs.
FLOW = """{head}params: {{seed: {seed}}}
steps:
  one:
    foreach: {{i: [{numbers}]}}
    run: echo "$BERTH_RUN one/{{i}} $BERTH_TOKEN $$" >> {witness}; sleep 0.{pace}$(({{i}} % 10)); echo {{i}} {{seed}} > {{out.x}}
    out: {{x: "one/{{key}}.txt"}}
    temp: {temp}
    resources: {{cpu: 0.5}}
  two:
    foreach: {{i: [{numbers}]}}
    run: echo "$BERTH_RUN two/{{i}} $BERTH_TOKEN $$" >> {witness}; echo {{i}} {{seed}} > {{out.y}}
    out: {{y: "two/{{key}}.txt"}}
    protect: {protect}
    resources: {{cpu: 0.5}}
  pair:
    join: {{vars: {{a: one.x, b: two.y}}}}
    run: echo "$BERTH_RUN pair/{{key}} $BERTH_TOKEN $$" >> {witness}; cat {{a}} {{b}} > {{out.z}}
    out: {{z: "pair/{{key}}.txt"}}
    temp: {temp}
    resources: {{cpu: 0.5}}
  all:
    in: {{z: pair.z}}
    run: echo "$BERTH_RUN all $BERTH_TOKEN $$" >> {witness}; cat {{in.z}} > {{out.w}}
    out: {{w: all.txt}}
    protect: {protect}
"""


class Violation(Exception):
    pass


def is_agent(pid):
    """Its task that is about to be executed has its command line, but is no leader of a session."""
    try:
        return b"berth-agent" in Path(f"/proc/{pid}/cmdline").read_bytes() and os.getsid(pid) == pid
    except OSError:
        return False


def demand(condition, message):
    if not condition:
        raise Violation(message)


class Witness:
    """The lines that tasks append: to a file, or to a pipe, which works where the directory is mounted read-only."""

    def __init__(self, folder, is_pipe):
        folder.mkdir()
        self.path = folder / "lines"
        if is_pipe:
            os.mkfifo(self.path)
        self.end = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK)
        self.text = ""

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while lines := os.read(self.end, 1 << 16):
                self.text += lines.decode()

    def executions(self, run):
        """token -> (task, pid); no token may occur twice."""
        self.read()
        seen = {}
        for line in self.text.splitlines():
            its_run, task, token, pid = line.split()
            if its_run == run:
                demand(int(token) not in seen, f"{run}: token {token} was given twice")
                seen[int(token)] = (task, int(pid))
        return seen


class Killer:
    def __init__(self, house, rng, tasks, podman=None):
        """With a podman, the tasks of all flows run in its containers and in sandboxes, and there are no sweeps."""
        self.house, self.rng, self.tasks, self.podman = house, rng, tasks, podman
        self.places = [house.path] + ([podman.place] if podman else [])  # which no process names in the end
        self.witness = Witness(house.path / "witness", podman is not None)
        # How long runs take, about: a kill comes at any moment of that.
        self.longest_s = 4 * podman.container_s if podman else 0.4
        sandbox = f"shell: sh\nsandbox: [{self.witness.path.parent}]\n"
        self.heads = [f"image: {IMAGE}\n{sandbox}", f"image: {IMAGE}\n{sandbox}", sandbox] if podman else [""]
        self.kills = self.resumes = self.executions = 0
        self.run = None  # the one to go on with
        self.results = {}  # of flows: what all.txt has to hold
        script = house.path / "trial"
        script.write_text(TRIAL)
        script.chmod(0o755)

    def write_sweep(self):
        (self.house.path / "crash.yaml").write_text(
            f"run: ./trial {{i}} {{s}}\n"
            f"params: {{i: {{min: 1, max: {10 ** 6}, type: int}}, s: {{min: 0, max: 0.02}}}}\n"
            f"search: {{method: random, samples: {self.tasks}, seed: {self.rng.randrange(1 << 30)}}}\n"
            "resources: {cpu: 0.5}\nparallel: 2\n")
        return "crash.yaml"

    def write_flow(self):
        """In a folder of its own, so that its results can be looked at in the end."""
        name = f"flow{len(self.results) + 1}"
        folder = self.house.path / name
        folder.mkdir()
        seed = self.rng.randrange(1 << 30)
        pairs = range(1, max(1, (self.tasks - 1) // 3) + 1)
        self.results[name] = "".join(2 * f"{i} {seed}\n" for i in pairs)
        (folder / f"{name}.yaml").write_text(
            FLOW.format(head=self.rng.choice(self.heads), seed=seed, temp=self.rng.choice(["true", "false"]),
                        protect=self.rng.choice(["true", "false"]), witness=self.witness.path,
                        pace=1 if self.podman else 0, numbers=", ".join(map(str, pairs))))
        return f"{name}/{name}.yaml"

    def write_any(self):
        return self.rng.choice([self.write_flow] if self.podman else [self.write_sweep, self.write_flow])()

    def start(self):
        if self.run:
            self.resumes += 1
            return self.house.start("resume", self.run)
        return self.house.start("run", self.write_any())

    def start_in_the_background(self):
        """And kill its runner, at once or after a while: its agents go on."""
        detached = self.house.run("run", "--detach", self.write_any())
        demand(detached.code == 0, f"run --detach: {detached}")
        self.run = detached.out.decode().strip()
        time.sleep(self.rng.uniform(0, self.longest_s / 2))
        runner = self.house.json("show", self.run)["run"]["runner"]
        if alive(runner):
            os.kill(runner, signal.SIGKILL)
            until(lambda: not alive(runner), "the runner is dead")
            self.kills += 1
        self.run = self.unfinished()

    def at_failpoint(self, name, nth, background):
        """A run that is killed there, and resumed: killed there again, and then left alone."""
        only_flows = name.startswith("outputs")
        file = self.write_flow() if only_flows else self.write_any()
        fuse = self.house.path / "fuse"
        environment = {"BERTH_FAILPOINT": f"{name}:{nth}:{fuse}"}
        fuse.touch()
        options = ["--detach"] if background else []
        begun = self.house.run("run", *options, file, env=environment)
        if background and begun.code == 0:
            self.house.run("wait", begun.out.decode().strip())
        self.run = self.unfinished()
        if self.run:
            self.kills += not fuse.exists()
            self.resumes += 1
            fuse.touch()
            self.house.run("resume", self.run, env=environment)
            self.run = self.unfinished()
        self.kills += not fuse.exists()
        self.finish()

    def agents(self):
        return [pid for pid in self.house.leftovers() if is_agent(pid)]

    def kill_an_agent(self):
        agents = self.agents()
        if agents:
            os.kill(self.rng.choice(agents), signal.SIGKILL)
            self.kills += 1

    def one_round(self):
        """A start, a while, a kill; or, when it ended before, the next run's turn."""
        self.witness.read()
        if not self.run and self.rng.random() < 0.5:
            return self.start_in_the_background()
        if self.rng.random() < 0.2:
            self.kill_an_agent()
        process = self.start()
        moment_s = self.rng.uniform(0.001, self.longest_s)
        try:
            out, err = process.communicate(timeout=moment_s)
        except subprocess.TimeoutExpired:
            agents = self.agents() if self.rng.random() < 0.3 else []
            process.kill()
            for agent in agents:
                os.kill(agent, signal.SIGKILL)
            process.communicate()
            self.kills += 1 + len(agents)
            self.run = self.unfinished()
            return
        demand(process.returncode == 0, f"berth ended with {process.returncode}: {err.decode()}")
        self.run = None

    def unfinished(self):
        open_runs = [run["id"] for run in self.house.json("runs")["runs"] if run["state"] != "done"]
        demand(len(open_runs) <= 1, f"several runs are open: {open_runs}")
        return open_runs[0] if open_runs else None

    def finish(self):
        if self.run:
            self.resumes += 1
            done = self.house.run("resume", self.run)
            demand(done.code == 0, f"the last resume: {done}")
            self.run = None

    def sweep(self):
        """One more run: it removes the control groups of a runner that was killed when its run was done."""
        done = self.house.run("run", self.write_sweep())
        demand(done.code == 0, f"a run after all kills: {done}")


def check_run(killer, run):
    """Checks a run that is done. Returns how often its tasks were executed."""
    house, executions = killer.house, killer.witness.executions(run)
    shown = house.json("show", run)
    tasks, flow = shown["tasks"], shown["run"]["name"]
    expected = killer.tasks if flow not in killer.results else 3 * killer.results[flow].count("\n") // 2 + 1
    demand(shown["run"]["state"] == "done", f"{run} is {shown['run']['state']}")
    demand(len(tasks) == expected, f"{run} has {len(tasks)} tasks of {expected}")
    demand(shown["run"]["counts"]["done"] == expected, f"{run}: {shown['run']['counts']}")
    for task in tasks:
        name = task["id"]
        label = name.partition("/")[2] if flow in killer.results else str(task["params"]["i"])
        demand(task["state"] == "done", f"{name} is {task['state']}")
        if flow not in killer.results:
            demand(task["metrics"] == {"value": int(label)}, f"{name}: metrics {task['metrics']}")
        attempts = house.json("why", name)["attempts_made"]
        good = [attempt for attempt in attempts if attempt["cause"] == "ok"]
        demand(len(good) == 1, f"{name} was completed {len(good)} times: {attempts}")
        demand(good[0] is attempts[-1], f"{name} was tried after it was done: {attempts}")
        demand(executions.get(good[0]["token"], (None,))[0] == label,
               f"{name}: its completion {good[0]['token']} is unknown to the witness")
        for attempt in attempts:
            demand(attempt["ended"], f"{name}: attempt {attempt['number']} never ended")
    if flow in killer.results:
        check_files(house, run, flow, killer.results[flow])
    return executions


def check_files(house, run, flow, result):
    folder = house.path / flow
    options = (folder / f"{flow}.yaml").read_text()
    demand((folder / "all.txt").read_text() == result, f"{run}: wrong result")
    for step in ("one", "pair"):
        left = len(list((folder / step).iterdir()))
        demand((left == 0) == ("temp: true" in options), f"{run}: {left} files of {step} are left")
    for path in (folder / "all.txt", *(folder / "two").iterdir()):
        writable = bool(path.stat().st_mode & 0o200)
        demand(writable != ("protect: true" in options), f"{run}: {path} is {'' if writable else 'not '}writable")
    demand(not os.listdir(house.state / "runs" / run / "tasks"), f"{run}: directories of tasks are left")


def start_ticks(pid):
    """When a process started, in clock ticks since the boot: what names a process once and for all."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def left_groups(pids):
    """Control groups named after a berth of ours: by its number, and not older than we are, for numbers
    come again, and others may have left groups where no berth of ours looks."""
    began = start_ticks(os.getpid())
    found = []
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            parts = name.split(".")
            if parts[0] != "berth" or int(parts[1]) not in pids or int(parts[2]) < began or alive(int(parts[1])):
                continue
            found.append((f"{directory}/{name}", (Path(directory) / name / "cgroup.procs").read_text().split()))
    return found


def demand_soon_nothing(look, what, patience_s):
    deadline = time.monotonic() + patience_s
    while found := look():
        demand(time.monotonic() < deadline, f"{what} left: {found}")
        time.sleep(0.1)


def processes_of(places):
    """Those whose command line or environment names one: a process in a container has only what was declared."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            text = b"".join(Path(f"/proc/{entry}/{name}").read_bytes() for name in ("environ", "cmdline"))
            if int(entry) != os.getpid() and any(str(place).encode() in text for place in places):
                found.append((int(entry), Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ")))
    return found


def check(killer):
    house = killer.house
    runs = [run["id"] for run in house.json("runs")["runs"]]
    demand(len(set(runs)) == len(runs), f"an id was given twice: {runs}")
    for run in runs:
        executions = check_run(killer, run)
        killer.executions += len(executions)
        for _, pid in executions.values():  # by now another process may have this pid
            if not killer.podman and alive(pid):
                demand(pid not in house.leftovers(), f"{run}: process {pid} is still alive")
    if killer.podman:  # a keeper may try for some seconds to remove its container
        demand_soon_nothing(killer.podman.left, "of containers is", 20)
    demand_soon_nothing(lambda: processes_of(killer.places), "processes are", 5)
    machine = house.json("machine")
    demand(machine["holders"] + machine["waiting"] == [], f"the ledger still holds: {machine}")
    store = sqlite3.connect(house.state / "berth.db")
    demand(store.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the database is hurt")
    store.close()
    if killer.results:
        sound = house.run("cache", "--verify", "--collect")
        demand(sound.code == 0, f"the cache is hurt: {sound}")
        demand(not os.listdir(house.state / "cache/work"), "work is left in the cache")
    groups = left_groups({process.pid for process in house.started})
    ours = Path("/proc/self/cgroup").read_text()
    demand(not groups, f"control groups left, with their processes: {groups}; we are in {ours}")
    return len(runs)


def skip(reason):
    print(f"skipped: {reason}")
    return 77


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=BERTH)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--failpoints", type=int, default=0)
    parser.add_argument("--containers", action="store_true")
    arguments = parser.parse_args()
    podman = None
    if arguments.containers:
        from sandbox_test import why_not as why_no_sandbox  # which tries bubblewrap
        in_a_plain_hierarchy()
        try:
            podman = Podman()
        except Unusable as reason:
            return skip(reason)
        if why_no_sandbox():
            podman.remove()
            return skip(why_no_sandbox())
    print(f"crash.py --kills {arguments.kills} --seed {arguments.seed}", flush=True)
    directory = tempfile.mkdtemp(prefix="berth-crash-")
    house = House(directory, os.path.abspath(arguments.berth))
    house.environment |= podman.variables if podman else {}
    killer = Killer(house, random.Random(arguments.seed), arguments.tasks, podman)
    began = time.monotonic()
    try:
        for name in FAILPOINTS if arguments.failpoints else ():
            before = killer.kills
            for nth in range(1, arguments.failpoints + 1):
                for background in (False, True):
                    killer.at_failpoint(name, nth, background)
            demand(killer.kills > before, f"nothing was ever killed at '{name}'")
        while not arguments.failpoints and killer.kills < arguments.kills:
            killer.one_round()
        killer.finish()
        killer.sweep()
        runs = check(killer)
    except (Violation, AssertionError) as violation:
        print(f"VIOLATION: {violation}\nits state stays in {', '.join(map(str, killer.places))}")
        house.close()
        return 1
    house.close()
    shutil.rmtree(directory, ignore_errors=True)
    if podman:
        print(f"empty layers that podman left when it was killed: {len(podman.stray_layers())}")
        podman.remove()
    print(f"{killer.kills} kills, {killer.resumes} resumes, {runs} runs, each task done once in "
          f"{killer.executions} executions, {time.monotonic() - began:.1f} s: no fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
