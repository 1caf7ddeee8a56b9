#!/usr/bin/python3
"""Runs in the background, waited for, planned, forgotten."""

import errno
import json
import os
import pty
import signal
import subprocess
import unittest

from berth_case import Case, alive, until


class Manage(Case):
    def hold(self):
        """A command that runs until the file go is there."""
        return self.script("hold", "#!/bin/sh\necho $$ > held\nwhile [ ! -e go ]; do sleep 0.02; done\n")

    def detached(self, *command, code=0):
        finished = self.berth("run", "--detach", "--", *command, code=code)
        return finished.out.decode().strip()

    def runner_of(self, run):
        return self.house.json("show", run)["run"]["runner"]

    def test_a_detached_run_outlives_whoever_started_it(self):
        self.hold()
        run = self.detached("./hold")
        self.assertEqual(run, "hold-1")
        until((self.dir / "held").exists, "it runs")
        runner = self.runner_of(run)
        self.assertEqual(os.getsid(runner), runner, "a session of its own: no hang-up reaches it")
        self.berth("wait", run, "--timeout", "50ms", code=3)
        self.write("go", "")
        self.assertIn(b"hold-1  done", self.berth("wait", run).out)
        until(lambda: not alive(runner), "its runner is gone")
        self.assert_tidy()

    def on_a_terminal(self, *arguments):
        """What a berth command shows on a terminal of its own."""
        ours, theirs = pty.openpty()
        process = self.house.start(*arguments, out=theirs, err=theirs)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError as error:  # how the end of a terminal is told
            self.assertEqual(error.errno, errno.EIO)
        os.close(ours)
        self.assertEqual(process.wait(20), 0)
        return shown

    def test_logs_show_the_escapes_of_tasks_on_a_terminal(self):
        self.script("evil", "#!/bin/sh\nprintf 'a\\033]0;owned\\007\\302\\2331mb\\n'\n")
        self.berth("run", "--name", "evil", "--", "./evil")
        raw = b"a\x1b]0;owned\x07\xc2\x9b1mb"
        self.assertEqual(self.on_a_terminal("logs", "evil-1"), b"a^[]0;owned^G<9b>1mb\r\n")
        self.assertEqual(self.on_a_terminal("logs", "--raw", "evil-1"), raw + b"\r\n")
        self.assertEqual(self.berth("logs", "evil-1").out, raw + b"\n")

    def test_a_detached_run_has_the_persons_umask(self):
        self.write("f.yaml", "name: f\nsteps: {a: {run: 'umask > {out.x}', out: {x: x.txt}}}\n")
        run = self.berth("run", "--detach", "f.yaml", umask=0o022).out.decode().strip()
        self.berth("wait", run)
        self.assertEqual((self.dir / "x.txt").read_text(), "0022\n")
        self.assertEqual((self.dir / "x.txt").stat().st_mode & 0o777, 0o644)

    def test_a_detached_resume_has_the_persons_umask(self):
        self.script("hold", "#!/bin/sh\numask >> held\nwhile [ ! -e go ]; do sleep 0.02; done\n")
        run = self.detached("./hold")
        until((self.dir / "held").exists, "it runs")
        self.berth("stop", run)
        self.berth("wait", run, code=3)
        self.write("go", "")
        self.berth("resume", "--detach", run, umask=0o027)
        self.berth("wait", run)
        self.assertEqual((self.dir / "held").read_text().split()[-1], "0027")

    def test_wait_tells_how_it_ended(self):
        self.berth("wait", self.detached("false"), code=1)
        self.hold()
        run = self.detached("./hold")
        until((self.dir / "held").exists, "it runs")
        self.berth("stop", run)
        self.berth("wait", run, code=3)
        self.berth("wait", "nothing-1", code=2)
        self.berth("wait", run, "--timeout", "soon", code=2)

    def test_wait_tells_that_the_runner_died(self):
        self.hold()
        run = self.detached("./hold")
        until((self.dir / "held").exists, "it runs")
        os.kill(self.runner_of(run), signal.SIGKILL)
        self.assertIn("its runner died", self.one_line(self.berth("wait", run, code=3)))
        self.berth("rm", "--force", run)
        self.assert_tidy()

    def test_what_cannot_run_is_refused_before_it_is_detached(self):
        self.berth("run", "--detach", "--cpu", "10000", "--", "true", code=3)
        self.berth("run", "--detach", "--", "./nothing", code=2)
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_a_plan_runs_nothing(self):
        self.write("s.yaml", "name: s\nrun: echo {i}\nparams: {i: {min: 1, max: 50, type: int}}\n"
                   "resources: {cpu: 0.5, gpu: 2}\n")
        self.house.environment["BERTH_TOPOLOGY"] = "dgx1-v100"
        plan = json.loads(self.berth("run", "--plan", "--json", "s.yaml").out)
        places = min(4, int(self.house.json("machine")["total"]["cpu"] * 2))
        self.assertEqual(plan["tasks"], 50)
        self.assertEqual(plan["side_by_side"], {"now": places, "empty_machine": places})
        self.assertEqual(len({d["uuid"] for p in plan["places"] for d in p["devices"]}), 2 * places)
        self.assertRegex(plan["why_no_more"], "trials? uses? (all|[0-9.]+ of) ")
        self.assertIn(b"50 tasks", self.berth("run", "--plan", "s.yaml").out)
        self.berth("run", "--plan", "--gpu", 9, "s.yaml", code=3)
        self.berth("run", "--plan", "--detach", "s.yaml", code=2)
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_a_plan_says_what_limits_it(self):
        self.write("machine.yaml", "cpu: 2\nmem: 8G\n")
        self.house.environment["BERTH_MACHINE"] = str(self.dir / "machine.yaml")
        self.write("s.yaml", "run: echo {i}\nparams: {i: [1, 2, 3, 4]}\n")
        planned = lambda *options: self.berth("run", "--plan", *options, "s.yaml").out.decode().splitlines()[-1]
        self.assertEqual(planned(), "limited by cpu: 2 trials use all 2 cores")
        self.assertEqual(planned("--mem", "3G", "--cpu", "0.5"),
                         "limited by mem: 2 trials use 5.6 GiB of 7.5 GiB of memory; one more trial requires 3G")
        wrong = self.one_line(self.berth("run", "--mem", "400G", "s.yaml", code=3))
        self.assertIn("400G of memory requested; this machine has ", wrong)
        wrong = self.one_line(self.berth("run", "--gpu", "1", "s.yaml", code=3))
        self.assertIn("1 GPU requested; this machine has none ('berth doctor' says why)", wrong)

    def test_a_wrong_name_gets_the_nearest_one(self):
        for _ in range(2):
            self.berth("run", "--name", "first", "--", "true")
        for command in (("show", "firs-1"), ("logs", "firs-1"), ("why", "firs-1/1"), ("wait", "firs-1"), ("rm", "firs-1"),
                        ("retry", "firs-1"), ("report", "firs-1"), ("trace", "firs-1"), ("advise", "firs-1")):
            self.assertIn("no run is called 'firs-1'; did you mean 'first-1'?", self.one_line(self.berth(*command, code=2)))
        self.assertIn("did you mean 'first-2'?", self.one_line(self.berth("show", "first", code=2)))
        self.assertNotIn("did you mean", self.one_line(self.berth("show", "digits-1", code=2)))
        self.assertIn("first-1 has no task '7'; its task is 1", self.one_line(self.berth("why", "first-1/7", code=2)))

    def test_a_plan_counts_what_others_hold(self):
        self.hold()
        total = self.house.json("machine")["total"]["cpu"]
        self.house.start("run", "--cpu", total, "--", "./hold")
        until((self.dir / "held").exists, "it runs")
        plan = json.loads(self.berth("run", "--plan", "--json", "--", "true").out)
        self.assertEqual(plan["side_by_side"], {"now": 0, "empty_machine": 1})
        self.assertEqual(plan["why_no_more"],
                         f"cpu: other runs use all {total:g} core{'s' * (total != 1)} (hold-1 {total:g})")
        self.write("go", "")

    def test_runs_are_forgotten(self):
        for _ in range(3):
            self.berth("run", "--", "true")
        self.berth("rm", "true-1", "true-9", code=2)
        self.assertEqual(len(self.house.json("runs")["runs"]), 3, "all of them or none")
        self.assertEqual(json.loads(self.berth("rm", "true-1", "--json").out)["removed"], ["true-1"])
        self.assertEqual(sorted(os.listdir(self.house.state / "runs")), ["true-2", "true-3"])
        self.berth("show", "true-1", code=2)
        self.berth("run", "--", "true")
        self.assertEqual(self.house.json("runs")["runs"][-1]["id"], "true-4", "names are not issued again")

    def test_a_tree_that_is_deeper_than_paths_may_be_is_forgotten(self):
        self.write("f.yaml", "name: f\nsteps: {a: {run: [DIR/dig, '{out.x}'], out: {x: x/}}}\n"
                   .replace("DIR", str(self.dir)))
        self.script("dig", "#!/bin/bash\ncd $1\nfor i in {1..600}; do mkdir dddddddddd; cd dddddddddd; done\n"
                    "echo x > f\nmkdir closed; echo y > closed/f; chmod 0500 closed\n")
        for forget in (["rm", "f-1"], ["prune", "--older-than", "0s"]):
            self.berth("run", "f.yaml", code=1)
            self.berth(*forget)
            self.assertEqual(os.listdir(self.house.state / "runs"), [])

    def test_what_may_only_be_read_is_read(self):
        self.write("e.yaml", "name: e\nrun: echo ::berth a={i}\nparams: {i: [1, 2]}\ngoal: {metric: a}\n")
        self.berth("run", "e.yaml")
        more = {}
        if os.getuid() == 0:  # to whom modes say nothing
            more = {"user": 65534, "group": 65534, "extra_groups": []}
            for folder, _, files in os.walk(self.dir):
                for path in [folder, *(os.path.join(folder, name) for name in files)]:
                    os.chown(path, 65534, 65534)
        subprocess.run(["chmod", "-R", "a-w", self.house.state], check=True)
        try:
            self.assertIn(b"e-1", self.berth("runs", **more).out)
            self.assertIn(b"done", self.berth("show", "e-1", **more).out)
            self.assertIn(b"::berth a=2", self.berth("logs", "e-1", **more).out)
            self.assertIn(b"2", self.berth("best", "e-1", **more).out)
            self.berth("why", "e-1/1", **more)
            self.assertIn("check who may write", self.one_line(self.berth("run", "--", "true", code=3, **more)))
        finally:
            subprocess.run(["chmod", "-R", "u+w", self.house.state], check=True)

    def test_a_resume_of_what_runs_quotes_no_old_words(self):
        self.hold()
        run = self.detached("./hold")
        until((self.dir / "held").exists, "it runs")
        with open(self.house.state / "runs" / run / "runner.log", "a", encoding="utf-8") as log:
            log.write("words of an earlier runner\n")
        finished = self.berth("resume", "--detach", run, code=3)
        self.assertNotIn(b"earlier", finished.err)
        self.assertIn(f"{run} is running already".encode(), finished.err)
        self.write("go", "")
        self.berth("wait", run)

    def test_relative_places_of_the_desktop_are_none(self):
        for name in ("BERTH_DB", "BERTH_STATE"):
            self.house.environment.pop(name, None)
        self.berth("run", "--", "true", env={"XDG_STATE_HOME": "relative", "HOME": str(self.dir)})
        self.assertFalse((self.dir / "relative").exists())
        self.assertTrue((self.dir / ".local/state/berth/berth.db").exists())

    def test_a_run_that_runs_is_not_forgotten(self):
        self.hold()
        run = self.detached("./hold")
        until((self.dir / "held").exists, "it runs")
        self.assertIn("is running", self.one_line(self.berth("rm", run, code=3)))
        self.berth("prune", "--older-than", "0s")
        self.assertEqual([r["id"] for r in self.house.json("runs")["runs"]], [run])
        self.write("go", "")
        self.berth("wait", run)

    def test_prune_takes_the_old_and_what_a_cut_off_removal_left(self):
        for _ in range(4):
            self.berth("run", "--", "true")
        stray = self.house.state / "runs" / "true-77" / "params"
        stray.mkdir(parents=True)
        (stray / "1.json").write_text("{}")
        self.assertIn(b"no run ended longer ago", self.berth("prune").out)
        self.assertFalse(stray.exists())
        dry = json.loads(self.berth("prune", "--older-than", "0s", "--keep", 1, "--dry-run", "--json").out)
        self.assertEqual(dry["would_remove"], ["true-1", "true-2", "true-3"])
        self.assertEqual(len(self.house.json("runs")["runs"]), 4)
        self.berth("prune", "--older-than", "0s", "--keep", 1)
        self.assertEqual([r["id"] for r in self.house.json("runs")["runs"]], ["true-4"])
        self.berth("prune", "--older-than", "long", code=2)

    def test_the_failed_are_tried_again_with_all_their_retries(self):
        self.script("moody", "#!/bin/sh\necho $1 >> tried\n[ $1 = 1 ] || [ -e fixed ]\n")
        self.write("m.yaml", "name: m\nrun: ./moody {i}\nretries: 1\nparams: {i: [1, 2, 3]}\n")
        self.berth("run", "m.yaml", code=1)
        self.assertEqual(self.house.counts("m-1")["failed"], 2)
        self.berth("retry", "m-1", code=1)
        tried = (self.dir / "tried").read_text().split()
        self.assertEqual((tried.count("1"), tried.count("2"), tried.count("3")), (1, 4, 4))
        self.write("fixed", "")
        self.berth("retry", "m-1")
        self.assertEqual(self.house.counts("m-1")["done"], 3)
        self.assertIn(b"nothing of m-1 has failed", self.berth("retry", "m-1").err)
        self.hold()
        run = self.detached("./hold")
        until((self.dir / "held").exists, "it runs")
        self.assertIn("is running", self.one_line(self.berth("retry", run, code=3)))
        self.write("go", "")
        self.berth("wait", run)

    def test_top_shows_who_holds_what(self):
        self.assertIn(b"nothing is allocated", self.berth("top").out)
        self.hold()
        self.house.start("run", "--", "./hold")
        until((self.dir / "held").exists, "it runs")
        self.assertRegex(self.berth("top").out.decode(), r"hold-1 +cpu 1")
        self.assertEqual(len(json.loads(self.berth("top", "--json").out)["holders"]), 1)
        self.write("go", "")


if __name__ == "__main__":
    unittest.main()
