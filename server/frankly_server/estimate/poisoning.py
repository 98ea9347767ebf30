# SPDX-License-Identifier: Apache-2.0
"""How far fake reports can move an estimate: nothing prevents lying, so the reach of it is stated (DESIGN §6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

Values = tuple[float | None, ...]
Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Poisoning:
    """Per target, by how much the honest reports' estimate may lie below (`up`) or above (`down`) the one shown.

    up : the fakes may have pushed the estimate up by this much. None where the target is not identifiable.
    """

    up: Values
    down: Values


def poisoning(ends: Sequence[Ends | None], estimates: Sequence[Fraction | None], beta: Fraction) -> Poisoning:
    """Return the reach of a share `beta` of all received reports being fake, for the estimates as observed.

    ends : the least and the largest value one report decodes to, per target. With honest estimate h the one shown is
    (1−β)h + β·v for an attack of mean decoded value v, which lies between the ends. So shown − h = β/(1−β)·(v − shown),
    at most β/(1−β)·(max − shown) and at least β/(1−β)·(min − shown); both are reached by fakes that all send that
    report.
    """
    odds = beta / (1 - beta)
    up: list[float | None] = []
    down: list[float | None] = []
    for reach, shown in zip(ends, estimates, strict=True):
        if reach is None or shown is None:
            up.append(None)
            down.append(None)
        else:
            up.append(float(odds * (reach[1] - shown)))
            down.append(float(odds * (shown - reach[0])))
    return Poisoning(tuple(up), tuple(down))


def checked_beta(value: object, field: str = "beta") -> Fraction:
    """Return the share of fakes, in [0, 1), exactly. Raises InvalidInput(field_type)."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 <= value < 1:
        raise InvalidInput(Problem.FIELD_TYPE, "give the share of fake reports, from 0 to below 1", field)
    return Fraction(value)
