#!/usr/bin/python3
"""What a trial costs beyond its own time: so many that do nothing but report a number, each recorded
durably, drawn by chance and by TPE; and whether that grows with how many there are.

    bench/trials.py [--berth build/release/bin/berth] [--trials 10000]"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

FILE = """
run: [printf, '::berth m={{x}}']
params: {{x: {{min: 0, max: 1}}, y: {{min: 0, max: 1}}, kind: [a, b, c]}}
search: {{method: {method}, samples: {trials}, seed: 1}}
goal: {{metric: m}}
parallel: {parallel}
"""


def measure(berth, method, trials, parallel, directory):
    environment = {**os.environ, "BERTH_DB": f"{directory}/state", "BERTH_LEDGER": f"{directory}/ledger"}
    file = Path(directory) / f"{method}.yaml"
    file.write_text(FILE.format(method=method, trials=trials, parallel=parallel))
    began = time.monotonic()
    subprocess.run([berth, "--json", "run", file], env=environment, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    took = time.monotonic() - began
    shown = json.loads(subprocess.run([berth, "--json", "show", f"{method}-1"], env=environment, check=True,
                                      stdout=subprocess.PIPE).stdout)
    ends = sorted(datetime.fromisoformat(task["ended"]).timestamp() for task in shown["tasks"])
    tenth = len(ends) // 10
    first, last = ((part[-1] - part[0]) / (tenth - 1) * 1000 for part in (ends[:tenth], ends[-tenth:]))
    print(f"{method}, {parallel} side by side: {took / trials * 1000:.2f} ms a trial; the first tenth "
          f"{first:.2f} ms each, the last {last:.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/release/bin/berth")
    parser.add_argument("--trials", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as directory:
        for parallel in (4, 1):
            for method in ("random", "tpe"):
                place = Path(directory) / f"{parallel}"
                place.mkdir(exist_ok=True)
                measure(os.path.abspath(arguments.berth), method, arguments.trials, parallel, place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
