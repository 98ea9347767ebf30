# SPDX-License-Identifier: Apache-2.0
"""Parser of plausible truths: a list of distributions, or a ball around one distribution."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_design.notions.prior import Prior
from frankly_design.notions.truths import Truths
from frankly_design.numeric.arrays import FloatArray

MAX_TRUTHS: Final = 64


def read_truths(value: Any, prior: Prior) -> Truths | None:
    """Parse plausible truths: None, a list of truths, or a ball {"around", "radius"}.

    A truth is "prior", "even", or a row of counts or shares.

    {"around": a truth, "radius": r} is the contamination ball: all q = (1 − r)·centre + r·e with
    any distribution e, so a share r of the people may answer anything.

    Raises InvalidInput, naming the field.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        ball = REQUEST.record(value, "truths", {"around", "radius"})
        centre, radius = _point(ball["around"], prior, "truths.around"), _radius(ball["radius"])
        return Truths((1 - radius) * centre + radius * np.eye(prior.answers), mixed=True)
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_TRUTHS:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f'give 1 to {MAX_TRUTHS} truths, or {{"around": "prior", "radius": "0.2"}}',
            "truths",
        )
    points = np.array([_point(entry, prior, f"truths[{i}]") for i, entry in enumerate(value)])
    for x, largest in enumerate(points.max(axis=0)):
        if largest == 0:
            raise InvalidInput(
                Problem.PRIOR_VALUE,
                f"no truth gives mass to answer {x}: give it mass in one of the truths",
                "truths",
            )
    return Truths(points)


def _point(value: Any, prior: Prior, field: str) -> FloatArray:
    if value == "prior":
        return prior.probabilities()
    if value == "even":
        return np.full(prior.answers, 1 / prior.answers)
    if not isinstance(value, list | tuple) or len(value) != prior.answers:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f'give "prior", "even", or {prior.answers} counts or shares, one per answer',
            field,
        )
    return Prior.from_rows([value], field).probabilities()


def _radius(value: Any) -> float:
    text = value if isinstance(value, str) and len(value) <= 40 and value.isascii() else ""
    is_decimal = text.replace(".", "", 1).isdigit()
    radius = REQUEST.number(Decimal(value) if is_decimal else value, "truths.radius")
    if not Decimal("0.001") <= radius <= 1:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            "the radius is the share of people who may answer anything: 0.001 to 1",
            "truths.radius",
        )
    return float(radius)
