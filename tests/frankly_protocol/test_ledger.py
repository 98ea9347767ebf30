# SPDX-License-Identifier: Apache-2.0
"""The one rule of what adds up, with the probabilities it bounds computed by brute force."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from frankly_protocol.audit import Claim, ceiling, form_level, ledger_total, worst
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.samples import ldp_block, lip_block
from tests.frankly_protocol.test_dense import mechanisms
from tests.frankly_protocol.test_notions import joints


@dataclass(frozen=True)
class Entry:
    id: str
    secret: str | None
    ratio: Fraction
    ceiling: Fraction | None


FREE = Entry("free", None, Fraction(2), Fraction(3, 2))
LEAKY = Entry("leaky", "s", Fraction(5), None)
CAPPED = Entry("capped", "s", Fraction(5), Fraction(7))
OTHER = Entry("other", "t", Fraction(2), Fraction(4))


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
    assert form.level == free.ceiling * based.ratio if free.ceiling else False


@given(mechanisms(bits=5), mechanisms(bits=5), st.data())
def test_a_form_never_leaks_more_about_its_secret_than_the_ledger_says(first, second, data) -> None:  # type: ignore[no-untyped-def]
    """Joint distributions of (secret, answer 1, answer 2) with any correlation: LIP of the pair ≤ level · ceiling."""
    joint = data.draw(joints(first.answers * second.answers))
    based = tuple(
        tuple(sum(row[i * second.answers : (i + 1) * second.answers]) for i in range(first.answers)) for row in joint
    )
    level = worst(first, Claim("lip", (1, 1), based)).ratio
    bound = form_level(
        [Entry("a", "s", level or Fraction(1), ceiling(first)), Entry("b", None, Fraction(1), ceiling(second))]
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
