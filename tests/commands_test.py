#!/usr/bin/python3
"""How commands become processes: which need a shell, which are too long, scripts without #!, standard input."""

import json
import os
import resource
import subprocess
import unittest

from berth_case import Case, FlowCase
from ssh_bed import SSH, SSHD, SshCase

KIB = 1024


def inputs(case, count, name="in/sample_{:05d}_" + 180 * "x"):
    for i in range(count):
        case.write(name.format(i) + ".txt", "1\n")


class Expansion(FlowCase):
    """Whatever a shell would expand needs one, so that a command alone means what it means with `&& true`."""

    def assert_alone_means_the_same(self, command, shell=""):
        self.write("flow.yaml", f"name: same\n{shell}steps:\n"
                   f"  alone: {{run: '{command}', out: {{d: alone/}}}}\n"
                   f"  more: {{run: '{command} && true', out: {{d: more/}}}}\n")
        self.run_flow()
        made = [sorted(str(path.relative_to(self.dir / folder)) for path in (self.dir / folder).rglob("*"))
                for folder in ("alone", "more")]
        self.assertEqual(made[0], made[1])
        return made[0]

    def test_braces_expand_without_other_shell_characters(self):
        made = self.assert_alone_means_the_same("mkdir -p {out.d}/{x,y} {out.d}/n{1..2}")
        self.assertEqual(made, ["n1", "n2", "x", "y"])

    def test_braces_around_a_placeholder_expand(self):
        made = self.assert_alone_means_the_same("mkdir -p {{out.d},{out.d}/z}/a{b..d..2}")
        self.assertEqual(made, ["ab", "ad", "z", "z/ab", "z/ad"])

    def test_an_empty_alternative_expands(self):
        self.assertEqual(self.assert_alone_means_the_same("mkdir {out.d}/a{,.bak}"), ["a", "a.bak"])

    def test_braces_stay_where_the_shell_is_sh(self):
        if os.path.realpath("/bin/sh").endswith("bash"):
            self.skipTest("/bin/sh is bash")
        made = self.assert_alone_means_the_same("mkdir -p {out.d}/{x,y}", "shell: sh\n")
        self.assertEqual(made, ["{x,y}"])

    def test_a_keyword_of_the_shell_is_one_without_shell_characters(self):
        self.assert_alone_means_the_same("time mkdir {out.d}/x")

    def test_a_builtin_that_is_no_program_runs(self):
        self.write("flow.yaml", "name: b\nsteps:\n  s: {run: 'type -t cd'}\n")
        self.run_flow()

    def test_a_value_with_braces_is_not_expanded(self):
        self.write("a.yaml", 'name: v\nrun: echo x{n}y\nparams: {n: ["{1,2}"]}\n')
        self.write("b.yaml", 'name: w\nrun: echo x{n}y && true\nparams: {n: ["{1,2}"]}\n')
        for file in ("a.yaml", "b.yaml"):
            self.berth("run", file)
        for run in ("v-1", "w-1"):
            self.assertEqual(self.berth("logs", f"{run}/1").out, b"x{1,2}y\n")


class AnsiQuotes(FlowCase):
    def output(self, command, shell=""):
        self.write("t.tsv", "b\t1\na\t2\n")
        self.write("flow.yaml", f"name: q\n{shell}steps:\n  s:\n    in: {{t: t.tsv}}\n    out: {{o: o.tsv}}\n    run: |\n"
                   f"      {command}\n")
        self.run_flow()
        return self.read("o.tsv")

    def test_a_placeholder_may_follow_an_ansi_c_quote(self):
        self.assertEqual(self.output(r"sort -t$'\t' -k2,2nr {in.t} > {out.o}"), "a\t2\nb\t1\n")

    def test_a_placeholder_may_follow_an_ansi_c_quote_of_sh(self):
        self.assertIn("a t.tsv", self.output("echo $'a' {in.t} > {out.o}", "shell: sh\n"))

    def test_a_placeholder_may_be_within_an_ansi_c_quote(self):
        self.assertEqual(self.output(r"printf %s $'it\'s\t{in.t}' > {out.o}"), "it's\tt.tsv")

    def test_a_placeholder_may_be_within_a_translated_quote(self):
        self.assertEqual(self.output(r"""printf %s $"{in.t}" '{in.t}' > {out.o}"""), "t.tsvt.tsv")

    def test_a_placeholder_in_backquotes_is_refused_with_the_place_and_the_way_out(self):
        self.write("flow.yaml", "name: q\nsteps:\n  s: {in: {t: t}, run: 'echo `cat {in.t}`'}\n")
        self.write("t", "")
        self.assertIn("{in.t} is in `…`", self.one_line(self.berth("run", "flow.yaml", code=2)))


