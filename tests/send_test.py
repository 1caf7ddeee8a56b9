#!/usr/bin/python3
"""What of an experiment's folder goes to other machines: compared with git itself, and sent to real sshds
on loopback."""

import json
import os
import pty
import random
import select
import shutil
import socket
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from berth_case import Case, numbers, until
from ssh_bed import SSH, SSHD, SshBed

FULL = os.environ.get("BERTH_FULL") == "1"
GIT = shutil.which("git")


class Folder(Case):
    """A folder with an experiment that goes to a cluster."""

    def setUp(self):
        super().setUp()
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")
        self.write("clusters.yaml", "lab: {kind: ssh, hosts: [nobody.invalid]}\n")
        self.folder = self.dir / "folder"
        self.folder.mkdir()

    def experiment(self, command, more=""):
        self.write("folder/sweep.yaml", f"run: {json.dumps(command)}\nparams: {{x: [1]}}\n{more}")

    def plan(self, *more):
        return self.house.json("run", "--plan", "--cluster", "lab", *more, self.folder / "sweep.yaml")

    def git(self, *words, feed=None):
        return subprocess.run(["git", "-C", self.folder, *words], input=feed, check=False, stdout=subprocess.PIPE,
                              env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}).stdout


NAMES = ["a", "b", "ab", "abc", "foo", "bar", "x.o", "x.c", ".hid", "A", "a b", " lead", "end ", "#h", "!n", "b[c", "q?",
         "s*r", "back\\s", "\u00e9", "data", "build", "a-b", "]", "^", "1", "a]"]
PIECES = NAMES + ["*", "*", "**", "**", "?", "[ab]", "[!a]", "[^a-c]*", "[[:alpha:]]", "[[:digit:]a]*", "[a-", "[]a]", "[a-]*",
                  "[\\]]", "[[:nope:]]", "[[:]", "\\*", "\\#h", "\\!n", "*.o", "a*", "*b*", "**a", "a**", "***", "?*?", "x.?",
                  "s\\*r", "b\\[c", "q\\?", "back\\\\s", "end\\ ", "end", "\\", "a\\b", "[--a]", "*a*b*"]


def pattern(chance):
    text = "/".join(chance.choice(PIECES) for _ in range(chance.choice([1, 1, 1, 2, 2, 3, 4])))
    return (chance.choice(["", "", "", "!"]) + chance.choice(["", "", "/"]) + text + chance.choice(["", "", "/"]))


def ignore_file(chance):
    text = chance.choice(["", "", "", "\ufeff"])
    for _ in range(chance.randint(1, 5)):
        text += pattern(chance) + chance.choice(["\n", "\n", "\n", " \n", "\r\n", "\n\n", "\n# no\n", "\n   \n"])
    return text if chance.random() < 0.8 else text.rstrip("\n")


def random_tree(chance, root, depth=3):
    directories = [root]
    for name in chance.sample(NAMES, chance.randint(2, 6)):
        if depth > 0 and chance.random() < 0.5:
            (root / name).mkdir()
            directories += random_tree(chance, root / name, depth - 1)
        else:
            (root / name).write_text("")
    return directories


