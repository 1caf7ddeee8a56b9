#!/usr/bin/python3
"""The man pages, --help and the completions have the same options, and troff and mandoc accept the pages without warnings."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from berth_case import BERTH, Case

ROOT = Path(__file__).resolve().parent.parent


def options_in(text):
    """The names of options at the beginning of a line of --help or of a man page."""
    found = set()
    for line in text.splitlines():
        names = re.match(r"\s+(-\w|--[\w-]+)((,\s*)(--[\w-]+))?(?=[\s:]|$)", line)
        if names:
            found.update(name for name in (names[1], names[4]) if name)
    return found


class Manual(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pages = tempfile.TemporaryDirectory(prefix="berth-man-")
        cls.addClassCleanup(cls.pages.cleanup)
        subprocess.run([sys.executable, ROOT / "tools/man.py", BERTH, cls.pages.name], check=True,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})

    def files(self):
        return sorted(Path(self.pages.name).glob("man?/*"))

    def rendered(self, page):
        return subprocess.run(["man", "-E", "UTF-8", "-l", page], check=True, capture_output=True, text=True,
                              env={**os.environ, "MANWIDTH": "200", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"}).stdout

    def test_options_agree_with_help_and_completions(self):
        listed = self.berth("--help").out.decode().partition("Subcommands:\n")[2].partition("\n\n")[0]
        commands = [line.split()[0] for line in listed.splitlines()]
        self.assertGreater(len(commands), 30)
        described = {each["name"] for each in json.loads(self.berth("manual").out)["commands"]}
        self.assertEqual(described, {"", *commands})
        for name in ["", *commands]:
            with self.subTest(name):
                words = [name] if name else []
                manual = options_in(self.rendered(f"{self.pages.name}/man1/berth{'-' if name else ''}{name}.1"))
                if name != "agent":  # its arguments are passed through
                    helped = options_in(self.berth(*words, "--help").out.decode().partition("Options:")[2]
                                        .partition("\nExample")[0].partition("Subcommands:")[0])
                    self.assertLessEqual(manual - helped, {"--json"})
                    self.assertLessEqual(helped, manual)
                offered = {line.split("\t")[0] for line in
                           self.berth("complete", "--", *words, "-").out.decode().splitlines()}
                self.assertEqual(offered, {option for option in manual if option.startswith("--")})

    def test_every_positional_is_in_the_page(self):
        for command in json.loads(self.berth("manual").out)["commands"]:
            page = self.rendered(f"{self.pages.name}/man1/berth{'-' if command['name'] else ''}{command['name']}.1")
            for option in command["options"]:
                self.assertIn(option["names"].split(",")[0], page)

    def test_troff_accepts_the_pages_without_warnings(self):
        self.assertGreater(len(self.files()), 40)
        for page in self.files():
            with self.subTest(page.name):
                done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], capture_output=True, text=True,
                                      env={**os.environ, "MANWIDTH": "80", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        lint = subprocess.run(["mandoc", "-T", "lint", *self.files()], capture_output=True, text=True)
        self.assertEqual((lint.stdout, lint.returncode), ("", 0))

    def test_format_pages_contain_the_documents(self):
        flow = self.rendered(f"{self.pages.name}/man5/berth-flow.5")
        for expected in ("split -n l/8 {in.text} {out.parts}/", "a condition", "foreach", "BERTH-FLOW(5)"):
            self.assertIn(expected, flow)
        self.assertIn("slo-itl", self.rendered(f"{self.pages.name}/man5/berth-fleet.5"))
        self.assertIn("BERTH_DB", self.rendered(f"{self.pages.name}/man1/berth.1"))

    def test_date_is_source_date_epoch(self):
        for page in self.files():
            self.assertIn('"1970-01-02"', page.read_text(encoding="utf-8").splitlines()[0])


if __name__ == "__main__":
    unittest.main()
