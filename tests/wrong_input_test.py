#!/usr/bin/python3
"""Whatever is wrong with what a person gives, one line tells what and where, and nothing is begun."""

import os
import resource
import subprocess
import unittest

from berth_case import Case


def limited(which, most):
    """For preexec_fn."""
    return lambda: resource.setrlimit(which, (most, most))


class WrongInput(Case):
    begun = []  # the runs there are

    def refused(self, *arguments, code=2, says=(), **more):
        """Exits with the code and one line that holds all of `says`; leaves nothing behind."""
        finished = self.berth(*arguments, code=code, **more)
        self.assertEqual(finished.out, b"", finished)
        line = self.one_line(finished)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, line)
        self.assertLess(len(line), 400, line)
        runs = [run["id"] for run in self.house.json("runs")["runs"]]
        self.begun, before = runs, self.begun
        self.assertEqual(runs, before, "something was begun")
        self.assert_tidy()
        return line

    def file_refused(self, text, *says, code=2):
        self.write("f.yaml", text)
        with self.subTest(text[:60]):
            return self.refused("run", "f.yaml", code=code, says=("f.yaml", *says))


class WrongFiles(WrongInput):
    def test_wrong_lines(self):
        """Each names its line and its key."""
        head = "name: f\nrun: echo {x}\n"
        for wrong, *says in [
                ("parms: {x: [1]}", ":3:", "'parms'", "params"),
                ("resource: {cpu: 1}", ":3:", "'resource'", "resources"),
                ("zzzzzz: 1", ":3:", "'zzzzzz'"),
                ("resources: {mem: 4Q}", ":3:", "resources.mem", "4Q"),
                ("resources: {mem: -1G}", ":3:", "resources.mem", "-1G"),
                ("resources: {cpu: -2}", ":3:", "resources.cpu", "-2"),
                ("resources: {cpu: 0.0001}", ":3:", "resources.cpu"),
                ("resources: {cpu: nan}", ":3:", "resources.cpu"),
                ("resources: {cpu: 1e400}", ":3:", "resources.cpu"),
                ("resources: {mem: 99999999999999999999G}", ":3:", "resources.mem"),
                ("resources: {CPU!: 1}", ":3:", "resources.CPU!"),
                ("resources: [cpu]", ":3:", "resources"),
                ("resources: {cpu: [1]}", ":3:", "resources.cpu"),
                ("timeout: 10 parsecs", ":3:", "timeout"),
                ("timeout: -5s", ":3:", "timeout"),
                ("retries: -1", ":3:", "retries"),
                ("retries: many", ":3:", "retries"),
                ("parallel: 0", ":3:", "parallel"),
                ("parallel: 1.5", ":3:", "parallel"),
                ("on_failure: explode", ":3:", "on_failure", "continue"),
                ("goal: accuracy", ":3:", "goal"),
                ("goal: {direction: max}", ":3:", "goal", "metric"),
                ("goal: {metric: a, direction: up}", ":3:", "goal.direction"),
                ("name: g", ":3:", "'name'", "twice"),
                ("params: {x: [1], x: [2]}", ":3:", "'x'", "twice"),
                ("params: {x: []}", ":3:", "params.x"),
                ("params: {2x: [1]}", ":3:", "params.2x"),
                ("params: {x: {min: 2, max: 1}}", ":3:", "params.x"),
                ("params: {x: {min: 0, max: 1, scale: log, n: 3}}", ":3:", "params.x"),
                ("params: {x: {min: 0, max: 1}}", ":3:", "params"),
                ("params: {x: {min: 0}}", ":3:", "params.x", "max"),
                ("params: {x: {min: 0, max: .inf, n: 3}}", ":3:", "params.x"),
                ("params: {x: {min: 0.5, max: 3, type: int}}", ":3:", "params.x"),
                ("params: {x: {min: 1, max: 1000000000, type: int}}", ":3:", "params"),
                ("search: {method: psychic}", ":3:", "search.method"),
                ("search: {method: random}", ":3:", "search", "samples"),
                ("env: {A=B: 1}", ":3:", "env"),
                ("env: {A: [1]}", ":3:", "env.A")]:
            self.file_refused(head + wrong + "\n", *says)

    def test_wrong_names(self):
        for name in ("a/b", "../up", "", ".", "a b", "x" * 65, "ü", "-v", "a\\nb"):
            with self.subTest(name):
                self.file_refused(f'name: "{name}"\nrun: [true]\n', ":1:", "name")
                if name:
                    self.refused("run", f"--name={name}", "--", "true", says="--name")

    def test_a_placeholder_nobody_declared_stays_but_the_command_must_be_there(self):
        self.file_refused("name: f\n", "run", "missing")
        for run in ('""', "[]", "{a: 1}", '"   "', "[[a]]", '"a\\0b"'):
            self.file_refused(f"run: {run}\n", ":1:", "run")

    def test_more_than_the_machine_has(self):
        self.file_refused("name: f\nrun: [true]\nresources: {cpu: 1000}\n", ":3:", "resources", "1000 cores requested",
                          code=3)
        for option, resource in (("--mem=900T", "900T of memory requested"), ("--gpu=64", "64 GPUs requested"),
                                 ("--resource=unobtainium=1", "unobtainium")):
            self.refused("run", option, "--", "true", code=3, says=resource)

    def test_a_grid_too_large(self):
        axes = ", ".join(f"p{i}: {{min: 1, max: 1000, type: int}}" for i in range(3))
        self.file_refused(f"run: [true]\nparams: {{{axes}}}\n", ":2:", "params")
        axes = ", ".join(f"p{i}: {{min: 1, max: 1000000, type: int}}" for i in range(30))
        self.file_refused(f"run: [true]\nparams: {{{axes}}}\n", ":2:", "params")

    def test_no_yaml(self):
        self.file_refused("run: [a, b\nname: x\n", ":")
        self.file_refused("run: 'open\n", ":")
        self.file_refused("a: b: c\n", ":1:")
        self.file_refused("run: *nowhere\n", ":1:")
        self.file_refused("\tname: tab\n", ":1:")
        self.file_refused("- a\n- b\n", ":1:")
        self.file_refused("just words\n", ":1:")
        self.file_refused("--- \nrun: [true]\n---\nrun: [false]\n")
        self.file_refused("? [a, b]\n: c\n", ":1:")

    def test_empty(self):
        for text in ("", "\n\n", "# only a comment\n", "---\n", "~\n"):
            self.file_refused(text, "empty")

    def test_nested_without_end(self):
        for text in ("[" * 100_000, "{a: " * 100_000, "- " * 100_000, "? " * 100_000,
                     "\n".join(" " * i + "a:" for i in range(5000)), "run: " + "[" * 200 + "]" * 200):
            self.file_refused(text)

    def test_alias_bombs(self):
        bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        for last, letter in zip("abcdefgh", "bcdefghi"):
            bomb += f"{letter}: &{letter} [{', '.join([f'*{last}'] * 10)}]\n"
        self.file_refused(bomb)
        self.file_refused("run: [true]\nparams: &p {x: *p}\n")
        self.file_refused("a: &a [*a]\n")

    def test_not_text(self):
        for text in (b"run: [true]\nname: \xff\xfe\n", b"\x00\x01\x02", b"\xc0\xff\xee: 1\n",
                     b"name: f\nrun: echo \xc3\x28\n", b"run: [true]\nparams: {x: [\xff]}\n",
                     b"run: [true]\nenv: {A: \xf0\x82\x82\xac}\n", b"\xff\xfer\x00u\x00n\x00"):
            self.file_refused(text)


