#!/usr/bin/python3
"""Documents with many entries of one kind are read in time that is linear in their size."""

import time
import unittest

from berth_case import Case

MANY, FEW = 24_000, 1_500
KINDS = {
    "steps": lambda n: "steps:\n" + "".join(f"  s{i}: {{run: 'true'}}\n" for i in range(n)),
    "elements": lambda n: "steps: {a: {run: 'true {x}', foreach: {x: [" + ",".join(f"v{i}" for i in range(n)) + "]}}}\n",
    "parameters": lambda n: "params: {" + ",".join(f"p{i}: 1" for i in range(n)) + "}\nsteps: {a: {run: 'true'}}\n",
    "variables": lambda n: "steps: {a: {run: 'true', env: {" + ",".join(f"p{i}: 1" for i in range(n)) + "}}}\n",
    "outputs": lambda n: "steps: {a: {run: 'true', out: {" + ",".join(f"p{i}: f{i}" for i in range(n)) + "}}}\n",
    "braces": lambda n: "steps: {a: {run: '" + "{" * 4 * n + "'}}\n",
    "quotes": lambda n: "steps: {a: {run: '" + "x '' y " * n + "'}}\n",
    "needs": lambda n: "steps:\n" + "".join(f"  s{i}: {{run: 'true'}}\n" for i in range(n)) + "  z: {run: 'true', needs: [" +
                       ",".join(f"s{i}" for i in range(n)) + "]}\n",
    "unknown keys": lambda n: "steps: {a: {run: 'true'}}\n" + "".join(f"k{i}: 1\n" for i in range(n)),
    "choices": lambda n: "run: 'true'\nparams: {a: [" + ",".join(f"v{i}" for i in range(n)) + "]}\n",
    "trial parameters": lambda n: "run: 'true'\nparams:\n" + "".join(f"  p{i}: [1, 2]\n" for i in range(n)) +
                                  "search: {method: random, trials: 2}\n",
}


class LargeDocuments(Case):
    def seconds(self, text):
        self.write("large.yaml", text)
        begun = time.monotonic()
        self.house.run("check", "large.yaml")
        return time.monotonic() - begun

    def test_are_checked_in_linear_time(self):
        for name, kind in KINDS.items():
            few, many = min(self.seconds(kind(FEW)) for _ in range(2)), self.seconds(kind(MANY))
            self.assertLess(many, 64 * few + 1, name)  # 16 times the entries; the square would be 256


if __name__ == "__main__":
    unittest.main()
