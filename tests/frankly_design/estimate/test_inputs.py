# SPDX-License-Identifier: Apache-2.0
"""Checks of the estimator's input: counts of a product by symbol, and design priors."""

from itertools import product

import pytest
from frankly_design.estimate import estimate
from frankly_design.estimate.inputs import checked_prior
from frankly_design.kinds.registry import estimable_of
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

from tests.refusals import refusal

WIDE, NARROW = (
    DenseMechanism(4, ((10, 4, 2), (3, 6, 7))),
    DenseMechanism(4, ((9, 4, 2, 1), (2, 9, 4, 1), (1, 3, 4, 8))),
)


def test_counts_by_symbol_are_those_in_row_major_order() -> None:
    """The second factor's symbol varies fastest; an omitted symbol has no reports."""
    for first, second in ((WIDE, NARROW), (NARROW, WIDE)):
        both = ProductMechanism((first, second))
        symbols = list(product(range(first.reports), range(second.reports)))
        in_order = [(7 * i) % 11 for i in range(len(symbols))]
        by_symbol: dict[tuple[int, ...], int] = {
            symbol: n for symbol, n in zip(symbols, in_order, strict=True) if n
        }
        assert 0 in in_order
        assert estimate(both, by_symbol, methods=()) == estimate(both, in_order, methods=())


def test_a_design_prior_may_give_some_answers_no_chance_but_not_all() -> None:
    assert checked_prior(WIDE, [0, 3]) == (0, 3)
    for prior in ([0, 0], [-1, 3], [True, 3], [1.0, 3]):
        with pytest.raises(InvalidInput) as caught:
            checked_prior(WIDE, prior)  # type: ignore[arg-type]
        assert (caught.value.code, caught.value.field) == ("prior_value", "design_prior")
    assert refusal(InvalidInput, checked_prior, WIDE, [1, 1, 1]).code == "prior_shape"


def test_more_than_a_million_joint_reports_are_refused_before_a_list_of_them_is_made() -> None:
    row = (1,) * 128
    factor = DenseMechanism(7, (row, row))
    limit, above = (ProductMechanism((factor, factor, DenseMechanism(7, ((128 - n + 1, *(1,) * (n - 1)),) * 2)))
                    for n in (64, 65))  # fmt: skip
    assert estimable_of(limit).checked({(0, 0, 0): 5})[0] == 5  # type: ignore[index]
    error = refusal(InvalidInput, estimable_of(above).checked, {(0, 0, 0): 5})
    assert (error.code, error.field) == ("unsupported", "counts")
