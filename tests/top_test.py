#!/usr/bin/python3
"""berth top on a real pseudo-terminal: what is on the screen at several sizes, keys, logs, stop, and the terminal as it
was at every end. What it sends is replayed by tests/terminal.py."""

import json
import os
import re
import signal
import termios
import time
import unittest

from berth_case import Case, alive, until
from terminal import OnTerminal

SWEEP = """
name: {name}
run: {run}
resources: {{cpu: {cpu}, mem: 20M}}
params: {{x: [{values}]}}
{more}
"""


class TopCase(Case):
    def setUp(self):
        super().setUp()
        self.write("machine.yaml", "cpu: 1\nmem: 200M\n")
        self.house.environment["BERTH_MACHINE"] = str(self.dir / "machine.yaml")
        self.house.environment["TERM"] = "xterm"
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")
        self.house.environment.pop("NO_COLOR", None)

    def sweep(self, name, run, values="1", cpu="0.5", more=""):
        path = self.write(f"{name}.yaml", SWEEP.format(name=name, run=json.dumps(run), values=values, cpu=cpu, more=more))
        self.berth("run", "--detach", path)
        return f"{name}-1"

    def running(self, run, count=1):
        until(lambda: self.house.counts(run)["running"] >= count, f"{run} runs")

    def top(self, rows=24, columns=80, *arguments, **environment):
        terminal = OnTerminal([self.house.berth, "top", *arguments], {**self.house.environment, **environment}, rows, columns,
                              self.dir)
        self.addCleanup(terminal.close)
        return terminal

    @staticmethod
    def words(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().split(b"\0")
        except OSError:
            return []

    def assert_given_back(self, terminal):
        self.assertEqual(terminal.screen.modes, {"25": True, "7": True, "1049": False})
        self.assertEqual(termios.tcgetattr(terminal.master), terminal.before)
        self.assertEqual(terminal.screen.strange, [])


class TopTest(TopCase):
    def test_runs_tasks_and_amounts_are_there(self):
        run = self.sweep("digits", "sleep 600", values="1, 2", more="parallel: 2")
        self.running(run, 2)
        top = self.top()
        screen = top.shows("digits-1/2")
        lines = screen.lines()
        self.assertTrue(lines[0].startswith("berth top"), lines)
        self.assertRegex(str(screen), r"cpu +\[#+\] 1 of 1")
        self.assertRegex(str(screen), r"digits-1 +running +0/2 +1 ")
        self.assertRegex(str(screen), r"  digits-1/1 running +0.5 +19.1 MiB .*ends \?")
        self.assertEqual([line.split()[0] for line in screen.reversed_lines()], ["run", "digits-1"])
        self.assertIn("q quit", lines[-1])
        self.assertEqual(top.screen.modes["1049"], True)
        top.type("q")
        self.assertEqual(top.wait(), 0)
        self.assert_given_back(top)

    def test_keys_move_filter_sort_and_open(self):
        first = self.sweep("alpha", "sleep 600", values="1, 2, 3", cpu="0.2", more="parallel: 2")
        second = self.sweep("beta", "sleep 600", cpu="0.5")
        self.running(first, 2)
        self.running(second)
        top = self.top(24, 100)
        top.shows("beta-1/1")
        top.type("\x1b[B\x1b[B")
        top.until(lambda screen: any(line.startswith("  alpha-1/2") for line in screen.reversed_lines()), "it moved")
        top.type("P")
        top.until(lambda screen: "cpuv" in str(screen) and str(screen).index("beta-1") < str(screen).index("alpha-1 "), "sorted")
        top.type("/beta")
        top.until(lambda screen: "show only: beta_" in str(screen) and "alpha-1" not in str(screen), "filtered")
        top.type("\r")
        top.shows('only "beta"')
        top.type("\x1b")
        top.shows("alpha-1")
        top.type("N\x1b[H\r")
        screen = top.shows("alpha-1/3")
        self.assertRegex(str(screen), r"  alpha-1/3 waiting")
        top.type("?")
        top.shows("stop the chosen run")
        top.type("q")
        top.shows("beta-1")
        top.type("\t")
        top.shows("who      what")
        top.type("q")
        top.until(lambda screen: "who      what" not in str(screen), "the runs again")
        top.type("q")
        self.assertEqual(top.wait(), 0)
        self.assert_given_back(top)

    def test_a_run_is_stopped_after_a_question(self):
        run = self.sweep("digits", "sleep 600")
        self.running(run)
        top = self.top()
        top.shows("digits-1/1")
        top.type("x")
        top.shows("Stop digits-1, of which 1 task runs? y")
        top.type("n")
        top.until(lambda screen: "Stop digits" not in str(screen), "it is not asked any more")
        self.assertEqual(self.house.counts(run)["running"], 1)
        top.type("\x1b[Bx")
        top.shows("Stop digits-1, of which")
        top.type("y")
        top.shows("digits-1 stopped; resume it with: berth resume digits-1")
        top.shows("Nothing runs, waits or is allocated.")
        self.assertEqual(self.house.json("show", run)["run"]["state"], "stopped")
        top.type("a")
        top.shows("stopped")
        top.type("x")
        top.shows("digits-1 is stopped: there is nothing to stop")
        top.type("q")
        self.assertEqual(top.wait(), 0)

    def test_a_log_is_followed_and_scrolled(self):
        go = self.dir / "go"
        run = self.sweep("talk", "sh -c 'i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line $i; done; "
                                 "printf \"10%%\\r20%%\\r30%%\\n\\ttab\\n\"; "
                                 f"while [ ! -e {go} ]; do sleep 0.05; done; echo last; sleep 600'")
        self.running(run)
        top = self.top()
        top.shows("talk-1/1")
        top.type("\x1b[Bl")
        screen = top.shows("        tab")
        self.assertIn("line 50", str(screen))
        self.assertRegex(str(screen), r"(?m)^30%$")
        self.assertNotIn("10%", str(screen))
        top.type("\x1b[H")
        top.until(lambda screen: re.search(r"(?m)^line 1$", str(screen)), "its beginning")
        go.touch()
        top.shows(" of 54")
        self.assertNotIn("last", str(top.screen))
        top.type("\x1b[F")
        top.until(lambda screen: re.search(r"(?m)^last$", str(screen)), "its end")
        top.type("\x1b")
        top.shows("talk-1/1")
        until(lambda: not any(b"logs" in self.words(pid) for pid in self.house.leftovers()), "berth logs has ended")
        top.type("q")
        self.assertEqual(top.wait(), 0)
        self.assert_given_back(top)

    def test_nothing_that_a_task_prints_or_is_called_reaches_the_terminal(self):
        evil = r"\033]0;owned\007\033[2J\033[?1049l\033[31m\302\2332J\2332J\033P1\044r\033\134\016\017\010"
        run = self.sweep("evil", f"sh -c \"printf '{evil}shown'; echo; sleep 600\"")
        flow = self.write("named.yaml", "name: named\nsteps:\n  go:\n    foreach: {x: [\"a\\e[2Jb\\u202ec\"]}\n"
                          "    run: sleep 600\n    resources: {cpu: 0.2, mem: 10M}\n")
        self.berth("run", "--detach", flow)
        self.running(run)
        self.running("named-1")
        top = self.top(24, 120)
        top.shows("named-1/")
        top.type("\t")
        top.shows("who")
        top.type("qN\x1b[Hl")
        screen = top.shows("shown")
        self.assertIn("^[]0;owned^G", str(screen))
        top.type("q")
        top.shows("evil-1")
        top.type("q")
        self.assertEqual(top.wait(), 0)
        self.assert_given_back(top)

    def test_every_size_and_resizing(self):
        run = self.sweep("digits", "sleep 600", values="1, 2", more="parallel: 2")
        self.running(run, 2)
        top = self.top(24, 80)
        top.shows("digits-1/2")
        for rows, columns in ((5, 20), (2, 20), (1, 20), (10, 20), (50, 300), (3, 300), (24, 80)):
            top.resize(rows, columns)
            seen = len(top.text)
            top.until(lambda screen: "\x1b[2J" in top.text[seen:] and "digits-1" in str(screen)
                      and (rows == 1 or screen.lines()[-1].startswith("? help")), f"{rows}x{columns}")
            self.assertEqual(top.screen.strange, [])
            self.assertRegex(str(top.screen), r"digits-1 +running")
        for rows, columns in ((1, 20), (3, 20), (24, 300)):
            other = self.top(rows, columns)
            other.shows("digits-1")
            other.type("q")
            self.assertEqual(other.wait(), 0)
            self.assert_given_back(other)
        top.type("q")
        self.assertEqual(top.wait(), 0)
        self.assert_given_back(top)

    def test_signals_give_the_terminal_back(self):
        for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGQUIT, -signal.SIGQUIT),
                             (signal.SIGABRT, -signal.SIGABRT), (signal.SIGSEGV, -signal.SIGSEGV)):
            if os.environ.get("BERTH_SANITIZE") and code == -signal.SIGSEGV:
                continue  # the sanitizer makes another end of it
            top = self.top()
            top.shows("q quit")
            top.signal(number)
            self.assertEqual(top.wait(), code, number)
            self.assert_given_back(top)
        top = self.top()
        top.shows("q quit")
        top.type("\x03")  # Ctrl-C
        self.assertEqual(top.wait(), 0)
        self.assert_given_back(top)

    def test_it_is_drawn_anew_after_a_stop(self):
        """Under a shell with job control: it is stopped, something else is done, and fg."""
        for key in (True, False):
            shell = OnTerminal(["/bin/bash", "--norc", "-i"],
                               {**self.house.environment, "PS1": "$ ", "HISTFILE": "", "INPUTRC": "/dev/null"}, 24, 80, self.dir)
            self.addCleanup(shell.close)
            shell.type("bind 'set enable-bracketed-paste off'\n")
            shell.type(f"{self.house.berth} top\n")
            shell.until(lambda screen: screen.modes["1049"] and "q quit" in str(screen), "top")
            if key:
                shell.type("\x1a")
            else:
                os.kill(next(pid for pid in self.house.leftovers() if b"top" in self.words(pid)), signal.SIGTSTP)
            shell.until(lambda screen: screen.modes == {"25": True, "7": True, "1049": False}, "given back")
            seen = len(shell.text)
            shell.type("stty -a | grep -o ' -*icanon'; echo before''-fg\n")
            shell.until(lambda screen: "before-fg" in shell.text[seen:], "the shell's turn")
            self.assertRegex(shell.text[seen:], r"\n icanon")
            shell.type("fg\n")
            shell.until(lambda screen: screen.modes["1049"] and screen.lines()[0].startswith("berth top") and "q quit" in str(screen),
                        "drawn anew")
            shell.type("q")
            shell.until(lambda screen: not screen.modes["1049"], "given back at the end")
            shell.type("exit\n")
            shell.wait()

    def test_the_terminal_goes_away(self):
        top = self.top()
        top.shows("q quit")
        os.close(top.master)
        until(lambda: not alive(top.pid) or os.waitpid(top.pid, os.WNOHANG)[0], "it ends with its terminal")
        top.code, top.master = 0, os.open("/dev/null", os.O_RDONLY)

    def test_a_terminal_that_takes_nothing_holds_nothing_up(self):
        run = self.sweep("digits", "sleep 600")
        self.running(run)
        top = self.top(50, 300)
        time.sleep(1)  # nobody reads
        top.signal(signal.SIGTERM)
        self.assertEqual(top.wait(), 0)
        self.assert_given_back(top)

    def test_elsewhere_it_is_one_page(self):
        self.assertIn(b"nothing is allocated", self.berth("top").out)
        self.assertNotIn(b"\x1b", self.berth("top").out)
        self.assertIn("total", self.house.json("top"))
        for arguments, environment in ((["--once"], {}), (["--json"], {}), ([], {"TERM": "dumb"})):
            top = self.top(24, 80, *arguments, **environment)
            self.assertEqual(top.wait(), 0)
            self.assertNotIn("\x1b", top.text)
        self.assertIn("nothing is allocated", top.text)


