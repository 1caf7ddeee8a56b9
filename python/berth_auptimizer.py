"""Auptimizer's resource managers, for runs of Berth (docs/how-to/auptimizer.md).

A custom manager says where the trials of an Auptimizer document run, and how:

    from berth_auptimizer import AbstractResourceManager, Experiment

    class Rack(AbstractResourceManager):
        def run(self, job, rid, exp_config, call_back_func, **kwargs):
            score = submit_somewhere(job.script, job.config, rid)
            call_back_func(score, job.jid)      # now, or later from another thread

    best_job, best_score = Experiment("experiment.json", Rack).finish()

Berth proposes, retries, records and resumes, as in any passive run; the manager does the work. It needs
the package berth, aup.py next to it, and only the standard library.
"""

import abc
import json
import math
import os
import random
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import berth
from aup import BasicConfig
from berth import call

__all__ = ["AbstractResourceManager", "CPUResourceManager", "Connector", "Experiment", "Job", "BasicConfig",
           "parse_one_line"]

_MARK = "#Auptimizer:"


def parse_one_line(line):
    """Returns the numbers of a report line, and None for any other line."""
    if not line.startswith(_MARK):
        return None
    return [float(word) for word in line[len(_MARK):].strip().strip("[]").split(",")]


class Job:
    """One trial: `script` is run in `path` with `config`, a BasicConfig; `jid` is its number."""

    def __init__(self, script, config, path=".", retries=0):
        self.config, self.path = config, os.path.abspath(os.path.expanduser(path))
        self.script = script if script[0] in "./" else os.path.join(".", script)
        self.jid = 0
        self.retries, self.curr_retries, self.rid_blacklist = retries, 0, set()
        self.was_executed = False

    def verify_local(self):
        """Makes path/jobs. Raises EnvironmentError where the script is missing or cannot be executed."""
        script = os.path.join(self.path, self.script.split()[0])
        if not os.path.isfile(script):
            raise EnvironmentError(f"{script}: no such file")
        if not os.access(script, os.X_OK):
            raise EnvironmentError(f"{script}: not executable; chmod u+x {script}")
        os.makedirs(os.path.join(self.path, "jobs"), exist_ok=True)
        return True


class _PassiveRun(berth.Run):
    """A passive run: this process asks for its trials and records their results."""

    def __init__(self, name):
        super().__init__(name)
        self._asked = set()

    def ask(self):
        """Returns the next trial, or None when there are no more."""
        while True:
            document = call("GET", "/v1/runs/{}/waiting", self.name)
            for record in document["tasks"]:
                if (record["id"], record["attempts"]) not in self._asked:
                    self._asked.add((record["id"], record["attempts"]))
                    return berth.Trial(record)
            if not document["tasks"] and document["run"]["state"] not in ("queued", "running"):
                return None
            time.sleep(0.05)

    def tell(self, trial, **metrics):
        if not all(math.isfinite(value) for value in metrics.values()):
            return self.fail(trial, "its score is not a finite number")
        self._record(trial, " ".join(f"{name}={float(value)!r}" for name, value in metrics.items()))

    def fail(self, trial, reason=""):
        self._record(trial, f"failed {reason}")

    def _record(self, trial, result):
        call("POST", "/v1/tasks/{}/result", trial.id, body={"result": result})


