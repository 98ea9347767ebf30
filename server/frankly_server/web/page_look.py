# SPDX-License-Identifier: Apache-2.0
"""Shades of a survey's own colour that can be read on the hosted page, in light and in dark."""

from collections.abc import Iterable
from typing import Final

# The backgrounds of hosted.css and styles.js on which the accent has the least contrast.
LIGHT: Final = "#eef4f5"
DARK: Final = "#1d2a2e"
ON_LIGHT: Final = "#ffffff"
"""Text on the accent in light pages; it has more contrast there than `LIGHT` has."""
ON_DARK: Final = "#06232a"
"""Text on the accent in dark pages."""
LEAST_CONTRAST: Final = 4.5
"""Least contrast of text of usual size (WCAG 2.2, 1.4.3)."""
_STEPS: Final = 64

Colour = tuple[int, int, int]


def shades(accent: str) -> tuple[str, str]:
    """Return a colour's nearest shades with enough contrast on light and on dark pages.

    accent : such as #8a1c4a. The colour is mixed with black or white, as little as is needed.
    """
    colour = _read(accent)
    return _mixed(colour, (0, 0, 0), LIGHT), _mixed(colour, (255, 255, 255), DARK)


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    low, high = sorted(_luminance(_read(colour)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def style(accent: str) -> str:
    """Return the CSS rule that gives the hosted page a colour."""
    light, dark = shades(accent)
    return (
        f"main {{ --frankly-accent: light-dark({light}, {dark}); "
        f"--frankly-on-accent: light-dark({ON_LIGHT}, {ON_DARK}); }}"
    )


def _mixed(colour: Colour, other: Colour, background: str) -> str:
    for i in range(_STEPS):
        mixed = _write(
            [(a * (_STEPS - i) + b * i) // _STEPS for a, b in zip(colour, other, strict=True)]
        )
        if contrast(mixed, background) >= LEAST_CONTRAST:
            return mixed
    return _write(other)


def _read(colour: str) -> Colour:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _write(colour: Iterable[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)


def _luminance(colour: Colour) -> float:
    red, green, blue = (
        part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
