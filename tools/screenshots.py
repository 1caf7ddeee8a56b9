#!/usr/bin/python3
"""Takes screenshots of all that users see, and reports visible faults: pages wider than the window, cut or overlapping texts.

    tools/screenshots.py [--berth build/release/bin/berth] [--out build/screenshots/all] [--built] [GROUP…]
                         # of documents, terminal, dashboard, reports

Pages are taken at 1400x1000 and at 390x844, light and dark; commands at 80 columns. Exit code 1 if a fault was found.
`--built` shows the dashboard with the files of web/built instead of those in the program, which saves a build after `web/build`.
Needs Chromium, and cmark-gfm for `documents`. All measurements of the runs shown are invented."""

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import pictures  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

GROUPS = ("documents", "terminal", "dashboard", "reports")
SIZES = {"wide": (1400, 1000), "narrow": (390, 844)}
DOCUMENTS = ("README", "docs/README", "docs/explanation/concepts", "docs/architecture", "docs/how-to/plan-a-fleet", "docs/reference/commands",
             "docs/tutorial/README")
COMMANDS = (("--help",), ("run", "--help"), ("plan", "--help"), ("plan", "examples/fleet"))
SEARCH = """
name: digits
run: |
  sleep 0.0{width}
  for i in 1 2 3 4 5; do echo "::berth accuracy=$(echo "0.95 - ({lr} - 0.1) * ({lr} - 0.1) - 0.2 / ({width} + $i)" | bc -l)"; done
  echo "::berth seconds=$(({width} * 3))"; test {width} -lt 58
params: {lr: {min: 0.001, max: 1, scale: log}, width: {min: 4, max: 64, type: int}, optimizer: [adam, sgd, lion]}
search: {method: random, samples: 30, seed: 3}
goal: [{metric: accuracy, direction: max}, {metric: seconds, direction: min}]
resources: {cpu: 0.1}
"""
FLOW = """
name: align
steps:
  fetch: {foreach: {sample: [A, B, C, D]}, run: "sleep 0.1; echo {sample} > {out.reads}", out: {reads: "{sample}.txt"}}
  map_reads_to_the_reference_genome:
    foreach: {reads: fetch.reads}
    run: "sleep 0.2; cat {reads} > {out.mapped}"
    out: {mapped: "{reads.sample}.mapped"}
  count: {in: {all: map_reads_to_the_reference_genome.mapped}, run: "cat {in.all} > {out.counts}", out: {counts: counts.txt}}
  report: {in: {counts: count.counts}, run: "echo 'no such column: quality' >&2; exit 3"}
"""
LONG_NAME = "a-run-with-quite-a-long-name-as-scripts-generate-them-20261127"
# Elements that show less text than they have, and texts of a drawing that overlap or leave it.
FAULTS = """(() => {
  const found = [], visible = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const name = (e) => `<${e.localName}${e.className.baseVal ?? (e.className ? '' : '')}> "${(e.textContent || '').trim().slice(0, 50)}"`;
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) {
    const out = [...document.querySelectorAll('body *')].filter((e) => visible(e) && !e.closest('.scroll, .wide, pre') && e.getBoundingClientRect().right > innerWidth + 1);
    found.push(`the page is ${wide} pixels wide: ${out.slice(0, 3).map(name).join(', ')}`);
  }
  for (const e of document.querySelectorAll('body *')) {
    const style = getComputedStyle(e);
    if (visible(e) && e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1 && (style.overflowX === 'hidden' || style.overflowX === 'clip') && e.textContent.trim())
      found.push(`cut: ${name(e)}`);
  }
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter((e) => e.textContent.trim() && visible(e)).map((e) => [e, e.getBoundingClientRect()]);
    texts.forEach(([e, a], index) => {
      if (a.right > frame.right + 1 || a.left < frame.left - 1 || a.bottom > frame.bottom + 1 || a.top < frame.top - 1) found.push(`outside its drawing: ${name(e)}`);
      for (const [other, b] of texts.slice(index + 1))
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3) found.push(`overlap: ${name(e)} and ${name(other)}`);
    });
  }
  return [...new Set(found)];
})()"""
SETTLED = "new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 400))"


