"""A real podman with a storage of its own, and an image in it, made from the machine's own busybox: no registry, no
network."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMAGE = "localhost/berth-test:1"


class Unusable(Exception):
    """Why podman cannot be tried on this machine."""


class Podman:
    def __init__(self):
        for program in ("podman", "busybox"):
            if not shutil.which(program):
                raise Unusable(f"there is no {program} here")
        self.place = place = Path(tempfile.mkdtemp(prefix="berth-podman-", dir="/var/tmp"))
        (place / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{place}/graph"\nrunroot = "{place}/run"\n'
            f'rootless_storage_path = "{place}/graph"\n')
        # Without CAP_SYS_RESOURCE nobody can raise limits, as podman's own defaults do.
        (place / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=2000:2000"]\n')
        self.variables = {"CONTAINERS_STORAGE_CONF": f"{place}/storage.conf",
                          "CONTAINERS_CONF": f"{place}/containers.conf"}
        self.environment = dict(os.environ) | self.variables
        try:
            self.make_image("one")
            began = time.monotonic()
            self("run", "--rm", "--network=none", "--cgroups=disabled", "--log-driver=none", IMAGE, "id")
            self.container_s = time.monotonic() - began  # an emulated machine takes seconds for one
        except AssertionError as reason:
            self.remove()
            raise Unusable(f"podman does not run here: {reason}") from None
        self.layers = self.all_layers()

    def __call__(self, *words, check=True):
        ended = subprocess.run(["podman", *words], env=self.environment, capture_output=True, text=True, check=False,
                               stdin=subprocess.DEVNULL, timeout=120)
        if check and ended.returncode != 0:
            raise AssertionError(f"podman {words}: {ended.stderr}")
        return ended.stdout.strip() if check else ended

    def make_image(self, version):
        """From now on IMAGE means this one."""
        root = self.place / f"root-{version}"
        (root / "bin").mkdir(parents=True)
        (root / "tmp").mkdir()
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        for applet in ("sh", "cat", "echo", "sleep", "id", "ls", "touch", "tail", "dd", "head", "env"):
            (root / "bin" / applet).symlink_to("busybox")
        (root / "version").write_text(version)
        subprocess.run(["tar", "-C", root, "-cf", self.place / "image.tar", "."], check=True)
        self("import", "-q", str(self.place / "image.tar"), IMAGE)
        shutil.rmtree(root)

    def containers(self):
        return self("ps", "--all", "--quiet").split()

    def all_layers(self):
        return {entry.name for entry in (self.place / "graph/overlay").iterdir() if len(entry.name) == 64}

    def stray_layers(self):
        """Of no container: podman was killed when it had made the layer and not yet recorded the container. No command
        of podman 4.3 finds it; nothing was ever mounted on it or written to it."""
        return sorted(self.all_layers() - self.layers)

    def holds_files(self, layer):
        look = ["find", str(self.place / "graph/overlay" / layer / "diff"), "-mindepth", "1", "-print", "-quit"]
        if os.geteuid() != 0:
            return self("unshare", *look) != ""  # its files are those of another user id
        return subprocess.run(look, capture_output=True, text=True, check=True).stdout != ""

    def left(self):
        """What is there of containers, though it be of none that podman knows: its mounts, what it wrote."""
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()
                  if f"{self.place}/" in line and line.split()[4].endswith(("/merged", "/shm"))]
        written = [layer for layer in self.stray_layers() if self.holds_files(layer)]
        return self("ps", "--all", "--external", "--quiet").split() + mounts + written

    def remove(self):
        self("rm", "--all", "--force", "--time=0", check=False)
        self("rmi", "--all", "--force", check=False)
        if os.geteuid() != 0:
            self("unshare", "rm", "-rf", f"{self.place}/graph", check=False)
        shutil.rmtree(self.place, ignore_errors=True)


def in_a_plain_hierarchy():
    """crun refuses the mixture of both kinds of control groups, which some machines mount: it does not see it."""
    mixed = "/sys/fs/cgroup/unified"
    if os.geteuid() == 0 and os.path.ismount(mixed) and "BERTH_PLAIN" not in os.environ:
        os.environ["BERTH_PLAIN"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "sh", "-c", f"umount {mixed}; exec \"$0\" \"$@\"", sys.executable,
                              *sys.argv])
