# SPDX-License-Identifier: Apache-2.0
"""Boxes of the texts and lines of a chart, by widths that do not come from the code that draws it."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree

SVG: Final = "{http://www.w3.org/2000/svg}"
# Advances of DejaVu Sans Bold, in ems; a letter that is not named here is as wide as the widest of its kind.
_ADVANCES: Final = {
    **dict.fromkeys("0123456789", 0.696), **dict.fromkeys("il", 0.343), **dict.fromkeys(".,", 0.38),
    **dict.fromkeys("()[]", 0.457), **dict.fromkeys("+−×<>=~^#", 0.838), "m": 1.042, "W": 1.103, "M": 0.995, "w": 0.924,
    "I": 0.372, "%": 1.002, "@": 1.0, "&": 0.872, "…": 1.0, " ": 0.348, "f": 0.435, "t": 0.478, "r": 0.493, "j": 0.343,
    "J": 0.372, "-": 0.415, "/": 0.365, ":": 0.4, ";": 0.4, "'": 0.306, "!": 0.456, '"': 0.521, "|": 0.365,
    "Ж": 1.224, "Ш": 1.236, "Щ": 1.326, "Ю": 1.167, "щ": 1.114, "ш": 1.045, "ж": 1.03, "س": 1.38, "ص": 1.35,
}  # fmt: skip


def advance(character: str) -> float:
    """Return the width of a character in ems."""
    if character in _ADVANCES:
        return _ADVANCES[character]
    if unicodedata.category(character) in {"Mn", "Cf"}:
        return 0.0
    if ord(character) >= 0x1F300:
        return 1.36
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    return 0.85 if character < "\x80" and character.isupper() else 0.717


@dataclass(frozen=True)
class Box:
    """Place in pixels, and what is there."""

    left: float
    top: float
    right: float
    bottom: float
    what: str

    def overlaps(self, other: "Box") -> bool:
        """Return whether the two share more than an edge."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def of_number(element: ElementTree.Element, name: str) -> float:
    return float(element.attrib[name])


def texts(tree: ElementTree.Element) -> Iterator[Box]:
    """Yield the box of each text that has characters."""
    for element in tree.iter(f"{SVG}text"):
        words = "".join(element.itertext())
        size = of_number(element, "font-size")
        spaces = sum(float(part.get("dx", 0)) for part in element.iter(f"{SVG}tspan"))
        width = size * sum(map(advance, words)) + spaces
        x, y = of_number(element, "x"), of_number(element, "y")
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[element.attrib["text-anchor"]]
        if words:
            yield Box(left, y - 0.76 * size, left + width, y + 0.24 * size, words)


def lines(tree: ElementTree.Element) -> Iterator[Box]:
    """Yield the box of each straight line, curve, bar and dot."""
    for one in tree.iter(f"{SVG}line"):
        across = sorted((of_number(one, "x1"), of_number(one, "x2")))
        down = sorted((of_number(one, "y1"), of_number(one, "y2")))
        yield Box(across[0] - 0.5, down[0] - 0.5, across[1] + 0.5, down[1] + 0.5, "line")
    for one in tree.iter(f"{SVG}path"):
        for x, top, bottom in re.findall(r"M([\d.-]+),([\d.-]+)V([\d.-]+)", one.attrib["d"]):
            yield Box(float(x) - 0.5, float(top), float(x) + 0.5, float(bottom), "grid")
    for one in tree.iter(f"{SVG}rect"):
        if one.get("class") == "bar":
            x, y = of_number(one, "x"), of_number(one, "y")
            yield Box(x, y, x + of_number(one, "width"), y + of_number(one, "height"), "bar")
    for one in tree.iter(f"{SVG}circle"):
        x, y, r = (of_number(one, name) for name in ("cx", "cy", "r"))
        yield Box(x - r, y - r, x + r, y + r, "dot")


def faults(drawn: str) -> list[str]:
    """Return what is wrong: marks outside the picture, texts on each other or on a line, and forbidden markup."""
    tree = ElementTree.fromstring(drawn)
    left, top, width, height = map(float, tree.attrib["viewBox"].split())
    # A picture for a file has a margin on every side.
    found = [] if left == top <= 0 else ["the margin is not the same on every side"]
    if (tree.get("width"), tree.get("height")) != (f"{width:.0f}", f"{height:.0f}"):
        found.append("a file of its own has no size")
    boxes, others = list(texts(tree)), list(lines(tree))
    found += [
        f"{box} is outside {width} × {height}"
        for box in (*boxes, *others)
        if box.left < 0
        or box.top < 0
        or box.right > width + 2 * left
        or box.bottom > height + 2 * left
    ]
    for i, box in enumerate(boxes):
        found += [f"{box} overlaps {one}" for one in (*boxes[:i], *others) if box.overlaps(one)]
    forbidden = {"script", "style", "a", "image", "foreignObject", "use"}
    for element in tree.iter():
        if element.tag.removeprefix(SVG) in forbidden:
            found.append(f"{element.tag} is forbidden")
        found += [
            f"{name} is forbidden"
            for name in element.attrib
            if name == "style" or name.startswith("on") or name.endswith("href")
        ]
    return found


def said(drawn: str) -> str:
    """Return the description of a chart."""
    return ElementTree.fromstring(drawn).findtext(f"{SVG}desc") or ""
