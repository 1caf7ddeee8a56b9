"""The Python package of Berth. It needs only the standard library and the `berth` command.

In a script that Berth runs as a trial (without Berth, it gets the defaults):

    import berth
    p = berth.params(lr=0.1, width=32)
    ...
    berth.report(accuracy=0.93, loss=0.2)

A search whose trials are functions, or a loop in your program. It is a durable run that `berth show` displays and that
other processes can share. Continue it with berth.load_study("study-1"):

    study = berth.Study({"lr": {"min": 1e-4, "max": 1e-1, "scale": "log"}, "width": [16, 32, 64]}, goal="accuracy")
    study.optimize(lambda trial: train(**trial.params), n_trials=20)
    print(study.best_params)

Files and runs:

    run = berth.run("sweep.yaml")
    run.wait()
    run.trials(), run.best(), berth.runs()
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Mapping

from ._command import Failed, call
from ._runs import Params, Run, Trial, compare, run, runs
from ._study import Pruned, Study, StudyTrial, load_study
from ._values import decoded, text

__all__ = ["params", "report", "run", "runs", "compare", "Run", "Study", "StudyTrial", "Trial", "Params", "Failed", "call",
           "Pruned", "load_study"]

_FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _as(default: Any, value: Any, name: str) -> Any:
    """Returns the value in the type of its default if that loses nothing; otherwise the unchanged value."""
    if isinstance(default, bool):
        flag = _FLAGS.get(str(value).lower())
        if flag is None:
            raise ValueError(f"{name}: expected true or false, as the default is {default}; got {value!r}")
        return flag
    if isinstance(default, str) and not isinstance(value, str):
        return os.environ.get(f"BERTH_PARAM_{name.upper()}", text(value))
    if isinstance(default, (int, float)) and isinstance(value, str):
        return _number(type(default), value)
    if isinstance(default, float) and type(value) is int and float(value) == value:
        return float(value)
    return value


def _number(kind: type, value: str) -> Any:
    """Returns the text as a number, or unchanged if it is not a number or would lose digits (007)."""
    try:
        number = kind(value)
    except ValueError:
        return value
    return number if kind is float or str(number) == value else value


def _given() -> dict[str, Any]:
    """Returns the values of this trial's parameters. If they are many or long, they are in a file."""
    file = os.environ.get("BERTH_PARAMS_FILE")
    if "BERTH_PARAMS" in os.environ or not file:
        return json.loads(os.environ.get("BERTH_PARAMS", "{}"))
    with open(file, encoding="utf-8") as text:
        return json.load(text)


def params(**defaults: Any) -> Params:
    """Returns this trial's parameters, and the defaults of all others. Without Berth: the defaults."""
    given = decoded(_given())
    return Params({**defaults, **{name: _as(defaults.get(name), value, name) for name, value in given.items()}})


def report(*metrics: Mapping[str, float], **more: float) -> None:
    """Records metrics of this trial: report(loss=0.2), report({"val/top-1": 0.9}). A name consists of letters, digits
    and _-./@; other names raise ValueError. A value that is not finite is recorded as missing."""
    values: dict[str, float] = {}
    for each in (*metrics, more):
        values.update(each)
    for name in values:
        if not re.fullmatch(r"[A-Za-z0-9_./@-]{1,128}", name):
            raise ValueError(f"metric name {name!r}: expected 1 to 128 letters, digits and any of _-./@")
    words = " ".join(f"{name}={float(value)!r}" for name, value in values.items())
    if words:
        print(f"::berth {words}", flush=True)
