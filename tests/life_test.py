#!/usr/bin/python3
"""The life of a flow's files: what depfiles name, temporary and protected outputs, and what follows when a run ends."""

import json
import os
import random
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

from berth_case import FlowCase, until

EXAMPLE = Path(__file__).resolve().parent.parent / "examples/c-build"


class Depfiles(FlowCase):
    FLOW = """steps:
  compile:
    foreach: {c: src/*.c}
    run: 'gcc -Iinclude -MMD -MP -MF {out.o}.d -c {c} -o {out.o}'
    out: {o: 'build/{c.stem}.o'}
    depfile: '{out.o}.d'
  link: {in: {o: compile.o}, run: 'gcc {in.o} -o {out.p}', out: {p: build/prog}}
"""

    def setUp(self):
        super().setUp()
        self.write("flow.yaml", self.FLOW)
        self.write("src/a.c", '#include "a.h"\n#include <b c.h>\nint main(void) { return A + B - f(); }\n')
        self.write("src/a.h", "#define A 1\nint f(void);\n")
        self.write("include/b c.h", "#define B 2\n")
        self.write("src/f.c", "#include <b c.h>\nint f(void) { return 1 + B; }\n")
        self.write("src/other.c", "int other(void) { return 0; }\n")

    def test_a_file_that_nobody_declared_counts_by_its_content(self):
        self.assertEqual(self.ran(self.run_flow()), ["compile/a", "compile/f", "compile/other", "link"])
        self.assertEqual(self.ran(self.run_flow()), [])
        os.utime(self.dir / "src/a.h")
        self.assertEqual(self.ran(self.run_flow()), [], "touched is not changed")
        self.write("src/a.h", "#define A 2\nint f(void);\n")
        plan = self.house.json("run", "--plan", "flow.yaml")
        self.assertIn("src/a.h changed", json.dumps(plan))
        self.assertEqual(self.ran(self.run_flow()), ["compile/a", "link"])
        self.assertEqual(self.because("flow-4/compile/a"), ["since flow-3: src/a.h changed"])
        self.write("include/b c.h", "#define B 2 // really\n")
        self.assertEqual(self.ran(self.run_flow()), ["compile/a", "compile/f"], "the objects are the same")
        self.write("src/a.h", "#define A 1\nint f(void);\n")
        self.write("include/b c.h", "#define B 2\n")
        self.assertEqual(self.ran(self.run_flow()), [], "all of it was there before")
        self.assertEqual(sorted(os.listdir(self.dir / "src")), ["a.c", "a.h", "f.c", "other.c"])
        self.assertEqual(sorted(os.listdir(self.dir / "build")), ["a.o", "f.o", "other.o", "prog"])
        self.assert_tidy()

    def test_what_is_included_may_change_and_go(self):
        self.run_flow()
        self.write("src/new.h", "#define A 1\n")
        self.write("src/a.h", '#include "new.h"\nint f(void);\n')
        self.assertEqual(self.ran(self.run_flow()), ["compile/a"])
        self.write("src/new.h", "#define A 5\n")
        self.assertEqual(self.ran(self.run_flow()), ["compile/a", "link"])
        self.write("src/a.h", "#define A 1\nint f(void);\n")
        (self.dir / "src/new.h").unlink()
        self.assertEqual(self.ran(self.run_flow()), [], "as at first")

    def test_a_depfile_that_is_missing_or_none_fails_its_task(self):
        self.write("flow.yaml", self.FLOW.replace("-MF {out.o}.d", "-MF /dev/null"))
        shown = self.run_flow(code=1)
        self.assertEqual(self.states(shown)["compile/a"], "failed")
        attempt = self.house.json("why", "flow-1/compile/a")["attempts_made"][0]
        self.assertIn("it did not write its depfile build/a.o.d", attempt["detail"])
        self.assertFalse((self.dir / "build/a.o").exists(), "nothing of it is published")
        self.write("flow.yaml", self.FLOW.replace("'gcc -I", "'echo hello > {out.o}.d; gcc -I").replace(
            "-MF {out.o}.d", "-MF /dev/null"))
        self.run_flow(code=1)
        self.assertIn("depfile build/a.o.d: line 1: expected 'TARGET: FILE",
                      self.house.json("why", "flow-2/compile/a")["attempts_made"][0]["detail"])

    def test_a_header_that_the_flow_writes_is_waited_for(self):
        self.write("flow.yaml", self.FLOW + """  header: {in: {v: version}, run: 'echo "#define V $(cat {in.v})" > {out.h}', out: {h: gen/v.h}}
""")
        self.write("version", "1\n")
        self.write("src/a.c", '#include "../gen/v.h"\nint main(void) { return V; }\n')
        self.write("gen/v.h", "#define V 0\n")
        self.run_flow(code=1)
        self.assertIn("the task read gen/v.h, which another step writes, without waiting for it",
                      self.house.json("why", "flow-1/compile/a")["attempts_made"][0]["detail"])
        flow = self.read("flow.yaml").replace("    depfile", "    needs: [header]\n    depfile")
        self.write("flow.yaml", flow)
        self.run_flow()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.write("version", "2\n")
        self.assertEqual(self.ran(self.run_flow()), ["compile/a", "header", "link"])

    def test_a_file_that_changes_while_its_task_runs_fails_it(self):
        self.write("flow.yaml", self.FLOW.replace("'gcc", f"'sleep 0.1; echo >> {self.dir}/src/a.h; gcc"))
        self.run_flow(code=1)
        self.assertIn("src/a.h: it was changed while the task ran",
                      self.house.json("why", "flow-1/compile/a")["attempts_made"][0]["detail"])
        self.assertFalse((self.dir / "build/a.o").exists())

    def test_a_task_that_outlives_its_runner_tells_what_it_has_read(self):
        flow = self.FLOW.replace("'gcc", f"'echo >> {self.dir}/began; sleep 1; gcc")
        self.write("flow.yaml", flow)
        runner = self.house.start("run", "flow.yaml")
        until(lambda: (self.dir / "began").exists(), "a task runs")
        runner.kill()
        runner.wait()
        self.berth("resume", "flow-1")
        self.assertEqual(self.ran(self.run_flow()), [])
        self.write("src/a.h", "#define A 2\nint f(void);\n")
        self.assertEqual(self.ran(self.run_flow()), ["compile/a", "link"])

    def test_it_is_refused_where_it_cannot_be(self):
        for change, said in [("cluster: lab\n" + self.FLOW, "other machines"),
                             (self.FLOW.replace("'{out.o}.d'\n", "'{out.x}.d'\n"), "out.x")]:
            self.write("flow.yaml", change)
            refused = self.berth("check", "flow.yaml", code=2)
            self.assertIn("depfile", refused.err.decode())
            self.assertIn(said, refused.err.decode())


