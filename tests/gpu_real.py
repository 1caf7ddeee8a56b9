#!/usr/bin/python3
"""Berth on a real NVIDIA card: a report for people, exit 1 where something is not as expected.

BERTH_BIN names the binary (berth-agent beside it). The tasks use libcuda.so.1 through ctypes: nothing else has to
be installed. Everything happens in a directory of its own; at most about 20 GiB of the card are allocated.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BERTH = os.path.abspath(os.environ.get("BERTH_BIN", HERE.parent / "build/release/bin/berth"))
PATIENCE_S = 120

# holds.py GIB SECONDS: allocates so much on the first card that it sees, says so, and keeps it for a while.
HOLDS = '''#!/usr/bin/env python3
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code != 0:
        sys.exit(f"{name}: CUDA error {code}")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
began = time.time()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(int(float(sys.argv[1]) * 2**30)))
print(f"holds {sys.argv[1]} GiB on {os.environ.get('CUDA_VISIBLE_DEVICES', 'any')} "
      f"after {time.time() - began:.1f} s", flush=True)
with open(os.environ.get("WITNESS", "/dev/null"), "a") as witness:
    witness.write(f"{began} {time.time() + float(sys.argv[2])}\\n")
time.sleep(float(sys.argv[2]))
'''

failures = []


def heading(text):
    print(f"\n=== {text}", flush=True)


def expect(holds, what):
    print(f"{'ok  ' if holds else 'FAIL'} {what}", flush=True)
    if not holds:
        failures.append(what)


def berth(*arguments, show=True, env=None):
    began = time.monotonic()
    finished = subprocess.run([BERTH, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE_S, env={**os.environ, **(env or {})}, check=False)
    if show:
        print(f"$ berth {' '.join(map(str, arguments))}   ({time.monotonic() - began:.1f} s, "
              f"exit {finished.returncode})")
        for text in (finished.stdout, finished.stderr):
            print("".join(f"    {line}\n" for line in text.splitlines()), end="")
    return finished


def berth_json(*arguments):
    return json.loads(berth("--json", *arguments, show=False).stdout)


def nvidia_smi():
    try:
        told = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=60, check=False)
        print(f"nvidia-smi: {told.stdout.strip() or told.stderr.strip() or 'no process'}")
    except FileNotFoundError:
        print("nvidia-smi: none here")


def machine():
    heading("1 the machine")
    print(f"pid namespace: {os.readlink('/proc/self/ns/pid')} (the host's own is pid:[4026531836])")
    for arguments in ("machine",), ("topo",), ("place", 1):
        expect(berth(*arguments).returncode == 0, f"berth {arguments[0]}")
    told = berth_json("machine")
    expect(told["total"].get("gpu", 0) >= 1, "there is a GPU")
    return told["total"].get("gpu", 0)


def side_by_side():
    moments = []
    for line in Path("witness").read_text().splitlines():
        began, ended = map(float, line.split())
        moments += [(began, 1), (ended, -1)]
    now = most = 0
    for _, step in sorted(moments):
        now += step
        most = max(most, now)
    return most


def sweep():
    heading("2 twelve trials of 5 GB share a card")
    Path("sweep.yaml").write_text(
        f"name: sweep\nrun: python3 {Path.cwd()}/holds.py 1 4\n"
        "resources: {cpu: 0.1, mem: 2G, gpu_mem: 5G}\nparams: {i: {min: 1, max: 12, type: int}}\n"
        f"env: {{WITNESS: {Path.cwd()}/witness}}\n")
    finished = berth("run", "sweep.yaml")
    tasks = berth_json("show", "sweep-1")["tasks"]
    states = [task["state"] for task in tasks]
    expect(finished.returncode == 0 and states == ["done"] * 12, f"twelve are done: {states}")
    expect(len({tuple(task["devices"]) for task in tasks}) >= 1 and all(task["devices"] for task in tasks),
           f"each had a card: {sorted({device for task in tasks for device in task['devices']})}")
    most = side_by_side()
    expect(most >= 4, f"several side by side: {most}")
    expect("over its share" not in finished.stderr, "none was told to have more than its share")
    print(berth("logs", "sweep-1/1", show=False).stdout.strip())


def foreign(cards):
    heading("3 a whole card beside a process that is not Berth's")
    holder = subprocess.Popen([sys.executable, "holds.py", "4", "600"], stdout=subprocess.PIPE, text=True)
    try:
        print("the other one:", holder.stdout.readline().strip())
        nvidia_smi()
        told = berth("machine").stdout
        expect(str(holder.pid) in told, f"berth machine names process {holder.pid}")
        waiting = subprocess.Popen([BERTH, "run", "--gpu", str(int(cards)), "--", "echo", "it ran"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, env={**os.environ, "BERTH_HEALTH_EVERY": "1s"})
        time.sleep(8)
        waits = waiting.poll() is None
        expect(waits, f"--gpu {int(cards)} waits while it holds 4 GiB")
        # It stands behind the one that waits, which would be passed for ever otherwise.
        part = berth("run", "--cpu", "0.1", "--gpu-mem", "5G", "--priority", "1", "--", "true")
        expect(part.returncode == 0, "a part of the card fits beside it, for who goes before the one that waits")
    finally:
        holder.kill()
        holder.wait()
    try:
        out = waiting.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        waiting.terminate()
        out = waiting.communicate()[0]
    print("".join(f"    {line}\n" for line in out.splitlines()), end="")
    expect("it ran" in out, "and goes on once that process has ended")


def shares():
    heading("4 a task that has 4 GiB where it asked for 2 GB")
    command = ("--cpu", "0.1", "--gpu-mem", "2G", "--name")
    warned = berth("run", *command, "warned", "--", "python3", "holds.py", "4", "8")
    nvidia_smi()
    advisory = "gpu_mem is advisory only" in warned.stderr
    if advisory:
        print("the driver tells no certain figure a process here: shares are advisory, and nothing is ended")
    expect(advisory or "over its share of GPU memory" in warned.stderr, "it is told at once")
    expect(warned.returncode == 0, "under warn it runs to its end")
    berth("why", "warned-1/1")
    began = time.monotonic()
    berth("run", *command, "killed", "--gpu-mem-over", "kill", "--", "python3", "holds.py", "4", "30")
    took_s = time.monotonic() - began
    why = berth("why", "killed-1/1")
    task = berth_json("show", "killed-1")["tasks"][0]
    if advisory:
        expect(task["state"] == "done", "under kill, advisory: it runs to its end")
    else:
        expect(task["cause"] == "over its share of GPU memory", f"under kill it ends: {task['cause']}")
        expect(took_s < 25, f"long before its time: after {took_s:.1f} s")
        expect(" of 1.9 GiB on " in why.stdout, "berth why tells how much it had")
    fits = berth("run", "--cpu", "0.1", "--gpu-mem", "6G", "--gpu-mem-over", "kill", "--name", "fits", "--",
                 "python3", "holds.py", "4", "6")
    expect(fits.returncode == 0, "with 6 GB it is left alone, context and all")


def main():
    with tempfile.TemporaryDirectory(prefix="berth-gpu-") as directory:
        os.chdir(directory)
        Path("holds.py").write_text(HOLDS)
        os.environ |= {"BERTH_DB": f"{directory}/state", "BERTH_LEDGER": f"{directory}/ledger"}
        for name in ("BERTH_TOPOLOGY", "CUDA_VISIBLE_DEVICES"):
            os.environ.pop(name, None)
        cards = machine()
        if cards >= 1:
            sweep()
            foreign(cards)
            shares()
        os.chdir("/")
    print(f"\n{len(failures)} not as expected" + "".join(f"\n  {what}" for what in failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
