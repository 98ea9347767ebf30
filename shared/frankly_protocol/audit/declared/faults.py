# SPDX-License-Identifier: Apache-2.0
"""Faults of a claim's data, each a detail and the field that it names.

The caller raises at the first one, so each check may rely on those before it.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import prod

from frankly_protocol.audit.data import Joint, LowerBounds, PairLevels, Ratio
from frankly_protocol.canonical import MAX_INT

Fault = tuple[str, str]


def positive_faults(level: Ratio | None, field: str) -> Iterator[Fault]:
    """Yield the faults of a level, of whatever size."""
    if not is_pair(level) or not all(is_whole(v, 1) for v in level or ()):
        yield "a level is a ratio p/q of positive whole numbers below 2^53", field


def ratio_faults(level: Ratio | None, field: str) -> Iterator[Fault]:
    """Yield the faults of a level of at least 1."""
    yield from positive_faults(level, field)
    p, q = level or (0, 0)
    if p < q:
        yield "a level is a ratio p/q ≥ 1", field


def joint_faults(joint: Joint | None, answers: int) -> Iterator[Fault]:
    """Yield the faults of counts of a prior."""
    if not _is_table(joint) or len(joint or ()) < 2:
        # A single row is a constant secret, which every mechanism protects. If the answer itself is
        # the secret, the prior is a diagonal table, not one row.
        yield "the prior needs a row for each of two or more secrets", "prior"
    for s, row in enumerate(joint or ()):
        field = f"prior.joint[{s}]"
        if len(row) != answers:
            yield f"every row of the prior needs {answers} columns", field
        if not all(is_whole(n, 0) for n in row):
            yield "a prior consists of whole numbers, zero or more", field
        if not any(row):
            yield "a secret without mass cannot be protected", field


def attribute_faults(attributes: tuple[int, ...] | None, answers: int) -> Iterator[Fault]:
    """Yield the faults of sizes of attributes."""
    # An attribute of one value reveals nothing, but would double the subsets J to verify.
    if not isinstance(attributes, tuple | list) or not all(is_whole(k, 2) for k in attributes):
        yield "give the number of values of every attribute, two or more", "attributes"
    if prod(attributes or ()) != answers:
        yield (
            f"the attributes' sizes must multiply to {answers}, the number of answers",
            "attributes",
        )


def bound_faults(bounds: LowerBounds | None, answers: int) -> Iterator[Fault]:
    """Yield the faults of lower bounds."""
    if not _is_table(bounds) or len(bounds or ()) < 2:
        yield "lower bounds need a row for each of two or more secrets", "lower_bounds"
    width, remainder = divmod(answers, len(bounds or (0,)))
    for s, row in enumerate(bounds or ()):
        field = f"lower_bounds[{s}]"
        if remainder or len(row) != width:
            yield (
                f"the rows must be equally long and have {answers} bounds, one for each answer (s, u)",
                field,
            )
        if not all(
            is_pair(bound) and is_whole(bound[0], 0) and is_whole(bound[1], 1) for bound in row
        ):
            yield "a bound is a ratio of whole numbers below 2^53", field
        if sum(Fraction(n, d) for n, d in row) > 1:
            yield "the row's bounds on probabilities sum to more than 1", field


def pair_faults(levels: PairLevels | None, answers: int) -> Iterator[Fault]:
    """Yield the faults of levels of pairs."""
    if not _is_table(levels) or len(levels or ()) != answers:
        yield f"levels of pairs need {answers} rows, one for each answer", "levels"
    for x, row in enumerate(levels or ()):
        field = f"levels[{x}]"
        if len(row) != answers:
            yield f"every row of levels needs {answers} columns", field
        # A level of an answer against itself would look like a promise, but promises nothing.
        if row[x] is not None:
            yield "an answer has no level against itself: give null", field
        for ratio in row:
            if ratio is None:
                continue
            if not is_pair(ratio) or not all(is_whole(v, 1) for v in ratio) or ratio[0] < ratio[1]:
                yield "a level of a pair is null or a ratio p/q ≥ 1", field
    if not any(ratio for row in levels or () for ratio in row):
        yield "without a level for any pair nothing is promised", "levels"


def is_delta(delta: Ratio | None) -> bool:
    """Return True for a ratio of at least 0 and below 1."""
    n, d = delta if delta is not None and is_pair(delta) else (None, None)
    return is_whole(n, 0) and is_whole(d, 1) and Fraction(n or 0, d or 1) < 1


def is_whole(value: object, least: int) -> bool:
    """Return True for a whole number from `least` to 2^53 − 1."""
    return type(value) is int and least <= value <= MAX_INT


def is_pair(value: object) -> bool:
    """Return True for a list of two."""
    return isinstance(value, tuple | list) and len(value) == 2


def _is_table(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(row, tuple | list) for row in value)
