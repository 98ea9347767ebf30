# SPDX-License-Identifier: Apache-2.0
"""Figures of an estimate: variances, margins, fit and flags, from the moments of the evidence.

The evidence classes compute unbiased estimates exactly; all figures derived here are floats.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from frankly_design.estimate import intervals
from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.flags import evidence_flags, row_flags
from frankly_design.estimate.margins import (
    METHODS,
    Margins,
    Pairs,
    Values,
    chebyshev_factor,
    normal_quantile,
    times,
)
from frankly_design.estimate.poisoning import poisoning
from frankly_design.estimate.target_ends import TargetEnds, around_possible, cut
from frankly_design.estimate.worst_case import linear_part, worst_case_variance
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.likelihood import Likeliest, fisher_bound, likeliest
from frankly_design.kinds.projection import onto_simplex
from frankly_design.numeric.arrays import FloatArray

DOES_NOT_FIT = 1e-3  # p-value of the test of fit below which an estimate is flagged


class Figures:
    """Figures of one estimate, one entry per target; None where a figure is not defined."""

    def __init__(
        self,
        evidence: Evidence,
        targets: int,
        population: int | None,
        *,
        census: bool,
        are_shares: bool,
    ) -> None:
        self.evidence, self.targets, self.are_shares = evidence, targets, are_shares
        self.independent, self.like_draws = population is None, population is None and not census
        # In a finite population the sampling variance is reduced by the factor 1 − n/N (for its
        # estimate) or (N−n)/(N−1) (for its true value).
        self.estimated_sampling, self.true_sampling = sampling_factors(
            evidence.n, population, census=census
        )
        self.flags = evidence_flags(evidence, targets)

    def all(self, level: float, beta: Fraction, methods: Collection[str]) -> dict[str, Any]:
        """Return the fields of an `Estimate` except n and level."""
        evidence = self.evidence
        exact = evidence.exact
        if self.are_shares and any(v is not None and not 0 <= v <= 1 for v in exact):
            self.flags.append("outside_simplex")
        spreads = self.spreads(level, methods)
        reach: list[tuple[Fraction, Fraction] | None] = [None] * self.targets
        for t, ends in zip(evidence.known, evidence.ends(), strict=True):
            reach[t] = ends
        design_effect, efficiency = self._design_effect(), self._efficiency()
        best, fit = self._likeliest, self._fit()
        projected = self._of_shares(self._nearest)
        mle = self._of_shares(None if best is None else best.shares)
        uncut = spreads["margins"].uncut
        return spreads | {
            "poisoning": poisoning(reach, exact, beta),
            "projected": projected,
            "projected_interval": self._around(projected, uncut),
            "mle": mle,
            "mle_interval": self._around(mle, uncut),
            "mle_gap": None if best is None else best.gap,
            "design_effect": design_effect,
            "privacy_cost": tuple(None if v is None else 1 - 1 / v for v in design_effect),
            "efficiency": efficiency,
            "fit_p": fit,
            "rank": evidence.rank,
            "identifiable": len(evidence.known) == self.targets,
            "informative": self.informative,
            "row_flags": tuple(self._row_flags(spreads)),
            "flags": tuple(self.flags),
        }

    def spreads(self, level: float, methods: Collection[str] = METHODS) -> dict[str, Any]:
        """Return the fields of the unbiased estimates: covariance, standard errors and margins."""
        evidence = self.evidence
        total, privacy, sampling = self._covariances()
        se = self._spread(None if total is None else self._errors(total, privacy))
        worst = self._spread(
            [self._worst_case(i) for i in range(len(evidence.known))] if evidence.n else None
        )
        return {
            "unbiased": tuple(None if v is None else float(v) for v in evidence.exact),
            "covariance": self._full(total),
            "se": se,
            "se_privacy": self._part(privacy, self._floors, "privacy_part_negative"),
            "se_sampling": self._part(
                sampling, np.zeros(len(evidence.known)), "sampling_part_negative"
            ),
            "worst_case_se": worst,
            "margins": self._margins(se, worst, level, total, methods),
        }

    @cached_property
    def _shares(self) -> FloatArray | None:
        exact = self.evidence.shares
        return None if exact is None else np.array([float(v) for v in exact if v is not None])

    @cached_property
    def _nearest(self) -> FloatArray | None:
        """Return the projection of the unbiased shares onto the simplex."""
        return None if self._shares is None else onto_simplex(self._shares)

    @cached_property
    def _likeliest(self) -> Likeliest | None:
        likelihood = self.evidence.likelihood()
        if likelihood is None or not self.evidence.n:
            return None
        best = likeliest(*likelihood, self._shares)
        if not best.converged:
            self.flags.append("mle_not_converged")
        return best

    @cached_property
    def _target_ends(self) -> TargetEnds | None:
        """Return the object that computes two-ended intervals; None if there are no reports."""
        if not self.evidence.n:
            return None
        kind = {"independent": self.independent, "like_draws": self.like_draws}
        return TargetEnds(self.evidence, self._truth_moments, self.true_sampling, **kind)

    @property
    def informative(self) -> tuple[int | None, ...]:
        """Return the number of reports of each target whose score is not the most common one."""
        numbers: list[int | None] = [None] * self.targets
        if self._target_ends is not None:
            for t, score in zip(self.evidence.known, self._target_ends.scores, strict=True):
                numbers[t] = score.informative
        return tuple(numbers)

    def _covariances(self) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
        """Return (total, privacy part, sampling part) of the covariance, each unbiased.

        With the observed frequencies λ̂ of the reports, T = V(diag λ̂ − λ̂λ̂ᵀ)Vᵀ/(n−1) estimates
        the covariance of independent draws. Its privacy part is (V diag(λ̂)Vᵀ − W diag(p̂)Wᵀ)/n,
        which is computed only if all shares are identifiable. The rest is the sampling part, which
        is multiplied by 1 − n/N for a finite population and by 0 for a census. The total is the sum
        of both parts.
        """
        evidence = self.evidence
        if evidence.n < 2 or not evidence.known:
            return None, None, None
        independent = evidence.spread() * (evidence.n / (evidence.n - 1)) / evidence.n
        if self._shares is None:
            # Without shares the two parts cannot be separated, and only the total for independent
            # draws is known.
            return (independent if self.estimated_sampling == 1 else None), None, None
        privacy = (evidence.moment() - (evidence.W * self._shares) @ evidence.W.T) / evidence.n
        sampling = (independent - privacy) * self.estimated_sampling
        total = privacy + sampling
        # rounding: the products above are symmetric only in exact arithmetic.
        return (total + total.T) / 2, privacy, sampling

    @cached_property
    def _truth_moments(self) -> FloatArray:
        return self.evidence.truth_moments()

    def _worst_case(self, i: int) -> float:
        target = self.evidence.W[i]
        c = linear_part(self._truth_moments[i], target, self.true_sampling)
        variance = worst_case_variance(c, target, self.true_sampling)
        return math.sqrt(max(0.0, variance) / self.evidence.n)

    @cached_property
    def _floors(self) -> FloatArray:
        """Return the privacy variance of each known target at the projected shares, as a floor.

        This variance is a mean over respondents, so it is positive if the mechanism adds noise to
        their answers. Independent draws need no floor, so it is 0 for them.
        """
        if self._nearest is None or self.estimated_sampling == 1:
            return np.zeros(len(self.evidence.known))
        return (
            np.maximum(0.0, (self._truth_moments - self.evidence.W**2) @ self._nearest)
            / self.evidence.n
        )

    def _errors(self, total: FloatArray, privacy: FloatArray | None) -> list[float]:
        """Return the standard errors, with the privacy part of `total` raised to the floors."""
        floors = self._floors
        raised = (
            np.zeros(len(floors))
            if privacy is None
            else np.maximum(0.0, floors - np.diagonal(privacy))
        )
        return [math.sqrt(max(0.0, v)) for v in np.diagonal(total) + raised]

    def _part(self, part: FloatArray | None, floors: FloatArray, flag: str) -> Values:
        if part is None:
            return self._spread(None)
        variances = np.diagonal(part)
        # rounding: a part that is zero in exact arithmetic may be slightly negative in floats
        if np.any(variances < -1e-12 * np.abs(variances).max()):
            self.flags.append(flag)
        return self._spread([math.sqrt(v) for v in np.maximum(variances, floors)])

    def _margins(
        self,
        se: Values,
        worst: Values,
        level: float,
        total: FloatArray | None,
        methods: Collection[str],
    ) -> Margins:
        chebyshev = chebyshev_factor(level)
        joint = self._joint_factor(level, total)
        ends = self._target_ends

        # kl, exact and sequence are slow, because they need the law of the scores or a search for
        # each target, so they are computed only if `methods` contains them.
        def pairs(method: str, compute: Callable[[TargetEnds], Sequence[Ends | None]]) -> Pairs:
            if ends is None or method not in methods:
                return (None,) * self.targets
            return self._pairs(compute(ends))

        exact = pairs("exact", lambda target_ends: target_ends.exact(level))
        shares = self._shares, self._nearest
        uncut = self._pairs(None if ends is None else ends.score(level, *shares, se, worst))
        return Margins(
            score=self._cut(uncut),
            uncut=uncut,
            kl=pairs("kl", lambda target_ends: target_ends.kl(level)),
            exact=exact if any(exact) else None,
            clt=times(normal_quantile(level), se),
            chebyshev=times(chebyshev, worst),
            chebyshev_plugin=times(chebyshev, se),
            simultaneous=times(joint, worst),
            simultaneous_plugin=times(joint, se),
            sequence=pairs("sequence", lambda target_ends: target_ends.sequence(level)),
        )

    def _joint_factor(self, level: float, total: FloatArray | None) -> float:
        """Return the factor on the standard errors at which all intervals hold simultaneously."""
        bonferroni = normal_quantile(level, max(1, self.targets))
        if total is None or self.targets == 1:
            return bonferroni
        scale = np.sqrt(np.maximum(np.diagonal(total), 0.0))
        # Correlations are undefined for a variance of 0; Bonferroni's factor does not need them.
        if not np.all(scale > 0):
            return bonferroni
        return intervals.widest(total / np.outer(scale, scale), level)

    def _design_effect(self) -> Values:
        """Return (privacy + sampling)/sampling of independent draws at the projected shares."""
        if self._nearest is None:
            return (None,) * self.targets
        W, p = self.evidence.W, self._nearest
        means = W @ p
        total = self._truth_moments @ p - means**2
        of_open_answers = W**2 @ p - means**2
        # rounding: for shares of exactly 0 or 1 the variance may be a few ulps instead of 0
        rounding = 1e-12 * np.max(W**2, axis=1)
        variances = zip(total, of_open_answers, rounding, strict=True)
        return self._spread([t / o if o > r else math.inf for t, o, r in variances])

    def _efficiency(self) -> Values:
        law = self.evidence.law()
        if law is None or self._nearest is None:
            return (None,) * self.targets
        bound = fisher_bound(law, self.evidence.W, self._nearest)
        total = self._truth_moments @ self._nearest - (self.evidence.W @ self._nearest) ** 2
        if bound is None or np.any(total <= 0):
            return (None,) * self.targets
        # rounding: in floats the efficiency of an optimal decoder may be slightly above 1
        return self._spread(list(np.minimum(1.0, bound / total)))

    def _fit(self) -> float | None:
        best = self._likeliest
        fit = self.evidence.fit(None if best is None else best.shares) if self.evidence.n else None
        if fit is not None and fit < DOES_NOT_FIT:
            self.flags.append("reports_do_not_fit")
        return fit

    def _row_flags(self, spreads: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
        """Yield the flags of each target; flags about a margin refer to `score`, the default."""
        index = {t: i for i, t in enumerate(self.evidence.known)}
        of_targets = zip(
            spreads["unbiased"], spreads["margins"].uncut, spreads["worst_case_se"], strict=True
        )
        for t, (value, ends, worst) in enumerate(of_targets):
            if t not in index:
                yield ("not_identifiable",)
                continue
            is_outside = self.are_shares and value is not None and not 0 <= value <= 1
            outside = ["outside_unit_interval"] if is_outside else []
            w = self.evidence.W[index[t]]
            possible = float(w.min()), float(w.max())
            yield (*outside, *row_flags(value, ends, possible, self.informative[t], worst))

    def _of_shares(self, p: FloatArray | None) -> Values:
        return (None,) * self.targets if p is None else self._spread(list(self.evidence.W @ p))

    def _cut(self, uncut: Pairs) -> Pairs:
        """Return the displayed score intervals: cut to the possible values and the estimate."""
        displayed: list[tuple[float, float] | None] = [None] * self.targets
        for t, w in zip(self.evidence.known, self.evidence.W, strict=True):
            ends, estimate = uncut[t], self.evidence.exact[t]
            if ends is not None and estimate is not None:
                displayed[t] = cut(ends, float(estimate), w)
        return tuple(displayed)

    def _around(self, values: Values, uncut: Pairs) -> Pairs:
        """Return intervals of the biased estimates from those of the unbiased ones."""
        displayed: list[tuple[float, float] | None] = [None] * self.targets
        for t, w in zip(self.evidence.known, self.evidence.W, strict=True):
            value, ends, estimate = values[t], uncut[t], self.evidence.exact[t]
            if value is not None and ends is not None and estimate is not None:
                possible = float(w.min()), float(w.max())
                displayed[t] = around_possible(value, float(estimate), ends, possible)
        return tuple(displayed)

    def _spread(self, values: Sequence[float] | None) -> Values:
        """Expand values of the identifiable targets to all targets, with None for the others."""
        entries: list[float | None] = [None] * self.targets
        for t, value in zip(self.evidence.known, values or (), strict=False):
            entries[t] = float(value)
        return tuple(entries)

    def _pairs(self, values: Sequence[tuple[float, float] | None] | None) -> Pairs:
        entries: list[tuple[float, float] | None] = [None] * self.targets
        for t, value in zip(self.evidence.known, values or (), strict=False):
            entries[t] = value
        return tuple(entries)

    def _full(self, covariance: FloatArray | None) -> tuple[Values, ...] | None:
        if covariance is None:
            return None
        if len(self.evidence.known) == self.targets:
            return tuple(map(tuple, covariance.tolist()))
        rows = dict(zip(self.evidence.known, covariance, strict=True))
        empty_row = (None,) * self.targets
        return tuple(
            self._spread(list(rows[t])) if t in rows else empty_row for t in range(self.targets)
        )


def sampling_factors(n: int, population: int | None, *, census: bool) -> tuple[float, float]:
    """Return the factors of the sampling variance: (for its unbiased estimate, for its true value).

    The factors are 1 for independent draws and 0 for a census.
    """
    if census:
        return 0.0, 0.0
    if population is None:
        return 1.0, 1.0
    return 1 - n / population, (population - n) / max(1, population - 1)
