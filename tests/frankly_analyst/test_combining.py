# SPDX-License-Identifier: Apache-2.0
"""Combination, plots and conversion of estimates: sums, ratios, joint tables, HTML, pandas, Arrow."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from frankly_analyst import Analyst, Estimates, InvalidRequest, Refused
from frankly_analyst.formats import COLUMNS
from frankly_analyst.plots import percent
from frankly_server.cli import front

from tests.frankly_analyst.conftest import Served
from tests.narrowing import present
from tests.processes import output_of


@pytest.fixture(scope="module")
def found(served: Served) -> Estimates:
    return Analyst(served.url, served.site.analyst_key).estimates(served.site.survey)


@pytest.mark.parametrize("method", ["score", "clt", "kl"])
def test_combinations_are_the_servers_own_by_any_method(served: Served, method: str) -> None:
    analyst = Analyst(served.url, served.site.analyst_key)
    found = analyst.estimates(served.site.survey, 0.9, method=method)
    combinations = {"at all": {"weekly": 1, "daily": 1}, "more": {"daily": 1, "weekly": -1}}
    ratio = {"of": {"daily": 1}, "over": {"daily": 1, "weekly": 1}}
    wanted = {"drinks": combinations | {"r": ratio}}
    total, more, part = analyst.estimates(served.site.survey, 0.9, targets=wanted, method=method)
    for mine, theirs in (
        (found.sum("drinks", ["weekly", "daily"]), total),
        (found.diff("drinks", "daily", "weekly"), more),
        (found.ratio("drinks", {"daily": 1}, {"daily": 1, "weekly": 1}), part),
    ):
        assert (mine.estimate, mine.se) == pytest.approx((theirs.estimate, theirs.se))
        assert (mine.low, mine.high, mine.margin) == pytest.approx(
            (theirs.low, theirs.high, theirs.margin)
        )
        assert (mine.method, mine.level, mine.n, mine.documents) == (
            theirs.method,
            0.9,
            theirs.n,
            theirs.documents,
        )
    assert (total.method, part.method) == (method, "clt" if method == "clt" else "score")


def test_a_sum_of_all_choices_but_one_is_the_complement_of_that_one(found: Estimates) -> None:
    """The interval is also the complement's, which cannot be computed from the other rows' intervals."""
    rest, (never, *_) = found.sum("drinks", ["weekly", "daily"]), found.of("drinks")
    assert never.low is not None
    assert never.high is not None
    assert (rest.estimate, rest.se) == pytest.approx((1 - present(never.estimate), never.se))
    assert (rest.low, rest.high) == pytest.approx((1 - never.high, 1 - never.low))


def test_cells_of_a_joint_table_are_combined_too(found: Estimates) -> None:
    table = found.crosstab("smokes", "drinks")
    cells = {row.choice: present(row.estimate) for row in table}
    both = table.diff("smokes × drinks", "yes × daily", "no × daily")
    assert both.estimate == pytest.approx(cells["yes × daily"] - cells["no × daily"])
    assert both.low is not None
    assert both.high is not None
    assert both.low < present(both.estimate) < both.high


def test_a_combination_is_of_the_group_named(served: Served) -> None:
    found = Analyst(served.url, served.site.analyst_key).estimates(served.site.survey, by="version")
    mine = found.sum("drinks", ["weekly", "daily"], by="version=1")
    assert mine.by == "version=1"
    assert mine.estimate == pytest.approx(1 - present(found.of("drinks", "version=1")[0].estimate))


def test_a_ratio_whose_denominator_may_be_zero_is_unbounded(found: Estimates) -> None:
    tiny = found.ratio("drinks", {"daily": 1}, {"daily": 0.5, "weekly": -0.4})
    assert (tiny.low, tiny.high, tiny.margin) == (None, None, None)
    assert "unbounded" in tiny.flags
    assert "interval unbounded" in str(tiny)
    for text in (str(replace(found, rows=(tiny,))), replace(found, rows=(tiny,))._repr_html_()):
        assert "interval unbounded" in text
    assert replace(found, rows=(tiny,)).plot("drinks")


TWICE = {
    "other": lambda found: found.diff("drinks", "daily", "daily"),
    "choices": lambda found: found.sum("drinks", ["daily", "weekly", "daily"]),
    "weights": lambda found: found.lincom("smokes × drinks", {"yes × daily": 1, "yes,daily": 1}),
    "over": lambda found: found.ratio(
        "smokes × drinks", {"yes × daily": 1}, {"yes × daily": 1, "yes,daily": 1}
    ),
    "questions": lambda found: found.crosstab("drinks", "drinks"),
}


@pytest.mark.parametrize("field", TWICE)
def test_a_repeated_name_is_refused(found: Estimates, field: str) -> None:
    with pytest.raises(InvalidRequest, match="named twice") as refused:
        TWICE[field](found)
    assert refused.value.field == field


def test_unknown_numbers_are_shown_as_unknown(found: Estimates) -> None:
    known, *_ = found.of("drinks")
    nothing = replace(
        known, estimate=None, se=None, low=None, high=None, margin=None, flags=("unbounded",)
    )
    unknown = replace(known, se=None, low=None, high=None, margin=None, flags=("interval_unknown",))
    table = replace(found, rows=(nothing, unknown))
    for text in (str(table), table._repr_html_()):
        assert "unknown" in text
        assert "interval unbounded" in text
        assert "interval unknown" in text
    assert table.plot().count('class="bar"') == 1
    with pytest.raises(InvalidRequest, match="no estimates to plot"):
        replace(found, rows=(nothing,)).plot()


def test_a_ratio_to_all_choices_is_a_share(found: Estimates) -> None:
    part = found.ratio("drinks", {"daily": 1}, dict.fromkeys(("never", "weekly", "daily"), 1))
    whole = found.sum("drinks", ["daily"])
    assert (part.low, part.estimate, part.high, part.se) == (
        whole.low,
        whole.estimate,
        whole.high,
        whole.se,
    )


def test_row_percentages_add_up_within_every_row(found: Estimates) -> None:
    table = found.crosstab("smokes", "drinks", percent="row")
    assert [row.choice for row in table][:3] == ["never | no", "weekly | no", "daily | no"]
    shares = np.array([row.estimate for row in table]).reshape(2, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert {row.question for row in table} == {"drinks | smokes"}


def test_a_cross_tab_adds_up_to_its_margins(found: Estimates) -> None:
    table = found.crosstab("smokes", "drinks")
    assert len(table) == 6
    cells = np.array([r.estimate for r in table]).reshape(2, 3)
    np.testing.assert_allclose(
        cells.sum(axis=1), [present(r.estimate) for r in found.of("smokes")], atol=1e-12
    )
    np.testing.assert_allclose(
        cells.sum(axis=0), [present(r.estimate) for r in found.of("drinks")], atol=1e-12
    )


def test_pictures_and_tables_show_every_row(found: Estimates) -> None:
    assert (
        len(ElementTree.fromstring(found.plot("drinks")).findall(".//{*}rect[@class='bar']")) == 3
    )
    page = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    assert len(page.findall(".//tr")) == 1 + len(found)
    assert page.find(".//caption") is not None
    shown = [line.findall("td")[3].text for line in page.findall(".//tr")[1:]]
    assert shown == [
        f"{percent(row.low)} to {percent(row.high)}" for row in found if row.low is not None
    ]


def test_pandas_and_arrow_hold_the_rows(found: Estimates) -> None:
    frame, table = found.to_pandas(), found.to_arrow()
    assert list(frame.columns) == table.column_names == list(COLUMNS)
    assert (
        frame["estimate"].tolist()
        == table.column("estimate").to_pylist()
        == [r.estimate for r in found]
    )


def test_large_libraries_are_imported_only_on_use() -> None:
    heavy = ("pandas", "pyarrow", "numpy", "scipy")
    code = f"import sys, frankly_analyst; print([m for m in {heavy} if m in sys.modules])"
    assert output_of(code).strip() == "[]"


@pytest.mark.parametrize("module", ["pandas", "pyarrow"])
def test_an_error_names_the_missing_library(
    found: Estimates, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidRequest, match=module):
        found.to_pandas() if module == "pandas" else found.to_arrow()
    assert found.to_csv()


def test_unknown_questions_and_choices_are_refused(found: Estimates) -> None:
    for ask in (
        lambda: found.of("height"),
        lambda: found.sum("drinks", ["gin"]),
        lambda: found.lincom("drinks", {}),
        lambda: found.lincom("drinks × drinks", {"daily × daily": 1}),
        lambda: Estimates.from_json(found.body).crosstab("smokes", "drinks"),
        lambda: Estimates.from_json(found.body).sum("drinks", ["daily"]),
    ):
        with pytest.raises((InvalidRequest, Refused)):
            ask()


def test_a_saved_result_replays(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setenv("FRANKLY_API_KEY", served.site.analyst_key)
    monkeypatch.setenv("FRANKLY_HOME", str(served.site.settings.home))
    where = ["--url", served.url]
    assert (
        front.run(["estimates", served.site.survey, *where, "--result", "--method", "exact"]) == 0
    )
    saved = capsys.readouterr().out
    (tmp_path / "result.json").write_bytes(saved.encode())
    assert front.run(["replay", str(tmp_path / "result.json")]) == 0
    assert "identical" in capsys.readouterr().out
    (tmp_path / "result.json").write_bytes(
        json.dumps(json.loads(saved) | {"n": 61}, sort_keys=True).encode()
    )
    assert front.run(["replay", str(tmp_path / "result.json"), "--json"]) == 6
    assert json.loads(capsys.readouterr().err)["code"] == "integrity"
    analyst = Analyst(served.url, served.site.analyst_key)
    crossed = analyst.estimates(served.site.survey).crosstab("smokes", "drinks")
    (tmp_path / "result.json").write_bytes(crossed.to_json())
    assert front.run(["replay", str(tmp_path / "result.json")]) == 0
    capsys.readouterr()
    # Cells of joint tables have names beyond ASCII; what is no result is refused by name.
    crosstab = ["--crosstab", "smokes", "--crosstab", "drinks"]
    assert front.run(["estimates", served.site.survey, *where, "--result", *crosstab]) == 0
    (tmp_path / "result.json").write_bytes(capsys.readouterr().out.encode())
    assert front.run(["replay", str(tmp_path / "result.json")]) == 0
    for wrong in (b"\xff", b"{", b"[" * 100_000):
        (tmp_path / "result.json").write_bytes(wrong)
        capsys.readouterr()
        assert front.run(["replay", str(tmp_path / "result.json"), "--json"]) == 3
        assert json.loads(capsys.readouterr().err)["code"] == "json_invalid"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_other_formats_over_http(served: Served, form: str) -> None:
    answer = served.site.estimates(f"?format={form}")
    assert answer.status_code == 200
    assert answer.data[:4] == (b"ques" if form == "csv" else b"PAR1")
