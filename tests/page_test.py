#!/usr/bin/python3
"""The page that berth-server carries is the one that its sources make (web/build), and it is small."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ("index.html", "page.js", "page.css")


class Page(unittest.TestCase):
    def test_what_is_built_is_of_the_sources(self):
        with tempfile.TemporaryDirectory() as to:
            made = subprocess.run([ROOT / "web/build", to], capture_output=True, text=True)
            if made.returncode == 77:
                self.skipTest(made.stderr)
            self.assertEqual(made.returncode, 0, made.stderr)
            for name in FILES:
                self.assertEqual(Path(to, name).read_bytes(), (ROOT / "web/built" / name).read_bytes(),
                                 f"{name}: run web/build and commit web/built")

    def test_axes_of_charts(self):
        esbuild = ROOT / "build/web/node_modules/.bin/esbuild"
        if not esbuild.exists() or not shutil.which("node"):
            self.skipTest("the packages of the page are not installed: web/build")
        with tempfile.TemporaryDirectory() as to:
            bundle = Path(to, "scale.mjs")
            subprocess.run([esbuild, "--bundle", "--format=esm", f"--outfile={bundle}", "--log-level=error",
                            ROOT / "web/src/scale.ts"], check=True)
            done = subprocess.run(["node", "--test", ROOT / "web/scale_test.mjs"], capture_output=True, text=True,
                                  env={**os.environ, "SCALE": str(bundle)})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nothing_in_it_stands_in_line_or_elsewhere(self):
        html = (ROOT / "web/built/index.html").read_text()
        self.assertNotIn("<style", html)
        self.assertNotIn("onload=", html)
        for part in html.split("<script")[1:]:
            self.assertIn('src="/page.js"', part.partition(">")[0])
        self.assertNotIn("://", html + (ROOT / "web/built/page.css").read_text())


if __name__ == "__main__":
    unittest.main()
