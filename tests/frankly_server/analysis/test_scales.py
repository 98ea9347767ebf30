# SPDX-License-Identifier: Apache-2.0
"""Means, distributions and medians of scales against decoding by hand; coverage by enumeration."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from frankly_analyst import Estimates
from frankly_protocol.audit import Claim, ceiling, level_for
from frankly_protocol.blocks import Block
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.promises import Promise
from frankly_protocol.questions import Choice, Question
from frankly_server.analysis import Analysis
from frankly_server.analysis.scales import Scale
from frankly_server.estimate import estimate
from frankly_server.store import Database

from tests.frankly_protocol.samples import survey
from tests.frankly_server.samples import SURVEY, put, released, row

COUNTS = (60, 65, 55, 65, 55)


def _scale(*numbers: Any, kind: str = "score") -> Question:
    """A question with these scores or lower ends of ranges; None makes a choice "no answer"."""
    choices = [
        Choice(f"c{i}", {"en": f"c{i}"}, role="no_answer")
        if v is None
        else replace(Choice(f"c{i}", {"en": f"c{i}"}), **{kind: v})
        for i, v in enumerate(numbers)
    ]
    return Question("mood", {"en": "How is your mood?"}, tuple(choices))


def _grr(answers: int, keep: int = 3) -> DenseMechanism:
    """Keep the answer with about `keep` times the chance of any other answer."""
    other = (1 << 20) // (keep + answers - 1)
    rows = [[other] * answers for _ in range(answers)]
    for x in range(answers):
        rows[x][x] = (1 << 20) - other * (answers - 1)
    return DenseMechanism(20, tuple(map(tuple, rows)))


def _received(database: Database, asked: Question, counts: tuple[int, ...] = COUNTS) -> np.ndarray:
    """Store a survey with one question and its reports; return the shares decoded by hand."""
    size = len(asked.choices)
    mechanism, promise = _grr(size), Promise(Claim("ldp", level_for(Fraction(2))))
    block = Block(
        "mood", (asked,), mechanism, (promise,), (1,) * size, ceiling(mechanism), "grr", None
    )
    document = put(database, survey(block))
    rows = [row(y, document=document.digest) for y, n in enumerate(counts) for _ in range(n)]
    released(database, document, rows)
    law = np.array(mechanism.weights, dtype=float) / (1 << 20)
    decoded: np.ndarray = np.linalg.solve(law.T, np.array(counts) / sum(counts))
    return decoded


def _rows(database: Database, **fields: Any) -> dict[str, dict[str, Any]]:
    (found,) = Analysis(database).estimates(SURVEY, targets="scales", **fields)["questions"]
    return {entry["choice"]: entry for entry in found["rows"]}


def test_mean_distribution_and_median_of_scores(sqlite: Database) -> None:
    scores = np.array([1, 2, 2.5, 4, 5])
    p = _received(sqlite, _scale(*map(Fraction, ("1", "2", "2.5", "4", "5"))))
    rows = _rows(sqlite)
    assert list(rows) == ["mean", "up to 1", "up to 2", "up to 2.5", "up to 4", "median"]
    assert rows["mean"]["estimate"] == pytest.approx(float(scores @ p), abs=1e-9)
    distribution = [rows[name]["estimate"] for name in list(rows)[1:-1]]
    assert distribution == pytest.approx(list(np.cumsum(p)[:-1]), abs=1e-9)
    # The variance of the mean of 300 decoded scores.
    law = np.array(_grr(5).weights) / (1 << 20)
    values = np.repeat(np.linalg.solve(law, scores), COUNTS)
    assert rows["mean"]["se"] == pytest.approx(values.std(ddof=1) / np.sqrt(300), rel=1e-9)
    assert rows["median"]["estimate"] == scores[np.searchsorted(np.cumsum(p), 0.5)]
    assert rows["median"]["low"] <= rows["median"]["estimate"] <= rows["median"]["high"]
    assert {name: entry["unit"] for name, entry in rows.items()} == {
        name: "number" if name in ("mean", "median") else "share" for name in rows
    }


def test_people_who_do_not_answer_have_no_score(sqlite: Database) -> None:
    asked = _scale(Fraction(0), Fraction(1), Fraction(4), None)
    p = _received(sqlite, asked, (70, 60, 40, 30))
    rows, answered = _rows(sqlite), p[:3].sum()
    assert rows["mean"]["estimate"] == pytest.approx((p[1] + 4 * p[2]) / answered, rel=1e-9)
    assert rows["up to 0"]["estimate"] == pytest.approx(p[0] / answered, rel=1e-9)
    assert rows["mean"]["low"] < rows["mean"]["estimate"] < rows["mean"]["high"]


def test_ranges_have_a_median_and_no_mean(sqlite: Database) -> None:
    p = _received(sqlite, _scale(0, 18, 30, 65, kind="low"), (40, 60, 90, 30))
    rows = _rows(sqlite)
    assert list(rows) == ["up to 17", "up to 29", "up to 64", "median"]
    begin = (0, 18, 30, 65)[int(np.searchsorted(np.cumsum(p), 0.5))]
    assert rows["median"]["estimate"] == begin
    assert rows["median"]["low"] in (0, 18, 30)


def test_equal_scores_are_one_number(sqlite: Database) -> None:
    p = _received(sqlite, _scale(*map(Fraction, (3, 1, 3, 1))), (40, 60, 90, 30))
    rows = _rows(sqlite)
    assert list(rows) == ["mean", "up to 1", "median"]
    assert rows["up to 1"]["estimate"] == pytest.approx(p[1] + p[3], rel=1e-9)


def test_the_client_prints_numbers_as_numbers(sqlite: Database) -> None:
    _received(sqlite, _scale(*map(Fraction, (-1, 0, 1, 2, 30))))
    body = Analysis(sqlite).estimates(SURVEY, targets="scales")
    found = Estimates.from_json(body)
    mean, *_, median = found
    assert mean.value == f"{mean.estimate:.4g}"
    assert "%" not in str(mean)
    assert "%" in str(found.rows[1])
    assert median.interval.split(" to ")[0] in ("−1", "0", "1")


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"weights": "inverse-variance"}, "weights"), ({"percent": "row"}, "percent")],
)
def test_fields_that_scales_do_not_have(
    sqlite: Database, fields: dict[str, Any], field: str
) -> None:
    _received(sqlite, _scale(Fraction(0), Fraction(1)), (70, 60))
    with pytest.raises(InvalidInput) as refused:
        _rows(sqlite, **fields)
    assert refused.value.field == field


def test_a_survey_without_scales(sqlite: Database) -> None:
    _received(
        sqlite,
        Question("mood", {"en": "?"}, (Choice("a", {"en": "a"}), Choice("b", {"en": "b"}))),
        (70, 60),
    )
    with pytest.raises(InvalidInput, match="no question of this survey has scores or ranges"):
        _rows(sqlite)


@pytest.mark.parametrize("method", ["kl", "exact", "score"])
@pytest.mark.parametrize(
    "truth", [(0.5, 0.2, 0.3), (0.3, 0.21, 0.49), (0.1, 0.1, 0.8), (0.26, 0.48, 0.26)]
)
def test_the_interval_of_the_median_covers(
    truth: tuple[float, ...], method: str, full: bool
) -> None:
    """All outcomes of 10 reports (24 with --full): at most 5% miss the median (score: 6%)."""
    n, numbers, mechanism = 24 if full else 10, (1, 2, 3), _grr(3)
    scale = Scale((Fraction(1), Fraction(2), Fraction(3)), are_ranges=False)
    chances = np.array(truth) @ np.array(mechanism.weights) / (1 << 20)
    median = numbers[int(np.searchsorted(np.cumsum(truth), 0.5 - 1e-12))]
    cuts = ((1, 0, 0), (1, 1, 0))
    missed = 0.0
    for first in range(n + 1):
        for second in range(n + 1 - first):
            counts = (first, second, n - first - second)
            found = estimate(mechanism, counts, targets=cuts, methods=(method,))
            ends = [getattr(found.margins, method)[t] for t in range(2)]
            rows = [
                {"estimate": value, "low": low, "high": high, "flags": (), "method": method}
                for value, (low, high) in zip(found.unbiased, ends, strict=True)
            ]
            figures = scale.median(rows)
            assert figures is not None
            assert figures["low"] <= figures["estimate"] <= figures["high"]
            if not figures["low"] <= median <= figures["high"]:
                ways = factorial(n) // prod(map(factorial, counts))
                missed += ways * float(np.prod(chances ** np.array(counts)))
    assert missed <= (0.06 if method == "score" else 0.05)


def test_the_median_of_a_distribution_that_falls() -> None:
    """An estimated distribution may decrease; the median is the first number to reach one half."""
    scale = Scale(tuple(map(Fraction, (1, 2, 3, 4))), are_ranges=False)
    rows = [
        {"estimate": v, "low": v - 0.1, "high": v + 0.1, "flags": (), "method": "score"}
        for v in (0.45, 0.65, 0.55)
    ]
    found = scale.median(rows)
    assert found is not None
    assert [found[name] for name in ("estimate", "low", "high")] == [2.0, 1.0, 4.0]
    rows[2]["low"] = None
    assert (scale.median(rows) or {})["high"] == 4.0
    rows[1]["estimate"] = None
    assert scale.median(rows) is None


def test_numbers_increase() -> None:
    scale = Scale((Fraction(3), None, Fraction(-1)), are_ranges=False)
    assert all(a < b for a, b in pairwise(scale.numbers))
    assert scale.over == (1, 0, 1)
