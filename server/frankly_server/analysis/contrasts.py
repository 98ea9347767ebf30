# SPDX-License-Identifier: Apache-2.0
"""Weighted sums of the estimates of independent groups: differences, slopes and other contrasts.

Groups have different respondents, so their estimates are independent. Intervals and tests are those
of spec 8.12.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, sqrt
from typing import Any

import numpy as np
from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.figures import sampling_factors
from frankly_design.estimate.margins import (
    Pairs,
    Values,
    chebyshev_factor,
    normal_quantile,
    widened,
)
from frankly_design.estimate.pooling import (
    Homogeneity,
    combined_ends,
    homogeneity,
    kl_ends,
    weighted_sum,
)
from frankly_design.estimate.target_ends import cut
from frankly_design.kinds.evidence import Evidence
from frankly_design.numeric.arrays import FloatArray

from frankly_server.analysis.part import Part
from frankly_server.analysis.pooling import Pooled, scaled
from frankly_server.analysis.request import Request
from frankly_server.analysis.versions import common_shares, covariance_at

_GUARANTEED = ("kl", "exact")
"""Requested methods for which the Chernoff bound of the weighted sum is shown."""
_SIMULTANEOUS = ("simultaneous", "simultaneous_plugin")


@dataclass(frozen=True)
class Sample:
    """Reports of one group, with their estimates.

    id : the value of `by`. name : the label, such as `region=north`. rows : rows by choice.
    parts, slots : one per document or arm; parts of one slot have the same shares if groups do not
    differ. spans : positions of each choice's targets, two for a ratio.
    """

    id: str
    name: str
    parts: Sequence[Part]
    slots: Sequence[str]
    pooled: Pooled
    rows: Mapping[str, Mapping[str, Any]]
    spans: Mapping[str, Sequence[int]]

    @property
    def n(self) -> int:
        """Number of reports."""
        return self.pooled.mean.n

    @cached_property
    def evidence(self) -> list[Evidence]:
        """Evidence of each part."""
        return [part.evidence(part.targets) for part in self.parts]

    @cached_property
    def moments(self) -> list[FloatArray]:
        """Second moments of the decoded values of each part, given the answer."""
        return [evidence.truth_moments() for evidence in self.evidence]

    def covariance(self, shares: Sequence[FloatArray], request: Request) -> FloatArray:
        """Return the covariance of the group's estimates at these shares, one array per part."""
        total = np.zeros((len(self.pooled.mean.unbiased),) * 2)
        for part, evidence, weights, p in zip(
            self.parts, self.evidence, self.pooled.weights, shares, strict=True
        ):
            places = np.ix_(evidence.known, evidence.known)
            w = np.array([weights[t] or 0.0 for t in evidence.known])
            # Parts consist of different reports, so the covariances are added.
            total[places] += np.outer(w, w) * covariance_at(evidence, p, _sampling(part, request))
        return total

    def variance(self, t: int, shares: Sequence[FloatArray], request: Request) -> float:
        """Return the variance of one target's estimate at these shares, one array per part."""
        terms = []
        for part, evidence, weights, moments, p in zip(
            self.parts, self.evidence, self.pooled.weights, self.moments, shares, strict=True
        ):
            i, f = evidence.known.index(t), _sampling(part, request)
            w = evidence.W[i]
            # With independent draws (f = 1) the square of the mean is subtracted. A census (f = 0)
            # has no sampling: each answer's own square is subtracted, which leaves the noise of the
            # mechanism.
            subtracted = f * float(w @ p) ** 2 + (1 - f) * float(w**2 @ p)
            terms.append((weights[t] or 0.0) ** 2 * (float(moments[i] @ p) - subtracted) / part.n)
        # rounding: the variance of a constant can come out slightly below 0
        return max(0.0, fsum(terms))


@dataclass(frozen=True, slots=True)
class Sum:
    """Weighted sum of one target over groups.

    ends : interval at the requested level. ends_all : interval at the level that makes all sums of
    the family hold simultaneously.
    """

    value: float
    se: float | None
    ends: Ends | None
    ends_all: Ends | None
    flags: tuple[str, ...] = ()


