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


if __name__ == "__main__":
    unittest.main()
