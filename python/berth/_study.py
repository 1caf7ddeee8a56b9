"""A search whose trials are carried out here: berth proposes, claims and records."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, Union

from ._command import Failed, Pipe
from ._runs import Params, Run, Trial

Value = Union[float, Sequence[float], Mapping[str, float]]
_OPEN_END = 1_000_000  # trials: as many as a study may have
_MOST_VALUES = 10_000_000  # of all of them


class Pruned(Exception):
    """Raised within an objective: the trial ends early, and counts with what it has reported."""


class StudyTrial(Trial):
    """A trial that was asked for, and is to be told."""

    def __init__(self, study: Study, record: dict[str, Any], token: int) -> None:
        super().__init__(record)
        self.study, self.token = study, token
        self._prune: str | None = None

    @property
    def number(self) -> int:
        """1, 2, … in the order of proposals."""
        return int(self.id.rpartition("/")[2].partition("@")[0])

    def suggest_float(self, name: str, low: float | None = None, high: float | None = None, *,
                      log: bool = False) -> float:
        """This trial's value of the range. Without bounds: of the range as the space has it."""
        if low is None or high is None:
            return float(self.params[name])
        spec = {"min": low, "max": high, "scale": "log" if log else "linear"}
        return float(self._suggest(name, spec, float))

    def suggest_int(self, name: str, low: int | None = None, high: int | None = None, *, log: bool = False) -> int:
        if low is None or high is None:
            return int(self.params[name])
        spec = {"min": low, "max": high, "type": "int", "scale": "log" if log else "linear"}
        return int(self._suggest(name, spec, int))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of the choices, as it stands there; each has to have a text of its own."""
        texts = [_text(choice) for choice in choices]
        if len(set(texts)) < len(texts):
            raise ValueError(f"{name}: two of the choices read alike: {texts}")
        of = dict(zip(texts, choices))
        return self._suggest(name, list(choices) if all(map(_plain, choices)) else texts, of.__getitem__)

    def _suggest(self, name: str, spec: Any, value: Callable[[str], Any]) -> Any:
        self.params[name] = value(self.study._call(suggest=self.id, params={name: spec})["values"][name])
        return self.params[name]

    def report(self, value: float | None = None, step: int | None = None, **metrics: float) -> None:
        """Records what the trial has reached so far, at once: report(0.7) of the goal, report(loss=0.2) of
        any metric. Steps are the reports of the goal in their order; `step` is there for the reader. What
        is no finite number is not recorded."""
        if value is not None:
            metrics[self.study.goals[0]] = value
        if not all(math.isfinite(float(each)) for each in metrics.values()):
            return
        told = self.study._call(report=self.id, token=self.token, metrics=_floats(metrics))
        self._prune = told["prune"] or self._prune

    def should_prune(self) -> bool:
        """Whether the study's early_stop has decided by the reports that the trial is not worth its end."""
        return self._prune is not None


