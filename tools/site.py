#!/usr/bin/python3
"""The documents as plain HTML pages that open from disk: search, light and dark, phones, no request to anywhere.

    tools/site.py [--berth build/release/bin/berth] [--out build/site]

Every Markdown page that docs/README.md leads to becomes a page at the same path; other files that pages link to are
copied. The reference of file formats comes from `berth schema`. cmark-gfm turns Markdown into HTML."""

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
HOME = Path("docs/README.md")
FORMATS = ("experiment", "flow", "fleet")
LINK = re.compile(r'(<a (?:[^>]* )?href=")([^"]+)(")')
IMAGE = re.compile(r'<img (?:[^>]* )?src="([^"]+)"')

STYLE = """
:root { --text: #1c2430; --soft: #5a6675; --back: #fff; --box: #f3f5f8; --line: #d8dee6; --mark: #0b5fa5; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe5ec; --soft: #98a4b3; --back: #14181d; --box: #1e242c; --line: #333c47; --mark: #7db8ee; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--back); font: 16px/1.55 system-ui, sans-serif; }
a { color: var(--mark); text-decoration: none; } a:hover, a:focus { text-decoration: underline; }
nav { padding: 1rem 1.2rem; border-bottom: 1px solid var(--line); }
nav b { font-size: 1.1rem; } nav ul { list-style: none; padding: 0; margin: .3rem 0; }
nav h2 { font-size: .8rem; text-transform: uppercase; letter-spacing: .05em; color: var(--soft); margin: 1rem 0 0; }
nav [aria-current] { font-weight: 600; color: var(--text); }
#search { width: 100%; padding: .45rem .6rem; margin: .6rem 0 .2rem; font: inherit; color: inherit; background: var(--box);
  border: 1px solid var(--line); border-radius: 6px; }
#found a { display: block; padding: .25rem 0; } #found small { color: var(--soft); display: block; }
main { padding: 1rem 1.2rem 4rem; max-width: 58rem; min-width: 0; overflow-wrap: break-word; }
h1, h2, h3 { line-height: 1.25; margin: 1.8em 0 .5em; } h1 { margin-top: .4em; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem; overflow-x: auto;
  font-size: .86rem; line-height: 1.45; }
code { font-family: ui-monospace, monospace; font-size: .9em; background: var(--box); border-radius: 3px; padding: 0 .2em; }
pre code { background: none; padding: 0; font-size: inherit; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: 1rem 0; font-size: .93rem; }
th, td { border: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--box); }
svg text { fill: var(--text); } img { max-width: 100%; }
/* On a phone, a picture has its own line; a drawing keeps a size at which its text is readable, and scrolls. */
@media (max-width: 40rem) {
  main p:has(> img) { overflow-x: auto; } main img { width: 100%; display: block; margin: .4rem 0; }
  main img[src$=".svg"] { width: 38rem; max-width: none; } }
@media (min-width: 60rem) {
  body { display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
  nav { border-bottom: 0; border-right: 1px solid var(--line); position: sticky; top: 0; height: 100vh; overflow-y: auto; }
  nav .wide-open > summary { display: none; } main { padding: 1.5rem 3rem 4rem; } }
"""

SCRIPT = """
(function () {
  var field = document.getElementById("search"), found = document.getElementById("found");
  function show() {
    var words = field.value.toLowerCase().split(/\\s+/).filter(Boolean), best = [];
    found.textContent = "";
    if (!words.length) return;
    PAGES.forEach(function (part) {
      var title = (part.page + " " + part.title).toLowerCase(), text = part.text.toLowerCase(), score = 0;
      for (var i = 0; i < words.length; i++) {
        var inTitle = title.indexOf(words[i]) >= 0, at = text.indexOf(words[i]);
        if (!inTitle && at < 0) return;
        score += inTitle ? 10 : 1;
      }
      best.push({ score: score, part: part });
    });
    best.sort(function (a, b) { return b.score - a.score; });
    best.slice(0, 12).forEach(function (hit) {
      var link = document.createElement("a"), where = document.createElement("small");
      var at = Math.max(0, hit.part.text.toLowerCase().indexOf(words[0]) - 40);
      link.href = ROOT + hit.part.href;
      link.textContent = hit.part.page === hit.part.title ? hit.part.title : hit.part.page + ": " + hit.part.title;
      where.textContent = hit.part.text.slice(at, at + 110);
      link.appendChild(where);
      found.appendChild(link);
    });
    if (!best.length) found.textContent = "Nothing has all of these words.";
  }
  field.addEventListener("input", show);
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
  });
})();
"""

