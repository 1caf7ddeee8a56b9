#!/usr/bin/python3
"""berth plan --manifests, end to end: files for Kubernetes, read back by another reader of YAML.

Their fields are checked against docs/how-to/deploy-a-fleet.md here; that they are those of Kubernetes' and KEDA's published
schemas was checked with the npm packages kubernetes-models and @kubernetes-models/keda."""

import json
import random
import unittest
from pathlib import Path

import yaml

from berth_case import Case

EXAMPLE = Path(__file__).resolve().parent.parent / "examples/fleet"
# What YAML 1.1 or 1.2 could take for anything but text, and letters that end lines or cannot be shown.
PIECES = ["a", "B", "7", " ", ": ", "- ", " #", "{", "}", "[", "&a", "*a", "!!python/object:os.system", "---", "\n---\n", "...",
          "\n", "\r\n", "\t", "\x01", "\x7f", "\u0085", "\u2028", "\ufeff", "\ufffe", "\ud7ff", "é", "日", "\U0001f6a2",
          "\"", "'", "\\", "\\n", "\\u0041", "%YAML 1.1\n", "null", "~", "yes", "on", "1e3", "0x1F", "12:30:45", "=", "<<",
          "|", ">", "@", "`", "${", "$(", "}}", ","]


def fleet(servers, accelerators=({"name": "A", "cost": 1, "nodeSelector": {"gpu": "a"}},)):
    """A document of these servers; each has a model of its own that all accelerators serve."""
    models = sorted({server["model"] for server in servers})
    load = {"arrivalRate": 60, "avgInTokens": 100, "avgOutTokens": 100}
    return json.dumps({
        "accelerators": accelerators, "optimizer": {"solver": "unlimited"},
        "models": [{"name": model, "acc": accelerator["name"], "maxBatchSize": 16, "atTokens": 1024,
                    "perfParms": {"alpha": 10, "beta": 0.1}} for model in models for accelerator in accelerators],
        "serviceClasses": [{"name": "C", "modelTargets": [{"model": model, "slo-itl": 100} for model in models]}],
        "servers": [{"class": "C", "currentAlloc": {"load": load}, **server} for server in servers]})


