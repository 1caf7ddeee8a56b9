#!/usr/bin/python3
"""berth fit, end to end: files of benchmark tools in, parameters and a fleet document out."""

import json
import math
import sys
import unittest
from pathlib import Path

from berth_case import Case
from postgres_server import free_port
from prometheus_server import Prometheus, histories

DATA = Path(__file__).resolve().parent / "data/benchmarks"
ALPHA, BETA, PREFILL, GAMMA = 8.0, 0.05, 0.03, 2e-5


def step_ms(decoding, prefill, context):
    return max(ALPHA, PREFILL * prefill) + BETA * decoding + GAMMA * context


def rows_text():
    lines = ["batch,prefill_tokens,context_tokens,ms"]
    for batch in (0, 1, 4, 16, 64):
        for prefill in (0, 100, 1000, 4000):
            for length in (200, 2000):
                if batch or prefill:
                    context = batch * length + prefill
                    lines.append(f"{batch},{prefill},{context},{step_ms(batch, prefill, context)}")
    return "\n".join(lines) + "\n"


def vllm_result(concurrency, tokens_in, tokens_out=200, requests=120):
    """What the benchmark would say of `concurrency` requests that go through the server together."""
    itl = step_ms(concurrency, 0, concurrency * (tokens_in + tokens_out / 2)) / 1000
    ttft = step_ms(0, tokens_in * concurrency, tokens_in * concurrency) / 1000 + 0.004
    rounds = requests // concurrency
    return {"model_id": "org/llm", "num_prompts": rounds * concurrency, "completed": rounds * concurrency,
            "request_rate": "inf", "max_concurrency": concurrency, "burstiness": 1.0,
            "duration": rounds * (ttft + (tokens_out - 1) * itl),
            "input_lens": [tokens_in] * (rounds * concurrency), "output_lens": [tokens_out] * (rounds * concurrency),
            "ttfts": [ttft] * (rounds * concurrency),
            "itls": [[itl] * (tokens_out - 1)] * (rounds * concurrency)}


