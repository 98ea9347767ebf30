# SPDX-License-Identifier: Apache-2.0
"""Mixed radix: every number has its own digits, in row-major order."""

from itertools import product

import pytest
from frankly_protocol.mechanisms.radix import digits_of, number_of

SIZES = ((), (3,), (2, 3), (4, 1, 5))


@pytest.mark.parametrize("sizes", SIZES)
def test_numbers_run_in_row_major_order(sizes: tuple[int, ...]) -> None:
    for number, digits in enumerate(product(*map(range, sizes))):
        assert number_of(digits, sizes) == number
        assert digits_of(number, sizes) == digits


def test_every_size_needs_a_digit() -> None:
    with pytest.raises(ValueError, match="longer"):
        number_of((1,), (2, 3))
