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
        self.assertEqual(made["not_simulated"], {"retired": "idle, and none has to be kept"})
        plan = json.loads(self.berth("plan", EXAMPLE, "--json").out)
        for name, server in made["servers"].items():
            planned = plan["allocations"][name]
            self.assertEqual(server["numReplicas"], planned["numReplicas"])
            self.assertEqual(server["itl"]["planned"], planned["itlAverage"])
            self.assertAlmostEqual(server["itl"]["mean"]["value"], planned["itlAverage"],
                                   delta=0.05 * planned["itlAverage"])
            self.assertEqual((server["requests"], server["histories"]), (server["requests"] // 10 * 10, 10))
            self.assertLess(server["ttft"]["p50"]["value"], server["ttft"]["p95"]["value"])
            self.assertGreater(server["ttft"]["p95"]["error"], 0)
            self.assertEqual(server["lost"], {"value": 0, "error": 0})
        self.assertEqual(made["servers"]["assistant"]["ttft"]["target"], 800)

    def test_readable(self):
        text = self.berth("simulate", EXAMPLE, "--requests", "50000").out.decode()
        self.assertRegex(text, r"assistant +3 × A100 +\d+ % +0.00 % +TTFT +[\d.]+ ± [\d.]+ .* 800.0 \w+ +370.5")
        self.assertRegex(text, r"\n +ITL +[\d.]+ ± [\d.]+ ")
        self.assertRegex(text, r"assistant: TTFT of 45000 requests\n +< \d+ ms \|#+ +[\d.]+ %\n")
        self.assertIn("retired: not simulated: idle, and none has to be kept\n", text)

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
        self.assertEqual(made["not_simulated"]["expert"], "it has no replicas")

    def test_few_requests_are_noted(self):
        result = self.berth("simulate", EXAMPLE, "--server", "assistant", "--requests", "2000")
        self.assertRegex(result.err, rb"note: assistant: .* --requests \d+ ")

    def test_a_trace(self):
        trace = self.write("trace.csv", TRACE)
        made = self.simulate("--trace", str(trace), "--server", "assistant")["servers"]["assistant"]
        self.assertEqual((made["requests"], made["histories"]), (2000, 1))
        self.assertIsNone(made["ttft"]["p95"]["error"])
        self.assertAlmostEqual(made["requestsPerMinute"]["value"], 120, delta=1)
        busy = self.simulate("--trace", str(trace), "--at-load", "--server", "assistant")["servers"]["assistant"]
        self.assertAlmostEqual(busy["requestsPerMinute"]["value"], 900, delta=20)
        self.assertGreater(busy["ttft"]["p95"]["value"], made["ttft"]["p95"]["value"])
        drawn = self.simulate("--trace", str(trace), "--tokens-only", "--server", "assistant")["servers"]["assistant"]
        self.assertEqual((drawn["requests"], drawn["histories"]), (180000, 10))
        self.assertLess(drawn["inService"]["value"], 20)  # the document's requests have ten times the tokens

    def test_wrong_input(self):
        def refused(*arguments):
            return self.berth("simulate", EXAMPLE, *arguments, code=2).err.decode()
        trace = self.write("trace.csv", TRACE + "2000,12,x\n")
        self.assertIn("trace.csv:2002:9: wanted a number of out_tokens, found 'x'", refused("--trace", str(trace)))
        self.write("trace.csv", b"\xfd7zXZ\0")
        self.assertIn("trace.csv: it is compressed", refused("--trace", str(trace)))
        self.assertIn("no server 'nobody' is known", refused("--server", "nobody"))
        self.assertIn("--out-cv: wanted 0 to 100, found '-1'", refused("--out-cv=-1"))
        self.assertIn("--at-load: needs --trace", refused("--at-load"))
        self.assertIn("--arrival-cv: the trace has its times", refused("--trace", "t.csv", "--arrival-cv", "2"))
        self.assertIn("excludes", refused("--trace", "t.csv", "--in-cv", "2"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
