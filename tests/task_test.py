#!/usr/bin/python3
"""What a task is given, and what it is held to: command, environment, time, cores, memory."""

import json
import os
import resource
import time
import unittest
from pathlib import Path

from berth_case import Case, alive, numbers, until

HOSTILE = ["a b", "it's", 'say "hi"', "$(touch pwned)", "`touch pwned`", "; touch pwned", "two\nlines",
           "ü→漢", "*", "~", "back\\slash", "end\\", "$HOME", "-n", "a=b", "", "!x", "#no", "{y}", "\t",
           "'; touch pwned; '", '"; touch pwned; "', "\\'; touch pwned; #", "a&&b|c>d<e"]

ARGUMENTS = """#!/usr/bin/python3
import json, os, sys
with open(os.environ["BERTH_TASK"].replace("/", "-") + ".json", "w") as file:
    json.dump(sys.argv[1:], file)
"""

# Marks start and end of what it does, each with one write.
SPAN = """#!/bin/sh
echo "$(date +%s%N) start" >> "$1"
sleep "$2"
echo "$(date +%s%N) end" >> "$1"
"""


def most_at_once(path):
    """How many of the spans in a witness file overlapped at most."""
    now = most = 0
    for line in sorted(path.read_text().splitlines()):
        now += 1 if line.endswith("start") else -1
        most = max(most, now)
    return most


class Command(Case):
    """Parameter values stay one word, whatever is in them and wherever they stand."""

    def arguments_of(self, run_lines, values=HOSTILE):
        self.script("arguments", ARGUMENTS)
        self.write("q.yaml", f"name: q\nrun: {run_lines}\nparams: {json.dumps({'x': values})}\n")
        self.berth("run", "q.yaml")
        self.assertFalse((self.dir / "pwned").exists(), "a parameter value was executed")
        return [json.loads((self.dir / f"q-1-{i}.json").read_text())
                for i in range(1, len(values) + 1)]

    def test_direct(self):
        got = self.arguments_of("./arguments {x} pre{x}post")
        self.assertEqual(got, [[x, f"pre{x}post"] for x in HOSTILE])

    def test_list(self):
        got = self.arguments_of("[./arguments, '{x}', 'lr={x} $x;']")
        self.assertEqual(got, [[x, f"lr={x} $x;"] for x in HOSTILE])

    def test_shell_bare(self):
        got = self.arguments_of("true && ./arguments {x} pre{x}post {x}{x}")
        self.assertEqual(got, [[x, f"pre{x}post", x + x] for x in HOSTILE])

    def test_shell_single_quoted(self):
        got = self.arguments_of("|\n  true; ./arguments '{x}' 'pre \" {x}post'")
        self.assertEqual(got, [[x, f'pre " {x}post'] for x in HOSTILE])

    def test_shell_double_quoted(self):
        got = self.arguments_of("|\n  true; ./arguments \"{x}\" \"it's {x} post\"")
        self.assertEqual(got, [[x, f"it's {x} post"] for x in HOSTILE])

    def test_shell_nested(self):
        """Where a quote, a substitution, a comment or a backslash stands around the value, it is one
        word all the same, or the file is refused; nothing of it is ever executed."""
        values = ["$(touch pwned)", "`touch pwned`", "; touch pwned;", "'; touch pwned; '", "a b"]
        lines = ['echo "$(echo {x})"', "echo `echo {x}`", 'echo "`echo {x}`"', "echo \\{x}",
                 'echo "\\{x}"', "cat <<EOF\n{x}\nEOF", "# it's\necho {x}", "echo $((1+{x}))",
                 'echo "${Y:-{x}}"', "echo \"$(echo '{x}')\""]
        for line in lines:
            with self.subTest(line):
                (self.dir / "pwned").unlink(missing_ok=True)
                self.write("n.yaml", json.dumps({"run": line, "params": {"x": values}}))
                self.house.run("run", "n.yaml")
                self.assertFalse((self.dir / "pwned").exists(), "a parameter value was executed")

    def test_other_braces_stay(self):
        self.script("arguments", ARGUMENTS)
        self.write("q.yaml", "name: q\nrun: X=1; ./arguments ${X}{ab} {unknown} '{}' '{x,y}' {{x}}\n"
                             "params: {x: [5]}\n")
        self.berth("run", "q.yaml")
        self.assertEqual(json.loads((self.dir / "q-1-1.json").read_text()),
                         ["1{ab}", "{unknown}", "{}", "{x,y}", "{x}"])

    def test_environment(self):
        self.write("e.yaml", "run: env -0 > env; cp {params_file} given\n"
                             "params: {lr: [1e-3], tag: ['a b']}\nenv: {COLOUR: teal blue}\n")
        self.berth("run", "e.yaml", env={"OUTER": "kept"})
        found = dict(entry.split("=", 1) for entry in (self.dir / "env").read_text().split("\0") if entry)
        expected = {"BERTH_TASK": "e-1/1", "BERTH_RUN": "e-1", "BERTH_PARAM_TAG": "a b",
                    "BERTH_PARAM_LR": "1e-3", "COLOUR": "teal blue", "OUTER": "kept"}
        self.assertLessEqual(expected.items(), found.items())
        self.assertEqual(int(found["BERTH_TOKEN"]),
                         self.house.json("why", "e-1/1")["attempts_made"][0]["token"])
        given = json.loads((self.dir / "given").read_text())
        self.assertEqual(given, {"lr": 0.001, "tag": "a b"})

    def test_directory_is_the_files(self):
        self.write("sub/d.yaml", "run: [pwd]\n")
        self.berth("run", self.dir / "sub/d.yaml", cwd="/")
        self.assertEqual(self.berth("logs", "d-1/1").out.decode(),
                         os.path.realpath(self.dir / "sub") + "\n")

    def test_random_search_is_its_seed(self):
        text = "run: [true]\nparams: {lr: {min: 1e-4, max: 1, scale: log}, k: {min: 1, max: 9, type: int}}\n" \
               "search: {method: random, samples: 30, seed: "
        for name, seed in (("a", 7), ("b", 7), ("c", 8)):
            self.write(f"{name}.yaml", text + f"{seed}}}\n")
            self.berth("run", f"{name}.yaml")
        a, b, c = ([task["params"] for task in self.house.tasks(f"{name}-1")] for name in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)
        for params in a:
            self.assertTrue(1e-4 <= params["lr"] <= 1 and params["k"] in range(1, 10), params)


