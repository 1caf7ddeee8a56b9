#!/usr/bin/python3
"""Files that go from one machine to another without coming through the runner's: real sshds on loopback, of which
one has a user whose own key another accepts."""

import hashlib
import os
import re
import signal
import unittest
from pathlib import Path

from berth_case import Finished, until
from ssh_bed import ME, SSH, SSHD, SshCase, Tap, kill

FULL = os.environ.get("BERTH_FULL") == "1"
MEBIBYTE = 1 << 20
SIZE = 64 * MEBIBYTE


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are wanted")
class Direct(SshCase):
    def setUp(self):
        super().setUp()
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

    def sent_through_here(self):
        """How many MiB the runner sent to the second host, as far as its tap tells: its agent (2, sanitized 15) and
        words too."""
        return self.second.tap.up / MEBIBYTE

    def refused(self, finished):
        """Why files went through here: told once."""
        told = [line for line in finished.err.decode().splitlines() if "go through this machine" in line]
        self.assertEqual(len(told), 1, finished)
        for host in (self.first, self.second):
            self.assertIn(f"127.0.0.1:{host.tap.port if host.tap else host.port}", told[0])
        return told[0]

    def test_a_file_goes_from_host_to_host(self):
        self.second.tapped()
        self.first.reaches(self.second)
        self.lab()
        self.flow()
        done = self.berth("run", "--cluster", "lab", "flow.yaml")
        self.check()
        self.assertNotIn(b"through this machine", done.err)
        self.assertLess(self.sent_through_here(), 32)

    def test_two_hosts_are_sent_to_at_once(self):
        third = self.bed.host("third", machine="cpu: 2\nthird: 1\n")
        self.second.tapped()
        third.tapped()
        self.first.reaches(self.second, third)
        self.lab()
        self.write("clusters.yaml", self.bed.clusters(shared_folders="false"))
        self.flow()
        text = (self.dir / "flow.yaml").read_text()
        self.write("flow.yaml", text + text[text.index("  use:"):].replace("use:", "too:").replace("y.txt", "z.txt")
                   .replace("second", "third"))
        done = self.berth("run", "--cluster", "lab", "flow.yaml")
        self.check()
        self.assertEqual((self.dir / "y.txt").read_text(), (self.dir / "z.txt").read_text())
        self.assertNotIn(b"through this machine", done.err)
        self.assertLess(self.sent_through_here(), 32)
        self.assertLess(third.tap.up / MEBIBYTE, 32)

    def test_a_directory_of_many_small_files(self):
        self.second.tapped()
        self.first.reaches(self.second)
        self.lab()
        self.write("flow.yaml", "steps:\n"
                   "  make: {out: {d: d/}, resources: {first: 1},\n"
                   "    run: 'for i in $(seq 400); do head -c 150000 /dev/urandom > {out.d}/$i; done; chmod +x {out.d}/7'}\n"
                   "  use: {in: {d: make.d}, out: {y: y.txt}, resources: {second: 1},\n"
                   "    run: 'test -x {in.d}/7; cat {in.d}/* | sha256sum > {out.y}'}\n")
        done = self.berth("run", "--cluster", "lab", "flow.yaml")
        self.assertNotIn(b"through this machine", done.err)
        self.assertLess(self.sent_through_here(), 32)
        whole = hashlib.sha256()
        for path in sorted((self.dir / "d").iterdir(), key=lambda path: path.name):
            whole.update(path.read_bytes())
        self.assertEqual((self.dir / "y.txt").read_text().split()[0], whole.hexdigest())

    def test_its_address_is_what_ssh_makes_of_it_here(self):
        self.first.reaches(self.second)
        self.lab()
        config = self.write("config", f"Host box\n  HostName 127.0.0.1\n  Port {self.second.port}\n  User {ME}\n"
                            f"  IdentityFile {self.bed.path}/client_key\n  UserKnownHostsFile {self.bed.path}/known_hosts\n")
        text = (self.dir / "clusters.yaml").read_text().replace("/dev/null", str(config))
        entry = f"{ME}@127.0.0.1:{self.second.port} {self.bed.path}/client_key"
        self.assertIn(entry, text)
        self.write("clusters.yaml", text.replace(entry, "box"))
        self.flow()
        done = self.berth("run", "--cluster", "lab", "flow.yaml")
        self.check()
        self.assertNotIn(b"through this machine", done.err)
        call, = self.first.calls()
        for part in (f"-p {self.second.port} -l {ME} -- 127.0.0.1 ", "BatchMode=yes", "-a "):
            self.assertIn(part, call)
        for part in ("StrictHostKeyChecking", "client_key", str(config)):
            self.assertNotIn(part, call)

    def test_a_host_that_does_not_reach_the_other_is_asked_once(self):
        self.second.tapped()
        self.first.reaches(self.second, accepted=False)
        self.lab()
        self.write("flow.yaml", "steps:\n"
                   "  make: {out: {x: x.bin}, resources: {first: 1},\n"
                   f"    run: 'head -c {SIZE} /dev/urandom > {{out.x}}'}}\n"
                   "  use: {in: {x: make.x}, out: {y: y.txt}, resources: {second: 1},\n"
                   "    run: 'sha256sum < {in.x} > {out.y}'}\n"
                   "  next: {in: {y: use.y}, out: {x: x2.bin}, resources: {first: 1},\n"
                   f"    run: 'head -c {SIZE} /dev/urandom > {{out.x}}'}}\n"
                   "  last: {in: {x: next.x}, out: {y: y2.txt}, resources: {second: 1},\n"
                   "    run: 'sha256sum < {in.x} > {out.y}'}\n")
        told = self.refused(self.berth("run", "--cluster", "lab", "flow.yaml"))
        self.assertIn("Permission denied", told)
        self.check()
        self.assertEqual(len(self.first.calls()), 1)
        self.assertGreater(self.sent_through_here(), 128)

    def test_a_key_that_is_not_known_stays_unknown(self):
        self.second.tapped()
        self.first.reaches()
        self.lab()
        self.flow()
        self.assertIn("ost key verification failed", self.refused(self.berth("run", "--cluster", "lab", "flow.yaml")))
        self.check()
        self.assertEqual((self.first.home / ".ssh/known_hosts").read_text(), "")

    def test_another_machine_by_that_name_gets_nothing(self):
        stranger = self.bed.host("stranger", machine="cpu: 2\n")
        self.second.tapped()
        self.second.direct = f"{ME}@127.0.0.1:{stranger.port}"
        self.first.reaches(stranger)
        self.lab()
        self.flow()
        told = self.refused(self.berth("run", "--cluster", "lab", "flow.yaml"))
        self.assertIn("berth-agent cannot be found", told)
        self.check()
        self.assertFalse((stranger.home / ".cache").exists(), "not even the agent is brought there")
        # One that others of ours use, and so has the agent.
        text = (self.dir / "clusters.yaml").read_text()
        self.write("clusters.yaml", text + self.bed.clusters(name="theirs", hosts=[stranger], shared_folders="false"))
        self.berth("run", "--cluster", "theirs", "--", "true")
        told = self.refused(self.berth("run", "--cluster", "lab", "--cache", "off", "flow.yaml"))
        self.assertIn("another machine", told)
        self.check()
        self.assertEqual([path for path in (stranger.home / ".cache/berth/objects").rglob("*")
                          if path.is_file() and path.stat().st_size > MEBIBYTE], [])

    def gated(self, most):
        """The second host as the first reaches it, by a way that lets so many bytes through."""
        gate = Tap(self.second.port, most=most)
        self.addCleanup(gate.close)
        self.second.tapped()
        self.second.direct = f"{ME}@127.0.0.1:{gate.port}"
        self.first.reaches(self.second)
        self.lab()
        return gate

    def pushes(self):
        return [pid for pid in self.first.processes() if re.match(r"\S*/agent-.* push $", cmdline(pid))]

    def test_what_was_cut_midway_goes_on_through_here(self):
        gate = self.gated(SIZE // 2)
        self.write("flow.yaml", "steps:\n"
                   "  make: {out: {x: x.bin}, resources: {first: 1},\n"
                   f"    run: 'head -c {SIZE} /dev/urandom > {{out.x}}'}}\n"
                   "  use: {in: {x: make.x}, out: {y: y.txt}, resources: {second: 1},\n"
                   "    run: 'sha256sum < {in.x} > {out.y}'}\n"
                   "  other: {in: {x: make.x}, out: {z: z.txt}, resources: {first: 1},\n"
                   "    run: 'wc -c < {in.x} > {out.z}'}\n")
        run = self.house.start("run", "--cluster", "lab", "flow.yaml")
        until(lambda: gate.up > SIZE // 2 - MEBIBYTE, "half of it has gone", 60)
        until((self.dir / "z.txt").exists, "the first host's own tasks go on meanwhile", 60)
        self.assertFalse((self.dir / "y.txt").exists())
        gate.cut()
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, err)
        self.refused(Finished(0, out, err))
        self.check()
        self.assertLess(self.sent_through_here(), SIZE / MEBIBYTE * 3 / 4)
        self.assertEqual(list((self.second.home / ".cache/berth/objects/incoming").iterdir()), [])

    def test_a_way_that_hangs_is_given_up(self):
        gate = self.gated(SIZE // 2)
        self.flow()
        run = self.house.start("run", "--cluster", "lab", "flow.yaml")
        until(lambda: gate.up > SIZE // 2 - MEBIBYTE, "half of it has gone", 60)
        out, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, err)
        self.refused(Finished(0, out, err))
        self.check()
        self.assertEqual(self.pushes(), [])

    def frozen(self, ones):
        """What comes of a run when these processes stop, midway."""
        gate = self.gated(SIZE // 2)
        self.flow()
        run = self.house.start("run", "--cluster", "lab", "flow.yaml")
        until(lambda: gate.up > SIZE // 2 - MEBIBYTE, "half of it has gone", 60)
        stopped = ones()
        self.assertEqual(len(stopped), 1)
        kill(stopped[0], signal.SIGSTOP)
        gate.most = None
        out, err = run.communicate(timeout=200)
        self.assertEqual(run.returncode, 0, err)
        self.check()
        kill(stopped[0], signal.SIGCONT)
        until(lambda: not ones(), "it ends once it goes on")
        return self.refused(Finished(0, out, err))

    @unittest.skipUnless(FULL, "a minute each")
    def test_a_host_that_freezes_as_it_sends_is_given_up(self):
        self.assertIn("no message", self.frozen(self.pushes))

    @unittest.skipUnless(FULL, "a minute each")
    def test_a_host_that_freezes_as_it_takes_is_given_up(self):
        def takers():
            incoming = str(self.second.home / ".cache/berth/objects/incoming")
            return [pid for pid in self.second.processes() if any(
                os.readlink(path).startswith(incoming) for path in Path(f"/proc/{pid}/fd").iterdir())]
        self.assertIn("nothing moved", self.frozen(takers))

    def test_a_killed_runner_leaves_no_push(self):
        gate = self.gated(SIZE // 2)
        self.flow()
        run = self.house.start("run", "--cluster", "lab", "flow.yaml")
        until(lambda: gate.up > SIZE // 2 - MEBIBYTE, "half of it has gone", 60)
        self.assertEqual(len(self.pushes()), 1)
        run.kill()
        run.wait()
        until(lambda: not self.pushes(), "it ends with its runner")
        until(lambda: not [pid for pid in self.first.processes() if cmdline(pid).startswith(SSH)], "and so does its ssh")
        gate.most = None
        self.berth("resume", "flow-1", timeout=120)
        self.check()
        self.assertEqual(self.house.counts("flow-1")["done"], 2)

    def test_a_stopped_run_stops_its_push(self):
        gate = self.gated(SIZE // 2)
        self.flow()
        run = self.house.start("run", "--cluster", "lab", "flow.yaml")
        until(lambda: gate.up > SIZE // 2 - MEBIBYTE, "half of it has gone", 60)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 130)
        until(lambda: not self.pushes(), "it ends with its run")

    def test_a_cluster_that_forbids_it(self):
        self.second.tapped()
        self.first.reaches(self.second)
        self.lab(direct="false")
        self.flow()
        done = self.berth("run", "--cluster", "lab", "flow.yaml")
        self.check()
        self.assertNotIn(b"through this machine", done.err)
        self.assertEqual(self.first.calls(), [])
        self.assertGreater(self.sent_through_here(), 64)

    def test_one_machine_by_two_names(self):
        self.write("bed/first/machine.yaml", "cpu: 2\nfirst: 2\n")
        self.lab()
        tap = self.first.tapped()
        self.first.reaches(self.first)
        text = (self.dir / "clusters.yaml").read_text()
        self.write("clusters.yaml", text + self.bed.clusters(name="again", hosts=[self.first], shared_folders="false"))
        self.write("flow.yaml", "steps:\n"
                   "  make: {out: {x: x.bin}, resources: {first: 1},\n"
                   f"    run: 'head -c {SIZE} /dev/urandom > {{out.x}}'}}\n"
                   "  use: {in: {x: make.x}, out: {y: y.txt}, resources: {first: 1}, retries: 1,\n"
                   f"    run: 'mkdir {self.dir}/tried && exit 1; sha256sum < {{in.x}} > {{out.y}}'}}\n")
        done = self.berth("run", "--cluster", "lab,again", "flow.yaml")
        self.check()
        self.assertEqual({task["host"] for task in self.house.tasks("flow-1")},
                         {f"127.0.0.1:{self.first.port}", f"127.0.0.1:{tap.port}"})
        self.assertNotIn(b"through this machine", done.err)
        self.assertEqual(self.first.calls(), [])


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    unittest.main()
