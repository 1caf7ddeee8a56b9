#!/usr/bin/python3
"""One page with every figure of the project beside its peers, measured in one run on this machine: bench.txt and bench.html
in build/bench. Each run is kept as a line of JSON, and figures that are worse than before are marked.

    bench/page.py [--quick] [--rounds 5] [--berth build/release/bin/berth] [--out build/bench] [--history .cache/bench.jsonl]

Ratios are by the same run's peer, so that a slow day of the machine slows both."""

import argparse
import datetime
import html
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import figures  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
WORSE = 1.25      # a ratio that is so many times the usual one is marked, where it is outside of what was seen before, too
REMEMBERED = 10   # runs that tell what is usual

STYLE = """
:root { --text: #1c2430; --soft: #5a6675; --back: #fff; --line: #d8dee6; --ours: #1769aa; --peer: #aab4c0; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #dfe5ec; --soft: #98a4b3; --back: #14181d; --line: #333c47;
  --ours: #6fb1ec; --peer: #5b6673; --bad: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 56rem; margin: auto;
  padding: 1rem 1.2rem 4rem; }
svg { width: 100%; height: auto; } svg text { font: 13px system-ui, sans-serif; fill: var(--text); }
.soft { color: var(--soft); } .bad { color: var(--bad); font-weight: 600; } code { overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); margin-top: 2rem; } h2 { font-size: 1.15rem; }
"""


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def row_of(samples):
    return {"median": statistics.median(samples), "least": min(samples), "most": max(samples), "samples": len(samples)}


def measured(options):
    """What one run came to, as it is kept."""
    sections = []
    for section in figures.all_sections(options):
        rows = {name: row_of(samples) for name, samples in section.rows.items()}
        base = rows.get(section.baseline, {}).get("median")
        sections.append({"key": section.key, "title": section.title, "unit": section.unit, "note": section.note,
                         "command": section.command, "baseline": section.baseline, "rows": rows,
                         "missing": section.missing,
                         "ratios": {name: rows[name]["median"] / base for name in section.ours if base and name in rows}})
    return {"time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "quick": options.quick,
            "machine": machine(), "load": load_before, "version": version(options.berth), "sections": sections}


def machine():
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = int(Path("/proc/meminfo").read_text().split()[1]) / 1e6
    return f"{os.cpu_count()} × {model}, {memory:.0f} GB, Linux {platform.release()}"


def version(berth):
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, check=False)
    told = subprocess.run([berth, "--version"], capture_output=True, check=True).stdout.decode().strip()
    return f"{told} ({commit.stdout.decode().strip() or 'no commit'})"


def earlier_runs(path, run):
    """The latest runs of this machine and form, the oldest first."""
    if not path.exists():
        return []
    runs = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [each for each in runs if (each["machine"], each["quick"]) == (run["machine"], run["quick"])][-REMEMBERED:]


def ratios_before(earlier, section, name):
    return [each["ratios"][name] for run in earlier for each in run["sections"]
            if each["key"] == section["key"] and name in each["ratios"]]


def regressions(run, earlier):
    """(section, row, its ratio, the usual one) of each figure that is worse than before."""
    for section in run["sections"]:
        for name, ratio in section["ratios"].items():
            before = ratios_before(earlier, section, name)
            if before and ratio > WORSE * statistics.median(before) and ratio > max(before):
                yield section, name, ratio, statistics.median(before)


# ---- The page.

def as_text(run, earlier):
    form = "quick form" if run["quick"] else "full form"
    lines = [f"Berth beside its peers, {run['time']}, {form}", run["version"], run["machine"],
             f"load average before: {run['load']}"]
    worse = list(regressions(run, earlier))
    lines += [f"WORSE: {section['title']}: {name}: {number(ratio)} × {section['baseline']}, usually {number(usual)}"
              for section, name, ratio, usual in worse] or [
        f"Nothing is worse than in {len(earlier)} earlier run{'s' if len(earlier) != 1 else ''} of this machine and form."]
    for section in run["sections"]:
        lines += ["", section["title"], "-" * len(section["title"]),
                  f"{section['unit']:<22}{'median':>12}{'least':>12}{'most':>12}{'n':>5}{'ratio':>9}"]
        base = section["rows"].get(section["baseline"], {}).get("median")
        for name, row in sorted(section["rows"].items(), key=lambda item: item[1]["median"]):
            ratio = number(row["median"] / base) if base else "-"
            lines.append(f"{name:<22}{number(row['median']):>12}{number(row['least']):>12}{number(row['most']):>12}"
                         f"{row['samples']:>5}{ratio:>9}")
        lines += [f"{name:<22}{why}" for name, why in section["missing"].items()]
        lines.append(f"{section['note']} Ratios are by {section['baseline']}. Alone: {section['command']}")
    return "\n".join(lines) + "\n"


