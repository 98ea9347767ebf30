# SPDX-License-Identifier: Apache-2.0
"""Faults of an input: a list is not blamed beside its entries, and many faults take little work."""

import random
from typing import Any

import pytest
from frankly_design.requests import faults
from frankly_design.requests.faults import faults_of
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.surveys.definition import parse_value
from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

_PARTS = ("a", "b", "ab", "a.", "a[0]", "a[", ".", "", "-", "a-b", 0, 1, 10)


def _refused(places: list[tuple[Any, ...]]) -> ValidationError:
    """Return an error at each place."""
    kind = PydanticCustomError("definition_invalid", "no")
    lines = [InitErrorDetails(type=kind, loc=place, input=None) for place in places]
    return ValidationError.from_exception_data("test", lines)


def _by_all_pairs(places: list[tuple[Any, ...]]) -> list[str]:
    """Return the fields as a comparison of all pairs leaves them."""
    fields = [faults.field_path(place) for place in places]
    return [
        outer
        for outer in fields
        if not any(inner.startswith((f"{outer}.", f"{outer}[")) for inner in fields)
    ]


def test_a_fault_within_another_is_the_only_one() -> None:
    rng = random.Random(1)
    dropped = 0
    for _ in range(2000):
        places = [
            tuple(rng.choice(_PARTS) for _ in range(rng.randint(1, 4)))
            for _ in range(rng.randint(1, 12))
        ]
        fields = [fault.field for fault in faults_of(_refused(places), Problem.DEFINITION_INVALID)]
        assert fields == _by_all_pairs(places)
        dropped += len(places) - len(fields)
    assert dropped > 1000


class _Counted(str):
    """A text that counts its comparisons."""

    __slots__ = ()
    number = 0

    def __lt__(self, other: str) -> bool:
        _Counted.number += 1
        return str.__lt__(self, other)

    def startswith(self, *arguments: Any) -> bool:
        _Counted.number += 1
        return str.startswith(self, *arguments)


def test_many_faults_take_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of these would be 36 million."""
    path = faults.field_path
    monkeypatch.setattr(faults, "field_path", lambda place: _Counted(path(place)))
    monkeypatch.setattr(_Counted, "number", 0)
    value = {"blocks": [{}] * 2000, **{f"f{i}": 1 for i in range(2000)}}
    with pytest.raises(InvalidInput) as refused:
        parse_value(value)
    assert "and 5998 more" in refused.value.detail
    assert 6000 < _Counted.number < 6000 * 60
