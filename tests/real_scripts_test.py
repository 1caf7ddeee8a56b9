#!/usr/bin/python3
"""Programs that nobody wrote for Berth run under it as they are: what they print is turned into a
metric line by the command around them."""

import os
import shutil
import unittest
from pathlib import Path

from berth_case import Case

PRIMES = Path("/usr/share/doc/mawk/examples/primes.awk")  # Debian's mawk, on every machine
HEART = Path("/usr/share/doc/liblinear-tools/examples/heart_scale")  # Debian's liblinear-tools
TRAIN = shutil.which("liblinear-train")


class RealScripts(Case):
    @unittest.skipUnless(os.access(PRIMES, os.X_OK), f"{PRIMES} is not installed")
    def test_an_example_of_mawk(self):
        """In which hundred numbers are most primes? The script prints them, one a line."""
        self.write("primes.yaml", f"name: primes\nrun: '{PRIMES} {{from}} $(({{from}} + 99)) | wc -l | "
                   "sed \"s/^/::berth primes=/\"'\n"
                   "params: {from: [2, 102, 1002, 10002]}\ngoal: {metric: primes, direction: max}\n")
        self.berth("run", "primes.yaml")
        self.assertEqual([task["metrics"]["primes"] for task in self.house.tasks("primes-1")], [26, 20, 16, 11])
        self.assertEqual(self.house.json("best", "primes-1")["params"], {"from": 2})

    @unittest.skipUnless(TRAIN and HEART.exists(), "liblinear-tools is not installed")
    def test_a_trainer_on_its_example(self):
        """How hard should a classifier of heart diseases be regularized? Five-fold cross-validation."""
        self.write("heart.yaml", f"name: heart\nrun: \"{TRAIN} -q -v 5 -s {{solver}} -c {{c}} {HEART} | "
                   "sed -n 's/^Cross Validation Accuracy = \\\\([0-9.]*\\\\)%/::berth accuracy=\\\\1/p'\"\n"
                   "params: {c: {min: 1e-3, max: 1e2, scale: log}, solver: [0, 2, 5]}\n"
                   "search: {method: random, samples: 12, seed: 1}\n"
                   "goal: {metric: accuracy, direction: max}\n")
        self.berth("run", "heart.yaml")
        self.assertEqual(self.house.counts("heart-1")["done"], 12)
        self.assertGreater(self.house.json("best", "heart-1")["metrics"]["accuracy"], 80)


if __name__ == "__main__":
    unittest.main()
