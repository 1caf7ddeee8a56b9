#!/usr/bin/python3
"""Checks the rules of the project: which layer includes which, how long files and functions are, what the code must not
contain, and which words and how long sentences people get to read (tools/words.txt). Prints one line for each violation;
exit code 1 if there is any.

    tools/tidy.py                          check everything
    tools/tidy.py --words [PATH...]        count the words of tools/words.txt; with paths, list each place in them
    tools/tidy.py --words --lengths        the words of each document, its median and its longest sentence
    tools/tidy.py --words --update         remove files that are clean from tools/words_pending.txt
    tools/tidy.py --words --update --grow  write tools/words_pending.txt again, with files that it did not list
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import words  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The layers, lowest first: a file may include headers of its own layer and of those to its left. `testing` is for tests
# only and may include every layer.
LAYERS = ["base", "resource", "topology", "placement", "fleet", "schedule", "ignore", "os", "fileset", "machine",
           "exec", "store", "cluster", "agent", "remote", "flow", "experiment", "run", "engine", "render", "api", "library", "cli", "testing"]
PURE = {"base", "resource", "topology", "placement", "fleet", "schedule", "ignore"}
# Calls that reach files, processes or clocks: only os/ may contain them.
WORLD = re.compile(r"#include <(unistd|fcntl|sys/(?!types)[a-z]+|signal|csignal|poll|sched|dirent|fstream|filesystem|thread)"
                   r"(\.h)?>|std::chrono::(system|steady)_clock|std::random_device|\bgetenv\(")
WORLD_ALLOWED = {"os"}
# Headers that are slow to compile, and the only files that may include them.
HEAVY = {"CLI/": {"src/berth/cli/options.cc"},
         "spdlog/": {"src/berth/os/log.cc", "src/berth/os/spdlog.cc"},
         "SQLiteCpp/": {"src/berth/store/"},
         "curl/": {"src/berth/remote/cloud/"},
         "pugixml": {"src/berth/remote/cloud/"},
         "nlohmann/json.hpp": None}
MAX_JSON_FILES = 12
MAX_LINES, MAX_FUNCTION_LINES = 500, 70
FORBIDDEN = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|std::format\b|std::print\b|\bco_await\b")


def violations_in_file(path):
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    test = bool(re.search(r"_(test|fuzz|bench)\.cc$", name))
    if len(lines) > MAX_LINES:
        yield f"{name}: {len(lines)} lines, at most {MAX_LINES}"
    for number, line in enumerate(lines, 1):
        if FORBIDDEN.search(line):
            yield f"{name}:{number}: {line.strip()}"
    if name.startswith("src/berth/") and not test:
        yield from violations_in_includes(name, lines)
    if name.startswith("include/"):
        for number, line in enumerate(lines, 1):
            included = re.match(r'#include (?:"(.*)"|<.*/)', line)
            if included and not (included[1] and (ROOT / "include" / included[1]).exists()):
                yield f"{name}:{number}: public headers may include only public headers and the standard library"
    if path.suffix == ".h" and "#pragma once" not in text and "#ifndef BERTH_" not in text:
        yield f"{name}: no #pragma once"
    yield from violations_in_functions(name, lines)


def violations_in_includes(name, lines):
    layer = name.split("/")[2]
    if layer not in LAYERS:
        yield f"{name}: no such layer: {layer}"
        return
    for number, line in enumerate(lines, 1):
        included = re.match(r'#include "berth/(\w+)/', line)
        if included and included[1] in LAYERS and LAYERS.index(included[1]) > LAYERS.index(layer):
            yield f"{name}:{number}: {layer} may not include {included[1]}, which is above it"
        if layer in PURE and WORLD.search(line):
            yield f"{name}:{number}: {layer} is pure: {line.strip()}"
        for heavy, allowed in HEAVY.items():
            if f"#include <{heavy}" in line and allowed is not None and not any(
                    name.startswith(place) for place in allowed):
                yield f"{name}:{number}: only {', '.join(sorted(allowed))} may include {heavy}"


def violations_in_functions(name, lines):
    """Functions that are too long. As clang-format lays them out, a function begins with a line that has a ')' and ends
    in '{', and ends with the first '}' at the same indent."""
    start, indent = None, 0
    for number, line in enumerate(lines, 1):
        stripped = line.lstrip()
        if start is None and re.search(r"\)[^;=]*\{$", line) and not re.match(
                r"(if|for|while|switch|else|do|struct|class|namespace|enum)\b|\}", stripped):
            start = number
            while start > 1 and re.search(r"[^;{}:\s]$", lines[start - 2]) and not re.match(
                    r"\s*(//|#)", lines[start - 2]):
                start -= 1  # the head of the function has several lines
            indent = len(lines[start - 1]) - len(lines[start - 1].lstrip())
        elif start is not None and re.match(r"\s{%d}\}" % indent, line):
            if number - start + 1 > MAX_FUNCTION_LINES:
                yield f"{name}:{start}: a function of {number - start + 1} lines, at most {MAX_FUNCTION_LINES}"
            start = None


def violations_in_types(files):
    """Two types with the same name in the same namespace of a layer. The files of a layer are compiled as one unit, so such a
    program is ill-formed even where the namespaces are anonymous. Types inside classes are indented and not checked."""
    places = {}
    for path in files:
        name = str(path.relative_to(ROOT))
        if not name.startswith("src/berth/"):
            continue
        spaces = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := re.match(r"(?:inline )?namespace ([\w:]*)\s*\{$", line):
                spaces.append(found[1])
            elif spaces and line.startswith("}  // namespace"):
                spaces.pop()
            elif found := re.match(r"(?:struct|class|union|enum(?: class)?) (\w+)(?: [^;]*)?$", line):
                place = (name.split("/")[2], "::".join(filter(None, spaces)), found[1])
                places.setdefault(place, []).append(f"{name}:{number}")
    for (_, space, type_name), found in places.items():
        if len(found) > 1:
            yield f"{found[1]}: another {space}::{type_name} is at {found[0]}"


def violations_in_lists():
    """Sources that no CMakeLists.txt names would be neither compiled nor tested."""
    lists = {path.parent: set(re.findall(r"[\w./-]+\.cc\b", path.read_text(encoding="utf-8")))
             for path in (ROOT / "src/berth").rglob("CMakeLists.txt")}
    named_at_root = set()
    for path in (ROOT / "cmake").glob("*.cmake"):
        named_at_root |= set(re.findall(r"src/berth/[\w./-]+\.cc\b", path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "src/berth").rglob("*.cc")):
        name = str(path.relative_to(ROOT))
        folders = [folder for folder in path.parents if folder in lists]
        if name not in named_at_root and not any(str(path.relative_to(folder)) in lists[folder] for folder in folders):
            yield f"{name}: no CMakeLists.txt names it"


def words_main(arguments):
    check = words.Words(ROOT)
    if "--update" in arguments:
        print(check.update("--grow" in arguments))
    elif "--lengths" in arguments:
        print(check.lengths())
    elif arguments:
        names = [str(pathlib.Path(each).resolve().relative_to(ROOT)) for each in arguments]
        by_file, _ = check.findings(names)
        for each in (each for found in by_file.values() for each in found):
            print(f"{each.file}:{each.line}: {each.word!r} ({each.advice}): {each.text}")
    else:
        print(check.counts())
    return 0


def main():
    if sys.argv[1:2] == ["--words"]:
        return words_main(sys.argv[2:])
    if sys.argv[1:]:
        sys.exit(__doc__)
    files = [path for folder in ("include", "src", "tests", "bench", "examples")
             for path in sorted((ROOT / folder).rglob("*")) if path.suffix in {".h", ".cc", ".c"}]
    violations = [violation for path in files for violation in violations_in_file(path)]
    violations += violations_in_types(files)
    violations += violations_in_lists()
    users = [path for path in files if path.suffix == ".cc" and "_test" not in path.name
             and "#include <nlohmann/json.hpp>" in path.read_text(encoding="utf-8")]
    if len(users) > MAX_JSON_FILES:
        violations.append(f"nlohmann/json.hpp is included by {len(users)} files, at most {MAX_JSON_FILES}")
    violations += words.Words(ROOT).violations()
    print("\n".join(violations) if violations else f"tidy: {len(files)} files, no violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
