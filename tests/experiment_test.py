"""Experiments end to end: how trials are proposed, what they report, and which are cut short."""

import json
import os
import signal
import time
import unittest
from pathlib import Path

from berth_case import Case, until


EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


class Search(Case):
    def params(self, run):
        return [task["params"] for task in self.house.tasks(run)]

    def test_a_trial_goes_without_a_parameter_whose_condition_does_not_hold(self):
        self.write("sweep.yaml", """
run: echo "[{net}] [{drop}]" ${BERTH_PARAM_DROP-none}
params:
  net: [flat, deep]
  drop: {choices: [0.1, 0.5], when: {net: deep}}
""")
        self.berth("run", "sweep.yaml")
        self.assertEqual(self.params("sweep-1"), [{"net": "flat"}, {"net": "deep", "drop": 0.1},
                                                  {"net": "deep", "drop": 0.5}])
        self.assertEqual(self.berth("logs", "sweep-1/1").out, b"[flat] [] none\n")
        self.assertEqual(self.berth("logs", "sweep-1/3").out, b"[deep] [0.5] 0.5\n")

    def test_a_sequence_is_read_from_its_file_beside_the_experiment(self):
        points = [{"lr": 0.1, "net": "a b"}, {"lr": 1}]
        self.write("deep/points.jsonl", "".join(json.dumps(point) + "\n" for point in points))
        self.write("deep/sweep.yaml", "run: echo {lr} {net}\nsearch: {method: sequence, file: points.jsonl}\n")
        self.berth("run", "deep/sweep.yaml")
        self.assertEqual(self.params("sweep-1"), points)
        self.assertEqual(self.berth("logs", "sweep-1/1").out, b"0.1 a b\n")
        self.write("deep/points.jsonl", '{"lr": 1}\n["lr", 1]\n')
        self.assertIn("points.jsonl:2:", self.one_line(self.berth("run", "deep/sweep.yaml", code=2)))

    def test_sobol_points_are_the_same_each_time(self):
        self.write("sweep.yaml", """
run: 'true'
params: {x: {min: 0, max: 1}, n: {min: 1, max: 8, type: int}}
search: {method: sobol, samples: 16, seed: 3}
""")
        self.berth("run", "sweep.yaml")
        self.berth("run", "sweep.yaml")
        self.assertEqual(self.params("sweep-1"), self.params("sweep-2"))
        self.assertEqual(sorted(point["n"] for point in self.params("sweep-1")), [n // 2 for n in range(2, 18)])


class Trials(Case):
    def test_the_checkpoint_directory_is_kept_across_attempts(self):
        self.write("sweep.yaml", """
run: echo $BERTH_TASK >> {checkpoint}/log; test $(wc -l < "$BERTH_CHECKPOINT_DIR/log") = 2 && cat {checkpoint}/log
params: {x: [1, 2]}
retries: 1
""")
        self.berth("run", "sweep.yaml")
        self.assertEqual(self.berth("logs", "sweep-1/2").out, b"sweep-1/2\nsweep-1/2\n")
        self.berth("rm", "sweep-1")
        self.assertFalse((self.house.state / "runs/sweep-1").exists())


class Learning(Case):
    def test_tpe_proposes_as_it_goes_and_the_same_again_for_the_same_scores(self):
        self.write("sweep.yaml", """
run: echo ::berth loss=$(( ({x} - 37) * ({x} - 37) ))
params: {x: {min: 0, max: 100, type: int}, kind: [a, b]}
search: {method: tpe, samples: 30, seed: 4}
goal: {metric: loss, direction: min}
parallel: 1
""")
        self.berth("run", "sweep.yaml")
        self.berth("run", "sweep.yaml")
        params = [task["params"] for task in self.house.tasks("sweep-1")]
        self.assertEqual(len(params), 30)
        self.assertEqual(params, [task["params"] for task in self.house.tasks("sweep-2")])
        self.assertLessEqual(self.house.json("best", "sweep-1")["metrics"]["loss"], 9)

    def test_a_run_that_was_stopped_goes_on_proposing(self):
        self.write("sweep.yaml", """
run: echo ::berth loss={x}; test {x} -lt 100 || sleep 0.2
params: {x: {min: 100, max: 1000}}
search: {method: tpe, samples: 12}
goal: {metric: loss, direction: min}
parallel: 1
""")
        process = self.house.start("run", "sweep.yaml")
        until(lambda: len(self.house.json("runs")["runs"]) == 1 and self.house.counts("sweep-1")["done"] >= 3,
              "three trials")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)
        self.assertLess(self.house.counts("sweep-1")["done"], 12)
        self.berth("resume", "sweep-1")
        self.assertEqual(self.house.counts("sweep-1")["done"], 12)

    def test_halving_gives_more_to_the_best_third_from_their_checkpoints(self):
        self.write("sweep.yaml", """
run: |
  echo {epochs} >> {checkpoint}/seen; echo ::berth acc=$(( {x} * {epochs} )) seen=$(wc -l < {checkpoint}/seen)
params: {x: {min: 0, max: 1000, type: int}}
search: {method: halving, samples: 18, budget: {param: epochs, min: 1, max: 9}}
goal: {metric: acc}
""")
        self.berth("run", "sweep.yaml")
        tasks = self.house.tasks("sweep-1")
        given = {}
        for task in tasks:
            given.setdefault(task["params"]["epochs"], []).append(task)
        self.assertEqual(len(given[1]), 18)
        self.assertGreaterEqual(len(given[3]), 6)
        self.assertGreaterEqual(len(given[9]), 1)
        self.assertTrue(all(task["metrics"]["seen"] == 3 for task in given[9]))
        first = max(given[1], key=lambda task: task["params"]["x"])["id"].rpartition("/")[2].split("@")[0]
        self.assertEqual(self.house.json("best", "sweep-1")["id"].rpartition("/")[2], f"{first}@9")


class Proposers(Case):
    """What a process of one's own proposes, and how it may misbehave."""

    def search(self, script, more="", code=0):
        self.script("propose", "#!/usr/bin/python3\nimport json, sys, time\n" + script)
        self.write("sweep.yaml", f"""
run: echo ::berth loss={{x}}
search: {{method: external, run: ./propose, samples: 5{more}}}
goal: {{metric: loss, direction: min}}
parallel: 1
""")
        return self.berth("run", "sweep.yaml", code=code, timeout=480)

    def test_it_is_told_every_trial_and_asked_for_the_next(self):
        self.search("""
lines = []
for line in sys.stdin:
    lines.append(json.loads(line))
    open("seen", "w").write(json.dumps(lines))
    if "ask" in lines[-1]:
        done = [each["tell"] for each in lines if each.get("tell", {}).get("state") == "done"]
        print(json.dumps({"params": {"x": 10 + len(done), "free": "a b"}} if len(done) < 3 else {"done": True}), flush=True)
""")
        self.assertEqual([task["params"] for task in self.house.tasks("sweep-1")],
                         [{"x": x, "free": "a b"} for x in (10, 11, 12)])
        seen = json.loads((self.dir / "seen").read_text())
        self.assertEqual(seen[0]["goals"], [{"metric": "loss", "direction": "min"}])
        self.assertIn({"tell": {"trial": "2", "state": "done", "params": {"x": 11, "free": "a b"},
                                "metrics": {"loss": 11}}}, seen)
        self.assert_tidy()

    def test_what_is_no_answer_fails_the_run_with_the_reason(self):
        silent = "time.sleep(60)"
        for script, reason in (("print('what?', flush=True); time.sleep(9)", "from the proposer, got "),
                               ("sys.exit('cannot think')", "ended without an answer: cannot think"),
                               ("print('x' * 70000, flush=True); time.sleep(9)", "a line of more than 65536 bytes"),
                               ("print('{\"wait\": true}', flush=True); time.sleep(9)", "no trial is running"),
                               (silent, "did not answer within 300ms")):
            patience = "300ms" if script == silent else "9s"
            self.assertIn(reason, self.search(script, f", patience: {patience}", code=1).out.decode(), script)
        self.assert_tidy()

    def test_an_interrupt_ends_one_that_is_silent(self):
        self.script("propose", "#!/bin/sh\ntrap '' INT TERM\nsleep 60\n")
        self.write("sweep.yaml", "run: echo {x}\nsearch: {method: external, run: ./propose, samples: 5}\ngoal: {metric: m}")
        process = self.house.start("run", "sweep.yaml")
        until(lambda: (self.house.state / "runs/sweep-1/proposer.pipe").exists(), "the proposer")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)
        self.assert_tidy()

    def test_nothing_is_done_while_it_is_told_what_it_need_not_answer(self):
        self.script("propose", """#!/usr/bin/python3
import json, sys
for line in sys.stdin:
    if "ask" in json.loads(line):
        print(json.dumps({"params": {"x": int(json.loads(line)["ask"])}}), flush=True)
""")
        self.write("sweep.yaml", """
run: echo ::berth m={x}; test {x} = 1 || sleep 60
search: {method: external, run: ./propose, samples: 2}
goal: {metric: m}
parallel: 2
""")
        process = self.house.start("run", "sweep.yaml")
        def half_done():
            counts = self.house.json("runs")["runs"] and self.house.counts("sweep-1")
            return counts and counts["done"] == counts["running"] == 1
        until(half_done, "one trial done, one running")
        def cpu():
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        before = cpu()
        time.sleep(1)
        self.assertLess(cpu() - before, 0.2, "seconds of CPU in one of nothing")
        process.send_signal(signal.SIGINT)
        process.wait()

    def test_the_example_climbs(self):
        self.berth("run", EXAMPLES / "proposer/climb.yaml")
        self.assertGreater(self.house.json("best", "climb-1")["metrics"]["height"], 9)


