#!/usr/bin/python3
"""How soon and how smoothly the dashboard shows long runs in a browser (Debian's Chromium, without a GPU): a sweep of many
real trials of five parameters, and a flow of many real tasks in two steps.

    bench/dashboard.py                               100,000 of each: half an hour, most of it to make the runs
    bench/dashboard.py --trials 3000 --tasks 3000
    bench/dashboard.py --keep DIR                    makes the runs in DIR, or measures those that it finds there

Of each run, from the moment that a viewer who has not been there goes to its address: until the page's first paint, until
its charts and its table are drawn, and of the sweep until it shows the importance of the parameters, which comes last. The memory of the server
at most, and that of its children, which read the store for it. Of the sweep: the frames of a second's drag along an axis of the parallel coordinates."""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from chromium import Chromium  # noqa: E402

PATIENCE_S = 120
SWEEP = """
run: [printf, '::berth loss={{x}} cost={{y}}']
params: {{x: {{min: 0, max: 1}}, y: {{min: 0, max: 1}}, lr: {{min: 1e-5, max: 1, scale: log}}, n: {{min: 1, max: 64, type: int}},
         kind: [a, b, c]}}
search: {{method: random, samples: {count}, seed: 1}}
goal: {{metric: loss, direction: min}}
resources: {{cpu: 0.1}}
parallel: 2
"""
FLOW = """
name: flow
steps:
  first: {{foreach: {{n: {{table: numbers.csv}}}}, run: [test, '{{n}}', -gt, '0']}}
  second: {{foreach: {{n: {{table: numbers.csv}}}}, needs: [first], run: [test, '{{n}}', -gt, '0']}}
"""
FIRST_PAINT = "performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint')?.startTime"
NEXT_FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
# The milliseconds of each frame until `dragging` is false.
FRAMES = """new Promise(done => {
  const frames = []; let last = performance.now();
  const step = now => { frames.push(now - last); last = now; window.dragging === false ? done(frames) : requestAnimationFrame(step); };
  window.dragging = true; requestAnimationFrame(() => { last = performance.now(); requestAnimationFrame(step); });
})"""


