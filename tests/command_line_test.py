#!/usr/bin/python3
"""What every command says of itself and answers to wrong usage, byte for byte, as in golden/command_line.txt.

A line "$ berth …" there is a case, and what stands below it is what berth said: its exit code, its standard output
and, behind "! ", its standard error. BERTH_ACCEPT=1 writes the file anew with what berth says now; a case is added
as such a line, and accepted."""

import os
import shlex
import unittest
from pathlib import Path

from berth_case import Case

GOLDEN = Path(__file__).parent / "golden/command_line.txt"


def golden_cases():
    """Pairs of a case, such as "berth runs --help", and what is expected of it."""
    text = "\n" + GOLDEN.read_text(encoding="utf-8")
    return [(case, expected + "\n" if expected else "")
            for case, _, expected in (part.rstrip("\n").partition("\n") for part in text.split("\n$ ")[1:])]


class CommandLine(Case):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", "name: sweep\nrun: echo {x}\nparams: {x: [1, 2]}\n")
        self.write("flow.yaml", "name: flow\nsteps:\n  a: {run: echo a > a.txt, out: {a: a.txt}}\n")

    def said(self, case):
        done = self.house.run(*shlex.split(case)[1:], env={"BERTH_CLUSTERS": str(self.dir / "clusters.yaml")})
        text = f"exit {done.code}\n" + done.out.decode()
        text += "".join(f"! {line}\n" for line in done.err.decode().splitlines())
        return text.replace(str(self.dir), "DIRECTORY")

    def test_it_says_what_it_said(self):
        cases = golden_cases()
        said = [(case, self.said(case)) for case, _ in cases]
        if os.environ.get("BERTH_ACCEPT"):
            GOLDEN.write_text("".join(f"$ {case}\n{text}" for case, text in said), encoding="utf-8")
            return
        for (case, text), (_, expected) in zip(said, cases):
            with self.subTest(case):
                self.assertEqual(text, expected)

    def test_every_command_is_among_the_cases(self):
        helped = self.berth("--help").out.decode()
        commands = [line.split()[0] for line in helped.partition("Subcommands:\n")[2].partition("\n\n")[0].split("\n")]
        cases = {case for case, _ in golden_cases()}
        missing = [name for name in commands if name != "agent" and f"berth {name} --help" not in cases]
        self.assertEqual(missing, [])
        self.assertEqual(self.house.json("runs")["runs"], [])  # nothing was begun


if __name__ == "__main__":
    unittest.main()
