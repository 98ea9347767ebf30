# SPDX-License-Identifier: Apache-2.0
"""Page docs/operator.md, whose tables name an existing test or command for everything that the
operator cannot do."""

import re
from pathlib import Path

import pytest

from tests.docs.test_bad_inputs import default_tests
from tests.docs.test_every_block import unknown

HEADER = "| It cannot | because | shown by |\n|---|---|---|\n"
_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
_COMMAND = re.compile(r"(frankly|frankly-verify) (.+)")


def rows(page: str) -> list[list[str]]:
    """Return the cells of the tables of what the operator cannot do."""
    tables = [part.partition("\n\n")[0] for part in page.split(HEADER)[1:]]
    return [
        re.split(r" *\| *", line.strip("| ")) for table in tables for line in table.splitlines()
    ]


def faults(shown_by: str, root: Path) -> list[str]:
    """Return the names in a cell that are neither a test that runs by default nor a command."""
    names = re.findall(r"`([^`]+)`", shown_by)
    if not names:
        return ["neither a test nor a command"]
    return [name for name in names if not _exists(name, root)]


def _exists(name: str, root: Path) -> bool:
    if test := _TEST.fullmatch(name):
        file = root / test[1]
        return file.is_file() and test[2] in default_tests(file)
    if command := _COMMAND.fullmatch(name):
        if command[1] == "frankly":
            return unknown(command[2]) is None
        usage = (root / "verifier" / "README.md").read_text(encoding="utf-8")
        return re.search(rf"^{re.escape(name)} ", usage, re.MULTILINE) is not None
    return False


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "operator.md").read_text(encoding="utf-8")


def test_every_line_names_a_test_or_a_command_that_exists(page: str, root: Path) -> None:
    lines = rows(page)
    assert len(lines) >= 12
    assert {len(cells) for cells in lines} == {3}
    assert all(all(cells) for cells in lines)
    assert {cells[0]: wrong for cells in lines if (wrong := faults(cells[2], root))} == {}


def test_every_test_and_command_of_the_page_exists(page: str, root: Path) -> None:
    """Names outside the tables too."""
    names = [
        name
        for name in re.findall(r"`([^`\n]+)`", page)
        if "::" in name or _COMMAND.fullmatch(name)
    ]
    assert len(names) >= len(rows(page))
    assert [name for name in names if not _exists(name, root)] == []


def test_what_the_operator_can_do_is_as_prominent(page: str) -> None:
    can = page.partition("\n## What the operator can do\n")[2].partition("\n## ")[0]
    listed = [line for line in can.splitlines() if line.startswith("| ")]
    assert len(listed) >= 10
    assert all(len(line.split(" | ")) == 2 for line in listed)


WIRE = "tests/faults/test_wire.py"
NOTHING = "neither a test nor a command"


@pytest.mark.parametrize(
    ("shown_by", "wrong"),
    [
        (f"`{WIRE}::test_redirects_are_not_followed`, `frankly audit URL`", []),
        ("`frankly-verify document`", []),
        (f"`{WIRE}::test_nothing`", [f"{WIRE}::test_nothing"]),
        ("`tests/faults/test_no_file.py::test_x`", ["tests/faults/test_no_file.py::test_x"]),
        (f"`{WIRE}::MARKERS`", [f"{WIRE}::MARKERS"]),
        (f"`{WIRE}`", [WIRE]),
        ("`frankly dance`", ["frankly dance"]),
        ("`frankly verify`, `frankly audit URL --nothing`", ["frankly audit URL --nothing"]),
        ("`frankly-verify dance`", ["frankly-verify dance"]),
        ("a promise", [NOTHING]),
        ("", [NOTHING]),
    ],
)
def test_wrong_names_are_found(root: Path, shown_by: str, wrong: list[str]) -> None:
    assert faults(shown_by, root) == wrong