class Goals(Case):
    def test_several_goals_have_a_front(self):
        self.write("sweep.yaml", """
run: echo ::berth gain={a} cost={b}
search: {method: sequence, points: [{a: 1, b: 1}, {a: 2, b: 2}, {a: 2, b: 3}, {a: 0, b: 2}, {a: 3, b: 9}]}
goal: [{metric: gain}, {metric: cost, direction: min}]
""")
        self.berth("run", "sweep.yaml")
        self.assertEqual(sorted(self.house.json("show", "sweep-1")["front"]), ["sweep-1/1", "sweep-1/2", "sweep-1/5"])
        self.assertIn(b"no trial is better in all goals", self.berth("best", "sweep-1").out)

    def test_the_best_runs_once_more_and_is_told_to_save(self):
        self.write("sweep.yaml", """
run: echo ::berth gain={a}; echo {save} $BERTH_SAVE
params: {a: [1, 3, 2]}
goal: {metric: gain}
save_best: true
""")
        self.berth("run", "sweep.yaml")
        tasks = self.house.tasks("sweep-1")
        self.assertEqual([task["params"]["a"] for task in tasks], [1, 3, 2, 3])
        self.assertIn(b"1 1\n", self.berth("logs", "sweep-1/best").out)
        self.assertIn(b"0 0\n", self.berth("logs", "sweep-1/2").out)
        self.berth("resume", "sweep-1")
        self.assertEqual(len(self.house.tasks("sweep-1")), 4)

    def test_a_warm_start_begins_where_an_earlier_run_has_come(self):
        text = """
run: echo ::berth loss=$(( ({x} - 370) * ({x} - 370) ))
params: {x: {min: 0, max: 1000, type: int}}
search: {method: METHOD, samples: COUNT}
goal: {metric: loss, direction: min}
parallel: 1
"""
        self.write("wide.yaml", text.replace("METHOD", "sobol").replace("COUNT", "30"))
        self.write("near.yaml", text.replace("METHOD", "tpe").replace("COUNT", "10"))
        self.berth("run", "wide.yaml")
        self.berth("run", "--warm-start", "wide-1", "near.yaml")
        def best(run):
            return min((task["params"]["x"] for task in self.house.tasks(run)), key=lambda x: abs(x - 370))

        near = [task["params"]["x"] for task in self.house.tasks("near-1")]
        self.assertEqual(near[0], best("wide-1"))
        self.assertTrue(all(abs(x - 370) < 150 for x in near[:3]), near)
        self.write("far.yaml", text.replace("METHOD", "random").replace("COUNT", "30").replace("$((", "$((100000 + 9 *"))
        self.berth("run", "far.yaml")
        self.berth("run", "--warm-start", "wide-1", "--warm-start", "far-1", "near.yaml")
        near = [task["params"]["x"] for task in self.house.tasks("near-2")]
        self.assertEqual(near[0], best("far-1"))
        self.assertTrue(all(abs(x - 370) < 150 for x in near[:3]), near)
        self.assertIn("does not learn from trials", self.one_line(self.berth("run", "--warm-start", "wide-1", "wide.yaml",
                                                                       code=2)))
        self.write("other.yaml", text.replace("METHOD", "tpe").replace("COUNT", "10").replace("370", "y").replace(
            "{x: {min: 0, max: 1000, type: int}}", "{y: {min: 0, max: 1000, type: int}}"))
        self.assertIn("no trial of wide-1 is within", self.one_line(
            self.berth("run", "--warm-start", "wide-1", "other.yaml", code=2)))


