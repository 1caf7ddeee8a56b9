#!/usr/bin/python3
"""Makes the pictures of the documents: a sweep and a plan in a terminal and the dashboard, from the real program; the measured
comparison; and the diagrams (tools/diagrams.py).

    tools/pictures.py [--berth build/release/bin/berth] [--out docs/images] [NAME…]
                      # of sweep, dashboard, search, plan, parts, states, layers

`sweep` and `dashboard` need python3-numpy for the example; `dashboard` also needs Chromium. Each picture has less than 300 kB."""

import argparse
import base64
import html
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import diagrams  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

NAMES = ("search", "sweep", "dashboard", "plan", *diagrams.NAMES)
MOST_BYTES = 300_000
ROWS, COLUMNS = 24, 80
RUN_S = 900  # the longest that the sweep may take on a busy machine
NO_BREAK_SPACE = "\u00a0"
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def terminal_svg(lines, title):
    """The lines of a terminal as a picture. `textLength` keeps the columns in place in every font, and blanks are
    no-break spaces because browsers collapse others."""
    width, height, left, top = 8.4, 18, 14, 44
    whole = (2 * left + COLUMNS * width, top + len(lines) * height + 8)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole[0]:.0f} {whole[1]}" role="img" aria-label="{html.escape(title)}" '
             f'width="{whole[0]:.0f}" height="{whole[1]}">',
             f'<rect width="100%" height="100%" rx="8" fill="#14181d"/><text x="{left}" y="24" font-family="{FONT}" font-size="13" '
             f'fill="#98a4b3">{html.escape(title)}</text><g font-family="{FONT}" font-size="14" fill="#dfe5ec">']
    for number, line in enumerate(lines):
        if line:
            color = ' fill="#7db8ee"' if line.startswith("$ ") else ""
            text = html.escape(line).replace(" ", NO_BREAK_SPACE)
            parts.append(f'<text x="{left}" y="{top + (number + 0.75) * height:.1f}" textLength="{len(line) * width:.1f}"{color}>{text}</text>')
    return "\n".join([*parts, "</g></svg>", ""])


def bars_svg(rows, title, note):
    """Horizontal bars: rows of (label, value, whether it is one of Berth's methods)."""
    height, left, most = 26, 210, max(value for _, value, _ in rows)
    whole = 44 + height * len(rows) + 26
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {whole}" width="720" height="{whole}" role="img" aria-label="{html.escape(title)}" '
             'font-family="system-ui, sans-serif" font-size="14">'
             f"<style>{diagrams.STYLE}</style>"
             '<rect class="back" width="100%" height="100%" rx="8"/>'
             f'<text x="14" y="26" font-weight="600">{html.escape(title)}</text>']
    for number, (label, value, is_berth) in enumerate(rows):
        y, length = 44 + number * height, value / most * (720 - left - 70)
        parts.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{html.escape(label)}</text>'
                     f'<rect x="{left}" y="{y}" width="{length:.1f}" height="19" rx="3" class="{"bar" if is_berth else "bar others"}"/>'
                     f'<text x="{left + length + 8:.1f}" y="{y + 14}">{value:.1f}</text>')
    parts.append(f'<text x="14" y="{whole - 12}" font-size="12" class="soft">{html.escape(note)}</text></svg>\n')
    return "\n".join(parts)


def ranks(text):
    """The mean ranks at 300 trials of the table in bench/search.md that includes Optuna's TPE."""
    rows = [[cell.strip(" `") for cell in line.strip("|\n ").split("|")] for line in text.splitlines() if line.startswith("|")]
    at = next(i for i, row in enumerate(rows) if row[0] == "trials" and "Optuna's TPE" in row)
    values = next(row for row in rows[at:] if row[0] == "mean rank at 300")
    for name, value in zip(rows[at][1:], values[1:]):
        optuna = name.startswith("Optuna") or name.startswith("its ")
        label = "Optuna " + re.sub(r"^(Optuna's|its) ", "", name) if optuna else f"Berth {name}"
        yield label, float(value), not optuna


