# SPDX-License-Identifier: Apache-2.0
"""Timed designs for any objective, with a time limit; optima need not be identifiable."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from frankly_design.engine import DesignRequest, DesignResult, design
from frankly_design.notions.prior import Prior
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim
from frankly_protocol.mechanisms import DenseMechanism

from _design.definitions import FloatArray

GAP = 1e-6


@dataclass(frozen=True)
class Measured:
    """A design and the seconds it took."""

    design: DesignResult
    seconds: float


def request(prior: Prior, claims: Sequence[Claim], objective: str) -> DesignRequest:
    """Return a request without limits."""
    return DesignRequest(
        prior, tuple(claims), objective=objective, accept_identity=True, accept_unidentifiable=True
    )


def designed(request: DesignRequest, limit_s: float) -> Measured:
    """Design; stop after `limit_s` seconds with the best table so far and its bound."""
    start = time.perf_counter()
    limits = Limits.within(limit_s, time.perf_counter, gap=GAP)
    return Measured(design(replace(request, limits=limits)), time.perf_counter() - start)


def table(mechanism: DenseMechanism) -> FloatArray:
    """Return Q(y|x) of a mechanism with whole-number weights, shape (answers, reports)."""
    return np.array(mechanism.weights, dtype=np.float64) / mechanism.denominator
