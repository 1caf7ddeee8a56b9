#!/usr/bin/python3
"""The contract of all clients: the same runs through the command line, C++, C, Python and HTTP have the same states, results and
errors.

BERTH_BUILD names the build with libberth.so, BERTH_CC and BERTH_CXX the compilers.
"""

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from urllib.parse import urlsplit

from berth_case import BERTH, House, until

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("BERTH_BUILD", Path(BERTH).parent.parent))
CC, CXX = os.environ.get("BERTH_CC", "cc"), os.environ.get("BERTH_CXX", "c++")
PYTHON = os.environ.get("BERTH_PYTHON", str(ROOT / "python"))

# Each program takes: command WORD…; file FILE OPTIONS [NAME=VALUE…], where OPTIONS is a JSON object and the remaining words are
# the same options; wait, stop, resume or retry RUN. It prints the name or the state of the run, or its error.
CPP = r"""
#include <berth/run.h>
#include <iostream>

int fail(const berth::Error& error) { std::cerr << error.message << '\n'; return 1; }

int main(int count, char** words) {
  auto runs = berth::Runs::open({.on_note = [](const std::string& note) { std::cerr << note << '\n'; }});
  if (!runs) return fail(runs.error());
  const std::string call = words[1], first = words[2];
  if (call == "command") {
    berth::Command command{.argv = {words + 2, words + count}};
    command.resources.set("cpu", 1000);
    const auto name = runs->submit(command);
    if (!name) return fail(name.error());
    std::cout << *name;
  } else if (call == "file") {
    berth::FileOptions options;
    for (int i = 4; i < count; ++i) {
      const std::string word = words[i], key = word.substr(0, word.find('=')), value = word.substr(key.size() + 1);
      if (key == "allow_failures") options.allow_failures = std::stoll(value);
      else if (key == "cluster") options.clusters.push_back(value);
      else options.set.emplace_back(key, value);
    }
    const auto name = runs->submit_file(first, options);
    if (!name) return fail(name.error());
    std::cout << *name;
  } else if (call == "wait") {
    const auto run = runs->wait(first);
    if (!run) return fail(run.error());
    std::cout << run->state;
  } else {
    const auto status = call == "stop" ? runs->stop(first) : call == "resume" ? runs->resume(first) : runs->retry(first);
    if (!status) return fail(status.error());
  }
}
"""
C = r"""
#include <berth/berth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** words) {
  char message[4096] = "", *name = NULL;
  berth_runs* runs = NULL;
  berth_run run;
  const char *call = words[1], *first = words[2];
  int error = berth_runs_open(NULL, NULL, &runs, message, sizeof message);
  if (error == 0 && strcmp(call, "command") == 0)
    error = berth_runs_submit(runs, (const char* const*)words + 2, &name, message, sizeof message);
  else if (error == 0 && strcmp(call, "file") == 0)
    error = berth_runs_submit_file(runs, first, words[3], &name, message, sizeof message);
  else if (error == 0 && strcmp(call, "wait") == 0)
    error = berth_runs_wait(runs, first, 0, &run, message, sizeof message);
  else if (error == 0 && strcmp(call, "stop") == 0)
    error = berth_runs_stop(runs, first, message, sizeof message);
  else if (error == 0 && strcmp(call, "resume") == 0)
    error = berth_runs_resume(runs, first, message, sizeof message);
  else if (error == 0)
    error = berth_runs_retry(runs, first, 0, message, sizeof message);
  if (error != 0)
    fprintf(stderr, "%s\n", message);
  else
    printf("%s", name != NULL ? name : strcmp(call, "wait") == 0 ? run.state : "");
  free(name);
  berth_runs_destroy(runs);
  (void)count;
  return error != 0;
}
"""
PROGRAM_OF_PYTHON = r"""
import sys
import berth
call, first, *more = sys.argv[1:]
try:
    if call == "command":
        print(berth.run(command=[first, *more], resources={"cpu": 1}).name, end="")
    elif call == "file":
        options = [word for each in more[1:] for word in (
            ["--allow-failures=" + each.partition("=")[2]] if each.startswith("allow_failures=") else
            ["--cluster", each.partition("=")[2]] if each.startswith("cluster=") else ["--set", each])]
        print(berth.run(first, *options).name, end="")
    elif call == "wait":
        print(berth.Run(first).wait(), end="")
    else:
        getattr(berth.Run(first), call)()
except berth.Failed as failure:
    sys.exit(str(failure))
"""


