#!/usr/bin/python3
"""What follows `?` in a URL, and user:password in it, is in no output of Berth: neither of a run with such URLs nor of one that they break."""

import json
import unittest
from urllib.request import Request, urlopen

from berth_case import Case
from file_server import FileServer

SECRET = "SECRETQ"


class SecretsOfUrls(Case):
    def setUp(self):
        super().setUp()
        self.server = FileServer()
        self.addCleanup(self.server.close)
        for path in ("/a.txt", "/b.txt"):
            self.server.put(path, path.encode() + b"\n")

    def url(self, path):
        return f"{self.server.url}{path}?X-Amz-Signature={SECRET}&Expires=1"

    def outputs(self, run, *more):
        """Every text that Berth makes of a run, by the command."""
        commands = [("show", run), ("show", run, "--csv"), ("show", run, "--graph"), ("show", run, "--graph=dot"), ("--json", "show", run),
                    ("--json", "show", run, "--graph"), ("why", run), ("--json", "why", run), ("trace", run), ("logs", run), ("runs",),
                    ("--json", "runs"), ("top", "--once"), ("--json", "top"), ("machine",), ("--json", "machine"), ("metrics",), *more]
        for form in ("html", "md"):
            self.house.run("report", run, "-o", f"report.{form}")
            yield f"report.{form}", (self.dir / f"report.{form}").read_text()
        for task in self.house.tasks(run):
            commands += [("why", task["id"]), ("--json", "why", task["id"]), ("logs", task["id"])]
        for command in commands:
            finished = self.house.run(*command)
            yield " ".join(command), (finished.out + finished.err).decode()

    def assert_no_secret(self, what, text):
        at = text.find(SECRET)
        self.assertEqual(at, -1, f"{what}: …{text[max(at - 200, 0):at + 50]}")

    def run_and_search(self, flow, *options, code=0):
        self.write("flow.yaml", flow)
        log = {"BERTH_LOG": str(self.dir / "berth.log")}
        for command in (("check", "flow.yaml"), ("--json", "check", "flow.yaml"), ("run", "--plan", "flow.yaml"),
                        ("--json", "run", "--plan", "flow.yaml"), ("run", "flow.yaml", *options)):
            finished = self.house.run(*command, env=log)
            self.assert_no_secret(command, (finished.out + finished.err).decode())
        self.assertEqual(finished.code, code, finished)
        for what, text in self.outputs("flow-1"):
            self.assert_no_secret(what, text)
        for command in (("resume", "flow-1"), ("retry", "flow-1")):
            finished = self.house.run(*command, env=log)
            self.assert_no_secret(command, (finished.out + finished.err).decode())
        self.assert_no_secret("the log", (self.dir / "berth.log").read_text())

    def test_of_inputs_are_in_no_output(self):
        self.run_and_search(f"""
steps:
  one: {{in: {{x: '{self.url("/a.txt")}'}}, run: 'cat {{in.x}} > {{out.y}}', out: {{y: one.txt}}}}
  list: {{in: {{x: ['{self.url("/a.txt")}', '{self.url("/b.txt")}']}}, run: 'cat {{in.x}} > {{out.y}}', out: {{y: list.txt}}}}
  map: {{in: {{x: {{url: '{self.url("/a.txt")}'}}}}, run: 'cat {{in.x}} > {{out.y}}', out: {{y: map.txt}}}}
""")
        self.assertEqual((self.dir / "list.txt").read_text(), "/a.txt\n/b.txt\n")

    def test_of_lists_are_not_in_the_keys_of_tasks_and_differ_there(self):
        self.run_and_search(f"""
steps:
  each: {{foreach: {{u: ['{self.url("/a.txt")}', '{self.url("/b.txt")}', '{self.url("/b.txt")}2']}}, in: {{x: '{{u}}'}},
          run: 'cat {{in.x}} > {{out.y}}', out: {{y: 'out/{{u.stem}}{{index}}.txt'}}}}
  next: {{foreach: {{t: each.y}}, run: 'cp {{t}} {{out.z}}', out: {{z: 'out/{{key}}.z'}}}}
""")
        self.assertEqual((self.dir / "out/b1.txt").read_text(), "/b.txt\n")
        keys = [task["id"] for task in self.house.tasks("flow-1")]
        self.assertEqual(len(set(keys)), 6)
        self.assertTrue(all("a.txt" in key or "b.txt" in key for key in keys), keys)
        self.assertEqual([path for path in self.dir.rglob("*") if SECRET in path.name], [])

    def test_of_parameters_commands_and_conditions_are_in_no_output(self):
        self.run_and_search(f"""
params: {{base: '{self.url("/a.txt")}', other: x}}
steps:
  set: {{run: 'true {{other}}'}}
  param: {{run: 'true {{base}}', env: {{URL: '{self.url("/b.txt")}'}}}}
  command: {{run: "true '{self.url("/a.txt")}'; false"}}
  password: {{run: 'false --db postgresql://user:{SECRET}@localhost/db'}}
  skipped: {{when: base == x, run: 'true'}}
""", "--set", f"other={self.url('/b.txt')}", code=1)

    def test_of_urls_that_fail_are_in_no_message(self):
        self.run_and_search(f"""
steps:
  missing: {{in: {{x: '{self.url("/missing")}'}}, run: 'true'}}
  sum: {{in: {{x: {{url: '{self.url("/a.txt")}', sha256: {"0" * 64}}}}}, run: 'true'}}
""", code=1)

    def test_of_files_that_are_refused_are_in_no_message(self):
        for text in (f"http://user:{SECRET}@127.0.0.1/x", f"http://{SECRET}@127.0.0.1/x", f"ftp://127.0.0.1/x?{SECRET}",
                     f"http://ho st/x?{SECRET}", f"http://127.0.0.1/x?{SECRET}#md5=1"):
            for flow in (f"steps: {{a: {{in: {{x: '{text}'}}, run: 'true'}}}}", f"steps: {{a: {{in: {{x: {{url: '{text}'}}}}, run: 'true'}}}}",
                         f"steps: {{a: {{run: 'true', out: {{x: '{text}'}}}}}}", f"steps: {{a: {{run: 'true', needs: '{text}'}}}}"):
                self.write("flow.yaml", flow)
                for command in (("check", "flow.yaml"), ("--json", "check", "flow.yaml"), ("run", "flow.yaml")):
                    finished = self.house.run(*command)
                    self.assertNotEqual(finished.code, 0, (flow, finished))
                    self.assert_no_secret((flow, command), (finished.out + finished.err).decode())

    def test_of_a_single_command_are_in_no_output(self):
        self.house.run("run", "--name", "one", "--", "sh", "-c", f"false '{self.url('/a.txt')}'")
        for what, text in self.outputs("one-1"):
            self.assert_no_secret(what, text)

    def test_are_not_in_what_the_page_asks_for(self):
        self.run_and_search(f"steps: {{a: {{in: {{x: '{self.url('/a.txt')}'}}, run: 'cat {{in.x}}; false'}}}}", code=1)
        server = self.house.start("serve", "--listen", "127.0.0.1:0", "--read-token-file", "read")
        base = server.stdout.readline().decode().strip()
        bearer = {"Authorization": "Bearer " + (self.dir / "read").read_text().strip()}
        for path in ("/v1/runs", "/v1/runs/flow-1", "/v1/runs/flow-1/summary", "/v1/runs/flow-1/graph", "/v1/runs/flow-1/trials.csv",
                     "/v1/runs/flow-1/why", "/v1/runs/flow-1/log", "/v1/runs/flow-1/trace", "/v1/tasks/flow-1%2Fa/why", "/v1/top", "/metrics"):
            with urlopen(Request(base + path, headers=bearer), timeout=20) as answer:
                self.assert_no_secret(path, answer.read().decode())
        with urlopen(Request(base + "/v1/runs/flow-1/graph", headers=bearer), timeout=20) as answer:
            self.assertEqual(json.load(answer)["steps"][0]["files"], [f"{self.server.url}/a.txt?…"])


if __name__ == "__main__":
    unittest.main()
