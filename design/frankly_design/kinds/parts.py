# SPDX-License-Identifier: Apache-2.0
"""Parts of agreement blocks (forms) as separate blocks for counts and estimates.

The law of the sets that a report shows for some parts of a form depends only on the answers to
these parts (spec 1.10). The reports that show a part are therefore reports of an ordinary table
(docs/maths/forms.md).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, wraps
from itertools import product
from math import comb, lcm, prod
from typing import Any, Final, TypeVar

from frankly_protocol.audit import Claim, stated_ceiling
from frankly_protocol.blocks import Block, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism, AnyMechanism, DenseMechanism
from frankly_protocol.mechanisms.agreement import Component, Pool
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS, MIN_BITS
from frankly_protocol.mechanisms.radix import digits_of, number_of
from frankly_protocol.problems import Problem
from frankly_protocol.promises import Promise

_MOST_CACHED: Final = 64
_Value = TypeVar("_Value")


def once_per_document(
    compute: Callable[[SurveyDocument], _Value],
) -> Callable[[SurveyDocument], _Value]:
    """Return the function with its results cached, because documents never change."""
    cache: dict[str, _Value] = {}

    @wraps(compute)
    def cached(document: SurveyDocument) -> _Value:
        # Two threads may both compute a result; the results are equal, so no lock is needed.
        value = cache.get(document.key)
        if value is None:
            if len(cache) >= _MOST_CACHED:
                cache.clear()
            value = cache[document.key] = compute(document)
        return value

    return cached


@dataclass(frozen=True, slots=True)
class PartTable(DenseMechanism):
    """Law of the sets that a report shows for some parts of a form, if it shows all of these parts.

    Q(y|x) = weights[x][y] / total, for joint answers x of the parts, row-major in their order.

    parts : positions in the form. starts : (component, number of its first column), increasing;
    within a component the columns are row-major over the sets of the parts.
    """

    total: int
    form: AgreementMechanism
    parts: tuple[int, ...]
    starts: tuple[tuple[int, int], ...]

    # DenseMechanism requires rows that sum to 2^bits. Nothing is drawn from this table, so its rows
    # may have any sum.
    def __post_init__(self) -> None:
        """Skip all checks, because the table is derived from a checked mechanism."""

    @property
    def denominator(self) -> int:
        """The sum of every row."""
        return self.total

    @property
    def chance_shown(self) -> Fraction:
        """The probability that a report shows all these parts."""
        return chance_shown(self.form, self.parts)

    def column(self, symbol: Sequence[int]) -> int | None:
        """Return the column of a report on the form, None if it does not show all the parts."""
        sets = {part: (pool, number) for pool, part, number in self.form.drawn(symbol)}
        # A report counts for these parts only if its component drew them all.
        if not sets.keys() >= set(self.parts):
            return None
        return self.column_of(symbol[0], [sets[part][1] for part in self.parts])

    def column_of(self, component: int, sets: Sequence[int]) -> int:
        """Return the column for a component and the set numbers of the parts."""
        return dict(self.starts)[component] + number_of(sets, self._sizes(component))

    def shown(self, column: int) -> tuple[int, tuple[int, ...]]:
        """Return the component of a column, and the set numbers of the parts."""
        component, start = max((c, s) for c, s in self.starts if s <= column)
        return component, digits_of(column - start, self._sizes(component))

    def _sizes(self, component: int) -> list[int]:
        """Return the number of sets of each part's cover in a component."""
        pools = _pools_of(self.form.components[component], self.parts) or ()
        return [len(pool.cover.masks) for pool in pools]


def part_of(mechanism: AnyMechanism) -> PartTable | None:
    """Return the mechanism if it is the table of parts of a form, else None."""
    return mechanism if isinstance(mechanism, PartTable) else None


def form_of(mechanism: AnyMechanism) -> AgreementMechanism | None:
    """Return the form of a table of parts, None for other mechanisms."""
    part = part_of(mechanism)
    return None if part is None else part.form


def are_drawn_together(first: AnyMechanism, second: AnyMechanism) -> bool:
    """Return True if these are parts of one form that some reports show together."""
    one, other = part_of(first), part_of(second)
    # By identity, because an equality test of two forms would compare all their tables.
    return (
        one is not None
        and other is not None
        and one.form is other.form
        and are_shown_together(one.form, (*one.parts, *other.parts))
    )


