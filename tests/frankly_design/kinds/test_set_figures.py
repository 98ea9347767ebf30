# SPDX-License-Identifier: Apache-2.0
"""Information and Hamming error of set mechanisms, compared with tables and closed forms."""

import math
from fractions import Fraction

import pytest
from frankly_design.families.sets import ldp_subsets
from frankly_design.kinds.registry import kind_of
from frankly_design.kinds.set_figures import information_and_hamming
from frankly_design.kinds.set_law import SetMechanism
from frankly_design.notions.prior import Prior
from frankly_design.tables import objectives
from frankly_protocol.mechanisms import SubsetMechanism, UnaryMechanism

BITS = 48
ONE = 1 << BITS
MECHANISMS: list[SetMechanism] = [
    SubsetMechanism(BITS, 5, 2, 3 * ONE // 4),
    SubsetMechanism(BITS, 6, 1, ONE),
    UnaryMechanism(BITS, 5, ONE // 2, ONE // 5),
    UnaryMechanism(BITS, 6, ONE, 1),
    UnaryMechanism(BITS, 4, 7 * ONE // 8, ONE // 8),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("counts", [None, [1, 9, 30, 4, 2, 60]])
def test_figures_equal_those_of_the_table(
    mechanism: SetMechanism, counts: list[int] | None
) -> None:
    prior = Prior.from_rows([([1] * 6 if counts is None else counts)[: mechanism.answers]])
    rows = kind_of(mechanism).rows
    assert rows is not None
    information, hamming = information_and_hamming(kind_of(mechanism), prior.shares)
    assert information == pytest.approx(objectives.information(rows, prior.shares), abs=1e-12)
    assert hamming == pytest.approx(objectives.hamming(rows, prior.shares), abs=1e-12)


def test_many_equal_answers() -> None:
    """In subset selection of 1,000 answers, a set contains the truth with probability kE/(kE + a − k)."""
    a, k, E = 1000, 269, Fraction(27, 10)
    information, hamming = information_and_hamming(kind_of(ldp_subsets(a, k, E)), [1] * a)
    inside = float(k * E / (k * E + a - k))
    expected = inside * math.log(inside * a / k) + (1 - inside) * math.log(
        (1 - inside) * a / (a - k)
    )
    assert information == pytest.approx(expected, rel=1e-9)
    assert hamming == pytest.approx(1 - inside / k, rel=1e-9)


def test_figures_under_an_uneven_prior_are_computed_for_at_most_sixteen_answers() -> None:
    unary = UnaryMechanism(BITS, 16, ONE // 2, ONE // 5)
    information, _ = information_and_hamming(kind_of(unary), range(1, 17))
    assert 0 < information < math.log(16)
    more = UnaryMechanism(BITS, 17, ONE // 2, ONE // 5)
    assert math.isnan(information_and_hamming(kind_of(more), range(1, 18))[0])
