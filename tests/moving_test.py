#!/usr/bin/python3
"""The pages of docs/how-to/moving name every function, type and field of other interfaces exactly once.

tests/data/moving/NAME.txt has the names for docs/how-to/moving/NAME.md, one a line. tests/consumer/moving/NAME.cc is the page's example
of ten of them, each marked by a comment that has only names; tests/consumer_test.py compiles and runs it. If the interfaces
are available (../shared/reference), the lists are checked against them. `moving_test.py --counts` prints the counts."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT.parent / "shared/reference"
SOURCES = {"machine-resources": "000", "runner": "001", "planner": "002", "gpu-allocator": "003", "resource-managers": "004"}


def listed(name):
    return (ROOT / f"tests/data/moving/{name}.txt").read_text().split()


def rows(name):
    """The names of each row, and whether Berth has a counterpart: other rows say why there is none."""
    for line in (ROOT / f"docs/how-to/moving/{name}.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| `"):
            yield re.findall(r"`([\w.]+)`", cells[0]), not cells[1].startswith("none, by design")


def declared(text):
    """The functions, methods and types that a reference document declares."""
    found = set()
    for receiver, name in re.findall(r"^(?:- )?func (?:\((?:\w+ )?\*?(\w+)\) )?(\w+)", text, re.M):
        found.add(f"{receiver}.{name}" if receiver else name)
    found |= set(re.findall(r"^(?:- )?type (\w+)", text, re.M))
    at = ""
    for line in re.findall(r"^(\w+)\n\(", text, re.M):  # Python: a class, then its methods
        if line.endswith("Manager"):
            at = line
        found.add(line if line == at or line == "get_resource_manager" else f"{at}.{line}")
    return found


def counts(name):
    mapped = sum(len(names) for names, here in rows(name) if here)
    absent = sum(len(names) for names, here in rows(name) if not here)
    return mapped, absent


class Moving(unittest.TestCase):
    def test_each_page_has_each_name_once(self):
        for name in SOURCES:
            with self.subTest(name):
                named = [each for names, _ in rows(name) for each in names]
                self.assertEqual(sorted(named), sorted(listed(name)))
                self.assertEqual(sum(counts(name)), len(listed(name)))

    def test_each_page_has_an_example_of_ten_names(self):
        for name in SOURCES:
            with self.subTest(name):
                page = (ROOT / f"docs/how-to/moving/{name}.md").read_text()
                self.assertIn(f"(../../../tests/consumer/moving/{name}.cc)", page)
                shown = [each for names in re.findall(r"^ *// (\w[\w.]+(?:, \w[\w.]+)*)$",
                                                      (ROOT / f"tests/consumer/moving/{name}.cc").read_text(), re.M)
                         for each in names.split(", ")]
                self.assertEqual(len(shown), 10, shown)
                self.assertEqual(len(set(shown)), 10, shown)
                here = {each for names, is_here in rows(name) if is_here for each in names}
                self.assertLessEqual(set(shown), here)

    @unittest.skipUnless(REFERENCE.is_dir(), "the interfaces are not available")
    def test_the_lists_have_what_the_interfaces_declare(self):
        for name, number in SOURCES.items():
            text = next(REFERENCE.glob(f"{number}_*")).read_text()
            with self.subTest(name):
                self.assertLessEqual(declared(text), set(listed(name)))
                for each in listed(name):
                    self.assertRegex(text, rf"\b{each.rpartition('.')[2]}\b")


if __name__ == "__main__":
    if "--counts" in sys.argv:
        for name in SOURCES:
            mapped, absent = counts(name)
            print(f"{name}: {mapped + absent} listed, {mapped} mapped, {absent} without a counterpart by design")
    else:
        unittest.main()
