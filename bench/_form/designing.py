# SPDX-License-Identifier: Apache-2.0
"""Designs within a limit of CPU time, so that other work on the machine changes no result."""

import time
from collections.abc import Sequence
from fractions import Fraction

from frankly_design.form import FormDesign, FormQuestion, FormRequest, design_form
from frankly_design.tables.limits import Limits


def even(sizes: Sequence[int]) -> list[FormQuestion]:
    """Return questions with these numbers of choices, equally likely."""
    return [FormQuestion((1,) * choices) for choices in sizes]


def designed(
    questions: Sequence[FormQuestion],
    epsilon: str,
    pairs: tuple[tuple[int, int], ...] = (),
    limit_s: float = 10,
) -> tuple[FormDesign, float]:
    """Return a form and the CPU seconds of its design."""
    start = time.process_time()
    limits = Limits.within(limit_s, time.process_time)
    design = design_form(FormRequest(tuple(questions), Fraction(epsilon), pairs, limits))
    return design, time.process_time() - start
