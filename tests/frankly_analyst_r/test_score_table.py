# SPDX-License-Identifier: Apache-2.0
"""Score tables in R: those of the Python client, cell by cell; `survey` makes the server's estimates of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from frankly_analyst import Analyst, Estimates, InvalidRequest, ScoreTable

from tests.frankly_analyst.desk import serving
from tests.frankly_analyst_r import surveys
from tests.frankly_analyst_r.commands import installed, r
from tests.frankly_server.analysis.test_counts import PAIRS, World, world

__all__ = ["world"]
pytestmark = pytest.mark.full_only

SCRIPT: Final = Path(__file__).with_name("score_table.R")
RATIO: Final = ["mood_today_score", "mood_today_answered"]
"""Mean of the scale among those who answered."""


@dataclass(frozen=True)
class Table:
    """Score table of the Python client, what R made of the same counts, and the server's estimates."""

    questions: tuple[str, ...]
    python: ScoreTable
    complete: ScoreTable
    r: Mapping[str, Any]
    estimates: Estimates
    scales: Estimates | None


def _tables(
    folder: Path, by: Sequence[str], strata: Sequence[str], chosen: Sequence[Sequence[str]],
    environment: Mapping[str, str],
) -> list[Table]:  # fmt: skip
    analyst = Analyst(environment["FRANKLY_URL"], environment["FRANKLY_API_KEY"])
    survey, asked, tables = environment["SURVEY"], [], []
    for number, questions in enumerate(chosen):
        counts = analyst.counts(
            survey, by=",".join(by), questions=questions if len(questions) > 1 else ()
        )
        file, _ = counts.table(*questions, expand=True).write(folder / f"{number}.csv")
        asked.append(
            {
                "questions": questions,
                "by": by,
                "strata": strata,
                "csv": str(file),
                "ratio": RATIO if questions == ("mood-today",) else None,
            }
        )
        tables.append((counts.table(*questions), counts.table(*questions, complete=True)))
    results = _results(folder, asked, environment)
    return [
        Table(
            tuple(questions),
            *both,
            result,
            analyst.estimates(survey, targets=list(questions) if len(questions) > 1 else "shares"),
            analyst.estimates(survey, targets="scales") if result["ratio"] else None,
        )
        for questions, both, result in zip(chosen, tables, results, strict=True)
    ]


def _results(folder: Path, asked: Sequence[Any], environment: Mapping[str, str]) -> list[Any]:
    (folder / "tables.json").write_text(json.dumps(asked))
    installed(folder)
    r("Rscript", str(SCRIPT), "tables.json", "result.json", cwd=folder, **environment)
    return list(json.loads((folder / "result.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    folders = [
        tmp_path_factory.mktemp(name) for name in ("versions", "versions_r", "arms", "arms_r")
    ]
    with serving(surveys.two_versions(folders[0])) as environment:
        made = _tables(
            folders[1],
            ("region", "age-group"),
            ["version"],
            [("smokes",), ("mood-today",), ("pets",), ("smokes", "mood-today")],
            environment,
        )
    with serving(surveys.arms(folders[2])) as environment:
        made += _tables(folders[3], ("region",), ["arm"], [("car",), ("paid", "car")], environment)
    return made


def test_r_has_the_same_table(tables: list[Table]) -> None:
    for table in tables:
        _same(table.r["columns"], table.python)
        _same(table.r["complete"], table.complete)
        # The tables are about what they are meant to be: reports in no stratum are in one of them.
        assert table.python.n > table.complete.n
        assert table.r["labels"] == {c.name: c.label for c in table.python.columns}


def test_r_has_the_same_table_of_every_kind_of_mechanism(world: World, tmp_path: Path) -> None:
    """Also where single questions have decoders of their own, and for choices that cannot be estimated."""
    every = world.counts(by="region,sex")
    names = [(q.id,) for part in every for q in part.questions]
    asked: list[Any] = []
    expected = []
    for questions in (*names, *PAIRS):
        counts = every if len(questions) == 1 else world.counts(questions=questions, by="region")
        try:
            expected.append(counts.table(*questions))
        except InvalidRequest as refused:
            assert refused.code == "unsupported"
            continue
        body = tmp_path / f"{len(asked)}.json"
        body.write_text(json.dumps(counts.body))
        asked.append({"questions": questions, "body": str(body)})
    assert len(asked) > 20
    for table, result in zip(expected, _results(tmp_path, asked, {}), strict=True):
        _same(result["columns"], table)


def _same(columns: Mapping[str, list[Any]], table: ScoreTable) -> None:
    assert list(columns) == list(table.values)
    for name, values in table.values.items():
        if name in table.scores:
            assert columns[name] == pytest.approx(values, rel=0, abs=1e-12), name
        else:
            assert columns[name] == list(values), name


def test_survey_has_the_servers_estimates_and_errors(tables: list[Table]) -> None:
    for table in tables:
        rows = table.estimates.of(" × ".join(table.questions))
        # The scores of the cells of a table, in the order of its rows, are after all others.
        names = (
            table.python.scores[-len(rows) :] if len(table.questions) > 1 else table.python.scores
        )
        for source in ("decoded", "csv"):
            mean, se = table.r[source]["mean"], table.r[source]["se"]
            for name, row in zip(names, rows, strict=False):
                assert mean[name] == pytest.approx(row.estimate, rel=0, abs=1e-12), (source, name)
                assert se[name] == pytest.approx(row.se, rel=1e-6), (source, name)
            for column in table.python.columns:
                if column.name in table.python.scores:
                    assert mean[column.name] == pytest.approx(column.mean, rel=0, abs=1e-12)
                    assert se[column.name] == pytest.approx(column.se, rel=1e-6)


def test_a_mean_among_those_who_answered_is_a_ratio_of_scores(tables: list[Table]) -> None:
    (table,) = [table for table in tables if table.scales is not None]
    assert table.scales is not None
    mean = table.scales.of("mood-today")[0]
    ratio, se = table.r["ratio"]
    assert ratio == pytest.approx(mean.estimate, rel=0, abs=1e-12)
    assert se == pytest.approx(mean.se, rel=1e-6)
