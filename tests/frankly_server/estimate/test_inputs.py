# SPDX-License-Identifier: Apache-2.0
"""Counts of a product by symbol."""

from itertools import product

from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_server.estimate import estimate

WIDE, NARROW = (
    DenseMechanism(4, ((10, 4, 2), (3, 6, 7))),
    DenseMechanism(4, ((9, 4, 2, 1), (2, 9, 4, 1), (1, 3, 4, 8))),
)


def test_counts_by_symbol_are_those_in_row_major_order() -> None:
    """Of factors with more reports than answers, the second one's symbols fastest; a symbol left out has no reports."""
    for first, second in ((WIDE, NARROW), (NARROW, WIDE)):
        both = ProductMechanism((first, second))
        symbols = list(product(range(first.reports), range(second.reports)))
        in_order = [(7 * i) % 11 for i in range(len(symbols))]
        by_symbol: dict[tuple[int, ...], int] = {
            symbol: n for symbol, n in zip(symbols, in_order, strict=True) if n
        }
        assert 0 in in_order
        assert estimate(both, by_symbol, methods=()) == estimate(both, in_order, methods=())