class Contrast:
    """Weighted sum of groups, for all targets of a table. weights : one per group."""

    def __init__(
        self, samples: Sequence[Sample], weights: Sequence[float], request: Request, family: int
    ) -> None:
        # Groups of weight 0 are dropped: one without an estimate would leave the sum without one.
        pairs = [(s, w) for s, w in zip(samples, weights, strict=True) if w]
        self.samples, self.weights = [s for s, _ in pairs], [w for _, w in pairs]
        self._request, self._family = request, max(1, family)
        # Bonferroni: all intervals of the family hold together with the requested probability.
        self._level_all = 1 - (1 - request.level) / self._family

    def of(self, choice: str) -> Sum | None:
        """Return the sum for one choice; None if a group has no estimate of it."""
        if any(choice not in s.rows or s.rows[choice]["estimate"] is None for s in self.samples):
            return None
        spans = self.samples[0].spans.get(choice)
        # The ends of a median's interval are answers, so distances from them cannot be combined.
        if spans is None:
            return None
        rows = [s.rows[choice] for s in self.samples]
        value = fsum(w * row["estimate"] for w, row in zip(self.weights, rows, strict=True))
        errors = [row["se"] for row in rows]
        known_errors = [e for e in errors if e is not None]
        se = (
            sqrt(fsum((w * e) ** 2 for w, e in zip(self.weights, known_errors, strict=True)))
            if len(known_errors) == len(errors)
            else None
        )
        if len(spans) == 1:
            t = spans[0]
            # Exact intervals exist only for single estimates; the Chernoff bound also holds for the
            # sum.
            flags = ("exact_not_available",) if self._request.method == "exact" else ()
            return Sum(value, se, self._of_targets[t], self._of_targets_all[t], flags)
        # Ratios have no targets of their own, so the distances of the displayed ends are combined.
        displayed: list[Ends | None] = [
            None if r["low"] is None else (r["low"], r["high"]) for r in rows
        ]
        ends = combined_ends(
            [(w,) for w in self.weights],
            [(r["estimate"],) for r in rows],
            [(e,) for e in displayed],
        )
        # Displayed ends exist only at the requested level, not at the level of the family.
        return Sum(value, se, ends[0], None)

    def tested(self, choice: str, *, equal: bool) -> float | None:
        """Return the variance of the sum for a test that it is 0; None if it is unknown or 0.

        equal : True if a sum of 0 means that the groups' shares are equal; the variance is then
        computed at shares common to all groups.
        """
        spans = self.samples[0].spans.get(choice)
        if spans is None or len(spans) > 1:
            return None
        shares = null_shares(self.samples) if equal else None
        if shares is None:
            errors = [sample.pooled.mean.se[spans[0]] for sample in self.samples]
            squares = [None if e is None else e * e for e in errors]
        else:
            squares = [
                sample.variance(spans[0], p, self._request)
                for sample, p in zip(self.samples, shares, strict=True)
            ]
        if any(v is None for v in squares):
            return None
        # None instead of 0, because a variance of 0 would make every difference significant.
        return fsum(w * w * (v or 0.0) for w, v in zip(self.weights, squares, strict=True)) or None

    @cached_property
    def _of_targets(self) -> Pairs:
        return self._ends(self._request.level)

    @cached_property
    def _of_targets_all(self) -> Pairs:
        return self._ends(self._level_all)

    def _ends(self, level: float) -> Pairs:
        """Return the intervals of all targets by the method of the request."""
        method = self._request.method
        if method in _GUARANTEED:
            return kl_ends(list(self._scaled_parts()), level)
        values = [s.pooled.mean.unbiased for s in self.samples]
        weights = [(w,) * len(values[0]) for w in self.weights]
        ends = combined_ends(weights, values, [self._own_ends(s, level) for s in self.samples])
        return self._cut(ends, weighted_sum(weights, values)) if method == "score" else ends

    def _own_ends(self, sample: Sample, level: float) -> Pairs:
        """Return the uncut intervals of a group's targets at a level."""
        request, mean = self._request, sample.pooled.mean
        method, values = request.method, mean.unbiased
        if method in _SIMULTANEOUS:
            # Simultaneous over the family of sums, instead of over the choices of one group.
            z = normal_quantile(request.level, self._family)
            errors = mean.worst_case_se if method == "simultaneous" else mean.se
            return _around(values, [None if e is None else z * e for e in errors])
        if method == "score":
            z, wider = normal_quantile(request.level), normal_quantile(level)
            return tuple(
                None if pair is None or v is None or se is None else widened(v, pair, se, z, wider)
                for v, pair, se in zip(values, sample.pooled.uncut, mean.se, strict=True)
            )
        # These half-widths are proportional to a factor that depends only on the level.
        factor = normal_quantile if method == "clt" else chebyshev_factor
        times = factor(level) / factor(request.level)
        return tuple(
            None if pair is None or v is None else _stretched(v, pair, times)
            for v, pair in zip(values, sample.pooled.ends, strict=True)
        )

    def _scaled_parts(self) -> Iterator[Evidence]:
        for sample, w in zip(self.samples, self.weights, strict=True):
            for part, weights in zip(sample.parts, sample.pooled.weights, strict=True):
                yield scaled(part, tuple(w * (v or 0.0) for v in weights))

    def _cut(self, ends: Pairs, values: Values) -> Pairs:
        """Return score intervals, cut at the possible values of the sums."""
        cut_ends: list[Ends | None] = []
        for pair, value, row in zip(ends, values, self.samples[0].parts[0].targets, strict=True):
            of = [float(v) for v in row]
            # Sorted, because a negative weight exchanges the ends.
            reach = [sorted((w * min(of), w * max(of))) for w in self.weights]
            possible = np.array([fsum(low for low, _ in reach), fsum(high for _, high in reach)])
            cut_ends.append(None if pair is None or value is None else cut(pair, value, possible))
        return tuple(cut_ends)