class Manifests(Case):
    def written(self, *options, name="fleet.json"):
        made = json.loads(self.berth("plan", name, "--manifests", "k8s", "--json", *options).out)["manifests"]
        return {m["server"]: [m, *yaml.safe_load_all((self.dir / m["file"]).read_bytes())] for m in made}

    def assert_deployment(self, made, deployment, start):
        """Every field that a Deployment of ours has, and no other."""
        name = {"app.kubernetes.io/name": made["name"]}
        container = {"name": "server", "image": start["image"],
                     "resources": {"limits": {start.get("resource", "nvidia.com/gpu"): "1"}},
                     **{key: start[key] for key in ("command", "args") if key in start}}
        if "port" in start:
            container["ports"] = [{"containerPort": start["port"]}]
        if "env" in start:
            container["env"] = [{"name": key, "value": value} for key, value in sorted(start["env"].items())]
        self.assertEqual(deployment, {
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": made["name"], "labels": name,
                         "annotations": {"berth/server": made["server"], "berth/accelerator": made["accelerator"]}},
            "spec": {"replicas": made["replicas"], "selector": {"matchLabels": name}, "template": {
                "metadata": {"labels": name},
                "spec": {"nodeSelector": {"gpu": "a"}, "containers": [container]}}}})

    def test_nothing_in_a_document_becomes_syntax(self):
        draw = random.Random(11)

        def text():
            return "".join(draw.choices(PIECES, k=draw.randint(1, 6)))

        servers = {}
        while len(servers) < 120:
            word = text()
            servers[text()] = {"model": text(), "start": {
                "image": "i:" + "".join(draw.choices("#&*!|>'\"%@`{}[],?-", k=4)), "command": ["c" + text(), text()],
                "args": [text() for _ in range(3)] + [word], "port": draw.randint(1, 65535),
                "env": {f"E{i}": text() for i in range(3)}}}
        self.write("fleet.json", fleet([{"name": name, **server} for name, server in servers.items()]))
        found = self.written("--scaler", "keda", "--prometheus", "http://p:9090/?a: b")
        self.assertEqual(set(found), set(servers))
        self.assertEqual(len({made["file"] for made, *_ in found.values()}), len(servers))
        for name, (made, deployment, scaled) in found.items():
            self.assert_deployment(made, deployment, servers[name]["start"])
            trigger = scaled["spec"]["triggers"][0]["metadata"]
            self.assertEqual(trigger["serverAddress"], "http://p:9090/?a: b")
            head, _, accelerator = trigger["query"].rpartition(",accelerator_type=")
            self.assertRegex(head, r'(?s)\Awva_desired_replicas\{variant_name=".*"\Z')
            self.assertEqual(json.loads(head[len("wva_desired_replicas{variant_name="):]), name)
            self.assertEqual(json.loads(accelerator[:-1]), made["accelerator"])
            self.assertRegex(made["name"], r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")

    def test_what_autoscalers_read(self):
        self.write("fleet.json", (EXAMPLE / "fleet.json").read_text())
        plan = json.loads(self.berth("plan", "fleet.json", "--json").out)["allocations"]
        of_hpa = self.written("--namespace", "llm")
        self.assertEqual(set(of_hpa), {"assistant", "expert", "reviewer", "summaries"}, "retired needs none")
        for name, (made, deployment, hpa) in of_hpa.items():
            self.assertEqual(deployment["spec"]["replicas"], plan[name]["numReplicas"])
            self.assertEqual(deployment["metadata"]["namespace"], "llm")
            self.assertEqual((hpa["apiVersion"], hpa["kind"], hpa["metadata"]),
                             ("autoscaling/v2", "HorizontalPodAutoscaler", {"name": name, "namespace": "llm"}))
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            self.assertEqual(hpa["spec"].pop("scaleTargetRef"), target)
            self.assertLessEqual(1, hpa["spec"].pop("minReplicas"))
            self.assertLessEqual(made["replicas"], hpa["spec"].pop("maxReplicas"))
            self.assertEqual(hpa["spec"], {"metrics": [{"type": "External", "external": {
                "metric": {"name": "wva_desired_replicas",
                           "selector": {"matchLabels": {"variant_name": name, "accelerator_type": made["accelerator"],
                                                        "exported_namespace": "llm"}}},
                "target": {"type": "AverageValue", "averageValue": "1"}}}]})
        container = of_hpa["expert"][1]["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["resources"], {"limits": {"nvidia.com/gpu": "2"}}, "2xH100 is two of them")
        self.assertEqual(container["args"][5:], ["2", "--max-num-seqs", str(plan["expert"]["maxBatch"])])
        of_keda = self.written("--namespace", "llm", "--scaler", "keda", "--prometheus", "http://p:9090")
        for name, (made, deployment, scaled) in of_keda.items():
            self.assertEqual(deployment, of_hpa[name][1])
            self.assertEqual((scaled["apiVersion"], scaled["kind"]), ("keda.sh/v1alpha1", "ScaledObject"))
            self.assertEqual(scaled["spec"]["triggers"], [{
                "type": "prometheus", "metricType": "AverageValue", "metadata": {
                    "serverAddress": "http://p:9090", "threshold": "1", "activationThreshold": "0",
                    "ignoreNullValues": "false",  # no series is no wish for none
                    "query": f'wva_desired_replicas{{variant_name="{name}",accelerator_type="{made["accelerator"]}",'
                             'exported_namespace="llm"}'}}])
        self.assertEqual({len(found) for found in self.written("--scaler", "none").values()}, {2})

    def test_a_mix_has_a_file_for_each_accelerator(self):
        """A Big takes 1640 requests a minute, an MI300X 677: one of each is the cheapest that takes 2200."""
        document = json.loads(fleet([{"name": "s", "model": "m", "start": {"image": "i"}}], (
            {"name": "Big", "cost": 10, "nodeSelector": {}}, {"name": "MI300X", "cost": 6, "nodeSelector": {"gpu": "x"}})))
        document["models"][1]["perfParms"] = {"alpha": 30, "beta": 0.2}
        document["servers"][0]["currentAlloc"]["load"]["arrivalRate"] = 2200
        self.write("fleet.json", json.dumps(document))
        made = json.loads(self.berth("plan", "fleet.json", "--heterogeneous", "--manifests", "k8s", "--json").out)
        self.assertEqual(len(made["allocations"]["s"].get("parts", [])), 2, made["allocations"])
        self.assertRegex(" ".join(m["name"] for m in made["manifests"]), r"\As-big-[0-9a-f]{8} s-mi300x-[0-9a-f]{8}\Z")
        for part, manifest in zip(sorted(made["allocations"]["s"]["parts"], key=lambda part: part["accelerator"]),
                                  made["manifests"]):
            deployment, hpa = yaml.safe_load_all((self.dir / manifest["file"]).read_text())
            self.assertEqual(deployment["spec"]["replicas"], part["numReplicas"])
            self.assertEqual(hpa["spec"]["metrics"][0]["external"]["metric"]["selector"]["matchLabels"],
                             {"variant_name": "s", "accelerator_type": part["accelerator"]})
        limits = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        self.assertEqual(limits, {"amd.com/gpu": "1"})

    def test_own_files_are_replaced_and_others_are_not(self):
        def plan(names, **more):
            servers = [{"name": name, "model": "m" + name, "start": {"image": "i"}} for name in names]
            self.write("fleet.json", fleet(servers))
            return self.berth("plan", "fleet.json", "--manifests", "a/k8s", **more)

        first = plan("ab")
        self.assertIn(b"a/k8s/b.yaml\n\nkubectl apply -f a/k8s\n", first.out)
        self.assertEqual(first.err, b"")
        before = (self.dir / "a/k8s/a.yaml").read_text()
        self.write("a/k8s/own.yaml", "kind: Secret\n")
        second = plan("ac")
        self.assertEqual((self.dir / "a/k8s/a.yaml").read_text(), before)
        self.assertEqual(second.err.decode().splitlines(),
                         ["note: a/k8s/b.yaml: from an earlier plan; this plan has no such server"])
        self.assertIn(b" a/k8s/c.yaml\n", self.berth("plan", "fleet.json", "--manifests", "a/k8s/").out)
        self.write("a/k8s/d.yaml", "kind: Secret\n")
        refused = self.one_line(plan("0ad", code=2))
        self.assertIn("a/k8s/d.yaml: exists and was not written by berth plan", refused)
        self.assertEqual((self.dir / "a/k8s/d.yaml").read_text(), "kind: Secret\n")
        self.assertFalse((self.dir / "a/k8s/0.yaml").exists(), "all or nothing")

    def test_wrong_use(self):
        self.write("fleet.json", fleet([{"name": "s", "model": "m"}]))

        def refused(*options):
            return self.one_line(self.berth("plan", "fleet.json", *options, code=2))

        self.assertIn("server 's': start.image: no container image", refused("--manifests", "k8s"))
        self.assertFalse((self.dir / "k8s").exists())
        self.assertIn("--scaler: needs --manifests", refused("--scaler", "hpa"))
        self.assertIn("requires --prometheus URL", refused("--manifests", "k8s", "--scaler", "keda"))
        self.assertIn("--prometheus: needs --scaler keda", refused("--manifests", "k8s", "--prometheus", "http://p"))
        self.assertIn("--namespace: expected", refused("--manifests", "k8s", "--namespace", "a.b"))
        for other in (["--candidates"], ["--sweep", "server.s.arrivalRate=1..2"], ["--profile", "day.csv"]):
            self.assertIn("--manifests: of one plan", refused("--manifests", "k8s", *other))


if __name__ == "__main__":
    unittest.main()
