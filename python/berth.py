"""Berth from Python. A thin client of the `berth` command: nothing but the standard library.

In a script that Berth runs as a trial (outside of Berth it gets the defaults):

    import berth
    p = berth.params(lr=0.1, width=32)
    ...
    berth.report(accuracy=0.93, loss=0.2)

A search whose loop is your own, in a script or a notebook. It is a run like any other: durable,
shown by `berth show`, and gone on with by berth.Study.open("study-1"):

    study = berth.Study({"lr": {"min": 1e-4, "max": 1e-1, "scale": "log"}, "width": [16, 32, 64]},
                        goal="accuracy", search={"method": "random", "samples": 20, "seed": 1})
    for trial in study:
        study.tell(trial, train(**trial.params))
    print(study.best())

Files and runs:

    run = berth.run("sweep.yaml")
    run.wait()
    run.trials(), run.best(), berth.runs()
"""

import json
import math
import os
import shutil
import subprocess
import time
from pathlib import Path

__all__ = ["params", "report", "run", "runs", "compare", "Run", "Study", "Trial", "Failed"]


class Failed(Exception):
    """What `berth` said when it did not do what was asked; `code` is its exit code."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


# Within a trial.


class _Params(dict):
    """A dict whose keys are attributes too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _as(default, value):
    """The value in the type of its default: a choice [true, false] may come as text."""
    if isinstance(default, bool):
        return value if isinstance(value, bool) else str(value).lower() in ("1", "true", "yes", "on")
    if isinstance(default, (int, float, str)):
        return type(default)(value)
    return value


def params(**defaults):
    """This trial's parameters, over the defaults. Outside of Berth: the defaults."""
    given = json.loads(os.environ.get("BERTH_PARAMS", "{}"))
    return _Params({**defaults, **{name: _as(defaults.get(name), value) for name, value in given.items()}})


def report(*metrics, **more):
    """Records metrics of this trial, at once: report(loss=0.2), report({"val/top-1": 0.9})."""
    values = {}
    for each in (*metrics, more):
        values.update(each)
    words = " ".join(f"{name}={float(value)!r}" for name, value in values.items())
    if words:
        print(f"::berth {words}", flush=True)


# From outside.


def _binary():
    built = Path(__file__).resolve().parent.parent / "build/release/bin/berth"
    found = os.environ.get("BERTH_BIN") or shutil.which("berth") or (str(built) if built.exists() else None)
    if not found:
        raise Failed("no berth: not in PATH, and BERTH_BIN is not set", 3)
    return found


def _berth(*arguments, text=None, okay=(0,)):
    done = subprocess.run([_binary(), "--json", *arguments], text=True, capture_output=True,
                          **({"input": text} if text is not None else {"stdin": subprocess.DEVNULL}))
    if done.returncode not in okay:
        raise Failed(done.stderr.strip().removeprefix("berth: ") or f"exit {done.returncode}", done.returncode)
    return json.loads(done.stdout) if done.stdout.strip() else None


class Trial:
    """One trial as berth tells it: id, state, params, metrics, and the rest in `record`."""

    def __init__(self, record):
        self.record = record
        self.id, self.state = record["id"], record["state"]
        self.params, self.metrics = _Params(record["params"]), _Params(record["metrics"])

    def __repr__(self):
        return f"<Trial {self.id} {self.state} {dict(self.params)} {dict(self.metrics)}>"


