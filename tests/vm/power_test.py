#!/usr/bin/python3
"""The machine that a run is on loses its power: what was told as done is done, and the run goes on."""
import json
import unittest

from vm_case import VmCase, main

TASKS = 60
CUTS = 3
# Prints, once a second, the names of the tasks that berth says are done.
TELL = ("while sleep 1; do berth --json show many-1 | python3 -c 'import json, sys; print(json.dumps([task[\"id\"] "
        "for task in json.load(sys.stdin)[\"tasks\"] if task[\"state\"] == \"done\"]), flush=True)'; done")
FLOW = {"name": "many", "steps": {
    "split": {"run": f"for i in $(seq {TASKS}); do echo $i > {{out.parts}}/$i; done", "out": {"parts": "parts/"}},
    "work": {"foreach": {"part": "split.parts/*"}, "out": {"n": "made/{index}.txt"}, "resources": {"cpu": 0.5},
             "run": "sleep 1; yes $(cat {part}) | head -n 2000 > {out.n}"},
    "sum": {"in": {"n": "work.n"}, "run": "cat {in.n} | sort -n | uniq -c > {out.total}", "out": {"total": "total.txt"}}}}


class Power(VmCase):
    def test_what_was_told_as_done_survives(self):
        machine = self.machine("power")
        machine.put("/home/u/flow/flow.yaml", json.dumps(FLOW))
        self.ok(machine.ssh("root", "chown -R u:u ~u/flow && sync"))
        self.ok(machine.ssh("u", "cd flow && berth run --detach flow.yaml"))
        told = set()
        for cut in range(CUTS):
            told |= self.watch_and_cut(machine, more=8)
            machine.boot(fresh=False)
            shown = json.loads(self.ok(machine.ssh("u", "berth --json show many-1")))["tasks"]
            self.assertLessEqual(told, {task["id"] for task in shown if task["state"] == "done"}, f"cut {cut + 1}")
            resumed = machine.ssh("u", "cd flow && { nohup berth resume many-1 > resumed 2>&1 & } && sleep 5; cat resumed")
            self.ok(resumed)
        ended = machine.ssh("u", "timeout 280 berth wait many-1", timeout=300)
        self.assertEqual(ended.code, 0, f"{ended}\n{machine.ssh('u', 'cat flow/resumed').out[-2000:]}")
        self.check_results(machine, told)

    def watch_and_cut(self, machine, more):
        """Pulls the plug when so many more tasks than at first are done; returns what was told as done by then."""
        with machine.popen("u", TELL) as watch:
            first = told = None
            for line in watch.stdout:
                told = json.loads(line)
                first = len(told) if first is None else first
                if len(told) >= first + more:
                    break
            machine.power_cut()
            watch.kill()
        self.assertIsNotNone(told, "nothing was told before the connection ended")
        self.assertLess(len(told), TASKS + 2, "it was over before the power went")
        return set(told)

    def check_results(self, machine, told):
        total = self.ok(machine.ssh("u", "cat flow/total.txt")).split()
        self.assertEqual([int(word) for word in total], [n for i in range(1, TASKS + 1) for n in (2000, i)])
        sizes = self.ok(machine.ssh("u", "cd flow/made && wc -l *.txt | awk '{print $1}' | sort -n | uniq -c")).split()
        self.assertEqual(sizes[:2], [str(TASKS), "2000"], "every output is whole")
        again = self.ok(machine.ssh("u", "for id in " + " ".join(sorted(told)) + "; do berth --json why $id; echo; done",
                                    timeout=300))
        for line in filter(None, again.splitlines()):
            task = json.loads(line)
            causes = [attempt["cause"] for attempt in task["attempts_made"]]
            self.assertEqual(causes.count("ok"), 1, f"what was told as done ran once more: {task}")


if __name__ == "__main__":
    main()
