# SPDX-License-Identifier: Apache-2.0
"""Figures of the papers: panels, rows of numbers, and the values that the paper's text states."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from papers.records import Records

Kind = Literal["line", "points", "steps", "box"]
PAPERS = {
    "funnel": "Data Sanitisation Protocols for the Privacy Funnel",
    "robust": "Mechanisms for Robust Local Differential Privacy",
    "lift": "On the Lift, Related Privacy Measures, and Applications to Privacy-Utility Trade-Offs",
    "thesis": "Mathematical Foundations of Differential Privacy",
}
SECONDS = "seconds"
"""Key of the panel with timings, which differ from run to run and are written to a separate file."""


@dataclass(frozen=True, slots=True)
class Row:
    """One point of a curve: y at x, in a panel.

    low, high : a range around y, such as quartiles or a standard deviation. least, most : the extremes.
    """

    panel: str
    curve: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    x_log, y_log : True for a logarithmic axis. names : labels of x = 0, 1, … of a box plot.
    marks : values of x to label instead of round ones. from_zero : True if the y axis must include 0.
    """

    key: str
    title: str
    x: str
    y: str
    kind: Kind = "line"
    x_log: bool = False
    y_log: bool = False
    names: tuple[str, ...] = ()
    marks: tuple[float, ...] = ()
    from_zero: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Options of one run of a figure.

    quick : True for fewer points and draws, which takes seconds. draws : number of random distributions, 0 for none.
    records : the Adult data, for figures that use it. on_progress : called with each line of progress.
    timer : returns seconds, from a clock that never runs backwards.
    """

    quick: bool
    draws: int
    records: Records | None
    on_progress: Callable[[str], None]
    timer: Callable[[], float]

    def points(self, full: Sequence[str], quick: Sequence[str]) -> Sequence[str]:
        """Return `quick` in a quick run, otherwise `full`."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Check:
    """A statement of the paper, compared with our number.

    paper : the printed number; None for a statement without a number. tolerance : largest accepted
    difference from it. holds : True if the statement holds; None if this run cannot decide it.
    expected : False if the errata say that the paper is wrong. always : True if a quick run can
    decide the statement too, because it concerns each single case.
    """

    words: str
    ours: float
    paper: float | None = None
    tolerance: float | None = None
    holds: bool | None = None
    expected: bool = True
    always: bool = False

    @classmethod
    def near(
        cls,
        words: str,
        ours: float,
        paper: float,
        tolerance: float,
        *,
        expected: bool = True,
        always: bool = False,
    ) -> "Check":
        """Return a check that compares `ours` with a printed number."""
        return cls(words, ours, paper, tolerance, abs(ours - paper) <= tolerance, expected, always)

    def line(self) -> str:
        """Return the check as one line of text."""
        verdict = {None: "not decided", True: "agrees", False: "differs"}[self.holds]
        if not self.expected:
            verdict += (
                " (as the errata say)" if self.holds is False else " (the errata say it should not)"
            )
        printed = "" if self.paper is None else f"paper {self.paper:g} (± {self.tolerance:.2g}), "
        return f"{self.words}: {printed}here {self.ours:.4g}: {verdict}"


class Rows:
    """The numbers of a figure, by panel, curve and x."""

    def __init__(self, rows: Iterable[Row], draws: int = 0) -> None:
        self.all = list(rows)
        self._draws = draws

    def curve(self, panel: str, curve: str) -> dict[float, Row]:
        """Return the rows of a curve by x."""
        return {row.x: row for row in self.all if (row.panel, row.curve) == (panel, curve)}

    def y(self, panel: str, curve: str, x: float) -> float:
        """Return the y of a curve at x; nan if there is no such point."""
        row = self.curve(panel, curve).get(x)
        return math.nan if row is None else row.y

    def error(self, panel: str, curve: str, x: float) -> float:
        """Return the standard error of a mean over the draws whose range is one standard deviation, otherwise 0."""
        row = self.curve(panel, curve).get(x)
        if row is None or row.high is None or self._draws < 2:
            return 0.0
        return (row.high - row.y) / math.sqrt(self._draws)

    def has(self, panel: str, curve: str, x: float) -> bool:
        """Return True if a curve has a point at x."""
        return x in self.curve(panel, curve)

    def below(self, panel: str, lower: str, upper: str, slack: float = 0.0) -> tuple[int, int]:
        """Return the number of common points with `lower` ≤ `upper` + slack, and the number of common points."""
        low, high = self.curve(panel, lower), self.curve(panel, upper)
        common = sorted(low.keys() & high.keys())
        return sum(low[x].y <= high[x].y + slack for x in common), len(common)

    def ordered(
        self,
        words: str,
        panel: str,
        lower: str,
        upper: str,
        slack: float = 1e-9,
        *,
        always: bool = False,
    ) -> Check:
        """Return the check that one curve lies below another, with the share of points where it does."""
        so, points = self.below(panel, lower, upper, slack)
        share = so / points if points else math.nan
        return Check(
            f"{words} (share of {points} points)", share, holds=so == points, always=always
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure or table of a paper.

    id : such as funnel-3. number : as printed. parameters : descriptions by name. rows : computes the numbers.
    checks : compares them with the text. draws, quick_draws : number of random distributions, 0 for none.
    adult : True if it uses the Adult data. notes : remarks for the reader.
    seed : seed text of draws that several figures share; otherwise the id is used.
    """

    id: str
    number: str
    title: str
    panels: tuple[Panel, ...]
    parameters: Mapping[str, str]
    rows: Callable[[Run], Iterator[Row]]
    checks: Callable[[Rows], Iterator[Check]]
    draws: int = 0
    quick_draws: int = 0
    adult: bool = False
    notes: tuple[str, ...] = field(default=())
    seed: str = ""

    @property
    def paper(self) -> str:
        """The paper's title."""
        return PAPERS[self.id.partition("-")[0]]


def average(panel: str, curve: str, x: float, values: Sequence[float]) -> Row:
    """Return the mean of the finite values, one standard deviation to either side, and the extremes."""
    finite = [value for value in values if math.isfinite(value)]
    mean = fmean(finite)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in finite) / max(1, len(finite) - 1))
    return Row(panel, curve, x, mean, mean - spread, mean + spread, min(finite), max(finite))


def quartiles(panel: str, curve: str, x: float, values: Sequence[float]) -> Row:
    """Return the median, the quartiles and the extremes of the finite values, interpolated between order statistics."""
    finite = sorted(value for value in values if math.isfinite(value))

    def quantile(share: float) -> float:
        place = share * (len(finite) - 1)
        i = min(int(place), len(finite) - 2) if len(finite) > 1 else 0
        return finite[i] + (place - i) * (finite[min(i + 1, len(finite) - 1)] - finite[i])

    return Row(
        panel, curve, x, quantile(0.5), quantile(0.25), quantile(0.75), finite[0], finite[-1]
    )
