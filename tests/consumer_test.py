#!/usr/bin/python3
"""The library as other projects find it: installed somewhere, found, compiled against, linked and run.

BERTH_BUILD names the build, BERTH_BIN its program, BERTH_CC and BERTH_CXX the compilers. BERTH_ACCEPT=1 takes the present
symbols of libberth.so as right.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
CONSUMER = SOURCE / "tests/consumer"
BUILD = os.environ.get("BERTH_BUILD", SOURCE / "build/release")
os.environ.setdefault("BERTH_BIN", str(Path(BUILD) / "bin/berth"))
CC = os.environ.get("BERTH_CC", "cc")
CXX = os.environ.get("BERTH_CXX", "c++")
ABI = SOURCE / "tests/golden/libberth_abi.txt"
MOST_HEADERS = 10


def output(*command, directory=None, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=directory,
                          env=dict(os.environ, **environment))
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Consumer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = Path(tempfile.mkdtemp(prefix="berth-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.prefix = cls.root / "usr"
        for component in ("library", "development"):
            output("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)
        cls.library = next(cls.prefix.glob("lib*/**/libberth.so"))

    def setUp(self):
        # What the programs keep: reservations and studies.
        self.place = Path(tempfile.mkdtemp(dir=self.root))
        self.environment = {"BERTH_LEDGER": str(self.place / "ledger"),
                            "BERTH_DB": str(self.place / "state"),
                            "LD_LIBRARY_PATH": str(self.library.parent)}

    def headers(self):
        return sorted((self.prefix / "include").rglob("*.h"))

    def pkg_config(self, *options):
        return output("pkg-config", *options, "berth",
                      PKG_CONFIG_PATH=str(self.library.parent / "pkgconfig")).split()

    def test_a_project_in_cpp_finds_it_and_its_examples_hold(self):
        build = self.place / "build"
        output("cmake", "-S", CONSUMER / "cpp", "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={CXX}",
               f"-DCMAKE_PREFIX_PATH={self.prefix}")
        output("cmake", "--build", build)
        names = output("ctest", "--test-dir", build, "-N")
        for header in (self.prefix / "include/berth").glob("*.h"):
            if header.name not in ("berth.h", "error.h"):
                for library in ("berth", "berth_static"):
                    self.assertIn(f"{header.stem}_{library}\n", names)
        for name in re.findall(r"Test +#\d+: (\S+)", names):
            with self.subTest(name):
                place = self.place / name
                place.mkdir()
                output(build / name, directory=place, BERTH_LEDGER=str(place / "ledger"),
                       BERTH_DB=str(place / "state"))

    def test_another_minor_version_is_refused(self):
        project = self.place / "CMakeLists.txt"
        project.write_text("cmake_minimum_required(VERSION 3.25)\nproject(later CXX)\n"
                           "find_package(berth 0.2 REQUIRED)\n")
        with self.assertRaisesRegex(AssertionError, "compatible\\s+with requested version"):
            output("cmake", "-S", self.place, "-B", self.place / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_a_program_in_c_links_either_library_by_pkg_config(self):
        flags = [CC, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", CONSUMER / "c/consumer.c"]
        shared, static = self.place / "shared", self.place / "static"
        output(*flags, *self.pkg_config("--cflags", "--libs"), "-o", shared)
        self.assertEqual(output(shared, **self.environment), "ok\n")
        libraries = [word for word in self.pkg_config("--static", "--libs") if word != "-lberth"]
        output(*flags, *self.pkg_config("--cflags"), self.library.parent / "libberth.a", *libraries, "-o", static)
        environment = dict(self.environment, LD_LIBRARY_PATH="", BERTH_LEDGER=str(self.place / "other"))
        self.assertEqual(output(static, **environment), "ok\n")

    def test_a_program_in_python_loads_it(self):
        self.assertEqual(output(sys.executable, CONSUMER / "python/consumer.py", self.library.resolve(),
                                **self.environment), "ok\n")

    def test_each_header_compiles_alone_and_by_the_standard_library_alone(self):
        headers = self.headers()
        self.assertLessEqual(len(headers), MOST_HEADERS)
        jobs = []
        for header in headers:
            included = re.findall(r"#include [<\"]([^>\"]+)", header.read_text())
            for name in included:
                self.assertTrue("/" not in name or (name.startswith("berth/")
                                                    and (self.prefix / "include" / name).exists()),
                                f"{header.name} includes {name}")
            line = f"#include <{header.relative_to(self.prefix / 'include')}>\n"
            jobs.append(("c++", "-std=c++23", CXX, line))
            if header.name in ("berth.h", "berth_placement.h"):
                jobs.append(("c", "-std=c99", CC, line))

        def compile_alone(job):
            number, (language, standard, compiler, line) = job
            source = self.place / f"{number}.{'c' if language == 'c' else 'cc'}"
            source.write_text(line)
            output(compiler, standard, "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion",
                   "-Wshadow", "-Werror", f"-I{self.prefix / 'include'}", source)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(compile_alone, enumerate(jobs)))

    def test_the_examples_of_the_page_compile(self):
        blocks = re.findall(r"```cpp\n(.*?)```", (SOURCE / "docs/reference/library.md").read_text(), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 5)
        text = ""
        for number, block in enumerate(blocks):
            includes = "".join(re.findall(r"#include.*\n", block))
            rest = block.replace(includes, "")
            text = includes + text + f"int example{number}();\nint example{number}() {{\n{rest}return 0;\n}}\n"
        source = self.place / "page.cc"
        source.write_text(text)
        output(CXX, "-std=c++23", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
               f"-I{self.prefix / 'include'}", source)

    def test_the_library_shows_its_own_symbols_alone(self):
        self.assertIn("[libberth.so.0]", output("readelf", "--dynamic", self.library))
        listed = output("nm", "--dynamic", "--defined-only", "--demangle", "--format=just-symbols", self.library)
        symbols = sorted({re.sub(r"@@?BERTH_.*", "", name) for name in listed.splitlines()} - {"BERTH_0.3"})
        for name in symbols:
            self.assertRegex(name, r"^((typeinfo|typeinfo name|vtable) for )?berth(::|_)")
        text = "\n".join(symbols) + "\n"
        if os.environ.get("BERTH_ACCEPT"):
            ABI.write_text(text)
        self.assertEqual(text, ABI.read_text(), "the symbols have changed; BERTH_ACCEPT=1 takes them")

    def test_what_c_headers_declare_is_there(self):
        symbols = set(ABI.read_text().splitlines())
        for header in self.headers():
            if header.name in ("berth.h", "berth_placement.h"):
                declared = set(re.findall(r"^BERTH_EXPORT .*?\b(berth_\w+)\(", header.read_text(), re.MULTILINE))
                self.assertGreater(len(declared), 10)
                self.assertLessEqual(declared, symbols)


if __name__ == "__main__":
    unittest.main()
