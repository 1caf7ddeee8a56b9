"""The runs of a simulated server as each benchmark tool writes them.

Each writer returns {file name: text} with the keys and the layout of one version of its tool (bench/fit_formats.md has
the sources); the values are of the simulated runs.
"""

import csv
import io
import json

from simulated_server import Request, deviation, mean, percentile

MODEL = "org/llm"


# vLLM and sglang ------------------------------------------------------------------------------------------------------

def serving_statistics(name, values, percentiles=(99,)):
    return {f"mean_{name}_ms": mean(values), f"median_{name}_ms": percentile(values, 50),
            f"std_{name}_ms": deviation(values), **{f"p{part}_{name}_ms": percentile(values, part) for part in percentiles}}


def serving_result(run, **first):
    """What the results of vLLM and of sglang share; the chunks of a request have one token each."""
    gaps = [gap for each in run.requests for gap in each.gaps()]
    total_in, total_out = sum(run.of(lambda r: r.tokens_in)), sum(run.of(lambda r: r.tokens_out))
    return {**first, "duration": run.seconds(), "completed": len(run.requests), "total_input_tokens": total_in,
            "total_output_tokens": total_out, "request_throughput": run.per_second(),
            "output_throughput": total_out / run.seconds(), **serving_statistics("ttft", run.of(Request.ttft)),
            **serving_statistics("tpot", run.of(Request.itl)), **serving_statistics("itl", gaps)}


def serving_details(run):
    return {"input_lens": run.of(lambda r: r.tokens_in), "output_lens": run.of(lambda r: r.tokens_out),
            "ttfts": [each / 1000 for each in run.of(Request.ttft)],
            "itls": [[gap / 1000 for gap in each.gaps()] for each in run.requests],
            "generated_texts": [""] * len(run.requests), "errors": [""] * len(run.requests)}


def vllm_arguments(run):
    return {"date": "20250401-120000", "backend": "vllm", "model_id": MODEL, "tokenizer_id": MODEL,
            "num_prompts": len(run.requests) + run.failed, "request_rate": run.rate or "inf", "burstiness": 1.0,
            "max_concurrency": run.concurrency or None}


def vllm_script_2024(runs):
    """benchmark_serving.py of vLLM 0.5.0: no time between tokens, only that per output token; details always."""
    files = {}
    for i, run in enumerate(runs):
        result = serving_result(run, date="20240610-120000", backend="vllm", model_id=MODEL, tokenizer_id=MODEL,
                                best_of=1, use_beam_search=False, num_prompts=len(run.requests) + run.failed,
                                request_rate=run.rate or "inf")
        files[f"vllm-{i}.json"] = json.dumps({key: value for key, value in result.items() if "_itl_" not in key})
    return files


def vllm_script_2025(runs):
    """benchmark_serving.py of April 2025: the requests always, without their starts."""
    return {f"vllm-{i}.json": json.dumps({**serving_result(run, **vllm_arguments(run)), "request_goodput:": None,
                                          **serving_details(run)}) for i, run in enumerate(runs)}


def vllm_bench(runs, detailed=False):
    """`vllm bench serve --save-result`, and with --save-detailed."""
    files = {}
    for i, run in enumerate(runs):
        result = serving_result(run, **{**vllm_arguments(run), "endpoint_type": "openai", "label": None,
                                        "failed": run.failed, "rtfx": 0.0})
        if detailed:
            result |= serving_details(run) | {"start_times": [100 + each / 1000 for each in run.of(lambda r: r.start_ms)]}
        files[f"openai-{i}.json"] = json.dumps(result)
    return files


def sglang_lines(runs, detailed=False):
    """sglang.bench_serving --output-file, and with --output-details; without a rate it writes Infinity."""
    lines = []
    for run in runs:
        result = serving_result(run, tag=None, backend="sglang", dataset_name="random",
                                request_rate=run.rate or float("inf"), max_concurrency=run.concurrency or None,
                                sharegpt_output_len=None, random_input_len=1024, random_output_len=1024,
                                random_range_ratio=0.0)
        result |= {"concurrency": run.presence(), "accept_length": None,
                   **serving_statistics("e2e_latency", run.of(Request.latency), (90, 99))}
        lines.append(json.dumps({**result, **(serving_details(run) if detailed else {})}))
    return {"sglang_0401_150_1024_1024.jsonl": "".join(line + "\n" for line in lines)}


# guidellm -------------------------------------------------------------------------------------------------------------

