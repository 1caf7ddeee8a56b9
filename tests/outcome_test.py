#!/usr/bin/python3
"""The state in which a run ends, the exit code that says so, and why."""

import json
import os
import signal
import sqlite3
import subprocess
import unittest

from berth_case import Case, until

SWEEP = "name: s\nrun: exit {i}\nparams: {i: [0, 7]}\n"
FLOW = ("name: f\nsteps:\n  a: {foreach: {n: [0, 7]}, run: 'exit {n}'}\n"
        "  b: {needs: [a], run: 'true'}\n  c: {run: 'true'}\n")


class Outcome(Case):
    def shown(self, run):
        return self.house.json("show", run)["run"]

    def state(self, run):
        return self.shown(run)["state"]

    def hold(self, name="slow.yaml", more=""):
        self.write(name, f"name: slow\nrun: echo x > held; while [ ! -e go ]; do sleep 0.02; done\n{more}")
        return name

    def started(self, *arguments):
        process = self.house.start("run", *arguments)
        until((self.dir / "held").exists, "a task runs")
        return process


class AFailedTrialFailsTheSweep(Outcome):
    """sweep_failures_exit_0: also after `wait`, `resume` and in JSON."""

    def test_run_wait_and_resume_return_1(self):
        self.write("s.yaml", SWEEP)
        out = self.berth("run", "s.yaml", code=1).out.decode()
        self.assertIn("s-1  failed: 1 done, 1 failed\n", out)
        self.assertIn(b"s-1  failed: 1 done, 1 failed", self.berth("wait", "s-1", code=1).out)
        self.assertIn(b"s-1 is finished already: failed", self.berth("resume", "s-1", code=1).err)
        self.assertEqual((self.state("s-1"), self.house.json("runs")["runs"][0]["state"]), ("failed", "failed"))
        shown = json.loads(self.berth("--json", "run", "s.yaml", code=1).out)
        self.assertEqual(shown["failures"][0]["cause"], "exit 7")

    def test_the_best_trial_is_shown_all_the_same(self):
        self.write("s.yaml", "name: s\nrun: 'test {i} != 2 && echo ::berth acc={i}'\nparams: {i: [1, 2, 3]}\ngoal: {metric: acc}\n")
        out = self.berth("run", "s.yaml", code=1).out.decode()
        self.assertRegex(out, r"failed: 2 done, 1 failed[^\n]*\nbest[^\n]*acc")
        self.assertEqual(self.house.json("best", "s-1")["id"], "s-1/3")

    def test_retry_returns_the_code_of_the_new_outcome(self):
        self.write("s.yaml", "name: s\nrun: test -e {f}\nparams: {f: [s.yaml, there]}\n")
        self.berth("run", "s.yaml", code=1)
        self.berth("retry", "s-1", code=1)
        self.write("there", "")
        self.berth("retry", "s-1")
        self.assertEqual(self.state("s-1"), "done")

    def test_a_trial_that_needed_a_second_attempt_is_no_failure(self):
        self.write("s.yaml", "name: s\nrun: test -e {i} || ! touch {i}\nparams: {i: [1, 2]}\nretries: 1\n")
        self.berth("run", "s.yaml")

    def test_a_trial_that_early_stopping_ended_is_no_failure(self):
        self.write("s.yaml", "name: s\nparallel: 1\nparams: {i: [9, 8, 7, 6, 1]}\ngoal: {metric: acc}\n"
                   "early_stop: {policy: median, warmup: 1}\n"
                   "run: 'for e in 1 2 3 4; do echo ::berth acc={i}; sleep 0.05; done'\n")
        self.berth("run", "s.yaml")
        self.assertEqual(self.house.counts("s-1")["done"], 5)

    def test_a_sweep_that_stops_at_the_first_failure_returns_1(self):
        self.write("s.yaml", SWEEP.replace("[0, 7]", "[7, 0, 0]") + "parallel: 1\non_failure: stop\n")
        self.berth("run", "s.yaml", code=1)
        self.assertEqual(self.house.counts("s-1")["waiting"], 2)

    def test_a_detached_sweep_that_failed_returns_1_from_wait(self):
        self.write("s.yaml", SWEEP)
        run = self.berth("run", "--detach", "s.yaml").out.decode().strip()
        self.berth("wait", run, code=1)

    def test_an_external_proposer_gets_the_same_code(self):
        self.script("mine", "#!/bin/sh\nn=0\nwhile read line; do case $line in *ask*) n=$((n+1)); if [ $n -gt 2 ]; "
                    "then echo '{\"done\":true}'; else echo \"{\\\"params\\\":{\\\"i\\\":\\\"$n\\\"}}\"; fi;; esac; done\n")
        self.write("s.yaml", "name: s\nparams: {i: [1, 2]}\nsearch: {method: external, run: ./mine, samples: 2}\n"
                   "goal: {metric: acc}\nrun: 'test {i} = 1 && echo ::berth acc=1'\n")
        self.berth("run", "s.yaml", code=1)


