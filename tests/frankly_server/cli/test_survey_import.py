# SPDX-License-Identifier: Apache-2.0
"""Command `frankly survey import`: a survey file on stdout or in a file, the report on stderr."""

from pathlib import Path

import pytest
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.cli.conftest import Frankly
from tests.frankly_server.surveys.workbooks import form


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    path = tmp_path / "form.xlsx"
    path.write_bytes(form(("select_one yn", "smokes", "Do you smoke?"), ("text", "name", "Name?")))
    return path


def test_the_survey_file_is_on_stdout_and_the_report_on_stderr(
    frankly: Frankly, workbook: Path
) -> None:
    done = frankly("survey", "import", str(workbook))
    assert done.code == 0
    definition = parse_definition(done.out.encode())
    assert [question.id for question in definition.questions] == ["smokes"]
    assert "free text cannot be protected" in done.err
    assert "Note: the form names no language" in done.err
    assert "Questions taken over: 1." in done.err


def test_it_writes_a_file_that_apply_reads(
    frankly: Frankly, workbook: Path, tmp_path: Path
) -> None:
    file = tmp_path / "survey.yaml"
    assert frankly("survey", "import", str(workbook), "--output", str(file)).out == ""
    assert frankly("migrate").code == 0
    assert frankly("survey", "apply", str(file)).code == 0


def test_json(frankly: Frankly, workbook: Path) -> None:
    answer = frankly("survey", "import", str(workbook), "--json").json
    assert set(answer) == {"survey", "rows", "notes"}
    assert answer["rows"][1] == {
        "line": 3,
        "name": "name",
        "text": "Name?",
        "outcome": "left",
        "reason": "free text cannot be protected: offer choices",
    }


def test_a_bad_file_is_refused(frankly: Frankly, tmp_path: Path) -> None:
    path = tmp_path / "form.xlsx"
    path.write_bytes(b"no workbook")
    done = frankly("survey", "import", str(path), "--json")
    assert done.code == 3
    assert (done.problem["code"], done.problem["field"]) == ("definition_invalid", "xlsform")


def test_a_file_that_cannot_be_written(frankly: Frankly, workbook: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "survey.yaml"
    assert frankly("survey", "import", str(workbook), "--output", str(missing)).code == 2
