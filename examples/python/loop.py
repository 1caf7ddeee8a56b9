#!/usr/bin/python3
"""A search whose loop is your own: nothing of it has to be a command. It may be stopped at any time
and gone on with: berth.Study.open("branin-1")."""

import math
import sys
from pathlib import Path

try:
    import berth
except ImportError:  # not installed: the one of this clone
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "python"))
    import berth


def branin(x, y):
    """Its least value, 0.398, lies at three places."""
    bend = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


study = berth.Study({"x": {"min": -5, "max": 10}, "y": {"min": 0, "max": 15}}, name="branin", goal="value",
                    direction="min", search={"method": "random", "samples": 20, "seed": 1})
for trial in study:
    study.tell(trial, branin(**trial.params))
study.wait()
best = study.best()
print(f"best {best.id} {dict(best.params)}: {best.metrics.value:.3f} of {len(study.trials())}")