class Fit(Case):
    def write(self, name, text):
        path = self.house.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return str(path)

    def fit(self, *arguments):
        document = json.loads(self.berth("fit", *arguments, "--json").out)
        self.assertEqual(document["version"], 1)
        return document["fits"]

    def test_rows_give_their_parameters_back(self):
        [fit] = self.fit(self.write("rows.csv", rows_text()))
        self.assertEqual(fit["perfParms"]["form"], "max")
        for key, value in (("alpha", ALPHA), ("beta", BETA), ("betaPrefill", PREFILL), ("gamma", GAMMA)):
            self.assertAlmostEqual(fit["perfParms"][key] / value, 1, 5)
        self.assertLess(fit["error"], 1e-6)
        self.assertFalse(fit["determined"]["ttftOffset"])

    def test_a_measured_table(self):
        [fit] = self.fit(str(DATA / "splitwise.csv"))
        self.assertEqual((fit["model"], fit["accelerator"]), ("llama2-70b", "h100-80gb-tp2"))
        self.assertEqual(fit["perfParms"]["form"], "max")
        errors = {each["phase"]: each["median"] for each in fit["errors"]}
        self.assertLess(errors["decode"], 0.03)
        self.assertLess(errors["prefill"], 0.06)

    def test_directory_of_vllm_results_and_a_check(self):
        for concurrency in (1, 4, 8):
            for tokens in (100, 400):
                self.write(f"runs/c{concurrency}-{tokens}.json", vllm_result(concurrency, tokens))
        self.write("runs/notes.json", {"hello": 1})
        self.assertIn(b"note: runs/notes.json: not the output", self.berth("fit", "runs/").err)
        held = self.write("held.json", vllm_result(20, 400))
        done = self.berth("fit", str(self.house.path / "runs"), "--held-out", held, "--check", "--json")
        self.assertIn(b"notes.json: not the output of a known benchmark tool; skipped", done.err)
        [fit] = json.loads(done.out)["fits"]
        self.assertEqual(fit["model"], "org/llm")
        self.assertEqual(len(fit["check"]), 7)
        last = fit["check"][-1]
        self.assertTrue(last["heldOut"])
        self.assertLess(abs(last["itlFitted"] / last["itl"] - 1), 0.03)
        text = self.berth("fit", str(self.house.path / "runs"), "--check").out.decode()
        self.assertRegex(text, r"ITL by concurrent requests, to \d+\.\d ms: = measured, \| fitted\n +1\.0 =")
        self.assertRegex(text, r"measure next: \d+ concurrent, with \d+ tokens in, 200 out; ")

    def test_writes_into_a_document_and_keeps_the_rest(self):
        rows = self.write("rows.csv", rows_text())
        document = {"modelData": {"models": [
            {"name": "llm", "acc": "H100", "accCount": 2, "maxBatchSize": 64, "atTokens": 512, "mine": [1.5, "x"],
             "perfParms": {"Alpha": 99, "beta": 1, "gamma": 1, "extra": 7}},
            {"name": "llm", "acc": "L4", "perfParms": {"alpha": 1, "beta": 2, "gamma": 3}}]}, "serverData": {"servers": []}}
        path = self.write("fleet.json", document)
        self.berth("fit", rows, "--llm", "llm", "--accelerator", "H100", "-o", path)
        written = json.loads(Path(path).read_text())
        entry = written["modelData"]["models"][0]
        parameters = entry.pop("perfParms")
        self.assertAlmostEqual(parameters["Alpha"] / ALPHA, 1, 4)
        self.assertEqual((parameters["extra"], parameters["form"]), (7, "max"))
        self.assertNotIn("ttftOffset", parameters)
        document["modelData"]["models"][0].pop("perfParms")
        del written["modelData"]["models"][0], document["modelData"]["models"][0]
        self.assertEqual(written, document)
        self.assertEqual(entry["mine"], [1.5, "x"])
        new = str(self.house.path / "new.json")
        self.berth("fit", rows, "--llm", "llm", "--accelerator", "A100", "-o", new)
        [entry] = json.loads(Path(new).read_text())["modelData"]["models"]
        self.assertEqual((entry["name"], entry["acc"], entry["accCount"]), ("llm", "A100", 1))

    def test_init_file_keeps_its_comments(self):
        rows = self.write("rows.csv", rows_text())
        self.berth("init", "--kind", "fleet")
        path = self.house.path / "fleet.json"
        before = path.read_text().splitlines()
        done = self.berth("fit", rows, "--llm", "chat-8b", "--accelerator", "H100", "-o", "fleet.json")
        self.assertEqual(done.err, b"wrote chat-8b on H100 to fleet.json\n")
        after = path.read_text().splitlines()
        changed = [(old, new) for old, new in zip(before, after) if old != new]
        self.assertEqual((len(after), len(changed)), (len(before), 1))
        self.assertIn('"perfParms": {"alpha": 8,', changed[0][1])
        self.assertEqual(self.berth("plan", "fleet.json").err, b"")
        done = self.berth("fit", rows, "--llm", "other", "--accelerator", "H100", "-o", "fleet.json")
        self.assertIn(b"wrote other on H100 (a new entry) to fleet.json\n", done.err)
        kept = {line.rstrip(",") for line in path.read_text().splitlines()}
        self.assertEqual([line for line in after if line.rstrip(",") not in kept], [])
        self.berth("plan", "fleet.json")

    def test_missing_keys_of_the_entry_are_named(self):
        rows = self.write("rows.csv", rows_text())
        new = str(self.house.path / "new.json")
        fit = ("fit", rows, "--llm", "m", "--accelerator", "A", "-o", new)
        notes = [line for line in self.berth(*fit).err.decode().splitlines() if line.startswith("note: m on A: ")]
        self.assertEqual(len(notes), 2, notes)
        self.assertIn("the files do not name the number of accelerators", notes[0])
        self.assertIn("maxBatchSize and atTokens are missing. A plan assumes that a replica serves one request", notes[1])
        document = json.loads(Path(new).read_text())
        document["modelData"]["models"][0].update({"accCount": 2, "maxBatchSize": 64})
        self.write("new.json", document)
        self.assertEqual(self.berth(*fit).err.decode().count("note: m on A: "), 1)
        self.assertIn(b"note: m on A: atTokens is missing. A plan assumes that any number", self.berth(*fit).err)
        document["modelData"]["models"][0]["atTokens"] = 512
        self.write("new.json", document)
        self.assertNotIn(b"note: m on A", self.berth(*fit).err)
        measured = self.berth("fit", str(DATA / "splitwise.csv"), "-o", str(self.house.path / "measured.json"))
        self.assertNotIn(b"number of accelerators", measured.err)

    def test_what_is_wrong_is_told(self):
        rows = self.write("rows.csv", rows_text())
        wrong = self.write("wrong.csv", "batch,prefill_tokens,context_tokens,ms\n1,0,100,8\n1,0,100,fast\n")
        for arguments, code, message in (
                ([wrong], 2, b"wrong.csv:3:9: ms: expected a number from 1e-06 to 1000000000, got 'fast'"),
                ([self.write("x.json", "{\"a\": 1}")], 2, b"x.json: expected a result of guidellm"),
                ([rows, "-o", "x/out.json"], 2, b"--write: the files do not name the model; give --llm"),
                ([str(self.house.path / "none")], 2, b"/none: No such file or directory"),
                ([rows, "--llm", "m", "--accelerator", "a", "-o", str(self.house.path / "none/out.json")], 2,
                 b"/none/out.json: No such file or directory"),
                ([self.write("few.json", vllm_result(1, 100, requests=50))], 2, b"it has 50 requests, fewer than 100"),
                ([str(DATA / "splitwise.csv"), rows, "--accelerator", "x"], 2, b"--accelerator: expected one of")):
            done = self.berth("fit", *arguments, code=code)
            self.assertIn(message, done.err)
            self.assertEqual(done.out, b"")

    def test_what_nothing_is_left_to_judge_by_has_no_standard_errors(self):
        two = self.write("two.csv", "batch,prefill_tokens,context_tokens,ms\n1,0,100,8\n8,0,800,9\n")
        [fit] = self.fit(two)
        self.assertEqual(set(fit["standardErrors"].values()), {None})
        done = self.berth("fit", two)
        self.assertIn(b"form sum, which nothing is left to judge by\n", done.out)
        self.assertRegex(done.out, rb"beta +0\.14286 +not known")
        self.assertNotIn(b"relative error", done.out)
        self.assertIn(b"alpha, beta fit 2 independent measurements exactly", done.err)


