#!/usr/bin/python3
"""berth size, end to end: one server on each accelerator, what it has now, its best move, wrong input."""

import json
import re
import unittest
from pathlib import Path

from berth_case import Case

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = str(ROOT / "examples/fleet")


class Size(Case):
    def size(self, *arguments, code=0):
        return json.loads(self.berth("size", *arguments, "--json", code=code).out)

    def test_candidates_are_those_of_the_plan(self):
        planned = json.loads(self.berth("plan", EXAMPLE, "--candidates", "--json").out)
        for server, candidates in planned["candidates"].items():
            made = self.size(EXAMPLE, server)
            self.assertEqual(made["version"], 1)
            self.assertEqual(set(made["candidates"]), set(candidates))
            self.assertEqual(made["refused"], planned["refused"].get(server, {}))
            for accelerator, figures in candidates.items():
                found = made["candidates"][accelerator]
                for key in set(figures) & set(found):
                    self.assertEqual(found[key], figures[key], f"{server} {accelerator} {key}")
                self.assertEqual(found["difference"]["cost"], found["cost"] - made["current"]["cost"])
            if planned["allocations"][server]["accelerator"]:
                self.assertIn(made["best"], candidates)

    def test_one_accelerator_for_another_load(self):
        made = self.size(EXAMPLE, "assistant", "--on", "A100", "--load", "1500")
        self.assertEqual(list(made["candidates"]), ["A100"])
        scaled = made["candidates"]["A100"]
        self.assertEqual(made["load"]["arrivalRate"], 1500)
        self.assertEqual(scaled["difference"], {"from": "A100", "to": "A100", "numReplicas": 2, "cost": 370})
        self.assertGreaterEqual(scaled["numReplicas"] * scaled["maxRatePerReplica"] * 1.01, 1500)
        self.assertTrue(made["current"]["saturated"])
        self.assertFalse(scaled["saturated"])
        self.assertFalse(self.size(EXAMPLE, "assistant")["current"]["saturated"])
        self.assertEqual(made, self.size(EXAMPLE, "assistant", "--on", "A100", "--set",
                                         "server.assistant.arrivalRate=1500"))

    def test_so_many_replicas(self):
        made = self.size(EXAMPLE, "assistant", "--on", "H100", "--replicas", "1")
        one = made["candidates"]["H100"]
        self.assertEqual((one["numReplicas"], one["saturated"], one["value"]), (1, False, -158.5))
        self.assertEqual(made["best"], "H100")
        done = self.berth("size", EXAMPLE, "assistant", "--on", "H100", "--replicas", "1", "--load", "1100", code=3)
        self.assertIn(b"assistant: H100: saturated", done.err)
        self.assertRegex(done.out.decode(), r"H100 +1 +\d+ .* saturated\n")

    def test_readable(self):
        text = self.berth("size", EXAMPLE, "assistant", "--load", "1500").out.decode()
        self.assertRegex(text, r"^assistant: chat-8b in class Interactive, 1500 requests a minute, 700 tokens in")
        self.assertRegex(text, r"now +A100 +3 +64 +310\.0 \(TTFT\) .* saturated\n")
        self.assertRegex(text, r"best +H100 +2 +167 .* was 3 × A100, \+65\.00 +182\.50")
        self.assertRegex(text, r" L4 .* ITL not met even when idle\n")
        self.assertIn("now: 3 × A100, which the load saturates\n", text)
        self.assertIn("best: 2 × H100, in place of 3 × A100: replicas -1, cents an hour +65.00, value 182.50\n", text)
        self.assertIn("best: no change\n", self.berth("size", EXAMPLE, "assistant").out.decode())
        idle = self.berth("size", EXAMPLE, "retired").out.decode()
        self.assertRegex(idle, r"A100 +- +- +189\.4 \(ITL\) .* idle, needs none")
        self.assertIn("best: none, because it is idle", idle)

    def test_lengths_by_histogram(self):
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        load = fleet["serverData"]["servers"][0]["currentAlloc"]["load"]
        load["outTokensHistogram"] = [{"tokens": 50, "weight": 4}, {"tokens": 1050, "weight": 1}]
        self.write("fleet.json", json.dumps(fleet))
        made = self.size("fleet.json", "assistant")
        self.assertAlmostEqual(made["load"]["outTokensCv"], 1.6)
        self.assertGreater(self.size(EXAMPLE, "assistant")["candidates"]["H100"]["maxRatePerReplica"],
                           1.1 * made["candidates"]["H100"]["maxRatePerReplica"])
        self.assertIn("lengths by histogram: assistant\n", self.berth("size", "fleet.json", "assistant").out.decode())

    def test_a_kept_accelerator(self):
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        fleet["serverData"]["servers"][0]["keepAccelerator"] = True
        self.write("fleet.json", json.dumps(fleet))
        made = self.size("fleet.json", "assistant", "--load", "1500")
        self.assertEqual((made["best"], made["refused"]["H100"]), ("A100", "another accelerator is kept"))
        self.assertEqual(self.size("fleet.json", "assistant", "--on", "H100")["best"], "H100")

    def test_percentiles_are_simulated_as_in_a_plan(self):
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        fleet["serviceClassData"]["serviceClasses"][0]["modelTargets"][0].update({"slo-ttft-p95": 1000})
        self.write("fleet.json", json.dumps(fleet))
        planned = json.loads(self.berth("plan", "fleet.json", "--candidates", "--json").out)["candidates"]["assistant"]
        made = self.size("fleet.json", "assistant")["candidates"]
        closed = self.size("fleet.json", "assistant", "--percentiles", "closed-form")["candidates"]
        self.assertEqual(made["A100"]["rateMethod"], "simulation")
        self.assertEqual(made["A100"]["maxRatePerReplica"], planned["A100"]["maxRatePerReplica"])
        self.assertEqual(closed["A100"]["rateMethod"], "closed form")
        self.assertNotEqual(made["A100"]["maxRatePerReplica"], closed["A100"]["maxRatePerReplica"])
        self.assertLessEqual(made["A100"]["ttftPercentiles"]["p95"], 1000)
        done = self.berth("size", "fleet.json", "assistant")
        self.assertRegex(done.out.decode(), r"best +A100 +p95 TTFT [\d.]+ / 1000\.0\n")
        self.assertIn(b"maximum rates by simulation", done.out)
        self.assertIn(b"percentiles are left out",
                      self.berth("size", "fleet.json", "assistant", "--model", "reference").err)

    def test_the_reference_model(self):
        made = self.size(EXAMPLE, "assistant", "--model", "reference")
        planned = json.loads(self.berth("plan", EXAMPLE, "--model", "reference", "--candidates", "--json").out)
        self.assertEqual(made["candidates"]["A100"]["numReplicas"],
                         planned["candidates"]["assistant"]["A100"]["numReplicas"])
        self.assertNotIn("rateMethod", made["candidates"]["A100"])

    def test_a_mix_that_the_server_has(self):
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        server = fleet["serverData"]["servers"][0]
        part = {"maxBatch": 64, "load": server["currentAlloc"]["load"]}
        server["currentAlloc"] = {
            "accelerator": "A100", "numReplicas": 3, "cost": 680, **part,
            "parts": [{**part, "accelerator": "A100", "numReplicas": 2, "cost": 370},
                      {**part, "accelerator": "H100", "numReplicas": 1, "cost": 310}]}
        self.write("fleet.json", json.dumps(fleet))
        for load, saturated in ((1600, False), (1700, True)):
            now = self.size("fleet.json", "assistant", "--load", str(load))["current"]
            self.assertEqual(now["saturated"], saturated)
            self.assertAlmostEqual(sum(part["load"]["arrivalRate"] for part in now["parts"]), load)
        self.assertRegex(self.berth("size", "fleet.json", "assistant").out.decode(),
                         r"now +2 × A100 \+ 1 × H100 +3 +64 +- ")

    def test_wrong_input(self):
        for arguments, said in (
                (["asistant"], "no server 'asistant' is known; did you mean 'assistant'?"),
                (["assistant", "--on", "H10"], "no accelerator 'H10' is known; did you mean 'H100'?"),
                (["assistant", "--load", "many"], "--load: expected a number, got 'many'"),
                (["assistant", "--load", "-1"], "--load: server.assistant.arrivalRate"),
                (["assistant", "--replicas", "0"], "--replicas"),
                (["assistant", "--set", "server.assistant"], "--set: expected PATH=VALUE"),
                (["assistant", "--model", "exact"], "--model"),
                (["assistant", "--percentiles", "guessed"], "--percentiles"),
                ([], "SERVER")):
            done = self.berth("size", EXAMPLE, *arguments, code=2)
            self.assertIn(said, self.one_line(done))
            self.assertEqual(done.out, b"")
        self.assertIn("nowhere", self.one_line(self.berth("size", "nowhere", "assistant", code=2)))
        done = self.berth("size", EXAMPLE, "assistant", "--on", "L4", "--json", code=3)
        self.assertIsNone(json.loads(done.out)["best"])
        self.assertTrue(re.search(rb"assistant: L4: ITL not met even when idle\n$", done.err))


if __name__ == "__main__":
    unittest.main()
