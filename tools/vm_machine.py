"""One test machine: a Debian under QEMU, software emulation, reached by ssh on a port of the loopback.

Everything of it lies in build/vm/NAME/ (disk, state, monitor); its console is build/vm/NAME.log. Its process
is ended by the recorded pid, and unless it was detached it ends with the process that started it."""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections import namedtuple
from pathlib import Path

from vm_image import PLACE, ROOT, Image, Unavailable

BUILT = ROOT / "build/release/bin"
PROGRAMS = ("berth", "berth-agent", "berth-server", "berth-cloud.so")
BOOT_S = 300  # emulated on two busy cores it may take a minute
CONSOLE = ("console=ttyS0 quiet loglevel=4 systemd.show_status=false systemd.log_target=null rw root=/dev/vda "
           "rootfstype=ext4 fsck.mode=skip net.ifnames=0 mitigations=off audit=0 selinux=0 apparmor=0 "
           "random.trust_cpu=on nowatchdog")
Finished = namedtuple("Finished", "code out err")


class Machine:
    def __init__(self, name, image=None, cpus=2, memory_mib=2048):
        if not name.replace("-", "").isalnum():
            raise Unavailable(f"a machine's name is letters, digits and dashes: {name!r}")
        self.name, self.image = name, image or Image()
        self.cpus, self.memory_mib = cpus, memory_mib
        self.path, self.log = PLACE / name, PLACE / f"{name}.log"
        self.port = self.pid = self.began = None
        self.child, self.detached = None, False

    @classmethod
    def found(cls, name):
        """The machine of this name that runs, started by whomever; None if none does."""
        try:
            state = json.loads((PLACE / name / "machine.json").read_text())
        except FileNotFoundError:
            return None
        machine = cls(name)
        machine.image.path = Path(state["image"])
        machine.port, machine.pid, machine.began = state["port"], state["pid"], state["began"]
        machine.detached = True
        return machine if machine.running() else None

    # Life and death.

    def boot(self, detach=None, fresh=True):
        """Starts it and waits until root is let in. `fresh=False` goes on with the disk of its last life, and
        at its port. One that is detached does not end with this process."""
        if Machine.found(self.name):
            raise Unavailable(f"a machine called {self.name} runs already")
        if fresh:
            shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True, exist_ok=True)
        if not self._disk.exists():
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", self.image.disk, self._disk],
                           check=True)
        if fresh or not self.port:
            self.port = free_port()
        self.detached = self.detached if detach is None else detach
        self._start()
        try:
            self._wait_for_ssh()
        except BaseException:
            self.power_cut()
            raise
        return self

    def _start(self):
        uid = uuid.uuid4()
        command = ["qemu-system-x86_64", "-name", self.name, "-nodefaults", "-no-user-config", "-display", "none",
                   "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(self.cpus),
                   "-m", f"{self.memory_mib}M", "-kernel", self.image.kernel, "-initrd", self.image.initrd,
                   "-append", f"{CONSOLE} systemd.machine_id={uid.hex} systemd.hostname={self.name}",
                   "-drive", f"file={self._disk},if=virtio,format=qcow2,discard=unmap",
                   "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22",
                   "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
                   "-serial", f"file:{self.log}", "-qmp", "unix:qmp,server=on,wait=off", "-no-reboot"]
        with open(self.path / "qemu.err", "wb") as err:
            self.child = subprocess.Popen(command, cwd=self.path, stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                                          start_new_session=True, preexec_fn=None if self.detached else end_with_parent)
        self.pid, self.began = self.child.pid, start_time(self.child.pid)
        (self.path / "machine.json").write_text(json.dumps(
            {"pid": self.pid, "began": self.began, "port": self.port, "image": str(self.image.path)}))

    def _wait_for_ssh(self):
        deadline = time.monotonic() + BOOT_S
        while time.monotonic() < deadline:
            if not self.running():
                raise Unavailable(f"QEMU ended: {(self.path / 'qemu.err').read_text().strip()[-500:]}\n{self.console()}")
            # Before sshd listens QEMU takes the connection and drops it: a banner is what tells.
            if banner(self.port):
                ready = self.ssh("root", "systemctl is-system-running --wait", timeout=BOOT_S)
                if ready.out.strip() in ("running", "degraded"):
                    return
            time.sleep(0.2)
        raise Unavailable(f"{self.name} lets nobody in after {BOOT_S} s; its console ends:\n{self.console()}")

    def running(self):
        if self.child:
            self.child.poll()  # so that what has ended is no zombie
        return self.pid is not None and self.began is not None and start_time(self.pid) == self.began

    def power_cut(self):
        """The plug is pulled: what the machine had not written to its disk is lost."""
        if self.running():
            os.kill(self.pid, signal.SIGKILL)
        while self.running():
            time.sleep(0.01)

    def shutdown(self, patience_s=120):
        if self.running():
            self.ssh("root", "systemctl poweroff", timeout=60)
        deadline = time.monotonic() + patience_s
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.power_cut()

    def close(self):
        """Ends it however it is, and forgets its disk and what its console said."""
        self.power_cut()
        shutil.rmtree(self.path, ignore_errors=True)
        self.log.unlink(missing_ok=True)

    def freeze(self):
        """Nothing in it moves, while time goes on: when it thaws, its clocks have jumped."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)

    def pause(self):
        """As a hypervisor pauses a guest: its clocks stand still with it."""
        self._monitor("stop")

    def go_on(self):
        self._monitor("cont")

    # Going in.

    def ssh_options(self):
        """What ssh needs to know, as its arguments; the host's key is known, as after a first visit."""
        known = self.path / "known_hosts"
        known.write_text(f"[127.0.0.1]:{self.port} {self.image.host_key.read_text()}")
        return ["-F", "/dev/null", "-i", str(self.image.key), "-o", f"UserKnownHostsFile={known}",
                "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=60"]

    def ssh_command(self, user, *command):
        return ["ssh", *self.ssh_options(), "-o", "BatchMode=yes", "-p", str(self.port), f"{user}@127.0.0.1", *command]

    def ssh(self, user, command, timeout=120, stdin=b""):
        """Runs the text `command` in the user's shell there. 255 with `timed out` when it takes too long."""
        try:
            ended = subprocess.run(self.ssh_command(user, command), input=stdin, capture_output=True, timeout=timeout,
                                   check=False)
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"").decode(errors="replace"), (late.stderr or b"").decode(errors="replace")
            return Finished(255, said[0], f"timed out after {timeout} s\n{said[1]}")
        return Finished(ended.returncode, ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace"))

    def popen(self, user, command):
        """The same, begun and not waited for."""
        return subprocess.Popen(self.ssh_command(user, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def put(self, path, content, mode=0o644):
        """Writes one file there, as root."""
        data = content if isinstance(content, bytes) else content.encode()
        done = self.ssh("root", f"install -D -m {mode:o} /dev/stdin '{path}'", stdin=data)
        if done.code != 0:
            raise Unavailable(f"{self.name}: {path} could not be written: {done.err}")

    def copy_in(self, built=BUILT):
        """Puts what was built into /usr/local there, with those of its libraries that the machine lacks."""
        there = self.ssh("root", "ldconfig -p").out.split()
        with tempfile.TemporaryDirectory(prefix="berth-vm-") as stage:
            programs, libraries = Path(stage, "bin"), Path(stage, "lib")
            programs.mkdir()
            libraries.mkdir()
            for name in PROGRAMS:
                if (program := Path(built, name)).exists():
                    # What a debugger wants is most of a program, and all of it goes through an emulated ssh.
                    subprocess.run(["strip", "-o", programs / name, program], check=True)
                    for library in libraries_of(program):
                        if library.name not in there:
                            shutil.copy(library, libraries)
            if not (programs / "berth").exists():
                raise Unavailable(f"there is no {built}/berth: ./dev build makes it")
            self.unpack(stage, "/usr/local")

    def unpack(self, folder, where):
        """Puts the files that are in the folder into a directory there, as root's."""
        # No directories: while tar fills one it keeps others out, were it the root of all.
        files = sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*")
                       if path.is_symlink() or not path.is_dir())
        packed = subprocess.run(["tar", "-cf", "-", "-C", folder, "-T", "-"], input="\n".join(files).encode(),
                                stdout=subprocess.PIPE, check=True).stdout
        done = self.ssh("root", f"tar -xf - -C {where} --no-same-owner && ldconfig && sync",
                        timeout=300, stdin=packed)
        if done.code != 0:
            raise Unavailable(f"{self.name}: {folder} could not be copied in: {done.err}")

    def console(self, lines=40):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return "(it said nothing)"

    # Behind the scenes.

    @property
    def _disk(self):
        return self.path / "disk.qcow2"

    def _monitor(self, command):
        # A socket's address holds some hundred bytes, and paths may be longer: so by way of the directory.
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as monitor:
                monitor.settimeout(30)
                monitor.connect(f"/proc/self/fd/{directory}/qmp")
                lines = monitor.makefile("r")
                lines.readline()
                for name in ("qmp_capabilities", command):
                    monitor.sendall(json.dumps({"execute": name}).encode() + b"\n")
                    while "return" not in (answer := json.loads(lines.readline())):
                        if "error" in answer:
                            raise Unavailable(f"QEMU refuses {name}: {answer['error']}")
        finally:
            os.close(directory)


def libraries_of(program):
    """The shared libraries a program is linked with, but for those of the C and C++ compilers."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = [Path(line.split("=>")[1].split()[0]) for line in told.splitlines() if "=> /" in line]
    return [path for path in paths if not path.name.startswith(("libc.so", "libm.so", "libgcc_s", "libstdc++"))]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def banner(port):
    """Whether an sshd speaks there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as probe:
            return probe.recv(4) == b"SSH-"
    except OSError:
        return False


def start_time(pid):
    """When the process began, in the kernel's ticks; None when it is gone. A zombie is gone once its other
    threads are: until then it holds its files, such as the lock on a disk."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        gone = fields[0] in "ZX" and len(os.listdir(f"/proc/{pid}/task")) <= 1
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if gone else int(fields[19])


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def names():
    """The machines that run."""
    return sorted(path.parent.name for path in PLACE.glob("*/machine.json") if Machine.found(path.parent.name))
