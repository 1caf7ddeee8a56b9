#!/usr/bin/python3
"""Inputs and outputs of flows that lie elsewhere: behind URLs, and in S3."""

import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import unittest

from berth_case import FlowCase, until
from file_server import FileServer, S3Server

NOISE = random.Random(16).randbytes(3 << 20)


class Elsewhere(FlowCase):
    def setUp(self):
        super().setUp()
        self.server = FileServer()
        self.addCleanup(self.server.close)
        self.house.environment.update({"no_proxy": "*", "HOME": str(self.dir)})
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
                     "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_SHARED_CREDENTIALS_FILE"):
            self.house.environment.pop(name, None)

    def copy_flow(self, url, more=""):
        self.write("flow.yaml", "steps:\n  copy:\n    in: {ref: %s}\n    run: 'cp {in.ref} {out.o}; echo {in.ref}'\n"
                                "    out: {o: o}\n%s" % (url, more))

    def failure(self, shown):
        return shown["tasks"][0]["error"]


class Fetched(Elsewhere):
    def test_a_file_is_fetched_once_and_runs_again_when_it_has_changed(self):
        self.server.put("/data/a%20b.fa.gz", b"one")
        self.copy_flow(f"{self.server.url}/data/a%20b.fa.gz", "  also:\n"
                       "    in: {r: %s/data/a%%20b.fa.gz}\n    run: cp {in.r} {out.p}\n    out: {p: p}\n" % self.server.url)
        self.assertEqual(self.ran(self.run_flow()), ["also", "copy"])
        self.assertEqual(self.read("o"), "one")
        self.assertTrue(self.berth("logs", "flow-1/copy").out.decode().rstrip().endswith("/a b.fa.gz"))
        self.assertEqual(self.server.methods(), ["GET"])
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.server.methods(), ["GET", "GET"])
        self.assertIn("If-None-Match", self.server.asked[-1][2])
        self.server.put("/data/a%20b.fa.gz", b"two")
        self.assertEqual(self.ran(self.run_flow()), ["also", "copy"])
        self.assertEqual(self.read("o"), "two")
        self.assertRegex(self.because("flow-3/copy")[0], r"_url/127\.0\.0\.1.*a b\.fa\.gz changed")
        self.assert_tidy()

    def test_a_checksum_is_checked_and_spares_asking(self):
        self.server.put("/a", b"one")
        good, bad = hashlib.sha256(b"one").hexdigest(), "0" * 64
        self.copy_flow("{url: %s/a, sha256: %s}" % (self.server.url, bad))
        self.run_flow(code=1)
        self.assertIn(f"the download has the checksum {good}, and the flow expects {bad}",
                      self.berth("why", "flow-1/copy").out.decode())
        self.copy_flow("{url: %s/a, sha256: %s}" % (self.server.url, good))
        self.assertEqual(self.ran(self.run_flow()), ["copy"])
        asked = len(self.server.asked)
        self.server.put("/a", b"two")
        self.assertEqual(self.ran(self.run_flow()), [])
        self.copy_flow(f"'http://nowhere.invalid/mirror/a#sha256={good}'")
        self.assertEqual(self.ran(self.run_flow()), [], "the same file, wherever it is from")
        self.assertEqual(len(self.server.asked), asked)

    def test_a_cut_connection_goes_on_where_it_was(self):
        content = self.server.put("/big", NOISE)
        content.cut_after = [1 << 20, 1 << 20]
        self.copy_flow(f"{self.server.url}/big")
        self.run_flow()
        self.assertEqual((self.dir / "o").read_bytes(), NOISE)
        begins = [headers.get("Range") for _, _, headers in self.server.asked]
        self.assertEqual(begins, [None, f"bytes={1 << 20}-", f"bytes={2 << 20}-"])
        self.assertEqual(self.server.asked[1][2]["If-Range"], content.etag)

    def changed_meanwhile(self, **validators):
        """What is fetched of a file that changes, with the same validators, when the connection breaks in the middle."""
        other = NOISE[::-1]
        content = self.server.put("/big", NOISE, **validators)
        content.cut_after, content.body_after_cut = [1 << 20], other
        self.copy_flow(f"{self.server.url}/big")
        self.run_flow()
        self.assertEqual([headers.get("If-Range") for _, _, headers in self.server.asked], [None] * len(self.server.asked))
        return (self.dir / "o").read_bytes() == other

    def test_a_file_that_changes_within_its_second_is_not_joined_from_two_states(self):
        self.assertTrue(self.changed_meanwhile(etag=None, modified=time.time() + 2))

    def test_a_file_with_a_weak_etag_is_not_joined_from_two_states(self):
        self.assertTrue(self.changed_meanwhile(etag='W/"1"', modified=False))

    def test_a_file_without_validators_is_not_joined_from_two_states(self):
        self.assertTrue(self.changed_meanwhile(etag=None, modified=False))

    def test_an_old_date_continues_a_download(self):
        self.server.put("/big", NOISE, etag=None).cut_after = [1 << 20]
        self.copy_flow(f"{self.server.url}/big")
        self.run_flow()
        self.assertEqual((self.dir / "o").read_bytes(), NOISE)
        self.assertEqual([headers.get("Range") for _, _, headers in self.server.asked], [None, f"bytes={1 << 20}-"])

    def test_a_server_without_ranges_and_one_that_changes_meanwhile_begin_anew(self):
        self.server.put("/big", NOISE, ranges=False).cut_after = [1 << 20]
        self.copy_flow(f"{self.server.url}/big")
        self.run_flow()
        self.assertEqual((self.dir / "o").read_bytes(), NOISE)

    def test_killed_in_the_middle_it_goes_on(self):
        content = self.server.put("/big", NOISE)
        content.bytes_per_s = 1 << 20
        self.copy_flow(f"{self.server.url}/big")
        process = self.house.start("run", "flow.yaml")
        until(lambda: any(part.stat().st_size > 100_000 for part in (self.dir / "state/cache").glob("urls/*.part")),
              "some of it has come")
        process.kill()
        process.communicate()
        content.bytes_per_s = None
        asked = len(self.server.asked)
        self.berth("resume", "flow-1")
        self.assertEqual((self.dir / "o").read_bytes(), NOISE)
        self.assertEqual(self.server.methods(asked), ["GET"])
        self.assertRegex(self.server.asked[-1][2]["Range"], r"bytes=[1-9][0-9]{5,}-")
        self.assertEqual([path.name for path in (self.dir / "state/cache/urls").iterdir()
                          if path.suffix in (".part", ".begun")], [])

    def test_what_passes_is_tried_again_and_what_does_not_is_not(self):
        self.server.put("/a", b"one").statuses = [503, 500]
        self.copy_flow(f"{self.server.url}/a")
        self.run_flow()
        self.assertEqual(self.server.methods(), ["GET"] * 3)
        self.copy_flow(f"'{self.server.url}/none?key=secret'")
        finished = self.berth("run", "flow.yaml", code=1)
        self.assertIn(f"{self.server.url}/none?…: the server answers 404 Not Found", finished.err.decode())
        self.assertNotIn("secret", finished.err.decode())
        self.assertEqual(self.server.methods(3), ["GET"])

    def test_the_plan_has_sizes_and_fetches_nothing_and_check_asks_nobody(self):
        self.server.put("/big", NOISE)
        self.copy_flow(f"{self.server.url}/big")
        self.berth("check", "flow.yaml")
        self.assertEqual(self.server.methods(), [])
        plan = self.berth("run", "--plan", "flow.yaml").out.decode()
        self.assertIn(f"{self.server.url}/big: 3 MiB, would be downloaded\n", plan)
        self.assertIn(f"{self.server.url}/big has to be downloaded", plan)
        self.assertEqual(self.server.methods(), ["HEAD"])
        self.run_flow()
        plan = self.house.json("run", "--plan", "flow.yaml")
        self.assertEqual(plan["steps"][0]["urls"], [{"url": f"{self.server.url}/big", "size": len(NOISE),
                                                     "fetched": True}])
        self.assertEqual([plan["steps"][0][key] for key in ("cached", "run")], [1, 0])

    def test_a_long_fetch_is_told_of_holds_nobody_up_and_is_broken_off(self):
        self.server.put("/big", NOISE).bytes_per_s = 200_000
        self.copy_flow(f"{self.server.url}/big", "  other: {run: 'touch $TURN/other'}\n")
        process = self.house.start("run", "flow.yaml", env={"TURN": str(self.dir)})
        until((self.dir / "other").exists, "what does not take it in runs")
        err = []
        until(lambda: err.append(os.read(process.stderr.fileno(), 4096)) or b"waits: downloading " in b"".join(err),
              "the reason is told")
        until(lambda: "downloading http" in self.berth("why", "flow-1/copy").out.decode(), "why knows it")
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=20)
        self.assertLess(time.monotonic() - begun, 5)
        err = (b"".join(err) + rest).decode()
        self.assertEqual(process.returncode, 3, err)
        self.assertRegex(err, r"downloading http://127\.0\.0\.1:\d+/big \([0-9.]+ ?[kKM]\S* of 3 ?M\S*\)")

    def test_instances_have_their_own(self):
        for name in "ab":
            self.server.put(f"/{name}.txt", name.encode())
        sums = [hashlib.sha256(name).hexdigest() for name in (b"a", b"b")]
        self.write("sheet.csv", "id,url,sum\n" + "".join(
            f"{name},{self.server.url}/{name}.txt,{total}\n" for name, total in zip("ab", sums)))
        self.write("flow.yaml", "steps:\n  copy:\n    foreach: {row: {table: sheet.csv}}\n"
                                "    in: {x: {url: '{row.url}', sha256: '{row.sum}'}}\n"
                                "    run: cp {in.x} {out.o}\n    out: {o: '{key}.out'}\n")
        self.assertEqual(self.ran(self.run_flow()), ["copy/a", "copy/b"])
        self.assertEqual(self.read("b.out"), "b")

    def test_a_collection_keeps_what_was_used_lately(self):
        self.server.put("/a", NOISE)
        self.copy_flow(f"{self.server.url}/a")
        self.run_flow()
        self.berth("cache", "--collect", "--unused-for", "1d")
        self.berth("rm", "flow-1")
        self.berth("cache", "--collect", "--unused-for", "1d")
        self.copy_flow(f"{self.server.url}/a", "  also: {run: 'true'}\n")
        self.run_flow()
        self.assertIn("If-None-Match", self.server.asked[-1][2])
        self.berth("rm", "flow-2")
        self.berth("cache", "--collect", "--unused-for", "0s")
        self.assertFalse(list((self.dir / "state/cache/objects").glob("*/*")))
        self.run_flow()
        self.assertNotIn("If-None-Match", self.server.asked[-1][2])


