# SPDX-License-Identifier: Apache-2.0
"""Diagrams of boxes and arrows: the architecture, the path of an answer, and what is asked for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from frankly_analyst.svg import text

from tools.site.pictures.chart import BLUE, GREEN, INK, ORANGE, PALE, picture


@dataclass(frozen=True, slots=True)
class Box:
    """A box at (x, y) with a heading and lines below it."""

    x: int
    y: int
    width: int
    height: int
    name: str
    lines: Sequence[str] = ()
    fill: str = PALE

    def svg(self) -> list[str]:
        """Return its rectangle and text."""
        shape = f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="6" fill="{self.fill}"'
        elements = [
            f'{shape} stroke="{BLUE}"/>',
            text(self.x + 10, self.y + 20, "start", self.name, 14),
        ]
        return elements + [
            text(self.x + 10, self.y + 38 + 16 * i, "start", line, 12)
            for i, line in enumerate(self.lines)
        ]


_KNOWN = "#fbe9d9"
_HEAD = (
    f'<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
)


def arrow(
    places: Sequence[tuple[int, int]], label: str = "", label_at: tuple[int, int] | None = None
) -> list[str]:
    """Return a line through `places` with an arrowhead, and `label` centred at `label_at`."""
    path = " ".join(f"{'M' if i == 0 else 'L'}{x} {y}" for i, (x, y) in enumerate(places))
    elements = [
        f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.5" marker-end="url(#head)"/>'
    ]
    return elements + ([text(*label_at, "middle", label, 12)] if label_at else [])


def architecture() -> str:
    """Draw devices, server, keys, log and witnesses, and the imports between packages."""
    boxes = [
        Box(
            20,
            60,
            220,
            118,
            "Respondent's device",
            (
                "frankly_sdk or the browser SDK",
                "verifies, randomises, keeps one",
                "sealed report, sends it",
                "the answer never leaves",
            ),
            "#eef6ea",
        ),
        Box(
            330,
            60,
            290,
            118,
            "Server: frankly_server",
            (
                "web: HTTP, with Flask",
                "surveys · intake · analysis · keys",
                "store: SQL, with SQLAlchemy",
                "design · estimate: mathematics only",
            ),
        ),
        Box(330, 230, 140, 66, "SQLite or", ("PostgreSQL: symbols", "and counts")),
        Box(480, 230, 140, 66, "Transparency log", ("every document", "ever published")),
        Box(480, 330, 140, 50, "Witnesses", ("run by others",), "#fbeee6"),
        Box(
            20,
            230,
            220,
            66,
            "frankly_protocol",
            ("documents, mechanisms, exact", "audit: one code on both ends"),
            "#fff",
        ),
        Box(20, 330, 220, 50, "Root keys", ("offline; they name publishers",), "#fbeee6"),
        Box(330, 330, 140, 50, "Analysts", ("estimates, margins",), "#eef6ea"),
    ]
    elements = [_HEAD, text(12, 28, "start", "Who runs what", 16)]
    elements += [element for box in boxes for element in box.svg()]
    elements += arrow([(330, 92), (242, 92)], "document", (286, 86))
    elements += arrow([(240, 138), (328, 138)], "one report", (284, 132))
    elements += arrow([(130, 178), (130, 228)], "imports", (156, 207))
    elements += arrow([(330, 170), (290, 170), (290, 262), (242, 262)], "imports", (286, 222))
    elements += (
        arrow([(400, 178), (400, 228)])
        + arrow([(550, 178), (550, 228)])
        + arrow([(550, 296), (550, 328)])
    )
    elements += arrow([(400, 328), (400, 298)])
    description = (
        "The server designs, signs and publishes documents into a log that witnesses watch; a device fetches one, "
        "verifies it with the same protocol package, and sends one report; the database holds symbols and counts; "
        "analysts get estimates with margins."
    )
    return picture(640, 400, "Architecture", description, elements)


_STEPS = (
    ("1 design", "prior, notion, level → table of whole numbers, with a bound"),
    ("2 verify and sign", "the exact verifier, then the publisher's key; the log"),
    ("3 fetch", "pinned by its digest: the same bytes for everybody"),
    ("4 verify again", "signature, window, version, every row, the app's cap"),
    ("5 randomise once", "48 bits of the system's randomness, integer thresholds"),
    ("6 persist, then send", "sealed with full sync; retries send the same bytes"),
    ("7 store and count", "one transaction: report and counts; no time, no address"),
    ("8 estimate", "counts × decoder of the published table → share, low and high"),
)


def data_flow() -> str:
    """Draw the eight steps from a question to an estimate; mark those that see the answer."""
    elements = [_HEAD, text(12, 28, "start", "What becomes of an answer", 16)]
    for i, (name, detail) in enumerate(_STEPS):
        y = 46 + 50 * i
        on_device = 2 <= i <= 5
        fill = "#eef6ea" if on_device else PALE
        elements += Box(150, y, 470, 40, name, (), fill).svg()
        elements.append(text(160, y + 35, "start", detail, 12))
        if i:
            elements += arrow([(385, y - 10), (385, y - 1)])
    elements += (
        _side(46, 90, "server", BLUE)
        + _side(146, 190, "device", GREEN)
        + _side(346, 90, "server", BLUE)
    )
    elements.append(text(76, 306, "middle", "the answer is", 12, ORANGE))
    elements.append(text(76, 322, "middle", "known here only", 12, ORANGE))
    description = "; ".join(f"{name}: {detail}" for name, detail in _STEPS)
    return picture(
        640, 456, "Data flow", f"{description}. Steps 3 to 6 happen on the device.", elements
    )


_DRAWN = (2, 7)


def asking() -> str:
    """Draw ten questions twice: all of them asked, and only the two that the report is about."""
    elements = [_HEAD, text(12, 28, "start", "The same report, from ten answers or from two", 16)]
    for x, heading, rest, fill, below in (
        (
            20,
            "All questions are asked",
            "answered",
            _KNOWN,
            "eight answers that the report does not need,",
        ),
        (
            340,
            "Only what is drawn is asked",
            "not asked",
            "#fff",
            "eight answers that do not exist:",
        ),
    ):
        elements.append(text(x, 60, "start", heading, 14))
        for i in range(10):
            y = 72 + 26 * i
            is_drawn = i in _DRAWN
            shade = PALE if is_drawn else fill
            elements += [
                f'<rect x="{x}" y="{y}" width="200" height="21" rx="4" fill="{shade}" stroke="{BLUE}"/>',
                text(x + 10, y + 15, "start", f"question {i + 1}", 12),
                text(x + 190, y + 15, "end", "drawn, answered" if is_drawn else rest, 12),
            ]
            if is_drawn:
                path = f"M{x + 200} {y + 10} L{x + 240} {y + 10} L{x + 240} 346"
                elements.append(f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.5"/>')
        elements += arrow([(x + 240, 340), (x + 240, 371)])
        elements += Box(x, 372, 270, 50, "Report", ("random sets about questions 3 and 8",)).svg()
        elements.append(text(x, 446, "start", below, 12, ORANGE))
    elements.append(
        text(20, 462, "start", "which somebody who watches, or the app, can see", 12, ORANGE)
    )
    elements.append(text(340, 462, "start", "nobody can see, ask for, or lose them", 12, ORANGE))
    description = (
        "Ten questions, of which a device has drawn two. If all are asked, eight answers are known to the device and "
        "not needed for the report. If only what is drawn is asked, these eight do not exist. The report is the same."
    )
    return picture(640, 476, "What is asked for a report", description, elements)


def _side(y: int, height: int, name: str, shade: str) -> list[str]:
    return [
        f'<rect x="136" y="{y}" width="5" height="{height}" fill="{shade}"/>',
        text(126, y + height // 2 + 4, "end", name, 14, shade),
    ]
