# SPDX-License-Identifier: Apache-2.0
"""Means, distributions and medians of scales, compared with decoding by hand; coverage by enumeration."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from frankly_analyst import Estimates
from frankly_design.estimate import estimate
from frankly_design.estimate.scales import Scale
from frankly_protocol.audit import Claim, ceiling, level_for
from frankly_protocol.blocks import Block
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.promises import Promise
from frankly_protocol.questions import Choice, Question
from frankly_server.analysis import Analysis, encode
from frankly_server.store import Database

from tests.frankly_protocol.samples import survey
from tests.frankly_server.samples import SURVEY, put, released, row
from tests.refusals import refusal

COUNTS = (60, 65, 55, 65, 55)


def _scale(*numbers: Any, kind: str = "score") -> Question:
    """Return a question with these scores or lower ends of ranges; None makes a choice "no answer"."""
    choices = [
        Choice(f"c{i}", {"en": f"c{i}"}, role="no_answer")
        if v is None
        else replace(Choice(f"c{i}", {"en": f"c{i}"}), **{kind: v})
        for i, v in enumerate(numbers)
    ]
    return Question("mood", {"en": "How is your mood?"}, tuple(choices))


def _grr(answers: int, keep: int = 3) -> DenseMechanism:
    """Return a mechanism that reports the true answer about `keep` times as often as any other."""
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
    # The expected variance is that of the mean of 300 decoded scores.
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
    assert refusal(InvalidInput, _rows, sqlite, **fields).field == field


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
    """Over all outcomes of 10 reports (24 with --full), at most 5% of intervals miss the median or
    a quartile (6% for scores)."""
    n, numbers, mechanism = 24 if full else 10, (1, 2, 3), _grr(3)
    scale = Scale((Fraction(1), Fraction(2), Fraction(3)), are_ranges=False)
    chances = np.array(truth) @ np.array(mechanism.weights) / (1 << 20)
    quantiles = {
        level: numbers[int(np.searchsorted(np.cumsum(truth), level - 1e-12))]
        for level in (0.25, 0.5, 0.75)
    }
    cuts = ((1, 0, 0), (1, 1, 0))
    missed = dict.fromkeys(quantiles, 0.0)
    for first in range(n + 1):
        for second in range(n + 1 - first):
            counts = (first, second, n - first - second)
            found = estimate(mechanism, counts, targets=cuts, methods=(method,))
            ends = [getattr(found.margins, method)[t] for t in range(2)]
            rows = [
                {"estimate": value, "low": low, "high": high, "flags": (), "method": method}
                for value, (low, high) in zip(found.unbiased, ends, strict=True)
            ]
            ways = factorial(n) // prod(map(factorial, counts))
            chance = ways * float(np.prod(chances ** np.array(counts)))
            for level, quantile in quantiles.items():
                figures = scale.quantile(rows, level)
                assert figures is not None
                assert figures["low"] <= figures["estimate"] <= figures["high"]
                if not figures["low"] <= quantile <= figures["high"]:
                    missed[level] += chance
    assert max(missed.values()) <= (0.06 if method == "score" else 0.05), missed


def test_the_median_of_a_distribution_that_falls() -> None:
    """An estimated distribution may decrease; the median is the first number to reach one half."""
    scale = Scale(tuple(map(Fraction, (1, 2, 3, 4))), are_ranges=False)
    rows = [
        {"estimate": v, "low": v - 0.1, "high": v + 0.1, "flags": (), "method": "score"}
        for v in (0.45, 0.65, 0.55)
    ]
    found = scale.quantile(rows, 0.5)
    assert found is not None
    assert [found[name] for name in ("estimate", "low", "high")] == [2.0, 1.0, 4.0]
    rows[2]["low"] = None
    assert (scale.quantile(rows, 0.5) or {})["high"] == 4.0
    rows[1]["estimate"] = None
    assert scale.quantile(rows, 0.5) is None


def test_numbers_increase() -> None:
    scale = Scale((Fraction(3), None, Fraction(-1)), are_ranges=False)
    assert all(a < b for a, b in pairwise(scale.numbers))
    assert scale.over == (1, 0, 1)


def test_quantiles_are_the_requested_ones(sqlite: Database) -> None:
    p = _received(sqlite, _scale(*map(Fraction, (1, 2, 3, 4, 5))))
    rows = _rows(sqlite, quantiles="0.25,.5,0.9")
    assert list(rows)[-3:] == ["quantile 0.25", "median", "quantile 0.9"]
    for name, level in (("quantile 0.25", 0.25), ("median", 0.5), ("quantile 0.9", 0.9)):
        assert rows[name]["estimate"] == 1 + int(np.searchsorted(np.cumsum(p), level))
        assert rows[name]["low"] <= rows[name]["estimate"] <= rows[name]["high"]


ANSWERED = (80, 60, 40, 30)
"""Reports of three choices and "prefer not to say"."""


def test_shares_among_those_who_answered(sqlite: Database) -> None:
    """The shares are ratios with Fieller's intervals, also for a question without numbers."""
    choices = [Choice(f"c{i}", {"en": f"c{i}"}) for i in range(3)]
    asked = Question("mood", {"en": "?"}, (*choices, Choice("no", {"en": "-"}, role="no_answer")))
    p = _received(sqlite, asked, ANSWERED)
    (found,) = Analysis(sqlite).estimates(SURVEY, percent="answered", method="clt")["questions"]
    assert [row["choice"] for row in found["rows"]] == ["c0", "c1", "c2"]
    law = np.array(_grr(4).weights) / (1 << 20)
    D = np.linalg.inv(law)
    d, answered = D.T, np.array([1, 1, 1, 0])
    reports, grid = np.repeat(np.arange(4), ANSWERED), np.linspace(-0.5, 1.5, 4001)
    for x, entry in enumerate(found["rows"]):
        assert entry["estimate"] == pytest.approx(p[x] / p[:3].sum(), rel=1e-9)
        # Fieller's interval contains all r for which |p_x - r·answered| is within 1.96 standard
        # errors.
        scores = (d[x] - grid[:, None] * (answered @ d))[:, reports]
        errors = scores.std(axis=1, ddof=1) / np.sqrt(len(reports))
        inside = grid[np.abs(scores.mean(axis=1)) <= 1.959964 * errors]
        assert entry["low"] == pytest.approx(inside.min(), abs=6e-4)
        assert entry["high"] == pytest.approx(inside.max(), abs=6e-4)


