#!/usr/bin/python3
"""berth-agent travels: it needs nothing of the machine it comes to but libc and libm of 2021."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from berth_case import BERTH

AGENT = os.environ.get("BERTH_AGENT_BIN", str(Path(BERTH).with_name("berth-agent")))
ALLOWED = re.compile(r"(libc\.so\.6|libm\.so\.6|ld-linux[-\w]*\.so\.\d|linux-vdso\.so\.1)\Z")
NEWEST_GLIBC = (2, 34)


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@unittest.skipIf(os.environ.get("BERTH_SANITIZE"), "a sanitizer brings libraries of its own")
class Agent(unittest.TestCase):
    def test_needs_no_library_but_libc_and_libm(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", AGENT))
        self.assertEqual([name for name in needed if not ALLOWED.match(name)], [])

    def test_needs_no_new_symbol(self):
        symbols = output_of("objdump", "-T", AGENT)
        versions = {tuple(map(int, version.split("."))): version
                    for version in re.findall(r"GLIBC_([\d.]+)", symbols)}
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), NEWEST_GLIBC)
        self.assertNotIn("GLIBCXX", symbols)

    def test_says_its_version(self):
        self.assertRegex(output_of(AGENT, "--version"), r"\Aberth-agent \d+\.\d+\.\d+\n\Z")


if __name__ == "__main__":
    unittest.main()
