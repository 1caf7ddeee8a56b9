#!/usr/bin/python3
"""A campaign of kills against everything that may happen next to a run; it reports what was lost, doubled or left.

    campaign.py --berth PATH --kills N [--seed S] [flows] [studies] [migrations]

flows       the runs of crash.py, while `prune`, `rm` and `cache --collect` run (and are killed) next to them
studies     four processes that share a study; they and their berths are killed, and stopped for longer than a lease
migrations  `berth migrate` of a state directory to a new PostgreSQL database, killed at random moments
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import crash
import postgres_server
from berth_case import BERTH, House, alive
from crash import demand

ROOT = Path(__file__).resolve().parent.parent


class Flows(crash.Killer):
    """Runs that are killed while other commands delete ended runs and unused files of the cache."""

    def __init__(self, house, rng):
        super().__init__(house, rng, tasks=20)
        self.removed = set()  # runs that a command deleted, or may have deleted
        self.commands = 0

    def start(self):
        process = super().start()
        if self.rng.random() < 0.6:
            self.clean_up()
        return process

    def check_ended(self):
        """Checks each run that is done, for it may be deleted next. Returns these runs."""
        ended = [run["id"] for run in self.house.json("runs")["runs"] if run["state"] == "done" and run["id"] != self.run]
        for run in ended:
            crash.check_run(self, run)
        return ended

    def clean_up(self):
        """Runs one command that deletes; one of three is killed."""
        ended = self.check_ended()
        choices = [["cache", "--collect"], ["prune", "--older-than", "0s"]]
        if ended:
            choices.append(["rm", self.rng.choice(ended)])
        if self.run:
            choices.append(["rm", self.run])  # refused while anything of it is alive
        command = self.rng.choice(choices)
        process = self.house.start(*command)
        self.commands += 1
        try:
            out, err = process.communicate(timeout=self.rng.uniform(0, 0.03) if self.rng.random() < 0.34 else 60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.kills += 1
        else:
            allowed = (0, 3) if command[0] == "rm" else (0,)
            demand(process.returncode in allowed, f"{command}: {process.returncode} {out.decode()} {err.decode()}")
        left = {run["id"] for run in self.house.json("runs")["runs"]}
        if command[0] != "cache":  # the run that is driven may have ended before the command looked
            self.witness.read()
            self.removed |= {line.split()[0] for line in self.witness.text.splitlines()} - left
        if self.run not in left:
            self.run = None


WORKER = """
import os, random, sys, time, berth
study = berth.load_study(sys.argv[1])
print("berth", study._pipe._process.pid, flush=True)
for trial in study:
    time.sleep(random.random() / 50)
    try:
        study.tell(trial, trial.number)
    except berth.Failed:
        continue  # its claim ended while it was stopped; another process has the trial
    print("told", trial.number, flush=True)