class AllowedFailures(Outcome):
    def test_any_number(self):
        self.write("s.yaml", SWEEP)
        out = self.berth("run", "--allow-failures", "s.yaml").out
        self.assertIn(b"s-1  done: 1 done, 1 failed\n", out)
        self.berth("wait", "s-1")
        self.berth("resume", "s-1")
        self.assertEqual(self.state("s-1"), "done")

    def test_at_most_so_many(self):
        self.write("s.yaml", "name: s\nrun: exit {i}\nparams: {i: [0, 1, 2]}\n")
        self.berth("run", "--allow-failures=2", "s.yaml")
        self.berth("run", "--allow-failures=1", "s.yaml", code=1)

    def test_all_may_fail_where_any_number_may(self):
        self.write("s.yaml", "name: s\nrun: exit {i}\nparams: {i: [1, 2]}\nallow_failures: true\n")
        self.berth("run", "s.yaml")

    def test_the_option_beats_the_file(self):
        self.write("s.yaml", SWEEP + "allow_failures: 1\n")
        self.berth("run", "s.yaml")
        self.berth("run", "--allow-failures=0", "s.yaml", code=1)

    def test_wrong_values_are_refused(self):
        for value in ("-1", "1.5", "some", "2000000"):
            self.write("s.yaml", SWEEP + f"allow_failures: {value}\n")
            self.assertIn("s.yaml:4: allow_failures: expected a number", self.one_line(self.berth("run", "s.yaml", code=2)))
            self.assertIn("--allow-failures: ", self.one_line(
                self.berth("run", f"--allow-failures={value}", "--", "true", code=2)))

    def test_on_failure_stop_stops_after_more_than_allowed(self):
        self.write("s.yaml", "name: s\nrun: exit {i}\nparams: {i: [1, 2, 3, 4]}\nparallel: 1\non_failure: stop\nallow_failures: 1\n")
        self.berth("run", "s.yaml", code=1)
        counts = self.house.counts("s-1")
        self.assertEqual((counts["failed"], counts["waiting"]), (2, 2))

    def test_a_flow_skips_what_waits_for_an_allowed_failure(self):
        self.write("f.yaml", FLOW + "allow_failures: 1\n")
        out = self.berth("run", "f.yaml").out.decode()
        self.assertIn("f-1  done: 2 done, 1 skipped, 1 failed\n", out)
        self.assertIn("a task that it waits for failed", self.house.json("why", "f-1/b")["because"][0])
        self.assertEqual((self.state("f-1"), self.berth("resume", "f-1").code), ("done", 0))

    def test_a_retry_runs_what_an_allowed_failure_skipped(self):
        self.write("f.yaml", f"name: f\nallow_failures: true\nsteps:\n  a: {{run: test -e {self.dir}/there}}\n"
                   f"  b: {{needs: [a], run: touch {self.dir}/made}}\n")
        self.berth("run", "f.yaml")
        self.write("there", "")
        self.berth("retry", "f-1")
        self.assertEqual(self.house.counts("f-1")["done"], 2)
        self.assertTrue((self.dir / "made").exists())

    def test_a_flow_without_it_fails_and_its_dependents_do_not_count(self):
        self.write("f.yaml", FLOW)
        out = self.berth("run", "f.yaml", code=1).out.decode()
        self.assertIn("f-1  failed: 2 done, 1 failed, 1 waiting\n", out)
        self.berth("run", "--allow-failures=1", "f.yaml")


class ACommandReturnsItsOwnCode(Outcome):
    def test_exit_codes(self):
        for code in (1, 2, 3, 7, 130, 255):
            self.berth("run", "--name", "c", "--", "sh", "-c", f"exit {code}", code=code)
        self.berth("wait", "c-4", code=7)
        self.berth("resume", "c-4", code=7)
        self.berth("retry", "c-4", code=7)
        shown = json.loads(self.berth("--json", "run", "--", "sh", "-c", "exit 3", code=3).out)
        self.assertEqual((shown["run"]["state"], shown["tasks"][0]["cause"]), ("failed", "exit 3"))

    def test_a_signal_is_128_and_its_number(self):
        self.berth("run", "--", "sh", "-c", "kill -TERM $$", code=143)
        self.berth("run", "--", "sh", "-c", "kill -SEGV $$", code=139)

    def test_its_time_limit_is_124(self):
        self.berth("run", "--timeout", "50ms", "--", "sleep", "60", code=124)

    def test_the_last_attempt_counts(self):
        command = "echo x >> n; exit $(( 10 + $(wc -l < n) ))"
        self.berth("run", "--retries", "1", "--", "sh", "-c", command, code=12)

    def test_a_detached_one_tells_it_to_wait(self):
        run = self.berth("run", "--detach", "--", "sh", "-c", "exit 9").out.decode().strip()
        self.berth("wait", run, code=9)

    def test_what_cannot_be_run_is_berths_own_error(self):
        self.berth("run", "--", "./nothing", code=2)
        self.berth("run", "--cpu", 10000, "--", "true", code=3)


