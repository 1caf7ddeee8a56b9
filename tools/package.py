#!/usr/bin/python3
"""Makes what Berth is installed from, the same bytes from the same sources: Debian packages, a tarball that needs
nothing installed, an image for containers and a wheel of the Python package.

    tools/package.py [--out DIRECTORY] [deb] [tarball] [image] [wheel]    # default: all, into build/package

Dates in them are that of the last commit, or SOURCE_DATE_EPOCH."""

import argparse
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import wheel

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["deb", "tarball", "image", "wheel"]
# What berth-server loads beside libc; of the C++ runtime those of the compiler.
BUNDLED = re.compile(r"lib(cpp-httplib|ssl|crypto|brotli\w+|z|stdc\+\+|gcc_s)\.so")
STATIC_NEEDS = "libfmt-dev, libspdlog-dev, libsqlite3-dev, libsqlitecpp-dev, libssl-dev, libyaml-dev"  # to link libberth.a
NEWEST_GLIBC = (2, 34)
REVISION = "0berth1"  # less than Debian's own would be
MAINTAINER = f"{os.environ.get('DEBFULLNAME', 'The Berth authors')} <{os.environ.get('DEBEMAIL', 'berth@example.org')}>"


def version():
    return re.search(r"project\(\w+\s+VERSION\s+([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def epoch():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    return int(subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True).stdout)


def run(*argv, log=None, **more):
    """Quiet when all is well, the whole output when not."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)
    if log:
        Path(log).write_text(done.stdout)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, argv))}: exit {done.returncode}")
    return done.stdout


def copy_sources(to):
    """All files that git knows or would know, with the build directory that may be there kept."""
    names = run("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT).split("\0")
    wanted = {name for name in names if name and (ROOT / name).is_file()}
    for old in to.rglob("*"):
        name = str(old.relative_to(to))
        if old.is_file() and not name.startswith("build/") and name not in wanted:
            old.unlink()
    for name in wanted:
        there = to / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if not there.exists() or there.read_bytes() != (ROOT / name).read_bytes():
            shutil.copy2(ROOT / name, there)


def build_environment(source):
    return {**os.environ, "SOURCE_DATE_EPOCH": str(epoch()), "CCACHE_BASEDIR": str(source), "CCACHE_NOHASHDIR": "1",
            "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def make_debian_folder(source):
    shutil.rmtree(source / "debian", ignore_errors=True)
    shutil.copytree(ROOT / "packaging/debian", source / "debian")
    control = (source / "debian/control").read_text()
    library_package, depends = "", ""
    if (source / "cmake/library.cmake").exists():  # libberth, whose SONAME has the major version
        name = f"libberth{version().split('.')[0]}"
        library_package = (source / "debian/control.library").read_text().replace("@LIBRARY@", name)
        depends = f" {name} (= ${{binary:Version}}), {STATIC_NEEDS},"
        (source / f"debian/{name}.install").write_text("usr/lib/*/libberth.so.*\n")
        with open(source / "debian/libberth-dev.install", "a", encoding="utf-8") as install:
            install.write("usr/lib/*/libberth*.a\nusr/lib/*/cmake\nusr/lib/*/pkgconfig\n")
    (source / "debian/control").write_text(control.replace("@LIBRARY_PACKAGE@", library_package)
                                           .replace("@LIBRARY_DEPENDS@", depends)
                                           .replace("@MAINTAINER@", MAINTAINER))
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch()))
    (source / "debian/changelog").write_text(
        f"berth ({version()}-{REVISION}) unstable; urgency=medium\n\n  * What changed stands in /usr/share/doc/berth/changelog.gz.\n\n"
        f" -- {MAINTAINER}  {date}\n")


def make_deb(work, out):
    source = work / f"berth-{version()}"
    copy_sources(source)
    make_debian_folder(source)
    run("dpkg-buildpackage", "-b", "-us", "-uc", "--no-pre-clean", "-d", cwd=source, env=build_environment(source),
        log=work / "deb.log")
    made = []
    for package in sorted(work.glob(f"*_{version()}-{REVISION}_*.deb")):
        made.append(shutil.copy2(package, out))
    return made


def libraries_of(program):
    """The shared libraries that the program is found to load, by their names."""
    return dict(re.findall(r"(\S+) => (/\S+)", run("ldd", program)))


def glibc_of(file):
    """The newest version of glibc that it asks for."""
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", file))
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))


def stage_tarball(work):
    """What the tarball holds, in a directory."""
    source = work / f"berth-{version()}"
    copy_sources(source)
    environment = build_environment(source)
    run("cmake", "--preset", "release", "-B", "build/portable", "-DBERTH_PORTABLE=ON", "-DBERTH_TESTING=OFF",
        "-DBERTH_BENCH=OFF", cwd=source, env=environment)
    run("cmake", "--build", "build/portable", "--target", "berth", "berth-agent", "berth-server", "berth-cloud", "man",
        cwd=source, env=environment, log=work / "portable.log")
    stage = work / f"stage/berth-{version()}-{os.uname().machine}"
    shutil.rmtree(stage.parent, ignore_errors=True)
    built = source / "build/portable"
    for name in ("berth", "berth-agent", "berth-server"):
        place(built / "bin" / name, stage / "bin" / name)
    place(built / "bin/berth-cloud.so", stage / "lib/berth/berth-cloud.so")
    for name, path in libraries_of(built / "bin/berth-server").items():
        if BUNDLED.match(name):
            place(Path(path).resolve(), stage / "lib/berth" / name)
            notice = Path("/usr/share/doc") / owner(path) / "copyright"
            place(notice.resolve(), stage / "share/doc/berth/copyright" / owner(path))
    for page in sorted((built / "man").glob("man?/*")):
        place(page, stage / "share/man" / page.parent.name / page.name)
    completions = ROOT / "src/berth/cli/completion"
    place(completions / "berth.bash", stage / "share/bash-completion/completions/berth")
    place(completions / "berth.zsh", stage / "share/zsh/site-functions/_berth")
    place(completions / "berth.fish", stage / "share/fish/vendor_completions.d/berth.fish")
    for folder, to in (("python", "share/berth/python"), ("docs", "share/doc/berth"), ("examples", "share/berth/examples")):
        for name in run("git", "ls-files", folder, cwd=ROOT).split():
            place(ROOT / name, stage / to / Path(name).relative_to(folder))
    for name in ("README.md", "LICENSE", "CHANGELOG.md"):
        place(ROOT / name, stage / "share/doc/berth" / name)
    for name in ("bin/berth", "bin/berth-agent", "lib/berth/berth-cloud.so"):
        if glibc_of(stage / name) > NEWEST_GLIBC:
            sys.exit(f"{name} asks for glibc {glibc_of(stage / name)}: newer than {NEWEST_GLIBC}")
    return stage


def owner(path):
    """The Debian package that a file is of."""
    for name in (path, os.path.realpath(path)):
        for each in (name, name.replace("/lib/", "/usr/lib/", 1) if name.startswith("/lib/") else name.replace("/usr/lib/", "/lib/", 1)):
            done = subprocess.run(["dpkg-query", "-S", each], capture_output=True, text=True)
            if done.returncode == 0:
                return done.stdout.split(":")[0]
    sys.exit(f"{path}: of no package")


def place(file, to):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
    to.chmod(0o755 if os.access(file, os.X_OK) and not file.name.endswith(".md") else 0o644)


def pack(stage, file):
    """A tar of the directory in which nothing depends on when or where it was made."""
    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch()
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(stage, stage.name, recursive=False, filter=plain)
        for path in sorted(stage.rglob("*")):
            archive.add(path, f"{stage.name}/{path.relative_to(stage)}", recursive=False, filter=plain)
    with open(file, "wb") as out, gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
        packed.write(data.getvalue())
    return file


def make_image(work, out, stage):
    """An OCI archive: Debian's smallest system with the programs of the tarball, which need no package, and ssh."""
    base = work / "base.tar"
    if not base.exists():
        run("mmdebstrap", "--variant=minbase", "--include=ca-certificates,libcurl4,openssh-client,tini",
            "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-include=/usr/share/doc/*/copyright", "--customize-hook=rm -rf $1/var/cache/ldconfig/* $1/var/log/*",
            "bookworm", base, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch())})
    root = work / "image"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(stage / "bin", root / "usr/bin")
    shutil.copytree(stage / "lib/berth", root / "usr/lib/berth")
    archive = out / f"berth-{version()}.oci.tar"
    archive.unlink(missing_ok=True)
    container = run("buildah", "from", "scratch").split()[-1]
    try:
        run("buildah", "add", container, base, "/")
        run("buildah", "add", "--chown", "0:0", container, root, "/")
        run("buildah", "config", "--entrypoint", '["/usr/bin/tini","--","/usr/bin/berth"]', "--env", "BERTH_DB=/var/lib/berth",
            "--volume", "/var/lib/berth", "--label", "org.opencontainers.image.title=berth", "--label",
            f"org.opencontainers.image.version={version()}", "--created-by", "tools/package.py", container)
        run("buildah", "commit", "--disable-compression=false", "--timestamp", str(epoch()), container,
            f"oci-archive:{archive}:berth:{version()}")
    finally:
        run("buildah", "rm", container)
    return archive


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    parser.add_argument("--out", type=Path, default=ROOT / "build/package")
    given = parser.parse_args()
    kinds = given.kinds or KINDS
    out = given.out.resolve()
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    made = []
    if "deb" in kinds:
        made += make_deb(work, out)
    if "tarball" in kinds or "image" in kinds:
        stage = stage_tarball(work)
        if "tarball" in kinds:
            made.append(pack(stage, out / f"{stage.name}.tar.gz"))
        if "image" in kinds:
            made.append(make_image(work, out, stage))
    if "wheel" in kinds:
        made.append(wheel.wheel(out))
    print("\n".join(str(file) for file in made))


if __name__ == "__main__":
    main()
