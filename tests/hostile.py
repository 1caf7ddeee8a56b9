"""Names that would do harm if a shell ever read them: what a run on a cluster makes of them."""

from berth_case import Case

WORDS = ["$(touch {})", "`touch {}`", "'; touch {}; '", '"; touch {}; "', "&& touch {}", "| tee {}", "a  b\nc", "-rf",
         "$HOME", "\\", "*", "~", "#", "{{n}}", "é\t!"]


def check(case: Case, cluster):
    """A sweep whose parameters, and a flow whose files, are called so, in a folder that is."""
    owned = case.dir / "owned"
    words = [word.format("$BERTH_TEST/owned") for word in WORDS]
    folder = "sweep '$(touch $BERTH_TEST/owned)' \";`touch $BERTH_TEST/owned`"
    quoted = ", ".join(quote(word) for word in words)
    case.berth("run", "--cluster", cluster, case.write(f"{folder}/sweep.yaml", (
        "name: sweep\nrun: [sh, -c, 'printf %s \"$1\" | od -An -v -tx1 | tr -d \" \\n\"; echo', sh, '{word}']\n"
        f"params: {{word: [{quoted}]}}\nsearch: {{method: grid}}\n")))
    told = case.berth("logs", "sweep-1").out.decode()
    for word in words:
        case.assertIn(word.encode().hex(), told)

    for number, word in enumerate(WORDS):
        case.write(f"{folder}/in/{number}{word.format('owned')}", f"{number}\n")
    count = len(list((case.dir / folder / "in").iterdir()))
    case.berth("run", "--cluster", cluster, case.write(f"{folder}/flow.yaml", (
        "name: flow\nsteps:\n  each:\n    foreach: {part: in/*}\n    run: cat {part} > {out.n}\n"
        "    out: {n: \"out/{index} $(touch owned) '`touch owned`;.txt\"}\n"
        "  sum:\n    in: {all: each.n}\n    run: cat {in.all} > {out.total}\n    out: {total: \"total '$HOME'\"}\n")))
    case.assertEqual(sorted((case.dir / folder / "total '$HOME'").read_text().split()),
                     sorted(str(number) for number in range(count)))
    case.assertFalse(owned.exists())
    case.assertFalse(list(case.dir.rglob("owned")))


def quote(word):
    """As YAML has it between double quotes."""
    return '"' + "".join(f"\\u{ord(c):04x}" if not c.isalnum() else c for c in word) + '"'
