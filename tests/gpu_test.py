#!/usr/bin/python3
"""GPUs of the machine as a person meets them: shared, whole, ill, and held by the dead. BERTH_TOPOLOGY
stands in for the hardware."""

import json
import os
import signal
import unittest
from collections import Counter
from pathlib import Path

from berth_case import Case, alive, until

# Says which devices it has when it starts, waits for a file, and says that it ends.
TASK = """#!/bin/sh
echo "+ $CUDA_VISIBLE_DEVICES" >> witness
while [ ! -e go ] && [ $# = 0 ]; do sleep 0.02; done
echo "- $CUDA_VISIBLE_DEVICES" >> witness
"""


class Gpu(Case):
    def setUp(self):
        super().setUp()
        self.house.environment["BERTH_TOPOLOGY"] = "dgx1-v100"
        self.script("task", TASK)

    def sweep(self, resources, trials, run="./task"):
        return self.write("sweep.yaml", f"name: s\nrun: {run}\nresources: {resources}\n"
                          f"params: {{i: {{min: 1, max: {trials}, type: int}}}}\n")

    def marks(self):
        try:
            return [line.split(" ", 1) for line in (self.dir / "witness").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def most_side_by_side(self):
        """The most tasks at once, and the most on one device."""
        now, most, most_on_one = Counter(), 0, 0
        for sign, devices in self.marks():
            for device in devices.split(","):
                now[device] += 1 if sign == "+" else -1
            most, most_on_one = max(most, sum(now.values())), max(most_on_one, *now.values())
        return most, most_on_one

    def go(self):
        self.write("go", "")

    def test_parts_of_10G_three_to_a_card_of_32(self):
        self.sweep("{cpu: 0.01, gpu: 1, gpu_mem: 10G}", 30)
        run = self.house.start("run", "sweep.yaml")
        until(lambda: len(self.marks()) == 24, "24 side by side")
        holders = self.house.json("machine")["holders"]
        self.assertEqual(len(holders), 24)
        self.assertEqual({h["devices"][0]["gpu_mem"] for h in holders}, {10**10})
        self.go()
        self.assertEqual(run.wait(20), 0)
        self.assertEqual(self.most_side_by_side(), (24, 3))
        held = Counter(task["devices"][0] for task in self.house.tasks("s-1"))
        self.assertEqual(set(held), {f"gpu-{i}" for i in range(8)})
        self.assert_tidy()

    def test_whole_cards_one_to_a_task(self):
        self.sweep("{cpu: 0.01, gpu: 2}", 6)
        run = self.house.start("run", "sweep.yaml")
        until(lambda: len(self.marks()) == 4, "4 side by side")
        self.go()
        self.assertEqual(run.wait(20), 0)
        self.assertEqual(self.most_side_by_side(), (8, 1))
        for task in self.house.tasks("s-1"):
            self.assertEqual(len(task["devices"]), 2)

    def test_two_runs_never_meet_on_a_whole_card(self):
        self.go()
        runs = [self.house.start("run", "--cpu", "0.01", "--gpu", 3, "--", "./task") for _ in range(9)]
        for run in runs:
            self.assertEqual(run.wait(30), 0)
        self.assertEqual(self.most_side_by_side()[1], 1)

    def test_a_task_without_gpus_sees_none(self):
        self.assertEqual(self.berth("run", "--", "sh", "-c", "echo \"<$CUDA_VISIBLE_DEVICES>\"").out, b"<>\n")
        ours = {"CUDA_VISIBLE_DEVICES": "5"}
        self.assertEqual(self.berth("run", "--", "sh", "-c", "echo \"<$CUDA_VISIBLE_DEVICES>\"", env=ours).out,
                         b"<>\n")

    def test_what_does_not_fit_is_told(self):
        for options, why in (
                (["--gpu", "9"], "gpu: wanted 9, the total is 8"),
                (["--gpu-mem", "40G"], "gpu_mem: wanted 37.3 GiB of one device, the largest has 29.8 GiB"),
                (["--gpu-slots", "14"], "gpu_slots: wanted 14 of one device, the largest has 13"),
                (["--gpu", "1", "--gpu-slot-sizes", "31,99"], "gpu: wanted 1 with 31 or 99 slots, the total is 0")):
            finished = self.berth("run", *options, "--", "true", code=3)
            self.assertIn(why, self.one_line(finished))
        self.write("bad.yaml", "name: b\nrun: true\nresources:\n  gpu_slot_sizes: [0]\n")
        self.assertIn("bad.yaml:4: resources.gpu_slot_sizes[0]: wanted 1 to 10000 slots, found 0",
                      self.one_line(self.berth("run", "bad.yaml", code=2)))
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_slots_may_be_rated_anew(self):
        machine = self.write("machine.yaml", "gpu_slots: {V100: 20}\n")
        self.house.environment["BERTH_MACHINE"] = str(machine)
        self.assertEqual(self.house.json("machine")["total"]["gpu_slots"], 160)
        self.berth("run", "--cpu", "0.1", "--gpu-slots", "15", "--", "true")

    def test_the_dead_hold_nothing(self):
        run = self.house.start("run", "--gpu", 8, "--", "./task")
        until(lambda: self.marks(), "it runs")
        self.assertEqual(self.house.json("machine")["free"]["gpu"], 0)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        machine = self.house.json("machine")
        self.assertEqual(machine["free"]["gpu"], 0)  # what runs goes on
        os.kill(machine["holders"][0]["pid"], signal.SIGKILL)
        until(lambda: self.house.json("machine")["free"]["gpu"] == 8, "the agent is gone")
        self.go()
        self.berth("resume", self.house.json("runs")["runs"][0]["id"])
        self.assert_tidy()

    def test_an_ill_card_is_told_to_its_holder_and_lent_no_more(self):
        topology = json.loads(self.berth("topo", "--json").out)["topology"]
        self.write("topo.json", json.dumps(topology))
        self.house.environment["BERTH_TOPOLOGY"] = "topo.json"
        self.house.environment["BERTH_HEALTH_EVERY"] = "100ms"
        self.sweep("{cpu: 0.01, gpu: 1}", 16)
        with (self.dir / "said").open("wb") as said:
            run = self.house.start("run", "sweep.yaml", err=said)
        until(lambda: len(self.marks()) == 8, "8 side by side")
        topology["devices"][3] |= {"health": "unwell", "unwell_because": "3 uncorrected ECC errors"}
        self.write("new.json", json.dumps(topology))
        os.rename(self.dir / "new.json", self.dir / "topo.json")
        until(lambda: "GPU3 is out of service: 3 uncorrected ECC errors; s-1/" in (self.dir / "said").read_text(),
              "the holder is told")
        machine = self.house.json("machine")
        self.assertEqual(machine["total"]["gpu"], 7)
        self.assertEqual(machine["devices"][3]["because"], "3 uncorrected ECC errors")
        self.go()
        self.assertEqual(run.wait(20), 0)
        used = Counter(task["devices"][0] for task in self.house.tasks("s-1"))
        self.assertEqual(used["gpu-3"], 1, "only the one that had it before")
        self.assertIn("out of service: GPU3 (3 uncorrected ECC errors)",
                      self.one_line(self.berth("run", "--gpu", 8, "--", "true", code=3)))
        self.assert_tidy()

    def test_the_watch_ends_with_a_killed_runner(self):
        self.house.environment["BERTH_HEALTH_EVERY"] = "50ms"
        run = self.house.start("run", "--gpu", 1, "--", "./task")
        until(lambda: self.marks(), "it runs")
        watches = [pid for pid in self.house.leftovers()
                   if b"watch-devices" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        self.assertEqual(len(watches), 1)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        until(lambda: not alive(watches[0]), "nobody reads its news")


if __name__ == "__main__":
    unittest.main()