class LongCommands(FlowCase):
    """More than 128 KiB of paths or parameters."""

    def test_a_fan_in_with_more_than_128_kib_of_paths_runs_in_a_shell_and_in_a_script(self):
        inputs(self, 800)
        self.write("flow.yaml", r"""name: fanin
steps:
  pipe: {in: {x: 'in/*.txt'}, run: "printf '%s\\n' {in.x} | wc -l > {out.n}", out: {n: pipe.n}}
  script:
    in: {x: 'in/*.txt'}
    shell: python3
    script: |
      import json, os
      task = json.load(open('.berth-task.json'))
      assert 'BERTH_IN_X' not in os.environ and 'BERTH_OUT_N' in os.environ
      open(task['out']['n'], 'w').write(str(len(task['in']['x'])))
    out: {n: script.n}
""")
        checked = self.berth("check", "flow.yaml").err.decode()
        self.assertRegex(checked, "flow.yaml:3: task pipe: its command has 1.*KiB, so its shell reads it from a file")
        self.assertRegex(checked, "task script: BERTH_IN_X is too long for the environment and left out; .berth-task.json has")
        finished = self.berth("run", "flow.yaml")
        self.assertIn("left out: BERTH_IN_X", finished.err.decode())
        self.assertEqual(self.read("pipe.n").strip(), "800")
        self.assertEqual(self.read("script.n"), "800")
        self.assertFalse(list((self.dir / "state").rglob("command-*")))

    def test_a_shell_keeps_its_arguments_and_options_where_its_text_is_long(self):
        inputs(self, 800)
        self.write("flow.yaml", r"""name: args
steps:
  strict: {in: {x: 'in/*.txt'}, run: ': {in.x}; echo $0 $# $- > {out.n}; false; echo no >> {out.n}', out: {n: a}, on_failure: continue}
  words: {in: {x: 'in/*.txt'}, run: [sh, -c, ': {in.x}; echo $0 $1 > {out.n}', name, one], out: {n: words.n}}
  python:
    in: {x: 'in/*.txt'}
    shell: [python3, -c]
    run: "x = '{in.x}'; open('{out.n}', 'w').write(str(len(x.split())))"
    out: {n: python.n}
""")
        self.house.run("run", "flow.yaml")
        self.assertEqual(self.read("words.n"), "name one\n")
        self.assertEqual(self.read("python.n"), "800")
        self.assertIn("exit 1", self.house.run("why", "args-1/strict").out.decode())

    def test_a_command_without_shell_that_is_too_long_says_what_to_do(self):
        self.write("flow.yaml", "name: direct\nsteps:\n  s: {run: [echo, '{p}'], params: {p: \"" + 200 * KIB * "z" + "\"}}\n")
        checked = self.berth("check", "flow.yaml").err.decode()
        self.assertIn("it cannot start: an argument has 200 KiB, and Linux takes at most 128 KiB", checked)
        self.berth("run", "flow.yaml", code=1)
        why = self.house.run("why", "direct-1/s").out.decode()
        self.assertIn("argument 1 has 200 KiB, and Linux takes at most 128 KiB", why)
        self.assertIn("give long values in a file", why)

    def test_a_sweep_with_a_huge_parameter_has_it_in_a_file(self):
        value = 150 * KIB * "v"
        self.script("trial.py", f"""#!/usr/bin/python3
import json, os, sys
sys.path.insert(0, {str(os.path.join(os.path.dirname(__file__), '../python'))!r})
import berth
values = json.load(open(os.environ["BERTH_PARAMS_FILE"]))
assert "BERTH_PARAMS" not in os.environ and "BERTH_PARAM_P" not in os.environ and os.environ["BERTH_PARAM_N"] == "7"
assert berth.params(n=1).n == 7
print(len(values["p"]), values["n"])
""")
        self.write("sweep.yaml", f"name: huge\nrun: ./trial.py\nparams: {{p: [{value}], n: [7]}}\n")
        self.berth("run", "sweep.yaml")
        self.assertEqual(self.berth("logs", "huge-1/1").out, f"{len(value)} 7\n".encode())
        self.write("sweep.yaml", f"name: shell\nrun: 'v={{p}}; echo ${{#v}}'\nparams: {{p: [{value}], n: [7]}}\n")
        self.berth("run", "sweep.yaml")
        self.assertEqual(self.berth("logs", "shell-1/1").out, f"{len(value)}\n".encode())

    def test_a_fan_in_of_declared_outputs_is_known_to_check(self):
        self.write("flow.yaml", r"""name: fan
params: {all: [""" + ", ".join(map(str, range(2500))) + r"""]}
steps:
  map: {foreach: {i: '{all}'}, run: 'echo {i} > {out.o}', out: {o: 'parts/""" + 60 * "m" + r"""_{i}.txt'}}
  all: {in: {x: map.o}, run: 'ls {in.x} > {out.n}', out: {n: all.n}}
""")
        self.assertRegex(self.berth("check", "flow.yaml").err.decode(), "flow.yaml:5: task all: its command has 1.*KiB")


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are needed")
class OnHosts(SshCase, FlowCase):
    """The same on a machine that is reached by ssh."""

    def setUp(self):
        super().setUp()
        self.host = self.host_that_shares_nothing()

    def test_long_commands_run_and_leave_no_file(self):
        inputs(self, 800)
        self.write("flow.yaml", "name: far\nsteps:\n  s: {in: {x: 'in/*.txt'}, out: {n: n}, "
                   "run: \"printf '%s\\\\n' {in.x} | wc -l > {out.n}\"}\n")
        self.run_flow("--cluster", "lab")
        self.assertEqual(self.read("n").strip(), "800")
        self.assertFalse(list(self.host.home.rglob("command-*")))

    def test_standard_input_reaches_every_trial(self):
        self.write("data", b"a\0b\n" * 50_000)
        self.write("sweep.yaml", "name: far\nrun: 'cat | cksum'\nparams: {n: [1, 2, 3]}\n")
        self.berth("run", "--cluster", "lab", "--stdin", "data", "sweep.yaml")
        sums = {self.berth("logs", f"far-1/{n}").out for n in (1, 2, 3)}
        with open(self.dir / "data") as data:
            self.assertEqual(sums, {subprocess.run(["cksum"], stdin=data, capture_output=True, check=True).stdout})

    def test_a_script_without_interpreter_line_is_run_by_sh(self):
        self.script("tool", "echo hi $1\n")
        self.write("sweep.yaml", "name: far\nrun: ./tool {n}\nparams: {n: [1]}\n")
        self.berth("run", "--cluster", "lab", "sweep.yaml")
        self.assertEqual(self.berth("logs", "far-1/1").out, b"hi 1\n")


