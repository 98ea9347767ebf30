# SPDX-License-Identifier: Apache-2.0
"""Joint tables, combinations, ratios, strata, versions, formats, and byte-exact replay."""

import csv
import io
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from frankly_analyst.formats import COLUMNS, to_csv
from frankly_design.estimate.margins import METHODS
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_server.analysis import Analysis, encode
from frankly_server.analysis.request import Request
from frankly_server.analysis.result import NOTES
from frankly_server.store import Database
from frankly_server.web.parquet import to_parquet

from tests.frankly_protocol.samples import ldp_block, question, survey
from tests.frankly_server.samples import SURVEY, put, released, row
from tests.refusals import code_and_field, refusal


def _receive(
    database: Database,
    document: SurveyDocument,
    cells: dict[tuple[int, ...], int],
    stratum: str = "",
) -> None:
    """Store whole reports and release them."""
    from dataclasses import replace

    rows = [
        replace(row(*symbols, document=document.digest), strata=stratum)
        for symbols, n in cells.items()
        for _ in range(n)
    ]
    released(database, document, rows)


PAIRS: dict[tuple[int, ...], int] = {(0, 0): 90, (0, 1): 40, (1, 0): 30, (1, 1): 60}


@pytest.fixture
def two(sqlite: Database) -> Database:
    _receive(
        sqlite, put(sqlite, survey(ldp_block("affair", "1"), ldp_block("marriage", "2"))), PAIRS
    )
    return sqlite


def _inverse(on: float) -> np.ndarray:
    return np.linalg.inv(np.array([[on, 1 - on], [1 - on, on]]))


def test_a_cross_tab_is_the_pair_table_decoded_on_both_sides(two: Database) -> None:
    (question_result,) = Analysis(two).estimates(SURVEY, targets=["affair", "marriage"])[
        "questions"
    ]
    on = [float(np.exp(e) / (1 + np.exp(e))) for e in (1, 2)]
    pairs = np.array([[90, 40], [30, 60]]) / 220
    expected = _inverse(on[0]) @ pairs @ _inverse(on[1]).T
    shares = np.array([r["estimate"] for r in question_result["rows"]]).reshape(2, 2)
    np.testing.assert_allclose(shares, expected, rtol=1e-9)
    assert [r["choice"] for r in question_result["rows"]][:2] == ["no × no", "no × yes"]
    # The expected variance comes from the sample of 220 decoded reports, computed report by report.
    decoded = np.array([
        np.outer(_inverse(on[0])[:, y], _inverse(on[1])[:, z]).ravel() for (y, z), n in PAIRS.items() for _ in range(n)
    ])  # fmt: skip
    np.testing.assert_allclose(
        [r["se"] for r in question_result["rows"]],
        decoded.std(axis=0, ddof=1) / np.sqrt(220),
        rtol=1e-9,
    )
    one_way = Analysis(two).estimates(SURVEY)["questions"]
    np.testing.assert_allclose(
        shares.sum(axis=1), [r["estimate"] for r in one_way[0]["rows"]], atol=1e-12
    )
    np.testing.assert_allclose(
        shares.sum(axis=0), [r["estimate"] for r in one_way[1]["rows"]], atol=1e-12
    )


def test_combinations_and_ratios(two: Database) -> None:
    targets = {
        "affair": {
            "yes minus no": {"yes": 1, "no": -1},
            "odds": {"of": {"yes": 1}, "over": {"no": 1}},
        }
    }
    shares_result = Analysis(two).estimates(SURVEY)["questions"][0]
    (question_result,) = Analysis(two).estimates(SURVEY, targets=targets)["questions"]
    no, yes = (r["estimate"] for r in shares_result["rows"])
    difference, odds = question_result["rows"]
    assert difference["estimate"] == pytest.approx(yes - no)
    assert difference["se"] == pytest.approx(
        2 * shares_result["rows"][0]["se"]
    )  # the two shares sum to 1
    assert odds["estimate"] == pytest.approx(yes / no)
    # d(p/(1−p)) = dp/(1−p)²
    assert odds["se"] == pytest.approx(shares_result["rows"][0]["se"] / no**2)
    assert odds["low"] < odds["estimate"] < odds["high"]


