# SPDX-License-Identifier: Apache-2.0
"""Random priors and mechanisms for tests of the mathematics, seeded so that runs are equal."""

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from frankly_design.engine import DesignRequest
from frankly_design.kinds.registry import kind_of
from frankly_design.notions.cones import Cone
from frankly_design.notions.declared.belief import no_violation
from frankly_design.notions.prior import Prior, pairs
from frankly_design.notions.promises import promise
from frankly_design.numeric.rays import Ray
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from numpy.typing import NDArray

EVERY_NOTION = (
    "ldp", "secret-ldp", "lip", "alip", "alip-high", "alip-low", "srlip", "rldp", "rldp-diagonal", "dpv",
    "metric-ldp", "metric-ldp-complete",
    "lip-and-ldp", "secret-ldp-and-dpv", "two-priors",
)  # fmt: skip
"""Kinds of `claims_of`: the eight notions, their one-sided and paper forms, and intersections."""


def random_prior(rng: random.Random, answers: int, secrets: int) -> Prior:
    top = rng.choice([3, 50, 5000])
    return Prior.from_rows([[rng.randint(1, top) for _ in range(answers)] for _ in range(secrets)])


def random_epsilon(rng: random.Random, low: float = 0.01, high: float = 8.0) -> Fraction:
    """Draw a level with three decimals, log-uniformly."""
    return Fraction(round(1000 * low * (high / low) ** rng.random()), 1000)


def random_row(rng: random.Random, total: int, columns: int) -> tuple[int, ...]:
    """Draw integers ≥ 0 that sum to `total`."""
    cuts = sorted(rng.randint(0, total) for _ in range(columns - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))


def random_mechanism(
    rng: random.Random, answers: int, reports: int, bits: int = 48
) -> DenseMechanism:
    """Draw a mechanism without structure, of any rank and without privacy."""
    while True:
        weights = tuple(random_row(rng, 1 << bits, reports) for _ in range(answers))
        if all(any(column) for column in zip(*weights, strict=True)):
            return DenseMechanism(bits, weights)


def random_shares(rng: random.Random, answers: int) -> list[Fraction]:
    counts = [rng.randint(0, 9) for _ in range(answers)]
    counts[rng.randrange(answers)] += 1
    return [Fraction(n, sum(counts)) for n in counts]


def claim_of(notion: str, level: tuple[int, int], prior: Prior) -> Claim:
    return Claim(notion, level, None if notion == "ldp" else prior.joint)


def cone_of(notion: str, level: tuple[int, int], prior: Prior) -> Cone:
    return Cone((claim_of(notion, level, prior),), prior.answers)


def rays_of(notion: str, level: tuple[int, int], prior: Prior) -> list[Ray]:
    return cone_of(notion, level, prior).rays()


def admits_identity(notion: str, level: tuple[int, int], prior: Prior) -> bool:
    return cone_of(notion, level, prior).admits_identity()


def wanted(
    prior: Prior, notion: str, epsilon: Fraction, mechanism: str = "optimal", **options: Any
) -> DesignRequest:
    return DesignRequest(prior, (promise(notion, prior, epsilon),), mechanism, **options)


def pair_claim(
    rng: random.Random, level: tuple[int, int], factors: tuple[int | None, ...]
) -> Claim:
    """Draw a level for each pair of four answers: a multiple of `level` or None, but `level` for (0, 1)."""
    p, q = level
    rows: list[list[tuple[int, int] | None]] = []
    for x in range(4):
        drawn = [rng.choice(factors) if x != z else None for z in range(4)]
        rows.append([None if k is None else (k * p, q) for k in drawn])
    rows[0][1] = level
    return Claim("metric-ldp", (1, 1), levels=tuple(map(tuple, rows)))


