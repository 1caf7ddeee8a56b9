#!/usr/bin/python3
"""Draws the diagrams of the documents as SVG: the parts of Berth, the states of a task, and the layers of its source.

    tools/diagrams.py [--out docs/images] [NAME…]    # of parts, states, layers
    tools/diagrams.py --check                        # exit code 1 if a picture is not what this program draws

`layers` reads the includes of src/berth and shows the fewest arrows from which all others follow; `states` fails if the enumeration
of task states changed. A text that does not fit its box, a line across a box and overlapping boxes are errors."""

import argparse
import html
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import tidy  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("parts", "states", "layers")
FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
STYLE = """
.back { fill: #ffffff } .group { fill: #f3f5f8; stroke: #c3ccd6 } .box { fill: #e4eef8; stroke: #1769aa } .pure { fill: #e5f3e8; stroke: #2e7d46 }
.other { fill: #fbf0dc; stroke: #a86a00 } .line { stroke: #4a5664; fill: none; stroke-width: 1.4 } .head { fill: #4a5664 }
text { fill: #1c2430 } .soft { fill: #46525f } .bar { fill: #1769aa } .others { fill: #aab4c0 } .halo { stroke: #ffffff; stroke-width: 4; paint-order: stroke; stroke-linejoin: round }
.group ~ .halo { stroke: #f3f5f8 }
@media (prefers-color-scheme: dark) {
.back { fill: #14181d } .group { fill: #1e242c; stroke: #46525f } .box { fill: #173450; stroke: #7db8ee } .pure { fill: #17391f; stroke: #7bc58f }
.other { fill: #40300f; stroke: #e0b050 } .line { stroke: #a9b4c0 } .head { fill: #a9b4c0 }
text { fill: #eef2f6 } .soft { fill: #c3ccd6 } .bar { fill: #5aa2e0 } .others { fill: #6b7683 } .halo { stroke: #14181d } .group ~ .halo { stroke: #1e242c } }
"""


class Box:
    def __init__(self, x, y, width, height):
        self.x, self.y, self.width, self.height = x, y, width, height

    def at(self, side, part=0.5):
        """A point of the border. `part` is 0 at the left or upper end of the side and 1 at its other end."""
        x, y = self.x + self.width * part, self.y + self.height * part
        return {"top": (x, self.y), "bottom": (x, self.y + self.height), "left": (self.x, y), "right": (self.x + self.width, y)}[side]

    def contains(self, x, y):
        return self.x < x < self.x + self.width and self.y < y < self.y + self.height

    def overlaps(self, other):
        return (self.x < other.x + other.width and other.x < self.x + self.width and self.y < other.y + other.height
                and other.y < self.y + self.height)


