"""What the tests on real machines share. BERTH_BIN says what is copied in; its neighbours go with it.

BERTH_VM=short takes the shortest way through. BERTH_VM_KEEP=1 leaves the machines running for the next time, for
those who work on these tests; `tools/vm.py down NAME` ends them."""
import os
import sys
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS.parent.parent / "tools"), str(TESTS.parent)]

from vm_image import Image, Unavailable  # noqa: E402
from vm_machine import BUILT, Machine  # noqa: E402

SHORT = os.environ.get("BERTH_VM") == "short"
KEEP = os.environ.get("BERTH_VM_KEEP") == "1"
SUITE = os.environ.get("BERTH_VM_SUITE", "bookworm")
BIN = Path(os.environ["BERTH_BIN"]).resolve().parent if "BERTH_BIN" in os.environ else BUILT
SKIPPED = 77  # what ctest takes for skipped


class VmCase(unittest.TestCase):
    """Cases that share machines, which go when all have run."""

    containers = False

    @classmethod
    def machine(cls, name, copied=True, **more):
        """A machine of this name that has booted, with what was built in it."""
        machine = KEEP and Machine.found(name)
        if not machine:
            # The directory of machines may be shared with others who run these tests.
            machine = Machine(name if KEEP else f"{name}-{os.getpid()}", image(cls.containers), **more)
            try:
                machine.boot(detach=KEEP)
            except Unavailable as reason:  # the short form is for wherever it can be had
                raise unittest.SkipTest(str(reason)) if SHORT else reason
            if not KEEP:
                cls.addClassCleanup(machine.close)
        if copied:
            machine.copy_in(BIN)
        return machine

    def ok(self, finished):
        self.assertEqual(finished.code, 0, finished)
        return finished.out


def image(containers=False):
    return Image(SUITE, containers=containers and not SHORT)


def main(containers=False):
    """Runs the module's tests; 77 where no machine can be had."""
    try:
        image(containers).ensure(lambda text: print(text, file=sys.stderr, flush=True))
    except Unavailable as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 0 if result.testsRun else SKIPPED)
