#!/usr/bin/python3
"""A client in Go, with the types of the reference's clients, decodes what berth serve answers."""

import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path

from berth_case import Case

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/fleet/fleet.json"


@unittest.skipUnless(shutil.which("go"), "no go (Debian: golang-go) to build the client with")
class GoClient(Case):
    def test_it_decodes_every_answer(self):
        environment = {**os.environ, "HOME": str(self.dir), "GOCACHE": str(self.dir / "cache"), "GO111MODULE": "off",
                       "GOFLAGS": "", "CGO_ENABLED": "0"}
        client = self.dir / "client"
        made = subprocess.run(["go", "build", "-o", client, ROOT / "tests/go_client/main.go"], env=environment,
                              cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        server = self.house.start("serve", "--listen", "127.0.0.1:0")
        url = server.stdout.readline().decode().strip()
        fleet = json.loads(EXAMPLE.read_text())
        load = fleet["serverData"]["servers"][0]["currentAlloc"]["load"]  # keys that the client's types lack
        load["outTokensHistogram"] = [{"tokens": 100.5, "weight": 3}, {"tokens": 700, "weight": 1}]
        del load["avgOutTokens"]
        path = self.write("fleet.json", json.dumps(fleet))
        done = subprocess.run([client, url, path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        answers = json.loads(done.stdout)
        self.assertEqual({a["name"] for a in answers["Accelerators"]},
                         {a["name"] for a in fleet["acceleratorData"]["accelerators"]})
        self.assertEqual(len(answers["Servers"]["servers"]), len(fleet["serverData"]["servers"]))
        planned = json.loads(self.berth("plan", path, "--json").out)["allocations"]
        for server in answers["Servers"]["servers"]:
            chosen = answers["Solution"]["allocations"][server["name"]]
            self.assertEqual(server["desiredAlloc"], chosen)
            for key in ("accelerator", "numReplicas", "maxBatch"):
                self.assertEqual(chosen[key], planned[server["name"]][key])
        size, moved, name = answers["Size"], answers["Moved"], answers["Servers"]["servers"][0]["name"]
        printed = json.loads(self.berth("size", path, name, "--json").out)
        self.assertEqual(size["best"], printed["best"])
        self.assertEqual({a: c["numReplicas"] for a, c in size["candidates"].items()},
                         {a: c["numReplicas"] for a, c in printed["candidates"].items()})
        self.assertEqual(moved["current"]["numReplicas"], size["candidates"][size["best"]]["numReplicas"] + 1)
        self.assertEqual((moved["load"]["avgInTokens"], moved["load"]["avgOutTokens"]), (700, 250))
        self.assertEqual(answers["Move"], size["candidates"][size["best"]])


if __name__ == "__main__":
    unittest.main()
