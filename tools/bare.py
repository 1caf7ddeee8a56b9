#!/usr/bin/python3
"""Tries a fresh clone where nothing is prepared: a bare Debian in a chroot, an ordinary user with sudo.

`bare.py [COMMAND]` runs COMMAND (./dev test) in a clone of the last commit, tells how long it took and which
services it left enabled; 1 if it failed or any is. As root; takes mmdebstrap, git and some 5 GB below /var/tmp."""
import argparse
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vm_image import ROOT, mirror, proxies

INCLUDED = "systemd,sudo,ca-certificates,procps"
# What a kernel gives every machine, and no more of this one: inside `unshare`, so that it goes by itself.
ENTER = """
set -e
mount -t proc proc "$0/proc"
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
exec chroot "$0" /bin/su - u -c "cd berth && $1"
"""


def make(root):
    command = ["mmdebstrap", "--variant=minbase", "--quiet", f"--include={INCLUDED}", *proxies(),
               "bookworm", root, *mirror("bookworm")]
    subprocess.run(command, check=True)
    subprocess.run(["useradd", "--root", root, "--create-home", "--shell", "/bin/bash", "u"], check=True)
    (root / "etc/sudoers.d/u").write_text("u ALL=(ALL) NOPASSWD: ALL\n")
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, root / "home/u/berth"], check=True)
    subprocess.run(["chroot", root, "chown", "-R", "u:u", "/home/u"], check=True)


def enabled(root):
    told = subprocess.run(["systemctl", f"--root={root}", "list-unit-files", "--state=enabled", "--no-legend"],
                          capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in told.splitlines()}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(prog="bare.py", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("command", nargs="?", default="./dev test")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="berth-bare-", dir="/var/tmp"))
    try:
        root.chmod(0o755)
        make(root)
        before = enabled(root)
        began = time.monotonic()
        code = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, root,
                               options.command], stdin=subprocess.DEVNULL, check=False).returncode
        took = time.monotonic() - began
        left = sorted(enabled(root) - before)
        print(f"bare: {options.command}: exit {code} after {took:.0f} s; enabled meanwhile: "
              f"{' '.join(left) or 'nothing'}", file=sys.stderr)
        return 1 if code or left else 0
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