class EarlyStop(Case):
    def test_what_stays_behind_is_ended_with_what_it_has_and_says_why(self):
        self.script("x", """#!/bin/sh
trap 'echo "::berth acc=999"; exit' TERM
for step in 1 2 3 4 5 6; do echo "::berth acc=$1"; done
[ "$1" -ge 5 ] || sleep 30 & wait
echo "::berth late=1"
""")
        self.write("sweep.yaml", """
run: ./x {q}
search: {method: sequence, points: [{q: 5}, {q: 7}, {q: 2}, {q: 9}]}
goal: {metric: acc}
constraints: [late <= 1]
early_stop: {policy: median, warmup: 2}
parallel: 1
""")
        self.berth("run", "sweep.yaml")
        tasks = self.house.tasks("sweep-1")
        self.assertEqual([task["broken"] for task in tasks], [[]] * 4, "the third never told late")
        self.assertEqual([task["state"] for task in tasks], ["done"] * 4)
        self.assertEqual([task["cause"] for task in tasks], ["ok", "ok", "stopped early", "ok"])
        self.assertEqual(tasks[2]["metrics"], {"acc": 2}, "what it said after it was told to end")
        why = self.berth("why", "sweep-1/3").out.decode()
        self.assertIn("its best acc in 3 reports is 2; the median of the averages of 2 other trials by then is 6", why)
        self.assertEqual(self.house.json("best", "sweep-1")["params"], {"q": 9})
        self.assert_tidy()

    def test_the_best_report_counts_where_the_goal_says_so(self):
        self.write("sweep.yaml", """
run: echo ::berth loss=3; echo ::berth loss={x}; echo ::berth loss=5
params: {x: [2, 1, 4]}
goal: {metric: loss, direction: min, score: best}
""")
        self.berth("run", "sweep.yaml")
        self.assertEqual([task["metrics"] for task in self.house.tasks("sweep-1")],
                         [{"loss": 5, "loss.best": 2}, {"loss": 5, "loss.best": 1}, {"loss": 5, "loss.best": 3}])
        self.assertEqual(self.house.json("best", "sweep-1")["params"], {"x": 1})


