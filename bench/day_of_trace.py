#!/usr/bin/python3
"""A day out of a trace of less than an hour, for lack of a public one: the trace again and again, with its bursts and
in its order, of which each hour keeps a part at random: a quarter at three in the morning, all at three in the
afternoon, a cosine between them.

  bench/day_of_trace.py requests.csv > day.csv
"""

import csv
import math
import random
import sys

DAY_S = 86400


def kept(seconds):
    return 0.625 + 0.375 * math.cos((seconds / 3600 - 15) / 24 * 2 * math.pi)


def main():
    with open(sys.argv[1]) as file:
        rows = [(float(row["seconds"]), row["in_tokens"], row["out_tokens"]) for row in csv.DictReader(file)]
    draw = random.Random(1)
    first = None
    print("seconds,in_tokens,out_tokens")
    for again in range(math.ceil(DAY_S / rows[-1][0])):
        for seconds, tokens_in, tokens_out in rows:
            at = again * rows[-1][0] + seconds
            if at < DAY_S and draw.random() < kept(at):
                first = at if first is None else first
                print(f"{at - first:.3f},{tokens_in},{tokens_out}")


if __name__ == "__main__":
    sys.exit(main())