def bars(section):
    """Medians as bars, with a whisker from the least to the most; by the logarithm where they differ much."""
    rows = sorted(section["rows"].items(), key=lambda item: item[1]["median"])
    if not rows:
        return ""
    least, most = min(row["least"] for _, row in rows), max(row["most"] for _, row in rows)
    log = most > 30 * least

    def at(value):
        if log:
            return 10 + 270 * math.log(max(value, least) / (least / 2)) / math.log(most / (least / 2))
        return 280 * value / most
    parts = []
    for i, (name, row) in enumerate(rows):
        y = 8 + 30 * i
        colour = "var(--ours)" if name in section["ratios"] else "var(--peer)"
        parts.append(
            f'<text x="130" y="{y + 15}" text-anchor="end">{html.escape(name)}</text>'
            f'<rect x="138" y="{y}" width="{at(row["median"]):.1f}" height="20" rx="2" fill="{colour}"/>'
            f'<path d="M{138 + at(row["least"]):.1f} {y + 10}H{138 + at(row["most"]):.1f}" stroke="var(--text)"/>'
            f'<text x="{148 + max(at(row["median"]), at(row["most"])):.1f}" y="{y + 15}">{number(row["median"])}</text>')
    scale = ", by the logarithm" if log else ""
    return (f'<svg viewBox="0 0 500 {16 + 30 * len(rows)}" role="img" aria-label="{html.escape(section["title"])}">'
            f'{"".join(parts)}</svg><p class="soft">{section["unit"]}{scale}; bars are medians, lines go from the least to the '
            f'most.</p>')


def curve(values):
    """The ratios of earlier runs and of this one, the latest at the right."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    points = " ".join(f"{4 + 192 * i / (len(values) - 1):.1f},{34 - 28 * (v - low) / ((high - low) or 1):.1f}"
                      for i, v in enumerate(values))
    return (f'<svg viewBox="0 0 200 40" style="width:12rem" role="img" aria-label="earlier ratios">'
            f'<polyline points="{points}" fill="none" stroke="var(--ours)" stroke-width="2"/></svg>')


def as_html(run, earlier):
    body = []
    worse = {(section["key"], name): usual for section, name, _, usual in regressions(run, earlier)}
    for section in run["sections"]:
        told = []
        for name, ratio in section["ratios"].items():
            usual = worse.get((section["key"], name))
            mark = f' <span class="bad">worse: usually {number(usual)}</span>' if usual else ""
            told.append(f"<p>{html.escape(name)}: <b>{number(ratio)}</b> × {html.escape(section['baseline'])}{mark} "
                        f"{curve(ratios_before(earlier, section, name) + [ratio])}</p>")
        missing = "".join(f"<p class=soft>{html.escape(name)}: {html.escape(why)}</p>"
                          for name, why in section["missing"].items())
        body.append(f"<section><h2>{html.escape(section['title'])}</h2>{bars(section)}{''.join(told)}{missing}"
                    f"<p class=soft>{html.escape(section['note'])} Alone: <code>{html.escape(section['command'])}</code></p>"
                    "</section>")
    head = "".join(f"<br>{html.escape(line)}" for line in (run["version"], run["machine"], f"load before: {run['load']}"))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Berth beside its peers</title><style>{STYLE}</style></head>
<body><h1>Berth beside its peers</h1><p class="soft">{run['time']}, {'quick' if run['quick'] else 'full'} form{head}</p>
<p>{f'<span class="bad">{len(worse)} figures are worse than before.</span>' if worse else
    f'Nothing is worse than in {len(earlier)} earlier runs of this machine and form.'}</p>
{"".join(body)}</body></html>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer tasks and rounds: within three minutes")
    parser.add_argument("--rounds", type=int, help="of each tool (5; quick: 3)")
    parser.add_argument("--berth", type=Path, default=ROOT / "build/release/bin/berth")
    parser.add_argument("--berth-bench", type=Path, help="default: beside berth")
    parser.add_argument("--out", type=Path, default=ROOT / "build/bench")
    parser.add_argument("--history", type=Path, default=ROOT / ".cache/bench.jsonl")
    parser.add_argument("--show", action="store_true", help="the page of the latest run in the history; measure nothing")
    options = parser.parse_args()
    options.berth = options.berth.resolve()
    options.berth_bench = options.berth_bench or options.berth.with_name("berth-bench")
    options.rounds = options.rounds or (3 if options.quick else 5)
    if options.show:
        runs = options.history.read_text().splitlines()
        run = json.loads(runs.pop())
        earlier = [each for each in map(json.loads, runs)
                   if (each["machine"], each["quick"]) == (run["machine"], run["quick"])][-REMEMBERED:]
    else:
        run = measured(options)
        earlier = earlier_runs(options.history, run)
        options.history.parent.mkdir(parents=True, exist_ok=True)
        with open(options.history, "a", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")
    options.out.mkdir(parents=True, exist_ok=True)
    text = as_text(run, earlier)
    (options.out / "bench.txt").write_text(text, encoding="utf-8")
    (options.out / "bench.html").write_text(as_html(run, earlier), encoding="utf-8")
    print(text, end="")
    print(f"{options.out}/bench.html", file=sys.stderr)
    return 1 if list(regressions(run, earlier)) else 0


load_before = " ".join(f"{each:.2f}" for each in os.getloadavg())

if __name__ == "__main__":
    sys.exit(main())
