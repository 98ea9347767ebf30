# SPDX-License-Identifier: Apache-2.0
"""Random priors and mechanisms for the mathematics; seeded, so every run tries the same ones."""

import random
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.design import DesignRequest
from frankly_server.design.cones import Cone
from frankly_server.design.prior import Prior
from frankly_server.design.promises import promise
from frankly_server.design.vertices import Ray


def random_prior(rng: random.Random, answers: int, secrets: int) -> Prior:
    top = rng.choice([3, 50, 5000])
    return Prior.from_rows([[rng.randint(1, top) for _ in range(answers)] for _ in range(secrets)])


def random_epsilon(rng: random.Random, low: float = 0.01, high: float = 8.0) -> Fraction:
    """A level with three decimals, spread evenly over the orders of magnitude."""
    return Fraction(round(1000 * low * (high / low) ** rng.random()), 1000)


def random_row(rng: random.Random, total: int, columns: int) -> tuple[int, ...]:
    """Whole numbers ≥ 0 that sum to `total`."""
    cuts = sorted(rng.randint(0, total) for _ in range(columns - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))


def random_mechanism(rng: random.Random, answers: int, reports: int, bits: int = 48) -> DenseMechanism:
    """A mechanism without structure: no privacy, any rank."""
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


def wanted(prior: Prior, notion: str, epsilon: Fraction, mechanism: str = "optimal", **options: Any) -> DesignRequest:
    return DesignRequest(prior, (promise(notion, prior, epsilon),), mechanism, **options)
