#!/usr/bin/python3
"""Builds the wheel of the Python package for pip. The output is reproducible. The package contains no compiled code; it
needs the `berth` command in PATH.

    tools/wheel.py [DIRECTORY]    # default: build; then: pip install build/berth-…-py3-none-any.whl"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def wheel(directory):
    version = re.search(r"project\(\w+\s+VERSION\s+([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    about = f"berth-{version}.dist-info"
    files = {f"berth/{file.name}": file.read_bytes() for file in (ROOT / "python/berth").iterdir() if file.is_file()}
    files[f"{about}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: berth\nVersion: {version}\nSummary: run experiments, searches and flows on "
        f"GPUs\nLicense: Apache-2.0\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n"
        f"{(ROOT / 'docs/reference/python.md').read_text(encoding='utf-8')}").encode()
    files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: berth\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    path = Path(directory) / f"berth-{version}-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


if __name__ == "__main__":
    print(wheel(*(sys.argv[1:2] or [ROOT / "build"])))
