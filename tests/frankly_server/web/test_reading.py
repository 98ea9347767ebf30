# SPDX-License-Identifier: Apache-2.0
"""Query parameters: one spelling of each value is accepted, and others are refused by name."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from frankly_protocol.errors import InvalidInput
from frankly_server.cli.gunicorn_server import Production
from frankly_server.web import reading
from gunicorn.http.parser import RequestParser  # type: ignore[import-untyped]

ID, DIGEST = "ab" * 16, "sha256:" + "cd" * 32
READ: list[tuple[Callable[[Any, str], object], Any, object]] = [
    (reading.flag, "true", True),
    (reading.flag, "false", False),
    (reading.level, "0.95", 0.95),
    (reading.level, "0.000000000001", 1e-12),
    (reading.level, "000.5", 0.5),
    (reading.whole, None, None),
    (reading.whole, "0", 0),
    (reading.whole, "9999999999999999", 9_999_999_999_999_999),
    (lambda text, _: reading.survey_id(text), ID, ID),
    (lambda text, _: reading.digest(text), DIGEST, DIGEST),
    (lambda text, _: reading.digest(text), None, None),
]
REFUSED: list[tuple[Callable[[str, str], object], list[str], str, str]] = [
    (reading.flag, ["", "True", "1", "yes"], "field_type", "name"),
    (
        reading.level,
        ["0", "1", "0.0", "1.0", "95", "-0.5", ".5", "0.", "0.0000000000001", "0000.5", "٠.٥", "nan"],
        "confidence_range",
        "name",
    ),
    (reading.whole, ["", "-1", "+1", "01", "1.0", "1" * 17, "٣"], "field_type", "name"),
    (lambda text, _: reading.survey_id(text), ["", ID[1:], ID.upper()], "survey_unknown", "survey"),
    (lambda text, _: reading.digest(text), ["", ID, DIGEST + "0"], "field_type", "digest"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "text", "value"), READ)
def test_one_spelling_is_accepted(
    read: Callable[[Any, str], object], text: str | None, value: object
) -> None:
    assert read(text, "name") == value


@pytest.mark.parametrize(("read", "texts", "code", "field"), REFUSED)
def test_every_other_spelling_is_refused_by_name(
    read: Callable[[str, str], object], texts: list[str], code: str, field: str
) -> None:
    for text in texts:
        with pytest.raises(InvalidInput) as caught:
            read(text, "name")
        assert (caught.value.code, caught.value.field) == (code, field), text


def test_the_production_server_accepts_the_longest_query() -> None:
    """Its parser, with its options; the application refuses a longer query."""
    options = Production(None, host="::1", port=1, threads=1, ready=print).cfg
    path = f"/v1/surveys/{ID}/estimates"
    line = f"GET {path}?{'a' * reading.MAX_QUERY_BYTES} HTTP/1.1"
    (parsed,) = RequestParser(options, iter([f"{line}\r\nHost: x\r\n\r\n".encode()]), ("::1", 1))
    assert len(parsed.query) == reading.MAX_QUERY_BYTES
    assert len(line) <= 8000


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("by=region&group_sizes=" + "%22" * 2600, "group_sizes"),
        ("other=" + "a" * 8000, None),
        ("by=" + "a" * 3000 + "&group_sizes=" + "a" * 3000 + "&random=" + "a" * 3000, None),
    ],
)
def test_a_query_that_is_too_long_names_the_field(query: str, field: str | None) -> None:
    with (
        Flask(__name__).test_request_context(f"/?{query}"),
        pytest.raises(InvalidInput, match="7,680 bytes as it is sent") as refused,
    ):
        reading.query(("by", "group_sizes", "random"))
    assert (refused.value.code, refused.value.field) == ("bad_request", field)