class JsonErrors(WrongInput):
    """Files that are read as JSON: the line, the column and the cure, in words of Berth's own."""

    READERS = (("plan",), ("simulate",), ("topo", "--topology"), ("place", "2", "--topology"), ("fit",))

    def test_broken_json_is_explained_by_every_command(self):
        for text, says in (('{"a": 1,}', "column 9: expected a name in double quotes, got '}' (remove the comma"),
                           ('{"a": NaN}', "column 7: expected a value, got 'NaN' (JSON has no NaN"),
                           ('{"a": 1\n"b": 2}', "line 2, column 1: expected ',' or '}'"),
                           ('{"a": "b', "a text without its closing quote"),
                           ('{"a": True}', "(write true)")):
            self.write("f.json", text)
            for command in self.READERS:
                if command == ("fit",) and "NaN" in text:
                    continue  # benchmarks written by Python have it, and berth fit reads it
                with self.subTest(text, command=command):
                    self.assertNotIn("exception", self.refused(*command, "f.json", says=("not JSON", says)))

    def test_yaml_where_json_is_expected_is_named(self):
        self.write("f.json", "# a fleet\nservers:\n  - name: a\n")
        for command in (("plan",), ("simulate",)):
            self.refused(*command, "f.json", says="looks like YAML ('servers:')")


