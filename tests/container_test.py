#!/usr/bin/python3
"""Tasks in containers: with a podman that only notes what it is told, and, where it can run, with the real one.

The image of the real one is made here, from the machine's own busybox: no registry, no network."""
import contextlib
import os
import re
import signal
import unittest
from pathlib import Path

from berth_case import Case, until
from podman import Podman, Unusable, in_a_plain_hierarchy
from ssh_bed import SSH, SSHD, SshBed

FLOW = """\
image: localhost/berth-test:1
shell: sh
steps:
  one:
    run: echo "$(id -u) $PWD" > {out.who}
    out: {who: who.txt}
"""

# It knows the images that lie as files in $IMAGES, each with its id, and runs what it is to run on the machine.
FAKE = r"""#!/bin/sh
echo "$*" >> "$IMAGES/said"
what="$1 $2"
for last; do :; done
file="$IMAGES/$(echo "$last" | tr '/:' '__')"
case "$what" in
  "image inspect")
    [ -e "$file" ] || { echo "Error: inspecting object: $last: image not known" >&2; exit 125; }
    echo "$(cat "$file") $last@sha256:$(cat "$file")" ;;
  "pull "*)
    [ -e "$file.there" ] || { echo "Error: initializing source: $last: connection refused" >&2; exit 125; }
    echo "Trying to pull $last" >&2; cp "$file.there" "$file" ;;
  "run "*)
    [ -e "$IMAGES/slow" ] && { trap 'exit $(cat "$IMAGES/slow")' TERM; sleep 100 & wait; }
    [ -e "$IMAGES/broken" ] && { cat "$IMAGES/broken" >&2; exit 127; }
    while [ "${1#-}" != "$1" ] || [ "$1" = run ]; do shift; done
    echo "$1" >> "$IMAGES/ran"; shift
    exec "$@" ;;
esac
"""


def programs_without_engines(place):
    """A directory with the programs of this machine but those that make containers."""
    place.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in ("podman", "docker", "apptainer", "singularity"):
            (place / program.name).symlink_to(program)
    return str(place)


