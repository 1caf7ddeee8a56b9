#!/usr/bin/python3
"""Flows as a person runs them: once, again, with something changed, with something broken."""

import json
import os
import re
import signal
import subprocess
import unittest
from pathlib import Path

from berth_case import Case, until

COUNT = """name: count
params: {least: 1}
steps:
  split:
    run: split -n l/4 {in.text} {out.parts}/
    in: {text: data/corpus.txt}
    out: {parts: parts/}
  count:
    foreach: {part: split.parts/*}
    run: awk 'length($1) >= {least}' {part} | wc -l > {out.n}
    out: {n: counts/{index}.txt}
  sum:
    in: {counts: count.n}
    run: cat {in.counts} | awk '{s += $1} END {print s}' > {out.total}
    out: {total: total.txt}
"""


class Flow(Case):
    def setUp(self):
        super().setUp()
        self.write("data/corpus.txt", "".join(f"{word}\n" for word in range(1000)))
        self.write("count.yaml", COUNT)

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name):
        return (self.dir / name).read_text()

    def run_flow(self, *options, name="count.yaml", code=0):
        finished = self.berth("--json", "run", name, *options, code=code)
        return json.loads(finished.out)

    def states(self, shown):
        return {task["id"].partition("/")[2]: task["state"] for task in shown["tasks"]}

    def ran(self, shown):
        return sorted(name for name, state in self.states(shown).items() if state == "done")

    def because(self, task):
        return self.house.json("why", task)["because"]

    def assert_tidy(self):
        until(lambda: not self.house.leftovers(), "no process is left")
        machine = self.house.json("machine")
        self.assertEqual(machine["holders"] + machine["waiting"], [])
        self.assertEqual(list((self.dir / "state/cache/work").iterdir()), [])

    def test_the_second_time_all_is_cached(self):
        first = self.run_flow()
        self.assertEqual(first["run"]["counts"]["done"], 6)
        self.assertEqual(self.read("total.txt"), "1000\n")
        self.assertEqual(len(list((self.dir / "counts").iterdir())), 4)
        before = (self.dir / "total.txt").stat()
        second = self.run_flow()
        self.assertEqual(second["run"]["counts"]["cached"], 6)
        self.assertEqual(second["run"]["counts"]["done"], 0)
        self.assertEqual((self.dir / "total.txt").stat().st_mtime_ns, before.st_mtime_ns,
                         "what stands there already is not touched")
        self.assertEqual(self.because("count-2/split"), ["as count-1/split wrote it"])
        self.assertEqual(list((self.dir / "state/runs/count-1/tasks").iterdir()), [])
        self.assert_tidy()

    def test_a_changed_input_runs_what_depends_on_it(self):
        self.run_flow()
        text = self.read("data/corpus.txt")
        self.write("data/corpus.txt", text[:-4] + "xyz\n")
        shown = self.run_flow()
        self.assertEqual(self.ran(shown), ["count/ad", "split"], "the sum's inputs are the same")
        self.assertEqual(self.because("count-2/split"), ["since count-1: input data/corpus.txt changed"])
        self.write("count.yaml", COUNT.replace("least: 1", "least: 3"))
        shown = self.run_flow()
        self.assertEqual(self.ran(shown), ["count/aa", "count/ab", "count/ac", "count/ad", "sum"])
        self.assertIn("since count-2: parameter least: 1 -> 3", self.because("count-3/count/aa"))
        self.assertEqual(self.read("total.txt"), "900\n")
        self.write("count.yaml", COUNT)
        self.write("data/corpus.txt", text)
        self.assertEqual(self.ran(self.run_flow()), [], "all of it was there before")
        self.assertEqual(self.read("total.txt"), "1000\n")

    def test_resources_names_and_places_change_nothing(self):
        self.run_flow()
        self.write("count.yaml", COUNT.replace("    out: {total", "    resources: {cpu: 0.5}\n    out: {total"))
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.ran(self.run_flow("--name", "other", "--parallel", "1")), [])
        os.rename(self.dir / "data", self.dir / "moved")
        os.symlink("moved", self.dir / "data")
        (self.dir / "total.txt").unlink()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.read("total.txt"), "1000\n", "brought back")

    SHEET = """steps:
  map:
    foreach: {s: {table: samples.csv}}
    in: {r: 'data/{s.file}'}
    run: wc -l < {in.r} > {out.n}
    out: {n: 'out/{key}.n'}
  twice: {foreach: {m: map.n}, run: 'cat {m} {m} > {out.t}', out: {t: 'out/{m.s}.twice'}}
  all: {in: {t: twice.t}, run: 'cat {in.t} > {out.all}', out: {all: all.txt}}
"""

    def test_a_sample_more_runs_its_own_tasks_and_one_less_leaves_the_fan_in(self):
        self.write("sheet.yaml", self.SHEET)
        for name in "ABC":
            self.write(f"data/{name}.txt", name + "\n")
        sheet = "id,file\nA,A.txt\nB,B.txt\n"
        self.write("samples.csv", sheet)
        self.assertEqual(self.ran(self.run_flow(name="sheet.yaml")),
                         ["all", "map/A", "map/B", "twice/A", "twice/B"])
        self.write("samples.csv", sheet + "C,C.txt\n")
        self.assertEqual(self.ran(self.run_flow(name="sheet.yaml")), ["all", "map/C", "twice/C"])
        self.write("data/A.txt", "A\nA\n")
        self.assertEqual(self.ran(self.run_flow(name="sheet.yaml")), ["all", "map/A", "twice/A"])
        self.write("samples.csv", sheet.replace("B,B.txt\n", "") + "C,C.txt\n")
        told = self.berth("run", "sheet.yaml")
        self.assertIn(b"note: sheet-3 wrote out/B.n, out/B.twice, which the flow no longer writes", told.err)
        shown = json.loads(self.berth("--json", "show", "sheet-4").out)
        self.assertEqual(self.ran(shown), ["all"])
        self.assertEqual(self.read("all.txt"), "2\n2\n1\n1\n")
        self.assertNotIn(b"note", self.berth("run", "sheet.yaml").err, "told once")

    def test_the_command_line_sets_chooses_and_forces(self):
        self.write("sheet.yaml", "params: {n: 1, who: [x]}\n" + self.SHEET.replace("wc -l", "head -n {n}").replace(
            "{table: samples.csv}", "'{who}'").replace("{s.file}", "{s}.txt"))
        for name in "ABC":
            self.write(f"data/{name}.txt", name + "\nb\n")
        self.write("values.yaml", "who: [A, B]\nn: 2\n")
        ran = lambda *options: self.ran(json.loads(self.berth("--json", "run", "sheet.yaml", *options).out))
        self.assertEqual(ran("twice/A", "--params", "values.yaml"), ["map/A", "twice/A"])
        self.assertEqual(ran("--params", "values.yaml", "--set", "n=1", "map"), ["map/A", "map/B"])
        self.assertEqual(ran("--set", "who=[A, B]", "--force", "map"), ["all", "map/A", "map/B", "twice/A", "twice/B"])
        plan = self.berth("run", "--plan", "sheet.yaml", "--set", "who=[A, C]").out.decode()
        self.assertIn("map/C: head -n 1 < data/C.txt > out/C.n\n  no earlier run of the flow has this task\n", plan)
        plan = json.loads(self.berth("--json", "run", "--plan", "sheet.yaml", "--set", "who=A", "--set", "n=3").out)
        self.assertEqual(plan["steps"][0]["tasks"][0]["because"],
                         ["since sheet-3: command: head -n 1 < data/A.txt > out/A.n -> head -n 3 < data/A.txt > out/A.n",
                          "since sheet-3: parameter n: 1 -> 3"])
        for wrong, told in ((["--set", "m=1"], b"the flow has no parameter 'm'"), (["--set", "n"], b"expected NAME=VALUE"),
                            (["mop"], b"did you mean 'map'?"), (["--force", "al"], b"did you mean 'all'?")):
            self.assertIn(told, self.berth("run", "sheet.yaml", *wrong, code=2).err)
        self.assertIn(b"sheet.yaml: a flow: valid", self.berth("check", "sheet.yaml", "--set", "who=A").out)
        self.assertIn(b"there is no file data/D.txt", self.berth("check", "sheet.yaml", "--set", "who=D", code=2).err)
        self.assertIn(b"are for flows", self.berth("run", "--set", "a=1", "--", "true", code=2).err)

    def test_a_script_in_any_interpreter(self):
        self.write("s.yaml", """params: {factor: 3, unused-by-none: 1}
steps:
  py:
    foreach: {n: [1, 2]}
    in: {lines: data/*.txt}
    out: {sum-1: 'sums/{n}'}
    shell: python3
    script: |
      import json, os
      told = json.load(open(".berth-task.json"))
      assert os.environ["BERTH_IN_LINES"].split("\\n") == told["in"]["lines"] == ["data/corpus.txt"]
      total = {line: int(line) for path in told["in"]["lines"] for line in open(path)}
      with open(os.environ["BERTH_OUT_SUM_1"], "w") as out:
          print(sum(total.values()) * int(told["params"]["factor"]) * int(os.environ["BERTH_PARAM_N"]), file=out)
  sh:
    in: {sums: py.sum-1}
    out: {all: all.txt}
    script: |
      #!/bin/sh
      for each in $BERTH_IN_SUMS; do cat "$each"; done > "$BERTH_OUT_ALL"
      echo "${BERTH_OUT_ALL} {in.sums} {{braces}}"
  strict: {script: "false\\ntrue\\n"}
""".replace("unused-by-none", "other"))
        told = self.berth("run", "s.yaml", code=1)
        self.assertEqual(self.read("all.txt"), f"{499500 * 3}\n{499500 * 6}\n")
        self.assertEqual(self.berth("logs", "s-1/sh").out, b"all.txt {in.sums} {{braces}}\n", "a script is as it was written")
        self.assertIn(b"s-1/strict failed: exit 1", told.out)
        text = self.read("s.yaml")
        self.write("s.yaml", text.replace("factor: 3", "factor: 4").replace("false\\n", ""))
        self.assertEqual(self.ran(self.run_flow(name="s.yaml")), ["py/1", "py/2", "sh", "strict"])
        self.write("s.yaml", self.read("s.yaml").replace('do cat "$each"', 'do tac "$each"'))
        self.assertEqual(self.ran(self.run_flow(name="s.yaml")), ["sh", "strict"])
        self.assertEqual(self.because("s-3/sh"), ["since s-2: script changed"])
        self.write("s.yaml", "steps: {a: {run: 'x', script: y}}\n")
        self.assertIn(b"has both", self.berth("check", "s.yaml", code=2).err)

    def test_doubled_braces_around_a_declared_name_are_the_name(self):
        self.write("f.yaml", "params: {who: me}\nsteps: {a: {run: 'echo {who} {{who}} {{other}} ${who:-x}', env: {who: you}}}\n")
        self.run_flow(name="f.yaml")
        self.assertEqual(self.berth("logs", "f-1/a").out, b"me {who} {{other}} you\n")

    def test_a_failure_is_told_whole_and_whoever_waits_names_it(self):
        self.write("f.yaml", "steps:\n  a: {foreach: {s: [A, B]}, run: 'echo out; echo no {s} >&2; [ {s} = A ] && "
                   "touch {out.x}', out: {x: '{s}'}}\n  b: {foreach: {x: a.x}, run: 'true; true'}\n  c: {needs: b, run: 'true'}\n")
        told = self.berth("run", "f.yaml", code=1).out.decode()
        self.assertIn("f-1/a/B failed: exit 1\n  command: echo out; echo no B >&2; [ B = A ] && touch B\n  in: /", told)
        self.assertIn("\n  | no B\n  more: berth logs f-1/a/B; berth why f-1/a/B\n", told)
        directory = re.search(r"  in: (.*)\n", told)[1]
        self.assertTrue(os.path.isdir(directory), "what it left can be looked at")
        there = self.berth("shell", "f-1/a/B", "--", "sh", "-c", "pwd; echo $BERTH_PARAM_S $BERTH_TASK").out.decode()
        self.assertEqual(there, f"{os.path.realpath(directory)}\nB f-1/a/B\n")
        self.assertIn(b"its directory is not on this machine", self.berth("shell", "f-1/a/A", code=2).err)
        self.assertIn(b"f-1/a/B failed: exit 1; 1 of the 2 tasks of b", self.berth("why", "f-1/c").out)
        self.assertIn(b"  | no B\n", self.berth("show", "f-1/a/B").out)
        failure, = json.loads(self.berth("--json", "show", "f-1").out)["failures"]
        self.assertEqual((failure["id"], failure["cause"], failure["params"], failure["last_lines"]),
                         ("f-1/a/B", "exit 1", {"s": "B"}, ["no B"]))

    def test_attempts_are_apart(self):
        self.write("f.yaml", "steps: {a: {run: 'echo {params_file} $BERTH_TOKEN; false', retries: 1}}\n")
        self.berth("run", "f.yaml", code=1)
        both = self.berth("logs", "f-1/a")
        first = self.berth("logs", "--attempt", "1", "f-1/a").out
        second = self.berth("logs", "--attempt", "2", "f-1/a").out
        self.assertEqual(both.out, first + second)
        self.assertEqual(both.err, b"(attempt 1)\n(attempt 2)\n")
        self.assertNotEqual(first, second)
        self.assertIn(b"had 2 attempts", self.berth("logs", "--attempt", "3", "f-1/a", code=2).err)

    def test_outputs_that_people_edit_are_never_the_stored_ones(self):
        self.run_flow()
        with open(self.dir / "total.txt", "r+") as file:
            file.write("9")
        with open(self.dir / "counts/0.txt", "a") as file:
            file.write("edited\n")
        self.assertEqual(self.ran(self.run_flow("--overwrite")), [])
        self.assertEqual(self.read("total.txt"), "1000\n")
        self.assertIn(b"every object is whole", self.berth("cache", "--verify").out)

    def test_a_pipe_of_which_any_command_fails_has_failed(self):
        step = "steps: {a: {run: 'cat /no/such | wc -l > {out.x}', out: {x: x.txt}}}\n"
        self.write("p.yaml", "shell: sh\n" + step)
        self.assertEqual(self.ran(self.run_flow(name="p.yaml")), ["a"], "as it was before bash -euo pipefail")
        self.assertEqual(self.read("x.txt"), "0\n")
        self.write("p.yaml", step)
        for _ in range(2):
            failed = self.run_flow(name="p.yaml", code=1)
            self.assertEqual(failed["tasks"][0]["cause"], "exit 1", "nor is the older result taken")
        self.assertIn("since p-1: shell: ", "".join(self.because("p-2/a")))
        self.write("p.yaml", "steps: {a: {run: 'seq 1000000 | head -1 > {out.x}', out: {x: x.txt}}}\n")
        self.run_flow(name="p.yaml", code=1)
        self.assertIn(b"a pipe whose reader had ended", self.berth("why", "p-4/a").out)

    def test_without_bash_a_step_with_shell_characters_is_refused(self):
        self.write("p.yaml", "steps: {a: {run: 'echo x > {out.x}', out: {x: x.txt}}}\n")
        (self.dir / "bin").mkdir()
        refused = self.berth("run", "p.yaml", env={"PATH": str(self.dir / "bin")}, code=2)
        self.assertIn(b"p.yaml:1: steps.a.run: bash: no such program in PATH", refused.err)
        self.assertIn(b"write shell: sh", refused.err)
        self.assertEqual(self.house.json("runs")["runs"], [])
        self.write("p.yaml", "shell: sh\n" + "steps: {a: {run: 'echo x > {out.x}', out: {x: x.txt}}}\n")
        self.berth("run", "p.yaml", env={"PATH": str(self.dir / "bin")})

    def test_what_is_skipped_is_told_apart_from_what_is_done(self):
        self.write("s.yaml", "steps:\n  split: {run: 'echo x > {out.sel}', out: {sel: sel.txt}}\n"
                   "  use: {run: 'true', when: exists(split.sel)}\n  no: {run: 'true', when: not exists(split.sel)}\n")
        shown = self.run_flow(name="s.yaml")
        self.assertEqual(self.states(shown), {"split": "done", "use": "done", "no": "skipped"})
        counts = shown["run"]["counts"]
        self.assertEqual((counts["done"], counts["skipped"]), (2, 1))
        self.assertIn(b"2 done, 1 skipped", self.berth("runs").out)
        self.assertIn(b"s-1/no: skipped", self.berth("why", "s-1/no").out)

    def test_a_retry_says_that_the_file_was_edited_and_takes_it_when_told_to(self):
        steps = "steps:\n  a: {run: 'echo %s > {out.x}', out: {x: a.txt}}\n" \
                "  b: {foreach: {i: %s}, run: '%s', in: {x: a.x}, out: {y: 'y{i}.txt'}}\n"
        self.write("e.yaml", steps % ("one", "[1, 2]", "false; true"))
        self.run_flow(name="e.yaml", code=1)
        self.write("e.yaml", steps % ("two", "[1]", "cat {in.x} > {out.y}; true"))
        retried = self.berth("retry", "e-1", code=1)
        self.assertIn(b"e.yaml was edited since: to use the edited file, run berth retry --file e-1", retried.err)
        shown = json.loads(self.berth("--json", "retry", "--file", "e-1").out)
        self.assertEqual(self.states(shown), {"a": "done", "b/1": "done", "b/2": "skipped"})
        self.assertEqual(self.read("y1.txt"), "two\n")
        self.assertNotIn(b"edited", self.berth("retry", "e-1", "--all").err)
        self.write("e.yaml", "steps: {c: {run: 'true'}}\n")
        refused = self.berth("retry", "e-1", "--file", code=2)
        self.assertIn("step a, of which e-1 has tasks, no longer exists", self.one_line(refused))

    def test_cache_modes(self):
        self.assertEqual(len(self.ran(self.run_flow("--cache", "off"))), 6)
        self.assertEqual(len(self.ran(self.run_flow("--cache", "read"))), 6, "off kept nothing")
        self.assertEqual(len(self.ran(self.run_flow("--cache", "write"))), 6, "nor did read")
        self.assertEqual(len(self.ran(self.run_flow("--cache", "write"))), 6, "write takes nothing")
        self.assertEqual(len(self.ran(self.run_flow("--cache", "read"))), 0)
        self.assertEqual(self.read("total.txt"), "1000\n")

    def test_the_cache_is_collected_and_its_damage_found(self):
        self.run_flow()
        size = self.house.json("cache")
        self.assertEqual(size["results"], 6)
        kept = self.house.json("cache", "--collect")
        self.assertEqual(kept["results"], 6, "all of it is of today")
        objects = [path for path in (self.dir / "state/cache/objects").glob("*/*")
                   if path.read_text() == "1000\n"]
        self.assertEqual(len(objects), 1)
        os.chmod(objects[0], 0o600)
        objects[0].write_text("9999\n")
        damaged = self.berth("cache", "--verify", code=1)
        self.assertIn(b"contains other bytes", damaged.out)
        self.assertEqual(self.ran(self.run_flow()), ["sum"], "what was damaged is made again")
        self.assertEqual(self.read("total.txt"), "1000\n")
        gone = self.house.json("cache", "--collect", "--unused-for", "0s")
        self.assertEqual((gone["results"], gone["objects"]), (0, 0))
        self.assertEqual(len(self.ran(self.run_flow())), 6)
        self.berth("cache", "--unused-for", "1d", code=2)

    def test_a_byte_that_was_flipped_in_the_store_is_not_published(self):
        for size in (5, 3_000_000):
            with self.subTest(size):
                self.write(f"g{size}.yaml", f"name: g{size}\nsteps:\n"
                           f"  a: {{run: 'head -c {size} /dev/zero | tr \"\\0\" a > {{out.x}}', out: {{x: x}}}}\n"
                           "  b: {run: 'cat {in.x} > {out.y}', in: {x: a.x}, out: {y: y}}\n")
                self.berth("run", f"g{size}.yaml")
                stored = [path for path in (self.house.state / "cache/objects").glob("*/*")
                          if path.stat().st_size == size]
                self.assertEqual(len(stored), 1)
                before = stored[0].stat()
                stored[0].chmod(0o600)
                with open(stored[0], "r+b") as file:
                    file.write(b"J")
                stored[0].chmod(before.st_mode)
                os.utime(stored[0], ns=(before.st_atime_ns, before.st_mtime_ns))
                for name in "xy":
                    (self.dir / name).unlink()
                again = self.berth("run", f"g{size}.yaml")
                self.assertIn(b"contains other bytes than it did; it is now", again.err)
                for name in "xy":
                    self.assertEqual((self.dir / name).read_bytes(), b"a" * size)
                self.assertEqual(self.house.counts(f"g{size}-2")["done"], 1, "made again")

    def test_what_fails_is_told_and_tried_again(self):
        self.write("f.yaml", "steps:\n"
                   "  a: {run: test -e go, out: {x: a.txt}}\n"
                   "  b: {run: 'cat {in.x} > {out.y}', in: {x: a.x}, out: {y: b.txt}}\n"
                   "  c: {run: 'echo c > {out.z}', out: {z: c.txt}}\n")
        shown = self.run_flow(name="f.yaml", code=1)
        self.assertEqual(self.states(shown), {"a": "failed", "b": "waiting", "c": "done"})
        self.assertIn("tasks of a, which it waits for, failed", self.house.json("why", "f-1/b")["why"])
        self.assertIn(b"failed (exit 1)", self.berth("show", "f-1").out)
        self.berth("resume", "f-1", code=1)
        self.write("f.yaml", "not: read again")
        finished = self.berth("retry", "f-1", code=1)
        self.assertIn(b"f-1/a failed: exit 1", finished.out)

    def test_an_output_that_is_not_there_is_a_failure(self):
        self.write("f.yaml", "steps: {a: {run: 'true', out: {x: some/x.txt}}}")
        shown = self.run_flow(name="f.yaml", code=1)
        self.assertEqual(shown["tasks"][0]["cause"], "not as declared")
        self.assertIn(b"it did not write out.x: some/x.txt", self.berth("why", "f-1/a").out)
        self.assertFalse((self.dir / "some/x.txt").exists())

    def test_when_and_steps_without_outputs(self):
        self.write("f.yaml", "params: {mode: fast}\nsteps:\n"
                   "  slow: {run: 'echo slow > {out.x}', out: {x: slow.txt}, when: mode == slow}\n"
                   "  after: {run: 'cat {in.x}', in: {x: slow.x}}\n"
                   "  say: {run: echo hello}\n")
        for _ in range(2):
            shown = self.run_flow(name="f.yaml")
            self.assertEqual(self.states(shown), {"slow": "skipped", "after": "skipped", "say": "done"})
            self.assertEqual([task["attempts"] for task in shown["tasks"]], [0, 0, 1])
        self.assertEqual(self.because("f-2/slow"), ["nothing to do: mode is 'fast', not 'slow'"])
        self.assertIn("a step without outputs runs each time", self.because("f-2/say"))
        self.assertEqual(self.berth("logs", "f-2/say").out, b"hello\n")
        self.assertEqual(list(self.dir.glob("slow.txt")), [])

    def test_a_task_sees_only_what_it_declares(self):
        self.write("f.yaml", "steps:\n  a:\n    run: 'ls -R > {out.x}; echo x >> data/corpus.txt; true'\n"
                   "    in: {text: data/corpus.txt}\n    out: {x: list.txt}\n")
        self.write("secret.txt", "not declared")
        if os.getuid() == 0:  # whom no mode keeps from writing
            shown = self.run_flow(name="f.yaml", code=1)
            self.assertEqual(shown["tasks"][0]["cause"], "not as declared")
            self.assertIn(b"its input text was changed: data/corpus.txt", self.berth("why", "f-1/a").out)
            self.berth("cache", "--collect", "--unused-for", "0s")
        else:
            self.run_flow(name="f.yaml")
            self.assertNotIn("secret", self.read("list.txt"))
            self.assertIn("corpus.txt", self.read("list.txt"))
        self.assertEqual(self.read("data/corpus.txt").count("x"), 0, "the person's own is not touched")
        self.assertIn(b"every object is whole", self.berth("cache", "--verify").out)

    def test_plan_tells_what_would_run_and_runs_nothing(self):
        plan = self.house.json("run", "--plan", "count.yaml")
        self.assertEqual([step["run"] for step in plan["steps"]], [1, 0, 0])
        self.assertEqual([step["later"] for step in plan["steps"]], [0, None, 1])
        self.assertEqual(self.house.json("runs")["runs"], [])
        self.run_flow()
        plan = self.house.json("run", "--plan", "count.yaml")
        self.assertEqual([step["cached"] for step in plan["steps"]], [1, 4, 1])
        self.write("count.yaml", COUNT.replace("least: 1", "least: 2"))
        plan = self.house.json("run", "--plan", "count.yaml")
        self.assertEqual([(step["cached"], step["run"], step["later"]) for step in plan["steps"]],
                         [(1, 0, 0), (0, 4, 0), (0, 0, 1)])
        self.assertIn(b"split", self.berth("run", "--plan", "count.yaml").out)

    def test_the_graph_is_shown(self):
        self.run_flow()
        text = self.berth("show", "count-1", "--graph").out.decode()
        self.assertIn("sum: 1 done\n  <- count\n  -> total.txt\n", text)
        dot = self.berth("show", "count-1", "--graph", "dot").out.decode()
        steps = self.house.json("show", "count-1", "--graph")["steps"]
        self.assertEqual([step["name"] for step in steps], [line.partition(":")[0] for line in text.splitlines() if line[0] != " "])
        self.assertTrue(all(step["known"] and step["counts"]["done"] > 0 and step["seconds"]["sum"] > 0 for step in steps), steps)
        self.assertIn('"split" -> "count";', dot)
        self.berth("run", "--", "true")
        self.berth("show", "true-1", "--graph", code=2)

    def test_the_trace_is_a_timeline(self):
        self.run_flow()
        events = json.loads(self.berth("trace", "count-1").out)
        bars = [event for event in events if event["ph"] == "X" and event["pid"] >= 10]
        self.assertEqual(sorted(bar["name"] for bar in bars),
                         ["count/aa", "count/ab", "count/ac", "count/ad", "split", "sum"])
        self.assertTrue(all(bar["args"]["outcome"] == "ok" for bar in bars))
        rows = {}
        for bar in sorted(bars, key=lambda bar: bar["ts"]):
            self.assertLessEqual(rows.get(bar["tid"], 0), bar["ts"], "no two of a row overlap")
            rows[bar["tid"]] = bar["ts"] + bar["dur"]
        allocs = [event for event in events if event["ph"] == "X" and event["pid"] == 2]
        self.assertTrue(allocs)
        self.assertEqual(allocs[0]["args"]["labels"]["run"], "count-1")

    def test_wrong_flows_are_refused_by_file_line_and_key(self):
        def refusal(text, code=2):
            self.write("f.yaml", text)
            return self.one_line(self.berth("run", "f.yaml", code=code))
        self.assertIn("f.yaml:3: steps.a.in.x: there is no file none",
                      refusal("steps:\n  a:\n    in: {x: none}\n    run: cat {in.x}\n").replace(": in.x", ".in.x"))
        self.assertIn("f.yaml:2:", refusal("steps:\n  a: {run: ls, need: b}\n"))
        self.assertIn("no such program", refusal("steps:\n  a: {run: no-such-program-here}\n"))
        self.assertIn("f.yaml:2: steps.a.resources", refusal(
            "steps:\n  a: {run: ls, resources: {cpu: 10000}}\n", code=3))
        self.berth("run", "--cpu", "2", "count.yaml", code=2)
        self.berth("run", "--cache", "on", "--", "true", code=2)
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_stop_and_resume(self):
        self.write("f.yaml", "steps:\n"
                   "  a: {run: 'echo a > {out.x}', out: {x: a.txt}}\n"
                   "  b: {run: 'touch $TURN/b; while [ ! -e $TURN/go ]; do sleep 0.02; done; cat {in.x} > {out.y}',"
                   " in: {x: a.x}, out: {y: b.txt}}\n")
        process = self.house.start("run", "f.yaml", env={"TURN": str(self.dir)})
        until((self.dir / "b").exists, "b runs")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        self.assertEqual(self.house.counts("f-1"), {"waiting": 0, "running": 0, "done": 1, "cached": 0,
                                                    "skipped": 0, "failed": 0, "stopped": 1})
        self.write("go", "")
        (self.dir / "a.txt").unlink()
        self.berth("resume", "f-1", env={"TURN": str(self.dir)})
        self.assertEqual(self.read("a.txt") + self.read("b.txt"), "a\na\n", "outputs are brought back")
        self.assertEqual(self.house.counts("f-1")["done"], 2)
        self.assert_tidy()

    def test_a_killed_runner_goes_on_where_it_stood(self):
        self.write("f.yaml", "steps:\n  w:\n    foreach: {i: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}\n"
                   "    run: 'echo {i} >> $WITNESS; sleep 0.05; echo {i} > {out.x}'\n"
                   "    out: {x: 'x{i}.txt'}\n    resources: {cpu: 0.5}\n"
                   "  all: {run: 'cat {in.x} > {out.y}', in: {x: w.x}, out: {y: y.txt}}\n")
        environment = {"WITNESS": str(self.dir / "witness")}
        process = self.house.start("run", "f.yaml", env=environment)
        until(lambda: self.house.counts("f-1")["done"] >= 3 if self.house.json("runs")["runs"] else False, "some")
        process.kill()
        process.wait()
        done = self.house.counts("f-1")["done"]
        self.berth("resume", "f-1", env=environment)
        self.assertEqual(self.read("y.txt"), "".join(f"{i}\n" for i in range(10)))
        executions = self.read("witness").split()
        self.assertLessEqual(len(executions), 10 + max(0, 10 - done), "what was recorded as done does not run again")
        self.berth("cache", "--collect")  # the dead hold nothing
        self.assert_tidy()

    def test_a_stop_before_all_tasks_are_known_can_be_resumed(self):
        self.write("f.yaml", "steps:\n"
                   "  split: {run: \"trap '' INT TERM; touch $TURN/s; sleep 0.5; echo 1 > {out.p}/1\", out: {p: p/}}\n"
                   "  each: {foreach: {f: split.p/*}, run: 'cat {f} > {out.x}', out: {x: 'x{index}.txt'}}\n")
        process = self.house.start("run", "f.yaml", env={"TURN": str(self.dir)})
        until((self.dir / "s").exists, "split runs")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        self.assertEqual(self.house.json("show", "f-1")["run"]["state"], "stopped")
        self.berth("resume", "f-1", env={"TURN": str(self.dir)})
        self.assertEqual(self.read("x0.txt"), "1\n")

    def test_a_file_that_cannot_be_taken_is_told(self):
        self.write("f.yaml", "steps:\n  a: {run: 'exit 3'}\n")
        self.berth("run", "f.yaml", code=1)
        self.write("f.yaml", "cluster: elsewhere\nsteps:\n  a: {run: 'true'}\n")
        self.assertIn("cluster: f-1 cannot move to another cluster", self.one_line(self.berth("retry", "--file", "f-1", code=2)))
        (self.dir / "f.yaml").unlink()
        self.assertIn("f.yaml", self.one_line(self.berth("retry", "--file", "f-1", code=2)))
        self.assertEqual(self.house.json("show", "f-1")["run"]["state"], "failed")

    def test_the_text_of_a_task_that_may_run_is_not_replaced(self):
        self.write("f.yaml", "steps:\n  a: {run: 'touch $TURN/a; while [ ! -e $TURN/go ]; do sleep 0.02; done'}\n")
        process = self.house.start("run", "f.yaml", env={"TURN": str(self.dir)})
        until(lambda: (self.dir / "a").exists() and self.house.counts("f-1")["running"] == 1, "a runs")
        process.kill()
        process.wait()
        self.write("f.yaml", "steps:\n  a: {run: 'echo new'}\n")
        self.assertIn("berth stop f-1", self.one_line(self.berth("retry", "--file", "f-1", code=3)))
        self.berth("stop", "f-1")
        self.berth("retry", "--file", "f-1")
        self.assertIn(b"new", self.berth("logs", "f-1").out)

    def test_a_condition_is_asked_once(self):
        self.write("f.yaml", "steps:\n"
                   "  a: {run: 'echo a > {out.x}', out: {x: a.txt}, when: env.MODE == full and not exists(skip)}\n"
                   "  late: {run: 'touch $TURN/late; while [ ! -e $TURN/go ]; do sleep 0.02; done'}\n"
                   "  b: {run: 'cat {in.x} > {out.y}', in: {x: a.x}, needs: [late], out: {y: b.txt},"
                   " when: env.MODE == full}\n")
        environment = {"MODE": "full", "TURN": str(self.dir)}
        process = self.house.start("run", "f.yaml", env=environment)
        until(lambda: (self.dir / "late").exists() and self.house.counts("f-1")["done"] == 1, "a is done")
        process.kill()
        process.wait()
        self.write("skip", "")
        self.write("go", "")
        self.berth("resume", "f-1", env={"TURN": str(self.dir)})
        self.assertEqual(self.read("b.txt"), "a\n")

    def test_nothing_to_count_is_a_count_of_nothing(self):
        self.write("f.yaml", "steps:\n"
                   "  find: {run: 'cp {in.d}/*.txt {out.p}/ || true', in: {d: data}, out: {p: p/}}\n"
                   "  each: {foreach: {f: find.p/*}, run: 'cat {f} > {out.x}', out: {x: 'x{index}.txt'}}\n"
                   "  sum: {run: 'cat /dev/null {in.x} | wc -l > {out.n}', in: {x: each.x}, out: {n: n.txt}}\n")
        self.run_flow(name="f.yaml")
        self.assertEqual(self.read("n.txt"), "1000\n")
        (self.dir / "data/corpus.txt").unlink()
        (self.dir / "data/other").write_text("")
        self.assertEqual(self.states(self.run_flow(name="f.yaml")), {"find": "done", "sum": "done"})
        self.assertEqual(self.read("n.txt"), "0\n")

    def test_what_others_put_into_an_output_is_not_lost(self):
        self.write("f.yaml", "steps: {a: {run: 'echo {in.t} > {out.x}/a; cp {in.t} {out.x}/t',"
                   " in: {t: data/corpus.txt}, out: {x: res/}}}\n")
        self.run_flow(name="f.yaml")
        self.write("f.yaml", "steps: {a: {run: 'echo {in.t} > {out.x}/b',"
                   " in: {t: data/corpus.txt}, out: {x: res/}}}\n")
        self.run_flow(name="f.yaml")
        self.assertEqual(sorted(os.listdir(self.dir / "res")), ["b"], "its own it may replace")
        self.write("res/notes.md", "mine")
        self.write("f.yaml", "steps: {a: {run: 'echo {in.t} > {out.x}/c',"
                   " in: {t: data/corpus.txt}, out: {x: res/}}}\n")
        self.run_flow(name="f.yaml", code=1)
        self.assertIn(b"res/notes.md: not written by this step", self.berth("why", "f-3/a").out)
        self.assertEqual(self.read("res/notes.md"), "mine")
        os.rename(self.dir / "res/notes.md", self.dir / "notes.md")
        retried = json.loads(self.berth("--json", "retry", "f-3").out)
        self.assertEqual(retried["run"]["counts"]["done"], 1, "it was refused before it started")
        self.write("f.yaml", "steps: {a: {run: 'echo > {out.x}', out: {x: f.yaml}}}\n")
        self.assertIn("is the flow's own file", self.one_line(self.berth("run", "f.yaml", code=2)))

    def test_an_output_is_of_the_kind_that_was_declared(self):
        self.write("f.yaml", "steps:\n  a: {run: 'mkdir {out.x}', out: {x: dir}}\n"
                   "  b: {run: 'rmdir {out.y}; touch {out.y}', out: {y: file/}}\n")
        self.assertEqual(self.states(self.run_flow(name="f.yaml", code=1)), {"a": "failed", "b": "failed"})
        self.assertIn(b"dir is a directory, expected a file", self.berth("why", "f-1/a").out)

    def test_rm_follows_no_link(self):
        self.write("precious/gold", "gold")
        self.write("f.yaml", f"steps: {{a: {{run: 'ln -s {self.dir}/precious d; ln -s nowhere e; mkdir -p r/o;"
                   " chmod 500 r; exit 1', out: {x: x}}}\n")
        self.run_flow(name="f.yaml", code=1)
        self.berth("rm", "f-1")
        self.assertEqual(self.read("precious/gold"), "gold")
        self.assertFalse((self.dir / "state/runs/f-1").exists())

    def test_few_descriptors_are_enough_for_many_cached_tasks(self):
        numbers = ", ".join(map(str, range(150)))
        self.write("f.yaml", f"steps:\n  a:\n    foreach: {{i: [{numbers}]}}\n    run: 'echo {{i}} > {{out.x}}'\n"
                   "    out: {x: 'o/{index}.txt'}\n    resources: {cpu: 0.5}\n")
        self.run_flow(name="f.yaml")
        few = ["sh", "-c", 'ulimit -n 64; exec "$0" --json run f.yaml']
        finished = subprocess.run([*few, self.house.berth], cwd=self.dir, env=self.house.environment,
                                  capture_output=True, timeout=60)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertEqual(json.loads(finished.stdout)["run"]["counts"]["cached"], 150)

    def test_names_may_be_as_long_as_names_are(self):
        given, made = "g" * 255, "m" * 255
        self.write(given, "text")
        self.write("l.yaml", f"name: l\nsteps: {{a: {{run: 'cat {{in.i}} > {{out.o}}', in: {{i: {given}}}, "
                   f"out: {{o: {made}}}}}}}\n")
        for _ in range(2):
            self.berth("run", "l.yaml")
            self.assertEqual((self.dir / made).read_text(), "text")
            (self.dir / made).unlink()

    def test_a_long_cycle_is_shortened(self):
        self.write("c.yaml", "name: c\nsteps:\n" + "".join(
            f"  s{i}: {{run: 'true', in: {{x: s{(i + 1) % 3000}.o}}, out: {{o: o{i}}}}}\n" for i in range(3000)))
        told = self.one_line(self.berth("run", "c.yaml", code=2))
        self.assertIn("s0 -> s1 -> s2", told)
        self.assertIn("-> (2980 more) ->", told)
        self.assertTrue(told.endswith("s2998 -> s2999 -> s0\n"), told)

    def test_why_tells_of_a_place_that_is_taken(self):
        self.write("w.yaml", "name: w\nsteps: {a: {run: 'echo x > {out.o}', out: {o: o}}}\n")
        self.berth("run", "w.yaml")
        (self.dir / "o").unlink()
        self.write("o/mine", "")
        self.berth("run", "w.yaml", code=1)
        why = self.berth("why", "w-2/a").out.decode()
        self.assertIn("its result could not be put in its place", why)
        self.assertNotIn("not in the cache", why)
        self.assertIn("o/mine: not written by this step", why)

    def test_what_the_readme_writes_is_ignored(self):
        root = Path(__file__).resolve().parent.parent
        if subprocess.run(["git", "-C", root, "rev-parse"], capture_output=True, check=False).returncode:
            self.skipTest("no checkout of git")
        written = re.findall(r"^berth [^#\n]*> (\S+)", (root / "README.md").read_text(), re.M)
        for flow in (root / "examples").glob("*/*.yaml"):
            for out in re.findall(r"^ *out: \{\w+: '?([^}{']*)", flow.read_text(), re.M):
                written.append(f"{flow.parent.relative_to(root)}/{out}")
        self.assertTrue(written)
        for path in written:
            with self.subTest(path):
                seen = subprocess.run(["git", "-C", root, "check-ignore", "--no-index", "-q", path], check=False)
                self.assertEqual(seen.returncode, 0)

    def test_names_need_not_be_text(self):
        (self.dir / "data/odd").mkdir()
        with open(os.fsencode(self.dir / "data/odd") + b"/\xffz", "w") as file:
            file.write("odd")
        self.write("f.yaml", "steps: {a: {foreach: {f: data/odd/*}, run: 'cat {f} > {out.x}', out: {x: 'x{index}.txt'}}}\n")
        self.run_flow(name="f.yaml")
        self.assertEqual(self.read("x0.txt"), "odd")

    def test_an_input_that_vanishes_fails_its_task_only(self):
        self.write("f.yaml", "steps:\n"
                   "  a: {run: 'touch $TURN/a; while [ ! -e $TURN/go ]; do sleep 0.02; done; echo a > {out.x}',"
                   " out: {x: a.txt}}\n"
                   "  b: {run: 'cat {in.x} {in.text} > {out.y}', in: {x: a.x, text: data/corpus.txt},"
                   " out: {y: b.txt}}\n")
        process = self.house.start("run", "f.yaml", env={"TURN": str(self.dir)})
        until((self.dir / "a").exists, "a runs")
        (self.dir / "data/corpus.txt").unlink()
        self.write("go", "")
        self.assertEqual(process.wait(20), 1)
        why = self.house.json("why", "f-1/b")
        self.assertEqual(why["state"], "failed")
        self.assertIn("corpus.txt", why["attempts_made"][0]["detail"])

    def test_a_stop_while_inputs_are_read_is_no_crash(self):
        (self.dir / "many").mkdir()
        for number in range(1500):
            with open(self.dir / f"many/{number}", "wb") as file:
                file.write(b"%d" % number)
                file.truncate(900_000)
        self.write("f.yaml", "steps: {a: {run: 'true', in: {x: 'many/*'}}}\n")
        process = self.house.start("run", "f.yaml")
        objects = self.house.state / "cache/objects"
        until(lambda: any(objects.glob("*/*")), "the first is read")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assert_tidy()


if __name__ == "__main__":
    unittest.main()