class ShortDurations(Case):
    """A duration below a millisecond is a short limit, never none."""

    def test_a_tiny_time_limit_ends_a_command(self):
        finished = self.house.run("run", "--timeout", "500us", "--", "sleep", "60", timeout=30)
        self.assertNotEqual(finished.code, 0, finished)
        self.assertIn(b"time limit", finished.err)

    def test_a_tiny_time_limit_on_the_command_line_ends_a_flow(self):
        self.write("flow.yaml", "steps: {a: {run: sleep 60}}")
        self.assertIn(b"time limit", self.berth("run", "--timeout", "500us", "flow.yaml", code=1, timeout=30).err)

    def test_a_tiny_time_limit_in_a_flow_file_ends_its_step(self):
        for limit in ("500us", "0.0001", "'{attempt} * 0.0001'"):
            self.write("flow.yaml", f"steps: {{a: {{run: sleep 60, timeout: {limit}}}}}")
            with self.subTest(limit):
                self.assertIn(b"time limit", self.berth("run", "flow.yaml", code=1, timeout=30).err)


class WrongPlaces(WrongInput):
    def test_files_that_are_none(self):
        self.refused("run", "missing.yaml", says=("missing.yaml", "o such file"))
        (self.dir / "d.yaml").mkdir()
        self.refused("run", "d.yaml", says=("d.yaml", "irectory"))
        self.refused("run", "missing/sweep.yaml", says="missing/sweep.yaml")
        self.refused("run", "/dev/zero", says="/dev/zero")
        self.refused("run", "x" * 300, says="too long")
        with self.write("huge.yaml", "").open("wb") as file:
            file.truncate(1 << 30)
        self.refused("run", "huge.yaml", says="huge.yaml")

    def test_programs_that_are_none(self):
        self.write("plain.sh", "#!/bin/sh\n")
        self.file_refused("name: f\nrun: ./plain.sh {x}\nparams: {x: [1]}\n", ":2:", "chmod +x")
        self.file_refused("name: f\nrun: no-such-program-anywhere 1\n", ":2:", "no-such-program")
        self.file_refused("name: f\nrun: [./gone]\n", ":2:", "./gone")
        self.file_refused("name: f\nrun: [/tmp]\n", ":2:", "irectory")
        self.refused("run", "--", "no-such-program-anywhere", says="no-such-program")
        self.refused("run", "--", "./plain.sh", says="chmod +x")
        self.refused("run", "--", "", says="")

    def test_command_lines(self):
        for words, says in [
                (["runns"], "runs"), (["run", "--foo", "--", "true"], "--foo"), (["show"], "@last"),
                (["why"], "@last"), (["logs"], "@last"), (["stop"], "RUN"), (["resume"], "RUN"),
                (["run"], "file"), (["run", "--"], ""), (["run", "f.yaml", "--", "true"], ""),
                (["run", "a.yaml", "b.yaml"], "a.yaml"), (["--nope"], "--nope"), (["show", "a", "b"], "b"),
                (["runs", "--", "x"], "--"), (["run", "--cpu", "--", "true"], "--cpu"),
                (["run", "--cpu", "x", "--", "true"], "--cpu"), (["run", "--cpu", "-1", "--", "true"], "--cpu"),
                (["run", "--mem", "4X", "--", "true"], "--mem"), (["run", "--timeout", "x", "--", "true"], "--timeout"),
                (["run", "--retries", "-1", "--", "true"], "--retries"), (["run", "--resource", "x", "--", "true"], "--resource"),
                (["run", "--resource", "a b=1", "--", "true"], "--resource"), (["run", "--parallel", "0", "f"], "--parallel"),
                (["best", "no-1"], "no-1"), (["show", "no-1"], "no-1"), (["why", "no-1/1"], "no-1"),
                (["logs", "no-1/1"], "no-1"), (["resume", "no-1"], "no-1"), (["stop", "no-1"], "no-1"),
                (["show", ""], ""), (["show", "/"], ""), (["show", "a\nb"], ""), (["show", "../../etc-1"], "")]:
            with self.subTest(words):
                self.refused(*words, says=says)

    def test_tasks_and_bests_that_are_not(self):
        self.berth("run", "--", "true")
        for words, code in [(["why", "true-1/2"], 2), (["logs", "true-1/x"], 2),
                            (["best", "true-1"], 2), (["show", "true-01"], 2), (["show", "true"], 2)]:
            with self.subTest(words):
                self.assertIn("true", self.one_line(self.berth(*words, code=code)))

    def test_places_for_the_state(self):
        self.write("file", "")
        for place in (self.dir / "file", self.dir / "file/below", "/proc/berth", "/dev/null/x",
                      "postgres://user:secret@host/db"):
            finished = self.house.run("runs", env={"BERTH_DB": str(place)})
            self.assertIn(finished.code, (2, 3), finished)
            self.assertNotIn("secret", self.one_line(finished))
        nowhere = dict.fromkeys(("BERTH_DB", "HOME", "XDG_STATE_HOME"), "")
        self.assertIn("BERTH_DB", self.one_line(self.berth("runs", code=2, env=nowhere)))

    def test_parameters_that_share_a_variable(self):
        """BERTH_PARAM_LR cannot be both."""
        self.write("f.yaml", "run: [true]\nparams:\n  lr: [1]\n  LR: [2]\n")
        self.refused("run", "f.yaml", says=("f.yaml:4:", "LR"))

    def test_a_stdout_that_takes_nothing(self):
        with open("/dev/full", "wb") as full:
            self.assertIn("o space left", self.one_line(self.berth("runs", code=3, out=full)))

    def test_a_ledger_that_is_a_link(self):
        (self.dir / "real").mkdir()
        (self.dir / "link").symlink_to("real")
        for name in ("link", "link/"):
            finished = self.house.run("run", "--", "true", env={"BERTH_LEDGER": f"{self.dir}/{name}"})
            self.assertEqual(finished.code, 3, finished)
            self.assertIn("a link to", self.one_line(finished))
        self.assertEqual(os.listdir(self.dir / "real"), [])

    @unittest.skipUnless(os.getuid() == 0, "only root can make what is another's")
    def test_a_ledger_of_somebody_else(self):
        theirs = self.dir / "theirs"
        theirs.mkdir()
        theirs.chmod(0o1777)
        self.dir.chmod(0o755)
        self.berth("run", "--", "true", env={"BERTH_LEDGER": str(theirs)})
        self.assertEqual(self.run_as(1234, theirs).code, 0)
        os.chown(theirs, 1234, 1234)
        finished = self.house.run("run", "--", "true", env={"BERTH_LEDGER": str(theirs)})
        self.assertEqual(finished.code, 3, finished)
        self.assertIn("belongs to another user (uid 1234)", self.one_line(finished))
        self.assertEqual(self.run_as(1235, theirs).code, 3)
        self.assertEqual(self.run_as(1234, theirs).code, 0)
        os.chown(theirs, 0, 0)
        theirs.chmod(0o777)
        self.assertEqual(self.run_as(1234, theirs).code, 3, "root's, but anybody may replace files there")

    def run_as(self, user, ledger):
        home = self.dir / str(user)
        home.mkdir(exist_ok=True)
        os.chown(home, user, user)
        return self.house.run("run", "--", "true", cwd=home, user=user, group=user, extra_groups=[],
                              env={"BERTH_LEDGER": str(ledger), "BERTH_DB": str(home / "state")})

    @unittest.skipIf(os.environ.get("BERTH_SANITIZE"), "a sanitizer looks at memory through a pipe")
    def test_descriptors_that_are_too_few_are_told_with_what_helps(self):
        seen = set()
        for many in range(6, 12):
            finished = self.house.run("run", "--plan", "--", "true", preexec_fn=limited(resource.RLIMIT_NOFILE, many))
            seen.add(finished.code)
            if finished.code != 0:
                told = self.one_line(finished)
                self.assertIn("raise the limit of this process: ulimit -n", told)
                self.assertNotIn("BERTH_LEDGER", told)
        self.assertEqual(seen, {0, 3}, "some are too few, and some are enough")

    def test_a_small_stack(self):
        self.write("f.yaml", "name: f\nsteps:\n"
                   "  a: {run: 'head -c 9000000 /dev/zero > {out.x}', out: {x: x}}\n"
                   "  b: {run: 'cp {in.x} {out.y}', in: {x: a.x}, out: {y: y}}\n")
        for words in (["--", "true"], ["f.yaml"]):
            self.berth("run", *words, preexec_fn=limited(resource.RLIMIT_STACK, 64 << 10))

    def test_a_hundred_thousand_parameters(self):
        self.write("p.yaml", "name: p\nrun: 'true'\nsearch: {method: grid}\nparams:\n"
                   + "".join(f"  k{i}: [1]\n" for i in range(100_000)))
        self.berth("run", "--plan", "p.yaml", timeout=30)

    def test_a_ledger_that_is_a_file(self):
        self.write("file", "")
        finished = self.house.run("run", "--", "true", env={"BERTH_LEDGER": str(self.dir / "file")})
        self.assertIn(finished.code, (2, 3), finished)
        self.assertIn(str(self.dir / "file"), self.one_line(finished))


