#!/usr/bin/python3
"""berth topo and berth place, end to end: machines of the catalogue, files, and what is wrong with either."""

import json
import unittest

from berth_case import Case

CATALOGUE = {"4xrtx3090-nvlink-pairs": 4, "8xl40s": 8, "8xmi250x-gcds": 8, "8xmi300x": 8, "dgx-a100": 8,
             "dgx-h100": 8, "dgx1-p100": 8, "dgx1-v100": 8, "dgx2-v100": 16, "hgx-b200": 8, "hgx-h200": 8}
MATRIX = """\tGPU0\tGPU1\tGPU2\tCPU Affinity
GPU0\t X \tNV4\tSYS\t0-15
GPU1\tNV4\t X \tSYS\t0-15
GPU2\tSYS\tSYS\t X \t16-31
"""
# Two instances of a card that is unwell, and two cards; counted as their driver counts them.
OWN = {"name": "mine",
       "devices": [{"index": 4, "uuid": "GPU-a-1"}, {"index": 5, "uuid": "GPU-b-2"},
                   {"index": 8, "uuid": "8-9", "health": "unwell", "unwell_because": "ECC errors"},
                   {"index": 9, "uuid": "GPU-d-4"}],
       "links": [["X", "PIX", "SYS", "SYS"], ["PIX", "X", "SYS", "SYS"],
                 ["SYS", "SYS", "X", "PIX+NV2"], ["SYS", "SYS", "PIX+NV2", "X"]]}


class Placing(Case):
    def setUp(self):
        super().setUp()
        self.write("printed.txt", MATRIX)
        self.write("own.json", json.dumps(OWN))

    def place(self, count, *options, topology="dgx1-v100"):
        return self.house.json("place", count, "--topology", topology, *options)

    def devices(self, count, *options, **more):
        return self.place(count, *options, **more)["devices"]

    def refused(self, *arguments, code=2, says, **more):
        finished = self.berth(*arguments, code=code, **more)
        self.assertEqual(finished.out, b"", finished)
        self.assertIn(says, self.one_line(finished))


class Topo(Placing):
    def test_every_machine_of_the_catalogue(self):
        for name, count in CATALOGUE.items():
            with self.subTest(name):
                shown = self.house.json("topo", "--topology", name)
                self.assertEqual(shown["version"], 1)
                self.assertEqual(shown["topology"]["name"], name)
                devices = shown["topology"]["devices"]
                self.assertEqual([device["index"] for device in devices], list(range(count)))
                self.assertEqual(len(shown["topology"]["links"]), count)
                text = self.berth("topo", "--topology", name).out.decode()
                self.assertTrue(text.startswith(name + "\n"), text[:100])
                self.assertIn(f"GPU{count - 1}", text)

    def test_islands_are_marked(self):
        shown = self.house.json("topo", "--topology", "4xrtx3090-nvlink-pairs")
        self.assertEqual(shown["islands"], [[0, 2], [1, 3]])
        text = self.berth("topo", "--topology", "4xrtx3090-nvlink-pairs").out.decode()
        rows = [line.split() for line in text.split("\n") if line.startswith("GPU") and "NV4" in line]
        self.assertEqual([row[-1] for row in rows], ["1", "2", "1", "2"])

    def test_files(self):
        self.assertEqual(self.house.json("topo", "--topology", "printed.txt")["islands"], [[0, 1]])
        text = self.berth("topo", "--topology", "own.json").out.decode()
        self.assertIn("ECC errors", text)
        self.assertEqual(self.house.json("topo", "--topology", "own.json")["islands"], [[8, 9]])

    def test_what_it_prints_it_reads(self):
        """As JSON and as text, from a file and from a pipe."""
        for name in ("own.json", "dgx1-v100"):
            printed = self.berth("--json", "topo", "--topology", name).out
            self.write("again.json", printed)
            self.assertEqual(self.berth("--json", "topo", "--topology", "again.json").out, printed)
        self.write("again.txt", self.berth("topo", "--topology", "dgx1-v100").out.partition(b"\n\n")[2])
        self.assertEqual(self.devices(2, "--require", "0", topology="again.txt"), [0, 3])

    def test_partial_files_say_so(self):
        self.write("part.txt", MATRIX.rpartition("GPU2")[0].rpartition("GPU1")[0])
        shown = self.house.json("topo", "--topology", "part.txt")
        self.assertTrue(shown["topology"]["partial"])
        self.assertIn(b"note: no row of GPU1, GPU2", self.berth("topo", "--topology", "part.txt").out)
        self.assertEqual(self.devices(2, topology="part.txt"), [0, 1])

    def test_the_variable_stands_in_for_the_machine(self):
        stand_in = {"BERTH_TOPOLOGY": "dgx2-v100"}
        text = self.berth("topo", env=stand_in).out.decode()
        self.assertIn("GPU15", text)
        placed = json.loads(self.berth("--json", "place", 16, env=stand_in).out)
        self.assertEqual(placed["devices"], list(range(16)))
        placed = json.loads(self.berth("--json", "place", 2, "--topology", "own.json", env=stand_in).out)
        self.assertEqual(placed["uuids"], ["GPU-a-1", "GPU-b-2"])
        placed = json.loads(self.berth("--json", "place", 1, env={"BERTH_TOPOLOGY": "own.json"}).out)
        self.assertEqual(placed["devices"], [9])

    def test_wrong_topologies(self):
        self.refused("topo", "--topology", "dgx1-v10", says="did you mean 'dgx1-v100'?")
        self.refused("topo", "--topology", "none.txt", says="none.txt: No such file")
        self.refused("topo", "--topology", ".", says="directory")
        self.refused("topo", env={"BERTH_TOPOLOGY": "dgx"}, says="BERTH_TOPOLOGY: no machine 'dgx'")
        self.refused("topo", "more", says="more")
        for name, text, says in [
                ("empty.txt", "", "no topology"),
                ("prose.txt", "hello\x1b[31m\n", "prose.txt:1: no topology"),
                ("sides.txt", MATRIX.replace("NV4", "PIX", 1),
                 "sides.txt: GPU0-GPU1: PIX from one side, NV4 from the other"),
                ("twice.txt", MATRIX.replace("GPU2\t", "GPU1\t"), "twice.txt:"),
                ("cell.txt", MATRIX.replace("NV4", "NVX"), "cell.txt:2: "),
                ("bytes.txt", b"\xff\xfe\x00GPU0", "no topology"),
                ("big.txt", "x" * (1 << 20) + "x", "big.txt"),
                ("broken.json", '{"devices": [', "broken.json: not JSON"),
                ("key.json", '{"devises": []}', "did you mean 'devices'?"),
                ("none.json", '{"devices": []}', "no GPU found")]:
            with self.subTest(name):
                self.write(name, text)
                self.refused("topo", "--topology", name, says=says)


