#!/usr/bin/python3
"""Outputs of flows are files and folders as cp and mkdir would make them: modes, groups, access lists, links, holes."""

import json
import os
import signal
import stat
import struct
import unittest

from berth_case import FlowCase
from ssh_bed import SSH, SSHD, SshBed

GROUP = 54321
DEFAULT_LIST = "system.posix_acl_default"


def access_list(*entries):
    """The bytes of an access control list: pairs of a tag (1, 2 user, 4, 8 group, 16 mask, 32 others) and rwx bits, with an id."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


class OutputCase(FlowCase):
    def flow(self, step, umask=0o022, code=0, options=(), **more):
        self.write("flow.yaml", f"name: flow\nsteps:\n  a: {{{step}}}\n")
        return self.run_flow(*options, umask=umask, code=code, **more)

    def mode(self, name):
        return oct(stat.S_IMODE((self.dir / name).stat().st_mode))[2:]

    def modes(self, *names):
        return {name: self.mode(name) for name in names}


class Modes(OutputCase):
    PRIVATE = ("run: '(umask 077; echo secret > {out.k}); mkdir {out.d}/in; echo t > {out.d}/in/token; "
               "chmod 600 {out.d}/in/token; chmod 700 {out.d}/in {out.d}', out: {k: key.pem, d: private/}")
    EXPECTED = {"key.pem": "600", "private": "700", "private/in": "700", "private/in/token": "600"}

    def test_what_a_task_made_private_stays_private_at_its_place(self):
        self.flow(self.PRIVATE)
        self.assertEqual(self.modes(*self.EXPECTED), self.EXPECTED)

    def test_a_result_from_the_cache_has_the_modes_of_its_task(self):
        self.flow(self.PRIVATE)
        (self.dir / "key.pem").unlink()
        (self.dir / "private").rename(self.dir / "away")
        self.assertEqual(self.ran(self.run_flow(umask=0o022)), [])
        self.assertEqual(self.modes(*self.EXPECTED), self.EXPECTED)

    def test_a_copy_of_an_input_is_as_private_as_the_input(self):
        self.write("secret", "x").chmod(0o600)
        self.write("open", "y").chmod(0o644)
        self.flow("in: {s: secret, o: open}, run: 'cp {in.s} {out.s}; cp {in.o} {out.o}', out: {s: s, o: o}")
        self.assertEqual(self.modes("s", "o"), {"s": "400", "o": "644"})

    def test_one_content_in_two_outputs_has_two_modes(self):
        self.flow("run: 'echo x > {out.p}; echo x > {out.q}; chmod 600 {out.q}', out: {p: p, q: q}")
        self.assertEqual(self.modes("p", "q"), {"p": "644", "q": "600"})

    def test_the_umask_of_the_user_limits_every_file_and_folder(self):
        step = "run: 'echo x > {out.o}; echo y > {out.d}/f; chmod 777 {out.d}/f', out: {o: new/o, d: new/d/}"
        self.flow(step, umask=0o027)
        self.assertEqual(self.modes("new", "new/o", "new/d", "new/d/f"),
                         {"new": "750", "new/o": "640", "new/d": "750", "new/d/f": "750"})

    def test_a_group_writable_umask_counts_too(self):
        self.flow("run: 'echo x > {out.o}; mkdir {out.d}/s; touch {out.d}/s/f', out: {o: new/o, d: new/d/}", umask=0o002)
        self.assertEqual(self.modes("new", "new/o", "new/d", "new/d/s", "new/d/s/f"),
                         {"new": "775", "new/o": "664", "new/d": "775", "new/d/s": "775", "new/d/s/f": "664"})

    def test_read_only_files_and_folders_arrive_read_only(self):
        self.flow("run: 'mkdir {out.d}/s; echo x > {out.d}/s/f; chmod 440 {out.d}/s/f; chmod 555 {out.d}/s', out: {d: d/}")
        self.assertEqual(self.modes("d", "d/s", "d/s/f"), {"d": "755", "d/s": "555", "d/s/f": "440"})
        (self.dir / "d/s").chmod(0o755)

    def test_a_replaced_output_keeps_the_mode_that_the_user_gave_it(self):
        self.flow("run: 'echo 1 > {out.o}', out: {o: o}")
        (self.dir / "o").chmod(0o640)
        self.flow("run: 'echo 2 > {out.o}', out: {o: o}")
        self.assertEqual((self.read("o"), self.mode("o")), ("2\n", "640"))

    def test_a_task_that_becomes_private_narrows_the_output_of_the_same_content(self):
        self.flow("run: 'echo 1 > {out.o}; mkdir -p {out.d}; echo 2 > {out.d}/f', out: {o: o, d: d/}")
        self.flow("run: 'umask 077; echo 1 > {out.o}; echo 2 > {out.d}/f; chmod 700 {out.d}', out: {o: o, d: d/}")
        self.assertEqual(self.modes("o", "d", "d/f"), {"o": "600", "d": "700", "d/f": "600"})

    def test_the_state_directory_is_private_whatever_the_umask(self):
        self.flow(self.PRIVATE, umask=0)
        self.berth("runs", umask=0)
        self.assertEqual(self.mode("state"), "700")
        open_to_others = [path for path in (self.dir / "state").rglob("*")
                          if path.is_file() and "objects" not in path.parts and stat.S_IMODE(path.stat().st_mode) & 0o077]
        self.assertEqual(open_to_others, [])

    def test_a_report_keeps_the_mode_and_the_link_of_its_file(self):
        run = self.flow("run: 'echo 1 > {out.o}', out: {o: o}")["run"]["id"]
        self.berth("report", run, "-o", "new.html", umask=0o027)
        self.assertEqual(self.mode("new.html"), "640")
        (self.dir / "new.html").chmod(0o600)
        (self.dir / "link.html").symlink_to("new.html")
        self.berth("report", run, "-o", "link.html", umask=0o022)
        self.assertTrue((self.dir / "link.html").is_symlink())
        self.assertEqual(self.mode("new.html"), "600")


@unittest.skipUnless(os.getuid() == 0, "only root may give a folder to any group")
class SharedFolders(OutputCase):
    STEP = "run: 'echo x > {out.o}; mkdir {out.d}/sub; echo y > {out.d}/sub/f', out: {o: res/o.txt, d: parts/}"
    MADE = ("res", "res/o.txt", "parts", "parts/sub", "parts/sub/f")

    def assert_shared(self, names):
        for name in names:
            status = (self.dir / name).stat()
            self.assertEqual(status.st_gid, GROUP, name)
            if stat.S_ISDIR(status.st_mode):
                self.assertTrue(status.st_mode & stat.S_ISGID, name)

    def test_outputs_in_a_setgid_folder_belong_to_its_group(self):
        os.chown(self.dir, -1, GROUP)
        self.dir.chmod(0o2775)
        self.flow(self.STEP, umask=0o007)
        self.assert_shared(self.MADE)
        self.assertEqual(self.modes(*self.MADE), {"res": "2770", "res/o.txt": "660", "parts": "2770",
                                                  "parts/sub": "2770", "parts/sub/f": "660"})

    def test_an_existing_setgid_folder_of_an_output_keeps_its_group_and_mode(self):
        (self.dir / "parts").mkdir()
        os.chown(self.dir / "parts", -1, GROUP)
        (self.dir / "parts").chmod(0o2770)
        self.flow(self.STEP)
        self.assert_shared(("parts", "parts/sub", "parts/sub/f"))
        self.assertEqual(self.mode("parts"), "2770")

    def test_a_result_from_the_cache_belongs_to_the_group_too(self):
        self.flow(self.STEP)
        for name in ("res", "parts"):
            (self.dir / name).rename(self.dir / f"{name}.away")
        os.chown(self.dir, -1, GROUP)
        self.dir.chmod(0o2775)
        self.assertEqual(self.ran(self.run_flow(umask=0o022)), [])
        self.assert_shared(self.MADE)

    def test_the_default_list_of_a_folder_counts_instead_of_the_umask(self):
        entries = access_list((1, 7, 2**32 - 1), (4, 7, 2**32 - 1), (8, 7, GROUP), (16, 7, 2**32 - 1), (32, 0, 2**32 - 1))
        try:
            os.setxattr(self.dir, DEFAULT_LIST, entries)
        except OSError as error:
            self.skipTest(f"no access control lists here: {error}")
        self.flow(self.STEP, umask=0o077)
        (self.dir / "by_hand/sub").mkdir(parents=True)
        (self.dir / "by_hand/f").write_text("x")
        for name, like in (("res", "by_hand"), ("parts", "by_hand"), ("parts/sub", "by_hand/sub"), ("res/o.txt", "by_hand/f")):
            self.assertEqual(os.getxattr(self.dir / name, "system.posix_acl_access"),
                             os.getxattr(self.dir / like, "system.posix_acl_access"), name)
        self.assertEqual(os.getxattr(self.dir / "parts/sub", DEFAULT_LIST), entries)


class Links(OutputCase):
    def test_a_directory_output_goes_where_the_link_at_its_place_leads(self):
        (self.dir / "scratch/parts").mkdir(parents=True)
        (self.dir / "parts").symlink_to(self.dir / "scratch/parts")
        for text in ("1", "2"):
            self.flow(f"run: 'echo {text} > {{out.d}}/a', out: {{d: parts/}}")
            self.assertTrue((self.dir / "parts").is_symlink())
            self.assertEqual(self.read("scratch/parts/a"), f"{text}\n")
        self.assertEqual(os.listdir(self.dir / "scratch"), ["parts"])

    def test_a_file_output_goes_where_the_link_at_its_place_leads(self):
        self.write("scratch/now", "old\n")
        (self.dir / "out").symlink_to("scratch/now")
        self.flow("run: 'echo new > {out.o}', out: {o: out}")
        self.assertTrue((self.dir / "out").is_symlink())
        self.assertEqual(self.read("scratch/now"), "new\n")

    def test_a_link_to_a_missing_file_in_an_existing_folder_makes_the_file(self):
        (self.dir / "scratch").mkdir()
        (self.dir / "out").symlink_to("link")
        (self.dir / "link").symlink_to("scratch/new")
        self.flow("run: 'echo new > {out.o}', out: {o: out}")
        self.assertEqual(self.read("scratch/new"), "new\n")

    def refusal(self, step="run: 'echo ran >> {out.o}; touch ran', out: {o: out}"):
        step = step.replace("touch ran", f"touch {self.dir}/ran")
        run = self.flow(step, code=1)["run"]["id"]
        self.assertFalse((self.dir / "ran").exists(), "it is refused before it starts")
        return self.berth("why", f"{run}/a").out.decode()

    def test_a_link_to_a_missing_folder_refuses_the_task_before_it_starts(self):
        (self.dir / "out").symlink_to("/none/scratch/out")
        self.assertIn(f"{self.dir}/out is a link to /none/scratch/out, but there is no folder /none/scratch", self.refusal())
        self.assertTrue((self.dir / "out").is_symlink())

    def test_links_in_a_circle_refuse_the_task_before_it_starts(self):
        (self.dir / "out").symlink_to("back")
        (self.dir / "back").symlink_to("out")
        self.assertIn("its symbolic links lead in a circle", self.refusal())

    def test_a_folder_above_an_output_that_is_a_broken_link_refuses_the_task(self):
        (self.dir / "res").symlink_to("/none/res")
        step = "run: 'echo 1 > {out.o}; touch ran', out: {o: res/sub/o}"
        self.assertIn(f"{self.dir}/res is a link to /none/res", self.refusal(step))

    def test_a_temporary_output_behind_a_link_goes_and_the_link_stays(self):
        (self.dir / "scratch").mkdir()
        (self.dir / "tmp").symlink_to("scratch/tmp")
        self.write("flow.yaml", "steps:\n  a: {run: 'echo 1 > {out.o}', out: {o: tmp}, temp: true}\n"
                   "  b: {in: {i: a.o}, run: 'cat {in.i} > {out.o}', out: {o: o}}\n")
        self.run_flow()
        self.assertTrue((self.dir / "tmp").is_symlink())
        self.assertEqual(os.listdir(self.dir / "scratch"), [])


class OutsideLinks(OutputCase):
    STEP = ("run: 'mkdir {out.d}/bin; ln -s /usr/bin/env {out.d}/bin/env; ln -s ../../../beyond {out.d}/bin/up; "
            "ln -s /none {out.d}/none', out: {d: venv/}")

    def test_links_that_lead_outside_are_kept_as_they_are(self):
        self.flow(self.STEP)
        self.assertEqual([os.readlink(self.dir / "venv" / name) for name in ("bin/env", "bin/up", "none")],
                         ["/usr/bin/env", "../../../beyond", "/none"])
        self.assertEqual(self.ran(self.run_flow()), [], "they are verified")

    def test_a_step_takes_in_a_directory_with_such_links(self):
        self.write("flow.yaml", f"steps:\n  a: {{{self.STEP}}}\n"
                   "  b: {in: {v: a.d}, run: '{in.v}/bin/env echo hi > {out.o}', out: {o: o}}\n")
        self.run_flow()
        self.assertEqual(self.read("o"), "hi\n")

    def test_a_link_that_was_changed_is_replaced_like_other_content(self):
        self.flow(self.STEP)
        (self.dir / "venv/none").unlink()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(os.readlink(self.dir / "venv/none"), "/none")

    def test_protecting_a_directory_leaves_what_its_links_lead_to(self):
        outside = self.write("outside", "x")
        outside.chmod(0o644)
        self.flow(f"run: 'ln -s {outside} {{out.d}}/l; echo 1 > {{out.d}}/f', out: {{d: d/}}, protect: true")
        self.assertEqual(self.modes("outside", "d/f", "d"), {"outside": "644", "d/f": "444", "d": "555"})
        (self.dir / "d").chmod(0o755)


class Holes(OutputCase):
    SIZE = 64 << 20

    def assert_sparse(self, name, size=SIZE):
        status = (self.dir / name).stat()
        self.assertEqual(status.st_size, size)
        self.assertLess(status.st_blocks * 512, 4 << 20, f"{name} was inflated")

    def test_a_sparse_output_keeps_its_holes(self):
        self.flow(f"run: 'truncate -s {self.SIZE} {{out.o}}; printf end >> {{out.o}}', out: {{o: o}}")
        self.assert_sparse("o", self.SIZE + 3)
        with open(self.dir / "o", "rb") as file:
            self.assertEqual(file.read(), b"\0" * self.SIZE + b"end")

    def test_a_file_of_one_hole_in_a_directory_keeps_it(self):
        self.flow(f"run: 'truncate -s {self.SIZE} {{out.d}}/f', out: {{d: d/}}")
        self.assert_sparse("d/f")

    def test_data_between_holes_arrives_and_comes_back_from_the_cache(self):
        self.flow(f"run: 'truncate -s {self.SIZE} {{out.o}}; printf one | dd of={{out.o}} bs=1 seek=5000000 "
                  f"conv=notrunc status=none', out: {{o: o}}")
        (self.dir / "o").unlink()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assert_sparse("o")
        with open(self.dir / "o", "rb") as file:
            content = file.read()
        self.assertEqual((content[5000000:5000003], content.count(0)), (b"one", self.SIZE - 3))


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are needed")
class RemoteTasks(OutputCase):
    """A host whose umask is 022, and files that always travel."""

    def setUp(self):
        super().setUp()
        self.bed = SshBed(self.dir / "bed", self.dir)
        self.addCleanup(self.bed.close)
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")
        self.bed.host("host", machine="cpu: 2\n", noise="umask 022;")
        self.write("clusters.yaml", self.bed.clusters(shared_folders="false"))

    def test_modes_links_and_holes_travel(self):
        private = Modes.PRIVATE.replace("echo secret", "ln -s /usr/bin/env {out.d}/env; truncate -s 50000000 {out.h}; echo secret")
        self.flow(private.replace("d: private/", "d: private/, h: holes"), options=("--cluster", "lab"))
        self.assertEqual(self.modes(*Modes.EXPECTED), Modes.EXPECTED)
        self.assertEqual(os.readlink(self.dir / "private/env"), "/usr/bin/env")
        status = (self.dir / "holes").stat()
        self.assertEqual((status.st_size, status.st_blocks < 10000), (50000000, True))

    def test_the_files_of_an_experiment_keep_their_modes_on_the_host(self):
        self.write("e/e.yaml", "name: e\nrun: 'stat -c %a key tool.sh shared'\n")
        for name, mode in (("key", 0o600), ("tool.sh", 0o755), ("shared", 0o664)):
            self.write(f"e/{name}", "x").chmod(mode)
        run = self.berth("run", "--detach", "--cluster", "lab", "e/e.yaml").out.decode().strip()
        self.berth("wait", run)
        self.assertEqual(self.berth("logs", run).out.decode().replace("[1]", "").split(), ["600", "755", "644"])


class HandEdits(OutputCase):
    STEP = "in: {i: i.txt}, run: 'cat {in.i} > {out.o}; echo ran >> WITNESS', out: {o: o.txt}"

    def setUp(self):
        super().setUp()
        self.write("i.txt", "1\n")
        self.step = self.STEP.replace("WITNESS", f"{self.dir}/witness")
        self.flow(self.step)

    def runs(self):
        return self.read("witness").count("ran")

    def refused(self, *options):
        shown = self.run_flow(*options, code=1)
        self.assertEqual(self.states(shown)["a"], "failed")
        return shown["run"]["id"], self.berth("why", shown["run"]["id"] + "/a").out.decode()

    def test_an_edited_output_is_not_overwritten_from_the_cache(self):
        self.write("o.txt", "mine\n")
        _, error = self.refused()
        self.assertIn(f"out.o: {self.dir}/o.txt: it was edited since Berth wrote it", error)
        self.assertIn("--overwrite", error)
        self.assertEqual(self.read("o.txt"), "mine\n")
        self.run_flow("--overwrite")
        self.assertEqual((self.read("o.txt"), self.runs()), ("1\n", 1))

    def refused_by_plan(self, *options):
        plan = json.loads(self.berth("run", "--plan", "--json", *options, "flow.yaml").out)
        return plan["steps"][0].get("refused", [])

    def test_a_plan_says_what_would_be_refused(self):
        self.assertEqual(self.refused_by_plan(), [])
        self.write("o.txt", "mine\n")
        why = f"{self.dir}/o.txt: it was edited since Berth wrote it"
        for text in ("1\n", "2\n"):  # the task is cached, and it would run
            self.write("i.txt", text)
            self.assertIn(why, self.refused_by_plan()[0])
        self.assertEqual(self.refused_by_plan("--overwrite"), [])
        self.assertIn("a: would be refused: " + why, self.berth("run", "--plan", "flow.yaml").out.decode())
        self.assertEqual(self.read("o.txt"), "mine\n")

    def test_a_task_is_refused_before_it_starts(self):
        self.write("o.txt", "mine\n")
        self.write("i.txt", "2\n")
        run, error = self.refused()
        self.assertIn("it was edited", error)
        self.assertEqual((self.read("o.txt"), self.runs()), ("mine\n", 1))
        self.berth("retry", run, code=1)
        self.assertEqual((self.read("o.txt"), self.runs()), ("mine\n", 1))
        self.berth("retry", "--overwrite", run)
        self.assertEqual((self.read("o.txt"), self.runs()), ("2\n", 2))

    def test_an_output_that_was_moved_away_lets_the_task_run(self):
        self.write("o.txt", "mine\n")
        self.write("i.txt", "2\n")
        run, _ = self.refused()
        (self.dir / "o.txt").rename(self.dir / "mine.txt")
        self.berth("retry", run)
        self.assertEqual((self.read("o.txt"), self.read("mine.txt")), ("2\n", "mine\n"))

    def test_touching_chmod_and_removal_are_not_edits(self):
        os.utime(self.dir / "o.txt")
        (self.dir / "o.txt").chmod(0o755)
        self.write("i.txt", "2\n")
        self.run_flow()
        (self.dir / "o.txt").unlink()
        self.run_flow()
        self.assertEqual(self.read("o.txt"), "2\n")

    def test_a_file_that_berth_never_made_is_replaced(self):
        self.write("p.txt", "old\n")
        self.flow(self.step.replace("o.txt", "p.txt"))
        self.assertEqual(self.read("p.txt"), "1\n")

    def test_an_edit_behind_a_link_counts(self):
        (self.dir / "scratch").mkdir()
        (self.dir / "o.txt").rename(self.dir / "scratch/o.txt")
        (self.dir / "o.txt").symlink_to("scratch/o.txt")
        self.write("i.txt", "2\n")
        self.run_flow()
        self.write("scratch/o.txt", "mine\n")
        _, error = self.refused()
        self.assertIn("it was edited", error)
        self.assertEqual(self.read("scratch/o.txt"), "mine\n")

    def test_the_edited_file_of_a_directory_is_named(self):
        step = "in: {i: i.txt}, run: 'cp {in.i} {out.d}/a; cp {in.i} {out.d}/b', out: {d: d/}"
        self.flow(step)
        (self.dir / "d/b").unlink()
        self.write("i.txt", "2\n")
        self.run_flow()
        self.assertEqual(self.read("d/b"), "2\n")
        self.write("d/a", "mine\n")
        self.assertIn(f"{self.dir}/d/a: it was edited", self.refused()[1])
        self.write("d/a", "2\n")
        self.write("d/notes", "mine\n")
        self.write("i.txt", "3\n")
        self.assertIn(f"{self.dir}/d/notes: not written by this step", self.refused()[1])
        self.assertEqual(self.read("d/notes"), "mine\n")

    def kill_at(self, point):
        fuse = self.write("fuse", "")
        killed = self.house.run("run", "flow.yaml", env={"BERTH_FAILPOINT": f"{point}:1:{fuse}"})
        self.assertEqual(killed.code, -signal.SIGKILL, killed)

    def test_outputs_of_a_killed_run_do_not_count_as_edited(self):
        for point, text in (("outputs captured", "2\n"), ("outputs published", "3\n")):
            self.write("i.txt", text)
            self.kill_at(point)
            self.write("i.txt", "4\n" + text)
            self.run_flow()
            self.assertEqual(self.read("o.txt"), "4\n" + text)

    def test_an_edit_before_a_resume_is_refused_unless_it_may_be_overwritten(self):
        self.write("i.txt", "2\n")
        self.kill_at("outputs published")
        self.write("o.txt", "mine\n")
        run = self.house.json("runs")["runs"][-1]["id"]
        self.berth("resume", run, code=1)
        self.assertEqual(self.read("o.txt"), "mine\n")
        self.berth("retry", "--overwrite", run)
        self.assertEqual(self.read("o.txt"), "2\n")

    def test_a_large_edited_output_is_refused_too(self):
        big = "in: {i: i.txt}, run: 'cat {in.i} > {out.o}; head -c 6000000 /dev/zero >> {out.o}', out: {o: big}"
        self.flow(big)
        with open(self.dir / "big", "r+b") as file:
            file.seek(5000000)
            file.write(b"mine")
        self.write("i.txt", "2\n")
        _, error = self.refused()
        self.assertIn(f"{self.dir}/big: it was edited", error)
        self.run_flow("--overwrite")
        self.write("i.txt", "3\n")
        self.run_flow()
        with open(self.dir / "big", "rb") as file:
            self.assertEqual(file.read(2), b"3\n")

    def test_experiments_have_no_outputs_to_overwrite(self):
        self.write("e.yaml", "name: e\nrun: 'true'\n")
        self.berth("run", "e.yaml")
        self.assertIn("is not a flow", self.one_line(self.berth("retry", "--overwrite", "e-1", code=2)))


if __name__ == "__main__":
    unittest.main()
