# SPDX-License-Identifier: Apache-2.0
"""Denial (docs/maths/validity.md, claims 22 to 25), against every truth of a few people, and its columns."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any, Final

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.analysis.request import Request

from tests.frankly_server.analysis.samples import (
    block_about,
    document_of,
    grr,
    question,
    received,
    result,
)
from tests.frankly_server.analysis.test_random_answers import KEEP, source

PEOPLE: Final = 6
ROLES: Final = [None, None, None, "no_answer"]
NAMES: Final = ("denied_estimate", "denied_high")


def truths() -> Iterator[tuple[int, int, int]]:
    """Yield how many of a few people a choice concerns, how many of them deny it, and by a refusal."""
    for concerned in range(PEOPLE + 1):
        for deny in range(concerned + 1):
            for refuse in range(deny + 1):
                yield concerned, deny, refuse


def bounds(share: Fraction, denial: Fraction) -> tuple[Fraction, Fraction]:
    """The two shares of claim 22."""
    return share, share / (1 - denial)


def test_a_denied_share_is_between_its_bounds() -> None:
    """Claim 22, of every truth; both bounds are reached."""
    reached = set[str]()
    for concerned, deny, _ in truths():
        if deny == concerned:
            continue  # nobody says so, whatever is true: the reason why 1 is refused
        true, said = Fraction(concerned, PEOPLE), Fraction(concerned - deny, PEOPLE)
        exact = Fraction(deny, concerned)
        for denial in (exact, (1 + exact) / 2):
            least, most = bounds(said, denial)
            assert least <= true <= min(Fraction(1), most)
            # Their answers are counted for the other choices.
            assert true - said <= said * denial / (1 - denial)
        assert bounds(said, exact)[1] == true
        # Each end is that of one truth: nobody denies, or as many as assumed.
        reached |= {"least"} if said == true else {"most"}
    assert reached == {"least", "most"}
    # More who deny than assumed are not covered.
    assert Fraction(4, PEOPLE) > bounds(Fraction(1, PEOPLE), Fraction(1, 2))[1]


def test_a_denied_share_among_those_who_answered_is_between_its_bounds() -> None:
    """Claim 22, where who denies may answer another choice or refuse, beside people who do neither."""
    for (concerned, deny, refuse), others in product(truths(), range(3)):
        if deny == concerned:
            continue
        # Among the people who would answer, if nobody denied.
        true = Fraction(concerned, concerned + others)
        said = Fraction(concerned - deny, concerned + others - refuse)
        least, most = bounds(said, Fraction(deny, concerned))
        assert least <= true <= most
        assert refuse or true == most


def test_the_share_if_so_many_deny_is_estimated_without_bias() -> None:
    """Claim 23: the mean over every possible set of reports, of the analysis."""
    n, denial = 20, Fraction(1, 5)
    document = document_of((block_about(KEEP, question("q", 2)),))
    rows = [
        result(received(document, {"": (n - yes, yes)}), targets="shares", denial=0.2)["questions"][
            0
        ]["rows"][1]
        for yes in range(n + 1)
    ]
    for true in (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1)):
        said = true * (1 - denial)
        chance = Fraction(1, 4) + said / 2
        law = [comb(n, yes) * chance**yes * (1 - chance) ** (n - yes) for yes in range(n + 1)]
        mean = sum(float(p) * row["denied_estimate"] for p, row in zip(law, rows, strict=True))
        assert mean == pytest.approx(float(true), abs=1e-12)
        cut = sum(
            float(p) * max(row["estimate"], row["denied_estimate"])
            for p, row in zip(law, rows, strict=True)
        )
        # The larger of the two, where an estimate is negative, would be too large on average.
        assert cut > float(true) + 1e-6 or true == 1


def test_a_false_no_has_the_law_of_a_true_one() -> None:
    """Claim 25: reports of a device cannot tell them apart, those of a draw before the answer can."""
    # Equally many say yes: 1/4 are concerned and nobody denies, or 1/2 are and half of them deny.
    worlds = [(Fraction(1, 4), Fraction(0)), (Fraction(1, 2), Fraction(1, 2))]
    for epsilon in (0.5, 1, 4):
        chances = [[Fraction(w) for w in row] for row in grr(2, epsilon).weights]
        laws = {
            tuple(said * yes + (1 - said) * no for no, yes in zip(*chances, strict=True))
            for share, deny in worlds
            for said in [share * (1 - deny)]
        }
        assert len(laws) == 1

    # Forced response: a die, thrown first, tells some people to say yes, and who denies says no
    # to that as well. Two samples with other dice then differ between these worlds.
    def says_yes(forced: Fraction, share: Fraction, deny: Fraction) -> Fraction:
        return (1 - share * deny) * forced + (1 - forced) * share * (1 - deny)

    dice = Fraction(1, 6), Fraction(1, 3)
    of_dice = [tuple(says_yes(forced, *world) for forced in dice) for world in worlds]
    assert of_dice[0] != of_dice[1]
    # And determine who denies: the differences of the dice are (1 − πx) − π(1 − x) = 1 − π.
    for (share, _), (first, second) in zip(worlds, of_dice, strict=True):
        assert 1 - (second - first) / (dice[1] - dice[0]) == share


# Rows.


def rows(**asked: Any) -> dict[str, dict[str, Any]]:
    """Return rows of a survey with two questions, the first with a refusal and scores, by choice."""
    a = question("a", 4, role=ROLES, score=[Fraction(0), Fraction(1), Fraction(3), None])
    both = document_of((block_about(grr(8, 2), a, question("b", 2)),))
    counts = (210, 30, 25, 80, 120, 45, 35, 60)
    found = result(received(both, {"": counts}), **asked)
    return {
        f"{one['id']}:{row['choice']}": row for one in found["questions"] for row in one["rows"]
    }


def is_right(row: dict[str, Any], denial: float) -> bool:
    value, high = row["estimate"] / (1 - denial), row["high"]
    wanted = max(high, min(1.0, high / (1 - denial)))
    return [row[name] for name in NAMES] == pytest.approx([value, wanted])


BOUNDED: Final[dict[str, dict[str, Any]]] = {
    "shares": {"targets": "shares"},
    "cells": {"targets": ["a", "b"]},
    "answered": {"targets": "shares", "percent": "answered"},
    "sets": {"targets": {"a": {"one or two": {"c1": 1, "c2": 1}}}},
    "sets of those who answered": {
        "targets": {"a": {"two": {"of": {"c1": 1, "c2": 1}, "over": "answered"}}}
    },
    "sets of cells": {"targets": {"a,b": {"x": {"c1,c0": 1, "c2,c1": 1}}}},
}
UNBOUNDED: Final[dict[str, dict[str, Any]]] = {
    "differences": {"targets": {"a": {"net": {"c1": 1, "c2": -1}}}},
    "halves": {"targets": {"a": {"half": {"c1": 0.5}}}},
    "all": {"targets": {"b": {"all": {"c0": 1, "c1": 1}, "none": {"c0": 0}}}},
    "rows": {"targets": ["a", "b"], "percent": "row"},
    "columns": {"targets": ["a", "b"], "percent": "column"},
    "other ratios": {"targets": {"a": {"r": {"of": {"c1": 1}, "over": {"c0": 1, "c1": 1}}}}},
    "refusals of those who answered": {
        "targets": {"a": {"r": {"of": {"c1": 1, "c3": 1}, "over": "answered"}}}
    },
    "all who answered": {"targets": {"a": {"all": {"c0": 1, "c1": 1, "c2": 1}}}},
    "all of those who answered": {
        "targets": {"a": {"r": {"of": {"c0": 1, "c1": 1, "c2": 1}, "over": "answered"}}}
    },
}


@pytest.mark.parametrize("denial", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("name", BOUNDED)
def test_shares_have_the_columns(name: str, denial: float) -> None:
    found = rows(**BOUNDED[name], denial=denial)
    # A choice with a role, such as a refusal, concerns nobody.
    answered = [row for choice, row in found.items() if "c3" not in choice]
    assert answered
    assert all(is_right(row, denial) for row in answered)
    assert all(
        row[column] is None for row in found.values() if row not in answered for column in NAMES
    )
    without = rows(**BOUNDED[name])
    assert {row[column] for row in without.values() for column in NAMES} == {None}
    # Nothing else depends on it.
    for choice, row in found.items():
        assert row | dict.fromkeys(NAMES) == without[choice]


@pytest.mark.parametrize("name", UNBOUNDED)
def test_other_figures_have_none(name: str) -> None:
    found = rows(**UNBOUNDED[name], denial=0.2)
    assert found
    assert {row[column] for row in found.values() for column in NAMES} == {None}


def test_of_a_scale_the_distribution_has_them() -> None:
    """The share up to a score is that of a set of choices; the mean and the median are not shares."""
    found = rows(targets="scales", denial=0.2)
    has = {name for name, row in found.items() if row["denied_estimate"] is not None}
    assert {name for name in found if name.startswith("a:up to")} == has
    assert {"a:mean", "a:median"} <= found.keys() - has
    # A mean of the scores 0 and 1 is not called a share either.
    q = question("q", 2, score=[Fraction(0), Fraction(1)])
    both = document_of((block_about(KEEP, q),))
    (one,) = result(received(both, {"": (60, 40)}), targets="scales", denial=0.2)["questions"]
    assert one["rows"][0]["choice"] == "mean"
    assert one["rows"][0]["denied_estimate"] is None


def test_corrected_figures_are_those_denied() -> None:
    alone = source({"": ((1200, 800), (150, False), (0, 0))})
    (one,) = result(alone, denial=0.25)["questions"]
    for row in one["rows"]:
        assert row["corrected"] != row["estimate"]
        assert row["denied_estimate"] == pytest.approx(row["corrected"] / 0.75)
        assert row["denied_high"] == pytest.approx(min(1, row["corrected_high"] / 0.75))


# Requests.

REFUSED: Final = (
    -0.1, Decimal("-1E-400"), Decimal("0.99999999999999999999"), 1, 1.0, 1.5, 10**400, True, "0.2", [0.2],
    float("nan"), float("inf"),
)  # fmt: skip
"""The second and third round to 0 and 1 as binary numbers."""


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_a_share_outside_0_to_below_1_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        Request.from_json({"denial": value})
    assert (refused.value.field, refused.value.code) == ("denial", "field_type")


def test_shares_are_read_and_written() -> None:
    for value in (0, 0.0, 0.2, Decimal("0.2"), 0.999):
        request = Request.from_json({"denial": value})
        assert request.denial == float(value)
        assert Request.from_json(request.to_json()) == request
    # A result of before has no such field.
    before = {name: value for name, value in Request().to_json().items() if name != "denial"}
    assert Request.from_json(before) == Request()
