#!/usr/bin/python3
"""The API's document: it is what is served, answers are as it says, a linter finds nothing, and docs/openapi.json is it.

BERTH_ACCEPT=1 writes that file anew.
"""

import http.client
import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path
from urllib.parse import quote, urlsplit

import jsonschema

from berth_case import Case

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "docs/openapi.json"
TOKEN = "a-very-secret-token-1"
SEARCH = """
name: search
run: |
  for i in 1 2 3; do echo "::berth loss=$(({x} * {x} + 10 / i)) cost=$((20 - {x}))"; done; test {kind} = plain
params: {x: {min: 0, max: 9, type: int}, y: {min: 1, max: 9, scale: log}, kind: [plain, fancy]}
search: {method: random, samples: 12, seed: 3}
goal: [{metric: loss, direction: min}, {metric: cost, direction: min}]
constraints: [cost <= 19]
labels: {a: b}
resources: {cpu: 0.1}
"""
FLOW = """
name: flow
steps:
  make: {foreach: {n: [1, 2]}, run: "echo {n} > {out.part}", out: {part: "part-{n}.txt"}}
  fails: {in: {parts: make.part}, run: exit 3}
"""


def closed(schema):
    """The same, where what a schema does not name may not be there: answers hold what the document says, and no more."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    more = {} if "properties" not in schema or "additionalProperties" in schema else {"additionalProperties": False}
    return {key: closed(value) for key, value in schema.items()} | more


class OpenApi(Case):
    def setUp(self):
        super().setUp()
        self.write("token", TOKEN).chmod(0o600)
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")
        fleet = ROOT / "examples/fleet"
        self.server = self.house.start("serve", "--listen", "127.0.0.1:0", "--token-file", "token", fleet)
        self.url = urlsplit(self.server.stdout.readline().decode().strip())
        self.document = json.loads(self.ask("GET", "/v1/openapi.json", token=None)[1])
        self.seen = set()

    def ask(self, method, path, body=None, token=TOKEN):
        client = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        client.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
        answer = client.getresponse()
        if answer.headers["Content-Type"] == "text/event-stream":
            text = answer.readline()
        else:
            text = answer.read()
        client.close()
        return answer, text

    def calls(self):
        return [(path, method, call) for path, methods in self.document["paths"].items() for method, call in methods.items()]

    def assert_as_said(self, path, method="get", body=None, query="", **parts):
        """The answer has the type and the schema that the document gives it."""
        call = self.document["paths"][path][method]
        self.seen.add((path, method))
        filled = re.sub(r"\{(\w+)\}", lambda found: quote(str(parts[found[1]]), safe=""), path)
        answer, text = self.ask(method.upper(), filled + query, None if body is None else json.dumps(body))
        status = min(call["responses"])
        self.assertEqual(answer.status, int(status), (path, text))
        [(media, content)] = call["responses"][status]["content"].items()
        self.assertEqual(answer.headers["Content-Type"].partition(";")[0], media, path)
        if media != "application/json":
            return text
        value = json.loads(text)
        schema = closed({"components": self.document["components"], **content["schema"]})
        faults = [f"{list(each.absolute_path)}: {each.message[:300]}"
                  for each in jsonschema.Draft202012Validator(schema).iter_errors(value)]
        self.assertEqual(faults, [], (path, method))
        return value

    def refused(self, method, path, body, status, words):
        answer, text = self.ask(method, path, None if body is None else json.dumps(body))
        self.assertTrue(answer.status == status if status else 400 <= answer.status < 500, (path, body, answer.status, text))
        self.assertIn(words, json.loads(text)["error"], (path, body))

    def test_the_copy_is_what_is_served(self):
        if os.environ.get("BERTH_ACCEPT"):
            COPY.write_text(json.dumps(self.document, indent=1, ensure_ascii=False) + "\n")
        self.assertEqual(json.loads(COPY.read_text()), self.document, "BERTH_ACCEPT=1 tests/openapi_test.py writes it anew")

    def test_it_is_sound(self):
        document = self.document
        self.assertEqual(document["openapi"], "3.1.0")
        names = [call["operationId"] for _, _, call in self.calls()]
        self.assertEqual(len(set(names)), len(names), "each operation has a name of its own")
        schemas = document["components"]["schemas"]
        for name, schema in schemas.items():
            jsonschema.Draft202012Validator.check_schema(schema)
        text = json.dumps(document)
        known = set(schemas) | {f"fleet/$defs/{name}" for name in schemas["fleet"]["$defs"]}
        used = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
        self.assertEqual(used - known, set(), "what is referred to is there")
        for path, method, call in self.calls():
            parts = {each["name"] for each in call.get("parameters", []) if each["in"] == "path"}
            self.assertEqual(parts, set(re.findall(r"\{(\w+)\}", path)), path)

    def test_what_is_served_is_in_it_and_the_reverse(self):
        methods = {"get", "post", "put", "delete"}
        for path, known in self.document["paths"].items():
            filled = re.sub(r"\{\w+\}", "nothing", path)
            for method in methods - set(known):
                answer, text = self.ask(method.upper(), filled)
                self.assertEqual(answer.status, 405, (method, path, text))
                self.assertEqual(set(answer.headers["Allow"].lower().split(", ")), set(known))
        for path, method, call in self.calls():
            filled = re.sub(r"\{\w+\}", "nothing", path)
            answer, text = self.ask(method.upper(), filled, "{" if method == "post" else None)
            self.assertNotIn(b"no call", text, (method, path))
            self.assertNotEqual(answer.status, 405, (method, path))
        for path in ("/v1/nothing", "/v1", "/v1/runs/a/b/c", "/getNothing", "/index.html", "/..", "/v1/runs/a/stop/now"):
            self.assertEqual(self.ask("GET", path)[0].status, 404, path)

    def test_roles_are_as_it_says(self):
        for path, method, call in self.calls():
            answer, text = self.ask(method.upper(), re.sub(r"\{\w+\}", "nothing", path), token=None)
            refused = answer.status == 401 and b"Bearer" in text
            self.assertEqual(refused, call["x-role"] != "none", (method, path, text))
            self.assertEqual(call.get("security") == [], call["x-role"] == "none", path)

    def test_answers_are_as_it_says(self):
        self.write("search.yaml", SEARCH)
        self.write("flow.yaml", FLOW)
        for _ in range(2):
            self.house.run("run", "search.yaml")
        self.house.run("run", "flow.yaml")
        self.house.run("run", "--", "false")
        said = self.assert_as_said
        runs = [run["id"] for run in said("/v1/runs")["runs"]]
        self.assertEqual(len(runs), 4)
        for run in runs:
            for path in ("", "/summary", "/trials.csv", "/log", "/trace", "/report", "/report.md"):
                shown = said(f"/v1/runs/{{run}}{path}", run=run)
                for task in shown["tasks"] if path == "" else ():
                    said("/v1/tasks/{task}/why", task=task["id"])
                    said("/v1/tasks/{task}/log", task=task["id"], query="?tail=1K&attempt=1")
        said("/v1/runs/{run}", run="search-1", query="?sort=loss")
        for path in ("curves", "best", "importance", "advice"):
            said(f"/v1/runs/{{run}}/{path}", run="search-1")
        said("/v1/runs/{run}/graph", run="flow-1")
        said("/v1/compare", query="?run=search-1&run=search-2")
        for path in ("/v1/machine", "/v1/top", "/v1/clusters", "/v1/doctor", "/v1/cache", "/v1/fleets", "/v1/session", "/v1/events", "/v1/openapi.json", "/metrics"):
            said(path)
        for path in ("/", "/page.js", "/page.css"):
            said(path)
        said("/v1/fleets/{number}/plan", number=0)
        said("/v1/session", "post")
        said("/v1/invite", "post", query="?role=read")
        said("/v1/runs/{run}/retry", "post", run="search-1")  # whose runner goes on with it
        self.berth("wait", "search-1", code=1)
        self.write("slow.yaml", "name: slow\nrun: sleep 60\nparams: {x: [1]}\n")
        slow = said("/v1/runs", "post", {"file": (self.dir / "slow.yaml").read_text(), "file_name": "slow.yaml"})["name"]
        said("/v1/runs", "post", {"command": ["true"], "resources": {"cpu": 0.1}})
        said("/v1/runs/{run}/stop", "post", run=slow)
        said("/v1/runs/{run}/resume", "post", run=slow)
        said("/v1/runs/{run}/stop", "post", run=slow)
        said("/v1/run-plan", "post", {"path": str(self.dir / "search.yaml"), "options": {"parallel": 2}})
        said("/v1/run-plan", "post", {"path": str(self.dir / "flow.yaml")})
        said("/v1/runs/{run}", "delete", run=slow)
        said("/v1/runs/{run}/retry", "post", {"scope": "all", "env_of_submission": True}, run="search-2")
        said("/v1/cache/verify", "post")
        self.assertIn("collected", said("/v1/cache/collect", "post", {"unused_for": "7d"}))

    def test_answers_about_clusters_are_as_it_says(self):
        said = self.assert_as_said
        new = {"name": "lab", "hosts": ["nobody@127.0.0.1:1"], "key": str(self.dir / "no-key")}
        added = said("/v1/clusters", "post", new)
        self.assertIn("no-key", added["notes"][0])
        self.assertEqual([each["name"] for each in said("/v1/clusters")["clusters"]], ["lab"])
        self.assertEqual(said("/v1/clusters/{cluster}/probe", "post", cluster="lab")["hosts"][0]["cluster"], "lab")
        cleaned = said("/v1/clusters/{cluster}/clean", "post", {"dry_run": True, "older_than": "7d"}, cluster="lab")
        self.assertTrue(cleaned["dry_run"] and cleaned["hosts"][0]["error"], cleaned)
        self.refused("POST", "/v1/clusters", new, 409, "lab")
        self.assertEqual(said("/v1/clusters/{cluster}", "delete", cluster="lab")["removed"], ["lab"])
        for method, path in (("DELETE", ""), ("POST", "/probe"), ("POST", "/clean")):
            self.refused(method, f"/v1/clusters/lab{path}", None, 404, "lab")
        self.refused("POST", "/v1/clusters", {"name": "lab"}, 400, "'hosts' is missing")
        self.refused("POST", "/v1/clusters", {"name": "lab", "hosts": "a"}, 400, "hosts: expected a list")
        self.refused("POST", "/v1/clusters/lab/clean", {"older_than": "7"}, 400, "older_than: ")
        self.refused("POST", "/v1/clusters/lab/clean", {"dry_run": "perhaps"}, 400, "dry_run: expected true or false")

    def test_answers_about_placement_are_as_it_says(self):
        said = self.assert_as_said
        self.assertEqual(len(said("/v1/topology", query="?topology=dgx1-v100")["topology"]["devices"]), 8)
        query = "count=2&topology=dgx1-v100&available=0,2-5&require=4&policy=best-effort&objective=min"
        placed = said("/v1/placement", query="?" + query)
        printed = self.house.json("place", "2", "--topology", "dgx1-v100", "--available", "0,2-5", "--require", "4",
                                  "--policy", "best-effort", "--objective", "min")
        self.assertEqual(placed, printed)
        said("/v1/placement", query="?count=2&topology=dgx1-v100&all=true")
        for query, words in (("", "count: expected the number of GPUs"), ("count=x&topology=dgx1-v100", "expected how many devices"), ("count=9&topology=dgx1-v10", "dgx1-v100"),
                             ("count=2&all=maybe", "all: expected true or false"), ("count=2&all=true&available=0", "all: "),
                             ("count=2&topology=dgx1-v100&policy=best", "packed, best-effort"),
                             ("count=2&topology=dgx1-v100&objective=most", "sum")):
            self.refused("GET", "/v1/placement?" + query, None, None, words)
        self.refused("GET", "/v1/topology?topology=dgx1-v10", None, 404, "dgx1-v100")

    def test_wrong_bodies_are_refused_with_the_key(self):
        notify = "name: n\nrun: echo {x}\nparams: {x: [1]}\nnotify: {run: 'echo $BERTH_EVENT >> notified', on: failure}\n"
        self.write("n.yaml", notify)
        self.berth("run", "n.yaml")
        self.assertIn("done", self.assert_as_said("/v1/runs/{run}/notify", "post", {"event": "end", "only": 1}, run="n-1")["said"])
        self.assertEqual((self.dir / "notified").read_text(), "end\n")
        self.assert_as_said("/v1/runs/{run}/notify", "post", run="n-1")
        self.assert_as_said("/v1/runs/{run}/retry", "post", {}, run="n-1")
        self.assert_as_said("/v1/runs/{run}/resume", "post", {"overwrite": False}, run="n-1")
        for path, body, words in (("notify", {"event": "start"}, "event: expected one of end, failure, first_result, stalled"),
                                  ("notify", {"only": 17}, "only: expected 0 to 16"), ("notify", {"event": "failure"}, "task"),
                                  ("retry", {"scope": "some"}, "scope: expected one of failed, all, file"),
                                  ("retry", {"scope": "file"}, "not a flow"), ("retry", {"overwrite": True, "scope": "all"}, "not a flow"),
                                  ("resume", {"scope": "all"}, "unknown key 'scope'"), ("resume", {"send_large": 1}, "send_large: ")):
            self.refused("POST", f"/v1/runs/n-1/{path}", body, 400, words)
        self.assertEqual(self.house.json("show", "n-1")["run"]["state"], "done", "what was refused has not begun")
        self.refused("POST", "/v1/runs/n-9/notify", None, 404, "n-9")
        self.refused("GET", "/v1/runs/n-9/report", None, 404, "n-9")
        self.refused("GET", "/v1/runs/n-9/report.md", None, 404, "n-9")
        self.refused("POST", "/v1/cache/collect", {"unused_for": "7"}, 400, "unused_for: ")
        self.refused("POST", "/v1/cache/verify?unused_for=7d", None, 400, "unused_for")

    def test_a_first_file_is_written(self):
        said, folder = self.assert_as_said, self.dir / "new"
        folder.mkdir()
        made = said("/v1/files", "post", {"kind": "flow", "directory": str(folder)})
        self.assertEqual((made["kind"], made["file"]), ("flow", str(folder / "flow.yaml")))
        self.assertIn("steps:", (folder / "flow.yaml").read_text())
        made = said("/v1/files", "post", {"kind": "fleet", "file": str(folder / "f.json")})
        self.assertEqual(made["file"], str(folder / "f.json"))
        self.refused("POST", "/v1/files", {"kind": "flow", "directory": str(folder)}, 400, "already exists")
        self.refused("POST", "/v1/files", {"kind": "job"}, 400, "kind: expected one of experiment, flow, fleet")
        self.refused("POST", "/v1/files", {"directory": str(self.dir / "none")}, 404, "none")

    def test_answers_about_passive_trials_are_as_it_says(self):
        said = self.assert_as_said
        passive = ("name: passive\npassive: true\nparams: {x: {min: 0, max: 1}}\n"
                   "search: {method: tpe, samples: 2}\ngoal: {metric: score}\n")
        run = said("/v1/runs", "post", {"file": passive, "file_name": "passive.yaml"})["name"]
        said("/v1/runs/{run}/points", "post", {"points": ["x=0.25"]}, run=run)
        told = set()
        while True:
            waiting = said("/v1/runs/{run}/waiting", run=run)
            if waiting["run"]["state"] not in ("queued", "running"):
                break
            for trial in (each["id"] for each in waiting["tasks"] if each["id"] not in told):
                said("/v1/tasks/{task}/result", "post", {"result": "score=0.5"}, task=trial)
                told.add(trial)
        self.assertGreaterEqual(len(told), 2)

    def test_answers_about_fleets_are_as_it_says(self):
        said = self.assert_as_said
        fleet = json.loads((ROOT / "examples/fleet/fleet.json").read_text())
        for path in ("/v1/system", "/v1/accelerators", "/v1/models", "/v1/health", "/getAccelerators", "/getCapacities", "/getModels",
                     "/getServiceClasses", "/getServers"):
            said(path)
        small = {"fleet": fleet, "percentiles": "closed-form"}
        said("/v1/fleet-plan", "post", small | {"set": ["capacity.H100=16"]})
        said("/v1/fleet-plan", "post", small | {"sweep": "capacity.H100=8..16..8"})
        said("/v1/fleet-plan", "post", small | {"profile": str(ROOT / "examples/fleet/day.csv"), "startup": "3m", "hysteresis": 0.1})
        said("/v1/fleet-size", "post", small | {"server": "assistant", "accelerator": "H100", "replicas": 2, "load": 900})
        said("/v1/fleet-simulation", "post", small | {"servers": ["assistant"], "requests": 1000})
        said("/v1/fleet-fit", "post", {"files": [str(ROOT / "tests/data/benchmarks/splitwise.csv")]})
        said("/v1/fleet-report", "post", {"path": str(ROOT / "examples/fleet/fleet.json")})
        said("/v1/plan", "post", fleet)
        said("/v1/optimize", "post")
        said("/optimize", "post", {"unlimited": False})
        said("/optimizeOne", "post", {"system": fleet})
        said("/applyAllocation")
        said("/v1/servers/{name}/size", name="assistant")
        said("/v1/servers/{name}/size", "post", {"accelerator": "H100", "numReplicas": 2, "load": {"arrivalRate": 900}}, name="assistant")
        said("/v1/servers/{name}/reallocate", "post", {"accelerator": "H100"}, name="assistant")
        said("/v1/servers/{name}/apply", "post", name="assistant")
        whole = said("/v1/system")
        lists = {"/setAccelerators": ("acceleratorData", "accelerators", "/addAccelerator", "/getAccelerator/{name}", "/removeAccelerator/{name}"),
                 "/setCapacities": ("capacityData", "count", "/setCapacity", "/getCapacity/{type}", "/removeCapacity/{type}"),
                 "/setServiceClasses": ("serviceClassData", "serviceClasses", None, "/getServiceClass/{name}", "/removeServiceClass/{name}"),
                 "/setServers": ("serverData", "servers", "/addServer", "/getServer/{name}", "/removeServer/{name}")}
        one = whole["serviceClassData"]["serviceClasses"][0]
        said("/addServiceClassModelTargets", "post", one)
        targets = {"class": one["name"], "model": one["modelTargets"][0]["model"]}
        said("/getServiceClassModelTarget/{class}/{model}", **targets)
        said("/removeServiceClassModelTarget/{class}/{model}", **targets)
        model = whole["modelData"]["models"][0]
        said("/setModels", "post", whole["modelData"])
        said("/addModelAcceleratorPerf", "post", model)
        said("/getModelAcceleratorPerf/{model}/{accelerator}", model=model["name"], accelerator=model["acc"])
        said("/removeModelAcceleratorPerf/{model}/{accelerator}", model=model["name"], accelerator=model["acc"])
        said("/addModel/{name}", name="tiny")
        said("/getModel/{name}", name="tiny")
        said("/removeModel/{name}", name="tiny")
        for path, (data, key, add, get, remove) in lists.items():
            said(path, "post", whole[data])
            entry = whole[data][key][0]
            name = {"name": entry.get("name"), "type": entry.get("type")}
            if add:
                said(add, "post", entry)
            said(get, **name)
            said(remove, **name)
        said("/addServiceClass/{name}/{priority}", name="silver", priority=5)

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_a_linter_finds_nothing(self):
        work = ROOT / "build/web"
        if not (work / "node_modules/@redocly/openapi-core").is_dir():
            made = subprocess.run([ROOT / "web/build", self.dir / "page"], capture_output=True, text=True)
            if made.returncode == 77:
                self.skipTest(made.stderr)
        self.write("openapi.json", json.dumps(self.document))
        shutil.copy(ROOT / "web/lint.mjs", work / "lint.mjs")
        found = subprocess.run(["node", work / "lint.mjs", self.dir / "openapi.json"], capture_output=True, text=True)
        self.assertEqual((found.returncode, found.stdout), (0, ""), found.stderr)


if __name__ == "__main__":
    unittest.main()
