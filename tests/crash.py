#!/usr/bin/python3
"""Kills berth with SIGKILL at random moments of random runs, and then looks for what went wrong.

    crash.py --berth PATH --kills N [--seed S] [--trials T]

Every trial appends "trial token pid" to a witness file. Whatever was killed when, in the end every
trial of every run is done exactly once, by an attempt that the witness knows; no token was given
twice; nothing of ours is alive, held or left in the control groups; the database is sound.
"""

import argparse
import collections
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from berth_case import BERTH, House, alive, until

TRIAL = """#!/bin/sh
echo "$1 $BERTH_TOKEN $$" >> "$BERTH_RUN.witness"
sleep "$2"
echo "::berth value=$1"
"""


class Violation(Exception):
    pass


def demand(condition, message):
    if not condition:
        raise Violation(message)


class Killer:
    def __init__(self, house, rng, trials):
        self.house, self.rng, self.trials = house, rng, trials
        self.kills = self.resumes = 0
        self.run = None  # the one to go on with
        script = house.path / "trial"
        script.write_text(TRIAL)
        script.chmod(0o755)

    def write_sweep(self):
        trials = self.trials
        (self.house.path / "crash.yaml").write_text(
            f"run: ./trial {{i}} {{s}}\n"
            f"params: {{i: {{min: 1, max: {10 ** 6}, type: int}}, s: {{min: 0, max: 0.02}}}}\n"
            f"search: {{method: random, samples: {trials}, seed: {self.rng.randrange(1 << 30)}}}\n"
            "resources: {cpu: 0.5}\nparallel: 2\n")

    def start(self):
        if self.run:
            self.resumes += 1
            return self.house.start("resume", self.run)
        self.write_sweep()
        return self.house.start("run", "crash.yaml")

    def one_round(self):
        """A start, a while, a kill; or, when it ended before, the next run's turn."""
        process = self.start()
        moment_s = self.rng.uniform(0.001, 0.4)
        try:
            out, err = process.communicate(timeout=moment_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.kills += 1
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
            done = self.house.run("resume", self.run)
            demand(done.code == 0, f"the last resume: {done}")


def read_witness(path):
    """token -> (trial, pid), of which none may come twice."""
    seen = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        trial, token, pid = map(int, line.split())
        demand(token not in seen, f"{path.name}: token {token} was given twice")
        seen[token] = (trial, pid)
    return seen


def check_run(house, run, trials):
    shown = house.json("show", run)
    demand(shown["run"]["state"] == "done", f"{run} is {shown['run']['state']}")
    demand(len(shown["tasks"]) == trials, f"{run} has {len(shown['tasks'])} trials of {trials}")
    demand(shown["run"]["counts"]["done"] == trials, f"{run}: {shown['run']['counts']}")
    witness = read_witness(house.path / f"{run}.witness")
    for task in shown["tasks"]:
        name, trial = task["id"], task["params"]["i"]
        demand(task["state"] == "done", f"{name} is {task['state']}")
        demand(task["metrics"] == {"value": trial}, f"{name}: metrics {task['metrics']}")
        attempts = house.json("why", name)["attempts_made"]
        good = [attempt for attempt in attempts if attempt["cause"] == "ok"]
        demand(len(good) == 1, f"{name} was completed {len(good)} times: {attempts}")
        demand(good[0] is attempts[-1], f"{name} was tried after it was done: {attempts}")
        demand(witness.get(good[0]["token"], (None,))[0] == trial,
               f"{name}: its completion {good[0]['token']} is unknown to the witness")
        for attempt in attempts:
            demand(attempt["ended"], f"{name}: attempt {attempt['number']} never ended")
    return witness


def left_groups(pids):
    """Control groups named after a berth of ours."""
    found = []
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        found += [f"{directory}/{name}" for name in names
                  if name.startswith("berth.") and int(name.split(".")[1]) in pids]
    return found


def check(killer):
    house = killer.house
    runs = [run["id"] for run in house.json("runs")["runs"]]
    demand(len(set(runs)) == len(runs), f"an id was given twice: {runs}")
    executions = collections.Counter()
    for run in runs:
        witness = check_run(house, run, killer.trials)
        executions.update(trial for trial, _ in witness.values())
        for _, pid in witness.values():  # by now no number but a reused one, which is not of ours
            if alive(pid):
                demand(pid not in house.leftovers(), f"{run}: process {pid} is still alive")
    until(lambda: not house.leftovers(), f"processes left: {house.leftovers()}", 5)
    machine = house.json("machine")
    demand(machine["holders"] + machine["waiting"] == [], f"the ledger still holds: {machine}")
    store = sqlite3.connect(house.state / "berth.db")
    demand(store.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the database is hurt")
    store.close()
    groups = left_groups({process.pid for process in house.started})
    demand(not groups, f"control groups left: {groups}")
    return len(runs), sum(executions.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=BERTH)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--trials", type=int, default=200)
    arguments = parser.parse_args()
    print(f"crash.py --kills {arguments.kills} --seed {arguments.seed}", flush=True)
    directory = tempfile.mkdtemp(prefix="berth-crash-")
    house = House(directory, os.path.abspath(arguments.berth))
    killer = Killer(house, random.Random(arguments.seed), arguments.trials)
    began = time.monotonic()
    try:
        while killer.kills < arguments.kills:
            killer.one_round()
        killer.finish()
        runs, executions = check(killer)
    except (Violation, AssertionError) as violation:
        print(f"VIOLATION: {violation}\nits state stays in {directory}")
        house.close()
        return 1
    house.close()
    shutil.rmtree(directory, ignore_errors=True)
    print(f"{killer.kills} kills, {killer.resumes} resumes, {runs} runs, {runs * arguments.trials} trials "
          f"done once each in {executions} executions, {time.monotonic() - began:.1f} s: all well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