class Connector:
    """The run of a manager, instead of Auptimizer's database. Any thread may use it."""

    def __init__(self, run, n_parallel):
        self.run = run
        self._run = _PassiveRun(run)
        self._lock = threading.Lock()
        self._free = set(range(1, n_parallel + 1))
        self._trials = {}  # by jid
        self._further = {}  # the additional values, by jid
        self._looked = (-1.0, set())  # the time of the last check, and the trials that were open

    def job_started(self, jid, trial):
        with self._lock:
            self._trials[jid] = trial

    def get_available_resource(self, username, rtype, rid_blacklist=None):
        with self._lock:
            return sorted(self._free - set(rid_blacklist or ()))

    def take_available_resource(self, rid):
        with self._lock:
            self._free.discard(rid)

    def free_used_resource(self, rid):
        with self._lock:
            self._free.add(rid)

    def save_multiple_results(self, jid, irid, eid, labels, scores):
        self._further[jid] = dict(zip(labels, scores))

    def job_finished(self, rid, jid, score, status=None):
        """Durable on return. A score of None is a failure."""
        with self._lock:
            trial = self._trials.pop(jid, None)
            further = self._further.pop(jid, {})
            self._free.add(rid)
            if trial is None:
                return
            try:
                if isinstance(score, (int, float)):
                    self._run.tell(trial, score=score, **further)
                else:
                    self._run.fail(trial, str(status or "").lower().replace("_", " "))
            except berth.Failed:
                # If the run or the trial was stopped meanwhile, its result is not needed.
                if self._run.record()["state"] == "running" and trial.id in self._open():
                    raise

    def _open(self):
        document = call("GET", "/v1/runs/{}", self.run)
        if document["run"]["state"] != "running":
            return set()
        return {task["id"] for task in document["tasks"] if task["state"] == "running"}

    def is_stopped(self, jid):
        """Returns true if the run has ended without the trial. It checks once a second at most."""
        with self._lock:
            trial = self._trials.get(jid)
            if trial is None:
                return True
            if time.monotonic() - self._looked[0] >= 1:
                self._looked = (time.monotonic(), self._open())
            # A trial that was asked for since then was not open at that check.
            return trial.id not in self._looked[1] and getattr(trial, "asked", 0) < self._looked[0]

    def end_experiment(self, eid, status):
        if status == "STOPPED" and self._run.record()["state"] == "running":
            self._run.stop()

    def get_best_result(self, eid, maximize=True):
        """[job, score], or None."""
        best = self._run.best()
        if best is None:
            return None
        numbers = {trial.id: number for number, trial in enumerate(self._run.trials(), 1)}
        return [numbers[best.id], best.metrics.score]


class AbstractResourceManager(abc.ABC):
    """Runs the jobs. A subclass defines run(); any thread may call the other methods."""

    def __init__(self, connector, n_parallel, *args, **kwargs):
        self.connector, self.n_parallel = connector, n_parallel
        self.eid, self.maximize = kwargs.get("eid"), kwargs.get("maximize", True)
        self.result_labels = kwargs.get("multi_res_labels")
        self.jobs = {}  # rid by jid, of running jobs
        self.interm_job_res = {}  # the reports of each job
        self.stopped_jobs = set()

    def get_available(self, username, rtype, rid_blacklist=None):
        """Returns the number of a free resource, from 1 to n_parallel, or None if all are in use."""
        rids = self.connector.get_available_resource(username, rtype, rid_blacklist)
        return random.choice(rids) if rids else None

    @abc.abstractmethod
    def run(self, job, rid, exp_config, call_back_func, **kwargs):
        """Runs the job on resource `rid`, and calls call_back_func(score, job.jid) when it has ended, in this
        thread or later in another one. "ERROR" instead of a score means that it failed, "EARLY STOPPED" that it
        was ended early. `kwargs` is runtime_args of the document."""

    def run_job(self, job, rid, exp_config, call_back_func, **kwargs):
        """Allocates the resource and calls run()."""
        self.connector.take_available_resource(rid)
        self.jobs[job.jid] = rid
        self.interm_job_res[job.jid] = []
        try:
            self.run(job, rid, exp_config, call_back_func, **kwargs)
        except EnvironmentError:
            self.connector.free_used_resource(rid)
            raise

    def finish_job(self, jid, score, status=None):
        """Records the end of a job and releases its resource."""
        rid = self.jobs.pop(jid, None)
        if rid is not None:
            self.stopped_jobs.discard(jid)
            self.connector.job_finished(rid, jid, score, status)

    def finish(self, status="FINISHED"):
        """Ends the experiment. Returns [job, score] of the best job, or None."""
        self.connector.end_experiment(self.eid, status)
        return self.connector.get_best_result(self.eid, maximize=self.maximize)

    def stop_job(self, jid):
        self.stopped_jobs.add(jid)

    def is_job_stopped(self, jid):
        """Returns true if a running job must end, because of stop_job() or because its run was stopped (berth stop)."""
        return jid in self.stopped_jobs or self.connector.is_stopped(jid)

    def append_interm_res(self, jid, interm_res):
        """Stores a report of a running job."""
        self.interm_job_res.setdefault(jid, []).append(interm_res)

    def append_multiple_results(self, jid, irid, eid, scores):
        """Stores the additional values of a report, by multi_res_labels. Those of the last report are the result."""
        if self.result_labels and scores:
            self.connector.save_multiple_results(jid, irid, eid, self.result_labels, scores)

    def set_last_multiple_results(self, eid, jid):
        pass

    def log_error_message(self, message):
        pass

    def refresh(self):
        pass

    def suspend(self):
        """Fails all running jobs."""
        for jid in list(self.jobs):
            self.finish_job(jid, None, "SUSPENDED")


