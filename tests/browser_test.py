#!/usr/bin/python3
"""The pages of berth dashboard in a browser: Debian's Chromium, the real server, real runs.

Screenshots are kept in BERTH_SCREENSHOTS (build/screenshots), to be looked at.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from berth_case import Case, until
from chromium import Chromium

ROOT = Path(__file__).resolve().parent.parent
SCREENSHOTS = Path(os.environ.get("BERTH_SCREENSHOTS", ROOT / "build/screenshots"))
SEARCH = """
name: search
run: |
  for i in 1 2 3; do echo "::berth loss=$(({x} * {x} + 10 / i)) cost=$((20 - {x}))"; done; test {x} != 5
params: {x: {min: 0, max: 9, type: int}, kind: [plain, fancy]}
search: {method: random, samples: 14, seed: 3}
goal: [{metric: loss, direction: min}, {metric: cost, direction: min}]
resources: {cpu: 0.1}
"""
FLOW = """
name: flow
steps:
  make:
    foreach: {n: [1, 2, 3]}
    run: echo {n} > {out.part}
    out: {part: "part-{n}.txt"}
  join:
    in: {parts: make.part}
    run: cat {in.parts} > {out.all}
    out: {all: all.txt}
  fails:
    in: {all: join.all}
    run: echo it will not do >&2; exit 3
