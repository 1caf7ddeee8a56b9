#!/usr/bin/python3
"""Hosts reached by ssh, or this machine, have no room for the files of a task: it alone fails, and leaves nothing."""

import json
import os
import subprocess
import time
import unittest
from pathlib import Path

from ssh_bed import SSH, SSHD, SshCase

FLOW = """steps:
  big: {in: {x: ./big.dat}, run: 'sha1sum < {in.x} > {out.o}', out: {o: big.sum}}
  small: {foreach: {s: 's*.dat'}, run: 'cat {s} > {out.o}', out: {o: 'o/{key}.txt'}}
"""


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are needed")
class FullDisk(SshCase):
    def volume(self, path, size):
        """A small file system there."""
        Path(path).mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path],
                              capture_output=True, check=False)
        if done.returncode != 0:
            self.skipTest("file systems can only be mounted by root")
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=False)

    def parts(self, cache):
        return [path for path in Path(cache, "berth/objects/incoming").glob("*") if path.stat().st_size > 0]

    def run_flow(self, size):
        (self.dir / "big.dat").write_bytes(os.urandom(size))
        for number in (1, 2, 3):
            self.write(f"s{number}.dat", f"{number}\n")
        self.write("flow.yaml", FLOW)
        return self.berth("run", "--cluster", "lab", self.dir / "flow.yaml", code=1)

    def check_only_big_failed(self, host, *words):
        """Its cause has these words; the small tasks are done, and the host has no part of it."""
        states = {task["id"].partition("/")[2]: task["state"] for task in self.house.tasks("flow-1")}
        self.assertEqual(states.pop("big"), "failed")
        self.assertEqual(set(states.values()), {"done"})
        self.assertEqual(sorted(path.name for path in (self.dir / "o").iterdir()), ["s1.txt", "s2.txt", "s3.txt"])
        why = self.berth("why", "flow-1/big").out.decode()
        for word in words:
            self.assertIn(word, why)
        self.assertEqual(self.parts(host.home / ".cache"), [])

    def agent_is_there(self):
        self.berth("cluster", "probe", "lab")

    def test_an_input_larger_than_the_home_of_the_host_fails_alone(self):
        host = self.host_that_shares_nothing()
        self.volume(host.home, "16m")
        self.run_flow(24 << 20)
        self.check_only_big_failed(host, "big.dat", "no space left in", "24 MiB", f"127.0.0.1:{host.port}")

    def test_an_input_of_which_two_copies_do_not_fit_leaves_room_for_the_others(self):
        host = self.host_that_shares_nothing()
        self.volume(host.home, "16m")
        self.agent_is_there()
        free = os.statvfs(host.home).f_bavail * os.statvfs(host.home).f_bsize
        self.run_flow(free * 3 // 4)
        self.check_only_big_failed(host, "No space left on device")
        self.assertGreater(os.statvfs(host.home).f_bavail * os.statvfs(host.home).f_bsize, free * 3 // 4)

    def test_an_input_beyond_the_limit_of_file_sizes_on_the_host_fails_alone(self):
        limit = self.dir / "limited"
        host = self.host_that_shares_nothing(noise=f"[ ! -e {limit} ] || ulimit -f 2048;")
        self.agent_is_there()
        limit.touch()
        self.run_flow(8 << 20)
        self.check_only_big_failed(host, "File too large")

    def test_a_result_that_does_not_fit_on_this_machine_fails_alone_and_says_where(self):
        self.host_that_shares_nothing()
        self.volume(self.house.state / "cache", "4m")
        self.write("flow.yaml", "steps:\n  big: {run: 'head -c 8M /dev/zero > {out.o}', out: {o: big.dat}}\n"
                                "  small: {run: 'echo 1 > {out.o}', out: {o: small.txt}}\n")
        self.berth("run", "--cluster", "lab", self.dir / "flow.yaml", code=1)
        states = {task["id"].partition("/")[2]: task["state"] for task in self.house.tasks("flow-1")}
        self.assertEqual(states, {"big": "failed", "small": "done"})
        why = self.berth("why", "flow-1/big").out.decode()
        self.assertIn("no room on this machine", why)
        self.assertIn(str(self.house.state / "cache"), why)
        self.assertEqual(list((self.house.state / "cache/incoming").glob("*")), [])

    def test_cluster_clean_removes_parts_and_broken_copies_of_the_agent(self):
        host = self.host_that_shares_nothing()
        self.agent_is_there()
        incoming = host.home / ".cache/berth/objects/incoming"
        incoming.mkdir(parents=True)
        (incoming / ("a" * 64 + ".0")).write_bytes(b"x" * 5000)
        copy = host.home / ".cache/berth" / ("agent-" + "b" * 64 + ".123")
        copy.write_bytes(b"y" * 3000)
        for path in (incoming / ("a" * 64 + ".0"), copy):
            os.utime(path, (time.time() - 100, time.time() - 100))
        cleaned, = json.loads(self.berth("--json", "cluster", "clean", "lab", "--older-than", "5s").out)["hosts"]
        self.assertEqual((cleaned["objects"], cleaned["bytes"]), (2, 8000))
        self.assertEqual(list(incoming.iterdir()), [])
        self.assertFalse(copy.exists())


if __name__ == "__main__":
    unittest.main()