class CPUResourceManager(AbstractResourceManager):
    """Runs scripts on this machine, n_parallel at a time. Derive from it to change how. Without changes, use
    `berth run` for a document of the resource cpu."""

    def __init__(self, connector, n_parallel, *args, **kwargs):
        super().__init__(connector, n_parallel, *args, **kwargs)
        self.executor = ThreadPoolExecutor(max_workers=n_parallel)

    def run(self, job, rid, exp_config, call_back_func, **kwargs):
        job.verify_local()
        config_path = os.path.join(job.path, "jobs", f"{job.jid}.json")
        job.config.save(config_path)
        environment = {**os.environ, **{name: str(value) for name, value in kwargs.get("env", {}).items()}}
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [os.path.dirname(os.path.abspath(__file__)), environment.get("PYTHONPATH")]))

        def job_run():
            score = "ERROR"
            try:
                with subprocess.Popen([*job.script.split(), config_path], cwd=job.path, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process, \
                        open(config_path[:-len("json")] + "out", "w") as out:
                    threading.Thread(target=self._end_when_stopped, args=(process, job.jid), daemon=True).start()
                    for line in process.stdout:
                        out.write(line)
                        values = parse_one_line(line)
                        if values:
                            score = values[0]
                            self.append_interm_res(job.jid, score)
                            self.append_multiple_results(job.jid, None, self.eid, values[1:])
                stopped = self.is_job_stopped(job.jid)
                if process.wait() != 0:
                    score = "EARLY STOPPED" if stopped else "ERROR"
            except (OSError, ValueError) as error:
                self.log_error_message(str(error))
                score = "ERROR"
            call_back_func(score, job.jid)

        self.executor.submit(job_run)

    def _end_when_stopped(self, process, jid):
        while process.poll() is None:
            if self.is_job_stopped(jid):
                process.kill()
                return
            time.sleep(0.05)

    def finish(self, status="FINISHED"):
        self.executor.shutdown(wait=True)
        return super().finish(status=status)


class Experiment:
    """Runs an Auptimizer document with a custom manager.

    exp_config: the document, or the name of its file.
    resource_manager: a class, which is called with the connector, n_parallel, and resource_args as keywords; or an
        instance. Its `run` is the name of the run for `berth show`, `berth best` and `berth stop`.
    """

    def __init__(self, exp_config, resource_manager, username=None):
        self.exp_config, folder = _document(exp_config)
        config, arguments = self.exp_config, self.exp_config.get("resource_args", {})
        for key in ("script", "resource"):
            if key not in config:
                raise KeyError(f"the document has no '{key}'")
        if "early_stop" in arguments:
            raise ValueError("early_stop: a custom manager reports the score of a job at its end; "
                             "end the job in run() or with stop_job()")
        self.username = username or os.environ.get("USER", "default")
        self.n_parallel = int(config.get("n_parallel", 1))
        self.path = os.path.join(folder, os.path.expanduser(config.get("workingdir", ".")))
        passive = {key: value for key, value in config.items() if key != "workingdir"}
        self.run = call("POST", "/v1/runs", body={
            "file": json.dumps({**passive, "resource": "passive"}), "file_name": "experiment.json",
            "directory": os.getcwd(), "options": {"parallel": self.n_parallel}})["name"]
        self._run = _PassiveRun(self.run)
        self.connector = Connector(self.run, self.n_parallel)
        if isinstance(resource_manager, type):
            try:
                resource_manager = resource_manager(
                    self.connector, self.n_parallel, eid=self.run, maximize=config.get("target", "max") == "max",
                    script=config["script"], workingdir=self.path, **arguments)
            except BaseException:
                self._run.stop()
                raise
        resource_manager.connector, resource_manager.eid = self.connector, self.run
        self.resource_manager = resource_manager
        self.pending_jobs = {}
        self._jobs = {}  # by the id of the trial
        self._ended = threading.Event()  # set each time that a job ends
        self._failure = None  # the exception of update(), which other threads call

    def start(self):
        """Exists for compatibility: finish() does everything."""
        return self

    def finish(self):
        """Runs all jobs. Returns the number and the score of the best one, or (None, -1)."""
        status = "STOPPED"
        try:
            while self._submit():
                pass
            self._wait(lambda: not self.pending_jobs)
            status = "FINISHED" if self._run.wait() == "done" else "FAILED"
        finally:
            self.connector.end_experiment(self.run, status)  # makes is_job_stopped() true for jobs that still run
            best = self.resource_manager.finish(status=status)
        return tuple(best[:2]) if best else (None, -1)

    def _wait(self, enough):
        """Waits until enough() returns a value. It polls, because a resource can become free without a call of update()."""
        while True:
            if self._failure:
                raise self._failure
            if result := enough():
                return result
            self._ended.wait(0.1)
            self._ended.clear()

    def _submit(self):
        manager, resource = self.resource_manager, self.exp_config["resource"]
        rid = self._wait(lambda: manager.get_available(self.username, resource))
        trial = self._run.ask()
        if trial is None:
            return False
        trial.asked = time.monotonic()
        job = self._job(trial)
        if rid in job.rid_blacklist:  # the job has failed on it: use another one if possible
            rid = manager.get_available(self.username, resource, rid_blacklist=job.rid_blacklist) or rid
        self.connector.job_started(job.jid, trial)
        self.pending_jobs[job.jid] = (job, rid)
        try:
            manager.run_job(job, rid, self.exp_config, self.update, **self.exp_config.get("runtime_args", {}))
        except EnvironmentError as error:
            self.pending_jobs.pop(job.jid, None)
            manager.finish_job(job.jid, None, str(error))
            raise
        return True

    def _job(self, trial):
        job = self._jobs.get(trial.id)
        if job:
            job.curr_retries += 1
            job.was_executed = False
            return job
        config = BasicConfig(trial.params)
        job = Job(self.exp_config["script"], config, self.path)
        self._jobs[trial.id] = job
        job.jid = len(self._jobs)
        number, _, budget = trial.id.rpartition("/")[2].partition("@")
        if budget:
            config["tid"] = int(number)
        if number == "best":
            config["save_model"], config["folder_name"] = True, f"models_{self.run}"
        return job

    def update(self, score, jid):
        """Records the end of a job. A manager calls it."""
        job, rid = self.pending_jobs[jid]
        manager = self.resource_manager
        try:
            if score == "EARLY STOPPED":
                reported = manager.interm_job_res.get(jid)
                manager.finish_job(jid, reported[-1] if reported else None, "EARLY_STOPPED")
            elif score == "ERROR" or score is None:
                job.rid_blacklist.add(rid)
                manager.finish_job(jid, None, "FAILED")
            else:
                manager.finish_job(jid, float(score), "FINISHED")
        except Exception as error:
            self._failure = error
            raise
        finally:
            self.pending_jobs.pop(jid, None)
            self._ended.set()


def _document(exp_config):
    """Returns the document and its folder."""
    if isinstance(exp_config, dict):
        return BasicConfig({"name": "experiment", **exp_config}), os.getcwd()
    config = BasicConfig().load(exp_config)
    config.setdefault("name", os.path.basename(exp_config))
    return config, os.path.dirname(os.path.abspath(exp_config))
