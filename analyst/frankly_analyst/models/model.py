# SPDX-License-Identifier: Apache-2.0
"""Fitted model: coefficients, model fit, effects and predictions, to print, export or plot."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from statistics import NormalDist

import numpy as np
import pandas as pd
from scipy import special

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models import effects
from frankly_analyst.models.effects import Effects
from frankly_analyst.models.outcome import LINEAR, ORDINAL, Outcome
from frankly_analyst.models.plot import Dot, dot_plot
from frankly_analyst.models.sample import SIMPLE, STRATA, FloatArray
from frankly_analyst.models.setup import Rows
from frankly_analyst.models.weighted import aligned_rows

SANDWICH, MODEL = "sandwich", "model"
_SAMPLES = {SIMPLE: "a simple random sample", STRATA: "samples of fixed sizes in the strata"}


@dataclass(frozen=True)
class Fit:
    """Fit of a likelihood model to the strata.

    deviance, pearson : distances of the counts from the fitted ones, with `df` degrees of freedom and the p-value
        of `pearson`; a small p means that the model, or the signed mechanism, does not explain the
        counts.
    sparse : True if expected counts are too small for χ² (Cochran's rule).
    """

    log_likelihood: float
    null_log_likelihood: float | None
    parameters: int
    deviance: float
    pearson: float
    df: int
    p: float | None
    sparse: bool

    @property
    def aic(self) -> float:
        """Akaike's criterion, comparable between models of the same counts and strata."""
        return 2 * self.parameters - 2 * self.log_likelihood

    @property
    def pseudo_r2(self) -> float | None:
        """McFadden's 1 − ℓ/ℓ₀ of the reports; the mechanism's noise keeps it small."""
        if self.null_log_likelihood is None:
            return None
        return 1 - self.log_likelihood / self.null_log_likelihood


@dataclass(frozen=True)
class Coefficient:
    """One coefficient; `equation` is the answer it belongs to, "" for a single equation.

    odds_ratio and its ends : exp of the coefficient; None in a linear model.
    """

    equation: str
    term: str
    estimate: float
    se: float
    z: float
    p: float
    low: float
    high: float
    odds_ratio: float | None
    odds_low: float | None
    odds_high: float | None


@dataclass(frozen=True)
class Model:
    """Fitted model of a noisy answer.

    terms : (equation, term) of each parameter of the outcome. beta, covariance : its estimates, shape (P,), with the
    sandwich covariance; model_covariance : inverse expected information, None if there is no likelihood model of the
    reports. reports : per version, weighted reports by stratum. cell_shares : per version, fitted shares of the
    noisy covariates' cells by stratum. fit : None for quasi-scores and weighted counts.
    """

    formula: str
    outcome: Outcome
    terms: tuple[tuple[str, str], ...]
    beta: FloatArray
    covariance: FloatArray
    model_covariance: FloatArray | None
    sampling: str
    level: float
    n: int
    strata: int
    rows: Rows = field(repr=False)
    reports: tuple[FloatArray, ...] = field(repr=False)
    cell_shares: tuple[FloatArray, ...] = field(repr=False)
    fit: Fit | None
    notes: tuple[str, ...]
    iterations: int

    def errors(self, kind: str = SANDWICH) -> FloatArray:
        """Return standard errors: "sandwich" (robust) or "model" (valid only if the model holds).

        Raises InvalidRequest(unsupported) for a kind that this model does not have.
        """
        matrix = {SANDWICH: self.covariance, MODEL: self.model_covariance}.get(kind)
        if matrix is None:
            raise InvalidRequest(
                "has sandwich errors only" if kind == MODEL else f"is {SANDWICH} or {MODEL}",
                code="unsupported",
                field="errors",
            )
        return np.sqrt(np.maximum(np.diagonal(matrix), 0.0))

    def coefficients(self, errors: str = SANDWICH) -> list[Coefficient]:
        """Return the coefficients with Wald intervals at `level`."""
        quantile = NormalDist().inv_cdf((1 + self.level) / 2)
        found = []
        for (equation, term), b, se in zip(self.terms, self.beta, self.errors(errors), strict=True):
            z = b / se if se > 0 else math.inf
            low, high = b - quantile * se, b + quantile * se
            odds = self.outcome.kind != LINEAR and not _threshold(self.outcome, term)
            ratios = [_exp(v) if odds else None for v in (b, low, high)]
            found.append(
                Coefficient(
                    equation,
                    term,
                    float(b),
                    float(se),
                    float(z),
                    float(2 * special.ndtr(-abs(z))),
                    float(low),
                    float(high),
                    *ratios,
                )
            )
        return found

    def wald(self, *terms: str) -> tuple[float, int, float]:
        """Return χ², degrees of freedom and p of "all coefficients of these terms are 0", in all equations.

        A term of the formula, such as `region` or `region:age`, means all its columns; `region[south]` is one column.
        `region` does not contain `region:age`: name both terms to test for any effect of the
        region.

        Raises InvalidRequest(targets_invalid) for an unknown term.
        """
        design = self.rows.design
        tested = set()
        for term in terms:
            columns = {term} & {name for _, name in self.terms} or set(design.columns_of(term))
            if not columns:
                known = ", ".join(map(str, design.spec.term_indices))
                raise InvalidRequest(
                    f"{term} is not a term of this model: it has {known}",
                    code="targets_invalid",
                    field="terms",
                )
            tested |= columns
        place = [i for i, (_, name) in enumerate(self.terms) if name in tested]
        if not place:
            raise InvalidRequest(
                "must name at least one term", code="targets_invalid", field="terms"
            )
        b, V = self.beta[place], self.covariance[np.ix_(place, place)]
        chi2 = float(b @ np.linalg.solve(V, b))
        return chi2, len(place), float(special.chdtrc(len(place), chi2))

    def predict(self, at: Sequence[Mapping[str, str | float]]) -> Effects:
        """Return predicted shares (or means) at rows of covariates, with intervals; see `effects.predict`."""
        return effects.predict(self, at)

    def effects(self, variable: str) -> Effects:
        """Return average marginal effects of a covariate, with intervals; see `effects.average`."""
        return effects.average(self, variable)

    def to_pandas(self, errors: str = SANDWICH) -> pd.DataFrame:
        """Return one row per coefficient, with the columns of R's broom: term, estimate, … and odds ratios."""
        return pd.DataFrame([vars(row) for row in self.coefficients(errors)])

    def plot(self) -> str:
        """Return the coefficients with their intervals as SVG text; without intercepts and thresholds."""
        dots = [
            Dot(_name(row), row.estimate, row.low, row.high)
            for row in self.coefficients()
            if row.term != "Intercept" and not _threshold(self.outcome, row.term)
        ]
        return dot_plot(
            self.formula,
            dots or [Dot(_name(r), r.estimate, r.low, r.high) for r in self.coefficients()],
        )

    def _lines(self) -> list[str]:
        kind, answers = self.outcome.kind, self.outcome.answers
        lines = [
            f"{kind} model: {self.formula}",
            f"{self.n} reports in {self.strata} strata, {_SAMPLES[self.sampling]}",
            f"sandwich errors, level {self.level:g}",
        ]
        if kind == ORDINAL:
            lines.append(
                f"log odds of more than each of {', '.join(answers[:-1])}, in the order of the choices"
            )
        elif kind != LINEAR:
            lines.append(f"log odds of {', '.join(answers[1:])} against {answers[0]}")
        return lines

    def _below(self) -> list[str]:
        lines = []
        if self.fit is not None:
            fit = self.fit
            # rounding: the deviance of a saturated model is 0, but for the last digits
            lines = [f"deviance {round(fit.deviance, 9) + 0.0:.4g}"]
            if fit.p is not None:
                lines.append(f"Pearson χ² {fit.pearson:.4g} on {fit.df} df, p {fit.p:.3g}")
            if fit.sparse:
                lines.append("expected counts too small for χ²")
            lines.append(f"AIC {fit.aic:.1f}")
            if fit.pseudo_r2 is not None:
                lines.append(f"pseudo-R² {fit.pseudo_r2:.3g}")
            lines = ["; ".join(lines)]
        return [*lines, *self.notes]

    def _table(self) -> list[list[str]]:
        head = ["term", "estimate", "se", "z", "p", "low", "high", "odds ratio"]
        rows = [
            [
                _name(r),
                *(f"{v:.4g}" for v in (r.estimate, r.se, r.z)),
                _p(r.p),
                f"{r.low:.4g}",
                f"{r.high:.4g}",
                "" if r.odds_ratio is None else f"{r.odds_ratio:.4g}",
            ]
            for r in self.coefficients()
        ]
        return [head, *rows]

    def __str__(self) -> str:
        return "\n".join([*self._lines(), *aligned_rows(self._table()), *self._below()])

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        cells = "".join(
            "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows
        )
        titles = "".join(f"<th>{escape(title)}</th>" for title in head)
        notes = "".join(f"<p>{escape(line)}</p>" for line in self._below())
        return f"<table><caption>{escape('; '.join(self._lines()))}</caption><tr>{titles}</tr>{cells}</table>{notes}"


def _threshold(outcome: Outcome, term: str) -> bool:
    return outcome.kind == ORDINAL and " | " in term


def _name(row: Coefficient) -> str:
    return f"{row.equation}: {row.term}" if row.equation else row.term


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _p(value: float) -> str:
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"
