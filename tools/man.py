#!/usr/bin/python3
"""Makes the man pages: of commands, from what berth itself says of its options (`berth manual`), and of file formats,
from docs/. So they cannot differ from --help and the documents.

    tools/man.py BERTH DIRECTORY    # writes DIRECTORY/man1/*.1 and DIRECTORY/man5/*.5

The date is that of SOURCE_DATE_EPOCH, where that is set."""

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

# Pages of section 5: what each is of, and the chapters of which document it is made of.
FORMATS = {
    "berth-experiment": ("experiments of berth run", "reference/files.md", ["Experiment files"]),
    "berth-flow": ("flows of berth run", "reference/files.md", ["Flow files", "After a failure"]),
    "berth-clusters": ("the machines elsewhere that runs may go to", "reference/files.md", ["Clusters"]),
    "berth-machine": ("soft limits of this machine", "reference/files.md", ["Machine file"]),
    "berth-fleet": ("fleets of berth plan", "reference/fleet.md", None),
}


def escaped(text):
    """Plain text for troff."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")


def prose(text):
    """A paragraph's text, with Markdown's marks within it as fonts."""
    parts = []
    for part in re.split(r"(``[^`]+``|`[^`]+`)", text):
        if part.startswith("`"):
            parts.append("\\fB" + escaped(part.strip("`")) + "\\fR")
            continue
        part = re.sub(r"<a name=[^>]*></a>\s*", "", part)
        part = re.sub(r"\[([^\]]*)\]\((https?://[^)]*)\)", r"\1 <\2>", part)
        part = re.sub(r"\[([^\]]*)\]\(([\w.-]+\.md)?(#[^)]*)?\)", r"\1", part)
        part = escaped(part)
        part = re.sub(r"\*\*([^*]+)\*\*", r"\\fB\1\\fR", part)
        part = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"\\fI\1\\fR", part)
        parts.append(part)
    return "".join(parts)


def bytes_of(text):
    """As mandoc counts them: what is not ASCII is "\\[u2026]" by then."""
    return sum(1 if ord(letter) < 128 else 8 for letter in text)


def lines_of(text):
    """Text in lines that troff takes for text."""
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
    """A Markdown table as a list: the first cell of each row, and what the others say of it."""
    head, body = cells_of(rows[0]), [cells_of(row) for row in rows[2:]]
    text = []
    for first, *rest in body:
        said = [rest[0]] if rest else []
        said += [f"({head[at]}: {cell})" for at, cell in enumerate(rest[1:], 2) if cell and at < len(head)]
        text += [".TP", *lines_of(prose(first) or "\\&"), *(lines_of(prose(" ".join(said))) or ["\\&"])]
    return text


def from_markdown(text, chapters=None):
    """The roff of a document, or of some of its chapters (# or ##)."""
    out, paragraph = [], []
    lines = text.split("\n")
    wanted = chapters is None
    at, first_title = 0, True

    def flush(lead=".PP"):
        if paragraph and (said := lines_of(prose(" ".join(paragraph)))):
            out.extend([lead, *said])
        paragraph.clear()

    while at < len(lines):
        line = lines[at]
        at += 1
        title = re.match(r"(#+) (.*)", line)
        if title and len(title[1]) == 1 and chapters is not None:
            flush()
            wanted = title[2] in chapters
            if wanted and title[2] != chapters[0]:
                out.append(f".SH {quoted(title[2].upper())}")
            continue
        if not wanted:
            if line.startswith("```"):
                at = lines.index("```", at) + 1
            continue
        if title:
            flush()
            if not (chapters is None and first_title):
                out.append(f".{'SH' if chapters is None and len(title[1]) == 2 else 'SS'} "
                           f"{quoted(title[2].upper() if len(title[1]) <= 2 and chapters is None else title[2])}")
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
    # What follows a title is a paragraph by itself.
    return [line for n, line in enumerate(out)
            if line != ".PP" or not (n > 0 and re.match(r"\.S[HS] ", out[n - 1]))]


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
    said = option["help"] or ""
    if any(word not in said for word in option["words"]):
        said += ": " + ", ".join(option["words"]) if said else ", ".join(option["words"])
    return [".TP", tag, *(lines_of(prose(said)) or ["\\&"])]


def footer_lines(footer):
    """Notes as they are, and what is indented as examples."""
    return literal(footer.split("\n")) if footer else []


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
        out += [".SH ENVIRONMENT", *from_markdown((DOCS / "reference/files.md").read_text(encoding="utf-8"), ["Environment"])]
    if footer := footer_lines(command["footer"]):
        out += [".SH NOTES"] + footer[1:]
    out += [".SH EXIT STATUS", *lines_of("0: done. 1: the work failed. 2: wrong usage or input. 3: not possible now, or "
                                         "stopped from elsewhere. 130: interrupted. \"berth run -- COMMAND\" returns the "
                                         "exit code of a command that failed.")]
    out += [".SH SEE ALSO", *see_also(name, everything)]
    return out


def introduction():
    """The first chapter of README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "## Description\n\n" + text.split("\n## ")[0].partition("\n")[2].strip() + "\n"


def see_also(name, everything):
    others = ["berth(1)"] + [f"{page}(5)" for page in FORMATS]
    return lines_of(", ".join("\\fB" + escaped(page[:-3]) + "\\fR" + page[-3:] for page in others
                              if page != name + "(1)" and page != name + "(5)"))


def format_page(name, everything, date):
    summary, document, chapters = FORMATS[name]
    out = heading(name, 5, summary, everything["berth"], date)
    body = from_markdown((DOCS / document).read_text(encoding="utf-8"), chapters)
    return out + [".SH DESCRIPTION", *([line for line in body[:1] if line != ".PP"] + body[1:]), ".SH SEE ALSO",
                  *see_also(name, everything)]


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