class Noted(Case):
    """What is asked of the engine, and what follows from its answers."""

    def setUp(self):
        super().setUp()
        self.images = self.dir / "images"
        self.images.mkdir()
        tools = self.dir / "tools"
        tools.mkdir()
        (tools / "podman").write_text(FAKE)
        (tools / "podman").chmod(0o755)
        self.house.environment |= {"IMAGES": str(self.images),
                                   "PATH": f"{tools}:/usr/bin:/bin"}
        self.know("localhost/berth-test:1", "aaaa")
        self.write("flow.yaml", FLOW)

    def know(self, image, identity, there=False):
        (self.images / (image.replace("/", "_").replace(":", "_") + (".there" if there else ""))).write_text(identity)

    def said(self, what):
        return [line for line in (self.images / "said").read_text().splitlines() if line.startswith(what)]

    def test_a_task_runs_by_the_digest_of_its_image_and_without_network(self):
        self.berth("run", "flow.yaml")
        run, = self.said("run ")
        self.assertIn("--network=none", run)
        self.assertIn("--cgroups=disabled", run)
        self.assertIn("--env=BERTH_TASK", run.split())
        self.assertIn("localhost/berth-test:1@sha256:aaaa /bin/sh -c ", run)
        self.assertTrue((self.dir / "who.txt").exists())

    def test_a_command_that_is_too_long_for_an_argument_reaches_the_container_in_a_file(self):
        for i in range(800):
            self.write(f"in/{i:05d}{180 * 'x'}", "")
        self.write("flow.yaml", FLOW.replace("run: echo", "in: {all: 'in/*'}\n    run: set -- {in.all}; echo $#"))
        self.berth("run", "flow.yaml")
        self.assertRegex(self.said("run ")[0], r"/bin/sh -c \. \S+/\.berth-command$")
        self.assertEqual((self.dir / "who.txt").read_text().split()[0], "800")

    def test_network_is_given_where_it_is_asked_for(self):
        self.write("flow.yaml", "network: true\n" + FLOW)
        self.berth("run", "flow.yaml")
        self.assertIn("--network=host", self.said("run ")[0])

    def test_a_name_that_means_another_image_runs_its_tasks_again(self):
        self.berth("run", "flow.yaml")
        self.berth("run", "flow.yaml")
        self.assertEqual(len(self.said("run ")), 1, "the second took it from the cache")
        self.know("localhost/berth-test:1", "bbbb")
        self.berth("run", "flow.yaml")
        self.assertEqual(len(self.said("run ")), 2)
        why = self.berth("why", "flow-3/one").out.decode()
        self.assertIn("image: aaaa -> bbbb", why)

    def test_an_image_of_the_command_line_wins(self):
        self.know("other", "cccc")
        self.berth("run", "--image", "other", "flow.yaml")
        self.assertIn("other@sha256:cccc", self.said("run ")[0])
        refused = self.berth("run", "--image", "other", "--", "true", code=2)
        self.assertIn(b"only the tasks of a flow", refused.err)

    def test_an_image_that_is_not_there_is_in_the_plan_and_fetched_once(self):
        (self.images / "localhost_berth-test_1").unlink()
        plan = self.berth("run", "--plan", "flow.yaml").out.decode()
        self.assertIn("image localhost/berth-test:1 is not on this machine", plan)
        self.assertEqual(self.house.json("run", "--plan", "flow.yaml")["missing_images"], ["localhost/berth-test:1"])
        self.assertEqual(self.said("pull"), [])
        failed = self.house.run("run", "flow.yaml").err.decode()
        for text in ("podman pull localhost/berth-test:1", "connection refused", "podman login"):
            self.assertIn(text, failed)
        self.know("localhost/berth-test:1", "dddd", there=True)
        told = self.berth("run", "flow.yaml").err.decode()
        self.assertIn("Trying to pull localhost/berth-test:1", told)
        self.assertEqual(len(self.said("pull")), 2)

    def test_without_an_engine_nothing_starts(self):
        (self.dir / "tools/podman").unlink()
        self.house.environment["PATH"] = programs_without_engines(self.dir / "programs")
        failed = self.house.run("run", "flow.yaml")
        self.assertNotEqual(failed.code, 0)
        self.assertIn(b"flow.yaml:4: steps.one.image: none of podman, docker, apptainer and singularity is in PATH", failed.err)
        self.assertEqual(self.house.json("runs")["runs"], [])

    def test_an_image_without_bash_is_told_with_the_advice(self):
        (self.images / "broken").write_text("Error: crun: executable file `bash` not found in $PATH: No such file or "
                                            "directory: OCI runtime attempted to invoke a command that was not found\n")
        self.write("flow.yaml", FLOW.replace("shell: sh\n", "").replace("    out:", "    retries: 3\n    out:"))
        self.berth("run", "flow.yaml", code=1)
        why = self.berth("why", "flow-1/one").out.decode()
        self.assertIn("it has no program bash", why)
        self.assertIn("write shell: sh", why)
        self.assertEqual(len(self.said("run ")), 1, "it failed for good")

    def test_an_engine_that_is_told_to_end_while_it_makes_a_container_leaves_none(self):
        self.write("flow.yaml", FLOW.replace("    out:", "    timeout: 1s\n    out:"))
        for code in ("1", "0"):  # as podman 4.3 ends, now so, now so
            (self.images / "slow").write_text(code)
            self.berth("run", "flow.yaml", code=1)
        names = [re.search("--name=([^ ]*)", line)[1] for line in self.said("run ")]
        self.assertEqual(self.said("rm "), [f"rm --force --time=0 --ignore {name}" for name in names])

    def test_a_program_of_the_image_is_not_looked_for_here(self):
        self.write("flow.yaml", FLOW.replace("run: echo \"$(id -u) $PWD\" > {out.who}", "run: no-such-program {out.who}"))
        self.berth("run", "flow.yaml", code=1)
        self.assertEqual(len(self.said("run ")), 1)


