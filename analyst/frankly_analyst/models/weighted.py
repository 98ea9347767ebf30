# SPDX-License-Identifier: Apache-2.0
"""Weighted shares and means with intervals, design effects, contrasts and ratios."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import NormalDist

import numpy as np
import pandas as pd

from frankly_analyst.charts import Line, Scale, intervals
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.combined import Combined, fieller, linear
from frankly_analyst.models.numbers import numbers
from frankly_analyst.models.sample import SAMPLINGS, SIMPLE, FloatArray, Sample
from frankly_analyst.models.scored import Scores, group_shares
from frankly_analyst.models.weights import Weights, equal
from frankly_analyst.plots import SHARE, figure, interval
from frankly_analyst.shown import Shown


@dataclass(frozen=True)
class WeightedRow:
    """One weighted estimate.

    deff : variance relative to direct answers in a simple random sample of the same n; the product of
    deff_privacy (randomised instead of direct answers), deff_sampling (the sampling design with its base weights
    instead of a simple random sample) and deff_weighting (final instead of base weights). None where direct
    answers have no variance. effective_n : n / deff.
    """

    name: str
    unit: str
    estimate: float
    se: float
    low: float
    high: float
    n: int
    effective_n: float | None
    deff: float | None
    deff_privacy: float | None
    deff_sampling: float
    deff_weighting: float | None


@dataclass(frozen=True)
class Weighted:
    """Weighted estimates of one question, with their covariance matrix.

    n : reports of all groups together.
    """

    question: str
    rows: tuple[WeightedRow, ...]
    covariance: FloatArray
    weights: Weights
    sampling: str
    level: float
    n: int
    notes: tuple[str, ...] = ()

    def contrast(self, of: Mapping[str, float]) -> Combined:
        """Return Σ weight · estimate by name, with its interval: a difference of groups or periods, for instance.

        Raises InvalidRequest(targets_invalid) for an unknown name.
        """
        return linear(self._vector(of, "of"), self._values, self.covariance, self.level)

    def ratio(self, of: Mapping[str, float], over: Mapping[str, float]) -> Combined:
        """Return Σ of / Σ over with Fieller's interval; an unbounded end is None. Raises like `contrast`."""
        return fieller(
            self._vector(of, "of"),
            self._vector(over, "over"),
            self._values,
            self.covariance,
            self.level,
        )

    def _vector(self, weights: Mapping[str, float], field: str) -> FloatArray:
        names = [row.name for row in self.rows]
        unknown = [name for name in weights if name not in names]
        if unknown or not weights:
            raise InvalidRequest(
                f"must name some of {', '.join(names)}", code="targets_invalid", field=field
            )
        return numbers([weights.get(name, 0.0) for name in names], field)

    @property
    def _values(self) -> FloatArray:
        return np.array([row.estimate for row in self.rows])

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per estimate."""
        return pd.DataFrame([{"question": self.question} | vars(row) for row in self.rows])

    def plot(self) -> str:
        """Return bars with whiskers as SVG text. Raises InvalidRequest(unsupported) without shares."""
        shares = [row for row in self.rows if row.unit == SHARE]
        if not shares:
            raise InvalidRequest("only shares are plotted", code="unsupported", field="question")
        lines = [
            Line.of(row.name, Shown.of(row.estimate, row.low, row.high, possible=(0.0, 1.0)))
            for row in shares
        ]
        return intervals(f"{self.question}, weighted", [("", lines)], Scale.of_shares(lines))

    def _cells(self) -> list[list[str]]:
        return [
            [
                row.name,
                figure(row.estimate, row.unit),
                interval(row.low, row.high, row.unit),
                f"{row.se:.4g}",
                "" if row.effective_n is None else f"{row.effective_n:.0f}",
                *(
                    _factor(v)
                    for v in (row.deff_privacy, row.deff_sampling, row.deff_weighting, row.deff)
                ),
            ]
            for row in self.rows
        ]

    def __str__(self) -> str:
        head = (
            f"{self.question}: {self.n} reports, weights {self.weights.method}, {self.sampling} "
            f"random sample, level {self.level:g}"
        )
        return "\n".join([head, *aligned_rows([list(_HEAD), *self._cells()]), *self.notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(title)}</th>" for title in _HEAD)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in self._cells()
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table><caption>{escape(self.question)}, weighted</caption><tr>{head}</tr>{body}</table>{notes}"


_HEAD = (
    "",
    "estimate",
    "interval",
    "se",
    "effective n",
    "privacy ×",
    "sampling ×",
    "weighting =",
    "deff",
)


def aligned_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of texts as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def estimate(
    sample: Sample,
    targets: FloatArray,
    names: Sequence[str],
    weights: Weights | None,
    sampling: str = SIMPLE,
    level: float = 0.95,
    unit: str = SHARE,
    by: str | None = None,
) -> Weighted:
    """Return weighted means of the decoded scores of `targets`, shape (T, S), one name each.

    by : public covariate whose values are groups with estimates of their own; None for all reports together.

    Raises InvalidRequest for an unknown covariate or sampling design, a level outside 0 to 1 or weights of other
    strata.
    """
    check(sample, weights, sampling, level)
    used = equal(sample) if weights is None else weights
    labels, groups = _groups(sample, by)
    scores = Scores.of(sample, targets, groups)
    theta, final = scores.variance(used.weights, used.base, used.calibrated, sampling)
    _, designed = scores.variance(used.base, used.base, None, sampling)
    _, plain = scores.variance(np.ones_like(used.base), used.base, None, SIMPLE)
    noisy = scores.population_variance(used.weights)
    shares = group_shares(sample, used.weights, groups)
    z = NormalDist().inv_cdf((1 + level) / 2)
    rows = []
    for i, (d, t) in enumerate(np.ndindex(theta.shape)):
        value, se = float(theta[d, t]), math.sqrt(max(final[i, i], 0.0))
        n = round(float(scores.n @ groups[:, d]))
        sampled = float(designed[i, i] / plain[i, i]) if plain[i, i] > 0 else 1.0
        factors = _factors(
            targets[t], shares[d], float(final[i, i]) * n, float(noisy[d, t]), sampled
        )
        effective = None if factors[0] is None else n / factors[0]
        name = f"{labels[d]}: {names[t]}" if by else names[t]
        rows.append(
            WeightedRow(
                name, unit, value, se, value - z * se, value + z * se, n, effective, *factors
            )
        )
    notes = tuple(sample.notes() + single_strata(sample, sampling))
    return Weighted(sample.questions[0], tuple(rows), final, used, sampling, level, sample.n, notes)


def _groups(sample: Sample, by: str | None) -> tuple[list[str], FloatArray]:
    strata = sample.strata()
    if by is None:
        return ["all"], np.ones((len(strata), 1))
    if by not in strata.columns:
        raise InvalidRequest(
            f"{by} is not a public covariate of these counts", code="targets_invalid", field="by"
        )
    values = np.array([str(value) for value in strata[by]])
    levels = sorted(set(values))
    return [f"{by}={level}" for level in levels], (values[:, None] == np.array(levels)).astype(
        float
    )


def single_strata(sample: Sample, sampling: str) -> list[str]:
    """Return a sentence if strata of fixed sizes have a single report."""
    single = sum(int((version.n < 2).sum()) for version in sample.versions)
    if sampling == SIMPLE or not single:
        return []
    return [f"{single} strata have one report, which does not determine their variance"]


def check(sample: Sample, weights: Weights | None, sampling: str, level: float) -> None:
    """Raise InvalidRequest for arguments that all estimates share, and for a single report, which has no variance."""
    if sample.n < 2:
        raise InvalidRequest(
            "two reports or more are needed", code="counts_invalid", field="counts"
        )
    if sampling not in SAMPLINGS:
        raise InvalidRequest(
            f"must be one of {', '.join(SAMPLINGS)}", code="unsupported", field="sampling"
        )
    if not 0 < float(numbers(level, "level")) < 1:
        raise InvalidRequest("must be between 0 and 1", code="targets_invalid", field="level")
    if weights is not None and not _same(weights.strata, sample.strata()):
        raise InvalidRequest(
            "were made for other strata: make them from the same counts and question",
            code="targets_invalid",
            field="weights",
        )


def _same(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    return first is second or first.equals(second)


def _factors(
    target: FloatArray, shares: FloatArray, final: float, noisy: float, sampled: float
) -> tuple[float | None, float | None, float, float | None]:
    """Return total, privacy, sampling and weighting factor; variances are those of one report."""
    direct = float(target**2 @ shares) - float(target @ shares) ** 2
    if direct <= 0 or noisy <= 0:
        return None, None, sampled, None
    return final / direct, noisy / direct, sampled, final / (noisy * sampled)


def _factor(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
