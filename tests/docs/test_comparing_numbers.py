# SPDX-License-Identifier: Apache-2.0
"""Numbers of pages that compare us with others: each is that of a bench, and none is without a rival.

The sentences are built from the JSON files in docs/bench. Phrases that look like a comparison have to be
in one of them, or in a list with the test that holds them.
"""

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from frankly_server.design.form import design_form
from frankly_server.design.form.comparisons import few_questions, separate_blocks
from frankly_server.design.tables.limits import Limits
from frankly_server.surveys.drafting import form_request

from examples.demo.surveys import SURVEYS

ROOT: Final = Path(__file__).resolve().parents[2]
FORMS: Final = {
    "ten questions of five choices, ε = 1": "10×5, ε = 1",
    "ten questions of five choices, ε = 2": "10×5, ε = 2",
    "ten questions of five choices, ε = 4": "10×5, ε = 4",
    "six of three choices, ε = 2": "6×3, ε = 2",
    "fifteen yes/no questions, ε = 2": "15×2, ε = 2",
    "fifteen yes/no questions, ε = 4": "15×2, ε = 4",
    "fifteen yes/no questions, ε = 6": "15×2, ε = 6",
    "five yes/no, five of five choices, ε = 3": "5×2 + 5×5, ε = 3",
    "twenty of four choices, ε = 4": "20×4, ε = 4",
    "two means, two distributions, two skewed questions, ε = 3": "mixed, ε = 3",
}
"""Form and level of the table of docs/comparison.md → case of the bench."""
_COLUMNS: Final = ("value", "few_questions", "one_question", "separate_blocks", "bound")
_COMPARES: Final = re.compile(
    r"[\d.]+ times (?:as (?:many|much|large)|our|fewer|more|less)\b|[\d.]+ ?% (?:lower|fewer|less|more|higher)\b|"
    r"\ba (?:half|third|quarter|fifth|sixth|eighth|ninth|tenth|twelfth) of the (?:respondents|reports)\b"
)
HELD: Final = {
    "this needs 24% more reports than subset-selection": "tests/frankly_server/design/api/test_regret.py",
    "27 % fewer reports are about this question": "tests/frankly_server/analysis/test_completion.py",
    "has up to 5.4% more information than PolyOpt": "papers/ball_product.py",
    "needs 2.7 times as many people as `best`": "tests/docs/test_loose_blocks.py",
}
"""Comparing phrases that no bench measures → the test or the program of what they say."""


@cache
def bench() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "docs/bench/form.json").read_text(encoding="utf-8"))
    return found


def figures(case: str) -> dict[str, float]:
    (found,) = (one for one in bench()["questions_asked"]["forms"] if one["case"] == case)
    values: dict[str, float] = found["figures"]
    return values


def lower(item: int, wanted: str) -> list[float]:
    """Return by how many per cent the design for a prior (7) or a wish (8) has less variance."""
    rows = [
        row for row in bench()["rows"] if row["item"] == item and row["case"].startswith(wanted)
    ]
    assert len(rows) == 9
    return [100 * (1 - row["value"] / row["baseline_value"]) for row in rows]


def rounded(value: float) -> str:
    """Return a number with four digits, or all before the point."""
    return f"{value:.0f}" if value >= 1000 else f"{value:#.4g}"


def claims() -> Iterator[tuple[str, str]]:
    """Yield a page and a sentence of it, with the numbers of the benches."""
    ten = figures("10×5, ε = 2")
    yield (
        "docs/run_a_survey.md",
        f"the variances of all shares add up to {ten['value']:.0f} for one report. With a block for each question they "
        f"add up to {ten['separate_blocks']:,.0f}: the same margins would need "
        f"{ten['separate_blocks'] / ten['value']:.1f} times as many respondents. But drawing one question at random "
        f"for each person, a known method, has {ten['one_question']:.0f} too.",
    )
    yield (
        "docs/choosing.md",
        f"0 to {max(lower(7, 'shares')):.1f} % lower for shares, and 0 to "
        f"{max(*lower(7, 'mean'), *lower(7, 'distribution')):.1f} % lower for a mean or a distribution",
    )
    of_means, of_distributions = (max(lower(8, wanted)) for wanted in ("mean", "distribution"))
    yield (
        "docs/choosing.md",
        f"the mean of 5 to 8 choices has up to {of_means:.1f} % less variance than with the design for "
        f"shares, which at ε = 4 is nearly as good, and a distribution up to {of_distributions:.1f} % less",
    )
    mixed = figures("mixed, ε = 3")
    yield (
        "docs/comparison.md",
        f"here the variance is {100 * (1 - mixed['value'] / mixed['few_questions']):.1f} % lower.",
    )
    (split,) = (row for row in bench()["rows"] if "split over ours, median" in row["case"])
    yield (
        "docs/comparison.md",
        f"in the median of 200 random questionnaires it has {split['value']:.1f} times our variance.",
    )
    yield (
        "docs/measured.md",
        f"in the median, separate blocks have {split['value']:.1f} times the form's variance",
    )