"""


class Studies:
    """Studies of a hundred trials for four processes each."""

    LEASE_S = 0.5

    def __init__(self, house, rng):
        self.house, self.rng = house, rng
        self.kills = self.freezes = self.studies = 0
        os.environ.update(house.environment, BERTH_BIN=house.berth, PYTHONPATH=str(ROOT / "python"))
        sys.path.insert(0, str(ROOT / "python"))

    def start(self, study, place):
        """A worker, which writes to a file: what it wrote before a kill is there."""
        with open(place, "ab") as out:
            return subprocess.Popen(["/usr/bin/python3", "-c", WORKER, study], stdout=out, stderr=subprocess.DEVNULL,
                                    stdin=subprocess.DEVNULL)

    def one_study(self, kills):
        import berth
        self.studies += 1
        study = berth.Study(space={"x": {"min": -2, "max": 2}}, goal="f", direction="min", samples=100, lease=self.LEASE_S)
        places, workers, frozen, before = [], [], {}, self.kills
        while self.kills - before < kills and study.record()["counts"]["done"] < 100:
            workers = [(worker, place) for worker, place in workers if worker.poll() is None]
            while len(workers) < 4:
                places.append(self.house.path / f"worker{self.studies}.{len(places)}")
                workers.append((self.start(study.name, places[-1]), places[-1]))
            time.sleep(self.rng.uniform(0, 0.3))
            self.hit(*self.rng.choice(workers), frozen)
            self.thaw(frozen, time.monotonic())
        self.thaw(frozen, float("inf"))
        for worker, _ in workers:
            worker.wait(120)
        while (trial := study.ask()) is not None:
            study.tell(trial, trial.number)
        self.check(study, places)
        study.close()

    def hit(self, worker, place, frozen):
        """Kills or stops a worker or its berth."""
        pid = worker.pid
        if self.rng.random() < 0.5:
            line = place.read_text().partition("\n")[0]
            pid = int(line.split()[1]) if line else pid
        if pid in frozen or not alive(pid):
            return
        if self.rng.random() < 0.4:
            os.kill(pid, signal.SIGSTOP)
            frozen[pid] = time.monotonic() + self.rng.uniform(0, 3 * self.LEASE_S)
            self.freezes += 1
        else:
            os.kill(pid, signal.SIGKILL)
            self.kills += 1

    def thaw(self, frozen, now):
        for pid in [pid for pid, end in frozen.items() if end <= now]:
            del frozen[pid]
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def check(self, study, places):
        demand(study.wait() == "done", f"{study.name} does not end")
        trials = study.trials()
        demand([trial.metrics for trial in trials] == [{"f": n} for n in range(1, 101)], f"{study.name}: wrong metrics")
        acknowledged = [int(line.split()[1]) for place in places for line in place.read_text().splitlines()
                        if line.startswith("told ")]
        demand(len(acknowledged) == len(set(acknowledged)), f"{study.name}: a result was accepted twice")
        for trial in trials:
            attempts = self.house.json("why", trial.id)["attempts_made"]
            good = [attempt for attempt in attempts if attempt["cause"] == "ok"]
            demand(len(good) == 1 and good[0] is attempts[-1], f"{trial.id}: {attempts}")
            demand(all(attempt["ended"] for attempt in attempts), f"{trial.id}: an attempt never ended: {attempts}")


class Migrations:
    """State directories that move to a database each; the command is killed until one time it is not."""

    def __init__(self, path, rng, berth):
        self.path, self.rng, self.berth = path, rng, berth
        self.kills = self.moved = 0
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None
        self.server = postgres_server.Server(memory, settings=["fsync = off"])

    def one(self, kills):
        self.moved += 1
        database = f"m{self.moved}"
        self.server.sql(f"CREATE DATABASE {database}")
        path = self.path / database
        path.mkdir()
        house = House(path, self.berth)
        (path / "s.yaml").write_text("name: s\nrun: echo '::berth value={i}'\n"
                                     f"params: {{i: [{', '.join(map(str, range(100)))}]}}\n")
        ran = house.run("run", "s.yaml")
        demand(ran.code == 0, f"{ran}")
        asked = (("--json", "runs"), ("--json", "show", "s-1"), ("--json", "why", "s-1/7"), ("logs", "s-1/7"))
        before = [house.run(*command).out for command in asked]
        url = self.server.url(database)
        took_s = 0.2
        for _ in range(kills):
            process = house.start("migrate", "--to", url)
            try:
                process.communicate(timeout=self.rng.uniform(0, took_s))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                self.kills += 1
            else:
                demand(process.returncode == 0, f"migrate ended with {process.returncode}")
        last = house.run("migrate", "--to", url)
        demand(last.code == 0, f"the last migration: {last}")
        house.environment["BERTH_DB"] = url
        house.environment["BERTH_STATE"] = str(house.state)
        after = [house.run(*command).out for command in asked]
        demand(before == after, f"{database}: differs after the migration: {before} {after}")
        house.close()

    def close(self):
        self.server.close()


def flows(house, rng, kills):
    killer = Flows(house, rng)
    while killer.kills < kills:
        killer.one_round()
    killer.finish()
    killer.sweep()
    runs = crash.check(killer)
    known = {line.split()[0] for line in killer.witness.text.splitlines()}
    lost = known - killer.removed - {run["id"] for run in house.json("runs")["runs"]}
    demand(not lost, f"runs that no command deleted are gone: {lost}")
    directories = set(os.listdir(house.state / "runs")) & killer.removed
    return killer.kills, (f"{killer.resumes} resumes, {runs} runs left and {len(killer.removed)} removed by "
                          f"{killer.commands} commands; {len(directories)} directories of removed runs are left")


def studies(house, rng, kills):
    campaign = Studies(house, rng)
    while campaign.kills < kills:
        campaign.one_study(min(12, kills - campaign.kills))
    sys.modules["berth"]._command._session.close()  # that of this program
    crash.demand_soon_nothing(house.leftovers, "processes of studies", 40)
    machine = house.json("machine")
    demand(machine["holders"] + machine["waiting"] == [], f"the ledger still has: {machine}")
    findings = house.json("doctor", "--offline")["findings"]
    demand(any(each["found"].startswith("no damage in") for each in findings), f"the store is damaged: {findings}")
    return campaign.kills, f"{campaign.freezes} freezes, {campaign.studies} studies"


def migrations(house, rng, kills):
    campaign = Migrations(house.path, rng, house.berth)
    try:
        while campaign.kills < kills:
            campaign.one(min(10, kills - campaign.kills))
    finally:
        campaign.close()
    return campaign.kills, f"{campaign.moved} state directories moved"


PARTS = {"flows": (flows, 0.6), "studies": (studies, 0.3), "migrations": (migrations, 0.1)}  # and the share of the kills


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default=BERTH)
    parser.add_argument("--kills", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    parts = arguments.parts or list(PARTS)
    print(f"campaign.py --kills {arguments.kills} --seed {arguments.seed}", flush=True)
    if "migrations" in parts and not postgres_server.programs():
        print("skipped: no PostgreSQL server")
        return 77
    shares = sum(PARTS[part][1] for part in parts)
    for part in parts:
        campaign, share = PARTS[part]
        directory = tempfile.mkdtemp(prefix="berth-campaign-")
        house = House(directory, os.path.abspath(arguments.berth))
        began = time.monotonic()
        try:
            kills, more = campaign(house, random.Random(arguments.seed), max(1, round(arguments.kills * share / shares)))
        except (crash.Violation, AssertionError) as violation:
            print(f"VIOLATION in {part}: {violation}\nits state stays in {directory}")
            house.close()
            return 1
        house.close()
        shutil.rmtree(directory, ignore_errors=True)
        print(f"{part}: {kills} kills, {more}, {time.monotonic() - began:.1f} s: no fault", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
