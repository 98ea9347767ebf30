# SPDX-License-Identifier: Apache-2.0
"""Unbiased estimates with their uncertainty, from counts per report symbol (DESIGN §6)."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from frankly_protocol.mechanisms import DenseMechanism
from numpy.typing import NDArray

from frankly_server.estimate.decoder import Decoder, decoder, shares
from frankly_server.estimate.inputs import checked_counts, checked_prior, checked_targets
from frankly_server.estimate.margins import Margins, Values, margins, require_level
from frankly_server.estimate.poisoning import Poisoning, checked_beta, poisoning
from frankly_server.estimate.projection import onto_simplex
from frankly_server.estimate.worst_case import linear_part, worst_case_variance

FloatArray = NDArray[np.float64]

ILL_CONDITIONED = 1e6


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimates of every target and how far to trust them; None wherever a figure does not exist.

    n : reports. unbiased : may leave [0, 1], never clipped. covariance : of the unbiased estimates, itself unbiased;
    needs two reports. se : its root diagonal; se_privacy, se_sampling : the two parts it is made of (se² is their
    sum). For a census or a finite population the privacy part of these three is at least its value at the projected
    shares: the unbiased one can fall to 0 or below by chance, and a zero margin would pass noise off as certainty.
    worst_case_se : over all possible true shares. margins : half-widths at `level`. poisoning : how far
    fake reports can have moved the estimates. projected : targets of the
    nearest shares on the simplex (biased; its spread is not `se`). rank : of the mechanism; identifiable : whether
    every target is.

    flags : no_reports, one_report, not_identifiable, outside_simplex, privacy_part_negative, sampling_part_negative (a
    part estimated below 0 is shown as 0, or as said above), ill_conditioned, design_prior_replaced.
    """

    n: int
    level: float
    unbiased: Values
    covariance: tuple[Values, ...] | None
    se: Values
    se_privacy: Values
    se_sampling: Values
    worst_case_se: Values
    margins: Margins
    poisoning: Poisoning
    projected: Values
    rank: int
    identifiable: bool
    flags: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the figures by their names in DESIGN §7."""
        body = asdict(self)
        del body["level"]
        return body


def estimate(
    mechanism: DenseMechanism,
    counts: Sequence[int],
    *,
    design_prior: Sequence[int] | None = None,
    targets: Literal["shares"] | Sequence[Sequence[Fraction | int]] = "shares",
    population: int | None = None,
    census: bool = False,
    level: float = 0.95,
    beta: Fraction = Fraction(1, 100),
) -> Estimate:
    """Estimate W·p from noisy counts; the work does not depend on the number of reports.

    Parameters
    ----------
    mechanism : whose reports were counted, as published. counts : reports per symbol. design_prior : counts of the
    answers published with the mechanism, for the decoder's weights (None: uniform). targets : rows of W over answers,
    or "shares". population : N, if the respondents are drawn without replacement from N people. census : the
    respondents are the whole population, so only privacy adds noise [Thesis 6.5]. level : of the margins, in (0, 1).
    beta : share of all received reports that are fake, in [0, 1), for the poisoning bound.

    Raises
    ------
    InvalidInput : field_type (beta), counts_invalid, targets_invalid, prior_shape, prior_value, confidence_range.
    """
    confidence = require_level(level)
    n = checked_counts(mechanism, counts, population, census=census)
    wanted = shares(mechanism.answers) if targets == "shares" else checked_targets(mechanism, targets)
    prior = None if design_prior is None else checked_prior(mechanism, design_prior)
    share = checked_beta(beta)
    found = decoder(mechanism, wanted, prior)
    return _Working(found, tuple(counts), n, population, census).result(confidence, share)


class _Working:
    """The figures of one estimate; floats from here on, each converted once from the exact decoder."""

    def __init__(self, found: Decoder, counts: tuple[int, ...], n: int, population: int | None, census: bool) -> None:
        self.found, self.counts, self.n = found, counts, n
        self.known = [t for t, row in enumerate(found.rows) if row is not None]
        self.flags: list[str] = []
        # The share of the sampling variance that remains: 1 − n/N of its estimate, (N−n)/(N−1) of its true value.
        self.estimated_sampling, self.true_sampling = _sampling_factors(n, population, census=census)
        rows = [row for row in found.rows if row is not None]
        self.V = np.array([[float(v) for v in row] for row in rows]).reshape(len(rows), found.mechanism.reports)
        self.W = np.array([[float(v) for v in found.targets[t]] for t in self.known]).reshape(
            len(rows), found.mechanism.answers
        )
        denominator = found.mechanism.denominator
        self.Q = np.array([[w / denominator for w in row] for row in found.mechanism.weights])

    def result(self, level: float, beta: Fraction) -> Estimate:
        """Assemble the estimate."""
        self._flag_inputs()
        exact = self.found.apply(self.counts)
        if self.found.targets == shares(self.found.mechanism.answers) and any(
            v is not None and not 0 <= v <= 1 for v in exact
        ):
            self.flags.append("outside_simplex")
        total, privacy, sampling = self._covariances()
        worst = self._spread([self._worst_case(i) for i in range(len(self.known))] if self.n else None)
        floors = self._privacy_floors()
        se = self._spread(None if total is None else self._errors(total, privacy, floors))
        return Estimate(
            n=self.n,
            level=level,
            unbiased=tuple(None if v is None else float(v) for v in exact),
            covariance=self._full(total),
            se=se,
            se_privacy=self._part(privacy, floors, "privacy_part_negative"),
            se_sampling=self._part(sampling, np.zeros(len(self.known)), "sampling_part_negative"),
            worst_case_se=worst,
            margins=margins(se, worst, level),
            poisoning=poisoning(self.found, exact, beta),
            projected=self._projected(),
            rank=self.found.rank,
            identifiable=len(self.known) == len(self.found.rows),
            flags=tuple(self.flags),
        )

    def _flag_inputs(self) -> None:
        found = self.found
        named = {
            "no_reports": self.n == 0,
            "one_report": self.n == 1,
            "not_identifiable": len(self.known) < len(found.rows),
            "ill_conditioned": found.rank == found.mechanism.answers and np.linalg.cond(self.Q) > ILL_CONDITIONED,
            "design_prior_replaced": found.fallback,
        }
        self.flags.extend(name for name, holds in named.items() if holds)

    def _covariances(self) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
        """Return (total, privacy part, sampling part), each unbiased; the parts sum to the total.

        T = V(diag λ̂ − λ̂λ̂ᵀ)Vᵀ/(n−1) estimates the covariance of independent draws. Its privacy part is
        (V diag(λ̂)Vᵀ − W diag(p̂)Wᵀ)/n, which needs every w_t,x·w_u,x·p to be identifiable; the rest is sampling, which
        a finite population shrinks by 1 − n/N and a census to nothing.
        """
        if self.n < 2 or not self.known:
            return None, None, None
        rates = np.array([c / self.n for c in self.counts])
        centred = self.V - (self.V @ rates)[:, None]  # so that nothing cancels at large n
        independent = (centred * rates) @ centred.T / (self.n - 1)
        moments = self._second_moments()
        if moments is None:
            # Without the split only independent draws can be told.
            return (independent if self.estimated_sampling == 1 else None), None, None
        privacy = ((self.V * rates) @ self.V.T - moments) / self.n
        sampling = (independent - privacy) * self.estimated_sampling
        total = privacy + sampling
        return (total + total.T) / 2, privacy, sampling

    def _second_moments(self) -> FloatArray | None:
        """Return the unbiased estimates of Σ_x w_tx w_ux p_x, or None if they are not identifiable."""
        mechanism = self.found.mechanism
        if self.found.rank < mechanism.answers:
            return None
        p = np.array([float(v) for v in self._shares()])
        return np.asarray((self.W * p) @ self.W.T, dtype=np.float64)

    def _shares(self) -> list[Fraction]:
        """Return the exact unbiased shares of a mechanism of full rank."""
        mechanism = self.found.mechanism
        every = decoder(mechanism, shares(mechanism.answers), self.found.design_prior)
        return [v for v in every.apply(self.counts) if v is not None]

    def _worst_case(self, i: int) -> float:
        c = linear_part(list(self.V[i]), self.Q, self.W[i], self.true_sampling)
        return math.sqrt(max(0.0, worst_case_variance(c, self.W[i], self.true_sampling)) / self.n)

    def _nearest(self) -> FloatArray | None:
        """Return the shares on the simplex nearest to the unbiased ones, None where these do not exist."""
        if not self.n or self.found.rank < self.found.mechanism.answers:
            return None
        return onto_simplex(np.array([float(v) for v in self._shares()]))

    def _projected(self) -> Values:
        nearest = self._nearest()
        if nearest is None:
            return (None,) * len(self.found.rows)
        return tuple(float(v) for v in self.W @ nearest)

    def _privacy_floors(self) -> FloatArray:
        """Return, per known target, the privacy variance at the projected shares; 0 where all of the variance counts.

        It is a mean over respondents of variances, so it is positive wherever the mechanism adds noise at all.
        """
        nearest = self._nearest()
        if nearest is None or self.estimated_sampling == 1:
            return np.zeros(len(self.known))
        parts = [linear_part(list(v), self.Q, w, 0.0) @ nearest for v, w in zip(self.V, self.W, strict=True)]
        return np.maximum(0.0, np.array(parts)) / self.n

    def _errors(self, total: FloatArray, privacy: FloatArray | None, floors: FloatArray) -> list[float]:
        """Return the standard errors: of `total`, its privacy part raised to the floors."""
        raised = np.zeros(len(floors)) if privacy is None else np.maximum(0.0, floors - np.diagonal(privacy))
        return [math.sqrt(max(0.0, v)) for v in np.diagonal(total) + raised]

    def _part(self, part: FloatArray | None, floors: FloatArray, flag: str) -> Values:
        if part is None:
            return self._spread(None)
        variances = np.diagonal(part)
        # rounding: a part that is zero in exact arithmetic may come out a few units below it
        if np.any(variances < -1e-12 * np.abs(variances).max()):
            self.flags.append(flag)
        return self._spread([math.sqrt(v) for v in np.maximum(variances, floors)])

    def _spread(self, values: list[float] | None) -> Values:
        """Return one entry per target, None where it is not identifiable or there are no values."""
        found: list[float | None] = [None] * len(self.found.rows)
        for t, value in zip(self.known, values or (), strict=False):
            found[t] = float(value)
        return tuple(found)

    def _full(self, covariance: FloatArray | None) -> tuple[Values, ...] | None:
        if covariance is None:
            return None
        rows = dict(zip(self.known, covariance, strict=True))
        nothing = (None,) * len(self.found.rows)
        return tuple(self._spread(list(rows[t])) if t in rows else nothing for t in range(len(self.found.rows)))


def _sampling_factors(n: int, population: int | None, *, census: bool) -> tuple[float, float]:
    if census:
        return 0.0, 0.0
    if population is None:
        return 1.0, 1.0
    return 1 - n / population, (population - n) / max(1, population - 1)
