# SPDX-License-Identifier: Apache-2.0
"""SPSS and Stata files of estimates, read back by an independent reader of the formats."""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat
import pytest
from frankly_analyst import Analyst, Estimates, InvalidRequest, formats

from tests.frankly_analyst.conftest import Served
from tests.frankly_server.analysis.samples import (
    block_about,
    document_of,
    grr,
    question,
    received,
    result,
)

READERS: Mapping[str, Any] = {"sav": pyreadstat.read_sav, "dta": pyreadstat.read_dta}


@pytest.fixture(scope="module")
def grouped(served: Served) -> Estimates:
    return Analyst(served.url, served.site.analyst_key).estimates("habits", by="region")


@pytest.mark.parametrize("kind", READERS)
def test_files_have_the_lines_of_the_csv_with_labels(
    grouped: Estimates, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / f"estimates.{kind}"
    getattr(grouped, f"to_{kind}")(path)
    frame, described = READERS[kind](path)
    lines = formats.lines(grouped.body)
    assert (
        len(frame) == len(lines) == 5 + 2
    )  # five rows are of the north; two questions lack reports in the south
    labels = described.variable_value_labels
    for name in ("estimate", "se", "low", "high", "n", "needed"):
        for value, line in zip(frame[name], lines, strict=True):
            assert (math.isnan(value) and line[name] is None) or value == line[name]
    for coded, expected in {
        "question": ["Do you smoke?"] * 2 + ["Do you smoke?"] + ["How often do you drink?"] * 4,
        "status": [line["status"] for line in lines],
        "by_region": [str(line["by"]).removeprefix("region=") for line in lines],
    }.items():
        assert [labels[coded][value] for value in frame[coded]] == expected
    choices = [labels["choice"].get(value) for value in frame["choice"].dropna()]
    assert choices == [
        "smokes: No",
        "smokes: Yes",
        "drinks: Never",
        "drinks: Weekly",
        "drinks: Daily",
    ]
    assert described.column_names_to_labels["n"] == "Number of reports."
    assert all(described.column_names_to_labels.values())
    assert described.file_label == "Habits"


def test_pandas_reads_the_stata_files(grouped: Estimates, tmp_path: Path) -> None:
    """Pandas reads Stata files with its own code, which shares nothing with the writer."""
    path = tmp_path / "estimates.dta"
    grouped.to_dta(path)
    frame = pd.read_stata(path)
    expected = [row.estimate for row in grouped]
    assert list(frame["estimate"].dropna()) == expected
    assert list(frame["by_region"].unique()) == ["north", "south"]


def test_without_the_library_the_way_out_is_named(
    grouped: Estimates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidRequest, match="cannot be written"):
        grouped.to_sav(tmp_path / "missing" / "x.sav")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(InvalidRequest, match="pip install pandas pyreadstat"):
        grouped.to_sav(tmp_path / "x.sav")


def test_a_population_of_groups_has_a_column_of_its_own(tmp_path: Path) -> None:
    document = document_of((block_about(grr(3, 1), question("q", 3)),), (question("region", 2),))
    counts = {"c0": (30, 20, 10), "c1": (10, 20, 30)}
    found = Estimates.from_json(
        result(received(document, counts), by="region", group_sizes='{"c0": 1, "c1": 3}')
    )
    path = tmp_path / "estimates.sav"
    found.to_sav(path)
    frame, described = pyreadstat.read_sav(path)
    labels = described.variable_value_labels
    assert labels["by_weighted"] == {1: "region"}
    assert list(frame["by_weighted"].notna()) == [False] * 6 + [True] * 3
    assert list(frame["by_region"].notna()) == [True] * 6 + [False] * 3
    assert list(frame["estimate"])[-3:] == [
        row.estimate for row in found.of("q", "weighted=region")
    ]
    told = described.column_names_to_labels
    assert (
        told["by_weighted"]
        == "Population of the groups of this question, by their stated sizes; missing: a group."
    )
    assert str(told["by_region"]).endswith("missing: the population of the groups.")
