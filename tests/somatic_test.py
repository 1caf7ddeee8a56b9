#!/usr/bin/python3
"""examples/somatic: scatter, gather, join by key; its results are those of a few lines of Python, and of its Snakefile."""

import collections
import csv
import shutil
import subprocess
import unittest
from pathlib import Path

from berth_case import FlowCase

EXAMPLE = Path(__file__).resolve().parent.parent / "examples/somatic"


class Somatic(FlowCase):
    def setUp(self):
        super().setUp()
        for name in ("somatic.yaml", "make_data.sh", "Snakefile"):
            shutil.copy(EXAMPLE / name, self.dir)
        subprocess.run(["./make_data.sh"], cwd=self.dir, check=True)

    def expected(self, least=3):
        """What the report has to say, from the reads at once."""
        with (self.dir / "samples.csv").open() as file:
            samples = list(csv.DictReader(file))
        counts = {(row["patient"], row["type"]): collections.Counter(self.read(f"data/{row['sample']}.txt").splitlines())
                  for row in samples}
        lines = []
        for patient in sorted({row["patient"] for row in samples}):
            normal = counts[patient, "normal"]
            lines += sorted(f"{patient} {read} {count}\n" for read, count in counts[patient, "tumour"].items()
                            if count >= least and read not in normal)
        return sorted(lines)

    def run_flow(self, *options, **more):
        return super().run_flow(*options, name="somatic.yaml", **more)

    def lines(self):
        return sorted(self.read("somatic.txt").splitlines(keepends=True))

    def test_the_results_are_right_and_what_changed_runs_alone(self):
        shown = self.run_flow()
        counts = shown["run"]["counts"]
        self.assertEqual((counts["done"], counts["skipped"]), (8 + 32 + 8 + 4 + 1, 12))
        self.assertGreater(len(self.expected()), 20)
        self.assertEqual(self.lines(), self.expected())
        self.assertEqual(self.ran(self.run_flow()), [])
        self.write("data/P1normal.txt", self.read("data/P1normal.txt") + "chr1:0 T\n")
        self.assertEqual(self.ran(self.run_flow()), ["call/P1tumour-P1normal", "count/P1normal,P1normal-04",
                                                     "merge/P1normal,P1,normal", "report", "split/P1normal"])
        self.assertEqual(self.lines(), self.expected())
        self.assertEqual(len(self.ran(self.run_flow("--set", "least=5"))), 5, "the calls and the report")
        self.assertEqual(self.lines(), self.expected(5))
        self.assertEqual(self.because("somatic-1/call/P1tumour-P1tumour"), ["nothing to do: n.type is 'tumour', not 'normal'"])

    @unittest.skipUnless(shutil.which("snakemake"), "no snakemake here")
    def test_snakemake_finds_the_same(self):
        self.run_flow()
        found = self.read("somatic.txt")
        (self.dir / "elsewhere").mkdir()
        for name in ("Snakefile", "samples.csv", "data"):
            (self.dir / name).rename(self.dir / "elsewhere" / name)
        subprocess.run(["snakemake", "-c2", "--quiet", "all"], cwd=self.dir / "elsewhere", check=True, timeout=120,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**self.house.environment, "HOME": str(self.dir)})
        self.assertEqual(self.read("elsewhere/somatic.txt"), found)


if __name__ == "__main__":
    unittest.main()
