#!/usr/bin/python3
"""A plain script: its parameters come from Berth, or are these defaults. Alone: ./script.py"""

import math
import sys
from pathlib import Path

try:
    import berth
except ImportError:  # not installed: the one of this clone
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "python"))
    import berth

p = berth.params(x=0.5, y=0.5, steps=5)
for step in range(1, p.steps + 1):
    distance = math.hypot(p.x - 1, p.y + 2) / step
    berth.report(distance=distance)  # each is kept; the last one counts
print(f"({p.x}, {p.y}) is {distance:.3f} from where it should be")
