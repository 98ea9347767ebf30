# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of any kind as tables, if their reports are few enough to list."""

from fractions import Fraction

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import AgreementMechanism
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_BITS, MAX_REPORTS, Symbol
from frankly_protocol.mechanisms.dense import DenseMechanism
from frankly_protocol.mechanisms.product import ProductMechanism
from frankly_protocol.mechanisms.subset import SubsetMechanism
from frankly_protocol.mechanisms.unary import UnaryMechanism
from frankly_protocol.problems import Problem

Mechanism = DenseMechanism | UnaryMechanism | SubsetMechanism | ProductMechanism
"""A mechanism on the numbered answers of one block."""
AnyMechanism = Mechanism | AgreementMechanism
KINDS: dict[str, type[Mechanism]] = {
    kind.kind: kind for kind in (DenseMechanism, UnaryMechanism, SubsetMechanism, ProductMechanism)
}
BLOCK_KINDS = {**KINDS, AgreementMechanism.kind: AgreementMechanism}
"""The kinds that a block of a document may have."""


def columns(mechanism: Mechanism, most: int = MAX_REPORTS) -> dict[Symbol, tuple[Fraction, ...]]:
    """Return Q(symbol|·), one probability per answer, for every symbol that can be sent.

    Raises InvalidInput(unsupported) if there are more than `most` symbols.
    """
    if mechanism.reports > most:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the mechanism has more than {most} reports: they cannot be listed",
            "mechanism",
        )
    answers = range(mechanism.answers)
    chance = mechanism.probability
    return {y: tuple(chance(y, x) for x in answers) for y in mechanism.symbols()}  # type: ignore[arg-type]


def as_dense(mechanism: Mechanism) -> DenseMechanism | None:
    """Return the same mechanism as a table, its columns in the order of `symbols()`.

    Returns None if no table of at most 48 bits, 4096 columns and 256 rows is exactly the same.
    """
    if isinstance(mechanism, DenseMechanism):
        return mechanism
    if mechanism.reports > MAX_REPORTS or mechanism.answers > MAX_ANSWERS:
        return None
    column_list = list(columns(mechanism).values())
    common = max(chance.denominator for column in column_list for chance in column)
    # Exact if `common` is a power of two; if it is not, the next check returns None.
    bits = max(mechanism.bits, common.bit_length() - 1)
    if bits > MAX_BITS or any(
        (1 << bits) % chance.denominator for column in column_list for chance in column
    ):
        return None
    weights = zip(
        *([int(chance * (1 << bits)) for chance in column] for column in column_list), strict=True
    )
    return DenseMechanism(bits, tuple(map(tuple, weights)))
