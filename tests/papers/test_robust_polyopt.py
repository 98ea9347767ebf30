# SPDX-License-Identifier: Apache-2.0
"""Robust Table 2, row PolyOpt, computed by the engine on distributions from Jeffreys' prior at ε = 1.5."""

import math
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.prior import Prior, pairs
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, level_for, require_private

from tests.papers.registry import paper

PRINTED = {
    (2, 5): {"0.1": 0.727, "0.01": 0.723, "0.001": 0.719},
    (5, 2): {"0.1": 0.374, "0.01": 0.372, "0.001": 0.370},
}
DEVIATION = {(2, 5): 0.053, (5, 2): 0.045}
"""The standard deviation of one draw, measured over a hundred draws."""


def counts_of(rng: np.random.Generator, a1: int, a2: int) -> list[list[int]]:
    counts: list[list[int]] = (
        rng.multinomial(32561, rng.dirichlet(np.full(a1 * a2, 0.5))).reshape(a1, a2).tolist()
    )
    return counts


def normalised_information(counts: list[list[int]], beta: str, gap: float = 3e-3) -> float:
    """Return I(X;Y)/H(X) of the optimum with the rows s₁ = s₂ of the paper, up to `gap` nats."""
    prior = pairs(Prior.from_rows(counts))
    claim = Claim(
        "rldp",
        level_for(Fraction(3, 2)),
        lower_bounds=lower_bounds(counts, 2, 32561, beta),
        diagonal=True,
    )
    request = DesignRequest(
        prior,
        (claim,),
        objective="information",
        limits=Limits(gap=gap),
        accept_identity=True,
        accept_unidentifiable=True,
    )
    designed = design(request)
    require_private(designed.mechanism, claim)
    assert designed.certified
    return designed.normalised_information


def near(values: list[float], printed: float, size: tuple[int, int]) -> bool:
    """Compare means of different draws; allow two standard errors of the difference, and rounding."""
    deviation = np.std(values) if len(values) >= 100 else DEVIATION[size]
    return bool(
        abs(np.mean(values) - printed)
        <= 2 * deviation * math.sqrt(1 / len(values) + 1 / 100) + 0.0005
    )


def check(size: tuple[int, int], seed: int, draws: int, gap: float) -> None:
    """Check all printed values of a panel with the same draws for all three risks."""
    rng, first = np.random.default_rng(seed), 0.0
    drawn = [counts_of(rng, *size) for _ in range(draws)]
    for beta, printed in PRINTED[size].items():
        values = [normalised_information(counts, beta, gap) for counts in drawn]
        assert near(values, printed, size), (beta, np.mean(values), np.std(values))
        if beta == "0.1":
            first = float(np.mean(values))
        else:
            # With the same draws, the cost of a smaller risk is much more precise than either mean.
            cost = PRINTED[size]["0.1"] - printed
            assert first - np.mean(values) == pytest.approx(cost, abs=0.003)


@paper("Robust Table 2, PolyOpt")
@pytest.mark.parametrize(
    ("size", "seed", "gap"), [((2, 5), 25, 3e-3), ((5, 2), 52, 1e-2)], ids=["2x5", "5x2"]
)
@pytest.mark.full_only
def test_polyopt_of_a_hundred_draws(size: tuple[int, int], seed: int, gap: float) -> None:
    check(size, seed, 100, gap)


@paper("Robust Table 2, PolyOpt")
@pytest.mark.parametrize(
    ("size", "seed", "gap"), [((2, 5), 25, 3e-3), ((5, 2), 52, 2e-2)], ids=["2x5", "5x2"]
)
def test_polyopt_of_a_draw_or_two(size: tuple[int, int], seed: int, gap: float) -> None:
    rng = np.random.default_rng(seed)
    values = [normalised_information(counts_of(rng, *size), "0.1", gap) for _ in range(2)]
    assert near(values, PRINTED[size]["0.1"], size), (np.mean(values), np.std(values))
