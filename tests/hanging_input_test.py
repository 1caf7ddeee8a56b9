#!/usr/bin/python3
"""Inputs that do not answer: a file of the kernel whose readers wait until there is news."""

import os
import signal
import subprocess
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
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(f"waits: reading {self.dir}/in.txt\n", err)
        self.assertIn(f"reading {self.dir}/in.txt is broken off\n", err)
        self.assertIn("go on with: berth resume f-1\n", err)
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


if __name__ == "__main__":
    unittest.main()
