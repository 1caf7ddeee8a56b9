#!/usr/bin/python3
"""Retries that learn: the number of the attempt, amounts that grow with it, memory that doubles, and advice."""

import json
import os
import signal
import unittest

from berth_case import Case, until

EAT = """#!/usr/bin/python3
import mmap, sys
# Its own memory, page by page: what a list or a copy would add is not asked for.
block = mmap.mmap(-1, {need})
for at in range(0, {need}, 4096):
    block[at] = 1
print('ate it')
"""
MB = 1_000_000


class Attempts(Case):
    def run_flow(self, text, code=0, name="f.yaml"):
        self.write(name, text)
        return self.berth("run", name, code=code)

    def made(self, task):
        return self.house.json("why", task)["attempts_made"]

    def test_the_number_reaches_the_task(self):
        self.run_flow("name: f\nsteps:\n  a:\n    run: echo {attempt} $BERTH_ATTEMPT >> {out.x}; cp {out.x} /dev/stderr;"
                      " test {attempt} = 3\n    retries: 2\n    out: {x: x}\n")
        self.assertEqual((self.dir / "x").read_text(), "3 3\n")
        self.assertEqual(self.berth("logs", "f-1/a").err.decode().count("\n"), 6)
        again = json.loads(self.berth("--json", "run", "f.yaml").out)
        self.assertEqual(again["run"]["counts"]["cached"], 1, "the number of the attempt is none of what it depends on")

    def test_a_trial_and_a_command_have_it_too(self):
        self.write("s.yaml", "name: s\nrun: echo $BERTH_ATTEMPT; exit $((2 - BERTH_ATTEMPT))\nretries: 1\n")
        self.berth("run", "s.yaml")
        self.assertEqual(self.berth("logs", "s-1/1").out, b"1\n2\n")
        self.assertEqual(self.berth("run", "--", "sh", "-c", "echo $BERTH_ATTEMPT").out, b"1\n")

    def test_a_parameter_of_that_name_wins_and_is_told(self):
        done = self.run_flow("name: f\nparams: {attempt: mine}\nsteps:\n  a: {run: 'echo {attempt} $BERTH_ATTEMPT'}\n")
        self.assertIn(b"{attempt} is its parameter", done.err)
        self.assertEqual(self.berth("logs", "f-1/a").out, b"mine 1\n")

    def test_what_died_with_its_machine_is_repeated_under_its_number(self):
        self.write("f.yaml", "name: f\nsteps:\n  a:\n    retries: 1\n    run: 'echo $BERTH_ATTEMPT; "
                   f"test $BERTH_ATTEMPT = 2 || exit 1; if test -e {self.dir}/go; then exit 0; fi; "
                   f"touch {self.dir}/ready; exec sleep 60'\n")
        process = self.house.start("run", "f.yaml")
        until((self.dir / "ready").exists, "the second attempt runs")
        until(lambda: self.house.tasks("f-1")[0]["attempts"] == 2, "and is recorded")
        agents = [holder["pid"] for holder in self.house.json("machine")["holders"] if holder["pid"] != process.pid]
        process.kill()
        process.wait()
        for pid in agents:
            os.kill(pid, signal.SIGKILL)
        until(lambda: not self.house.json("machine")["holders"], "nothing is allocated")
        self.write("go", "")
        self.berth("resume", "f-1")
        self.assertEqual(self.berth("logs", "f-1/a").out, b"1\n2\n2\n")
        self.assertEqual([a["cause"] for a in self.made("f-1/a")], ["exit 1", "runner lost", "ok"])

    def test_amounts_and_time_grow_with_the_attempt(self):
        self.run_flow("name: f\nparams: {gb: 0.1}\nsteps:\n  a:\n    run: test {attempt} = 3\n    retries: 2\n"
                      "    timeout: 'min({attempt} * 10m, 20m)'\n"
                      "    resources: {cpu: '{attempt} * 0.1', mem: '{attempt} * {gb} * 1G'}\n")
        made = self.made("f-1/a")
        self.assertEqual([a["resources"] for a in made],
                         [{"cpu": 0.1, "mem": 100 * MB}, {"cpu": 0.2, "mem": 200 * MB}, {"cpu": 0.3, "mem": 300 * MB}])
        self.assertIn("attempt 2 asks cpu 0.2, 200M, a time limit of 20m", made[0]["detail"])
        plan = self.berth("run", "--plan", "f.yaml").out.decode()
        self.assertIn("a: mem: 100M, 200M, 300M, attempt by attempt", plan)

    def test_after_a_time_limit_more_time(self):
        self.run_flow("name: f\nsteps:\n  a: {run: sleep 1.5, retries: 1, timeout: '{attempt} * {attempt} * 1s'}\n")
        made = self.made("f-1/a")
        self.assertEqual([a["cause"] for a in made], ["time limit", "ok"])
        self.assertIn("attempt 2 asks a time limit of 4.0s", made[0]["detail"])

    def test_more_than_the_machine_has(self):
        told = self.run_flow("name: f\nsteps:\n  a: {run: 'true', resources: {mem: '{attempt} * 900T'}}\n", code=3)
        self.assertRegex(told.err.decode(), r"f\.yaml:3: steps\.a\.resources: 900T of memory requested")
        total = self.house.json("machine")["total"]["mem"]
        self.run_flow(f"name: f\nsteps:\n  a:\n    run: test {{attempt}} = 2\n    retries: 1\n"
                      f"    resources: {{mem: '{{attempt}} * {{attempt}} * {total // 2}'}}\n")
        self.assertEqual(self.made("f-1/a")[1]["resources"]["mem"], total, "no more than there is")

    def test_wrong_expressions_are_told(self):
        for amount, why in (("'{atempt} * 1G'", "{atempt} is not available here"), ("'{attempt} * '", "got the end"),
                            ("'1G * 2G'", "cannot be multiplied"), ("'1G + 1'", "without one"),
                            ("'1G / ({attempt} - 1)'", "attempt 1 divides by 0"),
                            ("'3G - {attempt} * 1G'", "attempt 4 would request a negative amount"),
                            ("'attempt * 1G'", "write names in braces"), ("'{attempt} * 1Q'", "1Q")):
            with self.subTest(amount):
                told = self.run_flow(f"name: f\nsteps:\n  a:\n    retries: 3\n    run: 'true'\n    resources:\n"
                                     f"      mem: {amount}\n", code=2)
                line = self.one_line(told)
                self.assertIn("f.yaml:7: steps.a.resources.mem: ", line)
                self.assertIn(why, line)


