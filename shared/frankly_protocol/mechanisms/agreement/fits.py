# SPDX-License-Identifier: Apache-2.0
"""Chances that a report of a form fits an answer to one of its questions, exactly."""

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from frankly_protocol.mechanisms.agreement.cover import Cover
from frankly_protocol.mechanisms.fit import SILENT, Fit, Range, enumerated, symmetric

if TYPE_CHECKING:
    from frankly_protocol.mechanisms.agreement.figures import FormFigures


def form_fits(mechanism: "FormFigures") -> list[Fit | None]:
    """Return the Fit of every question of a form; None where it would take too long to compute."""
    found: list[Fit | None] = [SILENT] * len(mechanism.choices)
    for component in mechanism.components:
        others, mean = component.totals[0], mechanism.mean_weight(component)
        for pool, (agreeing, other) in zip(component.pools, component.others, strict=True):
            rest = others // (pool.cover.inside + pool.cover.outside)
            # Weight of one set per unit of its own weight, if it holds the truth and if not.
            held, missed = (
                mechanism.agree * n + mechanism.disagree * (rest - n) for n in (agreeing, other)
            )
            drawn = Fraction(component.chance * pool.pick, len(pool.parts) << mechanism.bits)
            of_place: dict[tuple[int, int], Fit | None] = {}
            for part in pool.parts:
                questions = mechanism.parts[part]
                for q in questions:
                    later = prod(mechanism.choices[p] for p in questions if p > q)
                    place = mechanism.choices[q], later
                    if place not in of_place:
                        of_place[place] = _slot(pool.cover, place, held, missed, mean)
                    found[q] = _added(found[q], of_place[place], drawn)
    return found


def _slot(cover: Cover, place: tuple[int, int], held: int, missed: int, mean: int) -> Fit | None:
    """Return the Fit of one drawn part with the given cover."""
    choices, later = place
    if cover.size is not None and choices == cover.answers:
        return symmetric(choices, cover.size, Fraction(cover.inside * held, mean))
    columns = (
        [weight * (held if mask >> x & 1 else missed) for x in range(cover.answers)]
        for mask, weight in zip(cover.masks, cover.weights, strict=True)
    )
    return enumerated(columns, choices, later, mean)


def _added(fit: Fit | None, slot: Fit | None, drawn: Fraction) -> Fit | None:
    """Return a Fit with that of one part that is drawn with a given chance."""
    if fit is None or slot is None:
        return None

    def plus(total: Range, own: Range) -> Range:
        return total[0] + drawn * own[0], total[1] + drawn * own[1]

    silent = plus(fit.silent, (slot.silent[0] - 1, slot.silent[1] - 1))
    is_joint = fit.is_joint or slot.is_joint
    return Fit(plus(fit.own, slot.own), plus(fit.other, slot.other), silent, is_joint)
