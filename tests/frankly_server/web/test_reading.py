# SPDX-License-Identifier: Apache-2.0
"""Query parameters: one spelling of each value is accepted, and others are refused by name."""

from collections.abc import Callable
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.web import reading

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