class OutOfMemory(Case):
    """100 MB are asked for, 250 MB are needed."""

    def setUp(self):
        super().setUp()
        if not self.limits_held("memory"):
            self.skipTest("this machine's memory limits are advisory")
        self.script("eat", EAT.replace("{need}", str(250 * MB)))
        self.flow = ("name: f\nsteps:\n  eat:\n    run: ./eat > {out.x}\n    in: {program: eat}\n    retries: 2\n"
                     "    out: {x: x}\n    resources: {cpu: 1, mem: 100M}\n")

    def attempts(self, task):
        return [(a["cause"], a["resources"]["mem"] // MB) for a in self.house.json("why", task)["attempts_made"]]

    THREE = [("out of memory", 100), ("out of memory", 200), ("ok", 400)]

    def test_three_attempts_then_done_and_advice(self):
        self.write("f.yaml", self.flow)
        told = self.berth("run", "f.yaml").err.decode()
        self.assertIn("ended out of memory at 100M; attempt 2 asks 200M", told)
        self.assertEqual(self.attempts("f-1/eat"), self.THREE)
        self.assertIn("ended out of memory at 200M; attempt 3 asks 400M", self.berth("why", "f-1/eat").out.decode())
        advice = self.house.json("advise", "f.yaml")["steps"][0]
        self.assertTrue(250 * MB <= advice["mem"]["proposed"] <= 300 * MB, advice)
        self.assertEqual(self.house.json("advise", "f-1")["steps"][0], advice)
        self.assertIn("eat", self.berth("advise", "f.yaml").out.decode())
        self.write("f.yaml", self.flow.replace("mem: 100M", "mem: auto(100M)"))
        plan = self.berth("run", "--plan", "f.yaml").out.decode()
        self.assertRegex(plan, r"eat: mem: auto: 2\d\dM, as 1 earlier attempt shows")
        self.berth("run", "--force", "eat", "f.yaml")
        self.assertEqual(self.attempts("f-2/eat"), [("ok", advice["mem"]["proposed"] // MB)])
        self.assertIn("mem: auto: ", self.berth("why", "f-2/eat").out.decode())

    def test_nothing_is_known_yet(self):
        self.write("f.yaml", self.flow.replace("mem: 100M", "mem: auto"))
        self.assertIn("eat: mem: auto: not limited, as no attempt of an earlier run is known",
                      self.berth("run", "--plan", "f.yaml").out.decode())
        self.berth("run", "f.yaml")
        self.assertNotIn("mem", self.house.json("why", "f-1/eat")["attempts_made"][0]["resources"])

    def test_the_runner_dies_between_two_attempts(self):
        self.write("f.yaml", self.flow)
        process = self.house.start("run", "f.yaml")
        until(lambda: self.house.json("runs")["runs"] and self.house.tasks("f-1")[0]["cause"] == "out of memory",
              "the first attempt has ended")
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.berth("resume", "f-1")
        self.assertEqual([a for a in self.attempts("f-1/eat") if a[0] != "runner lost"], self.THREE)
        self.assertEqual((self.dir / "x").read_text(), "ate it\n")

    def test_trials_and_commands_too(self):
        self.write("s.yaml", "name: s\nrun: ./eat\nretries: 2\nresources: {cpu: 1, mem: 100M}\n")
        self.berth("run", "s.yaml")
        self.assertEqual(self.attempts("s-1/1"), self.THREE)
        self.berth("run", "--mem", "100M", "--retries", "2", "--", "./eat")
        self.assertEqual(self.attempts("eat-1/1"), self.THREE)

    def test_without_retries_it_fails_and_a_retry_gets_twice(self):
        self.write("f.yaml", self.flow.replace("retries: 2", "retries: 0").replace("100M", "200M"))
        told = self.berth("run", "f.yaml", code=1).err.decode()
        self.assertIn("ended out of memory at 200M; raise its mem, or give it retries", told)
        self.berth("retry", "f-1")
        self.assertEqual(self.attempts("f-1/eat"), [("out of memory", 200), ("ok", 400)])


if __name__ == "__main__":
    unittest.main()