# The menu: each section lists the pages of its directories, by title. The pages of FIRST come first, in this order.
SECTIONS = [
    ("Tutorial", ["docs/tutorial"]),
    ("How-to", ["docs/how-to"]),
    ("Moving to Berth", ["docs/how-to/moving"]),
    ("Reference", ["docs/reference", "reference"]),  # the second: pages made from schemas
    ("Explanation", ["docs/explanation"]),
]
FIRST = ["docs/how-to/sweeps.md", "docs/how-to/flows.md", "docs/reference/experiment-files.md", "docs/reference/flow-files.md",
         "docs/explanation/concepts.md"]
CONTRIBUTORS = {"docs/explanation/simulation.md"}  # of the directories above, the pages that are not for users


def slug(title):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def plain(fragment):
    return html.unescape(re.sub(r"<[^>]+>", "", fragment)).strip()


def with_anchors(body):
    used = {}

    def anchored(match):
        name = slug(plain(match[2]))
        used[name] = used.get(name, -1) + 1
        return f'<h{match[1]} id="{name}{f"-{used[name]}" if used[name] else ""}">{match[2]}</h{match[1]}>'
    return re.sub(r"<h([1-6])>(.*?)</h\1>", anchored, body, flags=re.S)


def rendered(text):
    done = subprocess.run(["cmark-gfm", "--unsafe", "--extension", "table"], input=text.encode(), capture_output=True,
                          check=True)
    body = done.stdout.decode()
    return with_anchors(re.sub(r"(<table>.*?</table>)", r'<div class="wide">\1</div>', body, flags=re.S))


def html_path(source):
    return source.with_suffix(".html") if source.suffix == ".md" else source


# ---- The reference of file formats, from their schemas.