class Causes(Case):
    """What a misbehaving trial is told to have died of."""

    def why(self, command, more="", code=1):
        self.write("sweep.yaml", f"run: {json.dumps(command)}\ngoal: {{metric: acc}}\n{more}")
        self.berth("run", "sweep.yaml", code=code, timeout=480)
        name = self.house.json("runs")["runs"][-1]["id"]
        return self.berth("why", f"{name}/1").out.decode()

    def test_no_score(self):
        self.assertIn("it never reported acc, which its goal requires; it reported no metrics", self.why("echo acc=1"))
        self.assertIn("it never reported acc, which its goal requires; it reported loss, epoch",
                      self.why("echo ::berth loss=1 epoch=2"))

    def test_a_checkpoint_that_is_not_reported_again(self):
        self.script("x", """#!/bin/sh
[ ! -e $1/state ] || exit 0
touch $1/state && echo ::berth acc=1 && kill -9 $$
""")
        self.assertIn("a script that continues from it must report again", self.why("./x {checkpoint}", "retries: 1"))

    def test_not_a_number(self):
        why = self.why("echo '::berth acc=nan'")
        self.assertIn("not as declared", why)
        self.assertIn("acc: nan is not a finite number, and was recorded as missing", why)

    def test_not_a_number_after_a_number(self):
        why = self.why("echo '::berth acc=0.5'; echo '::berth acc=nan'")
        self.assertIn("the last acc that it reported was not a finite number", why)

    def test_half_a_line(self):
        why = self.why("printf '::berth acc='")
        self.assertIn("a metric line could not be read: ::berth acc=", why)

    def test_a_hundred_megabytes_of_output(self):
        why = self.why("head -c 100000000 /dev/zero; echo; echo '::berth acc=1'", code=0)
        self.assertIn("ok after", why)

    def test_one_that_ignores_TERM(self):
        self.script("x", "#!/bin/sh\ntrap '' TERM\necho ::berth acc=1\nwhile :; do sleep 0.05; done\n")
        self.assertIn("time limit", self.why("./x", "timeout: 300ms\ngrace: 200ms\n"))
        self.assert_tidy()

    def test_one_that_leaves_a_daemon_behind(self):
        why = self.why("echo ::berth acc=1; setsid sleep 600 >/dev/null 2>&1 &", code=0)
        self.assertIn("ok after", why)
        self.assert_tidy()


if __name__ == "__main__":
    unittest.main(verbosity=2)
