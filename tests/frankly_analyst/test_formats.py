# SPDX-License-Identifier: Apache-2.0
"""CSV of estimates for spreadsheets: no cell is evaluated, and nothing else changes."""

import csv
import io
from typing import Any

import pytest
from frankly_analyst.formats import COLUMNS, lines, to_csv


def answer(label: str) -> dict[str, Any]:
    """Return a response with one row that has a negative estimate and this label."""
    row = {"choice": "a", "label": {"en": label}, "estimate": -0.25, "documents": [], "flags": []}
    question = {"id": "q", "status": "ok", "n": 9, "needed": 3, "by": None, "rows": [row]}
    return {"languages": ["en"], "questions": [question]}


def cells(label: str) -> dict[str, str]:
    (line,) = csv.DictReader(io.StringIO(to_csv(answer(label)).decode(), newline=""))
    return line


@pytest.mark.parametrize(
    "label",
    [
        *('=HYPERLINK("http://evil.example","x")', "+1+1", "-B", "@A", "\t=1", "=1\n+2", "\n=1"),
        *("\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20A"),
    ],
)
def test_a_formula_is_a_text(label: str) -> None:
    assert cells(label)["label"] == f"'{label}"
    # Only CSV is changed; the rows still have the original label.
    assert lines(answer(label))[0]["label"] == label


@pytest.mark.parametrize("label", ["Yes", "", "1 − 2", "a = b", "'quoted'", "é", "−5"])
def test_other_texts_and_numbers_stay(label: str) -> None:
    line = cells(label)
    assert line["label"] == label
    assert float(line["estimate"]) == -0.25
    assert tuple(line) == COLUMNS