def null_shares(samples: Sequence[Sample]) -> list[list[FloatArray]] | None:
    """Return the shares common to all groups, for each part of each group; None if unknown.

    If every group has one part, all groups have the same shares. Otherwise the groups span pooled
    versions, which may differ, so the parts of each document have the same shares.
    """
    one_each = all(len(sample.parts) == 1 for sample in samples)
    keys = [["" if one_each else slot for slot in sample.slots] for sample in samples]
    slots: dict[str, list[tuple[Part, Evidence]]] = {}
    for sample, part_keys in zip(samples, keys, strict=True):
        for key, part, evidence in zip(part_keys, sample.parts, sample.evidence, strict=True):
            slots.setdefault(key, []).append((part, evidence))
    shares = {
        key: common_shares([part for part, _ in pairs], [evidence for _, evidence in pairs])
        for key, pairs in slots.items()
    }
    identified = {key: p for key, p in shares.items() if p is not None}
    return (
        [[identified[key] for key in part_keys] for part_keys in keys]
        if len(identified) == len(shares)
        else None
    )


def homogeneity_of_groups(
    samples: Sequence[Sample], targets: Sequence[int], request: Request
) -> Homogeneity | None:
    """Return the test that these targets are equal in all groups; None if it is not possible."""
    shares = null_shares(samples)
    places = np.ix_(targets, targets)
    if shares is not None:
        covariances = [
            sample.covariance(p, request)[places] for sample, p in zip(samples, shares, strict=True)
        ]
    elif all(sample.pooled.mean.covariance is not None for sample in samples):
        covariances = [
            np.array(sample.pooled.mean.covariance, dtype=np.float64)[places] for sample in samples
        ]
    else:
        return None
    values = [np.array([float(s.pooled.mean.unbiased[t] or 0.0) for t in targets]) for s in samples]
    return homogeneity(values, covariances)


def _sampling(part: Part, request: Request) -> float:
    population, census = part.frame(request.population, census=request.census)
    return sampling_factors(part.n, population, census=census)[1]


def _around(values: Values, halves: Sequence[float | None]) -> Pairs:
    return tuple(
        None if v is None or half is None else (v - half, v + half)
        for v, half in zip(values, halves, strict=True)
    )


def _stretched(value: float, ends: Ends, times: float) -> Ends:
    return value - times * (value - ends[0]), value + times * (ends[1] - value)
