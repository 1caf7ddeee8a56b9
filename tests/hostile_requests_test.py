#!/usr/bin/python3
"""Requests that are made to harm berth serve or its other clients: bodies that are meant as requests, and requests that cost much."""

import json
import os
import shutil
import socket
import subprocess
import time
import unittest
from urllib.parse import urlsplit

from berth_case import Case, until
from serve_test import FLEET

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def answers(text):
    """The statuses of the answers in the bytes that a connection has sent."""
    return [int(part[:3]) for part in text.split(b"HTTP/1.1 ")[1:]]


def chunked(body, size=7):
    parts = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x;note=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\nX-Trailer: a\r\n\r\n"


class Server(Case):
    def serve(self, *arguments):
        (self.dir / "fleet.json").write_text(json.dumps(FLEET))
        self.server = self.house.start("serve", "--listen", "127.0.0.1:0", *arguments, "fleet.json")
        self.url = urlsplit(self.server.stdout.readline().decode().strip())
        self.host = f"Host: 127.0.0.1:{self.url.port}\r\n".encode()
        self.next = b"GET /removeServer/chat HTTP/1.1\r\n" + self.host + b"\r\n"

    def sent(self, data, to=None):
        """What the server sends after `data`, until it closes the connection or a second passes without a byte."""
        with socket.socket(socket.AF_UNIX if to else socket.AF_INET) as raw:
            raw.settimeout(20)
            raw.connect(str(to) if to else (self.url.hostname, self.url.port))
            raw.sendall(data)
            raw.settimeout(1)
            got = b""
            try:
                while part := raw.recv(65536):
                    got += part
            except (TimeoutError, ConnectionResetError):
                pass
            return got

    def servers(self):
        got = self.sent(b"GET /getServers HTTP/1.1\r\n" + self.host + b"Connection: close\r\n\r\n")
        return [server["name"] for server in json.loads(got.partition(b"\r\n\r\n")[2])["servers"]]


