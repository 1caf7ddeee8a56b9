#!/usr/bin/python3
"""Files that go from one machine to another without coming through the runner's: real sshds on loopback, of which
one has a user whose own key another accepts."""

import hashlib
import time
import unittest

from berth_case import Case, until
from ssh_bed import ME, SSH, SSHD, SshBed, connections, kill

MEBIBYTE = 1 << 20
SIZE = 64 * MEBIBYTE


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are wanted")
class Direct(Case):
    def setUp(self):
        super().setUp()
        self.bed = SshBed(self.dir / "bed", self.dir)
        self.addCleanup(self.bed.close)
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")
        self.first = self.bed.host("first", machine="cpu: 2\nfirst: 1\n")
        self.second = self.bed.host("second", machine="cpu: 2\nsecond: 1\n")

    def lab(self, **more):
        self.write("clusters.yaml", self.bed.clusters(hosts=[self.first, self.second], shared_folders="false",
                                                      lease="20s", silent_most="3s", **more))

    def flow(self, size=SIZE):
        self.write("flow.yaml", "steps:\n"
                   "  make: {out: {x: x.bin}, resources: {first: 1},\n"
                   f"    run: 'head -c {size} /dev/urandom > {{out.x}}'}}\n"
                   "  use: {in: {x: make.x}, out: {y: y.txt}, resources: {second: 1},\n"
                   "    run: 'sha256sum < {in.x} > {out.y}'}\n")

    def check(self):
        with open(self.dir / "x.bin", "rb") as file:
            wanted = hashlib.file_digest(file, "sha256").hexdigest()
        self.assertEqual((self.dir / "y.txt").read_text().split()[0], wanted)

    def test_a_file_goes_from_host_to_host(self):
        tap = self.second.tapped()
        self.first.reaches(self.second)
        self.lab()
        self.flow()
        done = self.berth("run", "--cluster", "lab", "flow.yaml")
        self.check()
        self.assertNotIn(b"come through here", done.err)
        self.assertLess(tap.up, 16 * MEBIBYTE, "what the runner sent: its agent, and words")


if __name__ == "__main__":
    unittest.main()
