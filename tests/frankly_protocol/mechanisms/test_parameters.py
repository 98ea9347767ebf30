# SPDX-License-Identifier: Apache-2.0
"""JSON format of parameters and symbols: round trips, and errors that name the malformed field."""

from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import (
    KINDS,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
    columns,
)

from tests.frankly_protocol.samples import SMALL
from tests.refusals import refusal

T = [[12, 4], [4, 12]]
BAD_PARAMS: list[tuple[str, Any, str]] = [
    ("dense", None, "params"),
    ("dense", {"bits": 4}, "params.weights"),
    ("dense", {"bits": 4, "weights": T, "size": 1}, "params.size"),
    ("dense", {"bits": 4, "weights": 3}, "weights"),
    ("dense", {"bits": 4, "weights": [[12, 4], [4, 13]]}, "weights[1]"),
    ("unary", {"bits": 4, "answers": 3, "keep": 8}, "params.flip"),
    ("unary", {"bits": 3, "answers": 3, "keep": 8, "flip": 1}, "bits"),
    ("unary", {"bits": 49, "answers": 3, "keep": 8, "flip": 1}, "bits"),
    ("unary", {"bits": 4.0, "answers": 3, "keep": 8, "flip": 1}, "bits"),
    ("unary", {"bits": 4, "answers": 1, "keep": 8, "flip": 1}, "answers"),
    ("unary", {"bits": 4, "answers": 1001, "keep": 8, "flip": 1}, "answers"),
    ("unary", {"bits": 4, "answers": 3, "keep": 17, "flip": 1}, "keep"),
    ("unary", {"bits": 4, "answers": 3, "keep": 8, "flip": -1}, "flip"),
    ("unary", {"bits": 4, "answers": 3, "keep": 8, "flip": True}, "flip"),
    ("unary", {"bits": 4, "answers": 3, "keep": 8, "flip": 8}, "flip"),
    ("subset", {"bits": 4, "answers": 3, "size": 0, "inside": 1}, "size"),
    ("subset", {"bits": 4, "answers": 3, "size": 3, "inside": 1}, "size"),
    ("subset", {"bits": 4, "answers": 3, "size": "1", "inside": 1}, "size"),
    ("subset", {"bits": 4, "answers": 3, "size": 1, "inside": 17}, "inside"),
    ("product", {"bits": 4, "factors": [T]}, "factors"),
    ("product", {"bits": 4, "factors": [T] * 17}, "factors"),
    ("product", {"bits": 4, "factors": [T] * 10}, "factors"),
    ("product", {"bits": 4, "factors": T}, "factors[0].weights"),
    ("product", {"bits": 5, "factors": [T, T]}, "factors[0].weights[0]"),
    ("product", {"bits": 4, "factors": [T, [[16, 1], [1, 16]]]}, "factors[1].weights[0]"),
    ("product", {"bits": None, "factors": [T, T]}, "bits"),
]


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_parameters_and_symbols_survive_a_round_trip(mechanism: Any) -> None:
    assert KINDS[mechanism.kind].from_params(mechanism.params_json()) == mechanism
    lengths = set()
    for symbol in mechanism.symbols():
        value = mechanism.symbol_json(symbol)
        assert mechanism.check_symbol(value) == symbol
        lengths.add(len(value) if isinstance(value, str) else 0)
    assert len(lengths) == 1


@pytest.mark.parametrize(("kind", "params", "field"), BAD_PARAMS)
def test_parameters_that_are_no_mechanism(kind: str, params: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        KINDS[kind].from_params(params)
    assert (caught.value.code, caught.value.field) == ("weights_invalid", field)


def test_factors_of_different_bits() -> None:
    with pytest.raises(InvalidInput) as caught:
        ProductMechanism(
            (DenseMechanism(4, ((8, 8), (8, 8))), DenseMechanism(5, ((16, 16), (16, 16))))
        )
    assert caught.value.field == "factors[1]"


DENSE = DenseMechanism(4, ((9, 7), (1, 15)))
BAD_SYMBOLS: list[tuple[Any, Any, str, str]] = [
    *((DENSE, value, "y_type", "y") for value in (None, "0", -1, 1.0, True, [0])),
    (DENSE, 2, "symbol_unknown", "y"),
    (DENSE, 10**18, "symbol_unknown", "y"),
    *(
        (UnaryMechanism(4, 5, 8, 3), v, "y_type", "y")
        for v in (None, 3, "", "3", "003", "1F", "0x", " 1", "１2", [1])
    ),
    (UnaryMechanism(4, 5, 8, 3), "20", "symbol_unknown", "y"),
    (UnaryMechanism(4, 5, 8, 0), "03", "symbol_unknown", "y"),
    (UnaryMechanism(4, 5, 16, 0), "00", "symbol_unknown", "y"),
    (UnaryMechanism(4, 5, 8, 16), "07", "symbol_unknown", "y"),
    (SubsetMechanism(4, 5, 2, 8), "07", "symbol_unknown", "y"),
    (SubsetMechanism(4, 5, 2, 8), "60", "symbol_unknown", "y"),
    (SubsetMechanism(4, 5, 2, 8), "3", "y_type", "y"),
    *(
        (ProductMechanism((DENSE, DENSE)), v, "y_type", "y")
        for v in (None, 1, "00", [0, "1"], [0, -1], [0, True])
    ),
    (ProductMechanism((DENSE, DENSE)), [0], "symbol_unknown", "y"),
    (ProductMechanism((DENSE, DENSE)), [0, 0, 0], "symbol_unknown", "y"),
    (ProductMechanism((DENSE, DENSE)), [0, 2], "symbol_unknown", "y[1]"),
]


@pytest.mark.parametrize(("mechanism", "value", "code", "field"), BAD_SYMBOLS)
def test_symbols_that_are_never_sent_are_refused_without_repeating_them(
    mechanism: Any, value: Any, code: str, field: str
) -> None:
    error = refusal(InvalidInput, mechanism.check_symbol, value)
    assert (error.code, error.field) == (code, field)
    if isinstance(value, str) and len(value) > 1:
        assert value not in error.detail


@pytest.mark.parametrize("answers", [2, 256])
def test_a_table_has_two_to_256_rows(answers: int) -> None:
    row = (8, 8)
    assert DenseMechanism(4, (row,) * answers).answers == answers
    for too_many in (1, 257):
        assert refusal(InvalidInput, DenseMechanism, 4, (row,) * too_many).field == "weights"


def test_columns_lists_symbols_up_to_its_limit() -> None:
    mechanism = DenseMechanism(4, ((8, 4, 4), (4, 8, 4)))
    assert len(columns(mechanism, 3)) == 3
    with pytest.raises(InvalidInput, match="more than 2 reports"):
        columns(mechanism, 2)
