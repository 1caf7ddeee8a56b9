"""A real Prometheus server on loopback, with what it would have scraped of servers of vLLM at some time past."""

import json
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from berth_case import until
from postgres_server import free_port

SCRAPE_S = 15


def histories(loads, window_s, itl_s, ttft_s):
    """The counters of one server that has each load (requests a second, tokens in, tokens out) for a window."""
    running, total = [], {name: [0.0] for name in (
        "request_generation_tokens_count", "request_generation_tokens_sum", "request_prompt_tokens_count",
        "request_prompt_tokens_sum", "time_to_first_token_seconds_count", "time_to_first_token_seconds_sum",
        "inter_token_latency_seconds_count", "inter_token_latency_seconds_sum")}
    for rate, tokens_in, tokens_out in loads:
        itl, ttft = itl_s(rate, tokens_in, tokens_out), ttft_s(rate, tokens_in, tokens_out)
        running += [rate * (ttft + (tokens_out - 1) * itl)] * (window_s // SCRAPE_S)
        for name, values in total.items():
            count = rate * (tokens_out - 1 if name.startswith("inter") else 1)
            each = {"request_gen": tokens_out, "request_pro": tokens_in, "time_to_fir": ttft, "inter_token": itl}[name[:11]]
            grows = count * SCRAPE_S * (each if name.endswith("_sum") else 1)
            values += [values[-1] + grows * (i + 1) for i in range(window_s // SCRAPE_S)]
    return {**total, "num_requests_running": running[:1] + running}


class Prometheus:
    """Started when made; close() ends it."""

    def __init__(self, start_s, servers, scrapes=None, token_file=None):
        """servers: for each its labels and the values of its metrics, one a scrape. scrapes: host and port of what it
        asks for metrics each second, with the token of a file."""
        self.directory = tempfile.TemporaryDirectory(prefix="berth-prometheus-")
        path = Path(self.directory.name)
        with open(path / "scraped.txt", "w", encoding="utf-8") as file:
            for labels, metrics in servers:
                for name, values in metrics.items():
                    for i, value in enumerate(values):
                        file.write(f"vllm:{name}{{{labels}}} {value!r} {start_s + SCRAPE_S * i}\n")
            file.write("# EOF\n")
        if servers:
            subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", path / "scraped.txt", path / "data"],
                           check=True, capture_output=True)
        (path / "prometheus.yml").write_text(
            "{}" if scrapes is None else
            f"scrape_configs: [{{job_name: j, scrape_interval: 1s, static_configs: [{{targets: ['{scrapes}']}}]" +
            (f", authorization: {{credentials_file: '{token_file}'}}" if token_file else "") + "}]")
        self.url = f"http://127.0.0.1:{free_port()}"
        with open(path / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={path}/prometheus.yml", f"--storage.tsdb.path={path}/data",
                 "--storage.tsdb.retention.time=100y", f"--web.listen-address={self.url.removeprefix('http://')}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.is_ready, f"Prometheus is ready: {path}/log")

    def is_ready(self):
        try:
            with urllib.request.urlopen(self.url + "/-/ready") as answer:
                return answer.status == 200
        except (urllib.error.URLError, ConnectionError):
            if self.process.poll() is not None:
                raise AssertionError(Path(self.directory.name, "log").read_text())
            return False

    def ask(self, query):
        """The first value that a query gives now; None: there is none."""
        with urllib.request.urlopen(self.url + "/api/v1/query?" + urllib.parse.urlencode({"query": query})) as answer:
            found = json.load(answer)["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()
