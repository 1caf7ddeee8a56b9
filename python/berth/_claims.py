"""The trials that this process has asked for and that have not ended."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, Iterable

from ._command import other_threads

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_parent=_count_fork)


def _has_forked_children() -> bool:
    """Returns true if a child of this process runs the same program, or if that is unknown."""
    try:
        program = os.readlink("/proc/self/exe")
        children = [child for task in os.listdir("/proc/self/task")
                    for child in Path(f"/proc/self/task/{task}/children").read_text().split()]
    except OSError:
        return True
    return any(_program_of(child) == program for child in children)


def _program_of(process: str) -> str | None:
    try:
        return os.readlink(f"/proc/{process}/exe")
    except OSError:
        return None  # the process has ended


class _Claim:
    def __init__(self, trial: Any) -> None:
        self.objects = (weakref.ref(trial), weakref.ref(trial.params))
        self.forks = _forks
        self.pickled = False

    @property
    def shared(self) -> bool:
        """True if another process may end the trial."""
        return self.pickled or (self.forks != _forks and _has_forked_children())


class Claims:
    def __init__(self) -> None:
        self._claims: dict[str, _Claim] = {}
        self._earlier = weakref.WeakSet(threading.enumerate())

    def add(self, trial: Any) -> None:
        self._claims[_label(trial.id)] = _Claim(trial)

    def remove(self, trial: str) -> None:
        self._claims.pop(_label(trial), None)

    def share(self, trial: str) -> None:
        claim = self._claims.get(_label(trial))
        if claim is not None:
            claim.pickled = True

    def share_all(self) -> None:
        for claim in list(self._claims.values()):
            claim.pickled = True

    def is_unshared(self, trial: str) -> bool:
        claim = self._claims.get(_label(trial))
        return claim is not None and not claim.shared

    def is_gone(self, trial: str) -> bool:
        """Returns true if no reference to the trial or its parameters is left."""
        claim = self._claims.get(_label(trial))
        return claim is not None and not claim.shared and all(reference() is None for reference in claim.objects)

    def only_here(self, trials: Iterable[str]) -> bool:
        """Returns true if only the calling thread can end these trials. Background threads that are older than the
        study, such as those of a notebook, are ignored."""
        others = [thread for thread in other_threads() if not (thread.daemon and thread in self._earlier)]
        processes = sys.modules.get("multiprocessing")
        if others or (processes is not None and processes.active_children()):
            return False
        return all(map(self.is_unshared, trials))


def _label(trial: str) -> str:
    return trial.rpartition("/")[2]
