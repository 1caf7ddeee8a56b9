#!/usr/bin/python3
"""What tools/package.py made, tried where nothing else is: ./dev package --check.

Bare Debians are made by mmdebstrap; the tarball runs in each as it is unpacked, the Debian packages are installed by
apt, replaced under a run and purged. BERTH_PACKAGES: the directory with what was made. Needs root, and a mirror."""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = Path(os.environ.get("BERTH_PACKAGES", ROOT / "build/package")).resolve()
SUITES = ["bookworm", "trixie", "forky"]
# Of these apt, dpkg and the dynamic linker keep books; /root is a person's.
PRUNED = ["/proc", "/sys", "/dev", "/root", "/tmp", "/var/log", "/var/cache", "/var/lib/apt", "/var/lib/dpkg",
          "/etc/ld.so.cache", "/packages"]
SWEEP = {"name": "slow", "run": "sleep 1; echo {i} >> /root/witness", "resources": {"cpu": 0.5},
         "params": {"i": {"min": 1, "max": 12, "type": "int"}}, "search": {"method": "grid"}}


def only(pattern):
    found = sorted(PACKAGES.glob(pattern))
    assert len(found) == 1, f"{PACKAGES}/{pattern}: {found}"
    return found[0]


def bare(suite, packages=()):
    """A fresh Debian of its own; the archive of it is made once."""
    archive = PACKAGES / f"work/{suite}{''.join('-' + name for name in packages)}.tar"
    if not archive.exists():
        subprocess.run(["mmdebstrap", "--variant=minbase", *[f"--include={name}" for name in packages],
                        "--dpkgopt=path-include=/usr/share/man/*", '--aptopt=Acquire::Check-Valid-Until "false"', suite, archive],
                       check=True, capture_output=True)
    root = Path(tempfile.mkdtemp(prefix=f"berth-{suite}-"))
    unpack(archive, root)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    (root / "packages").mkdir()
    return root


def unpack(archive, folder):
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)


class Package(unittest.TestCase):
    def bare(self, *arguments):
        root = bare(*arguments)
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        return root

    def inside(self, root, script, code=0):
        """What the script prints in that system, which has processes of its own."""
        mounts = (f"mount -t proc proc {root}/proc && mount --rbind /sys {root}/sys && mount --rbind /dev {root}/dev && "
                  f"exec chroot {root} env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "
                  "DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c \"$0\"")
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", mounts, script],
                              capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def listing(self, root):
        prunes = " -o ".join(f"-path {path}" for path in PRUNED)
        return self.inside(root, f"find / \\( {prunes} \\) -prune -o -print | sort")


class Tarball(Package):
    def unpacked(self, suite):
        root = self.bare(suite)
        unpack(only("berth-*.tar.gz"), root / "opt")
        return root, "/opt/" + next((root / "opt").iterdir()).name

    def test_it_runs_where_nothing_is_installed(self):
        for suite in SUITES:
            with self.subTest(suite):
                root, place = self.unpacked(suite)
                said = self.inside(root, f"""
                    export PATH={place}/bin:$PATH
                    berth --version; berth run -- true; berth doctor --offline --json || true
                    cd /tmp; berth init; berth run sweep.yaml; berth best sweep-1 2>/dev/null || berth runs
                    berth plan {place}/share/berth/examples/fleet | tail -1
                    berth-agent --version""")
                self.assertRegex(said, r"\Aberth [\d.]+\n")
                findings = next(json.loads(line) for line in said.splitlines() if '"findings"' in line)["findings"]
                self.assertEqual([f for f in findings if f["topic"] in ("versions", "state", "ledger") and f["state"] != "ok"], [])

    def test_it_serves(self):
        for suite in SUITES:
            with self.subTest(suite):
                root, place = self.unpacked(suite)
                url = self.inside(root, f"""
                    {place}/bin/berth serve --listen 127.0.0.1:0 >/tmp/url & until [ -s /tmp/url ]; do sleep 0.1; done
                    cat /tmp/url; kill $!""")
                self.assertRegex(url, r"http://127\.0\.0\.1:\d+")

    def test_it_asks_for_no_new_libc(self):
        with tempfile.TemporaryDirectory() as folder:
            unpack(only("berth-*.tar.gz"), folder)
            for name in ("bin/berth", "bin/berth-agent", "lib/berth/berth-cloud.so"):
                program = next(Path(folder).iterdir()) / name
                symbols = subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout
                newest = max((int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))
                self.assertLessEqual(newest, (2, 34), name)
            needed = subprocess.run(["readelf", "-d", program.parents[2] / "bin/berth"], check=True, capture_output=True,
                                    text=True).stdout
            self.assertEqual(sorted(re.findall(r"\[(\S+)\.so", needed)), ["ld-linux-x86-64", "libc", "libm"])


