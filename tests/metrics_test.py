#!/usr/bin/python3
"""berth metrics: what it tells, that promtool finds nothing wrong with it, and that a real Prometheus scrapes it."""

import http.server
import json
import shutil
import subprocess
import threading
import unittest
import urllib.request
from pathlib import Path

from berth_case import Case, until
from prometheus_server import Prometheus

ROOT = Path(__file__).resolve().parent.parent
BEGIN_S = 1_700_000_000


class Metrics(Case):
    def figures(self):
        done = self.house.run("metrics")
        self.assertEqual((done.code, done.err), (0, b""))
        lines = [line for line in done.out.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    def some_runs(self):
        self.write("sweep.yaml", "name: a\nrun: '[ {x} != 3 ]'\nparams: {x: [1, 2, 3]}\n")
        self.house.run("run", "sweep.yaml")
        self.house.run("run", "--name", "b", "--", "true")

    def test_runs_and_the_machine(self):
        empty = self.figures()
        self.assertEqual(empty['berth_tasks{state="done"}'], 0)
        self.some_runs()
        found = self.figures()
        self.assertEqual((found['berth_runs{state="done"}'], found['berth_runs{state="failed"}']), (1, 1))
        self.assertEqual(found['berth_run_failures{run="a-1",cause="exit_code"}'], 1)
        self.assertGreater(found['berth_store_bytes'], 0)
        self.assertEqual((found['berth_tasks{state="done"}'], found['berth_tasks{state="failed"}']), (3, 1))
        self.assertEqual(found['berth_run_tasks{run="a-1",kind="experiment",state="failed"}'], 1)
        self.assertEqual(found['berth_task_run_seconds_count{run="a-1"}'], 3)
        self.assertEqual(found['berth_run_seconds_bucket{le="+Inf"}'], 2)
        self.assertLessEqual(found['berth_task_wait_seconds_bucket{run="a-1",le="0.1"}'],
                             found['berth_task_wait_seconds_bucket{run="a-1",le="60"}'])
        machine = json.loads(self.house.run("machine", "--json").out)
        self.assertEqual(found['berth_machine_capacity{resource="cpu"}'], machine["total"]["cpu"])
        self.assertEqual(found['berth_machine_holders'], 0)

    def test_a_gpu_that_is_held(self):
        self.house.environment["BERTH_TOPOLOGY"] = "dgx1-v100"
        holder = self.house.start("run", "--name", "gpu", "--gpu", "1", "--", "sleep", "60")
        until(lambda: sum(value for name, value in self.figures().items() if name.startswith("berth_gpu_held")) == 1,
              "one is held", 30)
        found = self.figures()
        self.assertEqual(sum(name.startswith("berth_gpu_memory_bytes") for name in found), 8)
        self.assertEqual(found['berth_machine_held{resource="gpu"}'], 1)
        self.house.run("stop", "gpu-1")
        holder.wait(timeout=60)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool_is_content(self):
        self.some_runs()
        self.assert_content(self.house.run("metrics").out)

    def assert_content(self, text):
        said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
        self.assertEqual((said.returncode, said.stdout + said.stderr), (0, b""))

    def test_commits_are_counted_while_a_run_goes_on(self):
        runner = self.house.start("run", "--name", "long", "--", "sh", "-c", "while ! test -e go; do sleep 0.1; done")
        until(lambda: self.figures().get("berth_store_commits_total", 0) > 0, "it has committed")
        self.write("go", "")
        runner.wait(timeout=60)

    @unittest.skipUnless(shutil.which("prometheus"), "Prometheus is not installed")
    def test_prometheus_scrapes_a_server(self):
        """With the token of a reader, from berth serve: runs, this machine, what is planned, and the server itself."""
        self.some_runs()
        fleet = ROOT / "examples/fleet"
        server = self.house.start("serve", "--listen", "127.0.0.1:0", "--token-file", "control", "--read-token-file", "read", fleet)
        url = server.stdout.readline().decode().strip()
        token = (self.dir / "control").read_text().strip()

        def ask(path, method="GET"):
            request = urllib.request.Request(url + path, method=method, headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request) as answer:
                return answer.headers["Content-Type"], answer.read()

        self.assertNotIn(b"wva_", ask("/metrics")[1], "nothing is desired yet")
        plan = json.loads(ask("/v1/optimize", "POST")[1])
        kind, text = ask("/metrics")
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        self.assert_content(text)
        scraper = Prometheus(BEGIN_S, [], scrapes=url.removeprefix("http://"), token_file=self.dir / "read")
        self.addCleanup(scraper.close)
        until(lambda: scraper.ask('berth_tasks{state="done"}') == 3, "it has been scraped", 30)
        chosen = plan["allocations"]["assistant"]
        self.assertEqual(scraper.ask(f'wva_desired_replicas{{variant_name="assistant",accelerator_type="{chosen["accelerator"]}"}}'),
                         chosen["numReplicas"])
        self.assertGreater(scraper.ask('berth_http_answers_total{status="200"}'), 0)
        self.assertEqual(scraper.ask("up"), 1)

    @unittest.skipUnless(shutil.which("prometheus"), "Prometheus is not installed")
    def test_prometheus_scrapes_it(self):
        self.some_runs()
        self.assertEqual(self.house.run("metrics", "-o", "berth.prom").out, b"")
        text = (self.dir / "berth.prom").read_bytes()

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.addCleanup(exporter.server_close)
        self.addCleanup(exporter.shutdown)
        threading.Thread(target=exporter.serve_forever, daemon=True).start()
        server = Prometheus(BEGIN_S, [], scrapes=f"127.0.0.1:{exporter.server_port}")
        self.addCleanup(server.close)

        until(lambda: server.ask('berth_tasks{state="done"}') == 3, "it has been scraped", 30)
        self.assertEqual(server.ask('histogram_quantile(0.5, berth_run_seconds_bucket) < 86400') is None, False)


if __name__ == "__main__":
    unittest.main()
