# SPDX-License-Identifier: Apache-2.0
"""Parsing of levels, and rational bounds on e^r."""

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import mpmath
import pytest
from frankly_protocol.audit import exp_lower, exp_upper, level_for, ln_up, parse_epsilon
from frankly_protocol.errors import InvalidInput
from hypothesis import given
from hypothesis import strategies as st

BAD_LEVELS = [
    ("NaN", "eps_not_finite"),
    ("inf", "eps_not_finite"),
    ("-Infinity", "eps_not_finite"),
    ("0", "eps_out_of_range"),
    ("-1", "eps_out_of_range"),
    ("1e-9", "eps_out_of_range"),
    ("1e400", "eps_out_of_range"),
    ("1e999999999", "eps_out_of_range"),
    ("50", "eps_out_of_range"),
    ("0.0099", "eps_out_of_range"),
    (50, "eps_out_of_range"),
    (True, "eps_format"),
    (1.0, "eps_format"),
    (None, "eps_format"),
    ("", "eps_format"),
    ("1_0", "eps_format"),
    ("١", "eps_format"),
    (" 1 ", "eps_format"),
    ("1e0", "eps_format"),
    ("+1", "eps_format"),
    ("1.", "eps_format"),
    (".5", "eps_format"),
    ("0x1", "eps_format"),
    ("1\n", "eps_format"),
]


def test_exp_is_bounded_up_to_64_and_not_beyond() -> None:
    assert exp_lower(Fraction(0)) == 1
    assert exp_lower(Fraction(64)) < exp_upper(Fraction(64))
    for r in (Fraction(-1, 10**9), Fraction(64) + Fraction(1, 10**9)):
        for bound in (exp_lower, exp_upper):
            with pytest.raises(ValueError, match="64"):
                bound(r)


@pytest.mark.parametrize(("value", "code"), BAD_LEVELS, ids=[repr(v)[:20] for v, _ in BAD_LEVELS])
def test_bad_levels_are_refused_by_name(value: object, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_epsilon(value, "blocks[0].epsilon")
    assert (caught.value.code, caught.value.field) == (code, "blocks[0].epsilon")


@pytest.mark.parametrize("text", ["0.01", "0.5", "1", "1.0", "10", "0.333333333333333333"])
def test_plain_decimals_are_read_exactly(text: str) -> None:
    assert parse_epsilon(text) == Fraction(text)


def rationals(rng: Random, count: int) -> Iterator[Fraction]:
    """Return rationals in [0, 16]: halves, values near the ends, decimals, and large odd denominators."""
    yield from (Fraction(n, 2) for n in range(33))
    yield from (
        Fraction(1, 10**40),
        Fraction(16) - Fraction(1, 10**40),
        1 - Fraction(1, 2**200),
        Fraction(10**9 - 1, 10**9),
    )
    for i in range(count - 37):
        d = (
            10 ** rng.randint(0, 12),
            rng.randint(1, 10**6),
            rng.getrandbits(64) | 1,
            rng.getrandbits(300) | 1,
        )[i % 4]
        yield Fraction(rng.randint(0, 16 * d), d)


def check_exp(count: int) -> None:
    """Check with 100 digits that the bounds enclose e^r and differ by less than 2^-126 · e^r."""
    checked = 0
    with mpmath.workdps(100):
        for r in rationals(Random(16), count):
            truth = mpmath.exp(mpmath.mpf(r.numerator) / r.denominator)
            low, high = (
                mpmath.mpf(b.numerator) / b.denominator for b in (exp_lower(r), exp_upper(r))
            )
            assert low <= truth <= high, r
            assert (high - low) / truth < mpmath.mpf(2) ** -126, r
            checked += 1
    assert checked == count


def test_exp_is_enclosed_and_tight() -> None:
    check_exp(400)


@pytest.mark.full_only
def test_exp_is_enclosed_and_tight_at_ten_thousand_rationals() -> None:
    check_exp(10_000)


@given(st.decimals(min_value="0.01", max_value=10, places=6))
def test_published_levels_are_rounded_down(epsilon: object) -> None:
    r = Fraction(str(epsilon))
    p, q = level_for(r)
    assert 0 < q <= p < 2**53
    with mpmath.workdps(60):
        short = mpmath.exp(mpmath.mpf(r.numerator) / r.denominator) - mpmath.mpf(p) / q
        assert 0 <= short < mpmath.mpf(1) / q + mpmath.mpf(2) ** -60


@pytest.mark.parametrize(
    ("level", "text"), [(Fraction(2), "0.6932"), (Fraction(1), "0.0000"), (None, "inf")]
)
def test_a_level_is_never_shown_smaller_than_it_is(level: Fraction | None, text: str) -> None:
    assert ln_up(level) == text