class Debian(Package):
    def install(self, root, *names):
        for name in names:
            shutil.copy(only(f"{name}_*.deb"), root / "packages")
        return "apt-get -qq update; apt-get -qq install -y --no-install-recommends " + " ".join(
            f"/packages/{only(f'{name}_*.deb').name}" for name in names)

    def test_lintian_has_nothing_to_say(self):
        done = subprocess.run(["lintian", "--allow-root", "--tag-display-limit", "0", "--fail-on", "error,warning",
                               *sorted(PACKAGES.glob("*.deb"))], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.returncode), ("", 0))

    def test_installed_used_and_purged(self):
        root = self.bare("bookworm", ["bash-completion", "man-db", "python3"])
        before = self.listing(root)
        names = ["berth", "python3-berth", "berth-doc"]
        said = self.inside(root, self.install(root, *names) + """ >/dev/null 2>&1
            berth run -- true
            man berth-run | head -1
            man 5 berth-flow | head -1
            python3 -c 'import berth; print(berth.__name__, "imported")'
            ls /usr/share/doc/berth/README.md /usr/share/doc/berth/docs/reference/flow-files.md /usr/share/doc/berth/site/index.html /usr/share/doc/berth/examples/fleet/fleet.json
            . /usr/share/bash-completion/bash_completion; _completion_loader berth || [ $? = 124 ]
            COMP_LINE='berth logs tru' COMP_POINT=14 COMP_WORDS=(berth logs tru) COMP_CWORD=2
            compopt() { :; }; _berth; echo "completed ${COMPREPLY[*]}" """)
        self.assertIn("completed true-1", said)
        self.assertIn("BERTH-RUN(1)", said)
        self.assertIn("BERTH-FLOW(5)", said)
        self.assertIn("berth imported", said)
        self.inside(root, f"apt-get -qq purge -y {' '.join(names)} >/dev/null 2>&1; apt-get -qq autoremove --purge -y >/dev/null")
        after = self.listing(root)
        self.assertEqual(sorted(set(after.split("\n")) ^ set(before.split("\n"))), [])
        self.assertEqual(self.inside(root, "dpkg -l | grep -c berth || true").strip(), "0")
        self.assertTrue((root / "root/.local/state/berth").is_dir(), "what a person has stays")

    def test_programs_are_built_against_what_is_installed(self):
        root = self.bare("bookworm", ["g++", "cmake", "make", "pkg-config", "python3"])
        shutil.copytree(ROOT / "tests/consumer", root / "root/consumer")
        library = only("libberth[0-9]_*.deb").name.partition("_")[0]
        said = self.inside(root, self.install(root, "berth", library, "libberth-placement1", "libberth-dev") + f""" >/dev/null 2>&1
            cd /root; cmake -S consumer/cpp -B built >/dev/null; cmake --build built -j2 >built.log 2>&1 || {{ tail -40 built.log >&2; exit 1; }}
            gcc -std=c99 -Wall -Werror consumer/c/consumer.c $(pkg-config --cflags --libs berth) -o built/c_berth
            for program in /root/built/*_berth /root/built/*_berth_static; do
              mkdir $program.place; cd $program.place
              BERTH_DB=$PWD/state BERTH_LEDGER=$PWD/ledger $program >said 2>&1 || {{ echo $program; cat said; exit 1; }}
            done
            ls -d /root/built/*.place | wc -l
            python3 /root/consumer/python/consumer.py $(ls /usr/lib/*/libberth.so.{library.removeprefix("libberth")})""")
        programs = 2 * len([*ROOT.glob("tests/consumer/cpp/*.cc"), *ROOT.glob("tests/consumer/moving/*.cc")]) + 1
        self.assertEqual(said.split(), [str(programs), "ok"])

    def test_an_upgrade_under_a_run_loses_nothing(self):
        root = self.bare("bookworm")
        (root / "root/slow.yaml").write_text(json.dumps(SWEEP))
        older = self.older(only("berth_*.deb"), root / "packages/older.deb")
        upgrade = self.install(root, "berth")
        said = self.inside(root, f"""
            apt-get -qq update; apt-get -qq install -y --no-install-recommends {older} >/dev/null 2>&1
            dpkg-query -W -f '${{Version}}\\n' berth
            cd /root; berth run --detach slow.yaml
            while [ ! -s witness ]; do sleep 0.1; done
            {upgrade} >/dev/null 2>&1
            dpkg-query -W -f '${{Version}}\\n' berth
            timeout 120 berth wait slow-1 >/dev/null; berth --json show slow-1; sort -n witness | uniq | wc -l; wc -l < witness""")
        lines = said.strip().split("\n")
        self.assertNotEqual(lines[0], lines[2], "one version replaced another")
        shown = json.loads(lines[3])
        self.assertEqual([task["state"] for task in shown["tasks"]], ["done"] * 12)
        self.assertEqual([task["attempts"] for task in shown["tasks"]], [1] * 12, "none ran twice")
        self.assertEqual([line.strip() for line in lines[4:]], ["12", "12"])

    def older(self, package, to):
        """The package under an earlier version."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg-deb", "-R", package, folder], check=True)
            control = Path(folder) / "DEBIAN/control"
            control.write_text(re.sub(r"(?m)^Version: .*", r"Version: 0.0.9", control.read_text()))
            subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder, to], check=True, capture_output=True)
        return f"/packages/{to.name}"


class Same(Package):
    def test_two_builds_have_the_same_bytes(self):
        """In a directory of another name and depth. BERTH_RECOMPILE=1: also what ccache holds is compiled anew."""
        with tempfile.TemporaryDirectory(prefix="berth-again-") as folder:
            environment = {**os.environ, **({"CCACHE_RECACHE": "1"} if os.environ.get("BERTH_RECOMPILE") else {})}
            subprocess.run([sys.executable, ROOT / "tools/package.py", "--out", f"{folder}/deep/er", "deb", "tarball", "wheel"],
                           check=True, env=environment, stdout=subprocess.DEVNULL)
            again = sorted(path for path in Path(folder, "deep/er").iterdir() if path.is_file())
            self.assertGreaterEqual(len(again), 5)
            for file in again:
                with self.subTest(file.name):
                    self.assertTrue(filecmp.cmp(file, PACKAGES / file.name, shallow=False))


class Image(Package):
    def test_its_layers_are_a_system_that_runs_berth(self):
        """Without an engine, which not every machine lets run."""
        root = Path(tempfile.mkdtemp(prefix="berth-image-"))
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        with tarfile.open(only("berth-*.oci.tar")) as archive:
            def blob(of):
                return archive.extractfile("blobs/" + of["digest"].replace(":", "/"))

            manifest = json.load(blob(json.load(archive.extractfile("index.json"))["manifests"][0]))
            config = json.load(blob(manifest["config"]))["config"]
            for layer in manifest["layers"]:
                subprocess.run(["tar", "-xzf", "-", "-C", root], input=blob(layer).read(), check=True)
        environment = " ".join(config["Env"])
        command = " ".join(config["Entrypoint"])
        said = self.inside(root, f"""
            export {environment}
            {command} --version; {command} run -- true; {command} doctor --offline --json || true; ls -d $BERTH_DB/*""")
        self.assertRegex(said, r"\Aberth [\d.]+\n")
        self.assertIn('"topic":"state","state":"ok"', said)
        self.assertIn("/var/lib/berth/berth.db", said)


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        print("needs root and mmdebstrap", file=sys.stderr)
        sys.exit(77)
    unittest.main()
