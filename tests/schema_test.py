#!/usr/bin/python3
"""The JSON Schemas of `berth schema` and the readers say the same of a file: over the examples, over files that have
every key, over each of their values made wrong in several ways, and over the files that are known to be wrong."""

import copy
import json
import re
import unittest
from pathlib import Path

import jsonschema
import yaml

from berth_case import Case

ROOT = Path(__file__).resolve().parent.parent
# What readers say of a key or a value for itself, which a schema has to refuse too.
OF_ONE_VALUE = re.compile(r"unknown key|expected one of|expected a whole number|expected a number|expected \S+ to \S+, got"
                          r"|expected 1 to \d+ goals|expected text, got|expected a list, got")
OF_BOUNDS = re.compile(r"expected (\S+ to|(more than 0 and )?at (most|least)) \S+( elements| bins| words)?, got")


class Yaml(yaml.SafeLoader):
    """Reads 1e-4 as a number, as YAML 1.2 and editors do."""


Yaml.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9.]*([eE][-+]?[0-9]+)?$"),
                           list("-+0123456789"))

NOTIFY = [{"run": "true", "on": ["end", "failure"]}, {"webhook": "https://h/x", "secret_file": "s"},
          {"mail": "a@b", "on": "stalled", "stalled_after": "2h"}]
