#!/usr/bin/python3
"""Flows of several files: `include`, and the steps of another file as a sub-flow."""

import json
import os
import shutil
import signal
import unittest

from berth_case import FlowCase, until

MAIN = """\
include: [parts/qc.yaml, parts/count.yaml]
params: {depth: 2}
defaults: {retries: 1}
steps:
  report: {in: {n: count.n, q: check.q}, run: 'cat {in.n} {in.q} > {out.r}', out: {r: report.txt}}
"""
QC = """\
include: common.yaml
steps:
  check: {in: {r: reads/A.fq}, run: 'echo {depth} {word} > {out.q}', out: {q: qc.txt}}
"""
COUNT = """\
include: common.yaml
env: {LOUD: 'yes'}
steps:
  count:
    foreach: {r: reads/*.fq}
    run: 'wc -l < {r} > {out.n}; echo $LOUD >> {out.n}'
    out: {n: 'n/{key}.txt'}
"""
COMMON = "params: {depth: 1, word: hello}\n"

ALIGN = """\
params: {ref: none, tags: [x]}
in: {reads: reads/*.fq}
out: {bams: sort.bam, all: all.txt}
steps:
  map:
    foreach: {r: in.reads, tag: '{tags}'}
    run: 'echo {ref} {tag} > {out.sam}; cat {r} >> {out.sam}'
    out: {sam: 'sam/{key}.sam'}
  sort:
    foreach: {s: map.sam}
    run: 'sort {s} > {out.bam}'
    out: {bam: 'bam/{key}.bam'}
  all: {in: {b: sort.bam}, run: 'cat {in.b} > {out.txt}', out: {txt: all.txt}}
"""


class Included(FlowCase):
    def setUp(self):
        super().setUp()
        self.write("flow.yaml", MAIN)
        self.write("parts/qc.yaml", QC)
        self.write("parts/count.yaml", COUNT)
        self.write("parts/common.yaml", COMMON)
        for sample in "AB":
            self.write(f"reads/{sample}.fq", "one\n")

    def test_steps_are_as_if_they_stood_in_the_file(self):
        self.assertEqual(self.ran(self.run_flow()), ["check", "count/A", "count/B", "report"])
        self.assertEqual(self.read("report.txt"), "1\nyes\n1\nyes\n2 hello\n")
        self.assertEqual(self.ran(self.run_flow("--set", "word=bye")), ["check", "report"])
        self.assertEqual(self.ran(self.run_flow()), [])
        self.write("parts/qc.yaml", QC.replace("echo", "echo new"))
        self.assertEqual(self.ran(self.run_flow()), ["check", "report"])
        self.assertIn("command", self.because("flow-4/check")[0])
        self.assertEqual(self.house.json("advise", "flow.yaml")["name"], "flow")
        self.berth("run", self.dir / "flow.yaml", "check", cwd="/")
        self.assert_tidy()

    def test_a_run_goes_on_by_the_files_that_it_began_with(self):
        self.write("parts/count.yaml", COUNT.replace("wc -l", "until test -e go; do sleep 0.01; done; wc -l")
                   .replace("go;", f"{self.dir}/go;"))
        runner = self.house.start("run", "flow.yaml")
        until(lambda: self.house.json("runs")["runs"] and self.house.counts("flow-1")["running"] >= 1, "it runs")
        runner.kill()
        runner.wait()
        shutil.rmtree(self.dir / "parts")
        self.write("go", "")
        self.assertIn(b"its runner died", self.berth("why", "flow-1/count/A").out)
        self.assertIn(b"count/A", self.berth("show", "flow-1").out)
        self.berth("resume", "flow-1")
        self.assertEqual(self.read("n/A.txt"), "1\nyes\n")
        self.assertEqual(self.house.counts("flow-1")["done"], 4)
        self.assertIn(b"parts/qc.yaml", self.berth("run", "flow.yaml", code=2).err)
        self.assert_tidy()

    def test_retry_takes_what_was_edited(self):
        self.write("parts/qc.yaml", QC.replace("echo {depth}", "false {depth}"))
        self.run_flow(code=1)
        self.write("parts/qc.yaml", QC)
        self.assertIn(b"was edited since", self.berth("retry", "flow-1", code=1).err)
        self.berth("retry", "--file", "flow-1")
        self.assertEqual(self.read("report.txt"), "1\nyes\n1\nyes\n2 hello\n")

    def test_outputs_do_not_take_the_place_of_files_of_the_flow(self):
        self.write("parts/qc.yaml", QC.replace("qc.txt", "parts/qc.yaml"))
        self.assertIn(b"parts/qc.yaml:3: steps.check.out.q", self.berth("check", "flow.yaml", code=2).err)
        self.assertEqual(self.house.json("runs")["runs"], [])


