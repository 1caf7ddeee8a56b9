#!/usr/bin/python3
"""Completions in real shells: bash and zsh at a terminal, fish by its own command."""

import os
import pty
import select
import subprocess
import time
import unittest
from pathlib import Path

from berth_case import BERTH, PATIENCE_S, Case

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "src/berth/cli/completion"


class Terminal:
    """A shell at a terminal, to which keys are given."""

    def __init__(self, argv, environment, directory):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(argv[0], argv, environment)
        self.seen = b""

    def keys(self, keys):
        os.write(self.fd, keys.encode())

    def wait_for(self, text):
        """Reads until the terminal has shown the text, and returns all that it has shown since the last call."""
        until = time.monotonic() + PATIENCE_S
        while text.encode() not in self.seen:
            if time.monotonic() > until or not select.select([self.fd], [], [], 1)[0]:
                if time.monotonic() > until:
                    raise AssertionError(f"no {text!r} in {self.seen!r}")
                continue
            self.seen += os.read(self.fd, 65536)
        shown, self.seen = self.seen.decode(errors="replace"), b""
        return shown

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Completion(Case):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", "name: sweep\nrun: echo {x}\nparams: {x: [1, 2]}\n")
        self.write("clusters.yaml", "laboratory: {kind: ssh, hosts: [h]}\n")
        self.berth("run", "sweep.yaml")
        self.environment = {**self.house.environment, "BERTH_CLUSTERS": str(self.dir / "clusters.yaml"),
                            "PATH": f"{os.path.dirname(BERTH)}:{os.environ['PATH']}", "TERM": "dumb",
                            "HOME": str(self.dir), "PS1": "ready> ", "LC_ALL": "C.UTF-8"}

    def terminal(self, *argv):
        terminal = Terminal(argv, self.environment, self.dir)
        self.addCleanup(terminal.close)
        return terminal

    def complete_all(self, terminal):
        """Each line is begun, completed, and echoed as a comment that shows what became of it."""
        for begun, whole in [("berth impo", "berth importance"), ("berth logs swe", "berth logs sweep-1"),
                             ("berth logs sweep-1/2", "berth logs sweep-1/2"),
                             ("berth run --cluster lab", "berth run --cluster laboratory"),
                             ("berth place --topology dgx-h", "berth place --topology dgx-h100"),
                             ("berth run --detac", "berth run --detach"),
                             ("berth run swee", "berth run sweep.yaml"),
                             ("berth run --cache=wr", "berth run --cache=write"),
                             ("berth run --cpu 1 -- basena", "berth run --cpu 1 -- basename")]:
            with self.subTest(begun):
                terminal.keys(f"{begun}\t")
                # At the beginning of the line (^A) it becomes an argument of echo.
                terminal.keys("\x01echo '<' \x05 '>'\r")
                shown = terminal.wait_for(f"\n< ").replace("\r", "")
                while ">\n" not in shown.rpartition("\n< ")[2]:
                    shown += terminal.wait_for("\n").replace("\r", "")
                self.assertEqual(" ".join(shown.rpartition("\n< ")[2].partition(">\n")[0].split()), whole)

    def test_bash(self):
        terminal = self.terminal("bash", "--norc", "--noprofile", "-i")
        terminal.keys(f"bind 'set enable-bracketed-paste off'; source {SCRIPTS}/berth.bash; PS1='ready> '; echo go''ne\r")
        terminal.wait_for("gone")
        self.complete_all(terminal)

    def test_the_printed_script_is_the_installed_one(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertEqual(self.berth("completion", shell).out, (SCRIPTS / f"berth.{shell}").read_bytes())

    def test_zsh(self):
        terminal = self.terminal("zsh", "-f", "-i")
        terminal.keys("PS1='ready> '; unsetopt zle_bracketed_paste prompt_sp prompt_cr; bindkey -e; autoload -U compinit; "
                      f"compinit -u -D; source {SCRIPTS}/berth.zsh; echo go''ne\r")
        terminal.wait_for("gone")
        self.complete_all(terminal)

    def fish(self, line):
        done = subprocess.run(["fish", "-c", f"source {SCRIPTS}/berth.fish; complete -C '{line}'"], capture_output=True,
                              cwd=self.dir, env=self.environment, text=True, check=True)
        return [each.split("\t")[0] for each in done.stdout.splitlines()]

    def test_fish(self):
        self.assertEqual(self.fish("berth impo"), ["importance"])
        self.assertEqual(self.fish("berth logs swe"), ["sweep-1"])
        self.assertEqual(self.fish("berth logs sweep-1/"), ["sweep-1/1", "sweep-1/2"])
        self.assertEqual(self.fish("berth run --cluster "), ["laboratory"])
        self.assertEqual(self.fish("berth place --topology dgx-h"), ["dgx-h100"])
        self.assertIn("--detach", self.fish("berth run --de"))
        self.assertEqual(self.fish("berth run swe"), ["sweep.yaml"])
        self.assertIn("basename", self.fish("berth run -- basena"))

    def test_nothing_is_made_on_the_way(self):
        empty = self.dir / "empty"
        done = self.berth("complete", "--", "logs", "", env={"BERTH_DB": str(empty)})
        self.assertEqual(done.out, b"")
        self.assertFalse(empty.exists())


if __name__ == "__main__":
    unittest.main()
