#!/usr/bin/python3
"""The file of clusters as berth cluster changes it: by many at once, as an editor elsewhere left it, and none at all."""

import json
import os
import socket
import unittest

from berth_case import Case


class ClustersFile(Case):
    def setUp(self):
        super().setUp()
        self.file = self.dir / "clusters.yaml"
        self.house.environment["BERTH_CLUSTERS"] = str(self.file)

    def names(self):
        return {each["name"] for each in json.loads(self.berth("--json", "cluster", "list").out)["clusters"]}

    def test_many_that_add_at_once_lose_nothing(self):
        elsewhere = self.dir / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "mine.yaml").write_text("# mine\n")
        (elsewhere / "mine.yaml").chmod(0o640)
        self.file.symlink_to("elsewhere/mine.yaml")
        wanted = {f"c{i}" for i in range(20)}
        running = [self.house.start("cluster", "add", name, "some.host") for name in wanted]
        for process in running:
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err), (0, b""), out)
        self.assertEqual(self.names(), wanted)
        running = [self.house.start("cluster", "remove", name) for name in wanted - {"c7"}]
        self.assertEqual([process.wait(60) for process in running], [0] * 19)
        self.assertEqual(self.names(), {"c7"})
        self.assertTrue(self.file.is_symlink())
        self.assertEqual((elsewhere / "mine.yaml").stat().st_mode & 0o777, 0o640)
        self.assertTrue(self.file.read_text().startswith("# mine\nc7:\n"))

    def test_the_first_clusters_of_all_may_be_added_at_once(self):
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "not/yet/clusters.yaml")
        self.berth("cluster", "remove", "lab", code=2)
        self.berth("cluster", "add", "lab", "--", "-oProxyCommand=x", code=2)
        self.assertFalse((self.dir / "not").exists(), "nothing is made for what cannot be")
        wanted = {f"c{i}" for i in range(8)}
        running = [self.house.start("cluster", "add", name, "some.host") for name in wanted]
        self.assertEqual([process.wait(60) for process in running], [0] * 8)
        self.assertEqual(self.names(), wanted)

    @unittest.skipUnless(os.getuid() == 0, "nobody is somebody else only to root")
    def test_a_file_that_several_may_write_is_edited_by_each(self):
        shared = self.dir / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        self.dir.chmod(0o755)
        self.house.environment["BERTH_CLUSTERS"] = str(shared / "clusters.yaml")
        (shared / "clusters.yaml").write_text("")
        (shared / "clusters.yaml").chmod(0o666)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        for name, who in (("roots", {}), ("nobodys", nobody), ("again", {})):
            done = self.house.run("cluster", "add", name, "some.host", **who)
            self.assertEqual((done.code, done.err), (0, b""))
        self.assertEqual(self.names(), {"roots", "nobodys", "again"})
        self.assertEqual([each.name for each in shared.iterdir()], ["clusters.yaml"])

    def test_lines_end_as_they_did(self):
        text = b"# mine\r\nold:\r\n  kind: ssh\r\n  hosts: [a]\r\n"
        self.file.write_bytes(text)
        self.berth("cluster", "add", "lab", "b")
        self.assertEqual(self.file.read_bytes(), text + b'lab:\r\n  kind: ssh\r\n  hosts:\r\n    - "b"\r\n')
        self.berth("cluster", "remove", "lab")
        self.assertEqual(self.file.read_bytes(), text)
        self.berth("cluster", "remove", "old")
        self.assertEqual(self.file.read_bytes(), b"# mine\r\n")

    def test_a_file_that_says_that_it_is_empty_is(self):
        for text in ("null\n", "~", "---\nNull # none\n"):
            with self.subTest(text):
                self.file.write_text(text)
                self.assertEqual(self.names(), set())
                self.berth("cluster", "add", "lab", "b")
                self.assertEqual(self.names(), {"lab"})

    def test_what_is_no_file_is_named(self):
        os.mkfifo(self.dir / "pipe")
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.getcwd()
            os.chdir(self.dir)  # a socket's path is short
            listener.bind("socket")
            os.chdir(here)
        for place, kind in (("pipe", "pipe"), ("socket", "socket"), ("/dev/zero", "device"), (".", "directory")):
            with self.subTest(kind):
                self.house.environment["BERTH_CLUSTERS"] = str(self.dir / place)
                for words in (["list"], ["add", "lab", "b"], ["remove", "lab"], ["probe"]):
                    line = self.one_line(self.berth("cluster", *words, code=2, timeout=20))
                    self.assertIn(f"expected a file of clusters, got a {kind}", line)
                self.assertIn(f"got a {kind}", self.one_line(
                    self.berth("run", "--cluster", "lab", "--", "true", code=2, timeout=20)))
        self.house.environment["BERTH_CLUSTERS"] = "/dev/null"
        self.assertEqual(self.names(), set())

    def test_changes_say_what_they_changed_and_where(self):
        self.assertEqual(
            self.berth("cluster", "add", "lab", "a", "b:22").out.decode(),
            f"added cluster 'lab' (2 hosts) to {self.file}; test it: berth cluster probe lab\n")
        self.assertIn("'one' (1 host) to", self.berth("cluster", "add", "one", "a").out.decode())
        self.assertEqual(self.house.json("cluster", "add", "two", "c", "--key", "/k"),
                         {"version": 1, "name": "two", "kind": "ssh", "hosts": ["c /k"], "file": str(self.file)})
        self.assertEqual(self.berth("cluster", "remove", "one", "lab").out.decode(),
                         f"removed from {self.file}: one, lab\n")
        self.assertEqual(self.house.json("cluster", "remove", "two"),
                         {"version": 1, "removed": ["two"], "file": str(self.file)})

    def test_a_key_is_written_with_its_whole_path(self):
        for given, written in (("keys/lab", str(self.dir / "keys/lab")), ("~/.ssh/lab", "~/.ssh/lab"), ("/k", "/k")):
            added = self.berth("cluster", "add", "lab", "a", "--key", given)
            self.assertRegex(added.err.decode(), r"\Aberth: warning: there is no key file /[^\n]+\n\Z")
            self.assertIn(f"- \"a {written}\"\n", self.file.read_text())
            self.berth("cluster", "remove", "lab")

    def test_errors_name_the_file_and_the_clusters(self):
        self.berth("cluster", "add", "lab", "a")
        self.berth("cluster", "add", "desk", "b")
        for words, part in (
                (["probe", "lba"], f"no cluster 'lba': {self.file} has lab, desk"),
                (["probe", "labs"], f"no cluster 'labs'; did you mean 'lab'? ({self.file} has lab, desk)"),
                (["remove", "labs"], f"no cluster 'labs'; did you mean 'lab'? ({self.file} has lab, desk)"),
                (["add", "lab", "c"], "cluster 'lab' already exists; choose another name, or remove it first: "
                                      "berth cluster remove lab"),
                (["add", "a b", "c"], "'a b' is not a valid cluster name: use up to 64 letters, digits"),
                (["add", "x", "c", "d", "c"], "c is listed twice")):
            with self.subTest(words):
                self.assertIn(part, self.one_line(self.berth("cluster", *words, code=2)))
        self.file.write_text("lab: {kind: ssh, hosts: [a], lease: 0s}\n")
        for words in (["add", "x", "c"], ["remove", "lab"], ["list"]):
            self.assertIn(f"berth: {self.file}:1: lab.lease: expected 1s to 30d", self.one_line(self.berth("cluster", *words, code=2)))

    @unittest.skipUnless(os.getuid() == 0, "only root can become another user")
    def test_missing_rights_are_named(self):
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        self.dir.chmod(0o755)
        self.file.write_text("lab: {kind: ssh, hosts: [a]}\n")
        for mode, part in ((0o644, "cannot write the clusters file: "), (0o600, "cannot read the clusters file: ")):
            self.file.chmod(mode)
            for words in (["add", "x", "c"], ["remove", "lab"]):
                with self.subTest(mode=mode, words=words):
                    done = self.house.run("cluster", *words, **nobody)
                    self.assertEqual(done.code, 3, done)
                    self.assertIn(f"{part}{self.file}: Permission denied", self.one_line(done))

    def test_a_cluster_that_cannot_be_asked_hides_no_other(self):
        self.house.environment["HOME"] = str(self.dir)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            self.house.environment.pop(name, None)
        self.file.write_text("cloud: {kind: ec2, region: eu-west-1, image: ami-1}\n"
                             "lab: {kind: ssh, hosts: ['127.0.0.1:1']}\n")
        lines = self.berth("cluster", "probe", code=3).out.decode().splitlines()
        self.assertTrue(lines[0].startswith("lab/127.0.0.1:1: "), lines)
        self.assertTrue(lines[1].startswith("cloud: no credentials"), lines)
        probed = json.loads(self.berth("--json", "cluster", "probe", code=3).out)
        self.assertEqual([each["cluster"] for each in probed["errors"]], ["cloud"])
        self.file.write_text(self.file.read_text() + "wrong: {kind: ssh, hosts: []}\n")
        self.assertIn("wrong: ", self.berth("cluster", "probe", code=2).out.decode())

    def test_an_age_has_its_unit(self):
        self.berth("cluster", "add", "lab", "some.invalid")
        for words in (["cluster", "clean", "lab", "--older-than"], ["prune", "--older-than"],
                      ["cache", "--collect", "--unused-for"]):
            with self.subTest(words):
                line = self.one_line(self.berth(*words, "7", code=2))
                self.assertIn(words[-1], line)
                self.assertIn("expected 7d", line)


if __name__ == "__main__":
    unittest.main()
