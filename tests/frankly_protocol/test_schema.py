# SPDX-License-Identifier: Apache-2.0
"""Texts that can be shown safely, in every script."""

import pytest
from frankly_protocol.schema import unsafe_character

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
def test_all_scripts_and_emoji_are_welcome(text: str) -> None:
    assert unsafe_character(text) is None


@pytest.mark.parametrize("text", UNSAFE, ids=range(len(UNSAFE)))
def test_invisible_and_control_characters_are_named(text: str) -> None:
    assert (unsafe_character(text) or "").startswith("U+")
