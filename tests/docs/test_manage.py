# SPDX-License-Identifier: Apache-2.0
"""docs/manage.md, followed from its first block to its last against a real server.

`--full` uses the machine's curl, which a machine of the other tests need not have. After a change, run
`python -m tests.docs.test_manage`, which writes the output into the page.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs import curl
from tests.docs.session import ROOT, Session, shape

PAGE = ROOT / "docs" / "manage.md"
STATE = "terminal.sh"


class Terminal(Session):
    """A session whose variables and functions last from one command to the next."""

    def __init__(self, folder: Path, *, full: bool) -> None:
        super().__init__(folder, literal=full)
        (folder / STATE).touch()
        if not full:
            program = folder / "bin" / "curl"
            program.parent.mkdir()
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {curl.__file__} "$@"\n')
            program.chmod(0o755)
            self.environment["PATH"] = f"{program.parent}:{self.environment['PATH']}"

    def run(self, line: str) -> str:
        """Run one command line and return its standard output. Raises Failed."""
        if line.endswith("&") or line.startswith("export FRANKLY_HOME="):
            return super().run(line)  # the server inherits these
        return self.bash(f"set -a; . ./{STATE}\n{line}\n{{ export -p; declare -f; }} > {STATE}")


@pytest.fixture
def terminal(tmp_path: Path, full: bool) -> Iterator[Terminal]:
    with closing(Terminal(tmp_path, full=full)) as opened:
        yield opened


@pytest.mark.slow
def test_the_page_can_be_followed_to_its_end(terminal: Terminal) -> None:
    outputs = terminal.follow(PAGE.read_text(encoding="utf-8"))
    assert len(outputs) == 6
    for promised, printed in outputs:
        assert shape(printed) == shape(promised)


@pytest.mark.parametrize("option", ["-k", "--fail", "--data-raw", "--head"])
def test_the_stand_in_for_curl_refuses_what_it_lacks(option: str) -> None:
    command = [sys.executable, "-I", str(curl.__file__), option, "http://127.0.0.1:1"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert option in refused.stderr


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as scratch,
        closing(Terminal(Path(scratch), full="--full" in sys.argv)) as session,
    ):
        session.follow(PAGE.read_text(encoding="utf-8"), write=PAGE)
