#!/usr/bin/python3
"""What Berth says of wrong files, byte for byte, as in golden/wrong_flows.txt.

A case there begins with a line "## " that says what is wrong; then comes the file, other files behind lines "@ NAME",
options behind "$ ", and behind "! " what `berth check` says of the file. BERTH_ACCEPT=1 writes the file anew with
what berth says now; a case is added without its "! " lines, and accepted."""

import os
import re
import shlex
import shutil
import unittest
from pathlib import Path

from berth_case import Case

GOLDEN = Path(__file__).parent / "golden/wrong_flows.txt"
DEEP = 100_000
UNPRINTABLE = {  # what stands for files that nobody would want to read here: a body "= NAME"
    "garbage": bytes(range(256)) * 4,
    "nul": b"steps:\n  a: {run: echo a}\n\0",
    "latin1": "steps:\n  a: {run: echo Größe}\n".encode("latin-1"),
    "utf16": "steps:\n  a: {run: echo a}\n".encode("utf-16"),
    "escape": b"steps:\n  a: {run: \"echo \x1b[31mred\"}\n",
    "deep": b"steps: " + b"[" * DEEP,
    "deep_maps": b"steps: " + b"{a: " * DEEP,
    "deep_lines": "\n".join(" " * i + "a:" for i in range(2000)).encode(),
    "bomb": b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi")).encode(),
}


class Golden:
    """One case: its title, its files by name, the options, and what is expected."""

    def __init__(self, text):
        self.title, _, body = text.partition("\n")
        lines = body.rstrip("\n").split("\n")
        self.expected = "".join(line[2:] + "\n" for line in lines if line.startswith("! "))
        self.given = [line for line in lines if not line.startswith("! ")]
        self.options, self.files = [], {"flow.yaml": ""}
        name = "flow.yaml"
        for line in self.given:
            if line.startswith("@ "):
                name = line[2:]
                self.files[name] = ""
            elif line.startswith("$ "):
                self.options = shlex.split(line[2:])
            else:
                self.files[name] += line + "\n"

    def write(self, case):
        for name, text in self.files.items():
            case.write(name, UNPRINTABLE[text[2:-1]] if text.startswith("= ") else text)

    def text(self, said):
        return "\n".join([f"## {self.title}", *self.given]) + "\n" + "".join(f"! {line}\n" for line in said.splitlines())


def golden_cases():
    text = "\n" + GOLDEN.read_text(encoding="utf-8")
    return [Golden(part) for part in text.split("\n## ")[1:]]


class WrongFlows(Case):
    maxDiff = None

    def said(self, case):
        """What berth says of the case, which has the directory to itself."""
        for path in self.dir.iterdir():
            if path.is_dir() and path.name not in ("state", "ledger"):
                shutil.rmtree(path)
            elif not path.is_dir():
                path.unlink()
        case.write(self)
        done = self.house.run("check", "flow.yaml", *case.options,
                              env={"BERTH_CLUSTERS": str(self.dir / "clusters.yaml")})
        self.assertIn(done.code, (2, 3), f"{case.title}: {done}")
        self.assertEqual(done.out, b"", case.title)
        said = done.err.decode().removeprefix("berth: ").replace(str(self.dir), "DIRECTORY")
        return re.sub(r"this machine has [1-9]\d*", "this machine has NUMBER", said)  # of this machine

    def test_berth_says_what_it_said(self):
        cases = golden_cases()
        self.assertGreater(len(cases), 30)
        said = [(case, self.said(case)) for case in cases]
        if os.environ.get("BERTH_ACCEPT"):
            GOLDEN.write_text("\n".join(case.text(text) for case, text in said), encoding="utf-8")
            return
        for case, text in said:
            with self.subTest(case.title):
                self.assertEqual(text, case.expected)

    def test_each_is_one_line_that_names_the_file(self):
        for case in golden_cases():
            with self.subTest(case.title):
                self.assertEqual(case.expected.count("\n"), 1)
                self.assertRegex(case.expected, r"^([a-z/]+\.yaml:[1-9][0-9]*: |flow\.yaml: |--|the target )")
                self.assertLess(len(case.expected), 400)


if __name__ == "__main__":
    unittest.main()
