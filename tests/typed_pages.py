"""Types the commands of a document in a fresh folder, as its reader would, and checks what they print and how they end.

A page consists of these blocks:

- ```console: each line after `$ ` is a command; the lines below it have to appear in its output, in that order. `…` matches any text.
- ```sh: each line is a command that has to succeed, or to exit with N if its comment says `exit code N`. A line that ends with `\\` continues.
- ```sh no-test: commands that this machine cannot run. Only their words are checked.
- Any other block whose first line is `# NAME`, or that is followed by "Save it as `NAME`", is the text of that file.
"""

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from berth_case import BERTH, Case, until

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"\A(?:#!.*\n)?# ([\w.-]+\.\w+)\n")
SAVED_AS = re.compile(r"Save it as `([\w.-]+)`")
EXIT_CODE = re.compile(r"#.*\bexit code (\d+)\b")
UNTIL_CTRL_C = re.compile(r"berth (dashboard|serve|autoscale(?!.* --trace))\b")
MOST_S = 180  # for one command


class File(NamedTuple):
    name: str
    text: str


class Command(NamedTuple):
    text: str
    shown: list
    is_typed: bool = True
    code: int = 0


def lines_of(body):
    """The commands of a block in `sh`."""
    for line in body.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            code = EXIT_CODE.search(line)
            yield line, int(code[1]) if code else 0


def steps(page):
    """The files and commands of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        language, more, body = block[1], block[2], block[3]
        saved_as = SAVED_AS.match(text[block.end():].lstrip())
        if language == "console":
            for part in ("\n" + body).split("\n$ ")[1:]:
                command, *shown = part.rstrip("\n").split("\n")
                fails = any(line.startswith(("berth: ", "error: ")) or "not served" in line for line in shown)
                yield Command(command, shown, code=-1 if fails else 0)
        elif language == "sh":
            for line, code in lines_of(body):
                yield Command(line, [], "no-test" not in more, code)
        elif FILE.match(body):
            yield File(FILE.match(body)[1], body)
        elif saved_as:
            yield File(saved_as[1], body)


def as_pattern(line):
    return re.compile(r"\s+".join(re.escape(word) for word in line.split()).replace("…", ".*"))


class TypedPage(Case):
    """A test that types pages. Each page begins in an empty folder and an empty store."""

    def environment(self):
        return {**self.house.environment, "PATH": f"{Path(BERTH).parent}:{os.environ['PATH']}", "HOME": str(self.dir),
                "BERTH_EXAMPLES": str(ROOT / "examples"), "PARALLEL_HOME": str(self.dir)}

    def before(self, command):
        """Called before each command is typed."""

    def type(self, page):
        """Types a page and returns the number of commands typed."""
        typed = 0
        for step in steps(page):
            if isinstance(step, File):
                text = FILE.sub("", step.text) if step.name.endswith((".txt", ".csv")) else step.text  # the name is not part of it
                self.write(step.name, text).chmod(0o755 if text.startswith("#!") else 0o644)
            elif step.is_typed:
                typed += 1
                self.before(step.text)
                self.type_command(step)
        return typed

    def type_command(self, step):
        if UNTIL_CTRL_C.match(step.text):
            self.type_until_ctrl_c(step)
            return
        done = subprocess.run(["bash", "-c", step.text], cwd=self.dir, env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=MOST_S, check=False)
        printed = done.stdout.decode()
        lines = iter(printed.splitlines())
        for line in step.shown:
            self.assertTrue(any(as_pattern(line).search(each) for each in lines),
                            f"$ {step.text}\nprints no line, or not in this order: {line}\n{printed}")
        if step.code >= 0:
            self.assertEqual(done.returncode, step.code, f"$ {step.text}\n{printed}")

    def type_until_ctrl_c(self, step):
        """A command that serves until Ctrl-C: it has to start, print something, and end on the signal."""
        out = self.dir / "until-ctrl-c.txt"
        with open(out, "wb") as file:
            process = subprocess.Popen(["bash", "-c", f"exec {step.text}"], cwd=self.dir, env=self.environment(),
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        try:
            until(lambda: out.stat().st_size or process.poll() is not None, f"{step.text} prints something")
            self.assertIsNone(process.poll(), f"$ {step.text}\n{out.read_text()}")
            process.send_signal(signal.SIGINT)
            self.assertIn(process.wait(60), (0, 130), f"$ {step.text}\n{out.read_text()}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
