"""A program on a terminal of its own: a pseudo-terminal, whose output a small emulator replays into a screen.

The emulator knows what Berth sends and no more: anything else is kept in `strange`, so that a test can see that
nothing that a task prints, or is called, reaches a terminal as a control sequence.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata

PATIENCE_S = 60
SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, rows, columns):
        self.strange = []
        self.modes = {"25": True, "7": True, "1049": False}
        self.rest = ""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        """As xterm does: what is there stays, cut or filled up."""
        before = getattr(self, "cells", [])
        self.rows, self.columns, self.row, self.column, self.reverse = rows, columns, 0, 0, False
        self.cells = [[(before[r][c] if r < len(before) and c < len(before[r]) else (" ", False))
                       for c in range(columns)] for r in range(rows)]

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        at = 0
        while at < len(text):
            character = text[at]
            if character == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found and len(text) - at < 32 and re.fullmatch(r"\x1b(\[\??[0-9;]*)?", text[at:]):
                    self.rest = text[at:]
                    return
                if not found:
                    self.strange.append(text[at:at + 16])
                    at += 1
                    continue
                self.control(*found.groups())
                at = found.end()
                continue
            at += 1
            if character == "\r":
                self.column = 0
            elif character == "\n":
                self.row = min(self.row + 1, self.rows - 1)
            elif ord(character) < 32 or 127 <= ord(character) < 160 or 0x202a <= ord(character) <= 0x202e:
                self.strange.append(character)
            else:
                self.put(character)

    def put(self, character):
        if unicodedata.combining(character):
            return
        width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if self.column + width > self.columns:
            if self.modes["7"]:  # it goes on in the next line
                self.column, self.row = 0, min(self.row + 1, self.rows - 1)
            else:
                self.column = self.columns - width
        for cell in range(width):
            self.cells[self.row][self.column + cell] = (character if cell == 0 else "", self.reverse)
        self.column += width

    def control(self, private, parameters, final):
        numbers = [int(each or 0) for each in parameters.split(";")]
        if private and final in "hl" and parameters in self.modes:
            self.modes[parameters] = final == "h"
        elif not private and final == "H":
            self.row = min(max(numbers[0], 1), self.rows) - 1
            self.column = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif not private and final == "J" and numbers == [2]:
            self.cells = [[(" ", False)] * self.columns for _ in range(self.rows)]
        elif not private and final == "K":
            self.cells[self.row] = [(" ", False)] * self.columns
        elif not private and final == "m":
            for number in numbers:
                self.reverse = number == 7 or (self.reverse and number != 0)
        else:
            self.strange.append(f"\x1b[{private}{parameters}{final}")

    def lines(self):
        return ["".join(cell for cell, _ in row).rstrip() for row in self.cells]

    def reversed_lines(self):
        return [line for line, row in zip(self.lines(), self.cells) if row[0][1]]

    def __str__(self):
        return "\n".join(self.lines())


class OnTerminal:
    """A program whose standard streams are a terminal. It leads a session of its own, as under a shell's job control
    where `job` says so: then a process of ours is its parent and the session's leader."""

    def __init__(self, argv, environment, rows=24, columns=80, cwd=None):
        self.screen = Screen(rows, columns)
        self.text = ""  # all that came
        self.code = None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                size(1, rows, columns)
                if cwd:
                    os.chdir(cwd)
                os.execvpe(argv[0], argv, environment)
            finally:
                os._exit(127)
        self.before = termios.tcgetattr(self.master)

    def read(self, wait_s=0.05):
        ready, _, _ = select.select([self.master], [], [], wait_s)
        if not ready:
            return False
        try:
            came = os.read(self.master, 1 << 16)
        except OSError:
            came = b""
        if not came:
            return False
        self.pending = getattr(self, "pending", b"") + came
        text = self.pending.decode("utf-8", "ignore") if came[-1] < 0x80 else None
        if text is None:
            return True
        self.pending = b""
        self.text += text
        self.screen.feed(text)
        return True

    def type(self, text):
        os.write(self.master, text.encode())

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition(self.screen):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain: {what}; the screen:\n{self.screen}")
            if not self.read():
                time.sleep(0.01)
        return self.screen

    def shows(self, text):
        return self.until(lambda screen: text in str(screen), f"'{text}' on the screen")

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        size(self.master, rows, columns)  # the kernel sends SIGWINCH

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self):
        deadline = time.monotonic() + PATIENCE_S
        while self.code is None:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
                while self.read(0):
                    pass
            elif time.monotonic() > deadline:
                raise AssertionError(f"it did not end; the screen:\n{self.screen}")
        return self.code

    def close(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