@pytest.mark.parametrize(("percent", "axis"), [("row", 1), ("column", 0)])
def test_percentages_of_a_cross_tab_are_cells_over_their_rows_or_columns(
    two: Database, percent: str, axis: int
) -> None:
    (cells,) = Analysis(two).estimates(SURVEY, targets=["affair", "marriage"])["questions"]
    answer = Analysis(two).estimates(SURVEY, targets=["affair", "marriage"], percent=percent)
    (question_result,) = answer["questions"]
    table = np.array([r["estimate"] for r in cells["rows"]]).reshape(2, 2)
    percentages = np.array([r["estimate"] for r in question_result["rows"]]).reshape(2, 2)
    np.testing.assert_allclose(percentages, table / table.sum(axis=axis, keepdims=True), rtol=1e-9)
    names = {"row": ("marriage | affair", ["no | no", "yes | no", "no | yes", "yes | yes"]),
             "column": ("affair | marriage", ["no | no", "no | yes", "yes | no", "yes | yes"])}  # fmt: skip
    assert (question_result["id"], [r["choice"] for r in question_result["rows"]]) == names[percent]
    assert (answer["percent"], answer["notes"]) == (percent, list(NOTES))
    # Fieller's interval is computed from its definition, with the sample variance of decoded
    # reports.
    covariance = np.array(cells["covariance"])
    flat = [(i, j) for i in (0, 1) for j in (0, 1)]
    (clt_result,) = Analysis(two).estimates(
        SURVEY, targets=["affair", "marriage"], percent=percent, method="clt"
    )["questions"]
    for place, percentage_row in zip(flat, clt_result["rows"], strict=True):
        of = np.array([float(cell == place) for cell in flat])
        over = np.array([float(cell[1 - axis] == place[1 - axis]) for cell in flat])
        for end in (percentage_row["low"], percentage_row["high"]):
            w = of - end * over
            assert (w @ table.ravel()) ** 2 == pytest.approx(
                1.959963984540054**2 * (w @ covariance @ w)
            )
        assert percentage_row["low"] < percentage_row["estimate"] < percentage_row["high"]
    for wide, narrow in zip(question_result["rows"], clt_result["rows"], strict=True):
        assert wide["low"] <= narrow["low"]
        assert wide["high"] >= narrow["high"]
    assert Analysis(two).replay(json.loads(encode(answer))) == encode(answer)
    lines = list(csv.DictReader(io.StringIO(to_csv(answer).decode())))
    assert [line["choice"] for line in lines] == names[percent][1]


def test_a_pooled_percentage_lies_between_its_versions_where_every_denominator_is_above_0(
    sqlite: Database,
) -> None:
    first = put(sqlite, survey(ldp_block("affair", "1"), ldp_block("marriage", "2")))
    blocks = (ldp_block("affair", "2"), ldp_block("marriage", "1"))
    second = put(sqlite, survey(*blocks, version=2, prev=first.digest))
    _receive(sqlite, first, {(0, 0): 60, (0, 1): 20, (1, 0): 30, (1, 1): 40})
    _receive(sqlite, second, {(0, 0): 100, (0, 1): 70, (1, 0): 20, (1, 1): 90})
    options: dict[str, Any] = {"targets": ["affair", "marriage"], "percent": "row"}
    (pooled,) = Analysis(sqlite).estimates(SURVEY, **options)["questions"]
    apart = [
        q["rows"] for q in Analysis(sqlite).estimates(SURVEY, by="version", **options)["questions"]
    ]
    assert len(apart) == 2
    for mean, first_row, second_row in zip(pooled["rows"], *apart, strict=True):
        low, high = sorted((first_row["estimate"], second_row["estimate"]))
        assert low < mean["estimate"] < high


