# SPDX-License-Identifier: Apache-2.0
"""Mixed radix: the numbers of joint answers and symbols, row-major (the last digit runs fastest)."""

from collections.abc import Iterable, Sequence


def number_of(digits: Iterable[int], sizes: Iterable[int]) -> int:
    """Return the number with these digits, each of which is below its size."""
    number = 0
    for digit, size in zip(digits, sizes, strict=True):
        number = number * size + digit
    return number


def digits_of(number: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the digits of a number below the product of the sizes."""
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return tuple(reversed(digits))
