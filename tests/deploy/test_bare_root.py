# SPDX-License-Identifier: Apache-2.0
"""Debian systems that have only python3 and pip: a first survey, and the libraries on a newer Python.

The tests need root, debootstrap and the network.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port

pytestmark = pytest.mark.full_only

FOLDERS = (
    "tests/frankly_protocol",
    "tests/frankly_sdk",
    "tests/frankly_analyst",
    "tests/frankly_design",
)


def _bare_root(root: Path, *arguments: str) -> str:
    """Run tools.bare_root with the machine's folders and files that it needs; return its output."""
    needed = [
        f"--{option}={place}"
        for option, name in (("bind", "BARE_ROOT_BINDS"), ("copy", "BARE_ROOT_COPIES"))
        for place in os.environ.get(name, "").split(":")
        if place
    ]
    command = [sys.executable, "-m", "tools.bare_root", *needed, *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_in_an_empty_debian(root: Path) -> None:
    """The test leaves out `python3 run.py test`, which runs all tests."""
    said = _bare_root(root, "--without-test", f"--port={free_port()}")
    assert "left out: python3 run.py test" in said
    assert "2 left out" in said.splitlines()[-1]


def test_the_libraries_on_the_python_of_a_newer_debian(root: Path) -> None:
    """Protocol, SDK, analyst's client and mathematics, on Debian 13."""
    command = f"python3 --version && python3 run.py test {' '.join(FOLDERS)}"
    said = _bare_root(root, "--suite=trixie", f"--run={command}")
    assert "Python 3.13" in said
    assert re.search(r"^=+ \d+ passed in ", said, re.MULTILINE)
