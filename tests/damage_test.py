#!/usr/bin/python3
"""Damaged stores: commands report the damage instead of a changed result, and berth doctor finds it."""

import json
import random
import shutil
import sqlite3
import struct
import unittest
from contextlib import closing

from berth_case import Case

PAGE = 4096
VERSION = 60  # of the schema, in the header of the file: https://sqlite.org/fileformat2.html
SWEEP = ("name: s\nrun: 'echo ::berth acc=0.{i}625 other={i}; test {i} != 30'\n"
         "params: {i: [LIST], word: [qwertyuiop]}\ngoal: {metric: acc}\n")


class Damage(Case):
    def setUp(self):
        super().setUp()
        self.database = self.house.state / "berth.db"

    def sweep(self, count=3):
        self.write("s.yaml", SWEEP.replace("LIST", ", ".join(map(str, range(10, 10 + count)))))
        self.house.run("run", "s.yaml")
        self.berth("run", "--name", "other", "--", "true")
        self.whole = self.database.read_bytes()

    def replace(self, old, new, count=None):
        """Changes bytes of the file, as a bad disk would."""
        self.assertEqual(len(old), len(new))
        self.assertGreaterEqual(self.whole.count(old), 1)
        self.database.write_bytes(self.whole.replace(old, new) if count is None else self.whole.replace(old, new, count))

    def refused(self, *command):
        """The one line in which a command reports the damage."""
        done = self.house.run(*command)
        self.assertIn(done.code, (2, 3), done)
        return self.one_line(done)

    def doctor(self):
        """What it says is to be done about the store."""
        done = self.house.run("doctor", "--offline", "--json")
        return [each for each in json.loads(done.out)["findings"] if each["topic"] == "state"
                and each["state"] == "to do" and "free on the volume" not in each["found"]]


class DamagedHeader(Damage):
    COMMANDS = (("runs",), ("show", "s-1"), ("run", "--", "true"))

    def test_a_negative_version_of_the_schema_is_reported(self):
        """negative_schema_segfault"""
        self.sweep()
        self.database.write_bytes(self.whole[:VERSION] + bytes([self.whole[VERSION] ^ 0x80]) + self.whole[VERSION + 1:])
        for command in self.COMMANDS:
            self.assertIn("the version of its schema is -", self.refused(*command))
        self.assertIn("the version of its schema", self.doctor()[0]["found"])

    def test_no_bit_of_the_version_ends_a_command_by_a_signal(self):
        self.sweep()
        version, = struct.unpack(">I", self.whole[VERSION:VERSION + 4])
        for bit in range(32):
            with self.subTest(bit=bit):
                self.database.write_bytes(self.whole[:VERSION] + struct.pack(">I", version ^ 1 << bit) + self.whole[VERSION + 4:])
                self.refused("runs")

    def test_extreme_numbers_in_the_header_are_reported(self):
        self.sweep()
        for at in (18, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 92, 96):  # its fields but for the page size
            for number in (0x7fffffff, 0x80000000, 0xffffffff):
                with self.subTest(at=at, number=number):
                    self.database.write_bytes(self.whole[:at] + struct.pack(">I", number) + self.whole[at + 4:])
                    done = self.house.run("--json", "runs")
                    self.assertIn(done.code, (0, 2, 3), done)
                    if done.code:
                        self.one_line(done)

    def test_negative_counts_and_epochs_are_reported(self):
        self.sweep()
        with closing(sqlite3.connect(self.database)) as store:
            store.execute("PRAGMA ignore_check_constraints = ON")
            store.execute("UPDATE run SET done = -5, epoch = -1 WHERE name = 's-1'")
            store.commit()
        self.assertIn("has a count of -", self.refused("show", "s-1"))