def guidellm_distribution(values):
    points = {name: percentile(values, part) for name, part in
              (("p001", 0.1), ("p01", 1), ("p05", 5), ("p10", 10), ("p25", 25), ("p50", 50), ("p75", 75), ("p90", 90),
               ("p95", 95), ("p99", 99), ("p999", 99.9))}
    return {"mean": mean(values), "median": points["p50"], "mode": points["p50"], "variance": deviation(values) ** 2,
            "std_dev": deviation(values), "min": percentile(values, 0), "max": percentile(values, 100),
            "count": len(values), "total_sum": sum(values), "percentiles": points}


def guidellm_metrics(run):
    def status(values):
        return {"successful": guidellm_distribution(values), "errored": guidellm_distribution([]),
                "incomplete": guidellm_distribution([]), "total": guidellm_distribution(values)}
    return {"requests_per_second": status([run.per_second()]), "request_concurrency": status([run.presence()]),
            "request_latency": status([each / 1000 for each in run.of(Request.latency)]),
            "prompt_token_count": status(run.of(lambda r: r.tokens_in)),
            "output_token_count": status(run.of(lambda r: r.tokens_out)),
            "time_to_first_token_ms": status(run.of(Request.ttft)),
            "time_per_output_token_ms": status(run.of(lambda r: r.latency() / r.tokens_out)),
            "inter_token_latency_ms": status(run.of(Request.itl))}


def guidellm_counts(run):
    return {"successful": len(run.requests), "errored": run.failed, "incomplete": 0,
            "total": len(run.requests) + run.failed}


def guidellm_requests(run, start_key, end_key):
    return {"successful": [{start_key: 1e9 + each.start_ms / 1000, end_key: 1e9 + each.times_ms[-1] / 1000,
                            "prompt_tokens": each.tokens_in, "output_tokens": each.tokens_out,
                            "time_to_first_token_ms": each.ttft(), "inter_token_latency_ms": each.itl()}
                           for each in run.requests], "incomplete": [], "errored": []}


NO_REQUESTS = {"successful": [], "incomplete": [], "errored": []}


def guidellm_02(runs, counts="request_totals", requests=False):
    """guidellm 0.2 and 0.3: arguments, worker and counts of each benchmark; 0.2.0 counts in total_count."""
    benchmarks = [{
        "type_": "generative_benchmark", "id_": f"b{i}", "run_id": "r",
        "args": {"profile": {"type_": "concurrent"}, "strategy_index": i, "strategy": run.strategy(), "max_number": None,
                 "max_duration": 60.0},
        "run_stats": {"start_time": 1e9, "end_time": 1e9 + run.seconds(), "requests_made": guidellm_counts(run)},
        "worker": {"type_": "generative_requests_worker", "backend_type": "openai_http", "backend_model": MODEL},
        "request_loader": {}, "extras": {}, "metrics": guidellm_metrics(run), counts: guidellm_counts(run),
        "requests": guidellm_requests(run, "start_time", "end_time") if requests else NO_REQUESTS,
        "start_time": 1e9, "end_time": 1e9 + run.seconds(), "duration": run.seconds()} for i, run in enumerate(runs)]
    return {"benchmarks.json": json.dumps({"benchmarks": benchmarks})}


def guidellm_benchmark(run, requests):
    return {"type_": "generative_benchmark",
            "config": {"id_": "b", "run_id": "r", "run_index": 0, "strategy": run.strategy(), "constraints": {},
                       "profile": {"type_": "concurrent"}, "requests": {}, "backend": {"model": MODEL}},
            "scheduler_metrics": {"start_time": 1e9, "requests_made": guidellm_counts(run)},
            "metrics": {"request_totals": guidellm_counts(run), **guidellm_metrics(run)},
            "requests": guidellm_requests(run, "request_start_time", "request_end_time") if requests else NO_REQUESTS,
            "start_time": 1e9, "end_time": 1e9 + run.seconds(), "duration": run.seconds()}


def guidellm_04(runs, requests=False):
    """guidellm 0.4: no metadata, the model among the arguments."""
    return {"benchmarks.json": json.dumps({"args": {"target": "http://localhost:8000", "model": MODEL},
                                           "benchmarks": [guidellm_benchmark(run, requests) for run in runs]})}


