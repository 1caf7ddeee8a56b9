"""The words that Berth does not use (tools/words.txt), and sentences that are too long. tools/tidy.py runs it.

The check reads documents, string literals, labels of the page and, where a row says so, comments. It reports the
file, the line, the word and the advice. Nothing here changes a file but update(), which writes the list of files that
are not clean yet."""
import collections
import functools
import pathlib
import re

MAX_WORDS = 35
SPAN = "\x01"  # replaces a code span: one word, and a sentence may begin with it
ABBREVIATION = re.compile(r"(\b(e\.g|i\.e|etc|vs|cf|approx|fig|incl)|(?-i:\b[A-Z]))\.$", re.I)
DOCUMENTS = ("*.md", "docs/**/*.md", "bench/**/*.md", "examples/**/*.md", "tests/data/*.md", "packaging/**/*.md")
SOURCES = ("src/berth", "include")

Row = collections.namedtuple("Row", "heading pattern advice where")
# A piece of text that a person reads. `kind`: docs, strings, web or comments; `line`: a function from offset to line number.
Piece = collections.namedtuple("Piece", "kind text line")
Finding = collections.namedtuple("Finding", "file line kind heading word advice text")


# --- The lists ---------------------------------------------------------------------------------------------------

def lines_of_list(path):
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip() and not line.startswith("#"):
                yield line.rstrip()


def read_rows(path):
    rows, heading = [], None
    for line in lines_of_list(path):
        if found := re.match(r"\[(.*)\]$", line):
            heading = found[1]
            continue
        found = re.match(r"(\S.*?)\s+=>\s+(.*?)\s+@\s+(\S.*)$", line)
        if not found or not heading:
            raise SystemExit(f"{path}: expected 'PATTERN  =>  ADVICE  @  WHERE' below a [heading], got: {line}")
        pattern = found[1] if found[1].startswith("^") else rf"\b(?:{found[1]})"
        rows.append(Row(heading, re.compile(pattern + r"\b", re.I), found[2], found[3].split()))
    return rows


def read_allowed(path):
    allowed = []
    for line in lines_of_list(path):
        found = re.match(r"([^:\s]+): (.*?)\s+--\s+(\S.*)$", line)
        if not found:
            raise SystemExit(f"{path}: expected 'FILE: TEXT  --  REASON', got: {line}")
        allowed.append((found[1], found[2]))
    return allowed


# --- Documents -----------------------------------------------------------------------------------------------------

def plain_text(line):
    """A line of Markdown without code spans, addresses, anchors and marks."""
    line = re.sub(r"(`+)(?:(?!\1).)*\1", SPAN, line)
    line = re.sub(r"<!--.*?-->", "", line)
    line = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", line)
    line = re.sub(r"<https?://[^>]*>|https?://[^\s)]*", SPAN, line)
    line = re.sub(r"[\w./-]*\w\.(md|h|cc|py|yaml|json|txt)\b", SPAN, line)  # names of files
    line = re.sub(r"<br */?>", ". ", line)
    line = re.sub(r"</?[a-zA-Z][^>]*>", "", line)
    return re.sub(r"\*+|(?<!\w)_+|_+(?!\w)|~~", "", line)