# It makes an image of a registry into a file that holds its name, and runs what it is to run on the machine.
APPTAINER = r"""#!/bin/sh
echo "$*" >> "$NOTES"
case "$1" in
  pull) [ -z "$OFFLINE" ] || { echo "FATAL:   While making image: no route to host" >&2; exit 255; }
    echo "INFO:    Creating SIF file..." >&2; echo "$3$VERSION" > "$2" ;;
  exec) shift
    while [ "${1#-}" != "$1" ]; do case "$1" in --workdir=*) [ -d "${1#*=}" ] || exit 9 ;; esac; shift; done
    shift
    [ "$1" = missing ] && { echo "FATAL:   \"missing\": executable file not found in \$PATH" >&2; exit 255; }
    export COLOUR="$APPTAINERENV_COLOUR"; exec "$@" ;;
esac
"""


class ImageFiles(Case):
    """What is asked of an engine that runs images from files (one that only notes it), and what follows."""

    def setUp(self):
        super().setUp()
        self.notes = self.dir / "said"
        self.script("tools/apptainer", APPTAINER)
        self.house.environment |= {"NOTES": str(self.notes),
                                   "PATH": f"{self.dir}/tools:{programs_without_engines(self.dir / 'programs')}"}
        self.write("flow.yaml", """\
image: debian:12
shell: sh
steps: {one: {run: 'echo "$COLOUR" > {out.o}', env: {COLOUR: red}, out: {o: o.txt}}}
""")

    def said(self, what):
        return [line for line in self.notes.read_text().splitlines() if line.startswith(what)]

    def test_an_image_of_a_registry_is_pulled_into_a_file_once(self):
        plan = self.house.json("run", "--plan", "flow.yaml")
        self.assertEqual(plan["missing_images"], ["debian:12"])
        told = self.berth("run", "flow.yaml").err.decode()
        self.assertIn("apptainer pull docker://debian:12", told)
        self.assertIn("Creating SIF file", told)
        self.assertEqual((self.dir / "o.txt").read_text(), "red\n")
        self.berth("run", "flow.yaml")
        self.assertEqual([len(self.said("pull")), len(self.said("exec"))], [1, 1], "the second took it from the cache")
        file, = (self.dir / "state/images").iterdir()
        self.assertRegex(file.name, r"^debian%3A12@[0-9a-f]{16}\.sif$")
        self.assertIn(f"--net --network=none {file} /bin/sh -c", self.said("exec")[0])
        file.unlink()
        self.house.environment["VERSION"] = "2"
        self.berth("run", "flow.yaml")
        self.assertEqual(len(self.said("exec")), 2, "another image")
        self.assertIn("image: sha256:", self.berth("why", "flow-3/one").out.decode())

    def test_a_file_of_ones_own_counts_by_what_it_holds(self):
        self.write("tools.sif", "one")
        self.write("flow.yaml", (self.dir / "flow.yaml").read_text().replace("debian:12", "tools.sif"))
        for version, runs in [("one", 1), ("one", 1), ("two", 2)]:
            self.write("tools.sif", version)
            self.berth("run", "flow.yaml")
            self.assertEqual(len(self.said("exec")), runs)
        self.assertIn(f" {self.dir}/tools.sif /bin/sh", self.said("exec")[0])
        (self.dir / "tools.sif").unlink()
        refused = self.house.run("run", "flow.yaml")
        self.assertIn(b"flow.yaml:3: steps.one.image: ", refused.err)
        self.assertIn(b"tools.sif", refused.err)

    def test_what_cannot_be_had_or_started_is_told(self):
        self.house.environment["OFFLINE"] = "1"
        failed = self.house.run("run", "flow.yaml").err.decode()
        for text in ("docker://debian:12", "no route to host", "apptainer registry login"):
            self.assertIn(text, failed)
        self.assertEqual(list((self.dir / "state/images").iterdir()), [], "nothing half")
        del self.house.environment["OFFLINE"]
        self.write("flow.yaml", "image: debian:12\nsteps: {one: {run: missing, retries: 2}}\n")
        self.berth("run", "flow.yaml", code=1)
        self.assertIn("it has no program missing", self.berth("why", "flow-1/one").out.decode())
        self.assertEqual(len(self.said("exec")), 1, "it failed for good")


