# SPDX-License-Identifier: Apache-2.0
"""Fixtures: figures, each made once for all tests that use it."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from papers.catalogue import FIGURES
from papers.records import Records, read_records
from papers.runner import FigureOutput, make
from tests.papers.figures.people import write_people

Making = Callable[[str], FigureOutput]


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_people(tmp_path_factory.mktemp("people") / "people.csv")


@pytest.fixture(scope="session")
def records(people: Path) -> Records:
    return read_records(people)


@pytest.fixture(scope="session")
def making(records: Records) -> Making:
    """Return a function that makes a figure in a quick run, with a clock whose differences are unique."""
    ticks = count(1)

    def made(name: str) -> FigureOutput:
        return make(
            FIGURES[name],
            quick=True,
            timer=lambda: float(next(ticks) ** 2),
            on_progress=lambda _line: None,
            records=records,
        )

    return made


@pytest.fixture(scope="session")
def made(making: Making) -> Making:
    drawn: dict[str, FigureOutput] = {}

    def once(name: str) -> FigureOutput:
        if name not in drawn:
            drawn[name] = making(name)
        return drawn[name]

    return once
