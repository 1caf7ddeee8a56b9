#!/usr/bin/python3
"""What Berth says of wrong experiments, byte for byte, as in golden/wrong_experiments.txt: all that is wrong with a
file at once, a line each, with the file's line, what was wanted and found, and the key that was meant.

A case there begins with a line "## " that says what is wrong; then comes the file, and behind "! " what `berth check`
says of it. BERTH_ACCEPT=1 writes the file anew; a case is added without its "! " lines, and accepted."""

import os
import unittest
from pathlib import Path

from berth_case import Case

GOLDEN = Path(__file__).parent / "golden/wrong_experiments.txt"


def cases():
    """Title, file and expected lines of each."""
    for part in ("\n" + GOLDEN.read_text(encoding="utf-8")).split("\n## ")[1:]:
        title, *lines = part.rstrip("\n").split("\n")
        yield (title, [line for line in lines if not line.startswith("! ")],
               [line[2:] for line in lines if line.startswith("! ")])


class WrongExperiments(Case):
    maxDiff = None

    def said(self, lines):
        self.write("sweep.yaml", "\n".join(lines) + "\n")
        done = self.house.run("check", "sweep.yaml")
        if done.code == 0:  # it runs, and what is probably not meant is told
            self.assertIn(b"note: ", done.err)
            return done.err.decode().splitlines()
        self.assertEqual((done.code, done.out), (2, b""), lines)
        return done.err.decode().removeprefix("berth: ").splitlines()

    def test_berth_says_what_it_said(self):
        all_cases = list(cases())
        self.assertGreaterEqual(len(all_cases), 30)
        if os.environ.get("BERTH_ACCEPT"):
            GOLDEN.write_text("\n".join(
                "\n".join([f"## {title}", *lines, *(f"! {line}" for line in self.said(lines))]) + "\n"
                for title, lines, _ in all_cases), encoding="utf-8")
            return
        for title, lines, expected in all_cases:
            with self.subTest(title):
                self.assertEqual(self.said(lines), expected)

    def test_each_line_names_the_place(self):
        for title, _, expected in cases():
            for line in expected:
                with self.subTest(title):
                    self.assertRegex(line, r"^(note: )?sweep\.yaml:[1-9][0-9]*: ")
                    self.assertLess(len(line), 400)


if __name__ == "__main__":
    unittest.main()
