#!/usr/bin/python3
"""Types docs/tutorial/README.md and docs/explanation/comparison.md: the output shown there has to appear."""

import shutil
import unittest

from typed_pages import ROOT, TypedPage


class Tutorial(TypedPage):
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