class WithoutInterpreterLine(Case):
    def test_a_script_runs_as_it_does_with_more_shell(self):
        self.script("tool", "echo hi $1 $#\n")
        for name, run in (("a", "./tool {n}"), ("b", "./tool {n} && true")):
            self.write(f"{name}.yaml", f"name: {name}\nrun: {run}\nparams: {{n: ['x y']}}\n")
            self.berth("run", f"{name}.yaml")
            self.assertEqual(self.berth("logs", f"{name}-1/1").out, b"hi x y 1\n")

    def test_a_script_in_path_runs(self):
        self.script("bin/mytool", "# no interpreter\necho $0\n")
        path = f"{self.dir}/bin:{os.environ['PATH']}"
        finished = self.berth("run", "--", "mytool", env={"PATH": path})
        self.assertEqual(finished.out.decode().strip(), f"{self.dir}/bin/mytool")

    def test_its_exit_code_counts(self):
        self.script("tool", "exit 7\n")
        self.assertNotEqual(self.house.run("run", "--name", "t", "--", "./tool").code, 0)
        self.assertIn("exit 7", self.berth("why", "t-1/1").out.decode())

    def fails(self, content):
        self.script("tool", content)
        finished = self.house.run("run", "--name", "t", "--", "./tool")
        self.assertNotEqual(finished.code, 0)
        return self.house.run("why", "t-1/1").out.decode()

    def test_an_empty_file_says_so(self):
        self.assertIn("./tool: the file is empty", self.fails(""))

    def test_a_program_of_another_machine_says_so(self):
        self.assertIn("built for another kind of machine", self.fails(b"\x7fELF\x02\x01\x01" + bytes(57)))

    def test_a_file_that_is_no_script_says_so(self):
        self.assertIn("neither a program of this machine nor a script", self.fails(b"\x89PNG\0\0" + bytes(60)))