class TimeLimit(Case):
    def test_term_first_and_its_grace(self):
        self.write("t.yaml", "run: |\n  trap 'echo saved; exit 0' TERM\n  while :; do sleep 0.05; done\n"
                             "timeout: 300ms\ngrace: 20s\n")
        began = time.monotonic()
        self.berth("run", "t.yaml", code=1)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(self.berth("logs", "t-1/1").out, b"saved\n")
        self.assertEqual(self.house.tasks("t-1")[0]["cause"], "time limit")

    def test_the_grace_is_its_childrens_too(self):
        """The shell dies of TERM at once; what it had started has its time to save."""
        self.script("saver", "#!/bin/sh\ntrap 'sleep 0.2; echo saved; exit 0' TERM\n"
                             "while :; do sleep 0.05; done\n")
        self.write("t.yaml", "run: cd . && ./saver; true\ntimeout: 300ms\ngrace: 20s\n")
        began = time.monotonic()
        self.berth("run", "t.yaml", code=1)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(self.berth("logs", "t-1/1").out, b"saved\n")

    def test_holds_while_nobody_reads_the_output(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        process = self.house.start("run", "--timeout", "300ms", "--", "yes", out=write)
        os.close(write)
        until(lambda: [run for run in self.house.json("runs")["runs"] if run["state"] == "failed"],
              "the limit", 5)
        os.set_blocking(read, False)

        def ended():
            try:
                os.read(read, 1 << 20)
            except BlockingIOError:
                pass  # it has not written more yet
            return process.poll() is not None

        until(ended, "its end")

    def test_then_kill_of_the_whole_group(self):
        """A child and a grandchild, both deaf to TERM."""
        self.write("t.yaml", "run: |\n  trap '' TERM\n  echo $$ >> pids\n"
                             "  sh -c 'echo $$ >> pids; sleep 60 & echo $! >> pids; wait' &\n"
                             "  while :; do sleep 60; done\ntimeout: 400ms\ngrace: 200ms\n")
        self.berth("run", "t.yaml", code=1)
        pids = numbers(self.dir / "pids")
        self.assertEqual(len(pids), 3)
        until(lambda: not any(map(alive, pids)), "the death of all three")
        attempt = self.house.json("why", "t-1/1")["attempts_made"][0]
        self.assertEqual(attempt["cause"], "time limit")
        self.assertIn("ignored TERM", attempt["detail"])
        self.assert_tidy()

    def test_counts_as_failure_and_is_tried_again(self):
        self.berth("run", "--timeout", "150ms", "--retries", "1", "--", "sleep", "60", code=124)
        self.assertEqual(self.house.tasks("sleep-1")[0]["attempts"], 2)


class Stopped(Case):
    def test_a_task_that_stands_still_hears_that_it_is_to_end(self):
        self.script("still", "#!/bin/bash\ntrap 'echo bye > bye; exit 0' TERM\necho $$ > pid.new\n"
                    "mv pid.new pid\nkill -STOP $$\nwhile true; do sleep 0.05; done\n")
        run = self.berth("run", "--detach", "--", "./still").out.decode().strip()
        until((self.dir / "pid").exists, "it runs")
        stat = Path(f"/proc/{(self.dir / 'pid').read_text().strip()}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it stands still")
        self.berth("stop", run)
        self.assertEqual((self.dir / "bye").read_text(), "bye\n")


class Resources(Case):
    def spans(self, text, trials=6):
        self.script("span", SPAN)
        self.write("p.yaml", f"run: ./span witness 0.1\nparams: {{i: {{min: 1, max: {trials}, type: int}}}}\n"
                   + text)
        self.berth("run", "p.yaml")
        return most_at_once(self.dir / "witness")

    def test_parallel_is_the_most_at_once(self):
        self.assertEqual(self.spans("resources: {cpu: 0.1}\nparallel: 3\n", 9), 3)

    def test_whole_machine_one_at_a_time(self):
        cores = int(self.house.json("machine")["total"]["cpu"])
        self.assertEqual(self.spans(f"resources: {{cpu: {cores}}}\n", 4), 1)

    def test_a_core_each(self):
        cores = int(self.house.json("machine")["total"]["cpu"])
        self.assertEqual(self.spans("", 3 * cores), cores)

    def test_memory_bounds_too(self):
        total = self.house.json("machine")["total"]["mem"]
        self.assertEqual(self.spans(f"resources: {{cpu: 0.1, mem: {total * 2 // 5}}}\n"), 2)

    def test_cores_are_bound_and_told(self):
        done = self.berth("run", "--", "/usr/bin/python3", "-c",
                          "import os; print(len(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])")
        self.assertEqual(done.out, b"1 1\n")

    def test_memory_is_held(self):
        if not self.limits_held("memory"):
            self.skipTest("this machine's memory limits are advisory")
        self.script("eat", "#!/usr/bin/python3\nx = bytearray(400_000_000)\nprint('ate it')\n")
        self.berth("run", "--mem", "100M", "--", "./eat", code=137)
        task = self.house.tasks("eat-1")[0]
        self.assertEqual(task["cause"], "out of memory")
        self.assertEqual(self.berth("logs", "eat-1").out, b"")
        self.berth("run", "--mem", "600M", "--", "./eat")

    def test_peak_memory_is_recorded(self):
        self.script("eat", "#!/usr/bin/python3\nx = bytearray(b'x') * 200_000_000\n")
        self.berth("run", "--", "./eat")
        peak = self.house.json("why", "eat-1/1")["attempts_made"][0]["peak_mem"]
        self.assertTrue(190_000_000 < peak < 300_000_000, peak)

    def test_cpu_time_is_recorded(self):
        self.script("burn", "#!/usr/bin/python3\nimport time\nwhile time.process_time() < 0.3:\n    pass\n")
        self.berth("run", "--", "./burn")
        self.assertGreater(self.house.json("why", "burn-1/1")["attempts_made"][0]["cpu_ms"], 250)


class Shortage(Case):
    """What the host is short of for a moment fails no task for ever."""

    def test_few_descriptors(self):
        self.write("f.yaml", "run: [sleep, '0.01']\nresources: {cpu: 0.1}\n"
                             "params: {i: {min: 1, max: 40, type: int}}\n")
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
        # A sanitizer opens a pipe to try whether an object can be read, and without one doubts its type.
        trusted = self.write("trusted", "vptr_check:*\n")
        finished = self.house.run("run", "f.yaml", preexec_fn=few, env={"UBSAN_OPTIONS": f"suppressions={trusted}"})
        self.assertIn(finished.code, (0, 3), finished)
        self.berth("resume", "f-1")
        self.assertEqual(self.house.counts("f-1")["done"], 40)


class Descendants(Case):
    """Whoever a task leaves behind ends with it."""

    def end_of(self, program):
        self.write("go", "")
        self.script("leave", f"#!/bin/sh\n{program} 'echo $$ >> pids; exec sleep 60' >/dev/null 2>&1 &\n"
                             "while ! test -s pids; do sleep 0.01; done\n")
        self.berth("run", "--", "./leave")
        pids = numbers(self.dir / "pids")
        self.addCleanup(lambda: [os.kill(pid, 9) for pid in pids if alive(pid)])
        self.assertEqual(len(pids), 1)
        until(lambda: not alive(pids[0]), f"the end of {program}", 5)
        self.assert_tidy()

    def test_background(self):
        self.end_of("sh -c")

    def test_own_session(self):
        if not self.limits_held("pids"):
            self.skipTest("no groups on this machine")
        self.end_of("setsid sh -c")

    def test_own_session_and_no_environment(self):
        if not self.limits_held("pids"):
            self.skipTest("no groups on this machine")
        self.end_of("env -i setsid sh -c")

    def test_of_a_berth_within_a_task(self):
        if not self.limits_held("pids"):
            self.skipTest("no groups on this machine")
        within = f"BERTH_DB={self.dir}/inner BERTH_LEDGER={self.dir}/inner-ledger {self.house.berth}"
        self.script("deep", "#!/bin/sh\ntrap '' TERM\nsetsid sleep 60 >/dev/null 2>&1 &\n"
                            f"echo $! >> {self.dir}/pids\nwhile :; do sleep 60; done\n")
        self.write("n.yaml", f"run: {within} run -- ./deep\ntimeout: 3s\ngrace: 200ms\n")
        self.berth("run", "n.yaml", code=1)
        pids = numbers(self.dir / "pids")
        self.addCleanup(lambda: [os.kill(pid, 9) for pid in pids if alive(pid)])
        self.assertEqual(len(pids), 1)
        until(lambda: not alive(pids[0]), "the end of the inner one's", 5)

    def test_a_berth_within_a_task_has_what_the_task_has(self):
        within = [self.house.berth, "run", "--name", "inner", "--cpu"]
        self.berth("run", "--cpu", "0.5", "--name", "nest", "--", "timeout", "20", *within, "0.5", "--", "echo", "deep")
        self.assertIn(b"deep", self.berth("logs", "nest-1").out)
        self.berth("run", "--cpu", "1", "--name", "less", "--", *within, "2", "--", "true", code=3)
        self.assertIn(b"the task that this runs in", self.berth("logs", "less-1").err)

    def test_output_held_open_by_one_does_not_delay_the_end(self):
        began = time.monotonic()
        self.berth("run", "--", "sh", "-c", "setsid sleep 30 & echo done")
        self.assertLess(time.monotonic() - began, 5)


if __name__ == "__main__":
    unittest.main()
