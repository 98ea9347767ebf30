# SPDX-License-Identifier: Apache-2.0
"""Score tables: read back from every file by other software, whose figures are the server's."""

import csv
import io
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
import pyreadstat
import pytest
from frankly_analyst import Analyst, Counts, InvalidRequest, ScoreTable
from statsmodels.formula.api import wls
from statsmodels.stats.weightstats import DescrStatsW

from tests.frankly_analyst.desk import filled, serving
from tests.refusals import refusal


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyst]:
    """A client of a survey of 2,400 reports with the public questions region and sex."""
    with serving(filled(tmp_path_factory.mktemp("desk"), 2400)) as environment:
        yield Analyst(environment["FRANKLY_URL"], environment["FRANKLY_API_KEY"])


@pytest.fixture(scope="module")
def table(analyst: Analyst) -> ScoreTable:
    return analyst.counts("habits", by="region,sex").table("drinks")


def _from_csv(table: ScoreTable, path: Path) -> pd.DataFrame:
    return pd.read_csv(table.write(path)[0], keep_default_na=False, na_values="")


def _from_parquet(table: ScoreTable, path: Path) -> pd.DataFrame:
    return pyarrow.parquet.read_table(table.write(path)[0]).to_pandas()


def _labelled(read: Any, table: ScoreTable, path: Path) -> pd.DataFrame:
    frame, described = read(table.write(path)[0])
    # The labels are the texts of the survey; ids are restored, to compare with the other files.
    for column in table.columns:
        assert described.column_names_to_labels[column.name] == column.label[:80]
        if column.labels:
            names = {label: value for value, label in column.labels.items()}
            codes = described.variable_value_labels[column.name]
            frame[column.name] = [names[codes[code]] for code in frame[column.name]]
    return frame


READERS: dict[str, Callable[[ScoreTable, Path], pd.DataFrame]] = {
    "csv": _from_csv,
    "parquet": _from_parquet,
    "sav": partial(_labelled, pyreadstat.read_sav),
    "dta": partial(_labelled, pyreadstat.read_dta),
}


@pytest.mark.parametrize("kind", READERS)
def test_statsmodels_finds_the_servers_figures_in_every_file(
    analyst: Analyst, table: ScoreTable, kind: str, tmp_path: Path
) -> None:
    frame = READERS[kind](table, tmp_path / f"drinks.{kind}")
    pd.testing.assert_frame_equal(frame, table.to_pandas(), check_dtype=False)
    rows = analyst.estimates("habits").of("drinks")
    found = DescrStatsW(frame[list(table.scores)], weights=frame["count"], ddof=1)
    assert found.mean == pytest.approx([row.estimate for row in rows], abs=1e-12)
    assert found.std_mean == pytest.approx([row.se for row in rows], rel=1e-6)


def test_a_regression_on_public_answers_is_the_comparison_of_the_server(
    analyst: Analyst, table: ScoreTable
) -> None:
    """Least squares on a group's dummy: the coefficient is the difference, the robust error that of two means."""
    frame = table.to_pandas()
    rows = analyst.estimates("habits", by="region", method="clt").compare("north")
    expanded = frame.loc[frame.index.repeat(frame["count"])]
    for row in [row for row in rows if row.question == "drinks"]:
        fit = wls(f"drinks_{row.choice} ~ region", expanded, weights=1).fit(cov_type="HC0")
        assert fit.params["region[T.south]"] == pytest.approx(row.difference, abs=1e-12)
        # HC0 divides by n where the server divides by n − 1, in groups of 600 and 1,800.
        assert fit.bse["region[T.south]"] == pytest.approx(row.se, rel=1 / 600)


