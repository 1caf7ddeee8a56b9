#!/usr/bin/python3
"""Time what each tool adds to running /bin/true many times, a few at once.

All tools run in the same session, one after another in every round, so that whatever else the
machine is doing falls on all of them alike.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASELINE = "posix_spawn loop"
NOTE = "Berth records each task durably; ninja and GNU parallel run each through a shell."

EXPERIMENT = """\
name: noop
run: /bin/true
params: {{i: {{min: 1, max: {tasks}, type: int}}}}
search: {{method: grid}}
parallel: {parallel}
resources: {resources}
"""
FREE = "{cpu: 1}"
LIMITED = "{cpu: 0.5, mem: 100M}"


@dataclass
class Tool:
    name: str
    program: str
    arguments: list
    tasks: int
    absent: str = "not installed"
    files: dict = field(default_factory=dict)  # name -> text, made afresh for each run
    seconds: list = field(default_factory=list)

    def command(self):
        """The command line, or None where the tool is missing."""
        path = shutil.which(self.program)
        return path and [path, *self.arguments]

    def run(self):
        # A fresh directory each time: no round may profit from, or pay for, what the last one left.
        with tempfile.TemporaryDirectory(prefix="berth-bench-") as scratch:
            folder = Path(scratch)
            for name, text in {"input": "", **self.files}.items():
                (folder / name).write_text(text)
            places = {"BERTH_DB": str(folder / "state"), "BERTH_LEDGER": str(folder / "ledger")}
            with open(folder / "input") as source:
                began = time.perf_counter()
                code = subprocess.run(
                    self.command(),
                    cwd=folder,
                    env={**os.environ, **places},
                    stdin=source,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                ).returncode
                self.seconds.append(time.perf_counter() - began)
        if code != 0:
            sys.exit(f"{self.name} failed with exit status {code}")

    def row(self):
        if not self.seconds:
            return {"tool": self.name, "missing": self.absent}
        median = statistics.median(self.seconds)
        return {
            "tool": self.name,
            "tasks": self.tasks,
            "seconds": median,
            "us_per_task": median / self.tasks * 1e6,
        }


def gnu_parallel():
    """Its name, or none: moreutils has another program of this name, which would run nothing here."""
    path = shutil.which("parallel")
    told = subprocess.run([path, "--version"], capture_output=True, check=False).stdout if path else b""
    return "parallel" if b"GNU" in told else ""


def tools(raw_spawn, berth, tasks, parallel):
    few = max(tasks // 10, 1)  # GNU parallel is slow enough to be judged by fewer
    jobs = str(parallel)

    def numbers(count):
        return {"input": "".join(f"{i}\n" for i in range(count))}

    rules = "rule run\n  command = /bin/true\n"
    rules += "".join(f"build never-made-{i}: run\n" for i in range(tasks))

    def experiment(resources):
        return {"noop.yaml": EXPERIMENT.format(tasks=tasks, parallel=parallel, resources=resources)}

    return [
        Tool(BASELINE, raw_spawn, [str(tasks), jobs], tasks),
        Tool("xargs", "xargs", ["-P", jobs, "-n1", "/bin/true"], tasks, files=numbers(tasks)),
        Tool("ninja", "ninja", ["-j", jobs], tasks, files={"build.ninja": rules}),
        Tool("GNU parallel", gnu_parallel(), ["-j", jobs, "/bin/true"], few, files=numbers(few)),
        Tool("Berth", berth, ["run", "noop.yaml"], tasks, "not built", experiment(FREE)),
        Tool("Berth, limits", berth, ["run", "noop.yaml"], tasks, "not built", experiment(LIMITED)),
    ]


def table(rows):
    lines = [("tool", "tasks", "seconds", "µs/task", "ratio")]
    for row in rows:
        if "missing" in row:
            lines.append((row["tool"], row["missing"], "", "", ""))
        else:
            numbers = f"{row['seconds']:.3f}", f"{row['us_per_task']:.0f}", f"{row['ratio']:.2f}"
            lines.append((row["tool"], str(row["tasks"]), *numbers))
    widths = [max(map(len, column)) for column in zip(*lines)]
    for name, *cells in lines:
        rest = (cell.rjust(width) for cell, width in zip(cells, widths[1:]))
        print("  ".join([name.ljust(widths[0]), *rest]).rstrip())


def build_raw_spawn(folder, *options):
    program = f"{folder}/raw_spawn"
    subprocess.run(["cc", "-O2", *options, "-o", program, HERE / "raw_spawn.c"], check=True)
    return program


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=positive, default=3000, metavar="N")
    parser.add_argument("--parallel", type=positive, default=2, metavar="N", help="tasks at once")
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="runs of each")
    parser.add_argument("--berth", default=HERE.parent / "build/release/bin/berth", metavar="PATH")
    parser.add_argument("--raw", metavar="PATH", help="raw_spawn, where no compiler is")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="berth-bench-") as built:
        raw_spawn = args.raw or build_raw_spawn(built)
        berth = str(Path(args.berth).absolute())  # each run starts in a directory of its own
        compared = tools(raw_spawn, berth, args.tasks, args.parallel)
        present = [tool for tool in compared if tool.command()]
        for _ in range(args.rounds):
            for tool in present:
                tool.run()

    rows = [tool.row() for tool in compared]
    for row in rows:
        if "missing" not in row:
            row["ratio"] = row["us_per_task"] / rows[0]["us_per_task"]
    if args.json:
        settings = {"parallel": args.parallel, "rounds": args.rounds}
        print(json.dumps({**settings, "note": NOTE, "tools": rows}, indent=2))
        return
    print(f"/bin/true, {args.parallel} at a time, median of {args.rounds} rounds")
    table(rows)
    print(f"Ratios are by time per task. {NOTE}")


if __name__ == "__main__":
    main()