class BodiesAreNotTakenForRequests(Server):
    def request(self, method, fields, body, path=b"/v1/health"):
        return method + b" " + path + b" HTTP/1.1\r\n" + self.host + fields + b"\r\n" + body

    def test_the_body_of_any_method_is_not_the_next_request(self):
        self.serve()
        last = self.request(b"GET", b"Connection: close\r\n", b"")
        for method in (b"GET", b"HEAD", b"OPTIONS", b"DELETE", b"PUT", b"PATCH", b"POST"):
            for fields, body in ((b"Content-Length: %d\r\n" % len(self.next), self.next),
                                 (b"Transfer-Encoding: chunked\r\n", chunked(self.next))):
                got = answers(self.sent(self.request(method, fields, body) + last))
                self.assertEqual(len(got), 2, (method, fields, got))
                self.assertEqual(got[1], 200, (method, fields, got))
                self.assertEqual(self.servers(), ["chat"], (method, fields))

    def test_a_body_with_an_unclear_end_is_refused_and_ends_the_connection(self):
        self.serve()
        length = b"Content-Length: %d\r\n" % len(self.next)
        for fields, body, status in (
                (length + b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n" + self.next, 400),
                (b"Transfer-Encoding: chunked\r\n" + length, b"0\r\n\r\n" + self.next, 400),
                (b"Content-Length: 0\r\n" + length, self.next, 400),
                (length + length, self.next, 400),
                (b"Content-Length: 0, 5\r\n", self.next, 400),
                (b"Content-Length: +0\r\n", self.next, 400),
                (b"Content-Length : 0\r\n", self.next, 400),
                (b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n" + self.next, 400),
                (b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n" + self.next, 501),
                (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"0\r\n\r\n" + self.next, 501),
                (b"Transfer-Encoding: chunked\r\n", b"0x0\r\n\r\n" + self.next, 400),
                (b"Transfer-Encoding: chunked\r\n", b"0\n\n" + self.next, 400),
                (b"Transfer-Encoding: chunked\r\n", b"1\r\nab\r\n0\r\n\r\n" + self.next, 400),
                (b"Transfer-Encoding: chunked\r\n", b"-1\r\n" + self.next, 400),
                (b"X: a\r\n\tb\r\n", self.next, 400),
                (b"X: a\nContent-Length: 0\r\n", self.next, 400),
                (b"X: a\rContent-Length: 0\r\n", self.next, 400),
                (b"Content-Length: 67108865\r\n", self.next, 413),
                (b"Transfer-Encoding: chunked\r\n", b"4000001\r\n" + self.next, 413)):
            for method in (b"GET", b"POST"):
                self.assertEqual(answers(self.sent(self.request(method, fields, body))), [status], (method, fields, body))
        self.assertEqual(self.servers(), ["chat"])

    def test_a_request_line_that_is_not_one_ends_the_connection(self):
        self.serve()
        for line, status in ((b"GET  /v1/health HTTP/1.1", 400), (b"GET /v1/health HTTP/2.0", 505), (b"GET /v1/health", 400),
                             (b"GET /" + b"a" * 9000 + b" HTTP/1.1", 414), (b"GET / HTTP/1.1\r\nX: " + b"a" * 70000, 431),
                             (b"BREW /v1/health HTTP/1.1", 400)):
            got = self.sent(line + b"\r\n" + self.host + b"Connection: close\r\n\r\n" + self.next)
            self.assertEqual(answers(got), [status], line[:40])
        self.assertEqual(self.servers(), ["chat"])

    def test_the_body_of_a_refused_request_is_not_read(self):
        self.serve("--token-file", "control")
        for fields, body in ((b"Content-Length: %d\r\n" % len(self.next), self.next),
                             (b"Transfer-Encoding: chunked\r\n", chunked(self.next))):
            for method, path in ((b"GET", b"/getServers"), (b"POST", b"/v1/optimize"), (b"GET", b"/v1/runs")):
                got = self.sent(self.request(method, fields, body, path))
                self.assertEqual(answers(got), [401], (method, fields))
                self.assertIn(b"Connection: close", got)

    def test_a_chunked_body_is_planned_as_another_one(self):
        self.serve()
        body = json.dumps(FLEET).encode()
        plans = [json.loads(self.sent(self.request(b"POST", b"Connection: close\r\n" + fields, sent, b"/v1/plan")).rpartition(b"\r\n\r\n")[2])
                 for fields, sent in ((b"Content-Length: %d\r\n" % len(body), body), (b"Transfer-Encoding: chunked\r\n", chunked(body)),
                                      (b"Transfer-Encoding: chunked\r\n", chunked(body, 5000)))]
        self.assertEqual(plans[0]["allocations"], plans[1]["allocations"])
        self.assertEqual(plans[0]["allocations"], plans[2]["allocations"])

    def test_a_body_that_waits_for_100_continue_is_asked_for(self):
        self.serve()
        body = json.dumps(FLEET).encode()
        got = self.sent(self.request(b"POST", b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n" % len(body), body,
                                     b"/v1/plan"))
        self.assertEqual(answers(got), [100, 200])


@unittest.skipUnless(NGINX, "nginx is not installed")
class BehindNginx(Server):
    """A proxy that keeps its connections to the server sends the requests of different users on one connection."""

    def setUp(self):
        super().setUp()
        self.serve("--token-file", "control", "--read-token-file", "read")
        self.bearer = {role: b"Authorization: Bearer " + (self.dir / role).read_bytes().strip() + b"\r\n" for role in ("control", "read")}
        self.front = self.dir / "nginx.sock"
        paths = " ".join(f"{kind}_temp_path {self.dir}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.getuid() == 0 else ""
        (self.dir / "nginx.conf").write_text(f"""
daemon off; master_process off; {user} pid {self.dir}/nginx.pid; error_log {self.dir}/nginx.log;
events {{ worker_connections 64; }}
http {{
  access_log off; {paths}
  upstream berth {{ server 127.0.0.1:{self.url.port}; keepalive 1; }}
  server {{
    listen unix:{self.front};
    location / {{
      proxy_pass http://berth; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host 127.0.0.1:{self.url.port};
    }}
    location /unbuffered/ {{
      proxy_pass http://berth/; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off;
      proxy_set_header Host 127.0.0.1:{self.url.port};
    }}
  }}
}}
""")
        self.nginx = subprocess.Popen([NGINX, "-e", self.dir / "nginx.log", "-c", self.dir / "nginx.conf"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        self.addCleanup(self.nginx.wait)
        self.addCleanup(self.nginx.kill)
        until(self.answers_health, "nginx answers")

    def answers_health(self):
        try:
            return b" 200 " in self.sent(b"GET /v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", self.front)
        except OSError:
            return False

    def attacked(self, method, fields, body, where=b""):
        """The servers of the fleet as a user with the control token sees them after a request of a user with the read token."""
        self.sent(method + b" " + where + b"/v1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + self.bearer["read"] + fields +
                  b"\r\n" + body, self.front)
        got = self.sent(b"GET /getServers HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + self.bearer["control"] + b"\r\n", self.front)
        self.assertEqual(answers(got), [200], (method, fields, got))
        return [server["name"] for server in json.loads(got.partition(b"\r\n\r\n")[2])["servers"]]

    def test_a_reader_cannot_prefix_the_request_of_a_control_user(self):
        prefix = b"GET /removeServer/chat HTTP/1.1\r\nX-Ignore: "
        for method in (b"GET", b"HEAD", b"OPTIONS", b"DELETE"):
            self.assertEqual(self.attacked(method, b"Content-Length: %d\r\n" % len(prefix), prefix), ["chat"], method)

    def test_nor_with_a_chunked_body(self):
        prefix = b"GET /removeServer/chat HTTP/1.1\r\nX-Ignore: "
        for method in (b"GET", b"POST", b"OPTIONS"):
            self.assertEqual(self.attacked(method, b"Transfer-Encoding: chunked\r\n", chunked(prefix)), ["chat"], method)

    def test_nor_with_a_body_that_nginx_passes_on_as_it_comes(self):
        prefix = b"GET /removeServer/chat HTTP/1.1\r\nX-Ignore: "
        for method in (b"GET", b"POST", b"DELETE"):
            for fields, body in ((b"Content-Length: %d\r\n" % len(prefix), prefix), (b"Transfer-Encoding: chunked\r\n", chunked(prefix))):
                self.assertEqual(self.attacked(method, fields, body, b"/unbuffered"), ["chat"], (method, fields))


def slow_fleet():
    """Each server's percentile is simulated, which takes some 40 ms."""
    fleet = json.loads(json.dumps(FLEET))
    fleet["serviceClassData"]["serviceClasses"][0]["modelTargets"] = [{"model": "llama", "slo-itl-p99": 60}]
    fleet["serverData"]["servers"] = [
        {"name": f"s{i}", "class": "gold", "model": "llama",
         "currentAlloc": {"load": {"arrivalRate": 60 + i, "avgInTokens": 200 + i, "avgOutTokens": 100 + i}}} for i in range(3000)]
    return json.dumps(fleet).encode()


def entries(path, entry, count):
    """A fleet with so many entries in one list."""
    of, key = path.split(".")
    return b'{"%s":{"%s":[' % (of.encode(), key.encode()) + b",".join(entry.encode().replace(b"#", b"%d" % i) for i in range(count)) + b"]}}"


# What a request may take of memory: this many times its body, this much for each entry of a fleet, and some that is always there.
FACTOR, EACH, FIXED = 40, 4096, 32 << 20
MOST = 100_000
SIZE = 2 << 20
SHAPES = {
    "empty lists": lambda: b'{"a":[' + b"[]," * (SIZE // 3) + b"[]]}",
    "empty maps": lambda: b'{"a":[' + b"{}," * (SIZE // 3) + b"{}]}",
    "numbers": lambda: b'{"a":[' + b"1," * (SIZE // 2) + b"1]}",
    "keys": lambda: b"{" + b",".join(b'"%d":1' % i for i in range(SIZE // 10)) + b"}",
    "nested": lambda: b'{"a":[' + b",".join([b'{"":' * 50 + b"1" + b"}" * 50] * (SIZE // 251)) + b"]}",
    "text": lambda: b'{"a":"' + b"\\u0041" * (SIZE // 6) + b'"}',
    "not JSON": lambda: b"[" * SIZE,
    "too deep": lambda: b'{"a":' * (SIZE // 5),
}
FLEETS = {
    "accelerators": ("acceleratorData.accelerators", '{"name":"a#"}'),
    "servers": ("serverData.servers", '{"name":"s#"}'),
    "types": ("capacityData.count", '{"type":"t#"}'),
    "models": ("modelData.models", '{"name":"m#","acc":"a"}'),
    "classes": ("serviceClassData.serviceClasses", '{"name":"c#"}'),
}


class CostlyRequests(Server):
    def setUp(self):
        super().setUp()
        self.serve()
        self.proc = f"/proc/{self.server.pid}"

    def post(self, body, path=b"/v1/plan"):
        """The status of the answer, and the seconds until it."""
        begun = time.monotonic()
        with socket.create_connection((self.url.hostname, self.url.port), timeout=120) as raw:
            raw.sendall(b"POST " + path + b" HTTP/1.1\r\n" + self.host + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
            try:
                raw.sendall(body)
            except ConnectionError:
                pass
            got = b"".join(iter(lambda: raw.recv(1 << 20), b""))
        return answers(got[:100]), time.monotonic() - begun

    def memory(self, what):
        with open(f"{self.proc}/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith(what))

    def processor_ticks(self):
        with open(f"{self.proc}/stat") as stat:
            return int(stat.read().rpartition(")")[2].split()[11])

    def begin_slow(self):
        """A request that takes minutes, once the server computes its answer."""
        raw = socket.create_connection((self.url.hostname, self.url.port))
        self.addCleanup(raw.close)
        body, before = slow_fleet(), self.processor_ticks()
        raw.sendall(b"POST /v1/plan HTTP/1.1\r\n" + self.host + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        until(lambda: self.processor_ticks() > before + 50, "the server computes")
        return raw

    @unittest.skipIf(os.environ.get("BERTH_SANITIZE"), "a sanitizer's memory is its own")
    def test_memory_is_a_bounded_multiple_of_the_body_and_is_given_back(self):
        self.post(b"{}")
        bodies = {name: (shape(), 0) for name, shape in SHAPES.items()}
        bodies |= {name: (entries(*of, MOST // 4), MOST // 4) for name, of in FLEETS.items()}
        bodies["too many servers"] = entries(*FLEETS["servers"], 2 * MOST), 0
        for name, (body, count) in bodies.items():
            with open(f"{self.proc}/clear_refs", "w") as peak:
                peak.write("5")
            before = self.memory("VmRSS")
            status, seconds = self.post(body)
            grown = self.memory("VmHWM") - before
            if os.environ.get("BERTH_FIGURES"):
                print(f"{name}: {status} {len(body)} bytes, {seconds:.2f} s, {grown / len(body):.1f} times, {grown // max(count, 1)} an entry")
            self.assertLess(grown, FACTOR * len(body) + EACH * count + FIXED, name)
            until(lambda: self.memory("VmRSS") - before < FIXED, f"{name}: the memory is given back", 20)

    def test_reading_takes_time_that_is_linear_in_the_body(self):
        for name, of in FLEETS.items():
            few, many = (min(self.post(entries(*of, count))[1] for _ in range(2)) for count in (MOST // 80, MOST // 4))
            self.assertLess(many, 100 * few + 1, name)  # 20 times the entries; the square would be 400

    def test_a_fleet_with_too_many_pairs_or_entries_is_refused(self):
        for name in ("servers", "types"):
            self.assertEqual(self.post(entries(*FLEETS[name], MOST + 1))[0], [400], name)
        pairs = entries(*FLEETS["servers"], 10_000)[:-1] + b"," + entries(*FLEETS["accelerators"], 1_001)[1:]
        self.assertEqual(self.post(pairs)[0], [400])

    def test_a_server_whose_client_left_stops_computing(self):
        self.begin_slow().close()

        def rests():
            before = self.processor_ticks()
            time.sleep(0.3)
            return self.processor_ticks() - before <= 2
        until(rests, "the server rests")
        self.assertEqual(self.servers(), ["chat"])

    def test_a_stop_signal_ends_a_server_that_computes(self):
        self.begin_slow()
        self.server.terminate()
        begun = time.monotonic()
        self.assertEqual(self.server.wait(timeout=30), 0)
        if os.environ.get("BERTH_FIGURES"):
            print(f"ended after {time.monotonic() - begun:.2f} s")

    def test_a_stop_signal_ends_a_server_that_reads(self):
        for data in (b"", b"G", b"POST /v1/plan HTTP/1.1\r\n" + self.host + b"Content-Length: 1000\r\n\r\n{",
                     b"POST /v1/plan HTTP/1.1\r\n" + self.host + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"):
            raw = socket.create_connection((self.url.hostname, self.url.port))
            self.addCleanup(raw.close)
            raw.sendall(data)
        self.server.terminate()
        self.assertEqual(self.server.wait(timeout=30), 0)

    def test_what_would_change_the_fleet_changes_nothing_once_its_client_left(self):
        raw = socket.create_connection((self.url.hostname, self.url.port))
        body, before = slow_fleet(), self.processor_ticks()
        raw.sendall(b"POST /optimizeOne HTTP/1.1\r\n" + self.host + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        until(lambda: self.processor_ticks() > before + 50, "the server computes")
        raw.close()
        self.assertEqual(self.servers(), ["chat"])
        self.assertEqual(self.post(json.dumps(FLEET).encode())[0], [200], "the next one has its turn")
        self.assertEqual(self.servers(), ["chat"])


if __name__ == "__main__":
    unittest.main()
