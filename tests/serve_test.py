#!/usr/bin/python3
"""berth serve as a client meets it: every call by a real HTTP client, and who is sent away."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
from pathlib import Path
from urllib.parse import quote, urlsplit

from berth_case import Case, until

FLEET = {
    "acceleratorData": {"accelerators": [
        {"name": "H100", "type": "H100", "multiplicity": 1, "cost": 100},
        {"name": "A100", "type": "A100", "multiplicity": 1, "cost": 60}]},
    "capacityData": {"count": [{"type": "H100", "count": 8}, {"type": "A100", "count": 8}]},
    "modelData": {"models": [
        {"name": "llama", "acc": "H100", "maxBatchSize": 64, "atTokens": 512,
         "perfParms": {"alpha": 10, "beta": 0.05, "gamma": 0.0005}}]},
    "serviceClassData": {"serviceClasses": [
        {"name": "gold", "priority": 1, "modelTargets": [{"model": "llama", "slo-itl": 60, "slo-ttft": 900}]}]},
    "serverData": {"servers": [
        {"name": "chat", "class": "gold", "model": "llama", "maxQueueSize": 64, "minNumReplicas": 1,
         "currentAlloc": {"load": {"arrivalRate": 60, "avgInTokens": 200, "avgOutTokens": 100}}}]},
}
A100_PERF = {"name": "llama", "acc": "A100", "maxBatchSize": 32, "atTokens": 512,
             "perfParms": {"alpha": 20, "beta": 0.1, "gamma": 0.001}}


ROOT = Path(__file__).resolve().parent.parent


def received(connection):
    try:
        return connection.recv(4096)
    except ConnectionResetError:
        return b""


class Serve(Case):
    def serve(self, *arguments):
        self.server = self.house.start("serve", "--listen", "127.0.0.1:0", *arguments)
        self.url = urlsplit(self.server.stdout.readline().decode().strip())
        self.assertTrue(self.url.port, "it says where it listens")
        self.link = self.server.stdout.readline().decode().strip().removeprefix(self.url.geturl())

    def cookie(self):
        """Comes in by the link."""
        client = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=20)
        client.request("GET", self.link)
        answer = client.getresponse()
        self.assertEqual(answer.status, 303, answer.read())
        client.close()
        return answer.headers["Set-Cookie"].partition(";")[0]

    def fleet(self):
        return self.write("fleet.json", json.dumps(FLEET))

    def ask(self, method, path, body=None, status=200, **headers):
        client = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=20)
        try:
            client.request(method, path, None if body is None else json.dumps(body),
                           {name.replace("_", "-"): value for name, value in headers.items()})
            answer = client.getresponse()
            text = answer.read()
        finally:
            client.close()
        self.assertEqual(answer.status, status, (method, path, text))
        self.assertEqual(answer.getheader("Content-Type"), "application/json")
        return json.loads(text)

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.ask("POST", path, body, **more)

    def test_a_fleet_built_call_by_call_is_planned(self):
        self.serve()
        inner = {key[:-4]: value for key, value in FLEET.items()}
        self.post("/setAccelerators", {"accelerators": inner["accelerator"]["accelerators"][:1]})
        self.post("/addAccelerator", inner["accelerator"]["accelerators"][1])
        self.assertEqual(len(self.get("/getAccelerators")), 2)
        self.assertEqual(self.get("/getAccelerator/A100")["cost"], 60)
        self.post("/setCapacities", inner["capacity"])
        self.post("/setCapacity", {"type": "L4", "count": 3})
        self.assertEqual(self.get("/getCapacity/L4"), {"type": "L4", "count": 3})
        self.assertEqual(len(self.get("/getCapacities")["count"]), 3)
        self.get("/removeCapacity/L4")
        self.post("/setModels", inner["model"])
        self.get("/addModel/tiny")
        self.assertEqual(self.get("/getModels"), ["llama", "tiny"])
        self.get("/removeModel/tiny")
        self.post("/addModelAcceleratorPerf", A100_PERF)
        self.assertEqual(self.get("/getModelAcceleratorPerf/llama/A100")["perfParms"]["alpha"], 20)
        self.assertEqual(len(self.get("/getModel/llama")["models"]), 2)
        self.post("/setServiceClasses", inner["serviceClass"])
        self.get("/addServiceClass/silver/5")
        self.post("/addServiceClassModelTargets",
                  {"name": "silver", "modelTargets": [{"model": "llama", "slo-itl": 100}]})
        self.assertEqual(self.get("/getServiceClassModelTarget/silver/llama")["slo-itl"], 100)
        self.get("/removeServiceClassModelTarget/silver/llama")
        self.assertEqual(self.get("/getServiceClass/silver")["priority"], 5)
        self.get("/removeServiceClass/silver")
        self.assertEqual([c["name"] for c in self.get("/getServiceClasses")["serviceClasses"]], ["gold"])
        self.post("/setServers", inner["server"])
        self.post("/addServer", {"name": "a b/c", "class": "gold", "model": "llama"})
        self.assertEqual(self.get("/getServer/" + quote("a b/c", safe=""))["class"], "gold")
        self.get("/removeServer/" + quote("a b/c", safe=""))
        self.assertEqual(len(self.get("/getServers")["servers"]), 1)

        plan = self.post("/optimize", {"unlimited": False})
        self.assertEqual(plan["proof"]["unserved_by_priority"], {"1": 0})
        chosen = plan["allocations"]["chat"]
        self.get("/applyAllocation")
        self.assertEqual(self.get("/getServer/chat")["currentAlloc"]["accelerator"], chosen["accelerator"])
        self.get("/removeModelAcceleratorPerf/llama/A100")
        self.get("/removeAccelerator/A100")
        self.get("/removeAccelerator/A100", status=404)
        whole = self.post("/optimizeOne", {"system": FLEET})
        self.assertEqual(self.post("/v1/plan", FLEET)["allocations"], whole["allocations"])
        self.assertEqual(len(self.get("/getAccelerators")), 2, "what was planned in one call is shown")

    def test_it_answers_as_berth_plan_does(self):
        self.serve(self.fleet())
        printed = json.loads(self.berth("plan", "fleet.json", "--json").out)
        self.assertEqual(self.post("/optimize")["allocations"], printed["allocations"])
        self.assertEqual(self.post("/v1/plan", FLEET)["allocations"], printed["allocations"])

    def test_targets_for_percentiles_are_simulated_as_by_berth_plan(self):
        fleet = json.loads(json.dumps(FLEET))
        fleet["serviceClassData"]["serviceClasses"][0]["modelTargets"][0].update({"slo-itl": 0, "slo-itl-p99": 60})
        fleet["serverData"]["servers"][0]["currentAlloc"]["load"]["arrivalRate"] = 30_000
        fleet["capacityData"]["count"][0]["count"] = 1000
        self.write("fleet.json", json.dumps(fleet))
        printed = json.loads(self.berth("plan", "fleet.json", "--json").out)
        quick = json.loads(self.berth("plan", "fleet.json", "--percentiles", "closed-form", "--json").out)
        self.assertNotEqual(printed["allocations"], quick["allocations"])
        self.serve("fleet.json")
        self.assertEqual(self.post("/optimize")["allocations"], printed["allocations"])
        self.assertEqual(self.get("/v1/servers/chat/size")["candidates"]["H100"]["rateMethod"], "simulation")
        self.serve("fleet.json", "--percentiles", "closed-form")
        self.assertEqual(self.post("/optimize")["allocations"], quick["allocations"])

    def test_runs_and_the_page_are_there_for_whoever_has_the_link(self):
        self.berth("run", "--name", "a", "--", "true")
        self.serve(self.fleet())
        for path in ("/v1/runs", "/v1/machine", "/v1/fleets", "/v1/runs/a-1/log"):
            self.assertIn("link", self.get(path, status=401)["error"])
        self.post("/v1/runs/a-1/stop", status=401)
        cookie = self.cookie()
        self.assertEqual(self.get("/v1/runs", Cookie=cookie), self.house.json("runs"))
        self.assertEqual(self.get("/v1/fleets", Cookie=cookie)["fleets"], [str(self.dir / "fleet.json")])
        planned = self.house.json("plan", "fleet.json")
        self.assertEqual(self.get("/v1/fleets/0/plan", Cookie=cookie), planned)
        self.post("/setCapacity", {"type": "H100", "count": 0})
        self.post("/setCapacity", {"type": "A100", "count": 0})
        changed = self.get("/v1/fleets/0/plan", Cookie=cookie)
        self.assertEqual((list(planned["allocations"]), list(changed["allocations"])), (["chat"], []),
                         "the fleet that the server holds, and not the file")
        self.get("/v1/fleets/1/plan", status=400, Cookie=cookie)
        self.get("/removeServer/chat")
        self.assertEqual(self.get("/v1/fleets", Cookie=cookie)["fleets"], [])

    def test_runs_are_started_by_post(self):
        self.serve()
        cookie = self.cookie()
        self.post("/v1/runs", {"command": ["true"]}, status=401)
        work = self.dir / "work"
        work.mkdir()
        begun = self.post("/v1/runs", {"command": ["sh", "-c", "pwd; echo $A"], "name": "hello", "directory": str(work),
                                       "resources": {"cpu": 0.5}, "environment": {"A": "b"}}, status=201, Cookie=cookie)
        self.assertEqual((begun["name"], begun["run"]["id"], begun["run"]["kind"]), ("hello-1", "hello-1", "command"))
        self.berth("wait", "hello-1")
        self.assertEqual(self.berth("logs", "hello-1").out.decode().split(), [str(work), "b"])
        sweep = {"name": "s", "run": "echo ::berth f={x}", "params": {"x": [3, 1, 2]}, "goal": {"metric": "f", "direction": "min"}}
        for file in (sweep, json.dumps(sweep)):
            name = self.post("/v1/runs", {"file": file, "options": {"parallel": 1, "labels": {"team": "a"}}}, status=201,
                             Cookie=cookie)["name"]
            self.berth("wait", name)
            shown = self.get(f"/v1/runs/{name}", Cookie=cookie)
            self.assertEqual([task["params"]["x"] for task in shown["tasks"]], [3, 1, 2], "in the order of the file")
            self.assertEqual((shown["run"]["labels"]["team"], shown["run"]["directory"].rstrip("/")), ("a", str(self.dir)))
            self.assertEqual(self.get(f"/v1/runs/{name}/best", Cookie=cookie)["params"], {"x": 1})
        flow = "name: f\nparams: {n: 1}\nsteps: {a: {run: 'echo {n} > {out.o}', out: {o: n.txt}}}\n"
        name = self.post("/v1/runs", {"file": flow, "options": {"set": {"n": 7}}, "directory": str(work)}, status=201, Cookie=cookie)["name"]
        self.berth("wait", name)
        self.assertEqual((work / "n.txt").read_text(), "7\n")
        for body, words in (({}, "expected a file, a path or a command"), ({"command": [], "file": ""}, "expected a file"),
                            ({"command": ["true"], "nam": "x"}, "unknown key 'nam'"), ({"command": ["true"], "name": "a b"}, "name: "),
                            ({"file": "run: echo\nparms: {}\n", "file_name": "x.yaml"}, "x.yaml:2: unknown key 'parms'"),
                            ({"file": sweep, "options": {"elsewhere": True}}, "elsewhere"),
                            ({"command": ["true"], "resources": {"cpu": "many"}}, "cpu")):
            self.assertIn(words, self.post("/v1/runs", body, status=400, Cookie=cookie)["error"])
        self.assertEqual(self.post("/v1/runs", {"command": ["true"], "resources": {"cpu": 100000}}, status=422, Cookie=cookie)["kind"],
                         "impossible")
        slow = self.post("/v1/runs", {"command": ["sleep", "60"]}, status=201, Cookie=cookie)["name"]
        self.assertIn(f"{slow} stopped", self.post(f"/v1/runs/{slow}/stop", Cookie=cookie)["said"])
        self.get("/v1/runs/nope", status=404, Cookie=cookie)
        self.assertEqual(len(self.get("/v1/runs", Cookie=cookie)["runs"]), 5, "what was refused has not begun")

    def test_one_server_is_sized_as_by_berth_size(self):
        self.serve(str(ROOT / "examples/fleet"))
        for arguments, question in (
                ([], None), (["--load", "1500"], {"load": {"arrivalRate": 1500}}),
                (["--on", "H100", "--replicas", "1"], {"accelerator": "H100", "numReplicas": 1})):
            printed = json.loads(self.berth("size", ROOT / "examples/fleet", "assistant", *arguments, "--json").out)
            self.assertEqual(self.post("/v1/servers/assistant/size", question), printed)
        self.assertEqual(self.get("/v1/servers/assistant/size")["best"], "A100")
        moved = self.post("/v1/servers/assistant/reallocate", {"accelerator": "H100"})
        self.assertEqual((moved["accelerator"], moved["numReplicas"]), ("H100", 2))
        self.post("/v1/servers/assistant/apply")
        self.assertEqual(self.get("/v1/servers/assistant/size")["current"]["accelerator"], "H100")
        self.assertEqual(self.get("/getServer/summaries")["currentAlloc"]["accelerator"], "L4")
        self.assertIn("did you mean 'assistant'?", self.get("/v1/servers/asistant/size", status=404)["error"])
        self.assertIn("unknown key", self.post("/v1/servers/assistant/size", {"on": "H100"}, status=400)["error"])
        self.assertIn("ITL not met", self.post("/v1/servers/assistant/reallocate", {"accelerator": "L4"},
                                               status=422)["error"])

    def test_a_body_as_curl_sends_it_of_50_kB(self):
        self.serve()
        fleet = json.loads(json.dumps(FLEET))
        chat = fleet["serverData"]["servers"][0]
        fleet["serverData"]["servers"] += [{**chat, "name": f"chat-{i}"} for i in range(300)]
        self.assertGreater(self.write("fleet.json", json.dumps(fleet)).stat().st_size, 50_000)
        answer = self.post("/v1/plan", fleet, Content_Type="application/x-www-form-urlencoded")
        self.assertEqual(len(answer["reasons"]), 301)
        if not shutil.which("curl"):
            self.skipTest("no curl: the same by another client was tried")
        printed = subprocess.run(["curl", "-sS", "-X", "POST", self.url.geturl() + "/v1/plan", "-d", "@fleet.json"],
                                 cwd=self.dir, check=True, capture_output=True).stdout
        self.assertEqual(json.loads(printed), answer)

    def test_integers_have_no_fraction(self):
        """Go's encoding/json refuses 128.0 for an int, and with it the whole document."""
        integers = {"multiplicity", "memSize", "memBW", "idle", "full", "midPower", "count", "accCount",
                    "maxBatchSize", "atTokens", "priority", "minNumReplicas", "maxQueueSize", "numReplicas",
                    "maxBatch", "avgInTokens", "avgOutTokens"}
        self.serve(str(ROOT / "examples/fleet"))
        self.post("/addServer", {"name": "fraction", "class": "gold", "model": "llama",
                                 "currentAlloc": {"load": {"avgInTokens": 12.5}}})
        sized = self.get("/v1/servers/fraction/size")
        self.get("/removeServer/fraction")
        found = set()

        def look(value, key=""):
            if isinstance(value, dict):
                for name, inner in value.items():
                    look(inner, name)
            elif isinstance(value, list):
                for inner in value:
                    look(inner, key)
            elif key in integers:
                found.add(key)
                self.assertIs(type(value), int, key)

        for answer in (sized, self.get("/v1/servers/assistant/size"), self.post("/v1/servers/assistant/reallocate"),
                       self.post("/optimize"), self.get("/getServers"), self.get("/getAccelerators"),
                       self.get("/getCapacities"), self.get("/getServiceClasses"), self.get("/v1/system"),
                       *(self.get("/getModel/" + name) for name in self.get("/getModels"))):
            look(answer)
        self.assertEqual(found, integers)

    def test_the_environment_of_the_reference_says_where_it_listens(self):
        refused = self.berth("serve", code=2, env={"INFERNO_HOST": "0.0.0.0", "INFERNO_PORT": "0"})
        self.assertIn("0.0.0.0", self.one_line(refused))
        self.assertIn("token and TLS", self.one_line(refused))
        self.berth("serve", code=2, env={"INFERNO_PORT": "many"})
        self.server = self.house.start("serve", env={"INFERNO_HOST": "localhost", "INFERNO_PORT": "0"})
        self.url = urlsplit(self.server.stdout.readline().decode().strip())
        self.assertNotIn(self.url.port, (None, 8321))
        self.get("/v1/health", Host=f"localhost:{self.url.port}")

    def test_bad_requests(self):
        self.serve(self.fleet())
        self.assertIn("servers[0].minNumReplicas",
                      self.post("/addServer", {"name": "x", "minNumReplicas": "two"}, status=400)["error"])
        self.get("/nothing", status=404)
        self.ask("DELETE", "/getServers", status=405)
        self.assertEqual(len(self.get("/getServers")["servers"]), 1)
        with socket.create_connection((self.url.hostname, self.url.port)) as raw:
            raw.sendall(b"POST /optimize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n")
            self.assertIn(b" 413 ", raw.recv(4096))
        with socket.create_connection((self.url.hostname, self.url.port)) as raw:
            raw.sendall(b"\0\1\2 nonsense\r\n\r\n")
            raw.recv(4096)
        self.get("/v1/health")

    def test_pages_of_other_sites_are_sent_away(self):
        self.serve(self.fleet())
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                        {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}):
            self.get("/removeServer/chat", status=403, **headers)
            self.post("/optimize", status=403, **headers)
        self.assertEqual(len(self.get("/getServers")["servers"]), 1)
        here = f"127.0.0.1:{self.url.port}"
        self.get("/getServers", Host=here, Origin=f"http://{here}", Sec_Fetch_Site="same-origin")
        self.get("/getServers", Host=f"localhost:{self.url.port}")

    def test_names_that_look_like_loopback_are_none(self):
        self.serve(self.fleet())
        for host in ("127.0.0.1.evil.example", "127.evil.example", "localhost.evil.example", "127.0.0.1x", "127.1"):
            here = f"{host}:{self.url.port}"
            self.post("/optimize", status=403, Host=here, Origin=f"http://{here}", Sec_Fetch_Site="same-origin")
            self.berth("serve", "--listen", f"{host}:0", code=2)
        for host in ("127.0.0.1", "127.9.9.9", "LOCALHOST", "[::1]"):
            self.get("/getServers", Host=f"{host}:{self.url.port}")

    def test_what_is_sent_away_brings_no_second_request(self):
        """The body of a refused request is not the next request."""
        self.serve(self.fleet())
        body = f"GET /removeServer/chat HTTP/1.1\r\nHost: 127.0.0.1:{self.url.port}\r\n\r\n"
        with socket.create_connection((self.url.hostname, self.url.port)) as raw:
            raw.settimeout(20)
            raw.sendall((f"POST /optimize HTTP/1.1\r\nHost: 127.0.0.1:{self.url.port}\r\n"
                         f"Origin: http://evil.example\r\nContent-Type: text/plain\r\n"
                         f"Content-Length: {len(body)}\r\n\r\n").encode())
            self.assertIn(b" 403 ", received(raw))
            with contextlib.suppress(ConnectionError):
                raw.sendall(body.encode())
            self.assertNotIn(b" 200 ", b"".join(iter(lambda: received(raw), b"")))
        self.get("/getServer/chat")

    def test_slow_connections_do_not_stop_it(self):
        self.serve(self.fleet())
        slow = [socket.create_connection((self.url.hostname, self.url.port)) for _ in range(24)]
        for connection in slow:
            self.addCleanup(connection.close)
        closed = set()

        def drip():
            for connection in set(slow) - closed:
                try:
                    connection.sendall(b"G")
                    connection.settimeout(0.001)
                    if not connection.recv(1000):
                        closed.add(connection)
                except TimeoutError:
                    pass
                except OSError:
                    closed.add(connection)
            return len(closed) == len(slow)

        drip()
        begun = time.monotonic()
        self.get("/v1/health")
        self.assertLess(time.monotonic() - begun, 5, "eight threads were all that there were")
        until(drip, "each byte buys no more time", 40)
        self.get("/v1/health")

    def test_bodies_that_do_not_come_give_way(self):
        """Nobody has to show who they are here: 64 requests whose body stays away kept others waiting for ten seconds."""
        self.serve(self.fleet())
        slow = [socket.create_connection((self.url.hostname, self.url.port)) for _ in range(64)]
        for connection in slow:
            self.addCleanup(connection.close)
            connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        begun = time.monotonic()
        self.get("/v1/health")
        self.assertLess(time.monotonic() - begun, 4)

    def test_hundreds_of_connections_that_say_nothing_give_way(self):
        self.serve(self.fleet())
        for _ in range(500):
            self.addCleanup(socket.create_connection((self.url.hostname, self.url.port)).close)
        begun = time.monotonic()
        self.get("/v1/health")
        self.assertLess(time.monotonic() - begun, 9, "two seconds for each 64 of them would be fifteen")

    def test_a_hundred_connections_at_once_are_taken_at_once(self):
        self.serve(self.fleet())
        begun = time.monotonic()
        for _ in range(100):
            self.addCleanup(socket.create_connection((self.url.hostname, self.url.port)).close)
        self.assertLess(time.monotonic() - begun, 0.9, "the kernel tries again after a second")

    def roles(self, *more):
        """A server with a token for each role, which it makes."""
        self.serve("--token-file", "control", "--read-token-file", "read", *more)
        return {role: "Bearer " + (self.dir / role).read_text().strip() for role in ("control", "read")}

    def test_a_reader_sees_all_and_changes_nothing(self):
        self.berth("run", "--name", "a", "--", "true")
        bearers = self.roles(self.fleet())
        for path in ("/v1/runs", "/v1/machine", "/getServers", "/v1/system", "/v1/fleets/0/plan"):
            for role in bearers.values():
                self.get(path, Authorization=role)
            for wrong in ("Bearer ", "Bearer x", bearers["read"][:-1], bearers["read"].replace("Bearer", "Basic")):
                self.get(path, status=401, Authorization=wrong)
        self.post("/v1/plan", FLEET, Authorization=bearers["read"])
        for method, path in (("POST", "/v1/runs/a-1/stop"), ("POST", "/v1/runs/a-1/retry"), ("POST", "/v1/runs/a-1/resume"),
                             ("GET", "/removeServer/chat"), ("POST", "/optimize"), ("GET", "/applyAllocation")):
            refused = self.ask(method, path, status=403, Authorization=bearers["read"])
            self.assertIn("requires the role control, and this is read", refused["error"])
        self.assertEqual(self.get("/v1/session", Authorization=bearers["read"])["role"], "read")
        topology = self.write("secret.topo", "a-secret")
        for role, status in (("read", 404), ("control", 400)):  # an error quotes the file
            for path in ("/v1/topology?", "/v1/placement?count=1&"):
                self.get(f"{path}topology={topology}", status=status, Authorization=bearers[role])
        self.get("/getServer/chat", Authorization=bearers["read"])
        self.get("/removeServer/chat", Authorization=bearers["control"])

    def test_a_token_is_exchanged_for_a_cookie_of_its_role(self):
        self.berth("run", "--name", "a", "--", "true")
        bearers = self.roles()
        for role, bearer in bearers.items():
            client = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=20)
            client.request("POST", "/v1/session", headers={"Authorization": bearer})
            answer = client.getresponse()
            self.assertEqual((answer.status, json.loads(answer.read())["role"]), (200, role))
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
            client.close()
            self.get("/v1/runs", Cookie=cookie)
            self.post("/v1/runs/a-1/retry", status={"control": 200, "read": 403}[role], Cookie=cookie)
            self.post("/v1/invite?role=control", status={"control": 200, "read": 403}[role], Cookie=cookie)
            link = self.post("/v1/invite?role=read", Cookie=cookie)["path"]
            self.link = link
            self.assertEqual(self.get("/v1/session", Cookie=self.cookie())["role"], "read")

    def test_what_changes_something_is_not_done_for_head(self):
        self.serve(self.fleet())
        client = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=20)
        client.request("HEAD", "/removeServer/chat")
        self.assertEqual(client.getresponse().status, 405)
        client.close()
        self.get("/getServer/chat")

    def test_a_token_file_is_its_owners_alone(self):
        self.roles()
        for role in ("control", "read"):
            file = self.dir / role
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)
            self.assertGreaterEqual(len(file.read_text().strip()), 32)
        before = (self.dir / "control").read_text()
        self.roles()
        self.assertEqual((self.dir / "control").read_text(), before, "one that is there stays")
        self.assertNotEqual(before, (self.dir / "read").read_text())
        for mode, does in ((0o644, "read"), (0o640, "read"), (0o620, "change"), (0o602, "change")):
            (self.dir / "control").chmod(mode)
            said = self.one_line(self.berth("serve", "--token-file", "control", code=3))
            self.assertIn(f"control: others can {does} it (mode {mode:04o}); chmod 600 control", said)
        (self.dir / "control").chmod(0o600)
        self.assertIn("the same token", self.one_line(
            self.berth("serve", "--token-file", "control", "--read-token-file", "control", code=2)))
        self.berth("serve", "--token-file", "nowhere/token", code=2)

    def test_a_token_is_wanted_when_there_is_one(self):
        self.write("token", "a-very-secret-token-1\n").chmod(0o600)
        self.serve("--token-file", self.dir / "token", self.fleet())
        self.get("/getServers", status=401)
        self.get("/getServers", status=401, Authorization="Bearer a-very-secret-token-2")
        self.get("/getServers", Authorization="Bearer a-very-secret-token-1")

    def test_beyond_this_machine_it_wants_token_and_tls(self):
        self.write("token", "a-very-secret-token-1\n").chmod(0o600)
        self.assertIn("token and TLS", self.one_line(self.berth("serve", "--listen", "0.0.0.0:0", code=2)))
        self.berth("serve", "--listen", "0.0.0.0:0", "--token-file", "token", code=2)
        self.berth("serve", "--listen", "nowhere", code=2)
        self.berth("serve", "--tls-cert", "only.pem", code=2)
        self.write("short", "abc").chmod(0o600)
        self.berth("serve", "--token-file", "short", code=2)
        self.berth("serve", "none.json", code=2)

    def test_tls(self):
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
                               "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"],
                              cwd=self.dir, capture_output=True)
        if made.returncode != 0:
            self.skipTest("no openssl to make a certificate with")
        self.write("token", "a-very-secret-token-1\n").chmod(0o600)
        self.serve("--tls-cert", "cert.pem", "--tls-key", "key.pem", "--token-file", "token", self.fleet())
        import ssl
        context = ssl.create_default_context(cafile=self.dir / "cert.pem")
        context.check_hostname = False
        client = http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=20, context=context)
        client.request("GET", "/getServers", headers={"Authorization": "Bearer a-very-secret-token-1"})
        self.assertEqual(client.getresponse().status, 200)
        client.close()

    def test_an_address_is_listened_at_once(self):
        self.serve(self.fleet())
        self.assertIn("cannot listen", self.one_line(
            self.berth("serve", "--listen", f"127.0.0.1:{self.url.port}", code=3)))

    def test_many_at_once_and_a_clean_end(self):
        self.serve(self.fleet())
        faults = []

        def client(i):
            try:
                for _ in range(20):
                    self.post("/setCapacity", {"type": "H100", "count": 4 + i})
                    self.get("/getServers")
                    self.post("/optimize")
            except Exception as fault:  # told by the main thread
                faults.append(fault)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])
        for sign in (signal.SIGTERM,):
            os.kill(self.server.pid, sign)
        self.assertEqual(self.server.wait(20), 0)
        until(lambda: not self.house.leftovers(), "it is gone")


if __name__ == "__main__":
    unittest.main()