def test_expanded_rows_are_the_rows_as_often_as_they_count(analyst: Analyst) -> None:
    counts = analyst.counts("habits", by="region", questions="smokes,drinks")
    short = counts.table("smokes", "drinks")
    long = counts.table("smokes", "drinks", expand=True)
    frame = short.to_pandas()
    repeated = frame.loc[frame.index.repeat(frame.pop("count"))].reset_index(drop=True)
    pd.testing.assert_frame_equal(long.to_pandas(), repeated)
    assert (len(long), long.n, long.notes) == (short.n, short.n, short.notes)
    assert [c.mean for c in long.columns] == [c.mean for c in short.columns if c.name != "count"]
    assert sum(c.mean for c in short.columns if " × " in c.label) == pytest.approx(1, abs=1e-12)


def test_the_guide_shows_the_first_lines(table: ScoreTable, root: Path) -> None:
    page = (root / "docs" / "counts.md").read_text(encoding="utf-8")
    assert "```\n" + "".join(table.to_csv().splitlines(keepends=True)[:2]) + "```\n" in page


def test_a_codebook_says_what_each_column_is(table: ScoreTable) -> None:
    lines = {line["column"]: line for line in csv.DictReader(io.StringIO(table.codebook()))}
    assert list(lines) == [*table.values]
    assert lines["region"]["values"] == "north = North; south = South"
    assert lines["drinks_daily"]["label"] == "drinks: Daily"
    assert float(lines["drinks_daily"]["mean"]) == pytest.approx(
        float(np.average(table.values["drinks_daily"], weights=table.values["count"])), abs=1e-12
    )
    assert {line["role"] for line in lines.values()} == {
        "design",
        "public",
        "symbol",
        "score",
        "count",
    }
    assert "drinks_daily" in str(table)
    assert "<td>drinks: Daily</td>" in table._repr_html_()


QUESTION: dict[str, Any] = {
    "id": "mood",
    "text": {"en": "How are you?"},
    "choices": [
        {"id": "bad", "label": {"en": "Bad"}, "score": 1.0},
        {"id": "good", "label": {"en": "Good"}, "score": 3.0},
        {"id": "-", "label": {"en": "No answer"}, "role": "no_answer"},
    ],
}
PART: dict[str, Any] = {
    "document": "sha256:a", "version": 1, "release": 1, "block": "mood", "kind": "table",
    "questions": [QUESTION], "n": 100, "minimum": 10,
    "factors": [{"name": "dense", "denominator": 4, "weights": [[2, 1, 1], [1, 2, 1], [1, 1, 2]],
                 "design_prior": [1, 1, 1], "decoder": [[3, -1, -1], [-1, 3, -1], [-1, -1, 3]]}],
    "strata": [{"by": {"with": "a", "1st": "b"}, "n": 80, "counts": [40, 30, 10]}],
    "withheld": {"strata": 1, "reports": 5}, "without_stratum": 15,
    "rest": {"n": 20, "counts": [5, 5, 10]},
}  # fmt: skip
BODY: dict[str, Any] = {
    "survey": "s", "title": {"en": "Moods"}, "languages": ["en"], "n": 100, "by": ["with", "1st"],
    "strata_questions": [
        {"id": name, "text": {"en": "?"}, "choices": [{"id": i, "label": {"en": i}} for i in "ab"]}
        for name in ("with", "1st")
    ],
    "parts": [PART],
}  # fmt: skip


def _changed(**changes: Any) -> Counts:
    return Counts.from_json(BODY | {"parts": [deepcopy(PART) | changes]})


def test_scales_and_choices_that_are_no_answers_have_scores_of_their_own() -> None:
    """Mean score 1·(.35) + 3·(.25) = 1.1 of all, .6 of whom answered."""
    found = {c.name: c.mean for c in _changed().table("mood").columns if c.role == "score"}
    # Shares by hand: 45, 35 and 20 of 100 symbols, decoded by 4·share − 1.
    expected = {
        "mood_bad": 0.8,
        "mood_good": 0.4,
        "mood__": -0.2,
        "mood_score": 2.0,
        "mood_answered": 1.2,
    }
    assert found == pytest.approx(expected, abs=1e-12)


