# SPDX-License-Identifier: Apache-2.0
"""Combining, plotting and handing on: sums, ratios, joint tables, HTML, pandas, Arrow, and doing without them."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.cli import front
from frankly_server.client import Analyst, Estimates
from frankly_server.formats import COLUMNS
from frankly_server.plots import percent

from tests.frankly_server.client.conftest import Served


@pytest.fixture(scope="module")
def found(served: Served) -> Estimates:
    return Analyst(served.url, served.site.analyst_key).estimates(served.site.survey)


def test_sums_and_differences_are_the_servers_own(served: Served) -> None:
    analyst = Analyst(served.url, served.site.analyst_key)
    found = analyst.estimates(served.site.survey, method="clt")
    wanted = {"drinks": {"at all": {"weekly": 1, "daily": 1}, "more": {"daily": 1, "weekly": -1}}}
    total, more = analyst.estimates(served.site.survey, targets=wanted, method="clt")
    for mine, theirs in (
        (found.sum("drinks", ["weekly", "daily"]), total),
        (found.diff("drinks", "daily", "weekly"), more),
    ):
        assert mine.estimate == pytest.approx(theirs.estimate)
        assert mine.se == pytest.approx(theirs.se)
        assert (mine.low, mine.high, mine.margin) == pytest.approx((theirs.low, theirs.high, theirs.margin))
        assert mine.method == theirs.method == "clt"
        assert (mine.n, mine.documents) == (theirs.n, theirs.documents)


def test_a_difference_has_a_score_interval_where_the_rows_have_one(found: Estimates) -> None:
    """Of two choices it is twice a share less 1, at both ends, also where all reports are equal: no error is seen."""
    for low, high, se in ((0.6, 0.85, 0.06), (0.93, 1.0, 0.0)):
        share = 0.8 if se else 1.0
        yes = replace(found.rows[0], question="q", choice="yes", estimate=share, low=low, high=high, se=se)
        no = replace(yes, choice="no", estimate=1 - share, low=1 - high, high=1 - low)
        covariance = {("q", ""): [[se**2, -(se**2)], [-(se**2), se**2]]}
        both = replace(found, rows=(yes, no), covariances=covariance)
        apart, together = both.diff("q", "yes", "no"), both.sum("q", ["yes", "no"])
        normal = 1.959964 * se
        wanted = (2 * min(low, share - normal) - 1, 2 * max(high, share + normal) - 1)
        assert (apart.low, apart.high) == pytest.approx(wanted, abs=1e-6)
        assert apart.method == "score"
        assert together.low is not None
        assert together.high is not None
        assert together.low <= 1 <= together.high


def test_a_ratio_is_the_servers_own(served: Served) -> None:
    wanted = {"drinks": {"r": {"of": {"daily": 1}, "over": {"daily": 1, "weekly": 1}}}}
    analyst = Analyst(served.url, served.site.analyst_key)
    found = analyst.estimates(served.site.survey, method="clt")
    (theirs,) = analyst.estimates(served.site.survey, targets=wanted, method="clt")
    mine = found.ratio("drinks", {"daily": 1}, {"daily": 1, "weekly": 1})
    assert (mine.estimate, mine.se) == (pytest.approx(theirs.estimate), pytest.approx(theirs.se))
    assert (mine.low, mine.high, mine.margin) == pytest.approx((theirs.low, theirs.high, theirs.margin))
    assert mine.method == theirs.method == "clt"


def test_a_ratio_of_score_intervals_is_no_narrower_than_of_normal_ones(served: Served, found: Estimates) -> None:
    normal = Analyst(served.url, served.site.analyst_key).estimates(served.site.survey, method="clt")
    mine, plain = (each.ratio("drinks", {"daily": 1}, {"daily": 1, "weekly": 1}) for each in (found, normal))
    assert (mine.method, plain.method) == ("score", "clt")
    assert (mine.estimate, mine.se) == (plain.estimate, plain.se)
    assert plain.low is not None
    assert plain.high is not None
    assert mine.low is None or (mine.low <= plain.low and mine.high is not None and mine.high >= plain.high)


def test_a_ratio_whose_denominator_may_be_none_is_unbounded(found: Estimates) -> None:
    tiny = found.ratio("drinks", {"daily": 1}, {"daily": 0.5, "weekly": -0.4})
    assert (tiny.low, tiny.high, tiny.margin) == (None, None, None)
    assert "unbounded" in tiny.flags
    assert "interval unbounded" in str(tiny)
    for text in (str(replace(found, rows=(tiny,))), replace(found, rows=(tiny,))._repr_html_()):
        assert "interval unbounded" in text
    assert replace(found, rows=(tiny,)).plot("drinks")


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
    np.testing.assert_allclose(cells.sum(axis=1), [r.estimate for r in found.of("smokes")], atol=1e-12)
    np.testing.assert_allclose(cells.sum(axis=0), [r.estimate for r in found.of("drinks")], atol=1e-12)


def test_pictures_and_tables_show_every_row(found: Estimates) -> None:
    assert len(ElementTree.fromstring(found.plot("drinks")).findall(".//{*}rect")) == 3
    page = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    assert len(page.findall(".//tr")) == 1 + len(found)
    assert page.find(".//caption") is not None
    shown = [line.findall("td")[3].text for line in page.findall(".//tr")[1:]]
    assert shown == [f"{percent(row.low)} to {percent(row.high)}" for row in found if row.low is not None]


def test_pandas_and_arrow_hold_the_rows(found: Estimates) -> None:
    frame, table = found.to_pandas(), found.to_arrow()
    assert list(frame.columns) == table.column_names == list(COLUMNS)
    assert frame["estimate"].tolist() == table.column("estimate").to_pylist() == [r.estimate for r in found]


def test_nothing_heavy_is_imported_until_asked_for() -> None:
    heavy = ("pandas", "pyarrow", "numpy", "scipy")
    code = f"import sys, frankly_server.client; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["pandas", "pyarrow"])
def test_without_them_the_way_out_is_named(found: Estimates, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidInput, match=module):
        found.to_pandas() if module == "pandas" else found.to_arrow()
    assert found.to_csv()


def test_what_there_is_not_is_refused(found: Estimates) -> None:
    for ask in (
        lambda: found.of("height"),
        lambda: found.sum("drinks", ["gin"]),
        lambda: found.lincom("drinks", {}),
        lambda: Estimates.from_json(found.body).crosstab("smokes", "drinks"),
    ):
        with pytest.raises(InvalidInput):
            ask()


def test_a_saved_result_replays(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setenv("FRANKLY_API_KEY", served.site.analyst_key)
    where = ["--url", served.url]
    assert front.run(["estimates", served.site.survey, *where, "--result", "--method", "exact"]) == 0
    saved = capsys.readouterr().out
    (tmp_path / "result.json").write_bytes(saved.encode())
    assert front.run(["replay", str(tmp_path / "result.json")]) == 0
    assert "the same" in capsys.readouterr().out
    (tmp_path / "result.json").write_bytes(json.dumps(json.loads(saved) | {"n": 61}, sort_keys=True).encode())
    assert front.run(["replay", str(tmp_path / "result.json"), "--json"]) == 6
    assert json.loads(capsys.readouterr().err)["code"] == "integrity"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_other_formats_over_http(served: Served, form: str) -> None:
    answer = served.site.estimates(f"?format={form}")
    assert answer.status_code == 200
    assert answer.data[:4] == (b"ques" if form == "csv" else b"PAR1")
