# SPDX-License-Identifier: Apache-2.0
"""Cones of all notions and intersections: rows compared with the verifier, rays compared with rows."""

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from frankly_design.notions.cones import Cone, rows_of
from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms import DenseMechanism
from scipy.optimize import nnls

from tests.frankly_design.maths import EVERY_NOTION, claims_of, random_row, scaled_rays, tamed
from tests.frankly_protocol.samples import is_private

BITS = 20


def holds(cone: Cone, column: tuple[int, ...]) -> bool:
    return all(sum(r * v for r, v in zip(row, column, strict=True)) >= 0 for row in cone.rows())


def softened(rng: random.Random, answers: int) -> DenseMechanism:
    """Return random rows, half of the time mixed with a common row, so that many claims hold and
    many fail."""
    while True:
        common, keep = random_row(rng, 1 << BITS, 3), rng.choice([0, 0, 0, 1, 4, 16])
        rows = [random_row(rng, 1 << BITS, 3) for _ in range(answers)]
        mixed = [
            [(c * keep + v) // (keep + 1) for c, v in zip(common, row, strict=True)] for row in rows
        ]
        weights = tuple((*row[:-1], (1 << BITS) - sum(row[:-1])) for row in mixed)
        if all(any(column) for column in zip(*weights, strict=True)):
            return DenseMechanism(BITS, weights)


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_rows_agree_with_the_verifier(kind: str) -> None:
    rng = random.Random(kind)
    verdicts = {True: 0, False: 0}
    for _ in range(30):
        prior, claims = claims_of(kind, rng, 0.02, 2.0)
        for _ in range(5):
            mechanism = softened(rng, prior.answers)
            columns = list(zip(*mechanism.weights, strict=True))
            inside = all(holds(Cone(claims, prior.answers), column) for column in columns)
            assert inside == is_private(mechanism, *claims)
            verdicts[inside] += 1
    assert min(verdicts.values()) >= 10, verdicts


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_rays_are_inside_exactly_and_extreme(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(4):
        prior, claims = claims_of(kind, rng)
        cone = Cone(claims, prior.answers)
        rows = cone.rows() + [
            [int(i == x) for i in range(prior.answers)] for x in range(prior.answers)
        ]
        for ray in cone.rays():
            assert holds(cone, ray)
            assert min(ray) >= 0
            tight = [row for row in rows if sum(r * v for r, v in zip(row, ray, strict=True)) == 0]
            # A ray is extreme if the rows that hold with equality leave only one direction.
            assert exact_rank(tight) == prior.answers - 1


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_every_column_of_the_cone_is_a_mixture_of_its_rays(kind: str) -> None:
    rng = random.Random(kind)
    prior, cone = tamed(kind, rng)
    V, mixtures = scaled_rays(cone, prior), 0
    while mixtures < 10:
        column = tuple(rng.randint(0, 60) + 40 for _ in range(prior.answers))
        if holds(cone, column):
            _, off = nnls(V.T, np.array(column, dtype=np.float64))
            assert off < 1e-8
            mixtures += 1


def exact_rank(rows: list[list[int]]) -> int:
    remaining, rank = [[Fraction(v) for v in row] for row in rows], 0
    for x in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in remaining if row[x]), None)
        if pivot is not None:
            rank += 1
            remaining = [row for row in remaining if row is not pivot]
            remaining = [
                [v - row[x] / pivot[x] * w for v, w in zip(row, pivot, strict=True)]
                for row in remaining
            ]
    return rank


def definition_3(claim: Claim) -> set[tuple[Fraction, ...]]:
    """Return the rows −(43) ≥ 0 of the paper for all s₁, s₂, u₁, u₂, scaled to a largest entry of 1."""
    L = [[Fraction(n, d) for n, d in row] for row in claim.lower_bounds or ()]
    E, secrets, size = Fraction(*(claim.level or (0, 1))), len(L), len(L[0])
    conditions = set()
    for s1, s2, u1, u2 in product(range(secrets), range(secrets), range(size), range(size)):
        row = [Fraction(0)] * (secrets * size)
        row[s1 * size + u1] -= 1
        row[s2 * size + u2] += E
        for u in range(size):
            row[s1 * size + u] -= L[s1][u]
            row[s1 * size + u1] += L[s1][u]
            row[s2 * size + u] += E * L[s2][u]
            row[s2 * size + u2] -= E * L[s2][u]
        if min(row) < 0:
            conditions.add(tuple(v / max(map(abs, row)) for v in row))
    return conditions


def test_the_papers_robust_definition_is_the_diagonal_form() -> None:
    # Robust Definition 3, eq. (43), compares all pairs of secrets, including a secret with itself.
    rng = random.Random(43)
    for _ in range(20):
        _, (claim,) = claims_of("rldp-diagonal", rng)
        ours = {tuple(Fraction(v, max(map(abs, row))) for v in row) for row in rows_of(claim, 4)}
        assert ours == definition_3(claim)


def test_trivial_rows_are_left_out() -> None:
    flat = ((1, 2, 3), (2, 4, 6))  # the secret is independent of the answer
    for notion in ("lip", "secret-ldp"):
        assert rows_of(Claim(notion, (11, 10), flat), 3) == []
    assert rows_of(Claim("dpv", (1, 1), ((1, 2, 3), (3, 2, 1)), sensitive=0), 3) == []
    assert rows_of(Claim("srlip", (2, 1), ((1, 1, 1, 1), (1, 1, 1, 1)), attributes=(2, 2)), 4) == []
    for kind in EVERY_NOTION:
        _, claims = claims_of(kind, random.Random(kind))
        assert all(min(row) < 0 for claim in claims for row in rows_of(claim, 4))


def test_one_side_of_alip_is_half_of_lip() -> None:
    joint, E = ((5, 1, 2), (1, 4, 7)), (3, 2)
    lip = {tuple(row) for row in rows_of(Claim("lip", E, joint), 3)}
    high = {tuple(row) for row in rows_of(Claim("alip", E, joint), 3)}
    low = {tuple(row) for row in rows_of(Claim("alip", None, joint, low_level=E), 3)}
    assert high | low == lip
    assert not high & low
