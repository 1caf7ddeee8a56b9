#!/usr/bin/python3
"""The commands a person types, end to end: what they print where, and how they exit."""

import json
import os
import signal
import time
import unittest

from berth_case import Case, alive, numbers, until

SWEEP = """
name: sweep
run: 'echo "::berth score={x}.5 loss=1"; echo "at {x}" >&2; test {x} != 3'
params: {x: [1, 2, 3, 4], tag: [a b]}
goal: {metric: score, direction: max}
"""


class RunOfACommand(Case):
    def test_output_passes_through_each_stream_to_its_own(self):
        done = self.berth("run", "--", "sh", "-c", "echo to out; echo to err >&2")
        self.assertEqual((done.out, done.err), (b"to out\n", b"to err\n"))

    def test_exit_codes(self):
        self.assertIn(b"exit 7", self.berth("run", "--", "sh", "-c", "exit 7", code=7).err)
        self.assertIn(b"Terminated", self.berth("run", "--", "sh", "-c", "kill $$", code=143).err)
        self.berth("run", "--", "no-such-program-anywhere", code=2)
        self.berth("run", code=2)
        self.assertEqual([run["state"] for run in self.house.json("runs")["runs"]], ["failed"] * 2)

    def test_arguments_reach_the_command_as_they_were(self):
        hostile = ["a b", "", "'", '"', "$(id)", ";", "\n", "{x}", "-v", "--json", "ü", "\\"]
        done = self.berth("run", "--", "printf", "[%s]", *hostile)
        self.assertEqual(done.out.decode(), "".join(f"[{word}]" for word in hostile))

    def test_directory_and_environment_are_the_callers(self):
        (self.dir / "sub").mkdir()
        done = self.berth("run", "--", "sh", "-c", "pwd; echo $COLOUR", cwd=self.dir / "sub",
                          env={"COLOUR": "teal"})
        self.assertEqual(done.out.decode(), f"{os.path.realpath(self.dir)}/sub\nteal\n")

    def test_a_reader_that_leaves_does_not_fail_the_run(self):
        for command in ("seq 1 200000", "echo first; sleep 0.2; echo second"):
            process = self.house.start("run", "--name", "piped", "--", "sh", "-c", command)
            process.stdout.readline()
            process.stdout.close()
            process.stdout = None
            self.assertEqual(process.wait(20), 0, process.stderr.read())
        for run in self.house.json("runs")["runs"]:
            self.assertEqual(run["counts"]["done"], 1)

    def test_streams_may_be_closed(self):
        shell = 'exec >/dev/null; exec "$0" run -- echo hi {}'
        for closed in (">&-", "2>&-", "<&-", "<&- >&- 2>&-"):
            pid = os.posix_spawn("/bin/sh", ["sh", "-c", shell.format(closed), self.house.berth],
                                 self.house.environment)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, closed)
        self.assertEqual(self.berth("logs", "echo-3").out, b"hi\n")


