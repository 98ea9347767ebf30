# SPDX-License-Identifier: Apache-2.0
"""CSV and Arrow tables of estimates: one line per estimate, with its uncertainty and n.

Questions with too few reports are lines too, with n as their only number: readers must see that
they are missing.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

_TEXTS: Final = ("question", "choice", "label", "by", "status", "method", "mechanism", "notion", "epsilon", "ceiling",
                 "documents", "flags")  # fmt: skip
_INTEGERS: Final = ("n", "needed")
_NUMBERS: Final = ("estimate", "se", "margin", "low", "high", "level", "se_privacy", "se_sampling", "worst_case_se",
                   "poisoning_up", "poisoning_down", "privacy_cost", "efficiency", "versions_p")  # fmt: skip
COLUMNS: Final = ("question", "choice", "label", "by", "status", *_NUMBERS, "method", *_INTEGERS, "mechanism", "notion",
                  "epsilon", "ceiling", "documents", "flags")  # fmt: skip


def localised(texts: Mapping[str, str], language: str | None, languages: Sequence[str]) -> str:
    """Return a text in `language`, else in the first of `languages` that has it, else in any."""
    tag_present = next((tag for tag in (language, *languages) if tag in texts), None)
    return next(iter(texts.values())) if tag_present is None else texts[tag_present]


def lines(answer: Mapping[str, Any], language: str | None = None) -> list[dict[str, Any]]:
    """Return one dict with all COLUMNS per row, and one per insufficient question.

    language : of the labels. Raises KeyError, TypeError or AttributeError if `answer` has another
    shape.
    """
    table = []
    for question in answer["questions"]:
        shared = {"status": question["status"], "needed": question["needed"]}
        for row in question["rows"]:
            texts = {
                "label": localised(row["label"], language, answer["languages"]),
                "documents": " ".join(row["documents"]),
                "flags": " ".join(row["flags"]),
            }
            table.append({name: (row | shared | texts).get(name) for name in COLUMNS})
        # Without rows the question had too few reports.
        if not question["rows"]:
            by = question["by"] or {}
            insufficient = {
                "question": question["id"],
                "n": question["n"],
                "documents": " ".join(question["documents"]),
            }
            insufficient["by"] = " ".join(f"{name}={value}" for name, value in by.items())
            table.append({name: (insufficient | shared).get(name) for name in COLUMNS})
    return table


def to_csv(answer: Mapping[str, Any], language: str | None = None) -> bytes:
    """Return the lines under a header, in UTF-8; missing values are empty cells."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines(answer, language))
    return out.getvalue().encode()


def to_arrow(arrow: Any, answer: Mapping[str, Any], language: str | None = None) -> Any:
    """Return the lines as a pyarrow table; `arrow` is the module pyarrow."""
    types = dict.fromkeys(_TEXTS, arrow.string()) | dict.fromkeys(_INTEGERS, arrow.int64())
    # Declared, not inferred: a column of missing values alone would get the type null.
    schema = arrow.schema([(name, types.get(name, arrow.float64())) for name in COLUMNS])
    return arrow.Table.from_pylist(lines(answer, language), schema=schema)
