"""Real sshds on loopback for the tests: each a machine of its own as far as Berth can see, with a port, a
home, a ledger and a cache of its own. They and what they start are ended by recorded pid."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from berth_case import Case, processes_with, until

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
SSH = shutil.which("ssh")
ME = pwd.getpwuid(os.getuid()).pw_name


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Tap:
    """A port that leads to another one, and counts what goes there and comes from there, in bytes. Of what goes there
    it holds back all beyond `most`."""

    def __init__(self, port, most=None):
        self.to, self.up, self.down, self.most, self.ends = port, 0, 0, most, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                near.close()
                continue
            self.ends += [near, far]
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for one, other, name in ((near, far, "up"), (far, near, "down")):
                threading.Thread(target=self.carry, args=(one, other, name), daemon=True).start()

    def carry(self, one, other, name):
        try:
            while piece := one.recv(1 << 18):
                while name == "up" and self.most is not None and self.up + len(piece) > self.most:
                    time.sleep(0.01)
                other.sendall(piece)
                setattr(self, name, getattr(self, name) + len(piece))
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        self.cut()
        for end in self.ends:
            end.close()


class SshHost:
    """One sshd. `mark` is in the environment of all that it starts. `login` is the user's login shell there."""

    def __init__(self, bed, name, machine="", noise="", topology=None, login="/bin/sh", home="home"):
        self.name, self.port, self.tap, self.direct = name, free_port(), None, ""
        self.path = bed.path / name
        self.home = self.path / home
        self.home.mkdir(parents=True)
        self.mark = f"BERTH_TEST_HOST={self.path}"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path / "host_key"], check=True)
        (self.path / "machine.yaml").write_text(machine)
        variables = {"HOME": self.home, "BERTH_LEDGER": self.path / "ledger", "BERTH_TEST_HOST": self.path,
                     "BERTH_TEST": bed.mark, "BERTH_MACHINE": self.path / "machine.yaml",
                     "PATH": f"{self.path}/bin:/usr/local/bin:/usr/bin:/bin"}
        if topology:
            variables["BERTH_TOPOLOGY"] = topology
        self.config = self.path / "sshd_config"
        self.config.write_text("\n".join([
            f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {self.path}/host_key",
            f"PidFile {self.path}/sshd.pid", f"AuthorizedKeysFile {bed.path}/client_key.pub {self.path}/others.pub", "StrictModes no",
            "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PrintMotd no",
            "MaxStartups 100", "MaxSessions 100", "LogLevel ERROR",
            "SetEnv " + " ".join(f'"{key}={value}"' for key, value in variables.items()),
            # A login that talks before it does what it is told.
            f"ForceCommand {noise} exec {login} -c \"$SSH_ORIGINAL_COMMAND\"", ""]))
        self.server = None
        self.start()

    def start(self):
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with open(self.path / "sshd.log", "ab") as log:
            self.server = subprocess.Popen([SSHD, "-D", "-e", "-f", self.config], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=log)

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0
        until(answers, f"sshd of {self.name}")

    def reaches(self, *others, accepted=True):
        """Its own user knows those, and has a key that they accept: in its home, where ssh does not look by itself,
        because it asks the password file. `calls` has the words of each ssh."""
        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o700)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh / "id"], check=True)
        (ssh / "config").write_text(f"IdentityFile {ssh}/id\nUserKnownHostsFile {ssh}/known_hosts\n")
        (ssh / "known_hosts").write_text("".join(
            f"[127.0.0.1]:{port} {(other.path / 'host_key.pub').read_text()}" for other in others
            for port in {other.port, int(other.direct.rpartition(":")[2] or other.port)}))
        for other in others if accepted else ():
            with open(other.path / "others.pub", "a") as keys:
                keys.write((ssh / "id.pub").read_text())
        program = self.path / "bin/ssh"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n{ printf '%s ' \"$@\" | tr '\\n' ' '; echo; }"
                           f' >> {self.path}/calls\nexec {SSH} -F {ssh}/config "$@"\n')
        program.chmod(0o755)

    def calls(self):
        file = self.path / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def tapped(self):
        """What the runner says to it and hears of it is counted; the other hosts reach it by its own port."""
        self.tap = Tap(self.port)
        self.direct = f"{ME}@127.0.0.1:{self.port}"
        return self.tap

    def processes(self):
        return processes_with(self.mark)

    def cut(self):
        """Ends the sshd and all connections through it; what it started goes on."""
        self.server.kill()
        self.server.wait()
        for pid in connections(self.port):
            kill(pid)

    def close(self):
        if self.server.poll() is None:
            self.server.kill()
        self.server.wait()
        for pid in connections(self.port) + self.processes():
            kill(pid)
        if self.tap:
            self.tap.close()


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def connections(port):
    """The pids of sshd's children that serve a connection to this port."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[3] == "01":
                inodes.add(f"socket:[{fields[9]}]")
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if "sshd" not in Path(f"/proc/{entry}/comm").read_text():
                continue
            links = {os.readlink(f"/proc/{entry}/fd/{fd}") for fd in os.listdir(f"/proc/{entry}/fd")}
        except OSError:
            continue
        if links & inodes:
            found.append(int(entry))
    return found


class SshBed:
    """Hosts, a client's key, and the options that ssh needs to know them by."""

    def __init__(self, path, mark):
        self.path, self.mark = Path(path), mark
        self.path.mkdir()
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path / "client_key"], check=True)
        self.hosts = []

    def host(self, name, **more):
        self.hosts.append(SshHost(self, name, **more))
        return self.hosts[-1]

    def clusters(self, name="lab", hosts=None, **more):
        """The text of a cluster of these hosts. Their keys are known, as after a first visit."""
        hosts = hosts or self.hosts
        known = self.path / "known_hosts"
        known.write_text("".join(
            f"[127.0.0.1]:{port} {(host.path / 'host_key.pub').read_text()}" for host in self.hosts
            for port in {host.port, host.tap.port if host.tap else host.port}))
        lines = [f"{name}:", "  kind: ssh", f"  options: [-F, /dev/null, -o, UserKnownHostsFile={known}]",
                 "  hosts:"]
        lines += [f"    - {{host: 127.0.0.1, user: {ME}, port: {host.tap.port if host.tap else host.port}, "
                  f"key: {self.path}/client_key, direct: '{host.direct}'}}" if host.direct else
                  f"    - {ME}@127.0.0.1:{host.port} {self.path}/client_key" for host in hosts]
        lines += [f"  {key}: {value}" for key, value in more.items()]
        return "\n".join(lines) + "\n"

    def close(self):
        for host in self.hosts:
            host.close()


class SshCase(Case):
    """Tests with hosts of `self.bed`, in a file of clusters of their own."""

    def setUp(self):
        super().setUp()
        self.bed = SshBed(self.dir / "bed", self.dir)
        self.addCleanup(self.bed.close)
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")

    def host_that_shares_nothing(self, **more):
        """The one host of the cluster `lab`: files travel to it and back."""
        host = self.bed.host("host", machine="cpu: 2\n", **more)
        self.write("clusters.yaml", self.bed.clusters(shared_folders="false"))
        return host
