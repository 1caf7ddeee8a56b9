#!/usr/bin/python3
"""Reports of real runs: what they say, that they need nothing from elsewhere, and that nothing a task prints or a run
is called becomes markup."""

import unittest
from html.parser import HTMLParser
from pathlib import Path

from berth_case import Case

FLEET = Path(__file__).resolve().parent.parent / "examples/fleet"
VOID = {"meta"}


class Tags(HTMLParser):
    """The tags of a page, and whether each is closed where it has to be."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()


class Report(Case):
    def page(self, run):
        done = self.house.run("report", run)
        self.assertEqual((done.code, done.err), (0, b""))
        text = done.out.decode()
        tags = Tags()
        tags.feed(text)
        self.assertEqual(tags.open, [])
        self.assertFalse(tags.seen & {"script", "img", "link", "iframe", "a", "base", "form"}, tags.seen)
        self.assertFalse([name for name in tags.attributes if name.startswith("on") or name in ("src", "href")])
        return text

    def test_a_sweep_a_flow_and_a_command(self):
        self.write("sweep.yaml", """
name: hill
run: "for e in 1 2 3; do echo ::berth acc=0.$e{x}; done; [ {x} != 7 ] || { echo '<script>alert(1)</script>' >&2; exit 3; }"
params: {x: {min: 1, max: 15, type: int}, net: [a]}
goal: {metric: acc}
""")
        self.assertEqual(self.house.run("run", "sweep.yaml").code, 1)
        page = self.page("hill-1")
        for wanted in ("best hill-1/9", "14 done, 1 failed", "hill-1/7: exit 3", "&lt;script&gt;alert(1)&lt;/script&gt;",
                       "best so far", "Parameter importance", "Timeline", "Resources", "<circle"):
            self.assertIn(wanted, page)
        self.write("flow.yaml", """
name: f
params: {all: [1, 2, 3]}
steps:
  a: {foreach: {i: '{all}'}, out: {o: 'o/{i}'}, run: 'echo {i} > {out.o}'}
  b: {in: {a: a.o}, out: {o: all}, run: 'cat {in.a} > {out.o}'}
""")
        self.assertEqual(self.house.run("run", "flow.yaml").code, 0)
        page = self.page("f-1")
        for wanted in ("Steps", "Graph", "Timeline", ">a<", ">b<", "4 done"):
            self.assertIn(wanted, page)
        self.assertEqual(self.house.run("run", "--name", "one", "--", "true").code, 0)
        self.assertIn("1 done", self.page("one-1"))

    def test_an_outlier_is_drawn_at_the_edge(self):
        self.write("far.yaml", "name: far\nrun: 'echo ::berth acc=$(test {x} = 3 && echo 0.1 || echo 0.9{x})'\n"
                   "params: {x: [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 3]}\ngoal: {metric: acc}\n")
        self.assertEqual(self.house.run("run", "far.yaml").code, 0)
        page = self.page("far-1")
        at_edge, _, whole = page.partition("<details>")
        for wanted in ("▼ 1 of 11 are below 0.91 and drawn at the edge.", ">0.91<", ">0.928<", 'class="out"'):
            self.assertIn(wanted, at_edge)
        self.assertIn(">0.1<", whole)
        self.assertNotIn('class="out"', whole)

    def test_a_plan(self):
        page = self.page(str(FLEET))
        for wanted in ("cents an hour", "Capacity", "Servers", "SLO", "<rect"):
            self.assertIn(wanted, page)

    def test_markdown_and_files(self):
        self.house.run("run", "--name", "m", "--", "sh", "-c", "echo '| a `b`' >&2; exit 1")
        done = self.house.run("report", "m-1", "--format", "md")
        self.assertEqual(done.code, 0)
        self.assertTrue(done.out.startswith(b"# m-1\n"), done.out)
        self.assertIn(b"| a `b`\n```", done.out)
        self.assertEqual(self.house.run("report", "m-1", "-o", "m.md").out, b"")
        self.assertTrue((self.house.path / "m.md").read_bytes().startswith(b"# m-1\n"))
        self.assertEqual(self.house.run("report", "m-1", "--output", "m.html").code, 0)
        self.assertTrue((self.house.path / "m.html").read_bytes().startswith(b"<!doctype html>"))
        wrong = self.house.run("report", "m-1", "-o", "none/m.html")
        self.assertNotEqual(wrong.code, 0)
        self.assertIn(b"none/m.html", wrong.err)
        self.assertIn(b"nothing-1", self.house.run("report", "nothing-1").err)


if __name__ == "__main__":
    unittest.main()
