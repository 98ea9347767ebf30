# SPDX-License-Identifier: Apache-2.0
"""What adds up: the one ledger rule (DESIGN §3.6), in exact products of ratios instead of sums of logarithms.

Prior-free levels always add (by their ceilings). One prior-based block per secret may stand beside any number of
prior-free ones and counts its own level; every other prior-based block counts its ceiling, which may be infinite.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Protocol


class LedgerBlock(Protocol):
    """What the ledger needs to know of a block."""

    @property
    def id(self) -> str:
        """The block's id within its document."""
        ...

    @property
    def secret(self) -> str | None:
        """The secret a prior-based notion protects; None for a prior-free notion."""
        ...

    @property
    def ratio(self) -> Fraction:
        """The promised level E."""
        ...

    @property
    def ceiling(self) -> Fraction | None:
        """The leakage under every prior as a ratio; None if infinite."""
        ...


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """How one block counts: by its own promised `level` or by its `ceiling`; value None is infinite."""

    block: str
    counted_by: str
    value: Fraction | None


@dataclass(frozen=True, slots=True)
class FormLevel:
    """What answering a whole form costs, as ratios (None is infinite).

    level : the smallest sound bound for every declared secret, in the unit of its blocks' notion; where secret-LDP and
    LIP blocks meet it bounds LIP (ε secret-LDP is ε-LIP, the reverse would need 2ε).
    ceiling : the bound under every prior, for any secret.
    """

    level: Fraction | None
    ceiling: Fraction | None
    lines: tuple[LedgerLine, ...]


def form_level(blocks: Sequence[LedgerBlock]) -> FormLevel:
    """Return the smallest sound sum over the blocks of one document, and how each block counted."""
    everything = _product(block.ceiling for block in blocks)
    secrets = sorted({block.secret for block in blocks if block.secret is not None})
    options = [_for_secret(blocks, secret) for secret in secrets] or [_lines(blocks, None)]
    # The form must be safe for each of its secrets, so the largest of their bounds is what it costs.
    dearest = max(options, key=lambda lines: _order(_total(lines)))
    return FormLevel(_total(dearest), everything, dearest)


def ledger_total(forms: Sequence[FormLevel]) -> Fraction | None:
    """Return what several documents cost together: across documents every block counts its ceiling."""
    if len(forms) == 1:
        return forms[0].level
    return _product(form.ceiling for form in forms)


def _for_secret(blocks: Sequence[LedgerBlock], secret: str) -> tuple[LedgerLine, ...]:
    """Let each block about this secret be the one that counts its level; keep the cheapest choice."""
    choices = [_lines(blocks, i) for i, block in enumerate(blocks) if block.secret == secret]
    return min(choices, key=lambda lines: _order(_total(lines)))


def _lines(blocks: Sequence[LedgerBlock], by_level: int | None) -> tuple[LedgerLine, ...]:
    return tuple(
        LedgerLine(block.id, "level", block.ratio) if i == by_level else LedgerLine(block.id, "ceiling", block.ceiling)
        for i, block in enumerate(blocks)
    )


def _total(lines: Sequence[LedgerLine]) -> Fraction | None:
    return _product(line.value for line in lines)


def _order(total: Fraction | None) -> tuple[bool, Fraction]:
    return total is None, total or Fraction(0)


def _product(values: Iterable[Fraction | None]) -> Fraction | None:
    known = list(values)
    return None if None in known else prod((v for v in known if v is not None), start=Fraction(1))
