#!/usr/bin/python3
"""Hosts reached by ssh whose users have different login shells, umasks and greetings."""

import os
import shutil
import unittest

from ssh_bed import SSH, SSHD, SshCase


@unittest.skipUnless(SSHD and SSH, "openssh-server and openssh-client are needed")
class SshLogin(SshCase):
    def output_of_task_behind(self, shell, noise=""):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        self.host_that_shares_nothing(login=shell, noise=noise)
        return self.berth("run", "--cluster", "lab", "--", "sh", "-c", "echo it works").out.decode()

    def test_tasks_run_where_the_login_shell_is_tcsh(self):
        self.assertEqual(self.output_of_task_behind("/usr/bin/tcsh"), "it works\n")

    def test_tasks_run_where_the_login_shell_is_the_csh_of_bsd(self):
        self.assertEqual(self.output_of_task_behind("/bin/bsd-csh"), "it works\n")

    def test_tasks_run_where_the_login_shell_is_fish(self):
        self.assertEqual(self.output_of_task_behind("/usr/bin/fish"), "it works\n")

    def test_tasks_run_where_the_login_shell_is_zsh(self):
        self.assertEqual(self.output_of_task_behind("/usr/bin/zsh"), "it works\n")

    def test_tasks_run_where_the_login_shell_is_restricted(self):
        self.assertEqual(self.output_of_task_behind("/bin/rbash"), "it works\n")

    def test_tasks_run_where_the_login_shell_prints_a_banner_without_a_newline(self):
        noise = "printf 'Quota: 95 %% used'; echo warning >&2;"
        self.assertEqual(self.output_of_task_behind("/usr/bin/tcsh", noise), "it works\n")

    def test_a_folder_with_quotes_in_its_name_is_used_behind_tcsh(self):
        if not shutil.which("tcsh"):
            self.skipTest("tcsh is not installed")
        self.host_that_shares_nothing(login="/usr/bin/tcsh", home="it's a home!")
        done = self.berth("run", "--cluster", "lab", "--", "sh", "-c", 'basename "$HOME"')
        self.assertEqual(done.out.decode(), "it's a home!\n")

    def umask_of_task(self, umask):
        host = self.host_that_shares_nothing(noise=f"umask {umask};")
        done = self.berth("run", "--cluster", "lab", "--", "sh", "-c", "umask; > f; stat -c %a f; mkdir d; stat -c %a d")
        for private in (".cache/berth", ".local/state/berth/places"):
            self.assertEqual(os.stat(host.home / private).st_mode & 0o777, 0o700, private)
        return done.out.decode().split()

    def test_a_task_has_the_umask_of_its_host(self):
        self.assertEqual(self.umask_of_task("002"), ["0002", "664", "775"])

    def test_a_task_has_an_open_umask_of_its_host(self):
        self.assertEqual(self.umask_of_task("000"), ["0000", "666", "777"])

    def test_a_task_has_a_private_umask_of_its_host(self):
        self.assertEqual(self.umask_of_task("077"), ["0077", "600", "700"])

    def test_a_task_has_the_umask_of_its_host_when_the_agent_is_there_already(self):
        self.umask_of_task("027")
        done = self.berth("run", "--cluster", "lab", "--", "sh", "-c", "umask")
        self.assertEqual(done.out.decode(), "0027\n")


if __name__ == "__main__":
    unittest.main()
