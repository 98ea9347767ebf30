# SPDX-License-Identifier: Apache-2.0
"""Equivalence of groups (docs/maths/comparisons.md, claim 14): two one-sided tests, by hand and by enumeration."""

import json
from dataclasses import replace
from math import comb, sqrt
from typing import Any, Final

import numpy as np
import pytest
from frankly_analyst import Comparisons
from frankly_design.estimate.effects import equivalence
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.questions import Wanted
from frankly_server.analysis.request import Request
from scipy import stats

from tests.frankly_server.analysis.samples import (
    block_about,
    document_of,
    grr,
    question,
    received,
    result,
)
from tests.refusals import code_and_field

OPEN: Final = DenseMechanism(4, ((16, 0), (0, 16)))
COUNTS: Final = {"c0": (80, 40, 30), "c1": (70, 45, 42), "c2": (75, 35, 40)}
WAYS: Final = ("first", "mean", "all", '{"c0": 1, "c1": -0.5, "c2": -0.5}')


def compared(**asked: Any) -> dict[str, Any]:
    region = question("region", 3, score=(1, 2, 4))
    document = document_of((block_about(grr(3, 2), question("q", 3, score=(1, 2, 5))),), (region,))
    body = result(received(document, COUNTS), **{"by": "region", "compare": "all"} | asked)
    (found,) = body["comparisons"]
    return dict(found) | {"body": body}


@pytest.mark.parametrize("margin", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("compare", WAYS)
def test_it_is_the_larger_of_two_one_sided_tests(compare: str, margin: float) -> None:
    rows = compared(compare=compare, equivalence=margin)["rows"]
    assert rows
    for row in rows:
        d, se = row["difference"], row["se"]
        not_below = stats.norm.sf((d + margin) / se)  # of d ≤ −margin
        not_above = stats.norm.cdf((d - margin) / se)  # of d ≥ margin
        assert row["p_equivalence"] == pytest.approx(max(not_below, not_above), rel=1e-9)


def test_it_agrees_with_the_interval_of_twice_the_level() -> None:
    """p ≤ α if and only if the normal interval of level 1 − 2α lies within ±margin."""
    seen = set()
    for margin in np.arange(0.01, 0.6, 0.02):
        rows = compared(equivalence=float(margin), level=0.9, method="clt")["rows"]
        for row in rows:
            lies_within = -margin <= row["low"] and row["high"] <= margin
            assert (row["p_equivalence"] <= 0.05) == lies_within
            seen.add(lies_within)
    assert seen == {True, False}


@pytest.mark.parametrize(("p", "q"), [(0.6, 0.3), (0.3, 0.6)])
def test_of_groups_that_just_differ_one_in_twenty_is_called_alike(p: float, q: float) -> None:
    """Its size, by every outcome of 60 open answers in each of two groups whose shares differ by the margin."""
    n, rejected = 60, 0.0
    chances = [
        [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)] for share in (p, q)
    ]
    for j, first in enumerate(chances[0]):
        for k, second in enumerate(chances[1]):
            variance = sum(x / n * (1 - x / n) / (n - 1) for x in (j, k))
            if variance and equivalence(j / n - k / n, sqrt(variance), 0.3) <= 0.05:
                rejected += first * second
    assert 0.03 < rejected < 0.06


def test_the_standard_error_of_the_enumeration_is_that_of_the_rows() -> None:
    document = document_of((block_about(OPEN, question("q", 2)),), (question("region", 2),))
    counts = {"c0": (24, 36), "c1": (42, 18)}
    asked = {"by": "region", "compare": "first", "equivalence": 0.3}
    ((found),) = result(received(document, counts), **asked)["comparisons"]
    row = found["rows"][1]
    se = sqrt((0.6 * 0.4 + 0.3 * 0.7) / 59)
    assert row["se"] == pytest.approx(se)
    assert row["p_equivalence"] == pytest.approx(0.5)
    # Reports that are all equal have a standard error of 0, which would make every difference certain.
    equal = {"c0": (60, 0), "c1": (60, 0)}
    ((found),) = result(received(document, equal), **asked)["comparisons"]
    assert [row["p_equivalence"] for row in found["rows"]] == [None, None]


def test_means_have_their_own_unit_and_ratios_their_standard_error() -> None:
    rows = compared(targets="scales", equivalence=0.5)["rows"]
    mean = next(row for row in rows if row["choice"] == "mean")
    expected = stats.norm.sf((0.5 - abs(mean["difference"])) / mean["se"])
    assert mean["p_equivalence"] == pytest.approx(expected)
    ratio = {"q": {"part": {"of": {"c1": 1}, "over": {"c0": 1, "c1": 1}}}}
    for row in compared(targets=ratio, equivalence=0.3)["rows"]:
        expected = stats.norm.sf((0.3 - abs(row["difference"])) / row["se"])
        assert row["p_equivalence"] == pytest.approx(expected)


