#!/usr/bin/python3
"""docs/tutorial/README.md from its first line to its last: its files are written, its commands typed, and what it shows of their
output has to come, in that order. `…` within a line stands for anything. Other pages with such blocks are typed too."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from berth_case import BERTH, Case

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"\A(?:#!.*\n)?# ([\w.-]+\.\w+)\n")
SAVED_AS = re.compile(r"Save it as `([\w.-]+)`")


def blocks(page):
    """Files as (name, text), and commands as (command, lines of output), in the page's order."""
    text = page.read_text()
    for block in BLOCK.finditer(text):
        language, body = block[1], block[2]
        if language == "console":
            for part in ("\n" + body).split("\n$ ")[1:]:
                command, *shown = part.rstrip("\n").split("\n")
                yield None, command, shown
        elif FILE.match(body):
            yield FILE.match(body)[1], body, None
        elif SAVED_AS.match(text[block.end():].lstrip()):
            yield SAVED_AS.match(text[block.end():].lstrip())[1], body, None


def as_pattern(line):
    return re.compile(r"\s+".join(re.escape(word) for word in line.split()).replace("…", ".*"))


class Tutorial(Case):
    def type(self, page):
        environment = {**self.house.environment, "PATH": f"{Path(BERTH).parent}:{os.environ['PATH']}",
                       "BERTH_EXAMPLES": str(ROOT / "examples"), "PARALLEL_HOME": str(self.dir)}
        typed = 0
        for name, text, shown in blocks(page):
            if name:
                if name.endswith(".txt"):  # the name is none of its lines
                    text = FILE.sub("", text)
                self.write(name, text).chmod(0o755 if text.startswith("#!") else 0o644)
                continue
            typed += 1
            done = subprocess.run(["bash", "-c", text], cwd=self.dir, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
            said = done.stdout.decode()
            lines = iter(said.splitlines())
            for line in shown:
                self.assertTrue(any(as_pattern(line).search(each) for each in lines),
                                f"$ {text}\nshows no line, or not in this order: {line}\n{said}")
            if not any(line.startswith("berth: ") or "not served" in line for line in shown):
                self.assertEqual(done.returncode, 0, f"$ {text}\n{said}")
        return typed

    def test_the_tutorial(self):
        self.assertGreater(self.type(ROOT / "docs/tutorial/README.md"), 20)
        self.assert_tidy()

    @unittest.skipUnless(all(map(shutil.which, ("parallel", "tsp", "make"))), "a tool to compare with is not installed")
    def test_the_comparison(self):
        self.assertGreater(self.type(ROOT / "docs/explanation/comparison.md"), 10)
        self.assert_tidy()

    def test_the_pages_about_fleets(self):
        for name in ("plan-a-fleet", "fit-a-server", "simulate-a-fleet", "plan-a-day", "autoscale-a-fleet"):
            with self.subTest(name):
                self.assertGreater(self.type(ROOT / f"docs/how-to/{name}.md"), 1)
                for made in self.dir.glob("*.*"):
                    made.unlink()


if __name__ == "__main__":
    unittest.main()
