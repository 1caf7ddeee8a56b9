#!/usr/bin/python3
"""berth plan, end to end: documents and directories, what-if, sweeps, wrong input."""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

from berth_case import Case

ROOT = Path(__file__).resolve().parent.parent
FLEETS = ROOT / "tests/data/fleets"  # with the figures that are expected
EXAMPLE = str(ROOT / "examples/fleet")


def near(a, b):
    return abs(a - b) <= 2e-3 * max(abs(a), abs(b), 1e-9)


class Plan(Case):
    def plan(self, *arguments):
        return json.loads(self.berth("plan", *arguments, "--json").out)

    def test_reference_figures_of_a_directory(self):
        for fleet in ("f1", "f2", "f3", "f9"):
            expected = json.loads((FLEETS / fleet / "expected.json").read_text())
            made = self.plan(str(FLEETS / fleet), "--model", "reference", "--candidates")
            self.assertEqual(made["version"], 1)
            for priority, count in expected["optimal"]["unserved_by_priority"].items():
                self.assertEqual(made["proof"]["unserved_by_priority"][priority], count)
                self.assertEqual(made["proof"]["unserved_bound_by_priority"][priority], count)
            self.assertTrue(near(made["proof"]["value"], expected["optimal"]["value"]))
            self.assertLess(made["proof"]["gap"], 1e-6)
            for server, accelerators in expected["candidates"].items():
                for accelerator, figures in accelerators.items():
                    found = made["candidates"][server]["" if accelerator == "-" else accelerator]
                    for key, figure in figures.items():
                        self.assertTrue(near(found[key], figure), f"{fleet} {server} {accelerator} {key}")
            self.assertEqual(set(made["reasons"]), set(made["candidates"]))

    def test_flags_beat_the_document(self):
        unlimited = self.plan(str(FLEETS / "f1"), "--model", "reference", "--solver", "unlimited")
        expected = json.loads((FLEETS / "f1/expected.json").read_text())["unlimited"]
        for server, (accelerator, replicas, cost, *_) in expected.items():
            found = unlimited["allocations"][server]
            self.assertEqual((found["accelerator"], found["numReplicas"]), (accelerator, replicas))
            self.assertTrue(near(found["cost"], cost))
        greedy = self.plan(str(FLEETS / "f2"), "--model", "reference", "--solver", "greedy",
                           "--saturation", "priorityexhaustive", "--delayed-best-effort")
        expected = json.loads((FLEETS / "f2/expected.json").read_text())["greedy_delayed"]
        for server, (accelerator, replicas, *_) in expected["PriorityExhaustive"].items():
            found = greedy["allocations"][server]
            self.assertEqual((found["accelerator"], found["numReplicas"]), (accelerator, replicas))

    def test_a_power_budget(self):
        made = self.plan(EXAMPLE, "--power-budget", "4.5kW")
        self.assertEqual(made["power"]["limit"], 4500)
        self.assertLessEqual(made["watts"], 4500)
        self.assertIn("power", [reason["status"] for reason in made["reasons"].values()])
        self.assertEqual(made["power"], self.plan(EXAMPLE, "--set", "optimizer.powerBudget=4500")["power"])
        self.assertIn("of 4500 W by the power curves", self.berth("plan", EXAMPLE, "--power-budget", "4500").out.decode())
        for wrong in (["--power-budget", "much"], ["--power-budget", "1kW", "--heterogeneous"],
                      ["--power-budget", "1kW", "--solver", "greedy"]):
            self.assertEqual(self.berth("plan", EXAMPLE, *wrong, code=2).code, 2)

    def test_kinds_of_purchase(self):
        document = json.loads((ROOT / "examples/fleet/fleet.json").read_text())
        for entry in document["capacityData"]["count"]:
            if entry["type"] == "L4":
                entry["purchase"] = [{"kind": "reserved", "count": 4, "cost": 30},
                                     {"kind": "spot", "count": entry["count"] - 4, "cost": 20}]
        for server in document["serverData"]["servers"]:
            server["spot"] = server["name"] == "summaries"
        path = self.dir / "purchase.json"
        path.write_text(json.dumps(document))
        made = self.plan(str(path))
        self.assertTrue(made["allocations"]["summaries"]["spot"])
        [total] = [t for t in made["totals"] if t["type"] == "L4"]
        self.assertEqual(total["cost"], sum(kind["cost"] for kind in total["purchase"]))
        self.assertEqual(total["purchase"][0]["cost"], 120)
        self.assertIn("L4 (spot)", self.berth("plan", str(path)).out.decode())
        for wrong in (["--solver", "greedy"], ["--heterogeneous"], ["--power-budget", "1kW"], ["--set", "capacity.L4=3"]):
            self.assertEqual(self.berth("plan", str(path), *wrong, code=2).code, 2)

    def test_prefill_and_decode_apart(self):
        document = json.loads((ROOT / "examples/fleet/fleet.json").read_text())
        [target] = [target for service in document["serviceClassData"]["serviceClasses"] if service["name"] == "Interactive"
                    for target in service["modelTargets"] if target["model"] == "chat-8b"]
        target["slo-itl-p99"] = 25  # a prompt in the way takes longer
        path = self.dir / "apart.json"
        path.write_text(json.dumps(document))
        together, apart = self.plan(str(path)), self.plan(str(path), "--disaggregated", "--candidates")
        self.assertEqual(together["reasons"]["assistant"]["status"], "capacity")
        split = apart["allocations"]["assistant"]
        self.assertEqual([part["role"] for part in split["parts"]], ["prefill", "decode"])
        self.assertEqual(sum(part["numReplicas"] for part in split["parts"]), split["numReplicas"])
        self.assertIn(split["parts"][0]["accelerator"], apart["pools"]["assistant"]["prefill"])
        text = self.berth("plan", str(path), "--disaggregated").out.decode()
        self.assertRegex(text, r"assistant +\S+ prefill \+ \S+ decode +\d+ \+ \d+ ")
        # What is planned is attained, and is read again as what a server has.
        [server] = [server for server in document["serverData"]["servers"] if server["name"] == "assistant"]
        server["currentAlloc"] = split
        path.write_text(json.dumps(document))
        lines = self.berth("simulate", str(path), "--current", "--server", "assistant").out.decode().splitlines()
        self.assertRegex(lines[2], r"ITL .* / 25.0 met")
        self.assertEqual(self.plan(str(path), "--disaggregated")["allocations"]["assistant"]["numReplicas"],
                         split["numReplicas"])
        self.assertEqual(json.loads(self.berth("size", str(path), "assistant", "--json").out)["current"]["saturated"], False)
        for wrong in (["--model", "reference"], ["--power-budget", "1kW"], ["--profile", "day.csv"]):
            self.assertEqual(self.berth("plan", str(path), "--disaggregated", *wrong, code=2).code, 2)

    def test_readable(self):
        text = self.berth("plan", EXAMPLE).out.decode()
        self.assertRegex(text, r"assistant +A100 +3 ")
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertRegex(text, r"\nCost: \d+\.\d\d cents an hour \([+-]\d+\.\d\d\)\. Servers: 2 started, 1 changed\.\n")
        self.assertIn("No plan is better", text)
        self.assertRegex(self.berth("plan", EXAMPLE, "--wide").out.decode(), r"assistant +Interactive +A100 +3 +60 ")
        text = self.berth("plan", EXAMPLE, "--candidates").out.decode()
        self.assertRegex(text, r"assistant +L4 .*ITL not met even when idle")
        self.assertRegex(text, r"retired +H100 .*idle, needs none")

    def test_candidates_without_capacity(self):
        scarce = ["plan", EXAMPLE, "--candidates", "--set", "capacity.A100=0", "--set", "capacity.H100=1"]
        text = self.berth(*scarce).out.decode()
        self.assertRegex(text, r"assistant +A100 .* no capacity: A100 has 0 units\n")
        self.assertRegex(text, r"assistant +H100 .* needs \d+ units of H100; 1 available\n")
        self.assertRegex(self.berth("plan", EXAMPLE, "--candidates").out.decode(), r"assistant +A100 .* usable; \w+ binds\n")
        self.assertNotIn("no capacity", self.berth(*scarce, "--solver", "unlimited").out.decode())
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        fleet["capacityData"] = {"count": [{"type": "H100", "count": 8, "purchase": [
            {"kind": "reserved", "count": 1, "cost": 186}, {"kind": "spot", "count": 7, "cost": 110}]}]}
        self.write("fleet.json", json.dumps(fleet))
        text = self.berth("plan", "fleet.json", "--candidates").out.decode()
        self.assertRegex(text, r"assistant +A100 .* no capacity: no count for type A100\n")
        self.assertRegex(text, r"assistant +H100 .* needs \d+ units of H100; 1 available without spot\n")

    def test_missing_limits_are_named(self):
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        self.assertEqual(self.berth("plan", EXAMPLE).err, b"")
        for entry in fleet["modelData"]["models"]:
            if entry["name"] == "code-34b":
                del entry["maxBatchSize"]
            elif entry["acc"] == "L4":
                del entry["atTokens"]
        self.write("fleet.json", json.dumps(fleet))
        for command in (["plan"], ["plan", "--json"], ["plan", "--candidates"], ["simulate", "--requests", "1000"]):
            notes = self.berth(*command, "fleet.json").err.decode()
            self.assertIn("note: code-34b on A100, code-34b on H100: maxBatchSize is missing. A plan assumes that a replica "
                          "serves one request at a time", notes)
            self.assertIn("note: chat-8b on L4: atTokens is missing. A plan assumes that any number of tokens fits", notes)
        notes = self.berth("size", "fleet.json", "reviewer").err.decode()
        self.assertIn("code-34b on A100", notes)
        self.assertNotIn("chat-8b", notes)

    def test_what_if(self):
        made = self.plan(EXAMPLE, "--set", "capacity.H100=4", "--set", "server.retired.arrivalRate=1")
        limits = {total["type"]: (total["count"], total["limit"]) for total in made["totals"]}
        self.assertEqual(limits["H100"][1], 4)
        self.assertLessEqual(limits["H100"][0], 4)
        self.assertIn("no capacity", json.dumps(made["reasons"]))
        steps = self.plan(EXAMPLE, "--sweep", "capacity.H100=0..8..4")["sweep"]
        self.assertEqual([step["at"] for step in steps], [0, 4, 8])
        unserved = [sum(step["unserved_by_priority"].values()) for step in steps]
        self.assertEqual(unserved, sorted(unserved, reverse=True))
        self.assertEqual(len(self.berth("plan", EXAMPLE, "--sweep", "capacity.H100=0..8..4").out.splitlines()), 4)

    def test_money_is_money(self):
        """What a reason calls saved is what the bill falls by; value has the transitions in it."""
        scarce = [EXAMPLE, "--set", "server.summaries.arrivalRate=170"]
        text = self.berth("plan", *scarce, "--wide").out.decode()
        saved = float(re.search(r"1 × H100 would save (\S+) \(value \S+ less\)", text)[1])
        steps = self.plan(*scarce, "--sweep", "capacity.H100=8..9..1")["sweep"]
        self.assertAlmostEqual(steps[0]["cost"] - steps[1]["cost"], saved)
        mixed = self.plan(*scarce, "--heterogeneous", "--candidates")
        reasons = {name: re.search(r"(\d+) × (\S+) alone would cost (\S+) more \(value \S+ more\)", reason["text"])
                   for name, reason in mixed["reasons"].items()}
        server, found = next((server, found) for server, found in reasons.items() if found)
        alone = mixed["candidates"][server][found[2]]
        self.assertEqual(alone["numReplicas"], int(found[1]))
        self.assertAlmostEqual(alone["cost"] - mixed["allocations"][server]["cost"], float(found[3]))

    def test_percentiles(self):
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        target = fleet["serviceClassData"]["serviceClasses"][0]["modelTargets"][0]
        load = fleet["serverData"]["servers"][0]["currentAlloc"]["load"]

        def replan():
            self.write("fleet.json", json.dumps(fleet))
            return self.plan("fleet.json")["allocations"]["assistant"]

        before = replan()
        self.assertNotIn("ttftPercentiles", before, "nobody asks for them")
        target.update({"slo-ttft-p95": 1000, "slo-itl-p99": 150})
        made = replan()
        self.assertGreater(made["cost"], before["cost"])
        self.assertEqual(made["method"], "closed form")
        self.assertLessEqual(made["ttftPercentiles"]["p95"], 1000)
        self.assertLessEqual(made["itlPercentiles"]["p99"], 150)
        for figures in (made["ttftPercentiles"], made["itlPercentiles"]):
            self.assertEqual(list(figures.values()), sorted(figures.values()))
        load["outTokensCv"] = 1.5
        self.assertGreater(replan()["cost"], before["cost"])
        done = self.berth("plan", "fleet.json")
        self.assertRegex(done.out.decode(), r"assistant +\S+ +p95 TTFT [\d.]+ / 1000.0, p99 ITL [\d.]+ / 150.0")
        self.assertEqual(done.err, b"")
        self.assertIn(b"percentiles are left out", self.berth("plan", "fleet.json", "--model", "reference").err)
        fleet["serverData"]["servers"][0]["currentAlloc"] = made  # is read as it is written
        self.write("fleet.json", json.dumps(fleet))
        self.assertEqual(self.berth("plan", "fleet.json").err, b"")
        target["slo-ttft-p95"] = 1
        self.write("fleet.json", json.dumps(fleet))
        self.assertIn("p95 TTFT not met even when idle", self.berth("plan", "fleet.json").out.decode())

    def test_histograms_of_lengths(self):
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        target = fleet["serviceClassData"]["serviceClasses"][0]["modelTargets"][0]
        target.update({"slo-itl": 200, "slo-ttft": 0, "slo-ttft-p95": 300})
        fleet["optimizerData"] = {"optimizer": {"unlimited": True}}
        load = fleet["serverData"]["servers"][0]["currentAlloc"]["load"]
        load["arrivalRate"] = 300

        def plan(*more):
            self.write("fleet.json", json.dumps(fleet))
            return self.plan("fleet.json", *more)["allocations"]["assistant"]

        bins = [{"tokens": 200, "weight": 24}, {"tokens": 12700, "weight": 1}]
        load.update(avgInTokens=700, inTokensCv=3.5)
        by_variation = plan()
        reference = plan("--model", "reference")
        load["inTokensHistogram"] = bins
        by_bins = plan()
        self.assertGreater(by_bins["cost"], 1.5 * by_variation["cost"], "prompts are longer than those of the same Cv")
        self.assertEqual(by_bins["load"]["inTokensHistogram"], bins)
        self.assertEqual(plan("--model", "reference")["cost"], reference["cost"])
        done = self.berth("plan", "fleet.json")
        self.assertEqual(done.err, b"")
        self.assertIn("\nlengths by histogram: assistant\n", done.out.decode())
        self.assertNotIn(b"histogram", self.berth("plan", "fleet.json", "--model", "reference").out)
        longer = plan("--set", "server.assistant.avgInTokens=1400")["load"]
        self.assertEqual([b["tokens"] for b in longer["inTokensHistogram"]], [400, 25400])
        other = plan("--set", "server.assistant.inTokensCv=1")["load"]
        self.assertNotIn("inTokensHistogram", other, "a variation takes its place")
        fleet["serverData"]["servers"][0]["currentAlloc"] = by_bins  # is read as it is written
        self.assertEqual(plan()["load"], by_bins["load"])
        load = fleet["serverData"]["servers"][0]["currentAlloc"]["load"]
        load["avgInTokens"] = 900
        self.write("fleet.json", json.dumps(fleet))
        self.assertIn(b"avgInTokens: 900, the mean of inTokensHistogram is 700\n",
                      self.berth("plan", "fleet.json", code=2).err)

    def test_unserved_may_fail(self):
        self.berth("plan", EXAMPLE, "--fail-unserved")
        none = [EXAMPLE, "--set", "capacity.H100=0", "--fail-unserved"]
        self.assertIn(b"no capacity", self.berth("plan", *none, code=1).out)
        self.berth("plan", *none, "--json", code=1)
        self.berth("plan", *none, "--candidates", code=1)
        self.berth("plan", EXAMPLE, "--fail-unserved", "--sweep", "capacity.H100=0..8..8", code=1)

    def test_candidates_as_json_tell_of_the_refused(self):
        made = self.plan(EXAMPLE, "--candidates")
        self.assertEqual(made["refused"]["assistant"]["L4"], "ITL not met even when idle")
        self.assertNotIn("L4", made["candidates"]["assistant"])
        chosen = made["candidates"]["assistant"]["A100"]
        self.assertEqual(chosen["binds"], made["reasons"]["assistant"]["binds"])
        load = 900 / chosen["numReplicas"]
        self.assertLessEqual(load, chosen["maxRatePerReplica"])
        self.assertGreater(1.5 * load, chosen["maxRatePerReplica"])

    def test_watts_follow_the_power_curve(self):
        made = self.plan(EXAMPLE, "--candidates")
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        power = next(a["power"] for a in fleet["acceleratorData"]["accelerators"] if a["name"] == "A100")
        chosen = made["candidates"]["assistant"]["A100"]
        use = chosen["utilisation"]
        low = use <= power["midUtil"]
        (x0, y0), (x1, y1) = (((0, power["idle"]), (power["midUtil"], power["midPower"])) if low else
                              ((power["midUtil"], power["midPower"]), (1, power["full"])))
        watts = chosen["numReplicas"] * (y0 + (y1 - y0) * (use - x0) / (x1 - x0))
        self.assertAlmostEqual(chosen["watts"], watts)
        self.assertAlmostEqual(made["allocations"]["assistant"]["watts"], watts)
        self.assertAlmostEqual(made["watts"], sum(a["watts"] for a in made["allocations"].values()))
        self.assertRegex(self.berth("plan", EXAMPLE).out.decode(), r"Power: \d+ W by the power curves")

    def test_a_directory_may_repeat_itself(self):
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        self.write("fleet/all.json", json.dumps(fleet))
        for key in ("acceleratorData", "modelData", "serverData"):
            self.write(f"fleet/{key}.json", json.dumps({key: fleet[key]}))
        self.assertEqual(self.plan("fleet"), self.plan(EXAMPLE))
        fleet["acceleratorData"]["accelerators"][0]["cost"] += 1
        self.write("fleet/b.json", json.dumps({"acceleratorData": fleet["acceleratorData"]}))
        self.assertIn("'L4' is not the same", self.one_line(self.berth("plan", "fleet", code=2)))

    def test_names_that_nothing_bears_are_noted(self):
        done = self.berth("plan", EXAMPLE, "--set", "capacity.H1000=4")
        self.assertEqual(done.err.decode(), "note: a capacity of 'H1000', which is not the type of any accelerator\n")
        done = self.berth("plan", EXAMPLE, "--sweep", "capacity.H1000=1..2")
        self.assertIn(b"'H1000'", done.err)
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        fleet["modelData"]["models"].append({"name": "chat-8b", "acc": "L40"})
        fleet["serverData"]["servers"][0]["currentAlloc"]["accelerator"] = "A10"
        self.write("fleet.json", json.dumps(fleet))
        notes = self.berth("plan", "fleet.json").err.decode()
        self.assertIn("performance data on 'L40'", notes)
        self.assertIn("has 'A10' now", notes)

    def test_mixes(self):
        few = [EXAMPLE, "--set", "capacity.A100=1", "--set", "capacity.H100=5"]
        alone = self.plan(*few)
        made = self.plan(*few, "--heterogeneous")
        self.assertEqual(sum(alone["proof"]["unserved_by_priority"].values()), 2)
        self.assertEqual(sum(made["proof"]["unserved_by_priority"].values()), 1)
        mixes = {name: a for name, a in made["allocations"].items() if "parts" in a}
        self.assertEqual(list(mixes), ["assistant"])
        mix = mixes["assistant"]
        for key in ("numReplicas", "cost"):
            self.assertAlmostEqual(mix[key], sum(part[key] for part in mix["parts"]))
        self.assertAlmostEqual(900, sum(part["load"]["arrivalRate"] for part in mix["parts"]))
        text = self.berth("plan", *few, "--heterogeneous").out.decode()
        self.assertRegex(text, r"assistant +A100 \+ H100 +1 \+ 1 ")
        # The document says it too; what was planned may stand there, and is then no change.
        fleet = json.loads(Path(EXAMPLE, "fleet.json").read_text())
        fleet["capacityData"] = {"count": [{"type": t["type"], "count": t["limit"]} for t in made["totals"]]}
        fleet["optimizerData"] = {"optimizer": {"heterogeneous": True}}
        self.write("fleet.json", json.dumps(fleet))
        self.assertEqual(self.plan("fleet.json")["allocations"], made["allocations"])
        for server in fleet["serverData"]["servers"]:
            server["currentAlloc"].update(made["allocations"].get(server["name"], {}))
        self.write("fleet.json", json.dumps(fleet))
        again = self.plan("fleet.json")
        self.assertEqual(again["allocations"]["assistant"], mix)
        fleet["serverData"]["servers"][0]["currentAlloc"]["parts"][0]["numReplicas"] += 1
        self.write("fleet.json", json.dumps(fleet))
        done = self.berth("plan", "fleet.json", code=2)
        self.assertIn(b"currentAlloc: numReplicas: 2, the parts have 3", done.err)
        done = self.berth("plan", *few, "--heterogeneous", "--solver", "greedy")
        self.assertIn(b"greedy solver gives each server one accelerator", done.err)

    def test_wrong_input(self):
        self.write("bad.json", '{"servers": [{"name": "S", "maxBatchSize": -3}]}')
        done = self.berth("plan", "bad.json", code=2)
        self.assertIn(b"servers[0].maxBatchSize: expected at least 0, got -3", done.err)
        for arguments in (["nowhere.json"], [EXAMPLE, "--model", "best"], [EXAMPLE, "--set", "capacity"],
                          [EXAMPLE, "--set", "capacity.H100=x"], [EXAMPLE, "--set", "server.none.arrivalRate=3"],
                          [EXAMPLE, "--sweep", "capacity.H100=8..2..1"], [EXAMPLE, "--time-limit", "soon"], []):
            done = self.berth("plan", *arguments, code=2)
            self.assertEqual(done.out, b"", arguments)
            self.assertEqual(done.err.count(b"\n"), 1, done.err)

    def test_a_day(self):
        day = ["--profile", str(Path(EXAMPLE, "day.csv")), "--startup", "3m", "--min-up", "2h", "--transition-cost", "5m"]
        made = self.plan(EXAMPLE, *day)
        plans = made["plans"]
        self.assertEqual(len(made["windows"]), 24)
        self.assertLess(plans["day"]["cost"], plans["greedy"]["cost"])
        self.assertLess(plans["greedy"]["cost"], plans["static"]["cost"])
        self.assertLessEqual(made["bound"], plans["day"]["cost"])
        self.assertGreater(made["bound"], 0.99 * plans["day"]["cost"])
        self.assertAlmostEqual(made["gap"], 1 - made["bound"] / plans["day"]["cost"])
        self.assertFalse(made["stopped"])
        self.assertEqual((plans["day"]["flaps"], plans["static"]["changes"], made["unservable"]), (0, 0, []))
        for plan in plans.values():
            self.assertAlmostEqual(plan["cost"], sum(window["cost"] for window in plan["windows"]))
        # In each window it is what a plan of that window alone needs, or more of the same.
        for at in (4, 15):
            loads = made["windows"][at]["loads"]
            alone = self.plan(EXAMPLE, "--candidates",
                              *(word for name, load in loads.items()
                                for word in ("--set", f"server.{name}.arrivalRate={load['arrivalRate']}")))
            for name, a in plans["day"]["windows"][at]["allocations"].items():
                self.assertEqual(a["numReplicas"] > 0, loads[name]["arrivalRate"] > 0, name)
                if a["numReplicas"] > 0:
                    self.assertGreaterEqual(a["numReplicas"], alone["candidates"][name][a["accelerator"]]["numReplicas"])
        text = self.berth("plan", EXAMPLE, *day).out.decode()
        self.assertRegex(text, r"window +req/min +static +greedy +whole day +assistant +expert +summaries")
        self.assertRegex(text, r"15:00 +1125\.0 +\d+\.00 .* 2 × 2xH100")
        self.assertRegex(text, r"assistant +[▁▂▃▄▅▆▇█]{24} +2 +3 +3 × A100")
        self.assertRegex(text, r"whole day +\d+\.\d\d +1\d\.\d % ")
        short = self.berth("plan", EXAMPLE, "--profile", str(Path(EXAMPLE, "day.csv")), "--startup", "90m").out.decode()
        self.assertIn("begins 1800 s short", short)

    def test_a_day_without_room(self):
        day = [EXAMPLE, "--profile", str(Path(EXAMPLE, "day.csv")), "--set", "capacity.H100=2"]
        made = json.loads(self.berth("plan", *day, "--json", "--fail-unserved", code=1).out)
        self.assertGreater(made["plans"]["day"]["unserved_hours"], 0)
        for window in made["plans"]["day"]["windows"]:
            used = sum(a["numReplicas"] * (1 if a["accelerator"] == "H100" and name != "reviewer" else 2)
                       for name, a in window["allocations"].items() if "H100" in a["accelerator"])
            self.assertLessEqual(used, 2)
        self.assertIn("capacity is short", self.berth("plan", *day).out.decode())

    def test_a_day_that_nothing_serves(self):
        self.write("p.csv", "time,server,arrivalRate,avgInTokens\n00:00,assistant,900,700\n01:00,assistant,900,1e6\n"
                            "02:00,assistant,900,700\n03:00,assistant,300,1e6\n04:00,assistant,300,1e6\n")
        day = [EXAMPLE, "--profile", "p.csv"]
        made = json.loads(self.berth("plan", *day, "--json", "--fail-unserved", code=1).out)
        self.assertEqual([(u["window"], u["server"]) for u in made["unservable"]],
                         [(1, "assistant"), (3, "assistant"), (4, "assistant")])
        self.assertEqual(made["unservable_hours"], 3)
        for plan in made["plans"].values():
            self.assertEqual(plan["unserved_hours"], 3)
            self.assertEqual(len({window["cost"] for window in plan["windows"]}), 1, "nothing is saved")
        done = self.berth("plan", *day)
        self.assertRegex(done.out.decode(), r"\nassistant +3 of 5 +01:00-02:00, 03:00-05:00 +A100, H100, L4: its memory is "
                                            r"too small for one request\n.* 3\.00 server-hours")
        self.assertNotIn("capacity is short", done.out.decode())
        self.assertEqual(done.err, b"")

    def test_a_day_of_a_trace(self):
        rows = [f"{second},{400 + second % 7},100" for second in range(0, 1800)]
        rows += [f"{1800 + i / 60:.3f},400,100" for i in range(0, 60 * 1800)]
        self.write("trace.csv", "seconds,in_tokens,out_tokens\n" + "\n".join(rows) + "\n")
        made = self.plan(EXAMPLE, "--trace", "trace.csv", "--server", "assistant", "--solver", "unlimited")
        rates = [window["loads"]["assistant"]["arrivalRate"] for window in made["windows"]]
        self.assertEqual([round(rate) for rate in rates], [60, 60, 60, 3600, 3600, 3600])
        self.assertEqual(made["windows"][5]["loads"]["expert"]["arrivalRate"], 60)
        self.assertEqual(made["plans"]["day"]["changes"], 1)
        for at in (1, 4):  # every second, and every sixtieth of one: there is no variation
            load = made["windows"][at]["loads"]["assistant"]
            self.assertLess(load["arrivalCv"], 1)
            self.assertEqual(load["outTokensCv"], 0)
            self.assertEqual(load["inTokensCv"] > 0, at == 1)
        self.assertEqual(made["windows"][5]["loads"]["expert"]["arrivalCv"], 1)
        made = self.plan(EXAMPLE, "--trace", "trace.csv", "--window", "30m")
        self.assertAlmostEqual(made["windows"][0]["loads"]["assistant"]["arrivalRate"], 60 * 900 / 1230, 3)

    def test_a_day_is_replayed(self):
        """Two requests a second, and thirty in five minutes of them, which an hour's mean hides."""
        rows = [f"{i / 2},400,100" for i in range(2 * 1500)] + [f"{1500 + i / 30:.3f},400,100" for i in range(30 * 300)]
        rows += [f"{1800 + i / 2},400,100" for i in range(2 * 1800 + 1)]
        self.write("trace.csv", "seconds,in_tokens,out_tokens\n" + "\n".join(rows) + "\n")
        day = [EXAMPLE, "--trace", "trace.csv", "--server", "assistant", "--solver", "unlimited", "--replay"]
        made = self.plan(*day, "--window", "1h")
        self.assertEqual(list(made["replay"]), ["assistant"])
        mean = made["replay"]["assistant"]["plans"]
        self.assertEqual({plan["requests"] for plan in mean.values()}, {len(rows)})
        self.assertEqual(mean["static"], mean["day"])
        self.assertEqual(mean["static"]["worstAt"], 1500)
        self.assertEqual(round(mean["static"]["worstRate"]), 1800)
        self.assertLess(mean["static"]["worstWithin"], 0.5)
        made = self.plan(*day, "--window", "5m", "--startup", "1m")
        fine = made["replay"]["assistant"]["plans"]
        for name, plan in fine.items():
            self.assertGreater(plan["worstWithin"], 0.9, name)
            self.assertEqual(plan["lost"], 0)
        self.assertLess(fine["day"]["cost"], fine["static"]["cost"])
        self.assertLess(mean["static"]["cost"], fine["static"]["cost"])
        text = self.berth("plan", *day, "--window", "1h").out.decode()
        self.assertRegex(text, r"\nassistant +static +\d+\.\d\d .* 00:25: \d+\.\d % of 1800/min +\d+\n +greedy ")
        self.assertEqual(text, self.berth("plan", *day, "--window", "1h").out.decode())
        self.assertNotIn("replay", self.plan(*day[:-1], "--window", "1h"))

    def test_wrong_days(self):
        self.write("p.csv", "time,server,arrivalRate\n00:00,assistant,1\n25:70,assistant,1\n")
        done = self.berth("plan", EXAMPLE, "--profile", "p.csv", code=2)
        self.assertIn(b"p.csv:3:1: expected HH:MM or seconds, got '25:70'", done.err)
        self.write("p.csv", "time,server,arrivalRate\n00:00,assistant,1\n")
        self.write("t.csv", "seconds,in_tokens,out_tokens\n0,1,1\n9,1,1\n")
        for without in ([], ["--profile", "p.csv"]):
            done = self.berth("plan", EXAMPLE, "--replay", *without, code=2)
            self.assertIn(b"--replay: needs --trace: only a trace has requests", done.err)
        for arguments in (["--startup", "3m"], ["--profile", "none.csv"], ["--profile", "p.csv", "--trace", "t.csv"],
                          ["--profile", "p.csv", "--startup", "soon"], ["--profile", "p.csv", "--hysteresis", "2"],
                          ["--profile", "p.csv", "--transition-cost", "-1"], ["--profile", "p.csv", "--candidates"],
                          ["--profile", "p.csv", "--sweep", "capacity.H100=1..2"], ["--profile", ""], ["--trace", ""],
                          ["--profile", "p.csv", "--solver", "Greedy"], ["--profile", "p.csv", "--saturation", "None"],
                          ["--trace", "t.csv", "--delayed-best-effort"], ["--trace", "t.csv", "--heterogeneous"],
                          ["--profile", "p.csv", "--startup", ""], ["--trace", "t.csv", "--window", ""],
                          ["--trace", "t.csv", "--server", "nobody"], ["--trace", "t.csv", "--window", "1ms"]):
            done = self.berth("plan", EXAMPLE, *arguments, code=2)
            self.assertEqual(done.out, b"", arguments)
            self.assertEqual(done.err.count(b"\n"), 1, done.err)

    def test_generated_fleet_under_a_time_limit(self):
        fleet = subprocess.run([sys.executable, ROOT / "tools/generate_fleet.py", "--seed", "3", "--servers",
                                "300", "--capacity", "60"], check=True, capture_output=True).stdout
        self.write("fleet.json", fleet.decode())
        made = self.plan("fleet.json", "--time-limit", "1s")
        self.assertTrue(all(total["count"] <= 60 for total in made["totals"]))
        self.assertEqual(len(made["reasons"]), 300)


if __name__ == "__main__":
    unittest.main()
