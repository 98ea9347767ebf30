# SPDX-License-Identifier: Apache-2.0
"""How far fake reports can move an estimate: nothing prevents lying, so the reach of it is stated (DESIGN §6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.estimate.decoder import Decoder

Values = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Poisoning:
    """Per target, by how much the honest reports' estimate may lie below (`up`) or above (`down`) the one shown.

    up : the fakes may have pushed the estimate up by this much. None where the target is not identifiable.
    """

    up: Values
    down: Values


def poisoning(found: Decoder, estimates: Sequence[Fraction | None], beta: Fraction) -> Poisoning:
    """Return the reach of a share `beta` of all received reports being fake, for the estimates as observed.

    With honest estimate h the one shown is (1−β)h + β·v for an attack of mean decoder value v, and v lies between the
    smallest and the largest entry of the target's row. So shown − h = β/(1−β)·(v − shown), at most
    β/(1−β)·(max_y V[t,y] − shown) and at least β/(1−β)·(min_y V[t,y] − shown); both are reached by fakes that all send
    that report.
    """
    odds = beta / (1 - beta)
    up: list[float | None] = []
    down: list[float | None] = []
    for row, shown in zip(found.rows, estimates, strict=True):
        if row is None or shown is None:
            up.append(None)
            down.append(None)
        else:
            up.append(float(odds * (max(row) - shown)))
            down.append(float(odds * (shown - min(row))))
    return Poisoning(tuple(up), tuple(down))


def checked_beta(value: object, field: str = "beta") -> Fraction:
    """Return the share of fakes, in [0, 1), exactly. Raises InvalidInput(field_type)."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 <= value < 1:
        raise InvalidInput(Problem.FIELD_TYPE, "give the share of fake reports, from 0 to below 1", field)
    return Fraction(value)
