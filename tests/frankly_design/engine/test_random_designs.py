# SPDX-License-Identifier: Apache-2.0
"""Random designs of every notion except dp: they satisfy their claims, and no rival beats a bound.

Scipy computes the rival mechanisms from the definitions alone: random vertices of the cone,
combined by a linear programme.
"""

import itertools
import random
import time
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, DesignResult, design
from frankly_design.notions import promises
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.declared.answer import answer_ldp, between_pairs
from frankly_design.notions.declared.belief import no_violation, side_channels, two_sided
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior, pairs
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, require_private
from scipy.optimize import linprog

from tests.frankly_design.definitions import definition_rows
from tests.frankly_design.maths import random_epsilon

NOTIONS = ("ldp", "secret-ldp", "lip", "alip", "srlip", "rldp", "dpv", "metric-ldp")
SECONDS = 2.0
SHAPES = {4: (2, 2), 6: (2, 3), 8: (2, 2, 2), 9: (3, 3), 12: (3, 4), 16: (2, 2, 4)}


def some_request(rng: random.Random, number: int) -> DesignRequest:
    """Return a request for the next notion in turn, with ε from 0.01 to 8 and at most 16 answers."""
    notion = NOTIONS[number % len(NOTIONS)]
    epsilon, answers = random_epsilon(rng), rng.randint(2, 16)
    if notion in ("srlip", "rldp"):
        answers = rng.choice([n for n in SHAPES if n <= 12 or rng.random() < 0.3])
    secrets = rng.randint(2, 4)
    rows = [[rng.randint(1, 400) for _ in range(answers)] for _ in range(secrets)]
    prior = Prior.from_rows(rows)
    claims: tuple[Claim, ...]
    if notion == "alip":
        sides: list[Fraction | None] = [epsilon, random_epsilon(rng)]
        sides[rng.randrange(2)] = rng.choice([sides[0], None])
        claims = (two_sided(prior, sides[0], sides[1] if sides != [None, None] else epsilon),)
    elif notion == "srlip":
        claims = (side_channels(prior, epsilon, SHAPES[answers]),)
    elif notion == "rldp":
        counts = [rows[0][: (answers + 1) // 2], rows[1][: (answers + 1) // 2]]
        public = Prior.from_rows(counts)
        bounds = lower_bounds(public.joint, 2, sum(map(sum, counts)), "0.05")
        prior = pairs(public)
        claims = (robust(bounds, epsilon, diagonal=rng.random() < 0.3),)
    elif notion == "metric-ldp":
        rows_of_levels = [
            [
                None if x == z else epsilon * abs(x - z) / 4 + Fraction(1, 100)
                for z in range(answers)
            ]
            for x in range(answers)
        ]
        claims = (between_pairs(rows_of_levels, answers),)
    elif notion == "dpv":
        share = Fraction(prior.masses[0], prior.total)
        claims = (no_violation(prior, share + (1 - share) * Fraction(rng.randint(1, 9), 10), 0),)
    else:
        claims = (promises.promise(notion, prior, epsilon),)
    if rng.random() < 0.3:
        claims = (*claims, answer_ldp(max(epsilon, random_epsilon(rng, 1.0))))
    started = time.monotonic()
    return DesignRequest(
        prior,
        claims,
        objective=rng.choice(["information", "variance", "hamming"]),
        accept_identity=True,
        accept_unidentifiable=True,
        limits=Limits(out_of_time=lambda: time.monotonic() - started > SECONDS),
    )


def rivals(
    request: DesignRequest, designed: DesignResult, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return mechanisms (columns v with p·v = 1, and their probabilities) from random vertices of
    the cone."""
    p = request.prior.probabilities()
    a = len(p)
    rows = definition_rows(request.claims, a)
    columns = [np.ones(a)]
    directions = np.vstack([np.eye(a), rng.standard_normal((2 * a, a))])
    for c in directions:
        solution = linprog(
            -c * p, A_ub=-rows, b_ub=np.zeros(len(rows)), A_eq=p[None], b_eq=[1.0], method="highs"
        )
        if solution.status == 0:
            columns.append(solution.x)
    V = np.array(columns)
    found_ones = []
    for weights in (
        np.sum(V * p * np.log(np.maximum(V, 1e-300)), axis=1),
        *rng.random((3, len(V))),
    ):
        solution = linprog(-weights, A_eq=V.T, b_eq=np.ones(a), method="highs")
        if solution.status == 0:
            found_ones.append((V, solution.x))
    return found_ones


def value_of(objective: str, p: np.ndarray, V: np.ndarray, theta: np.ndarray) -> float:
    if objective == "information":
        return float(theta @ np.sum(V * p * np.log(np.maximum(V, 1e-300)), axis=1))
    if objective == "hamming":
        return 1 - float(theta @ np.max(V * p, axis=1))
    mixed = 0.5 * theta + 0.5 * linprog_spread(V)
    A = (V.T * mixed) @ V
    if np.linalg.cond(A) > 1e12:
        return float("inf")
    return float(np.trace(np.linalg.inv(A)) - p @ p)


def linprog_spread(V: np.ndarray) -> np.ndarray:
    """Return a mechanism that uses every column as much as possible."""
    n, a = V.shape
    solution = linprog(
        np.append(np.zeros(n), -1.0),
        A_eq=np.column_stack([V.T, V.sum(axis=0)]),
        b_eq=np.ones(a),
        method="highs",
    )
    return np.asarray(solution.x[:n] + solution.x[n])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_random_designs_keep_their_claims_and_nothing_beats_their_bounds(
    part: int, full: bool
) -> None:
    rng = random.Random(7000 + part)
    generator = np.random.default_rng(part)
    compared = 0
    for number in itertools.islice(itertools.count(part), 100 if full else 1):
        request = some_request(rng, number)
        designed = design(request)
        require_private(designed.mechanism, *request.claims)
        assert designed.eta <= Fraction(1, 10**6)
        assert designed.bound is not None
        p = request.prior.probabilities()
        for V, theta in rivals(request, designed, generator):
            value = value_of(request.objective, p, V, theta)
            compared += 1
            if request.objective == "information":
                assert value <= designed.bound + 1e-7
            else:
                assert value >= designed.bound - 1e-7 * max(1.0, abs(designed.bound))
    assert compared > 0
