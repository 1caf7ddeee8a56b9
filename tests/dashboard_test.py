#!/usr/bin/python3
"""berth dashboard: who may see the page, and that what it asks for is what the commands say."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

from berth_case import Case, until

ROOT = Path(__file__).resolve().parent.parent
SWEEP = """
name: sweep
run: echo "::berth loss={x}.5"; test {x} != 3
params: {x: {values}}
goal: {metric: loss, direction: min}
"""


class Dashboard(Case):
    def setUp(self):
        super().setUp()
        self.cookie = None

    def sweep(self, values="[4, 2, 3]"):
        self.write("sweep.yaml", SWEEP.replace("{values}", values))
        """A run of which trial 3 fails, if x has that value."""
        return self.berth("run", "sweep.yaml", code=1 if "3" in values else 0)

    def open(self, *options):
        """Starts it and comes in by its link."""
        self.server = self.house.start("dashboard", *options)
        link = self.server.stdout.readline().decode().strip()
        self.port = int(link.partition("127.0.0.1:")[2].partition("/")[0])
        self.link = link[link.index("/open"):].partition("#")
        response = self.ask("GET", self.link[0], cookie=None)
        self.assertEqual((response.status, response.headers["Location"]), (303, "/"))
        self.cookie = response.headers["Set-Cookie"].partition(";")[0]
        self.assertIn("HttpOnly; SameSite=Strict", response.headers["Set-Cookie"])

    def ask(self, method, path, *, cookie=True, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = dict(headers or {})
        if cookie:
            sent["Cookie"] = self.cookie if cookie is True else cookie
        connection.request(method, path, headers=sent)
        response = connection.getresponse()
        response.text = response.read()
        connection.close()
        return response

    def json(self, path):
        response = self.ask("GET", path)
        self.assertEqual(response.status, 200, response.text)
        return json.loads(response.text)

    def test_it_says_what_the_commands_say(self):
        self.sweep()
        self.open()
        for path, words in (("/v1/runs", ["runs"]), ("/v1/runs/sweep-1", ["show", "sweep-1"]),
                            ("/v1/runs/sweep-1/best", ["best", "sweep-1"]), ("/v1/tasks/sweep-1%2F3/why", ["why", "sweep-1/3"])):
            self.assertEqual(self.json(path), self.house.json(*words), path)
        self.assertEqual(self.json("/v1/runs/sweep-1/summary")["tasks"], [])
        csv = self.ask("GET", "/v1/runs/sweep-1/trials.csv")
        self.assertEqual((csv.headers["Content-Type"], csv.text), ("text/csv; charset=utf-8", self.berth("show", "sweep-1", "--csv").out))
        for coding in ("gzip", "br", "gzip, deflate, br, zstd"):  # which the library did at its slowest
            plain = self.ask("GET", "/v1/runs/sweep-1/trials.csv", headers={"Accept-Encoding": coding})
            self.assertEqual((plain.headers["Content-Encoding"], plain.text), (None, csv.text))
        self.assertIn(b"loss=2.5", self.ask("GET", "/v1/tasks/sweep-1%2F2/log").text)
        missing = self.ask("GET", "/v1/runs/nope")
        self.assertEqual((missing.status, json.loads(missing.text)), (404, {key: "no run is called 'nope'" for key in ("error", "message")} | {"kind": "not_found"}))
        self.assertEqual(self.ask("GET", "/v1/nothing").status, 404)

    def test_only_what_may_have_changed_is_asked_for_again(self):
        self.berth("run", "--", "sh", "-c", "seq 30000; echo oops >&2")
        self.sweep()
        self.open()
        whole = self.ask("GET", "/v1/runs/sh-1/log").text
        self.assertIn(b"\noops\n", whole[-4096:], "both streams")
        self.assertEqual(self.ask("GET", "/v1/runs/sh-1/log?tail=1Ki").text, whole[-1024:])
        csv = self.ask("GET", "/v1/runs/sweep-1/trials.csv").text.splitlines()
        self.assertEqual(len(csv), 4)
        since = lambda time: self.ask("GET", f"/v1/runs/sweep-1/trials.csv?changed-since={time}").text.splitlines()
        self.assertEqual(since("2020-01-01T00:00:00Z"), csv)
        self.assertEqual([len(since("2099-01-01T00%3A00%3A00Z")), since("2099-01-01T00:00:00Z")[0][:8]], [1, b"id,state"])
        self.assertEqual(self.json("/v1/runs/sweep-1/importance")["because"][:20], "expected at least 10", "an answer, and no fault")
        for query in ("changed-since=yesterday", "sort=x", "tail", "=", "changed-since=" + "9" * 600):
            self.assertEqual(self.ask("GET", f"/v1/runs/sweep-1/trials.csv?{query}").status, 400, query)

    def test_head_is_get_without_a_body(self):
        self.sweep()
        self.open()
        for path in ("/", "/v1/runs", "/v1/runs/sweep-1/trials.csv"):
            response = self.ask("HEAD", path)
            self.assertEqual((response.status, response.text), (200, b""), path)
        self.assertEqual(self.ask("HEAD", "/v1/nothing").status, 404)

    def test_fleets_are_those_of_the_command_line(self):
        fleet = ROOT / "examples/fleet"
        self.open("--fleet", fleet / "fleet.json", "--profile", fleet / "day.csv")
        self.assertEqual(self.json("/v1/fleets")["fleets"], [str(fleet / "fleet.json")])
        plan = self.json("/v1/fleets/0/plan")
        self.assertEqual(plan, self.house.json("plan", fleet / "fleet.json"))
        self.assertEqual(plan["servers"]["summaries"]["change"], "was 4 × L4, +110.00")
        self.assertEqual(plan["servers"]["assistant"]["slo"]["ttft"], 800)
        more = self.json("/v1/fleets/0/plan?set=capacity.H100%3D16&set=server.assistant.arrivalRate=1800&percentiles=closed-form")
        self.assertGreater(more["cost"], plan["cost"])
        self.assertEqual([each["limit"] for each in more["totals"] if each["type"] == "H100"], [16])
        self.assertEqual(len(self.json("/v1/fleets/0/day")["windows"]), 24)
        for path in ("1/plan", "-1/plan", "x/plan", "0/plan?start=1", "0/plan?manifests=/tmp", "%2Fetc%2Fpasswd/plan"):
            self.assertEqual(self.ask("GET", f"/v1/fleets/{path}").status, 400, path)
        self.write("broken.json", "{")
        self.assertIn("broken.json", self.one_line(self.berth("dashboard", "--fleet", "broken.json", code=2)))

    def test_connections_that_say_nothing_give_way(self):
        self.open()
        idle = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(64)]
        for at, connection in enumerate(idle):
            self.addCleanup(connection.close)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"[:at])
        begun = time.monotonic()
        self.assertEqual(self.ask("GET", "/v1/runs").status, 200)
        self.assertLess(time.monotonic() - begun, 4, "they have a second, and not ten")

    def test_the_page_is_its_own_and_carries_a_policy(self):
        self.open()
        for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
            response = self.ask("GET", path)
            self.assertEqual((response.status, response.headers["Content-Encoding"]), (200, "gzip"))
            self.assertTrue(response.headers["Content-Type"].startswith(kind))
            self.assertIn("default-src 'none'; script-src 'self'", response.headers["Content-Security-Policy"])
            self.assertLess(len(response.text), 300_000)

    def test_a_link_is_good_once_and_nothing_is_seen_without(self):
        self.open()
        self.assertEqual(self.ask("GET", "/", cookie=None).status, 200, "the page has nothing to tell by itself")
        again = self.ask("GET", self.link[0], cookie=None)
        self.assertEqual(again.status, 401)
        self.assertIn("a new one", json.loads(again.text)["error"])
        name = self.cookie.partition("=")[0]
        for cookie in (None, name + "=", name + "=" + "0" * 48, self.cookie[:-1]):
            for path in ("/v1/runs", "/v1/machine", "/v1/events", "/v1/session", "/v1/system", "/metrics"):
                self.assertEqual(self.ask("GET", path, cookie=cookie).status, 401, (cookie, path))
        invited = json.loads(self.ask("POST", "/v1/invite").text)["path"]
        self.assertEqual(self.ask("GET", invited, cookie=None).status, 303, "for another viewer")
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            self.assertEqual(self.ask("GET", "/v1/runs", headers=headers).status, 403, headers)

    def test_no_name_is_an_option(self):
        self.sweep()
        self.open()
        for name in ("--help", "-h", "%2D%2Dcsv", "", "a%0Ab", "x" * 600):
            response = self.ask("GET", f"/v1/runs/{name}/log")
            self.assertIn(response.status, (400, 404), name)
        self.assertEqual(self.ask("GET", "/v1/compare?" + "&".join(["run=sweep-1"] * 17)).status, 400)
        self.assertEqual(self.ask("GET", "/v1/compare?run=sweep-1&run=--help").status, 400)
        self.assertEqual(self.json("/v1/compare?run=sweep-1&run=sweep-1"), self.house.json("compare", "sweep-1", "sweep-1"))

    def test_stop_resume_and_retry(self):
        self.write("slow.yaml", "name: slow\nrun: 'test -e go || sleep 60; test {x} != 2'\nparams: {x: [1, 2]}\n"
                   "resources: {cpu: 0.1}\n")
        run = self.berth("run", "--detach", "slow.yaml").out.decode().strip()
        self.open(run)
        self.assertEqual(self.link[2], "/runs/slow-1", "its link leads to the run")
        until(lambda: self.house.counts(run)["running"] == 2, "both run")
        stopped = self.ask("POST", f"/v1/runs/{run}/stop")
        self.assertEqual(stopped.status, 200, stopped.text)
        self.assertIn("stopped; resume it with", json.loads(stopped.text)["said"])
        self.write("go", "")
        resumed = self.ask("POST", f"/v1/runs/{run}/resume")
        self.assertEqual((resumed.status, json.loads(resumed.text)["run"]["id"]), (200, run))
        until(lambda: self.json(f"/v1/runs/{run}/summary")["run"]["state"] in ("done", "failed"), "it went on")
        self.assertEqual(self.house.counts(run)["failed"], 1)
        runner = self.json(f"/v1/runs/{run}/summary")["run"]["runner"]
        until(lambda: not Path(f"/proc/{runner}").exists(), "its runner has left")
        before = self.house.json("why", f"{run}/2")["attempts"]
        retried = self.ask("POST", f"/v1/runs/{run}/retry")
        self.assertEqual(retried.status, 200, retried.text)
        until(lambda: self.house.json("why", f"{run}/2")["attempts"] == before + 1, "it was tried again")
        self.berth("wait", run, code=1)

    def test_one_that_only_looks(self):
        self.sweep()
        self.open("--look-only")
        for path in ("/v1/runs/sweep-1/retry", "/v1/runs/sweep-1/stop"):
            self.assertEqual(self.ask("POST", path).status, 403)
        self.assertEqual(self.ask("GET", "/v1/runs").status, 200)
        self.assertEqual(self.ask("POST", "/v1/invite?role=control").status, 403)
        self.assertEqual(self.json("/v1/session")["role"], "read")

    def test_a_slow_client_and_twenty_idle_viewers_do_not_slow_a_run(self):
        connection = self.large_log()  # which nobody reads
        viewers = []
        for _ in range(20):
            viewer = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            viewer.request("GET", "/v1/events", headers={"Cookie": self.cookie})
            viewers.append((viewer, viewer.getresponse()))
        self.write("many.yaml", "name: many\nrun: ':'\nparams: {x: {min: 1, max: 200, type: int}}\n"
                                "search: {method: grid}\nresources: {cpu: 0.1}\n")

        def took():
            begun = time.monotonic()
            self.berth("run", "many.yaml")
            return time.monotonic() - begun
        with_viewers = min(took() for _ in range(3))
        self.assertTrue(all(stream.readline().startswith((b"retry", b"data", b"\n")) for _, stream in viewers), "they hear of it")
        for viewer, _ in viewers:
            viewer.close()
        connection.close()
        self.server.kill()
        self.server.wait()
        alone = min(took() for _ in range(3))
        self.assertLess(with_viewers, 2 * alone + 1, "measured alone: as long, within the noise")

    def test_events_tell_of_changes_and_end_with_the_server(self):
        self.open()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/v1/events", headers={"Cookie": self.cookie})
        stream = connection.getresponse()
        self.assertEqual(stream.headers["Content-Type"], "text/event-stream")

        def event():
            while not (line := stream.readline()).startswith(b"data:"):
                self.assertNotEqual(line, b"", "it goes on")
        event()
        self.sweep()
        event()
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(timeout=20), 0)
        connection.close()


    def large_log(self):
        """Asks for a log of 40 MB and reads nothing of it."""
        self.berth("run", "--", "sh", "-c", "yes 0123456789abcdef | head -c 40000000", timeout=120)
        self.open()
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.sendall(f"GET /v1/runs/sh-1/log HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookie}\r\n\r\n".encode())
        self.addCleanup(connection.close)
        connection.settimeout(30)
        self.assertTrue(connection.recv(1 << 10).startswith(b"HTTP/1.1 200"))
        return connection

    def test_an_end_waits_for_nobody_who_does_not_read(self):
        self.large_log()
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(timeout=15), 0)

    def test_a_large_log_is_sent_by_the_server_itself(self):
        connection = self.large_log()
        self.assertEqual(subprocess.run(["pgrep", "-P", str(self.server.pid)], capture_output=True).stdout, b"", "no process")
        received = 0
        while (part := connection.recv(1 << 20)) and not part.endswith(b"\r\n0\r\n\r\n"):
            received += len(part)
        self.assertGreater(received, 39_000_000)

    def test_several_servers_and_many_viewers(self):
        self.open()
        first, cookie = self.port, self.cookie
        self.open()
        self.assertNotEqual(cookie.partition("=")[0], self.cookie.partition("=")[0], "one browser has both")
        self.port = first
        self.assertEqual(self.ask("GET", "/v1/runs", cookie=f"{cookie}; {self.cookie}").status, 200)
        viewers = []
        for _ in range(45):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("GET", "/v1/events", headers={"Cookie": cookie})
            viewers.append((connection, connection.getresponse().status))
        self.assertEqual([status for _, status in viewers], [200] * 40 + [503] * 5)
        self.assertEqual(self.ask("GET", "/v1/runs", cookie=cookie).status, 200, "there is room for others")
        for method in ("PUT", "DELETE"):
            self.assertEqual(self.ask(method, "/v1/invite", cookie=cookie).status, 405)
        for connection, _ in viewers:
            connection.close()


if __name__ == "__main__":
    unittest.main()
