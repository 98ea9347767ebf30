# SPDX-License-Identifier: Apache-2.0
"""The product of Funnel's Theorem 4, for comparison only: it is not side-channel resistant.

Each attribute's mechanism is the most informative one that is ε^j-LIP with respect to p(S, X^j | x_J) for every set J
of other attributes and every x_J, with Σ ε^j = ε  [Funnel Thm 4, eqs. 20-23]. The theorem ignores what earlier outcomes
reveal in addition to x_J, so the product can leak any amount (errata 15); `side_channel_level` computes its leakage.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from frankly_design.families.lift.mixture import Table
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import level_for
from numpy.typing import NDArray

from papers.sequential import Conditions, most_informative

FloatArray = NDArray[np.float64]


def factors(prior: Prior, attributes: Sequence[int], epsilon: Fraction) -> list[Table]:
    """Return one mechanism per attribute, each at ε/m, whole numbers with equal row sums, row = truth.

    The paper enumerates the vertices of (20-23); the constraints apply to each column separately, so the linear
    programme over extreme rays has the same optimum.
    """
    conditions = Conditions(
        prior, tuple(attributes)
    )  # computed without factors, so that no outcome is known
    level = Fraction(*level_for(epsilon / len(attributes)))
    every = range(len(attributes))
    return [
        most_informative(conditions.rows(j, level, "stepwise"), conditions.outcomes(j))
        for j in every
    ]


def multiplied(tables: Sequence[Table]) -> FloatArray:
    """Return Q(y|x) of the product, shape (answers, reports), both row-major over the attributes."""
    result: FloatArray = np.ones((1, 1))
    for table in tables:
        result = np.asarray(np.kron(result, np.array(table, dtype=float) / sum(table[0])))
    return result


def side_channel_level(Q: FloatArray, prior: Prior, attributes: Sequence[int]) -> float:
    """Return the least ε for which Q is ε-SRLIP, in nats, directly from the definition; inf if there is none.

    Funnel, Definition 3: max |ln P(y|s,x_J) / P(y|x_J)| over every y, s, J and x_J that occur.
    """
    joint = np.array(prior.joint, dtype=float).reshape(prior.secrets, *attributes, 1)
    conditional = Q.reshape(1, *attributes, -1)
    worst, axes = 0.0, range(1, len(attributes) + 1)
    for size in range(len(attributes) + 1):
        for unknown in combinations(axes, size):
            outcomes = (joint * conditional).sum(axis=unknown, keepdims=True)
            masses = joint.sum(axis=unknown, keepdims=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                of_secret = (
                    outcomes / masses
                )  # P(y | s, x_J); nan if s does not occur together with x_J
                average = outcomes.sum(axis=0) / masses.sum(axis=0)
                logs = np.abs(np.log(of_secret / average))
            worst = max(worst, float(np.nanmax(logs, initial=0.0)))
    return worst if math.isfinite(worst) else math.inf
