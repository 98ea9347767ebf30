# SPDX-License-Identifier: Apache-2.0
"""Bounds on the effect of fake reports, which cannot be prevented (spec 8.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

Values = tuple[float | None, ...]
Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Poisoning:
    """Largest possible shifts of each estimate due to fake reports.

    An entry is None if its target is not identifiable or there are no reports.

    up : the largest amount by which fakes may have raised the estimate; the estimate without fakes
        may be that much lower.
    down : the largest amount by which fakes may have lowered the estimate.
    """

    up: Values
    down: Values


def poisoning(
    ends: Sequence[Ends | None], estimates: Sequence[Fraction | None], beta: Fraction
) -> Poisoning:
    """Return the largest shifts of the observed estimates if a share `beta` of all reports is fake.

    ends : the least and the largest decoded value of a report, per target.

    If h is the estimate without fakes, the observed estimate is (1−β)h + β·v, where v is the mean
    decoded value of the fakes, which is between the ends. So observed − h = β/(1−β)·(v − observed),
    which is at most β/(1−β)·(max − observed) and at least β/(1−β)·(min − observed). Fakes that all
    send an extreme report attain these bounds.
    """
    odds = beta / (1 - beta)
    up: list[float | None] = []
    down: list[float | None] = []
    for reach, observed in zip(ends, estimates, strict=True):
        if reach is None or observed is None:
            up.append(None)
            down.append(None)
        else:
            up.append(float(odds * (reach[1] - observed)))
            down.append(float(odds * (observed - reach[0])))
    return Poisoning(tuple(up), tuple(down))


def checked_beta(value: object, field: str = "beta") -> Fraction:
    """Return the share of fakes, in [0, 1), as a Fraction. Raises InvalidInput(field_type)."""
    # At β = 1 no genuine report is left, and the odds β/(1−β) are infinite.
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 <= value < 1:
        raise InvalidInput(
            Problem.FIELD_TYPE, "give the share of fake reports, from 0 to below 1", field
        )
    return Fraction(value)
