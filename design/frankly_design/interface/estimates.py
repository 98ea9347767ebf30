# SPDX-License-Identifier: Apache-2.0
"""Unbiased estimates of shares from reports, with standard errors and margins (spec 8)."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem

from frankly_design.estimate import estimator
from frankly_design.estimate.denial import checked_denial, denied
from frankly_design.estimate.flags import SENTENCES
from frankly_design.estimate.margins import METHODS, require_level
from frankly_design.interface import shown
from frankly_design.interface.tables import Number, aligned, exact
from frankly_design.numeric.arrays import FloatArray
from frankly_design.requests.estimate import decoder_prior, target_rows
from frankly_design.requests.fields import fraction


class EstimateOptions(TypedDict, total=False):
    """What an estimate is of, and how it is stated; see `estimate_shares`."""

    labels: Sequence[Any] | None
    design_prior: Sequence[int] | None
    targets: Any
    population: int | None
    census: bool
    confidence_level: float
    beta: Number


class Estimates:
    """Estimates W·p of the answers' shares p; one row per target, by default one per answer.

    Arrays have nan where a figure is not defined.

    Attributes
    ----------
    labels : names of the rows. figures : all figures, as `frankly estimate --json` has them. n : number
    of reports. confidence_level : that of the intervals.
    """

    def __init__(self, found: estimator.Estimate, labels: Sequence[Any]) -> None:
        """Wrap figures; `estimate_shares` calls this."""
        self.figures, self.labels = found, tuple(labels)
        if len(self.labels) != len(found.unbiased):
            raise InvalidInput(
                Problem.FIELD_TYPE, f"give {len(found.unbiased)} labels, one for each row", "labels"
            )
        self.n, self.confidence_level = found.n, found.level

    @property
    def shares(self) -> FloatArray:
        """Unbiased estimates, shape (targets,); they may lie outside [0, 1] and are never cut."""
        return _array(self.figures.unbiased)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors, of privacy and sampling together, shape (targets,).

        For a census or a finite population they use at least the noise of privacy at possible shares,
        so that they can exceed the roots of the covariance's diagonal.
        """
        return _array(self.figures.se)

    @property
    def covariance(self) -> FloatArray:
        """Unbiased estimate of the covariance, shape (targets, targets); nan without two reports."""
        found, size = self.figures.covariance, len(self.labels)
        if found is None:
            return np.full((size, size), np.nan)
        return np.array([_array(row) for row in found])

    @property
    def mle(self) -> FloatArray:
        """Targets at the maximum-likelihood shares, shape (targets,); possible values, but biased."""
        return _array(self.figures.mle)

    def interval(self, method: str = "score") -> FloatArray:
        """Return the confidence intervals, shape (targets, 2).

        method : a field of `Margins`: score (the default), kl, exact, clt, chebyshev,
        chebyshev_plugin, simultaneous, simultaneous_plugin or sequence.
        """
        if method not in METHODS:
            raise InvalidInput(
                Problem.UNSUPPORTED, f"the methods are {', '.join(METHODS)}", "method"
            )
        ends = self.figures.margins.ends(method, self.figures.unbiased)
        return np.array([(np.nan, np.nan) if pair is None else pair for pair in ends]).reshape(
            -1, 2
        )

    def denied(self, denial: Number) -> FloatArray:
        """Return [estimate, high], shape (targets, 2), if some of those concerned deny the answer.

        denial : share of the people with an answer who give another one, in [0, 1); see
            docs/maths/validity.md. Only for shares, by their score intervals.

        Raises InvalidInput(field_type).
        """
        share = checked_denial(exact(denial, "denial"), "denial")
        ends = self.interval()
        rows = [
            denied(
                {"estimate": None if np.isnan(v) else v, "high": None if np.isnan(h) else h}, share
            )
            for v, h in zip(self.shares, ends[:, 1], strict=True)
        ]
        return np.array([_array((row["denied_estimate"], row["denied_high"])) for row in rows])

    def to_frame(self, method: str = "score") -> Any:
        """Return a pandas DataFrame: estimate, standard_error, low, high; one row per target."""
        columns = ("estimate", "standard_error", "low", "high")
        return shown.frame(self._rows(method), columns, self.labels)

    def plot(self, ax: Any = None, method: str = "score") -> Any:
        """Draw the estimates with their intervals; returns the matplotlib axes."""
        ax = shown.axes(ax)
        places, (low, high) = range(len(self.labels)), self.interval(method).T
        ax.hlines(places, low, high, color="#1f4e9c")
        ax.plot(self.shares, places, "o", color="#1f4e9c")
        ax.set_yticks(list(places), list(map(shown.literal, self.labels)))
        ax.invert_yaxis()
        ax.set_xlabel(f"share, with {100 * self.confidence_level:g}% interval ({method})")
        return ax

    def _rows(self, method: str) -> FloatArray:
        return np.column_stack([self.shares, self.standard_errors, self.interval(method)])

    @cached_property
    def _lines(self) -> list[tuple[str, ...]]:
        rows = zip(self.labels, self._rows("score"), strict=True)
        return [(str(label), *(f"{v:.4f}" for v in row)) for label, row in rows]

    def _head(self) -> tuple[str, ...]:
        level = f"{100 * self.confidence_level:g}%"
        return (
            f"{self.n} reports",
            "estimate",
            "standard error",
            f"low ({level})",
            f"high ({level})",
        )

    def _notes(self) -> list[str]:
        notes = [SENTENCES[flag] for flag in self.figures.flags]
        for label, flags in zip(self.labels, self.figures.row_flags, strict=True):
            notes += [f"{label}: {SENTENCES[flag]}" for flag in flags]
        return notes

    def __repr__(self) -> str:
        lines = shown.aligned([self._head(), *self._lines])
        return "\n".join([lines, *(note for note in self._notes())])

    def _repr_html_(self) -> str:
        return shown.table_html(self._head(), self._lines) + shown.notes_html(self._notes())