class RunOfAFile(Case):
    def test_results_on_stdout_and_progress_on_stderr(self):
        self.write("sweep.yaml", SWEEP)
        done = self.berth("run", "sweep.yaml", code=1)
        lines = done.out.decode().split("\n")
        self.assertEqual(lines[0].split(), "task x tag score loss time state".split())
        self.assertEqual([line.split()[0] for line in lines[1:5]], ["4", "2", "1", "3"])
        self.assertEqual(lines[5], "sweep-1/3 failed: exit 1")
        self.assertEqual(lines[-3], "sweep-1  failed: 3 done, 1 failed")
        self.assertTrue(lines[-2].startswith("best sweep-1/4  score 4.5  x 4  tag a b"), lines[-2])
        self.assertIn(b"sweep-1/3 failed: exit 1", done.err)
        self.assertNotIn(b"at 1", done.out + done.err)

    def test_from_a_pipe(self):
        read, write = os.pipe()
        os.write(write, b"name: piped\nrun: [pwd]\n")
        os.close(write)
        self.berth("run", f"/dev/fd/{read}", pass_fds=(read,))
        os.close(read)
        self.assertEqual(self.berth("logs", "piped-1/1").out.decode(), os.path.realpath(self.dir) + "\n")

    def test_progress_is_told_once(self):
        self.write("sweep.yaml", SWEEP)
        lines = self.berth("run", "sweep.yaml", code=1).err.decode().splitlines()
        self.assertEqual(len([line for line in lines if " 4/4 " in line]), 1, lines)

    def test_json_is_the_whole_of_stdout(self):
        self.write("sweep.yaml", SWEEP)
        document = json.loads(self.berth("--json", "run", "sweep.yaml", code=1).out)
        self.assertEqual(document, self.house.json("show", "sweep-1"))
        command = self.house.json("run", "--", "echo", "hi")
        self.assertEqual(command["tasks"][0]["id"], "echo-1/1")

    def test_shapes(self):
        self.write("sweep.yaml", SWEEP)
        self.berth("run", "sweep.yaml", code=1)
        self.berth("run", "--cpu", "0.5", "--mem", "100M", "--", "sh", "-c", "exit 3", code=3)
        runs = self.house.json("runs")["runs"]
        self.assertEqual([run["id"] for run in runs], ["sweep-1", "sh-1"])  # oldest first
        for run in runs:
            self.assertLessEqual({"id", "name", "state", "created", "counts"}, set(run))
            self.assertEqual(set(run["counts"]),
                             {"waiting", "running", "done", "cached", "skipped", "failed", "stopped"})
            self.assertEqual(sum(run["counts"].values()), len(self.house.tasks(run["id"])))
        shown = self.house.json("show", "sweep-1")
        self.assertEqual(shown["run"], runs[0])
        keys = {"id", "state", "attempts", "exit_code", "cause", "cached", "params", "metrics",
                "started", "ended", "resources", "devices", "host"}
        for number, task in enumerate(shown["tasks"], 1):
            self.assertLessEqual(keys, set(task))
            self.assertEqual(task["id"], f"sweep-1/{number}")
            self.assertEqual(task["params"], {"x": number, "tag": "a b"})
            self.assertEqual(task["metrics"], {"score": number + 0.5, "loss": 1})
            self.assertEqual((task["state"], task["exit_code"], task["attempts"]),
                             ("failed", 1, 1) if number == 3 else ("done", 0, 1))
        self.assertLessEqual(shown["tasks"][3].items(), self.house.json("best", "sweep-1").items())
        why = self.house.json("why", "sh-1/1")
        self.assertEqual(why["resources"], {"cpu": 0.5, "mem": 100_000_000})
        self.assertEqual([(a["number"], a["exit_code"], a["cause"]) for a in why["attempts_made"]],
                         [(1, 3, "exit 3")])

    def test_machine_shape(self):
        machine = self.house.json("machine")
        for key in ("total", "free", "held", "holders", "waiting", "enforced", "cores", "notes"):
            self.assertIn(key, machine)
        self.assertEqual(machine["total"], machine["free"])
        self.assertEqual(machine["total"]["cpu"], len(os.sched_getaffinity(0)))
        process = self.house.start("run", "--cpu", "0.25", "--mem", "64MiB", "--", "sleep", "60")
        held = until(lambda: self.house.json("machine")["holders"], "a holder")
        self.assertEqual((held[0]["label"], held[0]["resources"]),
                         ("sleep-1", {"cpu": 0.25, "mem": 64 << 20}))
        self.assertTrue(alive(held[0]["pid"]))  # berth, or by now its agent
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        self.assert_tidy()

    def test_ids_are_never_reissued_and_names_count_apart(self):
        for _ in range(2):
            self.berth("run", "--name", "a", "--", "true")
        self.berth("run", "--name", "b", "--", "true")
        self.assertEqual([run["id"] for run in self.house.json("runs")["runs"]],
                         ["a-1", "a-2", "b-1"])

    def test_metrics_keep_the_last_value_of_each(self):
        self.write("m.yaml", "run: |\n  printf 'noise\\n::berth a=1 b=-2e3\\r\\n::berth a=0.25'\n"
                             "  echo '::berth b=7' >&2\n")
        self.berth("run", "m.yaml")
        self.assertEqual(self.house.tasks("m-1")[0]["metrics"], {"a": 0.25, "b": -2000})

    def test_an_unreadable_metric_is_told_and_harmless(self):
        self.write("m.yaml", "run: |\n  echo '::berth a=1 b=banana =3 c'\n")
        self.berth("run", "m.yaml")
        self.assertEqual(self.house.tasks("m-1")[0]["metrics"], {"a": 1})
        self.assertIn("banana", self.house.json("why", "m-1/1")["attempts_made"][0]["detail"])