class AChangedCharacter(Damage):
    def check_is_reported(self, old, new, *command):
        self.replace(old, new)
        reported = self.refused(*command)
        self.assertIn("is not what Berth wrote", reported)
        self.assertIn("berth doctor", reported)
        return reported

    def test_in_a_parameter(self):
        self.sweep()
        reported = self.check_is_reported(b"qwertyuiop", b"qwertyuioq", "--json", "show", "s-1")
        self.assertRegex(reported, "the (specification of run|parameters of task) 1 ")

    def test_in_the_parameters_of_one_task(self):
        self.sweep()
        old = b'{"i":"11","word":"qwertyuiop"}'
        reported = self.check_is_reported(old, old.replace(b"11", b"21"), "show", "s-1")
        self.assertIn("the parameters of task 2 ", reported)

    def test_in_the_value_of_a_metric(self):
        self.sweep()
        self.replace(struct.pack(">d", 0.11625), struct.pack(">d", 0.99625))
        self.assertIn("a metric of task 2 is not", self.refused("show", "s-1"))
        self.assertIn("s-1: ", self.doctor()[0]["found"])

    def test_in_the_name_of_a_metric(self):
        self.sweep()
        self.replace(b"acc" + struct.pack(">d", 0.11625), b"abc" + struct.pack(">d", 0.11625))
        self.assertIn("a metric of task 2 is not", self.refused("show", "s-1"))

    def test_in_the_name_of_a_run(self):
        self.sweep()
        self.replace(b"s-1experiment", b"t-1experiment")
        self.assertIn("the name of run t-1 is not", self.refused("runs"))

    def test_in_the_output_of_a_failed_attempt(self):
        self.write("t.yaml", "name: t\nrun: sleep 60\nparams: {i: [1]}\ntimeout: 100ms\n")
        self.house.run("run", "t.yaml")
        self.whole = self.database.read_bytes()
        self.check_is_reported(b"it ran longer than", b"it ran shorter tha", "why", "t-1/1")

    def test_other_runs_are_not_affected_and_the_damaged_one_can_be_removed(self):
        self.sweep()
        old = b'{"i":"11","word":"qwertyuiop"}'
        self.replace(old, old.replace(b"11", b"21"))
        self.assertIn(b"s-1", self.berth("runs").out)
        self.berth("show", "other-1")
        self.berth("run", "--", "true")
        damage, = self.doctor()
        self.assertIn("s-1: ", damage["found"])
        self.assertIn("the parameters of task 2", damage["found"])
        self.assertIn("berth rm s-1", damage["advice"])
        self.berth("rm", "s-1")
        self.assertEqual(self.doctor(), [])

    def test_in_a_cached_result_the_task_runs_again(self):
        self.write("f.yaml", "name: f\nsteps:\n  a: {run: 'echo x >> %s/ran; echo yes > {out.y}', out: {y: y.txt}}\n" % self.dir)
        self.berth("run", "f.yaml")
        self.whole = self.database.read_bytes()
        self.replace(b"f-1/a", b"g-1/a")
        self.assertIn("the cached result", self.doctor()[0]["found"])
        self.berth("run", "f.yaml")
        self.assertEqual(((self.dir / "ran").read_text(), (self.dir / "y.txt").read_text()), ("x\nx\n", "yes\n"))
        self.assertEqual(self.doctor(), [])
        self.berth("run", "f.yaml")
        self.assertEqual((self.dir / "ran").read_text(), "x\nx\n", "it is cached again")


class ExchangedPages(Damage):
    def outputs(self):
        return [(done.code, done.out) for done in (self.house.run("--json", *command) for command in
                (("runs",), ("show", "s-1"), ("why", "s-1/17"), ("best", "s-1")))]

    def test_no_output_changes_silently(self):
        self.sweep(80)
        before = self.outputs()
        pages = len(self.whole) // PAGE
        pairs = random.Random(7).sample([(a, b) for b in range(1, pages) for a in range(1, b)], 12)
        for a, b in pairs:
            with self.subTest(a=a, b=b):
                changed = bytearray(self.whole)
                changed[a * PAGE:(a + 1) * PAGE] = self.whole[b * PAGE:(b + 1) * PAGE]
                changed[b * PAGE:(b + 1) * PAGE] = self.whole[a * PAGE:(a + 1) * PAGE]
                self.database.write_bytes(changed)
                for (code, out), expected in zip(self.outputs(), before):
                    self.assertTrue(code in (2, 3) or (code, out) == expected, (code, out, expected))
                self.assertTrue(self.doctor())


class StoresWithoutSums(Damage):
    def test_rows_of_an_earlier_berth_are_read_as_they_are(self):
        self.sweep()
        before = self.house.json("show", "s-1")
        with closing(sqlite3.connect(self.database)) as store:
            for table, column in store.execute("SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
                                               " WHERE c.name GLOB '*_sum'").fetchall():
                store.execute(f"UPDATE {table} SET {column} = NULL")
            store.commit()
        self.assertEqual(self.house.json("show", "s-1"), before)
        self.assertEqual(self.doctor(), [])

    def test_a_whole_store_is_found_whole(self):
        self.sweep()
        self.assertEqual(self.doctor(), [])
        self.assertIn(b"no damage in 2 runs with 4 tasks", self.house.run("doctor", "--offline").out)


if __name__ == "__main__":
    unittest.main()