@unittest.skipUnless(SSHD and SSH, "there is no sshd or ssh here")
class Elsewhere(Case):
    """What a machine behind ssh is asked for, while this one has no engine."""

    def setUp(self):
        super().setUp()
        self.bed = SshBed(self.dir / "bed", self.dir)
        self.addCleanup(self.bed.close)
        self.house.environment |= {"BERTH_CLUSTERS": str(self.dir / "clusters.yaml"),
                                   "PATH": programs_without_engines(self.dir / "programs")}
        self.host = self.bed.host("host")
        settings = self.host.config.read_text()
        self.host.config.write_text(settings.replace(":/usr/local/bin:/usr/bin:/bin", f":{self.dir}/programs"))
        self.host.cut()
        self.host.start()
        self.write("clusters.yaml", self.bed.clusters(shared_folders="false", lease="20s"))
        self.write("flow.yaml", FLOW)

    def test_a_machine_with_an_engine_runs_it_by_its_name(self):
        engine = self.script("bed/host/bin/podman", FAKE.replace("$IMAGES", str(self.dir)))
        told = self.berth("run", "--cluster", "lab", "flow.yaml").err.decode()
        self.assertIn("image localhost/berth-test:1 is not on this machine", told)
        run, = (self.dir / "said").read_text().splitlines()
        self.assertIn(" localhost/berth-test:1 /bin/sh -c", run)
        self.assertTrue((self.dir / "who.txt").exists(), engine)

    def test_a_machine_without_one_fails_the_task_for_good(self):
        self.write("flow.yaml", FLOW.replace("    out:", "    retries: 3\n    out:"))
        self.berth("run", "--cluster", "lab", "flow.yaml", code=1)
        why = self.berth("why", "flow-1/one").out.decode()
        self.assertIn("none of podman, docker, apptainer and singularity is in PATH", why)
        self.assertNotIn("attempt 2", why)


class Real(Case):
    """Whole runs in containers that podman makes."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.podman = Podman()
        except Unusable as reason:
            raise unittest.SkipTest(str(reason)) from None
        cls.addClassCleanup(cls.podman.remove)
        cls.patience_s = 30 + 20 * cls.podman.container_s

    def setUp(self):
        super().setUp()
        self.house.environment |= self.podman.variables
        self.podman.make_image("one")

    def berth(self, *arguments, **more):
        return super().berth(*arguments, timeout=10 * self.patience_s, **more)

    def until(self, condition, what):
        return until(condition, what, self.patience_s)

    def flow(self, steps):
        self.write("flow.yaml", "image: localhost/berth-test:1\nshell: sh\nsteps:\n" + steps)

    def test_same_user_own_directory_no_network_and_declared_variables(self):
        self.write("in.txt", "given\n")
        self.flow("""\
  one:
    env: {COLOUR: "a b'c", HOME: /elsewhere}
    in: {text: in.txt}
    run: (id -u; cat /version; echo; cat {in.text}; echo "$COLOUR"; echo "$HOME"; ls /sys/class/net; echo "$BERTH_TASK"; ls "$PWD") > {out.told}
    out: {told: told.txt}
