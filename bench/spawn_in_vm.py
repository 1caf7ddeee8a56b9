#!/usr/bin/python3
"""compare_spawn.py in a booted Debian: what a task costs on control groups v2, with limits and without.

The machine is emulated, so that only the ratios mean anything."""
import os
import sys
import tempfile
from pathlib import Path

from compare_spawn import HERE, build_raw_spawn

sys.path.insert(0, str(HERE.parent / "tools"))

from vm_image import Image  # noqa: E402
from vm_machine import Machine  # noqa: E402

THERE = "/usr/local/lib/berth-bench"


def main():
    image = Image().ensure(lambda text: print(text, file=sys.stderr))
    machine = Machine(f"spawn-{os.getpid()}", image)
    machine.boot()
    try:
        machine.copy_in()
        with tempfile.TemporaryDirectory(prefix="berth-bench-") as built:
            machine.put(f"{THERE}/raw_spawn", Path(build_raw_spawn(built, "-static")).read_bytes(), mode=0o755)
        machine.put(f"{THERE}/compare_spawn.py", (HERE / "compare_spawn.py").read_bytes(), mode=0o755)
        command = [f"{THERE}/compare_spawn.py", "--raw", f"{THERE}/raw_spawn", "--berth", "/usr/local/bin/berth",
                   *(sys.argv[1:] or ["--tasks", "300", "--rounds", "3"])]
        ended = machine.ssh("root", " ".join(command), timeout=1800)
        print(ended.out, end="")
        print(ended.err, end="", file=sys.stderr)
        return ended.code
    finally:
        machine.close()


if __name__ == "__main__":
    sys.exit(main())
