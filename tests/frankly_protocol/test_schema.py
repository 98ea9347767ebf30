# SPDX-License-Identifier: Apache-2.0
"""Readers of parsed JSON: the error class of each format, and texts that are safe to show."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.schema import DOCUMENT, REQUEST, Reader, unsafe_character

SAFE = ["Yes", "Tschüß", "👩‍👩‍👧", "می‌خواهم", "שלום", "مرحبا", "中文"]
UNSAFE = [
    "a\u202eb",
    "a\u200bb",
    "\ufeffa",
    "a\x00",
    "\x1b[31m",
    "\ud800",
    "a\u200db",
    "b\u2066",
    "\u200d",
    "x\u2028y",
    "a\nb",
    "a\tb",
]


@pytest.mark.parametrize("text", SAFE)
def test_all_scripts_and_emoji_are_accepted(text: str) -> None:
    assert unsafe_character(text) is None


@pytest.mark.parametrize("text", UNSAFE, ids=range(len(UNSAFE)))
def test_invisible_and_control_characters_are_named(text: str) -> None:
    assert (unsafe_character(text) or "").startswith("U+")


REFUSED: dict[str, tuple[Callable[[Reader], Any], str, str | None]] = {
    "no object": (lambda read: read.record([], None, {"a"}), "field_type", None),
    "an unknown field": (lambda read: read.record({"a": 1, "c": 2}, "x", {"a"}, {"b"}), "field_unknown", "x.c"),
    "a missing field": (lambda read: read.record({"b": 1}, None, {"a"}, {"b"}), "field_missing", "a"),
    "missing before unknown": (lambda read: read.record({"c": 1}, None, {"b"}), "field_missing", "b"),
    "unknown before missing": (lambda read: read.record({"a": 1}, None, {"b"}), "field_unknown", "a"),
    "a number as flag": (lambda read: read.flag(1, "x"), "field_type", "x"),
    "a flag as whole number": (lambda read: read.whole(True, "x"), "field_type", "x"),
    "a float as whole number": (lambda read: read.whole(1.0, "x"), "field_type", "x"),
    "a flag as number": (lambda read: read.number(True, "x"), "field_type", "x"),
    "a text as number": (lambda read: read.number("1", "x"), "field_type", "x"),
    "an infinite number": (lambda read: read.number(Decimal("Infinity"), "x"), "field_type", "x"),
    "no rows": (lambda read: read.table([], "x"), "field_type", "x"),
    "an empty row": (lambda read: read.table([[]], "x"), "field_type", "x"),
    "rows of two lengths": (lambda read: read.table([[1], [1, 2]], "x"), "field_type", "x"),
    "rows that are no lists": (lambda read: read.table([1], "x"), "field_type", "x"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_reader_raises_the_error_of_its_format(name: str) -> None:
    read, code, field = REFUSED[name]
    with pytest.raises(InvalidInput) as request:
        read(REQUEST)
    assert (request.value.code, request.value.field) == (code, field)
    with pytest.raises(DocumentRejected) as document:
        read(DOCUMENT)
    assert (document.value.code, document.value.field) == ("document_schema", field)
    assert document.value.detail == request.value.detail


def test_values_are_read_as_they_were_written() -> None:
    assert REQUEST.record({"a": 1, "b": None}, None, {"a"}, {"b", "c"}) == {"a": 1, "b": None}
    assert REQUEST.flag(False, "x") is False
    assert REQUEST.whole(-(2**70), "x") == -(2**70)
    assert REQUEST.number(0.1, "x") == REQUEST.number(Decimal("0.1"), "x") == Decimal("0.1")
    assert REQUEST.table(((1, 2), [3, 4]), "x") == [[1, 2], [3, 4]]
