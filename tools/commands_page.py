#!/usr/bin/python3
"""Writes docs/reference/commands.md, the reference of all commands and options, from the output of `berth manual`.

    tools/commands_page.py BERTH         # writes the page
    tools/commands_page.py BERTH -       # prints it

tests/manual_test.py compares the page with the program."""

import json
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/commands.md"
HEAD = """# Commands

Every command of `berth` with its arguments and options. `berth help COMMAND` prints the same on a terminal, and
`man berth-COMMAND` has it where a package is installed. This page is generated from the program.

- All commands take `--help`. Those with `--json` print JSON in a stable format; the others refuse the option.
- `@last` is the latest run, and `@last/17` one of its tasks, wherever a run or a task is expected.
- After `--`, words are passed on unread: `berth run -- ./train.py --lr 0.1`.

[Exit codes](exit-codes.md) and [environment variables](environment.md) have pages of their own.
"""


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def tag(option):
    names = ", ".join(option["names"].split(","))
    value = "" if option["positional"] or not option["value"] else f" {option['value']}"
    return f"`{names}{value}{option['optional']}{'...' if option['repeats'] else ''}`".replace("|", "\\|")


def meaning(option):
    missing = [word for word in option["words"] if word not in option["help"]]
    return cell(option["help"] + (f" ({', '.join(option['words'])})" if missing else ""))


def table(options, head):
    return "\n".join([f"| {head} | meaning |", "| --- | --- |",
                      *(f"| {tag(option)} | {meaning(option)} |" for option in options)]) + "\n"


def section(command, level):
    lines = [f"{level} berth {command['name']}", "", command["summary"] + ".", "", "```", command["usage"], "```", ""]
    if command["aliases"]:
        lines += ["Also: " + ", ".join(f"`berth {alias}`" for alias in command["aliases"]) + ".", ""]
    positionals = [option for option in command["options"] if option["positional"]]
    options = [option for option in command["options"] if not option["positional"] and option["names"] != "-h,--help"]
    if positionals:
        lines += [table(positionals, "argument")]
    groups = dict.fromkeys(option["group"] for option in options)
    for group in sorted(groups, key=lambda each: each == ""):
        title = group or ("General options" if len(groups) > 1 else "Options")
        lines += [table([option for option in options if option["group"] == group], title[0].lower() + title[1:])]
    if command["footer"]:
        lines += ["```", command["footer"], "```", ""]
    return "\n".join(lines)


def page(berth):
    commands = json.loads(subprocess.run([berth, "manual"], check=True, capture_output=True).stdout)["commands"][1:]
    text = HEAD
    for group in dict.fromkeys(command["group"] for command in commands):
        text += f"\n## {group}\n"
        for command in commands:
            if command["group"] == group:
                text += "\n" + section(command, "###" if " " not in command["name"] else "####")
    return text.rstrip("\n") + "\n"


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 3:
        print(page(sys.argv[1]), end="")
    else:
        PAGE.write_text(page(sys.argv[1]), encoding="utf-8")