"""
FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Each calls hit() where it runs.
PAYLOADS = [
    "<script>hit()</script>", "<ScRiPt>hit()</sCrIpT>", "<script src=//hit></script>", "</script><script>hit()</script>",
    "<img src=x onerror=hit()>", "<img src=x onerror='hit()'>", '<img src="x" onerror="hit()">', "<img/src/onerror=hit()>",
    "<svg onload=hit()>", "<svg/onload=hit()>", "<svg><script>hit()</script></svg>", "<svg><animate onbegin=hit() attributeName=x>",
    "<body onload=hit()>", "<iframe src=javascript:hit()>", "<iframe srcdoc='<script>parent.hit()</script>'>",
    "<object data=javascript:hit()>", "<embed src=javascript:hit()>", "<a href=javascript:hit()>a</a>",
    "<a href='java\tscript:hit()'>a</a>", "javascript:hit()", "JaVaScRiPt:hit()//", "data:text/html,<script>hit()</script>",
    "<details open ontoggle=hit()>", "<video><source onerror=hit()></video>", "<audio src=x onerror=hit()>",
    "<input autofocus onfocus=hit()>", "<select autofocus onfocus=hit()>", "<textarea autofocus onfocus=hit()>",
    "<marquee onstart=hit()>", "<form action=javascript:hit()><button>a</button></form>", "<button onclick=hit()>a</button>",
    "<math><mtext><script>hit()</script></mtext></math>", "<style>@import 'javascript:hit()'</style>",
    "<div style='background:url(javascript:hit())'>", "<link rel=stylesheet href=javascript:hit()>",
    "<meta http-equiv=refresh content='0;url=javascript:hit()'>", "<base href=javascript:hit()//>",
    "\" onmouseover=hit() x=\"", "' autofocus onfocus=hit() '", "\"><script>hit()</script>", "'><img src=x onerror=hit()>",
    "--><script>hit()</script>", "]]><script>hit()</script>", "</title><script>hit()</script>", "</textarea><script>hit()</script>",
    "</pre><script>hit()</script>", "{{constructor.constructor('hit()')()}}", "${hit()}", "`-hit()-`", "\\u003cscript\\u003ehit()",
    "&lt;script&gt;hit()&lt;/script&gt;", "%3Cscript%3Ehit()%3C/script%3E", "__proto__", "constructor",
]
MARKUP = "[...document.querySelectorAll('*')].filter(e => /^(img|iframe|object|embed|video|audio|base|marquee|math)$/i.test(e.localName)" \
         " || (e.localName === 'script' && e.getAttribute('src') !== '/page.js')" \
         " || [...e.attributes].some(a => a.name.startsWith('on') || /script:/i.test(a.value) && a.name === 'href')).map(e => e.outerHTML)"


@unittest.skipUnless(shutil.which("chromium"), "there is no chromium: apt-get install chromium")
class Browser(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.profile = tempfile.TemporaryDirectory(prefix="berth-chromium-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.profile.cleanup)
        cls.browser = Chromium(Path(cls.profile.name))
        cls.addClassCleanup(cls.browser.close)

    def serve(self, *options):
        self.server = self.house.start("dashboard", *options)
        self.address, _, self.secret = self.server.stdout.readline().decode().strip().partition("/open")
        return self.address

    def viewer(self, *, forgiven=(), **how):
        """A page that has come in, by the link or, once that is spent, by another's invitation."""
        page = self.browser.page(**how)
        page.open(f"{self.address}/open{self.secret}")
        page.until("location.pathname === '/'")
        self.secret = page.run("fetch('/v1/invite', {method: 'POST'}).then(r => r.json())")["path"].removeprefix("/open")
        self.addCleanup(self.assert_well, page, forgiven)
        return page

    def assert_well(self, page, forgiven):
        """`forgiven`: what the browser itself says of requests that were to fail."""
        errors = [error for error in page.errors if not any(each in error for each in forgiven)]
        elsewhere = [url for url in page.requests if not url.startswith((self.address, "data:"))]
        self.assertEqual((errors, elsewhere, page.dialogs), ([], [], []))

    def go(self, page, route, *texts):
        page.run(f"location.hash = {json.dumps(route)}")
        page.until_text(*texts)

    def search(self):
        self.write("search.yaml", SEARCH)
        self.house.run("run", "search.yaml")
        return "search-1"

    def flow(self):
        self.write("flow.yaml", FLOW)
        self.house.run("run", "flow.yaml")
        return "flow-1"

    def test_every_page_opens_in_light_and_dark_and_is_accessible(self):
        axe = self.axe()
        search, flow = self.search(), self.flow()
        self.search()
        self.house.environment["BERTH_TOPOLOGY"] = "dgx1-v100"
        self.berth("run", "--detach", "--gpu", "2", "--", "sleep", "60")
        self.berth("run", "--detach", "--gpu", "8", "--", "sleep", "60")  # it waits for the first
        self.serve("--fleet", ROOT / "examples/fleet/fleet.json", "--profile", ROOT / "examples/fleet/day.csv")
        page = self.viewer()
        failed = self.house.json("show", search)["tasks"]
        failed = next(task["id"].partition("/")[2] for task in failed if task["state"] == "failed")
        for name, route, texts in (
                ("home", "#/", [search, flow, "failed"]),
                ("search", f"#/runs/{search}", ["loss by trial", "Parallel coordinates", "Pareto front", "Learning curves", "Parameter importance for cost", "Tasks"]),
                ("flow", f"#/runs/{flow}", ["Failures", "it will not do", "Critical path", "Tasks"]),
                ("compare", f"#/compare/{search}/search-2", ["Best loss so far", "Trials in common"]),
                ("fleet", "#/fleets", ["Capacity", "What if", "Over the day", "assistant"]),
                ("task", f"#/runs/{search}/{failed}", ["failed: exit 1", "::berth loss="]),
                ("machine", "#/machine", ["This machine", "GPU 7", "islands: 0 1 2 3; 4 5 6 7", "sleep-1",
                                           "the start is unknown: the end of sleep-1 is not known"])):
            with self.subTest(name):
                self.go(page, route, *texts)
                for dark in (False, True):
                    page.look(dark=dark)
                    page.run(FRAME)
                    page.screenshot(SCREENSHOTS / f"{name}-{'dark' if dark else 'light'}.png")
                    if axe:
                        self.assertEqual(self.serious(page, axe, dark), [], "axe finds nothing serious")
                page.resize(390, 900)
                self.assertLessEqual(page.run("document.documentElement.scrollWidth"), 390, "the page fits a telephone")
                page.screenshot(SCREENSHOTS / f"{name}-narrow.png")
                page.resize(1200, 900)
        if not axe:
            self.skipTest("axe-core is not there: npm could not have it; all else was tried")

    def test_long_names_fit_a_telephone(self):
        name = "a-run-with-a-long-name-as-scripts-generate-them-20261127"
        self.write("long.yaml", SEARCH.replace("name: search", f"name: {name}").replace("samples: 14", "samples: 3"))
        self.write("flow.yaml", FLOW.replace("  join:", "  join_the_parts_of_all_elements:").replace("join.all", "join_the_parts_of_all_elements.all"))
        self.house.run("run", "long.yaml", "--label", "dataset=imagenet-21k-winter-2021", "--label", "owner=a.researcher@example.org")
        self.house.run("run", "flow.yaml")
        run = self.search()
        self.search()
        self.serve()
        page = self.viewer(width=390)
        scrolls = "[...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)"
        for route, texts in (("#/", [name, run]), (f"#/runs/{run}", ["Learning curves", "compare with", name]), (f"#/compare/{run}/search-2", ["add a run", name])):
            self.go(page, route, *texts)
            self.assertLessEqual(page.run("document.documentElement.scrollWidth"), 390, route)
            if route == "#/":
                self.assertFalse(page.run(scrolls), "every column of the list is visible")
        self.go(page, "#/runs/flow-1", "Critical path")
        self.assertTrue(page.run("[...document.querySelectorAll('.step')].every(e => [...e.querySelectorAll('text')].every(t => "
                                 "t.getBoundingClientRect().right < e.querySelector('rect').getBoundingClientRect().right))"))

    def test_a_chosen_task_is_in_view(self):
        run = self.search()
        self.serve()
        page = self.viewer()
        self.go(page, f"#/runs/{run}", "Learning curves", "Parameter importance for cost", "Timeline", "Tasks")
        page.run(f"scrollTo(0, document.body.scrollHeight); {FRAME}")
        self.assertGreater(page.run("scrollY"), 900)
        page.run("[...document.querySelectorAll('tbody th a')].pop().click()")
        page.until_text("all tasks", "::berth loss=")
        top = page.run(f"{FRAME}.then(() => document.querySelector('aside').getBoundingClientRect().top)")
        self.assertTrue(-1 <= top < 900, top)

    def axe(self):
        """The source of axe-core, which comes with the packages of the page."""
        file = ROOT / "build/web/node_modules/axe-core/axe.min.js"
        if not file.exists():
            made = subprocess.run([ROOT / "web/build", self.dir / "page"], capture_output=True)
            if made.returncode != 0:
                return None
        return file.read_text()

    def serious(self, page, axe, is_seen_again):
        page.run(f"window.axe ? 0 : void (0, eval)({json.dumps(axe)})")
        only = "runOnly: ['color-contrast'], " if is_seen_again else ""
        found = page.run(f"axe.run(document, {{{only}resultTypes: ['violations']}}).then(r => r.violations)")
        return [(each["id"], each["help"], [node["html"] for node in each["nodes"]])
                for each in found if each["impact"] in ("serious", "critical")]

    def test_reports_open_from_a_disk_without_a_network_and_print(self):
        axe = self.axe()
        for name, of, texts in (("sweep", self.search(), ["search-1", "loss", "Failures"]), ("flow", self.flow(), ["it will not do"]),
                                ("plan", ROOT / "examples/fleet", ["assistant"])):
            with self.subTest(name):
                file = self.dir / f"{name}.html"
                self.berth("report", of, "-o", file)
                page = self.browser.page()
                page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
                page.open(file.as_uri())
                page.until_text(*texts)
                for dark in (False, True):
                    page.look(dark=dark)
                    page.screenshot(SCREENSHOTS / f"report-{name}-{'dark' if dark else 'light'}.png")
                    if axe:
                        self.assertEqual(self.serious(page, axe, dark), [], "axe finds nothing serious")
                page.resize(390, 900)
                self.assertLessEqual(page.run("document.documentElement.scrollWidth"), 390, "the report fits a telephone")
                lowest = page.run("Math.min(...[...document.querySelectorAll('svg text:not(.axis)')].map(e => e.getBoundingClientRect().height).filter(Boolean))")
                self.assertGreater(lowest or 99, 10, "the texts of charts are readable there")
                page.resize(1200, 900)
                printed = base64.b64decode(page.call("Page.printToPDF")["data"])
                self.assertTrue(printed.startswith(b"%PDF"))
                (SCREENSHOTS / f"report-{name}.pdf").write_bytes(printed)
                self.assertEqual(page.run("document.scripts.length"), 0)
                self.assertEqual((page.errors, [url for url in page.requests if not url.startswith(("file:", "data:"))]), ([], []))

    def test_a_run_is_listed_under_its_state(self):
        self.write("s.yaml", "name: s\nrun: exit {i}\nparams: {i: [0, 7]}\n")
        self.house.run("run", "s.yaml")
        self.house.run("run", "--allow-failures", "s.yaml")
        self.house.run("run", "--name", "t", "--", "true")
        self.serve()
        page = self.viewer()
        self.go(page, "#/", "s-1", "s-2", "t-1")
        listed = page.run("Object.fromEntries([...document.querySelectorAll('section')].map(section => ["
                          "section.querySelector('h2').innerText, [...section.querySelectorAll('tbody tr')].map(row => "
                          "row.querySelector('a').innerText + ' ' + row.querySelector('.badge').innerText)]))")
        self.assertEqual(listed, {"Failed, interrupted or stopped": ["s-1 failed"], "Done": ["t-1 done", "s-2 done"]})

    def test_bad_addresses_say_so(self):
        self.serve()
        page = self.viewer(forgiven=["status of 400", "status of 404"])
        for route, text in (("#/runs/nope", "no run is called 'nope'"), ("#/runs/%E0%A4%A", ""), ("#/nowhere", "Runs"),
                            ("#/runs/-x", "expected names of runs"), ("#/runs/a%2Fb", "no run")):
            self.go(page, route, text)
            self.assertIn("Machine", page.text(), "the page is there")

    def test_a_flow_by_keys(self):
        run = self.flow()
        self.house.run("run", "flow.yaml")
        self.serve()
        page = self.viewer()
        self.go(page, "#/runs/flow-2", "3 cached", "Compared with earlier runs", run)
        page.run("document.querySelector('.graph a').focus()")
        page.press("Enter")
        page.until_text("writes part-{n}.txt", f"as {run}/make/")
        page.run("document.querySelectorAll('.graph a')[2].focus()")
        page.press("Enter")
        page.until_text("failed: exit 3")

    def test_trials_are_chosen_by_keys(self):
        self.write("best.yaml", SEARCH.replace("10 / i", "10 * i").partition("goal:")[0] +
                   "goal: {metric: loss, direction: min, score: best}\nresources: {cpu: 0.1}\n")
        self.house.run("run", "best.yaml")
        run = "search-1"
        best = self.house.json("best", run)["metrics"]
        self.assertLess(best["loss.best"], best["loss"])
        self.serve()
        page = self.viewer()
        self.go(page, f"#/runs/{run}", "Parallel coordinates", "enter a range below")
        self.assertIn(f"the best {best['loss.best']:g}", page.run("document.querySelector('canvas').getAttribute('aria-label')"))
        page.run("[...document.querySelectorAll('label')].find(e => e.innerText.startsWith('minimum')).control.focus()")
        page.press("ArrowRight")
        page.until_text("of 14 trials")
        page.tab_to("choose all")

    def test_outliers_are_counted_and_put_on_the_axis_by_keys(self):
        self.write("far.yaml", "name: far\nrun: 'echo ::berth acc=$(test {x} = 3 && echo 0.1 || echo 0.9{x})'\n"
                   "params: {x: [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 3]}\ngoal: {metric: acc}\nresources: {cpu: 0.1}\n")
        self.house.run("run", "far.yaml")
        self.serve()
        page = self.viewer()
        note = "Draw outliers at the edge (trials: ▼ 1 with acc below 0.91)"
        self.go(page, "#/runs/far-1", "acc by trial", note)
        self.assertEqual(page.run(f"[...document.querySelectorAll('.outliers')].filter(e => e.innerText.trim() === {json.dumps(note)}).length"), 3)
        drawn = "document.querySelector('canvas').toDataURL()"
        page.run(FRAME)
        at_edge = page.run(drawn)
        for _ in range(50):
            page.press("Tab")
            if page.run("document.activeElement.type === 'checkbox'"):
                break
        page.press(" ")
        page.until("![...document.querySelectorAll('.outliers input')].some(e => e.checked)")
        page.run(FRAME)
        self.assertNotEqual(page.run(drawn), at_edge)

    def test_a_fleet_is_planned_anew(self):
        self.serve("--fleet", ROOT / "examples/fleet/fleet.json")
        page = self.viewer()
        self.go(page, "#/fleets", "3,365 cents an hour")
        page.run("document.querySelector('[aria-label=\"capacity of H100\"]').focus()")
        page.press("ArrowLeft")
        page.until_text("compared with the original plan", "planned in", "percentiles by the simulator")
        page.tab_to("Reset")
        page.press("Enter")
        page.until("!document.body.textContent.includes('compared with the original plan')")

    def test_what_cannot_be_drawn_leaves_the_rest(self):
        run = self.search()
        self.serve()
        page = self.viewer(forgiven=["TypeError"])
        page.run("window.real = window.fetch; window.fetch = () => Promise.resolve(new Response('{}'))")
        self.go(page, f"#/runs/{run}", "This page cannot be displayed")
        page.run("window.fetch = window.real")
        page.tab_to("Try again")
        page.press("Enter")
        page.until_text("Parallel coordinates")

    def test_stop_and_retry_with_keys_alone_before_two_viewers(self):
        self.write("slow.yaml", "name: slow\nrun: 'test -e go || sleep 60; test {x} != 2'\nparams: {x: [1, 2]}\n"
                   "resources: {cpu: 0.1}\n")
        run = self.berth("run", "--detach", "slow.yaml").out.decode().strip()
        self.serve(run)
        acts, looks = self.viewer(), self.viewer(dark=True)
        for page in (acts, looks):
            self.go(page, f"#/runs/{run}", "2 running")
        acts.tab_to("Stop")
        acts.press("Enter")
        acts.until_text("It can be resumed")
        acts.press("Enter")  # the question has the focus
        for page in (acts, looks):
            page.until_text("stopped", "Resume")
        self.write("go", "")
        acts.tab_to("Resume")
        acts.press("Enter")
        acts.until_text(f"Resume {run}?")
        acts.press("Enter")
        for page in (acts, looks):
            page.until_text("1 done, 1 failed", "Retry failed tasks")
        runner = self.house.json("show", run)["run"]["runner"]
        until(lambda: not Path(f"/proc/{runner}").exists(), "its runner has left")
        acts.tab_to("Retry failed tasks")
        acts.press("Enter")
        acts.until_text("failed tasks of")
        acts.press("Enter")
        until(lambda: self.house.json("why", f"{run}/2")["attempts"] == 2, "it was tried again")

    def test_a_reader_comes_in_by_a_token_and_has_no_buttons(self):
        run = self.search()
        server = self.house.start("serve", "--listen", "127.0.0.1:0", "--token-file", "control", "--read-token-file", "read",
                                  ROOT / "examples/fleet")
        self.address = server.stdout.readline().decode().strip()
        for role, has in (("read", False), ("control", True)):
            page = self.browser.page()
            page.open(self.address)
            self.addCleanup(self.assert_well, page, ["status of 401"])
            page.until_text("Log in", "expected the header")
            page.run("document.querySelector('input').focus()")
            page.press(*"wrong")
            page.press("Enter")
            page.until("document.querySelector('[role=alert]') !== null")
            page.run("document.querySelector('input').select()")
            page.press(*(self.dir / role).read_text().strip())
            page.press("Enter")
            page.until_text(run)
            self.go(page, f"#/runs/{run}", "Parallel coordinates", "Tasks")
            page.run(FRAME)
            self.assertEqual(page.run("[...document.querySelectorAll('button')].some(e => e.innerText === 'Retry failed tasks')"), has)
            page.screenshot(SCREENSHOTS / f"as-{role}.png")
        self.go(page, "#/fleets", "cents an hour", "assistant")

    def test_a_server_that_is_killed_and_comes_back(self):
        run = self.search()
        self.serve()
        page = self.viewer(forgiven=["net::ERR", "status of 401"])
        self.go(page, f"#/runs/{run}", "Parallel coordinates")
        port = self.address.rpartition(":")[2]
        self.server.kill()
        self.server.wait()
        page.until_text("The server does not answer")
        self.assertIn("Parallel coordinates", page.text(), "what was seen stays")
        self.serve("--listen", f"127.0.0.1:{port}")
        self.berth("run", "--", "true")
        page.until_text("expected the link that the server printed")
        again = self.viewer()
        self.go(again, "#/", run, "true-1")

    def test_what_tasks_say_and_things_are_called_is_never_markup(self):
        self.assertGreaterEqual(len(PAYLOADS), 50)
        self.write("payloads.json", json.dumps(PAYLOADS))
        self.write("hostile.yaml", json.dumps({
            "name": "hostile", "params": {"text": PAYLOADS},
            "run": "cat payloads.json; echo '::berth score=1 '; printf '%s\\n' {text} >&2; exit 1",
            "labels": {"a": PAYLOADS[0], "b": PAYLOADS[4], "c": PAYLOADS[8]}, "goal": {"metric": "score", "direction": "max"},
            "resources": {"cpu": 0.05}}))
        self.house.run("run", "hostile.yaml", "--label", f"d={PAYLOADS[39]}")
        self.write("keys.yaml", json.dumps({"name": "keys", "steps": {"s": {"foreach": {"v": PAYLOADS[:20]}, "run": "echo {v}; exit 1"}}}))
        self.house.run("run", "keys.yaml")
        fleet = json.loads((ROOT / "examples/fleet/fleet.json").read_text())
        for server, payload in zip(fleet["serverData"]["servers"], PAYLOADS[4:]):
            server["name"] = payload
        self.write("fleet.json", json.dumps(fleet))
        tasks = self.house.json("show", "hostile-1")["tasks"]
        self.assertEqual([len(tasks), tasks[0]["state"]], [len(PAYLOADS), "failed"])
        self.serve("--fleet", "fleet.json")
        page = self.viewer(forgiven=["status of 40"])
        page.run("window.hit = () => { window.was_hit = true }")
        for route, texts in (("#/", PAYLOADS[:1]), ("#/runs/hostile-1", PAYLOADS[2:40]), ("#/machine", []),
                             ("#/runs/keys-1", ["Steps"]), ("#/fleets", PAYLOADS[4:9])):
            self.go(page, route, "Berth", *texts)
            self.assertEqual(page.run(MARKUP), [])
        for task in tasks[:50:7]:
            self.go(page, f"#/runs/{task['id']}", PAYLOADS[0], PAYLOADS[-1])
            self.assertEqual(page.run(MARKUP), [])
        self.go(page, "#/runs/keys-1", "Steps")
        page.run("document.querySelector('.graph a').focus()")
        page.press("Enter")
        page.until("document.querySelector('.instances a') !== null")
        page.run("document.querySelector('.instances a').click()")
        page.until_text("failed: exit 1", PAYLOADS[0])
        self.assertEqual(page.run(MARKUP), [])
        for payload in PAYLOADS[::3]:
            page.run(f"location.hash = '#/runs/' + encodeURIComponent({json.dumps(payload)})")
            page.until("document.querySelector('[role=alert], h1') !== null")
            self.assertEqual(page.run(MARKUP), [], payload)
        self.assertIsNone(page.run("window.was_hit"))


if __name__ == "__main__":
    unittest.main()
