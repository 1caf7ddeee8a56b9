#!/usr/bin/python3
"""Fits the files that each benchmark tool would write of a simulated server, and prints the errors as a table.

    BERTH_BIN=build/release/bin/berth python3 bench/fit_formats.py > bench/fit_formats.md
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import benchmark_writers as writers  # noqa: E402
import simulated_server as server  # noqa: E402

BERTH = os.environ.get("BERTH_BIN", str(ROOT / "build/release/bin/berth"))
TRUTH = {"alpha": server.ALPHA, "beta": server.BETA, "betaPrefill": server.PREFILL, "gamma": server.GAMMA}
VLLM = "https://github.com/vllm-project/vllm/blob/main"
GUIDELLM = "https://github.com/vllm-project/guidellm/blob/main"
GENAI = "https://github.com/triton-inference-server/perf_analyzer/tree/main/genai-perf/genai_perf/export_data"
AIPERF = "https://github.com/ai-dynamo/aiperf/tree/main/src/aiperf/exporters"
# The beginning of a format's name, and where its keys and layout are from.
SOURCES = (
    ("vLLM benchmark_serving.py", "the script in `benchmarks/` of vLLM until 0.10"),
    ("vllm bench", f"{VLLM}/vllm/benchmarks/serve.py"),
    ("sglang", "https://github.com/sgl-project/sglang/blob/main/python/sglang/bench_serving.py"),
    ("guidellm 0.2", f"{GUIDELLM}/docs (pages of 0.2.1: reference/guidellm/benchmark)"),
    ("guidellm 0.3", f"{GUIDELLM}/docs (pages of 0.3: reference/guidellm/benchmark)"),
    ("guidellm", f"{GUIDELLM}/src/guidellm/benchmark/outputs/csv.py and …/schemas"),
    ("genai-perf", GENAI), ("aiperf", AIPERF),
    ("llmperf", "https://github.com/ray-project/llmperf/blob/main/token_benchmark_ray.py"),
    ("trtllm", "https://github.com/NVIDIA/TensorRT-LLM/blob/main/tensorrt_llm/bench/dataclasses/reporting.py"),
)


def fitted(write, runs):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in write(runs).items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        done = subprocess.run([BERTH, "fit", folder, "--llm", writers.MODEL, "--accelerator", "A", "--json"],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["fits"][0]


def cells(write, runs):
    """Errors of alpha and betaPrefill, and the greatest error of the mean time between tokens of a run."""
    fit = fitted(write, runs)
    parts = [f"{100 * (fit['perfParms'][name] / TRUTH[name] - 1):+.1f} %" for name in ("alpha", "betaPrefill")]
    return [*parts, f"{100 * max(abs(each['itlFitted'] / each['itl'] - 1) for each in fit['check']):.1f} %"]


def main():
    closed, random = server.closed_loops((1, 2, 4, 8, 16, 32), 100), server.open_loops((0.5, 2, 4, 8), 100)
    print(f"""# Files of benchmark tools, fitted

This page shows how precisely `berth fit` recovers known parameters from the files of each benchmark tool.

One simulated server (`tests/simulated_server.py`) has iterations of {TRUTH['alpha']:.0f} + {TRUTH['beta']} B + {TRUTH['betaPrefill']} P + {TRUTH['gamma']} K ms
([what is fitted](../docs/explanation/fleet-fitting.md#what-is-fitted)). `tests/benchmark_writers.py` writes its runs as each tool does:

- {len(closed)} closed loops of 1 to 32 requests with 150 and 900 tokens in
- {len(random)} random loads of 0.5 to 8 requests a second

The columns are the error of alpha, the error of betaPrefill, and the largest error of a run's mean time between tokens. A dash means that
the tool has no such load, or that its file lacks the start times of random arrivals (other than vLLM's, which the writers do not draw).

Tables and summaries have means only, which do not determine the form of an iteration under random arrivals. For these, `max` is taken for
`sum`, and betaPrefill is too high. Files with all requests determine it. To make this page again:

```
BERTH_BIN=build/release/bin/berth python3 bench/fit_formats.py > bench/fit_formats.md
```

| format | closed: alpha | betaPrefill | time between tokens | random: alpha | betaPrefill | time between tokens |
| --- | --- | --- | --- | --- | --- | --- |""")
    for name, write in writers.FORMATS.items():
        one = ["-"] * 3 if name in writers.WITHOUT_LOOPS else cells(write, closed)
        other = ["-"] * 3 if name in writers.ONLY_LOOPS else cells(write, random)
        print(f"| {name} | " + " | ".join(one + other) + " |")
    print("\nThe keys and the layout of each format are from:\n")
    for start, source in SOURCES:
        print(f"- {start}: {source}")


if __name__ == "__main__":
    main()
