#!/usr/bin/python3
"""berth plan --start, end to end: servers that answer on their ports, each replica on GPUs of its own.
BERTH_TOPOLOGY stands in for the GPUs, a small HTTP server for one of a model."""

import contextlib
import json
import os
import socket
import subprocess
import unittest
import urllib.request

from berth_case import BERTH, Case, until
from ssh_bed import SSH, SSHD, SshBed, free_port

# Tells how it was started; dies when it is asked for /die.
SERVER = """#!/usr/bin/python3
import http.server, json, os, socketserver, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die": os._exit(3)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"argv": sys.argv[1:], "pid": os.getpid(), **{name: os.environ.get(name) for name in (
            "CUDA_VISIBLE_DEVICES", "NAME", "URL", "BERTH_TEST_HOST")}}).encode())
    def log_message(self, *_): pass
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()  # HTTPServer looks up names
"""


def ports(count):
    """The first of so many free ports in a row."""
    while True:
        first = free_port()
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


class Start(Case):
    def setUp(self):
        super().setUp()
        self.house.environment["BERTH_TOPOLOGY"] = "dgx1-v100"
        self.program = self.script("server", SERVER)
        self.port = ports(4)

    def fleet(self, **changes):
        """chat: two replicas of two GPUs each; "code 7b": one of one GPU. They ask for the same ports."""
        start = {"command": [str(self.program), "{port}"], "port": self.port, "cpu": 0.3,
                 "args": ["{model}", "{accelerators}", "{replica}", "{other}", "${port}"],
                 "env": {"NAME": "{server}", "URL": "http://127.0.0.1:{port}/ {replica}"}, **changes}
        load = {"arrivalRate": 1, "avgInTokens": 100, "avgOutTokens": 100}
        self.write("fleet.json", json.dumps({
            "accelerators": [{"name": "V100", "cost": 1}], "count": [{"type": "V100", "count": 8}],
            "models": [{"name": name, "acc": "V100", "accCount": count, "maxBatchSize": 8, "atTokens": 1024,
                        "perfParms": {"alpha": 10, "beta": 0.1}} for name, count in (("m 1", 2), ("m2", 1))],
            "serviceClasses": [{"name": "C", "modelTargets": [{"model": m, "slo-itl": 100} for m in ("m 1", "m2")]}],
            "servers": [{"name": "chat", "class": "C", "model": "m 1", "minNumReplicas": 2, "start": start,
                         "currentAlloc": {"load": load}},
                        {"name": "code 7b", "class": "C", "model": "m2", "minNumReplicas": 1, "start": start,
                         "currentAlloc": {"load": load}}]}))

    def ask(self, port, path=""):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as answer:
            return json.loads(answer.read())

    def answers(self):
        return [until(lambda port=port: self.ask(port), f"port {port} answers") for port in range(self.port, self.port + 3)]

    def start(self, *options):
        made = json.loads(self.berth("plan", "fleet.json", "--start", "--json", *options).out)
        self.assertEqual(set(made), {"version", "plan", "started"})
        self.assertEqual(made["plan"]["allocations"]["chat"]["numReplicas"], 2)
        return made["started"]

    def stop(self, *runs):
        for run in runs:
            self.berth("stop", run)

    def test_replicas_serve_until_they_are_stopped(self):
        self.fleet()
        nearest = self.house.json("place", 2)["devices"]
        chat, code = self.start()
        self.assertEqual(chat, {"server": "chat", "accelerator": "V100", "role": "whole", "run": "chat-1", "replicas": 2,
                                "accelerators": 2, "ports": [self.port, self.port + 1]})
        self.assertEqual((code["server"], code["accelerators"], code["ports"]), ("code 7b", 1, [self.port + 2]))
        one, two, three = self.answers()
        for replica, answer in enumerate((one, two), 1):
            port = self.port + replica - 1
            self.assertEqual(answer["argv"], [str(port), "m 1", "2", str(replica), "{other}", "${port}"])
            self.assertEqual((answer["NAME"], answer["URL"]), ("chat", f"http://127.0.0.1:{port}/ {replica}"))
        self.assertEqual(three["argv"][1:4], ["m2", "1", "1"])
        held = [answer["CUDA_VISIBLE_DEVICES"].split(",") for answer in (one, two, three)]
        self.assertEqual([len(cards) for cards in held], [2, 2, 1])
        self.assertEqual(len(set(sum(held, []))), 5, "no card serves two")
        self.assertIn({f"gpu-{device}" for device in nearest}, [set(cards) for cards in held])
        for name, run in (("chat", "chat-1"), ("code 7b", code["run"])):
            self.assertEqual([found["id"] for found in self.house.json("runs", "--label", f"server={name}")["runs"]], [run])

        busy = self.one_line(self.berth("plan", "fleet.json", "--start", "--set", "server.chat.minNumReplicas=3", code=3))
        self.assertIn("server 'chat', replica 2 of 3: gpu: ", busy)
        self.assertEqual(len(self.house.json("runs")["runs"]), 2)

        self.assertIsNone(self.ask(self.port, "die"))
        again = until(lambda: self.ask(self.port), "it is started again")
        self.assertNotEqual(again["pid"], one["pid"])
        self.assertEqual(again["argv"], one["argv"])
        self.assertEqual(self.ask(self.port + 1)["pid"], two["pid"], "the others go on")
        self.stop("chat-1")
        self.assertIsNone(self.ask(self.port))
        self.assertIsNone(self.ask(self.port + 1))
        self.assertEqual(self.ask(self.port + 2)["pid"], three["pid"])
        self.stop(code["run"])
        self.assert_tidy()

    def test_a_program_starts_them_by_a_call(self):
        self.fleet()
        call = {"call": "POST", "path": "/v1/fleet-start", "body": json.dumps({"path": "fleet.json", "solver": "greedy"})}
        done = subprocess.run([BERTH, "study"], input=json.dumps(call) + "\n", cwd=self.dir, env=self.house.environment,
                              capture_output=True, text=True)
        started = json.loads(done.stdout)["answer"]["started"]
        self.assertEqual([one["server"] for one in started], ["chat", "code 7b"])
        self.assertEqual(len(self.answers()), 3)
        self.stop(*(one["run"] for one in started))
        self.assert_tidy()

    def test_refused_before_anything_starts(self):
        def refused(code, *options):
            line = self.one_line(self.berth("plan", "fleet.json", "--start", *options, code=code))
            self.assertEqual(self.house.json("runs")["runs"], [])
            return line

        self.fleet()
        self.assertIn("server 'chat', replica 5 of 5: gpu: requested 2 with 13 slots, free 0 of 8",
                      refused(3, "--set", "server.chat.minNumReplicas=5", "--set", "capacity.V100=99"))
        self.fleet(cpu=1e3)
        self.assertIn("server 'chat', replica 1 of 2: 1000 cores requested; this machine has", refused(3))
        self.fleet(command=[])
        self.assertIn("server 'chat': start.command: no command that starts a replica", refused(2))
        self.fleet(command=["no-such-program"])
        self.assertIn("server 'chat': start.command: no-such-program: no such program in PATH", refused(2))
        self.fleet(port=0)
        self.assertIn("server 'chat': start.command: '{port}': {port} is not defined", refused(2))
        self.fleet(port=65535)
        self.assertIn("server 'chat': start.port: 65535 and what follows it are too few for 2 replicas", refused(2))
        self.fleet()
        self.assertIn("nowhere", refused(2, "--on", "nowhere"))
        self.assertIn("--manifests", refused(2, "--manifests", "k8s"))
        self.assertIn("--start: of one plan", refused(2, "--candidates"))
        self.assertIn("--on: needs --start", self.one_line(self.berth("plan", "fleet.json", "--on", "lab", code=2)))

    def test_other_cards_than_planned_are_told_of(self):
        self.fleet(command=["sleep"], args=["1000"])
        self.house.environment["BERTH_TOPOLOGY"] = "dgx-a100"
        started = self.berth("plan", "fleet.json", "--start")
        self.assertRegex(started.err, rb"note: planned for V100; this machine's GPUs are called [^\n]*A100[^\n]*\n\Z")
        self.assertRegex(started.out, rb"\nchat +V100 +chat-1 +2 +2 +\d+-\d+\n")
        self.stop(*[run["id"] for run in self.house.json("runs")["runs"]])

    def test_each_has_cards_of_its_own_kind(self):
        cards = [("T4", "Tesla T4", "16GiB"), ("L40", "NVIDIA L40S", "48GiB"), ("L4", "NVIDIA L4", "24GiB")]
        self.write("mixed.json", json.dumps({"name": "mixed", "devices": [
            {"index": i, "uuid": f"GPU-{uuid}", "model": model, "memory": memory}
            for i, (uuid, model, memory) in enumerate(cards)], "links": [["X" if i == k else "SYS" for i in range(3)] for k in range(3)]}))
        self.house.environment["BERTH_TOPOLOGY"] = "mixed.json"
        self.fleet()
        self.write("fleet.json", (self.dir / "fleet.json").read_text().replace("V100", "L4"))
        alone = ["--set", "server.chat.minNumReplicas=0", "--set", "server.chat.arrivalRate=0"]
        code, = json.loads(self.berth("plan", "fleet.json", "--start", "--json", *alone).out)["started"]
        answer = until(lambda: self.ask(self.port), "it answers")
        self.assertEqual(answer["CUDA_VISIBLE_DEVICES"], "GPU-L4")
        self.stop(code["run"])
        self.assertIn("server 'code 7b', replica 2 of 2: gpu: requested 1 with 12 slots", self.one_line(self.berth(
            "plan", "fleet.json", "--start", "--set", "server.code 7b.minNumReplicas=2", *alone, code=3)))

    @unittest.skipUnless(SSHD and SSH, "ssh and sshd are wanted")
    def test_on_a_cluster(self):
        bed = SshBed(self.dir / "bed", self.dir)
        self.addCleanup(bed.close)
        host = bed.host("one", topology="dgx1-v100")
        del self.house.environment["BERTH_TOPOLOGY"]
        # On one machine every folder is shared: as if it were not.
        self.house.environment["BERTH_CLUSTERS"] = str(
            self.write("clusters.yaml", bed.clusters(shared_folders="false", lease="20s", silent_most="3s")))
        self.fleet()
        started = self.start("--on", "lab")
        for answer in self.answers():
            self.assertEqual(answer["BERTH_TEST_HOST"], str(host.path))
        self.stop(*[one["run"] for one in started])
        until(lambda: self.ask(self.port) is None, "it is gone")


if __name__ == "__main__":
    unittest.main()