class StandardInput(Case):
    def give(self, data, *arguments, code=0):
        """berth with this data in a pipe at its standard input."""
        done = subprocess.run([self.house.berth, *arguments], input=data, capture_output=True, cwd=self.dir,
                              env=self.house.environment, timeout=100)
        self.assertEqual(done.returncode, code, done)
        return done

    def test_data_in_a_pipe_that_nothing_reads_is_noted(self):
        done = self.give(b"data\n", "run", "--", "cat")
        self.assertEqual(done.stdout, b"")
        self.assertEqual(done.stderr.count(b"note: standard input has data"), 1)
        self.assertIn(b"--stdin -", done.stderr)

    def test_an_empty_pipe_is_not_noted(self):
        self.assertNotIn(b"standard input", self.give(b"", "run", "--", "cat").stderr)

    def test_a_flow_file_from_a_pipe_is_not_noted(self):
        self.assertNotIn(b"standard input", self.give(b"name: p\nrun: 'true'\n", "run", "/dev/stdin").stderr)

    def test_a_file_at_standard_input_is_noted(self):
        self.write("data", "x\n")
        with open(self.dir / "data", "rb") as data:
            done = subprocess.run([self.house.berth, "run", "--", "cat"], stdin=data, capture_output=True, cwd=self.dir,
                                  env=self.house.environment, timeout=100)
        self.assertIn(b"note: standard input has data", done.stderr)

    def test_a_dash_gives_the_pipe_to_the_command(self):
        data = b"\0\xff\n" + 300_000 * b"line\n"
        done = self.give(data, "run", "--stdin", "-", "--", "cat")
        self.assertEqual((done.stdout, done.stderr.count(b"note:")), (data, 0))

    def test_each_retry_reads_it_from_the_start(self):
        self.script("twice", "#!/bin/sh\ncat\n[ $BERTH_ATTEMPT = 2 ]\n")
        self.give(b"in\n", "run", "--stdin", "-", "--retries", "1", "--name", "t", "--", "./twice")
        self.assertEqual(self.berth("logs", "t-1/1").out, b"in\nin\n")

    def test_each_trial_and_a_retry_of_the_run_read_it(self):
        self.write("data/in.txt", "one\n")
        self.write("sweep.yaml", "name: s\nrun: 'read x && echo {n} $x && [ -e go ]'\nparams: {n: [1, 2]}\nstdin: data/in.txt\n")
        self.house.run("run", "sweep.yaml")
        self.write("go", "")
        self.write("data/in.txt", "changed\n")
        self.berth("retry", "s-1")
        for n in (1, 2):
            self.assertTrue(self.berth("logs", f"s-1/{n}").out.endswith(f"{n} one\n".encode()))

    def test_the_copy_goes_with_the_run(self):
        self.give(b"in\n", "run", "--stdin", "-", "--name", "t", "--", "true")
        self.assertEqual([path.read_bytes() for path in self.house.state.rglob("stdin")], [b"in\n"])
        self.assertEqual(list((self.house.state / "input").iterdir()), [])
        self.berth("rm", "t-1")
        self.assertEqual(list(self.house.state.rglob("stdin")), [])

    def test_input_that_does_not_fit_is_an_error_and_no_run(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
        self.berth("runs")
        done = subprocess.run([self.house.berth, "run", "--stdin", "-", "--", "cat"], input=bytes(5 << 20),
                              capture_output=True, cwd=self.dir, env=self.house.environment, preexec_fn=limit, timeout=100)
        self.assertEqual(done.returncode, 3, done)
        self.assertIn(b"keep the standard input: ", done.stderr)
        self.assertEqual(self.house.json("runs")["runs"], [])
        self.assertEqual(list((self.house.state / "input").iterdir()), [])

    def test_a_missing_file_is_an_error(self):
        self.assertIn("--stdin", self.one_line(self.berth("run", "--stdin", "none", "--", "cat", code=2)))
        self.write("sweep.yaml", "name: s\nrun: cat\nstdin: none\n")
        self.assertIn("sweep.yaml:3: stdin: ", self.one_line(self.berth("run", "sweep.yaml", code=2)))

    def test_a_flow_refuses_it(self):
        self.write("flow.yaml", "name: f\nsteps:\n  s: {run: cat}\n")
        self.assertIn("is a flow", self.one_line(self.berth("run", "--stdin", "-", "flow.yaml", code=2)))

    def test_help_says_that_it_is_empty(self):
        self.assertRegex(self.berth("run", "--help").out.decode(), r"--stdin FILE[^-]*'-'[^-]*empty")


if __name__ == "__main__":
    unittest.main()
