# SPDX-License-Identifier: Apache-2.0
"""Estimates as SPSS (.sav) and Stata (.dta) files with labels, written by pyreadstat.

Question, choice, status, method and public questions are numbers with value labels. Groups have one
variable per public question or period. All other columns are as in CSV.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from frankly_analyst import formats
from frankly_analyst.declared import kinds
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.request import WEIGHTED
from frankly_analyst.rows import Estimate, localised

_CODED: Final = ("question", "choice", "status", "method")
_DESCRIPTIONS: Final = {item.name: item.metadata["description"] for item in fields(Estimate)} | {
    "status": "ok; insufficient: fewer reports than needed; not_identifiable: no figure here can be estimated.",
    "needed": "Reports needed for an estimate.",
}
_LABEL_LENGTH: Final = {"sav": 256, "dta": 80}
"""Longest label of a variable."""
_LONGEST_NAME: Final = 32
_NUMBERS: Final = (int, float)


def write(kind: str, body: Mapping[str, Any], path: str | Path, language: str | None) -> None:
    """Write a response of the server as a file of `kind` "sav" or "dta".

    Raises InvalidRequest(unsupported) without pyreadstat and pandas, or if the file cannot be written.
    """
    columns, labels, values = table(body, language)
    title = localised(body["title"], language, body["languages"])
    save(kind, path, title, columns, labels, values)


def save(
    kind: str,
    path: str | Path,
    title: str,
    columns: Mapping[str, Sequence[Any]],
    labels: Mapping[str, str],
    values: Mapping[str, Mapping[int, str]],
) -> None:
    """Write columns with their labels, and the labels of coded values by column; raises like `write`."""
    try:
        pandas, pyreadstat = import_module("pandas"), import_module("pyreadstat")
    except ImportError:
        detail = "this needs pandas and pyreadstat: pip install pandas pyreadstat, or use to_csv()"
        raise InvalidRequest(detail, code="unsupported") from None
    longest = _LABEL_LENGTH[kind]
    writer = getattr(pyreadstat, f"write_{kind}")
    try:
        writer(
            pandas.DataFrame(dict(columns)),
            str(path),
            # The shorter limit of the two formats.
            file_label=title[:64],
            column_labels=[labels[name][:longest] for name in columns],
            variable_value_labels={name: dict(coded) for name, coded in values.items()},
        )
    except (OSError, pyreadstat.PyreadstatError, pyreadstat.ReadstatError) as error:
        detail = f"the file cannot be written ({type(error).__name__})"
        raise InvalidRequest(detail, code="unsupported", field="path") from None


def table(
    body: Mapping[str, Any], language: str | None
) -> tuple[dict[str, list[Any]], dict[str, str], dict[str, dict[int, str]]]:
    """Return columns by name, the label of each column, and the value labels of coded columns."""
    lines = formats.lines(body, language)
    texts = {
        question["id"]: localised(question["text"], language, body["languages"])
        for question in body["questions"]
    }
    columns: dict[str, list[Any]] = {}
    labels: dict[str, str] = {}
    values: dict[str, dict[int, str]] = {}
    for name in formats.COLUMNS:
        column = [line[name] for line in lines]
        if name == "by":
            groups = _groups(column)
            for group, answers in groups.items():
                if group == WEIGHTED:
                    label = "Population of the groups of this question, by their stated sizes; missing: a group."
                elif WEIGHTED in groups:
                    label = (
                        f"Public question or period {group}; missing: the population of the groups."
                    )
                else:
                    label = f"Public question or period {group}; missing: all reports together."
                named = _name(group, columns)
                _code(named, answers, {}, columns, values)
                labels[named] = label
            continue
        labels[name] = _DESCRIPTIONS[name]
        if name in _CODED:
            # Choices of two questions may have the same id, so they are numbered by pair.
            keys = (
                [
                    f"{line['question']}: {line['choice']}" if line["choice"] else None
                    for line in lines
                ]
                if name == "choice"
                else column
            )
            texts_by_key = (
                {
                    k: f"{line['question']}: {line['label']}"
                    for k, line in zip(keys, lines, strict=True)
                    if k
                }
                if name == "choice"
                else texts
                if name == "question"
                else {}
            )
            _code(name, keys, texts_by_key, columns, values)
        elif kinds(Estimate).get(name, int) in _NUMBERS:
            columns[name] = [float("nan") if value is None else float(value) for value in column]
        else:
            columns[name] = ["" if value is None else str(value) for value in column]
    return columns, labels, values


def _code(
    name: str,
    keys: list[str | None],
    shown: Mapping[str, str],
    columns: dict[str, list[Any]],
    values: dict[str, dict[int, str]],
) -> None:
    """Add a column of numbers from 1 in order of appearance, and their value labels."""
    # Numbered in order of appearance, so that the order of choices is kept.
    codes = {key: i for i, key in enumerate(dict.fromkeys(k for k in keys if k), start=1)}
    columns[name] = [float("nan") if not key else float(codes[key]) for key in keys]
    values[name] = {code: shown.get(key, key) for key, code in codes.items()}


def _groups(column: list[str | None]) -> dict[str, list[str | None]]:
    """Return the answers by public question from texts such as ``region=north week=2026-W18``."""
    rows = [dict(pair.split("=", 1) for pair in (by or "").split()) for by in column]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _name(group: str, taken: Mapping[str, Any]) -> str:
    """Return a name that both formats accept and no column has."""
    name = "by_" + re.sub(r"\W", "_", group)[: _LONGEST_NAME - 6]
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
