# SPDX-License-Identifier: Apache-2.0
"""Joint tables that a form's mechanism can estimate, and sentences about a form's design."""

from collections.abc import Sequence
from itertools import combinations
from math import ceil, floor
from typing import Final

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_design.kinds.parts import part_table
from frankly_design.numeric import rational

_MOST_NAMED: Final = 8
_LEAST_GAIN: Final = 0.5
"""Least difference from a known method that is stated, in per cent."""
_ONE: Final = 1.005
"""Largest mean number of questions that is called one."""


def estimable_pairs(form: AgreementMechanism) -> list[tuple[int, int]]:
    """Return the pairs of questions whose joint table can be estimated."""
    pairs = combinations(range(len(form.choices)), 2)
    known: dict[tuple[object, ...], bool] = {}  # shared by pairs that are drawn in the same way
    estimable = []
    for pair in pairs:
        parts = _parts_of(form, pair)
        alike = (*(form.choices[i] for i in pair), len(parts), *_pools(form, parts))
        if alike not in known:
            known[alike] = any(is_estimable(form, group) for group in parts)
        if known[alike]:
            estimable.append(pair)
    return estimable


def comparable_pairs(document: SurveyDocument) -> list[tuple[str, str]]:
    """Return the pairs of questions, by id, whose joint table can be estimated, in the document's order."""
    barred: set[tuple[str, str]] = set()
    for block in document.blocks:
        if block.form is not None:
            ids = [question.id for question in block.questions]
            possible = {(ids[i], ids[j]) for i, j in estimable_pairs(block.form)}
            barred |= set(combinations(ids, 2)) - possible
    asked = [name for name, question in document.questions.items() if not question.is_repeated]
    return [pair for pair in combinations(asked, 2) if pair not in barred]


def excess_in_words(value: float, bound: float) -> str:
    """Return the sentence that bounds the excess of a form's variance over the best possible."""
    # rounding: up. Certificates only describe the design; no privacy decision depends on them.
    percent = ceil((value / bound - 1) * 1000) / 10
    return f"The variance that the form is designed for is at most {percent:g} % above the best possible."


def gain_in_words(value: float, known: float, drawn: float) -> str:
    """Return the sentence that compares a form's variance with that of the best known method.

    known : positive and finite. drawn : the mean number of questions that a report of it is about.
    """
    # rounding: against the form, so that no gain is overstated and no loss understated.
    percent = floor((1 - value / known) * 1000) / 10
    more = ceil((value / known - 1) * 1000) / 10
    how = (
        "one question drawn at random"
        if drawn < _ONE
        else f"{drawn:.1f} questions drawn on average, and randomised together"
    )
    compared = f"the same, within {_LEAST_GAIN:g} %, as with"
    if percent >= _LEAST_GAIN:
        compared = f"{percent:g} % lower than with"
    elif more > _LEAST_GAIN:
        compared = f"{more:g} % higher than with"
    return (
        f"The variance that the form is designed for is {compared} the best method known to us for the same "
        f"questions: {how}."
    )


def joint_tables_in_words(pairs: Sequence[tuple[int, int]], names: Sequence[str]) -> str:
    """Return the sentence that names the joint tables of two questions that can be estimated."""
    every = len(names) * (len(names) - 1) // 2
    if not pairs:
        return (
            "No joint table of two questions can be estimated: name the pairs (“Compare two questions”, or "
            "cross_tables in the file)."
        )
    if len(pairs) == every:
        return "The joint table of any two questions can be estimated."
    tables = [" × ".join(names[i] for i in pair) for pair in pairs[:_MOST_NAMED]]
    unnamed = len(pairs) - len(tables)
    listed = ", ".join(tables) + (f" and {unnamed} more" if unnamed else "")
    return f"Of two questions, only these joint tables can be estimated: {listed}."


def _parts_of(form: AgreementMechanism, pair: tuple[int, int]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of parts that show both questions.

    Each part with both questions is a group. If there is no such part, the two parts with one
    question each are the only group.
    """
    whole = [part for part, questions in enumerate(form.parts) if set(pair) <= set(questions)]
    if whole:
        return tuple((part,) for part in whole)
    single = [form.parts.index((question,)) for question in pair if (question,) in form.parts]
    return (tuple(single),) if len(single) == len(pair) else ()


def _pools(
    form: AgreementMechanism, groups: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int | None, ...], ...]:
    """Return, for each part of the groups, the index of its pool in each component."""
    return tuple(
        tuple(
            next((i for i, pool in enumerate(component.pools) if part in pool.parts), None)
            for component in form.components
        )
        for parts in groups
        for part in parts
    )


def is_estimable(form: AgreementMechanism, parts: tuple[int, ...]) -> bool:
    """Return True if every cell of the joint table of these parts can be estimated."""
    try:
        table = part_table(form, parts)
    except InvalidInput:
        return False
    return rational.least_rank(table.weights) == table.answers
