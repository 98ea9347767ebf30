# SPDX-License-Identifier: Apache-2.0
"""Subset random response in floats: random response within small groups of the answers whose lifts exceed the levels.

[Lift §5.1, Algorithm 2, on the groups of §4.1, Algorithm 1], with the corrections of erratum 9.21-9.22: the risk of a
group is max(log Λ, −log Ψ), groups grow while the levels are not met, and a last group that does
not meet them is merged with other groups, then with answers of low risk, until it does. As every
group then keeps both levels, the polytope (26) is never empty, and Algorithm 2 needs no unions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from _design.enumeration import FloatArray, delta, entropies, mixed

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Response:
    """A mechanism by its reports: P(x | y), shape (a, reports), and P(y), shape (reports,); the groups of answers."""

    conditional: FloatArray
    chance: FloatArray
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Lifts:
    """Lifts of a group of answers that is sent as one report."""

    joint: FloatArray
    low: float
    high: float

    def risk(self, group: Sequence[int]) -> float:
        """Return max(log Λ, −log Ψ), the largest change of any secret's odds, in nats."""
        smallest, largest = self._range(group)
        return max(largest, -smallest)

    def within(self, group: Sequence[int]) -> bool:
        """Return True if e^−low ≤ Ψ and Λ ≤ e^high  [Lift §4.1]."""
        smallest, largest = self._range(group)
        return -self.low <= smallest and largest <= self.high

    def _range(self, group: Sequence[int]) -> tuple[float, float]:
        both = self.joint[:, list(group)].sum(axis=1)
        with np.errstate(divide="ignore"):
            lift = np.log(both / both.sum() / self.joint.sum(axis=1))
        return float(lift.min()), float(lift.max())


def subset_random_response(joint: FloatArray, low: float, high: float) -> Response:
    """Return the mechanism for P(s, x) of shape (c, a) under (low, high)-ALIP.

    Raises EnumerationError if rounding errors lose the vertices of a group.
    """
    lifts = _Lifts(joint, low, high)
    everybody = range(joint.shape[1])
    harmless = [x for x in everybody if lifts.within([x])]
    groups, harmless = _groups(lifts, [x for x in everybody if not lifts.within([x])], harmless)
    blocks = [(np.eye(len(everybody))[:, harmless], joint.sum(axis=0)[harmless])]
    for group in groups:
        part = joint[:, group]
        listed, _ = mixed(delta(part, joint.sum(axis=1), low, high), part.sum(axis=0))
        conditional = np.zeros((len(everybody), len(listed.chance)))
        conditional[group] = listed.conditional
        blocks.append((conditional, listed.chance))
    return Response(
        np.hstack([conditional for conditional, _ in blocks]),
        np.concatenate([chance for _, chance in blocks]),
        tuple(map(tuple, groups)),
    )


def _groups(
    lifts: _Lifts, risky: list[int], harmless: list[int]
) -> tuple[list[list[int]], list[int]]:
    """Return the groups of Algorithm 1, and the harmless answers outside them."""
    groups: list[list[int]] = []
    while risky:
        group = [max(risky, key=lambda x: lifts.risk([x]))]
        risky = [x for x in risky if x not in group]
        while not lifts.within(group) and risky:
            best = _safest(lifts, group, ([x] for x in risky))
            group, risky = group + best, [x for x in risky if x not in best]
        groups.append(group)
    last = groups.pop() if groups else []
    while last and not lifts.within(last) and groups:
        best = _safest(lifts, last, groups)
        last, groups = last + best, [group for group in groups if group is not best]
    while last and not lifts.within(last) and harmless:
        best = _safest(lifts, last, ([x] for x in harmless))
        last, harmless = last + best, [x for x in harmless if x not in best]
    return ([*groups, last] if last else groups), harmless


def _safest(lifts: _Lifts, group: list[int], candidates: Iterable[list[int]]) -> list[int]:
    return min(candidates, key=lambda candidate: lifts.risk(group + candidate))


def information(response: Response, joint: FloatArray) -> float:
    """Return I(X; Y) = H(X) − H(X|Y) in nats."""
    shares = joint.sum(axis=0)
    return float(entropies(shares[:, None])[0] - response.chance @ entropies(response.conditional))


def broken(response: Response, joint: FloatArray, low: float, high: float) -> float:
    """Return the largest excess over a level (nats) or error of a share; 0 if only rounding."""
    shares = joint.sum(axis=0)
    secret_given_report = joint / shares @ response.conditional  # P(s | y)
    with np.errstate(divide="ignore"):
        lift = np.log(secret_given_report / joint.sum(axis=1)[:, None])
    excess = max(float(np.max(-low - lift)), float(np.max(lift - high)))
    moved = float(np.max(np.abs(response.conditional @ response.chance - shares)))
    return max(excess, moved) if max(excess, moved) > _ROUNDING else 0.0
