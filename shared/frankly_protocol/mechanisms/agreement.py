# SPDX-License-Identifier: Apache-2.0
"""The agreement kind: many questions under one level (docs/maths/forms.md).

A *part* is one question, or a few questions that are treated as one. The device draws a component,
then some of its parts, then a random set of answers for each of these. Every set that contains the
true answer adds to the score. An outcome whose score reaches the component's threshold has
`agree`/`disagree` times the weight of other outcomes. A report shows the component and, for each
part drawn, its set.

There are only two weights, and every answer of a part is covered equally often, so the normalisation
is the same for all true answers. A report is therefore ε-LDP for the whole form, with e^ε =
agree/disagree.
"""

import secrets
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from itertools import accumulate, chain, combinations, product
from math import comb, prod
from typing import Any, ClassVar, Final, cast

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import (
    MAX_ANSWERS,
    MAX_BITS,
    MAX_REPORTS,
    MIN_BITS,
    RandomBits,
    draw,
    draw_below,
    invalid,
    mask_json,
    mask_of,
    require_keys,
    require_whole,
    unknown,
)
from frankly_protocol.problems import Problem

MAX_QUESTIONS: Final = 100
MAX_PARTS: Final = 400
MAX_GROUPED: Final = 4
"""Largest number of questions that act as one part."""
MAX_COMPONENTS: Final = 256
MAX_SCORE: Final = 8
MAX_CHOICES: Final = 2000
"""Largest number of choices of all questions together."""
MAX_CELLS: Final = 1 << 20
"""Largest number of cells of a form, which bounds the time to explain the form and to draw from it."""
_MOST_CHOICES: Final = 64
_CELLS_PER_SCORE: Final = 8  # entries of score tables have thousands of bits
_MAX_CELLS: Final = 1 << 18  # sets × answers of a listed cover; its check reads all of them