def guidellm_05(runs, requests=False):
    """guidellm 0.5: version 1; the model may be that which the server names."""
    return {"benchmarks.json": json.dumps({
        "metadata": {"version": 1, "guidellm_version": "0.5.0", "python_version": "3.12.3", "platform": "Linux"},
        "args": {"target": "http://localhost:8000", "model": None},
        "benchmarks": [guidellm_benchmark(run, requests) for run in runs]})}


def guidellm_07(runs, requests=False):
    """guidellm 0.7: version 2, a specification in place of the arguments."""
    return {"benchmarks.json": json.dumps({
        "metadata": {"version": 2, "guidellm_version": "0.7.0", "python_version": "3.12.3", "platform": "Linux"},
        "config": {"spec": {"backend": {"model": MODEL}, "profile": {"kind": "concurrent"}, "data": []}},
        "benchmarks": [guidellm_benchmark(run, requests) for run in runs]})}


def csv_text(rows, **options):
    text = io.StringIO(newline="")
    csv.writer(text, **options).writerows(rows)
    return text.getvalue()


def guidellm_csv_03(runs):
    """guidellm 0.2 and 0.3: one row of heads."""
    heads, rows = [], []
    for run in runs:
        strategy = run.strategy()
        label = strategy["type_"] + (f"@{run.rate:.2f}" if run.rate else f"@{run.concurrency}" if run.concurrency > 1 else "")
        cells = [("Type", "generative_benchmark"), ("Run Id", "r"), ("Id", "b"), ("Name", label),
                 ("Start Time", "2025-06-01 12:00:00"), ("End Time", "2025-06-01 12:01:00"), ("Duration", run.seconds())]
        for state in ("total", "successful", "incomplete", "errored"):
            cells.append((f"{state.capitalize()} Requests", guidellm_counts(run)[state]))
            for name, of_state in guidellm_metrics(run).items():
                head = f"{state.capitalize()} {name.replace('_', ' ').capitalize()}"
                one = of_state[state]
                cells += [(f"{head} mean", one["mean"]), (f"{head} median", one["median"]),
                          (f"{head} std dev", one["std_dev"]),
                          (f"{head} [min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]", str([one["min"], one["max"]]))]
        heads, rows = [head for head, _ in cells], rows + [[value for _, value in cells]]
    return {"benchmarks.csv": csv_text([heads, *rows])}


def guidellm_csv_04(runs):
    """guidellm since 0.4: heads of group, status with unit, and statistic."""
    columns, rows = [], []
    for run in runs:
        cells = [(("Run Info", "Run ID", ""), "r"), (("Run Info", "Backend", ""), json.dumps({"model": MODEL})),
                 (("Benchmark", "Type", ""), "generative_benchmark"), (("Benchmark", "Strategy", ""), run.strategy()["type_"]),
                 (("Timings", "Duration", "Sec"), run.seconds()), (("Timings", "Warmup", "Sec"), 0.0)]
        cells += [(("Request Counts", state.capitalize(), ""), guidellm_counts(run)[state])
                  for state in ("successful", "incomplete", "errored", "total")]
        for group, unit, values in (
                ("Request Latency", "Sec", [each / 1000 for each in run.of(Request.latency)]),
                ("Streaming Iterations", "Count", run.of(lambda r: r.tokens_out)),
                ("Time to First Token", "ms", run.of(Request.ttft)),
                ("Time per Output Token", "ms", run.of(lambda r: r.latency() / r.tokens_out)),
                ("Inter Token Latency", "ms", run.of(Request.itl)),
                ("Server Throughput", "Requests/Sec", [run.per_second()]),
                ("Server Throughput", "Concurrency", [run.presence()]),
                ("Token Metrics", "Input Tokens", run.of(lambda r: r.tokens_in)),
                ("Token Metrics", "Output Tokens", run.of(lambda r: r.tokens_out)),
                ("Token Metrics", "Total Tokens", run.of(lambda r: r.tokens_in + r.tokens_out)),
                ("Token Throughput", "Output Tokens/Sec", [1000.0])):
            cells += [((group, f"Successful {unit}", "Mean"), mean(values)),
                      ((group, f"Successful {unit}", "Median"), percentile(values, 50)),
                      ((group, f"Successful {unit}", "Std Dev"), deviation(values)),
                      ((group, f"Successful {unit}", "Percentiles"), str([min(values), max(values)]))]
        columns, rows = [head for head, _ in cells], rows + [[value for _, value in cells]]
    return {"benchmarks.csv": csv_text([[head[i] for head in columns] for i in range(3)] + rows)}