def make(berth, folder, name, text, count):
    (folder / f"{name}.yaml").write_text(text.format(count=count))
    (folder / "numbers.csv").write_text("\n".join(["n", *map(str, range(1, count // 2 + 1))]) + "\n")
    began = time.monotonic()
    subprocess.run([berth, "run", f"{name}.yaml"], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    print(f"made {name}-1 in {time.monotonic() - began:.0f} s", file=sys.stderr)


def environment(folder):
    return {**os.environ, "BERTH_DB": f"{folder}/state", "BERTH_LEDGER": f"{folder}/ledger"}


def peak_mb(pid):
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0


class Memory(threading.Thread):
    """The most that a server, and the most that one of its children, has held so far."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.own, self.child = server, 0, 0
        self.start()

    def run(self):
        while self.server.poll() is None:
            self.own = max(self.own, peak_mb(self.server.pid))
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{self.server.pid}/task"):
                    for child in Path(f"/proc/{self.server.pid}/task/{thread}/children").read_text().split():
                        self.child = max(self.child, peak_mb(child))
            time.sleep(0.005)


@contextlib.contextmanager
def dashboard(berth, folder):
    server = subprocess.Popen([berth, "dashboard"], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        address, _, secret = server.stdout.readline().decode().strip().partition("/open")
        yield address, secret, Memory(server)
    finally:
        server.terminate()
        server.wait()


def come_in(browser, address, secret):
    page = browser.page()
    page.open(f"{address}/open{secret}")
    page.until("location.pathname === '/'")
    page.open("about:blank")
    return page


def drawn(page, address, run, ready):
    """Seconds until the first paint of a run's page, and until what `ready` says is there is drawn."""
    page.call("Page.navigate", url=f"{address}/#/runs/{run}")
    page.until(f"location.hash.endsWith({json.dumps(run)}) && ({ready})", PATIENCE_S)
    return page.run(FIRST_PAINT) / 1e3, page.run(NEXT_FRAME) / 1e3


def drag(page, seconds=1.0):
    """The frames, in ms, of a drag along the second axis of the parallel coordinates."""
    box = page.run("(() => { const c = [...document.querySelectorAll('canvas')].find(e => e.ariaLabel.startsWith('parallel'));"
                   " c.scrollIntoView({block: 'center'}); const b = c.getBoundingClientRect();"
                   " return {x: b.left + 40 + (b.width - 80) / 5, top: b.top + 40, tall: b.height - 70}; })()")
    page.run(f"window.frames_ = {FRAMES}; 0")

    def mouse(kind, part):
        page.call("Input.dispatchMouseEvent", type=kind, x=box["x"], y=box["top"] + part * box["tall"], button="left", buttons=1)
    mouse("mousePressed", 0.1)
    began, moves = time.monotonic(), 0
    while (past := (time.monotonic() - began) / seconds) < 1:
        mouse("mouseMoved", 0.1 + 0.7 * past)
        moves += 1
    mouse("mouseReleased", 0.8)
    frames = page.run("window.dragging = false, window.frames_")
    page.until_text(" of ", "choose all")
    return sorted(frames), moves


def measure(berth, folder, trials, tasks):
    found = {}
    with tempfile.TemporaryDirectory(prefix="berth-chromium-", ignore_cleanup_errors=True) as profile:
        browser = Chromium(Path(profile))
        for name, count, ready in (("sweep", trials, "'parallel '"), ("flow", tasks, "'tasks in '")):
            if count == 0:
                continue
            with dashboard(berth, folder) as (address, secret, memory):
                page = come_in(browser, address, secret)
                paint, whole = drawn(page, address, f"{name}-1",
                                     f"[...document.querySelectorAll('canvas')].some(e => e.ariaLabel?.includes({ready}))"
                                     f" && document.body.textContent.includes('{count:,} of {count:,}')")
                found[name] = {"count": count, "first_paint_s": paint, "drawn_s": whole}
                if name == "sweep":
                    page.until_text("Parameter importance for loss")
                    found[name]["decides_s"] = page.run(NEXT_FRAME) / 1e3
                    page.run("new Promise(done => requestIdleCallback(() => requestIdleCallback(done)))")
                    frames, moves = drag(page)
                    found[name] |= {"frames": len(frames), "moves": moves, "frame_ms": statistics.median(frames),
                                    "late_frame_ms": frames[-1 - len(frames) // 20], "worst_frame_ms": frames[-1]}
                found[name] |= {"server_mb": memory.own, "child_mb": memory.child, "errors": list(page.errors)}
        browser.close()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--keep", metavar="DIR")
    parser.add_argument("--berth", default=ROOT / "build/release/bin/berth", metavar="PATH")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    berth = str(Path(options.berth).resolve())
    with tempfile.TemporaryDirectory(prefix="berth-dashboard-") as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(exist_ok=True)
        for name, count, text in (("sweep", options.trials, SWEEP), ("flow", options.tasks, FLOW)):
            if count and not (folder / f"{name}.yaml").exists():
                make(berth, folder, name, text, count)
        found = measure(berth, folder, options.trials, options.tasks)
    if options.json:
        print(json.dumps(found))
        return
    for name, each in found.items():
        print(f"{name} of {each['count']:,}: first paint after {each['first_paint_s']:.2f} s, charts and table after "
              f"{each['drawn_s']:.2f} s; server at most {each['server_mb']:.0f} MiB, a child of its "
              f"{each['child_mb']:.0f} MiB")
        if "frames" in each:
            print(f"  parameter importance: after {each['decides_s']:.2f} s")
            print(f"  brushing: {each['frames']} frames, {each['moves']} moves in a second; median "
                  f"{each['frame_ms']:.0f} ms a frame, 95 % within {each['late_frame_ms']:.0f}, the longest "
                  f"{each['worst_frame_ms']:.0f}")
        for error in each["errors"]:
            print(f"  an error on the page: {error}")


if __name__ == "__main__":
    main()
