"""A real Slurm on this machine alone: munged, slurmctld and a slurmd for each of several nodes.

Everything is the user's own: a directory, a munge key and socket, loopback ports, the pids of the
daemons. Nothing of a Slurm that the machine may have is read or touched (SLURM_CONF says which one
is meant), and systemd is not asked. As a program it starts one and prints what a shell needs.
"""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo")
ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
         "PREEMPTED", "TIMEOUT"}

# A node may claim more cores than there are (config_overrides), tasks are not bound, accounting is
# off; what is found dead is found quickly, and a job's end is noticed at once.
CONFIGURATION = """\
ClusterName=bed
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool.%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0,batch_sched_delay=1,sched_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=30
InactiveLimit=0
KillWait=2
MinJobAge=60
TreeWidth=16
GresTypes=gpu
DefMemPerCPU=100
"""


def installed():
    """Whether this machine has the daemons and commands; else a test says that it is passed over."""
    return all(shutil.which(name, path=search_path()) for name in PROGRAMS)


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def free_ports(count):
    """Ports of the loopback that nobody has now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    """`nodes` of so many `cores`, MB of `memory` and `gpus` each, in the partitions of slurm.conf's
    lines `partitions`."""

    def __init__(self, nodes=3, cores=4, memory=2000, gpus=0, partitions=None):
        self.dir = Path(tempfile.mkdtemp(prefix="berth-slurm-"))
        self.dir.chmod(0o755)
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.processes = {}
        self.environment = {**os.environ, "PATH": search_path(), "SLURM_CONF": str(self.dir / "slurm.conf"),
                            "LC_ALL": "C.UTF-8"}
        for name in [name for name in self.environment if name.startswith(("SLURM_JOB", "SBATCH_", "SQUEUE_"))]:
            del self.environment[name]
        self._configure(cores, memory, gpus, partitions or
                        ["PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"])
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise

    def _configure(self, cores, memory, gpus, partitions):
        port, *node_ports = free_ports(1 + len(self.nodes))
        for name in ("state", *(f"spool.{node}" for node in self.nodes)):
            (self.dir / name).mkdir()
        gres = f"Gres=gpu:{gpus} " if gpus else ""
        lines = [CONFIGURATION.format(port=port, user=getpass.getuser(), dir=self.dir)]
        lines += [f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={node_port} CPUs={cores} "
                  f"RealMemory={memory} TmpDisk=0 {gres}State=UNKNOWN\n"
                  for node, node_port in zip(self.nodes, node_ports)]
        (self.dir / "slurm.conf").write_text("".join(lines) + "\n".join(partitions) + "\n")
        for gpu in range(gpus):
            (self.dir / f"gpu{gpu}").touch()
        (self.dir / "gres.conf").write_text(
            "".join(f"NodeName={node} Name=gpu File={self.dir}/gpu[0-{gpus - 1}]\n" for node in self.nodes if gpus))
        (self.dir / "munge.key").write_bytes(os.urandom(128))
        (self.dir / "munge.key").chmod(0o600)

    def _start_all(self):
        self._daemon("munged", "--foreground", "--force", f"--key-file={self.dir}/munge.key",
                     f"--socket={self.dir}/munge.socket", f"--pid-file={self.dir}/munged.pid",
                     f"--log-file={self.dir}/munged.log", f"--seed-file={self.dir}/munged.seed", "--num-threads=2")
        self._wait(lambda: (self.dir / "munge.socket").exists(), "munged's socket")
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self._wait(lambda: set(self.node_states().values()) == {"idle"}, lambda: f"idle nodes: {self.node_states()}")

    def _daemon(self, name, *arguments, called=None):
        log = (self.dir / f"{called or name}.out").open("ab")
        self.processes[called or name] = subprocess.Popen(
            [shutil.which(name, path=search_path()), *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=self.environment, cwd=self.dir, start_new_session=True)
        log.close()

    def _wait(self, condition, what, patience_s=30):
        deadline = time.monotonic() + patience_s
        while not condition():
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise AssertionError(f"{name} ended with {process.returncode}: {self.log(name)[-2000:]}")
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {patience_s} s in vain for {what() if callable(what) else what}")
            time.sleep(0.05)

    def log(self, name):
        return "".join((self.dir / f"{name}.{end}").read_text(errors="replace")
                       for end in ("out", "log") if (self.dir / f"{name}.{end}").exists())

    # Daemons, by the process that was recorded.

    def start_controller(self):
        self._daemon("slurmctld", "-D", "-f", str(self.dir / "slurm.conf"))
        self._wait(lambda: self.command("scontrol", "ping", check=False).stdout.find("UP") >= 0, "slurmctld")

    def start_node(self, node):
        self._daemon("slurmd", "-D", "-N", node, "-f", str(self.dir / "slurm.conf"), called=f"slurmd.{node}")

    def end_daemon(self, name, sent=signal.SIGTERM):
        """`slurmctld`, or `slurmd.n1`."""
        process = self.processes.pop(name)
        process.send_signal(sent)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    # Commands.

    def command(self, *arguments, check=True, timeout=20):
        try:
            done = subprocess.run([str(one) for one in arguments], env=self.environment, cwd=self.dir, text=True,
                                  capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            if check:
                raise
            return subprocess.CompletedProcess(arguments, 124, "", "")
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments}: exit {done.returncode}: {done.stdout} {done.stderr}")
        return done

    def node_states(self):
        lines = self.command("sinfo", "-h", "-N", "-o", "%N %t", check=False).stdout.split("\n")
        return dict(line.split() for line in lines if line)

    def jobs(self):
        """{id: state} of the queue: what is pending, runs or comes to its end."""
        lines = self.command("squeue", "-h", "-o", "%i %T").stdout.split("\n")
        return {number: state for number, state in (line.split() for line in lines if line) if state not in ENDED}

    def mend(self):
        """Nodes that a test has taken down, or that seemed down to a controller that had restarted, take jobs again."""
        for node, state in self.node_states().items():
            if state != "idle":
                self.command("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        return set(self.node_states().values()) == {"idle"}

    def nodes_of(self, job):
        return self.command("squeue", "-h", "-o", "%N", "-j", job).stdout.split()

    def close(self):
        """Ends the jobs, the nodes, the controller, munged, and what is left of the nodes' tasks."""
        if "slurmctld" in self.processes and self.processes["slurmctld"].poll() is None:
            self.command("scancel", "--signal=KILL", "--full", f"--user={getpass.getuser()}", check=False)
            self.command("scancel", f"--user={getpass.getuser()}", check=False)
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and self.command("squeue", "-h", check=False).stdout.strip():
                time.sleep(0.1)
        for name in sorted(self.processes, key=lambda name: (name == "munged", name == "slurmctld")):
            self.end_daemon(name)
        for pid in self.steps():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.dir, ignore_errors=True)

    def steps(self):
        """What slurmd has started of ours: known by the environment that our slurmd gave it."""
        mark = f"SLURM_CONF={self.dir}/slurm.conf".encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                        found.append(int(entry))
                except OSError:
                    pass
        return found


def main():
    """Starts a Slurm, prints the line that a shell evaluates, and ends the Slurm at SIGINT or SIGTERM."""
    ending = {signal.SIGINT, signal.SIGTERM}
    for each in ending:
        signal.signal(each, lambda *_: sys.exit())  # while it starts
    slurm = Slurm(gpus=2 if "--gpus" in sys.argv else 0)
    try:
        # sigwait() takes blocked signals only. The daemons have started: they would inherit the mask.
        signal.pthread_sigmask(signal.SIG_BLOCK, ending)
        print(f"export SLURM_CONF={slurm.dir}/slurm.conf", flush=True)
        signal.sigwait(ending)
    finally:
        slurm.close()


if __name__ == "__main__":
    main()
