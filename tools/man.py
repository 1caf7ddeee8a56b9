#!/usr/bin/python3
"""Writes the man pages: those of commands from the output of `berth manual`, those of file formats from docs/. So they
agree with --help and the documents.

    tools/man.py BERTH DIRECTORY    # writes DIRECTORY/man1/*.1 and DIRECTORY/man5/*.5

The date is SOURCE_DATE_EPOCH if that is set, otherwise today."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
WIDTH = 78

# The pages of section 5: the summary and the documents of each.
FORMATS = {
    "berth-experiment": ("experiment files for berth run", ["reference/experiment-files.md", "reference/resources.md", "reference/notifications.md"]),
    "berth-flow": ("flow files for berth run", ["reference/flow-files.md", "reference/notifications.md"]),
    "berth-clusters": ("remote machines that runs can use", ["reference/clusters.md"]),
    "berth-machine": ("limits for Berth on this machine", ["reference/machine-file.md"]),
    "berth-fleet": ("fleet documents for berth plan", ["reference/fleet-documents.md"]),
}


EXIT_STATUS = {
    "0": "The command succeeded, or the run is done.",
    "1": "The run failed.",
    "2": "The command line, a file or a value is wrong.",
    "3": "The command is not possible now, or the run was stopped by `berth stop` or SIGTERM.",
    "130": "Ctrl-C ended the command or the run.",
    "other": "`berth run -- COMMAND` returns the exit code of a command that failed.",
}


def escaped(text):
    """Text with the special characters of troff escaped."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")


def prose(text):
    """The text of a paragraph, with code, bold and italic text of Markdown in fonts of troff."""
    text = re.sub(r"\[([^\]]*)\]\((https?://[^)]*)\)", r"\1 <\2>", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = []
    for part in re.split(r"(``[^`]+``|`[^`]+`)", text):
        if part.startswith("`"):
            parts.append("\\fB" + escaped(part.strip("`")) + "\\fR")
            continue
        part = re.sub(r"<a name=[^>]*></a>\s*", "", part)
        part = escaped(part)
        part = re.sub(r"\*\*([^*]+)\*\*", r"\\fB\1\\fR", part)
        part = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"\\fI\1\\fR", part)
        parts.append(part)
    return "".join(parts)


def bytes_of(text):
    """The length in bytes as mandoc counts it: it replaces other characters than ASCII by "\\[u2026]"."""
    return sum(1 if ord(letter) < 128 else 8 for letter in text)


def lines_of(text):
    """Text in lines of at most WIDTH bytes, none of which troff reads as a macro."""
    lines = []
    for word in text.split():
        if lines and bytes_of(lines[-1]) + 1 + bytes_of(word) <= WIDTH:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return ["\\&" + line if line[:1] in ".'" else line for line in lines]


def literal(lines):
    return [".PP", ".EX", *["\\&" + line if line[:1] in ".'" else line for line in map(escaped, lines)], ".EE"]


def cells_of(row):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def table(rows):
    """A Markdown table as a list: the first cell of each row, its meaning (or second cell), and the others in parentheses."""
    head, body = cells_of(rows[0]), [cells_of(row) for row in rows[2:]]
    meaning = head.index("meaning") if "meaning" in head else 1
    text = []
    for row in body:
        cells = row[meaning:meaning + 1]
        cells += [f"({head[at]}: {cell})" for at, cell in enumerate(row) if cell and at not in (0, meaning) and at < len(head)]
        text += [".TP", *lines_of(prose(row[0]) or "\\&"), *(lines_of(prose(" ".join(cells))) or ["\\&"])]
    return text


def document(path):
    """A document without the list of its own sections."""
    return re.sub(r"^On this page:.*?\n\n", "", (DOCS / path).read_text(encoding="utf-8"), flags=re.M | re.S)


def joined(paths):
    """Documents as one: the titles of all but the first become sections of it."""
    first, *others = map(document, paths)
    return "\n".join([first, *(re.sub(r"^#(?=#* )", "##", text, flags=re.M) for text in others)])


def from_markdown(text, below_section=False):
    """The roff of a document without its title. Below a section its sections become subsections."""
    out, paragraph = [], []
    lines = text.split("\n")
    at, first_title = 0, True

    def flush(lead=".PP"):
        if paragraph and (text_lines := lines_of(prose(" ".join(paragraph)))):
            out.extend([lead, *text_lines])
        paragraph.clear()

    while at < len(lines):
        line = lines[at]
        at += 1
        title = re.match(r"(#+) (.*)", line)
        if title:
            flush()
            if not first_title:
                section = len(title[1]) <= 2 and not below_section
                out.append(f".SH {quoted(title[2].upper())}" if section else f".SS {quoted(title[2])}")
            first_title = False
        elif line.startswith("```"):
            flush()
            end = next(n for n in range(at, len(lines)) if lines[n].startswith("```"))
            out.extend(literal(lines[at:end]))
            at = end + 1
        elif line.startswith("|"):
            flush()
            end = next((n for n in range(at, len(lines)) if not lines[n].startswith("|")), len(lines))
            out.extend(table(lines[at - 1:end]))
            at = end
        elif item := re.match(r"(?:[-*]|\d+\.) (.*)", line):
            flush()
            text_of_item = [item[1]]
            while at < len(lines) and re.match(r"\s+\S", lines[at]):
                text_of_item.append(lines[at].strip())
                at += 1
            out.extend([".IP \\(bu 2", *lines_of(prose(" ".join(text_of_item)))])
        elif not line.strip():
            flush()
        else:
            paragraph.append(line.strip())
    flush()
    # After a title a paragraph needs no macro.
    return [line for n, line in enumerate(out) if line != ".PP" or (n > 0 and not re.match(r"\.S[HS] ", out[n - 1]))]


