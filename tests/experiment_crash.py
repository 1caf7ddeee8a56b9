#!/usr/bin/python3
"""Kills the runner of a search with early stopping, again and again, and compares what came of it with a
run that was left alone: the same trials in the same order, the same scores, the same ones stopped at the
same reports. (One trial at a time: side by side, a proposer's answer depends on who ends first.)"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from berth_case import House

# Rises towards a height that its parameters give, in eight reports; what is cut short would sleep.
SCRIPT = """#!/bin/sh
x=$1 step=0
while [ $step -lt 8 ]; do
  step=$((step + 1))
  echo "::berth acc=$(( (1000 - (x - 37) * (x - 37) / 10) * step / (step + 2) ))"
done
[ $((x % 7)) != 0 ] || exit 3
exec sleep 0.01
"""
FILE = """
name: search
run: ./x {{x}}
params: {{x: {{min: 0, max: 100, type: int}}, kind: [a, b]}}
search: {{method: {method}, samples: {trials}, seed: 11{more}}}
goal: {{metric: acc}}
parallel: 1
{stop}
"""
METHODS = {"tpe": ("", "early_stop: {policy: truncation, warmup: 2, part: 0.4}"),
           "halving": (", budget: {param: epochs, min: 1, max: 9}", "")}


def outcome(house, run):
    """What must not depend on how often the runner died. (How many attempts it took may.)"""
    return [(task["id"], task["params"], task["state"], task["cause"], task["metrics"]) for task in house.tasks(run)]


def start(house, *arguments):
    return house.start(*arguments, out=subprocess.DEVNULL, err=subprocess.DEVNULL)


def compare(method, trials, kills, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="berth-crash-") as directory:
        more, stop = METHODS[method]
        alone, killed = House(f"{directory}/alone"), House(f"{directory}/killed")
        for house in (alone, killed):
            house.path.mkdir()
            (house.path / "x").write_text(SCRIPT)
            (house.path / "x").chmod(0o755)
            (house.path / "search.yaml").write_text(FILE.format(method=method, trials=trials, more=more, stop=stop))
        try:
            began = time.monotonic()
            start(alone, "run", "search.yaml").wait()
            took = time.monotonic() - began
            process = start(killed, "run", "search.yaml")
            for _ in range(kills):
                time.sleep(rng.uniform(0, 2 * took / kills))
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                process.wait()
                if not killed.json("runs")["runs"]:
                    process = start(killed, "run", "search.yaml")  # it had not come to submit it
                else:
                    process = start(killed, "resume", "search-1")
            process.wait()
            expected, found = outcome(alone, "search-1"), outcome(killed, "search-1")
            differing = [(a, b) for a, b in zip(expected, found) if a != b]
            stopped = sum(each[3] == "stopped early" for each in expected)
            failed = sum(each[2] == "failed" for each in expected)
            print(f"{method}: {len(expected)} trials, {stopped} stopped early, {failed} failed, {kills} kills "
                  f"in {took:.1f} s: {len(differing)} differ")
            if differing:
                print(f"first: {differing[0][0]}\n  with kills: {differing[0][1]}")
            return len(expected) == len(found) and not differing and (not stop or stopped > trials // 10)
        finally:
            alone.close()
            killed.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--berth", help="the binary")
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("BERTH_SEED", "1")))
    arguments = parser.parse_args()
    if arguments.berth:
        House.__init__.__defaults__ = (os.path.abspath(arguments.berth), None)
    good = [compare(method, arguments.trials, arguments.kills, arguments.seed) for method in METHODS]
    sys.exit(0 if all(good) else f"BERTH_SEED={arguments.seed} shows it again")


if __name__ == "__main__":
    main()
