"""A search whose trials run in this program, while berth proposes, claims and records them."""

from __future__ import annotations

import gc
import json
import math
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, Union

from ._claims import Claims
from ._command import Failed, Pipe, encoded_other
from ._runs import Params, Run, Trial
from ._values import decoded, encoded, encoded_bound, encoded_choices, encoded_space

Value = Union[float, Sequence[float], Mapping[str, float]]
_OPEN_END = 1_000_000  # maximum number of trials in a study
_MOST_VALUES = 10_000_000  # maximum number of parameter values in all trials
_WARN_AFTER = 5.0  # seconds that an ask waits for trials of this program before it warns


class Pruned(Exception):
    """Raise it in an objective to end the trial early. The trial keeps its reports."""


class StudyTrial(Trial):
    """A trial of a study that this process evaluates."""

    def __init__(self, study: Study, record: dict[str, Any], token: int) -> None:
        super().__init__(record)
        self.study = study
        self.token: int | None = token  # None after a release
        self._prune: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        self.study._claims.share(self.id)  # another process may record its result
        return self.__dict__

    @property
    def number(self) -> int:
        """The number of the trial: 1, 2, … in the order of proposals."""
        return int(self.id.rpartition("/")[2].partition("@")[0])

    def suggest_float(self, name: str, low: float | None = None, high: float | None = None, *,
                      log: bool = False) -> float:
        """Returns this trial's value of the range. Without bounds, the space defines the range."""
        return float(self._range(name, low, high, "float", log))

    def suggest_int(self, name: str, low: int | None = None, high: int | None = None, *, log: bool = False) -> int:
        value = self._range(name, low, high, "int", log)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{name}: {value!r} is not an integer; use trial.params or suggest_float")
        return value

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Returns one of the choices. Choices are None, booleans, numbers, text, and lists, tuples and dicts of these.
        numpy scalars become Python scalars."""
        return self._suggest(name, encoded_choices(choices, name))

    def _range(self, name: str, low: float | None, high: float | None, kind: str, log: bool) -> Any:
        if low is None and high is None:
            return self.params[name]
        spec = {"min": encoded_bound(low, name), "max": encoded_bound(high, name), "type": kind,
                "scale": "log" if log else "linear"}
        return self._suggest(name, spec)

    def _suggest(self, name: str, spec: Any) -> Any:
        self.params[name] = decoded(self.study._call(suggest=self.id, params={name: spec})["values"][name])
        return self.params[name]

    def report(self, value: float | None = None, step: int | None = None, **metrics: float) -> None:
        """Records an intermediate result immediately: report(0.7) for the goal, report(loss=0.2) for any metric. The steps
        are the reports of the goal in their order; `step` is only a comment for readers of the code. A value that is
        not a finite number is recorded as missing."""
        if value is not None:
            metrics[self.study.goals[0]] = value
        token = {} if self.token is None else {"token": self.token}
        answer = self.study._call(report=self.id, **token, metrics=_floats(metrics))
        self._prune = answer["prune"] or self._prune

    def should_prune(self) -> bool:
        """Returns true if the study's early_stop has decided, by the reports, that the trial should end."""
        return self._prune is not None


