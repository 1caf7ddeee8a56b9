#!/usr/bin/python3
"""Runs on a real Slurm of three nodes: flows and sweeps, jobs that are cancelled, end or lose their
node, a controller that is away; and nothing stays in the queue. BERTH_FULL=1 tries more of each."""

import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import unittest
from pathlib import Path

import slurm_bed
import hostile
from berth_case import Case, alive, numbers, until

FULL = os.environ.get("BERTH_FULL") == "1"
TASKS = 60 if FULL else 16

SWEEP = """\
name: sweep
run: sh -c 'echo {{i}} >> {dir}/witness; sleep {sleep}; echo "::berth score={{i}}"'
params:
  i: {{min: 1, max: {tasks}, type: int}}
search: {{method: grid}}
goal: {{metric: score}}
retries: 0
"""

FLOW = """\
name: count
steps:
  split:
    run: split -n l/6 {in.text} {out.parts}/
    in: {text: corpus.txt}
    out: {parts: parts/}
  count:
    foreach: {part: split.parts/*}
    run: wc -l < {part} > {out.n}
    out: {n: counts/{index}.txt}
  sum:
    in: {counts: count.n}
    run: cat {in.counts} | awk '{s += $1} END {print s}' > {out.total}
    out: {total: total.txt}
"""


@unittest.skipUnless(slurm_bed.installed(), "needs slurmctld, slurmd, slurm-client and munge")
class Bed(unittest.TestCase):
    def test_a_signal_ends_it_and_all_its_daemons(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number), subprocess.Popen([sys.executable, slurm_bed.__file__], stdout=subprocess.PIPE,
                                                        stderr=subprocess.PIPE, text=True) as bed:
                line = bed.stdout.readline()
                if not line:
                    self.skipTest(f"Slurm does not start here: {bed.stderr.read()}")
                directory = Path(line.strip().removeprefix("export SLURM_CONF=")).parent
                pids = [int((directory / f"{name}.pid").read_text()) for name in ("munged", "slurmctld", "slurmd.n1")]
                bed.send_signal(number)
                _, errors = bed.communicate(timeout=60)
                self.assertEqual((bed.returncode, errors), (0, ""))
                self.assertFalse(directory.exists())
                self.assertFalse([pid for pid in pids if alive(pid)])


