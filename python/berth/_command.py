"""The `berth` command: one process a call, and one that a study speaks to over a pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, Any, Sequence


class Failed(Exception):
    """What `berth` said when it did not do what was asked; `code` is its exit code. Of a study `kind` tells
    more: "stale" is a claim that is over."""

    def __init__(self, message: str, code: int, kind: str = "") -> None:
        super().__init__(message)
        self.code, self.kind = code, kind


def binary() -> str:
    built = Path(__file__).resolve().parents[2] / "build/release/bin/berth"
    found = os.environ.get("BERTH_BIN") or shutil.which("berth") or (str(built) if built.exists() else None)
    if not found:
        raise Failed("no berth: not in PATH, and BERTH_BIN is not set", 3)
    return found


def said(text: str, code: int) -> Failed:
    return Failed(text.strip().replace("berth: ", "", 1) or f"exit {code}", code)


def run_berth(*arguments: str, okay: Sequence[int] = (0,), text: str = "") -> Any:
    """What a command prints as JSON; `text` is its standard input."""
    done = subprocess.run([binary(), "--json", *arguments], text=True, capture_output=True, input=text)
    if done.returncode not in okay:
        raise said(done.stderr, done.returncode)
    return json.loads(done.stdout) if done.stdout.strip() else None


class Pipe:
    """`berth study` in a process of its own: requests and answers, a line each, from any thread. When the
    pipe closes, which a killed Python does too, it gives back the trials that were not told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid, self._broken = os.getpid(), False
        self._errors: IO[str] = tempfile.TemporaryFile("w+")
        # A Ctrl-C is for Python: it may want to tell what came of its trial.
        self._process = subprocess.Popen([binary(), "study"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors, text=True, encoding="utf-8", start_new_session=True)

    @property
    def usable(self) -> bool:
        """Whether requests may be sent. A child of this process may not use the same pipe."""
        return self._pid == os.getpid() and not self._broken and self._process.poll() is None

    def call(self, **request: Any) -> dict[str, Any]:
        text = json.dumps(request, ensure_ascii=False) + "\n"
        with self._lock:
            assert self._process.stdin and self._process.stdout
            try:
                self._process.stdin.write(text)
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except BrokenPipeError:
                line = ""
            except BaseException:  # a KeyboardInterrupt, say: the answer would be taken for the next one
                self._broken = True
                self._process.terminate()  # it gives back what it holds
                raise
            if not line:
                code = self._process.wait()
                self._errors.seek(0)
                raise said(self._errors.read() or f"berth study ended ({code})", code if code > 0 else 3)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            error = answer["error"]
            raise Failed(error["message"], error["code"], error["kind"])
        return answer

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()
