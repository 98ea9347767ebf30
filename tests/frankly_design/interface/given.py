# SPDX-License-Identifier: Apache-2.0
"""Priors, small mechanisms and exact sums that several tests of the Python interface use."""

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import frankly_design as fd
from frankly_protocol.canonical import parse_json
from frankly_protocol.mechanisms import DenseMechanism, Mechanism

JOINT = [[40, 110, 210, 140], [90, 80, 60, 20]]
SMALL = [[10, 20], [30, 15]]
Rows = Sequence[Sequence[Fraction]]


def read(obj: Any) -> Any:
    """Return an object as a JSON request contains it, with exact decimals."""
    return parse_json(json.dumps(obj).encode(), decimals=True)


def anything(value: Any) -> Any:
    """Return the value without its type, for calls that types would refuse."""
    return value


def with_mechanism(design: fd.Design, mechanism: Mechanism) -> fd.Design:
    """Return the design with another mechanism, with few bits, so that tests can enumerate draws."""
    design.mechanism = mechanism
    return design


def channel(mechanism: Any) -> list[list[Fraction]]:
    """Return Q(y|x) exactly, row = truth, columns in the order of `symbols`."""
    symbols = list(mechanism.symbols())
    return [[mechanism.probability(y, x) for y in symbols] for x in range(mechanism.answers)]


def law_of_draws(draw: Callable[[Callable[[int], int]], Any]) -> dict[Any, Fraction]:
    """Return the exact law of a result: `draw` is run for every value of all its random bits."""
    law: dict[Any, Fraction] = {}
    open_paths: list[list[tuple[int, int]]] = [[]]  # (bits, value) of each draw
    while open_paths:
        path = open_paths.pop()
        asked: list[tuple[int, int]] = []

        def randbits(bits: int, path: Any = path, asked: Any = asked) -> int:
            place = len(asked)
            value = path[place][1] if place < len(path) else 0
            asked.append((bits, value))
            return int(value)

        result = draw(randbits)
        law[result] = law.get(result, Fraction(0)) + Fraction(
            1, 1 << sum(bits for bits, _ in asked)
        )
        # A run answers every new draw with 0; the other values are the paths that remain.
        for place in range(len(path), len(asked)):
            bits = asked[place][0]
            open_paths.extend([*asked[:place], (bits, v)] for v in range(1, 1 << bits))
    return law


def solved(matrix: Rows, right: Rows) -> list[list[Fraction]]:
    """Return M⁻¹·R by elimination in fractions."""
    rows = [[*map(Fraction, m), *map(Fraction, r)] for m, r in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        pivot = next(k for k in range(i, size) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(size):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[size:] for row in rows]


def decoder_of(Q: Rows, prior: Sequence[int]) -> list[list[Fraction]]:
    """Return the best unbiased decoder (Q Λ⁻¹ Qᵀ)⁻¹ Q Λ⁻¹ of full rank, Λ = diag(prior·Q)."""
    p = [Fraction(n, sum(prior)) for n in prior]
    law = [
        sum((a * row[y] for a, row in zip(p, Q, strict=True)), Fraction(0))
        for y in range(len(Q[0]))
    ]
    over = [[v / rate for v, rate in zip(row, law, strict=True)] for row in Q]
    gram = [[sum((a * b for a, b in zip(x, z, strict=True)), Fraction(0)) for z in Q] for x in over]
    return solved(gram, over)


def mean_and_covariance(
    D: Rows, counts: Sequence[int]
) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Return the mean of the decoder's columns over reports, and the covariance of that mean.

    The covariance is the usual unbiased one: of the sample, over n − 1, divided by n.
    """
    n = sum(counts)
    mean = [sum((d * c for d, c in zip(row, counts, strict=True)), Fraction(0)) / n for row in D]
    second = [
        [sum((a * b * c for a, b, c in zip(x, z, counts, strict=True)), Fraction(0)) / n for z in D]
        for x in D
    ]
    spread = [
        [m - a * b for m, b in zip(row, mean, strict=True)]
        for row, a in zip(second, mean, strict=True)
    ]
    return mean, [[v / (n - 1) for v in row] for row in spread]


def expected_counts(Q: Rows, shares: Sequence[Fraction]) -> list[int]:
    """Return counts in the exact proportions of Q·p, scaled to whole numbers."""
    law = [
        sum((p * row[y] for p, row in zip(shares, Q, strict=True)), Fraction(0))
        for y in range(len(Q[0]))
    ]
    scale = lcm(*(rate.denominator for rate in law))
    return [int(rate * scale) for rate in law]


FOUR_BITS = DenseMechanism(4, ((9, 4, 2, 1), (1, 10, 3, 2), (2, 2, 5, 7)))