class Logs(Case):
    def test_of_a_task_whole_of_a_run_labelled(self):
        self.write("sweep.yaml", SWEEP)
        self.berth("run", "sweep.yaml", code=1)
        self.assertEqual(self.berth("logs", "sweep-1/2").out, b"::berth score=2.5 loss=1\n")
        self.assertEqual(self.berth("logs", "sweep-1/2").err, b"at 2\n")
        lines = self.berth("logs", "sweep-1").err.decode().splitlines()
        self.assertEqual(sorted(lines), [f"[{x}] at {x}" for x in (1, 2, 3, 4)])

    def test_bytes_are_kept(self):
        every = bytes(range(256)) * 40
        self.write("bytes", every + b"no newline at the end")
        done = self.berth("run", "--", "cat", "bytes")
        self.assertEqual(done.out, every + b"no newline at the end")
        self.assertEqual(self.berth("logs", "cat-1").out, done.out)

    def test_of_fifty_megabytes(self):
        big = os.urandom(1 << 20) * 50
        self.write("big", big)
        out = self.dir / "out"
        with out.open("wb") as file:
            self.berth("run", "--", "cat", "big", out=file)
        self.assertEqual(out.read_bytes(), big)
        with out.open("wb") as file:
            self.berth("logs", "cat-1/1", out=file)
        self.assertEqual(out.read_bytes(), big)

    def test_of_a_thousand_small_ones(self):
        self.write("many.yaml", "run: [printf, 'out %s;', '{i}']\n"
                                "params: {i: {min: 1, max: 1000, type: int}}\n")
        self.berth("run", "many.yaml")
        lines = self.berth("logs", "many-1").out.decode().splitlines()
        self.assertEqual(sorted(lines), sorted(f"[{i}] out {i};" for i in range(1, 1001)))
        for i in (1, 500, 1000):
            self.assertEqual(self.berth("logs", f"many-1/{i}").out, f"out {i};".encode())

    def test_followed_live(self):
        go = self.dir / "go"
        os.mkfifo(go)
        process = self.house.start("run", "--", "sh", "-c", f"echo early; cat {go}; echo late")
        until(lambda: b"early" in self.house.run("logs", "sh-1").out, "output before the end")
        follower = self.house.start("logs", "-f", "sh-1")
        self.assertEqual(follower.stdout.readline(), b"early\n")
        self.assertIsNone(process.poll())
        go.write_text("")
        self.assertEqual(follower.communicate(timeout=20)[0], b"late\n")
        self.assertEqual((follower.returncode, process.wait(20)), (0, 0))


class Failures(Case):
    def test_retries_until_it_works(self):
        self.write("r.yaml", f"run: echo x >> {self.dir}/tries; test $(wc -l < {self.dir}/tries) -ge 3\n"
                             "retries: 5\n")
        self.berth("run", "r.yaml")
        why = self.house.json("why", "r-1/1")
        self.assertEqual((why["state"], why["attempts"]), ("done", 3))
        self.assertEqual([a["cause"] for a in why["attempts_made"]], ["exit 1", "exit 1", "ok"])
        self.assertEqual(len({a["token"] for a in why["attempts_made"]}), 3)

    def test_retries_end(self):
        self.berth("run", "--retries", "2", "--", "false", code=1)
        task = self.house.tasks("false-1")[0]
        self.assertEqual((task["state"], task["attempts"], task["exit_code"]), ("failed", 3, 1))

    def test_continue_and_stop(self):
        text = "run: test {i} != 2\nparams: {i: [1, 2, 3, 4, 5, 6]}\nparallel: 1\non_failure: "
        self.write("go.yaml", text + "continue\n")
        self.berth("run", "go.yaml", code=1)
        self.assertEqual(self.house.counts("go-1")["done"], 5)
        self.write("halt.yaml", text + "stop\n")
        self.berth("run", "halt.yaml", code=1)
        counts = self.house.counts("halt-1")
        self.assertEqual((counts["done"], counts["failed"]), (1, 1))
        self.assertEqual(sum(counts.values()), 6)
        self.assertEqual(counts["running"], 0)

    def test_continue_fails_when_all_failed(self):
        self.write("all.yaml", "run: exit {i}\nparams: {i: [1, 2]}\n")
        self.berth("run", "all.yaml", code=1)

    def test_a_program_that_cannot_start_does_not_use_up_retries(self):
        self.write("x.yaml", "run: ['{program}']\nretries: 3\nparams: {program: [./gone, ./data, 'true']}\n")
        self.write("data", "no program\n")
        self.berth("run", "x.yaml", code=1)
        tasks = self.house.tasks("x-1")
        self.assertEqual([(t["state"], t["attempts"]) for t in tasks],
                         [("failed", 1), ("failed", 1), ("done", 1)])
        self.assertIn("chmod", self.house.json("why", "x-1/2")["attempts_made"][0]["detail"])


