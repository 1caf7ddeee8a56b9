#!/usr/bin/python3
"""The check of words and of long sentences, tools/words.py: what it reports, what it leaves alone, its two lists."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import words  # noqa: E402

LONG = "one " * 36


class WordsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="berth-words-")
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        self.write("tools/words.txt", (ROOT / "tools/words.txt").read_text())

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def violations(self):
        return list(words.Words(self.root).violations())

    def words_of(self, name, text):
        self.write(name, text)
        by_file, _ = words.Words(self.root).findings()
        return [(each.line, each.word) for each in by_file[name]]

    def test_a_document_gives_file_line_word_and_advice(self):
        self.write("docs/a.md", "# Title\n\nFirst line,\nwhoever reads it.\n")
        violation, = self.violations()
        self.assertRegex(violation, r"^docs/a\.md:4: 'whoever': write the caller, any user.*: First line, whoever reads it\.$")

    def test_code_and_addresses_are_not_read(self):
        self.assertEqual([], self.words_of("README.md", "Run `berth tell whoever` ([a page](whoever.md)).\n\n```\nwhoever\n```\n"
                                                        "<a name=\"whoever\"></a>\n\n- item\n\n  ```console\n  whoever\n  ```\n\nText:\n\n    whoever  # code\n"))

    def test_indented_text_of_an_item_is_read(self):
        self.assertEqual([(3, "whoever")], self.words_of("README.md", "- item\n\n    whoever reads it\n"))

    def test_text_after_a_code_block_is_read(self):
        self.assertEqual([(5, "beside")], self.words_of("README.md", "```\nx\n```\n\nIt is beside it.\n"))

    def test_terms_of_the_field_stay(self):
        self.assertEqual([], self.words_of("README.md", "The ask-and-tell interface. Ask and\ntell. There are no runs, at least now. Figure 1. "
                                                        "A planted fault. It holds the lock, behind a proxy. As well. "
                                                        "The condition does not hold. If there are none, it must hold. A tell() returns. Least squares, held out, least-loaded.\n"))

    def test_each_kind_of_place_is_known_by_its_words(self):
        for said, word in {"The machine is no host.": "is no", "The file is there.": "there", "It is held.": "held",
                           "Three at\nonce.": "at once", "A file of its own.": "of its own", "What came of it.": "came of",
                           "The least cost.": "least", "X, else Y.": "else"}.items():
            with self.subTest(said):
                self.assertEqual([(1, word)], self.words_of("docs/b.md", said + "\n"))

    def test_long_sentences(self):
        self.assertEqual([(1, "36 words in a sentence")], self.words_of("docs/a.md", LONG.strip() + ".\n"))
        for name, text in {"two sentences": "One " + "one " * 20 + "end. Then " + "one " * 20,
                           "a code span begins the second": "one " * 20 + "end. `x` is " + "one " * 20,
                           "cells": f"| a | b |\n| --- | --- |\n| {'one ' * 20} | {'one ' * 20} |",
                           "items": f"- {'one ' * 20}\n- {'one ' * 20}", "a code span is a word": "`" + LONG + "`",
                           "addresses": "[a](" + "b/" * 50 + ") " + "one " * 30,
                           "units": "one " * 20 + "10 s. Then " + "one " * 20,
                           "headings": f"# {'one ' * 20}\n{'one ' * 20}"}.items():
            with self.subTest(name):
                self.assertEqual([], self.words_of("docs/a.md", text + "\n"))

    def test_an_abbreviation_does_not_end_a_sentence(self):
        for abbreviation in ("e.g.", "i.e.", "etc.", "vs.", "J."):
            with self.subTest(abbreviation):
                self.assertEqual(1, len(self.words_of("docs/a.md", "one " * 18 + abbreviation + " Two " + "one " * 18 + "\n")))

    def test_literals_of_sources(self):
        code = ('// whoever\n#include "beside/x.h"\nint beside = 0;\nauto a = "held";\nauto b = "Held";\nauto c = "wanted a "\n'
                '    "number, " /* no */ ;\nauto d = R"(one\ntwo beside)";\nauto e = \'"\'; auto f = "a \\"told\\" b";\n')
        self.assertEqual([(5, "Held"), (6, "wanted"), (9, "beside"), (10, "told")], self.words_of("src/berth/os/a.cc", code))

    def test_tests_are_not_read(self):
        self.write("src/berth/os/a_test.cc", 'auto a = "wanted a number";\n')
        self.assertEqual([], self.violations())

    def test_a_row_can_be_switched_on_for_one_layer(self):
        self.assertEqual([(1, "whether")], self.words_of("src/berth/cli/a.cc", 'auto a = "whether it does";\n'))
        self.assertEqual([], self.words_of("src/berth/os/a.cc", 'auto a = "whether it does";\n'))

    def test_comments_are_read_where_they_are_switched_on(self):
        code = "/* two\n lines, whoever */\nint a;  // beside\n"
        self.assertEqual([], self.words_of("src/berth/os/a.cc", code))
        self.write("tools/words.txt", "[a]\nwhoever  =>  the caller  @  docs comments:os\nbeside  =>  next to  @  comments\n")
        self.assertEqual([(2, "whoever"), (3, "beside")], self.words_of("src/berth/os/a.cc", code))
        self.assertEqual([(3, "beside")], self.words_of("src/berth/run/a.cc", code))

    def test_labels_of_the_page(self):
        page = ('// whoever\nconst held = 1; /* beside */\nreturn <h2 class="held">What leads there</h2>;\n<p>{held} wanted by {x}</p>;\n'
                'note(`${held} at once`);\n')
        self.assertEqual([(3, "there"), (4, "wanted"), (5, "at once")], sorted(self.words_of("web/src/a.tsx", page)))

    def test_python(self):
        self.assertEqual([(1, "whoever"), (3, "wanted")], self.words_of("python/berth/a.py", '"""For whoever."""\n# beside\nraise E(f"wanted a {b}")\n'))

    def test_the_usage_text_of_dev(self):
        script = "# beside\nhelp() {\n  cat <<'EOF'\n./dev a   what stands in it\nEOF\n}\necho \"two at once\" >&2\nheld=1\n"
        self.assertEqual([(4, "stands"), (7, "at once")], self.words_of("dev", script))

    def test_an_exception_excuses_one_place_and_has_a_reason(self):
        self.write("docs/a.md", "The house style.\n\nThe house.\n")
        self.write("tools/words_allowed.txt", "docs/a.md: house style  --  the field's term\n")
        violation, = self.violations()
        self.assertIn("docs/a.md:3", violation)
        self.write("tools/words_allowed.txt", "docs/a.md: house style  --\n")
        with self.assertRaises(SystemExit):
            self.violations()

    def test_an_exception_that_excuses_nothing_is_reported(self):
        self.write("docs/a.md", "Nothing.\n")
        self.write("tools/words_allowed.txt", "docs/a.md: house  --  the field's term\n")
        self.assertEqual(["tools/words_allowed.txt: nothing to allow: docs/a.md: house"], self.violations())

    def test_the_pending_list_only_shrinks(self):
        self.write("docs/a.md", "whoever\n")
        self.write("docs/b.md", "the caller\n")
        self.write("docs/new.md", "whoever\n")
        self.write("tools/words_pending.txt", "# Comment\ndocs/a.md\ndocs/b.md\ndocs/gone.md\n")
        found = "\n".join(self.violations())
        self.assertIn("docs/b.md is clean", found)
        self.assertIn("docs/gone.md does not exist", found)
        self.assertIn("docs/new.md:1", found)
        self.assertNotIn("docs/a.md", found)
        words.Words(self.root).update(grow=False)
        self.assertEqual("# Comment\ndocs/a.md\n", (self.root / "tools/words_pending.txt").read_text())
        words.Words(self.root).update(grow=True)
        self.assertEqual("# Comment\ndocs/a.md\ndocs/new.md\n", (self.root / "tools/words_pending.txt").read_text())
        self.assertEqual([], self.violations())

    def test_a_row_that_cannot_be_read_is_refused(self):
        self.write("tools/words.txt", "[a]\nwhoever = the caller\n")
        with self.assertRaises(SystemExit):
            self.violations()

    def test_the_counts(self):
        found = subprocess.run([sys.executable, ROOT / "tools/tidy.py", "--words"], check=True, capture_output=True, text=True).stdout
        for heading in ("docs", "strings", "web", "[long sentence]"[1:-1], "wanted X, found Y"):
            self.assertIn(heading, found)


if __name__ == "__main__":
    unittest.main()
