#!/usr/bin/python3
"""What somebody does first: berth doctor and berth init."""

import json
import unittest

from berth_case import Case

SCRIPT = """import argparse
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, default=0.1)
p.add_argument("--width", type=int, default=32)
a = p.parse_args()
print(f"::berth epoch=1 accuracy={a.lr}")
"""


class Doctor(Case):
    def test_it_reports_and_says_whether_there_is_something_to_do(self):
        report = self.house.run("doctor", "--json")
        found = json.loads(report.out)
        topics = {finding["topic"] for finding in found["findings"]}
        self.assertEqual(topics, {"versions", "limits", "gpus", "state", "ledger", "clusters", "tools"})
        self.assertEqual(report.code, 1 if found["faults"] else 0)
        for finding in found["findings"]:
            self.assertEqual(finding["advice"] == "", finding["state"] == "ok")
        self.assertIn("schema", next(f["found"] for f in found["findings"] if f["topic"] == "state"))

    def test_faults_are_found_with_advice(self):
        self.write("clusters.yaml", "lab: {kind: ssh, hosts: [nobody@127.0.0.1:1]}\n")
        done = self.house.run("doctor", env={"BERTH_CLUSTERS": str(self.dir / "clusters.yaml"),
                                         "BERTH_TOPOLOGY": "dgx-h10"})
        text = done.out.decode()
        self.assertEqual(done.code, 1, done)
        self.assertRegex(text, r"to do +clusters +lab/127.0.0.1:1: .*\n +→ berth cluster probe lab\n")
        self.assertIn("did you mean 'dgx-h100'", text)
        self.assertIn("fix or unset BERTH_TOPOLOGY", text)

    def test_a_file_of_clusters_that_cannot_be_read_is_a_fault(self):
        self.write("clusters.yaml", "lab: {kind: moon}\n")
        done = self.house.run("doctor", env={"BERTH_CLUSTERS": str(self.dir / "clusters.yaml")})
        self.assertRegex(done.out.decode(), r"to do +clusters .*clusters.yaml:1: .*moon")

    def test_offline_asks_no_cluster(self):
        self.write("clusters.yaml", "lab: {kind: ssh, hosts: [nobody@127.0.0.1:1]}\n")
        done = self.house.run("doctor", "--offline", env={"BERTH_CLUSTERS": str(self.dir / "clusters.yaml")})
        self.assertNotIn("127.0.0.1", done.out.decode())

    def test_a_database_that_is_none_is_a_fault(self):
        self.house.state.mkdir()
        (self.house.state / "berth.db").write_text("no database")
        done = self.berth("doctor", "--offline", code=1)
        self.assertRegex(done.out.decode(), r"to do +state ")


class Init(Case):
    def init(self, folder, *words):
        path = self.dir / folder
        path.mkdir(exist_ok=True)
        return self.house.run("init", *words, cwd=path)

    def plan(self, folder, file):
        return self.berth("run", "--plan", file, cwd=self.dir / folder).out.decode()

    def test_a_script_becomes_an_experiment_that_runs(self):
        self.write("exp/train.py", SCRIPT)
        done = self.init("exp")
        self.assertEqual(done.code, 0, done)
        text = (self.dir / "exp/sweep.yaml").read_text()
        self.assertIn("run: python3 train.py --lr {lr} --width {width}\n", text)
        self.assertIn("goal: {metric: accuracy, direction: max}", text)
        self.assertIn("20 tasks", self.plan("exp", "sweep.yaml"))
        self.berth("run", "sweep.yaml", cwd=self.dir / "exp")

    def test_files_become_a_flow_that_runs(self):
        for name, text in {"a.csv": "1\n2\n", "b.csv": "3\n", "read.me": ""}.items():
            self.write(f"flow/{name}", text)
        self.assertEqual(self.init("flow").code, 0)
        self.assertIn("count/a: wc -l < a.csv", self.plan("flow", "flow.yaml"))
        self.berth("run", "flow.yaml", cwd=self.dir / "flow")
        self.assertEqual((self.dir / "flow/berth-out/total.txt").read_text(), "3\n")

    def test_an_empty_folder_gets_files_that_run_as_they_are(self):
        for kind, file in [("experiment", "sweep.yaml"), ("flow", "flow.yaml")]:
            self.assertEqual(self.init("empty", "--kind", kind).code, 0)
            self.plan("empty", file)
            self.berth("run", file, cwd=self.dir / "empty")
        self.assertEqual(self.init("empty", "--kind", "fleet").code, 0)
        planned = self.berth("plan", "fleet.json", cwd=self.dir / "empty")
        self.assertEqual(planned.err, b"")
        self.assertRegex(planned.out, rb"assistant +\S+ +\d")
        self.assertNotIn(b"loss binds", self.berth("plan", "fleet.json", "--candidates", cwd=self.dir / "empty").out)
        self.assertIn('"maxQueueSize": 64', (self.dir / "empty/fleet.json").read_text())

    def test_nothing_is_overwritten(self):
        self.write("mine/sweep.yaml", "mine")
        done = self.init("mine")
        self.assertEqual(done.code, 2)
        self.assertIn(b"was not changed", done.err)
        self.assertEqual((self.dir / "mine/sweep.yaml").read_text(), "mine")
        self.assertEqual(json.loads(self.init("mine", "other.yaml", "--json").out),
                         {"version": 1, "kind": "experiment", "file": "other.yaml"})

    def test_a_script_that_is_not_there_is_said(self):
        self.assertNotEqual(self.init("none", "--script", "x.py").code, 0)
        self.assertEqual(self.init("none", "--script", "x.py", "--kind", "flow").code, 2)
        self.assertEqual(list((self.dir / "none").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
