# SPDX-License-Identifier: Apache-2.0
"""Rows of an answer as CSV or Arrow: one line per estimate, its uncertainty, n, documents and flags in the same line.

Insufficient questions are lines too, without numbers but for n, so that nothing goes missing unseen.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

_TEXTS: Final = ("question", "choice", "label", "by", "status", "method", "mechanism", "notion", "epsilon", "ceiling",
                 "documents", "flags")  # fmt: skip
_WHOLE: Final = ("n", "needed")
_NUMBERS: Final = ("estimate", "se", "margin", "low", "high", "level", "se_privacy", "se_sampling", "worst_case_se",
                   "poisoning_up", "poisoning_down", "privacy_cost", "efficiency", "versions_p")  # fmt: skip
COLUMNS: Final = ("question", "choice", "label", "by", "status", *_NUMBERS, "method", *_WHOLE, "mechanism", "notion",
                  "epsilon", "ceiling", "documents", "flags")  # fmt: skip


def said(texts: Mapping[str, str], language: str | None, languages: Sequence[str]) -> str:
    """Return a text in `language`, else in the first of the survey's languages that it has, else in any."""
    found = next((each for each in (language, *languages) if each in texts), None)
    return next(iter(texts.values())) if found is None else texts[found]


def lines(answer: Mapping[str, Any], language: str | None = None) -> list[dict[str, Any]]:
    """Return one dict with all COLUMNS per row, and one per insufficient question; `language` is that of labels.

    KeyError, TypeError or AttributeError for what is no answer of a server.
    """
    found = []
    for question in answer["questions"]:
        shared = {"status": question["status"], "needed": question["needed"]}
        for row in question["rows"]:
            texts = {
                "label": said(row["label"], language, answer["languages"]),
                "documents": " ".join(row["documents"]),
                "flags": " ".join(row["flags"]),
            }
            found.append({name: (row | shared | texts).get(name) for name in COLUMNS})
        if not question["rows"]:
            by = question["by"] or {}
            few = {"question": question["id"], "n": question["n"], "documents": " ".join(question["documents"])}
            few["by"] = " ".join(f"{name}={value}" for name, value in by.items())
            found.append({name: (few | shared).get(name) for name in COLUMNS})
    return found


def to_csv(answer: Mapping[str, Any], language: str | None = None) -> bytes:
    """Return the lines under a header, UTF-8; what does not exist is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines(answer, language))
    return out.getvalue().encode()


def to_arrow(arrow: Any, answer: Mapping[str, Any], language: str | None = None) -> Any:
    """Return the lines as a table of `arrow`, which is pyarrow."""
    kinds = dict.fromkeys(_TEXTS, arrow.string()) | dict.fromkeys(_WHOLE, arrow.int64())
    schema = arrow.schema([(name, kinds.get(name, arrow.float64())) for name in COLUMNS])
    return arrow.Table.from_pylist(lines(answer, language), schema=schema)
