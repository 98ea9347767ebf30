# SPDX-License-Identifier: Apache-2.0
"""Commands and snippets of docs/first_survey.md, run unchanged, from keys to an analyst's query and a
backup; the README's are among them.

The tests leave out lines that install software, because everything is installed; with --full an
empty Debian runs them.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.ports import free_port
from tools.blocks import blocks
from tools.follow import Failed, Reader, Shell

INSTALLS = ("run.py", "frankly demo", "sphinx", "python3 -m venv", "pip ")


PAGE = "docs/first_survey.md"


def test_the_page_can_be_followed_to_its_end(root: Path, tmp_path: Path) -> None:
    (tmp_path / "app").symlink_to(
        root / ".venv"
    )  # the app's virtual environment, which the page tells its readers to create
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("FRANKLY_")
    }
    shell = Shell(root, {**inherited, "HOME": str(tmp_path)}, free_port())
    reader = Reader(shell, without=INSTALLS)
    try:
        reader.follow((root / PAGE).read_text(encoding="utf-8"))
        assert "Teacher, nurse, artist, technician" in shell.run(
            ".venv/bin/frankly estimates affairs"
        )
    finally:
        shell.close()
    assert len(reader.left_out) == 8
    assert {path.name for path in tmp_path.iterdir()} >= {
        "frankly",
        "frankly-backup.zip",
        "answers.db",
    }
    for verb in ("keys init", "publish", "serve", "estimates", "audit", "doctor", "backup verify"):
        assert [line for line in reader.done if verb in line], verb


def test_the_lines_of_the_readme_are_lines_of_the_page(root: Path) -> None:
    """All but comments, and what three lines for each user leave out."""

    def code(path: str) -> list[str]:
        found = blocks((root / path).read_text(encoding="utf-8"))
        lines = [
            line.partition("  #")[0].strip() for block in found for line in block.body.splitlines()
        ]
        return [line.removeprefix("receipt = ") for line in lines if line]

    readme, page = code("README.md"), code(PAGE)
    assert len(readme) >= 10
    assert [line for line in readme if line not in page] == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("```sh\ntrue\necho lost >&2; exit 3\n```\n", "exit code 3\n\nlost"),
        ("```sh\nfalse | cat\n```\n", "exit code 1"),
        ("```sh\nfalse &\n```\n", "the server did not start"),
        ("```yaml\na: b\n```\n", "this block is neither sh nor python"),
        ("```python\nimport frankly_sdk\n```\n", "no link was published"),
    ],
)
def test_a_block_that_fails_stops_the_reader(tmp_path: Path, page: str, words: str) -> None:
    shell = Shell(tmp_path, os.environ, free_port())
    with pytest.raises(Failed, match=words):
        Reader(shell).follow(f"{page}```sh\ntouch reached\n```\n")
    assert not (tmp_path / "reached").exists()


def test_a_reader_sets_variables_and_leaves_a_server_running(tmp_path: Path) -> None:
    shell = Shell(tmp_path, os.environ, free_port())
    shell.run("export PLACE=$PWD/here OTHER=~/x")
    assert shell.environment["PLACE"] == f"{tmp_path}/here"
    assert shell.environment["OTHER"] == str(Path("~/x").expanduser())
    (tmp_path / "health").write_text("well")
    shell.run(
        f"{sys.executable} -m http.server --bind 127.0.0.1 {shell.port} &   # in the background"
    )
    assert shell.run(
        "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8000/health\").read())'"
    )
    with pytest.raises(Failed, match="ended with exit code -15"):
        shell.close()
