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
        names = re.match(r"\s+(-\w|--[\w-]+)((,\s*)(--[\w-]+))?(?=[\s:\[]|$)", line)
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

    def page(self, name):
        return f"{self.pages.name}/man1/{'-'.join(['berth', *name.split()])}.1"

    def files(self):
        return sorted(Path(self.pages.name).glob("man?/*"))

    def rendered(self, page):
        return subprocess.run(["man", "-E", "UTF-8", "-l", page], check=True, capture_output=True, text=True,
                              env={**os.environ, "MANWIDTH": "200", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"}).stdout

    def test_options_agree_with_help_and_completions(self):
        described = [each["name"] for each in json.loads(self.berth("manual").out)["commands"]]
        listed = re.findall(r"^  ([a-z][a-z-]*)  ", self.berth("--help").out.decode(), re.MULTILINE)
        self.assertGreater(len(listed), 30)
        self.assertEqual([name for name in described if name and " " not in name], listed)
        actions = re.findall(r"^  ([a-z][a-z-]*)  ", self.berth("cluster", "--help").out.decode(), re.MULTILINE)
        self.assertEqual([name for name in described if " " in name], [f"cluster {action}" for action in actions])
        for name in described:
            with self.subTest(name):
                words = name.split()
                manual = options_in(self.rendered(self.page(name)))
                helped = options_in(self.berth(*words, "--help").out.decode().partition("\nExample")[0])
                self.assertEqual(manual, helped)
                self.assertEqual(self.berth("help", *words).out, self.berth(*words, "--help").out)
                offered = {line.split("\t")[0] for line in
                           self.berth("complete", "--", *words, "-").out.decode().splitlines()}
                self.assertEqual(offered, {option for option in manual if option.startswith("--")})

    def test_the_reference_of_commands_is_what_the_program_says(self):
        """BERTH_ACCEPT=1 writes the page again."""
        script = [sys.executable, ROOT / "tools/commands_page.py", BERTH]
        if os.environ.get("BERTH_ACCEPT"):
            subprocess.run(script, check=True)
        said = subprocess.run([*script, "-"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(said, (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8"))

    def test_every_positional_is_in_the_page(self):
        for command in json.loads(self.berth("manual").out)["commands"]:
            page = self.rendered(self.page(command["name"]))
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
