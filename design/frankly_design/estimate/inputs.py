# SPDX-License-Identifier: Apache-2.0
"""Checks of the inputs of `estimate`; every error names the field."""

from collections.abc import Sequence
from fractions import Fraction

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.kinds.decoder import Targets, shares
from frankly_design.kinds.joint import Source


def checked_population(n: int, population: int | None, *, census: bool) -> None:
    """Raise InvalidInput(counts_invalid) if the population is too small, or given for a census."""
    if population is None:
        return
    if type(population) is not int or population < max(1, n):
        raise InvalidInput(
            Problem.COUNTS_INVALID,
            f"the population is a whole number, at least the {n} reports received",
            "population",
        )
    if census:
        raise InvalidInput(
            Problem.COUNTS_INVALID,
            "in a census the respondents are the population: leave this out",
            "population",
        )


def checked_targets(
    mechanism: Source, targets: Sequence[Sequence[Fraction | int]] | str
) -> Targets:
    """Return the targets as fractions, 1 to 4096 rows. Raises InvalidInput(targets_invalid)."""
    if (
        isinstance(targets, tuple)
        and len(targets) == mechanism.answers
        and targets is shares(mechanism.answers)
    ):
        return targets
    message = f'give "shares", or 1 to 4096 rows of {mechanism.answers} numbers'
    if not isinstance(targets, list | tuple) or not 1 <= len(targets) <= 4096:
        raise InvalidInput(Problem.TARGETS_INVALID, message, "targets")
    for t, row in enumerate(targets):
        if not isinstance(row, list | tuple) or len(row) != mechanism.answers:
            raise InvalidInput(Problem.TARGETS_INVALID, message, f"targets[{t}]")
        # Floats are refused: decoders are exact, and rounding would decide whether a float target
        # is identifiable.
        if any(isinstance(v, bool) or not isinstance(v, int | Fraction) for v in row):
            raise InvalidInput(
                Problem.TARGETS_INVALID, "targets are whole numbers or fractions", f"targets[{t}]"
            )
    rows = tuple(
        tuple(v if isinstance(v, Fraction) else Fraction(v) for v in row) for row in targets
    )
    # The cached object is returned, because other code tests for the shares by identity (`is`).
    all_shares = shares(mechanism.answers)
    return all_shares if rows == all_shares else rows


def checked_prior(mechanism: Source, prior: Sequence[int]) -> tuple[int, ...]:
    """Return the design prior. Raises InvalidInput: prior_shape or prior_value."""
    if not isinstance(prior, list | tuple) or len(prior) != mechanism.answers:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"the design prior has one entry for each of the {mechanism.answers} answers",
            "design_prior",
        )
    if any(type(n) is not int or n < 0 for n in prior) or not any(prior):
        raise InvalidInput(
            Problem.PRIOR_VALUE,
            "the design prior consists of whole numbers, zero or more, not all zero",
            "design_prior",
        )
    return tuple(prior)
