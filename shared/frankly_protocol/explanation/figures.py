# SPDX-License-Identifier: Apache-2.0
"""Formatting of shares and ratios; bounds are rounded up, so that none is understated."""

from fractions import Fraction


def percent(share: Fraction) -> str:
    """Return a share in per cent, to the nearest tenth; 0.0% and 100.0% are always exact."""
    # rounding: for display only; bounds are formatted by `percent_up` and `times`.
    tenths = min(max(round(share * 1000), 1), 999) if 0 < share < 1 else int(share * 1000)
    return f"{tenths // 10}.{tenths % 10}%"


def percent_up(share: Fraction) -> str:
    """Return a bound on a share in per cent, rounded up to a thousandth."""
    thousandths = -(-share.numerator * 100_000 // share.denominator)
    return f"{thousandths // 1000}.{thousandths % 1000:03}%"
