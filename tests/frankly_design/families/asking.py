# SPDX-License-Identifier: Apache-2.0
"""Requests for a family in JSON, and mechanisms as matrices."""

import json
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
from frankly_design.requests.design import design_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.mechanisms import KINDS, Mechanism, columns
from numpy.typing import NDArray

Floats = NDArray[np.float64]

JOINT = [[40, 110, 210, 140], [90, 80, 60, 20]]
ROBUST = {"order": 2, "n": 750, "beta": "0.05"}


def ask(mechanism: str, joint: Any = JOINT, **options: Any) -> dict[str, Any]:
    request = {"prior": {"joint": joint}, "mechanism": mechanism, **options}
    return design_json(parse_json(json.dumps(request).encode(), decimals=True))


def mechanism_of(response: dict[str, Any]) -> Mechanism:
    params = response.get("params") or {"bits": response["bits"], "weights": response["weights"]}
    return KINDS[response["kind"]].from_params(params)


def exact(mechanism: Mechanism) -> list[list[Fraction]]:
    """Return Q as fractions, with row = truth."""
    return [list(row) for row in zip(*columns(mechanism).values(), strict=True)]


def floats(mechanism: Mechanism) -> Floats:
    return np.array([[float(v) for v in row] for row in exact(mechanism)])


def lip_of(Q: Floats, joint: Any) -> float:
    """Return LIP in nats, computed from its definition."""
    P = np.array(joint, dtype=float)
    conditional = (P / P.sum(axis=1, keepdims=True)) @ Q
    average = P.sum(axis=0) / P.sum() @ Q
    positive = average > 0
    with np.errstate(divide="ignore"):
        return float(np.max(np.abs(np.log(conditional[:, positive] / average[positive]))))


def grr_matrix(size: int, alpha: float) -> Floats:
    Q = np.ones((size, size))
    np.fill_diagonal(Q, exp(alpha))
    return np.asarray(Q / Q.sum(axis=1, keepdims=True), dtype=np.float64)