@cache
def prose(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("page", "sentence"), [*claims()])
def test_a_sentence_has_the_numbers_of_the_bench(page: str, sentence: str) -> None:
    assert sentence in prose(page)


def test_the_words_around_the_numbers_hold() -> None:
    assert min(lower(7, "shares")) > -0.01
    assert min(*lower(7, "mean"), *lower(7, "distribution")) > -0.01
    at_4 = [row for row in bench()["rows"] if row["item"] == 8 and "ε = 4" in row["case"]]
    assert all(row["value"] > 0.94 * row["baseline_value"] for row in at_4)
    even = [figures(case) for case in FORMS.values() if not case.startswith("mixed")]
    assert all(one["value"] == pytest.approx(one["few_questions"], rel=1e-6) for one in even)
    for case in ("10×5, ε = 1", "10×5, ε = 2"):
        assert figures(case)["value"] == pytest.approx(figures(case)["one_question"], rel=1e-6)


def test_the_table_of_ten_forms_is_that_of_the_bench() -> None:
    text = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
    lines = text.partition("\n| form | level |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    names = [row[0] for row in rows]
    for place, name in enumerate(names):
        names[place] = names[place - 1] if name == "the same" else name
    assert [f"{name}, {row[1]}" for name, row in zip(names, rows, strict=True)] == [*FORMS]
    for row, case in zip(rows, FORMS.values(), strict=True):
        found = figures(case)
        assert row[2:7] == [rounded(found[column]) for column in _COLUMNS]
        assert float(row[7].split()[0]) == pytest.approx(found["mean"], abs=0.005)


def test_the_rivals_of_the_demo() -> None:
    """The form's value is a designed one, so the numbers are computed again."""
    definition = SURVEYS["redbook"].definition
    assert definition.form is not None
    request = form_request(definition.form, definition.form_epsilon, Limits())
    needed = len(SURVEYS["redbook"].split()[1]) / design_form(request).value
    known, blocks = (one(request).value * needed for one in (few_questions, separate_blocks))
    (row,) = re.findall(r"for each question \| ([\d,]+) / ([\d,]+);", prose("docs/measured.md"))
    stated = [int(number.replace(",", "")) for number in row]
    # A design may differ by some 1e-6 between processors.
    assert stated == [pytest.approx(known, rel=1e-3), pytest.approx(blocks, rel=1e-3)]
    assert Fraction(definition.budget) == 3


def pages() -> list[str]:
    generated = {"docs/performance.md", "docs/api.md", "docs/map.md"}
    found = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")]
    templates = (ROOT / "server/frankly_server/web/admin/templates/admin").glob("*.html")
    more = [path.relative_to(ROOT).as_posix() for path in templates]
    return sorted({"README.md", "CHANGELOG.md", *found, *more} - generated)


def loose(text: str, told: list[str]) -> list[str]:
    """Return the comparing phrases of a text that no sentence or held phrase contains."""
    for sentence in (*told, *HELD):
        text = text.replace(sentence, "")
    return [match[0] for match in _COMPARES.finditer(text)]


def test_no_page_compares_without_a_bench_or_a_test() -> None:
    found = {}
    for page in pages():
        told = [sentence for name, sentence in claims() if name == page]
        if phrases := loose(prose(page), told):
            found[page] = phrases
    assert found == {}
    assert all((ROOT / test).exists() for test in HELD.values())


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("ours needs 12.7 times as many", ["12.7 times as many"]),
        ("the variance is 5 % lower", ["5 % lower"]),
        ("with a twelfth of the respondents", ["a twelfth of the respondents"]),
        ("but this needs 24% more reports than subset-selection", []),
        ("it takes three times", []),
    ],
)
def test_loose_comparisons_are_found(text: str, phrases: list[str]) -> None:
    assert loose(text, []) == phrases
