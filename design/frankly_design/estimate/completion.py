# SPDX-License-Identifier: Apache-2.0
"""Relative completion of a form's parts: whether reports show them as often as devices draw them.

A device draws the plan of its report before anybody answers, with published chances. If giving up
does not depend on the plan, the reports show every part as often as its chance says
(docs/maths/forms.md, claim 11). Only the proportions can be known: how many plans were drawn is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.intervals import Variance, score
from frankly_design.estimate.margins import normal_quantile
from frankly_design.kinds.parts import chance_shown
from frankly_design.numeric.lazy import special

LEAST_EXPECTED: Final = 5
"""Cells with fewer expected reports are left out of the test, because χ² is too far from its law
[Cochran 1954]."""
_SHARE: Final = Variance(0, 1, 1)  # n times the variance of a share θ: θ − θ²

Shown = Sequence[Mapping[int, int]]
"""For each part, the number of reports of each component that show it."""


@dataclass(frozen=True, slots=True)
class PartCompletion:
    """One part's completion.

    n : number of reports that show it. chance : that a plan has the part. relative : n over the
    number that is expected if giving up does not depend on the plan. ends : interval of `relative`.
    """

    n: int
    chance: float
    relative: float
    ends: Ends


@dataclass(frozen=True, slots=True)
class Completion:
    """Completion of a form's parts, and the χ² test that giving up does not depend on the plan.

    statistic, freedom, p : None if there are too few reports, or if all plans have the same parts.
    """

    parts: tuple[PartCompletion, ...]
    statistic: float | None
    freedom: int | None
    p: float | None


def completion(form: AgreementMechanism, shown: Shown, n: int, level: float) -> Completion:
    """Return the completion of the parts of `n` ≥ 1 reports; intervals hold at `level`."""
    z, parts = normal_quantile(level), []
    for i, counts in enumerate(shown):
        count, exact = sum(counts.values()), chance_shown(form, (i,))
        chance = float(exact)
        low, high = score(count / n, n, _SHARE, z) if exact < 1 else (1.0, 1.0)
        ends = low / chance, high / chance
        parts.append(PartCompletion(count, chance, count / n / chance, ends))
    statistic, freedom = _statistic(form, shown, n)
    if not freedom:
        return Completion(tuple(parts), None, None, None)
    p = float(special.chdtrc(freedom, statistic))
    return Completion(tuple(parts), statistic, freedom, p)


def draws_one(form: AgreementMechanism) -> bool:
    """Return True if every plan has a single part."""
    return all(len(component.slots) == 1 for component in form.components)


def kept(form: AgreementMechanism, shown: Shown, level: float) -> tuple[float, ...]:
    """Return lower bounds of the completion of each part, relative to the one completed most often.

    form : one that `draws_one`. Then the number of reports about a part, given those about it or
    another one, is binomial, and its exact lower bound holds at `level` [Clopper and Pearson 1934].
    The part that is completed most often is among the others or is this one, so the least of the
    bounds of all pairs is too large no more often than a single one.
    """
    counts = np.array([sum(of_part.values()) for of_part in shown])
    chances = np.array([float(chance_shown(form, (i,))) for i in range(len(shown))])
    some = counts[:, None] > 0
    low = special.betaincinv(
        np.where(some, counts[:, None], 1), np.where(some, counts, 0) + 1, 1 - level
    )
    # A bound b of the share among the two is one of b / (1 − b) of their ratio.
    ratios = np.where(some, low / (1 - low), 0.0) * chances / chances[:, None]
    np.fill_diagonal(ratios, 1.0)
    return tuple(map(float, np.minimum(ratios.min(axis=1), 1.0)))


def _statistic(form: AgreementMechanism, shown: Shown, n: int) -> tuple[float, int]:
    """Return Pearson's statistic of the components, plus that of the parts within each of them.

    Given its component, a report shows `pick` of the parts of each pool, drawn without replacement.
    """
    sizes = [
        sum(shown[part].get(c, 0) for part in component.pools[0].parts) // component.pools[0].pick
        for c, component in enumerate(form.components)
    ]
    common = [
        c
        for c, component in enumerate(form.components)
        if n * component.chance >= LEAST_EXPECTED << form.bits
    ]
    total, weight = sum(sizes[c] for c in common), sum(form.components[c].chance for c in common)
    if not total:
        return 0.0, 0
    statistic, freedom = 0.0, len(common) - 1
    for c in common:
        expected = total * form.components[c].chance / weight
        statistic += (sizes[c] - expected) ** 2 / expected
        for pool in form.components[c].pools:
            size = len(pool.parts)
            if sizes[c] * min(pool.pick, size - pool.pick) < LEAST_EXPECTED * size:
                continue
            expected = sizes[c] * pool.pick / size
            squares = sum((shown[part].get(c, 0) - expected) ** 2 for part in pool.parts)
            statistic += squares * (size - 1) / (expected * (size - pool.pick))
            freedom += size - 1
    return statistic, freedom
