#!/usr/bin/python3
"""What `cmake --install` puts into a Debian works there, may be replaced under a run, and goes without a trace."""
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from vm_case import BIN, VmCase, main

from vm_machine import libraries_of

TASKS = 20
SWEEP = {"name": "slow", "run": "sleep 1; echo {i}", "params": {"i": {"min": 1, "max": TASKS, "type": "int"}},
         "search": {"method": "grid"}, "resources": {"cpu": 0.5}}
LISTING = "find / -xdev \\( -path /home -o -path /tmp -o -path /var/tmp -o -path /var/log -o -path /var/cache " \
          "-o -path /var/lib/systemd -o -path /etc/ld.so.cache \\) -prune -o -print | sort"


class Install(VmCase):
    @classmethod
    def setUpClass(cls):
        cls.vm = cls.machine("install", copied=False)
        cls.stage = Path(tempfile.mkdtemp(prefix="berth-vm-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.stage)
        subprocess.run(["cmake", "--install", BIN.parent, "--prefix", cls.stage / "usr", "--strip"], check=True,
                       stdout=subprocess.DEVNULL)

    def test_installed_replaced_and_removed(self):
        before = self.listing()
        self.install()
        self.ok(self.vm.ssh("u", "berth --version && berth machine && berth cluster list && berth run -- true"))
        self.ok(self.vm.ssh("u", "/usr/bin/python3 -c 'import berth'"))
        self.vm.put("/home/u/slow.yaml", json.dumps(SWEEP), mode=0o644)
        self.ok(self.vm.ssh("u", "berth run --detach slow.yaml && sleep 3"))
        self.install()  # as an upgrade does, under the run
        self.ok(self.vm.ssh("u", "timeout 240 berth wait slow-1", timeout=280))
        shown = json.loads(self.ok(self.vm.ssh("u", "berth --json show slow-1")))
        self.assertEqual([task["state"] for task in shown["tasks"]], ["done"] * TASKS)
        self.remove(before)
        self.assertEqual(self.listing(), before)
        self.assertEqual(self.vm.ssh("u", "pgrep -f berth-agent").out, "", "an agent is left")
        self.install()
        self.assertEqual(json.loads(self.ok(self.vm.ssh("u", "berth --json show slow-1"))), shown, "what a person has stays")

    def install(self):
        there = self.vm.ssh("root", "ldconfig -p").out.split()
        libraries = self.stage / "usr/lib"
        for program in (self.stage / "usr/bin").iterdir():
            for library in libraries_of(program):
                if library.name not in there:
                    shutil.copy(library, libraries)
        self.vm.unpack(self.stage, "/")

    def remove(self, before):
        made = sorted((str(path.relative_to(self.stage)) for path in self.stage.rglob("*")), reverse=True)
        files = [f"/{name}" for name in made if not (self.stage / name).is_dir()]
        folders = [f"/{name}" for name in made if (self.stage / name).is_dir() and f"/{name}" not in before]
        self.ok(self.vm.ssh("root", f"rm {' '.join(files)} && rmdir {' '.join(folders)} && ldconfig"))

    def listing(self):
        return self.ok(self.vm.ssh("root", LISTING)).splitlines()


if __name__ == "__main__":
    main()
