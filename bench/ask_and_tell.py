#!/usr/bin/python3
"""What ask and tell of a study cost, at trials 100, 1,000 and 10,000; beside Optuna where it is
installed (Debian: python3-optuna), with its SQLite storage and in memory.

    bench/ask_and_tell.py [--trials 10000] [--directory /dev/shm] [--seconds 60] [--only berth|optuna] [--json]

Each line is of the last hundred trials: the least of them, and the median. On a disk most of it is
the two times that a claim and an end are synced; a directory in memory leaves that out. Optuna is given
--seconds for each storage, and its last line is that of the trial which it came to. --json prints the
milliseconds of an ask and a tell in the last tenth of the trials instead, with --only of one of the two."""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import berth  # noqa: E402


QUIET = "--json" in sys.argv


def measure(name, trials, seconds, ask, tell):
    took, end = [], time.monotonic() + seconds
    for number in range(1, trials + 1):
        began = time.perf_counter()
        trial, value = ask()
        asked = time.perf_counter()
        tell(trial, value)
        took.append((asked - began, time.perf_counter() - asked))
        over = time.monotonic() > end
        if (number in (100, 1000, 10_000) or over) and not QUIET:
            parts = zip(("ask", "tell", "both"), zip(*((a, b, a + b) for a, b in took[-100:])))
            print(f"{name}, trial {number}: " + ", ".join(
                f"{part} {min(times) * 1e3:.2f} (median {statistics.median(times) * 1e3:.2f}) ms"
                for part, times in parts), flush=True)
        if over:
            break
    return [1e3 * (asked + told) for asked, told in took[-max(1, trials // 10):]]


def with_berth(directory, arguments):
    os.environ["BERTH_DB"] = directory
    with berth.Study({"x": {"min": -2.0, "max": 2.0}, "y": {"min": -2.0, "max": 2.0}, "kind": ["a", "b"]}, goal="f",
                     direction="min", search={"method": "tpe"}) as study:
        def ask():
            trial = study.ask()
            return trial, trial.params.x ** 2 + trial.params.y ** 2
        return measure("berth, tpe", arguments.trials, float("inf"), ask, study.tell)


def with_optuna(storage, name, arguments):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=storage)

    def ask():
        trial = study.ask()
        x, y = (trial.suggest_float(name, -2, 2) for name in "xy")
        trial.suggest_categorical("kind", ["a", "b"])
        return trial, x ** 2 + y ** 2
    return measure(f"optuna {optuna.__version__}, tpe, {name}", arguments.trials, arguments.seconds, ask, study.tell)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--directory", default="/dev/shm")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", choices=("berth", "optuna"))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="berth-bench-", dir=arguments.directory) as directory:
        took = with_berth(directory, arguments) if arguments.only != "optuna" else []
        if arguments.only != "berth":
            try:
                took = with_optuna(f"sqlite:///{directory}/optuna.db", "SQLite", arguments)
                if not arguments.json:
                    with_optuna(None, "in memory", arguments)
            except ImportError:
                print("optuna is not installed", file=sys.stderr)
                return 1 if arguments.json else 0
    if arguments.json:
        print(json.dumps({"both_ms": took}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