class AStoppedRun(Outcome):
    def test_ctrl_c_is_130_also_for_wait(self):
        process = self.started(self.hold())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 130)
        self.berth("wait", "slow-1", code=130)
        self.assertEqual(self.shown("slow-1")["result"]["stopped_by"], "interrupt")
        self.assertIn("Ctrl-C stopped it", self.house.json("why", "slow-1")["why"])

    def test_stopped_by_another_process_is_3(self):
        process = self.started(self.hold())
        self.berth("stop", "slow-1")
        self.assertEqual(process.wait(20), 3)
        self.berth("wait", "slow-1", code=3)
        self.assertEqual(self.shown("slow-1")["result"]["stopped_by"], "request")

    def test_a_run_of_a_dead_runner_that_is_stopped_is_3(self):
        process = self.started(self.hold())
        process.kill()
        process.wait()
        self.berth("wait", "slow-1", code=3)
        self.berth("stop", "slow-1")
        self.berth("wait", "slow-1", code=3)
        self.assertEqual(self.state("slow-1"), "stopped")


class ARunWithoutAnAllocationIsQueued(Outcome):
    def setUp(self):
        super().setUp()
        cores = self.house.json("machine")["total"]["cpu"]
        self.hold("hold.yaml", f"resources: {{cpu: {cores}}}\n")
        self.holder = self.started("hold.yaml")
        self.write("w.yaml", "name: w\nrun: 'true'\nparams: {i: [1, 2]}\n")

    def states(self, run):
        metrics = self.berth("metrics").out.decode()
        return (self.state(run), {each["id"]: each["state"] for each in self.house.json("runs")["runs"]}[run],
                'berth_runs{state="queued"} 1\n' in metrics)

    def test_everywhere(self):
        waiter = self.house.start("run", "w.yaml")
        until(lambda: self.house.json("machine")["waiting"], "it waits")
        self.assertEqual(self.states("w-1"), ("queued", "queued", True))
        self.assertIsNone(self.shown("w-1")["started"])
        self.assertIn(b"w-1", self.berth().out)
        why = self.berth("why", "w-1").out.decode()
        self.assertRegex(why, r"\Aw-1: queued: 2 waiting\n  it has not had an allocation yet\n  2 waiting: cpu")
        self.assertIn("is running", self.one_line(self.berth("rm", "w-1", code=3)))
        self.write("go", "")
        self.assertEqual(waiter.wait(20), 0)
        self.assertEqual((self.state("w-1"), self.holder.wait(20)), ("done", 0))

    def test_it_can_be_stopped_and_is_queued_again_when_resumed(self):
        waiter = self.house.start("run", "w.yaml")
        until(lambda: self.house.json("machine")["waiting"], "it waits")
        self.berth("stop", "w-1")
        self.assertEqual(waiter.wait(20), 3)
        self.assertEqual(self.state("w-1"), "stopped")
        self.berth("resume", "--detach", "w-1")
        until(lambda: self.house.json("machine")["waiting"], "it waits")
        self.assertEqual(self.state("w-1"), "queued")
        self.write("go", "")
        self.berth("wait", "w-1")

    def test_one_that_has_run_and_waits_again_is_running(self):
        self.write("go", "")
        self.holder.wait(20)
        os.remove(self.dir / "go")
        os.remove(self.dir / "held")
        first = self.started("hold.yaml")
        self.berth("stop", "slow-2")
        first.wait(20)
        other = self.house.start("run", "hold.yaml")
        until(lambda: self.house.json("machine")["holders"], "the other holds the machine")
        self.berth("resume", "--detach", "slow-2")
        until(lambda: self.house.json("machine")["waiting"], "it waits")
        self.assertEqual(self.state("slow-2"), "running")
        self.assertIn("none of its tasks runs now", self.house.json("why", "slow-2")["why"])
        self.write("go", "")
        self.berth("wait", "slow-2")
        self.assertEqual(other.wait(20), 0)