class Study(Run):
    """A search whose trials run in this program, and in other programs that open it.

    space: a dict from names to a list of choices, one value, or a range {"min", "max", "scale", "type"}, as in an
        experiment file. None: trials declare it (trial.suggest_float and similar).
    goal: a metric or a list of metrics.
    direction: "max" or "min", or a list with one for each goal.
    search: as in an experiment file. None: auto, or every point if all parameters are choices. Without samples, the
        search continues as long as ask() is called.
    parallel: the maximum number of unfinished trials. None: no limit.
    warm_start: a run, or several, whose best points are tried first.
    lease: seconds after which the trial of a process that does not respond is given out again.
    more: other keys of an experiment file, such as constraints, early_stop, retries and timeout.
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
            document["params"] = encoded_space(space)
        if parallel is not None:
            document["parallel"] = parallel
        chosen = _search(space or {}, search, samples)
        if chosen:
            document["search"] = chosen
        request: dict[str, Any] = {"create": json.dumps(document, ensure_ascii=False, default=encoded_other),
                                   "lease": f"{max(1, round(lease * 1000))}ms"}
        if warm_start is not None:
            runs = [warm_start] if isinstance(warm_start, (Run, str)) else warm_start
            request["warm_start"] = [getattr(run, "name", run) for run in runs]
        self._begin(request)

    @classmethod
    def open(cls, name: str) -> Study:
        """Opens an existing study of this or another process. A stopped study continues."""
        study = cls.__new__(cls)
        study._begin({"open": getattr(name, "name", name)})
        return study

    def _begin(self, request: dict[str, Any]) -> None:
        self._opening = threading.RLock()  # reentrant, because finalizers may call it
        self._claims = Claims()
        self._pipe = Pipe()
        try:
            answer = self._pipe.call(**request)
        except BaseException:
            self._pipe.close()
            raise
        self.name: str = answer["study"]
        self.goals: list[str] = [goal["metric"] for goal in answer["goals"]]
        self._maximize: list[bool] = [goal["direction"] == "max" for goal in answer["goals"]]

    def __getstate__(self) -> dict[str, Any]:
        self._claims.share_all()
        return {"name": self.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin({"open": state["name"]})

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Releases the trials without a result. The end of the program does the same."""
        self._pipe.close()

    def __del__(self) -> None:
        if "_pipe" in self.__dict__ and self._pipe.usable:
            self._pipe.close()

    def _call(self, **request: Any) -> dict[str, Any]:
        return self._usable_pipe().call(**request)

    def _usable_pipe(self) -> Pipe:
        with self._opening:
            if not self._pipe.usable:  # a child of the process that opened it, or berth study has died
                self._pipe.close()
                pipe = Pipe()
                try:
                    pipe.call(open=self.name)
                except BaseException:
                    pipe.close()
                    raise
                self._pipe, self._claims = pipe, Claims()
            return self._pipe

    def ask(self, wait: bool = True) -> StudyTrial | None:
        """Returns the next trial, which belongs to this process until its result is recorded; None if there are no more.
        Waits while the next trial depends on unfinished ones; with wait=False it returns None instead. Raises Failed
        if it depends only on trials of this program that no other thread or process can end."""
        return self._ask(None if wait else 0)

    def _ask(self, end: float | None, stop: threading.Event | None = None) -> StudyTrial | None:
        """Waits until the time `end` of time.monotonic() at most, and only while `stop` is not set."""
        pause, stop, began = 0.01, stop or threading.Event(), time.monotonic()
        while not stop.is_set():
            answer = self._ask_once()
            if isinstance(answer, StudyTrial):
                return answer
            if "over" in answer or (end is not None and time.monotonic() >= end):
                return None
            if self._free_own(answer.get("own", ())):
                continue
            if "own" in answer and time.monotonic() - began > _WARN_AFTER:
                began = math.inf
                warnings.warn(f"{self.name}: ask() waits for trials that this program has asked for and not ended: "
                              + ", ".join(answer["own"]), stacklevel=3)
            stop.wait(pause)
            pause = min(pause * 1.5, 0.2)
        return None

    def _ask_once(self) -> StudyTrial | dict[str, Any]:
        pipe = self._usable_pipe()
        errand = pipe.errand(ask=True)
        try:
            answer = errand.answer()
            if "trial" not in answer:
                return answer
            trial = StudyTrial(self, answer["trial"], answer["token"])
            self._claims.add(trial)
            return trial
        except BaseException:  # for example Ctrl-C: the caller does not get the trial
            errand.abandon(lambda late: pipe.errand(release=late["trial"]["id"], token=late["token"]).begin()
                           if "trial" in late else None)
            raise

    def _free_own(self, labels: Sequence[str]) -> bool:
        """Releases those of these trials, which an ask waits for, whose objects no longer exist. Returns true if there were
        any. Raises Failed if no other thread or process can end the remaining ones."""
        gone = list(filter(self._claims.is_gone, labels))
        if not gone and labels and self._claims.only_here(labels):
            gc.collect()  # the references of a caught exception are cycles
            gone = list(filter(self._claims.is_gone, labels))
        for label in gone:
            try:
                self._call(release=label)
            except Failed as failure:
                if failure.kind != "stale":
                    raise
            self._claims.remove(label)
        if not gone and labels and self._claims.only_here(labels):
            raise Failed(f"{self.name}: the next trial depends on trials that this program has asked for and not ended "
                         f"({', '.join(labels)}): call tell(), fail() or release() for them", 1, "busy")
        return bool(gone)

    def release(self, trial: StudyTrial) -> None:
        """Releases the trial: the next ask, of this program or another, may get it. tell() still accepts it."""
        if trial.token is None:
            return
        self._call(release=trial.id, token=trial.token)
        trial.token = None
        self._claims.remove(trial.id)

    def _release_left(self, trial: StudyTrial) -> None:
        """Releases a trial whose loop was left, if only this process can end it."""
        if not self._claims.is_unshared(trial.id) or not self._pipe.usable:
            return
        if self._pipe.busy_here:
            self._pipe.errand(release=trial.id, token=trial.token).begin()
            return
        try:
            self.release(trial)
        except Failed:
            pass  # the claim has expired

    def tell(self, trial: Trial | str, *values: float, **metrics: float) -> None:
        """Records the result: tell(trial, 0.93), or tell(trial, accuracy=0.93, loss=0.2). Durable on return. A
        value that is not a finite number is recorded as missing; if it is a goal's, the trial has failed."""
        if len(values) > len(self.goals):
            raise ValueError(f"{len(values)} values for {len(self.goals)} goals: name the others")
        self._tell(trial, "done", metrics=_floats({**dict(zip(self.goals, values)), **metrics}))

    def fail(self, trial: Trial | str, reason: str = "") -> None:
        """Records that the trial failed."""
        self._tell(trial, "failed", reason=reason)

    def prune(self, trial: Trial | str) -> None:
        """Ends the trial early. The trial keeps its reports."""
        self._tell(trial, "pruned", reason=getattr(trial, "_prune", None) or "pruned")

    def _tell(self, trial: Trial | str, state: str, **more: Any) -> None:
        if isinstance(trial, StudyTrial) and trial.token is not None:
            more["token"] = trial.token
        label = getattr(trial, "id", trial)
        self._call(tell=label, state=state, **more)
        self._claims.remove(label)

    def __iter__(self) -> Iterator[StudyTrial]:
        """Yields all further trials. If the loop is left before its trial has ended, the trial is released."""
        while (trial := self.ask()) is not None:
            try:
                yield trial
            except GeneratorExit:
                self._release_left(trial)
                raise

    def optimize(self, objective: Callable[[StudyTrial], Value], n_trials: int | None = None, n_jobs: int = 1,
                 timeout: float | None = None, callbacks: Iterable[Callable[[Study, StudyTrial], Any]] = (),
                 catch: type[BaseException] | tuple[type[BaseException], ...] = ()) -> None:
        """Calls `objective` with trials in `n_jobs` threads (-1: one per core). Ends when the study has no more trials,
        `n_trials` were started by this call, or `timeout` seconds have passed.

        The objective returns a score, one for each goal, or a dict of metrics; it may raise Pruned. Any other exception
        fails the trial, and ends optimize() unless it is one of `catch`. Each of `callbacks` is called with the study
        and the trial."""
        end = None if timeout is None else time.monotonic() + timeout
        left = iter(range(n_trials)) if n_trials is not None else iter(int, 1)
        lock, broken, callbacks = threading.Lock(), threading.Event(), tuple(callbacks)

        def work() -> None:
            while not broken.is_set() and (end is None or time.monotonic() < end):
                with lock:
                    if next(left, None) is None:
                        return
                trial = None
                try:
                    trial = self._ask(end, broken)
                    if trial is None:
                        return
                    if broken.is_set():
                        return self._release_left(trial)
                    self._evaluate(objective, trial, catch)
                    for callback in callbacks:
                        callback(self, trial)
                except BaseException:
                    broken.set()
                    if trial is not None:
                        self._release_left(trial)  # for example a second Ctrl-C before it had ended
                    raise

        jobs = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
        if jobs == 1:
            return work()
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for job in [pool.submit(work) for _ in range(jobs)]:
                    job.result()
            except BaseException:  # for example Ctrl-C: no thread starts another trial
                broken.set()
                raise

    def _evaluate(self, objective: Callable[[StudyTrial], Value], trial: StudyTrial,
                  catch: type[BaseException] | tuple[type[BaseException], ...]) -> None:
        try:
            metrics = self._metrics_of(objective(trial))
            trial.state = "done"
            trial.metrics.update(metrics)
            self.tell(trial, **metrics)
        except Pruned:
            trial.state = "pruned"
            self._end(trial, lambda: self.prune(trial))
        except BaseException as error:
            trial.state = "failed"
            over = not self._end(trial, lambda: self.fail(trial, f"{type(error).__name__}: {error}"))
            if over and isinstance(error, Failed) and error.kind == "stale":
                return  # for example this process was frozen, and another one has the trial now
            if not isinstance(error, catch):
                raise

    def _end(self, trial: StudyTrial, end: Callable[[], None]) -> bool:
        """Returns false if the claim of the trial has expired."""
        try:
            end()
        except Failed as failure:
            if failure.kind != "stale":
                raise
            trial.state = "lost"
            return False
        return True

    def _metrics_of(self, value: Any) -> dict[str, Any]:
        """Returns the result of an objective by the names of metrics."""
        if isinstance(value, Mapping):
            return _floats(value)
        values = _numbers(value)
        if len(values) > len(self.goals):
            raise ValueError(f"the objective returned {len(values)} values for {len(self.goals)} goals: name the others")
        return dict(zip(self.goals, values))

    def enqueue(self, params: Mapping[str, Any]) -> Trial:
        """Adds a trial that ask() returns before any new proposal. Parameters that it does not name are proposed."""
        point = {name: encoded(value, name) for name, value in params.items()}
        return Trial(self._call(enqueue=point)["trial"])

    def set_samples(self, samples: int) -> None:
        """Sets the total number of trials. A higher number lets a finished study continue."""
        self._call(samples=samples)

    def trials(self, sort: str | None = None) -> list[Trial]:
        return super().trials(sort) if sort else [Trial(task) for task in self._call(show=True)["tasks"]]

    def best(self) -> Trial | None:
        """Returns the best trial by the first goal, or None before a trial has a score."""
        record = self._call(best=True)["trial"]
        return Trial(record) if record else None

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
        """The Pareto front of several goals: the trials that no other trial beats in all goals."""
        document = self._call(show=True)
        front = document["front"] if len(self.goals) > 1 else [self.best_trial.id]
        return [Trial(task) for task in document["tasks"] if task["id"] in front]


