#!/usr/bin/python3
"""berth on EC2: against an endpoint that judges each request (ec2_fake.py), with instances that are
directories here, reached through a stand-in for ssh, whose guards really run."""

import json
import os
import signal
import subprocess
import time
import unittest
import urllib.request
from pathlib import Path

import hostile
from berth_case import Case, until

SSH = """#!/bin/sh
# ssh to an instance: its home is a directory, its /run is below that.
while [ $# -gt 0 ]; do
  case $1 in
    -o) case $2 in HostKeyAlias=*) id=${2#HostKeyAlias=} ;; esac; shift 2 ;;
    -p|-l|-i) shift 2 ;;
    --) shift 2; break ;;
    *) shift ;;
  esac
done
home=$BERTH_FAKE_ROOT/$id
[ -e "$home/running" ] || { echo "ssh: connect to host $id: Connection refused" >&2; exit 255; }
cd "$home" || exit 255
command=$(printf %s "$*" | sed "s|/run/|$home/|g; s|/etc/|$home/etc/|g")
exec env PATH="$home/bin:$PATH" HOME="$home" BERTH_FAKE_INSTANCE="$id" BERTH_LEDGER="$home/ledger" /bin/sh -c "$command"
"""

FAKE = Path(__file__).resolve().parent / "ec2_fake.py"