# genai-perf and aiperf ------------------------------------------------------------------------------------------------

def genai_metric(unit, values):
    return {"unit": unit, "avg": mean(values), **{f"p{part}": percentile(values, part) for part in (99, 95, 90, 75, 50, 25)},
            "max": max(values), "min": min(values), "std": deviation(values)}


def genai_summary(run, names):
    return {"request_throughput": {"unit": "requests/sec", "avg": run.per_second()},
            "request_latency": genai_metric("ms", run.of(Request.latency)),
            "time_to_first_token": genai_metric("ms", run.of(Request.ttft)),
            "inter_token_latency": genai_metric("ms", run.of(Request.itl)),
            "output_token_throughput": {"unit": "tokens/sec", "avg": 1000.0},
            names[1]: genai_metric("tokens", run.of(lambda r: r.tokens_out)),
            names[0]: genai_metric("tokens", run.of(lambda r: r.tokens_in))}


SEQUENCES = ("input_sequence_length", "output_sequence_length")


def folder(run):
    load = f"request_rate{run.rate}" if run.rate else f"concurrency{run.concurrency}"
    return f"{round(mean(run.of(lambda r: r.tokens_in)))}/llm-openai-chat-{load}"


def genai_perf_2024(runs):
    """genai-perf 0.0.3 (May 2024): older names of the lengths, the arguments as they are, no counts."""
    return {f"{folder(run)}/profile_export_genai_perf.json": json.dumps({
        **genai_summary(run, ("num_input_token", "num_output_token")),
        "input_config": {"model": [MODEL], "formatted_model_name": MODEL, "backend": "vllm", "endpoint_type": "chat",
                         "service_kind": "openai", "streaming": True, "u": None, "concurrency": run.concurrency or None,
                         "request_rate": run.rate or None}}) for run in runs}


def genai_perf_2025(runs):
    """genai-perf 0.0.13 (2025): the number of requests, a nested configuration."""
    return {f"{folder(run)}/profile_export_genai_perf.json": json.dumps({
        "request_count": {"unit": "count", "avg": float(len(run.requests))}, **genai_summary(run, SEQUENCES),
        "input_config": {"model_names": [MODEL], "perf_analyzer": {"stimulus": {"concurrency": run.concurrency} if run.concurrency
                                                                   else {"request_rate": run.rate}}}}) for run in runs}


def genai_csv(runs, lengths, case, counted):
    files = {}
    for run in runs:
        def row(name, values):
            statistics = [mean(values), min(values), max(values)] + [percentile(values, part) for part in (99, 95, 90, 75, 50, 25)]
            return [name, *(f"{value:,.2f}" for value in statistics)]
        rows = [["Metric", "avg", "min", "max", "p99", "p95", "p90", "p75", "p50", "p25"],
                row(case("Time To First Token") + " (ms)", run.of(Request.ttft)),
                row(case("Inter Token Latency") + " (ms)", run.of(Request.itl)),
                row(case("Request Latency") + " (ms)", run.of(Request.latency)),
                row(lengths[1], run.of(lambda r: r.tokens_out)), row(lengths[0], run.of(lambda r: r.tokens_in)), [],
                ["Metric", "Value"], [case("Output Token Throughput") + " (per sec)", "1000.00"],
                [case("Request Throughput") + " (per sec)", f"{run.per_second():,.2f}"]]
        rows += [["Request Count (count)", f"{len(run.requests):.2f}"]] if counted else []
        files[f"{folder(run)}/profile_export_genai_perf.csv"] = csv_text(rows)
    return files


def genai_perf_csv_2024(runs):
    return genai_csv(runs, ("Num Input Token", "Num Output Token"), lambda name: name, False)


def genai_perf_csv_2025(runs):
    return genai_csv(runs, ("Input Sequence Length (tokens)", "Output Sequence Length (tokens)"), lambda name: name, True)


def aiperf_json(runs):
    return {f"{folder(run)}/profile_export_aiperf.json": json.dumps({
        **genai_summary(run, SEQUENCES), "request_count": {"unit": "requests", "avg": float(len(run.requests))},
        "benchmark_duration": {"unit": "sec", "avg": run.seconds()},
        **({"error_request_count": {"unit": "requests", "avg": float(run.failed)}} if run.failed else {}),
        "input_config": {"endpoint": {"model_names": [MODEL]},
                         "loadgen": {"concurrency": run.concurrency} if run.concurrency else {"request_rate": run.rate}}})
        for run in runs}


