# SPDX-License-Identifier: Apache-2.0
"""A form as a mechanism: its parameters, and the draw of a report."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import accumulate, chain, combinations, product
from math import comb, prod
from typing import Any, ClassVar, NoReturn, Self, cast

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms.agreement.component import Component, Plan, Pool, pick_of
from frankly_protocol.mechanisms.agreement.figures import FormFigures
from frankly_protocol.mechanisms.agreement.limits import (
    MAX_CELLS,
    MAX_CHOICES,
    MAX_QUESTIONS,
    MOST_CHOICES,
    Truth,
)
from frankly_protocol.mechanisms.agreement.reading import (
    drawn_parts,
    require_component,
    require_parts,
)
from frankly_protocol.mechanisms.base import (
    MAX_BITS,
    MIN_BITS,
    RandomBits,
    draw,
    draw_below,
    invalid,
    require_keys,
    require_whole,
    unknown,
)
from frankly_protocol.problems import Problem


@dataclass(frozen=True)
class AgreementMechanism(FormFigures):
    """One report about many questions, ε-LDP for all answers together.

    Parameters
    ----------
    bits : 4 to 48.
    agree, disagree : weight of an outcome that reaches the threshold, and of any other; agree ≥
        disagree ≥ 1, below 2^53.
    choices : number of choices of each of 1 to 100 questions: 2 to 64, together at most 2000.
    parts : questions of each part, increasing positions; 1 to 4 questions and 2 to 256 joint
        answers each, row-major, the last question fastest. Every question is in some part.
    components : 1 to 256.

    A symbol is (component, part, set, part, set, …), with the parts in the order of the component's
    pools; in JSON it is a list.

    Raises
    ------
    InvalidInput(weights_invalid), naming the parameter.
    """

    kind: ClassVar[str] = "agreement"
    PARAMS: ClassVar[tuple[str, ...]] = tuple(
        "bits agree disagree choices parts components".split()
    )
    MOST_QUESTIONS: ClassVar[int] = MAX_QUESTIONS
    MOST_COUNTS: ClassVar[int] = MAX_CHOICES
    OPTIONAL: ClassVar[frozenset[str]] = frozenset({"ask"})
    is_random: ClassVar[bool] = True
    named: ClassVar[None] = None

    bits: int
    agree: int
    disagree: int
    choices: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    components: tuple[Component, ...]
    _chances: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_whole(self.bits, MIN_BITS, MAX_BITS, "bits")
        require_whole(self.disagree, 1, MAX_INT, "disagree")
        require_whole(self.agree, self.disagree, MAX_INT, "agree")
        if not 1 <= len(self.choices) <= MAX_QUESTIONS:
            raise invalid(f"a form has 1 to {MAX_QUESTIONS} questions", "choices")
        for i, choices in enumerate(self.choices):
            require_whole(choices, 2, MOST_CHOICES, f"choices[{i}]")
        if sum(self.choices) > MAX_CHOICES:
            raise invalid(f"a form has at most {MAX_CHOICES} choices", "choices")
        require_parts(self)
        for i, component in enumerate(self.components):
            require_component(self, component, f"components[{i}]")
        pools = [pool for component in self.components for pool in component.pools]
        # A part in no pool would never be drawn, so its answers could not be estimated.
        if {part for pool in pools for part in pool.parts} != set(range(len(self.parts))):
            raise invalid("every part must be in some pool", "parts")
        # The choice of the component uses exactly `bits` random bits, without rejection.
        if sum(component.chance for component in self.components) != 1 << self.bits:
            raise invalid("the chances of the components must sum to 2^bits", "components")
        # A small document could otherwise demand a lot of work from a device.
        if self.cells > MAX_CELLS:
            raise invalid(f"the tables of a form have at most {MAX_CELLS} cells", "components")
        # Computed once, because every draw compares with all cumulative chances.
        object.__setattr__(self, "_chances", tuple(accumulate(c.chance for c in self.components)))

    @property
    def as_form(self) -> Self:
        """The mechanism itself; None for every other kind."""
        return self

    @property
    def numbered(self) -> NoReturn:
        """Raises TypeError: joint answers to a form have no numbers."""
        raise TypeError("the answers of a form have no numbers")

    def answer_of(self, part: int, truth: Truth) -> int:
        """Return the joint answer of a part, row-major, the last question fastest."""
        return reduce(lambda row, q: row * self.choices[q] + truth[q], self.parts[part], 0)

    def sample(self, truth: Truth, randbits: RandomBits = secrets.randbits) -> tuple[int, ...]:
        """Draw the symbol to send for `truth`: a plan, then its answer.

        Raises RandomnessError if the operating system provides no random bits.
        """
        return self.answer(truth, self.plan(randbits), randbits)

    def plan(self, randbits: RandomBits = secrets.randbits) -> Plan:
        """Draw the component and the parts of a report, and nothing else.

        More must not be decided before the answers are known: a coin for "no set holds the truth",
        drawn first, would keep the law of reports but let anybody who sees it exceed the level
        (docs/maths/forms.md). Raises RandomnessError.
        """
        u = draw(self.bits, randbits)
        number = sum(u >= cumulative for cumulative in self._chances)
        pools = self.components[number].pools
        return Plan(number, tuple(part for pool in pools for part in pick_of(pool, randbits)))

    def questions_of(self, plan: Plan) -> tuple[int, ...]:
        """Return the questions whose answers `answer` reads: those of the plan's parts, increasing."""
        return tuple(sorted({question for part in plan.parts for question in self.parts[part]}))

    def answer(
        self, truth: Truth, plan: Plan, randbits: RandomBits = secrets.randbits
    ) -> tuple[int, ...]:
        """Draw the symbol of a plan; only the answers to `questions_of` are read.

        The number of random bits and of steps does not depend on the truth. The time of the
        divisions may vary with the truth by a few microseconds, but reports are sent at random
        times. Its random bits must never be stored: with the symbol they give answers away. Raises
        RandomnessError.
        """
        number, component = plan.component, self.components[plan.component]
        total, agreeing = component.totals[0], component.tails[0][0]
        u = draw_below(self.mean_weight(component), randbits)
        agrees = u < self.agree * agreeing
        # All outcomes of the drawn weight are equally likely, and `rank` selects one of them.
        # Indexing replaces branches, so that the steps are the same for both outcomes.
        offset = (self.agree * agreeing, 0)[agrees]
        rank = (u - offset) % (total - agreeing, agreeing)[agrees]
        symbol, score = [number], 0
        for j, (pool, part) in enumerate(zip(component.slots, plan.parts, strict=True)):
            higher = min(score + pool.score, component.threshold)
            reached, missed = component.tails[j + 1][higher], component.tails[j + 1][score]
            everything = component.totals[j + 1]
            after = ((everything - missed, everything - reached), (missed, reached))[agrees]
            # Completions with a set that contains the truth are numbered first.
            first = pool.cover.inside * after[1]
            holds = rank < first
            rank, place = divmod(
                rank - (first, 0)[holds], (pool.cover.outside, pool.cover.inside)[holds]
            )
            score = (score, higher)[holds]
            symbol += [part, pool.cover.number(self.answer_of(part, truth), place, holds=holds)]
        return tuple(symbol)

    def chances(self, symbol: tuple[int, ...], truth: Truth) -> tuple[Fraction, Fraction, Fraction]:
        """Return Q(symbol|truth), and its smallest and largest value over all truths."""
        chance, component = self.probability(symbol, truth), self.components[symbol[0]]
        score = sum(
            pool.score * (pool.cover.masks[number] >> self.answer_of(part, truth) & 1)
            for pool, part, number in self.drawn(symbol)
        )
        weight = self.agree if score >= component.threshold else self.disagree
        return chance, chance * self.disagree / weight, chance * self.agree / weight

    def probability(self, symbol: tuple[int, ...], truth: Truth) -> Fraction:
        component = self.components[symbol[0]]
        # Every choice of parts is equally likely, independent of the truth.
        drawn = prod(comb(len(pool.parts), pool.pick) for pool in component.pools)
        base, score = Fraction(component.chance, drawn << self.bits), 0
        for pool, part, number in self.drawn(symbol):
            base *= pool.cover.weights[number]
            score += pool.score * (pool.cover.masks[number] >> self.answer_of(part, truth) & 1)
        weight = self.agree if score >= component.threshold else self.disagree
        return base * weight / self.mean_weight(component)

    def drawn(self, symbol: Sequence[int]) -> Iterator[tuple[Pool, int, int]]:
        """Yield (pool, part, number of its set) for every part that a symbol shows."""
        component = self.components[symbol[0]]
        yield from zip(component.slots, symbol[1::2], symbol[2::2], strict=True)

    def symbols(self) -> Iterator[tuple[int, ...]]:
        for number, component in enumerate(self.components):
            # Parts are in increasing order, so each choice of them occurs once.
            picks = product(*(combinations(pool.parts, pool.pick) for pool in component.pools))
            for parts in map(list, map(chain.from_iterable, picks)):
                for sets in product(*(range(p.cover.sets) for p in component.slots)):
                    yield (number, *chain.from_iterable(zip(parts, sets, strict=True)))

    def check_symbol(self, value: object, field: str = "y") -> tuple[int, ...]:
        if not isinstance(value, list | tuple) or not all(type(y) is int and y >= 0 for y in value):
            raise InvalidInput(
                Problem.Y_TYPE, "a symbol of this block is a list of whole numbers", field
            )
        numbers = cast("Sequence[int]", value)
        if not numbers or numbers[0] >= len(self.components):
            raise unknown("a symbol of this block begins with one of its components", field)
        parts, sets = tuple(numbers[1::2]), numbers[2::2]
        slots = self.components[numbers[0]].slots
        if not len(parts) == len(sets) == len(slots):
            raise unknown(
                f"a symbol of this component names {len(slots)} parts and their sets", field
            )
        if not self.can_draw(Plan(numbers[0], parts)):
            raise unknown("a symbol names different parts of each pool, in order", field)
        if any(n >= pool.cover.sets for n, pool in zip(sets, slots, strict=True)):
            raise unknown("a symbol names sets of its parts' covers", field)
        return tuple(numbers)

    def can_draw(self, plan: Plan) -> bool:
        """Return True if `plan` can return this plan; its numbers are at least 0."""
        if plan.component >= len(self.components):
            return False
        component, left = self.components[plan.component], list(plan.parts)
        if len(left) != len(component.slots):
            return False
        for pool in component.pools:
            parts, left = left[: pool.pick], left[pool.pick :]
            if not set(parts) <= set(pool.parts) or parts != sorted(set(parts)):
                return False
        return True

    def symbol_json(self, symbol: tuple[int, ...]) -> list[int]:
        return list(symbol)

    def longest_symbol_json(self) -> list[int]:
        def longest(number: int, component: Component) -> list[int]:
            symbol = [number]
            for pool in component.pools:
                for part in pool.parts[-pool.pick :]:  # the largest numbers have the most digits
                    symbol += [part, pool.cover.sets - 1]
            return symbol

        every = [longest(i, component) for i, component in enumerate(self.components)]
        return max(every, key=lambda symbol: sum(len(str(n)) + 1 for n in symbol))

    def params_json(self) -> dict[str, Any]:
        return {
            "bits": self.bits,
            "agree": self.agree,
            "disagree": self.disagree,
            "choices": list(self.choices),
            "parts": [list(part) for part in self.parts],
            "components": [
                {
                    "chance": component.chance,
                    "threshold": component.threshold,
                    "pools": [
                        {
                            "parts": list(pool.parts),
                            "pick": pool.pick,
                            "score": pool.score,
                            "cover": pool.cover.to_json(),
                        }
                        for pool in component.pools
                    ],
                }
                for component in self.components
            ],
        }

    @classmethod
    def tables_of(cls, _params: Mapping[str, Any], /) -> list[Any]:
        return []

    def counts_of(self, sizes: Sequence[int]) -> int:
        """Return the number of prior counts: one for each choice of each question.

        Raises DocumentRejected("weights") if the mechanism's choices are not those of the questions.
        """
        if self.choices != tuple(sizes):
            raise DocumentRejected(
                "weights",
                "the mechanism must have the choices of the questions, in their order",
                "choices",
            )
        return sum(sizes)

    def truth_of(self, positions: Mapping[int, int], _sizes: Sequence[int]) -> Truth:
        """Return the truth: the positions themselves."""
        return positions

    @classmethod
    def from_params(cls, data: object, field: str = "params") -> "AgreementMechanism":
        params = require_keys(data, cls.PARAMS, field)
        choices, parts, components = drawn_parts(params)
        return cls(params["bits"], params["agree"], params["disagree"], choices, parts, components)