def quoted(text):
    return '"' + prose(text).replace("\\fB", "").replace("\\fR", "").replace('"', "\\(dq") + '"'


def heading(name, section, summary, version, date):
    return [f'.TH {quoted(name.upper())} {section} "{date}" "Berth {version}"', ".SH NAME",
            *lines_of(f"{escaped(name)} \\- {prose(summary)}")]


def option_lines(option):
    names = "\\fR, \\fB".join(escaped(name) for name in option["names"].split(","))
    value = "" if option["positional"] else escaped(option["value"])
    tag = f"\\fB{names}\\fR" if not option["positional"] else f"\\fI{names}\\fR"
    tag += (f" \\fI{value}\\fR" if value else "") + escaped(option["optional"]) + (" ..." if option["repeats"] else "")
    description = option["help"] or ""
    if any(word not in description for word in option["words"]):
        description += (": " if description else "") + ", ".join(option["words"])
    return [".TP", tag, *(lines_of(prose(description)) or ["\\&"])]


def footer_lines(footer):
    """The notes of a command, and its examples in a section below them."""
    notes, _, examples = re.sub(r"^Examples?:$", "\0", footer, count=1, flags=re.M).partition("\0")
    sections = [(".SH NOTES", notes.strip("\n")), (".SH EXAMPLES", examples.strip("\n"))]
    return [line for head, text in sections if text for line in (head, *literal(text.split("\n"))[1:])]


def page_of(command):
    """berth-cluster-add"""
    return "-".join(["berth", *command["name"].split()])


def command_page(command, everything, date):
    name = page_of(command)
    out = heading(name, 1, command["summary"].rstrip("."), everything["berth"], date)
    out.append(".SH SYNOPSIS")
    for n, usage in enumerate(command["usage"].split("\n")):
        out += [".br"] * (n > 0) + lines_of("\\fB" + escaped(usage).replace(" ", "\\fR ", 1))
    positionals = [option for option in command["options"] if option["positional"]]
    options = [option for option in command["options"] if not option["positional"]]
    if not command["name"]:
        out += from_markdown("# Berth\n\n" + introduction())
    if positionals:
        out += [".SH ARGUMENTS"] + [line for option in positionals for line in option_lines(option)]
    if options:
        out.append(".SH OPTIONS")
        for group in dict.fromkeys(option["group"] for option in sorted(options, key=lambda each: each["group"] == "")):
            if group:
                out.append(f".SS {quoted(group)}")
            elif any(option["group"] for option in options):
                out.append('.SS "General options"')
            out += [line for option in options if option["group"] == group for line in option_lines(option)]
    if not command["name"]:
        out += [".SH COMMANDS"]
        for each in everything["commands"][1:]:
            out += [".TP", f"\\fB{escaped(page_of(each))}\\fR(1)", *lines_of(prose(each["summary"]))]
        out += [".SH ENVIRONMENT", *from_markdown(document("reference/environment.md"), below_section=True)]
    out += footer_lines(command["footer"])
    out += [".SH EXIT STATUS"] + [line for code, meaning in EXIT_STATUS.items()
                                  for line in (".TP", f"\\fB{code}\\fR", *lines_of(prose(meaning)))]
    out += [".SH SEE ALSO", *see_also(name, everything)]
    return out


def introduction():
    """The text of README before its first section, without tables and pictures."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.split("\n## ")[0].partition("\n")[2].strip().split("\n")
    return "## Description\n\n" + "\n".join(line for line in lines if not re.match(r"[|<]|!\[", line)) + "\n"


def see_also(name, everything):
    others = ["berth(1)"] + [f"{page}(5)" for page in FORMATS]
    return lines_of(", ".join("\\fB" + escaped(page[:-3]) + "\\fR" + page[-3:] for page in others
                              if page != name + "(1)" and page != name + "(5)"))


def format_page(name, everything, date):
    summary, documents = FORMATS[name]
    out = heading(name, 5, summary, everything["berth"], date)
    return out + [".SH DESCRIPTION", *from_markdown(joined(documents)), ".SH SEE ALSO", *see_also(name, everything)]


def make(berth, directory):
    everything = json.loads(subprocess.run([berth, "manual"], check=True, capture_output=True).stdout)
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())))
    pages = {f"man1/{page_of(command)}.1": command_page(command, everything, date)
             for command in everything["commands"]}
    pages |= {f"man5/{name}.5": format_page(name, everything, date) for name in FORMATS}
    for name, lines in pages.items():
        path = Path(directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(pages)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    make(sys.argv[1], sys.argv[2])
