#!/usr/bin/python3
"""Inputs that do not answer: a file of the kernel whose readers wait until there is news; and places of outputs
that do not: a file system of which nobody answers what it is asked."""

import ctypes
import os
import re
import signal
import struct
import unittest

from berth_case import Case, until

# Readers of it wait until the kernel says something more, and it says that it is a regular file, as
# one of a network file system that hangs does.
SILENT = "/proc/kmsg"


def is_silent():
    """What the kernel has said so far is read by whoever reads first; then there is silence."""
    try:
        fd = os.open(SILENT, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        while os.read(fd, 1 << 16):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


@unittest.skipUnless(is_silent(), f"{SILENT} does not make its readers wait")
class HangingInput(Case):
    def setUp(self):
        super().setUp()
        (self.dir / "in.txt").symlink_to(SILENT)
        self.write("f.yaml", "steps:\n"
                   "  hangs: {run: 'cp {in.x} {out.y}', in: {x: in.txt}, out: {y: y.txt}}\n"
                   "  other: {run: 'touch $TURN/other'}\n")

    def start(self, *arguments):
        return self.house.start(*arguments, env={"TURN": str(self.dir)})

    def test_a_stop_is_heard_and_the_input_named(self):
        process = self.start("run", "f.yaml")
        until((self.dir / "other").exists, "what does not take it in runs")
        err = []
        until(lambda: err.append(os.read(process.stderr.fileno(), 4096)) or b"waits: reading " in b"".join(err),
              "the reason is told")
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=20)
        err = (b"".join(err) + rest).decode()
        self.assertEqual(process.returncode, 3, err)
        self.assertRegex(err, f"waits: reading {re.escape(str(self.dir))}/in.txt for [0-9.]+s\n")
        self.assertRegex(err, f"reading {re.escape(str(self.dir))}/in.txt is cancelled after [0-9.]+s\n")
        self.assertIn("resume it with: berth resume f-1\n", err)
        self.assertEqual(self.house.counts("f-1"), self.house.counts("f-1") | {"done": 1, "stopped": 1})
        self.assert_tidy()
        # With an input that answers the run goes on.
        (self.dir / "in.txt").unlink()
        self.write("in.txt", "news\n")
        self.berth("resume", "f-1")
        self.assertEqual((self.dir / "y.txt").read_text(), "news\n")

    def test_a_stop_that_comes_first_is_heard_too(self):
        process = self.start("run", "f.yaml")
        until(lambda: (self.house.state / "runs/f-1/lock").exists() or (self.dir / "other").exists(), "it is driven")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        self.assert_tidy()

    def test_it_holds_up_no_other_input_and_no_large_output(self):
        self.write("good.txt", "good\n")
        self.write("f.yaml", "steps:\n"
                   "  hangs: {run: 'cp {in.x} {out.y}', in: {x: in.txt}, out: {y: y.txt}}\n"
                   "  reads: {run: 'cp {in.x} {out.y}', in: {x: good.txt}, out: {y: z.txt}}\n"
                   "  large: {run: 'head -c 8M /dev/zero > {out.y}', out: {y: large}}\n"
                   "  again: {run: 'cp {in.x} {out.y}', in: {x: large.y}, out: {y: again}}\n")
        process = self.start("run", "f.yaml")
        for name in ("z.txt", "again"):
            until((self.dir / name).exists, f"{name} is there")
        self.assertEqual((self.dir / "z.txt").read_text(), "good\n")
        self.assertEqual((self.dir / "again").stat().st_size, 8 << 20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        self.assert_tidy()

    def test_a_stop_is_heard_beside_a_large_output(self):
        self.write("f.yaml", "steps:\n"
                   "  hangs: {run: 'cp {in.x} {out.y}', in: {x: in.txt}, out: {y: y.txt}}\n"
                   "  large: {run: 'head -c 8M /dev/zero > {out.y}; touch $TURN/written', out: {y: large}}\n")
        process = self.start("run", "f.yaml")
        until((self.dir / "written").exists, "the output is there")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        self.assert_tidy()


class Unanswering:
    """A file system that nobody answers for, as one of a server that is gone. Nothing real of that kind can be had
    here: who waits for a frozen one cannot be killed."""

    def __init__(self, place):
        self.place = str(place).encode()
        self.fuse = os.open("/dev/fuse", os.O_RDWR)
        self.libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}".encode()
        if self.libc.mount(b"berth-test", self.place, b"fuse", 0, options) != 0:
            os.close(self.fuse)
            raise OSError(ctypes.get_errno(), "mount")
        # The first request asks who is there; the others are never read.
        _, _, unique = struct.unpack_from("<IIQ", os.read(self.fuse, 1 << 16))
        body = struct.pack("<IIIIHHIIHH", 7, 31, 65536, 0, 0, 0, 65536, 1, 0, 0).ljust(64, b"\0")
        os.write(self.fuse, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)

    def end(self):
        if self.fuse >= 0:
            self.libc.umount2(self.place, 1 | 2)  # by force, and out of sight
            os.close(self.fuse)
            self.fuse = -1


def can_mount():
    return os.getuid() == 0 and os.path.exists("/dev/fuse")


@unittest.skipUnless(can_mount(), "file systems cannot be mounted here")
class HangingPlace(Case):
    def test_a_stop_leaves_what_cannot_be_brought_to_a_resume(self):
        place = self.dir / "place"
        place.mkdir()
        self.write("f.yaml", "steps:\n"
                   "  large: {run: 'head -c 8M /dev/zero > {out.y}; echo x >> $TURN/times; touch $TURN/written;"
                   " until test -e $TURN/go; do sleep 0.05; done', out: {y: place/large}}\n"
                   "  other: {run: 'until test -e $TURN/go; do sleep 0.05; done;"
                   " head -c 8M /dev/zero > {out.y}', out: {y: other}}\n")
        process = self.house.start("run", "f.yaml", "--cache", "off", env={"TURN": str(self.dir)})
        until((self.dir / "written").exists, "the output is there")
        try:
            unanswering = Unanswering(place)
        except OSError as error:
            self.skipTest(str(error))
        self.addCleanup(unanswering.end)
        self.write("go", "")
        until(lambda: self.house.counts("f-1")["done"] == 1, "the other is done")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=40)
        err = err.decode()
        self.assertEqual(process.returncode, 130, err)
        self.assertRegex(err, f"large: it took more than [0-9.]+s to deliver {re.escape(str(place))}/large; "
                         "a resume will deliver it\n")
        self.assertIn("copying", err)
        self.assertIn("resume it with: berth resume f-1\n", err)
        unanswering.end()
        self.assert_tidy()
        self.berth("resume", "f-1")
        self.assertEqual((place / "large").stat().st_size, 8 << 20)
        self.assertEqual((self.dir / "times").read_text(), "x\n", "it did not run again")


if __name__ == "__main__":
    unittest.main()
