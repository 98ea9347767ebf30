# SPDX-License-Identifier: Apache-2.0
"""Robust Table 2, the row of PolyOpt, by the engine; on random distributions with Jeffreys' prior, ε = 1.5."""

import math
from fractions import Fraction

import numpy as np
import pytest
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_server.design import DesignRequest, Prior, design
from frankly_server.design.limits import Limits
from frankly_server.design.promises import pairs
from frankly_server.design.robust import lower_bounds

from tests.papers.registry import paper

PRINTED = {(2, 5): {"0.1": 0.727, "0.01": 0.723, "0.001": 0.719}, (5, 2): {"0.1": 0.374}}
DEVIATION = {(2, 5): 0.053, (5, 2): 0.045}
"""Of one draw, measured over a hundred of them."""


def counts_of(rng: np.random.Generator, a1: int, a2: int) -> list[list[int]]:
    found: list[list[int]] = rng.multinomial(32561, rng.dirichlet(np.full(a1 * a2, 0.5))).reshape(a1, a2).tolist()
    return found


def normalised_information(counts: list[list[int]], beta: str, gap: float = 3e-3) -> float:
    """The most informative mechanism with the paper's s₁ = s₂ rows; at most `gap` nats are left open."""
    prior = pairs(Prior.from_rows(counts))
    claim = Claim("rldp", level_for(Fraction(3, 2)), lower_bounds=lower_bounds(counts, 2, 32561, beta), diagonal=True)
    asked = DesignRequest(
        prior,
        (claim,),
        objective="information",
        limits=Limits(gap=gap),
        accept_identity=True,
        accept_unidentifiable=True,
    )
    found = design(asked)
    require_private(found.mechanism, claim)
    assert found.certified
    return found.normalised_information


def near(values: list[float], printed: float, size: tuple[int, int]) -> bool:
    """Both means are over draws of their own: two standard errors of their difference, and the printed rounding."""
    deviation = np.std(values) if len(values) >= 100 else DEVIATION[size]
    return abs(np.mean(values) - printed) <= 2 * deviation * math.sqrt(1 / len(values) + 1 / 100) + 0.0005


@paper("Robust Table 2, PolyOpt")
def test_polyopt_of_two_secrets_and_five_values(full: bool) -> None:
    rng = np.random.default_rng(25)
    drawn = [counts_of(rng, 2, 5) for _ in range(100 if full else 2)]
    values = [normalised_information(counts, "0.1") for counts in drawn]
    assert near(values, PRINTED[2, 5]["0.1"], (2, 5)), (np.mean(values), np.std(values))
    if full:
        # The same draws again: what a smaller risk costs is known far better than either mean.
        for beta, cost in (("0.01", 0.004), ("0.001", 0.008)):
            dearer = [normalised_information(counts, beta) for counts in drawn[:20]]
            assert np.mean(values[:20]) - np.mean(dearer) == pytest.approx(cost, abs=0.003)


@paper("Robust Table 2, PolyOpt")
@pytest.mark.full_only
def test_polyopt_of_five_secrets_and_two_values() -> None:
    rng = np.random.default_rng(52)
    found = [normalised_information(counts_of(rng, 5, 2), "0.1", 2e-2) for _ in range(100)]
    assert near(found, PRINTED[5, 2]["0.1"], (5, 2)), (np.mean(found), np.std(found))
