# SPDX-License-Identifier: Apache-2.0
"""Estimates from counts, which equal those from reports to the last byte, without reading reports."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism, UnaryMechanism
from frankly_server.analysis import Analysis, encode
from frankly_server.store import Database, Layout, ReportRow
from sqlalchemy import event

from tests.frankly_protocol.samples import question, survey
from tests.frankly_server.samples import SURVEY, put, released
from tests.frankly_server.store.counted import D, block, dense, mechanisms, symbols

N = 120


def _collected(
    database: Database, drawn: list[Mechanism], rng: Random
) -> tuple[SurveyDocument, list[ReportRow]]:
    made = survey(*(block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn)))
    document = put(database, replace(made, strata=(question("region", "north", "south"),)))
    strata = [f'{{"region":"{choice}"}}' for choice in ("north", "south")]
    rows = [
        ReportRow(
            SURVEY, f"{i:032x}", document.digest, symbols(drawn, rng), strata[rng.randrange(2)]
        )
        for i in range(N)
    ]
    for i, start in enumerate(range(0, N, 7), 1):
        released(database, document, rows[start : start + 7], f"2026-06-{i:02d}")
    return document, rows


@contextmanager
def _reports_read(database: Database) -> Iterator[list[str]]:
    """Yield the statements that read the table of reports."""
    read_statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        read_statements.extend([statement] if "FROM reports" in statement else [])

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield read_statements
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def _from_reports(found: Analysis, **asked: Any) -> dict[str, Any]:
    """Return the estimates that the server computes if no counts are stored."""

    layout_of = Layout.of

    def nothing(document: SurveyDocument) -> Layout:
        whole = layout_of(document)
        return replace(whole, radices=((),) * len(document.blocks), sets=(), pairs=())

    with patch.object(Layout, "of", staticmethod(nothing)):
        body = found.estimates(SURVEY, **asked)
    assert "every report was read" in body["notes"].pop()
    return body


def _asked(drawn: list[Mechanism]) -> list[dict[str, Any]]:
    names = [
        [f"b{i}-{j}" for j in range(len(m.factors) if isinstance(m, ProductMechanism) else 1)]
        for i, m in enumerate(drawn)
        if isinstance(m, DenseMechanism | ProductMechanism)
    ]
    joint = [[a[0], b[-1]] for a, b in combinations(names, 2)]
    return [{}, {"targets": joint[0], "by": "region"}, *({"targets": each} for each in joint[1:])]


def test_estimates_from_counts_and_from_reports_are_equal(database: Database) -> None:
    rng = Random(1)
    drawn = mechanisms(rng)
    _collected(database, drawn, rng)
    analysis = Analysis(database)
    for options in _asked(drawn):
        with _reports_read(database) as read_statements:
            body = analysis.estimates(SURVEY, **options)
        assert read_statements == []
        assert {q["status"] for q in body["questions"]} <= {
            "ok",
            "insufficient",
            "not_identifiable",
        }
        assert body["n"] == N
        with _reports_read(database) as read_statements:
            assert encode(_from_reports(analysis, **options)) == encode(body)
        assert len(read_statements) > 0
    assert analysis.replay(body) == encode(body)


def test_a_large_sets_figures_equal_those_of_its_reports(database: Database) -> None:
    """Reports decode to (bit − flip)/(keep − flip), corrected to sum to 1; the test checks mean and
    covariance."""
    rng = Random(8)
    mechanism = UnaryMechanism(48, 12, D // 2, D // 5)
    _, rows = _collected(database, [mechanism], rng)
    bits = np.array([[int(str(row.symbols[0]), 16) >> x & 1 for x in range(12)] for row in rows])
    keep, flip = mechanism.keep / D, mechanism.flip / D
    decoded = (bits - flip) / (keep - flip)
    decoded += (1 - decoded.sum(axis=1, keepdims=True)) / 12
    (question_result,) = Analysis(database).estimates(SURVEY)["questions"]
    assert [row["estimate"] for row in question_result["rows"]] == pytest.approx(
        list(decoded.mean(axis=0))
    )
    np.testing.assert_allclose(
        question_result["covariance"], np.cov(decoded.T) / N, rtol=1e-9, atol=1e-15
    )


def test_for_targets_without_counts_reports_are_read_and_a_note_says_so(sqlite: Database) -> None:
    rng = Random(3)
    drawn: list[Mechanism] = [dense(2, 2, rng) for _ in range(3)]
    drawn.append(UnaryMechanism(48, 66, D // 2, D // 5))
    _collected(sqlite, drawn, rng)
    analysis = Analysis(sqlite)
    with _reports_read(sqlite) as read_statements:
        two = analysis.estimates(SURVEY, targets=["b0-0", "b2-0"])
        assert "every report was read" not in " ".join(two["notes"])
        three = analysis.estimates(SURVEY, targets=["b0-0", "b1-0", "b2-0"])
        assert "every report was read" in " ".join(three["notes"])
        single = analysis.estimates(SURVEY)
        assert "every report was read" in " ".join(single["notes"])
    assert len(read_statements) > 0
    assert {q["n"] for q in single["questions"]} == {N}