class SubFlows(FlowCase):
    def setUp(self):
        super().setUp()
        self.write("align/align.yaml", ALIGN)
        for sample in "AB":
            self.write(f"reads/{sample}.fq", f"{sample}\n")
        self.write("flow.yaml", """\
params: {refs: [h, g]}
steps:
  trim:
    foreach: {r: reads/*.fq}
    run: 'cat {r} > {out.t}; echo t >> {out.t}'
    out: {t: 'trim/{key}.fq'}
  one: {flow: align/align.yaml, params: {ref: one, tags: '{refs}'}, in: {reads: trim.t}, dir: first}
  two: {flow: align/align.yaml, params: {ref: two}, needs: one, dir: second}
  report: {in: {b: one.bams, a: two.all.txt}, run: 'cat {in.b} {in.a} > {out.r}', out: {r: report.txt}}
""")

    def test_a_file_twice_with_other_parameters_and_inputs(self):
        shown = self.run_flow()
        one = [f"one.{step}/{sample},{ref}" for step in ("map", "sort") for sample in "AB" for ref in "gh"]
        two = [f"two.{step}/{sample},x" for step in ("map", "sort") for sample in "AB"]
        self.assertEqual(self.ran(shown), sorted(["trim/A", "trim/B", "report", "one.all", "two.all", *one, *two]))
        self.assertEqual(self.read("first/bam/A,g.bam"), "A\none g\nt\n")
        self.assertEqual(self.read("second/all.txt"), "A\ntwo x\nB\ntwo x\n")
        self.assertEqual(self.read("report.txt").count("one"), 4)
        self.assertEqual(self.ran(self.run_flow()), [])
        self.write("reads/A.fq", "A2\n")
        ran = self.ran(self.run_flow())
        self.assertEqual([name for name in ran if "B" in name], [])
        self.assertIn("two.map/A,x", ran)
        self.assertIn(b"tag = g", self.berth("show", "flow-1/one.map/A,g").out)
        self.berth("logs", "flow-1/one.map/A,g")
        self.assertIn("reads/A.fq changed", " ".join(self.because("flow-3/two.map/A,x")))
        self.assert_tidy()

    def test_targets_and_values_of_it(self):
        self.assertEqual(self.ran(self.run_flow("one.map/A,g")), ["one.map/A,g", "trim/A"])
        self.assertNotIn("report", self.ran(self.run_flow("two", "--set", "two.ref=other")))
        self.assertEqual(self.read("second/all.txt"), "A\nother x\nB\nother x\n")
        self.assertEqual(self.ran(self.run_flow("--set", "two.ref=other")), ["report"])
        forced = self.ran(self.run_flow("--set", "two.ref=other", "--force", "two"))
        self.assertEqual({name.partition("/")[0] for name in forced}, {"two.map", "two.sort", "two.all"})

    def test_it_is_a_flow_of_its_own_too(self):
        self.write("align/reads/C.fq", "C\n")
        self.assertEqual(self.ran(self.run_flow(name="align/align.yaml")), ["all", "map/C,x", "sort/C,x"])

    def test_sub_flows_in_sub_flows(self):
        self.write("flow.yaml", "steps:\n  outer: {flow: outer.yaml, params: {ref: deep}, dir: o}\n"
                   "  end: {in: {x: outer.result, y: outer.inner.sort.bam}, run: 'cat {in.x} > {out.e}', out: {e: end}}\n")
        self.write("outer.yaml", "params: {ref: none}\nout: {result: inner.all}\n"
                   "steps:\n  inner: {flow: align/align.yaml, params: {ref: '{ref}-er'}, dir: i}\n")
        self.assertIn("outer.inner.map/A,x", self.ran(self.run_flow()))
        self.assertEqual(self.read("end"), self.read("o/i/all.txt"))
        self.assertIn("deep-er", self.read("end"))


if __name__ == "__main__":
    unittest.main()