class CBuild(FlowCase):
    """The example: which files are compiled again."""

    def setUp(self):
        super().setUp()
        for folder in ("lib", "src"):
            shutil.copytree(EXAMPLE / folder, self.dir / folder)
        shutil.copy(EXAMPLE / "build.yaml", self.dir)

    def build(self):
        return self.ran(self.run_flow(name="build.yaml"))

    def test_it_builds_and_one_header_compiles_what_includes_it(self):
        files = ["buffer", "hash", "options", "report", "table", "words"]
        self.assertEqual(self.build(), ["archive", *(f"compile/{each}" for each in files), "link", "main"])
        self.assertEqual(self.build(), [])
        os.utime(self.dir / "lib/table.h")
        self.assertEqual(self.build(), [])
        table = self.read("lib/table.h")
        self.write("lib/table.h", table + "/* more */\n")
        self.assertEqual(self.build(), ["compile/report", "compile/table", "main"], "the objects are as they were")
        self.write("lib/table.h", table.replace("  long count;", "  long long count;"))
        self.write("lib/report.c", self.read("lib/report.c").replace("%7ld", "%7lld"))
        self.assertEqual(self.build(), ["archive", "compile/report", "compile/table", "link", "main"])
        self.write("lib/buffer.h", self.read("lib/buffer.h").replace("Bytes", "The bytes"))
        self.assertEqual(self.build(), ["compile/buffer", "compile/words", "main"])
        self.write("text", "so it is, and so it was\n")
        counted = subprocess.check_output([self.dir / "build/tally", "-n", "2", self.dir / "text"])
        self.assertEqual(counted, b"      2 it\n      2 so\n")