class Stopping(Case):
    def setUp(self):
        super().setUp()
        self.write("slow.yaml", "run: echo $$ >> pids; test -e go || exec sleep 60\n"
                                "params: {i: [1, 2, 3, 4]}\nparallel: 1\n")

    def running(self):
        process = self.house.start("run", "slow.yaml")
        before = len(numbers(self.dir / "pids"))
        until(lambda: len(numbers(self.dir / "pids")) > before, "a task that runs")
        return process

    def finish(self):
        self.write("go", "")
        self.berth("resume", "slow-1")
        self.assertEqual(self.house.counts("slow-1")["done"], 4)
        self.assert_tidy()

    def test_ctrl_c_says_how_to_go_on(self):
        process = self.running()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=20)[1]
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"berth resume slow-1\n", err)
        self.assertFalse(alive(numbers(self.dir / "pids")[0]))
        shown = self.house.json("show", "slow-1")
        self.assertEqual((shown["run"]["state"], shown["run"]["counts"]["stopped"]), ("stopped", 4))
        self.finish()

    def test_stop_from_another_process(self):
        process = self.running()
        self.berth("stop", "slow-1")
        self.assertEqual(self.house.json("show", "slow-1")["run"]["state"], "stopped")
        self.assertEqual(process.wait(20), 3)
        self.assertIn(b"stopped", self.berth("stop", "slow-1").err)
        self.finish()

    def test_ctrl_c_twice_does_not_wait_for_the_deaf(self):
        self.write("slow.yaml", "run: |\n  trap '' TERM\n  echo $$ >> pids\n  while :; do sleep 60; done\ngrace: 1h\n")
        process = self.running()
        process.send_signal(signal.SIGINT)
        self.assertIn(b"press again", process.stderr.readline())
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        self.assert_tidy()

    def test_ctrl_c_while_nobody_reads_the_output(self):
        process = self.house.start("run", "--", "yes")
        process.stdout.read(1 << 16)
        time.sleep(0.2)  # until the pipe is full
        process.send_signal(signal.SIGINT)
        until(lambda: self.house.json("runs")["runs"][0]["state"] == "stopped", "the stop")

    def test_a_hangup_leaves_it_running(self):
        process = self.running()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)  # for a death that must not come
        self.assertIsNone(process.poll())
        until(lambda: self.house.json("runs")["runs"][0]["state"] == "running", "the store says that it runs")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 3)
        self.finish()

    def test_only_one_runner(self):
        process = self.running()
        refused = self.berth("resume", "slow-1", code=3)
        self.assertIn(str(process.pid), self.one_line(refused))
        self.assertIsNone(process.poll())
        self.assertTrue(alive(numbers(self.dir / "pids")[0]))

    def test_resume_of_a_finished_run_says_so(self):
        self.berth("run", "--", "true")
        self.assertIn(b"finished", self.berth("resume", "true-1").err)
        self.assertEqual(self.house.tasks("true-1")[0]["attempts"], 1)

    def test_overview(self):
        self.assertIn(b"Nothing has run yet", self.berth().out)
        self.running()
        self.assertIn(b"slow-1", self.berth().out)
        self.assertEqual([run["id"] for run in self.house.json()["runs"]], ["slow-1"])


if __name__ == "__main__":
    unittest.main()