def test_a_ratio_without_ends_is_empty_in_every_format(sqlite: Database) -> None:
    document = put(sqlite, survey(ldp_block("affair", "1"), ldp_block("marriage", "2")))
    _receive(sqlite, document, {(0, 0): 50, (0, 1): 6, (1, 0): 15, (1, 1): 2})
    result = Analysis(sqlite).estimates(SURVEY, targets=["affair", "marriage"], percent="row")
    (bounded, *_, unsure) = result["questions"][0]["rows"]
    assert bounded["low"] is not None
    assert (unsure["low"], unsure["high"], unsure["margin"]) == (None, None, None)
    assert "unbounded" in unsure["flags"]
    assert "unbounded" not in bounded["flags"]
    assert Analysis(sqlite).replay(json.loads(encode(result))) == encode(result)
    line = list(csv.DictReader(io.StringIO(to_csv(result).decode())))[-1]
    assert (line["low"], line["high"], line["margin"]) == ("", "", "")
    table = parquet.read_table(io.BytesIO(to_parquet(result)))
    assert table.column("low").to_pylist()[-1] is None


def test_strata_are_separate_and_small_ones_have_no_estimates(sqlite: Database) -> None:
    document_of_one_block = survey(ldp_block("affair", "1"))
    from dataclasses import replace

    document = put(
        sqlite, replace(document_of_one_block, strata=(question("region", "north", "south"),))
    )
    _receive(sqlite, document, {(0,): 60, (1,): 40}, '{"region":"north"}')
    _receive(sqlite, document, {(0,): 7, (1,): 4}, '{"region":"south"}')
    result = Analysis(sqlite).estimates(SURVEY, by="region")
    assert [(q["by"], q["status"], q["n"]) for q in result["questions"]] == [
        ({"region": "north"}, "ok", 100),
        ({"region": "south"}, "insufficient", 11),
    ]
    assert result["questions"][1]["rows"] == []
    assert {r["by"] for r in result["questions"][0]["rows"]} == {"region=north"}
    assert result["inputs"]["documents"] == [{"digest": document.digest, "release": 2}]
    assert Analysis(sqlite).replay(json.loads(encode(result))) == encode(result)
    lines = list(csv.DictReader(io.StringIO(to_csv(result).decode())))
    assert [line["status"] for line in lines] == ["ok", "ok", "insufficient"]
    assert lines[2]["estimate"] == ""


@pytest.mark.parametrize("method", METHODS)
def test_every_method_replays_byte_for_byte(two: Database, method: str) -> None:
    result = Analysis(two).estimates(SURVEY, method=method, level=0.9)
    saved = encode(result)
    assert Analysis(two).replay(json.loads(saved)) == saved
    for r in result["questions"][0]["rows"]:
        assert r["method"] == method
        assert r["low"] < r["estimate"] < r["high"]
        assert r["margin"] == max(r["high"] - r["estimate"], r["estimate"] - r["low"])


def test_later_releases_change_no_earlier_result(two: Database) -> None:
    saved = [encode(Analysis(two).estimates(SURVEY, **options)) for options in REPLAYED]
    with two.reading("look") as tx:
        (row_,) = tx.documents.versions(SURVEY)
    document = survey(ldp_block("affair", "1"), ldp_block("marriage", "2"))
    assert document.digest == row_.digest
    _receive(two, document, PAIRS)
    for options, result_bytes in zip(REPLAYED, saved, strict=True):
        assert encode(Analysis(two).estimates(SURVEY, **options)) != result_bytes
        assert Analysis(two).replay(json.loads(result_bytes)) == result_bytes


REPLAYED: list[dict[str, Any]] = [
    {},
    {"by": "day"},
    {"targets": ["affair", "marriage"]},
    {"until": "2026-06-02"},
    {"denial": 0.15},
]


def test_a_changed_release_does_not_replay(two: Database) -> None:
    body = json.loads(encode(Analysis(two).estimates(SURVEY)))
    body["inputs"]["documents"][0]["release"] -= 1
    assert Analysis(two).replay(body) != encode(body)


