# SPDX-License-Identifier: Apache-2.0
"""Comparison of the reports with public answers to those without, which weights and models leave out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from html import escape
from statistics import NormalDist

import numpy as np
import pandas as pd
from scipy import special

from frankly_analyst.comparisons import points
from frankly_analyst.counted_part import CountedPart, Stratum
from frankly_analyst.counts import Counts
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.numbers import numbers
from frankly_analyst.models.sample import FloatArray
from frankly_analyst.models.weighted import aligned_rows
from frankly_analyst.plots import SHARE, percent


@dataclass(frozen=True)
class LeftOutRow:
    """Shares of one choice.

    known, left_out : among the reports with, and without public answers. difference : the second
    less the first, with its standard error and interval. shift : by how much leaving reports out
    moves the unweighted share, `known` less the share of all reports: an estimate of the bias.
    """

    choice: str
    known: float
    left_out: float
    difference: float
    se: float
    low: float
    high: float
    shift: float


@dataclass(frozen=True)
class LeftOut:
    """Reports left out for want of public answers, beside the others.

    n, left_out : numbers of reports with, and without public answers. withheld : how many of the
    second are in strata below the minimum; the others were released without public answers, or
    their document does not ask for them. chi2, df, p : Wald test that both have the same shares.
    """

    question: str
    n: int
    left_out: int
    withheld: int
    rows: tuple[LeftOutRow, ...]
    chi2: float
    df: int
    p: float
    level: float

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per choice."""
        return pd.DataFrame([vars(row) for row in self.rows])

    def _table(self) -> list[list[str]]:
        head = ["", "known", "left out", "difference", "interval", "shift"]
        return [
            head,
            *(
                [
                    row.choice,
                    percent(row.known),
                    percent(row.left_out),
                    points(row.difference, SHARE),
                    f"{points(row.low, SHARE).removesuffix(' points')} to {points(row.high, SHARE)}",
                    points(row.shift, SHARE),
                ]
                for row in self.rows
            ),
        ]

    def _lines(self) -> list[str]:
        return [
            f"{self.question}: {self.n} reports with public answers, {self.left_out} without "
            f"({self.withheld} in strata below the minimum), level {self.level:g}"
        ]

    def _below(self) -> str:
        return f"the same shares in both: χ² {self.chi2:.4g}, df {self.df}, p {self.p:.3g}"

    def __str__(self) -> str:
        return "\n".join([*self._lines(), *aligned_rows(self._table()), self._below()])

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        titles = "".join(f"<th>{escape(title)}</th>" for title in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        caption = escape(self._lines()[0])
        return (
            f"<table><caption>{caption}</caption><tr>{titles}</tr>{body}</table>"
            f"<p>{escape(self._below())}</p>"
        )


def left_out(
    counts: Counts, question: str, *, documents: Sequence[str] = (), level: float = 0.95
) -> LeftOut:
    """Compare the reports that weights and models leave out with the others.

    Reports without public answers are in `rest` of the counts. If their shares differ, figures of
    the others are biased for all: an unweighted share by about `shift`, a weighted or modelled one
    by what public answers do not explain of it.

    documents : as in `fit`. level : of the intervals.

    Raises InvalidRequest: targets_invalid for an unknown question, counts_invalid if no reports are
    left out, or fewer than two of a document on either side.
    """
    if not 0 < float(numbers(level, "level")) < 1:
        raise InvalidRequest("must be between 0 and 1", code="targets_invalid", field="level")
    parts = counts.by_document(question, documents=documents)
    known = [(part, reduce(Stratum.__add__, part.strata)) for part in parts if part.strata]
    rest = [(part, part.rest) for part in parts if part.rest is not None]
    if not rest or not known or min(stratum.n for _, stratum in (*known, *rest)) < 2:
        detail = (
            "no reports are left out, or too few: the comparison needs two reports or more with, and "
            "two without public answers"
        )
        raise InvalidRequest(detail, code="counts_invalid", field="counts")
    (n, p, V), (m, q, W) = _mean(known, question), _mean(rest, question)
    choices = [c.id for one in parts[0].questions if one.id == question for c in one.choices]
    places = [i for i, value in enumerate(p + q) if np.isfinite(value)]
    d, C = (q - p)[places], (V + W)[np.ix_(places, places)]
    z = NormalDist().inv_cdf((1 + level) / 2)
    errors = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    rows = tuple(
        LeftOutRow(
            choices[i],
            float(p[i]),
            float(q[i]),
            float(delta),
            float(se),
            float(delta - z * se),
            float(delta + z * se),
            float(-m / (n + m) * delta),
        )
        for i, delta, se in zip(places, d, errors, strict=True)
    )
    # Shares add up to 1, so their covariance has a rank below their number.
    df = int(np.linalg.matrix_rank(C, hermitian=True))
    chi2 = float(d @ np.linalg.pinv(C, hermitian=True) @ d)
    withheld = sum(part.withheld_reports for part, _ in rest)
    return LeftOut(question, n, m, withheld, rows, chi2, df, float(special.chdtrc(df, chi2)), level)


def _mean(
    samples: Sequence[tuple[CountedPart, Stratum]], question: str
) -> tuple[int, FloatArray, FloatArray]:
    """Return number of reports, shares and covariance over independent samples, weighted by their reports."""
    n = sum(stratum.n for _, stratum in samples)
    shares = [np.array(part.shares(s, question), dtype=float) * s.n / n for part, s in samples]
    spread = [
        np.array(part.covariance(s, question), dtype=float) * (s.n / n) ** 2 for part, s in samples
    ]
    return n, np.sum(shares, axis=0), np.sum(spread, axis=0)
