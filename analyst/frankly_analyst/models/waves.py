# SPDX-License-Identifier: Apache-2.0
"""Changes between the waves of a survey, from the estimates of each wave.

Every wave is a survey with the same question and choice ids; a public question may name the group
of each respondent, so that groups that answer several waves are recognised. Generalised least
squares combines all groups (docs/maths/waves.md, claim 3).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.estimates import Estimates
from frankly_analyst.models.numbers import numbers
from frankly_analyst.plots import figure, interval
from frankly_analyst.request import WEIGHTED
from frankly_analyst.rows import Estimate

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one estimate from the previous wave to `wave` (counted from 1).

    se : standard error. low, high : interval at `level`, computed from the intervals of the
    combined estimates (Zou & Donner 2008).
    """

    question: str
    choice: str
    label: str
    wave: int
    change: float
    se: float
    low: float
    high: float
    level: float
    unit: str

    def __str__(self) -> str:
        value = figure(self.change, self.unit)
        ends = interval(self.low, self.high, self.unit)
        return f"{self.label}, wave {self.wave - 1} to {self.wave}: {value}, {ends}"


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of all estimates between consecutive waves, to iterate over or print."""

    rows: tuple[Change, ...]
    persistence: float

    def __iter__(self) -> Iterator[Change]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, question: str, choice: str) -> tuple[Change, ...]:
        """Return the changes of one choice, in the order of the waves."""
        return tuple(row for row in self.rows if (row.question, row.choice) == (question, choice))

    def __str__(self) -> str:
        return "\n".join(map(str, self.rows))

    def _repr_html_(self) -> str:
        """Return the changes as an HTML table for notebooks."""
        titles = ("question", "choice", "waves", "change", "interval")
        head = "".join(f"<th>{title}</th>" for title in titles)
        lines = "".join(
            f"<tr><td>{escape(row.question)}</td><td>{escape(row.label)}</td>"
            f"<td>{row.wave - 1} to {row.wave}</td><td>{figure(row.change, row.unit)}</td>"
            f"<td>{interval(row.low, row.high, row.unit)}</td></tr>"
            for row in self.rows
        )
        return f"<table><tr>{head}</tr>{lines}</table>"

    def to_pandas(self) -> Any:
        """Return the changes as a pandas DataFrame."""
        return pd.DataFrame([asdict(row) for row in self.rows])


def changes(waves: Sequence[Estimates], persistence: float = 0.0) -> Changes:
    """Estimate the change of every share from each wave to the next.

    waves : the estimates of each wave, in order; with `by=` the public question that names the
        group, if people answer several waves. All waves must have the same confidence level. Groups
        are combined as estimates of one share, so people must be assigned to them at random;
        regions cannot be used.
    persistence : in [0, 1); the assumed correlation of one person's true answers in consecutive
        waves. With 0, the intervals hold if this correlation is anything from 0 to 1, because a
        positive one only makes them too wide; with a larger value, they are narrower and hold only
        if the answers are at least as persistent as assumed.

    Raises InvalidRequest: counts_invalid for fewer than two waves or different levels,
    targets_invalid if no question is in all waves.
    """
    if len(waves) < 2:
        raise InvalidRequest("give two waves or more", code="counts_invalid", field="waves")
    given = numbers(persistence, "persistence")
    if given.ndim or not 0 <= given < 1:
        raise InvalidRequest(
            "give a number from 0 to below 1", code="counts_invalid", field="persistence"
        )
    names = _names(waves)
    if not names:
        message = "no question and choice is in all waves: publish each wave with the same ids"
        raise InvalidRequest(message, code="targets_invalid", field="waves")
    if len({row.level for wave in waves for row in wave}) > 1:
        message = "the waves have intervals at different levels: request all at one level"
        raise InvalidRequest(message, code="counts_invalid", field="waves")
    return Changes(
        tuple(row for name in names for row in _changes_of(name, waves, persistence)), persistence
    )


def _names(waves: Sequence[Estimates]) -> list[tuple[str, str]]:
    """Return the (question, choice) pairs that have an estimate in every wave."""
    usable = [[(row.question, row.choice) for row in wave if _is_usable(row)] for wave in waves]
    others = [set(names) for names in usable[1:]]
    return [name for name in dict.fromkeys(usable[0]) if all(name in other for other in others)]


def _is_usable(row: Estimate) -> bool:
    return None not in (row.estimate, row.se, row.low, row.high)


def _changes_of(
    name: tuple[str, str], waves: Sequence[Estimates], persistence: float
) -> Iterator[Change]:
    observed = [
        (t, row)
        for t, wave in enumerate(waves)
        for row in wave
        if (row.question, row.choice) == name
        and _is_usable(row)
        # A population consists of the reports of its groups, which would count twice.
        and not row.by.startswith(f"{WEIGHTED}=")
    ]
    times = np.array([t for t, _ in observed])
    rows = [row for _, row in observed]
    values = np.array([row.estimate for row in rows], dtype=float)
    panel = _panel(times, rows, persistence)
    weights = _weights(times, rows, panel, len(waves))
    below = np.array([row.estimate - row.low for row in rows])  # type: ignore[operator]
    above = np.array([row.high - row.estimate for row in rows])  # type: ignore[operator]
    errors = np.array([row.se for row in rows], dtype=float)
    # Only the sampling part of an error is correlated between waves.
    sampling = np.array([row.se_sampling or 0.0 for row in rows]) / np.where(errors > 0, errors, 1)
    for wave, coefficients in enumerate(np.diff(weights, axis=0), start=2):
        change = float(coefficients @ values)
        towards_low = coefficients * np.where(coefficients > 0, below, above)
        towards_high = coefficients * np.where(coefficients > 0, above, below)
        yield Change(
            *name,
            label=rows[0].label,
            wave=wave,
            change=change,
            se=_length(coefficients * errors, sampling, panel),
            low=change - _length(towards_low, sampling, panel),
            high=change + _length(towards_high, sampling, panel),
            level=rows[0].level,
            unit=rows[0].unit,
        )


@dataclass(frozen=True, slots=True)
class _Panel:
    """Pairs of estimates from the same people in different waves, and their assumed correlation.

    Both of shape (rows, rows).
    """

    same_people: NDArray[np.bool_]
    correlation: FloatArray


def _panel(times: FloatArray, rows: Sequence[Estimate], persistence: float) -> _Panel:
    groups = np.array([row.by for row in rows])
    apart = np.abs(times[:, None] - times[None, :])
    # Without groups, it is unknown who answered twice.
    same_people = (groups[:, None] == groups[None, :]) & (groups != "")[:, None] & (apart > 0)
    return _Panel(same_people, np.where(same_people, np.power(persistence, apart), 0.0))


def _weights(times: FloatArray, rows: Sequence[Estimate], panel: _Panel, waves: int) -> FloatArray:
    """Return the weights of generalised least squares, shape (waves, rows)."""
    # A standard error of 0 (all reports are equal) must not get all the weight, so the minimum is
    # 1/n.
    errors = np.array([max(row.se or 0.0, 1 / max(row.n, 1)) for row in rows])
    sampling = np.array([row.se_sampling or 0.0 for row in rows])
    covariance = np.diag(errors**2) + panel.correlation * np.outer(sampling, sampling)
    membership = (times[:, None] == np.arange(waves)[None, :]).astype(float)
    solved = np.linalg.solve(covariance, membership)
    return np.asarray(np.linalg.solve(membership.T @ solved, solved.T), dtype=np.float64)


def _length(terms: FloatArray, sampling: FloatArray, panel: _Panel) -> float:
    """Return the length of the sum of terms, where terms of the same people are correlated.

    Terms of equal sign count as fully correlated, other terms with the assumed correlation, so that
    the length is large enough for every correlation between the assumed one and 1.
    """
    parts = terms * sampling
    products = np.outer(parts, parts)
    related = np.where(products > 0, panel.same_people, panel.correlation)
    return math.sqrt(max(0.0, float(terms @ terms + np.sum(related * products))))