def estimate_shares(
    mechanism: Any,
    counts: Any,
    *,
    labels: Sequence[Any] | None = None,
    design_prior: Sequence[int] | None = None,
    targets: Any = "shares",
    population: int | None = None,
    census: bool = False,
    confidence_level: float = 0.95,
    beta: Number = 0.01,
) -> Estimates:
    """Estimate the shares of answers, or other targets, from counts of reports, without bias.

    Parameters
    ----------
    mechanism : a mechanism in whole numbers; or a `Design`, whose `estimate` is then called.
    counts : reports of each kind, shape (reports,), in the order of the channel's columns; for
        mechanisms that report sets a `SetCounts` (see `Design.count`).
    labels : names of the answers.
    design_prior : counts of the answers, shape (answers,), which determine the decoder; None: equal
        shares. The estimate is unbiased for any.
    targets : rows W, shape (targets, answers), or "shares". A pandas table's index names them.
    population : N, if respondents are drawn without replacement from N people.
    census : True if the respondents are the population, so that only privacy adds noise.
    confidence_level : in (0, 1).
    beta : assumed share of fake reports for the bound of their effect, in [0, 1).

    Raises InvalidInput, naming the field.
    """
    if hasattr(mechanism, "estimate"):  # a Design, which knows its labels and its prior
        given = {"labels": labels, "design_prior": design_prior}
        known: EstimateOptions = {key: v for key, v in given.items() if v is not None}  # type: ignore[assignment]
        found_by: Estimates = mechanism.estimate(
            counts=counts,
            targets=targets,
            population=population,
            census=census,
            confidence_level=confidence_level,
            beta=beta,
            **known,
        )
        return found_by
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(Problem.FIELD_TYPE, "give a mechanism in whole numbers", "mechanism")
    if type(census) is not bool:
        raise InvalidInput(Problem.FIELD_TYPE, "write True or False", "census")
    counts = _by_report(counts, mechanism)
    names: Sequence[Any] | None = labels
    rows: Any = "shares"
    if not (isinstance(targets, str) and targets == "shares"):
        wanted = aligned(targets, labels, "targets")
        names = wanted.row_labels or range(len(wanted.rows))
        rows = target_rows(wanted.rows)
    found = estimator.estimate(
        mechanism,
        exact(counts, "counts") if _is_listed(counts) else counts,
        design_prior=None
        if design_prior is None
        else decoder_prior(aligned(design_prior, labels, "design_prior").rows[0]),
        targets=rows,
        population=exact(population, "population"),
        census=census,
        level=require_level(confidence_level, "confidence_level"),
        beta=fraction(exact(beta, "beta"), "beta"),
    )
    return Estimates(found, range(len(found.unbiased)) if names is None else names)


def _by_report(counts: Any, mechanism: Mechanism) -> Any:
    """Return a pandas Series such as that of `value_counts` in the order of the reports' numbers."""
    if not hasattr(counts, "reindex") or hasattr(counts, "columns"):
        return counts
    if not counts.index.is_unique or not set(counts.index) <= set(range(mechanism.reports)):
        raise InvalidInput(
            Problem.COUNTS_INVALID,
            f"the index of counts has numbers of reports, 0 to {mechanism.reports - 1}, each once",
            "counts",
        )
    return counts.reindex(range(mechanism.reports), fill_value=0).tolist()


def _is_listed(counts: Any) -> bool:
    return isinstance(counts, list | tuple) or hasattr(counts, "tolist")


def _array(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
