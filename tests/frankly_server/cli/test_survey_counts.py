# SPDX-License-Identifier: Apache-2.0
"""Command `frankly survey apply --counts`: tables from any editor (bad input 53), and the prior."""

from pathlib import Path

import pytest

from tests.frankly_server.cli.conftest import Frankly

FILE = b"""
name: pilot
title: {en: Pilot}
languages: [en]
min_reports: 10
budget: "4"
blocks:
  - id: grades
    notion: lip
    epsilon: "0.5"
    ceiling_cap: "3"
    prior:
      secret: cheated
      secrets: [none]
      joint: [[1, 1, 1]]
      source: a pilot
    questions:
      - id: grades
        text: {en: "Your grade?"}
        choices: [{id: low, label: {en: L}}, {id: mid, label: {en: M}}, {id: high, label: {en: H}}]
"""
TABLE = b"cheated,low,mid,high\nno,240,360,200\nyes,40,110,150\n"
WANTED = [["240", "360", "200"], ["40", "110", "150"]]

FINE = {
    "plain": TABLE,
    "byte order mark": b"\xef\xbb\xbf" + TABLE,
    "CRLF": TABLE.replace(b"\n", b"\r\n"),
    "both, and quotes": b"\xef\xbb\xbf" + TABLE.replace(b"\n", b"\r\n").replace(b"240", b'"240"'),
}
# Name -> (the table, part of the detail)
BAD = {
    "quoted newline": (TABLE.replace(b"yes", b'"y\nes"'), "line 3"),
    "empty row": (TABLE.replace(b"yes", b"\nyes"), "line 3: the line is empty"),
    "decimal comma": (TABLE.replace(b"150", b"0,5"), "line 3"),
    "quoted decimal comma": (
        TABLE.replace(b"150", b'"0,5"'),
        "line 3: write decimals with a point",
    ),
    "another order": (
        TABLE.replace(b"low,mid", b"mid,low"),
        "line 1: the columns of block grades are, in this order",
    ),
    "too few answers": (b"cheated,low\nno,1\n", "line 1: the columns"),
    "no text": (b"\xff\xfe\x00", "line 1"),
    "nothing": (b"", "a line with the answers"),
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The paths of the survey file and of its table."""
    (tmp_path / "pilot.yaml").write_bytes(FILE)
    return tmp_path / "pilot.yaml", tmp_path / "counts.csv"


def test_tables_of_any_editor_become_the_prior(ready: Frankly, files: tuple[Path, Path]) -> None:
    survey, table = files
    for name, data in FINE.items():
        table.write_bytes(data)
        result = ready("survey", "apply", str(survey), "--counts", f"grades={table}", "--json")
        assert (result.code, result.json["status"]) == (
            0,
            "created" if name == "plain" else "unchanged",
        ), result.err
    prior = ready("survey", "export", "pilot", "--json").json["blocks"][0]["prior"]
    assert [[str(cell) for cell in row] for row in prior["joint"]] == WANTED
    assert prior["secrets"] == ["no", "yes"]


@pytest.mark.parametrize("command", ["apply", "diff"])
def test_a_bad_table_ends_with_code_3_and_its_line(
    ready: Frankly, files: tuple[Path, Path], command: str
) -> None:
    survey, table = files
    for name, (data, detail) in BAD.items():
        table.write_bytes(data)
        result = ready("survey", command, str(survey), "--counts", f"grades={table}", "--json")
        assert (result.code, result.problem["field"]) == (3, "counts"), name
        assert detail in result.problem["detail"], name
    assert ready("survey", "list", "--json").json["surveys"] == []


# Name -> (the option's value, exit code)
ASKED = {
    "no file": ("grades=/nowhere/counts.csv", 2),
    "no block": ("counts.csv", 2),
    "an unknown block": ("other=FILE", 3),
    "a folder": ("grades=/", 2),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_option_must_name_an_existing_block_and_file(
    ready: Frankly, files: tuple[Path, Path], name: str
) -> None:
    survey, table = files
    table.write_bytes(TABLE)
    value, code = ASKED[name]
    result = ready(
        "survey", "apply", str(survey), "--counts", value.replace("FILE", str(table)), "--json"
    )
    assert (result.code, result.problem["field"]) == (code, "counts")