@pytest.mark.parametrize("role", [None, "not_applicable"])
def test_a_net_score_is_about_those_who_answered(sqlite: Database, role: Any) -> None:
    choices = [Choice(f"c{i}", {"en": f"c{i}"}) for i in range(3)]
    asked = Question("mood", {"en": "?"}, (*choices, Choice("no", {"en": "-"}, role=role)))
    p = _received(sqlite, asked, ANSWERED)
    net = {"mood": {"net": {"of": {"c0": 1, "c2": -1}, "over": "answered"}}}
    body = Analysis(sqlite).estimates(SURVEY, targets=net, method="kl")
    (row_,) = body["questions"][0]["rows"]
    answered = p[:3].sum() if role else 1
    assert row_["estimate"] == pytest.approx((p[0] - p[2]) / answered, rel=1e-9)
    # Without a role nobody is left out, so the score is a difference with the requested method.
    assert (row_["method"] == "kl") or role
    assert body["inputs"]["request"]["targets"] == {
        "mood": {"net": {"of": {"c0": "1", "c2": "-1"}, "over": "answered"}}
    }
    assert Analysis(sqlite).replay(body) == encode(body)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"quantiles": "0.5"}, "quantiles"),
        ({"targets": "scales", "quantiles": "0.5,1.5"}, "quantiles"),
        ({"targets": "scales", "quantiles": "0.5,0.50"}, "quantiles"),
        ({"targets": "scales", "quantiles": "0,0.5"}, "quantiles"),
        ({"targets": "scales", "quantiles": ""}, "quantiles"),
        ({"targets": "scales", "quantiles": 0.5}, "quantiles"),
        ({"targets": ["mood"], "percent": "answered"}, "percent"),
        ({"percent": "answered", "weights": "inverse-variance"}, "weights"),
        ({"targets": {"mood": {"a": {"of": {"c0": 1}, "over": "everyone"}}}}, "targets.mood.a"),
    ],
)
def test_requests_about_scales_that_cannot_be(
    sqlite: Database, fields: dict[str, Any], field: str
) -> None:
    _received(sqlite, _scale(Fraction(0), Fraction(1)), (70, 60))
    assert refusal(InvalidInput, Analysis(sqlite).estimates, SURVEY, **fields).field == field