class Run:
    """A run by its name, such as digits-3."""

    def __init__(self, name):
        self.name = _berth("show", name)["run"]["id"]

    def __repr__(self):
        record = self.record()
        counts = ", ".join(f"{count} {state}" for state, count in record["counts"].items() if count)
        return f"<{type(self).__name__} {self.name} {record['state']}: {counts}>"

    def record(self):
        return _berth("show", self.name)["run"]

    def trials(self, sort=None):
        return [Trial(task) for task in
                _berth("show", self.name, *(["--sort", sort] if sort else []))["tasks"]]

    def best(self):
        """The best trial; None as long as there is none."""
        try:
            return Trial(_berth("best", self.name))
        except Failed as failure:
            if failure.code == 3:
                return None
            raise

    def wait(self, timeout=None):
        """Until it has ended; its state then, or now if the time (in seconds) is over before."""
        patience = [] if timeout is None else ["--timeout", f"{math.ceil(timeout * 1000)}ms"]
        _berth("wait", self.name, *patience, okay=(0, 1, 3, 130))
        return self.record()["state"]

    def stop(self):
        _berth("stop", self.name)

    def _repr_html_(self):
        """In a notebook: the best twenty."""
        from html import escape
        document = _berth("show", self.name)
        goal = (document["goals"] or [{}])[0].get("metric")
        trials = self.trials(goal if any(goal in t["metrics"] for t in document["tasks"]) else None)[:20]
        columns = [(kind, name) for kind in ("params", "metrics")
                   for name in dict.fromkeys(n for trial in trials for n in getattr(trial, kind))]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("trial", *(n for _, n in columns), "state"))
        rows = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in (
            trial.id, *(getattr(trial, kind).get(name, "") for kind, name in columns), trial.state)) + "</tr>"
                       for trial in trials)
        return f"<p>{escape(repr(self))}</p><table><tr>{head}</tr>{rows}</table>"


class Study(Run):
    """A search whose trials are carried out here: ask for parameters, tell what came of them.

    `space`: names to a list of choices, one value, or a range {"min", "max", "scale", "type"}, as
    in a file. `goal`: a metric, or a list of them. `more`: further keys of an experiment's file.
    """

    def __init__(self, space, goal="score", direction="max", name="study", search=None, parallel=1, **more):
        goals = [{"metric": metric, "direction": direction} for metric in ([goal] if isinstance(goal, str) else goal)]
        document = {"name": name, "passive": True, "params": space, "parallel": parallel,
                    "goal": goals[0] if len(goals) == 1 else goals, **more}
        if search:
            document["search"] = search
        self._begin(_berth("run", "--detach", "/dev/stdin", text=json.dumps(document))["run"]["id"])

    @classmethod
    def open(cls, name):
        """Goes on with one that was begun before, wherever its runner has stopped."""
        study = cls.__new__(cls)
        study._begin(Run(name).name)
        if study.record()["state"] not in ("running", "done", "failed"):
            _berth("resume", "--detach", study.name)
        return study

    def _begin(self, name):
        self.name = name
        self._asked = set()

    def ask(self):
        """The next trial; None when there are no more. Waits while as many as `parallel` allows are
        out, which others may be carrying out, in other processes too."""
        while True:
            document = _berth("ask", self.name, "--wait")
            for record in document["tasks"]:
                if (record["id"], record["attempts"]) not in self._asked:
                    self._asked.add((record["id"], record["attempts"]))
                    return Trial(record)
            if not document["tasks"]:
                return None
            time.sleep(0.05)

    def tell(self, trial, *values, **metrics):
        """What came of it: tell(trial, 0.93), or tell(trial, accuracy=0.93, loss=0.2)."""
        words = [repr(float(value)) for value in values]
        words += [f"{name}={float(value)!r}" for name, value in metrics.items()]
        if not all(math.isfinite(float(value)) for value in (*values, *metrics.values())):
            return self.fail(trial, "its score is no finite number")
        _berth("tell", getattr(trial, "id", trial), "--", *words)

    def fail(self, trial, reason=""):
        _berth("tell", getattr(trial, "id", trial), "--", "failed", reason)

    def __iter__(self):
        while (trial := self.ask()) is not None:
            yield trial


def run(file, *options):
    """Starts the run of a file in the background; options as of `berth run`."""
    return Run(_berth("run", "--detach", *options, str(file))["run"]["id"])


def runs():
    return [record["id"] for record in _berth("runs")["runs"]]


def compare(*names, metric=None, direction=None):
    """As `berth compare --json` tells it."""
    options = [*(["--metric", metric] if metric else []), *(["--direction", direction] if direction else [])]
    return _berth("compare", *(getattr(name, "name", name) for name in names), *options)