class LogsTest(TopCase):
    def test_the_last_of_a_log_and_what_comes(self):
        go = self.dir / "go"
        run = self.sweep("talk", f"sh -c 'seq 1000; while [ ! -e {go} ]; do sleep 0.05; done; echo last'")
        until(lambda: b"1000" in self.berth("logs", run).out, "it has printed")
        logs = self.house.start("logs", "--tail", "9B", "--follow", f"{run}/1")
        seen = b""
        while seen.count(b"\n") < 2:
            seen += os.read(logs.stdout.fileno(), 100)
        go.touch()
        self.assertEqual(seen + logs.communicate(timeout=60)[0], b"999\n1000\nlast\n")


class QueueTest(TopCase):
    """When those that wait are expected to start."""

    def test_the_expected_start_and_what_it_is_by(self):
        go = self.dir / "go"
        slow = self.sweep("slow", f"sh -c 'test {{x}} -eq 1 && sleep 1 && exit; while [ ! -e {go} ]; do sleep 0.05; done'",
                          values="1, 2", cpu="1", more="timeout: 1h")
        until(lambda: self.house.counts(slow)["done"] == 1, "one is done")
        self.running(slow)
        wait = self.sweep("wait", "true", cpu="1", more="timeout: 30s")
        until(lambda: self.house.json("machine")["waiting"], "it waits")
        behind = self.sweep("behind", "true", cpu="1")

        def waiting():
            found = self.house.json("machine")["waiting"]
            return found if [each["label"] for each in found] == [wait, behind] else None
        until(waiting, "both wait")
        first, second = until(lambda: waiting() if waiting()[0]["at_most"] else None, "it outlasts the one that has ended")
        self.assertIn("by the time limit of slow-1, 1h00m", first["expected_by"])
        self.assertIsNotNone(first["expected_start"])
        self.assertIn("the time limit of wait-1, 30.0s", second["expected_by"])
        self.assertGreater(second["expected_start"], first["expected_start"])
        text = self.berth("machine").out.decode()
        self.assertRegex(text, r"wait-1 .* waits, starts <\d+m\d\ds")
        self.assertRegex(text, r"\nbehind-1 starts <1h00m: by the time limit of slow-1")
        why = self.berth("why", "wait-1/1").out.decode()
        self.assertRegex(why, r"starts <59m\d\ds: by the time limit of slow-1, 1h00m")
        self.assertIn("starts <", self.house.json("why", "wait-1/1")["why"])
        top = self.top(24, 140)
        top.until(lambda screen: re.search(r"wait-1 +queued .* starts <59m", str(screen)), "the start in top")
        self.assertLess(str(top.screen).index("wait-1 "), str(top.screen).index("behind-1 "))
        top.type("q")
        self.assertEqual(top.wait(), 0)
        go.touch()
        self.berth("wait", behind)

    def test_what_nobody_knows_is_said_to_be_unknown(self):
        first = self.sweep("first", "sleep 600", cpu="1")
        self.running(first)
        second = self.sweep("second", "true", cpu="1")
        found = until(lambda: self.house.json("top")["waiting"], "it waits")
        self.assertEqual(found[0]["label"], second)
        self.assertIsNone(found[0]["expected_start"])
        self.assertEqual(found[0]["expected_by"], "the end of first-1 is not known")
        self.assertIn("starts ?: the end of first-1 is not known", self.berth("why", "second-1/1").out.decode())


if __name__ == "__main__":
    unittest.main()
