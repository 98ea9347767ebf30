# SPDX-License-Identifier: Apache-2.0
"""The page "Do people answer?": its file, its numbers, and its sources."""

import json
import math
import re
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from frankly_server.surveys.definition import SurveyDefinition, parse_definition
from frankly_server.surveys.dry_run import draft_json
from frankly_server.surveys.survey_templates import template, templates

from tests.docs.session import Session
from tests.docs.test_loose_blocks import block

PAGE = "do_people_answer.md"


def prose(root: Path) -> str:
    return " ".join((root / "docs" / PAGE).read_text(encoding="utf-8").split())


def dry_run(definition: SurveyDefinition) -> dict[str, Any]:
    return draft_json(definition, datetime(2026, 6, 1, tzinfo=UTC), "https://collect.example")


def test_the_arms_of_the_file_ask_the_same_and_publish_without_warnings(root: Path) -> None:
    definition = parse_definition(block(root, PAGE, "name: fines").body.encode())
    (clear,), (hidden,) = definition.strata, definition.blocks
    assert [(q.id, q.text, q.choices) for q in hidden.questions] == [
        (clear.id, clear.text, clear.choices)
    ]
    assert [arm.id for arm in definition.arms] == ["clear", "protected"]
    assert dry_run(definition)["warnings"] == []


def test_the_command_finds_the_number_of_the_page(root: Path, tmp_path: Path) -> None:
    (line,) = block(root, PAGE, 'echo \'{"choices"').commands
    found = json.loads(Session(tmp_path, literal=False).typed(line))
    assert f"{found['n']} reports in all find the difference" in prose(root)
    assert found["power"] >= 0.8


def test_the_template_publishes_without_warnings_and_the_page_has_its_title(root: Path) -> None:
    assert f"*{templates()['validation'].title}*" in prose(root)
    definition = parse_definition(template("validation"))
    assert dry_run(definition)["warnings"] == []
    assert all(question.anchor is None for b in definition.blocks for question in b.questions)


def test_two_known_shares_determine_who_hides_and_who_falsely_says_yes(root: Path) -> None:
    """The share of yes is linear in the known share: y at 0, 1 - x at 1."""
    known = (Fraction(1, 5), Fraction(1, 2))
    for hide, false in ((Fraction(1, 5), Fraction(1, 50)), (Fraction(0), Fraction(0))):
        low, high = (p * (1 - hide) + (1 - p) * false for p in known)
        slope = (high - low) / (known[1] - known[0])
        assert low - known[0] * slope == false
        assert 1 - (high + (1 - known[1]) * slope) == hide
        if hide:
            stated = (
                f"results of {float(100 * low):g} % and {float(100 * high):g} % mean that "
                f"{100 * hide} % hide and {100 * false} % falsely say yes"
            )
            assert stated in prose(root)


def test_the_margins_of_the_page_are_those_of_the_template(root: Path) -> None:
    """Both are sums of the two samples' shares with fixed weights; the largest margins are planned."""
    definition = parse_definition(template("validation"))
    expected = dry_run(definition)["expected"]
    margin = 100 * expected["questions"][0]["margin"] * math.sqrt(expected["people"] / 3000)
    hide, false = (margin * math.hypot(*w) for w in ((8 / 3, 5 / 3), (5 / 3, 2 / 3)))
    assert f"at most ±{hide:.1f} and ±{false:.1f} points" in prose(root)


def test_studies_of_the_text_are_the_sources(root: Path) -> None:
    text, _, sources = prose(root).partition("## Sources")
    listed = set(re.findall(r"- (?:[A-Z]\. )+([\w-]+)[^()“:]*? (\d{4}),", sources))
    cited = set(re.findall(r"([A-Z][\w-]+)(?:(?:,| and) [^();]*?| and others)? (\d{4})[);]", text))
    assert len(cited) > 10
    assert cited <= listed
    assert {year for _, year in listed} == {*re.findall(r"\b(?:19|20)\d\d\b", text)}
