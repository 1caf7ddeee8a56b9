#!/usr/bin/python3
"""GPUs of the machine as a person meets them: shared, whole, ill, held by the dead, and taken more of than was
asked for. BERTH_TOPOLOGY stands in for the hardware, or a driver's library of our own."""

import contextlib
import json
import os
import signal
import subprocess
import time
import unittest
from collections import Counter
from pathlib import Path

from berth_case import BERTH, Case, alive, until

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

    def test_place_answers_among_the_free(self):
        run = self.house.start("run", "--cpu", "0.01", "--gpu", 4, "--", "./task")
        until(lambda: self.marks(), "it runs")
        held = [int(uuid[4:]) for uuid in self.marks()[0][1].split(",")]
        self.assertEqual(held, [0, 1, 2, 3])
        placed = self.house.json("place", 2)
        self.assertEqual((placed["devices"], placed["held"]), ([6, 7], held))
        self.assertIn(b"in use     0-3 (--all includes them)\n", self.berth("place", 2).out)
        everything = self.house.json("place", 2, "--all")
        self.assertEqual(everything["devices"], [2, 3])
        self.assertNotIn("held", everything)
        self.assertEqual(self.house.json("place", 2, "--available", "0-3")["devices"], [2, 3])
        self.assertEqual(self.house.json("place", 8, "--topology", "dgx1-v100")["devices"], list(range(8)))
        busy = self.one_line(self.berth("place", 5, code=3))
        self.assertIn("5 devices requested, available: 4-7; in use: 0-3 (see berth machine; --all includes them)", busy)
        self.assertIn("--require: 2 not among the available: 4-7; in use: 0-3",
                      self.one_line(self.berth("place", 2, "--require", "2", code=3)))
        self.assertIn("--available", self.one_line(self.berth("place", 2, "--all", "--available", "0-3", code=2)))
        shares = self.house.start("run", "--cpu", "0.01", "--gpu-mem", "1G", "--", "./task")
        until(lambda: len(self.marks()) == 2, "a part is held too")
        self.assertEqual(len(self.house.json("place", 2)["held"]), 5, "what is shared is given whole to nobody")
        self.go()
        self.assertEqual((run.wait(20), shares.wait(20)), (0, 0))
        self.assertEqual(self.house.json("place", 2)["held"], [])

    def mixed(self):
        self.write("mixed.json", json.dumps({"name": "mixed", "devices": [
            {"index": 0, "uuid": "GPU-h100", "model": "NVIDIA H100 80GB HBM3", "memory": "80GiB"},
            {"index": 1, "uuid": "GPU-t4", "model": "Tesla T4", "memory": "16GiB"}],
            "links": [["X", "SYS"], ["SYS", "X"]]}))
        self.house.environment["BERTH_TOPOLOGY"] = "mixed.json"

    def cards(self, *options):
        """The cards that a command with these options sees."""
        return self.berth("run", *options, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES").out.decode().strip()

    def test_the_smallest_acceptable_card_comes_first(self):
        self.mixed()
        for sizes, card in (("7,31,99", "GPU-t4"), ("31,99", "GPU-h100")):
            self.assertEqual(self.cards("--gpu", 1, "--gpu-slot-sizes", sizes), card)

    def test_whole_cards_of_so_much_memory(self):
        self.mixed()
        self.assertEqual(self.cards("--gpu-mem-min", "10G"), "GPU-t4")
        self.assertEqual(self.cards("--gpu", 1, "--gpu-mem-min", "30G"), "GPU-h100")
        self.assertEqual(self.cards("--gpu-mem", "1G", "--gpu-mem-min", "30G"), "GPU-h100", "a part of such a one")
        self.write("sweep.yaml", "name: s\nrun: sh -c 'echo $CUDA_VISIBLE_DEVICES; test -e go'\n"
                                 "resources: {cpu: 0.01, gpu: 1, gpu_mem_min: 30G}\nparams: {i: [1]}\n")
        self.berth("run", "sweep.yaml", code=1)
        self.go()
        self.berth("retry", "s-1")
        self.assertEqual(self.berth("logs", "s-1").out.count(b"GPU-h100"), 2, "also when it goes on")
        plan = json.loads(self.berth("run", "--json", "--plan", "--gpu", 1, "--gpu-mem-min", "30G", "--", "true").out)
        self.assertEqual(plan["selection"], {"gpu_mem_min": 30 * 10**9})
        self.assertEqual(plan["places"][0]["devices"][0]["uuid"], "GPU-h100")
        self.assertIn(b"gpu 1, cpu 1, gpu_mem_min 27.9 GiB",
                      self.berth("run", "--plan", "--gpu", 1, "--gpu-mem-min", "30G", "--", "true").out)
        for options, why in (
                (["--gpu", 2, "--gpu-mem-min", "30G"], "2 GPUs with a gpu_mem_min of 30G requested; this machine has 1"),
                (["--gpu-mem-min", "99GiB"],
                 "1 GPU with a gpu_mem_min of 99 GiB requested; this machine has none; the largest has 80 GiB")):
            self.assertIn(why, self.one_line(self.berth("run", *options, "--", "true", code=3)))
        held = self.house.start("run", "--gpu-require", "0", "--", "./task", "brief")
        self.assertEqual(held.wait(20), 0)

    def test_a_policy_an_objective_and_required_cards(self):
        self.assertEqual(self.cards("--gpu", 2, "--gpu-policy", "static-dgx1-volta"), "gpu-0,gpu-3")
        self.assertEqual(self.cards("--gpu", 2, "--gpu-policy", "simple"), "gpu-0,gpu-1")
        for options in (["--policy", "best-effort"], ["--objective", "min", "--require", "2,5"], ["--require", "6"]):
            placed = self.house.json("place", 3, *options)["uuids"]
            self.assertEqual(self.cards("--gpu", 3, *(f"--gpu-{text[2:]}" if text.startswith("--") else text
                                                      for text in options)), ",".join(placed))
        self.assertEqual(self.cards("--gpu-require", "gpu-2,4-5"), "gpu-2,gpu-4,gpu-5", "so many go without saying")
        for options, why, code in (
                (["--gpu-require", "8"], "gpu_require: device 8 is not a device of this machine", 3),
                (["--gpu", 3, "--gpu-policy", "static-dgx1-volta"],
                 "3 GPUs requested as a group of gpu_policy static-dgx1-volta; this machine has no such group", 3),
                (["--gpu", 1, "--gpu-require", "0,1"], "gpu_require: 2 devices are more than a gpu of 1", 2),
                (["--gpu-require", "0,gpu-0"], "gpu_require: 0 and gpu-0 are the same device", 3),
                (["--gpu", 0, "--gpu-mem-min", "30G"], "gpu_mem_min: no gpu is asked for", 2),
                (["--gpu", 0, "--gpu-mem", "10G"], "gpu_mem: no gpu is asked for", 2),
                (["--gpu-policy", "simple"], "gpu_policy: no gpu is asked for", 2),
                (["--gpu", 1, "--gpu-policy", "simpel"], "did you mean 'simple'?", 2),
                (["--gpu", 1, "--gpu-objective", "max"], "--gpu-objective: expected sum, min or ring, got 'max'", 2)):
            self.assertIn(why, self.one_line(self.berth("run", *options, "--", "true", code=code)))

    def test_a_required_card_that_is_held_is_waited_for_with_its_reason(self):
        first = self.house.start("run", "--cpu", "0.01", "--gpu-require", "5", "--", "./task")
        until(lambda: self.marks() == [["+", "gpu-5"]], "it runs")
        second = self.house.start("run", "--cpu", "0.01", "--name", "second", "--gpu-require", "5", "--", "./task")
        until(lambda: b"requested device 5 (gpu_require), which is in use, free 7 of 8; used by task-1 1" in
              self.house.run("why", "second-1/1").out, "it says what it waits for")
        group = ("--gpu", 2, "--gpu-policy", "static-dgx1-volta", "--gpu-require", "5")
        plan = json.loads(self.berth("run", "--json", "--plan", *group, "--", "true").out)
        self.assertIn("which is in use", plan["why_no_more"])
        self.go()
        self.assertEqual((first.wait(20), second.wait(20)), (0, 0))
        self.assertEqual([mark for mark in self.marks()], [["+", "gpu-5"], ["-", "gpu-5"]] * 2)

    def test_a_group_of_which_a_card_is_held_is_waited_for_with_its_reason(self):
        self.house.environment["BERTH_TOPOLOGY"] = "dgx1-p100"
        group = ("--cpu", "0.01", "--gpu-policy", "static-dgx1-pascal")
        first = self.house.start("run", "--cpu", "0.01", "--gpu-require", "0,1,4,5", "--", "./task")
        until(lambda: self.marks(), "it runs")
        for options, why in ((("--gpu", 4), "requested 4 as a group of gpu_policy static-dgx1-pascal, which has no such free group here"),
                             (("--gpu", 2, "--gpu-require", 2), "requested 2 with 2 as a group of gpu_policy"
                              " static-dgx1-pascal, which has no such free group here"),
                             (("--gpu", 8), "requested 8, free 4 of 8")):
            last = self.house.start("run", *group, *options, "--", "./task")
            run = until(lambda: [each["id"] for each in self.house.json("runs")["runs"] if each["runner"] == last.pid], why)[0]
            until(lambda: why in self.house.run("why", f"{run}/1").out.decode(), "it says what it waits for")
            if "requested 8" not in why:
                last.send_signal(signal.SIGINT)
                self.assertEqual(last.wait(20), 130)
        for options, why in ((("--gpu", 3), "3 GPUs requested as a group of gpu_policy static-dgx1-pascal; this machine has no such group"),
                             (("--gpu", 2, "--gpu-require", "0,5"),
                              "2 GPUs with 0,5 requested as a group of gpu_policy static-dgx1-pascal; this machine has no such group")):
            self.assertIn(why, self.one_line(self.berth("run", *group, *options, "--", "true", code=3)))
        self.go()
        self.assertEqual((first.wait(20), last.wait(20)), (0, 0))
        self.assertEqual([len(devices.split(",")) for sign, devices in self.marks() if sign == "+"], [4, 8])

    def test_steps_of_a_flow_do_not_get_each_others_cards(self):
        self.mixed()
        said = "{run: 'echo $CUDA_VISIBLE_DEVICES', needs: [%s], resources: {cpu: 0.01, %s}}"
        wants = {"a": "gpu: 1, gpu_slot_sizes: [99]", "b": "gpu: 1, gpu_slot_sizes: [7]", "c": "gpu_mem_min: 30G",
                 "d": "gpu_require: 1", "e": "gpu_mem: 2G, gpu_mem_min: 30G", "f": "gpu_mem: 2G, gpu_require: GPU-t4"}
        steps = [f"  {step}: " + said % (chr(ord(step) - 1) if step > "a" else "", want)
                 for step, want in wants.items()]
        self.write("f.yaml", "name: f\nsteps:\n" + "\n".join(steps) + "\n")
        self.berth("run", "f.yaml")
        logs = self.berth("logs", "f-1").out.decode().split("\n")
        self.assertEqual([line.rpartition(" ")[2] for line in logs if line],
                         ["GPU-h100", "GPU-t4", "GPU-h100", "GPU-t4", "GPU-h100", "GPU-t4"])

    def test_described_cards_are_hidden_by_the_environment_too(self):
        for variable, value, cards in (("CUDA_VISIBLE_DEVICES", "5,2", [2, 5]), ("CUDA_VISIBLE_DEVICES", "", []),
                                       ("CUDA_VISIBLE_DEVICES", "gpu-3", [3]), ("NVIDIA_VISIBLE_DEVICES", "1,4", [1, 4]),
                                       ("NVIDIA_VISIBLE_DEVICES", "gpu-7", [7]), ("NVIDIA_VISIBLE_DEVICES", "void", []),
                                       ("NVIDIA_VISIBLE_DEVICES", "none", []),
                                       ("NVIDIA_VISIBLE_DEVICES", "all", list(range(8)))):
            with self.subTest(variable, value=value):
                shown = json.loads(self.berth("machine", "--json", env={variable: value}).out)
                self.assertEqual([device["index"] for device in shown["devices"]], cards)
        hidden = {"CUDA_VISIBLE_DEVICES": "2"}
        finished = self.berth("run", "--gpu", 1, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES", env=hidden)
        self.assertEqual(finished.out, b"gpu-2\n")
        self.assertEqual(json.loads(self.berth("place", 1, "--json", env=hidden).out)["devices"], [2])
        why = "2 GPUs requested; this machine has 1; hidden by CUDA_VISIBLE_DEVICES or its like: GPU0, GPU1, GPU3"
        self.assertIn(why, self.one_line(self.berth("run", "--gpu", 2, "--", "true", env=hidden, code=3)))

    def test_a_task_without_gpus_sees_none(self):
        self.assertEqual(self.berth("run", "--", "sh", "-c", "echo \"<$CUDA_VISIBLE_DEVICES>\"").out, b"<>\n")
        ours = {"CUDA_VISIBLE_DEVICES": "5"}
        self.assertEqual(self.berth("run", "--", "sh", "-c", "echo \"<$CUDA_VISIBLE_DEVICES>\"", env=ours).out,
                         b"<>\n")

    def test_what_does_not_fit_is_told(self):
        for options, why in (
                (["--gpu", "9"], "9 GPUs requested; this machine has 8"),
                (["--gpu-mem", "40G"], "40G of GPU memory on one GPU requested; the largest GPU of this machine has 29.8 GiB"),
                (["--gpu-slots", "14"], "14 GPU slots on one GPU requested; the largest GPU of this machine has 13"),
                (["--gpu", "1", "--gpu-slot-sizes", "31,99"], "1 GPU with 31 or 99 slots requested; this machine has none")):
            finished = self.berth("run", *options, "--", "true", code=3)
            self.assertIn(why, self.one_line(finished))
        self.write("bad.yaml", "name: b\nrun: true\nresources:\n  gpu_slot_sizes: [0]\n")
        self.assertIn("bad.yaml:4: resources.gpu_slot_sizes[0]: expected 1 to 10000 slots, got 0",
                      self.one_line(self.berth("run", "bad.yaml", code=2)))
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_a_task_of_a_required_card_waits_for_it(self):
        """Both on one worker, which has the card once."""
        self.write("f.yaml", "name: f\nsteps:\n"
                   "  g: {run: 'true', resources: {gpu: 4, gpu_require: 0}}\n"
                   "  c: {needs: [g], run: 'touch $HERE/c; while [ ! -e $HERE/go ]; do sleep 0.05; done',"
                   " foreach: {i: [1, 2]}, resources: {gpu: 1, gpu_require: 0}}\n")
        self.house.environment["HERE"] = str(self.dir)
        run = self.house.start("run", "f.yaml")
        until((self.dir / "c").exists, "one runs")
        time.sleep(1)  # nothing may come of the other meanwhile
        self.write("go", "")
        self.assertEqual(run.wait(60), 0)
        self.assertEqual([task["attempts"] for task in self.house.tasks("f-1")], [1, 1, 1])

    def test_a_resume_takes_over_each_task_by_its_own_choice_of_cards(self):
        """One worker runs a task without cards and one that chooses them: both go on, neither begins again."""
        hold = "echo {i} >> $HERE/began; while [ ! -e $HERE/go ]; do sleep 0.05; done"
        self.write("f.yaml", "name: f\nsteps:\n"
                   "  g: {run: 'true', resources: {cpu: 0.2, gpu: 2, gpu_policy: best-effort}}\n"
                   f"  b: {{needs: [g], run: '{hold.format(i='b')}', resources: {{cpu: 0.1}}}}\n"
                   f"  c: {{needs: [g], run: '{hold.format(i='c')}',"
                   " resources: {cpu: 0.1, gpu: 1, gpu_policy: best-effort}}\n")
        self.house.environment["HERE"] = str(self.dir)
        run = self.house.start("run", "f.yaml")
        until(lambda: (self.dir / "began").exists() and self.house.counts("f-1")["running"] == 2, "both run")
        run.kill()
        run.wait()
        resumed = self.house.start("resume", "f-1")
        time.sleep(1)  # nothing may begin meanwhile
        self.write("go", "")
        self.assertEqual(resumed.wait(60), 0)
        self.assertEqual(sorted((self.dir / "began").read_text().split()), ["b", "c"])
        self.assertEqual([task["attempts"] for task in self.house.tasks("f-1")], [1, 1, 1])

    def test_a_selection_without_cards_is_an_error(self):
        for flag, name in (("--gpu-slot-sizes", "slot_sizes"), ("--gpu-policy", "policy")):
            value = "13" if name == "slot_sizes" else "best-effort"
            finished = self.berth("run", flag, value, "--", "true", code=2)
            self.assertIn(f"gpu_{name}: no gpu is asked for", self.one_line(finished))

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
        def is_watch(pid):
            with contextlib.suppress(OSError):  # one that ends meanwhile is none
                return b"watch-devices" in Path(f"/proc/{pid}/cmdline").read_bytes()

        watches = [pid for pid in self.house.leftovers() if is_watch(pid)]
        self.assertEqual(len(watches), 1)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        until(lambda: not alive(watches[0]), "nobody reads its news")


# Says its number, then waits for a file of its own.
SHARER = """#!/bin/sh
echo $$ > pid.$1.new && mv pid.$1.new pid.$1
while [ ! -e go.$1 ]; do sleep 0.02; done
"""


class Shares(Case):
    """Two trials with 10 GiB each of one card, of which our own library of NVIDIA's tells what each has."""

    def setUp(self):
        super().setUp()
        library = Path(BERTH).resolve().parent.parent / "tests/libfake_nvml_whole.so"
        os.symlink(library, self.dir / "libnvidia-ml.so.1")
        self.have()
        self.house.environment |= {"LD_LIBRARY_PATH": str(self.dir), "CUDA_VISIBLE_DEVICES": "1",
                                   "BERTH_FAKE_NVML_PROCESSES": str(self.dir / "figures"),
                                   "BERTH_GPU_MEM_EVERY": "50ms"}
        self.script("sharer", SHARER)

    def have(self, *lines):
        self.write("figures.new", "".join(line + "\n" for line in lines))
        os.rename(self.dir / "figures.new", self.dir / "figures")

    def start(self, extra=""):
        self.write("s.yaml", "name: s\nrun: ./sharer {i}\nparams: {i: [1, 2]}\n"
                             f"resources: {{cpu: 0.01, gpu_mem: 10GiB}}\n{extra}")
        with (self.dir / "said").open("wb") as said:
            run = self.house.start("run", "s.yaml", err=said)
        until(lambda: (self.dir / "pid.1").exists() and (self.dir / "pid.2").exists(), "both run")
        return run, *((self.dir / f"pid.{i}").read_text().strip() for i in (1, 2))

    def go(self, *tasks):
        for task in tasks:
            self.write(f"go.{task}", "")

    def said(self, text):
        return text in (self.dir / "said").read_text()

    def test_more_than_its_share_is_told_at_once_and_kept(self):
        run, one, two = self.start()
        self.have(f"1 {one} {10 << 30}", f"1 {two} {1 << 30}")
        self.assertFalse(self.said("share"))
        self.have(f"1 {one} {12 << 30}", f"1 {two} {1 << 30}")
        until(lambda: self.said("s-1/1: over its share of GPU memory: 12 GiB of 10 GiB on GPU-00000001"),
              "a note at once")
        self.go(1, 2)
        self.assertEqual(run.wait(20), 0)
        self.assertEqual(self.house.counts("s-1")["done"], 2)
        self.assertIn(b"more GPU memory than its share: 12 GiB of 10 GiB on GPU-00000001",
                      self.berth("why", "s-1/1").out)
        self.assertNotIn(b"share", self.berth("why", "s-1/2").out)
        self.assert_tidy()

    def test_more_than_its_share_ends_it_where_that_is_wanted_and_its_neighbour_lives(self):
        run, one, two = self.start("gpu_mem_over: kill\n")
        child = subprocess.Popen(["sleep", "60"], env={"BERTH_TASK": "s-1/1"})  # that left its group
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.have(f"1 {one} {6 << 30}", f"1 {child.pid} {5 << 30}", f"1 {two} {10 << 30}")
        until(lambda: self.house.tasks("s-1")[0]["state"] == "failed", "it is ended")
        self.assertTrue(alive(int(two)))
        self.go(2)
        self.assertEqual(run.wait(20), 1)
        task, neighbour = self.house.tasks("s-1")
        self.assertEqual(task["cause"], "over its share of GPU memory")
        self.assertEqual(neighbour["state"], "done")
        self.assertIn(b"its processes had 11 GiB of 10 GiB on GPU-00000001", self.berth("why", "s-1/1").out)
        self.assert_tidy()

    def test_a_single_command_is_ended_too(self):
        run = self.house.start("run", "--gpu-mem", "10GiB", "--gpu-mem-over", "kill", "--", "./sharer", "1")
        until(lambda: (self.dir / "pid.1").exists(), "it runs")
        self.have(f"1 {(self.dir / 'pid.1').read_text().strip()} {11 << 30}")
        self.assertNotEqual(run.wait(20), 0)
        self.assertIn("--gpu-mem-over: expected warn or kill, got 'kil'; did you mean 'kill'?",
                      self.one_line(self.berth("run", "--gpu-mem-over", "kil", "--", "true", code=2)))

    def test_a_step_of_a_flow_is_ended_too(self):
        self.write("f.yaml", "name: f\ngpu_mem_over: kill\nsteps:\n"
                   f"  a: {{run: {self.dir}/sharer 1, resources: {{gpu_mem: 1GiB}}}}\n")
        flow = self.house.start("run", "f.yaml", err=subprocess.DEVNULL)
        # Its directory is its own.
        witness = until(lambda: next(self.house.path.rglob("pid.1"), None), "it runs")
        self.have(f"1 {witness.read_text().strip()} {2 << 30}")
        self.assertNotEqual(flow.wait(20), 0)
        self.assertEqual(self.house.tasks("f-1")[0]["cause"], "over its share of GPU memory")

    def test_where_the_driver_tells_nothing_it_is_advisory(self):
        for line, why in ("1 - -", "the driver does not report its processes"), \
                         ("1 {one} -", "the driver does not report the memory of a process"), \
                         ("1 4194300 1", "its processes cannot be seen from this process"):
            with self.subTest(line):
                run, one, two = self.start("gpu_mem_over: kill\n")
                self.have(line.format(one=one), *([f"1 {one} {11 << 30}"] if "4194300" in line else []))
                until(lambda: self.said(f"gpu_mem is advisory only: GPU-00000001: {why}"), "it is said")  # noqa: B023
                self.go(1, 2)
                self.assertEqual(run.wait(20), 0)
                for name in ("pid.1", "pid.2", "go.1", "go.2"):
                    os.remove(self.dir / name)
                self.have()
        self.assertEqual(self.house.counts("s-3")["done"], 2)

    def test_the_watcher_is_there_while_parts_are_held_only(self):
        def watchers():
            found = []
            for pid in self.house.leftovers():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    found += [pid] * (b"watch-figures" in Path(f"/proc/{pid}/cmdline").read_bytes())
            return found
        run, _, _ = self.start()
        found = until(lambda: len(watchers()) == 2 and watchers(), "each agent asks the driver")
        os.kill(found[0], signal.SIGKILL)  # a driver that crashes takes nobody with it
        self.go(1, 2)
        self.assertEqual(run.wait(20), 0)
        self.assertEqual(watchers(), [])
        self.berth("run", "--gpu", 1, "--", "true")
        self.assert_tidy()


if __name__ == "__main__":
    unittest.main()
