#!/usr/bin/python3
"""A run over two real machines that are reached by ssh, one of which hangs, is paused, or loses its power."""
import contextlib
import json
import shutil
import tempfile
import time
import unittest
from pathlib import Path

from vm_case import KEEP, VmCase, main

from berth_case import House, until

LEASE_S = 45  # an emulated machine may take ten seconds to answer
RUN_S = 420
TASKS = 30


class Hosts(VmCase):
    @classmethod
    def setUpClass(cls):
        # One after the other: two boots at once take longer than two boots.
        cls.machines = [cls.machine(name, copied=False, memory_mib=1024) for name in ("one", "two")]

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="berth-vm-test-"))
        if not KEEP:
            self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.house = House(self.dir)
        self.addCleanup(self.house.close)
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")
        self.write_clusters()
        for machine in self.machines:
            self.ok(machine.ssh("u", "rm -rf ~/witness"))
        # What a frozen machine granted as it thawed is held for a lease, though nobody came for it.
        self.wait_until(self.all_is_free, "nothing is allocated")

    def write_clusters(self):
        known = self.dir / "known_hosts"
        known.write_text("".join(
            f"[127.0.0.1]:{machine.port} {machine.image.host_key.read_text()}" for machine in self.machines))
        (self.dir / "clusters.yaml").write_text(json.dumps({"lab": {
            "kind": "ssh", "options": ["-F", "/dev/null", "-o", f"UserKnownHostsFile={known}"],
            "hosts": [f"u@127.0.0.1:{machine.port} {machine.image.key}" for machine in self.machines],
            "lease": f"{LEASE_S}s", "connects_within": "60s", "silent_most": "15s"}}))

    def all_is_free(self):
        probed = self.house.json("cluster", "probe", "lab")["hosts"]
        return len(probed) == 2 and not any(host["holders"] for host in probed)

    def write_flow(self, seconds):
        """Each task notes on its machine that it ran; what it makes comes back."""
        (self.dir / "in.txt").write_text("x" * 1000 + "\n")
        (self.dir / "flow.yaml").write_text(json.dumps({"name": "many", "steps": {
            "split": {"run": f"for i in $(seq {TASKS}); do echo $i > {{out.parts}}/$i; done",
                      "out": {"parts": "parts/"}},
            "work": {"foreach": {"part": "split.parts/*"}, "in": {"text": "in.txt"}, "out": {"n": "counts/{index}.txt"},
                     "run": f"cat {{part}} >> ~/witness; sleep {seconds}; cat {{part}} {{in.text}} | wc -c > {{out.n}}"},
            "sum": {"in": {"n": "work.n"}, "run": "cat {in.n} | wc -l > {out.total}", "out": {"total": "total.txt"}}}}))

    def start(self, seconds):
        """The run, once both machines are at work and some tasks are done."""
        self.write_flow(seconds)
        self.err = open(self.dir / "run.err", "wb")
        self.addCleanup(self.err.close)
        run = self.house.start("run", "--cluster", "lab", "flow.yaml", err=self.err)
        self.wait_until(lambda: run.poll() is not None or len(self.at_work("many-1")) == 2 and
                        self.house.counts("many-1")["done"] >= 4, "both are at work")
        self.assertIsNone(run.poll(), self.said())
        return run

    def at_work(self, run):
        """The ports of the machines on which tasks of the run are, or none while it is not known yet."""
        with contextlib.suppress(AssertionError):
            return {task["host"].rpartition(":")[2] for task in self.house.tasks(run)
                    if task["state"] == "running" and task.get("host")}
        return set()

    def wait_until(self, condition, what):
        """Asks once a second: the emulated machines want the cores, too."""
        until(lambda: condition() or time.sleep(1), what, 240)

    def said(self):
        return (self.dir / "run.err").read_text(errors="replace")[-3000:]

    def check_done(self, run):
        """All is done, and each task came to its end once in the record, however often it was begun."""
        self.assertEqual(run.wait(timeout=RUN_S), 0, self.said())
        self.assertEqual((self.dir / "total.txt").read_text().strip(), str(TASKS))
        tasks = self.house.tasks("many-1")
        self.assertEqual([task["state"] for task in tasks], ["done"] * (TASKS + 2))
        for task in tasks:
            attempts = self.house.json("why", task["id"])["attempts_made"]
            self.assertEqual([one["cause"] for one in attempts].count("ok"), 1, attempts)

    def check_quiet(self, machine, patience_s):
        """No agent of ours is left there, nor anything that one has started."""
        quiet = machine.ssh("root", f"for i in $(seq {patience_s}); do pgrep -u u -f 'berth-agent.* start|^sleep' "
                            "> /dev/null || exit 0; sleep 1; done; ps -ef; exit 1", timeout=3 * patience_s)
        self.assertEqual(quiet.code, 0, quiet)

    def test_one_hangs_past_its_lease(self):
        hung, _ = self.machines
        run = self.start(2)
        hung.freeze()
        try:
            self.check_done(run)
        finally:
            hung.thaw()
        # Its clock has jumped: it learns that its lease is over, and that it is nobody any more.
        self.check_quiet(hung, 60)

    def test_one_is_paused_and_comes_back_during_the_run(self):
        """Its clocks stood still with it: it believes in its lease, and goes on with what others do by now."""
        paused, _ = self.machines
        run = self.start(6)
        paused.pause()
        try:
            time.sleep(LEASE_S + 15)
            self.assertIsNone(run.poll(), f"it ended while much was still to do: {self.said()}")
        finally:
            paused.go_on()
        self.check_done(run)
        self.check_quiet(paused, 2 * LEASE_S)

    def test_one_loses_its_power_and_is_back_for_the_next_run(self):
        dead, _ = self.machines
        run = self.start(2)
        dead.power_cut()
        try:
            self.check_done(run)
        finally:
            dead.boot(fresh=False)
        self.assertEqual(self.house.run("cluster", "probe", "lab", timeout=120).code, 0)
        for name in ("counts", "parts"):
            shutil.rmtree(self.dir / name)
        again = self.house.start("run", "--cluster", "lab", "--cache", "off", "flow.yaml", err=self.err)
        self.wait_until(lambda: again.poll() is not None or str(dead.port) in self.at_work("many-2"), "it works again")
        self.assertIsNone(again.poll(), "it ended without the machine that is back")
        self.assertEqual(again.wait(timeout=RUN_S), 0, self.said())


if __name__ == "__main__":
    main()
