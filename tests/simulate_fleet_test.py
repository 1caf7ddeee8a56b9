#!/usr/bin/python3
"""berth simulate, end to end: plans and what servers have, traces, seeds, wrong input."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

from berth_case import BERTH, Case

EXAMPLE = str(Path(__file__).resolve().parent.parent / "examples/fleet")
TRACE = "seconds,in_tokens,out_tokens\n" + "".join(f"{i / 2},{100 + i % 7},{1 + i % 50}\n" for i in range(2000))


class Simulate(Case):
    def simulate(self, *arguments):
        return json.loads(self.berth("simulate", EXAMPLE, *arguments, "--json").out)

    def test_beside_the_plan(self):
        made = self.simulate("--requests", "50000")
        self.assertEqual(made["version"], 1)
        self.assertEqual(set(made["servers"]), {"assistant", "expert", "reviewer", "summaries"})
        self.assertEqual(made["not_simulated"], {"retired": "idle, and no replica has to be kept"})
        plan = json.loads(self.berth("plan", EXAMPLE, "--json").out)
        for name, server in made["servers"].items():
            planned = plan["allocations"][name]
            self.assertEqual(server["numReplicas"], planned["numReplicas"])
            self.assertEqual(server["itl"]["planned"], planned["itlAverage"])
            self.assertAlmostEqual(server["itl"]["mean"]["value"], planned["itlAverage"],
                                   delta=0.05 * planned["itlAverage"])
            self.assertEqual((server["requests"], server["histories"]), (45000, 10))
            self.assertLess(server["ttft"]["p50"]["value"], server["ttft"]["p95"]["value"])
            self.assertGreater(server["ttft"]["p95"]["error"], 0)
            self.assertEqual(server["lost"], {"value": 0, "error": 0})
        ttft, itl = made["servers"]["assistant"]["ttft"], made["servers"]["assistant"]["itl"]
        self.assertEqual((itl["mean"]["target"], itl["mean"]["verdict"]), (40, "met"))
        self.assertEqual((ttft["mean"]["target"], ttft["mean"]["verdict"]), (800, "unsure"))
        self.assertLess(abs(ttft["mean"]["value"] - 800), ttft["mean"]["error"])
        self.assertEqual((ttft["p95"]["target"], ttft["p95"]["verdict"]), (0, "none"))

    def fleet(self, load=5000, **targets):
        """The example's assistant alone, with room for as many replicas as it takes."""
        fleet = json.loads((Path(EXAMPLE) / "fleet.json").read_text())
        fleet["optimizerData"] = {"optimizer": {"unlimited": True}}
        assistant = fleet["serverData"]["servers"][0]
        fleet["serverData"]["servers"] = [assistant]
        assistant["currentAlloc"]["load"].update(arrivalRate=load, inTokensCv=1, outTokensCv=1)
        fleet["serviceClassData"]["serviceClasses"][0]["modelTargets"][0].update(
            {name.replace("_", "-"): target for name, target in targets.items()})
        return self.write("fleet.json", json.dumps(fleet))

    def test_the_same_plan_as_berth_plan(self):
        fleet, replicas = str(self.fleet(slo_ttft_p95=200)), {}
        for percentiles in ([], ["--percentiles", "simulated"], ["--percentiles", "closed-form"]):
            plan = json.loads(self.berth("plan", fleet, "--json", *percentiles).out)
            planned = plan["allocations"]["assistant"]
            made = json.loads(self.berth("simulate", fleet, "--json", "--requests", "5000", *percentiles).out)
            found = made["servers"]["assistant"]
            self.assertEqual((found["numReplicas"], found["maxBatch"]), (planned["numReplicas"], planned["maxBatch"]))
            replicas[" ".join(percentiles)] = found["numReplicas"]
        self.assertEqual(replicas[""], replicas["--percentiles simulated"])
        self.assertNotEqual(replicas[""], replicas["--percentiles closed-form"])

    def test_targets_for_percentiles(self):
        fleet = str(self.fleet(slo_ttft_p50=1000, slo_ttft_p95=200, slo_itl_p99=190))
        enough = ["simulate", fleet, "--requests", "200000", "--replicas"]
        made = json.loads(self.berth(*enough, "12", "--json").out)["servers"]["assistant"]
        for latency, name, target in (("ttft", "p50", 1000), ("ttft", "p95", 200), ("itl", "p99", 190)):
            figure = made[latency][name]
            self.assertEqual((figure["target"], figure["verdict"]), (target, "met"))
            self.assertLess(figure["value"] + figure["error"], target)
        self.assertEqual((made["ttft"]["p99"]["target"], made["ttft"]["p99"]["verdict"]), (0, "none"))
        self.assertRegex(self.berth(*enough, "12").out.decode(), r"TTFT .* / 1000 met .* / 200.0 met ")
        made = json.loads(self.berth(*enough, "4", "--json").out)["servers"]["assistant"]
        self.assertEqual(made["ttft"]["p95"]["verdict"], "missed")
        self.assertGreater(made["ttft"]["p95"]["value"] - made["ttft"]["p95"]["error"], 200)

    def test_the_reference_model_leaves_percentiles_out(self):
        fleet = json.loads(self.fleet(slo_ttft_p95=200).read_text())
        fleet["optimizerData"]["optimizer"]["model"] = "reference"
        result = self.berth("simulate", str(self.write("fleet.json", json.dumps(fleet))), "--requests", "1000")
        self.assertIn(b"note: the reference model knows averages", result.err)

    def test_who_loses_requests_meets_no_target(self):
        fleet = json.loads(self.fleet(load=30000).read_text())
        fleet["serverData"]["servers"][0]["maxQueueSize"] = 0
        fleet = str(self.write("fleet.json", json.dumps(fleet)))
        few = ["simulate", fleet, "--requests", "200000", "--replicas", "20"]
        made = json.loads(self.berth(*few, "--json").out)["servers"]["assistant"]
        self.assertGreater(made["lost"]["value"], 0.05)
        self.assertLess(made["ttft"]["mean"]["value"], 800)  # of those who are served
        self.assertEqual(made["ttft"]["mean"]["verdict"], "missed")
        text = self.berth(*few).out.decode()
        self.assertRegex(text, r"TTFT .* / 800.0 missed ")
        self.assertRegex(text, r"\nassistant: \d+\.\d\d % of its requests are lost, more than 1 %: no target is met\n")

    def test_who_serves_nobody_meets_no_target(self):
        fleet = json.loads(self.fleet().read_text())
        fleet["serverData"]["servers"][0].update(maxQueueSize=0, maxBatchSize=1)
        for entry in fleet["modelData"]["models"]:
            entry["perfParms"]["alpha"] = 1e9
        current = fleet["serverData"]["servers"][0]["currentAlloc"]
        current.update(numReplicas=1, maxBatch=1)
        fleet = str(self.write("fleet.json", json.dumps(fleet)))
        made = json.loads(self.berth("simulate", fleet, "--current", "--json").out)["servers"]["assistant"]
        self.assertEqual(made["lost"]["value"], 1)
        self.assertEqual(made["ttft"]["mean"], {"value": None, "error": None, "target": 800, "verdict": "missed"})
        text = self.berth("simulate", fleet, "--current").out.decode()
        self.assertRegex(text, r"TTFT +- / 800.0 missed +- +- +- +- ")
        self.assertIn("assistant: 100.00 % of its requests are lost, more than 1 %: no target is met\n", text)

    def test_readable(self):
        text = self.berth("simulate", EXAMPLE, "--requests", "50000").out.decode()
        self.assertRegex(text, r"assistant +3 × A100 +\d+ % +0.00 % +TTFT +[\d.]+ ± [\d.]+ / 800.0 unsure .* +370.5")
        self.assertRegex(text, r"\n +ITL +[\d.]+ ± [\d.]+ / 40.0 met +[\d.]+ ± [\d.]+ ")
        self.assertRegex(text, r"assistant: TTFT of 45000 requests\n +< \d+ ms \|#+ +[\d.]+ %\n")
        self.assertIn("retired: not simulated: idle, and no replica has to be kept\n", text)

    def test_seeds_and_threads(self):
        one = ["simulate", EXAMPLE, "--requests", "20000", "--server", "assistant", "--json"]
        first = self.berth(*one).out
        alone = subprocess.run(["taskset", "-c", "0", BERTH, *one], capture_output=True, check=True).stdout
        self.assertEqual(first, alone)
        self.assertNotEqual(first, self.berth(*one, "--seed", "2").out)

    def test_what_if(self):
        def p95(*arguments):
            made = self.simulate("--server", "assistant", "--requests", "50000", *arguments)
            return made["servers"]["assistant"]["ttft"]["p95"]["value"]
        self.assertGreater(p95(), p95("--routing", "least-loaded"))
        self.assertGreater(p95(), p95("--replicas", "6"))
        self.assertLess(p95(), p95("--out-cv", "2", "--in-cv", "1"))
        self.assertLess(p95("--replicas", "5"), p95("--replicas", "5", "--arrival-cv", "4"))

    def test_what_servers_have(self):
        made = self.simulate("--current", "--requests", "20000")
        self.assertEqual(made["servers"]["assistant"]["allocation"], "3 × A100")
        self.assertEqual(made["not_simulated"]["expert"], "it has no accelerator")
        made = self.simulate("--current", "--replicas", "4", "--requests", "1000")
        self.assertEqual(made["servers"]["assistant"]["allocation"], "4 × A100")
        self.assertEqual(made["not_simulated"]["expert"], "it has no accelerator")

    def test_the_figures_of_the_manual(self):
        manual = (Path(EXAMPLE).parent.parent / "docs/explanation/fleet-simulator.md").read_text()
        for count in (20_000, 200_000):
            made = self.simulate("--server", "assistant", "--requests", str(count))["servers"]["assistant"]
            mean = made["ttft"]["mean"]
            self.assertRegex(manual, rf"{mean['value']:.1f} ± {mean['error']:.1f}( ms)? for {count:,}")
        self.assertIn(f"`assistant`, with a use of {100 * made['utilisation']['value']:.0f} %", manual)

    def test_few_requests_are_noted(self):
        few = ["simulate", EXAMPLE, "--server", "assistant", "--requests", "2000"]
        self.assertRegex(self.berth(*few).err, rb"note: assistant: the empty start may still have an effect.* is 0\.\d times as "
                                               rb"long as the service of a request, expected 3\. It grows with --requests")
        made = json.loads(self.berth(*few, "--json").out)["servers"]["assistant"]
        self.assertLess(made["ttft"]["mean"]["value"] + made["ttft"]["mean"]["error"], 800)
        self.assertEqual(made["ttft"]["mean"]["verdict"], "unsure")
        self.assertEqual(self.berth(*few[:-1], "100000").err, b"")

    def test_a_trace(self):
        trace = self.write("trace.csv", TRACE)
        made = self.simulate("--trace", str(trace), "--server", "assistant")["servers"]["assistant"]
        self.assertEqual((made["requests"], made["histories"]), (2000, 1))
        self.assertIsNone(made["ttft"]["p95"]["error"])
        self.assertAlmostEqual(made["requestsPerMinute"]["value"], 120, delta=1)
        busy = self.simulate("--trace", str(trace), "--at-load", "--server", "assistant")["servers"]["assistant"]
        self.assertAlmostEqual(busy["requestsPerMinute"]["value"], 900, delta=20)
        self.assertGreater(busy["ttft"]["p95"]["value"], made["ttft"]["p95"]["value"])
        tokens = ["--trace", str(trace), "--tokens-only", "--server", "assistant"]
        self.assertEqual(self.simulate(*tokens, "--requests", "2000")["servers"]["assistant"]["requests"], 1800)
        drawn = self.simulate(*tokens)["servers"]["assistant"]
        self.assertEqual((drawn["requests"], drawn["histories"]), (180000, 10))
        self.assertLess(drawn["inService"]["value"], 20)  # the document's requests have ten times the tokens

    def test_a_trace_of_one_request(self):
        trace = self.write("trace.csv", "seconds,in_tokens,out_tokens\n0,100,10\n")
        result = self.berth("simulate", EXAMPLE, "--trace", str(trace), "--server", "assistant")
        self.assertIn(b"note: the trace has 1 request, ", result.err)
        self.assertIn(b"assistant: TTFT of 1 request\n", result.out)

    def test_wrong_input(self):
        def refused(*arguments):
            return self.berth("simulate", EXAMPLE, *arguments, code=2).err.decode()
        trace = self.write("trace.csv", TRACE + "2000,12,x\n")
        self.assertIn("trace.csv:2002:9: expected a number of out_tokens, got 'x'", refused("--trace", str(trace)))
        self.write("trace.csv", b"\xfd7zXZ\0")
        self.assertIn("trace.csv: it is compressed", refused("--trace", str(trace)))
        self.assertIn("no server 'nobody' is known", refused("--server", "nobody"))
        self.assertIn("--out-cv: expected 0 to 100, got '-1'", refused("--out-cv=-1"))
        self.assertIn("--at-load: needs --trace", refused("--at-load"))
        self.assertIn("--arrival-cv: the trace has its times", refused("--trace", "t.csv", "--arrival-cv", "2"))
        self.assertIn("--requests: the trace is taken whole", refused("--trace", "t.csv", "--requests", "2000"))
        self.assertIn("--requests: the trace is taken whole",
                      refused("--trace", "t.csv", "--at-load", "--requests", "2000"))
        self.assertIn("--trace: expected a file, got ''", refused("--trace", ""))
        self.assertIn("--arrival-cv: expected a number, got ''", refused("--arrival-cv", ""))
        self.assertIn("--current and --percentiles cannot be combined", refused("--current", "--percentiles", "closed-form"))
        self.assertIn("expected simulated or closed-form, got 'nonsense'", refused("--percentiles", "nonsense"))
        self.assertIn("cannot be combined", refused("--trace", "t.csv", "--in-cv", "2"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
