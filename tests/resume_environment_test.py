#!/usr/bin/python3
"""Tasks after a resume or a retry have the environment of the submission, or the person learns what differs."""

import os
import stat
import unittest

from berth_case import Case


class ResumeEnvironment(Case):
    def interrupted(self, command, **env):
        """A run of two trials, of which the first has ended in this environment, and `command` writes files."""
        self.write("sweep.yaml", f"name: en\nrun: bash {self.dir}/task.sh\nparallel: 1\nparams: {{n: [1, 2]}}\n")
        self.write("task.sh", f'{command}\nif [ "$BERTH_PARAM_N" = 1 ]; then kill -INT $(cat runner); sleep 0.5; fi\n')
        runner = self.house.start("run", "sweep.yaml", env=env)
        self.write("runner", str(runner.pid))
        runner.communicate()

    def resumed(self, *options, command="resume", **env):
        done = self.house.run(command, *options, "en-1", env=env)
        self.assertEqual(done.code, 0, done)
        return done.err.decode()

    def value(self, n):
        return (self.dir / f"r{n}").read_text().strip()

    def test_a_variable_that_changed_is_named_once_with_both_values(self):
        self.interrupted("sleep 0.3; echo $TOOL > r$BERTH_PARAM_N", TOOL="first")
        said = self.resumed(TOOL="second")
        self.assertIn('TOOL: it was "first", now it is "second"', said)
        self.assertIn("--env-of-submission", said)
        self.assertEqual(said.count("TOOL"), 1)
        self.assertEqual(self.value(2), "second")

    def test_tasks_get_the_recorded_environment_on_request(self):
        self.interrupted("sleep 0.3; echo $TOOL-$ADDED > r$BERTH_PARAM_N", TOOL="first")
        said = self.resumed("--env-of-submission", TOOL="second", ADDED="later")
        self.assertNotIn("TOOL", said)
        self.assertEqual(self.value(2), "first-")

    def test_a_resume_in_the_background_gets_the_recorded_environment_too(self):
        self.interrupted("sleep 0.3; echo $TOOL > r$BERTH_PARAM_N", TOOL="first")
        self.resumed("--env-of-submission", "--detach", TOOL="second")
        self.berth("wait", "en-1")
        self.assertEqual(self.value(2), "first")

    def test_variables_that_appeared_and_disappeared_are_named(self):
        self.interrupted("sleep 0.3", CONDA_PREFIX="/opt/a", PATH=os.environ["PATH"])
        said = self.resumed(VIRTUAL_ENV="/home/x/venv", PATH="/opt/b/bin:" + os.environ["PATH"])
        self.assertIn('CONDA_PREFIX: it was "/opt/a", now it is not set', said)
        self.assertIn('VIRTUAL_ENV: it was not set, now it is "/home/x/venv"', said)
        self.assertIn('PATH: it was "', said)

    def test_variables_of_a_session_are_not_named(self):
        self.interrupted("sleep 0.3", TERM="xterm", SSH_TTY="/dev/pts/1", DISPLAY=":0", SHLVL="1")
        said = self.resumed(TERM="dumb", SSH_CONNECTION="a 1 b 2", XDG_SESSION_ID="7", SHLVL="2", OLDPWD="/")
        self.assertNotIn("environment", said)

    def test_secrets_are_neither_kept_nor_shown(self):
        self.interrupted("sleep 0.3", WANDB_API_KEY="hidden-one", DATABASE="postgres://me:hidden-two@host/db")
        recorded = self.house.state / "runs/en-1/environment"
        self.assertEqual(stat.S_IMODE(recorded.stat().st_mode), 0o600)
        self.assertNotIn(b"hidden", recorded.read_bytes())
        said = self.resumed(WANDB_API_KEY="hidden-three", DATABASE="postgres://me:hidden-four@host/db")
        self.assertIn("WANDB_API_KEY: another value", said)
        self.assertIn("DATABASE: another value", said)
        self.assertNotIn("hidden", said)

    def test_a_retry_names_what_changed_and_takes_the_recorded_environment(self):
        self.write("sweep.yaml", "name: en\nrun: bash -c 'echo $TOOL > r; [ -e good ]'\nparams: {n: [1]}\n")
        self.house.run("run", "sweep.yaml", env={"TOOL": "first"})
        (self.dir / "good").touch()
        done = self.house.run("retry", "en-1", env={"TOOL": "second"})
        self.assertIn(b'TOOL: it was "first", now it is "second"', done.err)
        self.assertEqual((self.dir / "r").read_text(), "second\n")
        self.resumed("--all", "--env-of-submission", command="retry", TOOL="third")
        self.assertEqual((self.dir / "r").read_text(), "first\n")

    def test_a_run_of_an_older_berth_has_no_recorded_environment(self):
        self.interrupted("sleep 0.3; echo $TOOL > r$BERTH_PARAM_N", TOOL="first")
        (self.house.state / "runs/en-1/environment").unlink()
        refused = self.house.run("resume", "--env-of-submission", "en-1")
        self.assertNotEqual(refused.code, 0)
        self.assertIn(b"was not recorded", refused.err)
        self.assertNotIn("environment", self.resumed(TOOL="second"))


if __name__ == "__main__":
    unittest.main()
