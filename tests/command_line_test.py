#!/usr/bin/python3
"""What every command says of itself and answers to wrong usage, byte for byte, as in golden/command_line.txt.

A line "$ berth …" there is a case, and what stands below it is what berth said: its exit code, its standard output
and, behind "! ", its standard error. BERTH_ACCEPT=1 writes the file anew with what berth says now; a case is added
as such a line, and accepted."""

import json
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

    def test_help_fits_and_is_imperative(self):
        """80 columns; summaries of at most 60 characters; each text of an option begins with a capital."""
        for each in json.loads(self.berth("manual").out)["commands"]:
            with self.subTest(each["name"]):
                helped = self.berth(*each["name"].split(), "--help").out.decode()
                self.assertLessEqual(max(map(len, helped.splitlines())), 80)
                if each["name"]:
                    self.assertLessEqual(len(each["summary"]), 60)
                for option in each["options"]:
                    self.assertNotRegex(option["help"], r"^(of|by|that|what|who|which|with which) |\bINT\b")
                    self.assertRegex(option["value"], r"^[^a-z]*|MODEL\.json$|\[.*\]$")

    def test_json_works_or_is_refused(self):
        for each in json.loads(self.berth("manual").out)["commands"]:
            name, options = each["name"], [option["names"] for option in each["options"]]
            if not name or "--json" in options or name in ("cluster", "help"):
                continue
            done = self.house.run(*name.split(), "--json")
            self.assertIn(done.code, (0, 2, 3), name)
            if name not in ("schema", "study", "trace", "manual"):
                self.assertRegex(done.err.decode(), r"--json|required", name)

    def test_every_command_is_among_the_cases(self):
        commands = [each["name"] for each in json.loads(self.berth("manual").out)["commands"] if each["name"]]
        cases = {case for case, _ in golden_cases()}
        missing = [name for name in commands if f"berth {name} --help" not in cases]
        self.assertEqual(missing, [])
        self.assertEqual(self.house.json("runs")["runs"], [])  # nothing was begun


if __name__ == "__main__":
    unittest.main()
