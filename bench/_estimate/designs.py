# SPDX-License-Identifier: Apache-2.0
"""Twelve mechanisms of all kinds, three truths each, and simulated surveys."""

from dataclasses import dataclass
from math import exp

import numpy as np
from frankly_design.estimate import SetCounts
from frankly_protocol.mechanisms import (
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BITS = 48
SIZES = (50, 500, 5000)
TRUTHS = ("even", "skewed", "corner")


@dataclass(frozen=True)
class Case:
    """A mechanism with the probabilities of its symbols, `law`, shape (answers, symbols)."""

    name: str
    mechanism: Mechanism
    symbols: list[object]
    law: FloatArray

    def truth(self, kind: str) -> FloatArray:
        """Return the true shares of one of TRUTHS."""
        a = self.mechanism.answers
        first = {"even": 1 / a, "skewed": 0.8, "corner": 1.0}[kind]
        return np.array([first] + [(1 - first) / (a - 1)] * (a - 1))

    def counts(self, drawn: NDArray[np.int64]) -> list[int] | SetCounts:
        """Return counts per symbol in the form that the estimator accepts."""
        if isinstance(self.mechanism, DenseMechanism | ProductMechanism):
            return [int(c) for c in drawn]
        return SetCounts.of_symbols(
            self.mechanism.answers,
            {
                mask: int(c)
                for mask, c in zip(self.symbols, drawn, strict=True)
                if isinstance(mask, int)
            },
        )


def cases() -> list[Case]:
    """Return the twelve mechanisms."""
    rng = np.random.default_rng(12)
    named: list[tuple[str, Mechanism]] = [
        ("GRR a=2 ε=0.5", _grr(2, 0.5)),
        ("GRR a=2 ε=4", _grr(2, 4)),
        ("GRR a=3 ε=1", _grr(3, 1)),
        ("GRR a=5 ε=1", _grr(5, 1)),
        ("GRR a=5 ε=4", _grr(5, 4)),
        ("binary .9/.6", _rounded(np.array([[0.9, 0.1], [0.4, 0.6]]))),
        ("table 2×4", _rounded(rng.dirichlet(np.ones(4), size=2))),
        ("table 3×5", _rounded(0.5 * np.eye(3, 5) + 0.5 * rng.dirichlet(np.ones(5), size=3))),
        ("product of GRR 2, 2 ε=1", ProductMechanism((_grr(2, 1), _grr(2, 1)))),
        ("OUE a=3 ε=1", UnaryMechanism(BITS, 3, 1 << (BITS - 1), round(2**BITS / (exp(1) + 1)))),
        ("OUE a=4 ε=2", UnaryMechanism(BITS, 4, 1 << (BITS - 1), round(2**BITS / (exp(2) + 1)))),
        ("subset a=4, 2 ε=1", SubsetMechanism(BITS, 4, 2, round(2**BITS * exp(1) / (exp(1) + 1)))),
    ]
    return [case_of(name, mechanism) for name, mechanism in named]


def distinct(
    case: Case, truth: FloatArray, n: int, runs: int, seed: int
) -> tuple[list[list[int] | SetCounts], NDArray[np.int64]]:
    """Simulate surveys of n random people; return the distinct counts, and each survey's index."""
    rng = np.random.default_rng(seed)
    unique_rows, places = np.unique(
        rng.multinomial(n, truth @ case.law, size=runs), axis=0, return_inverse=True
    )
    return [case.counts(drawn) for drawn in unique_rows], np.asarray(places).ravel()


def _grr(answers: int, epsilon: float) -> DenseMechanism:
    e = exp(epsilon)
    return _rounded((np.eye(answers) * (e - 1) + 1) / (e + answers - 1))


def _rounded(Q: FloatArray) -> DenseMechanism:
    """Return integer weights, rounded down; the largest of a row gets the remainder."""
    weights = [[int(v * 2**BITS) for v in row] for row in Q]
    for row in weights:
        row[row.index(max(row))] += 2**BITS - sum(row)
    return DenseMechanism(BITS, tuple(map(tuple, weights)))


def case_of(name: str, mechanism: Mechanism) -> Case:
    """Return a mechanism with the probabilities of its symbols."""
    symbols: list[object] = list(mechanism.symbols())
    law = [[float(mechanism.probability(y, x)) for y in symbols] for x in range(mechanism.answers)]  # type: ignore[arg-type]
    table = np.array(law)
    return Case(name, mechanism, symbols, table / table.sum(axis=1, keepdims=True))
