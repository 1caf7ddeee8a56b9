#!/usr/bin/env python3
"""Trivial tasks with an output each: Berth, make and snakemake one after the other, the same shell
command in each. Three figures in microseconds a task: cold (nothing is there), cached (the outputs
are gone, what is known of them is not; only Berth brings them back) and nothing to do.

    bench/compare_flows.py [--tasks 300] [--runs 3] [--json]

Environment: BERTH_BIN, else build/release/bin/berth. A tool that is not installed is left out;
--most-s ends one that takes longer over a figure."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BERTH = os.environ.get(
    "BERTH_BIN", str(Path(__file__).parents[1] / "build/release/bin/berth"))


def berth(folder: Path, tasks: int) -> list[str]:
    (folder / "flow.yaml").write_text(
        f"name: tiny\nsteps:\n  t:\n    foreach: {{i: '{{all}}'}}\n    shell: sh\n"
        "    out: {o: 'out/{i}.txt'}\n    run: echo {i} > {out.o}\n"
        f"params:\n  all: [{', '.join(map(str, range(tasks)))}]\n")
    return [BERTH, "run", "flow.yaml"]


def make(folder: Path, tasks: int) -> list[str]:
    (folder / "Makefile").write_text(
        f"all: {' '.join(f'out/{i}.txt' for i in range(tasks))}\n"
        "out/%.txt: | out\n\techo $* > $@\nout:\n\tmkdir out\n")
    return ["make", "-s", f"-j{os.cpu_count()}"]


def snakemake(folder: Path, tasks: int) -> list[str]:
    (folder / "Snakefile").write_text(
        f"rule all:\n    input: expand('out/{{i}}.txt', i=range({tasks}))\n"
        "rule t:\n    output: 'out/{i}.txt'\n    shell: 'echo {wildcards.i} > {output}'\n")
    return ["snakemake", f"-j{os.cpu_count()}", "-q"]


TOOLS = {"berth": berth, "make": make, "snakemake": snakemake}


def timed(command: list[str], folder: Path, most_s: float) -> float | None:
    """Seconds; None where it took longer than it may."""
    environment = {**os.environ, "BERTH_STATE": str(folder / "state"), "HOME": str(folder)}
    begun = time.monotonic()
    try:
        subprocess.run(command, cwd=folder, env=environment, check=True, timeout=most_s,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - begun


def measure(tool: str, tasks: int, most_s: float) -> dict[str, float | None]:
    """The figures of one folder that nobody used before."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        folder = Path(name)
        command = TOOLS[tool](folder, tasks)
        took: dict[str, float | None] = {"cold": timed(command, folder, most_s)}
        if took["cold"] is None:
            return took
        written = len(list((folder / "out").iterdir()))
        if written != tasks:
            sys.exit(f"{tool}: {written} of {tasks} outputs are there")
        if tool == "berth":
            shutil.rmtree(folder / "out")
            took["cached"] = timed(command, folder, most_s)
        took["nothing to do"] = timed(command, folder, most_s)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3, help="the median of so many is told")
    parser.add_argument("--most-s", type=float, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    present = [tool for tool in TOOLS if shutil.which(BERTH if tool == "berth" else tool)]
    runs: dict[str, list] = {tool: [] for tool in present}
    for _ in range(options.runs):  # in turn: what the machine does beside them meets all
        for tool in present:
            if not runs[tool] or runs[tool][-1]["cold"] is not None:
                runs[tool].append(measure(tool, options.tasks, options.most_s))
    medians = {}
    for tool, all_runs in runs.items():
        medians[tool] = {}
        for figure in ("cold", "cached", "nothing to do"):
            seconds = [run[figure] for run in all_runs if run.get(figure) is not None]
            if seconds:
                medians[tool][figure] = round(statistics.median(seconds) / options.tasks * 1e6, 1)
    if options.json:
        print(json.dumps({"tasks": options.tasks, "us_per_task": medians}))
        return
    print(f"{options.tasks} tasks, µs each{'cold':>20}{'cached':>12}{'nothing to do':>16}")
    for tool, figures in medians.items():
        texts = [f"{figures[name]:.0f}" if name in figures else "-"
                 for name in ("cold", "cached", "nothing to do")]
        print(f"{tool:<30}{texts[0]:>12}{texts[1]:>12}{texts[2]:>16}")


if __name__ == "__main__":
    main()
