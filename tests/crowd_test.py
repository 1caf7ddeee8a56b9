#!/usr/bin/python3
"""A hundred berths at once on one machine: they share it without a daemon, and nobody takes too much."""

import os
import random
import unittest

from berth_case import Case, until

PEOPLE = 100
SEED = int(os.environ.get("BERTH_SEED", random.randrange(1 << 30)))

# Marks with what it holds when it starts and ends: less than the whole of its reservation.
HOLD = """#!/bin/sh
echo "$(date +%s%N) $$ $2" >> "$1"
sleep "$3"
echo "$(date +%s%N) $$ -$2" >> "$1"
"""


class Crowd(Case):
    def setUp(self):
        super().setUp()
        self.capacity = int(self.house.json("machine")["total"]["cpu"])
        self.rng = random.Random(SEED)
        self.hold = self.script("hold", HOLD)
        self.witness = self.dir / "witness"
        self.said = (self.dir / "said").open("ab")
        self.addCleanup(self.said.close)

    def arrive(self):
        """Everybody wants something at once."""
        people = []
        for _ in range(PEOPLE):
            cpu = min(self.rng.choice([0.5, 1, 2]), self.capacity)
            people.append(self.house.start(
                "run", "--name", "person", "--cpu", cpu, "--mem", "1M" if cpu == 0.5 else "10M", "--",
                self.hold, self.witness, cpu, f"0.0{self.rng.randrange(10)}",
                out=self.said, err=self.said))
        return people

    def spans(self):
        """(time, pid, cores) of every mark, of those that have marked both ends."""
        marks = [line.split() for line in self.witness.read_text().splitlines()]
        ended = {pid for _, pid, cpu in marks if cpu.startswith("-")}
        return [(int(time), pid, float(cpu)) for time, pid, cpu in marks if pid in ended], len(marks)

    def assert_never_too_many(self, spans):
        held = 0.0
        for time, pid, cpu in sorted(spans, key=lambda mark: (mark[0], mark[2])):
            held += cpu
            self.assertLessEqual(held, self.capacity, f"at {time}, pid {pid}; BERTH_SEED={SEED}")

    def said_by_all(self):
        return f"BERTH_SEED={SEED}\n" + (self.dir / "said").read_text()

    def test_everybody_is_served(self):
        for person in self.arrive():
            self.assertEqual(person.wait(120), 0, self.said_by_all())
        spans, marks = self.spans()
        self.assertEqual((len(spans), marks), (2 * PEOPLE, 2 * PEOPLE))
        self.assert_never_too_many(spans)
        runs = self.house.json("runs")["runs"]
        self.assertEqual(sorted(int(run["id"].split("-")[1]) for run in runs),
                         list(range(1, PEOPLE + 1)))
        self.assertEqual({run["state"] for run in runs}, {"done"})
        self.assert_tidy()

    def test_some_are_killed(self):
        people = self.arrive()
        killed = self.rng.sample(people, 5)
        for number, person in enumerate(killed):
            until(lambda: self.witness.exists() and self.spans()[1] >= 10 * (number + 1), "some to be served")
            person.kill()
        for person in people:
            code = person.wait(120)
            if person not in killed:
                self.assertEqual(code, 0, self.said_by_all())
        self.assert_never_too_many(self.spans()[0])
        self.berth("run", "--", "true")  # whoever comes next ends what the dead have left
        self.assert_tidy()
        states = [run["state"] for run in self.house.json("runs")["runs"]]
        # "waiting": killed in the moment between the submission and the first start
        self.assertLessEqual(states.count("interrupted") + states.count("waiting"), 5)
        self.assertEqual(set(states) - {"interrupted", "waiting", "done"}, set())


if __name__ == "__main__":
    unittest.main()