@unittest.skipUnless(GIT, "git is wanted")
class Ignored(Folder):
    def rebuild(self, seed):
        chance = random.Random(seed)
        for path in self.folder.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        directories = random_tree(chance, self.folder)
        self.experiment("true")
        return chance, directories

    def files(self):
        for directory, names, files in os.walk(self.folder):
            if ".git" in names:
                names.remove(".git")
            yield from (os.path.relpath(os.path.join(directory, file), self.folder) for file in files)

    def test_what_git_ignores_is_left_out(self):
        self.git("init", "-q")
        total = 0
        for seed in range(2000 if FULL else 120):
            chance, directories = self.rebuild(seed)
            for directory in chance.sample(directories, min(len(directories), chance.randint(1, 3))):
                (directory / ".gitignore").write_bytes(ignore_file(chance).encode())
            files = set(self.files())
            ignored = self.git("check-ignore", "--no-index", "-z", "--stdin", feed="\0".join(files).encode())
            wanted = files - set(ignored.decode().split("\0"))
            rules = {str(path): path.read_bytes() for path in self.folder.rglob(".gitignore")}
            self.assertEqual(set(self.plan()["sent"]), wanted, f"seed {seed}: {rules}")
            total += len(files) - len(wanted)
        self.assertGreater(total, 300, "hardly anything was ignored")

    def test_berthignore_has_the_last_word(self):
        self.git("init", "-q")
        total = 0
        for seed in range(1000 if FULL else 60):
            chance, directories = self.rebuild(10_000 + seed)
            for directory in chance.sample(directories, min(len(directories), 2)):
                (directory / ".gitignore").write_bytes(ignore_file(chance).encode())
            last = [line for line in (pattern(chance) for _ in range(chance.randint(1, 4))) if line[0] not in "# "]
            last = [line for line in last if not line.endswith(" ")]
            (self.folder / ".berthignore").write_text("".join(line + "\n" for line in last))
            sent = self.git("ls-files", "-z", "--others", "--exclude-per-directory=.gitignore",
                            *(f"--exclude={line}" for line in last))
            wanted = set(sent.decode().split("\0")) - {""}
            self.assertEqual(set(self.plan()["sent"]), wanted, f"seed {seed}: {last}")
            total += len(wanted)
        self.assertGreater(total, 500, "hardly anything was sent")

    def test_the_rules_of_the_repository_above_count(self):
        subprocess.run(["git", "init", "-q", self.dir], check=True)
        self.write(".gitignore", "*.o\n/folder/runs/\n")
        for name in ("a.o", "a.c", "runs/1", "sub/runs/1"):
            self.write(f"folder/{name}", "")
        self.experiment("true")
        plan = self.plan()
        self.assertEqual(set(plan["sent"]), {"a.c", "sub/runs/1", "sweep.yaml"})
        self.assertEqual([(one["path"], one["why"]) for one in plan["left_out"]],
                         [("a.o", f"{self.dir}/.gitignore:1"), ("runs/", f"{self.dir}/.gitignore:2")])
        # As git has it: a repository of its own is not asked about by those above.
        self.git("init", "-q")
        self.assertIn("a.o", self.plan()["sent"])

    def test_the_plan_shows_what_stays_and_why(self):
        self.experiment("true")
        self.write("folder/.gitignore", "data/\n")
        self.write("folder/data/deep/1", "x" * 1000)
        self.write("folder/data/2", "x" * 24)
        os.mkfifo(self.folder / "pipe")
        self.assertEqual(self.plan()["left_out"], [
            {"path": "data/", "why": ".gitignore:1", "files": 2, "bytes": 1024, "counted": True},
            {"path": "pipe", "why": "a socket, pipe or device", "files": 1, "bytes": 0, "counted": True}])
        text = self.berth("run", "--plan", "--cluster", "lab", self.folder / "sweep.yaml").out.decode()
        self.assertRegex(text, r"data/ +2 +1 KiB +\.gitignore:1")
        self.assertIn("2 files", text)
        self.berth("run", "--plan", "--cluster", "lab", "--", "true", code=2)

    def test_names_that_are_no_text_stay_distinct_in_the_plan(self):
        self.experiment("true")
        self.write("folder/.gitignore", "out/\n")
        names = [b"\xff", b"\xfe", b"a\\xff", b"a\xff", b"a\\\xff", b"a\\y", "\u00e9".encode(), b"\xc3", b"?"]
        for place in (self.folder, self.folder / "out"):
            place.mkdir(exist_ok=True)
            for name in names:
                Path(os.fsdecode(os.path.join(os.fsencode(place), name))).touch()
        told = {"\\xff", "\\xfe", "a\\x5cxff", "a\\xff", "a\\x5c\\xff", "a\\y", "\u00e9", "\\xc3", "?"}
        self.assertEqual(set(self.plan()["sent"]), told | {"sweep.yaml", ".gitignore"})

    def test_the_plan_names_all_clusters_and_what_is_asked_first(self):
        self.write("clusters.yaml", "lab: {kind: ssh, hosts: [nobody.invalid]}\nother: {kind: ssh, hosts: [b.invalid]}\n")
        self.experiment("true")
        self.assertEqual(self.plan()["warnings"], [])
        with (self.folder / "weights.bin").open("wb") as weights:
            weights.truncate((1 << 30) + 1)
        self.house.environment["HOME"] = str(self.folder)
        plan = self.plan("--cluster", "other")
        self.assertEqual(plan["clusters"], ["lab", "other"])
        home, large = plan["warnings"]
        self.assertIn(f"{self.folder}, a home directory", home)
        self.assertIn("1 GiB", large)
        for warning in plan["warnings"]:
            self.assertIn("berth run --send-large", warning)
        both = ("run", "--plan", "--cluster", "lab", "--cluster", "other")
        text = self.berth(*both, self.folder / "sweep.yaml").out.decode()
        self.assertIn("a plan does not contact lab and other; to see what they have room for: berth cluster probe lab other\n", text)
        self.assertEqual(text.splitlines()[-2:], plan["warnings"])
        self.assertIn("berth cluster probe lab other", self.one_line(self.berth(*both, "--", "true", code=2)))


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are wanted")
class Sent(Folder):
    def setUp(self):
        super().setUp()
        self.bed = SshBed(self.dir / "bed", self.dir)
        self.addCleanup(self.bed.close)
        self.host = self.bed.host("host", machine="cpu: 2\n")
        # On one machine every folder is shared: as if it were not.
        self.write("clusters.yaml", self.bed.clusters(shared_folders="false", lease="20s", silent_most="3s"))

    def run_it(self, code=0, **more):
        return self.berth("run", "--cluster", "lab", self.folder / "sweep.yaml", code=code, timeout=120, **more)

    def listing(self, run):
        return set(self.berth("logs", f"{run}/1").out.decode().split())

    def test_berth_s_own_state_stays(self):
        """A process that reads a database which it has open, too, loses its locks on it: others then take its log away."""
        self.house.state = self.folder / "state"
        self.house.environment["BERTH_DB"] = str(self.house.state)
        self.write("folder/sweep.yaml", "run: find . -path '*state*'; sleep 0.3\nparams: {i: [1, 2, 3, 4, 5, 6]}\n")
        self.berth("runs")
        run = self.house.start("run", "--cluster", "lab", self.folder / "sweep.yaml")
        while run.poll() is None:
            self.house.run("--json", "runs")
        err = run.stderr.read().decode()
        self.assertEqual(run.returncode, 0, err)
        self.assertRegex(err, r"state/ \([^)]*, Berth's own state\)")
        self.assertEqual(self.listing("sweep-1"), set())

    def test_what_no_other_machine_can_use_stays(self):
        self.experiment("find . ! -type d -printf '%P\\n'; cat inside by-name")
        self.write("folder/sub/text", "read-through-links\n")
        os.symlink("sub/text", self.folder / "inside")
        os.symlink(self.folder / "sub/text", self.folder / "by-name")
        os.symlink("/etc/passwd", self.folder / "outside")
        os.symlink("../../bed", self.folder / "sub/above")
        os.mkfifo(self.folder / "sub/pipe")
        self.write("folder/.git/config", "")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / "socket"))
            done = self.run_it()
        self.assertEqual(self.listing("sweep-1"),
                         {"sweep.yaml", "sub/text", "inside", "by-name", "read-through-links"})
        note, = [line for line in done.err.decode().splitlines() if "not sent" in line]
        for part in ("4 files", "outside (0 B, a link to /etc/passwd, outside of the folder)", "sub/above", "sub/pipe"):
            self.assertIn(part, note)
        self.assertNotIn(".berthignore", note, "no line of that would bring any of these")

    def test_a_virtual_environment_goes_along_with_its_interpreter(self):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / "venv"], check=True)
        os.symlink("/etc/hostname", self.folder / "venv/bin/not-a-program-of-python")
        self.experiment("exec venv/bin/python3 -c 'import sys; print(sys.prefix, sys.executable)'")
        done = self.run_it()
        prefix, program = self.berth("logs", "sweep-1/1").out.decode().split()
        self.assertIn("/work/", prefix)
        self.assertTrue(prefix.endswith("folder/venv"), prefix)
        self.assertTrue(program.startswith(prefix), program)
        self.assertIn("virtual environment", done.err.decode())
        self.assertIn("prescript", done.err.decode())

    def test_a_task_that_lacks_what_was_left_out_says_so(self):
        self.experiment("cat data/set/x.txt && ls data")
        self.write("folder/.gitignore", "data/\n")
        self.write("folder/data/set/x.txt", "precious\n")
        self.write("folder/data/big.bin", "x" * 5000)
        done = self.run_it(code=1)
        advice = f"2 files, 4.9 KiB: data/ (4.9 KiB, .gitignore:1); to send files that a task needs, add a line to " \
                 f"{self.folder}/.berthignore, such as !/data/"
        self.assertIn(advice, done.err.decode())
        self.assertIn(advice, self.berth("why", "sweep-1/1").out.decode())
        self.write("folder/.berthignore", "!/data/\n*.bin\n")
        done = self.run_it()
        self.assertEqual(self.listing("sweep-2"), {"precious", "set"})
        self.assertIn("1 file, 4.9 KiB: data/big.bin (4.9 KiB, .berthignore:2)", done.err.decode())

    def test_the_note_comes_once_a_run(self):
        hosts = [self.host, self.bed.host("other", machine="cpu: 2\n")]
        self.write("clusters.yaml", self.bed.clusters(hosts=hosts, shared_folders="false", lease="20s"))
        self.write("folder/sweep.yaml", "run: sleep 0.5\nparams: {x: [1, 2, 3, 4, 5, 6, 7, 8]}\n")
        self.write("folder/.gitignore", "data/\n")
        self.write("folder/data/x.txt", "precious\n")
        done = self.run_it()
        self.assertEqual({task["host"] for task in self.house.tasks("sweep-1")},
                         {f"127.0.0.1:{host.port}" for host in hosts})
        self.assertEqual(done.err.decode().count("not sent"), 1, done.err)

    def test_more_than_a_gibibyte_is_not_sent_unasked(self):
        self.experiment("ls")
        with open(self.folder / "weights.bin", "wb") as file:
            file.truncate((1 << 30) + 1)
        said = self.run_it(code=3).err.decode().splitlines()[-1]
        for part in ("1 GiB in 2 files", str(self.folder), ".berthignore", "berth resume --send-large sweep-1"):
            self.assertIn(part, said)
        self.assertNotIn("weights.bin", "".join(str(path) for path in self.host.home.rglob("*")))
        self.assertEqual(self.house.json("show", "sweep-1")["run"]["state"], "interrupted")
        until(lambda: not [pid for pid in self.host.processes() if b"start" in cmdline(pid)], "nothing is held there", 15)
        self.write("folder/.berthignore", "*.bin\n")
        self.berth("resume", "sweep-1")
        self.assertEqual(self.listing("sweep-1"), {"sweep.yaml"})

    def test_a_folder_that_both_see_is_sent_nowhere_and_nobody_asked(self):
        self.write("clusters.yaml", self.bed.clusters(lease="20s"))
        self.experiment("ls")
        with open(self.folder / "weights.bin", "wb") as file:
            file.truncate((1 << 30) + 1)
        self.run_it()
        self.assertEqual(self.listing("sweep-1"), {"sweep.yaml", "weights.bin"})

    def test_a_home_is_not_sent_unasked(self):
        self.house.environment["HOME"] = str(self.folder)
        self.experiment("ls")
        said = self.run_it(code=3).err.decode().splitlines()[-1]
        for part in (f"{self.folder}, a home directory", "berth resume --send-large sweep-1"):
            self.assertIn(part, said)
        plan = self.berth("run", "--plan", "--cluster", "lab", self.folder / "sweep.yaml").out.decode()
        self.assertIn(f"{self.folder}, a home directory", plan.splitlines()[-1])
        self.berth("resume", "--send-large", "sweep-1")
        self.assertEqual(self.listing("sweep-1"), {"sweep.yaml"})
        self.berth("run", "--send-large", "--cluster", "lab", self.folder / "sweep.yaml")
        # Whoever said yes once is not asked by a retry; and what holds a home is none the less one.
        self.house.environment["HOME"] = str(self.folder / "me")
        (self.folder / "me").mkdir()
        self.assertIn(str(self.folder), self.run_it(code=3).err.decode().splitlines()[-1])

    def test_what_runs_is_not_lost_to_a_question_that_was_answered(self):
        go = self.dir / "go"
        self.write("folder/sweep.yaml", f"run: 'echo {{x}} >> {self.dir}/witness; while [ ! -e {go} ]; do sleep 0.05; done'\n"
                   "params: {x: [1, 2]}\nparallel: 1\n")
        run = self.house.start("run", "--cluster", "lab", self.folder / "sweep.yaml")
        until(lambda: numbers(self.dir / "witness"), "it runs", 60)
        until(lambda: self.house.tasks("sweep-1")[0].get("host"), "its start is recorded")
        run.kill()
        run.wait()
        # Its folder went there without a question, and has become what would be asked about.
        self.house.environment["HOME"] = str(self.folder)
        again = self.house.start("resume", "sweep-1")
        go.write_text("")
        self.assertEqual(again.wait(timeout=60), 0, again.stderr.read())
        self.assertEqual(numbers(self.dir / "witness"), [1, 2])

    def test_why_wait_and_show_say_why_it_could_not_go_on(self):
        self.house.environment["HOME"] = str(self.folder)
        self.experiment("ls")
        self.run_it(code=3)
        reason = f"it could not continue: the experiment's folder is {self.folder}, a home directory"
        for said in (self.berth("why", "sweep-1/1").out.decode(), self.house.run("wait", "sweep-1").err.decode()):
            self.assertIn(reason, said)
            self.assertIn("; resume it with: berth resume sweep-1", said)
            self.assertNotIn("its runner died", said)
        shown = self.berth("show", "sweep-1").out.decode()
        self.assertIn(f"the experiment's folder is {self.folder}", shown)
        self.assertIn("resume it with: berth resume sweep-1", shown)
        self.assertNotIn("its runner died", shown)

    def answered(self, answer):
        """The run on a terminal, and what is typed when it asks."""
        ours, theirs = pty.openpty()
        run = subprocess.Popen([self.house.berth, "run", "--cluster", "lab", self.folder / "sweep.yaml"], stdin=theirs,
                               stdout=theirs, stderr=theirs, env=self.house.environment, start_new_session=True,
                               preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
        self.house.started.append(run)
        os.close(theirs)
        shown, said = b"", False
        while select.select([ours], [], [], 60)[0]:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # its end is closed
                break
            if not said and b"[y/N]" in shown:
                os.write(ours, answer)
                said = True
        os.close(ours)
        self.assertTrue(said, shown)
        return run.wait(timeout=60)

    def test_on_a_terminal_it_asks(self):
        self.house.environment["HOME"] = str(self.folder)
        self.experiment("ls")
        self.assertEqual(self.answered(b"\n"), 3)
        self.assertEqual(self.house.json("show", "sweep-1")["run"]["state"], "interrupted")
        self.assertEqual(self.answered(b"y\n"), 0)
        self.assertEqual(self.listing("sweep-2"), {"sweep.yaml"})

    def test_what_changes_and_goes_while_it_is_read(self):
        self.experiment("ls; wc -c < log; test -s data.bin")
        (self.folder / "data.bin").write_bytes(os.urandom(96 << 20))  # read first, while the others change
        self.write("folder/log", "")
        over = threading.Event()

        def write():
            """A log that grows, and a file that comes and goes."""
            with open(self.folder / "log", "a") as log:
                while not over.wait(0.01):
                    log.write("x" * 100)
                    log.flush()
                    (self.folder / "temporary").touch()
                    (self.folder / "temporary").unlink()

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        self.addCleanup(over.set)
        done = self.run_it()
        self.assertLessEqual({"data.bin", "log", "sweep.yaml"}, self.listing("sweep-1"), done)

    def test_what_is_gone_before_it_is_read_is_left_out_and_told(self):
        self.experiment("ls")
        (self.folder / "data.bin").write_bytes(os.urandom(96 << 20))
        self.write("folder/late", "x")
        # Its turn comes once data.bin was read: then it has been away for long.
        run = self.house.start("run", "--cluster", "lab", self.folder / "sweep.yaml")
        until(lambda: reads(run.pid, self.folder / "data.bin"), "the folder is read", 60)
        (self.folder / "late").unlink()
        _, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("1 file, 0 B: late (0 B, removed before it was read)", err.decode())
        self.assertEqual(self.listing("sweep-1"), {"data.bin", "sweep.yaml"})

    def test_what_never_stands_still_is_named(self):
        self.experiment("ls")
        size = 64 << 20
        (self.folder / "restless").write_bytes(os.urandom(size))
        over = threading.Event()

        def write():
            with open(self.folder / "restless", "r+b") as file:
                while not over.wait(0.001):
                    os.pwrite(file.fileno(), os.urandom(1 << 10), random.randrange(size))

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        self.addCleanup(over.set)
        said = self.run_it(code=1).err.decode()
        for part in (f"{self.folder}/restless: changed each of the 4 times that it was read",
                     f"list them in {self.folder}/.berthignore"):
            self.assertIn(part, said)

    def test_its_progress_is_shown(self):
        self.experiment("wc -c < data.bin")
        (self.folder / "data.bin").write_bytes(os.urandom(64 << 20))
        run = self.house.start("run", "--cluster", "lab", self.folder / "sweep.yaml")
        incoming = self.host.home / ".cache/berth/objects/incoming"
        until(lambda: incoming.exists() and sum(part.stat().st_size for part in incoming.iterdir()) > 1 << 20,
              "some of it came", 60)
        self.host.cut()
        shown = next(line for line in run.stderr if b" % of 64 MiB" in line).decode()
        self.assertIn(f"folder to 127.0.0.1:{self.host.port}: ", shown)
        self.host.start()
        run.stderr.read()
        self.assertEqual(run.wait(timeout=120), 0)
        self.assertEqual(self.listing("sweep-1"), {str(64 << 20)})


def reads(pid, path):
    """Whether the process has the file open."""
    try:
        return str(path) in [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    unittest.main()
