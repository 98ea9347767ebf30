# SPDX-License-Identifier: Apache-2.0
"""Concurrent first draws from one mechanism: no thread sees a partly built table."""

import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism, SubsetMechanism

from tests.threads import concurrently


@pytest.fixture
def eager() -> Iterator[None]:
    """Make Python switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def drawn_together(mechanism: SubsetMechanism | ProductMechanism, threads: int = 4) -> list[object]:
    """Return the symbols of concurrent draws; thread i has truth i, and all random bits are zero."""
    start = threading.Barrier(threads)
    symbols: dict[int, object] = {}

    def draw(truth: int) -> None:
        start.wait()
        try:
            symbols[truth] = mechanism.sample(truth, lambda _bits: 0)
        except IndexError:
            symbols[truth] = "half a table"

    concurrently(draw, *[(truth,) for truth in range(threads)])
    return [symbols[truth] for truth in range(threads)]


def subsets() -> SubsetMechanism:
    return SubsetMechanism(answers=64, size=8, inside=9, bits=4)


def products() -> ProductMechanism:
    factor = DenseMechanism(bits=4, weights=((12, 4), (4, 12)))
    return ProductMechanism(factors=(factor,) * 6)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("make", [subsets, products])
def test_first_draws_of_many_threads_equal_those_of_one(
    make: Callable[[], SubsetMechanism | ProductMechanism],
) -> None:
    single = make()
    expected = [single.sample(truth, lambda _bits: 0) for truth in range(4)]
    for _ in range(60):
        assert drawn_together(mechanism := make()) == expected
        assert [mechanism.sample(truth, lambda _bits: 0) for truth in range(4)] == expected
