#!/usr/bin/python3
"""Runs on machines that are reached by ssh: real sshds on loopback, each with a home and a ledger of its own."""

import datetime
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import time
import unittest
from pathlib import Path

from berth_case import Case, numbers, until
from ssh_bed import ME, SSH, SSHD, SshBed, connections, kill

FULL = os.environ.get("BERTH_FULL") == "1"
SANITIZED = os.environ.get("BERTH_SANITIZE")
MACHINE = "cpu: 2\n"


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are wanted")
class Ssh(Case):
    def setUp(self):
        super().setUp()
        self.bed = SshBed(self.dir / "bed", self.dir)
        self.addCleanup(self.bed.close)
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")

    def lab(self, count, lease="20s", hosts=None, noise="", **more):
        made = hosts or [self.bed.host(f"host{i}", machine=MACHINE, noise=noise) for i in range(count)]
        # On one machine every folder is shared: as if it were not.
        settings = {"shared_folders": "false", "lease": lease, "silent_most": "3s", **more}
        self.write("clusters.yaml", self.bed.clusters(hosts=made, **settings))
        return made

    def tasks_of(self, run):
        """[] before there is such a run."""
        shown = self.house.run("--json", "show", run)
        return json.loads(shown.out)["tasks"] if shown.code == 0 else []

    def test_a_runner_sleeps_while_nothing_happens(self):
        self.lab(2)
        self.write("sweep.yaml", "run: sleep 100\nparams: {i: [1, 2, 3, 4]}\nresources: {cpu: 1}\n")
        run = self.house.start("run", "--cluster", "lab", "sweep.yaml")
        until(lambda: [task["state"] for task in self.tasks_of("sweep-1")] == ["running"] * 4, "they run")
        time.sleep(3)  # the last words of their beginning
        def wakeups():
            status = Path(f"/proc/{run.pid}/status").read_text()
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M)[1])
        before = wakeups()
        time.sleep(6)
        # Each host is told once, and answers once, in that time; the screen says nothing.
        self.assertLessEqual(wakeups() - before, 12)
        self.assertIsNone(run.poll())
        run.send_signal(signal.SIGINT)
        run.wait()

    def test_a_command_runs_there(self):
        host, = self.lab(1, noise="echo Welcome, traveller;", env="{GREETING: hello}",
                         prescript="'export FROM_PRESCRIPT=yes'")
        done = self.berth("run", "--cluster", "lab", "--", "sh", "-c",
                          'echo "$HOME $GREETING $FROM_PRESCRIPT $BERTH_TASK"; exit 3', code=3)
        self.assertEqual(done.out.decode().split()[:3], [str(host.home), "hello", "yes"])
        self.assertEqual(self.house.tasks("sh-1")[0]["exit_code"], 3)
        self.assertEqual(self.house.tasks("sh-1")[0]["host"], f"127.0.0.1:{host.port}")
        until(lambda: not [pid for pid in host.processes() if "start" in cmdline(pid)], "its agent ended")

    def test_probe_shows_each_host(self):
        hosts = self.lab(2)
        probed = json.loads(self.berth("--json", "cluster", "probe", "lab").out)["hosts"]
        self.assertEqual({one["host"] for one in probed}, {f"127.0.0.1:{host.port}" for host in hosts})
        self.assertEqual([one["total"]["cpu"] for one in probed], [2, 2])
        hosts[0].cut()
        probed = json.loads(self.berth("--json", "cluster", "probe", "lab", code=3).out)["hosts"]
        wrong, = [one for one in probed if "error" in one]
        self.assertIn("refused", wrong["error"])

    def test_a_host_with_a_wrong_machine_file_says_so(self):
        host = self.bed.host("wrong", machine="cpu: many\n")
        self.lab(1, hosts=[host])
        probed = self.berth("cluster", "probe", "lab", code=3)
        self.assertIn(b"machine.yaml", probed.out)

    def test_the_file_of_clusters_keeps_its_mode(self):
        file = self.write("clusters.yaml", "")
        file.chmod(0o644)
        self.berth("cluster", "add", "lab", "some.host")
        self.assertEqual(file.stat().st_mode & 0o777, 0o644)
        self.berth("cluster", "remove", "lab", "--dry-run", code=2)
        self.assertIn("some.host", file.read_text())

    def test_bash_reads_no_file_of_the_host_s(self):
        # As where sshd itself starts the agent: the bed's forced command is a shell of its own.
        host, = self.lab(1, env="{SHLVL: '0', SSH_CLIENT: '127.0.0.1 1 2'}")
        (host.home / ".bashrc").write_text("cd /; echo from bashrc\n")
        self.write("few/sweep.yaml", "run: 'pwd | cat'\nparams: {x: [1]}\n")
        self.berth("run", "--cluster", "lab", "few/sweep.yaml")
        out = self.berth("logs", "sweep-1/1")
        self.assertIn(b"/few", out.out)
        self.assertNotIn(b"bashrc", out.out + out.err)

    def test_top_shows_who_holds_what_there(self):
        hosts = self.lab(2)
        run = self.house.start("run", "--cluster", "lab", "--", "sh", "-c", f"touch {self.dir}/began; exec sleep 100")
        until((self.dir / "began").exists, "it runs", 60)
        busy = until(lambda: self.house.tasks("sh-1")[0].get("host"), "it is known where")
        next(host for host in hosts if not busy.endswith(str(host.port))).cut()
        cluster, = self.house.json("top", "--once")["clusters"]
        self.assertEqual((cluster["name"], cluster["kind"]), ("lab", "ssh"))
        held, gone = cluster["hosts"]
        if "error" in held:
            held, gone = gone, held
        self.assertEqual((held["free"]["cpu"], held["total"]["cpu"], held["holders"]), (1, 2, "sh-1"))
        self.assertIn("refused", gone["error"])
        self.assertIn(b"cpu 1 of 2", self.berth("top", "--once").out)
        run.send_signal(signal.SIGINT)
        run.wait(60)

    def test_clusters_are_added_and_removed(self):
        self.write("clusters.yaml", "# mine\nold:\n  kind: ssh  # stays\n  hosts: [a]\n")
        self.berth("cluster", "add", "lab", "me@example.org:2200", "gpu-box", "--key", "~/.ssh/lab")
        listed = json.loads(self.berth("--json", "cluster", "list").out)["clusters"]
        self.assertEqual([one["name"] for one in listed], ["old", "lab"])
        self.berth("cluster", "remove", "lab")
        self.assertEqual((self.dir / "clusters.yaml").read_text(),
                         "# mine\nold:\n  kind: ssh  # stays\n  hosts: [a]\n")
        for hostile in ("-oProxyCommand=touch x", "a;b", "a@-b", "a b;c@d"):
            self.assertEqual(self.house.run("cluster", "add", "x", "--", hostile).code, 2)
        self.assertIn("lba", self.one_line(self.berth("run", "--cluster", "lba", "--", "true", code=2)))

    def test_a_cluster_that_no_run_would_take_is_not_added(self):
        good = "{old: {kind: ssh, hosts: [a]}}  # mine\n"
        self.write("clusters.yaml", good)
        self.assertIn("a is listed twice", self.one_line(self.berth("cluster", "add", "lab", "a", "b", "a", code=2)))
        self.assertEqual((self.dir / "clusters.yaml").read_text(), good)
        self.berth("cluster", "add", "lab", "a", "b")
        self.berth("cluster", "add", "lab2", "c")
        listed = json.loads(self.berth("--json", "cluster", "list", "lab2", "lab").out)["clusters"]
        self.assertEqual([one["name"] for one in listed], ["lab2", "lab"])
        self.assertIn("nobody", self.one_line(self.berth("cluster", "remove", "lab", "nobody", code=2)))
        self.berth("cluster", "remove", "lab", "lab2")
        self.assertEqual((self.dir / "clusters.yaml").read_text(), good)

    def test_a_list_tells_what_no_run_would_take(self):
        self.write("clusters.yaml", "good: {kind: ssh, hosts: [a]}\ntwice: {kind: ssh, hosts: [a, a]}\n"
                   "hpc:\n  kind: slurm\n  jobs: 0\ncloud: {kind: ec2, region: here, immage: ami-1}\n")
        listed = json.loads(self.berth("--json", "cluster", "list", code=2).out)["clusters"]
        wrong = {one["name"]: one.get("error", "") for one in listed}
        self.assertEqual(list(wrong), ["good", "twice", "hpc", "cloud"])
        self.assertEqual(wrong["good"], "")
        for name, part in (("twice", "a is listed twice"), ("hpc", "clusters.yaml:5"), ("cloud", "immage")):
            self.assertIn(part, wrong[name])
            # As a run says it.
            self.assertIn(wrong[name], self.one_line(self.berth("run", "--cluster", name, "--", "true", code=2)))
        self.assertIn(b"a is listed twice", self.berth("cluster", "list", code=2).out)

    def test_trials_take_their_folder_along(self):
        self.lab(2)
        self.script("folder/train.sh", 'read -r data < "data/it\'s here.txt"\n'
                    'echo "::berth loss=$1"\necho "$data $(cat "$2")" > "$BERTH_CHECKPOINT_DIR/model"\n')
        self.write("folder/data/it's here.txt", "data\n")
        self.write("folder/sweep.yaml", "run: /bin/sh ./train.sh {lr} {params_file}\ncheckpoints: true\n"
                   "params:\n  lr: [1, 2, 3, 4]\ngoal: {metric: loss, direction: min}\n")
        self.berth("run", "--cluster", "lab", "folder/sweep.yaml")
        tasks = self.house.tasks("sweep-1")
        self.assertEqual(sorted(task["metrics"]["loss"] for task in tasks), [1, 2, 3, 4])
        for task in tasks:
            model = next((self.house.state / "runs/sweep-1/checkpoints").glob(f"{task['id'].rpartition('/')[2]}/model"), None)
            self.assertIsNotNone(model, task)
            self.assertIn("data {", model.read_text())

    def test_files_that_trials_leave_on_a_host_are_counted(self):
        host = self.lab(1)[0]
        self.script("folder/train.sh", 'echo $1 > "out$1"; echo more >> sent.txt\n'
                    'mkdir -p __pycache__; echo x > __pycache__/x.pyc; echo model > "$BERTH_CHECKPOINT_DIR/model"\n')
        self.write("folder/sent.txt", "sent\n")
        self.write("folder/sweep.yaml", "run: /bin/sh ./train.sh {i}\ncheckpoints: true\nparallel: 1\nparams: {i: [1, 2, 3]}\n")
        said = self.berth("run", "--cluster", "lab", "folder/sweep.yaml").err.decode()
        counted = [line for line in said.splitlines() if "not copied back" in line]
        self.assertEqual(len(counted), 1, said)
        self.assertRegex(counted[0], rf"sweep-1: 4 files \(26 B\) that trials wrote on 127.0.0.1:{host.port} were not copied back; "
                         r"write to \{checkpoint\} to keep such files$")
        self.assertIn(counted[0].removeprefix("sweep-1: "), self.berth("why", "sweep-1").out.decode())
        self.script("folder/train.sh", 'echo model > "$BERTH_CHECKPOINT_DIR/model"\n')
        self.assertNotIn(b"not copied back", self.berth("run", "--cluster", "lab", "folder/sweep.yaml").err)

    def test_a_command_that_leaves_files_on_a_host_says_so(self):
        self.lab(1)
        said = self.berth("run", "--cluster", "lab", "--", "sh", "-c", "echo 1 > a; mkdir b; echo 2 > b/c").err.decode()
        self.assertIn("2 files (4 B) that tasks wrote on ", said)

    def test_trials_go_on_there_from_checkpoints_of_other_hosts(self):
        self.lab(2)
        self.script("folder/train.py", """import json, os, sys
x, epochs, state = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3] + "/state.json"
reports = json.load(open(state)) if os.path.exists(state) else []
while len(reports) < epochs:
    reports.append(round((reports[-1] if reports else 1) * 31 % 997 + abs(x - 37), 3))
json.dump(reports, open(state + ".new", "w"))
os.replace(state + ".new", state)
print(f"::berth acc={reports[epochs - 1]}")
""")
        self.write("folder/pbt.yaml", "run: python3 train.py {x} {epochs} {checkpoint}\nparams: {x: {min: 0, max: 100}}\n"
                   "search: {method: pbt, samples: 6, seed: 3, budget: {param: epochs, every: 2, max: 8}}\n"
                   "goal: {metric: acc}\n")
        self.berth("run", "--cluster", "lab", "folder/pbt.yaml")
        self.berth("run", "folder/pbt.yaml")

        def outcome(run):
            return sorted(((task["id"].rpartition("/")[2], task["params"], task["metrics"]["acc"])
                           for task in self.house.tasks(run)), key=lambda each: each[0])

        there, here = outcome("pbt-1"), outcome("pbt-2")
        self.assertEqual(len(there), 24)
        self.assertEqual(there, here)
        self.assertTrue(any(params.get("parent", label).partition("@")[0] != label.partition("@")[0]
                            for label, params, _ in there), "none went on from another")

    def test_devices_are_recorded_as_their_worker_chose_them(self):
        host = self.bed.host("gpus", topology="dgx1-v100")
        self.lab(1, hosts=[host])
        self.write("folder/sweep.yaml", "run: 'echo $CUDA_VISIBLE_DEVICES; sleep 3'\nparams: {i: [1, 2, 3, 4]}\n"
                   "resources: {cpu: 0.1, gpu: 1}\n")
        self.berth("run", "--cluster", "lab", "folder/sweep.yaml")
        told = [task["devices"] for task in self.house.tasks("sweep-1")]
        seen = [self.berth("logs", f"sweep-1/{i}").out.decode().split() for i in (1, 2, 3, 4)]
        self.assertEqual(told, seen)
        self.assertEqual(len({device for devices in told for device in devices}), 4)

    def test_a_large_file_goes_on_where_it_was_cut_off(self):
        host, = self.lab(1, lease="30s")
        with open(self.dir / "large.bin", "wb") as file:
            for _ in range(96):
                file.write(os.urandom(1 << 20))
        self.write("flow.yaml", "steps:\n  a: {in: {x: large.bin}, out: {y: y.txt}, run: 'sha256sum < {in.x} > {out.y}'}\n")
        run = self.house.start("run", "--cluster", "lab", "flow.yaml")
        incoming = host.home / ".cache/berth/objects/incoming"
        until(lambda: incoming.exists() and sum(part.stat().st_size for part in incoming.iterdir()) > 1 << 20,
              "some of it came", 60)
        host.cut()
        host.start()
        self.assertEqual(run.wait(timeout=120), 0)
        with open(self.dir / "large.bin", "rb") as file:
            wanted = hashlib.file_digest(file, "sha256").hexdigest()
        self.assertEqual((self.dir / "y.txt").read_text().split()[0], wanted)
        self.assertEqual(list(incoming.iterdir()), [])

    def test_a_file_says_where_it_runs(self):
        self.lab(1)
        self.write("in.txt", "1\n")
        self.write("flow.yaml", "cluster: lab\nsteps:\n"
                   "  a: {in: {x: in.txt}, out: {y: y.txt}, run: 'cat {in.x} > {out.y}; echo $HOME'}\n")
        self.berth("run", "flow.yaml")
        self.assertEqual((self.dir / "y.txt").read_text(), "1\n")
        self.assertEqual(self.house.tasks("flow-1")[0]["host"], f"127.0.0.1:{self.bed.hosts[0].port}")
        self.write("sweep.yaml", "cluster: [lab, lba]\nrun: echo {x}\nparams: {x: [1]}\n")
        self.assertIn("lba", self.one_line(self.berth("run", "sweep.yaml", code=2)))
        self.write("sweep.yaml", "cluster: {lab: 1}\nrun: echo {x}\nparams: {x: [1]}\n")
        self.assertIn("sweep.yaml:1:", self.one_line(self.berth("run", "sweep.yaml", code=2)))

    def test_what_fits_no_host_is_told(self):
        self.lab(2)
        wrong = self.berth("run", "--cluster", "lab", "--cpu", "3", "--", "true", code=3)
        self.assertIn(b"berth: 3 cores requested; ", wrong.err.splitlines()[-1])
        self.assertEqual(self.house.json("show", "true-1")["run"]["state"], "interrupted")

    def refused(self, *parts, run=("run", "--cluster", "lab", "--", "true")):
        """A run that ends because its only host refuses: soon, with the cause and what to do, and resumable."""
        began = time.monotonic()
        refused = self.berth(*run, code=3)
        self.assertLess(time.monotonic() - began, 20)
        said = refused.err.decode()
        for part in (*parts, "berth resume true-1"):
            self.assertIn(part, said.splitlines()[-1])
        return said

    def test_a_changed_host_key_ends_the_run(self):
        host, = self.lab(1)
        known = self.bed.path / "known_hosts"
        right = known.read_text()
        known.write_text(f"[127.0.0.1]:{host.port} {(self.bed.path / 'client_key.pub').read_text()}")
        self.refused("Host key verification failed", f"ssh-keygen -R '[127.0.0.1]:{host.port}' -f {known}")
        shown = self.house.json("show", "true-1")["run"]
        self.assertEqual((shown["state"], shown["counts"]["waiting"]), ("interrupted", 1))
        self.assertIn("Host key verification failed", shown["error"])
        known.write_text(right)
        self.berth("resume", "true-1")
        self.assertEqual(self.house.json("show", "true-1")["run"]["error"], "")

    def test_a_key_that_is_not_accepted_ends_the_run(self):
        host, = self.lab(1)
        (self.bed.path / "client_key.pub").write_text("")
        # The reason is told while it is tried, with --json too, and its document stays the only output.
        said = self.refused("Permission denied (publickey)", "ssh-copy-id", run=("--json", "run", "--cluster", "lab", "--", "true"))
        self.assertRegex(said, r"^true-1 waits: .*Permission denied")

    def test_one_host_that_refuses_leaves_the_work_to_the_others(self):
        good, bad = self.lab(2)
        bad.config.write_text(bad.config.read_text().replace("client_key.pub", "nobody.pub"))
        bad.cut()
        bad.start()
        self.write("folder/sweep.yaml", "run: [\"true\"]\nparams: {x: [1, 2, 3, 4, 5, 6, 7, 8]}\n")
        self.berth("run", "--cluster", "lab", "folder/sweep.yaml")
        self.assertEqual({task["host"] for task in self.house.tasks("sweep-1")}, {f"127.0.0.1:{good.port}"})

    def fails_first(self):
        """A command that fails the first time that it runs, and leaves where it ran."""
        return ("sh", "-c", f"echo $HOME >> {self.dir}/homes; [ $(wc -l < {self.dir}/homes) -gt 1 ]")

    def test_what_failed_on_a_host_is_tried_on_another(self):
        self.lab(2)
        self.berth("run", "--cluster", "lab", "--retries", "1", "--", *self.fails_first())
        homes = (self.dir / "homes").read_text().split()
        self.assertEqual(set(homes), {str(host.home) for host in self.bed.hosts})

    def test_what_waits_for_another_host_says_so(self):
        self.lab(2)
        held = self.house.start("run", "--cluster", "lab", "--cpu", "2", "--name", "holder", "--", "sh", "-c",
                                f"touch {self.dir}/began; while [ ! -e {self.dir}/go ]; do sleep 0.05; done")
        until((self.dir / "began").exists, "one host is held")
        with (self.dir / "said").open("wb") as said:
            run = self.house.start("run", "--cluster", "lab", "--cpu", "2", "--retries", "1", "--", *self.fails_first(),
                                   err=said)
        until(lambda: re.search(r"sh-\d+ waits: \S+ has no room for cpu 2 now; not on 127\.0\.0\.1:\d+, where it failed",
                                (self.dir / "said").read_text()), "it says what it waits for")
        self.assertIn(b"has no room for cpu 2 now; not on", self.berth("why", "sh-1/1").out)
        self.write("go", "")
        self.assertEqual((held.wait(60), run.wait(60)), (0, 0))
        self.assertEqual(len((self.dir / "homes").read_text().split()), 2)

    def test_why_tells_what_other_machines_answered(self):
        self.running(lease="20s")
        self.write("folder/sweep.yaml", "run: sh -c 'touch $HERE/mine; while [ ! -e $HERE/go ]; do sleep 0.05; done'\n"
                   f"env: {{HERE: {self.dir}}}\nparams: {{x: [1, 2]}}\nresources: {{cpu: 2}}\n")
        run = self.house.start("run", "--cluster", "lab", "folder/sweep.yaml")
        why = lambda task: self.house.run("why", f"sweep-1/{task}").out.decode()
        until(lambda: "has no room for cpu 2 now" in why(1), "what the host answered")
        self.house.run("stop", "sh-1")
        until((self.dir / "mine").exists, "one of its own runs", 60)
        until(lambda: "waits for free resources in addition to those that the run has on its clusters" in why(1) + why(2), "the other waits for it")
        self.write("go", "")
        self.assertEqual(run.wait(60), 0)

    def test_what_failed_on_the_only_host_is_tried_there_at_once(self):
        self.lab(1)
        began = time.monotonic()
        self.berth("run", "--cluster", "lab", "--retries", "1", "--", *self.fails_first())
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(len((self.dir / "homes").read_text().split()), 2)

    def test_auptimizer_s_nodes(self):
        self.lab(2)
        self.script("aup/train.py", "#!/usr/bin/python3\nimport json, os, sys\nconfig = json.load(open(sys.argv[1]))\n"
                    "print('#Auptimizer:%s' % config['x'])\nprint(os.environ['HOME'])\n")
        document = {"script": "train.py", "proposer": "sequence", "resource": "node", "n_parallel": 2,
                    "parameter_config": [{"name": "x", "range": [0, 3], "type": "int", "interval": 1}],
                    "resource_args": {"async_run": True, "reconn_wait_time": 5, "max_retries": 4}}
        self.write("aup/exp.json", json.dumps(document))
        self.assertIn("node_mapping", self.one_line(self.berth("run", "aup/exp.json", code=2)))
        mapping = {str(i): f"{ME}@127.0.0.1:{host.port} {self.bed.path}/client_key"
                   for i, host in enumerate(self.bed.hosts)}
        self.write("aup/.aup/env.ini", f"[Auptimizer]\nnode_mapping = {json.dumps(mapping)}\n")
        self.berth("run", "--cluster", "lab", "aup/exp.json")
        self.assertEqual(sorted(task["metrics"]["score"] for task in self.house.tasks("exp-1")), [0, 1, 2, 3])
        # Host keys are checked as ssh does, and nobody has visited these before.
        refused = self.berth("run", "aup/exp.json", code=3)
        self.assertIn(b"ost key verification failed", refused.err)
        own = (self.house.state / "runs/exp-2/clusters.yaml").read_text()
        for part in ("kind: ssh", "lease: 20s", "outlive: 86400s", str(self.bed.hosts[1].port)):
            self.assertIn(part, own)

    def knowing_ssh(self):
        """As after a first visit: an ssh that knows the hosts' keys, for runs whose hosts no cluster file describes."""
        self.bed.clusters()
        self.script("bin/ssh", f"#!/bin/sh\nexec {SSH} -F /dev/null -o UserKnownHostsFile={self.bed.path}/known_hosts \"$@\"\n")
        self.house.environment["PATH"] = f"{self.dir}/bin:{self.house.environment['PATH']}"

    def test_auptimizer_s_working_directory_there(self):
        hosts = self.lab(2)
        self.knowing_ssh()
        self.script("aup/train.py", "#!/usr/bin/python3\nimport os, sys\nfrom aup import aup_args, aup_save_model\n"
                    "def save(x):\n    open('model.txt', 'w').write(str(x))\n"
                    "@aup_args\ndef train(x):\n    print(os.getcwd(), os.environ['SOURCED'])\n"
                    "    aup_save_model(save, x)\n    return x\ntrain(sys.argv[1])\n")
        there = self.dir / "not/yet/there"
        document = {"workingdir": str(there), "script": "train.py", "proposer": "sequence", "resource": "node",
                    "parameter_config": [{"name": "x", "range": [0, 2], "type": "int"}], "n_parallel": 4,
                    "resource_args": {"max_retries": 2, "reconn_wait_time": 3, "async_run": True, "async_reconnect": 1,
                                      "async_timeout": 100, "save_model": True},
                    "runtime_args": {"prescript": "source .profile", "postscript": "echo DONE > done", "overwrite": True}}
        self.write("aup/exp.json", json.dumps({**document, "workingdir": "there"}))
        refused = self.berth("run", "--cluster", "lab", "aup/exp.json", code=2)
        self.assertIn("must begin with /", self.one_line(refused))
        # The file of an environment goes on in further lines; each machine is named with user, port and key.
        for host in hosts:
            (host.home / ".profile").write_text(f"export SOURCED={host.name}\n")
        lines = ",\n".join(f'    "{i}": "{ME}@127.0.0.1:{host.port} {self.bed.path}/client_key"'
                           for i, host in enumerate(hosts))
        self.write("aup/.aup/env.ini", "[Auptimizer]\nSQL_ENGINE = sqlite\nnode_mapping = {\n" + lines + "}\nTMP = x\n")
        self.write("aup/exp.json", json.dumps(document))
        planned = self.berth("run", "--plan", "aup/exp.json", code=2)
        self.assertIn(f"only {self.dir}/aup/train.py is sent from this machine".encode(), planned.err)
        self.assertNotIn(b"the trials take", planned.out + planned.err)
        self.berth("run", "aup/exp.json")
        self.assertEqual([task["metrics"]["score"] for task in self.house.tasks("exp-1")], [0, 1, 2, 2])
        model = "aup_models/models_exp-1/model.txt"
        self.assertEqual([(place / model).read_text() for place in (there, self.dir / "aup")], ["2", "2"])
        for number in (1, 2, 3):
            self.assertRegex(self.berth("logs", f"exp-1/{number}").out.decode(), f"{there} ({hosts[0].name}|{hosts[1].name})")
        self.assertEqual((there / "done").read_text(), "DONE\n")
        self.assertIn("reconnect: 1s", (self.house.state / "runs/exp-1/clusters.yaml").read_text())
        # It is there now, and here too; the script is beside the document only.
        again = self.berth("run", "aup/exp.json")
        self.assertIn(f"trials start in {there} on the machines".encode(), again.err)

    def test_auptimizer_s_instances_may_be_addresses(self):
        hosts = self.lab(2)
        self.knowing_ssh()
        self.script("aup/train.py", "#!/usr/bin/python3\nimport sys\nfrom aup import BasicConfig, print_result\n"
                    "print_result(BasicConfig().load(sys.argv[1]).x)\n")
        shutil.copy(self.bed.path / "client_key", self.dir / "other_key")
        names = {"1": f"{ME}@127.0.0.1:{hosts[0].port} {self.bed.path}/client_key",
                 "2": f"{ME}@127.0.0.1:{hosts[1].port} {self.dir}/other_key"}
        self.write("aup/.aup/env.ini", f"[Auptimizer]\naws_mapping = {json.dumps(names)}\n")
        self.write("aup/exp.json", json.dumps({
            "script": "train.py", "proposer": "sequence", "resource": "aws", "n_parallel": 4, "target": "max",
            "workingdir": "./", "resource_args": {"shutdown": False, "connection_retry": 5},
            "parameter_config": [{"name": "x", "range": [0, 3], "type": "int"}]}))
        self.berth("run", "aup/exp.json")
        self.assertEqual(sorted(task["metrics"]["score"] for task in self.house.tasks("exp-1")), [0, 1, 2, 3])
        own = (self.house.state / "runs/exp-1/clusters.yaml").read_text()
        self.assertIn("aws:\n  kind: ssh\n", own)

    def test_a_model_that_auptimizer_saves_comes_back_from_a_folder_that_was_sent(self):
        self.lab(1)
        self.script("aup/train.py", "#!/usr/bin/python3\nimport sys\nfrom aup import aup_args, aup_save_model\n"
                    "def save(x):\n    open('model.txt', 'w').write(str(x))\n"
                    "@aup_args\ndef train(x):\n    aup_save_model(save, x)\n    return x\ntrain(sys.argv[1])\n")
        self.write("aup/aup_models/models_exp-0/model.txt", "an older one")
        self.write("aup/exp.json", json.dumps({
            "script": "train.py", "proposer": "sequence", "resource": "node", "n_parallel": 2,
            "resource_args": {"save_model": True}, "parameter_config": [{"name": "x", "range": [0, 1], "type": "int"}]}))
        self.berth("run", "--cluster", "lab", "aup/exp.json")
        self.assertEqual({path.parent.name: path.read_text() for path in (self.dir / "aup").rglob("model.txt")},
                         {"models_exp-0": "an older one", "models_exp-1": "1"})

    def test_no_name_reaches_a_shell(self):
        self.lab(1)
        hostile = "$(touch owned) `touch owned`;'\"\n"
        folder = "fol der';touch owned;'"
        self.script(f"{folder}/it.sh", 'printf "%s" "$1" > "$2"\n')
        self.write(f"{folder}/flow.yaml", json.dumps({"name": "f", "steps": {"a": {
            "run": ["/bin/sh", "./it.sh", hostile, "{out.o}"], "in": {"s": "it.sh"},
            "out": {"o": "out $(touch owned).txt"}}}}))
        self.berth("run", "--cluster", "lab", f"{folder}/flow.yaml")
        self.assertEqual((self.dir / folder / "out $(touch owned).txt").read_text(), hostile)
        self.assertEqual([str(path) for path in self.dir.rglob("owned")], [])

    def flow(self, tasks, pause):
        """Counts each execution by a witness that all hosts see; its outputs travel."""
        self.write("in.txt", "x" * 1000 + "\n")
        self.write("flow.yaml", json.dumps({"name": "many", "steps": {
            "split": {"run": f"for i in $(seq {tasks}); do echo $i > {{out.parts}}/$i; done", "out": {"parts": "parts/"}},
            "work": {"foreach": {"part": "split.parts/*"}, "in": {"text": "in.txt"},
                     "run": f"cat {{part}} >> {self.dir}/witness; sleep {pause}; "
                            "cat {part} {in.text} | wc -c > {out.n}",
                     "out": {"n": "counts/{index}.txt"}},
            "sum": {"in": {"n": "work.n"}, "run": "cat {in.n} | wc -l > {out.total}",
                    "out": {"total": "total.txt"}}}}))

    def check_flow(self, tasks):
        self.assertEqual((self.dir / "total.txt").read_text().strip(), str(tasks))
        counts = self.house.counts("many-1")
        self.assertEqual((counts["done"], counts["failed"]), (tasks + 2, 0))
        self.assertEqual(set(numbers(self.dir / "witness")), set(range(1, tasks + 1)))

    def test_a_flow_over_three_hosts_survives_all_that_befalls_them(self):
        tasks = 200 if FULL else 40
        hosts = self.lab(3, lease="20s" if FULL else "5s")
        self.flow(tasks, 0.5)
        run = self.house.start("run", "--cluster", "lab", "flow.yaml")
        witness = self.dir / "witness"
        until(lambda: len(numbers(witness)) >= tasks // 10, "it began", 120)
        until(lambda: len({task["host"] for task in self.house.tasks("many-1") if task.get("host")}) == 3,
              "all three work", 60)
        dead, frozen, cut = hosts
        dead.cut()
        stopped = frozen.processes()
        for pid in stopped:
            kill(pid, signal.SIGSTOP)
        cut.cut()
        time.sleep(30 if FULL else 2)
        cut.start()
        self.assertEqual(run.wait(timeout=280), 0, run.stderr.read()[-2000:])
        self.check_flow(tasks)
        # The frozen one finds out that it is nobody any more.
        for pid in stopped:
            kill(pid, signal.SIGCONT)
        until(lambda: not [pid for pid in frozen.processes() if "start" in cmdline(pid)], "the frozen one ended")
        self.check_flow(tasks)

    def test_a_killed_runner_goes_on_where_it_stood(self):
        tasks = 60 if FULL else 12
        self.lab(2)
        self.flow(tasks, 0.5)
        run = self.house.start("run", "--cluster", "lab", "flow.yaml")
        until(lambda: len(numbers(self.dir / "witness")) >= 3, "it began", 60)
        outposts = list((self.house.state / "runs/many-1/outposts").iterdir())
        self.assertLessEqual(len(outposts), 3, "one agent is enough for a host's tasks, once there are many")
        run.kill()
        run.wait()
        counts = self.house.counts("many-1")
        unrecorded = max(0, 1 + 4 - counts["running"])  # the two hosts run four at a time
        self.berth("resume", "many-1", timeout=120)
        self.check_flow(tasks)
        # What ran when the runner died was attached to, not run again, but for starts of the last
        # moment, which nobody had recorded.
        self.assertLessEqual(len(numbers(self.dir / "witness")), tasks + unrecorded)

    def brief_sweep(self, tasks, script):
        """Of tasks that are over at once; each says so on a line of `witness`."""
        task = self.write("task.sh", f"""#!/bin/sh -e
echo "begin $1 $(date +%s%N) $BERTH_TOKEN" >> {self.dir}/witness
{script}
echo "end $1 $(date +%s%N) $BERTH_TOKEN" >> {self.dir}/witness
""")
        task.chmod(0o755)
        return self.write("brief.yaml", f"name: brief\nrun: {task} {{i}}\nparallel: 2\nsearch: {{method: grid}}\n"
                          f"params: {{i: {{min: 1, max: {tasks}, type: int}}}}\n")

    def side_by_side(self):
        """How many of those that came to an end ran at most at a time, and how often each task began."""
        lines = [line.split() for line in (self.dir / "witness").read_text().splitlines()]
        ended = {token for what, _, _, token in lines if what == "end"}
        at_a_time, most, begun = 0, 0, {}
        for what, number, _, token in sorted(lines, key=lambda line: int(line[2])):
            if token in ended:
                at_a_time += 1 if what == "begin" else -1
            most = max(most, at_a_time)
            if what == "begin":
                begun[number] = begun.get(number, 0) + 1
        return most, begun

    def once_of_three(self, happens):
        """On a busy machine, and where it is sanitized, the tasks are not brief: then nothing is sent ahead."""
        for _ in range(3):
            (self.dir / "witness").unlink(missing_ok=True)
            if happens() or SANITIZED:
                return
        runs = [run["id"] for run in self.house.json("runs")["runs"]]
        if not any(self.were_brief(run) for run in runs):
            self.skipTest("no eight tasks in a row took less than 50 ms on this machine")
        self.fail("not once of three times")

    def were_brief(self, run):
        """Whether a quarter of the tasks followed eight in a row that were."""
        at = datetime.datetime.fromisoformat
        took = [(at(task["ended"]) - at(task["started"])).total_seconds() < 0.05
                for task in sorted(self.house.tasks(run), key=lambda task: task["started"])]
        return sum(all(took[i:i + 8]) for i in range(len(took) - 8)) > len(took) / 4

    def test_brief_tasks_are_sent_ahead(self):
        """Through a line of 50 ms each way, two at a time: 200 of no time took 10 s."""
        self.lab(1)
        proxy = f"ProxyCommand={sys.executable} {os.path.dirname(os.path.abspath(__file__))}/slow_line.py 0.05 %h %p"
        file = self.dir / "clusters.yaml"
        file.write_text(file.read_text().replace("options: [", f"options: [-o, '{proxy}', "))

        def were_sent_ahead():
            self.berth("run", "--cluster", "lab", self.brief_sweep(200, ""))
            self.assertEqual(self.side_by_side(), (2, {str(i): 1 for i in range(1, 201)}))
            lines = sorted(int(line.split()[2]) for line in (self.dir / "witness").read_text().splitlines())
            print(f"200 tasks took {(lines[-1] - lines[0]) / 1e9:.2f} s")
            return (lines[-1] - lines[0]) / 1e9 < 5

        self.once_of_three(were_sent_ahead)

    def test_what_waits_behind_a_task_that_is_not_brief_is_given_back(self):
        self.lab(1)
        tries = iter((1, 2, 3))

        def were_given_back():
            self.berth("run", "--cluster", "lab", self.brief_sweep(120, "[ $1 != 60 ] || sleep 6"))
            most, begun = self.side_by_side()
            self.assertEqual((most, len(begun), set(begun.values())), (2, 120, {1}))
            return max(task["attempts"] for task in self.house.tasks(f"brief-{next(tries)}")) > 1

        self.once_of_three(were_given_back)
        if SANITIZED:
            return
        ended = {line.split()[1]: int(line.split()[2]) for line in (self.dir / "witness").read_text().splitlines()
                 if line.startswith("end")}
        self.assertEqual(max(ended, key=ended.get), "60", "nobody waited for it")

    def test_what_was_sent_ahead_survives_a_killed_runner(self):
        self.lab(1)
        run = self.house.start("run", "--cluster", "lab", self.brief_sweep(400, "sleep 0.01"))
        until(lambda: (self.dir / "witness").exists() and len((self.dir / "witness").read_bytes()) > 5000, "it is under way", 60)
        run.kill()
        run.wait()
        self.berth("resume", "brief-1", timeout=120)
        most, begun = self.side_by_side()
        never = [task for task in self.house.tasks("brief-1") if str(task["params"]["i"]) not in begun]
        self.assertEqual(never, [], "recorded, but never begun")
        self.assertEqual((most, len(begun)), (2, 400))
        again = sum(number - 1 for number in begun.values())
        self.assertLessEqual(again, 100, "only what nobody had recorded runs again")

    def test_stopped_at_once_it_does_not_wait_for_a_host_that_is_cut_off(self):
        host, = self.lab(1, lease="100s")
        run = self.house.start("run", "--cluster", "lab", "--", "sleep", "1000")
        until(lambda: [pid for pid in host.processes() if cmdline(pid).startswith("sleep")], "it runs", 30)
        host.cut()
        run.send_signal(signal.SIGINT)
        next(line for line in run.stderr if b"press again" in line)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=30), 130)
        self.assertIn(b"end with its lease", run.stderr.read())

    def running(self, **lab):
        """A host, and a run whose one task writes into the witness there and ends when `go` is there."""
        host, = self.lab(1, **{"lease": "100s", **lab})
        command = f"echo 1 >> {self.dir}/witness; while [ ! -e {self.dir}/go ]; do sleep 0.05; done; echo told"
        run = self.house.start("run", "--cluster", "lab", "--", "sh", "-c", command)
        until(lambda: numbers(self.dir / "witness"), "it runs", 60)
        until(lambda: self.house.tasks("sh-1")[0].get("host"), "its start is recorded")
        return host, run

    def orphaned(self):
        """The host of such a task, whose runner is dead."""
        host, run = self.running()
        run.kill()
        run.wait()
        return host

    def test_a_resume_waits_for_a_host_on_which_tasks_may_run(self):
        host = self.orphaned()
        host.cut()
        again = self.house.start("resume", "sh-1")
        self.assertIn(b"Berth waits for it", next(line for line in again.stderr if b"does not answer" in line))
        host.start()
        self.write("go", "")
        self.assertEqual(again.wait(timeout=60), 0)
        self.assertEqual(numbers(self.dir / "witness"), [1])

    def killed_with_a_task_on_each(self, lease):
        """A run of five trials of which two run, each on a host of its own, when its runner is killed."""
        hosts = self.lab(2, lease=lease)
        self.write("folder/sweep.yaml", f"run: [sh, -c, 'echo {{x}} >> {self.dir}/witness; "
                   f"while [ ! -e {self.dir}/go ]; do sleep 0.05; done']\n"
                   "params: {x: [1, 2, 3, 4, 5]}\nresources: {cpu: 2}\n")
        run = self.house.start("run", "--cluster", "lab", "folder/sweep.yaml")
        until(lambda: len(numbers(self.dir / "witness")) == 2, "two run", 60)
        until(lambda: len([task for task in self.house.tasks("sweep-1") if task.get("host")]) == 2, "it is recorded")
        run.kill()
        run.wait()
        return hosts

    def test_a_resume_goes_on_elsewhere_while_a_host_refuses(self):
        _, away = self.killed_with_a_task_on_each("100s")
        away.cut()
        self.write("go", "")
        began = time.monotonic()
        again = self.house.start("resume", "sweep-1")
        said = next(line for line in again.stderr if b"does not answer" in line).decode()
        held, = [task for task in self.house.tasks("sweep-1") if task.get("host", "").endswith(str(away.port))]
        for part in (f"127.0.0.1:{away.port}", "refused", f"task {held['id'].rpartition('/')[2]} may run on it", "at most"):
            self.assertIn(part, said)
        until(lambda: self.house.counts("sweep-1")["done"] == 4, "the others are done", 60)
        self.assertLess(time.monotonic() - began, 60, "within the lease")
        self.assertEqual(self.house.counts("sweep-1")["running"], 1)
        away.start()
        self.assertEqual(again.wait(timeout=60), 0)
        self.assertEqual(sorted(numbers(self.dir / "witness")), [1, 2, 3, 4, 5])

    def test_a_resume_runs_again_what_a_host_can_no_longer_run(self):
        _, away = self.killed_with_a_task_on_each("8s")
        away.cut()
        until(lambda: not away.processes(), "its lease has ended there", 60)
        self.write("go", "")
        gone = time.monotonic() + 4  # its last word was at most a third of the lease after what we know of
        until(lambda: time.monotonic() > gone, "as far as we know, too")
        began = time.monotonic()
        again = self.berth("resume", "sweep-1")
        self.assertIn(b"have ended with its lease", again.err)
        self.assertLess(time.monotonic() - began, 8)
        self.assertEqual(set(numbers(self.dir / "witness")), {1, 2, 3, 4, 5})
        self.assertEqual(self.house.counts("sweep-1")["done"], 5)

    def test_a_stop_says_what_may_still_run_where_it_was_not_heard(self):
        host, run = self.running()
        host.cut()
        began = time.monotonic()
        stopped = self.house.run("stop", "sh-1")
        self.assertLess(time.monotonic() - began, 50, "it waits for no lease")
        self.assertEqual(stopped.code, 3, stopped)
        label = self.house.tasks("sh-1")[0]["id"].rpartition("/")[2]
        for part in (f"127.0.0.1:{host.port}", f"task {label} may still run on it", "berth stop sh-1"):
            self.assertIn(part, stopped.err.decode())
        self.assertEqual(run.wait(timeout=30), 3)
        self.assertIn(b"may still run on it", run.stderr.read())
        self.assertEqual(self.house.run("stop", "sh-1").code, 3)
        host.start()
        self.assertIn(b"no part of it runs any more", self.berth("stop", "sh-1").err)
        until(lambda: not [pid for pid in host.processes() if "witness" in cmdline(pid)], "it was ended", 20)

    def test_a_stop_of_a_dead_runner_s_tasks_says_so_too(self):
        host = self.orphaned()
        host.cut()
        stopped = self.house.run("stop", "sh-1")
        self.assertEqual(stopped.code, 3, stopped)
        self.assertIn("may still run on it", stopped.err.decode())

    def test_a_host_that_says_nothing_is_called_for_ten_seconds(self):
        for number, (command, lease) in enumerate([("stop", "100s"), ("stop", "1s"), ("rm", "100s")], 1):
            with self.subTest(command=command, lease=lease):
                host = self.bed.host(f"{command}-{lease}", machine=MACHINE)
                self.lab(1, hosts=[host], lease=lease)
                run = self.house.start("run", "--cluster", "lab", "--", "sh", "-c", "exec sleep 1000")
                name = f"sh-{number}"
                until(lambda: [task for task in self.tasks_of(name) if task.get("host")], "it runs there", 60)
                run.kill()
                run.wait()
                # It takes connections, and nobody reads them.
                for pid in [host.server.pid, *connections(host.port), *host.processes()]:
                    kill(pid, signal.SIGSTOP)
                if lease == "1s":
                    time.sleep(1.5)  # its lease ends there by itself
                began = time.monotonic()
                said = self.house.run(command, name, *(["--force"] if command == "rm" else []))
                took = time.monotonic() - began
                self.assertGreater(took, 9)
                self.assertLess(took, 15, said)
                self.assertEqual(said.code, 0 if lease == "1s" else 3, said)

    def test_what_is_recorded_of_a_silent_host_names_the_time_that_passed(self):
        host, = self.lab(1, lease="5s")
        run = self.house.start("run", "--cluster", "lab", "--", "sh", "-c", "exec sleep 1000")
        until(lambda: [task for task in self.tasks_of("sh-1") if task.get("host")], "it runs there", 60)
        run.kill()
        run.wait()
        for pid in [host.server.pid, *connections(host.port), *host.processes()]:
            kill(pid, signal.SIGSTOP)
        again = self.house.start("resume", "sh-1")
        task = self.tasks_of("sh-1")[0]["id"]
        lost = until(lambda: re.search(r"lost after ([0-9.]+)s", self.house.run("why", task).out.decode()), "it is lost", 60)
        self.assertLess(float(lost[1]), 15, "ten seconds, which is longer than its lease")
        self.assertNotIn("lease of 20", self.house.run("why", task).out.decode())
        again.send_signal(signal.SIGINT)
        _, err = again.communicate(timeout=60)
        self.assertIn(f"127.0.0.1:{host.port} does not answer", err.decode())
        self.assertIn("its tasks have ended with its lease", err.decode())

    def test_a_run_is_not_forgotten_while_it_may_run_where_nobody_answers(self):
        host = self.orphaned()
        host.cut()
        self.assertIn("may still run on", self.one_line(self.berth("rm", "sh-1", code=3)))
        removed = self.house.run("rm", "--force", "sh-1")
        self.assertEqual(removed.code, 3, removed)
        for part in ("sh-1 is not removed", "may still run on it", "berth stop sh-1"):
            self.assertIn(part, self.one_line(removed))
        host.start()
        self.berth("rm", "--force", "sh-1")
        until(lambda: not [pid for pid in host.processes() if "witness" in cmdline(pid)], "it was ended", 20)

    def test_a_broken_file_of_clusters_makes_no_resume_forget_what_runs(self):
        self.orphaned()
        good = (self.dir / "clusters.yaml").read_text()
        self.write("clusters.yaml", "lab: [")
        self.berth("resume", "sh-1", code=2)
        self.write("clusters.yaml", good)
        again = self.house.start("resume", "sh-1")
        self.write("go", "")
        self.assertEqual(again.wait(timeout=60), 0)
        self.assertEqual(numbers(self.dir / "witness"), [1])

    def test_nothing_is_held_there_once_a_run_is_over(self):
        hosts = self.lab(3, lease="100s")
        text = self.bed.clusters(name="lab", hosts=hosts[:1], shared_folders="false", lease="100s")
        text += self.bed.clusters(name="other", hosts=hosts[1:], shared_folders="false", lease="100s")
        self.write("clusters.yaml", text)
        self.write("sweep.yaml", "run: [\"false\"]\nparams: {x: [1, 2, 3, 4, 5, 6, 7, 8]}\n")
        for _ in range(3):
            self.berth("run", "--cluster", "lab,other", "--", "true")
            self.berth("run", "--cluster", "other,lab", "sweep.yaml", code=1)
        until(lambda: not [pid for host in hosts for pid in host.processes() if " start " in cmdline(pid)],
              "no agent is left", 15)

    def test_what_is_retained_is_there_for_a_retry(self):
        host, = self.lab(1)
        self.write("flag", "")
        self.berth("run", "--cluster", "lab", "--retain", "60s", "--", "test", "!", "-e", str(self.dir / "flag"), code=1)
        agents = [pid for pid in host.processes() if " start " in cmdline(pid)]
        self.assertEqual(len(agents), 1, "its alloc is kept")
        (self.dir / "flag").unlink()
        self.berth("retry", "test-1")
        until(lambda: not [pid for pid in host.processes() if " start " in cmdline(pid)], "it is given back", 15)

    def test_a_postscript_runs_behind_a_task_that_took_too_long(self):
        self.lab(1, postscript=f"'echo 1 >> {self.dir}/after'")
        self.berth("run", "--cluster", "lab", "--timeout", "1s", "--", "sleep", "30", code=124)
        self.assertEqual(numbers(self.dir / "after"), [1])

    def test_without_bash_behind_a_prescript_a_task_fails_for_good(self):
        self.lab(1, prescript="PATH=/nowhere", postscript=f"'echo 1 >> {self.dir}/after'")
        self.write("alone/p.yaml", "run: 'echo x; echo y'\nretries: 3\n")
        self.berth("run", "--cluster", "lab", "alone/p.yaml", code=1)
        task = self.house.tasks("p-1")[0]
        self.assertEqual((task["cause"], task["attempts"]), ("cannot start", 1))
        self.assertIn(b"write shell: sh", self.berth("why", "p-1/1").out)
        self.assertEqual(numbers(self.dir / "after"), [1])

    def test_a_task_outlives_a_long_silence(self):
        host, run = self.running(lease="1s", outlive="true")
        host.cut()
        agents = [pid for pid in host.processes() if "start" in cmdline(pid)]
        gone = time.monotonic() + 4  # lengths of its lease
        until(lambda: time.monotonic() > gone, "the lease has ended")
        self.assertEqual([pid for pid in host.processes() if "start" in cmdline(pid)], agents)
        self.write("go", "")
        host.start()
        self.assertEqual(run.wait(timeout=60), 0)
        self.assertEqual(numbers(self.dir / "witness"), [1])
        self.assertIn(b"told", self.berth("logs", "sh-1").out)

    def test_nothing_is_left_when_the_runner_dies_for_good(self):
        host, = self.lab(1, lease="2s")
        run = self.house.start("run", "--cluster", "lab", "--", "sleep", "1000")
        until(lambda: [pid for pid in host.processes() if cmdline(pid).startswith("sleep")], "it runs", 30)
        run.kill()
        until(lambda: not host.processes(), "nothing runs there any more", 30)


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    unittest.main()