class Ends(FlowCase):
    """on_failure and on_end."""

    FLOW = """{top}steps:
  bad: {{run: 'sleep 0.1; exit 3'{bad}}}
  slow: {{foreach: {{i: [1, 2, 3, 4, 5, 6]}}, run: 'sleep 0.3; echo {{i}} >> {dir}/done'}}
"""

    def flow(self, top="", bad=""):
        self.write("flow.yaml", self.FLOW.format(top=top, bad=bad, dir=self.dir))

    def started(self, shown):
        return sum(state == "done" for state in self.states(shown).values())

    def test_a_failure_stops_the_run_where_the_file_or_the_step_says_so(self):
        self.flow()
        self.assertEqual(self.started(self.run_flow("--parallel", "2", code=1)), 6)
        for top, bad in [("on_failure: stop\n", ""), ("", ", on_failure: stop")]:
            self.flow(top, bad)
            shown = self.run_flow("--parallel", "2", code=1)
            self.assertLess(self.started(shown), 6)
            self.assertEqual(shown["run"]["state"], "failed")
            self.assertEqual(shown["run"]["counts"]["failed"], 1)
        self.flow("on_failure: stop\n", ", on_failure: continue")
        self.assertEqual(self.started(self.run_flow("--parallel", "2", code=1)), 6)
        self.flow("on_failure: never\n")
        self.assertIn("flow.yaml:1: on_failure", self.berth("check", "flow.yaml", code=2).err.decode())

    ON_END = "on_end: 'cp $BERTH_RUN_JSON last.json; echo $BERTH_RUN $BERTH_RUN_STATE >> ends'\n"

    def ends(self):
        return self.read("ends").split("\n")[:-1]

    def test_a_command_runs_when_the_run_has_ended(self):
        self.write("flow.yaml", self.ON_END + "steps: {a: {run: 'echo > {out.x}', out: {x: x}}}\n")
        shown = self.run_flow()
        self.assertEqual(self.ends(), ["flow-1 done"])
        self.assertEqual(json.loads(self.read("last.json")), json.loads(self.berth("--json", "show", "flow-1").out))
        self.assertEqual(shown["run"]["state"], "done")
        self.write("flow.yaml", self.ON_END + "steps: {a: {run: 'exit 7'}}\n")
        self.run_flow(code=1)
        self.assertEqual(json.loads(self.read("last.json"))["failures"][0]["cause"], "exit 7")
        self.assertEqual(self.ends()[-1], "flow-2 failed")

    def test_its_failure_is_told_and_changes_nothing(self):
        self.write("flow.yaml", "on_end: 'echo so it is; exit 4'\nsteps: {a: {run: 'true'}}\n")
        finished = self.berth("run", "flow.yaml")
        self.assertIn("flow-1: on_end failed: exit 4", finished.err.decode())
        self.assertIn("so it is", finished.err.decode())
        self.write("flow.yaml", "on_end: [/no/such/program]\nsteps: {a: {run: 'true'}}\n")
        self.assertIn("flow-2: on_end failed: ", self.berth("run", "flow.yaml").err.decode())

    def test_killed_and_resumed_it_runs_in_the_end(self):
        self.write("flow.yaml", self.ON_END + f"steps: {{a: {{run: 'echo >> {self.dir}/began; sleep 1'}}}}\n")
        runner = self.house.start("run", "flow.yaml")
        until(lambda: (self.dir / "began").exists(), "the task runs")
        runner.kill()
        runner.wait()
        self.assertFalse((self.dir / "ends").exists())
        self.berth("resume", "flow-1")
        self.assertEqual(self.ends(), ["flow-1 done"])
        self.berth("resume", "flow-1")
        self.assertEqual(self.ends(), ["flow-1 done"], "once")

    def test_killed_within_it_it_runs_again(self):
        self.write("flow.yaml", "on_end: 'echo >> ends; [ -e go ] || sleep 60'\nsteps: {a: {run: 'true'}}\n")
        runner = self.house.start("run", "flow.yaml")
        until(lambda: (self.dir / "ends").exists(), "on_end runs")
        runner.kill()
        runner.wait()
        self.write("go", "")
        self.assertIn("finished already", self.berth("resume", "flow-1").err.decode())
        self.assertEqual(self.ends(), ["", ""])
        self.berth("resume", "flow-1")
        self.assertEqual(self.ends(), ["", ""])

    def test_a_stop_is_an_end_too(self):
        self.write("flow.yaml", self.ON_END + f"steps: {{a: {{run: 'echo >> {self.dir}/began; sleep 30'}}}}\n")
        runner = self.house.start("run", "flow.yaml")
        until(lambda: (self.dir / "began").exists(), "the task runs")
        runner.send_signal(2)
        runner.communicate()
        self.assertEqual(self.ends(), ["flow-1 stopped"])


