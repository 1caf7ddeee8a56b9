#!/usr/bin/python3
"""Test machines by hand: a stock Debian under QEMU with what was built in it. `./dev vm` is `vm.py up`.

Exit 77 with the reason where QEMU or the packages of an image cannot be had."""
import argparse
import os
import signal
import sys
import time
from pathlib import Path

from vm_image import SUITES, Image, Unavailable
from vm_machine import BUILT, Machine, names

SKIPPED = 77
ACTIONS = {"freeze": "stop all in it, while time goes on", "thaw": "the end of freeze",
           "pause": "stop it with its clocks, as a hypervisor does", "go-on": "the end of pause",
           "cut": "pull the plug (`up NAME --keep` starts it again)", "down": "shut it down and forget its disk"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def up(options):
    began = time.monotonic()
    image = Image(options.suite, containers=options.containers).ensure(say)
    machine = Machine(options.name, image)
    say(f"booting {machine.name} ({options.suite}), its console is {machine.log}")
    machine.boot(detach=options.detach, fresh=not options.keep)
    try:
        if not options.bare:
            machine.copy_in(options.built)
        say(f"{machine.name} is up after {time.monotonic() - began:.0f} s, for root and the ordinary user u:")
        say(f"  tools/vm.py ssh {machine.name} [root|u] [COMMAND]")
        say(f"  ssh -p {machine.port} -i {machine.image.key} -o StrictHostKeyChecking=no u@127.0.0.1")
        if options.detach:
            say(f"  tools/vm.py down {machine.name}")
            return 0
        say("Ctrl-C ends it.")
        while machine.running():
            time.sleep(0.5)
    except KeyboardInterrupt:
        pass
    finally:
        if not options.detach or sys.exc_info()[0]:
            machine.close()
    return 0


def found(name):
    machine = Machine.found(name)
    if not machine:
        raise SystemExit(f"no machine called {name} runs: {' '.join(names()) or 'none does'}")
    return machine


def ssh(options):
    machine = found(options.name)
    command = machine.ssh_command(options.user, *options.command)
    os.execvp(command[0], command)


def act(options):
    machine = found(options.name)
    {"freeze": machine.freeze, "thaw": machine.thaw, "pause": machine.pause, "go-on": machine.go_on,
     "cut": machine.power_cut, "down": lambda: (machine.shutdown(), machine.close())}[options.action]()
    return 0


def show(_):
    for name in names():
        machine = Machine.found(name)
        print(f"{name}  port {machine.port}  pid {machine.pid}  {machine.image.path.name}")
    return 0


def arguments():
    parser = argparse.ArgumentParser(prog="vm.py", description=__doc__.split("\n", maxsplit=1)[0])
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("up", help="boot one, and stay until Ctrl-C")
    one.add_argument("name", nargs="?", default="debian")
    one.add_argument("--suite", choices=SUITES, default="bookworm")
    one.add_argument("--containers", action="store_true", help="an image with podman in it")
    one.add_argument("--detach", action="store_true", help="leave it running")
    one.add_argument("--keep", action="store_true", help="with the disk of its last life")
    one.add_argument("--bare", action="store_true", help="copy nothing in")
    one.add_argument("--built", type=Path, default=BUILT, help="where berth and berth-agent were built")
    one.set_defaults(do=up)
    one = actions.add_parser("ssh", help="go in")
    one.add_argument("name")
    one.add_argument("user", nargs="?", default="u")
    one.add_argument("command", nargs=argparse.REMAINDER)
    one.set_defaults(do=ssh)
    for action, what in ACTIONS.items():
        one = actions.add_parser(action, help=what)
        one.add_argument("name")
        one.set_defaults(do=act)
    actions.add_parser("list", help="those that run").set_defaults(do=show)
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was begun is ended
    options = arguments()
    try:
        return options.do(options)
    except Unavailable as reason:
        say(f"vm: skipped: {reason}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
