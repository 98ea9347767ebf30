# SPDX-License-Identifier: Apache-2.0
"""A margin gets the word whose limits the help states."""

import re

import pytest
from frankly_server.surveys.verdicts import MEANINGS, verdict

CASES = {
    0: "precise",
    0.03: "precise",
    0.0304: "precise",  # shown as 3.0
    0.031: "fair",
    0.07: "fair",
    0.071: "rough",
    0.15: "rough",
    0.151: "very rough",
    9.0: "very rough",
}


@pytest.mark.parametrize(("margin", "word"), CASES.items())
def test_the_word_of_a_margin(margin: float, word: str) -> None:
    assert verdict(margin) == word
    limits = dict(re.findall(r"(precise|fair|rough): (?:off by )?at most (\d+)", MEANINGS))
    if word in limits:
        assert round(margin * 100, 1) <= int(limits[word])
