# SPDX-License-Identifier: Apache-2.0
"""Charts and tables of results: a chart of each kind, and those of questions that versions ask differently."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from frankly_analyst import Estimates, InvalidRequest
from frankly_protocol.questions import Question

from tests.frankly_analyst.svg_boxes import SVG, faults, said, texts
from tests.frankly_server.analysis.samples import (
    block_about,
    document_of,
    grr,
    question,
    received,
    result,
)
from tests.narrowing import present
from tests.refusals import refusal

COUNTS = (200, 120, 80)
REGION = question("region", 2)


def estimates(*questions: Question, counts: Sequence[int] = COUNTS, **asked: Any) -> Estimates:
    answers = len(counts)
    document = document_of((block_about(grr(answers, 2), *questions),), (REGION,))
    groups = {"c0": counts, "c1": tuple(reversed(counts))}
    return Estimates.from_json(result(received(document, groups), **asked))


def count(drawn: str, kind: str) -> int:
    return sum(one.get("class") == kind for one in ElementTree.fromstring(drawn).iter())


def words(drawn: str) -> list[str]:
    assert faults(drawn) == []
    return [box.what for box in texts(ElementTree.fromstring(drawn))]


def test_shares_are_bars_below_the_question_and_the_number_of_reports() -> None:
    drawn = estimates(question("q", 3)).plot("q")
    assert count(drawn, "bar") == 3
    assert {"q?", "800 reports, intervals at 95%. A survey"} <= set(words(drawn))
    assert drawn._repr_svg_() == drawn


def test_without_a_question_the_shares_of_all_are_drawn_below_their_questions() -> None:
    drawn = estimates(question("q", 3)).plot()
    assert {"A survey", "q?", "C0", "C1", "C2"} <= set(words(drawn))
    assert said(drawn).startswith("q?: C0 ")


def test_a_mean_is_a_dot_on_its_scores_and_a_distribution_is_left_out() -> None:
    scale = question("q", 3, score=(1, 2, 3))
    found = estimates(scale, targets="scales")
    assert {row.unit for row in found} == {"share", "number"}
    drawn = found.plot("q", possible=(1.0, 3.0))
    assert count(drawn, "curve-point") == len([row for row in found if row.unit == "number"])
    assert count(drawn, "bar") == 0
    assert {"Mean", "1", "3"} <= set(words(drawn))


def test_groups_are_below_each_choice_each_with_its_own_n() -> None:
    drawn = estimates(question("q", 3), by="region").plot("q")
    assert {"C0", "C1", "C2", "c0 (n=400)", "c1 (n=400)"} <= set(words(drawn))
    assert count(drawn, "bar") == 6
    assert {"q?", "800 reports, intervals at 95%. A survey"} <= set(words(drawn))


def test_one_group_is_drawn_alone_with_its_name_and_its_own_n() -> None:
    found = estimates(question("q", 3), by="region")
    drawn = found.plot("q", by="region=c1")
    assert {"q? (region=c1)", "400 reports, intervals at 95%. A survey"} <= set(words(drawn))
    (first, *_) = found.of("q", "region=c1")
    assert said(drawn).startswith(f"C0 {100 * present(first.estimate):.0f}%")
    assert count(drawn, "bar") == 3


def test_periods_are_a_trend() -> None:
    document = document_of((block_about(grr(3, 2), question("q", 3)),))
    first, last = (
        received(document, {"": counts}, day)
        for counts, day in ((COUNTS, "2026-05"), ((90, 90, 90), "2026-07"))
    )
    both = replace(first, cells={**first.cells, **last.cells})
    drawn = Estimates.from_json(result(both, by="month")).plot("q")
    assert count(drawn, "curve-point") == 6
    assert count(drawn, "curve") == 0  # June is missing
    assert {"2026-05", "2026-07"} <= set(words(drawn))


@pytest.mark.parametrize(
    ("percent", "down", "across"),
    [(None, "Down: a?", "Across: b?"), ("row", "Down: a?, each by itself", "Across: b?"),
     ("column", "Down: a?", "Across: b?, each by itself")],
)  # fmt: skip
def test_a_table_of_two_questions_is_a_heat_map(
    percent: str | None, down: str, across: str
) -> None:
    pair = question("a", 2), question("b", 3)
    found = estimates(*pair, counts=(90, 40, 50, 60, 30, 80), targets=["a", "b"], percent=percent)
    drawn = found.plot(found.rows[0].question)
    assert count(drawn, "heat") == 6
    assert {down, across, "C0", "C1", "C2"} <= set(words(drawn))
    shares = {row.choice: f"{100 * present(row.estimate):.0f}%" for row in found}
    first = said(drawn).partition("C0: C0 ")[2].split(",")[0]
    assert first == shares[found.rows[0].choice]


@pytest.mark.parametrize(("asked", "by"), [("height", ""), ("q", "region=c9"), ("q", "month=2026-01")])  # fmt: skip
def test_an_unknown_question_or_group_is_refused(asked: str, by: str) -> None:
    found = estimates(question("q", 3), by="region")
    assert refusal(InvalidRequest, found.plot, asked, by=by).code == "targets_invalid"


def test_nothing_to_plot_is_refused() -> None:
    empty = estimates(question("q", 3), counts=(1, 1, 1))
    assert refusal(InvalidRequest, empty.plot).code == "targets_invalid"


def of_versions(**asked: Any) -> Estimates:
    """Two versions with another question under the same id, and with other choices."""
    old = document_of((block_about(grr(3, 2), question("q", 3)),), (REGION,))
    asks_anew = replace(question("q", 2), text={"en": "Asked anew?"})
    new = document_of((block_about(grr(2, 2), asks_anew),), (REGION,), version=2)
    groups = {"c0": COUNTS, "c1": COUNTS}
    newer = {"c0": (300, 50), "c1": (40, 60)}
    return Estimates.from_json(result(received(old, groups), received(new, newer), **asked))


@pytest.mark.parametrize("by", [None, "region"])
def test_of_a_question_that_versions_ask_differently_the_newest_is_drawn(by: str | None) -> None:
    found = of_versions(**({"by": by} if by else {}))
    drawn = found.plot("q")
    note = "450 reports, intervals at 95%, the newest of 2 forms of this question. A survey"
    assert {"Asked anew?"} <= set(words(drawn))
    assert "C2" not in said(drawn)
    assert said(drawn).endswith(note)
    every = found.plot()
    assert {"Asked anew?", "q?"} <= set(words(every))


def test_of_one_version_the_title_is_its_own() -> None:
    found = of_versions(by="version")
    assert "q? (version=1)" in words(found.plot("q", by="version=1"))
    assert "Asked anew? (version=2)" in words(found.plot("q", by="version=2"))


@pytest.mark.parametrize("by", [None, "region"])
def test_tables_of_two_versions_have_their_own_numbers_of_reports(by: str | None) -> None:
    found = of_versions(**({"by": by} if by else {}))
    text = str(found)
    assert text.count("\nq (") == 2
    for row in found:
        assert f"n {row.n}" in text
        assert f"{row.value}" in text
    page = found._repr_html_()
    ElementTree.fromstring(f"<div>{page}</div>")
    assert all(f"{row.value}" in page for row in found)
    if by:
        assert {page.count(f"n {row.n}") for row in found} == {
            2 if row.documents == found.rows[0].documents else 1 for row in found
        }


def test_a_table_of_groups_fits_into_a_line_and_its_flags_are_below() -> None:
    found = estimates(question("q", 3), by="region")
    found = replace(
        found,
        rows=tuple(
            replace(row, by=f"region=r{i}", flags=("imprecise",) if row.choice == "c0" else ())
            for i in range(7)
            for row in found.rows[:3]
        ),
    )
    lines = str(found).splitlines()
    assert [line.count("(n 400)") for line in lines if "(n 400)" in line] == [4, 3]
    assert max(len(line) for line in lines if not line.startswith("  *")) <= 120
    assert [line.count(" *") for line in lines if line.startswith("  C0")] == [4, 3]
    assert lines[-1].endswith("C0 (region=r6): imprecise")


def test_every_element_is_in_the_namespace_of_svg() -> None:
    tree = ElementTree.fromstring(estimates(question("q", 3)).plot("q"))
    assert all(one.tag.startswith(SVG) for one in tree.iter())
