#!/usr/bin/python3
"""Tasks in containers and sandboxes on a stock Debian: the cases of tests/container_test.py and tests/sandbox_test.py, by
its podman and bubblewrap, as root and rootless."""
import shutil
from pathlib import Path

from vm_case import TESTS, VmCase, main

PLACE = "/usr/local/lib/berth-tests"
RUNS_S = 2400  # emulated, podman takes some seconds for each container


class Containers(VmCase):
    containers = True

    @classmethod
    def setUpClass(cls):
        cls.vm = cls.machine("containers")
        for name in ("berth_case.py", "podman.py", "ssh_bed.py", "container_test.py", "sandbox_test.py",
                     "crash.py"):
            cls.vm.put(f"{PLACE}/{name}", (TESTS.parent / name).read_bytes(), mode=0o755)
        busybox = shutil.which("busybox") or cls.fail(cls("test_root"), "busybox-static is wanted for the image")
        cls.vm.put("/usr/local/bin/busybox", Path(busybox).read_bytes(), mode=0o755)

    def runs(self, user, cases):
        ended = self.vm.ssh(user, f"BERTH_BIN=/usr/local/bin/berth /usr/bin/python3 {PLACE}/{cases}",
                            timeout=RUNS_S)
        self.assertEqual(ended.code, 0, ended.err)
        self.assertNotIn("skipped", ended.err)
        return ended

    def test_an_ordinary_user(self):
        for cases in ("container_test.py Real", "sandbox_test.py"):
            self.runs("u", cases)

    def test_root(self):
        for cases in ("container_test.py Real", "sandbox_test.py"):
            self.runs("root", cases)

    def test_kills_leave_nothing(self):
        """Rootless: runner and agents are killed at random, and resumed."""
        self.runs("u", "crash.py --berth /usr/local/bin/berth --containers --kills 10 --tasks 4")


if __name__ == "__main__":
    main(containers=True)
