# SPDX-License-Identifier: Apache-2.0
"""Reading plausible truths: a list of shares, or a ball around one of them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.linear import FloatArray
from frankly_server.design.prior import Prior
from frankly_server.design.variance.truths import Truths
from frankly_server.records import number, record

MOST_TRUTHS: Final = 64


def read_truths(value: Any, prior: Prior) -> Truths | None:
    """Read plausible truths: None; a list of "prior", "even" and rows of counts or shares; or {"around", "radius"}.

    {"around": a truth, "radius": r} is the contamination ball: a share r of the people may answer anything,
    q = (1 − r)·centre + r·e for every distribution e.

    Raises InvalidInput, naming the field.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        ball = record(value, {"around", "radius"}, field="truths")
        centre, radius = _point(ball["around"], prior, "truths.around"), _radius(ball["radius"])
        return Truths((1 - radius) * centre + radius * np.eye(prior.answers), mixed=True)
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_TRUTHS:
        words = f'give 1 to {MOST_TRUTHS} truths, or {{"around": "prior", "radius": "0.2"}}'
        raise InvalidInput(Problem.FIELD_TYPE, words, "truths")
    points = np.array([_point(entry, prior, f"truths[{i}]") for i, entry in enumerate(value)])
    for x, most in enumerate(points.max(axis=0)):
        if most == 0:
            words = f"no truth gives mass to answer {x}: nothing would be known about it; give it some in one of them"
            raise InvalidInput(Problem.PRIOR_VALUE, words, "truths")
    return Truths(points)


def _point(value: Any, prior: Prior, field: str) -> FloatArray:
    if value == "prior":
        return prior.probabilities()
    if value == "even":
        return np.full(prior.answers, 1 / prior.answers)
    if not isinstance(value, list | tuple) or len(value) != prior.answers:
        words = f'give "prior", "even", or {prior.answers} counts or shares, one per answer'
        raise InvalidInput(Problem.PRIOR_SHAPE, words, field)
    return Prior.from_rows([value], field).probabilities()


def _radius(value: Any) -> float:
    text = isinstance(value, str) and len(value) <= 40 and value.isascii() and value.replace(".", "", 1).isdigit()
    read = number(Decimal(value) if text else value, "truths.radius")
    if not Decimal("0.001") <= read <= 1:
        words = "the radius is the share of people who may answer anything: 0.001 to 1"
        raise InvalidInput(Problem.FIELD_TYPE, words, "truths.radius")
    return float(read)
