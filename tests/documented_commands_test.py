#!/usr/bin/python3
"""Types every command of README.md and of each how-to page in a fresh folder: each has to exit as the page says.

Commands in running text and tables, and those of blocks marked `no-test`, are not typed. Their sub-command and options have to exist.
"""

import json
import re
import shutil
import subprocess
import unittest

from berth_case import BERTH
from ssh_bed import SSH, SSHD, SshBed
from typed_pages import Command, ROOT, TypedPage, steps

SCRIPT = """#!/usr/bin/python3
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--width", type=int, default=32)
options = parser.parse_args()
print(f"::berth accuracy={1 - abs(options.lr - 0.01) - 1 / options.width:.4f}")
"""
SWEEP = "run: ./train.py --lr {lr}\nparams: {lr: [0.01, 0.1]}\ngoal: {metric: accuracy}\n"
# Pages whose commands another test runs on the real thing, or that need a machine which tests do not have.
TYPED_BY_OTHERS = {
    "slurm.md": "slurm_test.py runs on a Slurm of its own",
    "ec2.md": "ec2_test.py runs on a simulated EC2",
    "postgres.md": "postgres_test.py runs on a PostgreSQL server of its own",
    "auptimizer.md": "auptimizer_test.py runs each experiment of the page",
    "use-the-library.md": "consumer_test.py builds and runs the examples",
    **{path.name: "consumer_test.py builds and runs its example" for path in (ROOT / "docs/how-to/moving").glob("*.md")},
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/how-to").rglob("*.md"))]
INLINE = re.compile(r"(?<!`)`(berth(?: [^`\n]*)?)`(?!`)")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


class Typed(TypedPage):
    def setUp(self):
        super().setUp()
        self.script("train.py", SCRIPT)
        shutil.copytree(ROOT / "examples", self.dir / "examples")
        self.house.environment["BERTH_CLUSTERS"] = str(self.dir / "clusters.yaml")
        self.bed = None

    def before(self, command):
        """The cluster `lab` of the pages becomes a host of this test once a command connects to it."""
        if self.bed is None and re.search(r"cluster probe|--cluster lab|cluster clean", command):
            if not (SSH and SSHD):
                self.skipTest("openssh-server is not installed")
            self.bed = SshBed(self.dir / "bed", self.dir)
            self.addCleanup(self.bed.close)
            self.bed.host("host")
            self.write("clusters.yaml", self.bed.clusters())
            self.write("sweep.yaml", SWEEP)

    def test_a_wrong_command_is_noticed(self):
        for block in ("sh\nberth runs --sort", "sh\nberth runs   # exit code 2", "console\n$ berth runs\nno such line"):
            with self.subTest(block), self.assertRaises(AssertionError):
                self.type(self.write("page.md", f"```{block}\n```\n"))


def test_of(page):
    def test(self):
        typed = self.type(page)
        if page.name not in TYPED_BY_OTHERS:
            self.assertGreater(typed, 0, "no command of the page is typed")
        self.assert_tidy()
    return test


for each in PAGES:
    setattr(Typed, "test_" + re.sub(r"\W", "_", each.stem if each.stem != "README" else "readme"), test_of(each))


class Words(unittest.TestCase):
    """Sub-commands and options of every command that a page shows, typed or not."""

    @classmethod
    def setUpClass(cls):
        made = subprocess.run([BERTH, "manual"], capture_output=True, check=True).stdout
        cls.commands = {each["name"]: {name for option in each["options"] for name in option["names"].split(",")}
                        for each in json.loads(made)["commands"]}

    def assert_exists(self, text):
        for part in re.split(r"\||&&|;|\$\(", text.partition(" # ")[0]):
            found = re.search(r"(?:^|\s)berth((?: .*)?)$", part.strip())
            if not found:
                continue
            words = found[1].partition(" -- ")[0]
            name, action, *_ = [word for word in words.split() if re.fullmatch(r"[a-z]+", word)] + ["", ""]
            if "COMMAND" in words or words.strip() == "":
                name = ""
            self.assertIn(name, self.commands, text)
            known = self.commands[name] | self.commands[""] | self.commands.get(f"{name} {action}", set())
            for option in OPTION.findall(re.sub(r"'[^']*'|\"[^\"]*\"", "", words)):
                self.assertIn(option, known, text)

    def test_what_pages_name_exists(self):
        shown = 0
        for page in PAGES:
            inline = INLINE.findall(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S))
            blocks = [step.text for step in steps(page) if isinstance(step, Command)]
            for text in inline + blocks:
                with self.subTest(f"{page.relative_to(ROOT)}: {text}"):
                    self.assert_exists(text)
                    shown += 1
        self.assertGreater(shown, 100)

    def test_a_wrong_word_is_noticed(self):
        for wrong in ("berth shwo digits-1", "berth show digits-1 --chrat", "sort a | berth run --stdni - -- cat"):
            with self.assertRaises(AssertionError):
                self.assert_exists(wrong)


if __name__ == "__main__":
    unittest.main()