class Ec2Test(Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir / "ec2"
        self.root.mkdir()
        environment = {**os.environ, "BERTH_TEST": str(self.dir)}
        self.fake = subprocess.Popen([FAKE, "--directory", self.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     env=environment)
        self.addCleanup(self.end_fake)
        self.url = f"http://127.0.0.1:{int(self.fake.stdout.readline())}/"
        self.script("bin/ssh", SSH)
        self.house.environment.update({
            "PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}", "BERTH_FAKE_ROOT": str(self.root),
            "BERTH_CLUSTERS": str(self.dir / "clusters.yaml"), "AWS_ENDPOINT_URL_EC2": self.url,
            "AWS_ACCESS_KEY_ID": "AKIAFAKE", "AWS_SECRET_ACCESS_KEY": "secret/with+signs=",
            "HOME": str(self.dir / "home")})
        self.cluster()

    def end_fake(self):
        self.fake.stdin.close()
        self.fake.wait()
        self.fake.stdout.close()

    def cluster(self, **more):
        settings = {"kind": "ec2", "region": "eu-west-1", "image": "ami-0123456789abcdef0", "idle": "0s",
                    "types": [{"type": "t3.medium", "cpu": 2, "mem": "4Gi", "price": 60}], **more}
        self.write("clusters.yaml", json.dumps({"cloud": settings}))

    def tell(self, **knobs):
        urllib.request.urlopen(urllib.request.Request(self.url + "fake", json.dumps(knobs).encode())).close()

    def told(self):
        with urllib.request.urlopen(self.url + "fake") as answer:
            return json.load(answer)

    def instances(self, *states):
        return [each for each in self.told()["instances"] if not states or each["state"] in states]

    def sweep(self, seconds=0, trials=4):
        return self.write("sweep.yaml", "name: digits\n"
                          f"run: sh -c 'sleep {seconds}; echo ::berth metric={{n}}'\n"
                          f"params: {{n: {{min: 1, max: {trials}, type: int, n: {trials}}}}}\n"
                          "search: {method: grid}\nresources: {cpu: 1}\n")

    def assert_nothing_left(self):
        until(lambda: not self.instances("pending", "running"), f"left running: {self.instances()}")

    def test_a_sweep_runs_on_an_instance_that_is_then_terminated(self):
        self.tell(throttle=3, lose_answers=1)
        self.berth("run", "--cluster", "cloud", "--label", "team=vision", self.sweep())
        self.assertEqual(self.house.counts("digits-1")["done"], 4)
        instance, = self.instances()
        self.assertEqual(instance["tags"]["berth:label:team"], "vision")
        self.assertEqual(instance["tags"]["berth-run"], "digits-1")
        self.assertEqual(instance["behaviour"], "terminate")
        self.assertIn(instance["state"], ("shutting-down", "terminated"))
        self.assertGreater(self.told()["calls"].count("RunInstances"), 1)  # asked again, started once
        self.assertEqual({task["host"] for task in self.house.tasks("digits-1")}, {instance["id"]})

    def test_top_shows_the_instances_and_whose_they_are(self):
        run = self.house.start("run", "--cluster", "cloud", self.sweep(seconds=100, trials=2))
        until(lambda: any(task["state"] == "running" for task in self.tasks_or_none("digits-1")), "no trial runs", 60)
        cluster, = self.house.json("top", "--once")["clusters"]
        self.assertEqual((cluster["name"], cluster["kind"]), ("cloud", "ec2"))
        (instance,), (host,) = self.instances(), cluster["hosts"]
        self.assertEqual((host["host"], host["holders"], host["state"]), (instance["id"], "digits-1", "t3.medium running"))
        self.assertEqual((host["total"]["cpu"], host["free"].get("cpu", 0)), (2, 0))
        self.assertRegex(self.berth("top", "--once").out.decode(), rf"cloud +{instance['id']} +cpu 2 of 2.*digits-1")
        run.send_signal(signal.SIGINT)
        run.wait(60)
        self.assert_nothing_left()

    def test_wrong_credentials_are_told_and_nothing_starts(self):
        self.house.environment["AWS_SECRET_ACCESS_KEY"] = "of-somebody-else"
        finished = self.house.run("run", "--cluster", "cloud", self.sweep())
        self.assertNotEqual(finished.code, 0)
        self.assertIn(b"are key and secret right?", finished.err)
        self.assertNotIn(b"of-somebody-else", finished.err + finished.out)
        self.assertEqual(self.instances(), [])

    def test_an_image_that_is_not_there_ends_the_run(self):
        self.cluster(image="ami-00000000000000bad")
        began = time.monotonic()
        finished = self.berth("run", "--cluster", "cloud", self.sweep(), code=3)
        self.assertLess(time.monotonic() - began, 20)
        for part in (b"InvalidAMIID.NotFound", b"`image` in clusters.yaml", b"berth resume digits-1"):
            self.assertIn(part, finished.err)
        self.assertEqual(self.house.counts("digits-1")["waiting"], 4)
        self.assertLess(self.told()["calls"].count("RunInstances"), 5)
        self.cluster()
        self.berth("resume", "digits-1")

    def test_a_budget_that_starts_nothing_says_so(self):
        self.cluster(budget=1)
        finished = self.house.run("run", "--cluster", "cloud", self.sweep())
        self.assertNotEqual(finished.code, 0)
        self.assertIn(b"the budget of 1 cents is used up", finished.err)
        self.assertEqual(self.instances(), [])

    def test_a_spot_instance_that_is_taken_away_costs_nothing_but_time(self):
        self.cluster(spot=True)
        run = self.house.start("run", "--cluster", "cloud", self.sweep(seconds=1, trials=4))
        until(lambda: self.house.leftovers() and any(task["state"] == "running"
                                                     for task in self.tasks_or_none("digits-1")), "no trial runs")
        first, = self.instances()
        self.assertTrue(first["spot"])
        self.tell(lose=[first["id"]])
        self.assertEqual(run.wait(timeout=60), 0)
        self.assertEqual(self.house.counts("digits-1")["done"], 4)
        self.assertEqual(len(self.instances()), 2)
        self.assert_nothing_left()

    def test_an_instance_of_a_killed_runner_ends_itself_and_the_run_goes_on(self):
        self.cluster(guard="10s", patience="10s", lease="5s")
        run = self.house.start("run", "--cluster", "cloud", self.sweep(seconds=2, trials=4))
        until(lambda: any(task["state"] == "running" for task in self.tasks_or_none("digits-1")), "no trial runs")
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        instance, = self.instances("running")
        until(lambda: not self.instances("pending", "running"), "the guard does not end it", patience_s=30)
        self.assertEqual(self.instances()[0]["reason"], "Client.InstanceInitiatedShutdown")
        self.berth("resume", "digits-1")
        self.assertEqual(self.house.counts("digits-1")["done"], 4)
        self.assert_nothing_left()

    def test_what_a_dead_runner_left_is_found_and_cleaned_up(self):
        self.cluster(idle="1m")
        run = self.house.start("run", "--cluster", "cloud", self.sweep(seconds=30))
        until(lambda: any(task["state"] == "running" for task in self.tasks_or_none("digits-1")), "no trial runs")
        self.assertEqual(self.house.json("cluster", "clean", "cloud")["ended"], [])  # its runner lives
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        probed, = self.house.json("cluster", "probe", "cloud")["ec2"]
        self.assertTrue(all(one["allowed"] for one in probed["permissions"]), probed)
        self.assertEqual([one["run"] for one in probed["instances"]], ["digits-1"])
        self.assertIn(b"of digits-1", self.berth("cluster", "clean", "cloud").out)
        self.assert_nothing_left()
        self.tell(denied=["RunInstances"])
        probed, = json.loads(self.house.run("--json", "cluster", "probe", "cloud").out)["ec2"]
        self.assertEqual([one["action"] for one in probed["permissions"] if not one["allowed"]], ["RunInstances"])

    def test_named_instances_are_started_and_stopped(self):
        self.tell(make=[{"id": "i-0123456789abcdef0", "type": "t3.medium"}])
        self.write("clusters.yaml", json.dumps({"cloud": {"kind": "ec2", "region": "eu-west-1",
                                                          "instances": ["i-0123456789abcdef0"]}}))
        self.script("bin/sudo", '#!/bin/sh\nshift\nexec "$@"\n')
        self.berth("run", "--cluster", "cloud", self.sweep())
        instance, = self.instances()
        self.assertIn(instance["state"], ("stopping", "stopped"))

    def test_auptimizer_s_instances_of_two_keys(self):
        names = ["i-0123456789abcdef0", "i-0123456789abcdef1"]
        self.tell(make=[{"id": name, "type": "t3.medium"} for name in names])
        self.script("bin/sudo", '#!/bin/sh\nshift\nexec "$@"\n')
        self.house.environment["AWS_REGION"] = "eu-west-1"
        for key in "kq":
            self.write(key, "")
        self.write("aup/.aup/env.ini", "[Auptimizer]\naws_mapping = {\n" + ",\n".join(
            f'  "{i}": "ubuntu@{name} {self.dir}/{key}"' for i, (name, key) in enumerate(zip(names, "kq"))) + "}\n")
        self.script("aup/train.py", "#!/usr/bin/env python3\nimport sys\nfrom aup import BasicConfig, print_result\n"
                    "print_result(BasicConfig().load(sys.argv[1]).x)\n")
        folder = self.dir / "home/ubuntu/aup"
        document = {"workingdir": str(folder), "proposer": "sequence", "script": "train.py", "resource": "aws",
                    "n_parallel": 4, "target": "max", "parameter_config": [{"name": "x", "range": [1, 6], "type": "int"}],
                    "runtime_args": {"prescript": "source .profile; true", "postscript": "echo DONE", "overwrite": True},
                    "job_failure": {"ignore_fail": True, "job_retries": 3},
                    "resource_args": {"shutdown": True, "connection_retry": 5, "async_run": True, "async_reconnect": 60,
                                      "async_timeout": 1000}}
        self.write("aup/exp.json", json.dumps(document))
        self.berth("run", "aup/exp.json", timeout=120)
        self.assertEqual([task["metrics"] for task in self.house.tasks("exp-1")], [{"score": x} for x in range(1, 7)])
        self.assertIn(b"DONE", self.berth("logs", "exp-1/1").out)
        until(lambda: not self.instances("pending", "running"), "they are shut down")
        own = (self.house.state / "runs/exp-1/clusters.yaml").read_text()
        for part in ("aws:\n  kind: ec2", "aws-2:\n  kind: ec2", "reconnect: 60s", "at_end: stop", "patience: 150s"):
            self.assertIn(part, own)

    def test_instances_come_and_go_with_the_need(self):
        self.cluster(most=3)
        run = self.house.start("run", "--cluster", "cloud", self.write("sweep.yaml", (
            "name: digits\nrun: sh -c 'test {n} = 1 && sleep 16; sleep 2'\nparams: {n: {min: 1, max: 4, type: int}}\n"
            "search: {method: grid}\nresources: {cpu: 1}\n")))
        until(lambda: len(self.instances("running")) == 2, "two instances for four tasks", 40)
        until(lambda: len(self.instances("running")) == 1, "the one that nobody needs ends", 40)
        self.assertIsNone(run.poll(), "while the other works")
        self.assertEqual(run.wait(timeout=90), 0)
        self.assertEqual(len(self.instances()), 2)
        self.assert_nothing_left()

    def test_a_spot_instance_that_is_about_to_go_is_left_in_time(self):
        self.cluster(spot=True)
        run = self.house.start("run", "--cluster", "cloud", self.sweep(seconds=5, trials=8))
        until(lambda: any(task["state"] == "running" for task in self.tasks_or_none("digits-1")), "no trial runs", 40)
        first, = self.instances()
        self.tell(interrupt=[first["id"]])
        self.assertEqual(run.wait(timeout=120), 0)
        self.assertEqual(self.house.counts("digits-1")["done"], 8)
        self.assertEqual(len(self.instances()), 2)
        self.assertEqual(self.instances()[0]["reason"], "", "we ended it, before EC2 did")
        self.assert_nothing_left()

    def test_what_people_name_is_never_more_than_a_name(self):
        hostile.check(self, "cloud")

    def tasks_or_none(self, run):
        shown = self.house.run("--json", "show", run)
        return json.loads(shown.out)["tasks"] if shown.code == 0 else []


if __name__ == "__main__":
    unittest.main()