def blocks_of(text):
    """The paragraphs, items, cells and headings of a document: lists of (line number, text)."""
    block, fence, in_list = [], None, False
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(?:[-*] |\d+\. )?\s*(```+|~~~+)", line)
        if fence or mark:
            if fence and line.strip().startswith(fence) and not line.strip().strip("`~"):
                fence = None
            elif not fence:
                fence = mark[1]
            yield block
            block = []
            continue
        stripped = re.sub(r"^\s*(> ?)+", "", line).strip()
        if re.match(r"\s*([-*+]|\d+[.)]) ", line):
            in_list = True
        elif re.match(r"\S", line):
            in_list = False
        if line.startswith("    ") and not in_list and not block:
            continue  # an indented code block
        if stripped.startswith("|"):
            yield block
            block = []
            if not re.fullmatch(r"[|:\s-]+", stripped):
                masked = re.sub(r"(`+)(?:(?!\1).)*\1", SPAN, stripped)
                for cell in re.split(r"(?<!\\)\|", masked):
                    yield [(number, plain_text(cell))]
            continue
        if not stripped or re.match(r"(#+ |[-*+] |\d+[.)] |---|===)", stripped):
            yield block
            block = []
        if stripped:
            block.append((number, re.sub(r"^(#+|[-*+]|\d+[.)]) +", "", stripped)))
            if line.startswith("#"):
                yield block
                block = []
    yield block


@functools.lru_cache(maxsize=None)
def document_pieces(text):
    """The blocks of a document. A code span may cross the end of a line, so marks are removed from the whole block."""
    pieces = []
    for block in blocks_of(text):
        if not block:
            continue
        joined = plain_text("\n".join(line for _, line in block))
        first = block[0][0]
        # A span that crossed a line took the newline along: the line is then a little early, never wrong by a block.
        pieces.append(Piece("docs", joined, lambda at, first=first, joined=joined: first + joined.count("\n", 0, at)))
    return pieces


def sentences_of(text):
    """(offset, sentence) of a block: it ends at '.', '?' or '!' before a capital, a digit, a quote or a code span."""
    start = 0
    for end in re.finditer(r"[.?!][)\"'”’]*(?=\s+[\"'“(]*[A-Z0-9\x01])", text):
        if ABBREVIATION.search(text[start:end.start() + 1].split()[-1] if text[start:end.start()].split() else ""):
            continue
        yield start, text[start:end.end()]
        start = end.end()
    yield start, text[start:]


def words_in(sentence):
    return sum(1 for word in sentence.split() if re.search(r"[\w\x01]", word))


def sentence_lengths(text):
    return [n for piece in document_pieces(text) for _, each in sentences_of(piece.text) if (n := words_in(each)) > 3]


# --- Sources -------------------------------------------------------------------------------------------------------

TOKEN = re.compile(r"""(?P<comment>//[^\n]*|/\*.*?\*/)|R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<string>(?:[^"\\\n]|\\.)*)\""""
                   r"""|'(?:[^'\\\n]|\\.){1,8}'|\b\d[\d'a-fA-FxX.]*|#include[^\n]*""", re.S)
UNESCAPE = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'"}


def read_by_people(literal):
    """Texts and labels. A single word in lower case is a key or a name."""
    return bool(re.search(r"\s", literal.strip()) or re.match(r"[A-Z]", literal)) and bool(re.search(r"[A-Za-z]{2}", literal))


def line_at(text, position, literal):
    first = text.count("\n", 0, position) + 1
    return lambda at: first + (literal.count("\n", 0, at) if "\n" in text[position:position + len(literal)] else 0)


def source_pieces(text, comments):
    """The literals of a C++ file, adjacent ones joined, and its comments."""
    start, end, said = 0, -1, ""

    def literal():
        if said and read_by_people(said):
            yield Piece("strings", said, line_at(text, start, said))

    for token in TOKEN.finditer(text):
        content = token["raw"] if token["raw"] is not None else token["string"]
        if content is None:
            if comments and token["comment"]:
                yield Piece("comments", token["comment"], line_at(text, token.start(), token["comment"]))
            continue
        if token["string"] is not None:
            content = re.sub(r"\\(.)", lambda found: UNESCAPE.get(found[1], " "), content)
        if said and not text[end:token.start()].strip():
            said += content
        else:
            yield from literal()
            start, said = token.start(), content
        end = token.end()
    yield from literal()


PYTHON_TOKEN = re.compile(r'''#[^\n]*|[rRbBfF]{0,2}(?:"""(?P<long>.*?)"""|"(?P<string>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)')''', re.S)


def python_pieces(text):
    for token in PYTHON_TOKEN.finditer(text):
        content = token["long"] or token["string"] or token["single"]
        if content and read_by_people(content):
            yield Piece("strings", content, line_at(text, token.start(), content))


def shell_pieces(text):
    """The usage text and the messages of ./dev."""
    for token in re.finditer(r"<<'EOF'\n(.*?)\nEOF$|\becho \"([^\"\n]*)\"", text, re.S | re.M):
        content = token[1] or token[2]
        if content and read_by_people(content):
            yield Piece("strings", content, line_at(text, token.start(1 if token[1] else 2), content))


WEB_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.S)
WEB_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', re.S)
WEB_TEXT = re.compile(r"(?<=[>}])([^<>{}=;`\"|&\[\]]*[A-Za-z][^<>{}=;`\"|&\[\]]*)(?=[<{])")


def web_pieces(text):
    text = WEB_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for token in WEB_LITERAL.finditer(text):
        content = token[1] if token[1] is not None else re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "X", token[2])
        if content and read_by_people(content):
            yield Piece("web", content, line_at(text, token.start(), content))
    for token in WEB_TEXT.finditer(text):
        if not re.match(r"\s*(else|from|return|export|const|if|for|function|interface|type)\b", token[1]):
            yield Piece("web", token[1], line_at(text, token.start(), token[1]))


# --- The check -----------------------------------------------------------------------------------------------------

