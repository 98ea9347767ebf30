# SPDX-License-Identifier: Apache-2.0
"""Exact laws: of a random function, by trying every value of every number that it draws, and of plans."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import TypeVar

import pytest
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Plan
from frankly_protocol.mechanisms.agreement import component as component_module
from frankly_protocol.mechanisms.agreement import mechanism as mechanism_module

T = TypeVar("T", bound=Hashable)


class _Wanted(Exception):
    def __init__(self, values: int) -> None:
        self.values = values


def draw_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let agreement mechanisms draw numbers below n from their source, instead of bits.

    Numbers below n are drawn by rejection, which a separate test covers; here each is tried once.
    """
    monkeypatch.setattr(mechanism_module, "draw", lambda bits, source: source(1 << bits))
    for module in (mechanism_module, component_module):
        monkeypatch.setattr(module, "draw_below", lambda n, source: source(n))


def law(run: Callable[[Callable[[int], int]], T]) -> dict[T, Fraction]:
    """Return the chance of each result of `run`, which draws numbers below n from its argument."""
    chances: defaultdict[T, Fraction] = defaultdict(Fraction)
    pending: list[tuple[list[int], Fraction]] = [([], Fraction(1))]
    while pending:
        prefix, chance = pending.pop()
        unread = iter(prefix)

        def number(values: int, unread: Iterator[int] = unread) -> int:
            for value in unread:
                return value
            raise _Wanted(values)

        try:
            result = run(number)
        except _Wanted as wanted:
            values = wanted.values
            pending += [([*prefix, value], chance / values) for value in range(values)]
            continue
        chances[result] += chance
    return chances


def plans_of(mechanism: AgreementMechanism) -> dict[Plan, Fraction]:
    """Return the published chance of every plan, from the definition."""
    plans = {}
    for number, component in enumerate(mechanism.components):
        picks = [list(combinations(pool.parts, pool.pick)) for pool in component.pools]
        every = list(product(*picks))
        for chosen in every:
            parts = tuple(part for pick in chosen for part in pick)
            chance = Fraction(component.chance, (1 << mechanism.bits) * len(every))
            plans[Plan(number, parts)] = chance
    return plans
