# SPDX-License-Identifier: Apache-2.0
"""Checks of the parts and components of a form."""

from itertools import chain
from typing import TYPE_CHECKING

from frankly_protocol.mechanisms.agreement.component import Component
from frankly_protocol.mechanisms.agreement.limits import MAX_GROUPED, MAX_PARTS, MAX_SCORE
from frankly_protocol.mechanisms.base import MAX_ANSWERS, invalid, require_whole

if TYPE_CHECKING:
    from frankly_protocol.mechanisms.agreement.mechanism import AgreementMechanism


def require_parts(form: "AgreementMechanism") -> None:
    """Raise InvalidInput(weights_invalid) unless the parts name the questions of a form."""
    if not 1 <= len(form.parts) <= MAX_PARTS:
        raise invalid(f"a form has 1 to {MAX_PARTS} parts", "parts")
    for i, part in enumerate(form.parts):
        where = f"parts[{i}]"
        if not 1 <= len(part) <= MAX_GROUPED or list(part) != sorted(set(part)):
            raise invalid(f"a part names 1 to {MAX_GROUPED} different questions, in order", where)
        if part[-1] >= len(form.choices):
            raise invalid("there is no such question", where)
        if form.answers_of(i) > MAX_ANSWERS:
            raise invalid(f"a part has at most {MAX_ANSWERS} joint answers", where)
    # Two equal parts would be two names for the same table.
    if len(set(form.parts)) < len(form.parts):
        raise invalid("the parts must differ", "parts")
    if set(chain.from_iterable(form.parts)) != set(range(len(form.choices))):
        raise invalid("every question must be in some part", "parts")


def require_component(form: "AgreementMechanism", component: Component, where: str) -> None:
    """Raise InvalidInput(weights_invalid) unless a component draws parts of the form."""
    require_whole(component.chance, 1, 1 << form.bits, f"{where}.chance")
    questions: list[int] = []
    for j, pool in enumerate(component.pools):
        place = f"{where}.pools[{j}]"
        if not pool.parts or list(pool.parts) != sorted(set(pool.parts)):
            raise invalid("a pool names different parts, in order", f"{place}.parts")
        require_whole(pool.pick, 1, len(pool.parts), f"{place}.pick")
        require_whole(pool.score, 1, MAX_SCORE, f"{place}.score")
        if pool.parts[-1] >= len(form.parts):
            raise invalid("there is no such part", f"{place}.parts")
        questions_of_pool = [question for part in pool.parts for question in form.parts[part]]
        # The parts of a pool that draws only one may share questions.
        questions += set(questions_of_pool) if pool.pick == 1 else questions_of_pool
        for part in pool.parts:
            if form.answers_of(part) != pool.cover.answers:
                raise invalid(
                    "the parts of a pool have as many answers as its cover", f"{place}.parts"
                )
    # If a question were in two parts that are drawn together, their scores would be dependent.
    if len(set(questions)) < len(questions):
        raise invalid("a component names a question once", f"{where}.pools")
    most = sum(pool.score for pool in component.slots)
    # A threshold above the largest score would be met by no outcome.
    require_whole(component.threshold, 1, most, f"{where}.threshold")