BROKEN: dict[str, Any] = {
    "no inputs": {}, "a list": [], "null": None, "a text": "x",
    "inputs of another": {"inputs": {"code": "0.0.0-other", "documents": [], "request": {}}},
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_body_that_is_no_result_is_refused(sqlite: Database, name: str) -> None:
    assert refusal(InvalidInput, Analysis(sqlite).replay, BROKEN[name]).code == "json_invalid"


def test_parquet_holds_the_same_lines(two: Database) -> None:
    result = Analysis(two).estimates(SURVEY)
    table = parquet.read_table(io.BytesIO(to_parquet(result)))
    assert tuple(table.column_names) == COLUMNS
    assert table.column("estimate").to_pylist() == [
        r["estimate"] for q in result["questions"] for r in q["rows"]
    ]


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown question": ({"targets": ["height"]}, "targets_invalid", "targets"),
    "a question twice": ({"targets": ["affair", "affair"]}, "targets_invalid", "targets"),
    "a number": ({"targets": 5}, "targets_invalid", "targets"),
    "nothing": ({"targets": {}}, "targets_invalid", "targets"),
    "an unknown choice": (
        {"targets": {"affair": {"x": {"maybe": 1}}}},
        "targets_invalid",
        "targets.affair.x",
    ),
    "a text as number": (
        {"targets": {"affair": {"x": {"yes": "one"}}}},
        "targets_invalid",
        "targets.affair.x",
    ),
    "not finite": (
        {"targets": {"affair": {"x": {"yes": "NaN"}}}},
        "field_type",
        "targets.affair.x",
    ),
    "no combination": ({"targets": {"affair": {"x": []}}}, "targets_invalid", "targets.affair.x"),
    "an unknown group": ({"by": "height"}, "strata_invalid", "by"),
    "an unknown method": ({"method": "guess"}, "field_type", "method"),
    "percentages of shares": ({"percent": "row"}, "targets_invalid", "percent"),
    "percentages of one question": (
        {"percent": "row", "targets": ["affair"]},
        "targets_invalid",
        "percent",
    ),
    "percentages of nothing": (
        {"percent": "all", "targets": ["affair", "marriage"]},
        "field_type",
        "percent",
    ),
    "unknown weights": ({"weights": "votes"}, "field_type", "weights"),
    "weights in a census": (
        {"weights": "inverse-variance", "census": True},
        "unsupported",
        "weights",
    ),
    "weights of percentages": (
        {"weights": "inverse-variance", "percent": "row", "targets": ["affair", "marriage"]},
        "unsupported",
        "weights",
    ),
    "weights of a ratio": (
        {
            "weights": "inverse-variance",
            "targets": {"affair": {"x": {"of": {"yes": 1}, "over": {"no": 1}}}},
        },
        "unsupported",
        "weights",
    ),
    "a sequence in a census": ({"method": "sequence", "census": True}, "unsupported", "method"),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(two: Database, name: str) -> None:
    options, code, field = BAD[name]
    assert code_and_field(InvalidInput, Analysis(two).estimates, SURVEY, **options) == (code, field)


def test_a_result_replays_only_with_all_its_documents(two: Database) -> None:
    """Without one of its documents, a replay would silently cover fewer reports."""
    analysis = Analysis(two)
    result = analysis.estimates(SURVEY)
    result["inputs"]["documents"].append({"digest": "sha256:" + "0" * 64, "release": 1})
    error = refusal(InvalidInput, analysis.replay, result)
    assert (error.code, error.field) == ("json_invalid", "inputs.documents")


def test_every_digit_of_a_coefficient_is_kept(two: Database) -> None:
    digits = "0.1234567890123456789012345678901234567"
    request = Request.from_json({"targets": {"affair": {"x": {"yes": digits}}}})
    written = request.to_json()["targets"]["affair"]["x"]["yes"]
    assert Fraction(written) == Fraction(digits)
    assert Request.from_json(request.to_json()) == request