class Refused(Exception):
    """The error that a client reported."""


class Program:
    """A client that is a program."""

    def __init__(self, house, *command):
        self.house, self.words = house, list(command)

    def call(self, *arguments):
        done = subprocess.run([*self.words, *arguments], cwd=self.house.path, env=self.house.environment, text=True,
                              capture_output=True, timeout=60)
        self.notes = done.stderr
        if done.returncode != 0:
            raise Refused(done.stderr.strip().removeprefix("berth: "))
        return done.stdout.strip()

    def command(self, *words):
        return self.call("command", *words)

    def file(self, name, **options):
        words = [f"{key}={value}" for key, value in (options.pop("set", {}) | options).items()]
        request = {key: value for key, value in options.items()}
        return self.call("file", name, self.json(words, request), *words)

    def json(self, words, request):
        """The options as the C interface takes them."""
        more = {"set": {key: value for key, value in (word.split("=") for word in words) if key not in request}}
        if "cluster" in request:
            more["clusters"] = [request.pop("cluster")]
        return json.dumps({key: value for key, value in (request | more).items() if value != {}})

    def wait(self, run):
        return self.call("wait", run)

    def stop(self, run):
        self.call("stop", run)

    def resume(self, run):
        self.call("resume", run)

    def retry(self, run):
        self.call("retry", run)

    def close(self):
        pass


class CommandLine(Program):
    """The command line itself."""

    def __init__(self, house):
        super().__init__(house, BERTH)

    def command(self, *words):
        return self.call("run", "--detach", "--cpu", "1", "--", *words)

    def file(self, name, **options):
        given = [f"--set={key}={value}" for key, value in options.get("set", {}).items()]
        given += [f"--allow-failures={options['allow_failures']}"] if "allow_failures" in options else []
        given += ["--cluster", options["cluster"]] if "cluster" in options else []
        return self.call("run", "--detach", *given, name)

    def wait(self, run):
        self.house.run("wait", run)  # its exit code is that of the run
        return self.house.json("show", run)["run"]["state"]

    def resume(self, run):
        self.call("resume", "--detach", run)

    def retry(self, run):
        self.call("retry", "--detach", run)


