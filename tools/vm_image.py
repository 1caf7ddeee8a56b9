"""The disk that test machines boot from: a plain Debian with systemd and sshd, made once from packages.

Nothing is mounted and no machine is needed: mmdebstrap unpacks the packages, and a hook of it turns the
tree into an ext4 file with `mke2fs -d`. The hook runs where the tree is seen with its true owners, so it is
the same for root and for an ordinary user (whom mmdebstrap gives a user namespace)."""
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Clones can share what takes minutes to make.
PLACE = Path(os.environ.get("BERTH_VM_DIR", ROOT / "build/vm")).resolve()
SUITES = ("bookworm", "trixie")
TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils", "mmdebstrap": "mmdebstrap",
         "mke2fs": "e2fsprogs", "ssh": "openssh-client", "ssh-keygen": "openssh-client"}

PACKAGES = ["systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "openssh-server", "udev", "kmod",
            "initramfs-tools", "zstd", "linux-image-cloud-amd64", "iproute2", "procps", "tmux", "sudo", "python3",
            "ca-certificates"]
CONTAINERS = ["podman", "bubblewrap", "crun", "uidmap", "slirp4netns", "fuse-overlayfs", "nftables", "catatonit"]
DISK_MIB = 3072  # sparse: what is not written takes no room

# These wait for something, look after hardware or run by the calendar: nothing that a test machine needs.
MASKED = ["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
          "e2scrub_reap.service", "fstrim.timer", "man-db.timer", "systemd-tmpfiles-clean.timer",
          "systemd-networkd-wait-online.service", "systemd-pstore.service", "getty@tty1.service",
          "serial-getty@ttyS0.service", "podman.service", "podman.socket", "podman-restart.service",
          "podman-auto-update.service", "podman-auto-update.timer", "podman-clean-transient.service"]

# Runs before the kernel's package does: an initial file system of only what finds the disk is made and
# unpacked in a fraction of the time under emulation.
BEFORE_KERNEL = r"""
mkdir -p "$1/etc/initramfs-tools/conf.d"
printf 'MODULES=list\nCOMPRESS=zstd\nRESUME=none\n' > "$1/etc/initramfs-tools/conf.d/vm.conf"
printf 'virtio_pci\nvirtio_blk\next4\n' > "$1/etc/initramfs-tools/modules"
"""

CUSTOMISE = r"""
set -eu
root=$1 work=$2
chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash u
echo 'u ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/u"
for home in root home/u; do
  install -d -m 700 "$root/$home/.ssh"
  install -m 600 "$work/client_key.pub" "$root/$home/.ssh/authorized_keys"
done
chroot "$root" chown -R u:u /home/u
rm -f "$root"/etc/ssh/ssh_host_*
install -m 600 "$work/host_key" "$root/etc/ssh/ssh_host_ed25519_key"
install -m 644 "$work/host_key.pub" "$root/etc/ssh/ssh_host_ed25519_key.pub"
printf 'UseDNS no\nPrintLastLog no\nPrintMotd no\nHostKey /etc/ssh/ssh_host_ed25519_key\n' \
  > "$root/etc/ssh/sshd_config.d/vm.conf"
# QEMU's own network: the machine is always 10.0.2.15, so nobody has to ask for an address.
printf '[Match]\nName=e*\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\nIPv6AcceptRA=no\nLinkLocalAddressing=no\n' \
  > "$root/etc/systemd/network/vm.network"
chroot "$root" systemctl enable systemd-networkd ssh
for unit in @MASKED@; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done
printf '/dev/vda / ext4 rw,noatime 0 0\n' > "$root/etc/fstab"
printf '127.0.0.1 localhost\n' > "$root/etc/hosts"
: > "$root/etc/machine-id"  # each machine is told its own at boot
cp "$root"/boot/vmlinuz-* "$work/vmlinuz"
cp "$root"/boot/initrd.img-* "$work/initrd"
rm -f "$root"/boot/initrd.img-*
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* "$root"/usr/share/locale/*
# The tree alone: what mmdebstrap has mounted in it (/proc, /sys) is taken away for this one command.
unshare --mount --propagation private sh -eu -c '
  awk -v root="$1/" "index(\$5, root) == 1 {print \$5}" /proc/self/mountinfo | sort -r | xargs -r -n 1 umount -l
  mke2fs -q -t ext4 -L berth -O ^metadata_csum -E lazy_itable_init=1 -d "$1" "$2" @DISK_MIB@M
' - "$root" "$work/disk.ext4"
chmod a+r "$work"/vmlinuz "$work"/initrd "$work"/disk.ext4
"""


