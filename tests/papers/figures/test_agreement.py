# SPDX-License-Identifier: Apache-2.0
"""Agreement with numbers printed in the papers, within tolerances, or outside as errata.md states."""

import pytest

from papers.catalogue import FIGURES
from papers.figure import Check
from papers.records import read_records
from papers.runner import make
from tests.papers import adult

FEW = {"lift-1": (80, 0.5), "lift-2": (12, 0.08), "lift-6": (4, 0.06)}
"""Number of draws that take half a second, and the additional tolerance for these."""
FULL = {
    "lift-1": 1000,
    "lift-2": 1000,
    "lift-6": 200,
    "lift-4": 20,
    "funnel-8": 100,
    "robust-4": 20,
    "robust-table-2": 100,
}
WITHOUT_DRAWS = (
    "thesis-4.1",
    "thesis-6.1",
    "thesis-6.2",
    "thesis-6.3",
    "thesis-eq-6.8",
    "thesis-eq-6.22",
    "thesis-theorem-6.5",
    "robust-example-2",
)
ON_ADULT = ("lift-3", "lift-5", "lift-7")


def printed(name: str, draws: int | None, *, quick: bool = False) -> list[Check]:
    records = read_records(adult.DATA) if FIGURES[name].adult else None
    figure = make(
        FIGURES[name],
        quick=quick,
        timer=lambda: 0.0,
        on_progress=lambda _line: None,
        draws=draws,
        records=records,
    )
    return [check for check in figure.checks if check.paper is not None]


@pytest.mark.parametrize("name", FEW)
def test_printed_numbers_from_a_few_draws(name: str) -> None:
    draws, wider = FEW[name]
    numbers = printed(name, draws, quick=True)
    assert numbers
    for check in numbers:
        assert check.paper is not None
        assert check.tolerance is not None
        if "lower end" in check.words and name == "lift-1":
            continue  # the value is a minimum over draws, which few draws do not reach
        assert abs(check.ours - check.paper) <= check.tolerance + wider, check.line()


@pytest.mark.parametrize("name", WITHOUT_DRAWS)
def test_printed_numbers_without_draws(name: str) -> None:
    numbers = printed(name, None, quick=name == "robust-example-2")
    assert len(numbers) >= 1
    assert [check.line() for check in numbers if check.holds is not check.expected] == []


@pytest.mark.full_only
@pytest.mark.parametrize("name", [*FULL, *ON_ADULT])
def test_printed_numbers_at_full_counts(name: str) -> None:
    numbers = printed(name, FULL.get(name))
    assert numbers
    assert [check.line() for check in numbers if check.holds is not check.expected] == []