class Pictures:
    def __init__(self, berth, out):
        self.berth, self.out = berth, out

    def save(self, name, data):
        data = data.encode() if isinstance(data, str) else data
        if len(data) > MOST_BYTES:
            sys.exit(f"{name}: {len(data)} bytes, expected at most {MOST_BYTES}")
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / name).write_bytes(data)
        print(self.out / name, len(data), "bytes")

    def search(self):
        rows = sorted(ranks((ROOT / "bench/search.md").read_text(encoding="utf-8")), key=lambda row: row[1])
        self.save("search.svg", bars_svg(rows, "Mean rank of nine search methods after 300 trials (lower is better)",
                                         "15 test functions, 3 seeds, one trial at a time. Source: bench/search.md"))

    def shown_by(self, house, folder, *words):
        """Runs a command of berth on a terminal of 80 columns and returns the text that it wrote, without control sequences."""
        import terminal
        terminal.PATIENCE_S = RUN_S
        environment = {**house.environment, "TERM": "xterm-256color"}
        shown = terminal.OnTerminal([str(self.berth), *words], environment, ROWS, COLUMNS, cwd=folder)
        try:
            code = shown.wait()
        finally:
            shown.close()
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.text).replace("\r\n", "\n")
        if code:
            sys.exit(f"berth {' '.join(words)} ended with exit code {code}:\n{text}")
        return text

    def plan(self, house):
        """Plans examples/fleet on a terminal."""
        lines = self.shown_by(house, ROOT, "plan", "examples/fleet").rstrip().split("\n")
        self.save("plan.svg", terminal_svg(["$ berth plan examples/fleet", *(line.rstrip() for line in lines)], "A plan for five servers"))

    def sweep(self, house, folder):
        """Runs examples/digits/sweep.yaml on a terminal, and keeps the end of what it shows."""
        text = self.shown_by(house, folder, "run", "digits/sweep.yaml")
        lines = [line.rstrip().rpartition("\r")[2] for line in text.split("\n")]
        head = next(i for i, line in enumerate(lines) if re.match(r"\s*task\s", line))
        ends = [i for i, line in enumerate(lines) if re.match(r"digits-1 ", line)]
        table = lines[head:head + 12]
        progress = [part for part in re.split(r"[\r\n]", text) if "running" in part]
        picture = ["$ berth run examples/digits/sweep.yaml", progress[len(progress) * 2 // 3].rstrip() if progress else "", "",
                   *table, " …", *[line for line in lines[ends[-1]:ends[-1] + 2]]]
        self.save("sweep.svg", terminal_svg([line[:COLUMNS] for line in picture], "40 trials on two cores"))

    def dashboard(self, house, folder):
        from chromium import Chromium
        if not shutil.which("chromium"):
            sys.exit("chromium is not installed")
        server = house.start("dashboard", "digits-1", cwd=folder)
        browser = Chromium(folder / "profile")
        try:
            link = server.stdout.readline().decode().strip()
            page = browser.page(width=1000, height=537)  # the shape of the picture of the terminal
            page.open(link)
            page.until_text("digits-1", "accuracy")
            page.until("document.querySelectorAll('canvas').length > 1")
            page.run("new Promise(done => setTimeout(done, 1500))")
            data = page.call("Page.captureScreenshot", format="png")["data"]
        finally:
            browser.close()
        self.save("dashboard.png", base64.b64decode(data))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=ROOT / "build/release/bin/berth", type=Path)
    parser.add_argument("--out", default=ROOT / "docs/images", type=Path)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME")
    arguments = parser.parse_args()
    pictures = Pictures(arguments.berth.absolute(), arguments.out)
    names = set(arguments.names or NAMES)
    if "search" in names:
        pictures.search()
    for name in diagrams.NAMES:
        if name in names:
            pictures.save(f"{name}.svg", diagrams.DRAW[name]())
    if not {"sweep", "dashboard", "plan"} & names:
        return
    os.environ["BERTH_BIN"] = str(pictures.berth)
    from berth_case import House
    with tempfile.TemporaryDirectory(prefix="berth-pictures-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        shutil.copytree(ROOT / "examples/digits", folder / "digits")
        house = House(folder, str(pictures.berth))
        try:
            if "plan" in names:
                pictures.plan(house)
            if {"sweep", "dashboard"} & names:
                pictures.sweep(house, folder)
            if "dashboard" in names:
                pictures.dashboard(house, folder)
        finally:
            house.close()


if __name__ == "__main__":
    main()
