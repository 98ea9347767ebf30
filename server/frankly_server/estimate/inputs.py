# SPDX-License-Identifier: Apache-2.0
"""What `estimate` takes, checked once; every refusal names the field."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_protocol.problems import Problem

from frankly_server.estimate.decoder import MAX_CELLS, Targets, shares
from frankly_server.estimate.joint import Joint, Source
from frankly_server.estimate.sets import SetCounts

Checked = list[int] | SetCounts | dict[tuple[int, ...], int]
Tally = Sequence[int] | Mapping[tuple[int, ...], int] | SetCounts
"""Counts as `estimate` takes them, by kind; see there."""


def checked_counts(mechanism: Source, counts: Tally) -> Checked:
    """Return counts per symbol in order (tables and products), SetCounts, or by symbols together (joint).

    Raises InvalidInput(counts_invalid).
    """
    if isinstance(mechanism, Joint):
        if not isinstance(counts, Mapping) or any(type(n) is not int or n < 0 for n in counts.values()):
            words = "give, by symbols of the blocks together, how many reports held them"
            raise InvalidInput(Problem.COUNTS_INVALID, words, "counts")
        return dict(counts)
    if not isinstance(mechanism, DenseMechanism | ProductMechanism):
        if not isinstance(counts, SetCounts):
            words = "reports of this mechanism are sets: give how often each pair of answers was in one"
            raise InvalidInput(Problem.COUNTS_INVALID, words, "counts")
        return counts
    if isinstance(counts, SetCounts):
        raise InvalidInput(Problem.COUNTS_INVALID, "give one count for each report symbol", "counts")
    if isinstance(mechanism, ProductMechanism) and isinstance(counts, Mapping):
        counts = _in_order(mechanism, counts)
    if not isinstance(counts, list | tuple) or len(counts) != mechanism.reports:
        words = f"give one count for each of the {mechanism.reports} report symbols"
        raise InvalidInput(Problem.COUNTS_INVALID, words, "counts")
    for y, count in enumerate(counts):
        if type(count) is not int or count < 0:
            raise InvalidInput(Problem.COUNTS_INVALID, "counts are whole numbers, zero or more", f"counts[{y}]")
    return list(counts)


def checked_population(n: int, population: int | None, *, census: bool) -> None:
    """Refuse a population that cannot be. Raises InvalidInput(counts_invalid)."""
    if population is None:
        return
    if type(population) is not int or population < max(1, n):
        words = f"the population is a whole number, at least the {n} reports received"
        raise InvalidInput(Problem.COUNTS_INVALID, words, "population")
    if census:
        words = "in a census the respondents are the population: leave this out"
        raise InvalidInput(Problem.COUNTS_INVALID, words, "population")


def checked_targets(mechanism: Source, targets: Sequence[Sequence[Fraction | int]] | str) -> Targets:
    """Return the targets as fractions, 1 to 4096 rows. Raises InvalidInput(targets_invalid)."""
    if isinstance(targets, tuple) and len(targets) == mechanism.answers and targets is shares(mechanism.answers):
        return targets
    words = f'give "shares", or 1 to 4096 rows of {mechanism.answers} numbers'
    if not isinstance(targets, list | tuple) or not 1 <= len(targets) <= 4096:
        raise InvalidInput(Problem.TARGETS_INVALID, words, "targets")
    for t, row in enumerate(targets):
        if not isinstance(row, list | tuple) or len(row) != mechanism.answers:
            raise InvalidInput(Problem.TARGETS_INVALID, words, f"targets[{t}]")
        if any(isinstance(v, bool) or not isinstance(v, int | Fraction) for v in row):
            raise InvalidInput(Problem.TARGETS_INVALID, "targets hold finite numbers", f"targets[{t}]")
    wanted = tuple(tuple(v if isinstance(v, Fraction) else Fraction(v) for v in row) for row in targets)
    everything = shares(mechanism.answers)
    return everything if wanted == everything else wanted


def checked_prior(mechanism: Source, prior: Sequence[int]) -> tuple[int, ...]:
    """Return the design prior. Raises InvalidInput: prior_shape or prior_value."""
    if not isinstance(prior, list | tuple) or len(prior) != mechanism.answers:
        words = f"the design prior has one entry for each of the {mechanism.answers} answers"
        raise InvalidInput(Problem.PRIOR_SHAPE, words, "design_prior")
    if any(type(n) is not int or n < 0 for n in prior) or not any(prior):
        words = "the design prior holds whole numbers, zero or more, not all zero"
        raise InvalidInput(Problem.PRIOR_VALUE, words, "design_prior")
    return tuple(prior)


def _in_order(mechanism: ProductMechanism, counts: Mapping[tuple[int, ...], int]) -> list[int]:
    if mechanism.reports > MAX_CELLS:
        words = "so many joint reports cannot be told apart at once: ask for fewer questions together"
        raise InvalidInput(Problem.UNSUPPORTED, words, "counts")
    found = [0] * mechanism.reports
    for symbol, n in counts.items():
        place = 0
        for y, factor in zip(mechanism.check_symbol(symbol, "counts"), mechanism.factors, strict=True):
            place = place * factor.reports + y
        found[place] += n
    return found