def load_study(name: str) -> Study:
    """Opens the study of that name, like Study.open()."""
    return Study.open(name)


def _search(space: Mapping[str, Any], search: Mapping[str, Any] | None, samples: int | None) -> dict[str, Any] | None:
    """Returns the `search` of the experiment. Without a number of samples, it has the maximum."""
    def every_point(spec: Any) -> bool:
        return not isinstance(spec, Mapping) or "min" not in spec or "n" in spec

    chosen = dict(search) if search is not None else {}
    if search is None and (samples is not None or not space or not all(map(every_point, space.values()))):
        chosen["method"] = "auto"
    if samples is not None:
        chosen["samples"] = samples
    if "samples" not in chosen and chosen.get("method", "grid") not in ("grid", "sequence", "hyperband"):
        chosen["samples"] = min(_OPEN_END, _MOST_VALUES // max(1, len(space) + 1))
    return chosen or None


def _floats(metrics: Mapping[str, Any]) -> dict[str, float | str]:
    """Returns the metrics for JSON: a value that is not finite becomes text."""
    numbers = {name: float(value) for name, value in metrics.items()}
    return {name: value if math.isfinite(value) else str(value) for name, value in numbers.items()}


def _numbers(score: Any) -> list[float]:
    """Returns one number or several. An array or tensor without dimensions is one number, even if its class is iterable."""
    if isinstance(score, (str, bytes)) or score is None:
        raise TypeError(f"the objective returned {score!r}: expected a score, one for each goal, or a dict of metrics")
    if not isinstance(score, (list, tuple)) and getattr(score, "ndim", 0) == 0:
        try:
            return [float(score)]
        except TypeError:
            pass  # for example a generator
    return [float(each) for each in score]