def test_reports_without_public_answers_are_rows_with_missing_values() -> None:
    counts = _changed()
    table = counts.table("mood")
    assert table.n == 100
    assert list(table)[-1]["q_with"] is None
    assert "5 reports are in strata below the minimum, 15 were released without" in table.notes[0]
    assert table.notes[0].endswith("their public answers are missing in this table")
    complete = counts.table("mood", complete=True)
    assert complete.n == 80
    assert complete.notes[0].endswith("they are not in this table")
    assert all(row["q_1st"] == "b" for row in complete)


def test_the_codebook_of_a_labelled_file_has_its_codes(tmp_path: Path) -> None:
    path, codebook = _changed().table("mood").write(tmp_path / "mood.dta")
    frame, described = pyreadstat.read_dta(path)
    lines = {
        line["column"]: line for line in csv.DictReader(io.StringIO(codebook.read_text("utf-8")))
    }
    assert lines["q_1st"]["values"] == "1 = a (a); 2 = b (b)"
    assert described.variable_value_labels["q_1st"] == {1: "a", 2: "b"}
    assert set(frame["q_1st"].dropna()) == {2}
    assert lines["version"]["values"] == ""


def test_labelled_files_keep_missing_public_answers(tmp_path: Path) -> None:
    table = _changed().table("mood")
    for read, kind in ((pyreadstat.read_sav, "sav"), (pyreadstat.read_dta, "dta")):
        frame, _ = read(table.write(tmp_path / f"mood.{kind}")[0])
        assert [math.isnan(v) for v in frame["q_with"]] == [False] * 3 + [True] * 3
    assert table.to_csv().splitlines()[-1].startswith("1,,,2,")
    assert table.to_arrow()["q_with"].null_count == 3


def test_versions_and_arms_are_samples_of_fixed_sizes() -> None:
    """The error of a mean over two samples of fixed sizes, by hand from the variances within them."""
    other = deepcopy(PART) | {"version": 2, "document": "sha256:b"}
    other["strata"] = [{"by": {"with": "b", "1st": "b"}, "n": 300, "counts": [100, 200, 0]}]
    other["rest"] = None
    counts = Counts.from_json(BODY | {"parts": [PART, other]})
    (bad,) = [c for c in counts.table("mood").columns if c.name == "mood_bad"]
    first = np.repeat([3.0, -1, -1], [45, 35, 20])
    second = np.repeat([3.0, -1], [100, 200])
    assert bad.mean == pytest.approx(np.concatenate([first, second]).mean(), abs=1e-12)
    variance = (100 * first.var(ddof=1) + 300 * second.var(ddof=1)) / 400**2
    assert bad.se == pytest.approx(math.sqrt(variance), abs=1e-12)
    alone = counts.table("mood", documents=["sha256:b"])
    assert (alone.n, set(alone.values["version"])) == (300, {2})
    arms = [
        deepcopy(PART) | {"arm": "x"},
        other | {"arm": "y", "version": 1, "document": "sha256:a"},
    ]
    by_arm = Counts.from_json(BODY | {"parts": arms}).table("mood")
    (same,) = [c for c in by_arm.columns if c.name == "mood_bad"]
    assert (same.mean, same.se) == (bad.mean, bad.se)
    assert set(by_arm.values["arm"]) == {"x", "y"}


def test_scores_roles_and_texts_are_those_of_the_newest_version() -> None:
    """As in estimates: an old version's score of a choice is not that of its mean today."""
    new = deepcopy(PART) | {"version": 2, "document": "sha256:b"}
    choices = new["questions"][0]["choices"]
    choices[0] |= {"score": 10.0, "label": {"en": "Terrible"}}
    choices[1] = {"id": "good", "label": {"en": "Unsure"}, "role": "no_answer"}
    table = Counts.from_json(BODY | {"n": 200, "parts": [PART, new]}).table("mood")
    found = {c.name: c for c in table.columns}
    assert found["mood_bad"].label == "mood: Terrible"
    # Shares 0.8, 0.4 and −0.2 in both versions, as above.
    assert found["mood_score"].mean == pytest.approx(8.0, abs=1e-12)
    assert found["mood_answered"].mean == pytest.approx(0.8, abs=1e-12)