class Http:
    """A client of the server."""

    def __init__(self, house):
        self.house = house
        (house.path / "token").write_text("a-very-secret-token-1")
        (house.path / "token").chmod(0o600)
        self.server = house.start("serve", "--listen", "127.0.0.1:0", "--token-file", "token")
        self.url = urlsplit(self.server.stdout.readline().decode().strip())

    def ask(self, method, path, body=None):
        client = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        client.request(method, path, None if body is None else json.dumps(body), {"Authorization": "Bearer a-very-secret-token-1"})
        answer = client.getresponse()
        document = json.loads(answer.read())
        client.close()
        if answer.status >= 400:
            raise Refused(document["error"])
        return document

    def command(self, *words):
        return self.ask("POST", "/v1/runs", {"command": words, "resources": {"cpu": 1}})["name"]

    def file(self, name, **options):
        if "cluster" in options:
            options["clusters"] = [options.pop("cluster")]
        text = (self.house.path / name).read_text()
        begun = self.ask("POST", "/v1/runs", {"file": text, "file_name": name, "options": options})
        self.notes = "\n".join(begun["notes"])
        return begun["name"]

    def wait(self, run):
        state = lambda: self.ask("GET", f"/v1/runs/{run}/summary")["run"]["state"]
        return until(lambda: (now := state()) not in ("queued", "running") and now, f"{run} ends")

    def stop(self, run):
        self.ask("POST", f"/v1/runs/{run}/stop")

    def resume(self, run):
        self.ask("POST", f"/v1/runs/{run}/resume")

    def retry(self, run):
        self.ask("POST", f"/v1/runs/{run}/retry")

    def close(self):
        self.server.terminate()
        self.server.wait(20)


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = Path(tempfile.mkdtemp(prefix="berth-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        programs = {}
        for name, source, compiler in (("c", C, [CC, "-std=c99"]), ("cpp", CPP, [CXX, "-std=c++23", "-x", "c++"])):
            file = cls.root / f"{name}.{'c' if name == 'c' else 'cc'}"
            file.write_text(source)
            programs[name] = cls.root / name
            subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", file, "-o", programs[name],
                            f"-L{BUILD}", "-lberth", f"-Wl,-rpath,{BUILD}"], check=True)
        (cls.root / "client.py").write_text(PROGRAM_OF_PYTHON)
        makers = {"command line": CommandLine, "C++": lambda house: Program(house, programs["cpp"]),
                  "C": lambda house: Program(house, programs["c"]), "HTTP": Http,
                  "Python": lambda house: Program(house, sys.executable, cls.root / "client.py")}
        cls.clients = {}
        for name, make in makers.items():
            place = cls.root / name.replace(" ", "-").replace("+", "p")
            place.mkdir()
            house = House(place)
            house.environment |= {"BERTH_BIN": BERTH, "PYTHONPATH": PYTHON}
            cls.addClassCleanup(house.close)
            cls.clients[name] = make(house)
            cls.addClassCleanup(cls.clients[name].close)

    def same(self, scenario):
        """What the scenario returns for each client, which is the same for all."""
        found = {}
        for name, client in self.clients.items():
            with self.subTest(name):
                found[name] = scenario(client)
                self.assertEqual(found[name], found["command line"])
        return found["command line"]

    def files(self, **files):
        for client in self.clients.values():
            for name, text in files.items():
                (client.house.path / name.replace("_", ".")).write_text(text)

    def result(self, client, run):
        """The states and results of a run, as the command line shows them."""
        shown = client.house.json("show", run)
        return {"run": run, "state": shown["run"]["state"], "kind": shown["run"]["kind"], "error": shown["run"]["error"],
                "labels": shown["run"]["labels"],
                "tasks": {task["id"]: [task[key] for key in ("state", "attempts", "exit_code", "params", "metrics", "resources")]
                          for task in shown["tasks"]}}

    def ended(self, client, run):
        state = client.wait(run)
        found = self.result(client, run)
        self.assertEqual(state, found["state"])
        return found

    def refusal(self, call):
        try:
            call()
        except Refused as refused:
            return str(refused).replace("--", "")  # of an option's name
        raise AssertionError("it was not refused")

    def runs(self, client):
        return [run["id"] for run in client.house.json("runs")["runs"]]

    def test_a_command_with_resources(self):
        found = self.same(lambda client: self.ended(client, client.command("echo", "hello")))
        self.assertEqual(found["tasks"]["echo-1/1"][5], {"cpu": 1})

    def test_an_experiment_with_failures(self):
        self.files(sweep_yaml="name: sweep\nrun: echo ::berth f={x}; test {x} != 2\nparams: {x: [3, 2, 1]}\n"
                   "labels: {team: a}\nresources: {cpu: 0.1}\ngoal: {metric: f, direction: min}\n")
        self.assertEqual(self.same(lambda client: self.ended(client, client.file("sweep.yaml")))["state"], "failed")
        self.assertEqual(self.same(lambda client: self.ended(client, client.file("sweep.yaml", allow_failures=1)))["state"], "done")

    def test_a_flow_with_parameters(self):
        self.files(flow_yaml="name: flow\nparams: {n: 1}\nsteps:\n  a: {run: 'echo {n} > {out.o}', out: {o: 'n.txt'}}\n"
                   "  b: {in: {o: a.o}, run: 'cat {in.o}; echo ::berth n={n}'}\n")
        found = self.same(lambda client: (self.ended(client, client.file("flow.yaml", set={"n": 7})),
                                          (client.house.path / "n.txt").read_text()))
        self.assertEqual((found[0]["state"], found[1]), ("done", "7\n"))

    def test_a_document_of_auptimizer(self):
        document = {"name": "aup", "script": "work.py", "proposer": "sequence", "n_parallel": 1, "resource": "cpu", "target": "max",
                    "workingdir": ".", "parameter_config": [{"name": "x", "range": [1, 3], "type": "int", "interval": 1}]}
        self.files(aup_json=json.dumps(document), work_py="#!/usr/bin/python3\nimport json, sys\n"
                   "print('#Auptimizer:' + str(json.load(open(sys.argv[1]))['x'] ** 2))\n")
        for client in self.clients.values():
            (client.house.path / "work.py").chmod(0o755)
        found = self.same(lambda client: self.ended(client, client.file("aup.json")))
        self.assertEqual((found["state"], found["kind"]), ("done", "experiment"))

    def test_notes_on_a_file_reach_the_caller(self):
        self.files(notes_json=json.dumps({
            "name": "notes", "script": "true.sh", "proposer": "sequence", "n_parallel": 1, "resource": "cpu", "target": "max",
            "save_model": True, "workingdir": ".",
            "parameter_config": [{"name": "x", "range": [1, 1], "type": "int", "interval": 1}]}), true_sh="#!/bin/sh\n")
        for name in ("command line", "C++", "HTTP"):  # C and Python return no notes
            client = self.clients[name]
            (client.house.path / "true.sh").chmod(0o755)
            client.file("notes.json")
            self.assertIn("notes.json: ignored, because Berth has nothing that corresponds: save_model", client.notes, name)

    def test_a_notification_of_the_end(self):
        self.files(told_yaml="name: told\nrun: echo {x}\nparams: {x: [1]}\nnotify: {run: 'echo $BERTH_EVENT $BERTH_RUN > notified', on: end}\n")

        def scenario(client):
            found = self.ended(client, client.file("told.yaml"))
            file = client.house.path / "notified"
            return found, until(lambda: file.exists() and file.read_text(), "it is notified")
        self.assertEqual(self.same(scenario)[1], "end told-1\n")

    def test_a_command_on_end(self):
        self.files(on_yaml="name: on\non_end: echo ended > ended\nsteps: {a: {run: 'true'}}\n")

        def scenario(client):
            found = self.ended(client, client.file("on.yaml"))
            return found, until(lambda: (file := client.house.path / "ended").exists() and file.read_text(), "on_end runs")
        self.same(scenario)

    def test_a_wrong_file_is_refused_before_it_starts(self):
        self.files(wrong_yaml="name: wrong\nrun: echo\nparms: {x: [1]}\n")

        def scenario(client):
            before = self.runs(client)
            refusal = self.refusal(lambda: client.file("wrong.yaml"))
            self.assertEqual(self.runs(client), before)
            return refusal
        self.assertIn("wrong.yaml:3: unknown key 'parms'", self.same(scenario))

    def test_an_unknown_cluster_is_refused(self):
        self.files(some_yaml="name: some\nrun: echo {x}\nparams: {x: [1]}\n")
        self.assertIn("nowhere", self.same(lambda client: self.refusal(lambda: client.file("some.yaml", cluster="nowhere"))))

    def test_an_unknown_run_is_refused(self):
        for call in ("stop", "resume", "retry"):
            words = self.same(lambda client: self.refusal(lambda: getattr(client, call)("nothing-7")))
            self.assertEqual(words, "no run is called 'nothing-7'")

    def test_stop_and_resume(self):
        self.files(slow_yaml="name: slow\nrun: 'test -e go || sleep 60; echo ::berth x={x}'\nparams: {x: [1]}\n")

        def scenario(client):
            run = client.file("slow.yaml")
            until(lambda: client.house.counts(run)["running"], "it runs")
            client.stop(run)
            stopped = self.result(client, run)
            (client.house.path / "go").touch()
            client.resume(run)
            return stopped, self.ended(client, run)
        stopped, done = self.same(scenario)
        self.assertEqual((stopped["state"], done["state"]), ("stopped", "done"))

    def test_retry_after_a_failure(self):
        self.files(later_yaml="name: later\nrun: test {x} != 2 -o -e fixed\nparams: {x: [1, 2]}\n")

        def scenario(client):
            run = client.file("later.yaml")
            failed = self.ended(client, run)
            (client.house.path / "fixed").touch()
            client.retry(run)
            return failed, self.ended(client, run)
        failed, done = self.same(scenario)
        self.assertEqual((failed["state"], done["state"]), ("failed", "done"))


if __name__ == "__main__":
    unittest.main()