class Words:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.tools = self.root / "tools"
        self.rows = read_rows(self.tools / "words.txt")
        self.allowed = read_allowed(self.tools / "words_allowed.txt")
        self.pending = set(lines_of_list(self.tools / "words_pending.txt"))
        self.any = re.compile("|".join(f"(?:{row.pattern.pattern})" for row in self.rows), re.I)
        self.comments = any(where.startswith("comments") for row in self.rows for where in row.where)

    def documents(self):
        return sorted({path for pattern in DOCUMENTS for path in self.root.glob(pattern)})

    def files(self):
        yield from ((path, "docs") for path in self.documents())
        for folder in SOURCES:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in {".h", ".cc", ".inc"} and "testing" not in path.parts and not re.search(
                        r"_(test|fuzz|bench)\.\w+$", path.name):
                    yield path, "source"
        if (self.root / "dev").exists():
            yield self.root / "dev", "shell"
        yield from ((path, "python") for path in sorted((self.root / "python").rglob("*.py")))
        for path in sorted((self.root / "web/src").glob("*.ts*")) + sorted((self.root / "web").glob("*.html")):
            yield path, "web"

    def pieces(self, text, kind):
        if kind == "docs":
            return document_pieces(text)
        if kind == "source":
            return source_pieces(text, self.comments)
        return {"python": python_pieces, "shell": shell_pieces, "web": web_pieces}[kind](text)

    def applies(self, row, kind, name):
        folder = name.split("/")[2] if name.startswith("src/berth/") else name.split("/")[0]
        return kind in row.where or f"{kind}:{folder}" in row.where

    def findings_of(self, path, kind):
        name = str(path.relative_to(self.root))
        for piece in self.pieces(path.read_text(encoding="utf-8"), kind):
            flat = piece.text.replace("\n", " ")  # as long as the text: 'at once' may cross the end of a line
            if self.any.search(flat):
                for row in self.rows:
                    if self.applies(row, piece.kind, name):
                        for found in row.pattern.finditer(flat):
                            around = flat[max(0, found.start() - 60):found.end() + 60]
                            yield Finding(name, piece.line(found.start()), piece.kind, row.heading, found[0], row.advice,
                                          " ".join(around.replace(SPAN, "`…`").split()))
            if piece.kind == "docs":
                for at, sentence in sentences_of(piece.text):
                    if (count := words_in(sentence)) > MAX_WORDS:
                        begin = at + len(sentence) - len(sentence.lstrip())
                        yield Finding(name, piece.line(begin), "docs", "long sentence", f"{count} words in a sentence",
                                      f"at most {MAX_WORDS}", " ".join(sentence.replace(SPAN, "`…`").split())[:120])

    def findings(self, below=None):
        """The findings by file, without the exceptions, of all files or of those in `below`; and the exceptions that
        excused something."""
        by_file, used = {}, set()
        for path, kind in self.files():
            name, found = str(path.relative_to(self.root)), []
            if below and not any(name == each or name.startswith(each + "/") for each in below):
                continue
            for finding in self.findings_of(path, kind):
                excuses = [entry for entry in self.allowed if entry[0] == name and entry[1] in finding.text]
                used.update(excuses)
                if not excuses:
                    found.append(finding)
            by_file[name] = found
        return by_file, used

    def violations(self):
        by_file, used = self.findings()
        for name, found in by_file.items():
            if name in self.pending:
                if not found:
                    yield f"tools/words_pending.txt: {name} is clean: remove its line (tools/tidy.py --words --update)"
                continue
            for each in found:
                yield f"{name}:{each.line}: {each.word!r}: write {each.advice}: {each.text}" if each.heading != "long sentence" \
                    else f"{name}:{each.line}: {each.word}, {each.advice}: {each.text}"
        for name in sorted(self.pending - set(by_file)):
            yield f"tools/words_pending.txt: {name} does not exist: remove its line (tools/tidy.py --words --update)"
        for entry in self.allowed:
            if entry not in used:
                yield f"tools/words_allowed.txt: nothing to allow: {entry[0]}: {entry[1]}"

    def update(self, grow):
        """Removes files that are clean or gone from the pending list; with `grow` adds those that are not clean."""
        by_file, _ = self.findings()
        unclean = {name for name, found in by_file.items() if found}
        kept = sorted(unclean if grow else unclean & self.pending)
        path = self.tools / "words_pending.txt"
        head = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")] if path.exists() else []
        path.write_text("\n".join(head + kept) + "\n", encoding="utf-8")
        return f"{path.relative_to(self.root)}: {len(kept)} files (before: {len(self.pending)})"

    def counts(self):
        """A table: how often each heading of words.txt occurs in documents, literals and the page."""
        kinds = ["docs", "strings", "web", "comments"] if self.comments else ["docs", "strings", "web"]
        counted = collections.Counter()
        by_file, _ = self.findings()
        for found in by_file.values():
            counted.update((each.heading, each.kind) for each in found)
        headings = list(dict.fromkeys(row.heading for row in self.rows)) + ["long sentence"]
        lines = [f"{'':42}" + "".join(f"{kind:>10}" for kind in kinds)]
        for heading in headings:
            lines.append(f"{heading:42}" + "".join(f"{counted[heading, kind]:>10}" for kind in kinds))
        lines.append(f"{'all':42}" + "".join(f"{sum(counted[each, kind] for each in headings):>10}" for kind in kinds))
        lines.append(f"files that are not clean: {sum(map(bool, by_file.values()))}; listed as pending: {len(self.pending)}; "
                     f"exceptions: {len(self.allowed)}")
        return "\n".join(lines)

    def lengths(self):
        """A table of the documents: words, sentences, median and longest sentence."""
        lines = [f"{'':50}{'words':>8}{'sentences':>11}{'median':>8}{'longest':>9}"]
        for path in self.documents():
            text = path.read_text(encoding="utf-8")
            counts = sorted(sentence_lengths(text)) or [0]
            lines.append(f"{str(path.relative_to(self.root)):50}{len(text.split()):>8}{len(counts):>11}"
                         f"{counts[len(counts) // 2]:>8}{counts[-1]:>9}")
        return "\n".join(lines)