def claims_of(
    kind: str, rng: random.Random, low: float = 0.2, high: float = 1.5
) -> tuple[Prior, tuple[Claim, ...]]:
    """Draw a prior over four answers and claims of a kind, at levels from `low` to `high`."""

    def level() -> tuple[int, int]:
        return level_for(random_epsilon(rng, low, high))

    prior = random_prior(rng, 4, rng.randint(2, 3))
    joint, other = prior.joint, random_prior(rng, 4, 2).joint
    if kind.startswith("rldp"):
        prior = random_prior(rng, 2, 2)
        bounds = tuple(
            tuple((rng.randint(0, 40) * n // sum(row), 50) for n in row) for row in prior.joint
        )
        return pairs(prior), (
            Claim("rldp", level(), lower_bounds=bounds, diagonal=kind == "rldp-diagonal"),
        )
    share = Fraction(prior.masses[0], prior.total)
    claims_by_kind: dict[str, Callable[[], tuple[Claim, ...]]] = {
        "alip": lambda: (Claim("alip", level(), joint, low_level=level()),),
        "alip-high": lambda: (Claim("alip", level(), joint),),
        "alip-low": lambda: (Claim("alip", None, joint, low_level=level()),),
        "srlip": lambda: (Claim("srlip", level(), joint, attributes=(2, 2)),),
        "dpv": lambda: (no_violation(prior, share + (1 - share) / rng.randint(2, 9), 0),),
        "metric-ldp": lambda: (pair_claim(rng, level(), (1, 1, 2, None)),),
        "metric-ldp-complete": lambda: (pair_claim(rng, level(), (1, 2)),),
        "lip-and-ldp": lambda: (Claim("lip", level(), joint), Claim("ldp", level_for(Fraction(1)))),
        "secret-ldp-and-dpv": lambda: (
            Claim("secret-ldp", level(), joint),
            no_violation(prior, share + (1 - share) / 9, 0),
        ),
        "two-priors": lambda: tuple(
            Claim("lip", E, table) for E in (level(),) for table in (joint, other)
        ),
    }
    return prior, claims_by_kind[kind]() if kind in claims_by_kind else (
        claim_of(kind, level(), prior),
    )


def tamed(kind: str, rng: random.Random, low: float = 0.2, high: float = 1.5) -> tuple[Prior, Cone]:
    """Repeat `claims_of` until the claims exclude the identity."""
    while True:
        prior, claims = claims_of(kind, rng, low, high)
        cone = Cone(claims, prior.answers)
        if not cone.admits_identity():
            return prior, cone


def scaled_rays(cone: Cone, prior: Prior) -> NDArray[np.float64]:
    """Return all extreme rays, scaled to p·v = 1, of shape (rays, answers)."""
    p = [Fraction(n, prior.total) for n in prior.shares]
    rays = cone.rays()
    means = [sum((a * v for a, v in zip(p, ray, strict=True)), Fraction(0)) for ray in rays]
    return np.array([[float(v / mean) for v in ray] for ray, mean in zip(rays, means, strict=True)])


def exact_variance(
    mechanism: DenseMechanism | ProductMechanism, prior: tuple[int, ...], truth: tuple[int, ...]
) -> float:
    """Return Σ_x E[d_x²] − q_x², computed from the decoder's exact rows with rationals."""
    rows = [row for row in kind_of(mechanism).share_rows(prior) if row is not None]
    weights = kind_of(mechanism).rows
    assert weights is not None
    assert len(rows) == mechanism.answers
    q = [Fraction(n, sum(truth)) for n in truth]
    total = Fraction(0)
    for y in range(len(rows[0])):
        chance = sum((q[x] * Fraction(w[y], sum(w)) for x, w in enumerate(weights)), Fraction(0))
        total += chance * sum((row[y] ** 2 for row in rows), Fraction(0))
    return float(total - sum((v * v for v in q), Fraction(0)))


def grid(answers: int, steps: int) -> np.ndarray:
    """Return all shares that are multiples of 1/steps."""
    bars = combinations(range(steps + answers - 1), answers - 1)
    return np.array([np.diff([-1, *bar, steps + answers - 1]) - 1 for bar in bars]) / steps


def frequencies(mechanism: DenseMechanism, p: list[Fraction]) -> list[Fraction]:
    """Return λ = Qp, in fractions."""
    return [
        sum((p[x] * mechanism.probability(y, x) for x in range(mechanism.answers)), Fraction(0))
        for y in range(mechanism.reports)
    ]
