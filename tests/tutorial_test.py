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


if __name__ == "__main__":
    unittest.main()