Truth = tuple[int, ...] | Mapping[int, int]
"""Positions of the true choices by question; of the questions that nobody reads, none is needed."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """First step of a draw, which needs no answer: the component and the parts of a report.

    component : its position. parts : positions, in the order of the component's pools. The repr
    shows neither: together with the report they would tell whose it is.
    """

    component: int
    parts: tuple[int, ...]

    def __repr__(self) -> str:
        return "Plan(…)"


@dataclass(frozen=True)
class Cover:
    """A random set of a part's answers that contains each of them with the same chance.

    answers : number of the part's answers, 2 to 256. size : if all sets of one size are equally
    likely, that size; None if `listed` gives the sets. listed : (bit mask, whole weight of at least
    1) of each set.

    Raises InvalidInput(weights_invalid), naming `cover`, unless there are 2 to 4096 different sets,
    none of them empty or full, that cover every answer equally often; also if the list is too large
    or its weights sum to 2^53 or more.
    """

    answers: int
    size: int | None = None
    listed: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.size is not None:
            require_whole(self.size, 1, self.answers - 1, "cover")
            if comb(self.answers, self.size) > MAX_REPORTS:
                raise invalid(f"a cover has at most {MAX_REPORTS} sets", "cover")
            return
        full = (1 << self.answers) - 1
        if not 2 <= len(self.listed) <= MAX_REPORTS or len(self.listed) * self.answers > _MAX_CELLS:
            raise invalid(
                f"a cover lists 2 to {MAX_REPORTS} sets, at most {_MAX_CELLS // self.answers} here",
                "cover",
            )
        if len({mask for mask, _ in self.listed}) < len(self.listed):
            raise invalid("the sets of a cover must differ", "cover")
        if not all(0 < mask < full for mask, _ in self.listed):
            raise invalid("a set of a cover contains some answers but not all", "cover")
        if sum(weight for _, weight in self.listed) > MAX_INT:
            raise invalid("the weights of a cover must sum to less than 2^53", "cover")
        # With unequal coverage the normalisation would depend on the truth, and the level would be
        # exceeded.
        if len(set(self._coverage)) > 1:
            raise invalid("every answer must be covered equally often", "cover")

    @property
    def sets(self) -> int:
        """The number of sets."""
        return len(self.listed) if self.size is None else comb(self.answers, self.size)

    @property
    def _coverage(self) -> list[int]:
        return [
            sum(weight for mask, weight in self.listed if mask >> x & 1)
            for x in range(self.answers)
        ]

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """The sets as bit masks; a set's number is its index here.

        All sets of one size are in the lexicographic order of their positions.
        """
        if self.size is None:
            return tuple(mask for mask, _ in self.listed)
        return tuple(
            sum(1 << x for x in chosen) for chosen in combinations(range(self.answers), self.size)
        )

    @property
    def weights(self) -> tuple[int, ...]:
        """The weight of each set, in the order of `masks`."""
        return tuple(w for _, w in self.listed) if self.size is None else (1,) * self.sets

    @cached_property
    def inside(self) -> int:
        """Total weight of the sets that contain a given answer; the same for every answer."""
        return self._coverage[0] if self.size is None else comb(self.answers - 1, self.size - 1)

    @cached_property
    def outside(self) -> int:
        """Total weight of the sets that do not contain a given answer."""
        return (sum(self.weights) if self.size is None else self.sets) - self.inside

    @cached_property
    def rows(self) -> tuple[tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], ...]:
        """For each answer, (cumulative weights, numbers) of the sets without it, then of those with it.

        All rows are computed together, because a cache with single rows would reveal for which
        answers a set was drawn.
        """
        weights, numbers = self.weights, range(self.sets)
        return tuple(
            tuple(
                (tuple(accumulate(weights[i] for i in chosen)), tuple(chosen))
                for chosen in (
                    [i for i in numbers if self.masks[i] >> x & 1 == held] for held in (0, 1)
                )
            )
            for x in range(self.answers)
        )

    def number(self, answer: int, rank: int, *, holds: bool) -> int:
        """Return the number of the set at cumulative weight `rank`.

        Only the sets that contain `answer` count if `holds`, otherwise only the others.
        """
        cumulative, numbers = self.rows[answer][holds]
        return numbers[bisect_right(cumulative, rank)]

    def to_json(self) -> int | list[list[str | int]]:
        """Return the cover in its JSON form: its size, or a list of [hex digits, weight]."""
        if self.size is not None:
            return self.size
        return [[mask_json(mask, self.answers), weight] for mask, weight in self.listed]


@dataclass(frozen=True, slots=True)
class Pool:
    """Parts from which a component draws, with one cover and one score for all of them.

    parts : positions of the parts, increasing. pick : the number of parts drawn, 1 to all. score :
    the score that a set adds if it contains the true answer, 1 to 8.
    """

    parts: tuple[int, ...]
    pick: int
    cover: Cover
    score: int = 1


@dataclass(frozen=True)
class Component:
    """One way of drawing a report, with its published chance.

    chance : whole number; the chances of all components sum to 2^bits. threshold : 1 to the largest
    possible score.
    """

    chance: int
    threshold: int
    pools: tuple[Pool, ...]

    @cached_property
    def slots(self) -> tuple[Pool, ...]:
        """The pool of each part that is drawn, in the order of the report."""
        return tuple(pool for pool in self.pools for _ in range(pool.pick))

    @cached_property
    def tails(self) -> tuple[tuple[int, ...], ...]:
        """tails[j][s]: total weight of the outcomes of slots j, j+1, … that raise s to the threshold.

        The weight of an outcome is the product of the weights of its sets. s runs from 0 to the
        threshold, and larger scores count as the threshold.
        """
        rows = [tuple(int(s == self.threshold) for s in range(self.threshold + 1))]
        for pool in reversed(self.slots):
            following = rows[-1]
            rows.append(
                tuple(
                    pool.cover.inside * following[min(s + pool.score, self.threshold)]
                    + pool.cover.outside * following[s]
                    for s in range(self.threshold + 1)
                )
            )
        return tuple(reversed(rows))

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """totals[j]: total weight of all outcomes of slots j, j+1, …."""
        weights = (pool.cover.inside + pool.cover.outside for pool in reversed(self.slots))
        return tuple(reversed(list(accumulate(weights, lambda a, b: a * b, initial=1))))

    @cached_property
    def others(self) -> tuple[tuple[int, int], ...]:
        """For each pool, two weights of the outcomes of all slots except one of the pool's.

        The first is the weight of the outcomes that reach the threshold if the slot adds its score,
        the second the weight of those that reach it if the slot adds nothing.
        """
        weights, slot, law = [], 0, [1] + [0] * self.threshold
        for pool in self.pools:
            after = self.tails[slot + 1]
            with_score = (after[min(s + pool.score, self.threshold)] for s in range(len(law)))
            weights.append(
                (
                    sum(n * tail for n, tail in zip(law, with_score, strict=True)),
                    sum(n * tail for n, tail in zip(law, after, strict=True)),
                )
            )
            slot += pool.pick
            for _ in range(pool.pick):
                moved = [n * pool.cover.outside for n in law]
                for s, n in enumerate(law):
                    moved[min(s + pool.score, self.threshold)] += n * pool.cover.inside
                law = moved
        return tuple(weights)

    def reaching(self, slots: Sequence[int], score: int) -> Fraction:
        """Return the chance that the other slots raise `score`, the score of `slots`, to the threshold.

        The sets are drawn from their covers, without the weights `agree` and `disagree`. The chance
        does not depend on the true answers.
        """
        law = {min(score, self.threshold): Fraction(1)}
        for j, pool in enumerate(self.slots):
            if j in slots:
                continue
            inside = Fraction(pool.cover.inside, pool.cover.inside + pool.cover.outside)
            moved: dict[int, Fraction] = {}
            for s, chance in law.items():
                higher = min(s + pool.score, self.threshold)
                moved[higher] = moved.get(higher, Fraction(0)) + chance * inside
                moved[s] = moved.get(s, Fraction(0)) + chance * (1 - inside)
            law = moved
        return law.get(self.threshold, Fraction(0))


@dataclass(frozen=True)
class AgreementMechanism:
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
    PARAMS: ClassVar[tuple[str, ...]] = (
        "bits",
        "agree",
        "disagree",
        "choices",
        "parts",
        "components",
    )

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
            require_whole(choices, 2, _MOST_CHOICES, f"choices[{i}]")
        if sum(self.choices) > MAX_CHOICES:
            raise invalid(f"a form has at most {MAX_CHOICES} choices", "choices")
        self._check_parts()
        for i, component in enumerate(self.components):
            self._check_component(component, f"components[{i}]")
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

    def _check_parts(self) -> None:
        if not 1 <= len(self.parts) <= MAX_PARTS:
            raise invalid(f"a form has 1 to {MAX_PARTS} parts", "parts")
        for i, part in enumerate(self.parts):
            where = f"parts[{i}]"
            if not 1 <= len(part) <= MAX_GROUPED or list(part) != sorted(set(part)):
                raise invalid(
                    f"a part names 1 to {MAX_GROUPED} different questions, in order", where
                )
            if part[-1] >= len(self.choices):
                raise invalid("there is no such question", where)
            if self.answers_of(i) > MAX_ANSWERS:
                raise invalid(f"a part has at most {MAX_ANSWERS} joint answers", where)
        # Two equal parts would be two names for the same table.
        if len(set(self.parts)) < len(self.parts):
            raise invalid("the parts must differ", "parts")
        if set(chain.from_iterable(self.parts)) != set(range(len(self.choices))):
            raise invalid("every question must be in some part", "parts")

    def _check_component(self, component: Component, where: str) -> None:
        require_whole(component.chance, 1, 1 << self.bits, f"{where}.chance")
        questions: list[int] = []
        for j, pool in enumerate(component.pools):
            place = f"{where}.pools[{j}]"
            if not pool.parts or list(pool.parts) != sorted(set(pool.parts)):
                raise invalid("a pool names different parts, in order", f"{place}.parts")
            require_whole(pool.pick, 1, len(pool.parts), f"{place}.pick")
            require_whole(pool.score, 1, MAX_SCORE, f"{place}.score")
            if pool.parts[-1] >= len(self.parts):
                raise invalid("there is no such part", f"{place}.parts")
            questions_of_pool = [question for part in pool.parts for question in self.parts[part]]
            # The parts of a pool that draws only one may share questions.
            questions += set(questions_of_pool) if pool.pick == 1 else questions_of_pool
            for part in pool.parts:
                if self.answers_of(part) != pool.cover.answers:
                    raise invalid(
                        "the parts of a pool have as many answers as its cover", f"{place}.parts"
                    )
        # If a question were in two parts that are drawn together, their scores would be dependent.
        if len(set(questions)) < len(questions):
            raise invalid("a component names a question once", f"{where}.pools")
        most = sum(pool.score for pool in component.slots)
        # A threshold above the largest score would be met by no outcome.
        require_whole(component.threshold, 1, most, f"{where}.threshold")

    @property
    def level(self) -> Fraction:
        """e^ε of the whole report: agree/disagree."""
        return Fraction(self.agree, self.disagree)

    @property
    def answers(self) -> int:
        """The number of joint answers to all questions; may be astronomically large."""
        return prod(self.choices)

    @property
    def reports(self) -> int:
        """The number of symbols that can be sent."""
        return sum(
            prod(comb(len(pool.parts), pool.pick) for pool in component.pools)
            * prod(pool.cover.sets for pool in component.slots)
            for component in self.components
        )

    @property
    def cells(self) -> int:
        """The number of cells of the form's tables; the time to explain the form is proportional to it.

        For each pool, its sets times the sum of its cover's answers and of the choices of all
        questions in its parts of several questions; for each component, eight times its slots times
        the scores from 0 to the threshold.
        """
        cells = 0
        for component in self.components:
            slots = sum(pool.pick for pool in component.pools)
            cells += _CELLS_PER_SCORE * slots * (component.threshold + 1)
            for pool in component.pools:
                joint = (self.parts[part] for part in pool.parts if len(self.parts[part]) > 1)
                choices = sum(self.choices[question] for part in joint for question in part)
                cells += pool.cover.sets * (pool.cover.answers + choices)
        return cells

    @property
    def sends_unchanged(self) -> bool:
        """False: every report is possible under every truth."""
        return False

    @property
    def questions_drawn(self) -> tuple[int, int]:
        """The smallest and the largest number of questions that a report is about."""
        numbers = []
        for component in self.components:
            sizes = [sorted(len(self.parts[i]) for i in pool.parts) for pool in component.pools]
            pairs = list(zip(sizes, component.pools, strict=True))
            # The shortest parts of each pool, and below the longest ones.
            numbers.append(sum(sum(lengths[: pool.pick]) for lengths, pool in pairs))
            numbers.append(sum(sum(lengths[-pool.pick :]) for lengths, pool in pairs))
        return min(numbers), max(numbers)

    @property
    def guesses(self) -> tuple[Fraction, ...]:
        """For each question, the chance that the best guess from a report is right.

        All joint answers are assumed to be equally likely.
        """
        chances = [Fraction(1, choices) for choices in self.choices]
        for component in self.components:
            mean = self.mean_weight(component)
            for pool, (agreeing, other) in zip(component.pools, component.others, strict=True):
                # All slots of a pool are equivalent, and each of its parts is drawn equally often.
                drawn = Fraction(component.chance * pool.pick, len(pool.parts) << self.bits)
                sets = pool.cover.inside + pool.cover.outside
                added = Fraction((self.agree - self.disagree) * (agreeing - other) * sets, mean)
                gains: dict[tuple[int, int], Fraction] = {}
                for part in pool.parts:
                    for question in self.parts[part]:
                        place = self._place(part, question)
                        if place not in gains:
                            gains[place] = _gain(pool.cover, *place)
                        chances[question] += drawn * added * gains[place]
        return tuple(chances)

    @property
    def easiest(self) -> int:
        """The position of the question at which the best guess from a report is right most often.

        Of several such questions, it is the first of those with the most choices.
        """
        # Compared by the chance, not by its ratio to that of a blind guess: no other answer is
        # guessed more often.
        pairs = list(zip(self.guesses, self.choices, strict=True))
        return pairs.index(max(pairs))

    def _place(self, part: int, question: int) -> tuple[int, int]:
        """Return the number of choices of a question, and of joint answers to later ones."""
        after = prod(self.choices[q] for q in self.parts[part] if q > question)
        return self.choices[question], after

    def answers_of(self, part: int) -> int:
        """Return the number of joint answers of a part."""
        return prod(self.choices[question] for question in self.parts[part])

    def answer_of(self, part: int, truth: Truth) -> int:
        """Return the joint answer of a part, row-major, the last question fastest."""
        return reduce(lambda row, q: row * self.choices[q] + truth[q], self.parts[part], 0)

    def mean_weight(self, component: Component) -> int:
        """Return the total weight of a component's outcomes, which is the same for every truth."""
        agreeing, total = component.tails[0][0], component.totals[0]
        return self.agree * agreeing + self.disagree * (total - agreeing)

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
        return Plan(number, tuple(part for pool in pools for part in _pick(pool, randbits)))

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
        """Return Q(symbol|truth) exactly, for a symbol that can be sent."""
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
        """Yield every symbol; there may be very many."""
        for number, component in enumerate(self.components):
            # Parts are in increasing order, so each choice of them occurs once.
            picks = product(*(combinations(pool.parts, pool.pick) for pool in component.pools))
            for parts in map(list, map(chain.from_iterable, picks)):
                for sets in product(*(range(p.cover.sets) for p in component.slots)):
                    yield (number, *chain.from_iterable(zip(parts, sets, strict=True)))

    def check_symbol(self, value: object, field: str = "y") -> tuple[int, ...]:
        """Read the JSON form of a symbol.

        Raises InvalidInput(y_type or symbol_unknown), which never repeats the value.
        """
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
        """Return the JSON form of a symbol."""
        return list(symbol)

    def longest_symbol_json(self) -> list[int]:
        """Return the JSON form of a longest symbol; reports are padded to its length."""

        def longest(number: int, component: Component) -> list[int]:
            symbol = [number]
            for pool in component.pools:
                for part in pool.parts[-pool.pick :]:  # the largest numbers have the most digits
                    symbol += [part, pool.cover.sets - 1]
            return symbol

        every = [longest(i, component) for i, component in enumerate(self.components)]
        return max(every, key=lambda symbol: sum(len(str(n)) + 1 for n in symbol))

    def params_json(self) -> dict[str, Any]:
        """Return the parameters in their JSON form."""
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
    def from_params(cls, data: object, field: str = "params") -> "AgreementMechanism":
        """Read the parameters; raises InvalidInput(weights_invalid), naming the parameter."""
        params = require_keys(data, cls.PARAMS, field)
        choices = _whole_list(params["choices"], MAX_QUESTIONS, "choices", 2, _MOST_CHOICES)
        parts = tuple(
            _whole_list(part, MAX_GROUPED, f"parts[{i}]")
            for i, part in enumerate(_list(params["parts"], MAX_PARTS, "parts"))
        )
        components = tuple(
            _component(entry, choices, parts, f"components[{i}]")
            for i, entry in enumerate(_list(params["components"], MAX_COMPONENTS, "components"))
        )
        return cls(params["bits"], params["agree"], params["disagree"], choices, parts, components)