def aiperf_csv(runs):
    files = {}
    keys = ("avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std")
    for run in runs:
        def row(name, values):
            one = {"avg": mean(values), "min": min(values), "max": max(values), "sum": sum(values), "std": deviation(values)}
            return [name, *(f"{one[key] if key in one else percentile(values, int(key[1:])):.2f}" for key in keys)]
        files[f"{folder(run)}/profile_export_aiperf.csv"] = csv_text([
            ["Metric", *keys], row("Inter Token Latency (ms)", run.of(Request.itl)),
            row("Input Sequence Length (tokens)", run.of(lambda r: r.tokens_in)),
            row("Output Sequence Length (tokens)", run.of(lambda r: r.tokens_out)),
            row("Request Latency (ms)", run.of(Request.latency)), row("Time to First Token (ms)", run.of(Request.ttft)), [],
            ["Metric", "Value"], ["Benchmark Duration (sec)", f"{run.seconds():.2f}"], ["Request Count", f"{len(run.requests)}"],
            ["Request Throughput (requests/sec)", f"{run.per_second():.2f}"], [], [],
            ["Endpoint", "GPU_Index", "GPU_Name", "GPU_UUID", "Metric", *keys],
            ["localhost:9400", "0", "NVIDIA H100", "GPU-1", "GPU Power Usage (W)", *["500.00"] * len(keys)]])
    return files


def aiperf_lines(runs):
    def value(number, unit):
        return {"value": number, "unit": unit}
    return {f"{folder(run)}/profile_export.jsonl": "".join(json.dumps({
        "metadata": {"request_start_ns": round(1e18 + 1e6 * each.start_ms), "request_end_ns": round(1e18 + 1e6 * each.times_ms[-1]),
                     "benchmark_phase": "profiling", "was_cancelled": False},
        "metrics": {"input_sequence_length": value(each.tokens_in, "tokens"),
                    "output_sequence_length": value(each.tokens_out, "tokens"),
                    "time_to_first_token": value(each.ttft(), "ms"), "request_latency": value(each.latency(), "ms"),
                    "inter_token_latency": value(each.itl(), "ms"), "inter_chunk_latency": value(each.gaps(), "ms")},
        "error": None}) + "\n" for each in run.requests) for run in runs}


# llmperf and trtllm-bench ---------------------------------------------------------------------------------------------

def llmperf_summary(runs):
    """token_benchmark_ray.py: one level of keys, seconds; its time between tokens counts the first token, too."""
    files = {}
    for run in runs:
        result = {"version": "2023-08-31", "name": "llm_550_150_summary", "model": MODEL, "mean_input_tokens": 550,
                  "stddev_input_tokens": 150, "mean_output_tokens": 150, "stddev_output_tokens": 10,
                  "num_concurrent_requests": run.concurrency}
        for name, values in (("inter_token_latency_s", run.of(lambda r: r.latency() / 1000 / r.tokens_out)),
                             ("ttft_s", [each / 1000 for each in run.of(Request.ttft)]),
                             ("end_to_end_latency_s", [each / 1000 for each in run.of(Request.latency)]),
                             ("number_input_tokens", run.of(lambda r: r.tokens_in)),
                             ("number_output_tokens", run.of(lambda r: r.tokens_out))):
            result |= {f"results_{name}_quantiles_p{part}": percentile(values, part) for part in (25, 50, 75, 90, 95, 99)}
            result |= {f"results_{name}_mean": mean(values), f"results_{name}_min": min(values),
                       f"results_{name}_max": str(max(values)), f"results_{name}_stddev": deviation(values)}
        result |= {"results_num_requests_started": len(run.requests) + run.failed,
                   "results_error_rate": run.failed / (len(run.requests) + run.failed), "results_number_errors": run.failed,
                   "results_error_code_frequency": "{}", "results_mean_output_throughput_token_per_s": 1000.0,
                   "results_num_completed_requests": len(run.requests),
                   "results_num_completed_requests_per_min": 60 * run.per_second(), "timestamp": 1700000000}
        files[f"llm_{len(files)}_summary.json"] = json.dumps(result, indent=4)
    return files


