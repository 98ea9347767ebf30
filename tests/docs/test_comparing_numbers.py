# SPDX-License-Identifier: Apache-2.0
"""Numbers of pages that compare us with others: each is that of a bench, and none is without a rival.

The sentences are built from the JSON files in docs/bench. Phrases that look like a comparison have to be
in one of them, or in a list with the test that holds them.
"""

import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from frankly_design.form import design_form
from frankly_design.form.comparisons import few_questions, separate_blocks
from frankly_design.tables.limits import Limits
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
CASES: Final = [*product((3, 5, 8), (1, 2, 4))]
"""Choices and level of the cases of items 7 and 8, in their order."""
_COLUMNS: Final = ("value", "few_questions", "one_question", "separate_blocks", "bound")
_COMPARES: Final = re.compile(
    r"(?:[\d.]+|\b(?:two|three|four|five|six|ten|twelve)) times (?:as (?:many|much|large|precise)|our|fewer|more|less|"
    r"better|the variance)\b|\b(?:twice|half) (?:as (?:many|much|precise)|our|the (?:variance|respondents|reports))\b|"
    r"[\d.]+(?: |&nbsp;)?(?:%|percent|per cent) (?:lower|fewer|less|more|higher|smaller|better|worse|above|narrower|"
    r"of the (?:respondents|reports|variance))\b|\d(?:-fold\b|× (?:fewer|less|more))|\bfactor of \d|"
    r"\border of magnitude (?:fewer|less|more|better)|"
    r"\ba (?:third|quarter|fifth|sixth|eighth|ninth|tenth|twelfth) of the (?:respondents|reports)\b"
)
HELD: Final = {
    "this needs 24% more reports than subset-selection": "tests/frankly_design/engine/test_regret.py",
    "while that of clipping can be ten times as large": "docs/bench/estimate.json",
    "a block each cost ten times as much, in margin or in protection": "docs/bench/form.json",
    "27.6 % above the best possible": "tests/docs/test_guides.py",
    "27 % fewer reports are about this question": "tests/frankly_server/analysis/test_completion.py",
    "has up to 5.4% more information than PolyOpt": "papers/ball_product.py",
    "needs 2.7 times as many people as `best`": "tests/docs/test_loose_blocks.py",
    "1.33 | 1.8 times as many": "tests/frankly_server/surveys/test_correction.py",
    "warn above a factor of 1.5": "tests/frankly_server/surveys/test_correction.py",
    "is 1.33 times as large if nobody says yes": "tests/frankly_server/surveys/test_correction.py",
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
    most = max(*lower(7, "mean"), *lower(7, "distribution"))
    yield (
        "docs/choosing.md",
        f"the variance at the prior is at most {max(lower(7, 'shares')):.1f} % lower for shares, and at most "
        f"{most:.1f} % lower for a mean or a distribution",
    )
    of_means, of_distributions = (
        dict(zip(CASES, lower(8, wanted), strict=True))[8, 1] for wanted in ("mean", "distribution")
    )
    yield (
        "docs/choosing.md",
        f"the mean of 8 choices at ε = 1 has {of_means:.1f} % less variance than with our design for shares, and the "
        f"distribution {of_distributions:.1f} % less; at ε = 4 they have at most 6 % less",
    )
    mixed = figures("mixed, ε = 3")
    yield (
        "docs/comparison.md",
        f"here the variance is {100 * (1 - mixed['value'] / mixed['few_questions']):.1f} % lower.",
    )
    losses = [figures(f"{case}, ε = 4") for case in ("20×2, 30 to 49 %", "30×2, 30 to 59 %")]
    percent = [100 * (one["value"] / one["few_questions"] - 1) for one in losses]
    yield (
        "docs/comparison.md",
        f"for twenty yes/no questions that expect 30, 31, … 49 % at ε = 4 by {percent[0]:.1f} %, for thirty that "
        f"expect 30 to 59 % by {percent[1]:.1f} %.",
    )
    (pairs,) = (row for row in bench()["rows"] if row["case"] == "all pairs of 10×2, ε = 1")
    # Σ√w over ten bits and 45 exclusive ors, at weights of 9/4 and 1/4.
    hadamard = ((10 * 1.5 + 45 * 0.5) / math.tanh(1 / 2)) ** 2
    yield (
        "docs/comparison.md",
        f"is better: {hadamard:,.0f} for ten questions at ε = 1, where ours has {pairs['value']:,.0f}.",
    )
    (split,) = (row for row in bench()["rows"] if "split over ours, median" in row["case"])
    yield (
        "docs/comparison.md",
        f"in the median of 200 random questionnaires it has {split['value']:.1f} times our variance.",
    )


@cache
def prose(page: str) -> str:
    """Return the words of a page without the section that benches write."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return " ".join(text.partition("<!-- Below this line: written by")[0].split())


@pytest.mark.parametrize(("page", "sentence"), [*claims()])
def test_a_sentence_has_the_numbers_of_the_bench(page: str, sentence: str) -> None:
    assert sentence in prose(page)


def test_the_words_around_the_numbers_hold() -> None:
    assert min(lower(7, "shares")) > -0.01
    assert min(*lower(7, "mean"), *lower(7, "distribution")) > -0.01
    for wanted in ("mean", "distribution"):
        by_case = dict(zip(CASES, lower(8, wanted), strict=True))
        assert max(by_case, key=lambda case: by_case[case]) == (8, 1)
        assert max(value for (_, level), value in by_case.items() if level == 4) < 6
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
    generated = {"docs/api.md", "docs/map.md"}
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
        ("half the respondents; three times fewer", ["half the respondents", "three times fewer"]),
        (
            "twice as precise, 6.7 times the variance",
            ["twice as precise", "6.7 times the variance"],
        ),
        ("saves 40 % of the respondents, 12.7× fewer", ["40 % of the respondents", "7× fewer"]),
        ("by a factor of 13, 13-fold, 31 % smaller", ["factor of 1", "3-fold", "31 % smaller"]),
        ("4.5 percent lower, 4.9&nbsp;% lower", ["4.5 percent lower", "4.9&nbsp;% lower"]),
        ("but this needs 24% more reports than subset-selection", []),
        ("it takes three times", []),
    ],
)
def test_loose_comparisons_are_found(text: str, phrases: list[str]) -> None:
    assert loose(text, []) == phrases