class Protected(FlowCase):
    FLOW = """steps:
  make: {in: {a: 'data/*'}, run: 'cat {in.a} > {out.all}', out: {all: all.txt}}
  split:
    foreach: {f: data/*}
    in: {all: make.all}
    run: 'cp {f} {out.x}; cp {in.all} {out.d}/all'
    out: {x: 'out/{f.stem}.x', d: 'out/{f.stem}/'}
    protect: true
"""

    def setUp(self):
        super().setUp()
        self.write("flow.yaml", self.FLOW)
        for name in "ab":
            self.write(f"data/{name}", f"{name}\n")

    def modes(self):
        return {name: oct((self.dir / name).stat().st_mode & 0o777)
                for name in ("out/a.x", "out/a", "out/a/all", "all.txt")}

    def test_rows_that_would_replace_protected_outputs_do_not_begin(self):
        self.write("flow.yaml", "params: {more: a}\nsteps: {s: {run: 'echo {more} > {out.x}', out: {x: x.txt}, protect: true}}\n")
        self.write("rows.csv", "more\nb\n")
        self.berth("run", "flow.yaml")
        refused = self.berth("run", "flow.yaml", "--rows", "rows.csv", code=2)
        self.assertIn("it is protected and would be overwritten", refused.err.decode())
        self.assertEqual(self.berth("runs", "--json").out.count(b'"flow-2"'), 0, "nothing has begun")
        self.assertEqual(self.read("x.txt"), "a\n")

    def test_protected_outputs_are_read_only_and_not_written_over(self):
        self.run_flow()
        expected = {"out/a.x": "0o444", "out/a": "0o555", "out/a/all": "0o444", "all.txt": "0o644"}
        self.assertEqual(self.modes(), expected)
        self.assertEqual(self.ran(self.run_flow()), [])
        self.write("data/b", "changed\n")
        refused = self.berth("run", "flow.yaml", code=2)
        self.assertIn(f"{self.dir}/out/a.x: it is protected and would be overwritten: use berth run --overwrite",
                      refused.err.decode())
        self.assertEqual(self.berth("runs", "--json").out.count(b'"flow-3"'), 0, "nothing has begun")
        self.assertEqual(self.read("all.txt"), "a\nb\n")
        self.assertEqual(self.ran(self.run_flow("--overwrite")), ["make", "split/a", "split/b"])
        self.assertEqual(self.read("out/b.x"), "changed\n")
        self.assertEqual(self.read("out/a/all"), "a\nchanged\n")
        self.assertEqual(self.modes(), expected)
        self.write("data/b", "b\n")
        self.berth("run", "flow.yaml", code=2)
        self.assertEqual(self.read("out/b.x"), "changed\n", "also not from the cache")

    def test_a_task_is_repeated_whose_end_was_not_recorded(self):
        """Its outputs are in their places and read-only when the runner and the agent are killed."""
        for nth in (1, 2, 3):  # make and both tasks of split
            with self.subTest(nth):
                shutil.rmtree(self.dir / "out", ignore_errors=True)
                self.write("data/b", f"{nth}\n")
                fuse = self.write("fuse", "")
                point = {"BERTH_FAILPOINT": f"outputs published:{nth}:{fuse}"}
                self.assertEqual(self.house.run("run", "flow.yaml", env=point).code, -signal.SIGKILL)
                self.house.kill_leftovers()
                shutil.rmtree(self.dir / f"state/runs/flow-{nth}/agents")  # no journal says how it ended
                self.berth("resume", f"flow-{nth}")
                self.assertEqual(self.read("out/b.x"), f"{nth}\n")
                self.assertEqual(self.modes()["out/a/all"], "0o444")
        self.write("data/b", "changed\n")
        self.berth("run", "flow.yaml", code=2)
        self.assertEqual(self.read("out/b.x"), "3\n", "another run may not replace it")

    def test_a_task_is_repeated_that_failed_after_its_first_output(self):
        way = self.dir / "y"  # a file where a folder has to be, since the task has run
        self.write("flow.yaml", f"steps: {{s: {{run: 'echo a | tee {{out.x}} > {{out.y}}; [ -e {self.dir}/done ] || touch {way}', "
                                "out: {x: x.txt, y: y/y.txt}, protect: true}}\n")
        self.berth("run", "flow.yaml", code=1)
        self.assertEqual(self.read("x.txt"), "a\n")
        way.unlink()
        self.write("done", "")
        self.berth("retry", "flow-1")
        self.assertEqual((self.read("x.txt"), self.read("y/y.txt")), ("a\n", "a\n"))

    def test_a_retry_of_all_does_not_replace_what_it_protected(self):
        self.write("flow.yaml", f"steps: {{s: {{run: 'cat {self.dir}/data/a > {{out.x}}', out: {{x: x.txt}}, protect: true}}}}\n")
        self.run_flow()
        self.write("data/a", "changed\n")  # which the flow does not declare
        shutil.rmtree(self.dir / "state/cache")
        self.berth("retry", "--all", "flow-1", code=1)
        self.assertEqual(self.read("x.txt"), "a\n")

    def test_what_is_added_is_no_matter(self):
        self.write("flow.yaml", self.FLOW.replace("    in: {all: make.all}\n", "").replace("{in.all}", "{f}"))
        self.run_flow()
        self.write("data/c", "c\n")
        self.assertEqual(self.ran(self.run_flow()), ["make", "split/c"])
        (self.dir / "out/a.x").unlink()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.modes()["out/a.x"], "0o444", "it came back, protected")
        self.berth("run", "flow.yaml", "--force", "split", code=2)

    def test_what_is_in_the_way_when_its_task_becomes_known_is_told_by_the_task(self):
        self.write("flow.yaml", """steps:
  parts: {in: {a: data/a}, run: 'cp {in.a} {out.d}/new', out: {d: parts/}}
  use: {foreach: {p: parts.d/*}, run: 'cp {p} {out.x}', out: {x: 'out/{p.name}'}, protect: true}
""")
        self.write("out/new", "mine\n").chmod(0o444)
        shown = self.run_flow(code=1)
        self.assertEqual(self.states(shown)["use/new"], "failed")
        self.assertIn("it is protected", self.house.json("why", "flow-1/use/new")["attempts_made"][0]["detail"])
        self.assertEqual(self.read("out/new"), "mine\n")

    def test_both_at_once_is_refused(self):
        self.write("flow.yaml", self.FLOW + "    temp: true\n")
        self.assertIn("steps.split.protect", self.berth("check", "flow.yaml", code=2).err.decode())
        self.write("flow.yaml", self.FLOW.replace("protect", "temp"))
        self.assertIn("no step reads its outputs", self.berth("check", "flow.yaml", code=2).err.decode())