EXPERIMENTS = [
    {"name": "all", "run": "./a {x} {y} {z}", "shell": "sh", "params": {
        "x": {"choices": ["a", "b"]}, "y": {"min": 1, "max": 9, "scale": "linear", "type": "int", "step": 2, "n": 3,
                                            "when": {"x": "a"}},
        "z": {"choices": [1, 2], "when": {"x": ["a", "b"]}}},
     "search": {"method": "random", "samples": 5, "seed": 1}, "save_best": True, "checkpoints": True,
     "resources": {"cpu": 1, "mem": "1M", "disk": "1M", "licence": 1},
     "goal": {"metric": "m", "direction": "max", "score": "best"}, "constraints": ["size <= 5"],
     "early_stop": {"policy": "median", "warmup": 3, "every": 1}, "parallel": 2, "timeout": "10m", "enforce": "advisory",
     "grace": "5s", "retries": 1, "on_failure": "stop", "allow_failures": 2, "priority": 3, "gpu_mem_over": "warn", "env": {"A": 1}, "stdin": "data.txt",
     "labels": {"team": "vision"}, "notify": NOTIFY},
    {"run": "true {x} {checkpoint}", "params": {"x": {"min": 0.1, "max": 1}}, "goal": {"metric": "m"}, "search": {
        "method": "pbt", "samples": 4, "explore": ["x"], "budget": {"param": "epochs", "every": 2, "max": 8}}},
    {"run": "true {x}", "params": {"x": [1, 2]}, "search": {"method": "halving", "samples": 9, "model": "tpe", "budget": {
        "param": "epochs", "min": 1, "max": 9, "reduction": 3}}, "goal": [{"metric": "a"}, {"metric": "b"}]},
    {"run": ["true", "{x}"], "search": {"method": "sequence", "points": [{"x": 1}, {"x": 2}]},
     "resources": {"gpu": 2, "gpu_mem_min": "1G", "gpu_slot_sizes": [12, 31, 99], "gpu_require": "0",
                   "gpu_policy": "best-effort", "gpu_objective": "min"}},
    {"run": "true {x}", "search": {"method": "sequence", "file": "points.json"}, "resources": {"gpu": 1, "gpu_mem": "1G",
                                                                                              "gpu_slots": 1}},
    {"run": "true {x}", "params": {"x": {"min": 0.1, "max": 1}}, "goal": {"metric": "m"}, "passive": False,
     "search": {"method": "external", "samples": 3, "run": "./propose", "patience": "1m"},
     "early_stop": {"policy": "bandit", "warmup": 3, "every": 1, "slack": 0.2}},
    {"params": {"x": [1, 2]}, "goal": {"metric": "m"}, "passive": True,
     "early_stop": {"policy": "truncation", "warmup": 3, "every": 1, "part": 0.5}},
    {"run": "true {x}", "params": {"x": [1, 2]}, "goal": {"metric": "m"}, "cluster": "lab",
     "early_stop": {"policy": "curve", "warmup": 3, "every": 1, "probability": 0.1, "steps": 20}},
]
FLOWS = [
    {"name": "all", "params": {"p": [1, 2], "q": "v"}, "env": {"A": "b"}, "enforce": "advisory", "gpu_mem_over": "warn",
     "shell": "bash", "labels": {"team": "x"}, "notify": NOTIFY, "on_failure": "stop", "allow_failures": True,
     "on_end": "true", "include": "more.yaml",
     "defaults": {"resources": {"cpu": 1}, "env": {"B": "c"}, "timeout": "10m", "retries": 1, "priority": 1,
                  "shell": "sh", "image": "debian:12", "sandbox": False, "network": True, "enforce": "advisory",
                  "gpu_mem_over": "kill", "on_failure": "continue"},
     "steps": {
         "a": {"run": "cp {in.i} {out.o}", "shell": "sh", "in": {"i": "data.txt"}, "out": {"o": "a.txt"},
               "params": {"z": 1}, "env": {"C": 1}, "when": "q == v", "timeout": "{attempt} * 10m", "retries": 2,
               "resources": {"cpu": "min({attempt}, 4)", "mem": "auto(2M)", "disk": "1M", "gpu": 1, "gpu_mem": "1M",
                             "gpu_slots": 1, "gpu_mem_min": "1M", "gpu_slot_sizes": [12, 31, 99],
                             "gpu_require": ["0"], "gpu_policy": "packed", "gpu_objective": "sum"},
               "priority": -1, "enforce": "advisory", "gpu_mem_over": "kill", "image": "debian:12",
               "sandbox": ["/opt"], "network": True, "on_failure": "continue", "protect": True},
         "b": {"script": "true", "shell": "python3", "foreach": {"x": "{p}", "r": {"table": "rows.csv"}},
               "key": "{x}{r}", "out": {"o": "b/{key}.txt"}, "needs": ["a"], "temp": True},
         "c": {"run": "true", "join": {"vars": {"l": "b.o", "m": "b.o"}, "by": "x", "optional": "m"}},
         "d": {"run": "cat {in.w} {in.u} {g}", "group": {"vars": {"g": "b.o"}, "by": "x"},
               "in": {"w": ["a.o", "data.txt"],
                      "u": {"url": "https://h/x", "sha256": "0" * 64}}},
         "e": {"run": "true {v}", "zip": {"v": [1, 2]}},
         "s": {"flow": "sub.yaml", "params": {"k": 1}, "in": {"f": "data.txt"}, "needs": "a", "dir": "sub"}}},
    {"image": "debian:12", "sandbox": True, "network": True, "steps": {"a": {"run": "true"}}},
    {"in": {"f": None}, "out": {"o": "a.o"}, "cluster": ["lab"],
     "steps": {"a": {"run": "cc", "out": {"o": "x.o"}}}},
    {"steps": {"a": {"run": "cc", "out": {"o": "x.o"}, "depfile": "{out.o}.d"}}},
]
LOAD = {"arrivalRate": 60, "throughput": 0, "arrivalCv": 1, "avgInTokens": 100, "inTokensCv": 0, "avgOutTokens": 100,
        "outTokensCv": 0, "inTokensHistogram": [{"tokens": 100, "weight": 1}],
        "outTokensHistogram": [{"tokens": 100, "weight": 2}]}
PART = {"accelerator": "A", "role": "whole", "numReplicas": 1, "maxBatch": 4, "cost": 40, "itlAverage": 1,
        "ttftAverage": 1, "watts": 0, "ttftPercentiles": {}, "itlPercentiles": {}, "method": "x", "spot": 1}
