# SPDX-License-Identifier: Apache-2.0
"""Figures as they are shown: texts that contain the interval, with as many digits as it deserves."""

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from frankly_analyst.plots import NUMBER, SHARE
from frankly_analyst.rows import Estimate
from frankly_analyst.shown import CONTRAST, Shown, digits_of

TINY = Fraction(1, 10**9)
"""A bound may be passed by this part of its last digit: by the binary error of a number such as 0.29."""


def read(text: str) -> Fraction:
    """Return the number in a text, exactly; of a percentage, the share."""
    number = Fraction(Decimal(text.removesuffix("%").replace("−", "-")))
    return number / 100 if text.endswith("%") else number


def decimals(text: str) -> int:
    return len(text.removesuffix("%").partition(".")[2])


def row(**changes: object) -> Estimate:
    body = {
        "question": "q", "choice": "yes", "label": "Yes", "estimate": 0.5, "se": 0.1, "margin": 0.2, "low": 0.3,
        "high": 0.7, "level": 0.95, "se_privacy": None, "se_sampling": None, "method": "score", "n": 100,
        "mechanism": "dense", "notion": "ldp", "epsilon": "1", "ceiling": "1", "documents": (), "flags": (),
    }  # fmt: skip
    return Estimate(**(body | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", [SHARE, NUMBER])
@pytest.mark.parametrize("possible", [None, (0.0, 1.0)])
def test_the_ends_as_text_contain_the_interval(
    unit: str, possible: tuple[float, float] | None
) -> None:
    draw = random.Random(11)
    for _ in range(500):
        scale = 10 ** draw.uniform(-5, 3)
        low, value, high = sorted(
            draw.choice([0.0, 0.29, draw.gauss(0.3, scale)]) for _ in range(3)
        )
        shown = Shown.of(value, low, high, unit, possible)
        ends = [Fraction(low), Fraction(value), Fraction(high)]
        if possible is not None and (high < 0 or low > 1):
            # Cut, it would look like a figure without an error.
            assert (shown.is_beyond, shown.ends) == (True, "beyond what is possible")
            assert (shown.low, shown.high, shown.estimate) == (None, None, float(low > 1))
            continue
        assert not shown.is_beyond
        if possible is not None:
            ends = [min(Fraction(1), max(Fraction(0), end)) for end in ends]
        assert [shown.low, shown.estimate, shown.high] == [float(end) for end in ends]
        stated = [read(text) for text in (shown.low_text, shown.text, shown.high_text)]
        places = decimals(shown.text)
        last = Fraction(1, 10 ** (places + 2 * (unit == SHARE)))
        assert {decimals(text) for text in (shown.low_text, shown.high_text)} == {places}
        assert ends[0] - last < stated[0] <= ends[0] + TINY * last
        assert ends[2] - TINY * last <= stated[2] < ends[2] + last
        # The estimate is rounded to the nearest, so it stays between the ends.
        assert stated[0] <= stated[1] <= stated[2]
        assert abs(stated[1] - ends[1]) <= last * (Fraction(1, 2) + TINY)
        assert "-" not in shown.text + shown.ends
        assert not any(
            text.startswith("−") and read(text) == 0 for text in shown.ends.split(" to ")
        )


@pytest.mark.parametrize(
    ("width", "digits"),
    [(0, 2), (1e-9, 6), (0.001, 5), (0.01, 4), (0.1, 3), (0.11, 2), (1, 2), (1.1, 1), (10, 1), (10.1, 0), (1e9, 0)],
)  # fmt: skip
def test_a_width_deserves_so_many_digits(width: float, digits: int) -> None:
    assert digits_of(width) == digits


def test_no_zero_has_a_minus_sign_and_others_have_a_typographic_one() -> None:
    assert Shown.of(-0.001, -0.2, 0.2).text == "0%"
    assert Shown.of(-0.1, -0.4, -0.0).ends == "−40% to 0%"
    assert Shown.of(-1.25, -1.31, -1.21, NUMBER).text == "−1.250"


def test_an_unknown_interval_has_no_text() -> None:
    unknown = Shown.of(0.3, None, None)
    assert (unknown.text, unknown.low_text, unknown.ends) == ("30.0%", "", "no interval")
    assert Shown.of(None, None, None).text == "unknown"
    alone = Shown.of(1.3, None, 2.0, possible=(0.0, 1.0))
    assert (alone.estimate, alone.low, alone.high, alone.text) == (1.0, None, None, "100.0%")


def test_a_share_is_cut_to_what_is_possible_and_a_contrast_is_not() -> None:
    ends = {"estimate": -0.1, "low": -0.4, "high": 0.2}
    assert Shown.row(row(**ends)).ends == "0% to 20%"
    assert Shown.row(row(**ends)).text == "0%"
    assert Shown.row(row(**ends, choice=CONTRAST)).ends == "−40% to 20%"
    # Scores are weights of a contrast, not the ends of what it can be.
    assert Shown.row(row(**ends, choice=CONTRAST), (-0.25, 1.0)).ends == "−40% to 20%"
    assert Shown.row(row(**ends, unit=NUMBER)).ends == "−0.40 to 0.20"


def test_a_quantile_is_not_rounded() -> None:
    ends = {"estimate": 12345.5, "low": -1.25, "high": 125000.0, "unit": NUMBER}
    for choice in ("median", "quantile 0.9"):
        shown = Shown.row(row(**ends, choice=choice, se=None))
        assert (shown.text, shown.ends) == ("12345.5", "−1.25 to 125000")
    assert Shown.row(row(**ends, choice="median", se=3.0)).text == "12346"
    assert Shown.exact(0.0, -0.0, 10.0).ends == "0 to 10"
    unknown = Shown.row(
        row(choice="median", se=None, unit=NUMBER, estimate=None, low=None, high=None)
    )
    assert (unknown.text, unknown.ends) == ("unknown", "")
