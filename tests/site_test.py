#!/usr/bin/python3
"""The site of tools/site.py: every link and anchor leads somewhere, nothing is fetched from anywhere, each page is in the
menu's reach and in the search's index, and the reference has every key of every format."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from berth_case import BERTH

ROOT = Path(__file__).resolve().parent.parent


# A page that has but the search's own elements; prints what is found for the words given.
SEARCH = """
const fs = require("fs"), [pages, search, words] = process.argv.slice(1);
const element = () => ({ children: [], appendChild(c) { this.children.push(c); }, addEventListener(_, f) { this.on = f; } });
const field = Object.assign(element(), { value: words }), found = element();
const document = { getElementById: (id) => (id === "search" ? field : found), createElement: element, addEventListener() {} };
new Function("document", "ROOT", fs.readFileSync(pages) + fs.readFileSync(search))(document, "../");
field.on();
console.log(JSON.stringify(found.children.map((link) => link.href)));
"""


def tracked(*patterns):
    """The files of the repository with these names."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT, capture_output=True, check=False)
    return [ROOT / name for name in listed.stdout.decode().splitlines() if (ROOT / name).is_file()]


def without_code(text):
    return re.sub(r"(`+)(?:(?!\1).)+?\1", "", re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S))


def anchors(text):
    """The anchors that GitHub gives to the headings of a Markdown text, and those that it sets itself."""
    found, used = set(re.findall(r'<a (?:name|id)="([^"]+)"', text)), {}
    for title in re.findall(r"^#{1,6} (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()).replace(" ", "-")
        used[name] = used.get(name, -1) + 1
        found.add(f"{name}-{used[name]}" if used[name] else name)
    return found


class Markdown(unittest.TestCase):
    """The Markdown files themselves, as GitHub shows them, and the documents that sources name."""

    def test_links_and_anchors_exist(self):
        pages = tracked("*.md")
        self.assertGreater(len(pages), 40)
        for page in pages:
            for link in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", without_code(page.read_text())):
                if re.match(r"\w+:", link):
                    continue
                with self.subTest(f"{page.relative_to(ROOT)}: {link}"):
                    file, _, anchor = unquote(link).partition("#")
                    target = page.parent / file if file else page
                    self.assertTrue(target.exists(), "no such file")
                    if anchor and target.suffix == ".md":
                        self.assertIn(anchor, anchors(target.read_text()))

    def test_documents_that_sources_name_exist(self):
        for path in tracked("src", "include", "python", "tools", "cmake", "CMakeLists.txt", "dev", "packaging", "bench"):
            for name in re.findall(r"(?<![\w/-])docs/[\w/-]+\.md\b", path.read_text(errors="replace")):
                with self.subTest(f"{path.relative_to(ROOT)}: {name}"):
                    self.assertTrue((ROOT / name).is_file(), "no such document")

    def test_diagrams_are_drawn_from_the_current_source(self):
        checked = subprocess.run([sys.executable, ROOT / "tools/diagrams.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_a_dead_anchor_is_noticed(self):
        self.assertEqual(anchors("# One two\n## `a` and b\n```\n# no\n```\n# One two\n"), {"one-two", "a-and-b", "one-two-1"})


class Page(HTMLParser):
    """What a page links to, loads, and has as anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.loads += [attrs[key] for key in ("href", "src") if attrs.get(key)]


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="berth-site-")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.out = Path(cls.directory.name) / "site"
        subprocess.run([sys.executable, ROOT / "tools/site.py", "--berth", BERTH, "--out", cls.out], check=True,
                       stdout=subprocess.DEVNULL)
        cls.pages = {path: Page(path.read_text()) for path in cls.out.rglob("*.html")}

    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(self.pages), 25)
        for path, page in self.pages.items():
            for link in page.links:
                if re.match(r"(https?|mailto):", link):
                    continue
                with self.subTest(f"{path.relative_to(self.out)}: {link}"):
                    file, _, anchor = link.partition("#")
                    target = (path.parent / unquote(file)).resolve() if file else path
                    self.assertTrue(target.is_file(), "no such file")
                    if anchor and target in self.pages:
                        self.assertIn(anchor, self.pages[target].anchors)

    def test_nothing_is_fetched_from_elsewhere(self):
        for path, page in self.pages.items():
            for load in page.loads:
                self.assertNotRegex(load, r"^(\w+:)?//")
                self.assertTrue((path.parent / load).resolve().is_file(), f"{path}: {load}")
        for name in ("style.css", "search.js"):
            self.assertNotRegex((self.out / name).read_text(), r"//\w|@import|url\(")

    def test_the_search_knows_every_page(self):
        parts = json.loads((self.out / "pages.js").read_text().removeprefix("var PAGES = ").rstrip().rstrip(";"))
        known = {part["href"].partition("#")[0] for part in parts}
        for path in self.pages:
            if path.name != "index.html":
                self.assertIn(str(path.relative_to(self.out)), known)
        for part in parts:
            path, _, anchor = part["href"].partition("#")
            self.assertIn(anchor, self.pages[self.out / path].anchors)

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_the_search_finds(self):
        def found(words):
            done = subprocess.run(["node", "-e", SEARCH, "--", self.out / "pages.js", self.out / "search.js", words],
                                  capture_output=True, check=True)
            return json.loads(done.stdout)
        self.assertTrue(found("early_stop median")[0].startswith("../"), found("early_stop median"))
        self.assertTrue(any("experiment-files.html" in link for link in found("early_stop median")))
        self.assertTrue(any("faults.html" in link or "contract.html" in link for link in found("kill -9")))
        self.assertEqual(found("no-such-word-anywhere"), [])
        self.assertEqual(found("  "), [])

    def test_every_document_is_in_the_site(self):
        for path in ROOT.glob("docs/**/*.md"):
            self.assertTrue((self.out / path.relative_to(ROOT).with_suffix(".html")).is_file(), f"nothing leads to {path}")

    def test_the_reference_has_every_key(self):
        for name in ("experiment", "flow", "fleet"):
            schema = json.loads((self.out / f"reference/{name}.schema.json").read_text())
            text = (self.out / f"reference/{name}.html").read_text()
            for part in [schema, *schema["$defs"].values()]:
                for key in part["properties"]:
                    self.assertIn(f"<td><code>{key}</code></td>", text)

    def test_what_is_written_by_hand_has_every_key(self):
        shared = ["resources.md", "notifications.md"]
        documents = {"experiment": ["experiment-files.md", *shared], "flow": ["flow-files.md", *shared], "fleet": ["fleet-documents.md"]}
        for name, pages in documents.items():
            schema = json.loads((self.out / f"reference/{name}.schema.json").read_text())
            text = "".join((ROOT / "docs/reference" / page).read_text() for page in pages)
            for title, part in [(name, schema), *schema["$defs"].items()]:
                for key in part["properties"]:
                    with self.subTest(key):
                        self.assertTrue(re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", text),
                                        f"{pages} lack {key} of {title}")


if __name__ == "__main__":
    unittest.main()
