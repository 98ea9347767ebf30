# SPDX-License-Identifier: Apache-2.0
"""Versions of a survey that asked alike, pooled: unbiased, and better than the best of them in 200 random pairs."""

import random
from dataclasses import replace

import numpy as np
from frankly_protocol.audit import stated_ceiling
from frankly_protocol.blocks import Block, Choice, Question
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism, UnaryMechanism
from frankly_server.analysis.parts import Part
from frankly_server.analysis.pooled import pool
from frankly_server.analysis.request import Request
from frankly_server.estimate import Joint, estimate
from frankly_server.estimate.decoder import decoder, shares

from tests.frankly_protocol.samples import ldp_block
from tests.frankly_server.maths import random_mechanism

PAIRS = 200


def block_of(mechanism: Mechanism, prior: tuple[int, ...]) -> Block:
    """One question of a choice for each answer."""
    choices = tuple(Choice(f"c{x}", {"en": f"C{x}"}) for x in range(mechanism.answers))
    return replace(
        ldp_block(),
        questions=(Question("q", {"en": "Q?"}, choices),),
        mechanism=mechanism,
        design_prior=prior,
        ceiling=stated_ceiling(mechanism),
    )


def part(mechanism: DenseMechanism, prior: tuple[int, ...], n: int) -> Part:
    """A document that asked one question, with n reports."""
    return Part((block_of(mechanism, prior),), n, {(0,): n}, shares(mechanism.answers))


def test_a_table_of_a_set_and_of_a_product_is_that_of_all_factors() -> None:
    unary, table = UnaryMechanism(8, 2, 200, 60), DenseMechanism(4, ((12, 4), (4, 12)))
    product = ProductMechanism((table, table))
    blocks = (block_of(unary, (1, 2)), block_of(product, (1, 1, 1, 3)))
    tally: dict[tuple[int, ...], int] = {
        (mask, y, z): 20 + 3 * mask + 5 * y + 7 * z for mask in range(4) for y in (0, 1) for z in (0, 1)
    }
    n = sum(tally.values())
    pooled = pool([Part(blocks, n, tally, shares(8))], Request())
    prior = tuple(x * y for x in (1, 2) for y in (1, 1, 1, 3))
    alone = estimate(Joint((unary, table, table)), tally, design_prior=prior)
    assert (pooled.n, pooled.value, pooled.se) == (n, alone.unbiased, alone.se)


def test_pooling_beats_the_best_single_version_in_200_random_pairs() -> None:
    """Two mechanisms, two numbers of reports: variances at the design prior from the decoders' rows, by definition."""
    rng, beaten = random.Random(97), 0
    for _ in range(PAIRS):
        a = rng.randint(2, 4)
        prior = tuple(rng.randint(1, 9) for _ in range(a))
        p = np.array(prior) / sum(prior)
        parts, covariances = [], []
        for _ in range(2):
            mechanism, n = random_mechanism(rng, a, a + rng.randint(0, 2)), rng.randint(100, 10_000)
            V = np.array([[float(v) for v in row or ()] for row in decoder(mechanism, shares(a), prior).rows])
            rates = p @ (np.array(mechanism.weights) / 2.0**48)
            parts.append(part(mechanism, prior, n))
            covariances.append(((V * rates) @ V.T - np.outer(p, p)) / n)
        weights = [np.array([[float(v) for v in row] for row in found]) for found in _weighted(parts, census=False)]
        np.testing.assert_allclose(weights[0] + weights[1], np.eye(a), atol=1e-12)
        together = sum(np.diagonal(B @ C @ B.T) for B, C in zip(weights, covariances, strict=True))
        beaten += bool(np.all(together <= np.minimum(*map(np.diagonal, covariances)) * (1 + 1e-9)))
    assert beaten == PAIRS
