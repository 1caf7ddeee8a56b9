#!/usr/bin/python3
"""Tasks in sandboxes, which the real bubblewrap makes: what they see, and how they end."""

import os
import shutil
import signal
import subprocess
import time
import unittest

from berth_case import FlowCase, until


def why_not():
    if not shutil.which("bwrap"):
        return "there is no bwrap here"
    tried = subprocess.run(["bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent", "--ro-bind", "/", "/",
                            "--proc", "/proc", "--dev", "/dev", "true"],
                           capture_output=True, text=True, check=False)
    return f"bwrap does not run here: {tried.stderr}" if tried.returncode else ""


@unittest.skipIf(why_not(), why_not())
class Sandbox(FlowCase):
    def flow(self, step, head=""):
        self.write("flow.yaml", f"sandbox: true\n{head}steps:\n  one:\n{step}")

    def test_a_command_that_is_too_long_for_an_argument_is_read_from_a_file(self):
        for i in range(800):
            self.write(f"in/{i:05d}{180 * 'x'}", "")
        self.flow("    in: {all: 'in/*'}\n    out: {n: n}\n    run: set -- {in.all}; echo $# > {out.n}\n")
        self.run_flow()
        self.assertEqual(self.read("n"), "800\n")

    def test_a_script_without_interpreter_line_runs(self):
        self.script("tool", "echo $1 > told\n")
        self.flow("    in: {tool: tool}\n    out: {told: told}\n    run: ./tool hi\n")
        self.run_flow()
        self.assertEqual(self.read("told"), "hi\n")

    def test_it_sees_its_inputs_and_the_system_and_nothing_else(self):
        self.write("in.txt", "given\n")
        self.write("secret.txt", "not given\n")
        self.house.environment |= {"TMPDIR": str(self.dir), "HOME": str(self.dir / "home")}
        self.flow(f"""\
    env: {{COLOUR: "a b'c"}}
    in: {{text: in.txt}}
    out: {{told: told.txt}}
    run: |
      exec > {{out.told}}
      cat {{in.text}}
      echo "$COLOUR"
      id -u
      ls {self.dir}/secret.txt 2>/dev/null || echo hidden
      grep -o '[a-z0-9]*:' /proc/net/dev
      ls -A "$HOME" | wc -l
      mktemp -u
      (ls -d /home/* /root /mnt 2>/dev/null || true) | wc -l
      touch /usr/x 2>/dev/null || echo read only
      [ $$ -lt 10 ] && echo alone
      echo var > /var/tmp/v; cat /tmp/v
      echo x > "$HOME/x"; (df /tmp --output=fstype || true) | tail -1
""")
        self.run_flow()
        told = self.read("told.txt").splitlines()
        self.assertEqual(told[:6], ["given", "a b'c", str(os.getuid()), "hidden", "lo:", "0"])
        self.assertTrue(told[6].startswith("/tmp/tmp."), told)
        self.assertEqual(told[7:9], ["0", "read only"] if self.dir.parts[1] == "tmp" else told[7:9])
        self.assertIn("alone", told)
        self.assertIn("var", told)
        self.assertNotEqual(told[-1], "tmpfs", "what it writes there takes none of its memory")
        self.assertEqual(self.read("in.txt"), "given\n")
        self.assertEqual((self.dir / "told.txt").stat().st_uid, os.getuid())

    def test_network_and_more_paths_are_seen_where_they_are_asked_for(self):
        (self.dir / "data").mkdir()
        self.write("data/genome", "ACGT\n")
        self.write("flow.yaml", f"""\
steps:
  net: {{sandbox: true, network: true, run: 'readlink /proc/self/ns/net > {{out.o}}', out: {{o: net}}}}
  none: {{sandbox: true, run: 'readlink /proc/self/ns/net > {{out.o}}', out: {{o: none}}}}
  data:
    sandbox: [{self.dir}/data]
    run: '! touch {self.dir}/data/x; cat {self.dir}/data/genome > {{out.o}}'
    out: {{o: data.txt}}
""")
        self.run_flow()
        own = os.readlink("/proc/self/ns/net")
        self.assertEqual(self.read("net").strip(), own)
        self.assertNotEqual(self.read("none").strip(), own)
        self.assertEqual(self.read("data.txt"), "ACGT\n")

    def test_a_forgotten_input_is_missed(self):
        self.write("in.txt", "x")
        run = f"    run: cat {self.dir}/in.txt > {{out.o}}\n    out: {{o: o.txt}}\n"
        self.write("flow.yaml", "steps:\n  one:\n" + run)
        self.run_flow()
        self.flow(run)
        shown = self.run_flow(code=1)
        self.assertEqual(self.states(shown)["one"], "failed", "the sandbox is a part of what it depends on")
        self.assertIn("No such file", self.berth("why", "flow-2/one").out.decode())
        self.assertIn("sandbox is new", " ".join(self.because("flow-2/one")))

    def test_exit_codes_signals_and_errors_that_are_the_tasks_own(self):
        self.write("flow.yaml", """\
sandbox: true
steps:
  seven: {run: 'exit 7 || true'}
  killed: {run: 'kill -9 $$; true'}
  says: {run: 'echo "bwrap: not mine" >&2; exit 3'}
""")
        self.run_flow(code=1)
        self.assertIn(b"exit 7", self.berth("why", "flow-1/seven").out)
        self.assertIn(b"137", self.berth("why", "flow-1/killed").out)
        self.assertIn(b"exit 3", self.berth("why", "flow-1/says").out)

    def test_term_reaches_the_task_which_has_its_grace(self):
        self.flow("    run: |\n      trap 'sleep 0.5; echo cleaned >&2; exit 0' TERM\n      echo up >&2\n"
                  "      while :; do sleep 0.1; done\n    timeout: 2s\n")
        began = time.monotonic()
        self.run_flow(code=1)
        self.assertLess(time.monotonic() - began, 10)
        self.assertIn(b"time limit", self.berth("why", "flow-1/one").out)
        logs = self.berth("logs", "flow-1/one")
        self.assertIn(b"cleaned", logs.out + logs.err)

    def test_nothing_of_it_outlives_a_stop_or_its_worker(self):
        self.flow("    run: setsid sleep 1000 & sleep 1000; true\n")
        run = self.house.start("run", "flow.yaml")
        until(lambda: len(self.sleeps()) == 2, "both sleep")
        run.send_signal(signal.SIGINT)
        run.wait(20)
        until(lambda: not self.sleeps(), "what left its group ends too")
        run = self.house.start("run", "flow.yaml")
        until(lambda: len(self.sleeps()) == 2, "both sleep")
        for pid in self.house.leftovers():
            try:
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read().strip() in ("berth", "berth-agent"):
                        os.kill(pid, signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                pass
        run.wait(20)
        until(lambda: not self.sleeps(), "all of it ends with the worker")

    def sleeps(self):
        found = []
        for pid in self.house.leftovers():
            try:
                with open(f"/proc/{pid}/cmdline") as line:
                    if line.read().startswith("sleep\0"):
                        found.append(pid)
            except (FileNotFoundError, ProcessLookupError):
                pass
        return found

    def test_what_it_needs_is_asked_for_before_anything_runs(self):
        tool = self.script("tools/tool", "#!/bin/sh\necho hi\n")
        self.house.environment["PATH"] = f"{self.dir}/tools:/usr/bin:/bin"
        for step, said in [("    run: tool\n", f"steps.one.run: tool is {tool}, which is not visible in the sandbox"),
                           ("    sandbox: [/no/such]\n    run: 'true'\n", "steps.one.sandbox: /no/such"),
                           ("    sandbox: [data]\n    run: 'true'\n", "expected a path from / or ~/")]:
            self.flow(step)
            refused = self.house.run("run", "flow.yaml")
            self.assertNotEqual(refused.code, 0)
            self.assertIn(said, refused.err.decode())
        self.flow(f"    sandbox: [{self.dir}/tools]\n    run: tool\n")
        self.berth("run", "flow.yaml")
        self.flow("    run: if true; then tool; fi\n")
        self.berth("run", "flow.yaml", code=1)
        places = self.dir / "without"
        places.mkdir()
        for program in ("bash", "true", "env"):
            (places / program).symlink_to(f"/usr/bin/{program}")
        self.house.environment["PATH"] = str(places)
        self.flow("    run: 'true'\n")
        refused = self.house.run("run", "flow.yaml")
        self.assertIn(b"flow.yaml:3: steps.one.sandbox: bwrap is not in PATH", refused.err)
        self.assertIn(b"apt install bubblewrap", refused.err)

    def test_a_program_that_it_does_not_show_is_told_with_the_reason(self):
        self.flow("    run: [no-such-program]\n")
        self.write("flow.yaml", self.read("flow.yaml").replace("[no-such-program]", "['{params.p}']").replace(
            "steps:", "params: {p: no-such-program}\nsteps:").replace("{params.p}", "{p}"))
        self.berth("run", "flow.yaml", code=1)
        self.assertIn(b"sandbox: it has no program no-such-program; it shows /usr", self.berth("why", "flow-1/one").out)

    def test_a_depfile_tells_what_it_has_read_of_the_folder_it_is_shown(self):
        self.write("src/a.c", '#include "a.h"\n#include <stdio.h>\nint main(void) { puts(A); return 0; }\n')
        self.write("src/a.h", '#define A "one"\n')
        compiler = "gcc -MD -MF {out.p}.d {in.c} -o {out.p}" if shutil.which("gcc") else (
            "(echo '#!/bin/sh'; echo 'echo \\'; cut -d' ' -f3 src/a.h) > {out.p}; chmod +x {out.p}; echo '{out.p}: src/a.h' > {out.p}.d")
        self.flow(f"    in: {{c: src/a.c}}\n    run: |\n      {compiler}\n    out: {{p: prog}}\n"
                  "    depfile: '{out.p}.d'\n")
        self.run_flow()
        self.assertEqual(self.ran(self.run_flow()), [])
        self.write("src/a.h", '#define A "two"\n')
        self.assertEqual(self.ran(self.run_flow()), ["one"])
        self.assertEqual(subprocess.run([self.dir / "prog"], capture_output=True, check=True).stdout, b"two\n")

    def test_memory_is_limited(self):
        if "memory" not in self.house.json("machine", "--probe")["enforced"]:
            self.skipTest("no control group limits memory here")
        self.flow("    run: tail /dev/zero\n    resources: {cpu: 1, mem: 100M}\n")
        self.run_flow(code=1)
        self.assertIn(b"out of memory", self.berth("why", "flow-1/one").out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
