# SPDX-License-Identifier: Apache-2.0
"""Every figure of an estimate, from the exact moments of its evidence; floats from here on."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frankly_server.estimate import intervals
from frankly_server.estimate.chernoff import Ends
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.likelihood import Likeliest, fisher_bound, likeliest
from frankly_server.estimate.margins import (
    METHODS,
    Margins,
    Pairs,
    Values,
    chebyshev_factor,
    normal_quantile,
    times,
)
from frankly_server.estimate.poisoning import poisoning
from frankly_server.estimate.projection import onto_simplex
from frankly_server.estimate.target_ends import TargetEnds, around_possible, cut, row_flags
from frankly_server.estimate.worst_case import linear_part, worst_case_variance

FloatArray = NDArray[np.float64]

ILL_CONDITIONED = 1e6
DOES_NOT_FIT = 1e-3


class Figures:
    """The figures of one estimate. Lists are per target; what a target lacks is None."""

    def __init__(
        self, found: Evidence, targets: int, population: int | None, *, census: bool, are_shares: bool
    ) -> None:
        self.found, self.targets, self.are_shares = found, targets, are_shares
        self.independent, self.like_draws = population is None, population is None and not census
        # The share of the sampling variance that remains: 1 − n/N of its estimate, (N−n)/(N−1) of its true value.
        self.estimated_sampling, self.true_sampling = sampling_factors(found.n, population, census=census)
        self.flags: list[str] = []

    def all(self, level: float, beta: Fraction, methods: Collection[str]) -> dict[str, Any]:
        """Return every field of an `Estimate` but n and level."""
        found = self.found
        self._flag_inputs()
        exact = found.exact
        if self.are_shares and any(v is not None and not 0 <= v <= 1 for v in exact):
            self.flags.append("outside_simplex")
        spreads = self.spreads(level, methods)
        reach: list[tuple[Fraction, Fraction] | None] = [None] * self.targets
        for t, ends in zip(found.known, found.ends(), strict=True):
            reach[t] = ends
        design_effect, efficiency = self._design_effect(), self._efficiency()
        best, fit = self._likeliest, self._fit()
        projected, mle = self._of_shares(self._nearest), self._of_shares(None if best is None else best.shares)
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
            "rank": found.rank,
            "identifiable": len(found.known) == self.targets,
            "informative": self.informative,
            "row_flags": tuple(self._row_flags(spreads)),
            "flags": tuple(self.flags),
        }

    def spreads(self, level: float, methods: Collection[str] = METHODS) -> dict[str, Any]:
        """Return the unbiased estimates with covariance, errors and margins: the fields of those names."""
        found = self.found
        total, privacy, sampling = self._covariances()
        se = self._spread(None if total is None else self._errors(total, privacy))
        worst = self._spread([self._worst_case(i) for i in range(len(found.known))] if found.n else None)
        return {
            "unbiased": tuple(None if v is None else float(v) for v in found.exact),
            "covariance": self._full(total),
            "se": se,
            "se_privacy": self._part(privacy, self._floors, "privacy_part_negative"),
            "se_sampling": self._part(sampling, np.zeros(len(found.known)), "sampling_part_negative"),
            "worst_case_se": worst,
            "margins": self._margins(se, worst, level, total, methods),
        }

    def _flag_inputs(self) -> None:
        found = self.found
        named = {
            "no_reports": found.n == 0,
            "one_report": found.n == 1,
            "not_identifiable": len(found.known) < self.targets,
            "ill_conditioned": found.rank == found.answers and found.condition > ILL_CONDITIONED,
            "design_prior_replaced": found.fallback,
        }
        self.flags.extend(name for name, holds in named.items() if holds)

    @cached_property
    def _shares(self) -> FloatArray | None:
        exact = self.found.shares
        return None if exact is None else np.array([float(v) for v in exact if v is not None])

    @cached_property
    def _nearest(self) -> FloatArray | None:
        """Return the shares on the simplex nearest to the unbiased ones, None where these do not exist."""
        return None if self._shares is None else onto_simplex(self._shares)

    @cached_property
    def _likeliest(self) -> Likeliest | None:
        likelihood = self.found.likelihood()
        if likelihood is None or not self.found.n:
            return None
        best = likeliest(*likelihood, self._shares)
        if not best.converged:
            self.flags.append("mle_not_converged")
        return best

    @cached_property
    def _target_ends(self) -> TargetEnds | None:
        """Return what gives the two-ended margins, None without reports."""
        if not self.found.n:
            return None
        kind = {"independent": self.independent, "like_draws": self.like_draws}
        return TargetEnds(self.found, self._truth_moments, self.true_sampling, **kind)

    @property
    def informative(self) -> tuple[int | None, ...]:
        """Reports, per target, whose score is not the commonest; None where that is not known."""
        found: list[int | None] = [None] * self.targets
        if self._target_ends is not None:
            for t, score in zip(self.found.known, self._target_ends.scores, strict=True):
                found[t] = score.informative
        return tuple(found)

    def _covariances(self) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
        """Return (total, privacy part, sampling part), each unbiased; the parts sum to the total.

        T = V(diag λ̂ − λ̂λ̂ᵀ)Vᵀ/(n−1) estimates the covariance of independent draws. Its privacy part is
        (V diag(λ̂)Vᵀ − W diag(p̂)Wᵀ)/n, which needs every w_t,x·w_u,x·p to be identifiable; the rest is sampling, which
        a finite population shrinks by 1 − n/N and a census to nothing.
        """
        found = self.found
        if found.n < 2 or not found.known:
            return None, None, None
        independent = found.spread() * (found.n / (found.n - 1)) / found.n
        if self._shares is None:
            # Without the split only independent draws can be told.
            return (independent if self.estimated_sampling == 1 else None), None, None
        privacy = (found.moment() - (found.W * self._shares) @ found.W.T) / found.n
        sampling = (independent - privacy) * self.estimated_sampling
        total = privacy + sampling
        return (total + total.T) / 2, privacy, sampling

    @cached_property
    def _truth_moments(self) -> FloatArray:
        return self.found.truth_moments()

    def _worst_case(self, i: int) -> float:
        target = self.found.W[i]
        c = linear_part(self._truth_moments[i], target, self.true_sampling)
        return math.sqrt(max(0.0, worst_case_variance(c, target, self.true_sampling)) / self.found.n)

    @cached_property
    def _floors(self) -> FloatArray:
        """Return, per known target, the privacy variance at the projected shares; 0 where all of the variance counts.

        It is a mean over respondents of variances, so it is positive wherever the mechanism adds noise at all.
        """
        if self._nearest is None or self.estimated_sampling == 1:
            return np.zeros(len(self.found.known))
        return np.maximum(0.0, (self._truth_moments - self.found.W**2) @ self._nearest) / self.found.n

    def _errors(self, total: FloatArray, privacy: FloatArray | None) -> list[float]:
        """Return the standard errors: of `total`, its privacy part raised to the floors."""
        floors = self._floors
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

    def _margins(
        self, se: Values, worst: Values, level: float, total: FloatArray | None, methods: Collection[str]
    ) -> Margins:
        chebyshev, joint, ends = chebyshev_factor(level), self._joint_factor(level, total), self._target_ends

        def pairs(method: str, found: Callable[[TargetEnds], Sequence[Ends | None]]) -> Pairs:
            return (None,) * self.targets if ends is None or method not in methods else self._pairs(found(ends))

        exact = pairs("exact", lambda given: given.exact(level))
        shares = self._shares, self._nearest
        uncut = self._pairs(None if ends is None else ends.score(level, *shares, se, worst))
        return Margins(
            score=self._cut(uncut),
            uncut=uncut,
            kl=pairs("kl", lambda given: given.kl(level)),
            exact=exact if any(exact) else None,
            clt=times(normal_quantile(level), se),
            chebyshev=times(chebyshev, worst),
            chebyshev_plugin=times(chebyshev, se),
            simultaneous=times(joint, worst),
            simultaneous_plugin=times(joint, se),
            sequence=pairs("sequence", lambda given: given.sequence(level)),
        )

    def _joint_factor(self, level: float, total: FloatArray | None) -> float:
        """Return the normal factor that all targets keep at once."""
        bonferroni = normal_quantile(level, max(1, self.targets))
        if total is None or self.targets == 1:
            return bonferroni
        scale = np.sqrt(np.maximum(np.diagonal(total), 0.0))
        if not np.all(scale > 0):
            return bonferroni
        return intervals.widest(total / np.outer(scale, scale), level)

    def _design_effect(self) -> Values:
        """Return (privacy + sampling)/sampling at the projected shares, for independent draws."""
        if self._nearest is None:
            return (None,) * self.targets
        W, p = self.found.W, self._nearest
        means = W @ p
        total = self._truth_moments @ p - means**2
        openly = W**2 @ p - means**2
        # rounding: shares of exactly 0 or 1 leave a few units of the last place
        lost = 1e-12 * np.max(W**2, axis=1)
        return self._spread([t / o if o > r else math.inf for t, o, r in zip(total, openly, lost, strict=True)])

    def _efficiency(self) -> Values:
        law = self.found.law()
        if law is None or self._nearest is None:
            return (None,) * self.targets
        bound = fisher_bound(law, self.found.W, self._nearest)
        total = self._truth_moments @ self._nearest - (self.found.W @ self._nearest) ** 2
        if bound is None or np.any(total <= 0):
            return (None,) * self.targets
        return self._spread(list(np.minimum(1.0, bound / total)))

    def _fit(self) -> float | None:
        best = self._likeliest
        fit = self.found.fit(None if best is None else best.shares) if self.found.n else None
        if fit is not None and fit < DOES_NOT_FIT:
            self.flags.append("reports_do_not_fit")
        return fit

    def _row_flags(self, spreads: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
        """Yield the flags of each target; those that depend on a margin are of the default one."""
        places = {t: i for i, t in enumerate(self.found.known)}
        of_targets = zip(spreads["unbiased"], spreads["margins"].uncut, spreads["worst_case_se"], strict=True)
        for t, (value, ends, worst) in enumerate(of_targets):
            if t not in places:
                yield ("not_identifiable",)
                continue
            outside = ["outside_unit_interval"] if self.are_shares and value is not None and not 0 <= value <= 1 else []
            w = self.found.W[places[t]]
            yield (*outside, *row_flags(value, ends, (float(w.min()), float(w.max())), self.informative[t], worst))

    def _of_shares(self, p: FloatArray | None) -> Values:
        return (None,) * self.targets if p is None else self._spread(list(self.found.W @ p))

    def _cut(self, uncut: Pairs) -> Pairs:
        """Return the score intervals that are shown."""
        found: list[tuple[float, float] | None] = [None] * self.targets
        for t, w in zip(self.found.known, self.found.W, strict=True):
            ends, estimate = uncut[t], self.found.exact[t]
            if ends is not None and estimate is not None:
                found[t] = cut(ends, float(estimate), w)
        return tuple(found)

    def _around(self, values: Values, uncut: Pairs) -> Pairs:
        """Return the intervals of biased products, from the score intervals of the unbiased estimates."""
        found: list[tuple[float, float] | None] = [None] * self.targets
        for t, w in zip(self.found.known, self.found.W, strict=True):
            value, ends, estimate = values[t], uncut[t], self.found.exact[t]
            if value is not None and ends is not None and estimate is not None:
                found[t] = around_possible(value, float(estimate), ends, (float(w.min()), float(w.max())))
        return tuple(found)

    def _spread(self, values: Sequence[float] | None) -> Values:
        """Return one entry per target, None where it is not identifiable or there are no values."""
        found: list[float | None] = [None] * self.targets
        for t, value in zip(self.found.known, values or (), strict=False):
            found[t] = float(value)
        return tuple(found)

    def _pairs(self, values: Sequence[tuple[float, float] | None] | None) -> Pairs:
        found: list[tuple[float, float] | None] = [None] * self.targets
        for t, value in zip(self.found.known, values or (), strict=False):
            found[t] = value
        return tuple(found)

    def _full(self, covariance: FloatArray | None) -> tuple[Values, ...] | None:
        if covariance is None:
            return None
        if len(self.found.known) == self.targets:
            return tuple(map(tuple, covariance.tolist()))
        rows = dict(zip(self.found.known, covariance, strict=True))
        nothing = (None,) * self.targets
        return tuple(self._spread(list(rows[t])) if t in rows else nothing for t in range(self.targets))


def sampling_factors(n: int, population: int | None, *, census: bool) -> tuple[float, float]:
    """Return the share of the sampling variance that remains, of its estimate and of its true value."""
    if census:
        return 0.0, 0.0
    if population is None:
        return 1.0, 1.0
    return 1 - n / population, (population - n) / max(1, population - 1)
