# SPDX-License-Identifier: Apache-2.0
"""Sentences about a form for its admin, before and after publishing."""

from itertools import combinations
from math import ceil
from typing import Final

from frankly_protocol.blocks import Block
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_server import rational
from frankly_server.forms import are_told_together, part_table

_MOST_NAMED: Final = 8
_MOST_CELLS: Final = 64
"""Largest number of cells of a joint table whose rank is computed: larger ones are only named as drawn together."""


def form_notes(block: Block) -> tuple[str, ...]:
    """Return sentences about a form, none for other blocks."""
    form = block.mechanism
    if not isinstance(form, AgreementMechanism):
        return ()
    low, high = form.questions_drawn
    number = str(low) if low == high else f"{low} to {high}"
    notes = [
        f"Each report is about {number} of its {len(form.choices)} questions, drawn at random."
    ]
    if len(form.choices) > 1:
        notes.append(_joint_tables(block, form))
    certificate = block.certificate
    if certificate is not None and certificate.bound is not None and float(certificate.bound) > 0:
        # rounding: certificates inform about the design; no privacy decision reads them.
        excess = float(certificate.value) / float(certificate.bound) - 1
        notes.append(
            f"The variance of what is wanted is at most {ceil(excess * 1000) / 10:g} % above the best possible."
        )
    return tuple(notes)


def _joint_tables(block: Block, form: AgreementMechanism) -> str:
    told = [pair for pair in combinations(range(len(form.choices)), 2) if _is_told(form, pair)]
    every = len(form.choices) * (len(form.choices) - 1) // 2
    if not told:
        return "It tells no joint table of two questions: name those you want in cross_tables."
    if len(told) == every:
        return "It tells the joint table of any two questions."
    names = [" × ".join(block.questions[i].id for i in pair) for pair in told[:_MOST_NAMED]]
    unnamed = len(told) - len(names)
    listed = ", ".join(names) + (f" and {unnamed} more" if unnamed else "")
    return f"It tells the joint tables of {listed}, and of no other two questions."


def _is_told(form: AgreementMechanism, pair: tuple[int, int]) -> bool:
    """Return True if all cells of a pair's joint table can be estimated."""
    whole = [part for part, questions in enumerate(form.parts) if set(pair) <= set(questions)]
    single = [form.parts.index((question,)) for question in pair if (question,) in form.parts]
    groups: list[tuple[int, ...]] = [(part,) for part in whole]
    if not groups and len(single) == len(pair):
        groups = [tuple(single)]
    for parts in groups:
        if not are_told_together(form, parts):
            continue
        cells = form.choices[pair[0]] * form.choices[pair[1]]
        try:
            table = part_table(form, parts)
        except InvalidInput:
            continue
        if cells > _MOST_CELLS or rational.rank(table.weights) == table.answers:
            return True
    return False
