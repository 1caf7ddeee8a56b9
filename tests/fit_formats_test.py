#!/usr/bin/python3
"""Files of every benchmark tool and version that the documents name, written of one simulated server and fitted."""

import json
import random
import sys
import unittest

import benchmark_writers as writers
import simulated_server
from benchmark_writers import MODEL
from berth_case import Case
from simulated_server import ALPHA, BETA, GAMMA, PREFILL, closed_loops


class FilesOfBenchmarkTools(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.closed, cls.open = closed_loops(), simulated_server.open_loops()

    def write(self, folder, files):
        for name, text in files.items():
            path = self.house.path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return str(self.house.path / folder)

    def fit(self, *arguments):
        done = self.berth("fit", *arguments, "--accelerator", "A", "--json")
        [fit] = json.loads(done.out)["fits"]
        return fit, done.err.decode()

    def assert_parameters(self, fit, alpha, prompt, step):
        """Relative errors of alpha, betaPrefill, and an iteration of 16 requests with 500 tokens each."""
        found = fit["perfParms"]
        self.assertAlmostEqual(found["alpha"] / ALPHA, 1, delta=alpha)
        self.assertAlmostEqual(found["betaPrefill"] / PREFILL, 1, delta=prompt)
        batch = found["alpha"] + 16 * found["beta"] + 8000 * found["gamma"]
        self.assertAlmostEqual(batch / (ALPHA + 16 * BETA + 8000 * GAMMA), 1, delta=step)

    def test_every_format_gives_the_parameters_back(self):
        for number, (name, write) in enumerate(writers.FORMATS.items()):
            with self.subTest(name):
                closed = name not in writers.WITHOUT_LOOPS
                runs = self.closed if closed else self.open
                fit, notes = self.fit(self.write(f"f{number}", write(runs)), "--llm", MODEL)
                self.assertEqual(fit["points"], len(runs), notes)
                self.assert_parameters(fit, *((0.01, 0.05, 0.02) if closed else (0.03, 0.5, 0.1)))

    def test_files_name_their_model(self):
        for name in writers.NAMES_MODEL:
            with self.subTest(name):
                fit, _ = self.fit(self.write(name.replace(" ", "-"), writers.FORMATS[name](self.closed[:6])))
                self.assertEqual(fit["model"], MODEL)

    # Times of tokens.

    def speculate(self, runs):
        """The same iterations with 1 to 5 tokens in each chunk but the first."""
        draw = random.Random(1)
        for run in runs:
            for request in run.requests:
                request.tokens_out = 1 + sum(draw.randint(1, 5) for _ in request.gaps())
        return runs

    def test_several_tokens_a_chunk_are_fitted_per_token(self):
        runs = self.speculate(closed_loops())
        for number, (name, write) in enumerate((
                ("vLLM summary", writers.vllm_bench), ("vLLM details", lambda runs: writers.vllm_bench(runs, detailed=True)),
                ("vLLM script", writers.vllm_script_2025), ("sglang", writers.sglang_lines),
                ("aiperf lines", writers.aiperf_lines))):
            with self.subTest(name):
                fit, notes = self.fit(self.write(f"s{number}", write(runs)), "--llm", MODEL)
                self.assertAlmostEqual(fit["perfParms"]["alpha"] / (ALPHA / 3), 1, delta=0.08)
                self.assertRegex(notes, "a chunk has")

    def test_tokens_that_arrive_in_bursts_do_not_make_iterations_of_no_time(self):
        runs = closed_loops()
        for run in runs:
            for request in run.requests:
                held = request.times_ms[0]
                for i in range(1, len(request.times_ms)):  # a proxy passes on four tokens together
                    last = min(len(request.times_ms) - 1, (i + 3) // 4 * 4)
                    held = max(held + 0.02, request.times_ms[last] - 0.02 * (last - i))
                    request.times_ms[i] = held
        fit, notes = self.fit(self.write("bursts", writers.vllm_bench(runs, detailed=True)))
        self.assertIn("tokens arrive in bursts", notes)
        self.assertAlmostEqual(fit["perfParms"]["alpha"] / ALPHA, 1, delta=0.03)
        fit, notes = self.fit(self.write("summary", writers.vllm_bench(runs)))
        self.assertIn("far below the mean", notes)
        self.assertAlmostEqual(fit["perfParms"]["alpha"] / ALPHA, 1, delta=0.03)

    # Counts of requests.

    def slow_with_failures(self):
        return simulated_server.Run(simulated_server.simulate(150, 400, 60, concurrency=24, scale=3).requests, 24, failed=90)

    def test_runs_with_failures_are_left_out_in_every_version_of_guidellm(self):
        runs = [*self.closed, self.slow_with_failures()]
        for number, name in enumerate(each for each in writers.FORMATS if each.startswith("guidellm")):
            with self.subTest(name):
                fit, notes = self.fit(self.write(f"g{number}", writers.FORMATS[name](runs)), "--llm", MODEL)
                self.assertEqual(fit["points"], len(self.closed))
                self.assertIn("not used: 90 of 240 requests failed", notes)

    def test_failures_count_in_the_other_formats_that_have_them(self):
        runs = [*self.closed, self.slow_with_failures()]
        for number, name in enumerate(writers.COUNTS_FAILURES):
            with self.subTest(name):
                fit, notes = self.fit(self.write(f"c{number}", writers.FORMATS[name](runs)), "--llm", MODEL)
                self.assertEqual(fit["points"], len(self.closed))
                self.assertIn("90 of 240 requests failed", notes)

    def test_counts_that_a_file_lacks_are_unknown_and_not_zero(self):
        fit, notes = self.fit(self.write("genai", writers.genai_perf_csv_2024(self.closed)), "--llm", MODEL)
        self.assertEqual(fit["points"], len(self.closed))
        self.assertIn("and 5 more: the number of completed requests is not known; assumed to be enough", notes)
        self.assertIn("and 5 more: the number of failed requests is not known; assumed to be 0", notes)
        files = writers.guidellm_02(self.closed, counts="other_counts")
        report = json.loads(files["benchmarks.json"])
        for benchmark in report["benchmarks"]:
            del benchmark["run_stats"]
        fit, notes = self.fit(self.write("guidellm", {"benchmarks.json": json.dumps(report)}))
        self.assertEqual(fit["points"], len(self.closed))
        self.assertNotIn("number of completed requests", notes)  # its metrics count them
        self.assertIn("the number of failed requests is not known", notes)

    def test_a_run_without_streaming_says_so(self):
        report = self.write("trt", writers.trtllm_report(self.closed[:1], streaming=False)) + "/report-0.json"
        done = self.berth("fit", report, code=2)
        self.assertIn(b"there is no 'streaming_metrics.avg_ttft_ms'; run trtllm-bench with --streaming", done.err)
        [(name, text)] = writers.genai_perf_2025(self.closed[:1]).items()
        summary = {key: value for key, value in json.loads(text).items() if key not in ("time_to_first_token", "inter_token_latency")}
        done = self.berth("fit", self.write("genai", {name: json.dumps(summary)}) + "/" + name, code=2)
        self.assertIn(b"there is no 'time_to_first_token'; measure with --streaming", done.err)
        result = json.loads(writers.vllm_bench(self.closed[:1])["openai-0.json"]) | {"mean_ttft_ms": 0.0, "mean_itl_ms": 0.0, "mean_tpot_ms": 0.0}
        done = self.berth("fit", self.write("vllm", {"v.json": json.dumps(result)}) + "/v.json", code=2)
        self.assertIn(b"v.json: not used: it has no times of tokens, as without streaming", done.err)

    # Directories.

    def test_numbers_that_are_not_finite_are_read_where_they_do_not_matter(self):
        files = writers.vllm_bench(self.closed)
        for name, text in files.items():
            files[name] = json.dumps(json.loads(text) | {"std_itl_ms": float("nan"), "request_goodput": float("nan"),
                                                         "note": 'NaN and "Infinity" \\'})
        files |= writers.sglang_lines(self.closed)
        done = self.berth("fit", self.write("runs", files), "--accelerator", "A", "--json")
        fits = json.loads(done.out)["fits"]
        self.assertEqual([fit["points"] for fit in fits], [len(self.closed)] * 2)

    def test_a_file_that_cannot_be_read_is_left_out_of_a_directory_with_its_reason(self):
        files = writers.vllm_bench(self.closed)
        whole = files["openai-0.json"]
        files |= {"nan.json": json.dumps(json.loads(whole) | {"mean_ttft_ms": float("nan")}),
                  "cut.json": whole[:200],
                  "infinite.json": json.dumps(json.loads(whole) | {"duration": float("inf")}),
                  "short.jsonl": '{"completed":100,"duration":10.0,"total_output_tokens":1,"median_itl_ms":1.0,"request_rate":Infinity}\n'}
        folder = self.write("runs", files)
        fit, notes = self.fit(folder)
        self.assertEqual(fit["points"], len(self.closed))
        for name, reason in (("nan.json", "there is no 'mean_ttft_ms'"), ("cut.json", "not JSON"),
                             ("infinite.json", 'duration: '), ("short.jsonl", "there is no 'mean_ttft_ms'")):
            self.assertRegex(notes, f"{name}: {reason}.*; the file is skipped")
            done = self.berth("fit", f"{folder}/{name}", f"{folder}/openai-0.json", code=2)
            self.assertIn(f"{name}: {reason}".encode(), done.err)

    def test_a_directory_without_a_readable_file_says_why(self):
        folder = self.write("runs", {"cut.json": '{"model_id":', "notes.json": "{}"})
        done = self.berth("fit", folder, code=2)
        self.assertRegex(done.err.decode(), r"contains no output of a known benchmark tool: .*cut.json: not JSON.*notes.json: not the output")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
