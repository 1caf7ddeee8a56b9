#!/usr/bin/python3
"""The house rules that a machine can check: who includes whom, how long files and functions are,
what may not stand in the code. Prints one line a fault; exit 1 when there is any."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The storeys, ground floor first: a file includes its own and those to the left of it.
STOREYS = ["base", "resource", "topology", "placement", "fleet", "schedule", "ignore", "os", "fileset", "machine",
           "exec", "store", "cluster", "agent", "remote", "flow", "experiment", "run", "library", "api", "cli"]
PURE = {"base", "resource", "topology", "placement", "fleet", "schedule", "ignore"}
# What touches the world, and so may stand in os/ alone.
WORLD = re.compile(r"#include <(unistd|fcntl|sys/(?!types)[a-z]+|signal|csignal|poll|sched|dirent|fstream|filesystem|thread)"
                   r"(\.h)?>|std::chrono::(system|steady)_clock|std::random_device|\bgetenv\(")
WORLD_ALLOWED = {"os"}
# Heavy headers, and the only files that may include them.
HEAVY = {"CLI/": {"src/berth/cli/options.cc"},
         "spdlog/": {"src/berth/os/log.cc", "src/berth/os/spdlog.cc"},
         "SQLiteCpp/": {"src/berth/store/"},
         "curl/": {"src/berth/remote/cloud/"},
         "pugixml": {"src/berth/remote/cloud/"},
         "nlohmann/json.hpp": None}
HEAVY_JSON_FILES = 12
MOST_LINES, MOST_FUNCTION_LINES = 500, 70
FORBIDDEN = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|std::format\b|std::print\b|\bco_await\b")


def faults_of_file(path):
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    test = bool(re.search(r"_(test|fuzz|bench)\.cc$", name))
    if len(lines) > MOST_LINES:
        yield f"{name}: {len(lines)} lines, at most {MOST_LINES}"
    for number, line in enumerate(lines, 1):
        if FORBIDDEN.search(line):
            yield f"{name}:{number}: {line.strip()}"
    if name.startswith("src/berth/") and not test:
        yield from faults_of_includes(name, lines)
    if name.startswith("include/"):
        for number, line in enumerate(lines, 1):
            included = re.match(r'#include (?:"(.*)"|<.*/)', line)
            if included and not (included[1] and (ROOT / "include" / included[1]).exists()):
                yield f"{name}:{number}: the public face includes itself and the standard library alone"
    if path.suffix == ".h" and "#pragma once" not in text and "#ifndef BERTH_" not in text:
        yield f"{name}: no #pragma once"
    yield from faults_of_functions(name, lines)


def faults_of_includes(name, lines):
    storey = name.split("/")[2]
    if storey not in STOREYS:
        yield f"{name}: no such storey: {storey}"
        return
    for number, line in enumerate(lines, 1):
        included = re.match(r'#include "berth/(\w+)/', line)
        if included and included[1] in STOREYS and STOREYS.index(included[1]) > STOREYS.index(storey):
            yield f"{name}:{number}: {storey} may not include {included[1]}, which stands above it"
        if storey in PURE and WORLD.search(line):
            yield f"{name}:{number}: {storey} is pure: {line.strip()}"
        for heavy, allowed in HEAVY.items():
            if f"#include <{heavy}" in line and allowed is not None and not any(
                    name.startswith(place) for place in allowed):
                yield f"{name}:{number}: only {', '.join(sorted(allowed))} may include {heavy}"


def faults_of_functions(name, lines):
    """A function, as clang-format lays it out: from a line at its indent that ends in '{' and has a
    ')' to the first '}' at that indent."""
    start, indent = None, 0
    for number, line in enumerate(lines, 1):
        stripped = line.lstrip()
        if start is None and re.search(r"\)[^;=]*\{$", line) and not re.match(
                r"(if|for|while|switch|else|do|struct|class|namespace|enum)\b|\}", stripped):
            start = number
            while start > 1 and re.search(r"[^;{}:\s]$", lines[start - 2]) and not re.match(
                    r"\s*(//|#)", lines[start - 2]):
                start -= 1  # its head takes several lines
            indent = len(lines[start - 1]) - len(lines[start - 1].lstrip())
        elif start is not None and re.match(r"\s{%d}\}" % indent, line):
            if number - start + 1 > MOST_FUNCTION_LINES:
                yield f"{name}:{start}: a function of {number - start + 1} lines, at most {MOST_FUNCTION_LINES}"
            start = None


def faults_of_types(files):
    """Two types of one name in one namespace of a storey: its files are compiled as units, so even in
    anonymous namespaces such a program is ill-formed. Types within classes are indented and do not count."""
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


def main():
    files = [path for folder in ("include", "src", "tests", "bench", "examples")
             for path in sorted((ROOT / folder).rglob("*")) if path.suffix in {".h", ".cc", ".c"}]
    faults = [fault for path in files for fault in faults_of_file(path)]
    faults += faults_of_types(files)
    users = [path for path in files if path.suffix == ".cc" and "_test" not in path.name
             and "#include <nlohmann/json.hpp>" in path.read_text(encoding="utf-8")]
    if len(users) > HEAVY_JSON_FILES:
        faults.append(f"nlohmann/json.hpp is included by {len(users)} files, at most {HEAVY_JSON_FILES}")
    print("\n".join(faults) if faults else f"tidy: {len(files)} files, no faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
