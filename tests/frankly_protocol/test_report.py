# SPDX-License-Identifier: Apache-2.0
"""Reports: one length per document, strict parsing, and errors that repeat no value."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.report import Report
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.samples import question, survey

DOCUMENT = survey()
GOOD = Report(DOCUMENT.digest, "0f" * 16, (1, 0))


def test_every_report_on_a_document_has_one_length() -> None:
    sizes = [range(block.mechanism.reports) for block in DOCUMENT.blocks]
    reports = [Report(DOCUMENT.digest, "0f" * 16, symbols) for symbols in product(*sizes)]
    assert {len(r.to_bytes(DOCUMENT.report_length)) for r in reports} == {DOCUMENT.report_length}
    assert all(Report.from_bytes(r.to_bytes(DOCUMENT.report_length)) == r for r in reports)


def test_a_report_too_long_for_its_document_is_refused() -> None:
    with pytest.raises(ValueError, match="longer"):
        Report(DOCUMENT.digest, "0f" * 16, (100, 100)).to_bytes(DOCUMENT.report_length)


def test_symbols_and_ids_stay_out_of_reprs() -> None:
    assert "0f0f" not in repr(GOOD)
    assert "(1, 0)" not in repr(GOOD)


def altered(**changes: Any) -> bytes:
    body = {**json.loads(GOOD.to_bytes(0)), **changes}
    return json.dumps({k: v for k, v in body.items() if v is not ...}).encode()


BAD_REPORTS = [
    (b"", "json_invalid", None),
    (b"[]", "json_invalid", None),
    (b"\xff", "json_invalid", None),
    (b'{"v":1,"v":1}', "json_invalid", None),
    (altered(y=[1.5]), "json_invalid", None),
    (b'{"v":' + b"1" * 5000 + b"}", "json_invalid", None),
    (b"[" * 100_000, "body_too_large", None),
    (b"[" * 10_000, "json_invalid", None),
    (altered(secret="canary"), "field_unknown", None),
    (altered(y=...), "field_missing", "y"),
    (altered(v=2), "field_type", "v"),
    (altered(v=True), "field_type", "v"),
    (altered(doc="canary"), "field_type", "doc"),
    (altered(id="canary"), "field_type", "id"),
    (altered(y="canary"), "y_type", "y"),
    (altered(y=[True]), "y_type", "y"),
    (altered(y=["canary"]), "y_type", "y"),
    (altered(y=[-1]), "y_type", "y"),
    (altered(y=["0F"]), "y_type", "y"),
    (altered(y=["0" * 251]), "y_type", "y"),
    (altered(y=[[1, "canary"]]), "y_type", "y"),
    (altered(y=[[1, -1]]), "y_type", "y"),
    (altered(y=[[[1]]]), "json_invalid", None),
    (altered(token=1), "token_invalid", "token"),
    (altered(token="a" * 1401), "token_invalid", "token"),
    (altered(strata=[]), "field_type", "strata"),
    (altered(strata={"a": 1}), "field_type", "strata"),
    (altered(token="canary!"), "token_invalid", "token"),
]


@pytest.mark.parametrize(("data", "code", "field"), BAD_REPORTS, ids=range(len(BAD_REPORTS)))
def test_bad_reports_are_refused_without_being_repeated(
    data: bytes, code: str, field: str | None
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Report.from_bytes(data)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert "canary" not in str(caught.value)


@pytest.mark.slow
@given(
    st.binary(max_size=80)
    | st.dictionaries(st.text(max_size=4), st.none()).map(lambda d: json.dumps(d).encode())
)
def test_any_bytes_give_a_report_or_a_typed_error(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        Report.from_bytes(data)


def test_public_answers_of_any_length_do_not_change_the_length() -> None:
    document = replace(
        survey(),
        strata=(question("region", "n", "south-by-southwest"), question("age", "old", "x")),
    )
    regions, ages = (
        tuple(choice.id for choice in public_question.choices)
        for public_question in document.strata
    )
    lengths = {
        len(
            Report(document.digest, "0f" * 16, (0, 0), {"region": r, "age": a}).to_bytes(
                document.report_length
            )
        )
        for r, a in product(regions, ages)
    }
    assert lengths == {document.report_length}