def holds(node):
    """What a value may be, in words."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return f"[{name}](#{slug(name)})"
    if "enum" in node:
        return ", ".join(f"`{each}`" for each in node["enum"] if each is not None)
    if "anyOf" in node:
        return ", or ".join(holds(each) for each in node["anyOf"] if each.get("type") != "null")
    types = [each for each in node.get("type", []) if each != "null"] if node.get("type") != "object" else ["object"]
    if not types:
        return "anything" if "type" not in node else "nothing"
    if types == ["array"]:
        return f"list of {holds(node['items'])}"
    if types == ["object"]:
        return f"names and {holds(node['additionalProperties'])}"
    if "pattern" in node:
        return "duration" if "µ" in node["pattern"] else "amount"
    word = {"integer": "whole number", "number": "number", "boolean": "`true` or `false`"}.get(types[0], "text")
    if types[0] not in ("integer", "number") or len(types) > 1:
        return word if len(types) == 1 else "text"
    least, most = node.get("minimum", node.get("exclusiveMinimum")), node.get("maximum", node.get("exclusiveMaximum"))
    above, below = ("above", "below") if "exclusiveMinimum" in node else ("from", "to")
    return word + (f" {above} {least:,}" if least is not None else "") + (
        f" {below} {most:,}" if most is not None and most < 1e12 else "")


def format_page(name, schema):
    lines = [f"# The format of {name} files" if name != "fleet" else "# The format of fleet documents", "",
             f"{schema['description']} Made from the tables that check these files; `berth schema {name}` prints them for "
             f"editors ([{name}.schema.json]({name}.schema.json)).", ""]
    for title, part in [(name, schema), *sorted(schema["$defs"].items())]:
        if title != name:
            lines += [f"## {title}", "", part["description"], ""]
        lines += ["| key | holds | means | without it |", "| --- | --- | --- | --- |"]
        for key, node in part["properties"].items():
            without = "required" if key in part.get("required", []) else node.get("x-without", "")
            lines.append(f"| `{key}` | {holds(node)} | {node['description']} | {without} |".replace("<", "&lt;"))
        others = part.get("additionalProperties")
        lines += ["", "Any other key is an error." if others is False else
                  "Other keys are passed over with a note, and keys are matched in any case." if others is True else
                  f"Any other key: {holds(others)}.", ""]
    return "\n".join(lines)


# ---- The site.

class Site:
    def __init__(self, out):
        self.out = out
        self.virtual = {}  # pages that are no files
        self.bodies = {}   # source -> HTML
        self.titles = {}

    def text(self, source):
        return self.virtual.get(str(source)) or (ROOT / source).read_text(encoding="utf-8")

    def exists(self, source):
        return str(source) in self.virtual or (ROOT / source).exists()

    def target(self, source, link):
        """What a link of a page leads to, as a path from the root; None: elsewhere, or within the page."""
        path = unquote(link.partition("#")[0])
        if not path or re.match(r"\w+:", path):
            return None
        target = Path(os.path.normpath(source.parent / path))
        if (ROOT / target).is_dir():
            target /= "README.md" if (ROOT / target / "README.md").exists() else ""
        return target

    def gather(self):
        waiting = [HOME, Path("README.md"), *map(Path, self.virtual)]
        while waiting:
            source = waiting.pop()
            if source in self.bodies:
                continue
            body = rendered(self.text(source))
            self.bodies[source] = body
            self.titles[source] = plain(re.search(r"<h1[^>]*>(.*?)</h1>", body, re.S)[1])
            for link in [*(found[1] for found in LINK.findall(body)), *IMAGE.findall(body)]:
                target = self.target(source, link)
                if target is None or str(target).startswith("reference/"):
                    continue
                if not self.exists(target):
                    sys.exit(f"{source}: {link} leads nowhere")
                if target.suffix == ".md":
                    waiting.append(target)
                elif (ROOT / target).is_file():
                    (self.out / target).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(ROOT / target, self.out / target)

    def link(self, source, link):
        target = self.target(source, link)
        if target is None:
            return link
        if (ROOT / target).is_dir():  # a folder without a page of its own
            return "#"
        anchor = link.partition("#")[2]
        return os.path.relpath(html_path(target), source.parent) + (f"#{anchor}" if anchor else "")

    def sections(self):
        """The menu: (title, pages). A page that no other page links to is not in it: tests/site_test.py finds such pages."""
        yield "", [HOME]
        for title, directories in SECTIONS:
            pages = [page for page in self.bodies if str(page.parent) in directories and str(page) not in CONTRIBUTORS]
            yield title, sorted(pages, key=lambda page: (FIRST.index(str(page)) if str(page) in FIRST else len(FIRST),
                                                         self.titles[page].lower()))

    def menu(self, source):
        lines = []
        for title, pages in self.sections():
            lines.append(f"<h2>{title}</h2><ul>" if title else "<ul>")
            for page in pages:
                current = ' aria-current="page"' if page == source else ""
                lines.append(f'<li><a href="{os.path.relpath(html_path(page), source.parent)}"{current}>'
                             f"{html.escape(self.titles[page])}</a></li>")
            lines.append("</ul>")
        return "".join(lines)

    def page(self, source):
        top = os.path.relpath(".", source.parent)
        body = LINK.sub(lambda m: m[1] + self.link(source, m[2]) + m[3], self.bodies[source])
        return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(self.titles[source])} · Berth</title><link rel="stylesheet" href="{top}/style.css"></head>
<body><nav><b><a href="{top}/docs/README.html">Berth</a></b>
<input id="search" type="search" placeholder="Search ( / )" aria-label="Search" autocomplete="off">
<div id="found" role="status"></div><details><summary>Pages</summary>{self.menu(source)}</details>
<script>if (matchMedia("(min-width: 60rem)").matches) {{ let d = document.querySelector("nav details"); d.open = true; d.className = "wide-open"; }}</script>
</nav>
<main>{body}</main>
<script>var ROOT = "{top}/";</script><script src="{top}/pages.js"></script><script src="{top}/search.js"></script>
</body></html>
"""

    def index(self):
        """What the search looks through: a part for each heading."""
        for source, body in sorted(self.bodies.items()):
            for part in re.split(r"(?=<h[1-3] id=)", body):
                head = re.match(r'<h[1-3] id="([^"]*)">(.*?)</h', part, re.S)
                if head:
                    text = re.sub(r"\s+", " ", plain(part[head.end():].partition(">")[2]))
                    yield {"page": self.titles[source], "title": plain(head[2]), "text": text,
                           "href": f"{html_path(source)}#{head[1]}"}

    def write(self):
        for source in self.bodies:
            path = self.out / html_path(source)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.page(source), encoding="utf-8")
        (self.out / "style.css").write_text(STYLE, encoding="utf-8")
        (self.out / "search.js").write_text(SCRIPT, encoding="utf-8")
        (self.out / "pages.js").write_text(f"var PAGES = {json.dumps(list(self.index()), ensure_ascii=False)};\n",
                                           encoding="utf-8")
        (self.out / "index.html").write_text(
            '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/README.html">'
            '<title>Berth</title><a href="docs/README.html">Berth\'s documents</a>\n', encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=ROOT / "build/release/bin/berth", type=Path)
    parser.add_argument("--out", default=ROOT / "build/site", type=Path)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.out, ignore_errors=True)
    (arguments.out / "reference").mkdir(parents=True)
    site = Site(arguments.out)
    for name in FORMATS:
        schema = subprocess.run([arguments.berth, "schema", name], capture_output=True, check=True).stdout.decode()
        (arguments.out / f"reference/{name}.schema.json").write_text(schema, encoding="utf-8")
        site.virtual[f"reference/{name}.md"] = format_page(name, json.loads(schema))
    site.gather()
    site.write()
    print(arguments.out / "index.html")


if __name__ == "__main__":
    main()