def test_slopes_have_none_and_without_the_field_nothing_has() -> None:
    with_margin, without = compared(equivalence=0.1), compared()
    assert {row["p_equivalence"] for row in with_margin["trend"]["rows"]} == {None}
    assert {row["p_equivalence"] for row in without["rows"]} == {None}
    # Nothing else depends on it.
    for row, other in zip(with_margin["rows"], without["rows"], strict=True):
        assert row | {"p_equivalence": None} == other


def test_it_is_printed_only_if_asked_for() -> None:
    asked, usual = (
        Comparisons.from_json(compared(compare="first", **more)["body"])
        for more in ({"equivalence": 0.25}, {})
    )
    text = str(asked)
    assert "equivalence p" in text
    assert "q: the test of equivalence regards differences up to 0.25 as none" in text
    assert "equivalence p" in str(asked.rows[0])
    assert "<th>equivalence</th>" in asked._repr_html_()
    assert asked._repr_html_().count("<td>equivalence p") == 6
    for shown in (str(usual), usual._repr_html_(), str(usual.rows[0])):
        assert "equivalence" not in shown
    header = usual.to_csv().splitlines()[0].split(",")
    assert header[header.index("p_holm") + 1] == "p_equivalence"


REFUSED: Final[dict[str, tuple[dict[str, Any], tuple[str, str]]]] = {
    "zero": ({"equivalence": 0}, ("field_type", "equivalence")),
    "below zero": ({"equivalence": -0.1}, ("field_type", "equivalence")),
    "not a number": ({"equivalence": float("nan")}, ("field_type", "equivalence")),
    "infinite": ({"equivalence": float("inf")}, ("field_type", "equivalence")),
    "huge": ({"equivalence": 10**400}, ("field_type", "equivalence")),
    "above the limit": ({"equivalence": 1e9, "targets": "scales"}, ("field_type", "equivalence")),
    "all of a share": ({"equivalence": 1}, ("field_type", "equivalence")),
    "points": ({"equivalence": 5, "targets": "shares"}, ("field_type", "equivalence")),
    "points of a combination": (
        {"equivalence": 5, "targets": {"q": {"x": {"c0": 1}, "mean": {"c0": 1, "c1": 2, "c2": 5}}}},
        ("field_type", "equivalence"),
    ),
    "points of those who answered": (
        {"equivalence": 5, "percent": "answered", "targets": "shares"},
        ("field_type", "equivalence"),
    ),
    "a text": ({"equivalence": "0.1"}, ("field_type", "equivalence")),
    "true": ({"equivalence": True}, ("field_type", "equivalence")),
    "a list": ({"equivalence": [0.1]}, ("field_type", "equivalence")),
    "no comparison": ({"equivalence": 0.1, "compare": None}, ("unsupported", "equivalence")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_differences_are_refused(name: str) -> None:
    fields, expected = REFUSED[name]
    assert code_and_field(InvalidInput, compared, **fields) == expected


def test_the_errors_say_the_unit_and_the_limit() -> None:
    with pytest.raises(InvalidInput, match=r"0\.05 is 5 points of a share"):
        compared(equivalence=5)
    with pytest.raises(InvalidInput, match="below 1,000,000,000"):
        compared(equivalence=1e9)


def test_margins_of_means_may_be_large_and_are_not_those_of_the_shares_beside_them() -> None:
    rows = {
        row["choice"]: row
        for row in compared(compare='{"c0": 1, "c1": -1}', targets="scales", equivalence=1.5)[
            "rows"
        ]
    }
    mean = rows["mean"]
    expected = stats.norm.sf((1.5 - abs(mean["difference"])) / mean["se"])
    assert mean["p_equivalence"] == pytest.approx(expected)
    shares = [row["p_equivalence"] for name, row in rows.items() if name != "mean"]
    assert shares
    assert set(shares) == {None}
    # Combinations with other weights than those of shares, and ratios, which have no limit.
    for target in ({"c0": 1, "c1": 2, "c2": 5}, {"of": {"c0": 1}, "over": {"c1": 1}}):
        found = compared(targets={"q": {"x": target}}, equivalence=1.5)["rows"]
        assert all(row["p_equivalence"] is not None for row in found)


def test_means_and_shares_of_two_questions_need_a_request_each() -> None:
    """A margin of 5 years is none of the shares of the other question."""
    mean = replace(question("q", 3, score=(1, 2, 5)), wanted=Wanted("mean"))
    document = document_of(
        (block_about(grr(3, 2), mean), block_about(grr(3, 2), question("r", 3))),
        (question("region", 3),),
    )
    source = received(document, COUNTS)
    asked = {"by": "region", "compare": "all", "equivalence": 2}
    assert code_and_field(InvalidInput, result, source, **asked) == ("field_type", "equivalence")
    (found,) = result(source, **asked | {"targets": "scales"})["comparisons"]
    assert found["rows"][0]["p_equivalence"] is not None


def test_a_stored_request_keeps_it() -> None:
    request = Request.from_json({"by": "region", "compare": "all", "equivalence": 0.05})
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request
