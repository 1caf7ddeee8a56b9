"""Access to runs of any kind."""

from __future__ import annotations

import math
from html import escape
from os import PathLike
from typing import Any

from ._command import Failed, run_berth
from ._values import decoded


class Params(dict):  # type: ignore[type-arg]
    """A dict whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Trial:
    """A trial: id, state, params and metrics; `record` has all fields of `berth show --json`."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        self.id: str = record["id"]
        self.state: str = record["state"]
        self.params, self.metrics = Params(decoded(record["params"])), Params(record["metrics"])

    def __repr__(self) -> str:
        return f"<Trial {self.id} {self.state} {dict(self.params)} {dict(self.metrics)}>"


class Run:
    """A run by its name, such as digits-3."""

    def __init__(self, name: str) -> None:
        self.name: str = run_berth("show", name)["run"]["id"]

    def __repr__(self) -> str:
        record = self.record()
        counts = ", ".join(f"{count} {state}" for state, count in record["counts"].items() if count)
        return f"<{type(self).__name__} {self.name} {record['state']}: {counts}>"

    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = run_berth("show", self.name)["run"]
        return record

    def trials(self, sort: str | None = None) -> list[Trial]:
        options = ["--sort", sort] if sort else []
        return [Trial(task) for task in run_berth("show", self.name, *options)["tasks"]]

    def best(self) -> Trial | None:
        """Returns the best trial, or None before a trial has a score."""
        try:
            return Trial(run_berth("best", self.name))
        except Failed as failure:
            if failure.code == 3:
                return None
            raise

    def wait(self, timeout: float | None = None) -> str:
        """Waits until the run ends, for `timeout` seconds at most, and returns its state."""
        patience = [] if timeout is None else ["--timeout", f"{math.ceil(timeout * 1000)}ms"]
        run_berth("wait", self.name, *patience, okay=range(256))  # it may return the exit code of a command
        state: str = self.record()["state"]
        return state

    def stop(self) -> None:
        run_berth("stop", self.name, prints_json=False)

    def resume(self) -> None:
        """Continues a run that was stopped or interrupted, in the background."""
        run_berth("resume", "--detach", self.name)

    def retry(self) -> None:
        """Runs the failed and unfinished tasks again, in the background."""
        run_berth("retry", "--detach", self.name)

    def trials_dataframe(self) -> Any:
        """Returns a pandas DataFrame with one row per trial: trial, state, params_…, metrics_…, started, ended."""
        import pandas  # type: ignore[import]

        return pandas.DataFrame([{"trial": trial.id, "state": trial.state,
                                  **{f"params_{name}": value for name, value in trial.params.items()},
                                  **{f"metrics_{name}": value for name, value in trial.metrics.items()},
                                  "started": pandas.to_datetime(trial.record["started"]),
                                  "ended": pandas.to_datetime(trial.record["ended"])} for trial in self.trials()])

    def _repr_html_(self) -> str:
        """Shows the best twenty trials in a notebook."""
        document = run_berth("show", self.name)
        goal = (document["goals"] or [{}])[0].get("metric")
        trials = self.trials(goal if any(goal in t["metrics"] for t in document["tasks"]) else None)[:20]
        columns = [(kind, name) for kind in ("params", "metrics")
                   for name in dict.fromkeys(n for trial in trials for n in getattr(trial, kind))]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("trial", *(n for _, n in columns), "state"))
        rows = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in (
            trial.id, *(getattr(trial, kind).get(name, "") for kind, name in columns), trial.state)) + "</tr>"
                       for trial in trials)
        return f"<p>{escape(repr(self))}</p><table><tr>{head}</tr>{rows}</table>"


def run(file: str | PathLike[str], *options: str) -> Run:
    """Starts the run of a file in the background. `options` are those of `berth run`."""
    return Run(run_berth("run", "--detach", *options, str(file))["run"]["id"])


def runs() -> list[str]:
    return [record["id"] for record in run_berth("runs")["runs"]]


def compare(*names: Run | str, metric: str | None = None, direction: str | None = None) -> dict[str, Any]:
    """Returns the output of `berth compare --json`."""
    options = [*(["--metric", metric] if metric else []), *(["--direction", direction] if direction else [])]
    document: dict[str, Any] = run_berth("compare", *(one.name if isinstance(one, Run) else one for one in names), *options)
    return document