class Drawing:
    """A picture on a background, so that it is readable on any page. All lengths are in pixels."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts, self.boxes, self.lines = [], [], []

    def fits(self, text, size, room):
        """Raises if the text may be wider than the room; 0.56 em is a wide mean of the letters of usual fonts."""
        if len(text) * size * 0.56 > room:
            raise ValueError(f"'{text}' is wider than {room:.0f} pixels")

    def text(self, x, y, text, size=12, anchor="middle", style="soft", bold=False):
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" class="{style}"{weight}>{html.escape(text)}</text>')

    def group(self, x, y, width, height, title):
        self.parts.append(f'<rect class="group" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>')
        self.text(x + 14, y + 22, title, size=13, anchor="start", style="", bold=True)

    def box(self, x, y, width, height, title, *lines, style="box"):
        box = Box(x, y, width, height)
        for other in self.boxes:
            if box.overlaps(other):
                raise ValueError(f"the box '{title}' overlaps another one")
        self.boxes.append(box)
        self.parts.append(f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" rx="6"/>')
        top = y + height / 2 - (len(lines) * 15) / 2
        self.fits(title, 14, width - 8)
        self.text(x + width / 2, top + 5, title, size=14, style="", bold=True)
        for number, line in enumerate(lines, 1):
            self.fits(line, 12, width - 8)
            self.text(x + width / 2, top + 5 + number * 15, line)
        return box

    def arrow(self, *points, label="", at=None, anchor="middle"):
        """A line with a head at its last point. The label is at the given point, or above the middle of a line of two points."""
        self.lines.append(points)
        (x1, y1), (x2, y2) = points[-2:]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        head = [(x2, y2), (x2 - 9 * dx - 4 * dy, y2 - 9 * dy + 4 * dx), (x2 - 9 * dx + 4 * dy, y2 - 9 * dy - 4 * dx)]
        shaft = [*points[:-1], (x2 - 7 * dx, y2 - 7 * dy)]
        self.parts.append('<polyline class="line" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in shaft) + '"/>'
                          '<polygon class="head" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in head) + '"/>')
        if label:
            x, y = at or ((points[0][0] + points[1][0]) / 2, (points[0][1] + points[1][1]) / 2 - 6)
            for number, line in enumerate(label.split("\n")):
                self.text(x, y + 15 * number, line, anchor=anchor, style="soft halo")

    def svg(self):
        for points in self.lines:
            for (x1, y1), (x2, y2) in zip(points, points[1:]):
                for box in self.boxes:
                    if any(box.contains(x1 + (x2 - x1) * step / 200, y1 + (y2 - y1) * step / 200) for step in range(1, 200)):
                        raise ValueError(f"a line from {x1:.0f},{y1:.0f} to {x2:.0f},{y2:.0f} crosses a box at {box.x:.0f},{box.y:.0f}")
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                          f'height="{self.height}" role="img" aria-label="{html.escape(self.title)}" font-family="{FONT}">',
                          f"<style>{STYLE}</style>", '<rect class="back" width="100%" height="100%" rx="8"/>', *self.parts, "</svg>", ""])


def parts():
    """Which process of Berth uses which other one."""
    draw = Drawing(760, 478, "The parts of Berth and how they are connected")
    draw.group(12, 12, 474, 454, "This machine")
    draw.group(526, 12, 222, 454, "Clusters (optional)")
    command = draw.box(28, 52, 150, 62, "berth", "show, why, top,", "stop, report, …")
    runner = draw.box(302, 52, 154, 62, "runner", "one per run:", "berth run, resume")
    store = draw.box(28, 196, 150, 78, "store", "runs, tasks, results", "in SQLite,", "or PostgreSQL")
    ledger = draw.box(302, 196, 110, 62, "ledger", "allocations", "of all users")
    dashboard = draw.box(28, 332, 150, 46, "dashboard", "berth dashboard")
    agent = draw.box(302, 332, 154, 46, "agent", "one per allocation")
    browser = draw.box(28, 414, 150, 36, "your browser", style="other")
    tasks = draw.box(302, 414, 154, 36, "your tasks", style="other")
    draw.arrow(command.at("right", 0.35), runner.at("left", 0.35), label="starts, stops")
    draw.arrow(command.at("bottom", 0.4), store.at("top", 0.4), label="reads", at=(96, 160), anchor="start")
    draw.arrow(runner.at("left", 0.85), store.at("right", 0.25), label="records\nresults", at=(230, 146), anchor="end")
    draw.arrow(runner.at("bottom", 0.25), ledger.at("top", 0.35), label="requests an\nallocation", at=(348, 150), anchor="start")
    draw.arrow(runner.at("bottom", 0.85), agent.at("top", 0.85), label="socket", at=(426, 300), anchor="end")
    draw.arrow(agent.at("top", 0.25), ledger.at("bottom", 0.35), label="owns the\nallocation", at=(332, 292), anchor="end")
    draw.arrow(agent.at("bottom"), tasks.at("top"), label="starts, limits", at=(387, 400), anchor="start")
    draw.arrow(dashboard.at("top", 0.4), store.at("bottom", 0.4), label="reads", at=(96, 308), anchor="start")
    draw.arrow(browser.at("top", 0.4), dashboard.at("bottom", 0.4), label="HTTP", at=(96, 400), anchor="start")
    for y, title, *lines in ((52, "ssh host", "agent and its tasks,", "ledger of all users;", "reached by ssh"),
                             (176, "Slurm job", "agent and its tasks;", "started by sbatch,", "reached by srun"),
                             (300, "EC2 instance", "agent and its tasks;", "started by EC2's API,", "reached by ssh")):
        host = draw.box(568, y, 166, 77, title, *lines)
        end = host.at("left", 31 / 77)
        draw.arrow(*([runner.at("right")] if y == 52 else [(506, end[1] - 124), (506, end[1])]), end)
    draw.text(637, 424, "Berth copies its agent to")
    draw.text(637, 440, "them and installs nothing.")
    return draw.svg()


def states():
    """The states of a task, with what moves it from one to another (store/transition.cc)."""
    declared = re.search(r"enum class TaskState[^{]*\{([^}]*)\}", (ROOT / "src/berth/store/store.h").read_text(encoding="utf-8"))[1]
    draw = Drawing(760, 372, "The states of a task")
    drawn = {}

    def state(name, x, y, *lines, style="box", width=138):
        drawn[name] = draw.box(x, y, width, 30 + 15 * len(lines), name, *lines, style=style)
        return drawn[name]

    waiting = state("waiting", 196, 146, "for inputs, resources", "or its next attempt", width=150)
    running = state("running", 452, 146, "an attempt", "of it runs", width=104)
    done = state("done", 610, 66, "it succeeded", style="pure")
    failed = state("failed", 610, 153.5, "no retry is left", style="other")
    stopped = state("stopped", 610, 240, "with its run", style="other")
    cached = state("cached", 12, 100, "result is reused", style="pure")
    skipped = state("skipped", 12, 192, "not needed", style="pure")
    draw.arrow(waiting.at("right", 0.3), running.at("left", 0.3), label="starts")
    draw.arrow(running.at("left", 0.75), waiting.at("right", 0.75), label="fails, but has\na retry left;\nor its machine\nor worker is lost\n(costs no retry)",
               at=(399, 209))
    draw.arrow(running.at("right", 0.2), done.at("left", 0.7))
    draw.arrow(running.at("right", 0.5), failed.at("left", 0.5))
    draw.arrow(running.at("right", 0.8), stopped.at("left", 0.3))
    draw.arrow(waiting.at("left", 0.2), cached.at("right", 0.6))
    draw.arrow(waiting.at("left", 0.8), skipped.at("right", 0.4))
    draw.arrow(failed.at("right", 0.5), (753, 176), (753, 28), (271, 28), waiting.at("top"), label="berth retry (with --all also from done, cached and skipped)",
               at=(500, 22))
    draw.arrow(waiting.at("bottom", 0.6), (286, 310), (655.54, 310), stopped.at("bottom", 0.33), label="berth stop", at=(470, 304))
    draw.arrow(stopped.at("bottom", 0.67), (702.46, 342), (241, 342), waiting.at("bottom", 0.3), label="berth resume", at=(470, 336))
    if set(drawn) != set(re.findall(r"\w+", declared)):
        sys.exit(f"the picture has the states {sorted(drawn)}, the source has {declared.strip()}")
    return draw.svg()


# The column of each layer in the picture; its row follows from the includes.
COLUMNS = {"fleet": 0, "ignore": 1, "os": 2, "resource": 3, "topology": 4, "placement": 5, "fileset": 2, "schedule": 3, "machine": 4.3,
           "cluster": 3.8, "exec": 4.9, "agent": 3, "flow": 4, "store": 5, "remote": 2.2, "api": 1.3, "experiment": 2.6, "run": 3.5,
           "engine": 2.7, "render": 4.8, "library": 3.1, "cli": 2.3}


def includes():
    """For each layer, the other layers that its files include. Tests do not count."""
    found = {layer: set() for layer in tidy.LAYERS if layer != "testing"}
    for layer, others in found.items():
        for path in sorted((ROOT / "src/berth" / layer).rglob("*")):
            if path.suffix in {".h", ".cc", ".c"} and not re.search(r"_(test|fuzz|bench)\.cc$|_(testing|contract)\.h$", path.name):
                others |= set(re.findall(r'^#include "berth/(\w+)/', path.read_text(encoding="utf-8"), re.M)) & set(tidy.LAYERS) - {layer}
    return found


def reduced(graph):
    """The edges that do not follow from others. `graph` lists its nodes after those that they lead to."""
    reached = {}
    for node, others in graph.items():
        reached[node] = set(others).union(*(reached[other] for other in others))
    return {node: [other for other in sorted(others) if not any(other in reached[third] for third in others)] for node, others in graph.items()}


def layers():
    graph = reduced(includes())
    rows = {}
    for layer, others in graph.items():
        rows[layer] = 1 + max((rows[other] for other in others), default=-1)
    pitch, height, left, step, width = 58, 30, 14, 126, 100
    top = max(rows.values())
    draw = Drawing(760, 76 + pitch * top + height, "The layers of src/berth, and which layer includes which")
    bottom = draw.height - 14 - height
    boxes = {}
    for layer, row in rows.items():
        style = "pure" if layer in tidy.PURE else "box"
        if row and layer not in COLUMNS:
            sys.exit(f"tools/diagrams.py: give the layer '{layer}' a column")
        x, wide = (left, draw.width - 2 * left) if not row else (left + COLUMNS[layer] * step, width)
        boxes[layer] = draw.box(x, bottom - pitch * row, wide, height, layer, style=style)
    for layer, others in graph.items():
        box = boxes[layer]
        others = sorted(others, key=lambda other: boxes[other].x + boxes[other].width / 2)
        for number, other in enumerate(others):
            start = box.at("bottom", (number + 1) / (len(others) + 1))
            if rows[other]:
                users = sorted((user for user in graph if other in graph[user]), key=lambda user: boxes[user].x)
                end = boxes[other].at("top", (users.index(layer) + 1) / (len(users) + 1))
            else:
                end = (start[0], boxes[other].y)
            draw.arrow(start, end)
    draw.text(14, 26, "An arrow leads from a layer to a layer that it includes.", anchor="start")
    draw.text(14, 43, "Includes that follow from other arrows are not drawn.", anchor="start")
    draw.parts.append('<rect class="pure" x="474" y="16" width="14" height="14" rx="3"/><rect class="box" x="474" y="36" width="14" height="14" rx="3"/>')
    draw.text(496, 27, "pure: no clock, file, thread or environment", anchor="start")
    draw.text(496, 47, "reaches the outside world through os", anchor="start")
    return draw.svg()


DRAW = {"parts": parts, "states": states, "layers": layers}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=ROOT / "docs/images", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME")
    arguments = parser.parse_args()
    stale = []
    for name in arguments.names or NAMES:
        path, text = arguments.out / f"{name}.svg", DRAW[name]()
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
            print(path, len(text.encode()), "bytes")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        sys.exit(f"the pictures {', '.join(stale)} are not current; run tools/diagrams.py")


if __name__ == "__main__":
    main()
