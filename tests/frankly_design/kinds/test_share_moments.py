# SPDX-License-Identifier: Apache-2.0
"""Second moments of the decoded shares, compared with sums over all symbols."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import Joint, SetCounts
from frankly_design.estimate.estimator import evidence_of
from frankly_design.kinds.decoder import shares
from frankly_protocol.mechanisms import (
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_design.estimate.published import SKEWED

WARNER = DenseMechanism(4, ((12, 4), (3, 13)))
UNARY, SUBSET = UnaryMechanism(4, 3, 8, 3), SubsetMechanism(4, 4, 2, 11)
PRODUCT = ProductMechanism((WARNER, SKEWED))


def evidence_of_report(mechanism: Any, symbol: Any, place: int) -> Any:
    """Return the counts of one report."""
    if isinstance(mechanism, Joint):
        return {symbol: 1}
    if isinstance(mechanism, DenseMechanism | ProductMechanism):
        return [int(y == place) for y in range(mechanism.reports)]
    return SetCounts.of_symbols(mechanism.answers, {symbol: 1})


def chance(mechanism: Any, symbol: Any, x: int) -> float:
    if isinstance(mechanism, Joint):
        coordinates = np.unravel_index(x, [block.answers for block in mechanism.blocks])
        chances = [
            b.probability(y, int(z))
            for b, y, z in zip(mechanism.blocks, symbol, coordinates, strict=True)
        ]
        return float(np.prod([float(v) for v in chances]))
    return float(mechanism.probability(symbol, x))


@pytest.mark.parametrize("kind", ["shares", "one target"])
@pytest.mark.parametrize(
    "mechanism",
    [SKEWED, PRODUCT, UNARY, SUBSET, Joint((WARNER, UNARY))],
    ids=["table", "product", "unary", "subset", "joint"],
)
def test_share_moments_equal_those_of_single_reports(mechanism: Any, kind: str) -> None:
    a = mechanism.answers
    targets = shares(a) if kind == "shares" else (tuple(map(Fraction, range(a))),)
    p = np.arange(1, a + 1) / sum(range(1, a + 1))
    blocks = mechanism.blocks if isinstance(mechanism, Joint) else ()
    symbols = list(product(*(b.symbols() for b in blocks)) if blocks else mechanism.symbols())
    expected = np.zeros((a, a))
    for place, symbol in enumerate(symbols):
        share_moments = evidence_of(
            mechanism, evidence_of_report(mechanism, symbol, place), targets, None
        ).shares
        assert share_moments is not None
        s = np.array([float(v or 0) for v in share_moments])
        expected += sum(p[x] * chance(mechanism, symbol, x) for x in range(a)) * np.outer(s, s)
    evidence = evidence_of(mechanism, evidence_of_report(mechanism, symbols[0], 0), targets, None)
    assert evidence.share_moments(p) == pytest.approx(expected)
    assert evidence.moment_at(p) == pytest.approx(evidence.W @ expected @ evidence.W.T)


@pytest.mark.parametrize("factors", [1, 2])
def test_share_moments_equal_those_of_the_decoder_for_the_design_prior(factors: int) -> None:
    """V = (QᵀD₀⁻¹Q)⁻¹QᵀD₀⁻¹ in floats; with more reports than answers, V depends on the prior."""
    table = DenseMechanism(
        4, ((9, 4, 2, 1), (2, 9, 4, 1), (1, 3, 4, 8), (1, 1, 7, 7))[: 4 - factors]
    )
    mechanism: Any = table if factors == 1 else ProductMechanism((table, WARNER))
    a = mechanism.answers
    prior = tuple(range(1, a + 1)) if factors == 1 else (1, 1, 7, 7)
    Q = np.array(
        [[float(mechanism.probability(y, x)) for y in mechanism.symbols()] for x in range(a)]
    )

    def decoder_of(law: np.ndarray, p0: np.ndarray) -> np.ndarray:
        D = np.diag(1 / (p0 @ law))
        return np.asarray(np.linalg.solve(law @ D @ law.T, law @ D))

    V = decoder_of(Q, np.array(prior) / sum(prior))
    p = np.full(a, 1 / a)
    evidence = evidence_of(
        mechanism, [1] * mechanism.reports, (tuple(map(Fraction, range(a))),), prior
    )
    np.testing.assert_allclose(evidence.share_moments(p), (V * (p @ Q)) @ V.T, rtol=1e-9, atol=1e-9)
    even = decoder_of(Q, p)
    assert np.abs((even * (p @ Q)) @ even.T - (V * (p @ Q)) @ V.T).max() > 1e-3