class Place(Placing):
    def test_the_document(self):
        self.assertEqual(self.place(2, "--available", "0,2-5", "--require", "4"),
                         {"version": 1, "devices": [0, 4], "uuids": ["gpu-0", "gpu-4"], "policy": "packed",
                          "objective": "sum", "score": 210, "partition_score": None, "exact": True, "bound": 210,
                          "alternative": {"devices": [4, 5], "score": 150},
                          "remaining": {"2": 250, "4": None, "8": None}})
        whole = self.place(8, "--policy", "best-effort")
        self.assertEqual((whole["alternative"], whole["remaining"]), (None, {"2": None, "4": None, "8": None}))
        self.assertEqual(whole["partition_score"], whole["score"])

    def test_as_text(self):
        text = self.berth("place", 4, "--topology", "dgx1-v100", "--policy", "best-effort").out.decode()
        self.assertEqual(text, "devices    0-3\n           gpu-0\n           gpu-1\n           gpu-2\n"
                               "           gpu-3\nscore      1120 (best-effort, sum)\npartition  2240\n"
                               "best other 4-7, score 1120\nthe remaining devices offer 2 devices with score 250\n"
                               "the remaining devices offer 4 devices with score 1120\n")

    def test_known_answers_of_best_effort(self):
        for available, required, count, chosen in [
                ("0,2,4,5", "", 2, [4, 5]), ("0,4,5,6", "", 2, [5, 6]), ("0,1,3", "", 2, [0, 3]),
                ("0,1,4", "", 2, [0, 4]), ("0-7", "4", 1, [4]), ("0-7", "4", 2, [4, 7]),
                ("0-7", "4", 4, [4, 5, 6, 7]), ("0-7", "0,2,4,6", 4, [0, 2, 4, 6])]:
            self.assertEqual(self.devices(count, "--available", available, "--require", required,
                                          "--policy", "best-effort"), chosen)

    def test_every_policy_and_objective(self):
        for policy in ("packed", "best-effort", "simple", "static-dgx1-pascal", "static-dgx1-volta", "static-dgx2"):
            for objective in ("sum", "min", "ring"):
                placed = self.place(4, "--policy", policy, "--objective", objective)
                self.assertEqual((placed["policy"], placed["objective"]), (policy, objective))
                self.assertEqual(placed["devices"], [0, 1, 2, 3])
                self.assertEqual(placed["score"], {"sum": 1120, "min": 130, "ring": 150}[objective])
                self.assertEqual(placed["partition_score"] is None, policy != "best-effort")

    def test_devices_by_index_and_uuid_in_any_order(self):
        for given in ("4,9", "GPU-d-4, GPU-a-1,4", "4,9,9,4,", "9,4-4"):
            self.assertEqual(self.devices(2, "--require", "9,GPU-d-4", "--available", given, topology="own.json"),
                             [4, 9])
        self.assertEqual(self.place(1, "--require", "GPU-b-2,5", topology="own.json")["uuids"], ["GPU-b-2"])
        self.assertEqual(self.devices(3, "--available", "5,4,3,2,1"), self.devices(3, "--available", "1-5"))

    def test_a_uuid_that_looks_like_a_range(self):
        self.assertEqual(self.devices(1, "--available", "8-9", topology="own.json"), [8])

    def test_the_unwell_are_taken_only_by_name(self):
        self.assertEqual(self.devices(3, topology="own.json"), [4, 5, 9])
        self.refused("place", 4, "--topology", "own.json", code=3,
                     says="4 devices requested, available: 4-5,9; the others are not healthy, see berth topo")
        self.refused("place", 1, "--topology", "own.json", "--require", "8-9",
                     says="--require: 8 not among the available: 4-5,9")
        self.assertEqual(self.devices(2, "--available", "8,9", topology="own.json"), [8, 9])

    def test_wrong_questions(self):
        for code, says, *arguments in [
                (2, "K is required"),
                (2, "expected how many devices, 1 to 64, got '0'", 0),
                (2, "got '-1'", -1),
                (2, "got '65'", 65),
                (2, "got '2.5'", 2.5),
                (2, "got '99999999999999999999'", 99999999999999999999),
                (2, "got ''", ""),
                (3, "9 devices requested, dgx1-v100 has 8", 9),
                (3, "3 devices requested, available: 1,7", 3, "--available", "7,1"),
                (3, "1 devices requested, available: none", 1, "--available", ""),
                (2, "no device '8' in dgx1-v100, which has 0-7", 1, "--available", "5-8"),
                (2, "no device 'GPU0'", 1, "--available", "GPU0"),
                (2, "no device '0 1'", 1, "--require", "0 1"),
                (2, "no device '-1'", 1, "--available", "-1"),
                (2, "no device 'a", 1, "--require", "a\x1bc"),
                (2, "expected a range such as 2-5, got '5-2'", 1, "--available", "5-2"),
                (2, "got '0-99999999'", 1, "--available", "0-99999999"),
                (2, "--require: 3 not among the available: 1-2", 2, "--available", "1,2", "--require", "3"),
                (2, "--require: 1-3 are more than 2", 2, "--require", "1,2,3"),
                (2, "--policy: expected packed,", 2, "--policy", "bestEffort"),
                (2, "--objective: expected sum, min or ring, got 'avg'", 2, "--objective", "avg"),
                (2, "static-dgx1-volta gives 1, 2, 4, 8 devices, not 3", 3, "--policy", "static-dgx1-volta"),
                (3, "no group of 2 that is wholly available", 2, "--policy", "static-dgx1-volta", "--available", "0,1"),
                (2, "unexpected argument '3'", 2, 3),
                (2, "did you mean '--policy'", 2, "--polcy", "packed")]:
            with self.subTest(says):
                self.refused("place", *arguments, "--topology", "dgx1-v100", code=code, says=says)

    def test_sixty_four_devices(self):
        links = [["X" if a == b else "BOARD" if a // 8 == b // 8 else "SYS" for b in range(64)] for a in range(64)]
        self.write("many.json", json.dumps({"devices": [{"index": i} for i in range(64)], "links": links}))
        for policy in ("packed", "best-effort"):
            placed = self.place(8, "--require", "43", "--policy", policy, topology="many.json")
            self.assertEqual((placed["devices"], placed["exact"]), (list(range(40, 48)), True))
            self.assertGreaterEqual(placed["bound"], placed["score"])
        self.write("more.json", json.dumps({"devices": [{"index": i} for i in range(65)]}))
        self.refused("place", 8, "--topology", "more.json", says="65 devices, at most 64")


if __name__ == "__main__":
    unittest.main()
