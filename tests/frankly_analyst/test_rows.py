# SPDX-License-Identifier: Apache-2.0
"""Columns of estimates: every output format has the columns of the declared row."""

import csv
import inspect
import io
import json
from dataclasses import fields
from urllib.parse import urlencode

import pyarrow
import pyarrow.parquet as parquet
from frankly_analyst import Estimate, Estimates
from frankly_analyst.formats import COLUMNS

from tests.frankly_analyst.conftest import Served

ROW = [column.name for column in fields(Estimate)]
# The format of CSV and Parquet files, which analysts' programs rely on.
CORRECTED = ("corrected", "corrected_se", "corrected_low", "corrected_high")
DENIED = ("denied_estimate", "denied_high")
TEXT, WHOLE, NUMBER = pyarrow.string(), pyarrow.int64(), pyarrow.float64()
FILE = {
    **dict.fromkeys(("question", "choice", "label", "by", "status", "unit"), TEXT),
    **dict.fromkeys(("estimate", "se", "margin", "low", "high", "level"), NUMBER),
    **dict.fromkeys(("se_privacy", "se_sampling", "worst_case_se"), NUMBER),
    **dict.fromkeys(("poisoning_up", "poisoning_down", "privacy_cost"), NUMBER),
    **dict.fromkeys(("efficiency", "versions_p"), NUMBER),
    "method": TEXT,
    **dict.fromkeys(("n", "needed"), WHOLE),
    **dict.fromkeys(("mechanism", "notion", "epsilon", "ceiling", "documents"), TEXT),
    **dict.fromkeys((*CORRECTED, *DENIED), NUMBER),
    "flags": TEXT,
}


def test_files_have_the_declared_columns_and_two_of_the_question(served: Served) -> None:
    assert [name for name in FILE if name not in ("status", "needed")] == ROW
    assert tuple(FILE) == COLUMNS
    header = next(csv.reader(io.StringIO(served.site.estimates("?format=csv").text)))
    assert header == list(FILE)
    for query in (
        "?format=parquet",
        "?format=parquet&until=2020-01-01",
    ):  # a row with numbers, and a row without numbers
        schema = parquet.read_schema(io.BytesIO(served.site.estimates(query).data))
        assert dict(zip(schema.names, schema.types, strict=True)) == FILE


def test_json_rows_have_the_declared_columns(served: Served) -> None:
    ratio = json.dumps({"drinks": {"r": {"of": {"daily": 1}, "over": {"weekly": 1, "daily": 1}}}})
    for query in ({}, {"targets": ratio}, {"by": "region"}, {"targets": '["smokes","drinks"]'}):
        answer = json.loads(served.site.estimates(f"?{urlencode(query)}").data)
        rows = [row for question in answer["questions"] for row in question["rows"]]
        assert rows
        assert all(set(row) == set(ROW) for row in rows)
        client_rows = Estimates.from_json(answer).rows
        for row, ours in zip(rows, client_rows, strict=True):
            same = set(ROW) - {"label", "documents", "flags"}
            assert {name: row[name] for name in same} == {
                name: getattr(ours, name) for name in same
            }
            assert (ours.documents, ours.flags) == (tuple(row["documents"]), tuple(row["flags"]))


def test_every_column_of_a_share_has_a_value(served: Served) -> None:
    """No declared column is null in all rows; `versions_p` needs two versions, others an item."""
    answer = json.loads(served.site.estimates("?denial=0.2").data)
    rows = [row for question in answer["questions"] for row in question["rows"]]
    assert rows
    assert {name for row in rows for name in ROW if row[name] is None} == {"versions_p", *CORRECTED}


def test_openapi_describes_the_declared_columns(served: Served) -> None:
    document = json.loads(served.site.client.get("/openapi.json").data)
    shape = document["components"]["schemas"]["EstimateRow"]
    assert list(shape["properties"]) == sorted(ROW)
    assert shape["required"] == ROW
    lines = (inspect.getdoc(Estimate) or "").splitlines()
    for column in fields(Estimate):
        description = column.metadata["description"]
        assert shape["properties"][column.name]["description"] == description
        assert f"{column.name} : {description}" in lines