START = {"image": "i", "command": ["serve"], "args": ["x"], "port": 8000, "env": {"A": "b"}, "cpu": 1, "memSize": 4}
SYSTEM = {
    "acceleratorData": {"accelerators": [{
        "name": "A", "type": "A", "multiplicity": 1, "memSize": 80, "memBW": 2000, "cost": 40, "resource": "x.com/gpu",
        "nodeSelector": {"zone": "a"}, "power": {"idle": 1, "full": 9, "midPower": 5, "midUtil": 0.5}}]},
    "capacityData": {"count": [{"type": "A", "count": 4, "purchase": [{"kind": "reserved", "count": 4, "cost": 10}]}]},
    "modelData": {"models": [{"name": "m", "acc": "A", "accCount": 1, "maxBatchSize": 8, "atTokens": 200, "start": START,
                              "perfParms": {"alpha": 10, "beta": 1, "gamma": 0, "betaPrefill": 0.1, "ttftOffset": 1,
                                            "form": "sum", "transfer": {"fixed": 1, "perToken": 0.1}}}]},
    "serviceClassData": {"serviceClasses": [{"name": "c", "priority": 1, "modelTargets": [{
        "model": "m", "slo-itl": 100, "slo-ttft": 5000, "slo-tps": 0, **{
            f"slo-{kind}-p{p}": 9000 for kind in ("itl", "ttft") for p in (50, 90, 95, 99)}}]}]},
    "serverData": {"servers": [{
        "name": "s", "class": "c", "model": "m", "keepAccelerator": False, "minNumReplicas": 1, "maxBatchSize": 4,
        "maxQueueSize": 10, "spot": False, "start": START, "currentAlloc": {**PART, "load": LOAD, "parts": [PART]},
        "desiredAlloc": PART}]},
    "optimizerData": {"optimizer": {"unlimited": False, "heterogeneous": False, "disaggregated": False,
                                    "milpSolver": False, "useCplex": False, "delayedBestEffort": False,
                                    "saturationPolicy": "None", "solver": "optimal", "model": "calibrated"}}}
PLAIN = {key: value for part in SYSTEM.values() for key, value in part.items()}
FLEETS = [
    SYSTEM, {"system": SYSTEM}, PLAIN, {"system": PLAIN},
    {**{key: value for key, value in SYSTEM.items() if key != "capacityData"}, "optimizer": {"powerBudget": 1000}},
]
WRONG = [{"zzz": {"zzz": 1}}, [[["zzz"]]], "zzz zzz", -7, 0.123, 1e30, None]


def resolve(schema, node):
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def fitting(schema, node, value):
    """The part of the schema that the value is held against: of alternatives the first that it fits."""
    node = resolve(schema, node)
    for each in node.get("anyOf", []) if "properties" not in node else []:
        if valid({**each, "$defs": schema["$defs"]}, value):
            return fitting(schema, each, value)
    return node


def valid(schema, value):
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def places(schema, node, value, path=()):
    """Every value within `value` that has a key or an index, with its path and its part of the schema."""
    node = fitting(schema, node, value)
    if isinstance(value, dict):
        for key, below in value.items():
            part = node.get("properties", {}).get(key, node.get("additionalProperties"))
            if isinstance(part, dict):
                yield path + (key,), part
                yield from places(schema, part, below, path + (key,))
    elif isinstance(value, list):
        for i, below in enumerate(value):
            yield path + (i,), node["items"]
            yield from places(schema, node["items"], below, path + (i,))


def replaced(document, path, value):
    changed = copy.deepcopy(document)
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return changed


