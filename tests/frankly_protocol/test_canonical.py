# SPDX-License-Identifier: Apache-2.0
"""Canonical form compared with RFC 8785, and strict parsing of hostile bytes."""

from decimal import Decimal
from typing import Any

import pytest
import rfc8785
from frankly_protocol import canonical
from frankly_protocol.errors import DocumentRejected, InvalidInput
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refusal

_keys = st.text(st.characters(max_codepoint=127), max_size=8)
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | _text
objects = st.recursive(
    _scalars,
    lambda s: st.lists(s, max_size=4) | st.dictionaries(_keys, s, max_size=4),
    max_leaves=12,
)


@given(objects)
def test_canonical_form_equals_that_of_rfc_8785(value: Any) -> None:
    try:
        ours = canonical.dumps(value)
    except DocumentRejected as refused:
        assert "deeper" in refused.detail
        return
    assert ours == rfc8785.dumps(value)
    assert canonical.loads(ours) == value


BAD_BYTES = [
    (b"", "json_invalid"),
    (b"{", "json_invalid"),
    (b'{"a":1,"a":2}', "json_invalid"),
    (b'{"a":1.5}', "json_invalid"),
    (b'{"a":1e3}', "json_invalid"),
    (b'{"a":NaN}', "number_not_finite"),
    (b'{"a":-Infinity}', "number_not_finite"),
    (b'{"a":' + b"9" * 5000 + b"}", "json_invalid"),
    (b'{"a":9007199254740992}', "json_invalid"),
    (b'{"a":-9007199254740992}', "json_invalid"),
    (b"[" * 100_000, "json_invalid"),
    (b"[" * 100_000 + b"]" * 100_000, "json_invalid"),
    (b"[" * 10 + b"]" * 10, "json_invalid"),
    (b'"\\ud800"', "json_invalid"),
    (b'{"\\u00e9":1}', "json_invalid"),
    (b"\xff\xfe", "json_invalid"),
    (b" " * 200_001, "body_too_large"),
]


@pytest.mark.parametrize(("data", "code"), BAD_BYTES, ids=[repr(d[:14]) for d, _ in BAD_BYTES])
def test_hostile_json_is_refused_by_name(data: bytes, code: str) -> None:
    assert refusal(InvalidInput, canonical.parse_json, data, max_bytes=200_000).code == code


@pytest.mark.parametrize(
    "data", [b'{"b":1,"a":2}', b'{"a": 1}', b'{"a":1}\n', b'{"a":"\\u0041"}', b"[-0]", b'{"a":NaN}']
)
def test_payloads_that_are_not_canonical_are_refused(data: bytes) -> None:
    assert refusal(DocumentRejected, canonical.loads, data).reason == "canonical"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b'{"epsilon":NaN}', "epsilon"),
        (b'{"a":[[1],[2,-Infinity]]}', "a[1][1]"),
        (b'{"a":{"b":Infinity}}', "a.b"),
        (b"NaN", None),
    ],
)
def test_infinite_numbers_and_nan_are_refused_by_field(data: bytes, field: str | None) -> None:
    error = refusal(InvalidInput, canonical.parse_json, data, decimals=True)
    assert (error.code, error.field) == ("number_not_finite", field)
    with pytest.raises(InvalidInput) as caught:
        canonical.parse_json(data)  # accepted without `decimals`, as for reports: no repeated key
    assert (caught.value.code, caught.value.field) == ("number_not_finite", None)


def test_a_text_that_reads_like_nan_is_a_text() -> None:
    assert canonical.parse_json(b'{"a":"NaN","b":["Infinity"]}') == {"a": "NaN", "b": ["Infinity"]}


@pytest.mark.parametrize(
    "text", [b"1e99999999999999999999", b"-1E999999999999999999999", b"1e500", b"1e-500"]
)
def test_absurd_exponents_are_refused_by_name(text: bytes) -> None:
    assert refusal(InvalidInput, canonical.parse_json, text, decimals=True).code == "json_invalid"


@pytest.mark.parametrize(
    "value",
    [Decimal(1), 1.5, {1: 2}, {"a": 2**53}, "\ud800", {"é": 1}, b"x", [[[[[[[[[[1]]]]]]]]]]],
)
def test_values_without_canonical_form_are_refused(value: Any) -> None:
    with pytest.raises(DocumentRejected):
        canonical.dumps(value)


def test_a_value_that_contains_itself_is_refused_at_once() -> None:
    endless: list[Any] = []
    endless += [endless] * 12
    with pytest.raises(DocumentRejected):
        canonical.dumps(endless)


def test_decimals_are_read_exactly_on_request() -> None:
    assert canonical.parse_json(b'{"p":[0.1,1e-3,2]}', decimals=True) == {
        "p": [Decimal("0.1"), Decimal("0.001"), 2]
    }


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_typed_error(data: bytes) -> None:
    try:
        canonical.parse_json(data, decimals=True)
    except InvalidInput as refused:
        assert refused.problem.status in (400, 413, 422)


def test_a_decimal_has_at_most_eighty_characters() -> None:
    assert canonical._decimal("0." + "1" * 78) == Decimal("0." + "1" * 78)
    with pytest.raises(ValueError, match="too many digits"):
        canonical._decimal("0." + "1" * 79)
