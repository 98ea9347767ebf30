# SPDX-License-Identifier: Apache-2.0
"""The level of a whole report, with the probabilities that it bounds computed by brute force."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from frankly_protocol.audit import Claim, ceiling, form_level, ledger_total, worst
from frankly_protocol.promises import Promise
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.samples import ldp_block, lip_block
from tests.frankly_protocol.test_dense import mechanisms
from tests.frankly_protocol.test_notions import joints


@dataclass(frozen=True)
class Entry:
    id: str
    promises: tuple[Promise, ...]
    ceiling: Fraction | None


def lip(block: str, secret: str, level: int | Fraction, ceiling: int | Fraction | None) -> Entry:
    claim = Claim("lip", Fraction(level).as_integer_ratio(), ((1, 0), (0, 1)))
    return Entry(block, (Promise(claim, None, secret),), None if ceiling is None else Fraction(ceiling))


def dp(block: str, level: int, delta: tuple[int, int], ceiling: Fraction | None) -> Entry:
    return Entry(block, (Promise(Claim("dp", (level, 1), delta=delta)),), ceiling)


FREE = Entry("free", (Promise(Claim("ldp", (2, 1))),), Fraction(3, 2))
LEAKY = lip("leaky", "s", 5, None)
CAPPED = lip("capped", "s", 5, 7)
OTHER = lip("other", "t", 2, 4)


def test_prior_free_blocks_add_by_their_ceilings() -> None:
    assert form_level([FREE, FREE]).level == Fraction(9, 4)


def test_one_prior_based_block_counts_its_level_even_with_an_infinite_ceiling() -> None:
    form = form_level([FREE, LEAKY])
    assert (form.level, form.ceiling) == (Fraction(15, 2), None)
    assert [line.counted_by for line in form.lines] == ["ceiling", "level"]


def test_a_second_block_about_the_same_secret_counts_its_ceiling() -> None:
    assert form_level([LEAKY, LEAKY]).level is None
    assert form_level([LEAKY, CAPPED]).level == 35


def test_each_secret_is_bounded_and_the_dearest_is_what_the_form_costs() -> None:
    # About s: 5 · 4 = 20; about t: 2 · 7 = 14.
    assert form_level([CAPPED, OTHER]).level == 20


def test_across_documents_every_block_counts_its_ceiling() -> None:
    assert ledger_total([form_level([LEAKY])]) == 5
    assert ledger_total([form_level([LEAKY]), form_level([FREE])]) is None
    assert ledger_total([form_level([CAPPED]), form_level([FREE])]) == Fraction(21, 2)


def test_real_blocks_of_a_document_are_what_the_ledger_reads() -> None:
    free, based = ldp_block(), lip_block()
    form = form_level([free, based])
    assert free.ceiling is not None
    assert based.ratio is not None
    assert form.level == free.ceiling * based.ratio


@given(mechanisms(bits=5), mechanisms(bits=5), st.data())
def test_a_form_never_leaks_more_about_its_secret_than_the_ledger_says(first, second, data) -> None:  # type: ignore[no-untyped-def]
    """Joint distributions of (secret, answer 1, answer 2) with any correlation: LIP of the pair ≤ level · ceiling."""
    joint = data.draw(joints(first.answers * second.answers))
    based = tuple(
        tuple(sum(row[i * second.answers : (i + 1) * second.answers]) for i in range(first.answers)) for row in joint
    )
    level = worst(first, Claim("lip", (1, 1), based)).ratio
    bound = form_level(
        [lip("a", "s", level or 1, ceiling(first)), Entry("b", (Promise(Claim("ldp", (1, 1))),), ceiling(second))]
    ).level
    if level is None or bound is None:
        return
    total = sum(map(sum, joint))
    for y1, y2 in product(range(first.reports), range(second.reports)):
        sent = [
            first.weights[i][y1] * second.weights[j][y2] for i in range(first.answers) for j in range(second.answers)
        ]
        average = Fraction(sum(w * n for row in joint for w, n in zip(sent, row, strict=True)), total)
        for row in joint:
            given_secret = Fraction(sum(w * n for w, n in zip(sent, row, strict=True)), sum(row))
            assert given_secret <= bound * average
            assert average <= bound * given_secret


def secret_claim(notion: str, **data: Any) -> Entry:
    claim = Claim(notion, data.pop("level", (5, 1)), joint=data.pop("joint", ((1, 0), (0, 1))), **data)
    return Entry(notion, (Promise(claim, None, "s"),), None)


UNITS = [
    (secret_claim("secret-ldp"), 5, 5),
    (secret_claim("lip"), 5, 25),
    (secret_claim("srlip", attributes=(2,)), 5, 25),
    (secret_claim("alip", low_level=(7, 1)), 7, 35),
    (secret_claim("alip", low_level=None), None, None),
    (secret_claim("alip", level=None, low_level=(7, 1)), None, None),
    (secret_claim("rldp", joint=None, lower_bounds=(((0, 1),), ((0, 1),))), 5, 5),
    (secret_claim("dpv", level=(1, 2), sensitive=0), None, None),
]


@pytest.mark.parametrize(("entry", "level", "odds"), UNITS, ids=range(len(UNITS)))
def test_sums_keep_the_notions_unit_and_say_what_that_is_in_odds(entry: Entry, level: Any, odds: Any) -> None:
    form = form_level([entry, FREE])
    assert form.level == (None if level is None else level * Fraction(3, 2))
    assert form.odds == (None if odds is None else odds * Fraction(3, 2))
    assert form.ceiling is None


@given(mechanisms(bits=5), st.data())
def test_the_units_convert_as_the_ledger_says(mechanism, data) -> None:  # type: ignore[no-untyped-def]
    joint = data.draw(joints(mechanism.answers))
    levels = worst(mechanism, Claim("alip", (1, 1), joint, low_level=(1, 1))).needed
    odds, lift = (
        worst(mechanism, Claim("secret-ldp", (1, 1), joint)).ratio,
        worst(mechanism, Claim("lip", (1, 1), joint)),
    )
    if odds is None:
        return
    assert levels["level"] is not None
    assert levels["low_level"] is not None
    assert lift.ratio is not None
    assert lift.ratio <= odds <= levels["level"] * levels["low_level"] <= lift.ratio**2


def test_under_one_prior_the_least_promise_counts_and_of_several_priors_the_largest() -> None:
    one, two = ((1, 0), (0, 1)), ((2, 1), (1, 2))
    both = Entry(
        "b", (Promise(Claim("lip", (3, 1), one), None, "s"), Promise(Claim("secret-ldp", (4, 1), one), None, "s")), None
    )
    assert (form_level([both]).level, form_level([both]).odds) == (3, 4)
    apart = Entry(
        "b", (Promise(Claim("lip", (3, 1), one), None, "s"), Promise(Claim("lip", (6, 1), two), None, "s")), None
    )
    assert form_level([apart]).level == 6


def test_a_block_for_another_secret_counts_its_ceiling_and_so_does_the_same_one_again() -> None:
    assert form_level([LEAKY, OTHER]).level is None  # about t, nothing bounds what the leaky block says
    assert form_level([CAPPED, CAPPED]).level == 35
    assert ledger_total([form_level([CAPPED]), form_level([CAPPED])]) == 49


def test_approximate_levels_add_with_their_deltas_as_far_as_the_cap_goes() -> None:
    first, second = dp("a", 2, (1, 100), None), dp("b", 3, (1, 50), Fraction(10))
    assert form_level([first, second]).level is None
    assert form_level([first, second], Fraction(1, 100)).level == 20
    whole = form_level([first, second], Fraction(3, 100))
    assert (whole.level, whole.delta) == (6, Fraction(3, 100))
    assert [line.counted_by for line in whole.lines] == ["dp", "dp"]
    assert form_level([second], Fraction(1)).level == 3
    assert form_level([dp("c", 30, (1, 50), Fraction(10))], Fraction(1)).level == 10
    beside = form_level([LEAKY, first], Fraction(1, 10))
    assert (beside.level, beside.delta) == (10, Fraction(1, 100))
    assert ledger_total([whole, whole], Fraction(5, 100)) is None
    assert ledger_total([whole, whole], Fraction(6, 100)) == 36
    assert ledger_total([whole, form_level([FREE])], Fraction(3, 100)) == 9
    assert ledger_total([whole]) is None


def test_a_bound_on_a_posterior_multiplies_and_is_no_level() -> None:
    entry = secret_claim("dpv", level=(1, 4), sensitive=1)
    form = form_level([entry, FREE, FREE])
    assert [(p.secret, p.sensitive, p.bound) for p in form.posteriors] == [("s", 1, Fraction(9, 16))]
    assert form_level([entry, LEAKY]).posteriors[0].bound == 1
    assert form_level([entry, OTHER, OTHER]).posteriors[0].bound == 1