class Studies(Outcome):
    def study(self, *requests):
        text = "".join(json.dumps(each) + "\n" for each in requests)
        done = subprocess.run([self.house.berth, "study"], input=text, text=True, capture_output=True, cwd=self.dir,
                              env=self.house.environment, timeout=60)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_a_study_is_queued_before_its_first_trial_and_fails_with_a_trial(self):
        space = {"name": "y", "passive": True, "params": {"x": [1, 2]}, "search": {"method": "grid"}, "goal": {"metric": "loss", "direction": "min"}}
        self.study({"create": json.dumps(space)})
        self.assertEqual(self.state("y-1"), "queued")
        self.study({"open": "y-1"}, {"ask": True}, {"tell": "1", "state": "done", "metrics": {"loss": 1}})
        self.assertEqual(self.state("y-1"), "running")
        self.study({"open": "y-1"}, {"ask": True}, {"tell": "2", "state": "failed"}, {"ask": True})
        self.assertEqual(self.state("y-1"), "failed")
        self.berth("wait", "y-1", code=1)


class RunsOfAnEarlierBerth(Outcome):
    """Its store has the state `waiting` of runs, and its sweeps allowed any number of failures."""

    def test_a_sweep_that_was_submitted_then_keeps_its_rule(self):
        self.write("s.yaml", "name: s\nrun: test -e go && exit {i}\nparams: {i: [0, 7]}\nparallel: 1\n")
        self.berth("run", "s.yaml", code=1)
        with sqlite3.connect(self.dir / "state/berth.db") as store:
            (text,) = store.execute("SELECT spec_json FROM run_spec").fetchone()
            spec = json.loads(text)
            del spec["allow_failures"]
            store.execute("UPDATE run_spec SET spec_json = ?, row_sum = NULL", (json.dumps(spec),))
            store.execute("UPDATE run SET state = 'waiting'")
        store.close()
        self.assertEqual(self.state("s-1"), "interrupted")
        self.write("go", "")
        self.berth("retry", "s-1")
        self.assertEqual((self.state("s-1"), self.house.counts("s-1")["failed"]), ("done", 1))


class WhyExplainsAWholeRun(Outcome):
    def test_failed_tasks_by_cause(self):
        self.write("s.yaml", "name: s\nrun: exit {i}\nparams: {i: [0, 7, 7.0, 8]}\n".replace("7.0", "07"))
        self.berth("run", "s.yaml", code=1)
        why = self.house.json("why", "s-1")
        self.assertEqual([(each["cause"], each["tasks"]) for each in why["failed"]],
                         [("exit 7", ["s-1/2", "s-1/3"]), ("exit 8", ["s-1/4"])])
        self.assertEqual((why["exit_code"], why["run"]["state"], why["waiting"]), (1, "failed", []))
        text = self.berth("why", "s-1").out.decode()
        self.assertRegex(text, r"\As-1: failed: 1 done, 3 failed\n  it ended after [^:]+: 3 of 4 failed, and no failure is "
                         r"allowed \(--allow-failures\)\n  2 failed: exit 7\n    s-1/2, s-1/3\n  1 failed: exit 8\n    s-1/4\n"
                         r"  more: berth why s-1/2\n\Z")

    def test_a_run_that_is_done(self):
        self.berth("run", "--name", "t", "--", "true")
        self.assertRegex(self.berth("why", "t-1").out.decode(), r"\At-1: done: 1 done\n  it ended after [^\n]+\n\Z")

    def test_allowed_failures(self):
        self.write("s.yaml", SWEEP)
        self.berth("run", "--allow-failures", "s.yaml")
        self.assertIn("1 of 2 failed, and any number of failures is allowed", self.house.json("why", "s-1")["why"])

    def test_a_dead_runner(self):
        process = self.started(self.hold())
        process.kill()
        process.wait()
        why = self.house.json("why", "slow-1")
        self.assertEqual((why["run"]["state"], why["exit_code"]), ("interrupted", None))
        self.assertIn("its runner died", why["why"])
        self.berth("stop", "slow-1")

    def test_a_flow_that_waits_for_what_failed(self):
        self.write("f.yaml", "name: f\nsteps:\n  a: {run: 'exit 3'}\n  b: {needs: [a], run: 'true'}\n"
                   f"  c: {{run: 'while [ ! -e {self.dir}/go ]; do sleep 0.02; done'}}\n")
        process = self.house.start("run", "f.yaml")
        until(lambda: self.house.json("runs")["runs"] and self.house.counts("f-1")["failed"], "a fails")
        why = self.house.json("why", "f-1")
        self.assertIn("f-1/a failed: exit 3", why["waiting"][0]["reason"])
        self.assertEqual(why["failed"][0]["tasks"], ["f-1/a"])
        self.write("go", "")
        self.assertEqual(process.wait(20), 1)

    def test_a_run_that_is_not_there(self):
        self.assertIn("nothing-1", self.one_line(self.berth("why", "nothing-1", code=2)))


if __name__ == "__main__":
    unittest.main()
