"""Access to runs of any kind."""

from __future__ import annotations

import os
import time
from html import escape
from os import PathLike
from typing import Any, Iterator, Mapping, Sequence

from ._command import Failed, call
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
        self.name: str = call("GET", "/v1/runs/{}/summary", name)["run"]["id"]

    def __repr__(self) -> str:
        record = self.record()
        counts = ", ".join(f"{count} {state}" for state, count in record["counts"].items() if count)
        return f"<{type(self).__name__} {self.name} {record['state']}: {counts}>"

    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = call("GET", "/v1/runs/{}/summary", self.name)["run"]
        return record

    def trials(self, sort: str | None = None) -> list[Trial]:
        return [Trial(task) for task in self._show(sort)["tasks"]]

    def _show(self, sort: str | None = None) -> dict[str, Any]:
        document: dict[str, Any] = call("GET", "/v1/runs/{}", self.name, query=[("sort", sort)] if sort else [])
        return document

    def best(self) -> Trial | None:
        """Returns the best trial, or None before a trial has a score."""
        try:
            return Trial(call("GET", "/v1/runs/{}/best", self.name))
        except Failed as failure:
            if failure.code == 3:
                return None
            raise

    def wait(self, timeout: float | None = None) -> str:
        """Waits until the run ends, for `timeout` seconds at most, and returns its state."""
        end = float("inf") if timeout is None else time.monotonic() + timeout
        pause = 0.01
        while True:
            state: str = self.record()["state"]
            left = end - time.monotonic()
            if state not in ("queued", "running") or left <= 0:
                return state
            time.sleep(min(pause, left))
            pause = min(2 * pause, 0.5)

    def stop(self) -> None:
        call("POST", "/v1/runs/{}/stop", self.name)

    def resume(self) -> None:
        """Continues a run that was stopped or interrupted, in the background."""
        call("POST", "/v1/runs/{}/resume", self.name)

    def retry(self) -> None:
        """Runs the failed and unfinished tasks again, in the background."""
        call("POST", "/v1/runs/{}/retry", self.name)

    def why(self, task: str = "") -> dict[str, Any]:
        """Returns the output of `berth why --json` for the run or one of its tasks."""
        answer: dict[str, Any] = (call("GET", "/v1/tasks/{}/why", f"{self.name}/{task}") if task
                                  else call("GET", "/v1/runs/{}/why", self.name))
        return answer

    def log(self, task: str = "") -> str:
        """Returns what the run or one of its tasks has printed."""
        text: str = (call("GET", "/v1/tasks/{}/log", f"{self.name}/{task}") if task
                     else call("GET", "/v1/runs/{}/log", self.name))
        return text

    def remove(self) -> None:
        """Removes the run, which has ended, with its output and files."""
        call("DELETE", "/v1/runs/{}", self.name)

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
        document = self._show()
        goal = (document["goals"] or [{}])[0].get("metric")
        trials = self.trials(goal if any(goal in t["metrics"] for t in document["tasks"]) else None)[:20]
        columns = [(kind, name) for kind in ("params", "metrics")
                   for name in dict.fromkeys(n for trial in trials for n in getattr(trial, kind))]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("trial", *(n for _, n in columns), "state"))
        rows = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in (
            trial.id, *(getattr(trial, kind).get(name, "") for kind, name in columns), trial.state)) + "</tr>"
                       for trial in trials)
        return f"<p>{escape(repr(self))}</p><table><tr>{head}</tr>{rows}</table>"


_LISTS = {"cluster": "clusters", "target": "targets", "force": "force", "warm_start": "warm_start", "notify": "notify"}
_MAPS = {"set": "set", "label": "labels", "env": "environment"}
_AMOUNTS = ("cpu", "mem", "gpu", "gpu_mem", "disk")
_FLAGS = ("overwrite", "send_large")


def _words(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The names and values of options of the command line."""
    left = iter(options)
    for word in left:
        if not word.startswith("--") or len(word) == 2:
            raise ValueError(f"{word}: expected an option such as --parallel")
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if name not in _FLAGS and not equals:
            try:
                value = next(left)
            except StopIteration:
                raise ValueError(f"--{name}: expected a value") from None
        yield name, value


def _options(words: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of a run: `given`, and the words as `berth run` has them."""
    options: dict[str, Any] = dict(given)
    for name, value in _words(words):
        if name in _LISTS:
            options.setdefault(_LISTS[name], []).append(value)
        elif name in _MAPS:
            key, _, text = value.partition("=")
            options.setdefault(_MAPS[name], {})[key] = text
        elif name in _AMOUNTS:
            options.setdefault("resources", {})[name] = value
        else:
            options[name] = True if name in _FLAGS else value
    return options


def run(file: str | PathLike[str] | None = None, *words: str, command: Sequence[str] = (), **options: Any) -> Run:
    """Starts a run in the background: run("sweep.yaml", parallel=4), run(command=["train", "--lr", "0.1"],
    resources={"gpu": 1}). `words` are options as `berth run` has them: run("sweep.yaml", "--parallel", "4")."""
    if (file is None) == (not command):
        raise ValueError("run() expects either a file or a command")
    chosen = _options(words, options)
    body = ({"path": os.fspath(file), "options": chosen} if file is not None
            else {"command": list(command), "directory": os.getcwd(), **chosen})
    return Run(call("POST", "/v1/runs", body=body)["name"])


def runs() -> list[str]:
    return [record["id"] for record in call("GET", "/v1/runs")["runs"]]


def compare(*names: Run | str, metric: str | None = None, direction: str | None = None) -> dict[str, Any]:
    """Returns the output of `berth compare --json`."""
    query = [("run", one.name if isinstance(one, Run) else one) for one in names]
    query += [(key, value) for key, value in (("metric", metric), ("direction", direction)) if value]
    document: dict[str, Any] = call("GET", "/v1/compare", query=query)
    return document
