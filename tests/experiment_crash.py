#!/usr/bin/python3
"""Kills the runner of a search again and again, and compares what came of it with a run that was left alone: the
same trials in the same order, the same scores, the same ones stopped at the same reports; and what an attempt
printed is told as that attempt's alone. (One trial at a time: side by side, a proposer's answer depends on who ends
first, but that of `pbt`.) `checkpoints` is a halving whose script goes on from its checkpoint, in `pbt` trials go on
from those of others; `digits` is the halving of examples/digits."""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from berth_case import House

# Rises towards a height that its parameters give, in eight reports.
SCRIPT = """#!/bin/sh
x=$1 step=0
while [ $step -lt 8 ]; do
  step=$((step + 1))
  echo "::berth acc=$(( (1000 - (x - 37) * (x - 37) / 10) * step / (step + 2) )) epoch=$step"
done
[ $((x % 7)) != 0 ] || exit 3
exec sleep 0.01
"""
# As docs/reference/experiment-files.md says of checkpoints. It is slow where a kill used to be fatal: between the last checkpoint and the end.
CHECKPOINTED = """#!/usr/bin/python3
import json, os, sys, time
x, epochs, state = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] + "/state.json"
reports = json.load(open(state)) if os.path.exists(state) else []
def tell(epoch):
    print(f"::berth acc={reports[epoch - 1]} epoch={epoch}", flush=True)
for epoch in range(1, min(len(reports), epochs) + 1):
    tell(epoch)
for epoch in range(len(reports) + 1, epochs + 1):
    reports.append((1000 - (x - 37) ** 2 // 10) * epoch // (epoch + 2))
    tell(epoch)
    with open(state + ".new", "w") as file:
        json.dump(reports, file)
    os.replace(state + ".new", state)
time.sleep(0.05)
"""
# What it has come to depends on each part that it was trained with, so that a wrong checkpoint shows.
INHERITED = CHECKPOINTED.replace("reports.append((1000 - (x - 37) ** 2 // 10) * epoch // (epoch + 2))",
                                 "reports.append((reports[-1] if reports else 1) * 31 % 997 + abs(x - 37))")
FILE = """
name: search
run: ./x {{x}} {command}
params: {{x: {{min: 0, max: 100, type: int}}, kind: [a, b]}}
search: {{method: {method}, samples: {trials}, seed: 11{more}}}
goal: {{metric: acc}}
parallel: {parallel}
{stop}
"""
BUDGET = ", budget: {param: epochs, min: 1, max: 9}"
# A trial that ends within 0.1 s of a report is not stopped early: its own end counts.
LONG_SCRIPT = SCRIPT.replace("sleep 0.01", "sleep 0.4")
METHODS = {"tpe": dict(method="tpe", more="", command="{kind}", script=LONG_SCRIPT,
                       stop="early_stop: {policy: truncation, warmup: 2, part: 0.4}"),
           "halving": dict(method="halving", more=BUDGET, command="{kind} {epochs}", script=SCRIPT, stop=""),
           "checkpoints": dict(method="halving", more=BUDGET, command="{epochs} {checkpoint} {kind}", stop="",
                               script=CHECKPOINTED),
           "pbt": dict(method="pbt", more=", explore: [x], budget: {param: epochs, every: 3, max: 11}", stop="save_best: true",
                       command="{epochs} {checkpoint} {kind}", script=INHERITED, parallel=3)}
DIGITS = Path(__file__).resolve().parent.parent / "examples/digits"


def prepare(house, method, trials):
    """Lays the files of a search there."""
    house.path.mkdir()
    if method == "digits":
        for name in ("train.py", "digits.csv.gz"):
            shutil.copy(DIGITS / name, house.path / name)
        text = re.sub("name: .*", "name: search", (DIGITS / "halving.yaml").read_text())
        text = re.sub("retries: .*", "parallel: 1", text)  # none: no kill may cost an attempt
        (house.path / "search.yaml").write_text(re.sub("samples: [0-9]+", f"samples: {trials}", text))
        return
    choices = METHODS[method]
    (house.path / "x").write_text(choices["script"])
    (house.path / "x").chmod(0o755)
    many = trials // 4 if method == "pbt" else trials  # in four parts
    (house.path / "search.yaml").write_text(FILE.format(**{"parallel": 1, **choices, "trials": many}))


def outcome(house, run):
    """What must not depend on how often the runner died. (How many attempts it took may.)"""
    return sorted(((task["id"], task["params"], task["state"], task["cause"], task["metrics"])
                   for task in house.tasks(run)), key=lambda each: each[0])


def start(house, *arguments):
    return house.start(*arguments, out=subprocess.DEVNULL, err=subprocess.DEVNULL)


def mixed_logs(house, run):
    """The attempts whose log is not one attempt's: its epochs do not rise."""
    mixed = []
    for task in house.tasks(run):
        for attempt in range(1, len(house.json("why", task["id"])["attempts_made"]) + 1):
            log = house.run("logs", task["id"], "--attempt", attempt)
            epochs = [int(found) for found in re.findall(rb"epoch=([0-9]+)", log.out)]
            if log.err or epochs != sorted(set(epochs)):
                mixed.append((task["id"], attempt, epochs))
    return mixed


def compare(method, trials, kills, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="berth-crash-") as directory:
        alone, killed = House(f"{directory}/alone"), House(f"{directory}/killed")
        for house in (alone, killed):
            prepare(house, method, trials)
        try:
            began = time.monotonic()
            start(alone, "run", "search.yaml").wait()
            took = time.monotonic() - began
            process = start(killed, "run", "search.yaml")
            hit = 0  # kills of a runner that had not ended
            for _ in range(kills):
                time.sleep(rng.uniform(0, 2 * took / kills))
                hit += process.poll() is None
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                process.wait()
                if rng.random() < 0.5:  # as a machine that dies, with the agents and the trials
                    killed.kill_leftovers()
                if not killed.json("runs")["runs"]:
                    process = start(killed, "run", "search.yaml")  # it had not come to submit it
                else:
                    process = start(killed, "resume", "search-1")
            process.wait()
            expected, found = outcome(alone, "search-1"), outcome(killed, "search-1")
            differing = [(a, b) for a, b in zip(expected, found) if a != b]
            stopped = sum(each[3] == "stopped early" for each in expected)
            failed = [sum(each[2] == "failed" for each in side) for side in (expected, found)]
            mixed = mixed_logs(killed, "search-1")
            print(f"{method}: {len(expected)} trials, {stopped} stopped early, {failed[0]} failed, {hit} kills "
                  f"in {took:.1f} s: {len(differing)} differ, {failed[1] - failed[0]} more failed, "
                  f"{len(mixed)} logs mixed", flush=True)
            for a, b in differing[:1]:
                print(f"first: {a}\n  with kills: {b}")
            for each in mixed[:1]:
                print("mixed:", *each)
            stops = method != "tpe" or stopped > trials // 10
            return len(expected) == len(found) and not differing and not mixed and stops
        finally:
            alone.close()
            killed.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--berth", help="the binary")
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("BERTH_SEED", "1")))
    parser.add_argument("methods", nargs="*", default=list(METHODS), help=f"of {', '.join(METHODS)}, digits")
    arguments = parser.parse_args()
    if arguments.berth:
        House.__init__.__defaults__ = (os.path.abspath(arguments.berth), None)
    good = [compare(method, arguments.trials, arguments.kills, arguments.seed) for method in arguments.methods]
    sys.exit(0 if all(good) else f"BERTH_SEED={arguments.seed} shows it again")


if __name__ == "__main__":
    main()
