#!/usr/bin/python3
"""berth cluster clean: what runs have left on hosts, real sshds on loopback, and what they still use."""

import json
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from berth_case import BERTH, Case, until
from ssh_bed import SSH, SSHD, SshCase, kill

AGENT = os.environ.get("BERTH_AGENT_BIN", str(Path(BERTH).with_name("berth-agent")))


class Server(Case):
    def test_standard_input_that_cannot_be_read_ends_it(self):
        directory = os.open(self.dir, os.O_RDONLY)
        self.addCleanup(os.close, directory)
        done = subprocess.run([AGENT, "clean", "--older-than-ms", "1"], stdin=directory, capture_output=True,
                              timeout=20, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"directory", done.stderr)


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are wanted")
class Clean(SshCase):
    def lab(self, count):
        hosts = [self.bed.host(f"host{i}", machine="cpu: 2\n") for i in range(count)]
        # On one machine every folder is shared: as if it were not.
        self.write("clusters.yaml", self.bed.clusters(shared_folders="false", lease="60s", silent_most="60s"))
        return hosts

    def experiment(self, command):
        self.write("folder/sweep.yaml", f"run: {command}\nparams: {{x: [1]}}\n")
        return self.dir / "folder/sweep.yaml"

    def clean(self, *more, code=0):
        hosts = self.house.run("--json", "cluster", "clean", "lab", *more)
        self.assertEqual(hosts.code, code, hosts)
        return json.loads(hosts.out)["hosts"]

    def objects(self, host):
        return {path.name for path in (host.home / ".cache/berth/objects/objects").rglob("*") if path.is_file()}

    def leases(self, host):
        places = host.home / ".local/state/berth/places"
        return list(places.iterdir()) if places.exists() else []

    def test_old_objects_go(self):
        one, other = self.lab(2)
        self.write("folder/data.txt", "x" * 5000)
        self.berth("run", "--cluster", "lab", self.experiment("wc -c data.txt"))
        used = one if self.objects(one) else other
        there = self.objects(used)
        self.assertEqual(len(there), 2)
        cleaned = self.clean()
        self.assertEqual([(host["objects"], host["bytes"]) for host in cleaned], [(0, 0), (0, 0)], "nothing is as old")
        would = {host["host"]: host for host in self.clean("--older-than", "0s", "--dry-run")}
        self.assertEqual(self.objects(used), there)
        cleaned = {host["host"]: host for host in self.clean("--older-than", "0s")}
        self.assertEqual(cleaned, would)
        self.assertEqual(cleaned[f"127.0.0.1:{used.port}"]["objects"], 2)
        self.assertGreater(cleaned[f"127.0.0.1:{used.port}"]["bytes"], 5000)
        self.assertEqual(self.objects(used), set())
        self.berth("run", "--cluster", "lab", self.dir / "folder/sweep.yaml")

    def test_dead_leases_go_and_living_ones_stay(self):
        host, = self.lab(1)
        go = self.dir / "go"
        waits = self.experiment(f"while [ ! -e {go} ]; do sleep 0.05; done; cat data.txt")
        self.write("folder/data.txt", "precious\n")
        living = self.house.start("run", "--cluster", "lab", waits)
        until(lambda: (host.home / ".local/state/berth/places").exists() and self.leases(host), "it has a lease", 60)
        kept, = self.leases(host)
        until(lambda: [task for task in self.house.tasks("sweep-1") if task.get("host")], "it runs", 60)
        # Another's runner and agent die, and leave what they had.
        dying = self.house.start("run", "--cluster", "lab", waits)
        dead, = until(lambda: [place for place in self.leases(host) if place != kept and (place / "work").exists()
                               and list((place / "work").iterdir())], "it has another", 60)
        agents = lambda: [pid for pid in host.processes() if f"start\0{dead}/agent\0".encode() in cmdline(pid)]
        agent, = until(lambda: len(agents()) == 1 and agents(), "what started it has ended", 60)
        kill(dying.pid)
        dying.wait()
        kill(agent, signal.SIGKILL)
        until(lambda: not [pid for pid in host.processes() if str(dead).encode() in cmdline(pid)], "it is dead")
        self.assertEqual(self.clean("--older-than", "0s")[0]["leases"], 0, "it is too young")
        hour_ago = time.time() - 3600
        for place in (dead, kept):
            os.utime(place, (hour_ago, hour_ago))
        self.assertEqual(self.clean("--older-than", "2h")[0]["leases"], 0)
        self.assertEqual(self.clean("--older-than", "30m", "--dry-run")[0]["leases"], 1)
        self.assertTrue(dead.exists())
        self.assertEqual(self.clean("--older-than", "30m")[0]["leases"], 1)
        self.assertEqual(self.leases(host), [kept])
        go.write_text("")
        self.assertEqual(living.wait(timeout=60), 0)
        self.assertIn(b"precious", self.berth("logs", "sweep-1/1").out)

    def test_what_a_transfer_needs_stays(self):
        host, = self.lab(1)
        self.write("folder/small.txt", "precious\n")
        experiment = self.experiment("cat small.txt")
        self.berth("run", "--cluster", "lab", experiment)
        needed = self.objects(host)
        (self.dir / "folder/large.bin").write_bytes(os.urandom(96 << 20))
        run = self.house.start("run", "--cluster", "lab", experiment)
        incoming = host.home / ".cache/berth/objects/incoming"
        until(lambda: incoming.exists() and sum(part.stat().st_size for part in incoming.iterdir()) > 1 << 20,
              "some of it came", 60)
        os.kill(run.pid, signal.SIGSTOP)
        self.assertEqual(self.clean("--older-than", "0s")[0]["objects"], 0)
        self.assertLessEqual(needed, self.objects(host))
        os.kill(run.pid, signal.SIGCONT)
        self.assertEqual(run.wait(timeout=120), 0, run.stderr.read()[-2000:])
        self.assertIn(b"precious", self.berth("logs", "sweep-2/1").out)

    def test_a_part_whose_transfer_broke_off_goes(self):
        host, = self.lab(1)
        self.berth("run", "--cluster", "lab", self.experiment("echo"))
        part = host.home / ".cache/berth/objects/incoming" / ("ab" * 32 + ".0")
        part.parent.mkdir(exist_ok=True)
        part.write_bytes(b"x" * 1000)
        self.assertEqual(self.clean("--older-than", "0s", "--dry-run")[0]["bytes"] % 1000 > 0, True, "it is too young")
        os.utime(part, (0, 0))
        self.clean("--older-than", "1d")
        self.assertFalse(part.exists())

    def test_a_host_that_does_not_answer_keeps_none_of_the_others_from_it(self):
        gone, there = self.lab(2)
        gone.cut()
        hosts = {host["host"]: host for host in self.clean(code=3)}
        self.assertIn("refused", hosts[f"127.0.0.1:{gone.port}"]["error"])
        self.assertEqual(hosts[f"127.0.0.1:{there.port}"]["objects"], 0)
        text = self.berth("cluster", "clean", "lab", "--dry-run", code=3).out.decode()
        self.assertIn("would free", text)
        self.assertRegex(text, rf"127\.0\.0\.1:{there.port} +0 +0 +0 B")

    def test_wrong_words(self):
        self.write("clusters.yaml", "jobs: {kind: slurm}\ncloud: {kind: ec2, region: us-east-1}\n"
                   "lab: {kind: ssh, hosts: [nobody.invalid]}\n")
        self.assertIn(b"--older-than", self.berth("cluster", "clean", "lab", "--older-than", "soon", code=2).err)
        self.assertIn(b"slurm", self.berth("cluster", "clean", "jobs", code=2).err)
        self.assertIn(b"--dry-run", self.berth("cluster", "clean", "cloud", "--dry-run", code=2).err)


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


if __name__ == "__main__":
    unittest.main()