class FitOfMetrics(Case):
    """What servers of vLLM told a real Prometheus."""

    START_S, WINDOW_S = 1_700_000_100, 300  # 2023-11-14T22:15:00Z
    LOADS = [(rate, tokens_in, 120) for tokens_in in (100, 500, 900) for rate in (0.5, 1, 2, 3)]

    @staticmethod
    def itl_s(rate, tokens_in, tokens_out):
        """The form `sum` in equilibrium: tau = alpha + beta (1 + rate (m - 1) tau) + betaPrefill rate tau n, in ms."""
        per_ms = rate / 1000
        return (ALPHA + BETA) / (1 - BETA * per_ms * (tokens_out - 1) - PREFILL * per_ms * tokens_in) / 1000

    @classmethod
    def ttft_s(cls, rate, tokens_in, tokens_out):
        """Half an iteration, then one's own with what came meanwhile."""
        tau = 1000 * cls.itl_s(rate, tokens_in, tokens_out)
        decoding, arrivals = rate / 1000 * (tokens_out - 1) * tau, rate / 1000 * tau
        present = 1 - math.exp(-decoding)
        return ((ALPHA + BETA * decoding) * (1 + present / 2)
                + PREFILL * tokens_in * (1 + 1.5 * present * arrivals)) / 1000

    def setUp(self):
        super().setUp()
        one = histories(self.LOADS, self.WINDOW_S, self.itl_s, self.ttft_s)
        idle = {name: [values[-1]] * len(values) for name, values in one.items() if name != "num_requests_running"}
        slow = histories(self.LOADS, self.WINDOW_S, lambda *load: 3 * self.itl_s(*load),
                         lambda *load: 3 * self.ttft_s(*load))
        self.prometheus = Prometheus(self.START_S, [
            ('model_name="org/llm",engine="0",instance="a:8000"', one),
            ('model_name="org/llm",engine="1",instance="a:8000"', idle),
            ('model_name="org/slow",engine="0",instance="b:8000"', slow)])
        self.addCleanup(self.prometheus.close)
        self.times = ("--from", "2023-11-14T22:15:00Z", "--to", "2023-11-14T23:15:00Z")

    def test_windows_give_the_parameters_back(self):
        done = self.berth("fit", "--prometheus", self.prometheus.url, *self.times, "--llm", "org/llm", "--json")
        [fit] = json.loads(done.out)["fits"]
        self.assertEqual((fit["model"], fit["points"]), ("org/llm", len(self.LOADS)))
        self.assertAlmostEqual(fit["perfParms"]["alpha"] / ALPHA, 1, delta=0.02)
        self.assertAlmostEqual(fit["perfParms"]["betaPrefill"] / PREFILL, 1, delta=0.05)
        for point, (rate, tokens_in, tokens_out) in zip(fit["check"], self.LOADS):
            itl, ttft = self.itl_s(rate, tokens_in, tokens_out), self.ttft_s(rate, tokens_in, tokens_out)
            for key, value in (("rate", rate), ("avgInTokens", tokens_in), ("avgOutTokens", tokens_out),
                               ("itl", 1000 * itl), ("ttft", 1000 * ttft)):
                self.assertAlmostEqual(point[key] / value, 1, 6, f"{point['name']} {key}")
            # Its mean has the sample at the end of the window before in it.
            self.assertAlmostEqual(point["concurrency"] / (rate * (ttft + (tokens_out - 1) * itl)), 1, delta=0.3)
            self.assertAlmostEqual(point["itlFitted"] / point["itl"], 1, delta=0.02)
        self.assertEqual(fit["check"][0]["name"], "a:8000/0 2023-11-14T22:15Z")
        both = json.loads(self.berth("fit", "--prometheus", self.prometheus.url, *self.times, "--json").out)["fits"]
        self.assertEqual([each["model"] for each in both], ["org/llm", "org/slow"])
        self.assertAlmostEqual(both[1]["perfParms"]["alpha"] / ALPHA, 3, delta=0.1)

    def test_what_is_wrong_is_told(self):
        url = self.prometheus.url
        closed = f"http://127.0.0.1:{free_port()}"
        for arguments, code, message in (
                ([], 2, "expected files to fit, or --prometheus"),
                (["rows.csv", "--window", "5m"], 2, "--from, --to and --window go with --prometheus"),
                (["--prometheus", url], 2, "--prometheus: give --from, too"),
                (["--prometheus", url, "--from", "noon"], 2, "--from: expected a time such as 2026-11-21T05:04:03Z"),
                (["--prometheus", url, "--from", "1h", "--to", "2h"], 2, "expected 1 to 2000 windows of 5m, got -12"),
                (["--prometheus", url, "--from", "365d"], 2, "expected 1 to 2000 windows of 5m, got 105120"),
                (["--prometheus", url, "--from", "1h", "--window", "1s"], 2, "--window: expected 10s to 1d, got '1s'"),
                (["--prometheus", "ftp://x", *self.times], 2, "--prometheus: expected a URL such as http://host:9090"),
                (["--prometheus", url, "--from", "1h"], 2, f"{url}: no server of vLLM had requests then"),
                (["--prometheus", f"{url}/nowhere", *self.times], 2, "/nowhere: the server answers 404"),
                (["--prometheus", closed, *self.times], 3, f"{closed}/api/v1/query_range?…: ")):
            done = self.berth("fit", *arguments, code=code)
            self.assertIn(message, done.err.decode())
            self.assertEqual(done.out, b"")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
