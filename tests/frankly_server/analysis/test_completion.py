# SPDX-License-Identifier: Apache-2.0
"""Completion of the questions of a form in a result, and bounds of shares if people gave up."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from frankly_analyst import Completion
from frankly_design.kinds.parts import PartTable, counted_blocks
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_server.analysis.counted_document import CellCounts, Key, Received
from scipy import stats

from tests.frankly_design.estimate.test_completion import form
from tests.frankly_design.kinds.test_parts import form_block
from tests.frankly_server.analysis.samples import document_of, result
from tests.refusals import refusal

DRAWN = document_of((replace(form_block(form(4, (4, 1))), asks_drawn=True),))
ALL = replace(DRAWN, blocks=tuple(replace(block, asks_drawn=False) for block in DRAWN.blocks))


def of_people(
    document: SurveyDocument,
    n: int,
    finish: tuple[float, ...],
    shares: tuple[float, ...],
    pick: int = 1,
) -> Received:
    """Return the expected counts if of `n` plans for each part the share `finish` is completed.

    shares : the share of the second choice among the people who complete the plan of each part. pick :
    number of parts in a plan.
    """
    cells: dict[Key, CellCounts] = {}
    tables = [block.mechanism for block in counted_blocks(document)[1:]]
    for i, table in enumerate(tables):
        assert isinstance(table, PartTable)
        law = [(1 - shares[i], shares[i])]
        tally: Counter[tuple[int, ...]] = Counter(
            {
                (y,): round(
                    n * finish[i] * sum(p * table.probability(y, x) for x, p in enumerate(law[0]))
                )
                for y in range(table.reports)
            }
        )
        cells[(i + 1,), "", ""] = CellCounts(sum(tally.values()), dict(tally))
    cells[(0,), "", ""] = CellCounts(sum(cell.n for cell in cells.values()) // pick, {})
    return Received(document, cells, 1)


def completions(*sources: Received, **asked: Any) -> list[dict[str, Any]]:
    """Return the completions of a result."""
    found: list[dict[str, Any]] = result(*sources, completion=True, **asked)["completions"]
    return found


def test_the_proportions_are_those_of_the_people_who_did_not_give_up() -> None:
    # Of 10,000 plans of each question 5,000, 10,000, 10,000 and 7,500 are completed.
    (found,) = completions(of_people(DRAWN, 10_000, (0.5, 1, 1, 0.75), (0.3,) * 4))
    assert [part["n"] for part in found["parts"]] == [5000, 10_000, 10_000, 7500]
    relative = [part["relative"] for part in found["parts"]]
    # Every report is about one question, so the mean of the proportions is 1.
    assert relative == pytest.approx([4 * n / 32.5 for n in (5, 10, 10, 7.5)])
    assert sum(part["chance"] * part["relative"] for part in found["parts"]) == pytest.approx(1)
    # Pearson's statistic of these counts, by hand.
    mean = 32_500 / 4
    statistic = sum((n - mean) ** 2 / mean for n in (5000, 10_000, 10_000, 7500))
    assert found["test"] == {
        "statistic": pytest.approx(statistic),
        "df": 3,
        "p": pytest.approx(0, abs=1e-12),
        "flags": [],
    }
    assert [part["questions"] for part in found["parts"]] == [["q0"], ["q1"], ["q2"], ["q3"]]


@pytest.mark.parametrize("is_yes", [True, False])
def test_bounds_are_attained_if_all_who_gave_up_have_the_same_answer(is_yes: bool) -> None:
    """At 10⁸ plans only the least wide bounds contain the share of everybody."""
    finish, share = 0.6, 0.2
    (found,) = completions(of_people(DRAWN, 10**8, (finish, 1, 1, 1), (share, 0.5, 0.5, 0.5)))
    everybody = finish * share + (1 - finish) * is_yes
    bounds = {
        (one["question"], one["choice"]): (one["low"], one["high"]) for one in found["bounds"]
    }
    low, high = bounds["q0", "1"]
    assert low <= everybody <= high
    assert (high if is_yes else low) == pytest.approx(everybody, abs=2e-3)
    low, high = bounds["q1", "1"]
    assert low == pytest.approx(0.5, abs=2e-3)
    assert high == pytest.approx(0.5, abs=2e-3)


def test_if_everything_is_asked_there_are_no_bounds() -> None:
    (found,) = completions(of_people(ALL, 10_000, (0.5, 1, 1, 1), (0.3,) * 4))
    assert (found["ask"], found["bounds"]) == ("all", [])
    assert found["test"]["p"] < 1e-9


def test_versions_are_apart_and_need_their_minimum() -> None:
    second = replace(ALL, version=2, prev=DRAWN.digest, min_reports=1000)
    few, many = (
        of_people(second, 100, (1,) * 4, (0.3,) * 4),
        of_people(DRAWN, 900, (1,) * 4, (0.3,) * 4),
    )
    found = completions(many, few)
    assert [(one["version"], one["ask"], one["n"], one["needed"]) for one in found] == [
        (1, "drawn", 3600, 20),
        (2, "all", 400, 1000),
    ]
    assert (found[1]["parts"], found[1]["bounds"], found[1]["test"]["p"]) == ([], [], None)
    assert found[0]["test"]["p"] == pytest.approx(1)
    # Bounds are at the level of the request: intervals of shares and proportions at 97.5 %.
    (rows,) = [q["rows"] for q in result(many, targets="shares", level=0.975)["questions"][:1]]
    low = stats.beta.ppf(0.025, 900, 901)  # of 1,800 reports about two questions, 900 about one
    assert found[0]["bounds"][0]["low"] == pytest.approx(low / (1 - low) * rows[0]["low"])
    read = Completion.all_from_json(result(many, few, completion=True))
    assert [len(one.parts) for one in read] == [4, 0]
    assert "form of version 1: equal completion χ² = 0.00, df 3, p = 1.000" in str(read[0])
    assert str(read[1]) == "form of version 2: 600 more reports needed"


def test_completion_is_requested_and_of_all_reports() -> None:
    source = of_people(DRAWN, 900, (1,) * 4, (0.3,) * 4)
    assert result(source)["completions"] == []
    for fields in (
        {"by": "version"},
        {"since": "2026-01-01"},
        {"targets": ["q0"]},
        {"percent": "answered"},
    ):
        error = refusal(InvalidInput, completions, source, **fields)
        assert (error.code, error.field) == ("unsupported", "completion")


def test_if_a_report_is_about_several_questions_there_are_no_bounds() -> None:
    """Who gives up at one of them is missing from the reports about the others, too."""
    two = document_of((replace(form_block(form(4, (4, 2))), asks_drawn=True),))
    (found,) = completions(of_people(two, 1000, (0.5, 1, 1, 1), (0.3,) * 4, pick=2))
    assert (len(found["parts"]), found["bounds"]) == (4, [])


def test_a_part_without_reports_is_printed() -> None:
    source = of_people(DRAWN, 900, (0, 1, 1, 1), (0.3,) * 4)
    (read,) = Completion.all_from_json(result(source, completion=True))
    assert "q0  0 reports    675.0 expected  0% (0 to 1%)" in str(read)
    assert [part.n for part in read] == [0, 900, 900, 900]


def test_a_level_near_1_has_bounds() -> None:
    source = of_people(DRAWN, 900, (1,) * 4, (0.3,) * 4)
    (found,) = completions(source, level=0.9999999999999999)
    assert all(0 <= one["low"] <= one["high"] <= 1 for one in found["bounds"])


def test_bounds_are_possible_shares_if_no_shares_explain_the_reports() -> None:
    source = of_people(DRAWN, 900, (1,) * 4, (0.3,) * 4)
    tables = [block.mechanism for block in counted_blocks(DRAWN)[1:]]
    forged: dict[Key, CellCounts] = {
        ((i + 1,), "", ""): CellCounts(900, {(table.reports - 1,): 900})
        for i, table in enumerate(tables)
        if isinstance(table, PartTable)
    }
    (found,) = completions(source.with_cells(forged))
    assert len(found["bounds"]) == 8
    assert all(0 <= one["low"] <= one["high"] <= 1 for one in found["bounds"])


def test_bounds_hold_if_giving_up_depends_on_question_and_answer(full: bool) -> None:
    """At q0 everybody with "yes" leaves, at q1 a third of the people with "no"; 1,000 with --full."""
    rng, missed, surveys = np.random.default_rng(8), 0, 1000 if full else 25
    share, n = 0.3, 1500
    leave = {0: (0.0, 0.9), 1: (1 / 3, 0.0), 2: (0.0, 0.0), 3: (0.1, 0.1)}  # with "no", with "yes"
    tables = [block.mechanism for block in counted_blocks(DRAWN)[1:]]
    for _ in range(surveys):
        cells: dict[Key, CellCounts] = {}
        for i, table in enumerate(tables):
            assert isinstance(table, PartTable)
            people = rng.binomial(n, [1 - share, share])
            stay = rng.binomial(people, [1 - chance for chance in leave[i]])
            laws = [[float(table.probability(y, x)) for y in range(table.reports)] for x in (0, 1)]
            counts = np.array([rng.multinomial(k, law) for k, law in zip(stay, laws, strict=True)])
            tally: dict[tuple[int, ...], int] = {
                (y,): int(k) for y, k in enumerate(counts.sum(axis=0))
            }
            cells[(i + 1,), "", ""] = CellCounts(sum(tally.values()), tally)
        cells[(0,), "", ""] = CellCounts(sum(cell.n for cell in cells.values()), {})
        (found,) = completions(Received(DRAWN, cells, 1), level=0.9)
        yes = {one["question"]: one for one in found["bounds"] if one["choice"] == "1"}
        # Everybody who is asked q2 completes it, so the bounds are of all people.
        missed += any(not one["low"] <= share <= one["high"] for one in yes.values())
    assert missed / surveys <= 0.1  # much rarer, because only extreme answers attain the bounds
