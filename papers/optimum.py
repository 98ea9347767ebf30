# SPDX-License-Identifier: Apache-2.0
"""Most informative mechanisms from the design engine, with a limit on steps instead of time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from frankly_design.engine import DesignRequest, DesignResult, design
from frankly_design.notions.prior import Prior
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms.expansion import Mechanism, as_dense

from papers.channel import FloatArray

GAP = 1e-3


@dataclass(slots=True)
class Steps:
    """Time-out after `remaining` calls, so that a rerun gives the same bits on any machine."""

    remaining: int

    def __call__(self) -> bool:
        """Count one step; return True once the steps are used up."""
        self.remaining -= 1
        return self.remaining < 0


def most_informative(
    prior: Prior, claims: Sequence[Claim], steps: int, gap: float = GAP
) -> DesignResult:
    """Return a design that maximises I(X; Y).

    If the steps run out before optimality is proven, the bound is loose, but the mechanism keeps
    its claims.

    Raises InvalidInput like `design`.
    """
    return design(
        DesignRequest(
            prior,
            tuple(claims),
            objective="information",
            accept_identity=True,
            accept_unidentifiable=True,
            limits=Limits(gap=gap, out_of_time=Steps(steps)),
        )
    )


def weights_of(mechanism: Mechanism) -> tuple[tuple[int, ...], ...]:
    """Return the integer weights of a mechanism that can be written as a table.

    Raises TypeError for any other mechanism.
    """
    table = as_dense(mechanism)
    if table is None:
        raise TypeError("a table was expected")
    return table.weights


def table_of(mechanism: Mechanism) -> FloatArray:
    """Return Q(y|x) as floats, shape (answers, reports), rows summing to 1."""
    table = np.array(weights_of(mechanism), dtype=float)
    return np.asarray(table / table.sum(axis=1, keepdims=True))
