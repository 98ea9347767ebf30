# SPDX-License-Identifier: Apache-2.0
"""Figures of a whole report: rounded up, and equal in text and JSON."""

from fractions import Fraction

import pytest
from frankly_design.requests.whole_report import ANSWERS, cost_words, level_table, report_json
from frankly_protocol.audit import AnswersLevel, Charge, ReportLevel, SecretLevel
from frankly_protocol.audit.bounds import times

THIRD = Fraction(10, 3)


def level(odds: Fraction | None, cost: Fraction | None) -> ReportLevel:
    secret = SecretLevel(Fraction(5, 3), odds, "lift", strata_odds=None)
    return ReportLevel({"hiv": secret}, AnswersLevel(cost, cost), Charge(cost), cost, ())


def test_json_has_nats_and_text_has_factors() -> None:
    assert report_json(level(THIRD, Fraction(20))) == {
        "secrets": {"hiv": {"level": "0.5109", "odds": "1.2040", "strata_odds": "inf"}},
        "answers": {"level": "2.9958", "odds": "2.9958"},
        "cost": "2.9958",
    }
    headers, rows = level_table(level(THIRD, Fraction(20)), has_strata=True)
    assert rows == [("hiv", "×1.67", "×3.34", "×∞"), (ANSWERS, "×20.00", "×20.00", "–")]
    assert len(headers) == 4
    headers, rows = level_table(level(None, None), has_strata=False)
    assert (len(headers), rows) == (3, [("hiv", "×1.67", "×∞"), (ANSWERS, "×∞", "×∞")])


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (None, "permanently uses up a device's whole budget"),
        (Fraction(20), "costs 2.9958 nats of a device's budget, 5 nats unless"),
    ],
)
def test_the_cost_is_shown_in_words(cost: Fraction | None, words: str) -> None:
    assert words in cost_words(level(THIRD, cost))


FACTORS = [
    (Fraction(1), "1.00"),
    (Fraction(100001, 100000), "1.01"),
    (Fraction(3013, 100), "30.13"),
    (None, "∞"),
]


@pytest.mark.parametrize(("ratio", "shown"), FACTORS)
def test_a_factor_is_rounded_up(ratio: Fraction | None, shown: str) -> None:
    assert times(ratio) == shown