class Temporary(FlowCase):
    FLOW = """steps:
  sam: {{foreach: {{f: data/*.txt}}, run: 'tr a-z A-Z < {{f}} > {{out.s}}; echo {{key}} >> {dir}/ran', out: {{s: 'tmp/{{key}}.sam'}}, temp: true}}
  bam: {{foreach: {{s: sam.s}}, run: 'rev {{s}} > {{out.b}}', out: {{b: 'tmp/{{key}}.bam'}}, temp: true}}
  stats: {{foreach: {{b: bam.b}}, run: 'wc -c < {{b}} > {{out.n}}', out: {{n: 'out/{{key}}.n'}}}}
  call: {{in: {{b: bam.b}}, params: {{p: 1}}, run: 'echo {{p}} | cat - {{in.b}} > {{out.v}}', out: {{v: out/calls}}}}
"""

    def setUp(self):
        super().setUp()
        self.write("flow.yaml", self.FLOW.format(dir=self.dir))
        for name in ("one", "two", "three"):
            self.write(f"data/{name}.txt", f"{name} sample\n")

    def temporary(self):
        return sorted(str(path.relative_to(self.dir)) for path in (self.dir / "tmp").iterdir())

    def objects(self):
        """The texts of all objects."""
        return sorted(path.read_bytes() for path in (self.dir / "state/cache/objects").glob("*/*"))

    def assert_gone(self):
        self.assertEqual(self.temporary(), [])
        for text in self.objects():
            self.assertNotRegex(text, b"SAMPLE\n|^ELPMAS [A-Z]+\n$", "nothing temporary is kept")

    def test_they_go_when_their_last_reader_is_done_and_stay_cached(self):
        self.assertEqual(len(self.ran(self.run_flow())), 10)
        self.assertEqual(self.read("out/calls").split("\n")[1], "ELPMAS ENO")
        self.assert_gone()
        for _ in range(2):
            shown = self.run_flow()
            self.assertEqual(self.ran(shown), [])
            self.assertEqual(shown["run"]["counts"]["cached"], 10)
            self.assertEqual(shown["run"]["state"], "done")
        self.assert_gone()
        (self.dir / "out/one.n").unlink()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.read("out/one.n"), "11\n")
        self.assert_tidy()

    def test_one_comes_back_where_it_is_needed(self):
        self.run_flow()
        self.write("data/two.txt", "second sample\n")
        plan = self.house.json("run", "--plan", "flow.yaml")
        self.assertEqual([step["run"] for step in plan["steps"]], [1, 0, 0, 0])
        shown = self.run_flow()
        self.assertEqual(self.ran(shown), ["bam/one", "bam/three", "bam/two", "call", "sam/one", "sam/three",
                                           "sam/two", "stats/two"], "all of bam is needed for the call")
        self.assertEqual(self.read("out/two.n"), "14\n")
        self.assert_gone()
        self.assertEqual(self.ran(self.run_flow()), [])

    def test_only_where_it_is_needed(self):
        flow = self.read("flow.yaml")
        self.write("flow.yaml", flow[:flow.index("  call")])
        self.run_flow()
        self.assert_gone()
        self.write("data/two.txt", "second sample\n")
        self.assertEqual(self.ran(self.run_flow()), ["bam/two", "sam/two", "stats/two"])
        self.assert_gone()
        self.write("flow.yaml", flow)
        plan = self.berth("run", "--plan", "flow.yaml").out.decode()
        self.assertEqual(sorted(self.ran(self.run_flow())), sorted(
            ["call", *(f"{step}/{key}" for step in ("bam", "sam") for key in ("one", "two", "three"))]), plan)
        self.assert_gone()
        self.assertEqual(self.ran(self.run_flow()), [])
        plan = self.house.json("run", "--plan", "flow.yaml", "--set", "call.p=2")
        self.assertEqual([step["run"] for step in plan["steps"]], [3, 3, 0, 1])

    def test_while_a_reader_has_failed_they_stay(self):
        self.write("flow.yaml", self.FLOW.format(dir=self.dir).replace("echo {p}", "[ -e ok ] && echo {p}").replace(
            "[ -e ok ]", f"[ -e {self.dir}/ok ]"))
        self.run_flow(code=1)
        self.assertEqual(self.temporary(), ["tmp/one.bam", "tmp/three.bam", "tmp/two.bam"])
        self.write("ok", "")
        self.berth("retry", "flow-1")
        self.assert_gone()
        self.assertEqual(len(self.read("ran").split()), 3, "nothing was made twice")

    def test_what_is_asked_for_by_name_stays(self):
        self.run_flow()
        self.assertEqual(self.ran(self.run_flow("sam/one")), ["sam/one"])
        self.assertEqual(self.temporary(), ["tmp/one.sam"])
        self.assertEqual(self.ran(self.run_flow("sam/one")), [])
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assert_gone()

    def test_a_folder_goes_and_comes_back(self):
        self.write("flow.yaml", """steps:
  split: {in: {d: 'data/*'}, run: 'cp {in.d} {out.p}/', out: {p: parts/}, temp: true}
  each: {foreach: {p: split.p/*}, run: 'wc -c < {p} > {out.n}', out: {n: 'out/{p.stem}'}}
  all: {in: {p: split.p}, params: {p: 1}, run: 'ls {in.p} > {out.l}; echo {p} >> {out.l}', out: {l: list}}
""")
        self.run_flow()
        self.assertFalse((self.dir / "parts").exists())
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.ran(self.run_flow("--set", "all.p=2")), ["all", "split"])
        self.assertFalse((self.dir / "parts").exists())
        self.assertEqual(self.read("list"), "one.txt\nthree.txt\ntwo.txt\n2\n")

    def test_who_only_waits_for_it_has_it_made_again(self):
        self.write("flow.yaml", f"""steps:
  t: {{run: 'echo 1 > {{out.x}}', out: {{x: tmp/t}}, temp: true}}
  u: {{needs: [t], params: {{p: 1}}, run: 'echo {{p}} | cat - {self.dir}/tmp/t > {{out.y}}', out: {{y: y}}}}
""")
        self.run_flow()
        self.assertEqual(self.temporary(), [])
        self.assertEqual(self.ran(self.run_flow()), [])
        plan = self.house.json("run", "--plan", "flow.yaml", "--set", "u.p=2")
        self.assertEqual([step["run"] for step in plan["steps"]], [1, 1])
        self.assertEqual(self.ran(self.run_flow("--set", "u.p=2")), ["t", "u"])
        self.assertEqual(self.read("y"), "2\n1\n")
        self.assertEqual(self.temporary(), [])

    def test_the_same_content_elsewhere_is_kept(self):
        self.write("flow.yaml", """steps:
  t: {run: 'echo same > {out.x}', out: {x: tmp/t}, temp: true}
  u: {in: {x: t.x}, run: 'cp {in.x} {out.y}', out: {y: y}}
""")
        self.run_flow()
        self.assertEqual(self.temporary(), [])
        (self.dir / "y").unlink()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.read("y"), "same\n")

    def test_a_runner_killed_at_any_moment_loses_none_and_leaves_none(self):
        flow = self.FLOW.format(dir=self.dir)
        chance = random.Random(16)
        kills = 0
        for i in range(12):
            self.write("flow.yaml", flow.replace("p: 1", f"p: {i}").replace("rev {s}", f"sleep 0.0{i % 4}; rev {{s}}"))
            self.write("data/two.txt", f"{i} sample\n")
            runner = self.house.start("run", "flow.yaml")
            name = f"flow-{2 * i + 1}"
            most_s = 0.1
            while True:
                try:
                    runner.wait(timeout=chance.uniform(0.005, most_s))
                    break
                except subprocess.TimeoutExpired:
                    runner.kill()
                    runner.wait()
                    kills += 1
                    most_s *= 1.4  # until it gets through
                if self.berth("runs", "--json").out.count(f'"{name}"'.encode()) == 0:
                    runner = self.house.start("run", "flow.yaml")
                else:
                    runner = self.house.start("resume", name)
            self.assertEqual(runner.returncode, 0, runner.stderr.read())
            self.assertEqual(sorted(self.read("out/calls").split()), sorted(
                [str(i), "ELPMAS", "ENO", "ELPMAS", "EERHT", "ELPMAS", str(i)[::-1]]))
            self.assert_gone()
            self.assertEqual(self.ran(self.run_flow()), [])
        self.assertGreater(kills, 5)


if __name__ == "__main__":
    unittest.main()