class Study(Run):
    """A search whose trials are carried out by this program, and by others who open it.

    `space`: names to a list of choices, one value, or a range {"min", "max", "scale", "type"}, as in a
    file; None: it becomes known as trials ask for it (trial.suggest_float and so on). `goal`: a metric, or
    a list of them; `direction`: "max" or "min", or one for each goal. `search`: as in a file; None: auto,
    or every point where all are choices; without samples it goes on for as long as somebody asks.
    `parallel`: how many trials may be out at once; None: however many are asked for. `warm_start`: another
    run to learn from, or several. `lease`: seconds after which the trial of a process that has gone silent comes
    back. `more`: further keys of an experiment's file, such as constraints, early_stop, retries and timeout.
    """

    def __init__(self, space: Mapping[str, Any] | None = None, goal: str | Sequence[str] = "score",
                 direction: str | Sequence[str] = "max", name: str = "study",
                 search: Mapping[str, Any] | None = None, parallel: int | None = None, *,
                 samples: int | None = None, warm_start: Run | str | Sequence[Run | str] | None = None,
                 lease: float = 30, **more: Any) -> None:
        names = [goal] if isinstance(goal, str) else list(goal)
        ways = [direction] * len(names) if isinstance(direction, str) else list(direction)
        if len(ways) != len(names):
            raise ValueError(f"{len(names)} goals and {len(ways)} directions")
        goals = [{"metric": metric, "direction": way} for metric, way in zip(names, ways)]
        document = {"name": name, "passive": True, "goal": goals[0] if len(goals) == 1 else goals, **more}
        if space:
            document["params"] = dict(space)
        if parallel is not None:
            document["parallel"] = parallel
        chosen = _search(space or {}, search, samples)
        if chosen:
            document["search"] = chosen
        request: dict[str, Any] = {"create": json.dumps(document, ensure_ascii=False),
                                   "lease": f"{max(1, round(lease * 1000))}ms"}
        if warm_start is not None:
            runs = [warm_start] if isinstance(warm_start, (Run, str)) else warm_start
            request["warm_start"] = [getattr(run, "name", run) for run in runs]
        self._begin(request)

    @classmethod
    def open(cls, name: str) -> Study:
        """One that was begun before, here or elsewhere. One that was stopped goes on."""
        study = cls.__new__(cls)
        study._begin({"open": getattr(name, "name", name)})
        return study

    def _begin(self, request: dict[str, Any]) -> None:
        self._opening = threading.Lock()
        self._pipe = Pipe()
        try:
            told = self._pipe.call(**request)
        except BaseException:
            self._pipe.close()
            raise
        self.name: str = told["study"]
        self.goals: list[str] = [goal["metric"] for goal in told["goals"]]
        self._maximize: list[bool] = [goal["direction"] == "max" for goal in told["goals"]]

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin({"open": state["name"]})

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Gives back the trials that were asked for and not told. So does the end of the program."""
        self._pipe.close()

    def __del__(self) -> None:
        if "_pipe" in self.__dict__ and self._pipe.usable:
            self._pipe.close()

    def _call(self, **request: Any) -> dict[str, Any]:
        with self._opening:
            if not self._pipe.usable:  # a child of the process that opened it, or the pipe's end has died
                self._pipe.close()
                pipe = Pipe()
                pipe.call(open=self.name)
                self._pipe = pipe
        return self._pipe.call(**request)

    def ask(self, wait: bool = True) -> StudyTrial | None:
        """The next trial, which is this process's until it is told; None when there are no more. Waits
        while what comes next depends on trials that are out; with wait=False that is None too."""
        return self._ask(None if wait else 0)

    def _ask(self, end: float | None) -> StudyTrial | None:
        """Waits until then at most, by time.monotonic()."""
        pause = 0.01
        while True:
            told = self._call(ask=True)
            if "trial" in told:
                return StudyTrial(self, told["trial"], told["token"])
            if "over" in told or (end is not None and time.monotonic() >= end):
                return None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.2)

    def tell(self, trial: Trial | str, *values: float, **metrics: float) -> None:
        """What came of it: tell(trial, 0.93), or tell(trial, accuracy=0.93, loss=0.2). Durable on return."""
        if len(values) > len(self.goals):
            raise ValueError(f"{len(values)} values for {len(self.goals)} goals: name the others")
        numbers = _floats({**dict(zip(self.goals, values)), **metrics})
        if not all(map(math.isfinite, numbers.values())):
            return self.fail(trial, "its score is no finite number")
        self._tell(trial, "done", metrics=numbers)

    def fail(self, trial: Trial | str, reason: str = "") -> None:
        """Nothing came of it."""
        self._tell(trial, "failed", reason=reason)

    def prune(self, trial: Trial | str) -> None:
        """It ends early, with what it has reported."""
        self._tell(trial, "pruned", reason=getattr(trial, "_prune", None) or "pruned")

    def _tell(self, trial: Trial | str, state: str, **more: Any) -> None:
        if isinstance(trial, StudyTrial):
            more["token"] = trial.token
        self._call(tell=getattr(trial, "id", trial), state=state, **more)

    def __iter__(self) -> Iterator[StudyTrial]:
        while (trial := self.ask()) is not None:
            yield trial

    def optimize(self, objective: Callable[[StudyTrial], Value], n_trials: int | None = None, n_jobs: int = 1,
                 timeout: float | None = None, callbacks: Iterable[Callable[[Study, StudyTrial], Any]] = (),
                 catch: type[BaseException] | tuple[type[BaseException], ...] = ()) -> None:
        """Calls `objective` with trials until the study has no more, or `n_trials` of them were begun here, or
        `timeout` seconds are over; in `n_jobs` threads (-1: one a core). It returns the score, one for
        each goal, or a dict of metrics; it may raise Pruned. Another exception fails the trial, and ends
        this too unless it is one of `catch`. Each of `callbacks` is called with the study and the trial."""
        end = None if timeout is None else time.monotonic() + timeout
        left = iter(range(n_trials)) if n_trials is not None else iter(int, 1)
        lock, broken, callbacks = threading.Lock(), threading.Event(), tuple(callbacks)

        def work() -> None:
            while not broken.is_set() and (end is None or time.monotonic() < end):
                with lock:
                    if next(left, None) is None:
                        return
                trial = self._ask(end)
                if trial is None:
                    return
                try:
                    self._carry_out(objective, trial, catch)
                    for callback in callbacks:
                        callback(self, trial)
                except BaseException:
                    broken.set()
                    raise

        jobs = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
        if jobs == 1:
            return work()
        with ThreadPoolExecutor(jobs) as pool:
            for job in [pool.submit(work) for _ in range(jobs)]:
                job.result()

    def _carry_out(self, objective: Callable[[StudyTrial], Value], trial: StudyTrial,
                   catch: type[BaseException] | tuple[type[BaseException], ...]) -> None:
        try:
            value = objective(trial)
            trial.state = "done"
            if isinstance(value, Mapping):
                trial.metrics.update(value)
                self.tell(trial, **value)
            else:
                values: list[Any] = list(value) if isinstance(value, Iterable) else [value]
                trial.metrics.update(zip(self.goals, values))
                self.tell(trial, *values)
        except Pruned:
            trial.state = "pruned"
            self.prune(trial)
        except Failed as failure:
            if failure.kind != "stale":
                raise
            trial.state = "lost"  # this process was frozen, say, and another has it now
        except BaseException as error:
            trial.state = "failed"
            self.fail(trial, f"{type(error).__name__}: {error}")
            if not isinstance(error, catch):
                raise

    def enqueue(self, params: Mapping[str, Any]) -> Trial:
        """A trial to be asked for before anything new is proposed; what it does not name is proposed."""
        return Trial(self._call(enqueue=dict(params))["trial"])

    def set_samples(self, samples: int) -> None:
        """How many trials there are to be in all: more than before lets a finished study go on."""
        self._call(samples=samples)

    def trials(self, sort: str | None = None) -> list[Trial]:
        return super().trials(sort) if sort else [Trial(task) for task in self._call(show=True)["tasks"]]

    def best(self) -> Trial | None:
        """The best trial by the first goal; None as long as there is none."""
        told = self._call(best=True)["trial"]
        return Trial(told) if told else None

    @property
    def best_trial(self) -> Trial:
        found = self.best()
        if found is None:
            raise ValueError(f"{self.name}: no trial is done yet")
        return found

    @property
    def best_params(self) -> Params:
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        return float(self.best_trial.metrics[self.goals[0]])

    @property
    def best_trials(self) -> list[Trial]:
        """The Pareto front of several goals: those that no other is better than in all of them."""
        document = self._call(show=True)
        front = document["front"] if len(self.goals) > 1 else [self.best_trial.id]
        return [Trial(task) for task in document["tasks"] if task["id"] in front]


def load_study(name: str) -> Study:
    """The study of that name, as Study.open() gives it."""
    return Study.open(name)


def _search(space: Mapping[str, Any], search: Mapping[str, Any] | None, samples: int | None) -> dict[str, Any] | None:
    """Without a number of samples, as many as there may be."""
    def every_point(spec: Any) -> bool:
        return not isinstance(spec, Mapping) or "min" not in spec or "n" in spec or spec.get("type") == "int"

    chosen = dict(search) if search is not None else {}
    if search is None and (samples is not None or not space or not all(map(every_point, space.values()))):
        chosen["method"] = "auto"
    if samples is not None:
        chosen["samples"] = samples
    if "samples" not in chosen and chosen.get("method", "grid") not in ("grid", "sequence", "hyperband"):
        chosen["samples"] = min(_OPEN_END, _MOST_VALUES // max(1, len(space) + 1))
    return chosen or None


def _floats(metrics: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in metrics.items()}


def _plain(choice: Any) -> bool:
    return isinstance(choice, (str, int, float))


def _text(choice: Any) -> str:
    """A choice as berth writes it."""
    if isinstance(choice, bool):
        return "true" if choice else "false"
    return json.dumps(choice) if isinstance(choice, (int, float)) else str(choice)