def _gain(cover: Cover, choices: int, after: int) -> Fraction:
    """Return the advantage of a set's best choice of a question over an average choice.

    after : the number of joint answers to the questions after it in the part.
    """
    total, best = cover.inside + cover.outside, 0
    if choices == cover.answers:
        best = total  # the part is one question: no set is empty
    else:
        first = sum(1 << x for x in range(cover.answers) if x // after % choices == 0)
        chosen = [first << after * choice for choice in range(choices)]
        # The best guess after a set is the choice with the most joint answers in it.
        for mask, weight in zip(cover.masks, cover.weights, strict=True):
            best += weight * max((mask & own).bit_count() for own in chosen)
    # The mean share of the best choice's joint answers in the set, minus the same share for an
    # average choice.
    return (
        Fraction(best, total * (cover.answers // choices)) - Fraction(cover.inside, total)
    ) / choices


def _pick(pool: Pool, randbits: RandomBits) -> list[int]:
    """Draw `pick` of the pool's parts uniformly, in increasing order (Fisher-Yates)."""
    parts = list(pool.parts)
    # If all parts are drawn, no randomness is spent on their order.
    for i in range(pool.pick if pool.pick < len(parts) else 0):
        j = i + draw_below(len(parts) - i, randbits)
        parts[i], parts[j] = parts[j], parts[i]
    return sorted(parts[: pool.pick])


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