class FullDisks(Case):
    """A state directory on a volume of 1 MB, or one that may not be written."""

    def mount(self, size):
        self.house.state.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "berth-test",
                                  self.house.state], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"may not mount here: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.house.state], check=False)
        self.write("machine.yaml", "disk_floor: 0\n")

    def fill(self, but):
        ballast = os.open(self.house.state / "ballast", os.O_WRONLY | os.O_CREAT)
        written = 0
        try:
            while True:
                written += os.write(ballast, b"x" * 4096)
        except OSError:
            os.truncate(ballast, max(0, written - but))
        finally:
            os.close(ballast)

    def test_read_only(self):
        self.mount("1m")
        subprocess.run(["mount", "-o", "remount,ro", self.house.state], check=True)
        for command in (("run", "--", "true"), ("runs",)):
            finished = self.house.run(*command)
            self.assertIn(finished.code, (2, 3), finished)
            self.assertIn(str(self.house.state), self.one_line(finished))

    def test_full_at_the_start(self):
        self.mount("1m")
        for room in (0, 4096, 16384, 40960, 65536):
            with self.subTest(room=room):
                self.fill(room)
                finished = self.house.run("run", "--", "sh", "-c", "echo ran >> witness")
                self.assertEqual(finished.code, 3, finished)
                self.assertIn("berth.db", self.one_line(finished))
                self.assertFalse((self.dir / "witness").exists())
                (self.house.state / "ballast").unlink()
                self.assertEqual(self.house.json("runs")["runs"], [])
                self.assert_tidy()
                (self.house.state / "berth.db").unlink()

    def test_full_at_the_submission_of_many(self):
        self.mount("1m")
        self.write("many.yaml", "run: ['true', '{i}']\nparams: {i: {min: 1, max: 50000, type: int}}\n")
        finished = self.berth("run", "many.yaml", code=3)
        self.assertIn("berth.db", self.one_line(finished))
        self.assertEqual(self.house.json("runs")["runs"], [])
        self.berth("run", "--", "true")

    def test_full_in_the_middle(self):
        """The run ends with the reason, and goes on once there is room."""
        self.mount("2m")
        self.write("loud.yaml", "run: echo {i} >> witness; head -c 600000 /dev/urandom; sleep 0.05\n"
                                "params: {i: [1, 2, 3, 4, 5, 6, 7, 8]}\n")
        finished = self.berth("run", "loud.yaml", code=3)
        *tries, last = finished.err.decode().splitlines()
        self.assertRegex(last, r"\Aberth: .*berth resume loud-1\Z", finished)
        self.assertTrue(any("(5 of 5)" in line for line in tries), finished)
        subprocess.run(["mount", "-o", "remount,size=64m", self.house.state], check=True)
        self.berth("resume", "loud-1")
        self.assertEqual(self.house.counts("loud-1")["done"], 8)
        self.berth("logs", "loud-1/8", out=subprocess.DEVNULL)
        self.assert_tidy()


if __name__ == "__main__":
    unittest.main()