class S3(Elsewhere):
    def setUp(self):
        super().setUp()
        self.s3 = S3Server({"AKIDTEST": "sEcr/et+key"}, "eu-west-3")
        self.addCleanup(self.s3.close)
        self.house.environment.update({"AWS_ENDPOINT_URL_S3": self.s3.url, "AWS_REGION": "eu-west-3",
                                       "AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "sEcr/et+key"})

    def test_an_object_is_fetched_signed_and_goes_on_where_it_was_cut_off(self):
        self.s3.put("/data/in put/ä+b=(1).bin", NOISE).cut_after = [1 << 20]
        self.copy_flow("'s3://data/in put/ä+b=(1).bin'")
        self.run_flow()
        self.assertEqual((self.dir / "o").read_bytes(), NOISE)
        self.assertEqual(self.s3.asked[1][2]["Range"], f"bytes={1 << 20}-")
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertIn("If-None-Match", self.s3.asked[-1][2])

    def test_an_object_that_changes_while_it_is_fetched_is_fetched_anew(self):
        content = self.s3.put("/data/x.bin", NOISE)
        content.cut_after = [1 << 20]
        self.copy_flow("s3://data/x.bin")
        plain_answer = self.s3.answer

        def answer(request, sent):
            if request.headers.get("If-Match"):
                self.s3.put("/data/x.bin", NOISE[::-1])
            plain_answer(request, sent)

        self.s3.answer = answer
        self.run_flow()
        self.assertEqual((self.dir / "o").read_bytes(), NOISE[::-1])

    def test_who_may_not_is_told_what_to_do(self):
        self.s3.put("/data/x", b"x")
        self.copy_flow("s3://data/x")
        for changes, words in (({"AWS_SECRET_ACCESS_KEY": "wrong"}, ["403 Forbidden", "SignatureDoesNotMatch", "key and secret are right"]),
                               ({"AWS_SECRET_ACCESS_KEY": ""}, ["403 Forbidden", "no credentials for AWS: set AWS_ACCESS_KEY_ID"]),
                               ({"AWS_ENDPOINT_URL_S3": "ftp://x"}, ["AWS_ENDPOINT_URL: expected https://HOST"])):
            finished = self.berth("run", "flow.yaml", env=changes, code=1)
            for word in ["s3://data/x", *words] if "expected" not in words[0] else words:
                self.assertIn(word, finished.err.decode())
            self.assertNotIn("sEcr/et", finished.err.decode())
        self.s3.secrets = {}
        self.house.environment["AWS_SECRET_ACCESS_KEY"] = ""
        self.run_flow()
        self.assertNotIn("Authorization", self.s3.asked[-1][2])

    FLOW = """steps:
  train:
    foreach: {s: [a, b]}
    run: 'echo {s} > {out.model}'
    out: {model: 's3://bucket/models/{key}.bin', log: 'log/{key}'}
  sum: {in: {m: train.model}, run: 'cat {in.m} > {out.all}', out: {all: all}}
"""

    def test_an_output_goes_to_s3_and_is_read_here(self):
        self.write("flow.yaml", self.FLOW.replace("> {out.model}", "> {out.model}; cp {out.model} {out.log}"))
        self.assertEqual(self.ran(self.run_flow()), ["sum", "train/a", "train/b"])
        self.assertEqual(self.s3.files["/bucket/models/a.bin"].body, b"a\n")
        self.assertEqual(self.s3.files["/bucket/models/a.bin"].meta["berth-sha256"], hashlib.sha256(b"a\n").hexdigest())
        self.assertEqual(self.read("all"), "a\nb\n")
        self.assertFalse((self.dir / "_s3").exists())
        asked = len(self.s3.asked)
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.s3.methods(asked), ["HEAD", "HEAD"])
        del self.s3.files["/bucket/models/a.bin"]
        self.s3.put("/bucket/models/b.bin", b"!\n")
        asked = len(self.s3.asked)
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(sorted(self.s3.methods(asked)), ["HEAD", "HEAD", "PUT", "PUT"])
        self.assertEqual(self.s3.files["/bucket/models/b.bin"].body, b"b\n")
        self.assert_tidy()

    def test_a_large_one_goes_in_parts_and_a_directory_file_by_file(self):
        self.write("flow.yaml", """steps:
  make:
    run: 'head -c 40000000 /dev/zero | tr "\\0" x > {out.big}; mkdir -p {out.d}/sub; echo 1 > {out.d}/one; echo 2 > {out.d}/sub/two'
    out: {big: s3://bucket/big, d: s3://bucket/some/dir/}
""")
        self.run_flow()
        self.assertEqual(hashlib.sha256(self.s3.files["/bucket/big"].body).digest(), hashlib.sha256(b"x" * 40_000_000).digest())
        self.assertEqual(len(self.s3.parts), 3)
        self.assertEqual(self.s3.files["/bucket/some/dir/sub/two"].body, b"2\n")
        asked = len(self.s3.asked)
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.s3.methods(asked), ["HEAD"] * 3)

    def test_an_upload_that_fails_fails_the_task_and_is_made_up_for_without_it(self):
        self.write("flow.yaml", "steps:\n  make:\n    run: 'echo x >> $TURN/ran; echo 1 > {out.o}'\n    out: {o: s3://bucket/o}\n")
        self.house.environment["TURN"] = str(self.dir)
        self.s3.refuse = {"PUT": 403}
        finished = self.berth("run", "flow.yaml", code=1)
        self.assertIn("out.o: s3://bucket/o: the server answers 403 Forbidden (AccessDenied: not today)", finished.err.decode())
        self.assertEqual(self.s3.methods(), ["HEAD", "PUT"])
        self.s3.refuse = {}
        self.assertEqual(self.ran(self.run_flow()), [])
        self.assertEqual(self.s3.files["/bucket/o"].body, b"1\n")
        self.assertEqual(self.read("ran"), "x\n")

    def test_only_takes_what_lies_there(self):
        self.write("flow.yaml", self.FLOW.replace("> {out.model}", "> {out.model}; cp {out.model} {out.log}"))
        self.run_flow()
        self.s3.put("/bucket/models/a.bin", b"other\n")
        self.run_flow("--only", "sum")
        self.assertEqual(self.read("all"), "other\nb\n")

    def test_what_another_step_uploads_is_named_by_that_step(self):
        self.write("flow.yaml", self.FLOW + "  late: {in: {m: 's3://bucket/models/a.bin'}, run: 'true'}\n")
        self.assertIn("is made by step train (out.model): write train.model",
                      self.berth("check", "flow.yaml", code=2).err.decode())

    @unittest.skipUnless(shutil.which("s3rver"), "no s3rver here (npm install -g s3rver)")
    def test_a_server_that_others_wrote(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen(["s3rver", "-d", self.dir / "s3", "-a", "127.0.0.1", "-p", str(port),
                                   "--configure-bucket", "bkt"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (server.kill(), server.communicate()))
        until(lambda: b"listening" in server.stdout.readline(), "it serves")
        self.house.environment.update({"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1",
                                       "AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": "S3RVER"})
        self.write("flow.yaml", """steps:
  make:
    run: 'head -c 40000000 /dev/urandom > {out.big}; cp {out.big} {out.here}; echo odd > {out.odd}'
    out: {big: s3://bkt/dir/big.bin, odd: 's3://bkt/a b/ä+(x)=é.txt', here: here}
""")
        self.run_flow()
        self.write("back.yaml", "steps:\n  back:\n    in: {b: s3://bkt/dir/big.bin, o: 's3://bkt/a b/ä+(x)=é.txt'}\n"
                                "    run: 'cp {in.b} {out.b}; cp {in.o} {out.o}'\n    out: {b: b, o: o}\n")
        self.run_flow(name="back.yaml")
        self.assertEqual((self.dir / "b").read_bytes(), (self.dir / "here").read_bytes())
        self.assertEqual(self.read("o"), "odd\n")
        self.assertEqual(self.ran(self.run_flow(name="back.yaml")), [])


if __name__ == "__main__":
    unittest.main()