def trtllm_report(runs, streaming=True):
    """trtllm-bench throughput --report_json."""
    def percentiles(values):
        return {"p50": percentile(values, 50), "p90": percentile(values, 90), "p95": percentile(values, 95),
                "p99": percentile(values, 99), "minimum": min(values), "maximum": max(values), "average": mean(values)}
    return {f"report-{i}.json": json.dumps({
        "engine": {"model": MODEL, "model_path": "/models/llm", "engine_dir": None, "version": "1.0.0", "backend": "Pytorch"},
        "machine": {"name": "NVIDIA H100 80GB HBM3", "memory.total": 79.1, "clocks.mem": 2.6},
        "world_info": {"tp_size": 2, "pp_size": 1, "ep_size": 1, "world_size": 2, "max_batch_size": 64, "issue_rate": 1e9},
        "request_info": {"num_requests": len(run.requests), "avg_num_concurrent_requests": run.presence(),
                         "avg_input_length": mean(run.of(lambda r: r.tokens_in)),
                         "avg_output_length": mean(run.of(lambda r: r.tokens_out))},
        "performance": {"total_latency_ms": 1000 * run.seconds(), "avg_request_latency_ms": mean(run.of(Request.latency)),
                        "request_throughput_req_s": run.per_second(),
                        "request_latency_percentiles_ms": percentiles(run.of(Request.latency))},
        **({"streaming_metrics": {"token_output_speed_tok_s": 90.0, "avg_ttft_ms": mean(run.of(Request.ttft)),
                                  "avg_tpot_ms": mean(run.of(Request.itl)), "tpot_percentiles": percentiles(run.of(Request.itl)),
                                  "ttft_percentiles": percentiles(run.of(Request.ttft))}} if streaming else {}),
        "dataset": {"max_isl": 2000, "max_osl": 400}}) for i, run in enumerate(runs)}


# Every format and version, by the name that the documents give it.
FORMATS = {
    "vLLM benchmark_serving.py, June 2024": vllm_script_2024,
    "vLLM benchmark_serving.py, April 2025": vllm_script_2025,
    "vllm bench serve --save-result": vllm_bench,
    "vllm bench serve --save-detailed": lambda runs: vllm_bench(runs, detailed=True),
    "sglang.bench_serving": sglang_lines,
    "sglang.bench_serving --output-details": lambda runs: sglang_lines(runs, detailed=True),
    "guidellm 0.2 JSON": lambda runs: guidellm_02(runs, counts="total_count"),
    "guidellm 0.3 JSON": guidellm_02,
    "guidellm 0.3 JSON, all requests": lambda runs: guidellm_02(runs, requests=True),
    "guidellm 0.4 JSON": guidellm_04,
    "guidellm 0.5 JSON": guidellm_05,
    "guidellm 0.5 JSON, all requests": lambda runs: guidellm_05(runs, requests=True),
    "guidellm 0.7 JSON": guidellm_07,
    "guidellm 0.2 and 0.3 CSV": guidellm_csv_03,
    "guidellm 0.4 to 0.7 CSV": guidellm_csv_04,
    "genai-perf 2024 JSON": genai_perf_2024,
    "genai-perf 2025 JSON": genai_perf_2025,
    "genai-perf 2024 CSV": genai_perf_csv_2024,
    "genai-perf 2025 CSV": genai_perf_csv_2025,
    "aiperf JSON": aiperf_json,
    "aiperf CSV": aiperf_csv,
    "aiperf profile_export.jsonl": aiperf_lines,
    "llmperf summary": llmperf_summary,
    "trtllm-bench report": trtllm_report,
}
# The tool has no closed loops.
WITHOUT_LOOPS = {"vLLM benchmark_serving.py, June 2024"}
# Files that name the model, and others than guidellm's that count requests that failed.
NAMES_MODEL = ["vLLM benchmark_serving.py, April 2025", "vllm bench serve --save-result", "guidellm 0.2 JSON",
               "guidellm 0.3 JSON", "guidellm 0.4 JSON", "guidellm 0.5 JSON", "guidellm 0.7 JSON", "genai-perf 2024 JSON",
               "genai-perf 2025 JSON", "aiperf JSON", "llmperf summary", "trtllm-bench report"]
COUNTS_FAILURES = ["vLLM benchmark_serving.py, April 2025", "vllm bench serve --save-result", "aiperf JSON",
                   "llmperf summary"]
# The tool has no random arrivals, or its files do not have their starts.
ONLY_LOOPS = {"vLLM benchmark_serving.py, April 2025", "sglang.bench_serving --output-details", "llmperf summary",
              "trtllm-bench report"}
