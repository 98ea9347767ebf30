# SPDX-License-Identifier: Apache-2.0
"""CSV of estimates: for programs, and for people with a spreadsheet; no cell is evaluated."""

import csv
import io
from pathlib import Path
from typing import Any

import pandas
import pytest
from frankly_analyst.formats import COLUMNS, SPREADSHEET, lines, to_csv, to_spreadsheet


def answer(label: str) -> dict[str, Any]:
    """Return a response with one row that has a negative estimate and this label."""
    row = {
        "question": "q",
        "choice": "a",
        "label": {"en": label},
        "estimate": -0.25,
        "documents": [],
        "flags": [],
    }
    question = {
        "id": "q",
        "text": {"en": label, "ar": "هل تدخن؟"},
        "status": "ok",
        "n": 9,
        "needed": 3,
        "by": None,
        "documents": [],
        "rows": [row],
    }
    return {"languages": ["en"], "questions": [question]}


def cells(label: str) -> dict[str, str]:
    (line,) = csv.DictReader(io.StringIO(to_csv(answer(label)).decode(), newline=""))
    return line


def people(body: dict[str, Any], language: str | None = None) -> list[dict[str, str]]:
    text = to_spreadsheet(body, language).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


ESCAPED = {
    **{f"{sign}1": f"'{sign}1" for sign in ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")},
    '=HYPERLINK("http://evil.example","x")': '\'=HYPERLINK("http://evil.example","x")',
    " =1": "' =1",
    "\tA": "'\tA",
    "\t=1": "'\t'=1",
    "=1\n+2": "'=1\n'+2",
    "a\r\n=2": "a\r'\n'=2",
    # A spreadsheet that separates by semicolons begins a cell here, whatever is quoted.
    "a;=1+1;b": "a;'=1+1;b",
    "a; @b": "a;' @b",
}  # fmt: skip


@pytest.mark.parametrize("label", ESCAPED)
def test_a_formula_is_a_text(label: str) -> None:
    assert cells(label)["label"] == ESCAPED[label]
    (row,) = people(answer(label))
    assert row["Question"] == row["Answer"]
    assert row["Answer"] in (ESCAPED[label], f"“{label}”")
    # Only CSV is changed; the rows still have the original label.
    assert lines(answer(label))[0]["label"] == label


@pytest.mark.parametrize("label", ["Yes", "", "1 − 2", "a = b", "'quoted'", "é", "−5"])
def test_other_texts_and_numbers_stay(label: str) -> None:
    line = cells(label)
    assert line["label"] == label
    assert float(line["estimate"]) == -0.25
    assert tuple(line) == COLUMNS


@pytest.mark.parametrize(
    "label",
    [
        "1-2",
        "03",
        "1/2",
        "3–5",
        "TRUE",
        "false",
        "1E5",
        "18+",
        "May 5",
        "5-Mar",
        "10:30 am",
        "50 %",
    ],
)
def test_labels_do_not_become_numbers_or_days(label: str) -> None:
    assert people(answer(label))[0]["Answer"] == f"“{label}”"
    assert cells(label)["label"] == label


@pytest.mark.parametrize("label", ["Yes", "2 glasses", "18 to 39", "June", "e-mail", "", "لا"])
def test_other_labels_have_no_quotation_marks(label: str) -> None:
    assert people(answer(label))[0]["Answer"] == (label or "a")


def test_numbers_for_people_never_shrink_an_interval() -> None:
    body = answer("Yes")
    numbers = {"estimate": -1e-9, "low": -0.1234561, "high": 0.1234561, "level": 0.95, "n": 9}
    body["questions"][0]["rows"][0] |= numbers
    [row] = people(body)
    assert [row[name] for name in ("Estimate", "From", "To", "Confidence", "Reports")] == [
        "0.0", "-0.123457", "0.123457", "0.95", "9",
    ]  # fmt: skip


def test_spreadsheets_recognise_the_encoding_and_show_texts() -> None:
    """Excel reads UTF-8 only after a byte order mark; case D: labels in Arabic."""
    body = answer("Yes") | {"languages": ["ar"]}
    body["questions"][0]["rows"][0] |= {"label": {"ar": "لا"}, "flags": ["outside_simplex"]}
    data = to_spreadsheet(body)
    assert data.startswith(b"\xef\xbb\xbfQuestion,Answer,")
    assert data.count(b"\r\n") == data.count(b"\n") == 2
    assert people(body) == [
        dict.fromkeys(SPREADSHEET, "")
        | {
            "Question": "هل تدخن؟",
            "Answer": "لا",
            "Estimate": "-0.25",
            "Remarks": "outside simplex",
        }
    ]
    assert people(body, "en")[0]["Question"] == "Yes"
    # The file for programs stays without a mark, which many would take for a part of the header.
    assert to_csv(body).startswith(b"question,choice,label,")


@pytest.mark.parametrize(
    ("status", "remark"),
    [
        ("insufficient", "no result yet: at least 3 reports are needed"),
        ("not_identifiable", "not identifiable"),
    ],
)
def test_a_question_without_results_says_why(status: str, remark: str) -> None:
    body = answer("Yes")
    body["questions"][0] |= {"status": status, "rows": []}
    (row,) = people(body)
    assert (row["Question"], row["Reports"], row["Estimate"]) == ("Yes", "9", "")
    assert row["Remarks"] == remark


def test_the_documented_example_reads_both_files(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Choices that pandas takes for missing values by default stay texts, and numbers are numbers."""
    body = answer("Yes")
    body["questions"][0]["rows"][0] |= {"choice": "NA", "label": {"en": "N/A"}}
    few = answer("No")["questions"][0] | {"id": "few", "status": "insufficient", "rows": []}
    body["questions"].append(few)
    (tmp_path / "estimates.csv").write_bytes(to_csv(body))
    (tmp_path / "results.csv").write_bytes(to_spreadsheet(body))
    text = (root / "docs" / "results.md").read_text("utf-8").partition("## Files")[2]
    example = text.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(example, "results.md", "exec"), names)
    row, missing = names["rows"].to_dict("records")
    assert (row["choice"], row["label"], row["estimate"]) == ("NA", "N/A", -0.25)
    assert pandas.isna([row["low"], missing["estimate"], missing["choice"]]).all()
    told, missing = names["people"].to_dict("records")
    assert (told["Question"], told["Answer"], told["Estimate"]) == ("Yes", "N/A", -0.25)
    assert pandas.isna(missing["Estimate"])
