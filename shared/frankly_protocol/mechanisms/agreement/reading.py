# SPDX-License-Identifier: Apache-2.0
"""Reads the parts, components and covers of a form from their JSON form, and checks them."""

from collections.abc import Mapping
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement.component import Component, Pool
from frankly_protocol.mechanisms.agreement.cover import Cover
from frankly_protocol.mechanisms.agreement.limits import (
    MAX_COMPONENTS,
    MAX_GROUPED,
    MAX_PARTS,
    MAX_QUESTIONS,
    MAX_SCORE,
    MOST_CHOICES,
)
from frankly_protocol.mechanisms.base import (
    MAX_ANSWERS,
    MAX_REPORTS,
    invalid,
    mask_of,
    require_whole,
)

if TYPE_CHECKING:
    from frankly_protocol.mechanisms.agreement.mechanism import AgreementMechanism


def drawn_parts(
    params: Mapping[str, Any],
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[Component, ...]]:
    """Return the numbers of choices, the parts and the components that a form's parameters give.

    Raises InvalidInput(weights_invalid), naming the parameter.
    """
    choices = _whole_list(params["choices"], MAX_QUESTIONS, "choices", 2, MOST_CHOICES)
    parts = tuple(
        _whole_list(part, MAX_GROUPED, f"parts[{i}]")
        for i, part in enumerate(_list(params["parts"], MAX_PARTS, "parts"))
    )
    components = tuple(
        _component(entry, choices, parts, f"components[{i}]")
        for i, entry in enumerate(_list(params["components"], MAX_COMPONENTS, "components"))
    )
    return choices, parts, components


def _list(value: object, most: int, field: str) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise invalid(f"expected a list of 1 to {most} entries", field)
    return value


def _whole_list(
    value: object, most: int, field: str, low: int = 0, high: int = MAX_INT
) -> tuple[int, ...]:
    numbers = _list(value, most, field)
    for i, number in enumerate(numbers):
        require_whole(number, low, high, f"{field}[{i}]")
    return tuple(numbers)


def _component(
    value: object, choices: tuple[int, ...], parts: tuple[tuple[int, ...], ...], where: str
) -> Component:
    data = _record(value, ("chance", "threshold", "pools"), where)
    pools = tuple(
        _pool(entry, choices, parts, f"{where}.pools[{j}]")
        for j, entry in enumerate(_list(data["pools"], MAX_QUESTIONS, f"{where}.pools"))
    )
    require_whole(data["threshold"], 1, MAX_INT, f"{where}.threshold")
    return Component(data["chance"], data["threshold"], pools)


def _pool(
    value: object, choices: tuple[int, ...], parts: tuple[tuple[int, ...], ...], where: str
) -> Pool:
    data = _record(value, ("parts", "pick", "score", "cover"), where)
    numbers = _whole_list(data["parts"], MAX_PARTS, f"{where}.parts")
    # The cover is read for the answers of the first part; the mechanism checks that all parts have
    # the same number of answers.
    questions = parts[numbers[0]] if numbers[0] < len(parts) else ()
    answers = prod(choices[q] for q in questions if q < len(choices))
    if not 2 <= answers <= MAX_ANSWERS:
        raise invalid("the first part must have 2 to 256 joint answers", f"{where}.parts")
    require_whole(data["pick"], 1, MAX_QUESTIONS, f"{where}.pick")
    require_whole(data["score"], 1, MAX_SCORE, f"{where}.score")
    try:
        return Pool(numbers, data["pick"], _cover(data["cover"], answers), data["score"])
    except InvalidInput as error:
        raise invalid(error.detail, f"{where}.{error.field}") from None


def _cover(value: object, answers: int) -> Cover:
    if type(value) is int:
        return Cover(answers, value)
    listed = []
    for i, entry in enumerate(_list(value, MAX_REPORTS, "cover")):
        if not isinstance(entry, list) or len(entry) != 2:
            raise invalid("expected [set as hex digits, weight]", f"cover[{i}]")
        require_whole(entry[1], 1, MAX_INT, f"cover[{i}]")
        try:
            listed.append((mask_of(entry[0], answers, "cover"), entry[1]))
        except InvalidInput:
            digits = -(-answers // 4)
            raise invalid(
                f"a set of these answers is {digits} lower-case hex digits, no higher bit set",
                f"cover[{i}]",
            ) from None
    return Cover(answers, None, tuple(listed))


def _record(value: object, keys: tuple[str, ...], where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or set(map(str, value)) != set(keys):
        raise invalid(f"expected an object with {', '.join(keys)}", where)
    return value


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
