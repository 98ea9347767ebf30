# SPDX-License-Identifier: Apache-2.0
"""The level of a whole report and the limits of an app in the browser: Python's figures, refusals and charges."""

from fractions import Fraction
from typing import Any

from frankly_protocol.audit import report_level
from frankly_protocol.documents import SurveyDocument
from playwright.sync_api import Page

from tests.browser.sdk.reports import as_texts, documents
from tests.browser.sdk.wire import program


def in_python(document: SurveyDocument, cap: Fraction) -> dict[str, Any]:
    """The level of the whole report, every ratio as its two numbers."""
    level = report_level(document, cap)
    return {
        "secrets": [
            [name, *map(as_texts, (s.level, s.odds)), s.unit, as_texts(s.delta), s.counted]
            + [as_texts(s.strata_lift), as_texts(s.strata_odds)]
            for name, s in level.secrets.items()
        ],
        "answers": [as_texts(v) for v in (level.answers.level, level.answers.odds, level.answers.delta)],
        "cost": [as_texts(v) for v in (level.cost.odds, level.cost.delta, level.ceiling, level.odds)],
        "lines": [[b.block, b.counted_by, as_texts(b.odds), as_texts(b.delta)] for b in level.lines],
        "posteriors": [[p.block, p.secret, p.sensitive, as_texts(p.bound)] for p in level.posteriors],
    }


def test_levels_are_pythons(page: Page, full: bool) -> None:
    made = documents(11, 3000 if full else 300)
    payloads = [document.payload().decode() for document in made]
    for cap in (Fraction(0), Fraction(2, 100), Fraction(9, 100)):
        expected = [in_python(document, cap) for document in made]
        given = {"payloads": payloads, "cap": list(cap.as_integer_ratio())}
        found = page.evaluate(program("levels"), given)
        different = [pair for pair in zip(expected, found, strict=True) if pair[0] != pair[1]]
        assert different == [], different[0]
        secrets = [secret for level in expected for secret in level["secrets"]]
        assert sum(secret[5] is not None for secret in secrets) > 20  # a block counts its promise
        assert sum(secret[2] is None for secret in secrets) > 20
        assert sum(secret[6] not in (None, ["1", "1"]) for secret in secrets) > 20  # strata tell something
        assert sum(level["posteriors"][:1] != [] and level["posteriors"][0][3] != ["1", "1"] for level in expected) > 5
        assert (cap == 0) == (not any(line[1] == "dp" and line[3] != ["0", "1"] for level in expected for line in level["lines"]))
