#!/usr/bin/python3
"""The life of a flow's files: what depfiles name, temporary and protected outputs, and what follows when a run ends."""

import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path

from berth_case import Case, until

EXAMPLE = Path(__file__).resolve().parent.parent / "examples/c-build"


class Life(Case):
    def read(self, name):
        return (self.dir / name).read_text()

    def run_flow(self, *options, name="flow.yaml", code=0, **more):
        finished = self.berth("--json", "run", name, *options, code=code, **more)
        return json.loads(finished.out)

    def states(self, shown):
        return {task["id"].partition("/")[2]: task["state"] for task in shown["tasks"]}

    def ran(self, shown):
        return sorted(name for name, state in self.states(shown).items() if state == "done")

    def because(self, task):
        return self.house.json("why", task)["because"]

    def assert_tidy(self):
        until(lambda: not self.house.leftovers(), "no process is left")
        self.assertEqual(list((self.dir / "state/cache/work").iterdir()), [])


class Depfiles(Life):
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
        self.assertIn("depfile build/a.o.d: line 1: wanted 'TARGET: FILE",
                      self.house.json("why", "flow-2/compile/a")["attempts_made"][0]["detail"])

    def test_a_header_that_the_flow_writes_is_waited_for(self):
        self.write("flow.yaml", self.FLOW + """  header: {in: {v: version}, run: 'echo "#define V $(cat {in.v})" > {out.h}', out: {h: gen/v.h}}
""")
        self.write("version", "1\n")
        self.write("src/a.c", '#include "../gen/v.h"\nint main(void) { return V; }\n')
        self.write("gen/v.h", "#define V 0\n")
        self.run_flow(code=1)
        self.assertIn("it has read gen/v.h, which another step writes, without waiting for it",
                      self.house.json("why", "flow-1/compile/a")["attempts_made"][0]["detail"])
        flow = self.read("flow.yaml").replace("    depfile", "    needs: [header]\n    depfile")
        self.write("flow.yaml", flow)
        self.run_flow()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.write("version", "2\n")
        self.assertEqual(self.ran(self.run_flow()), ["compile/a", "header", "link"])

    def test_it_is_refused_where_it_cannot_be(self):
        for change, said in [((self.FLOW.replace("    depfile", "    image: debian\n    depfile")), "container"),
                             ("cluster: lab\n" + self.FLOW, "other machines"),
                             (self.FLOW.replace("'{out.o}.d'\n", "'{out.x}.d'\n"), "out.x")]:
            self.write("flow.yaml", change)
            refused = self.berth("check", "flow.yaml", code=2)
            self.assertIn("depfile", refused.err.decode())
            self.assertIn(said, refused.err.decode())


class CBuild(Life):
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


class Ends(Life):
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


if __name__ == "__main__":
    unittest.main()
