# SPDX-License-Identifier: Apache-2.0
"""Item 3, LIP with a ceiling, which the wizard recommends: certified optima up to 16 answers."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from frankly_design.notions import promises
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.prior import Prior

from _design.designs import designed, request
from _design.row import Progress, Row

ANSWERS, QUICK_ANSWERS = (6, 7, 8, 9, 10, 11, 12, 16), (7, 10)
SECRETS, EPSILON, CEILING = 4, Fraction("0.5"), Fraction("2.9957")
LIMIT_S, MANY_LIMIT_S = 20.0, 60.0
_SEED = 31
_MANY_ANSWERS, _LARGEST_GAP = 16, 0.03


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line for each objective and number of answers."""
    for answers in QUICK_ANSWERS if quick else ANSWERS:
        counts = np.random.default_rng([_SEED, answers, 0]).integers(1, 400, (SECRETS, answers))
        prior = Prior.from_rows(counts.tolist())
        claims = [promises.promise("lip", prior, EPSILON), answer_ldp(CEILING)]
        for objective in ("variance", "information"):
            many = answers >= _MANY_ANSWERS
            limit_s = MANY_LIMIT_S if many else LIMIT_S
            run = designed(request(prior, claims, objective), limit_s)
            design = run.design
            gap = None if design.gap is None else design.gap / design.value
            progress(f"{answers} answers, {objective}: {run.seconds:.1f} s")
            yield Row(
                item=3,
                case=f"LIP {float(EPSILON)} with a ceiling of {float(CEILING)}, {answers} × {SECRETS}, {objective}",
                value=design.value,
                bound=design.bound,
                gap=gap,
                seconds=run.seconds,
                baseline="",
                baseline_value=None,
                baseline_seconds=None,
                limit=f"gap ≤ {_LARGEST_GAP:.0%} in {limit_s:g} s"
                if many
                else f"certified in {limit_s:g} s",
                holds=run.seconds <= limit_s
                and (gap is not None and gap <= _LARGEST_GAP if many else design.certified),
            )
