# SPDX-License-Identifier: Apache-2.0
"""Pictures of the survey templates: current, true, and readable without seeing them."""

import math
import re
from xml.etree import ElementTree

import pytest
from frankly_server.surveys import survey_templates
from frankly_server.surveys.definition import parse_definition

from tools.template_pictures import FOLDER, INVENTED, picture

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
FORMS = ("questionnaire", "members")
"""Designed within one to two seconds each; all others take less than half a second together."""
TEMPLATES = survey_templates.templates()


def read(svg: str) -> tuple[str, list[float]]:
    """Return the text of a picture without its numbers, and its numbers."""
    numbers = [float(number.replace(",", "")) for number in _NUMBER.findall(svg)]
    return _NUMBER.sub("#", svg), numbers


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in FORMS else ())
        for name in survey_templates.ORDER
    ],
)
def test_a_picture_is_current(name: str) -> None:
    """Designs may differ in their last bits between processors, so a rounded number may differ by
    one unit of its last digit: 0.1 pixels, a point, or ten reports."""
    (stored, before), (drawn, now) = read(TEMPLATES[name].picture), read(picture(name))
    assert drawn == stored, "write them again: python -m tools.template_pictures"
    assert [
        a for a, b in zip(before, now, strict=True) if abs(a - b) > (10.1 if a > 500 else 1.01)
    ] == []


def intervals(svg: str) -> list[tuple[float, float, float]]:
    """Return share, low and high of each row, in percent, from the description."""
    found = re.findall(r"([\d.]+)%, from ([\d.−]+)% to ([\d.]+)%", svg)
    return [(float(a), float(b.replace("−", "-")), float(c)) for a, b, c in found]


def test_margins_equal_those_of_the_formula() -> None:
    """Of n reports of Warner's design, a share λ·p + (1 − λ)(1 − p) says yes; the estimate divides
    its error by 2p − 1. The ends are rounded outwards, to a whole point at most."""
    for name, epsilon, people in (("workplace", 1.0, 1000), ("rare", 1.1, 10_000)):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        for share, low, high in intervals(TEMPLATES[name].picture):
            yes = share / 100 * (2 * p - 1) + 1 - p
            margin = 196.0 * math.sqrt(yes * (1 - yes) / people) / (2 * p - 1)
            for end in (share - low, high - share):
                assert margin - 0.02 <= end <= margin + 1.02


@pytest.mark.parametrize("name", survey_templates.ORDER)
def test_a_picture_says_that_it_is_invented(name: str) -> None:
    template = TEMPLATES[name]
    definition = parse_definition(survey_templates.template(name))
    assert len(template.picture) < 8500
    root = ElementTree.fromstring(template.picture)
    assert root.get("role") == "img"
    people = f"{definition.expected_reports:,}"
    assert f"? An example: invented shares, for {people} answers" in template.caption
    assert template.caption == root.findtext("{*}title")
    drawn = next(iter(INVENTED[name].values()))
    rows = intervals(template.picture)
    assert [share / 100 for share, _, _ in rows] == pytest.approx(drawn)
    assert sum(drawn) == pytest.approx(1)
    assert all(0 <= low < share < high <= 100 for share, low, high in rows)


def test_every_template_has_a_place_a_picture_and_plain_words() -> None:
    for ending in ("yaml", "svg"):
        assert {path.stem for path in FOLDER.glob(f"*.{ending}")} == {*survey_templates.ORDER}
    assert {*INVENTED} == {*survey_templates.ORDER} == {*TEMPLATES}
    terms = re.compile(r"\b[A-Z]*L[DI]P\b|differential|randomis|mechanism|notion|epsilon|prior\b")
    for name, template in TEMPLATES.items():
        lines = survey_templates.template(name).decode().splitlines()
        assert lines[:2] == [f"# {template.title}", f"# {template.sentence}"]
        assert lines[2].startswith("# For experts: ")
        assert template.title.endswith("?")
        assert len(template.title) <= 70
        assert template.sentence.startswith("For ")
        assert not terms.search(template.title + template.sentence)
