#!/usr/bin/python3
"""Placement as a program in C finds it: installed, included, linked and run by nothing but cc.

BERTH_BUILD names the build, BERTH_CC the compiler.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
BUILD = os.environ.get("BERTH_BUILD", SOURCE / "build/release")
CC = os.environ.get("BERTH_CC", "cc")
HEADER = "include/berth/placement/berth_placement.h"

# GPU 5 and 6 are joined by two NVLinks; with GPU 0 there is none better than 4.
PRINTED = """best-effort: 5 6  value 230
packed with 0: 0 4  value 210
our own with 0: 0 6  value 10
five of them: 5 devices requested, 4 available: {0,4,5,6}
"""


def output(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = Path(tempfile.mkdtemp(prefix="berth-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix)
        output("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "placement")
        cls.library = next(cls.prefix.glob("lib*/**/libberth_placement.so"))

    def test_the_example_compiles_as_c99_and_answers(self):
        program = self.prefix / "example"
        output(CC, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
               SOURCE / "examples/placement_c/example.c", "-I", self.prefix / "include",
               "-L", self.library.parent, f"-Wl,-rpath,{self.library.parent}",
               "-lberth_placement", "-o", program)
        self.assertEqual(output(program), PRINTED)

    def test_the_library_shows_what_the_header_declares(self):
        header = (self.prefix / HEADER).read_text()
        declared = set(re.findall(r"^BERTH_EXPORT .*?\b(berth_\w+)\(", header, re.MULTILINE))
        listed = output("nm", "--dynamic", "--defined-only", "--format=just-symbols", self.library)
        shown = {name.partition("@")[0] for name in listed.split()} - {"BERTH_PLACEMENT_1"}
        self.assertGreater(len(declared), 10)
        self.assertEqual(shown, declared)

    def test_the_library_needs_libc_and_libm_alone(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "--dynamic", self.library))
        loader = {name for name in needed if name.startswith("ld-linux")}
        self.assertLessEqual(set(needed) - loader, {"libc.so.6", "libm.so.6"})


if __name__ == "__main__":
    unittest.main()
