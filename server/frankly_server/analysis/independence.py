# SPDX-License-Identifier: Apache-2.0
"""Wald test that two questions are independent, with Cramér's V or phi (spec 8.12)."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from frankly_design.estimate.effects import chi_squared, length_ends, wald
from frankly_design.estimate.figures import sampling_factors
from frankly_design.kinds.projection import onto_simplex
from frankly_design.numeric.arrays import FloatArray

from frankly_server.analysis.part import Part
from frankly_server.analysis.pooling import Pooled
from frankly_server.analysis.request import Request
from frankly_server.analysis.tables import Table
from frankly_server.analysis.versions import covariance_at

_UNTESTED: Final[dict[str, Any]] = dict.fromkeys(("statistic", "df", "p", "effect"))


def independence(
    table: Table, parts: Sequence[Part], pooled: Pooled, request: Request
) -> dict[str, Any] | None:
    """Return the test that two questions are independent; None if the table is not their cells.

    The statistic is DᵀC⁺D for D_ij = p_ij − p_i·p_·j, with the covariance by the delta method. It is
    computed at the product of the estimated margins if the reports contain only these two
    questions, otherwise from the estimated covariance of the cells. The effect size is Cramér's V,
    or phi, which has a sign, for two questions of two choices each.
    """
    if len(table.questions) != 2 or not table.shares:
        return None
    sizes = tuple(len(question.choices) for question in table.questions)
    flags = [
        flag
        for flag in ("few_informative", "versions_differ")
        if flag in (*pooled.mean.flags, *(f for row in pooled.mean.row_flags for f in row))
    ]
    if any(value is None for value in pooled.mean.unbiased):
        return _UNTESTED | {"flags": [*flags, "not_identifiable"]}
    p = np.array(pooled.mean.unbiased, dtype=np.float64).reshape(sizes)
    # Estimated margins can be negative, but a covariance exists only at shares.
    rows, columns = onto_simplex(p.sum(axis=1)), onto_simplex(p.sum(axis=0))
    covariance = _covariance(parts, pooled, np.outer(rows, columns).ravel(), request)
    if covariance is None:
        return _UNTESTED | {"flags": [*flags, "interval_unknown"]}
    difference = p - np.outer(p.sum(axis=1), p.sum(axis=0))
    jacobian = _jacobian(p.sum(axis=1), p.sum(axis=0))
    spread = jacobian @ covariance @ jacobian.T
    test = wald(difference.ravel(), spread)
    if test is None:
        return _UNTESTED | {"flags": flags}
    # The interval of the effect must also hold for dependent questions, so it does not use the
    # covariance under independence, as the test does.
    observed = pooled.mean.covariance
    estimated = (
        spread if observed is None else jacobian @ np.array(observed, dtype=float) @ jacobian.T
    )
    return {
        "statistic": test[0],
        "df": test[1],
        "p": chi_squared(*test),
        "effect": _effect(difference, estimated, rows, columns, request.level),
        "flags": flags,
    }


def _jacobian(rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return dD/dp of D_ij = p_ij − p_i·p_·j, shape (cells, cells), both row-major."""
    same_row = np.kron(np.eye(len(rows)), np.ones((len(columns), len(columns))))
    same_column = np.kron(np.ones((len(rows), len(rows))), np.eye(len(columns)))
    of_row = np.tile(columns, len(rows))[:, None]
    of_column = np.repeat(rows, len(columns))[:, None]
    jacobian = np.eye(len(rows) * len(columns)) - same_row * of_row - same_column * of_column
    return np.asarray(jacobian, dtype=np.float64)


def _covariance(
    parts: Sequence[Part], pooled: Pooled, cells: FloatArray, request: Request
) -> FloatArray | None:
    """Return the covariance of the cells' estimates: that at these cells, or the estimated one."""
    observed = pooled.mean.covariance
    # Independent questions in the population need not be so in its groups, whose cells differ.
    if pooled.is_population:
        return None if observed is None else np.array(observed, dtype=np.float64)
    total = np.zeros((len(cells),) * 2)
    for part, weights in zip(parts, pooled.weights, strict=True):
        evidence = part.evidence(part.targets)
        # The reports contain further questions, whose joint shares do not follow from these cells.
        if evidence.answers != len(cells):
            return None if observed is None else np.array(observed, dtype=np.float64)
        population, census = part.frame(request.population, census=request.census)
        sampling = sampling_factors(part.n, population, census=census)[1]
        # W permutes the joint answers if the blocks are in another order than the table.
        at = covariance_at(evidence, evidence.W.T @ cells, sampling)
        total += (weights[0] or 0.0) * (weights[-1] or 0.0) * at
    return total


def _effect(
    difference: FloatArray, spread: FloatArray, rows: FloatArray, columns: FloatArray, level: float
) -> dict[str, Any] | None:
    """Return Cramér's V or phi with its interval; None if a margin is estimated as 0.

    The noise of the cells inflates V² of the estimates, so its expectation is subtracted.
    """
    expected = np.outer(rows, columns).ravel()
    if expected.min() <= 0:
        return None
    # Cramér's scale: V is 1 if the answer to one question determines the other.
    scale = np.sqrt(expected * (min(len(rows), len(columns)) - 1))
    lengths, noise = difference.ravel() / scale, spread / np.outer(scale, scale)
    if difference.shape == (2, 2):
        # The four cells are D, −D, −D, D: a single number.
        unit = 1 / np.sqrt(np.prod(rows) * np.prod(columns))
        phi = float(difference[0, 0] * unit)
        # Around 0 the largest length is the half-width: normal quantile times standard error.
        half = length_ends(np.zeros(1), spread[:1, :1] * unit**2, level)[1]
        ends = max(-1.0, phi - half), min(1.0, phi + half)
        return {"name": "phi", "estimate": phi, "low": min(phi, ends[0]), "high": max(phi, ends[1])}
    value = float(np.sqrt(max(0.0, lengths @ lengths - np.trace(noise))))
    # These are ends for the length including noise, so they can miss the corrected estimate.
    low, high = length_ends(lengths, noise, level)
    return {
        "name": "Cramér's V",
        "estimate": value,
        "low": min(low, value, 1.0),
        "high": min(1.0, max(high, value)),
    }
