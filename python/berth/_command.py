"""The `berth study` processes: one for the calls of a program, and one for each of its studies, connected by pipes."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, Any, Callable, Sequence
from urllib.parse import quote, urlencode

from ._values import scalar


class Failed(Exception):
    """An error that `berth` reported. `code` is its exit code. For a study, `kind` has the kind of the error: "stale"
    means that the claim has expired."""

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


class _ErrandThread(threading.Thread):
    pass


class Errand:
    """One request and its answer. The main thread passes it to another thread, which Ctrl-C does not interrupt: the
    answer is read even if the main thread no longer waits for it."""

    def __init__(self, pipe: Pipe, request: dict[str, Any]) -> None:
        self._pipe = pipe
        self._line = (json.dumps(request, ensure_ascii=False, default=encoded_other) + "\n").encode()
        self._lock, self._over = threading.Lock(), threading.Event()
        self._answer: dict[str, Any] | None = None
        self._failure: BaseException | None = None
        self._otherwise: Callable[[dict[str, Any]], Any] | None = None

    def _run(self) -> None:
        answer = None
        try:
            answer = self._pipe.exchange(self._line)
        except BaseException as failure:
            self._failure = failure
        with self._lock:
            self._answer, otherwise = answer, self._otherwise
        self._over.set()
        if answer is not None and otherwise is not None:
            otherwise(answer)

    def begin(self) -> None:
        """Runs it in a separate thread."""
        try:
            _ErrandThread(target=self._run, name="berth-errand", daemon=True).start()
        except RuntimeError:  # the interpreter is shutting down and starts no threads
            self._run()

    def answer(self) -> dict[str, Any]:
        if threading.current_thread() is threading.main_thread():
            self.begin()
            self._over.wait()
        else:
            self._run()
        if self._failure is not None:
            raise self._failure
        assert self._answer is not None
        return self._answer

    def abandon(self, otherwise: Callable[[dict[str, Any]], Any]) -> None:
        """Calls `otherwise` with the answer, now or when it arrives."""
        with self._lock:
            self._otherwise, answer = otherwise, self._answer
        if answer is not None:
            otherwise(answer)


def other_threads() -> list[threading.Thread]:
    """Returns all threads except this one and those of errands."""
    return [thread for thread in threading.enumerate()
            if thread is not threading.current_thread() and not isinstance(thread, _ErrandThread)]


class Pipe:
    """A `berth study` process: requests and answers of one line each, from any thread. When the pipe closes, also
    because Python was killed, the process releases the trials without a result."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid, self._broken = os.getpid(), False
        self._exchanging: int | None = None  # the thread that exchanges a request
        self._errors: IO[str] = tempfile.TemporaryFile("w+")
        # Ctrl-C must reach Python only: the program may still record the result of its trial.
        self._process = subprocess.Popen([binary(), "study"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors, start_new_session=True)

    @property
    def usable(self) -> bool:
        """True if requests may be sent. A child of this process must not use the same pipe."""
        return self._pid == os.getpid() and not self._broken and self._process.poll() is None

    @property
    def busy_here(self) -> bool:
        """True if this thread is in an exchange: a finalizer in this thread cannot start another one."""
        return self._exchanging == threading.get_ident()

    def errand(self, **request: Any) -> Errand:
        return Errand(self, request)

    def call(self, **request: Any) -> dict[str, Any]:
        return self.errand(**request).answer()

    def exchange(self, request: bytes) -> dict[str, Any]:
        """Sends a line and reads the answer. The main thread must use an Errand."""
        with self._lock:
            assert self._process.stdin and self._process.stdout
            self._exchanging = threading.get_ident()
            try:
                self._process.stdin.write(request)
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except (BrokenPipeError, ValueError):  # ValueError: the pipe was closed
                line = b""
            except BaseException:  # the next request would get the answer of this one
                self._broken = True
                self._process.terminate()  # it releases its trials
                raise
            finally:
                self._exchanging = None
            if not line:
                code = self._process.wait()
                raise said(self._last_words() or f"berth study ended ({code})", code if code > 0 else 3)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            error = answer["error"]
            raise Failed(error["message"], error["code"], error["kind"])
        return answer

    def _last_words(self) -> str:
        if self._errors.closed:
            return ""
        self._errors.seek(0)
        return self._errors.read()

    def end(self) -> None:
        """Ends the process also if a child of this one has the pipe open. It claims no trials."""
        if self._pid == os.getpid():
            self._process.terminate()
        self.close()

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._process.wait()
        if self._lock.acquire(timeout=1):  # a thread may still read its answer
            self._process.stdout.close()
            self._errors.close()
            self._lock.release()


def encoded_other(value: Any) -> Any:
    """Converts values that json cannot write, such as numpy numbers."""
    plain = scalar(value)
    if type(plain) not in (bool, int, float, str):
        raise TypeError(f"{value!r} of type {type(value).__name__} cannot be written as JSON")
    return plain


class _Session:
    """The process that answers the calls of this program. A fork, another working directory and a changed environment
    get a new one, because a run takes both over."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pipe: Pipe | None = None
        self._surroundings: tuple[str, dict[str, str]] | None = None

    def pipe(self) -> Pipe:
        with self._lock:
            surroundings = os.getcwd(), dict(os.environ)
            if self._pipe is None or not self._pipe.usable or self._surroundings != surroundings:
                self.close()
                self._pipe, self._surroundings = Pipe(), surroundings
            return self._pipe

    def close(self) -> None:
        with self._lock:
            if self._pipe is not None:
                self._pipe.end()
                self._pipe = None


_session = _Session()
atexit.register(_session.close)


def call(method: str, path: str, *names: str, body: Any = None, query: Sequence[tuple[str, str]] = ()) -> Any:
    """Returns the answer to a call of the HTTP interface: call("GET", "/v1/runs/{}/best", "digits-3")."""
    filled = path.format(*(quote(name, safe="") for name in names))
    if query:
        filled += "?" + urlencode(list(query), quote_via=quote)
    request = {"call": method, "path": filled}
    if body is not None:
        request["body"] = json.dumps(body, ensure_ascii=False, default=encoded_other)
    answer = _session.pipe().call(**request)
    return answer["answer"] if "answer" in answer else answer["text"]