@unittest.skipUnless(slurm_bed.installed(), "needs slurmctld, slurmd, slurm-client and munge")
class OnSlurm(Case):
    slurm = None

    @classmethod
    def setUpClass(cls):
        try:
            cls.slurm = slurm_bed.Slurm(nodes=3, cores=4, gpus=2, partitions=[
                "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
                "PartitionName=closed Nodes=ALL MaxTime=INFINITE State=DOWN"])
        except AssertionError as error:  # not every container lets it
            raise unittest.SkipTest(f"Slurm does not start here: {error}") from error

    @classmethod
    def tearDownClass(cls):
        if cls.slurm:
            cls.slurm.close()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.clear)
        self.house.environment.update(
            SLURM_CONF=self.slurm.environment["SLURM_CONF"], PATH=self.slurm.environment["PATH"],
            BERTH_CLUSTERS=str(self.dir / "clusters.yaml"), XDG_STATE_HOME=str(self.dir / "xdg"),
            XDG_CACHE_HOME=str(self.dir / "cache"))
        self.cluster()

    def clear(self):
        for job in self.slurm.jobs():
            self.slurm.command("scancel", job, check=False)
        until(lambda: not self.slurm.jobs(), "an empty queue", 40)
        until(self.slurm.mend, lambda: f"idle nodes: {self.slurm.node_states()}", 60)

    def cluster(self, more="", lease="5s"):
        self.write("clusters.yaml", f"hpc:\n  kind: slurm\n  lease: {lease}\n{more}")

    def sweep(self, sleep="0.3", tasks=TASKS):
        return self.write("sweep.yaml", SWEEP.format(dir=self.dir, sleep=sleep, tasks=tasks))

    def assert_all_done(self, run="sweep-1", tasks=TASKS):
        counts = self.house.counts(run)
        self.assertEqual((counts["done"], counts["failed"]), (tasks, 0), counts)
        self.assertEqual(set(numbers(self.dir / "witness")), set(range(1, tasks + 1)))
        until(lambda: not self.slurm.jobs(), f"an empty queue: {self.slurm.jobs()}")

    def running(self):
        return [job for job, state in self.slurm.jobs().items() if state == "RUNNING"]

    def background(self, sleep="0.3", tasks=TASKS):
        """A sweep that has begun."""
        process = self.house.start("run", "--cluster", "hpc", self.sweep(sleep, tasks))
        until(lambda: numbers(self.dir / "witness"), "a task that runs", 40)
        return process

    def finish(self, process, code=0, patience_s=90):
        out, err = process.communicate(timeout=patience_s)
        self.assertEqual(process.returncode, code, (out[-2000:], err[-4000:]))

    def test_a_sweep_runs_in_several_jobs_and_leaves_none(self):
        self.berth("run", "--cluster", "hpc", self.sweep())
        hosts = {task["host"] for task in self.house.tasks("sweep-1")}
        self.assertTrue(hosts <= set(self.slurm.nodes) and len(hosts) > 1, hosts)
        self.assert_all_done()

    def test_a_flow_takes_its_files_along(self):
        self.write("corpus.txt", "a line\n" * 1000)
        self.berth("run", "--cluster", "hpc", self.write("count.yaml", FLOW))
        self.assertEqual((self.dir / "total.txt").read_text(), "1000\n")
        until(lambda: not self.slurm.jobs(), "an empty queue")

    def test_what_no_node_has_is_told_and_not_asked(self):
        process = self.house.start("run", "--cluster", "hpc", "--cpu", "64", "--", "true")
        said = b""
        os.set_blocking(process.stderr.fileno(), False)
        def told():
            nonlocal said
            said += process.stderr.read() or b""
            return b"64" in said and b"main" in said or process.poll() is not None
        until(told, "that it is too much")
        said += process.stderr.read() or b""
        self.assertFalse(self.slurm.jobs())
        self.assertIn(b"partition main", said)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)

    def test_what_slurm_will_never_take_ends_the_run(self):
        for more, part in (("  partitions: [nosuch]\n", "partition 'nosuch' does not exist; Slurm has closed, main"),
                           ("  flags: [--partition=nosuch]\n", "partition main: sbatch: invalid partition specified: nosuch"),
                           ("  flags: [--constraint=nosuch]\n", "sbatch: Batch job submission failed: Invalid feature")):
            self.cluster(more)
            began = time.monotonic()
            refused = self.berth("run", "--cluster", "hpc", "--", "true", code=3)
            self.assertLess(time.monotonic() - began, 20)
            line = refused.err.decode().splitlines()[-1]
            self.assertEqual(line.count(part), 1, line)
            self.assertLessEqual(line.count("nosuch"), 1, line)
            self.assertFalse(self.slurm.jobs())

    def test_a_cancelled_job_costs_no_task_its_retries(self):
        process = self.background("1")
        self.slurm.command("scancel", self.running()[0])
        self.finish(process)
        self.assert_all_done()

    def test_what_failed_on_a_node_is_tried_on_another(self):
        command = f"echo $SLURMD_NODENAME >> {self.dir}/nodes; [ $(wc -l < {self.dir}/nodes) -gt 1 ]"
        self.berth("run", "--cluster", "hpc", "--retries", "1", "--", "sh", "-c", command)
        nodes = (self.dir / "nodes").read_text().split()
        self.assertEqual(len(set(nodes)), 2, nodes)

    def test_what_failed_on_the_only_node_is_tried_there(self):
        self.slurm.command("scontrol", "create", "partitionname=one", "nodes=" + self.slurm.nodes[0], "maxtime=infinite")
        self.addCleanup(self.slurm.command, "scontrol", "delete", "partitionname=one")
        self.cluster("  partitions: [one]\n")
        command = f"echo $SLURMD_NODENAME >> {self.dir}/nodes; [ $(wc -l < {self.dir}/nodes) -gt 1 ]"
        self.berth("run", "--cluster", "hpc", "--retries", "1", "--", "sh", "-c", command)
        nodes = (self.dir / "nodes").read_text().split()
        self.assertEqual((len(nodes), len(set(nodes))), (2, 1), nodes)

    def test_a_killed_runner_leaves_nothing_in_the_queue(self):
        self.cluster("  jobs: 8\n", lease="3s")
        process = self.background("600", tasks=40)
        until(lambda: "PENDING" in self.slurm.jobs().values(), "a job that waits", 40)
        process.send_signal(signal.SIGKILL)
        process.wait()
        until(lambda: not self.slurm.jobs(), "an empty queue", 40)
        self.assertFalse([pid for pid in self.house.leftovers()
                          if b"sleep" in open(f"/proc/{pid}/cmdline", "rb").read()])

    def test_a_controller_that_restarts_loses_nothing(self):
        process = self.background("0.5")
        # Not killed: one that has not written down its last jobs gives their numbers out again, and the nodes,
        # which know those, take no more work until somebody tells them to.
        self.slurm.end_daemon("slurmctld", signal.SIGTERM)
        time.sleep(3 if FULL else 1)
        self.slurm.start_controller()
        self.finish(process)
        self.assert_all_done()

    def test_a_job_near_its_time_limit_gets_nothing_new(self):
        # Slurm counts in minutes: so the drain begins early instead of the end being late.
        self.cluster("  time_limit: 1m\n  drain: 54s\n")
        process = self.background("1", tasks=30)
        first = set(self.running())
        self.finish(process)
        self.assert_all_done(tasks=30)
        tasks = self.house.tasks("sweep-1")
        self.assertEqual({task["attempts"] for task in tasks}, {1}, "drained, not killed")
        self.assertTrue(first)

    @unittest.skipUnless(FULL, "takes minutes")
    def test_a_time_limit_hands_tasks_back(self):
        self.cluster("  time_limit: 1m\n  drain: 20s\n")
        process = self.background("40", tasks=14)
        self.finish(process, patience_s=400)
        self.assert_all_done(tasks=14)

    def test_a_node_that_goes_down_takes_only_its_attempts(self):
        process = self.background("1", tasks=24)
        lost = self.slurm.nodes_of(self.running()[0])[0]
        self.slurm.command("scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=test")
        self.finish(process)
        self.assert_all_done(tasks=24)

    def test_gpus_are_asked_for_by_gres(self):
        self.berth("run", "--cluster", "hpc", "--gpu", "2", "--", "sh", "-c", "echo devices=$CUDA_VISIBLE_DEVICES")
        run = self.house.json("runs")["runs"][0]["id"]
        self.assertRegex(self.berth("logs", run).out.decode(), r"devices=\S+,\S+")

    def test_what_people_name_is_never_more_than_a_name(self):
        self.cluster("  shared_folders: false\n")
        hostile.check(self, "hpc")
        self.write("clusters.yaml", "hpc:\n  kind: slurm\n  partitions: ['main; touch owned']\n")
        refused = self.house.run("run", "--cluster", "hpc", "--", "true")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn(b"not a name that Slurm accepts", refused.err)

    def test_top_shows_the_partitions_and_who_holds_what(self):
        process = self.background("60", tasks=2)
        cluster, = self.house.json("top", "--once")["clusters"]
        self.assertEqual((cluster["name"], cluster["kind"]), ("hpc", "slurm"))
        hosts = {host["host"]: host for host in cluster["hosts"]}
        self.assertEqual(hosts["main"]["total"]["cpu"], 12)
        self.assertLess(hosts["main"]["free"]["cpu"], 12)
        self.assertEqual((hosts["main"]["holders"], hosts["closed"]["state"]), ("sweep-1", "closed"))
        self.assertRegex(self.berth("top", "--once").out.decode(), r"hpc +main .*cpu \d+ of 12.*sweep-1")
        process.send_signal(signal.SIGINT)
        process.wait(60)
        self.slurm.end_daemon("slurmctld")
        self.addCleanup(self.slurm.start_controller)
        cluster, = self.house.json("top", "--once")["clusters"]
        self.assertIn("error", cluster)

    def test_a_probe_tells_what_there_is(self):
        partitions = {each["name"]: each for each in self.house.json("cluster", "probe", "hpc")["slurm"][0]["partitions"]}
        main = partitions["main"]
        self.assertEqual((main["nodes"], main["down"], main["free"]["cpu"], main["total"]["gpu"]), (3, 0, 12, 6), main)
        self.assertFalse(partitions["closed"]["open"])
        self.assertIn(b"12 of 12", self.berth("cluster", "probe", "hpc").out)

    def test_a_probe_names_a_partition_that_does_not_exist(self):
        self.cluster("  partitions: [mains, nosuch]\n")
        error = (f"{self.dir}/clusters.yaml:4: hpc.partitions: partition 'mains' does not exist (did you mean 'main'?), "
                 "partition 'nosuch' does not exist; Slurm has closed, main")
        self.assertEqual(self.berth("cluster", "probe", "hpc", code=2).out.decode(), error + "\n")
        self.cluster("  partitions: [main, nosuch]\n")
        text = self.berth("cluster", "probe", "hpc", code=2).out.decode()
        self.assertRegex(text, r"hpc +main\* +3 ")
        self.assertIn("hpc.partitions: partition 'nosuch' does not exist; Slurm has closed, main\n", text)
        probed, = json.loads(self.berth("--json", "cluster", "probe", "hpc", code=2).out)["slurm"]
        self.assertEqual([each["name"] for each in probed["partitions"]], ["main"])
        self.assertIn("'nosuch' does not exist", probed["error"])
        self.assertIn("'nosuch' does not exist", self.berth("top", "--once").out.decode())

    def test_a_probe_without_slurm_says_what_is_missing(self):
        self.house.environment["PATH"] = str(self.dir)
        self.assertIn(b"hpc: sinfo was not found; install Slurm's commands",
                      self.berth("cluster", "probe", "hpc", code=3).out)
        self.house.environment["PATH"] = self.slurm.environment["PATH"]
        self.house.environment["SLURM_CONF"] = str(self.write("slurm.conf", "ClusterName=no\nSlurmctldHost=localhost\n"
                                                              "SlurmctldPort=1\nAuthType=auth/munge\n"))
        text = self.berth("cluster", "probe", "hpc", code=3, timeout=60).out.decode()
        self.assertRegex(text, r"\Ahpc: Slurm does not answer \(sinfo: [^\n]+\); check it: scontrol ping\n\Z")

    @unittest.skipUnless(FULL, "a figure, for a machine with nothing else to do: BERTH_FULL=1")
    def test_tasks_follow_one_another_as_fast_as_here(self):
        """Within one alloc. The promise is for a machine with nothing else to do; of tasks that take no
        time it is only printed, since here srun and slurmstepd take theirs of the same cores."""
        self.cluster("  jobs: 1\n")
        for what, run, tasks in (("20 ms", "sleep 0.02", 60), ("nothing", "'true'", 400)):
            for parallel in (1, 2):
                sweep = self.write("fast.yaml", f"name: fast\nrun: {run}\nparams: {{i: {{min: 1, max: {tasks}, type: int}}}}"
                                   f"\nsearch: {{method: grid}}\nparallel: {parallel}\n")
                ratio = statistics.median(self.ms_a_task(sweep, "--cluster", "hpc") / self.ms_a_task(sweep)
                                          for _ in range(5))
                print(f"\ntasks of {what}, {parallel} at a time: in a Slurm job {ratio:.2f} times what they take here")
                if what != "nothing":
                    self.assertLess(ratio, 1.3)

    def ms_a_task(self, sweep, *where):
        """Of a sweep of many short tasks."""
        self.berth("run", *where, sweep)
        run = self.house.json("runs")["runs"][-1]["id"]
        tasks = self.house.tasks(run)
        self.assertEqual(len({task["host"] for task in tasks}), 1, "one alloc")
        first, last = min(seconds(task["started"]) for task in tasks), max(seconds(task["ended"]) for task in tasks)
        return (last - first) * 1000 / len(tasks)


def seconds(stamp):
    """Of "2026-11-21T05:04:03.123Z"."""
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    unittest.main()
