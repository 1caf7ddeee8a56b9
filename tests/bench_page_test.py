#!/usr/bin/python3
"""The page of `./dev bench`: what it marks as worse, what it shows, and that it loads nothing."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
import page  # noqa: E402


def run(ratio, quick=True, machine="m"):
    row = {"median": ratio * 100, "least": 90.0, "most": 5000.0, "samples": 3}
    return {"time": "2026-01-01T00:00:00+00:00", "quick": quick, "machine": machine, "load": "0 0 0", "version": "berth 1",
            "sections": [{"key": "k", "title": "Title <b>", "unit": "µs", "note": "Note.", "command": "x", "baseline": "raw",
                          "rows": {"raw": {**row, "median": 100.0}, "Berth": row}, "missing": {"Tool": "not installed"},
                          "ratios": {"Berth": ratio}}]}


class BenchPage(unittest.TestCase):
    def test_what_is_worse_than_usual_and_than_ever_is_marked(self):
        before = [run(1.2), run(1.3), run(1.25)]
        self.assertEqual(list(page.regressions(run(1.5), before)), [])
        worse = list(page.regressions(run(1.7), before))
        self.assertEqual([(name, ratio, usual) for _, name, ratio, usual in worse], [("Berth", 1.7, 1.25)])
        self.assertEqual(list(page.regressions(run(1.7), [*before, run(1.8)])), [])
        self.assertEqual(list(page.regressions(run(9.0), [])), [])
        self.assertIn("WORSE: Title <b>: Berth: 1.7 × raw, usually 1.25", page.as_text(run(1.7), before))
        self.assertIn("worse: usually 1.25", page.as_html(run(1.7), before))

    def test_only_the_same_machine_and_form_are_compared(self):
        import json
        import tempfile
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "history.jsonl"
            self.assertEqual(page.earlier_runs(path, run(1)), [])
            kept = [run(1.0), run(1.1, quick=False), run(1.2, machine="other"), run(1.3)]
            path.write_text("".join(json.dumps(each) + "\n" for each in kept))
            self.assertEqual(page.earlier_runs(path, run(1)), [kept[0], kept[3]])

    def test_the_page_has_every_row_and_fetches_nothing(self):
        text, html = page.as_text(run(1.5), [run(1.4)]), page.as_html(run(1.5), [run(1.4)])
        for shown in (text, html):
            for word in ("Berth", "raw", "Tool", "not installed", "150", "Note."):
                self.assertIn(word, shown)
        self.assertIn("Title &lt;b&gt;", html)
        self.assertIn("<svg", html)
        self.assertNotRegex(html, r"https?://|src=|href=|url\(")


if __name__ == "__main__":
    unittest.main()
