#!/usr/bin/python3
"""What saves typing: the latest run by default and by @last, other names of commands, the last lines of logs, colours
of states, and help that fits the terminal."""

import unittest

from berth_case import BERTH, Case
from terminal import OnTerminal

SWEEP = """
name: sweep
run: 'for i in 1 2 3 4; do echo line $i of {x}; done; echo "::berth score={x}"; test {x} != 3'
params: {x: [1, 2, 3]}
goal: {metric: score, direction: max}
"""
ESCAPE = "\x1b["


class Shortcuts(Case):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", SWEEP)

    def text(self, *words, **more):
        return self.berth(*words, **more).out.decode()

    def test_the_latest_run_is_the_default(self):
        for words in (["show"], ["logs"], ["best"], ["why"], ["show", "@last"], ["logs", "@last/1"], ["stop", "@last"]):
            self.assertIn("there are no runs yet", self.one_line(self.berth(*words, code=2)), words)
        self.berth("run", "--", "true")
        self.berth("run", "sweep.yaml", code=1)
        self.assertEqual(self.text("show"), self.text("show", "sweep-1"))
        self.assertEqual(self.text("show", "@last"), self.text("show", "sweep-1"))
        self.assertEqual(self.text("best"), self.text("best", "sweep-1"))
        self.assertEqual(self.text("why"), self.text("why", "sweep-1"))
        self.assertEqual(self.text("logs"), self.text("logs", "sweep-1"))
        self.assertEqual(self.text("logs", "@last/2"), self.text("logs", "sweep-1/2"))
        self.assertEqual(self.text("why", "@last/3"), self.text("why", "sweep-1/3"))
        self.berth("run", "sweep.yaml", code=1)
        self.assertIn("sweep-2", self.text("compare", "sweep-1", "@last"))
        self.berth("rm", "@last")
        self.assertEqual([run["id"] for run in self.house.json("runs")["runs"]], ["true-1", "sweep-1"])

    def test_other_names_of_commands(self):
        self.berth("run", "--", "true")
        self.assertEqual(*[[line.split()[:2] for line in self.text(name).splitlines()] for name in ("ls", "runs")])
        self.assertEqual(self.text("ps"), self.text())
        self.assertEqual(self.house.json("ps"), self.house.json())
        self.assertEqual(repr(self.house.run("cancel", "true-1")), repr(self.house.run("stop", "true-1")))
        self.assertEqual(self.text("kill", "--help"), self.text("help", "stop"))

    def test_parallel_has_a_letter(self):
        self.write("slow.yaml", "name: slow\nrun: 'echo {x}'\nparams: {x: [1, 2, 3]}\n")
        self.berth("run", "-j", "1", "slow.yaml")
        self.assertIn("expected a whole number", self.one_line(self.berth("run", "-j", "0", "slow.yaml", code=2)))

    def test_the_last_lines_of_logs(self):
        self.berth("run", "sweep.yaml", code=1)
        self.assertEqual(self.text("logs", "-n", "2", "sweep-1/1"), "line 4 of 1\n::berth score=1\n")
        self.assertEqual(self.text("logs", "--tail", "1", "sweep-1/1"), "::berth score=1\n")
        self.assertEqual(self.text("logs", "-n", "0", "sweep-1/1"), "")
        self.assertEqual(self.text("logs", "-n", "99", "sweep-1/1"), self.text("logs", "sweep-1/1"))
        self.assertEqual(self.text("logs", "--tail", "8B", "sweep-1/1"), "score=1\n")
        self.assertEqual(len(self.text("logs", "-n", "3", "sweep-1").splitlines()), 3)
        self.assertIn("expected lines such as 20, or a size such as 200K, got 'x'",
                      self.one_line(self.berth("logs", "-n", "x", "sweep-1", code=2)))
        self.berth("run", "--", "printf", "a\\nb")
        self.assertEqual(self.text("logs", "-n", "1"), "b")

    def on_terminal(self, *words, columns=80, **environment):
        usual = {name: value for name, value in self.house.environment.items() if name != "NO_COLOR"}
        terminal = OnTerminal([BERTH, *words], {**usual, "TERM": "xterm", **environment}, columns=columns,
                              cwd=self.dir)
        self.addCleanup(terminal.close)
        terminal.wait()
        return terminal.text

    def test_states_have_colours_on_a_terminal_alone(self):
        self.berth("run", "sweep.yaml", code=1)
        shown = self.on_terminal("show", "sweep-1")
        self.assertIn(f"{ESCAPE}32mdone{ESCAPE}0m", shown)
        self.assertIn(f"{ESCAPE}31mfailed (exit 1){ESCAPE}0m", shown)
        self.assertIn(f"sweep-1  {ESCAPE}31mfailed{ESCAPE}0m: ", shown)
        self.assertIn(f"{ESCAPE}31mfailed{ESCAPE}0m", self.on_terminal("runs"))
        for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn(ESCAPE, self.on_terminal("show", "sweep-1", **more), more)
        self.assertNotIn(ESCAPE, self.text("show", "sweep-1"))
        self.assertNotIn(ESCAPE, self.on_terminal("show", "sweep-1", "--json"))

    def test_help_fits_the_terminal(self):
        for columns in (50, 80, 110):
            lines = self.on_terminal("run", "--help", columns=columns).replace("\r", "").splitlines()
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertGreater(max(map(len, lines)), columns - 20)


if __name__ == "__main__":
    unittest.main()
