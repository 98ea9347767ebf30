# SPDX-License-Identifier: Apache-2.0
"""How wide texts are at most, and texts in lines that fit: no text of a chart leaves its place, whatever its script."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_MOST_LINES: Final = 3
_NARROW, _WIDE = "iljtfrIJ.,:;'|()[]!-/ –", "mwMW@%#+<=>~^—…×−&"
_BROAD: Final = frozenset("ЖШЩЮЉЊسشصضښڛڜڝڞ")
"""Cyrillic and Arabic letters that are wider than the others."""
_INVISIBLE: Final = ("Mn", "Cf")
"""Categories of marks on the letter before, and of joiners."""
# First character of each range, and the largest width of a character in it.
_RANGES: Final = (
    (0x80, 1.3),
    (0x370, 1.12),
    (0x410, 1.15),
    (0x460, 1.45),
    (0x531, 1.25),
    (0x590, 0.8),
    (0x600, 1.3),
    (0x700, 2.1),
    (0xE00, 1.4),
    (0x1000, 2.1),
    (0x1F00, 1.3),
    (0x2000, 1.9),
    (0x2E3A, 3.1),
    (0x2E3C, 2.1),
)
_STARTS: Final = [start for start, _ in _RANGES]
_PICTURES: Final = range(0x1F000, 0x20000)
"""Characters that are pictures, such as emoji."""


def width_of(text: str, size: float) -> float:
    """Return how many pixels a text of this size takes at most: in bold DejaVu Sans, one of the widest fonts."""
    return size * sum(map(_advance, text))


@lru_cache(maxsize=4096)
def _advance(character: str) -> float:
    """Return the largest width of a character as a share of the font's size."""
    if character in _NARROW:
        return 0.5
    if character in _WIDE:
        return 1.12
    if character < "\x7f":
        return 0.88 if character.isupper() else 0.72
    if unicodedata.category(character) in _INVISIBLE:
        return 0.0
    if ord(character) in _PICTURES:
        return 1.65
    if unicodedata.east_asian_width(character) in "WF":
        # A few symbols, such as ☔, are drawn as pictures.
        return 1.45 if 0x2300 <= ord(character) < 0x2E00 else 1.05
    parts = unicodedata.normalize("NFKD", character)
    if parts != character and ord(character) not in range(0x1F00, 0x2000):
        # An accented letter is as wide as the letter, and a ligature at most as wide as its parts; other forms of
        # one letter, such as ① or ℳ, have a width of their own.
        is_form = unicodedata.decomposition(character).startswith("<")
        return max(1.3 if is_form else 0.0, sum(map(_advance, parts)))
    return 1.45 if character in _BROAD else _RANGES[bisect_right(_STARTS, ord(character)) - 1][1]


def wrapped(text: str, width: float, size: float, most: int = _MOST_LINES) -> list[str]:
    """Return a text in at most `most` lines of this width in pixels; the last ends with … if something is left out."""
    lines: list[str] = [""]
    for word in _words(text, width, size):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
        if len(lines) > most:
            break
    if len(lines) > most:
        last = lines[most - 1]
        while last and width_of(f"{last}…", size) > width:
            last = last[:-1]
        lines = [*lines[: most - 1], f"{last.rstrip()}…"]
    return lines


def _words(text: str, width: float, size: float) -> Iterator[str]:
    """Yield the words of a text; those that are longer than a line in pieces."""
    for word in text.split():
        piece = ""
        for character in word:
            # Some single characters are whole sentences, such as ﷽.
            fitting = character if width_of(character, size) <= width else "…"
            if piece and width_of(piece + fitting, size) > width:
                yield piece
                piece = ""
            piece += fitting
        yield piece
