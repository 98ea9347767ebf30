# SPDX-License-Identifier: Apache-2.0
"""Weights of strata: given, post-stratified or raked to known totals of public covariates, and trimmed.

A report's weight depends only on its public covariates, so weights have no privacy cost.
Definitions and their proofs: docs/maths/models.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Final

import numpy as np
import pandas as pd

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.numbers import numbers
from frankly_analyst.models.sample import FloatArray, Sample

Cell = str | tuple[str, ...]
Amounts = Mapping[Any, float]
"""Numbers by cell: a covariate's value, or a tuple of several. (`Any`, because a mapping's keys are invariant.)"""
Totals = Mapping[Any, Amounts]
"""For each margin (a covariate, or a tuple of several), the known total of each of its cells."""

LINEAR, RAKING = "linear", "raking"
METHODS: Final = (LINEAR, RAKING)
_MOST_ROUNDS, _CLOSE = 1000, 1e-10


@dataclass(frozen=True)
class Weights:
    """Weight of each report by stratum, in the order of `Sample.strata()`.

    weights, base : shape (H,), final and base weight of one report. n : shape (H,), reports.
    calibration : shape (H, C), variables whose totals are known; None if weights were given.
    method : "given", "poststratified", "linear" or "raking". gap : largest relative distance of a weighted
    total from the known one. trimmed_strata, trimmed_reports, moved : number of strata and reports whose weight
    was cut, and the fraction of all weight that was cut and redistributed.
    """

    strata: pd.DataFrame = field(repr=False)
    n: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    base: FloatArray = field(repr=False)
    calibration: FloatArray | None = field(default=None, repr=False)
    method: str = "given"
    gap: float = 0.0
    trimmed_strata: int = 0
    trimmed_reports: int = 0
    moved: float = 0.0
    totals: Totals = field(default_factory=dict, repr=False)

    @property
    def kish(self) -> float:
        """Kish's factor n Σw²/(Σw)²: loss due to unequal weights independent of the answers."""
        w, n = self.weights, self.n
        return float(n.sum() * (n @ w**2) / (n @ w) ** 2)

    def trimmed(self, most: float, least: float = 0.0) -> "Weights":
        """Return weights limited to `least` … `most` times the mean, with the same total.

        Trimmed weights meet the known totals only up to `gap`, so variances are then computed without calibration.

        Raises InvalidRequest(targets_invalid) if the limits leave no weights.
        """
        numbers((most, least), "most")
        if not 0 <= least < 1 < most:
            raise _invalid("most", "must be above 1, and `least` from 0 to below 1")
        total = float(self.n @ self.weights)
        low, high = least * total / self.n.sum(), most * total / self.n.sum()
        trimmed, outside = self.weights, np.zeros(len(self.weights), dtype=bool)
        for _ in range(_MOST_ROUNDS):
            cut = np.clip(trimmed, low, high)
            outside |= cut != trimmed
            excess = float(self.n @ (trimmed - cut))
            if np.array_equal(cut, trimmed):
                break
            if outside.all():
                raise _invalid("most", "leaves no stratum whose weight could take up what was cut")
            # The redistribution can push other weights above the limit, so it is repeated.
            trimmed = np.where(outside, cut, cut + excess / self.n[~outside].sum())
        moved = float(self.n @ (np.abs(self.weights - trimmed) * outside))
        return replace(
            self,
            weights=trimmed,
            trimmed_strata=int(outside.sum()),
            trimmed_reports=round(float(self.n[outside].sum())),
            moved=moved / total,
            gap=_gap(self, trimmed, self.totals),
        )

    @property
    def calibrated(self) -> FloatArray | None:
        """Calibration variables, or None if the weights were given or trimmed."""
        return None if self.trimmed_strata else self.calibration

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per stratum: covariates, n, base and final weight."""
        return self.strata.assign(n=self.n.astype(int), base=self.base, weight=self.weights)

    def __str__(self) -> str:
        w = self.weights / (self.n @ self.weights / self.n.sum())
        lines = [
            f"weights ({self.method}) of {self.n.sum():.0f} reports in {len(w)} strata",
            f"  relative to the mean: {w.min():.4g} to {w.max():.4g}; Kish's factor {self.kish:.4g}",
        ]
        if self.totals:
            lines.append(f"  largest distance from a known total: {self.gap:.2g} of it")
        if self.trimmed_strata:
            lines.append(
                f"  trimmed: {self.trimmed_strata} strata with {self.trimmed_reports} reports; "
                f"{100 * self.moved:.3g}% of all weight was moved"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def equal(sample: Sample) -> Weights:
    """Return weight 1 for every report."""
    strata, n = sample.strata(), np.concatenate([version.n for version in sample.versions])
    return Weights(strata, n, np.ones(len(n)), np.ones(len(n)), method="equal")


def given(sample: Sample, weights: Amounts, by: Cell) -> Weights:
    """Return given weights of one report, by the values of the covariates `by`.

    Raises InvalidRequest(targets_invalid) if a stratum has no weight or a weight that is not
    positive.
    """
    plain = equal(sample)
    keys = _keys(plain.strata, by)
    values = _tuples(weights, "weights")
    missing = sorted(set(keys) - set(values))
    if missing:
        raise _invalid("weights", f"has no weight for {_named(missing[0])}")
    w = numbers([values[key] for key in keys], "weights")
    if not (w > 0).all():
        raise _invalid("weights", "must be positive numbers")
    return replace(plain, weights=w, base=w, method="given")


def poststratify(sample: Sample, by: Cell, totals: Amounts, base: Weights | None = None) -> Weights:
    """Return weights whose sums in the cells of `by` equal known totals.

    Raises InvalidRequest(targets_invalid) if a cell with reports has no total, or a cell with a total has no reports.
    """
    start = equal(sample) if base is None else base
    margin: Totals = {by: totals}
    indicators, known = _margins(start, margin)
    Z = indicators[0]
    held = (Z * (start.n * start.base)[:, None]).sum(axis=0)
    w = start.base * (Z @ (known[0] / held))
    gap = _gap(start, w, margin)
    return replace(start, weights=w, calibration=Z, method="poststratified", totals=margin, gap=gap)


def rake(
    sample: Sample, totals: Totals, base: Weights | None = None, method: str = RAKING
) -> Weights:
    """Return weights whose sums equal known totals in every margin.

    method : "raking" (iterative proportional fitting, positive weights) or "linear" (generalised regression,
        whose weights can be negative).

    Raises InvalidRequest(targets_invalid) if totals do not fit the strata or contradict each other.
    """
    if method not in METHODS:
        raise _invalid("method", f"must be one of {', '.join(METHODS)}")
    start = equal(sample) if base is None else base
    indicators, known = _margins(start, totals)
    sums = [float(t.sum()) for t in known]
    if max(sums) - min(sums) > 1e-6 * max(sums):
        raise _invalid(
            "totals", f"the margins add up to {', '.join(f'{s:g}' for s in sums)}: they must agree"
        )
    Z = np.hstack(indicators)
    w = (
        _linear(Z, np.concatenate(known), start)
        if method == LINEAR
        else _fitted(indicators, known, start)
    )
    gap = _gap(start, w, totals)
    if gap > 1e-6:
        raise _invalid(
            "totals",
            f"no weights meet them in these strata: a total is missed by {100 * gap:.2g}% of it",
        )
    return replace(start, weights=w, calibration=Z, method=method, gap=gap, totals=totals)


def _fitted(
    indicators: Sequence[FloatArray], known: Sequence[FloatArray], start: Weights
) -> FloatArray:
    w = start.base.copy()
    for _ in range(_MOST_ROUNDS):
        before = w
        for Z, total in zip(indicators, known, strict=True):
            w = w * (Z @ (total / (Z.T @ (start.n * w))))
        if np.abs(w - before).max() <= _CLOSE * w.max():
            break
    return w


def _linear(Z: FloatArray, known: FloatArray, start: Weights) -> FloatArray:
    scaled = Z * (start.n * start.base)[:, None]
    missing = known - scaled.sum(axis=0)
    return np.asarray(
        start.base * (1 + Z @ (np.linalg.pinv(scaled.T @ Z, hermitian=True) @ missing))
    )


def _margins(start: Weights, totals: Totals) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return per margin its indicators, shape (H, cells), and its totals."""
    if not hasattr(totals, "items") or not totals:
        raise _invalid("totals", "must name at least one margin: {'region': {'north': 500, …}}")
    indicators, known = [], []
    for by, cells in totals.items():
        keys, values = _keys(start.strata, by), _tuples(cells, "totals")
        unknown, absent = sorted(set(values) - set(keys)), sorted(set(keys) - set(values))
        if unknown or absent:
            # Both are named: a misspelt cell is one of the first and leaves one of the second.
            reasons = [f"{_named(cell)} has a known total but no reports" for cell in unknown[:3]]
            reasons += [f"{_named(cell)} has no known total" for cell in absent[:3]]
            detail = f"{', '.join(reasons)}: name every cell with reports, or merge cells"
            raise _invalid("totals", detail)
        order = {key: i for i, key in enumerate(values)}
        amounts = numbers(list(values.values()), "totals")
        if not (amounts > 0).all():
            raise _invalid("totals", "must be positive numbers")
        indicators.append(np.eye(len(order))[[order[key] for key in keys]])
        known.append(amounts)
    return indicators, known