""")
        self.berth("run", "flow.yaml")
        told = (self.dir / "told.txt").read_text().splitlines()
        self.assertEqual(told[:5], [str(os.getuid()), "one", "given", "a b'c", "/elsewhere"])
        self.assertEqual(told[5:7], ["lo", "flow-1/one"])
        self.assertEqual((self.dir / "told.txt").stat().st_uid, os.getuid())
        self.assertEqual(self.podman.containers(), [])

    def test_exit_codes_and_a_missing_bash(self):
        self.flow("  odd:\n    run: exit 7\n  bash:\n    shell: bash\n    run: echo $HOME\n    retries: 2\n")
        self.berth("run", "flow.yaml", code=1)
        self.assertIn(b"exit 7", self.berth("why", "flow-1/odd").out)
        why = self.berth("why", "flow-1/bash").out
        self.assertIn(b"it has no program bash", why)
        self.assertIn(b"write shell: sh", why)

    def test_a_name_that_means_another_image_runs_its_tasks_again(self):
        self.flow("  one:\n    run: cat /version > {out.v}\n    out: {v: v.txt}\n")
        for version in ("one", "one", "two"):
            if version == "two":
                self.podman.make_image(version)
            self.berth("run", "flow.yaml")
            self.assertEqual((self.dir / "v.txt").read_text(), version)
        self.assertEqual([self.house.counts(f"flow-{i}")["cached"] for i in (1, 2, 3)], [0, 1, 0])

    def test_a_time_limit_and_a_stop_leave_no_container(self):
        self.flow("  long:\n    run: trap '' TERM; sleep 1000; sleep 1000\n    timeout: 2s\n")
        self.berth("run", "flow.yaml", code=1)
        self.assertIn(b"time limit", self.berth("why", "flow-1/long").out)
        self.assertEqual(self.podman.containers(), [])
        self.flow("  long:\n    run: sleep 1000; sleep 1\n")
        run = self.house.start("run", "flow.yaml")
        self.until(self.podman.containers, "a container")
        run.send_signal(signal.SIGINT)
        run.wait(self.patience_s)
        self.assertEqual(self.podman.containers(), [])

    def test_nothing_is_left_of_twenty_tasks_whose_runner_is_killed_and_resumed(self):
        self.write("list.yaml", "")
        keys = ", ".join(str(i) for i in range(20))
        self.flow(f"""\
  count:
    foreach: {{n: [{keys}]}}
    run: sleep 1; echo {{n}} > {{out.o}}
    out: {{o: 'out/{{n}}.txt'}}
    resources: {{cpu: 0.25}}
  sum:
    in: {{all: count.o}}
    run: cat {{in.all}} > {{out.sum}}
    out: {{sum: sum.txt}}
""")
        run = self.house.start("run", "flow.yaml")
        self.until(lambda: len(self.podman.containers()) >= 2, "containers")
        run.kill()
        run.wait()
        self.berth("resume", "flow-1")
        self.assertEqual(sorted(map(int, (self.dir / "sum.txt").read_text().split())), list(range(20)))
        self.until(lambda: self.podman.containers() == [], "the last container is removed")

    def test_a_worker_that_is_killed_leaves_no_container(self):
        self.flow("  long:\n    run: sleep 1000; sleep 1\n")
        run = self.house.start("run", "flow.yaml")
        self.until(self.podman.containers, "a container")
        for pid in self.house.leftovers():
            with contextlib.suppress(OSError):  # processes of podman come and go
                if Path(f"/proc/{pid}/comm").read_text().strip() in ("berth", "berth-agent"):
                    os.kill(pid, signal.SIGKILL)
        run.wait()
        self.until(lambda: self.podman.containers() == [], "the keeper removes it")

    def test_memory_is_limited(self):
        if "memory" not in self.house.json("machine", "--probe")["enforced"]:
            self.skipTest("no control group limits memory here")
        self.flow("  hog:\n    run: tail /dev/zero\n    resources: {cpu: 1, mem: 200M}\n")
        self.berth("run", "flow.yaml", code=1)
        self.assertIn(b"out of memory", self.berth("why", "flow-1/hog").out)
        self.until(lambda: self.podman.containers() == [], "it is removed")


if __name__ == "__main__":
    in_a_plain_hierarchy()
    unittest.main(verbosity=2)