class Screenshots:
    def __init__(self, berth, out, built):
        from chromium import Chromium
        self.berth, self.out, self.built = berth, out, built
        self.files = tempfile.TemporaryDirectory(prefix="berth-screenshots-", ignore_cleanup_errors=True)
        self.folder = Path(self.files.name)
        self.browser = Chromium(self.folder / "profile")
        self.faults = 0
        self.runs = {}

    def close(self):
        self.browser.close()
        self.files.cleanup()

    def take(self, page, name, url=""):
        """The page in both sizes and both color schemes. A URL is opened again in each size. Leaves the page wide and light."""
        for size, (width, height) in SIZES.items():
            page.resize(width, height)
            if url:
                page.open(url)
            for dark in (False, True):
                page.look(dark=dark)
                page.run(SETTLED)
                page.screenshot(self.out / f"{name}-{size}-{'dark' if dark else 'light'}.png")
            self.report(page, f"{name}, {width} pixels wide")
        page.resize(*SIZES["wide"])
        page.look(dark=False)

    def report(self, page, where):
        for fault in page.run(FAULTS):
            self.faults += 1
            print(f"{where}: {fault}")

    def documents(self, _):
        site = self.folder / "site"
        subprocess.run([sys.executable, ROOT / "tools/site.py", "--berth", self.berth, "--out", site], check=True, stdout=subprocess.DEVNULL)
        page = self.browser.page()
        for name in DOCUMENTS:
            self.take(page, "document-" + name.replace("/", "-"), (site / f"{name}.html").as_uri())

    def terminal(self, house):
        make = pictures.Pictures(self.berth, self.out)
        page = self.browser.page()
        for words in COMMANDS:
            lines = make.shown_by(house, ROOT, *words).rstrip().split("\n")
            title = "berth " + " ".join(words)
            for line in lines:
                if len(line) > pictures.COLUMNS:
                    self.faults += 1
                    print(f"{title}: {len(line)} columns: {line}")
            name = "terminal-" + "-".join(word.strip("-").replace("/", "-") for word in words)
            picture = self.folder / f"{name}.svg"
            picture.write_text(pictures.terminal_svg([line.rstrip() for line in lines], title), encoding="utf-8")
            page.resize(720, 60 + 18 * len(lines))
            page.open(picture.as_uri())
            page.screenshot(self.out / f"{name}.png")

    def write_runs(self, house):
        """Runs of every kind: a search, a flow that fails, single commands, and one that waits."""
        if self.runs:
            return
        for name, text in (("search.yaml", SEARCH), ("flow.yaml", FLOW), ("long.yaml", SEARCH.replace("digits", LONG_NAME).replace("samples: 30", "samples: 6"))):
            (self.folder / name).write_text(text, encoding="utf-8")
        house.path = self.folder
        for words in (("search.yaml",), ("search.yaml",), ("flow.yaml",), ("flow.yaml",), ("--name", "hello", "--", "true"),
                      ("long.yaml", "--label", "team=vision", "--label", "dataset=imagenet-21k-winter-2021", "--label", "owner=a.researcher@example.org"),
                      ("--detach", "--gpu", "2", "--", "sleep", "600"), ("--detach", "--gpu", "8", "--", "sleep", "600")):
            done = house.run("run", *words)
            if done.code not in (0, 1):
                sys.exit(f"berth run {' '.join(words)}: {done}")
        self.runs = {"search": "digits-1", "flow": "align-2", "long": f"{LONG_NAME}-1"}
        failed = next(task["id"] for task in house.tasks("digits-1") if task["state"] == "failed")
        self.runs["task"] = failed

    def serve_built(self, page):
        """Answers requests for the files of the page with those of web/built."""
        heard = page.heard

        def answer(method, parameters):
            if method != "Fetch.requestPaused":
                return heard(method, parameters)
            path = parameters["request"]["url"].partition("?")[0].rpartition("/")[2] or "index.html"
            types = {"index.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
            if path not in types:
                return page.call("Fetch.continueRequest", requestId=parameters["requestId"])
            return page.call("Fetch.fulfillRequest", requestId=parameters["requestId"], responseCode=200,
                             responseHeaders=[{"name": "Content-Type", "value": types[path]}],
                             body=base64.b64encode((ROOT / "web/built" / path).read_bytes()).decode())
        page.heard = answer
        page.call("Fetch.enable", patterns=[{"urlPattern": "*/page.*"}])

    def dashboard(self, house):
        house.environment["BERTH_TOPOLOGY"] = "dgx1-v100"
        self.write_runs(house)
        server = house.start("dashboard", "--fleet", ROOT / "examples/fleet/fleet.json", "--profile", ROOT / "examples/fleet/day.csv")
        page = self.browser.page()
        if self.built:
            self.serve_built(page)
        page.open(server.stdout.readline().decode().strip())
        page.until("location.pathname === '/'")
        runs = self.runs
        for name, route, texts in (("home", "#/", [runs["search"]]), ("search", f"#/runs/{runs['search']}", ["Parallel coordinates", "Tasks"]),
                                   ("flow", f"#/runs/{runs['flow']}", ["Critical path", "Tasks"]), ("task", f"#/runs/{runs['task']}", ["::berth"]),
                                   ("compare", "#/compare/digits-1/digits-2", ["Trials in common"]), ("long-name", f"#/runs/{runs['long']}", ["Tasks"]),
                                   ("machine", "#/machine", ["GPU 7", "sleep-1"]), ("fleet", "#/fleets", ["Over the day", "assistant"])):
            page.run(f"location.hash = {json.dumps(route)}")
            page.until_text(*texts)
            self.take(page, f"dashboard-{name}")
        for error in page.errors:
            self.faults += 1
            print(f"dashboard: {error}")

    def reports(self, house):
        self.write_runs(house)
        page = self.browser.page()
        for name, of in (("search", self.runs["search"]), ("flow", self.runs["flow"]), ("long-name", self.runs["long"]), ("plan", ROOT / "examples/fleet")):
            file = self.folder / f"report-{name}.html"
            done = house.run("report", of, "-o", file)
            if done.code:
                sys.exit(f"berth report {of}: {done}")
            self.take(page, f"report-{name}", file.as_uri())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=ROOT / "build/release/bin/berth", type=Path)
    parser.add_argument("--out", default=ROOT / "build/screenshots/all", type=Path)
    parser.add_argument("--built", action="store_true")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP")
    arguments = parser.parse_args()
    os.environ["BERTH_BIN"] = str(arguments.berth.absolute())
    from berth_case import House
    taken = Screenshots(arguments.berth.absolute(), arguments.out, arguments.built)
    house = House(taken.folder, str(taken.berth))
    try:
        for group in GROUPS:
            if not arguments.groups or group in arguments.groups:
                getattr(taken, group)(house)
    finally:
        house.close()
        taken.close()
    print(f"the screenshots are in {arguments.out}; faults: {taken.faults}")
    return 1 if taken.faults else 0


if __name__ == "__main__":
    sys.exit(main())