def test_a_table_of_some_reports_says_so() -> None:
    table = Counts.from_json(BODY | {"n": 240}).table("mood")
    assert table.notes[0] == "100 of 240 released reports are about mood"


def test_names_of_columns_are_accepted_everywhere_and_given_once(tmp_path: Path) -> None:
    part = deepcopy(PART)
    part["questions"][0]["choices"] = [
        {"id": name, "label": {"en": name}} for name in ("a-b", "a.b", "x" * 60)
    ]
    part["questions"][0]["id"] = "Mood"
    table = Counts.from_json(BODY | {"parts": [part]}).table("Mood")
    assert table.scores == ("Mood_a_b", "Mood_a_b_2", "Mood_" + "x" * 26)
    # Public answers have value labels, whose names Stata limits as well.
    part["strata"][0]["by"] = {"r" * 60: "a", "str5": "b"}
    by = list(part["strata"][0]["by"])
    strata = [q | {"id": name} for q, name in zip(BODY["strata_questions"], by, strict=True)]
    body = BODY | {"by": by, "strata_questions": strata, "parts": [part]}
    labelled = Counts.from_json(body).table("Mood")
    assert list(labelled.values)[1:3] == ["r" * 31, "q_str5"]
    for kind in ("sav", "dta"):
        assert labelled.write(tmp_path / f"x.{kind}")[0].exists()


def test_a_share_that_cannot_be_estimated_has_no_column() -> None:
    factors = deepcopy(PART["factors"])
    factors[0]["decoder"][1] = None
    table = _changed(factors=factors).table("mood")
    assert table.scores == ("mood_bad", "mood__")
    assert table.notes[-1] == (
        "no number of reports can estimate: mood: Good, mood: score of the answer, 0 if it is "
        "none, mood: answered"
    )


def test_bad_input_is_named(tmp_path: Path) -> None:
    counts = _changed()
    other = deepcopy(PART) | {"document": "sha256:b", "version": 2}
    other["questions"][0]["choices"].reverse()
    two = Counts.from_json(BODY | {"parts": [PART, other]})
    sets = {
        "kind": "sets",
        "strata": [{"by": {}, "n": 40, "pairs": [[20, 5], [5, 20]], "masks": None}],
    }
    none = _changed(strata=[], rest=None)
    table = counts.table("mood")
    blind = deepcopy(PART["factors"])
    blind[0]["decoder"] = [None] * 3
    (tmp_path / "full.parquet").mkdir()
    for act, code, field, word in (
        (partial(counts.table), "targets_invalid", "questions", "name one"),
        (partial(counts.table, ["mood"]), "targets_invalid", "questions", "texts"),  # type: ignore[arg-type]
        (partial(counts.table, "age"), "targets_invalid", "questions", "age"),
        (partial(_changed(factors=blind).table, "mood"), "unsupported", "questions", "no number of reports"),
        (partial(counts.table, "mood", documents="sha256:a"), "targets_invalid", "documents", "sha256:a"),
        (partial(two.table, "mood"), "unsupported", "documents", "different choices"),
        (partial(none.table, "mood"), "targets_invalid", "by", "fewer public questions"),
        (partial(_changed(**sets, rest=None).table, "mood"), "unsupported", "questions", "sets"),
        (partial(table.write, tmp_path / "x.xlsx"), "unsupported", "path", "csv, parquet, sav, dta"),
        (partial(table.write, tmp_path / "no" / "x.csv"), "unsupported", "path", "folder does not exist"),
        (partial(table.write, tmp_path / "no" / "x.sav"), "unsupported", "path", "folder does not exist"),
        (partial(table.write, tmp_path / "full.parquet"), "unsupported", "path", "written"),
    ):  # fmt: skip
        error = refusal(InvalidRequest, act)
        assert (error.code, error.field) == (code, field), act
        assert word in str(error)
