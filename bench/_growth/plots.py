# SPDX-License-Identifier: Apache-2.0
"""Plot of the measured curves as one SVG, drawn with the code for the papers' figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from papers.drawing import drawing
from papers.figure import Figure, Panel, Row

_SIZES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
PANELS = (
    Panel(
        "design",
        "Design: LIP optimum, ε = 1",
        "answers a",
        "CPU seconds",
        x_log=True,
        y_log=True,
        marks=_SIZES[1:],
    ),
    Panel(
        "verify",
        "Exact verification of a k × k table",
        "k",
        "CPU seconds",
        x_log=True,
        y_log=True,
        marks=_SIZES,
    ),
    Panel(
        "estimate_n", "An estimate from counts", "reports n", "CPU seconds", x_log=True, y_log=True
    ),
    Panel(
        "estimate_k",
        "An estimate from counts, n = 10,000",
        "answers k",
        "CPU seconds",
        x_log=True,
        y_log=True,
        marks=_SIZES,
    ),
    Panel(
        "intake",
        "Intake, 8 connections a process",
        "server processes",
        "reports a second",
        marks=(1.0, 2.0, 3.0, 4.0),
        from_zero=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Measured(Figure):
    """A figure with our own measurements instead of a paper's."""

    @property
    def paper(self) -> str:
        """Placeholder for a paper's series."""
        return "Frankly"


def svg(points: Sequence[Mapping[str, Any]], description: str) -> str:
    """Return the drawing of the panels that have points. description : a line under the title."""
    rows = [Row(p["panel"], p["curve"], float(p["x"]), float(p["y"])) for p in points]
    panels = tuple(panel for panel in PANELS if any(row.panel == panel.key for row in rows))
    figure = Measured(
        "bench-growth",
        "Growth",
        "how the work grows",
        panels,
        {},
        lambda _: iter(rows),
        lambda _: iter(()),
    )
    return drawing(figure, rows, description)