class Unavailable(Exception):
    """Test machines cannot be had here; the text says why."""


def lacking():
    """Why no machine can be made here, or an empty text."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    packages = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool, path=path)})
    return f"these packages are missing: {' '.join(packages)}" if packages else ""


def customisation():
    return CUSTOMISE.replace("@MASKED@", " ".join(MASKED)).replace("@DISK_MIB@", str(DISK_MIB))


class Image:
    """A disk, a kernel, and the keys by which one is let in. `containers` adds podman."""

    def __init__(self, suite="bookworm", containers=False):
        if suite not in SUITES:
            raise Unavailable(f"no such suite: {suite}; there are {', '.join(SUITES)}")
        self.suite = suite
        self.packages = PACKAGES + (CONTAINERS if containers else [])
        said = "\n".join([suite, *self.packages, BEFORE_KERNEL, customisation()])
        self.flavour = suite + ("-containers" if containers else "")
        self.path = PLACE / "images" / f"{self.flavour}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"

    disk = property(lambda self: self.path / "disk.ext4")
    kernel = property(lambda self: self.path / "vmlinuz")
    initrd = property(lambda self: self.path / "initrd")
    key = property(lambda self: self.path / "client_key")
    host_key = property(lambda self: self.path / "host_key.pub")

    def ensure(self, say=lambda text: None):
        """Makes the image unless it is there. Two who want it at once make it once."""
        if reason := lacking():
            raise Unavailable(reason)
        PLACE.mkdir(parents=True, exist_ok=True)
        with locked(PLACE / "lock"):
            if not self.path.exists():
                say(f"making the image {self.path.name} from packages (some minutes, once)")
                self._make()
        return self

    def _make(self):
        # In /tmp, because an ordinary user's home may be closed to the namespace that mmdebstrap works in.
        work = Path(tempfile.mkdtemp(prefix="berth-vm-image-"))
        try:
            work.chmod(0o777)
            for name in ("client_key", "host_key"):
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "berth-vm", "-f", work / name],
                               check=True)
                (work / name).chmod(0o644)  # for the namespace; made private again below
            (work / "before_kernel.sh").write_text(BEFORE_KERNEL)
            (work / "customise.sh").write_text(customisation())
            self._bootstrap(work)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for older in self.path.parent.glob(f"{self.flavour}-*"):
                if len(older.name) == len(self.path.name):
                    shutil.rmtree(older)
            part = self.path.with_name("part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            subprocess.run(["cp", "--sparse=always", *(work / name for name in (
                "disk.ext4", "vmlinuz", "initrd", "client_key", "client_key.pub", "host_key.pub")), part], check=True)
            (part / "client_key").chmod(0o600)
            part.rename(self.path)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _bootstrap(self, work):
        command = ["mmdebstrap", "--variant=minbase", "--format=null", "--quiet",
                   f"--mode={'root' if os.getuid() == 0 else 'auto'}", *proxies(),
                   "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
                   f"--include={','.join(self.packages)}",
                   f'--essential-hook=sh "{work}/before_kernel.sh" "$1"',
                   f'--customize-hook=PATH=$PATH:/usr/sbin:/sbin sh "{work}/customise.sh" "$1" "{work}"',
                   self.suite, "/dev/null", *mirror(self.suite)]
        log = PLACE / f"{self.flavour}.image.log"
        with open(log, "wb") as out:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)
        if ended.returncode != 0:
            tail = log.read_text(errors="replace").splitlines()[-8:]
            raise Unavailable(f"mmdebstrap failed, {log} says why:\n  " + "\n  ".join(tail))


def proxies():
    """What this machine's apt is told about the way out, for mmdebstrap's own apt."""
    if not shutil.which("apt-config"):
        return []
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return [f"--aptopt={line.rstrip(';')}" for line in dump.splitlines()
            if line.lower().startswith(("acquire::http::proxy", "acquire::https::proxy")) and '""' not in line]


def mirror(suite):
    """The archive that this machine's apt uses for Debian; nothing, for mmdebstrap's own choice, if none."""
    if not shutil.which("apt-get"):
        return []
    known = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(ORIGIN)",
                            "Created-By: Packages"], capture_output=True, text=True, check=False).stdout
    for line in known.splitlines():
        uri, _, rest = line.partition(" ")
        codename, _, origin = rest.partition(" ")
        if origin == "Debian" and codename in SUITES:
            return [f"deb {uri} {suite} main"]
    return []


@contextmanager
def locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