def _gap(start: Weights, w: FloatArray, totals: Totals) -> float:
    """Return the largest relative distance of a weighted total from the known one."""
    if not totals:
        return 0.0
    indicators, known = _margins(start, totals)
    sums = (Z.T @ (start.n * w) / total for Z, total in zip(indicators, known, strict=True))
    return max(float(np.abs(part - 1).max()) for part in sums)


def _keys(strata: pd.DataFrame, by: Cell) -> list[tuple[str, ...]]:
    names = [by] if isinstance(by, str) else list(by)
    unknown = [name for name in names if name not in strata.columns]
    if unknown:
        raise _invalid("by", f"{', '.join(unknown)} is not a public covariate of these counts")
    return list(zip(*(map(str, strata[name].tolist()) for name in names), strict=True))


def _tuples(cells: Amounts, field: str) -> dict[tuple[str, ...], float]:
    """Return amounts by cells of texts; a number such as 18 names the value "18"."""
    if not hasattr(cells, "items"):
        raise _invalid(field, "must have a number for each cell: {'north': 500, …}")
    return {
        tuple(map(str, key)) if isinstance(key, tuple | list) else (str(key),): value
        for key, value in cells.items()
    }


def _named(cell: tuple[str, ...]) -> str:
    return " × ".join(cell)


def _invalid(field: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, code="targets_invalid", field=field)
