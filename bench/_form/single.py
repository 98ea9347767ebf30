# SPDX-License-Identifier: Apache-2.0
"""One question: what a prior gains, and what a wish gains, in the variance of the wanted figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.mechanisms import DenseMechanism

WANTED = ("shares", "mean", "distribution")


@dataclass(frozen=True)
class Gain:
    """Variance at n = 1 of wanted figures with a design for them, and with another design."""

    value: float
    baseline: float

    @property
    def ratio(self) -> float:
        """The other variance divided by ours."""
        return self.baseline / self.value


def priors(choices: int) -> list[tuple[int, ...]]:
    """Return counts that differ from even ones: 1/rank, halves, and most in the middle."""
    middle = tuple(1 + min(x, choices - 1 - x) for x in range(choices))
    ranks = tuple(840 // (x + 1) for x in range(choices))
    return [ranks, tuple(2 ** (choices - 1 - x) for x in range(choices)), middle]


def gain(
    prior: Sequence[int], other_prior: Sequence[int], epsilon: str, wanted: str, other: str
) -> Gain:
    """Compare the design for `wanted` at a prior with that for `other` at another; both at `prior`."""
    rows = _rows(wanted, len(prior))
    designs = (_designed(prior, epsilon, wanted), _designed(other_prior, epsilon, other))
    return Gain(*(_variance(mechanism, prior, rows) for mechanism in designs))


def _rows(wanted: str, choices: int) -> np.ndarray:
    if wanted == "shares":
        return np.eye(choices, dtype=int)
    if wanted == "mean":
        return np.arange(choices)[None, :]
    return np.tril(np.ones((choices, choices), dtype=int))[:-1]


def _designed(prior: Sequence[int], epsilon: str, wanted: str) -> DenseMechanism:
    rows = _rows(wanted, len(prior))
    request = DesignRequest(
        prior=Prior.from_rows([list(prior)]),
        claims=(Claim("ldp", level_for(Fraction(epsilon))),),
        targets=tuple(tuple(Fraction(int(v)) for v in row) for row in rows),
        accept_unidentifiable=True,
    )
    mechanism = design(request).mechanism
    if not isinstance(mechanism, DenseMechanism):
        raise TypeError(f"expected a table, not {mechanism.kind}")
    return mechanism


def _variance(mechanism: DenseMechanism, prior: Sequence[int], rows: np.ndarray) -> float:
    """Return the sum of the rows' variances with the decoder of least variance at the prior."""
    law = np.array(mechanism.weights, dtype=float) / (1 << mechanism.bits)
    shares = np.array(prior, dtype=float) / sum(prior)
    information = (law / (shares @ law)) @ law.T
    spread = rows @ np.linalg.inv(information) @ rows.T
    return float(np.trace(spread) - ((rows @ shares) ** 2).sum())
