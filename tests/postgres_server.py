#!/usr/bin/python3
"""A PostgreSQL server of one's own, in a directory of its own, on loopback and a socket.

    postgres_server.py COMMAND…     # runs it with BERTH_TEST_POSTGRES=<URL of a server's database>

A cluster that the machine has is left alone. The server runs as a user that is not root, which it
demands; it is stopped by its directory, never by name.
"""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def programs():
    """Where the server's programs are: the newest of what Debian has."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return found[-1] if found else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Started when made; close() stops it and removes its directory."""

    def __init__(self, directory=None, settings=(), auth="trust", password=None):
        self.path = Path(tempfile.mkdtemp(prefix="berth-postgres-", dir=directory))
        self.data, self.sockets = self.path / "data", self.path / "s"
        self.sockets.mkdir()
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.as_user = []
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            self.as_user = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
            self.path.chmod(0o755)
            shutil.chown(self.sockets, entry.pw_uid, entry.pw_gid)
            shutil.chown(self.path, entry.pw_uid, entry.pw_gid)
        options = ["--username=ada", f"--auth={auth}", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        if password:
            (self.path / "password").write_text(password)
            options.append(f"--pwfile={self.path}/password")
        self.call("initdb", "--pgdata", self.data, *options)
        lines = ["listen_addresses = '127.0.0.1'", "max_connections = 200",
                 f"unix_socket_directories = '{self.sockets}'", *settings]
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        for left in reversed(range(5)):
            self.port = free_port()
            try:
                self.start()
                break
            except AssertionError:  # somebody else was quicker to take the port
                if not left:
                    raise

    def call(self, program, *arguments, check=True):
        done = subprocess.run([*self.as_user, programs() / program, *map(str, arguments)], cwd="/",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{program}: {done.stdout.decode()}")
        return done

    def start(self):
        # Its output goes to its log: a pipe of ours would stay open as long as it runs.
        self.call("pg_ctl", "start", "--pgdata", self.data, "--log", self.path / "log", "--wait", "--silent",
                  "--options", f"-p {self.port}")

    def stop(self, mode="immediate"):
        self.call("pg_ctl", "stop", "--pgdata", self.data, "--mode", mode, "--wait", "--silent")

    def restart(self, mode="immediate"):
        self.stop(mode)
        self.start()

    def url(self, database="postgres", user="ada"):
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def sql(self, text, database="postgres"):
        """The answer's rows, each a list of texts."""
        done = subprocess.run([programs() / "psql", "--no-psqlrc", "-qAtX", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h",
                               self.sockets, "-p", str(self.port), "-U", "ada", "-d", database, "-c", text],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout.decode())
        return [line.split("\t") for line in done.stdout.decode().splitlines()]

    def hold(self, text, database):
        """Does this in a transaction that stays open until what it returns is called."""
        process = subprocess.Popen([programs() / "psql", "--no-psqlrc", "-qAtX", "-h", self.sockets, "-p",
                                    str(self.port), "-U", "ada", "-d", database, "-c",
                                    f"BEGIN; {text}; SELECT pg_sleep(600)"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == [["0"]]:
            time.sleep(0.01)

        def release():  # the server would not notice that psql was killed
            self.sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
            process.wait()
        return release

    def close(self):
        self.call("pg_ctl", "stop", "--pgdata", self.data, "--mode", "immediate", "--silent", check=False)
        shutil.rmtree(self.path, ignore_errors=True)


def main():
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None
    server = Server(memory, settings=["fsync = off"])  # these tests commit thousands of times
    try:
        return subprocess.run(sys.argv[1:], env={**os.environ, "BERTH_TEST_POSTGRES": server.url()},
                              check=False).returncode
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
