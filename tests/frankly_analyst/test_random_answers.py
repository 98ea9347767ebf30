# SPDX-License-Identifier: Apache-2.0
"""What is said of people who answer at random, by an item and by anchors."""

from typing import Any

import pytest
from frankly_analyst.random_answers import RandomAnswers

ITEM = {
    "n": 2000, "failed": 150, "choices": 4, "anchors": [], "random": 0.1, "random_low": 0.08,
    "random_high": 0.12, "shown": True, "missing": 0, "common": False, "common_p": None,
    "law": {}, "law_n": 0, "law_p": None,
}  # fmt: skip
ANCHOR = ITEM | {"failed": None, "choices": None, "anchors": ["born"]}
BELOW = {"random": -0.02, "random_low": -0.05, "random_high": 0.01}


def said(fields: dict[str, Any]) -> list[str]:
    return RandomAnswers.from_json(fields).sentences(())


TEN = "About 10.0% of the people (8.0% to 12.0%) seem to have answered at random"
SHOWN = "2,000 reports show a question that tells how many people answer at random."
FAILED = "reports failed the item that asks for a given choice."
ALL = "than if everybody had answered at random: no figure is corrected."
MOST = {"random": 1.3, "random_low": 1.1, "random_high": 1.5}


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        (ITEM, f"150 of 2,000 {FAILED} {TEN}."),
        (ITEM | MOST | {"failed": 1900}, f"1,900 of 2,000 {FAILED} It is more {ALL}"),
        (ANCHOR, f"{SHOWN} {TEN}."),
        (
            ANCHOR | {"anchors": ["a", "b"], "common": True},
            f"{SHOWN.replace('a question that tells', '2 questions that tell')} {TEN}, as all groups together tell.",
        ),
        (
            ANCHOR | BELOW,
            f"{SHOWN} The share of people who answered at random is estimated as −2.0% (−5.0% to 1.0%), "
            "which chance can put below 0.",
        ),
        (ANCHOR | MOST, f"{SHOWN} It is more {ALL}"),
    ],
)
def test_the_first_sentence_says_how_many_and_by_what(fields: dict[str, Any], first: str) -> None:
    assert said(fields)[0] == first


def test_a_law_that_does_not_fit_is_said() -> None:
    doubt = {"law_n": 500, "law_p": 0.001}
    assert "500 reports that failed do not look as assumed (p = 0.001)" in said(ITEM | doubt)[-1]
    assert "nor as assumed of the others (p = 0.001)" in said(ANCHOR | doubt)[-1]
    assert not any("Do not rely" in line for line in said(ANCHOR))