class Schema(Case):
    FILES = {"experiment": "sweep.yaml", "flow": "flow.yaml", "fleet": "fleet.json"}
    WHOLE = {"experiment": EXPERIMENTS, "flow": FLOWS, "fleet": FLEETS}

    def setUp(self):
        super().setUp()
        self.schemas = {name: json.loads(self.berth("schema", name).out) for name in self.FILES}
        for name in ("data.txt", "points.json"):
            self.write(name, '[{"x": 1}]')
        self.write("rows.csv", "id\na\nb\n")
        self.write("more.yaml", "steps: {f: {run: 'true'}}\n")
        self.write("sub.yaml", "params: {k: 0}\nin: {f: }\nsteps: {t: {run: 'cat {in.i}', in: {i: in.f}}}\n")
        self.write("clusters.yaml", "lab: {kind: ssh, hosts: [h]}\n")
        self.write("machine.yaml", "licence: 2\n")
        for name in ("a", "propose"):
            self.script(name, "#!/bin/sh\n")

    def said(self, name, document):
        """What berth says of it."""
        self.write(self.FILES[name], json.dumps(document))
        ask = ["plan", "fleet.json", "--json"] if name == "fleet" else ["check", self.FILES[name]]
        done = self.house.run(*ask, env={"BERTH_TOPOLOGY": "dgx-h100", "BERTH_CLUSTERS": str(self.dir / "clusters.yaml"),
                                         "BERTH_MACHINE": str(self.dir / "machine.yaml")})
        self.assertIn(done.code, (0, 1, 2, 3), (document, done))
        return done.code, done.err.decode()

    def test_no_name_is_there_twice(self):
        def once(pairs):
            self.assertEqual(len(dict(pairs)), len(pairs), [key for key, _ in pairs])
            return dict(pairs)
        for name in self.FILES:
            json.loads(self.berth("schema", name).out, object_pairs_hook=once)

    def test_the_schemas_are_schemas(self):
        for schema in self.schemas.values():
            jsonschema.Draft202012Validator.check_schema(schema)

    def test_what_the_examples_hold_is_valid(self):
        files = sorted(ROOT.glob("examples/*/*.yaml"))
        self.assertGreater(len(files), 5)
        for path in files:
            document = yaml.load(path.read_text(), Yaml)
            with self.subTest(path.name):
                jsonschema.validate(document, self.schemas["flow" if "steps" in document else "experiment"])
        for path in [ROOT / "examples/fleet/fleet.json", *ROOT.glob("tests/data/fleets/*/*-data.json")]:
            with self.subTest(str(path)):
                jsonschema.validate(json.loads(path.read_text()), self.schemas["fleet"])

    def test_what_the_documents_show_is_valid(self):
        shown = 0
        for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
            for block in re.findall(r"^```yaml\n(.*?)^```$", path.read_text(), re.M | re.S):
                document = yaml.load(block, Yaml) if "…" not in block else None
                name = "flow" if "steps" in (document or {}) else "experiment" if "run" in (document or {}) else None
                if name:
                    shown += 1
                    with self.subTest(f"{path}: {block}"):
                        jsonschema.validate(document, self.schemas[name])
        self.assertGreater(shown, 8)

    def test_documented_defaults_of_fleets_are_those_of_the_schema(self):
        parts = {part: keys["properties"] for part, keys in self.schemas["fleet"]["$defs"].items()}
        required = {(part, key) for part, keys in self.schemas["fleet"]["$defs"].items() for key in keys.get("required", [])}
        page = (ROOT / "docs/reference/fleet-documents.md").read_text()
        headings = {"Accelerators": "accelerator", "Power": "power", "Capacity": "capacity", "Kinds of purchase": "purchase",
                    "Models": "model", "Performance parameters": "perfParms", "Service classes": "class",
                    "Servers": "server", "Allocations": "allocation", "Load": "load", "Optimizer": "optimizer",
                    "Start": "start"}
        literal = re.compile(r"[\d.]+|true|false")
        checked = 0
        for section in re.split(r"^##+ ", page, flags=re.M)[1:]:
            part = headings.get(section.partition("\n")[0])
            tables = re.findall(r"^\| key \| value \| default \| meaning \|\n\|[- |]+\n((?:\|.*\n)+)", section, re.M) if part else []
            for keys, default in re.findall(r"^\| (`[^|]+`) \| [^|]* \| ([^|]*?) ?\|", "".join(tables), re.M):
                for key in re.findall(r"`([\w-]+)`", keys):
                    value = parts[part].get(key) or parts["transfer"][key]
                    without = "required" if (part, key) in required else value.get("x-without", "")
                    texts = default.strip("` "), without
                    if any(literal.fullmatch(text) for text in texts) or "enum" in value:
                        checked += 1
                        self.assertEqual(*texts, f"{part}.{key}")
        self.assertGreater(checked, 35)

    def test_files_with_every_key_are_read(self):
        for name, documents in self.WHOLE.items():
            schema, seen = self.schemas[name], set()
            for document in documents:
                with self.subTest(document):
                    jsonschema.validate(document, schema)
                    code, err = self.said(name, document)
                    self.assertNotRegex(err, OF_ONE_VALUE)
                    self.assertIn(code, (0, 1), err)
                seen |= {(id(part), path[-1]) for path, part in places(schema, schema, document)}
            for title, part in [(name, schema), *schema["$defs"].items()]:
                for key, value in part["properties"].items():
                    self.assertTrue((id(value), key) in seen, f"{title}.{key} is in no file of this test")

    def distinct(self):
        """Each place of the files with every key whose part of the schema did not come before."""
        for name, documents in self.WHOLE.items():
            schema, before = self.schemas[name], set()
            for document in documents:
                for path, part in places(schema, schema, document):
                    if id(part) not in before:
                        before.add(id(part))
                        yield name, schema, document, path, part

    def test_what_a_schema_refuses_a_reader_refuses(self):
        asked = 0
        for name, schema, document, path, part in self.distinct():
            refused = [each for each in WRONG if not valid(schema, replaced(document, path, each))]
            for value in refused[:2]:  # each takes a process
                asked += 1
                code, err = self.said(name, replaced(document, path, value))
                self.assertEqual(code, 2, f"{name}: {path} = {value}: the reader takes it: {err}")
        self.assertGreater(asked, 200)

    def test_bounds_are_those_of_the_reader(self):
        asked = 0
        for name, _, document, path, part in self.distinct():
            if "string" in part.get("type", []):
                continue
            for word, beyond in (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)):
                if word not in part:
                    continue
                asked += 1
                if beyond:
                    code, err = self.said(name, replaced(document, path, part[word]))
                    self.assertNotRegex(err, OF_BOUNDS, f"{name}: {path} = {part[word]}")
                code, err = self.said(name, replaced(document, path, part[word] + beyond))
                self.assertEqual(code, 2, f"{name}: {path} = {part[word] + beyond}: the reader takes it")
        self.assertGreater(asked, 80)

    def test_choices_are_those_of_the_reader(self):
        for name, _, document, path, part in self.distinct():
            for choice in part.get("enum", []):
                code, err = self.said(name, replaced(document, path, choice))
                self.assertNotRegex(err, "expected one of|did you mean|has no policy", f"{path} = {choice}")

    def test_of_wrong_files_a_schema_finds_what_concerns_one_value(self):
        found = missed = 0
        for golden, name in (("wrong_experiments", "experiment"), ("wrong_flows", "flow")):
            for case in ("\n" + (ROOT / f"tests/golden/{golden}.txt").read_text()).split("\n## ")[1:]:
                title, _, body = case.partition("\n")
                said = "\n".join(line for line in body.split("\n") if line.startswith("! "))
                text = "\n".join(line for line in body.split("\n") if not line.startswith("! "))
                if re.search(r"^[@$=] ", text, re.M):
                    continue  # of several files, or of options
                try:
                    document = yaml.load(text, Yaml)
                except yaml.YAMLError:
                    continue
                refused = not valid(self.schemas[name], document)
                found, missed = found + refused, missed + (not refused)
                with self.subTest(title):
                    if OF_ONE_VALUE.search(said):
                        self.assertTrue(refused, said)
                    if all(line.startswith("! note: ") for line in said.split("\n")):
                        self.assertFalse(refused, said)
        self.assertGreater(found, 60, f"{missed} are beyond a schema: names, sources, what two keys say together")


if __name__ == "__main__":
    unittest.main()