@lru_cache(maxsize=256)
def part_table(form: AgreementMechanism, parts: tuple[int, ...]) -> PartTable:
    """Return the table of the reports that show all these parts.

    Raises InvalidInput: not_identifiable if no report shows them together or a question is in two
    of them, unsupported for a table of more than 256 answers or 4096 columns.
    """
    holders = [
        (number, component, pools)
        for number, component in enumerate(form.components)
        if (pools := _pools_of(component, parts)) is not None
    ]
    if not are_shown_together(form, parts):
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            "no report of this survey contains these questions together: request each alone",
            "targets",
        )
    sizes = [form.answers_of(part) for part in parts]
    columns = sum(prod(len(pool.cover.masks) for pool in pools) for _, _, pools in holders)
    if prod(sizes) > MAX_ANSWERS or columns > MAX_REPORTS:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "there are too many joint answers to estimate at once: request fewer questions together",
            "targets",
        )
    shown = [component.chance * _chance_shown_in(component, parts) for _, component, _ in holders]
    # Each component has separate columns, because the probabilities of its sets differ.
    starts, laws, start = [], [], 0
    for (number, component, pools), chance in zip(holders, shown, strict=True):
        starts.append((number, start))
        start += prod(len(pool.cover.masks) for pool in pools)
        law = _law(form, component, pools, sizes)
        laws.append([[chance / sum(shown) * value for value in row] for row in law])
    rows = [[value for row in across for value in row] for across in zip(*laws, strict=True)]
    # One denominator for all entries keeps the table exact.
    total = lcm(*(value.denominator for row in rows for value in row))
    weights = tuple(
        tuple(value.numerator * (total // value.denominator) for value in row) for row in rows
    )
    return PartTable(form.bits, weights, total, form, parts, tuple(starts))


def chance_shown(form: AgreementMechanism, parts: Sequence[int]) -> Fraction:
    """Return the probability that a report shows all these parts."""
    return sum(
        (
            component.chance * _chance_shown_in(component, parts)
            for component in form.components
            if _pools_of(component, parts) is not None
        ),
        Fraction(0),
    ) / (1 << form.bits)


@once_per_document
def counted_blocks(document: SurveyDocument) -> tuple[Block, ...]:
    """Return the blocks that are counted: every block and, after an agreement block, its parts.

    Of the agreement block itself, only the number of reports is counted. The questions that an arm
    asks in the clear follow all others. document : without arms, or the view of an arm.
    """
    blocks = (*document.blocks, *clear_blocks(document))
    return tuple(unit for block in blocks for unit in (block, *part_blocks(block)))


@once_per_document
def clear_blocks(document: SurveyDocument) -> tuple[Block, ...]:
    """Return a block for each question that an arm asks in the clear and another one protects.

    Estimates compare both, so its answers are counted like symbols that are sent unchanged, and not
    as strata: a batch of the few with a rare answer would have to wait, and the share of the others
    would be too large. Of an arm without blocks these are all its public questions.
    """
    if document.whole is None:
        return ()
    views = document.whole.views.values()
    protected = {_answers_of(one) for view in views for one in view.questions.values()}
    return tuple(
        _clear(question)
        for question in document.strata
        if (not document.blocks or _answers_of(question) in protected)
        and len(question.choices) <= MAX_ANSWERS
    )


def cell_questions(document: SurveyDocument) -> tuple[Question, ...]:
    """Return the public questions whose answers divide reports into cells, or strata."""
    clear = {block.id for block in clear_blocks(document)}
    return tuple(question for question in document.strata if question.id not in clear)


def _answers_of(question: Question) -> tuple[str, ...]:
    return (question.id, *(choice.id for choice in question.choices))


def _clear(question: Question) -> Block:
    n, D = len(question.choices), 1 << MIN_BITS
    unchanged = DenseMechanism(
        MIN_BITS, tuple(tuple(D * (x == y) for y in range(n)) for x in range(n))
    )
    # Nothing is promised.
    promise = Promise(Claim("ldp", None))
    return Block(question.id, (question,), unchanged, (promise,), (1,) * n, None, "unchanged", None)


def estimated_blocks(document: SurveyDocument) -> list[tuple[Block, Fraction]]:
    """Return the counted blocks that can be estimated, with the share of reports that show each."""
    return [
        (block, Fraction(1) if (part := part_of(block.mechanism)) is None else part.chance_shown)
        for block in counted_blocks(document)
        if block.form is None
    ]


def estimated_in_arms(document: SurveyDocument) -> list[tuple[str, Block, Fraction]]:
    """Return the blocks that can be estimated, each with its arm and the share of reports that show it.

    The arm is "" without arms, and for a block that every arm has.
    """
    arms = document.arms
    if arms is None or not document.views:
        return [("", block, share) for block, share in estimated_blocks(document)]
    first, *others = arms.arms
    common = set(first.blocks).intersection(*(arm.blocks for arm in others))
    found = [
        ("", block, share)
        for block, share in estimated_blocks(document.views[first.id])
        if block.id in common
    ]
    return found + [
        (arm.id, block, share * arm.share)
        for arm in arms.arms
        for block, share in estimated_blocks(document.views[arm.id])
        if block.id not in common
    ]


def are_shown_together(form: AgreementMechanism, parts: tuple[int, ...]) -> bool:
    """Return True if some reports show all these parts, and no question is in two of them."""
    questions = [question for part in parts for question in form.parts[part]]
    return len(set(questions)) == len(questions) and any(
        _pools_of(component, parts) is not None for component in form.components
    )


def counted_symbols(mechanisms: Sequence[AnyMechanism], symbols: Sequence[Any]) -> list[Any]:
    """Return a report's symbol for every counted block; None for a part that it does not show.

    mechanisms : those of `counted_blocks`. symbols : one for each block of the document.
    """
    remaining = iter(symbols)
    form_symbol: Any = None
    counted: list[Any] = []
    for mechanism in mechanisms:
        part = part_of(mechanism)
        if part is None:
            form_symbol = next(remaining)
        counted.append(form_symbol if part is None else part.column(form_symbol))
    return counted


def part_blocks(block: Block) -> tuple[Block, ...]:
    """Return a block for each part of an agreement block, none for other kinds."""
    return tuple(_part_blocks(block))


def _part_blocks(block: Block) -> Iterator[Block]:
    form = block.form
    if form is None:
        return
    priors, start = [], 0
    for choices in form.choices:
        priors.append(block.design_prior[start : start + choices])
        start += choices
    for number, part in enumerate(form.parts):
        table = part_table(form, (number,))
        questions = tuple(block.questions[question] for question in part)
        yield replace(
            block,
            questions=questions,
            mechanism=table,
            design_prior=tuple(map(prod, product(*(priors[question] for question in part)))),
            ceiling=stated_ceiling(table),
        )


def _pools_of(component: Component, parts: Sequence[int]) -> tuple[Pool, ...] | None:
    """Return the pool of each part, None if the component cannot draw all parts together."""
    pools = [next((p for p in component.pools if part in p.parts), None) for part in parts]
    known = tuple(pool for pool in pools if pool is not None)
    # Two parts in one pool need two draws from that pool.
    is_possible = all(known.count(pool) <= pool.pick for pool in known)
    return known if len(known) == len(parts) and is_possible else None


def _chance_shown_in(component: Component, parts: Sequence[int]) -> Fraction:
    chance = Fraction(1)
    for pool in component.pools:
        wanted, size = len(set(parts) & set(pool.parts)), len(pool.parts)
        chance *= Fraction(comb(size - wanted, pool.pick - wanted), comb(size, pool.pick))
    return chance


def _law(
    form: AgreementMechanism, component: Component, pools: Sequence[Pool], sizes: Sequence[int]
) -> list[list[Fraction]]:
    """Return the probability of every combination of the parts' sets, for each joint answer."""
    slots = list(component.slots)
    places: list[int] = []
    for pool in pools:
        places.append(next(j for j, p in enumerate(slots) if p is pool and j not in places))
    mean = Fraction(form.mean_weight(component), component.totals[0])
    # One factor per score, because the law depends on the answers only through the score.
    factors = [
        (form.disagree + (form.agree - form.disagree) * component.reaching(places, score)) / mean
        for score in range(sum(pool.score for pool in pools) + 1)
    ]
    totals = prod(pool.cover.inside + pool.cover.outside for pool in pools)
    drawn = list(product(*(range(len(pool.cover.masks)) for pool in pools)))
    bases = [
        Fraction(prod(p.cover.weights[i] for p, i in zip(pools, sets, strict=True)), totals)
        for sets in drawn
    ]
    values = [[base * factor for factor in factors] for base in bases]
    return [
        [
            by_score[
                sum(
                    pool.score * (pool.cover.masks[number] >> x & 1)
                    for pool, number, x in zip(pools, sets, answers, strict=True)
                )
            ]
            for sets, by_score in zip(drawn, values, strict=True)
        ]
        for answers in product(*map(range, sizes))
    ]
