#!/usr/bin/python3
"""A part of a flow (--until, --only), a run for each row of a table (--rows), and labels."""

import json
import os
import signal
import unittest

from berth_case import Case, numbers, until

FLOW = """\
name: f
labels: {team: vision, note: from the file}
params: {depth: 1}
steps:
  split: {run: 'mkdir -p {out.parts}; touch {out.parts}/a {out.parts}/b; echo 1 >> $W', out: {parts: parts/}}
  map: {foreach: {p: split.parts/*}, run: 'echo {p.name} {depth} > {out.o}; echo 2 >> $W', out: {o: 'o/{p.name}'}}
  all: {in: {o: map.o}, run: 'cat {in.o} > {out.all}; echo 3 >> $W', out: {all: all.txt}}
  side: {run: 'echo 4 >> $W; echo > {out.x}', out: {x: side.txt}}
"""
ROWS = """\
name: f
params: {sample: none, seconds: 0}
steps:
  reference: {run: 'echo r > {out.r}; echo 1 >> $W', out: {r: reference.txt}}
  work:
    in: {r: reference.r}
    run: sleep {seconds}; test {sample} != bad; echo {sample} > {out.o}; echo 2 >> $W
    out: {o: 'o/{sample}.txt'}
"""


class PartsOfFlows(Case):
    def setUp(self):
        super().setUp()
        self.witness = self.dir / "witness"
        self.write("f.yaml", FLOW.replace("$W", str(self.witness)))
        self.write("rows.yaml", ROWS.replace("$W", str(self.witness)))

    def did(self):
        """The steps that ran since it was asked last, by number, each once."""
        steps = sorted(set(numbers(self.witness)))
        self.witness.write_text("")
        return steps

    def test_until_a_step_and_nothing_after(self):
        self.berth("run", "f.yaml", "--until", "map")
        self.assertEqual(self.did(), [1, 2])
        self.assertEqual(self.house.counts("f-1"), self.house.counts("f-1") | {"done": 3, "waiting": 0})
        self.berth("run", "f.yaml", "--until", "side", "--until", "all")
        self.assertEqual(self.did(), [3, 4])
        refused = self.berth("run", "f.yaml", "all", "--until", "map", code=2)
        self.assertIn(b"--until", refused.err)
        self.assertIn(b"did you mean 'map'", self.berth("run", "f.yaml", "--until", "mapp", code=2).err)

    def test_only_a_step_with_what_is_there(self):
        said = self.berth("check", "f.yaml", "--only", "map", code=2).err.decode()
        self.assertIn("--only: parts does not exist; split makes it", said)
        self.berth("run", "f.yaml", "--only", "map", code=2)
        self.assertEqual(self.house.json("runs")["runs"], [], "nothing was begun")
        self.berth("run", "f.yaml", "--until", "split")
        self.did()
        self.berth("run", "f.yaml", "--only", "map", "--set", "depth=2")
        self.assertEqual(self.did(), [2])
        self.assertEqual([task["id"] for task in self.house.tasks("f-2")], ["f-2/map/a", "f-2/map/b"])
        (self.dir / "o/a").write_text("mine\n")  # taken as it lies
        self.berth("run", "f.yaml", "--only", "all")
        self.assertEqual(self.did(), [3])
        self.assertEqual((self.dir / "all.txt").read_text(), "mine\nb 2\n")
        self.berth("run", "f.yaml", "--only", "map/b", "--set", "depth=3")
        self.assertEqual((self.dir / "o/b").read_text(), "b 3\n")
        self.assertEqual((self.dir / "o/a").read_text(), "mine\n")
        os.remove(self.dir / "o/a")
        self.assertIn(b"--only: o/a does not exist; map/a makes it", self.house.run("run", "f.yaml", "--only", "all").err)
        plan = self.berth("run", "f.yaml", "--only", "map", "--plan", "--json").out
        self.assertNotIn(b"touch", plan)

    def test_labels_stay_with_the_run(self):
        self.berth("run", "f.yaml", "side", "--label", "note=mine", "--label", "n=1")
        self.berth("run", "--label", "team=sound", "--", "true")
        self.berth("run", "--", "true")
        self.assertEqual(self.house.json("show", "f-1")["run"]["labels"], {"team": "vision", "note": "mine", "n": "1"})
        listed = [run["id"] for run in self.house.json("runs", "--label", "team")["runs"]]
        self.assertEqual(listed, ["f-1", "true-1"])
        listed = [run["id"] for run in self.house.json("runs", "--label", "team=vision", "--label", "n=1")["runs"]]
        self.assertEqual(listed, ["f-1"])
        self.assertEqual(self.house.json("runs", "--label", "team=none")["runs"], [])
        self.assertIn(b"labels team=vision,note=mine,n=1", self.berth("show", "f-1").out)
        trace = json.loads(self.berth("trace", "f-1").out)
        allocs = [event["args"]["labels"] for event in trace if "labels" in event.get("args", {})]
        self.assertTrue(any(labels.get("team") == "vision" and labels["run"] == "f-1" for labels in allocs), trace)
        for wrong in ("a b=1", "run=x", "team", "=x", "t=" + "x" * 201):
            self.assertIn(b"--label", self.berth("run", "--label", wrong, "--", "true", code=2).err)

    def test_what_was_asked_for_is_shown(self):
        self.berth("run", "f.yaml", "side", "--set", "depth=[2,3]", "--force", "side")
        self.assertEqual(self.house.json("show", "f-1")["invocation"],
                         {"program": "f.yaml", "arguments": ["side", "--force=side", "--set=depth=[2,3]"],
                          "parameters": {"depth": ["2", "3"]}})
        self.berth("run", "--", "echo", "a b", "c")
        self.assertEqual(self.house.json("show", "echo-1")["invocation"],
                         {"program": "echo", "arguments": ["a b", "c"], "parameters": {}})
        self.assertIn(b"program echo 'a b' c", self.berth("show", "echo-1").out)

    def test_notes_of_steps_that_unfold_late_are_shown(self):
        self.write("late.yaml", "steps:\n"
                   "  a: {run: 'mkdir -p {out.d}/x {out.d}/y; touch {out.d}/x/1 {out.d}/y/1', out: {d: d/}}\n"
                   "  b: {foreach: {f: 'a.d/*/*'}, run: 'cat {f}'}\n")
        said = self.berth("run", "late.yaml").err.decode()
        self.assertEqual(said.count("several tasks of b would be called 1"), 1, said)

    def test_a_run_for_each_row(self):
        self.write("t.csv", "sample,seconds\nA,0\nB,0\n")
        done = self.berth("run", "rows.yaml", "--rows", "t.csv", "--label", "batch=7", "--json")
        runs = json.loads(done.out)["runs"]
        self.assertEqual([(run["id"], run["state"], run["labels"]) for run in runs],
                         [("f-1", "done", {"batch": "7", "row": "A"}), ("f-2", "done", {"batch": "7", "row": "B"})])
        self.assertEqual((self.dir / "o/B.txt").read_text(), "B\n")
        self.write("t.csv", "sample,seconds\nbad,0\nC,0\n")
        done = self.berth("run", "rows.yaml", "--rows", "t.csv", code=1)
        self.assertRegex(done.out.decode(), r"(?m)^bad +f-3 +failed .*\n^C +f-4 +done ")
        self.assertIn("berth show f-3", done.err.decode())

    def test_rows_that_cannot_be(self):
        for table, says in [("sample,secnds\nA,1\n", "did you mean 'seconds'"), ("sample\n", "no row"),
                            ("sample,seconds\nA\n", "t.csv:2:"), ("seconds\n1\n2\n", "the rows 1 and 2 would both write")]:
            self.write("t.csv", table)
            with self.subTest(table):
                self.assertIn(says, self.berth("run", "rows.yaml", "--rows", "t.csv", code=2).err.decode())
        self.write("t.csv", "sample\nA\n")
        self.assertIn(b"column", self.berth("run", "rows.yaml", "--rows", "t.csv", "--set", "sample=B", code=2).err)
        self.berth("run", "rows.yaml", "--rows", "t.csv", "--detach", code=2)
        self.write("e.yaml", "run: [echo, '{sample}']\nparams: {sample: [1]}\n")
        self.assertIn(b"is not a flow", self.berth("run", "e.yaml", "--rows", "t.csv", code=2).err)
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_a_killed_batch_leaves_runs_that_can_be_resumed(self):
        self.write("t.csv", "sample,seconds\n" + "".join(f"s{i},2\n" for i in range(20)))
        batch = self.house.start("run", "rows.yaml", "--rows", "t.csv")
        until(lambda: any(run["state"] == "running" for run in self.house.json("runs")["runs"]), "one runs")
        batch.send_signal(signal.SIGKILL)
        batch.wait()
        runs = [run["id"] for run in self.house.json("runs")["runs"]]
        self.assertEqual(len(runs), 20)
        last = self.berth("resume", runs[-1])
        self.assertIn(b"done", last.out)
        self.assertEqual((self.dir / "o/s19.txt").read_text(), "s19\n")
        for run in runs:
            state = next(each["state"] for each in self.house.json("runs")["runs"] if each["id"] == run)
            if state == "running":
                self.house.run("wait", run)

    def test_a_batch_that_is_stopped_names_what_goes_on(self):
        self.write("t.csv", "sample,seconds\nA,60\nB,60\nC,60\n")
        batch = self.house.start("run", "rows.yaml", "--rows", "t.csv")
        until(lambda: any(run["counts"]["running"] for run in self.house.json("runs")["runs"]), "one runs")
        batch.send_signal(signal.SIGINT)
        out, err = batch.communicate(timeout=60)
        self.assertEqual(batch.returncode, 130, err)
        self.assertIn(b"berth resume f-1", err)
        self.assertNotIn("running", [run["state"] for run in self.house.json("runs")["runs"]])


if __name__ == "__main__":
    unittest.main()
