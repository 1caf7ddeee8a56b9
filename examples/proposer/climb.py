#!/usr/bin/python3
"""A proposer of one's own: walks from the best trial so far, in smaller and smaller steps.

Berth writes one JSON object a line to its standard input, and reads its answers to {"ask": …}:

    {"berth": 1, "run": "climb-1", "seed": 1, "samples": 30, "goals": […], "params": […]}   once, at first
    {"tell": {"trial": "3", "state": "open|done|failed", "params": {…}, "metrics": {…}}}   no answer
    {"ask": "4"}                                                   {"params": {…}}, {"wait": true} or {"done": true}

After a crash it is started anew and told everything again, so it keeps nothing."""

import json
import random
import sys


def main():
    hello = json.loads(sys.stdin.readline())
    goal = hello["goals"][0]
    sign = 1 if goal["direction"] == "max" else -1
    best, told = None, {}
    for line in sys.stdin:
        message = json.loads(line)
        if "tell" in message:
            trial = message["tell"]
            told[trial["trial"]] = trial
            score = trial["metrics"].get(goal["metric"])
            if trial["state"] == "done" and score is not None and (best is None or sign * score > best[0]):
                best = (sign * score, trial["params"])
            continue
        rng = random.Random(f"{hello['seed']} {message['ask']}")  # the same answer after a resume
        step = 0.5 * 0.9 ** len(told)
        params = {}
        for parameter in hello["params"]:
            low, high = parameter["min"], parameter["max"]
            if best is None:
                params[parameter["name"]] = rng.uniform(low, high)
            else:
                near = best[1][parameter["name"]] + rng.gauss(0, step) * (high - low)
                params[parameter["name"]] = min(high, max(low, near))
        print(json.dumps({"params": params}), flush=True)


if __name__ == "__main__":
    main()
