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
        for name in ("berth_case.py", "podman.py", "ssh_bed.py", "container_test.py", "sandbox_test.py"):
            cls.vm.put(f"{PLACE}/{name}", (TESTS.parent / name).read_bytes(), mode=0o755)
        busybox = shutil.which("busybox") or cls.fail(cls("test_root"), "busybox-static is wanted for the image")
        cls.vm.put("/usr/local/bin/busybox", Path(busybox).read_bytes(), mode=0o755)

    def runs(self, user):
        for cases in ("container_test.py Real", "sandbox_test.py"):
            ended = self.vm.ssh(user, f"BERTH_BIN=/usr/local/bin/berth /usr/bin/python3 {PLACE}/{cases}",
                                timeout=RUNS_S)
            self.assertEqual(ended.code, 0, ended.err)
            self.assertNotIn("skipped", ended.err)

    def test_an_ordinary_user(self):
        self.runs("u")

    def test_root(self):
        self.runs("root")


if __name__ == "__main__":
    main(containers=True)
