#!/usr/bin/python3
"""Compares two berth programs: the JSON and the exit codes of a recorded list of commands, each in a fresh state directory.

    tests/same_answers.py OLD NEW

Times, pids, ports and directories are masked. Prints each difference; exits with 1 if there are any."""

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "sweep.yaml": "name: sweep\nrun: echo \"::berth loss=$(({x} * {x})) size={x}\"\nparams: {x: [3, -1, 2, 0]}\n"
                  "goal: {metric: loss, direction: min}\nparallel: 1\nlabels: {team: vision}\n",
    "fails.yaml": "name: fails\nrun: '[ {x} != 2 ] || exit 7'\nparams: {x: [1, 2, 3]}\nparallel: 1\n",
    "pareto.yaml": "name: pareto\nrun: echo \"::berth a={x} b=$((5 - {x}))\"\nparams: {x: [1, 2, 3]}\n"
                   "goal: [{metric: a, direction: min}, {metric: b, direction: min}]\nconstraints: [a <= 2]\nparallel: 1\n",
    "flow.yaml": "name: count\nparams: {more: two}\nsteps:\n  words:\n    foreach: {n: [1, 2]}\n    run: echo {n} {more} > {out.w}\n"
                 "    out: {w: 'words-{n}.txt'}\n  sum:\n    run: cat {in.w} > {out.s}\n    in: {w: words.w}\n    out: {s: sum.txt}\n",
    "broken.yaml": "name: broken\nrun: echo {y}\nparams: {x: [1, 2]}\nsearhc: {}\n",
    "rows.csv": "more\na\nb\n",
    "space.json": json.dumps({"name": "study", "passive": True, "params": {"x": [1, 2]}, "search": {"method": "grid"},
                              "goal": {"metric": "loss", "direction": "min"}}),
}
STUDY = '{"create": %s}\n{"ask": true}\n{"tell": "1", "state": "done", "metrics": {"loss": 1}}\n{"ask": true}\n'
COMMANDS = """
version
doctor --json
machine --json
machine --json --expect
topo --json dgx-h100
topo --json no-such
place --json --topology dgx-h100 4
place --json --topology dgx-h100 99
run --json sweep.yaml
run --json fails.yaml
run --json pareto.yaml
run --json flow.yaml
run --json flow.yaml
run --json flow.yaml --set more=x --force words
run --json flow.yaml words/1
run --json --plan flow.yaml
run --json --plan sweep.yaml
run --json broken.yaml
run --json missing.yaml
run --json -- sh -c exit\\ 3
run --json --timeout 100ms -- sleep 5
run --json --name my-name --cpu 0.5 --label a=b -- true
run --json --cpu 99999 -- true
run --json flow.yaml --rows rows.csv
run --json --warm-start sweep-1 sweep.yaml
check --json sweep.yaml
check --json flow.yaml
check --json broken.yaml
runs --json
runs --json --label team=vision
show --json sweep-1
show --json sweep-1 --summary
show --json fails-1
show --json pareto-1
show --json count-1
show --json count-1 --graph
show --json no-such-1
show --csv sweep-1
best --json sweep-1
best --json pareto-1
best --json fails-1
why --json sweep-1
why --json sweep-1/1
why --json fails-1
why --json fails-1/2
why --json count-2/sum
compare --json sweep-1 sweep-2
compare --json sweep-1
compare --json sweep-1 fails-1 --metric loss
importance --json sweep-1
advise --json count-1
logs sweep-1
logs sweep-1/2
trace sweep-1
retry --json fails-1
retry --json --failed fails-1
resume --json sweep-1
stop sweep-1
wait sweep-1
rm --json my-name-1
rm --json my-name-1
prune --json --older-than 30d --dry-run
cache --json
cluster list --json
cluster probe nowhere --json
plan --json FLEET
plan --json FLEET --solver greedy
plan --json missing.json
size --json FLEET
schema experiment
notify fails-1
tell sweep-1/1 3
"""
MASKS = [(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"), (r"/tmp/[\w/.-]*answers-\w+", "DIR"),
         (r'"(pid|runner|cpu_ms|peak_mem|seconds|took|ts|dur|tid|started_at|holder|bytes|objects|epoch|bound|gap|available|free|'
          r'sum|median|longest|median_trial_seconds|resource_minutes|age_seconds|ledger|uptime|longest_ms|peak)": ?[-\d.e+]+', r'"\1":N'),
         (r'"(id|alloc)":"[0-9a-f]{8,}"', r'"\1":"ID"'), (r'"(cpu|mem|disk)":[\d.e+]+', r'"\1":N'), (r"\b\d+(\.\d+)? ?(ms|us|s|MiB|GiB|KiB|kB|bytes)\b", "N"),
         (r"\b[0-9a-f]{16,}\b", "HASH"), (r'"resource_minutes":\{[^}]*\}', '"resource_minutes":{}'), (r",\d+\.\d{3},", ",SECONDS,")]


def masked(text, place):
    text = text.replace(str(place), "DIR")
    for pattern, by in MASKS:
        text = re.sub(pattern, by, text)
    return text


def answers(berth):
    place = Path(tempfile.mkdtemp(prefix="answers-"))
    environment = {**os.environ, "BERTH_DB": str(place / "state"), "BERTH_LEDGER": str(place / "ledger"), "LC_ALL": "C.UTF-8",
                   "HOME": str(place), "NO_COLOR": "1"}
    for name, text in FILES.items():
        (place / name).write_text(text)
    fleet = next((ROOT / "examples/fleet").glob("*.json"))
    found = []
    try:
        for line in COMMANDS.strip().splitlines():
            words = [word.replace("\\ ", " ") for word in re.findall(r"(?:\\ |\S)+", line.replace("FLEET", str(fleet)))]
            done = subprocess.run([berth, *words], cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=120, check=False)
            found.append((line, f"exit {done.returncode}\n{masked(done.stdout, place)}\n! {masked(done.stderr, place)}"))
        study = subprocess.run([berth, "study"], cwd=place, env=environment, input=STUDY % json.dumps(FILES["space.json"]),
                               capture_output=True, text=True, timeout=60, check=False)
        found.append(("study", masked(study.stdout, place)))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    old, new = (answers(os.path.abspath(berth)) for berth in sys.argv[1:])
    differing = 0
    for (line, before), (_, after) in zip(old, new):
        if before == after:
            continue
        differing += 1
        print(f"berth {line}")
        for part in difflib.unified_diff(re.split(r"(?<=[,{\n])", before), re.split(r"(?<=[,{\n])", after), lineterm="", n=1):
            if not part.startswith(("---", "+++", "@@")):
                print(f"  {part.rstrip()}")
    print(f"{len(old)} commands, {differing} with another answer")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
