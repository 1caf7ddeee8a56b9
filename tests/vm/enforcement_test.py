#!/usr/bin/python3
"""Whether tasks are held to their limits, wherever on a stock Debian a run is started."""
import json
import unittest
from datetime import datetime

from vm_case import SHORT, TESTS, VmCase, main

LIMITS = "/usr/local/lib/berth-tests/limits.py"
PLACE = "/var/tmp/limits"
LOOK_S = 500  # some 50 s where nobody else uses the two cores; each hanging run adds 120


class Enforcement(VmCase):
    containers = True

    @classmethod
    def setUpClass(cls):
        cls.vm = cls.machine("limits")
        cls.vm.put(LIMITS, (TESTS / "limits.py").read_bytes(), mode=0o755)
        cls.vm.ssh("root", f"rm -rf {PLACE}; install -d -m 1777 {PLACE}")

    def look(self, name, user="root", around="{}", wait=False):
        """What limits.py found; `around` is the command that brings it into its surroundings."""
        command = around.format(f"/usr/bin/python3 {LIMITS} {PLACE}/{name}", name=name)
        ended = self.vm.ssh(user, command, timeout=LOOK_S)
        if wait:  # it was only begun there
            ended = self.vm.ssh("root", f"timeout {LOOK_S} sh -c 'until [ -e {PLACE}/{name}/found.json ]; do sleep 1; done'",
                                timeout=LOOK_S + 60)
        if ended.code != 0:
            self.vm.ssh("root", f"pkill -KILL -f {LIMITS}")
            self.fail(f"{command}: {ended}\n{self.vm.console(10)}")
        found = json.loads(self.ok(self.vm.ssh("root", f"cat {PLACE}/{name}/found.json")))
        self.check_done(found)
        return found

    def check_done(self, found):
        """What holds with limits and without: every run ends, and nothing of it stays."""
        for run in ("cpu", "short"):
            self.assertEqual(found[run]["code"], 0, found[run])
            self.assertEqual(found[run]["tasks"]["states"], ["done"], found[run])
        self.assertIsNotNone(found["memory"]["code"], found["memory"])
        self.assertEqual(found["memory"]["tasks"]["neighbour"]["cause"], "ok", found["memory"])
        self.assertEqual([path for path, populated in found["left"] if not populated], [], "groups are left")
        self.assertLessEqual(len(found["left"]), 1, found["left"])
        self.assertEqual(found["type_after"], found["type_before"])
        self.assertIn(found["type_after"], ("domain", None))

    def check_enforced(self, found):
        tasks = found["memory"]["tasks"]
        for name in ("hog", "child"):
            self.assertEqual((tasks[name]["state"], tasks[name]["cause"].replace("_", " ")),
                             ("failed", "out of memory"), found["memory"])
            self.assertLess(tasks[name]["peak_mem"], 60e6)
        self.assertNotIn("the child has ended", found["logs"], "all of a task ends when a part of it is too large")
        spun = next(value for key, value in found["cpu"]["tasks"].items() if key.startswith("cpu-1/"))
        started, ended = (datetime.fromisoformat(spun[key]) for key in ("started", "ended"))
        share = spun["cpu_ms"] / 1000 / (ended - started).total_seconds()
        self.assertTrue(0.3 < share < 0.7, f"{share} of a core, half of one was asked for: {found['cpu']}")
        if found["probe"] is not None:
            self.assertIn("memory", found["probe"]["enforced"])
            self.assertIn("cpu", found["probe"]["enforced"])

    def check_advisory(self, found):
        self.assertTrue(found["cpu"]["advisory"], found["cpu"])
        self.assertEqual(found["memory"]["tasks"]["hog"]["cause"], "ok", found["memory"])
        if found["probe"] is not None:
            self.assertNotIn("memory", found["probe"]["enforced"])

    def test_root_over_ssh(self):
        self.check_enforced(self.look("root"))

    def test_user_over_ssh(self):
        self.check_enforced(self.look("user", "u"))

    @unittest.skipIf(SHORT, "the short form")
    def test_user_in_tmux(self):
        self.check_enforced(self.look("tmux", "u", "tmux new-session -d '{}'", wait=True))

    @unittest.skipIf(SHORT, "the short form")
    def test_service(self):
        self.check_enforced(self.look("service", around="systemd-run --wait --pipe --quiet {}"))

    @unittest.skipIf(SHORT, "the short form")
    def test_service_with_delegation(self):
        self.check_enforced(self.look("delegated", around="systemd-run --wait --pipe --quiet -p Delegate=yes {}"))

    @unittest.skipIf(SHORT, "the short form")
    def test_service_that_may_not_write_groups(self):
        self.check_advisory(self.look("read-only", around="systemd-run --wait --pipe --quiet "
                                      "-p ProtectControlGroups=yes {}"))

    @unittest.skipIf(SHORT, "the short form")
    def test_scope_of_an_ordinary_user(self):
        self.check_enforced(self.look("scope", "u", "systemd-run --user --scope --quiet -p Delegate=yes {}"))

    @unittest.skipIf(SHORT, "the short form")
    def test_su_without_a_user_manager(self):
        self.without_user_manager()
        self.check_advisory(self.look("su", around="su - u -c '{}'"))

    @unittest.skipIf(SHORT, "the short form")
    def test_service_of_a_user_who_is_not_logged_in(self):
        self.without_user_manager()
        self.check_advisory(self.look("service-of-user", around="systemd-run --wait --pipe --quiet --uid=u {}"))

    @unittest.skipIf(SHORT, "the short form")
    def test_within_a_task(self):
        """A run that a task starts is held to its own limits, too."""
        self.check_enforced(self.look("within", around="berth run --cpu 2 --mem 1G -- {}"))

    @unittest.skipIf(SHORT, "the short form")
    def test_container_of_root(self):
        self.check_advisory(self.look("podman", around=self.podman()))

    @unittest.skipIf(SHORT, "the short form")
    def test_container_of_root_that_may_write_groups(self):
        self.check_enforced(self.look("podman-unmasked", around=self.podman("--security-opt unmask=/sys/fs/cgroup")))

    @unittest.skipIf(SHORT, "the short form")
    def test_container_of_a_user(self):
        self.check_advisory(self.look("podman-user", "u", self.podman()))

    @unittest.skipIf(SHORT, "the short form")
    def test_container_of_a_user_that_may_write_groups(self):
        self.check_enforced(self.look("podman-user-unmasked", "u",
                                      self.podman("--security-opt unmask=/sys/fs/cgroup")))

    @unittest.skipIf(SHORT, "the short form")
    def test_a_reload_of_systemd_takes_no_limit_away(self):
        """It rewrites every group it believes to be its own."""
        for user in ("root", "u"):
            place = f"{PLACE}/reload-{user}"
            settings = f"mkdir -p {place} && cd {place} && export BERTH_DB={place}/state BERTH_LEDGER={place}/ledger"
            with self.vm.popen(user, f"{settings}; timeout -k 5 150 berth run --mem 50M --timeout 100s -- "
                               f"sh -c 'touch began; exec /usr/bin/python3 {LIMITS} hog'") as run:
                self.until(f"[ -e {place}/began ]")
                self.ok(self.vm.ssh("u", "systemctl --user daemon-reload"))
                # Only then does the task take too much.
                self.ok(self.vm.ssh("root", f"systemctl daemon-reload && sleep 2 && touch {place}/neighbour.lives"))
                _, err = run.communicate(timeout=300)
            why = json.loads(self.ok(self.vm.ssh(user, f"{settings}; berth --json why sh-1/1")))
            self.assertEqual(why["cause"].replace("_", " "), "out of memory", err)

    @unittest.skipIf(SHORT, "the short form")
    def test_a_detached_run_outlives_the_last_logout(self):
        """Some 10 s after it systemd ends what runs under the manager of a user who does not linger."""
        self.without_user_manager()
        place = f"{PLACE}/detached"
        settings = f"export BERTH_DB={place}/state BERTH_LEDGER={place}/ledger"
        self.ok(self.vm.ssh("u", f"mkdir -p {place} && cd {place} && {settings} && "
                            "berth run --detach --mem 100M -- sh -c 'sleep 45; touch outlived'"))
        ended = self.vm.ssh("root", f"for i in $(seq 120); do [ -e {place}/outlived ] && exit 0; sleep 1; done; exit 1",
                            timeout=300)
        self.assertEqual(ended.code, 0, "the task was ended with the session")
        shown = json.loads(self.ok(self.vm.ssh("u", f"{settings}; timeout 60 berth wait sh-1 >&2; berth --json show sh-1")))
        self.assertEqual(shown["run"]["state"], "done", shown)

    def until(self, condition, patience_s=120):
        """Waits within the machine, where asking again costs no login."""
        self.ok(self.vm.ssh("root", f"for i in $(seq {patience_s}); do {condition} && exit 0; sleep 1; done; exit 1",
                            timeout=2 * patience_s))

    def without_user_manager(self):
        self.vm.ssh("root", "loginctl terminate-user u; systemctl stop user@1000.service")

    def podman(self, more=""):
        """A container of the machine's own programs: an empty root with /usr bound into it."""
        root = "$HOME/container-{name}"
        return (f"mkdir -p {root} && cd {root} && mkdir -p usr etc tmp run proc sys dev root var/tmp .{PLACE}/{{name}} "
                "&& for at in bin lib lib64 sbin; do ln -sfn usr/$at $at; done && cp /etc/ld.so.cache /etc/passwd etc && "
                f"mkdir -p {PLACE}/{{name}} && podman run --rm --network none {more} -v /usr:/usr:ro "
                f"-v {PLACE}/{{name}}:{PLACE}/{{name}} --rootfs {root} {{}}")


if __name__ == "__main__":
    main(containers=True)
